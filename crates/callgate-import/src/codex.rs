//! Codex: `prefix_rule` in `*.rules`, of which the strictest match counts, and the sandbox of `config.toml`.

use std::path::Path;

use callgate::policy::Decision;

use super::command::TextPattern;
use super::draft::{Draft, Key, Outcome, Rule};
use super::probe::{self, Probe, ToolNames};
use super::proof::{Model, Standing};
use super::source::Node;
use super::starlark::{self, Statement, Value};
use super::{Around, ImportError, Reading, Source, shell};

const TOOLS: ToolNames = ToolNames {
    shell: ("Bash", "command"),
    read: None,
    write: Some(("apply_patch", "command")),
    edit: Some(("apply_patch", "command")),
    search: None,
    list: None,
    fetch: None,
    web_search: None,
};

/// A pattern with alternatives stands for at most this many commands when its text is searched for.
const MAXIMUM_ALTERNATIVES: usize = 64;

/// A `prefix_rule`.
#[derive(Debug, Clone)]
struct PrefixRule {
    /// Each word with its alternatives.
    pattern: Vec<Vec<String>>,
    decision: Decision,
    justification: Option<String>,
    /// What its own examples run.
    examples: Vec<String>,
    origin: String,
}

/// What the sandbox does, from the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    None,
}

#[derive(Debug, Default)]
struct Settings {
    sandbox: Option<(Sandbox, String)>,
    /// Nobody is asked: what the sandbox refuses stays refused.
    never_asks: bool,
    /// Commands run in the sandbox without a question.
    quiet: bool,
    network: bool,
}

pub(super) fn read(sources: &[Source], around: &Around) -> Result<Reading, ImportError> {
    let mut draft = Draft::default();
    let mut rules = Vec::new();
    let mut settings = Settings::default();
    let mut count = 0_usize;
    for source in sources {
        if source.path.extension().is_some_and(|extension| extension == "toml") {
            count = count.saturating_add(read_settings(source, &mut settings, &mut draft)?);
        } else {
            read_rules(source, &mut rules, &mut draft)?;
        }
    }
    count = count.saturating_add(rules.len());
    for rule in &rules {
        translate(&mut draft, rule);
    }
    draft.strictest_first();
    sandbox_rules(&mut draft, &settings);
    let probes = rules.iter().flat_map(probes).collect();
    let model = CodexModel { rules, settings, around: around.clone() };
    Ok(Reading { draft, rules: count, model: Box::new(model), probes, tools: &TOOLS })
}

fn read_rules(source: &Source, rules: &mut Vec<PrefixRule>, draft: &mut Draft) -> Result<(), ImportError> {
    if source.text.len() > super::MAXIMUM_SIZE {
        return Err(source.unusable(format!("it is larger than {} bytes", super::MAXIMUM_SIZE)));
    }
    for statement in starlark::read(&source.text).map_err(|why| source.unusable(why))? {
        match statement {
            Statement::Call { name, arguments, text } if name == "prefix_rule" => {
                let origin = source.origin(&text);
                rules.push(prefix_rule(&arguments, origin).map_err(|why| source.unusable(format!("{why}: {text}")))?);
            }
            Statement::Call { name, text, .. } if name == "host_executable" => {
                let why = "callgate lets a bare name stand for the system's program when it allows, and for any program of that name when it denies";
                draft.note(&source.origin(&text), Outcome::Covered, why);
            }
            Statement::Call { name, arguments, text } if name == "network_rule" => {
                network_rule(&arguments, &source.origin(&text), draft);
            }
            Statement::Call { text, .. } | Statement::Unknown { text } => {
                let why =
                    "only prefix_rule, network_rule and host_executable are read; look whether it forbids something";
                draft.note(&source.origin(&text), Outcome::LeftOut, why);
            }
        }
    }
    Ok(())
}

