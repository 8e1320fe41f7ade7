//! A policy in the making: rules with their origins, and the text they become.

use std::fmt::Write as _;

use callgate::policy::Decision;
use callgate::show;
use serde::Serialize;

use super::{Importer, Source};

/// callgate's own denies, put in front of everything that is imported.
const KEPT: &str = include_str!("kept.yaml");

/// What became of a rule that could not be translated exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The new rule denies or asks about more.
    Broader,
    /// The new rule allows less.
    Narrower,
    /// There is no new rule; what it allowed is asked about.
    LeftOut,
    /// There is no new rule, because the bundled policy says the same already.
    Covered,
    /// The agent itself never matches it, or it is no rule.
    WithoutEffect,
}

impl Outcome {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Broader => "made broader",
            Outcome::Narrower => "made narrower",
            Outcome::LeftOut => "left out",
            Outcome::Covered => "not needed",
            Outcome::WithoutEffect => "has no effect",
        }
    }
}

/// Something that was not translated exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The file and the rule's text.
    pub origin: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Why.
    pub why: String,
}

/// The condition that differs between otherwise equal rules, so that they become one rule with a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
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

    /// What a rule with this key is about, for its name.
    fn about(self) -> &'static str {
        match self {
            Key::Tools => "tools",
            Key::Commands => "commands",
            Key::CommandPatterns => "text",
            Key::Paths => "paths",
            Key::Hosts => "hosts",
        }
    }
}

/// One entry of a list with where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pattern: String,
    origin: String,
}

/// A rule in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub decision: Decision,
    key: Key,
    entries: Vec<Entry>,
    tools: &'static [&'static str],
    effects: &'static [&'static str],
    marks: &'static [&'static str],
    recursive: Option<bool>,
    when: Option<String>,
    reason: Option<String>,
}

impl Rule {
    /// A rule with a list of patterns that all come from the same place.
    pub(super) fn new(
        decision: Decision,
        key: Key,
        patterns: impl IntoIterator<Item = impl Into<String>>,
        origin: &str,
    ) -> Self {
        let entries =
            patterns.into_iter().map(|pattern| Entry { pattern: pattern.into(), origin: origin.to_owned() }).collect();
        Rule { decision, key, entries, tools: &[], effects: &[], marks: &[], recursive: None, when: None, reason: None }
    }

    #[must_use]
    pub(super) fn effects(mut self, effects: &'static [&'static str]) -> Self {
        self.effects = effects;
        self
    }

    #[must_use]
    pub(super) fn tools(mut self, tools: &'static [&'static str]) -> Self {
        self.tools = tools;
        self
    }

    #[must_use]
    pub(super) fn marks(mut self, marks: &'static [&'static str]) -> Self {
        self.marks = marks;
        self
    }

    #[must_use]
    pub(super) fn recursive(mut self, recursive: bool) -> Self {
        self.recursive = Some(recursive);
        self
    }

    /// An allow that holds only if this does, too.
    #[must_use]
    pub(super) fn when(mut self, when: Option<String>) -> Self {
        self.when = when;
        self
    }

    #[must_use]
    pub(super) fn decision(mut self, decision: Decision) -> Self {
        self.decision = decision;
        self
    }

    #[must_use]
    pub(super) fn reason(mut self, reason: Option<String>) -> Self {
        self.reason = reason;
        self
    }

    /// Whether two rules differ in their lists only. Lists with exceptions stay apart: later entries of a list win.
    fn is_like(&self, other: &Rule) -> bool {
        !self.entries.iter().chain(&other.entries).any(|entry| entry.pattern.starts_with('!'))
            && Rule { entries: Vec::new(), ..self.clone() } == Rule { entries: Vec::new(), ..other.clone() }
    }
}

/// A policy in the making. Rules stand in the order in which they are tried.
#[derive(Debug, Default)]
pub(super) struct Draft {
    rules: Vec<Rule>,
    roots: Vec<Entry>,
    readable: Vec<Entry>,
    /// Why everything outside of the boundary is denied, if it is.
    closed: Option<String>,
    notes: Vec<Note>,
}

