//! Evaluates the rules of one policy for one effect: the first match decides.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;

use callgate_model::effect::{Action, CodeOrigin, Effect, Mark, Program, Target};
use callgate_model::word::Word;

use super::command_text;
use super::compile::{CompiledPolicy, Rule, action_bit, code_bit, mark_bit};
use super::index::KINDS;
use super::matching::hosts::HostTarget;
#[cfg(test)]
use super::matching::place::EVERY_ACTION;
use super::matching::place::{GlobHits, NamedDirectories};
use super::matching::tools::{self, ToolClaims};
use super::matching::{Match, Polarity, name, pattern, words};
use super::when;
use crate::file::model::ZoneText;
use crate::{Decision, JudgeRequest};
use callgate_model::description::{Part, PlacedEffect};
use callgate_model::place::{Place, Rest, Zone};

/// An effect to judge: one of the description, or one that represents a call or part without effects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgedEffect<'a> {
    /// The simple command it belongs to.
    pub part: Option<(usize, &'a Part)>,
    pub effect: Option<&'a Effect>,
    pub place: Option<&'a Place>,
    /// The action; `None` if the call does nothing.
    pub action: Option<Action>,
}

/// The decision of one policy about one effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EffectDecision {
    pub decision: Decision,
    /// The rule, if it was one.
    pub rule: Option<u32>,
    pub why: DecisionCause,
    /// Where it is a doubt: whether the fence of a contained call settles it.
    pub settled: bool,
    /// The first file of the chain whose rule decided or was in doubt.
    pub file: u32,
}

/// No rule of any file.
const NO_FILE: u32 = u32::MAX;

impl EffectDecision {
    pub(crate) fn new(decision: Decision, rule: Option<u32>, why: DecisionCause) -> Self {
        Self { decision, rule, why, settled: false, file: NO_FILE }
    }
}

/// Why a decision was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecisionCause {
    /// The rule matched.
    Rule,
    /// The rule may match; the facts that would decide it are unknown.
    Doubt {
        /// Whether the rule denies.
        denies: bool,
    },
    /// A regular expression of the rule exceeded its limit.
    Overrun,
    /// No rule matched.
    Default,
    /// No rule matched, and the default does not cover calls that could not be analyzed.
    NotUnderstood,
    /// Nothing would be done.
    Nothing,
}

/// The decisions that rules with `instead_of` replace. First what tightens, then what answers questions, so that "always"
/// also answers those of a rule that tightens.
pub(crate) const REPLACED: [Decision; 2] = [Decision::Allow, Decision::Ask];

/// Evaluates one policy for one call; caches what several rules need.
pub(crate) struct RuleEvaluator<'a> {
    compiled: &'a CompiledPolicy,
    request: JudgeRequest<'a>,
    home: Option<&'a Path>,
    workspace: Option<&'a Path>,
    /// Made when a path is first compared.
    around: OnceCell<NamedDirectories<'a>>,
    /// Rules found by the tool and by the text of the command.
    call_rules: OnceCell<Vec<u32>>,
    conditions: RefCell<HashMap<u32, Option<bool>>>,
}

const OPAQUE_BITS: u16 = 1 << Action::Opaque as u16;

impl<'a> RuleEvaluator<'a> {
    pub(crate) fn new(compiled: &'a CompiledPolicy, request: JudgeRequest<'a>, home: Option<&'a Path>) -> Self {
        let origin = &request.call.origin;
        let workspace = origin.workspace.as_deref().or(origin.directory.as_deref());
        Self {
            compiled,
            request,
            home,
            workspace,
            around: OnceCell::new(),
            call_rules: OnceCell::new(),
            conditions: RefCell::default(),
        }
    }

    /// Judges one effect.
    pub(crate) fn judge(&self, subject: &JudgedEffect<'_>) -> EffectDecision {
        self.with_view(subject, |view| self.first_match(view))
    }

