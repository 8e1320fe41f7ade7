//! What is legal in a policy and still probably not meant.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate_model::effect::{Action, Mark};
use serde::Serialize;

use super::Decision;
use crate::boundary::BoundarySettings;
use crate::file::audit::{AuditSettings, expand_home};
use crate::file::mistake::{Colours, Level, Mistake, Position, render};
use crate::file::model::{At, File, RuleText, Texts, ToolText};
use crate::layers::{Body, LayerKind, Policy};
use crate::rules::compile::{action_bit, mark_bit};
use crate::source::{Chain, Loaded};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Could be clearer.
    Note,
    /// Probably not what was meant.
    Warning,
    /// Certainly not what was meant: a deny that an allow swallows.
    Error,
}

/// Something that lint found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A stable name for this kind of finding.
    pub code: &'static str,
    /// The file.
    pub file: String,
    /// Where and what.
    #[serde(flatten)]
    pub mistake: Mistake,
    #[serde(skip)]
    rendered: String,
}

impl Finding {
    /// As `rustc` would show it.
    pub fn rendered(&self) -> &str {
        &self.rendered
    }
}

impl Policy {
    /// Looks for what is probably not meant in the files that the policy was loaded from. Bundled policies that they extend
    /// are not looked at again.
    pub fn lint(&self, find_root: FindRoot<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for layer in &self.layers {
            if let Body::File(chain) = &layer.body {
                lint_chain(chain, &mut findings);
                if let Some(loaded) = chain.files.first() {
                    audit(self, layer.kind, chain, find_root, &mut Lint { loaded, findings: &mut findings });
                }
            }
        }
        findings
    }
}

fn lint_chain(chain: &Chain, findings: &mut Vec<Finding>) {
    let Some(loaded) = chain.files.first() else { return };
    let mut lint = Lint { loaded, findings };
    let file = &loaded.source.file;
    lint.rules(file);
    lint.shadows(file);
    lint.sets(file, chain);
    for unused in &file.unused {
        lint.note("unused-key", unused.position, format!("`{}` is read and not used", unused.value), "");
    }
    for key in &file.without_effect {
        let message = format!("`{}` has no effect in this version of callgate", key.value);
        lint.warn("no-effect", key.position, message, "remove it, or keep it for a version that supports it");
    }
    if file.default == Some(Decision::Allow) {
        lint.warn(
            "default-allow",
            Position { line: 1, column: 1, ..Position::default() },
            "everything that no rule matches is allowed",
            "write `default: ask` and allow what is needed",
        );
    }
}

/// A log where agents may write proves nothing.
fn audit(policy: &Policy, kind: LayerKind, chain: &Chain, find_root: FindRoot<'_>, lint: &mut Lint<'_>) {
    let file = &lint.loaded.source.file;
    if kind == LayerKind::Project {
        if let Some(position) = file.audit.position {
            let message = "a project's file has no say about the log";
            lint.warn("unheard-audit", position, message, "put it into the user's file, or remove it");
        }
        return;
    }
    let home = policy.home.as_deref();
    for place in [&file.audit.directory, &file.audit.key].into_iter().flatten() {
        let within = expand_home(&place.value, home).and_then(|path| find_root(policy.boundary_settings(), &path));
        if let Some(root) = within {
            lint.log_in_boundary(place.position, &root);
        }
    }
    // Where this file draws the boundary around the usual place. `.` and the named sets are no such thing: where they
    // lie depends on the call.
    let moved = policy.audit_settings().directory.is_some();
    if let (false, Some(place), Some(roots)) = (moved, AuditSettings::default_directory(), &file.boundary.roots) {
        let sources: Vec<_> = chain.files.iter().map(|file| Arc::clone(&file.source)).collect();
        for root in roots.iter().filter(|root| root.value.starts_with(['/', '~'])) {
            let only = Texts::from([root.clone()]);
            let own = crate::boundary::paths(&sources, 0, &only).ok();
            let settings = BoundarySettings { roots: own, ..BoundarySettings::default() };
            if let Some(within) = find_root(&settings, &place) {
                lint.log_in_boundary(root.position, &within);
            }
        }
    }
}

/// Finds the root of a boundary that a path lies in, for calls from here. Needs the file system, so the caller brings it.
pub type FindRoot<'a> = &'a dyn Fn(&BoundarySettings, &Path) -> Option<PathBuf>;

