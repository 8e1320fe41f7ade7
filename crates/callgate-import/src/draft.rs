//! A draft of a policy: rules with their origins, and their text.

use std::fmt::Write as _;

use callgate::policy::Decision;
use callgate::show;
use serde::Serialize;

use crate::families::ToolFamily;
use crate::importer::Importer;
use crate::settings_file::SettingsFile;

/// callgate's own denies, in front of all imported rules.
const KEPT: &str = include_str!("kept.yaml");

/// How a rule was translated that could not be translated exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Translation {
    /// The new rule denies or asks about more.
    Broader,
    /// The new rule allows less.
    Narrower,
    /// There is no new rule; callgate asks about what it allowed.
    LeftOut,
    /// There is no new rule, because the bundled policy already has the same effect.
    Covered,
    /// The agent itself never matches the rule.
    WithoutEffect,
}

impl Translation {
    /// The translation in words.
    pub fn words(self) -> &'static str {
        match self {
            Translation::Broader => "made broader",
            Translation::Narrower => "made narrower",
            Translation::LeftOut => "left out",
            Translation::Covered => "not needed",
            Translation::WithoutEffect => "has no effect",
        }
    }
}

/// A rule that was not translated exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportNote {
    /// The file and the text of the rule.
    pub origin: String,
    /// How it was translated.
    pub outcome: Translation,
    /// The reason.
    pub why: String,
}

/// The condition whose patterns are merged into one list for otherwise equal rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Tools,
    Commands,
    CommandPatterns,
    Paths,
    Hosts,
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Key::Tools => "tools",
            Key::Commands => "commands",
            Key::CommandPatterns => "command_patterns",
            Key::Paths => "paths",
            Key::Hosts => "hosts",
        }
    }

    /// The part of a rule's name for this key.
    fn about(self) -> &'static str {
        if self == Key::CommandPatterns { "text" } else { self.name() }
    }
}

/// A pattern and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pattern: String,
    origin: String,
}

/// A draft of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub decision: Decision,
    key: Key,
    entries: Vec<Entry>,
    tools: ToolFamily,
    effects: &'static [&'static str],
    except_own_files: bool,
    recursive: Option<bool>,
    when: Option<String>,
    reason: Option<String>,
}

impl Rule {
    /// A rule with patterns of the same origin.
    pub(crate) fn new(
        decision: Decision,
        key: Key,
        patterns: impl IntoIterator<Item = impl Into<String>>,
        origin: &str,
    ) -> Self {
        let entries =
            patterns.into_iter().map(|pattern| Entry { pattern: pattern.into(), origin: origin.to_owned() }).collect();
        Rule {
            decision,
            key,
            entries,
            tools: "",
            effects: &[],
            except_own_files: false,
            recursive: None,
            when: None,
            reason: None,
        }
    }

    #[must_use]
    pub(crate) fn effects(self, effects: &'static [&'static str]) -> Self {
        Rule { effects, ..self }
    }

    #[must_use]
    pub(crate) fn tools(self, tools: ToolFamily) -> Self {
        Rule { tools, ..self }
    }

    /// Leaves out the files that callgate and agents keep for themselves.
    #[must_use]
    pub(crate) fn except_own_files(self) -> Self {
        Rule { except_own_files: true, ..self }
    }

    #[must_use]
    pub(crate) fn recursive(self, recursive: bool) -> Self {
        Rule { recursive: Some(recursive), ..self }
    }

    /// Adds a condition to an allow.
    #[must_use]
    pub(crate) fn when(self, when: Option<String>) -> Self {
        Rule { when, ..self }
    }

    #[must_use]
    pub(crate) fn decision(self, decision: Decision) -> Self {
        Rule { decision, ..self }
    }

    #[must_use]
    pub(crate) fn reason(self, reason: Option<String>) -> Self {
        Rule { reason, ..self }
    }

    /// Whether two rules differ only in their patterns. Lists with exceptions are not merged: later entries of a list win.
    fn is_like(&self, other: &Rule) -> bool {
        !self.entries.iter().chain(&other.entries).any(|entry| entry.pattern.starts_with('!'))
            && Rule { entries: Vec::new(), ..self.clone() } == Rule { entries: Vec::new(), ..other.clone() }
    }
}

/// A draft of a policy. The rules are in the order in which they are tried.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    rules: Vec<Rule>,
    roots: Vec<Entry>,
    readable: Vec<Entry>,
    /// The origin of the deny for everything outside the boundary, if there is one.
    closed: Option<String>,
    notes: Vec<ImportNote>,
}