    /// The decision that replaces one of all other rules. In doubt about a deny, only a deny does, or a fence that settles it.
    ///
    /// `same` says whether the decision is one of this policy. A rule that needs a sandbox leaves questions of others alone, and
    /// those of files that extend its own.
    pub(crate) fn instead_of(
        &self,
        outcome: &EffectDecision,
        subject: &JudgedEffect<'_>,
        same: bool,
    ) -> Option<EffectDecision> {
        let doubt = outcome.why == DecisionCause::Doubt { denies: true };
        let doubtful = matches!(outcome.why, DecisionCause::Doubt { .. });
        self.with_view(subject, |view| {
            let rules = self.candidates(view).into_iter().filter_map(|number| {
                let rule = self.compiled.rules.get(number as usize)?;
                (rule.instead_of == Some(outcome.decision)).then_some((number, rule))
            });
            let (last, first): (Vec<_>, Vec<_>) = rules.partition(|(_, rule)| rule.last);
            first.into_iter().chain(last).find_map(|(number, rule)| {
                let settles = rule.decision == Decision::Contain && outcome.settled && same;
                if doubt && rule.decision != Decision::Deny && !settles
                    || rule.doubt && !(doubtful && (settles || rule.decision > Decision::Contain))
                    || rule.needs_sandbox && !(self.request.is_containable() && same && rule.file <= outcome.file)
                {
                    return None;
                }
                let found = |decision, why| Some(EffectDecision::new(decision, Some(number), why));
                match self.matches(&rule, view) {
                    Some(Match::No) => None,
                    // A rule that tightens covers what it may be about.
                    Some(Match::Maybe | Match::Yes) => found(rule.decision, DecisionCause::Rule),
                    None => found(Decision::Deny, DecisionCause::Overrun),
                }
            })
        })
    }

    /// The rules that match but are not among the candidates, or that match otherwise if the globs of all rules are compared:
    /// none, if the index is right.
    #[cfg(test)]
    pub(crate) fn missed(&self, subject: &JudgedEffect<'_>) -> Vec<u32> {
        self.with_view(subject, |view| {
            let candidates = self.candidates(view);
            let around = NamedDirectories::new(self.home, self.workspace);
            let hits = if view.is_path {
                let paths = &self.compiled.paths;
                paths.hits_of(EVERY_ACTION, subject.place, subject.action, &around, &self.compiled.pool)
            } else {
                GlobHits::default()
            };
            let whole = EffectView { hits: &hits, ..*view };
            (0_u32..)
                .zip(self.compiled.rules.iter())
                .filter(|(number, rule)| {
                    let fit = self.matches(rule, &whole);
                    !candidates.contains(number) && fit != Some(Match::No) || fit != self.matches(rule, view)
                })
                .map(|(number, _)| number)
                .collect()
        })
    }