impl Draft {
    pub(super) fn push(&mut self, mut rule: Rule) {
        // No command, path or name has a NUL byte or is empty, so nothing is lost.
        let (usable, unusable): (Vec<Entry>, Vec<Entry>) = rule
            .entries
            .into_iter()
            .partition(|entry| !entry.pattern.contains('\0') && !entry.pattern.trim().is_empty());
        for entry in unusable {
            self.note(&entry.origin, Outcome::WithoutEffect, "it is empty or has a NUL byte; nothing is called so");
        }
        rule.entries = usable;
        for entry in &mut rule.entries {
            match rule.key {
                Key::Tools => entry.pattern = tool_pattern(&entry.pattern),
                // A command of that name, no set.
                Key::Commands if entry.pattern.starts_with('@') => entry.pattern.insert(0, '\\'),
                Key::Commands | Key::CommandPatterns | Key::Paths | Key::Hosts => {}
            }
        }
        if !rule.entries.is_empty() {
            self.rules.push(rule);
        }
    }

    /// Adds a rule about files in front of the first that would allow some outside of the project.
    pub(super) fn push_before_file_allows(&mut self, rule: Rule) {
        let allows = |rule: &Rule| {
            rule.decision == Decision::Allow
                && rule.key != Key::Commands
                && !rule.entries.iter().all(|entry| entry.pattern.starts_with("./") || entry.pattern.starts_with('!'))
        };
        let place = self.rules.iter().position(allows).unwrap_or(self.rules.len());
        self.rules.insert(place, rule);
    }

    /// Denies what lies outside of the boundary.
    pub(super) fn close(&mut self, origin: &str) {
        self.closed.get_or_insert_with(|| origin.to_owned());
    }

    /// Sorts by strictness: for agents whose denies hold whatever the order.
    pub(super) fn strictest_first(&mut self) {
        self.rules.sort_by_key(|rule| std::cmp::Reverse(rule.decision));
    }

    /// A directory that may be read and written.
    pub(super) fn root(&mut self, directory: String, origin: &str) {
        self.roots.push(Entry { pattern: directory, origin: origin.to_owned() });
    }

    /// A directory that may be read.
    pub(super) fn readable(&mut self, directory: String, origin: &str) {
        self.readable.push(Entry { pattern: directory, origin: origin.to_owned() });
    }

    /// Everything but the project and the directories that were opened.
    pub(super) fn outside(&self) -> Vec<String> {
        let opened = self.roots.iter().chain(&self.readable).map(|entry| format!("!{}/**", entry.pattern));
        ["/**".to_owned(), "!./**".to_owned()].into_iter().chain(opened).collect()
    }

    pub(super) fn note(&mut self, origin: &str, outcome: Outcome, why: impl Into<String>) {
        self.notes.push(Note { origin: origin.to_owned(), outcome, why: why.into() });
    }

    /// Adds a condition to everything that allows commands.
    pub(super) fn guard_commands(&mut self, when: &str) {
        for rule in self.rules.iter_mut().filter(|rule| rule.decision == Decision::Allow && rule.key == Key::Commands) {
            rule.when.get_or_insert_with(|| when.to_owned());
        }
    }

    /// The rules and notes, for taking over into another draft.
    pub(super) fn into_parts(self) -> (Vec<Rule>, Vec<Note>) {
        (self.rules, self.notes)
    }

    pub(super) fn into_notes(self) -> Vec<Note> {
        self.notes
    }

    /// The text of the policy file.
    pub(super) fn render(&self, importer: Importer, sources: &[Source]) -> String {
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
            let base = format!("{}-{}-{}", importer.name(), word(rule.decision), rule.key.about());
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

    /// Rules that differ in their lists only, within a run of the same decision, as one.
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

/// The name of a tool in which only `*` is special.
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
    // writing to a text cannot fail
    let _ = writeln!(text, "{arguments}");
}

fn render_rule(text: &mut String, name: &str, rule: &Rule, importer: Importer) {
    text.push('\n');
    line(text, format_args!("  - name: {name}"));
    for (key, words) in [("tools", rule.tools), ("effects", rule.effects), ("marks", rule.marks)] {
        if !words.is_empty() {
            let words: Vec<String> = words.iter().map(|word| flow(word)).collect();
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
    line(text, format_args!("    action: {}", word(rule.decision)));
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

/// The decision as policy files write it.
pub(super) fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Contain => "contain",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

/// A text in double quotes, as YAML reads them: JSON's escapes are a part of YAML's.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().saturating_add(2));
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            character if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A word of a flow list, quoted where it must be.
fn flow(word: &str) -> String {
    if word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')) {
        word.to_owned()
    } else {
        quoted(word)
    }
}

/// A text that stays on the line of its comment, with nothing hidden in it.
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