struct Lint<'a> {
    loaded: &'a Loaded,
    findings: &'a mut Vec<Finding>,
}

const PATH_ACTIONS: [Action; 5] = [Action::List, Action::Read, Action::Write, Action::Delete, Action::Run];

impl Lint<'_> {
    fn add(&mut self, severity: Severity, code: &'static str, mistake: Mistake) {
        let level = match severity {
            Severity::Note => Level::Note,
            Severity::Warning => Level::Warning,
            Severity::Error => Level::Error,
        };
        let rendered = render(&self.loaded.source.shown, &self.loaded.text, level, &mistake, Colours::Off);
        let file = self.loaded.source.shown.clone();
        self.findings.push(Finding { severity, code, file, mistake, rendered });
    }

    fn note(&mut self, code: &'static str, position: Position, message: impl Into<String>, help: &str) {
        self.add(Severity::Note, code, with_help(position, message, help));
    }

    fn warn(&mut self, code: &'static str, position: Position, message: impl Into<String>, help: &str) {
        self.add(Severity::Warning, code, with_help(position, message, help));
    }

    fn log_in_boundary(&mut self, position: Position, root: &Path) {
        let message = format!("the audit log would lie inside the boundary, in {}", root.display());
        let help = "agents may write there, and a log that they can change proves nothing: keep it elsewhere";
        self.add(Severity::Error, "log-in-boundary", Mistake::new(position, message).help(help));
    }

    fn rules(&mut self, file: &File) {
        let mut names: HashMap<&str, usize> = HashMap::new();
        for rule in &file.rules {
            match &rule.name {
                None => self.note("unnamed", rule.position, "a rule without `name`", "answers and logs name the rule"),
                Some(name) => {
                    if let Some(line) = names.insert(&name.value, rule.position.line) {
                        let message = format!("the name `{}` is also used in line {line}", name.value);
                        self.warn("repeated-name", name.position, message, "give each rule its own name");
                    }
                }
            }
            if rule.reason.is_none() && rule.description.is_none() {
                self.note(
                    "no-reason",
                    rule.position,
                    "a rule without `reason`",
                    "whoever is refused or asked wants to know why",
                );
            }
            if rule.action < Decision::Ask && is_unconditional(rule) {
                self.warn(
                    "allows-everything",
                    rule.position,
                    "this rule has no conditions: it allows everything that is understood",
                    "say which effects, paths, commands or tools are meant",
                );
            }
            self.impossible(rule);
            self.narrow_paths(&rule.paths);
        }
    }

    /// Conditions that no effect fulfils together.
    fn impossible(&mut self, rule: &RuleText) {
        if rule.effects.is_empty() {
            return;
        }
        let about = |actions: &[Action]| rule.effects.iter().any(|effect| actions.contains(&effect.value));
        let first = |texts: &Texts| texts.first().map(|text| text.position);
        let zone = rule.zones.first().map(|zone| zone.position);
        let paths = first(&rule.paths).or_else(|| first(&rule.path_patterns)).or(zone);
        let hosts = first(&rule.hosts);
        let code = rule.code.first().map(|code| code.position).or_else(|| first(&rule.runs));
        for (position, fulfilled, message) in [
            (paths, about(&PATH_ACTIONS), "none of these effects has a path"),
            (hosts, about(&[Action::Connect, Action::Send]), "none of these effects has a host"),
            (code, about(&[Action::Run]), "none of these effects runs code"),
            (paths.and(hosts), false, "no effect has both a path and a host"),
        ] {
            if let (Some(position), false) = (position, fulfilled) {
                let message = format!("this rule cannot match: {message}");
                self.warn("cannot-match", position, message, "change `effects`, or remove the condition");
            }
        }
        for pattern in rule.command_patterns.iter().chain(&rule.path_patterns) {
            let never =
                regex_syntax::parse(&pattern.value).is_ok_and(|parsed| parsed.properties().minimum_len().is_none());
            if never {
                self.warn("cannot-match", pattern.position, "no text fits this pattern", "");
            }
        }
    }

    fn narrow_paths(&mut self, paths: &Texts) {
        for path in paths {
            let text = path.value.trim_start_matches('!');
            if !text.contains(['/', '*', '@', '~', '.'])
                || text.starts_with('.') && !text.contains(['/', '*']) && text.len() > 1
            {
                let message = format!("`{text}` is only the one in the project's own directory");
                let help = format!("write \"**/{text}\" for any directory, or \"./{text}\" to say that this is meant");
                self.note("narrow-path", path.position, message, &help);
            }
        }
    }

    fn shadows(&mut self, file: &File) {
        let shapes: Vec<Shape<'_>> = file.rules.iter().map(Shape::new).collect();
        for (number, later) in shapes.iter().enumerate() {
            // rules that stand in for a question come after all others, whatever the order
            let before = |earlier: &&Shape<'_>| earlier.rule.instead_of_ask == later.rule.instead_of_ask;
            let mut before = shapes.iter().take(number).filter(before);
            let Some(earlier) = before.find(|earlier| earlier.holds_all_of(later)) else {
                continue;
            };
            let name = earlier.rule.name.as_ref().map_or("", |name| name.value.as_str());
            let line = earlier.rule.position.line;
            let position = later.rule.name.as_ref().map_or(later.rule.position, |name| name.position);
            if earlier.permits() && !later.permits() {
                let message =
                    format!("this rule never restricts anything: `{name}` in line {line} allows all of it before");
                let mistake = Mistake::new(position, message).help("put this rule before the one that allows");
                self.add(Severity::Error, "swallowed", mistake);
            } else {
                let message = format!("this rule never decides anything: `{name}` in line {line} comes first");
                self.warn("unreachable", position, message, "remove it, or put it before the other");
            }
        }
    }

    fn sets(&mut self, file: &File, chain: &Chain) {
        let mut used: HashSet<&str> = HashSet::new();
        for source in chain.files.iter().map(|file| &file.source.file) {
            let rules = source.rules.iter().flat_map(|rule| [&rule.paths, &rule.hosts, &rule.commands, &rule.runs]);
            let boundary = [&source.boundary.roots, &source.boundary.readable].into_iter().flatten();
            let sets = source.sets.iter().map(|(_, patterns)| patterns);
            for text in rules.chain(boundary).chain(sets).flatten() {
                if let Some(name) = text.value.trim_start_matches('!').strip_prefix('@') {
                    used.insert(name);
                }
            }
        }
        for (name, _) in &file.sets {
            if !used.contains(name.value.as_str()) {
                let message = format!("the set `{}` is not used", name.value);
                let help = format!("use it as \"@{}\", or remove it", name.value);
                self.warn("unused-set", name.position, message, &help);
            }
        }
    }
}