    /// Looks up what several rules need to know about an effect.
    fn with_view<T>(&self, subject: &JudgedEffect<'_>, then: impl FnOnce(&EffectView<'_>) -> T) -> T {
        let is_path =
            subject.place.is_some() || matches!(subject.effect.map(|effect| &effect.target), Some(Target::Path(_)));
        let hits = if is_path {
            let around = self.around.get_or_init(|| NamedDirectories::new(self.home, self.workspace));
            self.compiled.paths.hits(subject.place, subject.action, around, &self.compiled.pool)
        } else {
            GlobHits::default()
        };
        let machine = match subject.effect.map(|effect| &effect.target) {
            Some(Target::Host(host)) => Some(HostTarget::new(host.name.as_deref())),
            _ => None,
        };
        then(&EffectView { subject: *subject, hits: &hits, is_path, machine: machine.as_ref() })
    }

    fn first_match(&self, view: &EffectView<'_>) -> EffectDecision {
        let mut doubt: Option<EffectDecision> = None;
        let (mut settled, mut file) = (true, NO_FILE);
        for number in self.candidates(view) {
            let Some(rule) = self.compiled.rules.get(number as usize).filter(|rule| rule.instead_of.is_none()) else {
                continue;
            };
            if rule.needs_sandbox && !self.request.is_containable() {
                continue;
            }
            match self.matches(&rule, view) {
                Some(Match::No) => {}
                None => return EffectDecision::new(Decision::Deny, Some(number), DecisionCause::Overrun),
                Some(Match::Maybe) => {
                    settled &= rule.is_about_paths_alone();
                    file = file.min(rule.file);
                    let denies = rule.decision == Decision::Deny;
                    // doubt about a deny outweighs doubt about a question
                    if doubt.is_none_or(|earlier| denies && earlier.why == DecisionCause::Doubt { denies: false }) {
                        let why = DecisionCause::Doubt { denies };
                        doubt = Some(EffectDecision::new(Decision::Ask, Some(number), why));
                    }
                }
                Some(Match::Yes) => {
                    let sure = EffectDecision::new(rule.decision, Some(number), DecisionCause::Rule);
                    settled &= rule.decision < Decision::Ask;
                    return EffectDecision {
                        settled: settled && settles(&view.subject),
                        file: file.min(rule.file),
                        ..stricter(doubt, sure)
                    };
                }
            }
        }
        let settled = settled && settles(&view.subject);
        EffectDecision { settled, file, ..stricter(doubt, self.default(&view.subject)) }
    }

    /// The decision about an effect that no rule matches.
    fn default(&self, subject: &JudgedEffect<'_>) -> EffectDecision {
        let default = self.compiled.about.default.unwrap_or(Decision::Ask);
        let (decision, why) = match subject.action {
            None => (Decision::Allow, DecisionCause::Nothing),
            Some(action) => {
                let silent = default < Decision::Ask;
                let unsure = action == Action::Opaque || subject.place.is_some_and(|place| place.traversal);
                if silent && unsure {
                    (Decision::Ask, DecisionCause::NotUnderstood)
                } else {
                    (default, DecisionCause::Default)
                }
            }
        };
        EffectDecision::new(decision, None, why)
    }

    /// The numbers of the rules to compare, in order.
    fn candidates(&self, view: &EffectView<'_>) -> Vec<u32> {
        let index = &self.compiled.index;
        let kind = view.subject.action.map_or(KINDS.saturating_sub(1), |action| action as usize);
        let mut found = Vec::with_capacity(32);
        found.extend_from_slice(&index.general(kind));
        let general = found.len();
        found.extend_from_slice(self.call_rules.get_or_init(|| self.call_rules()));
        if view.hits.unknown {
            found.extend_from_slice(&index.all_paths());
        }
        let mut last = None;
        for list in view.hits.lists() {
            if last.replace(list) != Some(list) {
                found.extend_from_slice(&index.list(list));
            }
        }
        if let Some((_, part)) = view.subject.part {
            index.command(part, &mut found);
        }
        if let Some(machine) = view.machine {
            index.host(machine, &mut found);
        }
        if view.is_path && !index.all_path_patterns().is_empty() {
            match view.subject.place.filter(|place| is_exact(place)) {
                Some(place) => {
                    for path in [&place.named, &place.resolved] {
                        index.text(path.as_os_str().as_encoded_bytes(), &mut found, false);
                    }
                }
                None => found.extend_from_slice(&index.all_path_patterns()),
            }
        }
        if found.len() > general {
            found.sort_unstable();
            found.dedup();
        }
        found
    }

    fn call_rules(&self) -> Vec<u32> {
        let index = &self.compiled.index;
        let mut found = index.tool(&self.request.call.tool);
        if index.has_command_grams() {
            if let Some(text) = command_text::command(&self.request.call.input) {
                index.text(text.as_bytes(), &mut found, true);
            }
            for part in &self.request.description.parts {
                index.text(command_text::join(&part.words).0.as_bytes(), &mut found, true);
            }
        }
        found
    }

    /// Whether a rule matches; `None` if one of its regular expressions exceeded its limit.
    fn matches(&self, rule: &Rule, view: &EffectView<'_>) -> Option<Match> {
        let side = rule.side();
        if !rule_is_about(rule, view) {
            return Some(Match::No);
        }
        let Some(meant) = self.tool_meant(rule, side) else {
            return Some(Match::No);
        };
        if !self.may_cover(rule, view, side, meant) {
            return Some(Match::No);
        }
        let mut fit = Match::Yes;
        for condition in [Self::zone, Self::program, Self::commands, Self::hosts, Self::paths] {
            fit = fit.min(condition(self, rule, view, side));
            if fit == Match::No {
                return Some(Match::No);
            }
        }
        for (patterns, search) in [
            (
                rule.command_patterns,
                Self::search_command as fn(&Self, usize, &EffectView<'_>, Polarity) -> Option<Match>,
            ),
            (rule.path_patterns, Self::search_path),
        ] {
            if patterns.is_empty() {
                continue;
            }
            let mut best = Match::No;
            for offset in 0..patterns.len() {
                best = best.max(search(self, patterns.index(offset), view, side)?);
            }
            fit = fit.min(best);
            if fit == Match::No {
                return Some(Match::No);
            }
        }
        if let Some(condition) = rule.when {
            let holds = *self.conditions.borrow_mut().entry(condition).or_insert_with(|| {
                when::holds(&self.compiled.conditions, condition as usize, &self.compiled.pool, &self.request)
            });
            // A condition that cannot be evaluated holds for a rule that restricts and not for one that permits.
            if !holds.unwrap_or(side == Polarity::Restricts) {
                return Some(Match::No);
            }
        }
        Some(match (fit, side) {
            (Match::Maybe, Polarity::Permits) => Match::No,
            (fit, _) => fit,
        })
    }

    /// Whether a regular expression is found in a text; `None` if it exceeded its limit.
    fn search(&self, number: usize, text: &str) -> Option<bool> {
        pattern::search(&self.compiled.patterns, number, &self.compiled.pool, text)
    }

    /// Whether the tool matches, and if so whether the rule names this very tool.
    fn tool_meant(&self, rule: &Rule, side: Polarity) -> Option<bool> {
        if rule.tools.is_empty() {
            return Some(false);
        }
        let tool = &self.request.call.tool;
        let believed = |tag: &str| match &tool.server {
            Some(server) => {
                self.compiled.about.trusted_servers.iter().any(|trusted| name::matches(trusted, server.as_bytes()))
            }
            None => self.compiled.about.trusted_tags.iter().any(|trusted| trusted == tag),
        };
        let claimed = ToolClaims { tags: &self.request.claims.tags, believed: &believed };
        let mut result = None;
        for pattern in rule.tools.of(&self.compiled.tools).iter() {
            let named = tools::fit(*pattern, &self.compiled.pool, tool, claimed, side);
            if named.fit == Match::Yes {
                result = Some(result.unwrap_or(false) || named.meant);
            }
        }
        result
    }

    /// Whether the rule may decide: a permitting rule covers some effects only if it names them.
    fn may_cover(&self, rule: &Rule, view: &EffectView<'_>, side: Polarity, meant: bool) -> bool {
        let custom = self.request.description.category == "unknown";
        if rule.custom_only && !custom || rule.complex_only && !command_text::is_complex(&self.request) {
            return false;
        }
        if side == Polarity::Restricts {
            return true;
        }
        if rule.decision == Decision::Contain {
            let settled = match view.subject.action {
                Some(Action::Opaque) => is_settled_opaque(&view.subject),
                // which file it is must be known: `source <(…)` is no file of the project
                Some(Action::Run) if view.is_path => {
                    view.subject.place.is_some_and(|place| !matches!(place.zone, Zone::Unresolved(_)))
                }
                Some(Action::Run) => !matches!(
                    view.subject.effect.map(|effect| &effect.target),
                    Some(Target::Program(Program { name, .. })) if name.starts_with("/dev/") || name.starts_with("/proc/")
                ),
                _ => true,
            };
            if !settled {
                return false;
            }
        }
        let by_words = !rule.commands.is_empty() || !rule.command_patterns.is_empty();
        if view.subject.place.is_some_and(|place| place.traversal) {
            return false;
        }
        if view.subject.action == Some(Action::Opaque)
            && rule.actions & OPAQUE_BITS == 0
            && !by_words
            && !(custom && meant)
        {
            return false;
        }
        if view.subject.action == Some(Action::Privilege)
            && rule.actions & action_bit(Action::Privilege) == 0
            && view.subject.part.is_some_and(|(_, part)| !part.wrappers.is_empty())
        {
            return false;
        }
        view.marks() & rule.never_covered_marks() == 0
    }

    fn zone(&self, rule: &Rule, view: &EffectView<'_>, side: Polarity) -> Match {
        if rule.zones == 0 && rule.traversal.is_none() && rule.recursive.is_none() {
            return Match::Yes;
        }
        let Some(place) = view.subject.place else {
            // An unresolved path may be anywhere.
            return if view.is_path && side == Polarity::Restricts { Match::Maybe } else { Match::No };
        };
        if rule.traversal.is_some_and(|wanted| wanted != place.traversal)
            || rule.recursive.is_some_and(|wanted| wanted != (place.tree || place.rest == Rest::Anything))
        {
            return Match::No;
        }
        if rule.zones == 0 {
            return Match::Yes;
        }
        let zone = match place.zone {
            Zone::Root => ZoneText::Root,
            Zone::Readable => ZoneText::Readable,
            Zone::Outside => ZoneText::Outside,
            Zone::Unresolved(_) => ZoneText::Unresolved,
        };
        if rule.zones >> zone as u8 & 1 == 1 {
            Match::Yes
        } else if zone == ZoneText::Unresolved && side == Polarity::Restricts {
            Match::Maybe
        } else {
            Match::No
        }
    }

    fn program(&self, rule: &Rule, view: &EffectView<'_>, _side: Polarity) -> Match {
        if !rule.run_by.is_empty() && !self.run_by(rule, view) {
            return Match::No;
        }
        if rule.code == 0 && rule.runs.is_empty() {
            return Match::Yes;
        }
        let (program, origin) = match (view.subject.effect.map(|effect| &effect.target), view.subject.part) {
            (Some(Target::Program(program)), _) => (program.name.as_str(), program.origin),
            (Some(Target::Path(_)), _) if view.subject.action == Some(Action::Run) => ("", CodeOrigin::File),
            (None, Some((_, part))) => match part.words.first() {
                Some(Word::Known(program)) => (program.as_str(), CodeOrigin::Known),
                _ => return Match::No,
            },
            _ => return Match::No,
        };
        let code = rule.code == 0 || rule.code & code_bit(origin) != 0;
        let runs = rule.runs.is_empty()
            || rule
                .runs
                .of(&self.compiled.runs)
                .iter()
                .any(|pattern| name::matches(self.compiled.pool.get(*pattern), program.as_bytes()));
        Match::certain(code && runs)
    }

    /// Whether the rule names one of the wrappers of this part.
    fn run_by(&self, rule: &Rule, view: &EffectView<'_>) -> bool {
        let wrappers = view.subject.part.map_or(&[][..], |(_, part)| part.wrappers.as_slice());
        wrappers.iter().any(|wrapper| {
            rule.run_by.of(&self.compiled.runs).iter().fold(false, |meant, pattern| {
                let pattern = self.compiled.pool.get(*pattern);
                match pattern.strip_prefix('!') {
                    Some(pattern) => meant && !name::matches(pattern, wrapper.as_bytes()),
                    None => meant || name::matches(pattern, wrapper.as_bytes()),
                }
            })
        })
    }

    fn commands(&self, rule: &Rule, view: &EffectView<'_>, side: Polarity) -> Match {
        if rule.commands.is_empty() {
            return Match::Yes;
        }
        let Some((_, part)) = view.subject.part.filter(|_| view.comes_from_words()) else {
            return Match::No;
        };
        let mut best = Match::No;
        for command in rule.commands.of(&self.compiled.commands).iter() {
            let pattern = command.of(&self.compiled.segments);
            best = best.max(words::fit(&pattern, &self.compiled.pool, &part.words, &part.wrappers, side));
        }
        best
    }

    fn hosts(&self, rule: &Rule, view: &EffectView<'_>, _side: Polarity) -> Match {
        if rule.hosts.is_empty() {
            return Match::Yes;
        }
        let Some(machine) = view.machine else {
            return Match::No;
        };
        let hosts = rule.hosts.of(&self.compiled.hosts);
        hosts.iter().map(|host| machine.fit(*host, &self.compiled.pool)).max().unwrap_or(Match::No)
    }

    fn paths(&self, rule: &Rule, view: &EffectView<'_>, side: Polarity) -> Match {
        match (rule.paths, side) {
            (None, _) => Match::Yes,
            _ if !view.is_path => Match::No,
            (Some(list), Polarity::Restricts) => view.hits.touched(list),
            (Some(list), Polarity::Permits) => Match::certain(view.hits.covered(list)),
        }
    }

    /// Searches the text of a command; `None` if the pattern exceeded its limit.
    fn search_command(&self, pattern: usize, view: &EffectView<'_>, side: Polarity) -> Option<Match> {
        let Some((_, part)) = view.subject.part else {
            return Some(Match::No);
        };
        let (text, known) = command_text::join(&part.words);
        let from_words = view.comes_from_words() && !text.is_empty();
        if from_words && (known || side == Polarity::Restricts) && self.search(pattern, &text)? {
            return Some(Match::Yes);
        }
        if side == Polarity::Restricts
            && !part.words.is_empty()
            && let Some(whole) = command_text::command(&self.request.call.input)
        {
            return self.search(pattern, &whole).map(Match::certain);
        }
        Some(Match::No)
    }

    /// Searches the text of a path; `None` if the pattern exceeded its limit.
    fn search_path(&self, pattern: usize, view: &EffectView<'_>, side: Polarity) -> Option<Match> {
        let place = match view.subject.place {
            Some(place) if !matches!(place.zone, Zone::Unresolved(_)) => place,
            _ if view.is_path && side == Polarity::Restricts => return Some(Match::Maybe),
            _ => return Some(Match::No),
        };
        let exact = is_exact(place);
        if side == Polarity::Permits && !exact {
            return Some(Match::No);
        }
        let mut found = Vec::with_capacity(2);
        for path in [&place.named, &place.resolved] {
            let mut path_fits = false;
            for text in command_text::path_texts(path, &place.rest, self.workspace) {
                path_fits |= self.search(pattern, &text)?;
            }
            found.push(path_fits);
        }
        Some(match side {
            Polarity::Permits => Match::certain(found.iter().all(|fits| *fits)),
            Polarity::Restricts if found.contains(&true) => Match::Yes,
            // A regular expression cannot be compared with all names below a directory.
            Polarity::Restricts if !exact && place.zone == Zone::Outside => Match::Maybe,
            Polarity::Restricts => Match::No,
        })
    }
}

