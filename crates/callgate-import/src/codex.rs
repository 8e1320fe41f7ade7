//! Codex CLI: `prefix_rule` in `*.rules`, where the strictest match decides, and the sandbox of `config.toml`.

use std::path::Path;

use callgate::policy::Decision;
use callgate_install::{HostEnvironment, SettingsNode};
use callgate_model::quote::{shell_word, shell_words};

use crate::command::{STARTS_OTHERS, TextPattern};
use crate::draft::{Draft, Key, Rule, Translation};
use crate::error::ImportError;
use crate::families;
use crate::probe::{self, Probe, ToolNames};
use crate::proof::{AgentDecision, Model, Reading, RuleExamples};
use crate::settings_file::SettingsFile;
use crate::shell;
use crate::starlark::{self, Statement};
use crate::translate::{NOTHING_WHOLESALE, is_host, restrict_host};

const TOOLS: ToolNames = ToolNames("shell=Bash.command write=apply_patch.command edit=apply_patch.command");

/// The most commands that a pattern with alternatives is expanded to.
const MAXIMUM_ALTERNATIVES: usize = 64;

/// A `prefix_rule`.
#[derive(Debug, Clone)]
struct PrefixRule {
    /// The words, each with its alternatives.
    pattern: Vec<Vec<String>>,
    decision: Decision,
    justification: Option<String>,
    /// The commands of its own examples.
    examples: Vec<String>,
    origin: String,
}

/// The sandbox, from the strictest to the loosest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    None,
}

#[derive(Debug, Default)]
struct Settings {
    sandbox: Option<(Sandbox, String)>,
    /// Codex never asks: what the sandbox refuses stays refused.
    never_asks: bool,
    /// Commands run in the sandbox without a question.
    quiet: bool,
    network: bool,
}

pub(crate) fn read(files: &[SettingsFile], environment: &HostEnvironment) -> Result<Reading, ImportError> {
    let mut draft = Draft::default();
    let mut rules = Vec::new();
    let mut settings = Settings::default();
    let mut count = 0_usize;
    for file in files {
        if file.has_extension("toml") {
            count = count.saturating_add(read_settings(file, &mut settings, &mut draft)?);
        } else {
            read_rules(file, &mut rules, &mut draft)?;
        }
    }
    count = count.saturating_add(rules.len());
    for rule in &rules {
        translate(&mut draft, rule);
    }
    draft.strictest_first();
    sandbox_rules(&mut draft, &settings);
    let examples = rules.iter().map(|rule| RuleExamples::new(&rule.origin, rule.decision, probes(rule))).collect();
    let model = CodexModel { rules, settings, environment: environment.clone() };
    Ok(Reading { draft, rules: count, model: Box::new(model), examples, tools: &TOOLS })
}

fn read_rules(file: &SettingsFile, rules: &mut Vec<PrefixRule>, draft: &mut Draft) -> Result<(), ImportError> {
    file.check_size()?;
    for statement in starlark::read(&file.text).map_err(|why| file.unusable(why))? {
        match statement {
            Statement::Call { name, arguments, text } if name == "prefix_rule" => {
                let origin = file.origin(&text);
                rules.push(prefix_rule(&arguments, origin).map_err(|why| file.unusable(format!("{why}: {text}")))?);
            }
            Statement::Call { name, text, .. } if name == "host_executable" => {
                let why = "in callgate a bare name means the system's program in an allow, and any program of that name in a deny";
                draft.covered(&file.origin(&text), why);
            }
            Statement::Call { name, arguments, text } if name == "network_rule" => {
                network_rule(&arguments, &file.origin(&text), draft);
            }
            Statement::Call { text, .. } | Statement::Unknown { text } => {
                let why = "callgate reads only prefix_rule, network_rule and host_executable; check whether this forbids something";
                draft.left_out(&file.origin(&text), why);
            }
        }
    }
    Ok(())
}

/// The words of an entry: one, or alternatives.
fn words(item: &SettingsNode) -> Option<Vec<&str>> {
    item.texts().filter(|words| !words.is_empty())
}