fn with_help(position: Position, message: impl Into<String>, help: &str) -> Mistake {
    let mistake = Mistake::new(position, message);
    if help.is_empty() { mistake } else { mistake.help(help) }
}

fn is_unconditional(rule: &RuleText) -> bool {
    let lists = [
        &rule.paths,
        &rule.runs,
        &rule.run_by,
        &rule.commands,
        &rule.hosts,
        &rule.command_patterns,
        &rule.path_patterns,
    ];
    lists.iter().all(|list| list.is_empty())
        && rule.tools.is_empty()
        && rule.effects.is_empty()
        && rule.marks.is_empty()
        && rule.zones.is_empty()
        && rule.code.is_empty()
        && rule.traversal.is_none()
        && rule.recursive.is_none()
        && rule.when.is_none()
        && !rule.complex_only
        && !rule.custom_only
}

/// A rule, prepared for being compared with many others.
struct Shape<'a> {
    rule: &'a RuleText,
    actions: u16,
    marks: u8,
    without_marks: u8,
    zones: u8,
    code: u8,
}

impl<'a> Shape<'a> {
    fn new(rule: &'a RuleText) -> Self {
        let marks = |wanted: bool| {
            rule.marks.iter().filter(|mark| mark.value.1 == wanted).fold(0, |bits, mark| bits | mark_bit(mark.value.0))
        };
        Self {
            rule,
            actions: rule.effects.iter().fold(0, |bits, effect| bits | action_bit(effect.value)),
            marks: marks(true),
            without_marks: marks(false),
            zones: rule.zones.iter().fold(0, |bits, zone| bits | 1 << zone.value as u8),
            code: rule.code.iter().fold(0, |bits, code| bits | crate::rules::compile::code_bit(code.value)),
        }
    }