fn prefix_rule(arguments: &[(String, Value)], origin: String) -> Result<PrefixRule, &'static str> {
    let argument = |name: &str| arguments.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    if arguments
        .iter()
        .any(|(key, _)| !matches!(key.as_str(), "pattern" | "decision" | "justification" | "match" | "not_match"))
    {
        return Err("an argument is not known");
    }
    let Some(Value::List(words)) = argument("pattern") else { return Err("`pattern` is no list") };
    let pattern: Option<Vec<Vec<String>>> = words
        .iter()
        .map(|word| match word {
            Value::Text(text) => Some(vec![text.clone()]),
            Value::List(_) => word.texts().filter(|alternatives| !alternatives.is_empty()),
        })
        .collect();
    let pattern = pattern.filter(|pattern| !pattern.is_empty()).ok_or("`pattern` has something that is no word")?;
    let decision = match argument("decision").map(Value::text) {
        None | Some(Some("allow")) => Decision::Allow,
        Some(Some("prompt")) => Decision::Ask,
        Some(Some("forbidden")) => Decision::Deny,
        Some(_) => return Err("`decision` is none of allow, prompt, forbidden"),
    };
    let mut examples = Vec::new();
    for key in ["match", "not_match"] {
        if let Some(Value::List(items)) = argument(key) {
            examples.extend(items.iter().filter_map(|item| match item {
                Value::Text(text) => Some(text.clone()),
                Value::List(_) => Some(item.texts()?.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
            }));
        }
    }
    let justification = argument("justification").and_then(Value::text).map(str::to_owned);
    Ok(PrefixRule { pattern, decision, justification, examples, origin })
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn network_rule(arguments: &[(String, Value)], origin: &str, draft: &mut Draft) {
    let text = |name: &str| arguments.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.text());
    let denies = matches!(text("decision"), Some("deny" | "forbidden"));
    let host = text("host").filter(|host| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
    });
    match (host, denies, text("decision")) {
        (Some(host), true, _) => {
            let hosts = [host.to_owned(), format!("*.{host}")];
            draft.push(Rule::new(Decision::Deny, Key::Hosts, hosts, origin).effects(&["connect", "send"]));
        }
        (None, _, Some("allow")) | (Some(_), _, Some("allow")) => {
            draft.note(origin, Outcome::LeftOut, "connections are asked about, program by program");
        }
        _ => {
            draft.note(origin, Outcome::Broader, "the host cannot be told; every connection is asked about");
            draft.push(Rule::new(Decision::Ask, Key::Tools, ["*"], origin).effects(&["connect", "send"]));
        }
    }
}

fn translate(draft: &mut Draft, rule: &PrefixRule) {
    let command = format!("{} **", starlark::word_pattern(&rule.pattern));
    if rule.decision == Decision::Allow {
        // Programs that only start others are judged by what they start.
        let peeled = |word: &String| {
            TextPattern::prefix(word).permitting().is_err() && !word.contains(|c: char| !c.is_ascii_alphanumeric())
        };
        if rule.pattern.first().is_some_and(|first| first.iter().any(peeled)) {
            draft.note(
                &rule.origin,
                Outcome::LeftOut,
                "it names a program that only starts others; callgate judges what is started",
            );
            return;
        }
        draft.push(
            Rule::new(Decision::Allow, Key::Commands, [command], &rule.origin).reason(rule.justification.clone()),
        );
        return;
    }
    let texts: Vec<String> = alternatives(&rule.pattern)
        .iter()
        .flat_map(|words| TextPattern::prefix(&words.join(" ")).restricting().patterns)
        .collect();
    draft.push(Rule::new(rule.decision, Key::Commands, [command], &rule.origin).reason(rule.justification.clone()));
    draft.push(Rule::new(rule.decision, Key::CommandPatterns, texts, &rule.origin).reason(rule.justification.clone()));
}

/// All commands that a pattern stands for, up to a limit.
fn alternatives(pattern: &[Vec<String>]) -> Vec<Vec<String>> {
    pattern.iter().fold(vec![Vec::new()], |fronts, words| {
        fronts
            .iter()
            .flat_map(|front| words.iter().map(move |word| [front.as_slice(), std::slice::from_ref(word)].concat()))
            .take(MAXIMUM_ALTERNATIVES)
            .collect()
    })
}

/// Reads `config.toml`; says how many of its settings count.
fn read_settings(source: &Source, settings: &mut Settings, draft: &mut Draft) -> Result<usize, ImportError> {
    let node = source.toml()?;
    let mut count = 0_usize;
    let mut counted = || count = count.saturating_add(1);
    if let Some(mode) = node.get("sandbox_mode") {
        let sandbox = match mode.text() {
            Some("read-only") => Sandbox::ReadOnly,
            Some("workspace-write") => Sandbox::WorkspaceWrite,
            Some("danger-full-access") => Sandbox::None,
            _ => {
                return Err(source.unusable("`sandbox_mode` is none of read-only, workspace-write, danger-full-access"));
            }
        };
        let origin = source.origin(&format!("sandbox_mode {}", mode.text().unwrap_or_default()));
        counted();
        // Of several files the strictest counts.
        if settings.sandbox.as_ref().is_none_or(|(known, _)| sandbox < *known) {
            settings.sandbox = Some((sandbox, origin));
        }
    }
    match node.get("approval_policy") {
        None => {}
        Some(policy) => {
            counted();
            let origin = source.origin(&format!("approval_policy {}", policy.text().unwrap_or("{…}")));
            match policy.text() {
                Some("never") => settings.never_asks = true,
                Some("on-request" | "on-failure") => {
                    settings.quiet = true;
                    draft.note(
                        &origin,
                        Outcome::Narrower,
                        "what runs in Codex's sandbox without a question is judged by its effects here",
                    );
                }
                Some("untrusted") => draft.note(&origin, Outcome::Covered, "standard asks about what it does not know"),
                _ => draft.note(
                    &origin,
                    Outcome::LeftOut,
                    "a policy that is not known here; standard asks about what it does not know",
                ),
            }
        }
    }
    if let Some(workspace) = node.get("sandbox_workspace_write") {
        settings.network |= workspace.get("network_access").and_then(Node::flag).unwrap_or(false);
        for root in workspace.get("writable_roots").map(Node::items).unwrap_or_default() {
            if let Some(root) = root.text().filter(|root| Path::new(root).is_absolute() || root.starts_with("~/")) {
                counted();
                draft.root(root.to_owned(), &source.origin(&format!("writable_roots {root}")));
            }
        }
    }
    if let Some(profile) = node.get("profile").and_then(Node::text) {
        draft.note(
            &source.origin(&format!("profile {profile}")),
            Outcome::LeftOut,
            "settings of profiles are not read",
        );
    }
    Ok(count)
}