impl Draft {
    pub(crate) fn push(&mut self, mut rule: Rule) {
        // No command, path or name is empty or has a NUL byte, so nothing is lost.
        let (usable, unusable): (Vec<Entry>, Vec<Entry>) = rule
            .entries
            .into_iter()
            .partition(|entry| !entry.pattern.contains('\0') && !entry.pattern.trim().is_empty());
        for entry in unusable {
            self.note(
                &entry.origin,
                Translation::WithoutEffect,
                "it is empty or has a NUL byte, so it matches nothing",
            );
        }
        rule.entries = usable;
        for entry in &mut rule.entries {
            match rule.key {
                Key::Tools => entry.pattern = tool_pattern(&entry.pattern),
                // This is a command of that name, not a set.
                Key::Commands if entry.pattern.starts_with('@') => entry.pattern.insert(0, '\\'),
                Key::Commands | Key::CommandPatterns | Key::Paths | Key::Hosts => {}
            }
        }
        if !rule.entries.is_empty() {
            self.rules.push(rule);
        }
    }

    /// Adds a rule about files before the first rule that allows files outside the project.
    pub(crate) fn push_before_file_allows(&mut self, rule: Rule) {
        let allows = |rule: &Rule| {
            rule.decision == Decision::Allow
                && rule.key != Key::Commands
                && !rule.entries.iter().all(|entry| entry.pattern.starts_with("./") || entry.pattern.starts_with('!'))
        };
        let place = self.rules.iter().position(allows).unwrap_or(self.rules.len());
        self.rules.insert(place, rule);
    }

    /// Denies everything outside the boundary.
    pub(crate) fn close(&mut self, origin: &str) {
        self.closed.get_or_insert_with(|| origin.to_owned());
    }

    /// Sorts by strictness, for agents whose denies apply in any order.
    pub(crate) fn strictest_first(&mut self) {
        self.rules.sort_by_key(|rule| std::cmp::Reverse(rule.decision));
    }

    /// Adds a directory that may be read and written.
    pub(crate) fn root(&mut self, directory: String, origin: &str) {
        self.roots.push(Entry { pattern: directory, origin: origin.to_owned() });
    }

    /// Adds a directory that may be read.
    pub(crate) fn readable(&mut self, directory: String, origin: &str) {
        self.readable.push(Entry { pattern: directory, origin: origin.to_owned() });
    }

    /// The paths outside the project and the added directories.
    pub(crate) fn outside(&self) -> Vec<String> {
        let opened = self.roots.iter().chain(&self.readable).map(|entry| format!("!{}/**", entry.pattern));
        ["/**".to_owned(), "!./**".to_owned()].into_iter().chain(opened).collect()
    }

    pub(crate) fn note(&mut self, origin: &str, outcome: Translation, why: impl Into<String>) {
        self.notes.push(ImportNote { origin: origin.to_owned(), outcome, why: why.into() });
    }

    /// Notes that a restriction became broader.
    pub(crate) fn broader(&mut self, origin: &str, why: impl Into<String>) {
        self.note(origin, Translation::Broader, why);
    }

    /// Notes that an allow has no translation.
    pub(crate) fn left_out(&mut self, origin: &str, why: impl Into<String>) {
        self.note(origin, Translation::LeftOut, why);
    }

    /// Notes that a rule needs no translation.
    pub(crate) fn covered(&mut self, origin: &str, why: impl Into<String>) {
        self.note(origin, Translation::Covered, why);
    }

    /// Adds a condition to all rules that allow commands.
    pub(crate) fn guard_commands(&mut self, when: &str) {
        for rule in self.rules.iter_mut().filter(|rule| rule.decision == Decision::Allow && rule.key == Key::Commands) {
            rule.when.get_or_insert_with(|| when.to_owned());
        }
    }

    pub(crate) fn into_notes(self) -> Vec<ImportNote> {
        self.notes
    }

    /// Writes the policy file.
    pub(crate) fn render(&self, importer: Importer, sources: &[SettingsFile]) -> String {
        let mut text = format!(
            "# Imported from {} by `callgate import {}`. Files that were read:\n",
            importer.title(),
            importer.name()
        );
        for source in sources {
            line(&mut text, format_args!("#   {}", one_line(&source.name)));
        }
        text.push_str(
            "#\n# Rules are tried from top to bottom for every effect of every simple command. What no rule here matches is judged by\n\
             # the bundled policy `standard`.\n\nversion: 1\nextends: standard\n",
        );
        self.render_boundary(&mut text);
        text.push_str("\nrules:\n");
        text.push_str(KEPT);
        let mut numbers = std::collections::HashMap::new();
        for rule in self.merged() {
            let base = format!("{}-{}-{}", importer.name(), rule.decision, rule.key.about());
            let number = numbers.entry(base.clone()).or_insert(0_usize);
            *number = number.saturating_add(1);
            let name = if *number == 1 { base } else { format!("{base}-{number}") };
            render_rule(&mut text, &name, &rule, importer);
        }
        if !self.notes.is_empty() {
            text.push_str("\n# Not translated exactly:\n");
            for note in &self.notes {
                line(
                    &mut text,
                    format_args!("#   {}: {}: {}", one_line(&note.origin), note.outcome.words(), one_line(&note.why)),
                );
            }
        }
        text
    }