    fn permits(&self) -> bool {
        self.rule.action < Decision::Ask
    }

    /// What a permitting rule covers without naming it: everything but what is opaque.
    fn covered_actions(&self) -> u16 {
        match self.actions {
            0 if self.permits() && self.rule.commands.is_empty() && self.rule.command_patterns.is_empty() => {
                !action_bit(Action::Opaque)
            }
            0 => u16::MAX,
            actions => actions,
        }
    }

    /// Whether every effect that `later` matches is matched by this rule too. Errs towards no.
    fn holds_all_of(&self, later: &Self) -> bool {
        let subset = |mine: u8, theirs: u8| mine == 0 || theirs != 0 && theirs & !mine == 0;
        let wanted = if later.actions == 0 { u16::MAX } else { later.actions };
        if wanted & !self.covered_actions() != 0
            || !subset(self.zones, later.zones)
            || !subset(self.code, later.code)
            || self.marks != 0 && (later.marks == 0 || later.marks & !self.marks != 0)
            || self.without_marks & !later.without_marks != 0
        {
            return false;
        }
        let (mine, theirs) = (self.rule, later.rule);
        if self.permits() {
            let mut delicate = mark_bit(Mark::Elsewhere) | mark_bit(Mark::Environment);
            if mine.commands.is_empty() && mine.command_patterns.is_empty() {
                delicate |= mark_bit(Mark::Destructive) | mark_bit(Mark::Credentials);
            }
            if later.marks & delicate & !self.marks != 0 || theirs.traversal.is_some_and(|flag| flag.value) {
                return false;
            }
        }
        let flag = |mine: Option<bool>, theirs: Option<bool>| mine.is_none() || mine == theirs;
        flag(mine.traversal.map(|at| at.value), theirs.traversal.map(|at| at.value))
            && flag(mine.recursive, theirs.recursive)
            && (theirs.complex_only || !mine.complex_only)
            && (theirs.custom_only || !mine.custom_only)
            && tools_hold(&mine.tools, &theirs.tools)
            && hold(&mine.paths, &theirs.paths, path_holds)
            && hold(&mine.runs, &theirs.runs, |mine, theirs| mine == theirs)
            && hold(&mine.run_by, &theirs.run_by, |mine, theirs| mine == theirs)
            && hold(&mine.commands, &theirs.commands, command_holds)
            && hold(&mine.hosts, &theirs.hosts, |mine, theirs| mine == theirs)
            && hold(&mine.command_patterns, &theirs.command_patterns, |mine, theirs| mine == theirs)
            && hold(&mine.path_patterns, &theirs.path_patterns, |mine, theirs| mine == theirs)
            && match (&mine.when, &theirs.when) {
                (None, _) => true,
                (Some(mine), Some(theirs)) => mine.value == theirs.value,
                (Some(_), None) => false,
            }
    }
}

fn hold(mine: &Texts, theirs: &Texts, holds: fn(&str, &str) -> bool) -> bool {
    if mine.is_empty() {
        return true;
    }
    let takes_out = mine.iter().any(|text| text.value.starts_with('!')) && mine != theirs;
    !theirs.is_empty()
        && !takes_out
        && theirs
            .iter()
            .filter(|text| !text.value.starts_with('!'))
            .all(|theirs| mine.iter().any(|mine| holds(&mine.value, &theirs.value)))
}

/// `git **` holds `git push **`.
fn command_holds(mine: &str, theirs: &str) -> bool {
    mine == theirs
        || mine.strip_suffix("**").is_some_and(|front| {
            !front.contains(['*', '?', '[', '{']) && (theirs.starts_with(front) || theirs == front.trim_end())
        })
}

/// `/etc/**` holds `/etc/ssl/**`.
fn path_holds(mine: &str, theirs: &str) -> bool {
    mine == theirs
        || mine == "**"
        || mine.strip_suffix("**").is_some_and(|front| {
            front.ends_with('/') && !front.contains(['*', '?', '[', '{', '@']) && theirs.starts_with(front)
        })
}

fn tools_hold(mine: &[At<ToolText>], theirs: &[At<ToolText>]) -> bool {
    mine.is_empty()
        || !theirs.is_empty() && theirs.iter().all(|theirs| mine.iter().any(|mine| mine.value == theirs.value))
}