/// Whether a fence settles doubts about the paths of an effect: it holds reads, and writes to names that it protects. What is
/// deleted or overwritten inside a root it does not hold.
fn settles(subject: &JudgedEffect<'_>) -> bool {
    match subject.action {
        Some(Action::List | Action::Read) => true,
        Some(Action::Write) => subject.place.is_some_and(|place| place.zone == Zone::Root),
        _ => false,
    }
}

/// Whether a fence settles what is not known about a command: which file it reads, or what it does beside running code of the
/// project, which may do as much. A command that deletes something, or writes to unknown names, may do more of that than is known.
fn is_settled_opaque(subject: &JudgedEffect<'_>) -> bool {
    let (Some((_, part)), Some(opaque)) = (subject.part, subject.effect) else { return false };
    let is_known = part.elsewhere.is_none() && matches!(part.words.first(), Some(Word::Known(_)));
    let reads = || {
        let mut reads =
            part.effects.iter().filter(|placed| matches!(placed.effect.action, Action::List | Action::Read));
        reads.any(|read| read.effect.because == opaque.because && is_unresolved(read))
    };
    let destroys = || {
        part.effects.iter().any(|placed| match placed.effect.action {
            Action::Delete => true,
            Action::Write => is_unresolved(placed),
            _ => placed.effect.marks.contains(&Mark::Destructive),
        })
    };
    let runs_code = || {
        part.effects.iter().any(|placed| match &placed.effect.target {
            Target::Program(Program { name, origin: CodeOrigin::Project | CodeOrigin::File }) => {
                !name.starts_with("git-") && name != "python-path"
            }
            Target::Path(_) => placed.effect.action == Action::Run,
            _ => false,
        })
    };
    // text that comes through a pipe is not code of the project
    let is_fed = || opaque.because.ends_with("standard input");
    is_known && !destroys() && (reads() || runs_code() && !is_fed())
}