fn prefix_rule(arguments: &SettingsNode, origin: String) -> Result<PrefixRule, &'static str> {
    let known = "pattern decision justification match not_match";
    if arguments.entries().iter().any(|(key, _)| !families::contains(known, key)) {
        return Err("it has an unknown argument");
    }
    let list = |key: &str| match arguments.get(key) {
        Some(SettingsNode::List(items)) => Some(items.as_slice()),
        _ => None,
    };
    let pattern: Option<Vec<Vec<String>>> = list("pattern")
        .ok_or("`pattern` is not a list")?
        .iter()
        .map(|item| Some(words(item)?.into_iter().map(str::to_owned).collect()))
        .collect();
    let pattern = pattern.filter(|pattern| !pattern.is_empty());
    let pattern = pattern.ok_or("`pattern` is empty or has an entry that is not a word")?;
    let decision = match arguments.get("decision").map(SettingsNode::text) {
        None | Some(Some("allow")) => Decision::Allow,
        Some(Some("prompt")) => Decision::Ask,
        Some(Some("forbidden")) => Decision::Deny,
        Some(_) => return Err("`decision` is not one of allow, prompt, forbidden"),
    };
    let examples = ["match", "not_match"].into_iter().filter_map(list).flatten().filter_map(|item| match item.text() {
        Some(text) => Some(text.to_owned()),
        None => Some(shell_words(words(item)?)),
    });
    let justification = arguments.get("justification").and_then(SettingsNode::text).map(str::to_owned);
    Ok(PrefixRule { pattern, decision, justification, examples: examples.collect(), origin })
}