/// What the sandbox would stop. Commands that a rule allows run outside of it, so these come last.
fn sandbox_rules(draft: &mut Draft, settings: &Settings) {
    let Some((sandbox, origin)) = &settings.sandbox else { return };
    let decision = if settings.never_asks { Decision::Deny } else { Decision::Ask };
    match sandbox {
        Sandbox::None => {
            draft.note(
                origin,
                Outcome::LeftOut,
                "nothing is waved through here; what standard does not know is asked about",
            );
            return;
        }
        Sandbox::ReadOnly => {
            draft.push(
                Rule::new(decision, Key::Tools, ["*"], origin).effects(&["write", "delete"]).marks(&["!own_files"]),
            );
        }
        Sandbox::WorkspaceWrite if settings.never_asks => draft.close(origin),
        Sandbox::WorkspaceWrite => {}
    }
    if !settings.network {
        draft.push(Rule::new(decision, Key::Tools, ["*"], origin).effects(&["connect", "send"]));
    }
}

fn probes(rule: &PrefixRule) -> Vec<Probe> {
    let mut commands: Vec<String> = rule.examples.clone();
    for words in alternatives(&rule.pattern).iter().take(4) {
        let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        commands.push(quoted.join(" "));
        commands.push(format!("{} --extra x", quoted.join(" ")));
        commands.push(format!("{}x", quoted.join(" ")));
        commands.extend(quoted.split_last().map(|(_, front)| front.join(" ")).filter(|front| !front.is_empty()));
    }
    commands.iter().flat_map(|command| probe::around_command(command)).map(Probe::Shell).collect()
}

/// How Codex decides.
#[derive(Debug)]
struct CodexModel {
    rules: Vec<PrefixRule>,
    settings: Settings,
    around: Around,
}

impl PrefixRule {
    fn matches(&self, words: &[String]) -> bool {
        words.len() >= self.pattern.len()
            && self.pattern.iter().zip(words).all(|(alternatives, word)| alternatives.contains(word))
    }
}

impl CodexModel {
    /// The strictest rule that matches the words of a simple command.
    fn by_rules(&self, words: &[String]) -> Option<Decision> {
        self.rules.iter().filter(|rule| rule.matches(words)).map(|rule| rule.decision).max()
    }

    fn sandboxed(&self, writes: bool, inside: bool) -> Standing {
        let refused = if self.settings.never_asks { Standing::Denied } else { Standing::Asked };
        match self.settings.sandbox.as_ref().map(|(sandbox, _)| *sandbox) {
            None => Standing::Asked,
            Some(Sandbox::None) => Standing::Allowed,
            Some(Sandbox::ReadOnly) if writes => refused,
            Some(Sandbox::WorkspaceWrite) if writes && !inside => refused,
            Some(_) if self.settings.never_asks || self.settings.quiet => Standing::Allowed,
            Some(_) => Standing::Asked,
        }
    }
}

impl Model for CodexModel {
    fn decide(&self, probe: &Probe) -> Standing {
        match probe {
            Probe::Shell(line) => {
                let mut open = vec![line.clone()];
                let mut decisions = Vec::new();
                // `bash -c` is looked into, a few levels deep
                for _ in 0..4 {
                    let segments: Vec<String> = open.iter().flat_map(|line| shell::segments(line)).collect();
                    open = segments.iter().filter_map(|segment| shell::shell_script(segment)).collect();
                    decisions.extend(segments.iter().map(|segment| self.by_rules(&shell::words(segment))));
                }
                match decisions.iter().flatten().max() {
                    Some(Decision::Deny) => Standing::Denied,
                    Some(Decision::Ask) => Standing::AskedByRule,
                    Some(_) if decisions.iter().all(Option::is_some) => Standing::Allowed,
                    _ => self
                        .sandboxed(line.contains('>') || line.starts_with("rm ") || line.starts_with("touch "), true),
                }
            }
            Probe::Write(path) | Probe::Edit(path) => {
                self.sandboxed(true, Path::new(path).starts_with(&self.around.project))
            }
            _ => Standing::Asked,
        }
    }
}

/// The decision of the rules in a text alone, as `codex execpolicy check` gives it.
#[cfg(test)]
pub(super) fn decision_by_rules(text: &str, words: &[String]) -> Option<Decision> {
    let around = Around { home: "/home/ada".into(), project: "/home/ada/project".into() };
    let source = Source::new("x.rules", super::Layer::User, text, &around);
    let mut rules = Vec::new();
    read_rules(&source, &mut rules, &mut Draft::default()).unwrap();
    rules.iter().filter(|rule| rule.matches(words)).map(|rule| rule.decision).max()
}
