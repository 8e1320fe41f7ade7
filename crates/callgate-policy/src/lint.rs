//! Finds what is valid in a policy but probably not intended.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate_model::effect::Action;
use callgate_model::fence::{Protection, Protections};
use serde::Serialize;

use super::Decision;
use crate::boundary::BoundarySettings;
use crate::file::audit::{AuditSettings, expand_home};
use crate::file::mistake::{Colours, Mistake, Position, Severity, render};
use crate::file::model::{PolicyFile, RuleText, Spanned, Texts, ToolText};
use crate::layers::{LayerBody, LayerKind, Policy};
use crate::rules::compile::{CompiledPolicy, Rule, action_bit};
use crate::rules::matching::Polarity;
use crate::source::{LoadedFile, PolicyChain};

/// A finding of the linter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintFinding {
    /// How serious it is.
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

impl LintFinding {
    /// The finding in the style of `rustc`.
    pub fn rendered(&self) -> &str {
        &self.rendered
    }
}

impl Policy {
    /// Checks the files that the policy was loaded from. Bundled policies that they extend are not checked again.
    pub fn lint(&self, find_root: FindRoot<'_>) -> Vec<LintFinding> {
        let mut findings = Vec::new();
        for layer in &self.layers {
            if let LayerBody::File(chain) = &layer.body {
                lint_chain(chain, &mut findings);
                if let Some(loaded) = chain.files.first() {
                    audit(self, layer.kind, chain, find_root, &mut Linter { loaded, findings: &mut findings });
                }
            }
        }
        findings
    }
}

fn lint_chain(chain: &PolicyChain, findings: &mut Vec<LintFinding>) {
    let Some(loaded) = chain.files.first() else { return };
    let mut lint = Linter { loaded, findings };
    let file = &loaded.source.file;
    lint.rules(file, &chain.compiled);
    lint.shadows(file, &chain.compiled);
    lint.sets(file, chain);
    for (name, profile) in &file.profiles {
        lint.less(name.position, profile.requires);
    }
    for unused in &file.unused {
        lint.note("unused-key", unused.position, format!("`{}` is ignored", unused.value), "");
    }
    for key in &file.without_effect {
        let message = format!("`{}` has no effect in this version of callgate", key.value);
        lint.warn("no-effect", key.position, message, "remove it, or keep it for a version that supports it");
    }
    if file.default == Some(Decision::Allow) {
        lint.warn(
            "default-allow",
            Position { line: 1, column: 1, ..Position::default() },
            "the default allows everything that no rule matches",
            "use `default: ask` and add rules for what you need",
        );
    }
}