fn is_unresolved(placed: &PlacedEffect) -> bool {
    placed.place.as_ref().is_none_or(|place| matches!(place.zone, Zone::Unresolved(_)))
        && matches!(placed.effect.target, Target::Path(_))
}

/// Whether a place is one known path.
fn is_exact(place: &Place) -> bool {
    place.rest == Rest::Nothing && !place.tree && !matches!(place.zone, Zone::Unresolved(_))
}

/// An effect with what was looked up for it.
struct EffectView<'a> {
    subject: JudgedEffect<'a>,
    hits: &'a GlobHits,
    is_path: bool,
    machine: Option<&'a HostTarget>,
}

impl EffectView<'_> {
    fn marks(&self) -> u16 {
        self.subject.effect.map_or(0, |effect| effect.marks.iter().fold(0, |bits, mark| bits | mark_bit(*mark)))
    }

    /// Whether the effect comes from the words of its command, and not from a redirection or the environment.
    fn comes_from_words(&self) -> bool {
        self.marks() & (mark_bit(Mark::Redirection) | mark_bit(Mark::Environment)) == 0
    }
}

/// The cheap conditions: actions and marks.
fn rule_is_about(rule: &Rule, view: &EffectView<'_>) -> bool {
    match view.subject.action {
        Some(action) => {
            if rule.actions != 0 && rule.actions & action_bit(action) == 0 {
                return false;
            }
        }
        // The call does nothing: only rules about the tool, the call or everything apply.
        None => {
            let about_effects = rule.actions != 0
                || rule.zones | rule.code != 0
                || rule.paths.is_some()
                || rule.traversal.is_some()
                || rule.recursive.is_some()
                || [rule.runs, rule.run_by, rule.commands, rule.hosts, rule.command_patterns, rule.path_patterns]
                    .iter()
                    .any(|span| !span.is_empty());
            if about_effects {
                return false;
            }
        }
    }
    let marks = view.marks();
    (rule.marks == 0 || rule.marks & marks != 0) && rule.without_marks & marks == 0
}

/// The stricter of an uncertain decision and a certain one; the uncertain one if they are equal, because it came first.
fn stricter(doubt: Option<EffectDecision>, sure: EffectDecision) -> EffectDecision {
    match doubt {
        Some(doubt) if doubt.decision >= sure.decision => doubt,
        _ => sure,
    }
}