    fn render_boundary(&self, text: &mut String) {
        if self.roots.is_empty() && self.readable.is_empty() && self.closed.is_none() {
            return;
        }
        text.push_str("\nboundary:\n");
        if let Some(origin) = &self.closed {
            line(text, format_args!("  outside: deny    # {}", one_line(origin)));
        }
        for (key, own, added) in
            [("roots", &[".", "@temporary", "@plans"][..], &self.roots), ("readable", &["@system"][..], &self.readable)]
        {
            if added.is_empty() {
                continue;
            }
            line(text, format_args!("  {key}:"));
            for pattern in own {
                line(text, format_args!("    - {}", quoted(pattern)));
            }
            for entry in added {
                line(text, format_args!("    - {}    # {}", quoted(&entry.pattern), one_line(&entry.origin)));
            }
        }
    }

    /// Merges rules that differ only in their patterns, within runs of the same decision.
    fn merged(&self) -> Vec<Rule> {
        let mut merged: Vec<Rule> = Vec::new();
        let mut run = 0_usize;
        for rule in &self.rules {
            if merged.last().is_some_and(|last| last.decision != rule.decision) {
                run = merged.len();
            }
            let like = merged.get_mut(run..).unwrap_or_default().iter_mut().find(|earlier| earlier.is_like(rule));
            match like {
                Some(earlier) => {
                    for entry in &rule.entries {
                        if !earlier.entries.iter().any(|known| known.pattern == entry.pattern) {
                            earlier.entries.push(entry.clone());
                        }
                    }
                }
                None => merged.push(rule.clone()),
            }
        }
        merged
    }
}

/// Escapes the name of a tool, in which only `*` is special.
fn tool_pattern(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for (index, character) in name.chars().enumerate() {
        if matches!(character, '?' | '[' | ']' | '\\' | '{' | '}' | ',') || index == 0 && matches!(character, '@' | '!')
        {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{arguments}");
}

fn render_rule(text: &mut String, name: &str, rule: &Rule, importer: Importer) {
    text.push('\n');
    line(text, format_args!("  - name: {name}"));
    let tools: Vec<&str> = rule.tools.split_whitespace().collect();
    let marks: &[&str] = if rule.except_own_files { &["\"!own_files\""] } else { &[] };
    for (key, words) in [("tools", tools.as_slice()), ("effects", rule.effects), ("marks", marks)] {
        if !words.is_empty() {
            line(text, format_args!("    {key}: [{}]", words.join(", ")));
        }
    }
    if let Some(recursive) = rule.recursive {
        line(text, format_args!("    recursive: {recursive}"));
    }
    line(text, format_args!("    {}:", rule.key.name()));
    let mut last = "";
    for entry in &rule.entries {
        if entry.origin == last {
            line(text, format_args!("      - {}", quoted(&entry.pattern)));
        } else {
            line(text, format_args!("      - {}    # {}", quoted(&entry.pattern), one_line(&entry.origin)));
        }
        last = &entry.origin;
    }
    if let Some(when) = &rule.when {
        line(text, format_args!("    when: {}", quoted(when)));
    }
    line(text, format_args!("    action: {}", rule.decision));
    let reason = match &rule.reason {
        Some(reason) => reason.clone(),
        None => match rule.decision {
            Decision::Deny => format!("denied in the settings of {}", importer.title()),
            Decision::Ask => format!("asked about in the settings of {}", importer.title()),
            Decision::Allow | Decision::Contain => format!("allowed in the settings of {}", importer.title()),
        },
    };
    line(text, format_args!("    reason: {}", quoted(&reason)));
}

/// Quotes a text for YAML, which understands all escapes of JSON.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.chars().fold(String::with_capacity(json.len()), |mut quoted, character| {
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}') {
            let _ = write!(quoted, "\\u{:04x}", u32::from(character));
        } else {
            quoted.push(character);
        }
        quoted
    })
}

/// Makes a text fit for a comment: one line without hidden characters.
fn one_line(text: &str) -> String {
    show::brief(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_leave_their_quotes_or_comments() {
        assert_eq!(quoted("a\"\n\\\u{7}"), "\"a\\\"\\n\\\\\\u0007\"");
        assert!(!one_line("a\nrules: []\r\u{2028}x").contains(['\n', '\r', '\u{2028}']));
        assert!(one_line(&"x".repeat(10_000)).chars().count() < 400);
    }

    #[test]
    fn rules_that_differ_in_a_list_only_become_one_but_never_across_another_decision() {
        let mut draft = Draft::default();
        for (decision, pattern) in [
            (Decision::Allow, "a"),
            (Decision::Allow, "b"),
            (Decision::Deny, "c"),
            (Decision::Allow, "d"),
            (Decision::Allow, "a"),
        ] {
            draft.push(Rule::new(decision, Key::Commands, [pattern], "x"));
        }
        let lists: Vec<Vec<String>> = draft
            .merged()
            .into_iter()
            .map(|rule| rule.entries.into_iter().map(|entry| entry.pattern).collect())
            .collect();
        assert_eq!(lists, [vec!["a", "b"], vec!["c"], vec!["d", "a"]]);
    }
}