/// Checks that the log is outside the boundary: agents must not be able to change it.
fn audit(policy: &Policy, kind: LayerKind, chain: &PolicyChain, find_root: FindRoot<'_>, lint: &mut Linter<'_>) {
    let file = &lint.loaded.source.file;
    if kind == LayerKind::Project {
        if let Some(position) = file.audit.position {
            let message = "`audit` is ignored in project files";
            lint.warn("unheard-audit", position, message, "move it to your user policy, or remove it");
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
    // Check whether a root of this file contains the default log directory. `.` and named sets depend on the call.
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

/// Finds the root of a boundary that contains a path. The caller provides it because it needs the file system.
pub type FindRoot<'a> = &'a dyn Fn(&BoundarySettings, &Path) -> Option<PathBuf>;

struct Linter<'a> {
    loaded: &'a LoadedFile,
    findings: &'a mut Vec<LintFinding>,
}

const PATH_ACTIONS: [Action; 5] = [Action::List, Action::Read, Action::Write, Action::Delete, Action::Run];

impl Linter<'_> {
    fn add(&mut self, severity: Severity, code: &'static str, at: Position, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        let mistake = Mistake { help, ..Mistake::new(at, message) };
        let file = self.loaded.source.shown.clone();
        let rendered = render(&file, &self.loaded.text, severity, &mistake, Colours::Off);
        self.findings.push(LintFinding { severity, code, file, mistake, rendered });
    }

    fn note(&mut self, code: &'static str, at: Position, message: impl Into<String>, help: &str) {
        self.add(Severity::Note, code, at, message, help);
    }

    fn warn(&mut self, code: &'static str, at: Position, message: impl Into<String>, help: &str) {
        self.add(Severity::Warning, code, at, message, help);
    }

    fn log_in_boundary(&mut self, position: Position, root: &Path) {
        let message = format!("the audit log is inside the boundary, in {}", root.display());
        let help = "agents can write there and change the log; use a directory outside the boundary";
        self.add(Severity::Error, "log-in-boundary", position, message, help);
    }

    fn rules(&mut self, file: &PolicyFile, compiled: &CompiledPolicy) {
        let mut names: HashMap<&str, usize> = HashMap::new();
        for (rule, compiled) in file.rules.iter().zip(compiled.rules.iter()) {
            match &rule.name {
                None => {
                    self.note("unnamed", rule.position, "rule without `name`", "add a name; answers and logs show it")
                }
                Some(name) => {
                    if let Some(line) = names.insert(&name.value, rule.position.line) {
                        let message = format!("duplicate rule name `{}`, first used in line {line}", name.value);
                        self.warn("repeated-name", name.position, message, "give each rule a unique name");
                    }
                }
            }
            if rule.reason.is_none() && rule.description.is_none() {
                self.note(
                    "no-reason",
                    rule.position,
                    "rule without `reason`",
                    "add a reason; the agent and the person who is asked see it",
                );
            }
            if compiled.side() == Polarity::Permits && compiled.is_unconditional() {
                self.warn(
                    "allows-everything",
                    rule.position,
                    "rule without conditions allows every call that can be analyzed",
                    "add `effects`, `paths`, `commands` or `tools`",
                );
            }
            if let Some(position) = rule.free.filter(|_| !self.loaded.source.shown.ends_with(" (bundled)")) {
                let message = "code that this rule allows runs outside the sandbox, even if contained code wrote it";
                self.warn(
                    "runs-free",
                    position,
                    message,
                    "remove `where: free`, unless nothing else can change that code",
                );
            }
            self.impossible(rule);
            self.narrow_paths(&rule.paths);
        }
    }

    /// Warns where less than everything must be held.
    fn less(&mut self, position: Position, requires: Protections) {
        if requires.is_empty() || requires == Protections::all() {
            return;
        }
        let missing: Vec<&str> = Protection::ALL
            .into_iter()
            .filter(|protection| !requires.includes([*protection].into_iter().collect()))
            .map(Protection::as_str)
            .collect();
        let message = format!("calls of this profile run even where nothing holds {}", missing.join(", "));
        self.warn("less-is-held", position, &message, "remove `requires` from the profile to require everything");
    }

    /// Finds conditions that no effect can meet together.
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
            (paths, about(&PATH_ACTIONS), "none of its effects has a path"),
            (hosts, about(&[Action::Connect, Action::Send]), "none of its effects has a host"),
            (code, about(&[Action::Run]), "none of its effects runs code"),
            (paths.and(hosts), false, "no effect has both a path and a host"),
        ] {
            if let (Some(position), false) = (position, fulfilled) {
                let message = format!("rule can never match: {message}");
                self.warn("cannot-match", position, message, "change `effects`, or remove the condition");
            }
        }
        for pattern in rule.command_patterns.iter().chain(&rule.path_patterns) {
            let never =
                regex_syntax::parse(&pattern.value).is_ok_and(|parsed| parsed.properties().minimum_len().is_none());
            if never {
                self.warn("cannot-match", pattern.position, "pattern can never match", "");
            }
        }
    }

    fn narrow_paths(&mut self, paths: &Texts) {
        for path in paths {
            let text = path.value.trim_start_matches('!');
            if !text.contains(['/', '*', '@', '~', '.'])
                || text.starts_with('.') && !text.contains(['/', '*']) && text.len() > 1
            {
                let message = format!("`{text}` matches only in the project directory");
                let help =
                    format!("write \"**/{text}\" to match in any directory, or \"./{text}\" if this is intended");
                self.note("narrow-path", path.position, message, &help);
            }
        }
    }

    fn shadows(&mut self, file: &PolicyFile, compiled: &CompiledPolicy) {
        let shape = |(rule, compiled)| ComparableRule { rule, compiled };
        let shapes: Vec<ComparableRule<'_>> = file.rules.iter().zip(compiled.rules.iter()).map(shape).collect();
        for (number, later) in shapes.iter().enumerate() {
            // rules with `instead_of` come after all others, whatever the order
            let before = |earlier: &&ComparableRule<'_>| earlier.rule.instead_of == later.rule.instead_of;
            let mut before = shapes.iter().take(number).filter(before);
            let Some(earlier) = before.find(|earlier| earlier.holds_all_of(later)) else {
                continue;
            };
            let name = earlier.rule.name.as_ref().map_or("", |name| name.value.as_str());
            let line = earlier.rule.position.line;
            let position = later.rule.name.as_ref().map_or(later.rule.position, |name| name.position);
            if earlier.permits() && !later.permits() {
                let message =
                    format!("rule never takes effect: `{name}` in line {line} already allows everything it matches");
                self.add(Severity::Error, "swallowed", position, message, "move this rule before the one that allows");
            } else {
                let message = format!("rule never takes effect: `{name}` in line {line} matches first");
                self.warn("unreachable", position, message, "remove it, or move it before the other rule");
            }
        }
    }

    fn sets(&mut self, file: &PolicyFile, chain: &PolicyChain) {
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
                let message = format!("unused set `{}`", name.value);
                let help = format!("use it as \"@{}\", or remove it", name.value);
                self.warn("unused-set", name.position, message, &help);
            }
        }
    }
}