fn network_rule(arguments: &SettingsNode, origin: &str, draft: &mut Draft) {
    let text = |name: &str| arguments.get(name).and_then(SettingsNode::text);
    let denies = matches!(text("decision"), Some("deny" | "forbidden"));
    match (text("host").filter(|host| is_host(host)), text("decision")) {
        (Some(host), _) if denies => draft.push(restrict_host(Decision::Deny, host, origin)),
        (_, Some("allow")) => draft.left_out(origin, "callgate asks about connections, program by program"),
        _ => {
            draft.broader(origin, "callgate cannot read the host; it asks about every connection");
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
            draft.left_out(&rule.origin, STARTS_OTHERS);
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

/// The commands that a pattern stands for, up to a limit.
fn alternatives(pattern: &[Vec<String>]) -> Vec<Vec<String>> {
    pattern.iter().fold(vec![Vec::new()], |fronts, words| {
        fronts
            .iter()
            .flat_map(|front| words.iter().map(move |word| [front.as_slice(), std::slice::from_ref(word)].concat()))
            .take(MAXIMUM_ALTERNATIVES)
            .collect()
    })
}

/// Reads `config.toml`. Returns the number of its settings that count.
fn read_settings(file: &SettingsFile, settings: &mut Settings, draft: &mut Draft) -> Result<usize, ImportError> {
    let node = file.toml()?;
    let mut count = 0_usize;
    let mut counted = || count = count.saturating_add(1);
    if let Some(mode) = node.get("sandbox_mode") {
        let sandbox = match mode.text() {
            Some("read-only") => Sandbox::ReadOnly,
            Some("workspace-write") => Sandbox::WorkspaceWrite,
            Some("danger-full-access") => Sandbox::None,
            _ => {
                return Err(
                    file.unusable("`sandbox_mode` is not one of read-only, workspace-write, danger-full-access")
                );
            }
        };
        let origin = file.origin(&format!("sandbox_mode {}", mode.text().unwrap_or_default()));
        counted();
        // The strictest of several files counts.
        if settings.sandbox.as_ref().is_none_or(|(known, _)| sandbox < *known) {
            settings.sandbox = Some((sandbox, origin));
        }
    }
    match node.get("approval_policy") {
        None => {}
        Some(policy) => {
            counted();
            let origin = file.origin(&format!("approval_policy {}", policy.text().unwrap_or("{…}")));
            match policy.text() {
                Some("never") => settings.never_asks = true,
                Some("on-request" | "on-failure") => {
                    settings.quiet = true;
                    let why = "callgate judges commands by their effects, also those in Codex's sandbox";
                    draft.note(&origin, Translation::Narrower, why);
                }
                Some("untrusted") => draft.covered(&origin, "standard asks about anything it does not know"),
                _ => draft.left_out(&origin, "the policy is unknown; standard asks about anything it does not know"),
            }
        }
    }
    if let Some(workspace) = node.get("sandbox_workspace_write") {
        settings.network |= workspace.get("network_access").and_then(SettingsNode::flag).unwrap_or(false);
        for root in workspace.get("writable_roots").map(SettingsNode::items).unwrap_or_default() {
            if let Some(root) = root.text().filter(|root| Path::new(root).is_absolute() || root.starts_with("~/")) {
                counted();
                draft.root(root.to_owned(), &file.origin(&format!("writable_roots {root}")));
            }
        }
    }
    if let Some(profile) = node.get("profile").and_then(SettingsNode::text) {
        draft.left_out(&file.origin(&format!("profile {profile}")), "callgate does not read the settings of profiles");
    }
    Ok(count)
}

/// Adds rules for what the sandbox would stop. They come last, because commands that a rule allows run outside the sandbox.
fn sandbox_rules(draft: &mut Draft, settings: &Settings) {
    let Some((sandbox, origin)) = &settings.sandbox else { return };
    let decision = if settings.never_asks { Decision::Deny } else { Decision::Ask };
    match sandbox {
        Sandbox::None => {
            draft.left_out(origin, NOTHING_WHOLESALE);
            return;
        }
        Sandbox::ReadOnly => {
            draft.push(Rule::new(decision, Key::Tools, ["*"], origin).effects(&["write", "delete"]).except_own_files());
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
        let quoted: Vec<String> = words.iter().map(|word| shell_word(word).into_owned()).collect();
        commands.push(quoted.join(" "));
        commands.push(format!("{} --extra x", quoted.join(" ")));
        commands.push(format!("{}x", quoted.join(" ")));
        commands.extend(quoted.split_last().map(|(_, front)| front.join(" ")).filter(|front| !front.is_empty()));
    }
    commands.iter().flat_map(|command| probe::around_command(command)).map(Probe::Shell).collect()
}

/// A model of how Codex decides.
#[derive(Debug)]
struct CodexModel {
    rules: Vec<PrefixRule>,
    settings: Settings,
    environment: HostEnvironment,
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

    fn sandboxed(&self, writes: bool, inside: bool) -> AgentDecision {
        let refused = if self.settings.never_asks { AgentDecision::Denied } else { AgentDecision::Asked };
        match self.settings.sandbox.as_ref().map(|(sandbox, _)| *sandbox) {
            None => AgentDecision::Asked,
            Some(Sandbox::None) => AgentDecision::Allowed,
            Some(Sandbox::ReadOnly) if writes => refused,
            Some(Sandbox::WorkspaceWrite) if writes && !inside => refused,
            Some(_) if self.settings.never_asks || self.settings.quiet => AgentDecision::Allowed,
            Some(_) => AgentDecision::Asked,
        }
    }
}

impl Model for CodexModel {
    fn decide(&self, probe: &Probe) -> AgentDecision {
        match probe {
            Probe::Shell(line) => {
                let mut open = vec![line.clone()];
                let mut decisions = Vec::new();
                // Codex looks into `bash -c`, a few levels deep.
                for _ in 0..4 {
                    let segments: Vec<String> = open.iter().flat_map(|line| shell::segments(line)).collect();
                    open = segments.iter().filter_map(|segment| shell::shell_script(segment)).collect();
                    decisions.extend(segments.iter().map(|segment| self.by_rules(&shell::words(segment))));
                }
                match AgentDecision::by_rule(decisions.iter().flatten().max().copied()) {
                    Some(decision) if decision > AgentDecision::Allowed || decisions.iter().all(Option::is_some) => {
                        decision
                    }
                    _ => self
                        .sandboxed(line.contains('>') || line.starts_with("rm ") || line.starts_with("touch "), true),
                }
            }
            Probe::Write(path) | Probe::Edit(path) => {
                self.sandboxed(true, Path::new(path).starts_with(&self.environment.project))
            }
            _ => AgentDecision::Asked,
        }
    }
}

/// The decision of the rules in a text alone, like `codex execpolicy check`.
#[cfg(test)]
pub(crate) fn decision_by_rules(text: &str, words: &[String]) -> Option<Decision> {
    let environment = HostEnvironment::of_home("/home/ada".as_ref());
    let file = SettingsFile::new("x.rules", crate::SettingsLayer::User, text, &environment);
    let mut rules = Vec::new();
    read_rules(&file, &mut rules, &mut Draft::default()).unwrap();
    rules.iter().filter(|rule| rule.matches(words)).map(|rule| rule.decision).max()
}