/// A rule as it was written and as it was compiled, for being compared with many others.
struct ComparableRule<'a> {
    rule: &'a RuleText,
    compiled: Rule,
}

impl ComparableRule<'_> {
    fn permits(&self) -> bool {
        self.compiled.side() == Polarity::Permits
    }

    /// The actions that the rule covers: a permitting rule covers opaque effects only if it names them.
    fn covered_actions(&self) -> u16 {
        match self.compiled.actions {
            0 if self.permits() && self.rule.commands.is_empty() && self.rule.command_patterns.is_empty() => {
                !action_bit(Action::Opaque)
            }
            0 => u16::MAX,
            actions => actions,
        }
    }

    /// Whether every effect that `later` matches is matched by this rule too. Errs towards no.
    fn holds_all_of(&self, later: &Self) -> bool {
        let subset = |mine: u16, theirs: u16| mine == 0 || theirs != 0 && theirs & !mine == 0;
        let (mine, theirs) = (&self.compiled, &later.compiled);
        let wanted = if theirs.actions == 0 { u16::MAX } else { theirs.actions };
        let flag = |mine: Option<bool>, theirs: Option<bool>| mine.is_none() || mine == theirs;
        if wanted & !self.covered_actions() != 0
            || !subset(mine.zones.into(), theirs.zones.into())
            || !subset(mine.code.into(), theirs.code.into())
            || !subset(mine.marks, theirs.marks)
            || mine.without_marks & !theirs.without_marks != 0
            || !flag(mine.traversal, theirs.traversal)
            || !flag(mine.recursive, theirs.recursive)
            || mine.complex_only && !theirs.complex_only
            || mine.custom_only && !theirs.custom_only
            || mine.needs_sandbox && !theirs.needs_sandbox
            || mine.doubt && !theirs.doubt
            || mine.last && !theirs.last
        {
            return false;
        }
        if self.permits() && (theirs.marks & mine.never_covered_marks() != 0 || theirs.traversal == Some(true)) {
            return false;
        }
        let (mine, theirs) = (self.rule, later.rule);
        let same = |mine: &str, theirs: &str| mine == theirs;
        tools_hold(&mine.tools, &theirs.tools)
            && hold(&mine.paths, &theirs.paths, path_holds)
            && hold(&mine.runs, &theirs.runs, same)
            && hold(&mine.run_by, &theirs.run_by, same)
            && hold(&mine.commands, &theirs.commands, command_holds)
            && hold(&mine.hosts, &theirs.hosts, same)
            && hold(&mine.command_patterns, &theirs.command_patterns, same)
            && hold(&mine.path_patterns, &theirs.path_patterns, same)
            && mine.when.as_ref().is_none_or(|mine| theirs.when.as_ref().is_some_and(|when| when.value == mine.value))
    }
}

fn hold(mine: &Texts, theirs: &Texts, holds: impl Fn(&str, &str) -> bool) -> bool {
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

fn tools_hold(mine: &[Spanned<ToolText>], theirs: &[Spanned<ToolText>]) -> bool {
    mine.is_empty()
        || !theirs.is_empty() && theirs.iter().all(|theirs| mine.iter().any(|mine| mine.value == theirs.value))
}
