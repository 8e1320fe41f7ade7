//! One effect against the rules of one policy: the first that matches decides.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;

use callgate_model::effect::{Action, CodeOrigin, Effect, Mark, Target};
use callgate_model::word::Word;

use super::compile::{Compiled, Rule, action_bit, code_bit, mark_bit};
use super::index::KINDS;
use super::matching::hosts::Machine;
use super::matching::pattern::Found;
use super::matching::place::{Hits, NamedDirectories};
use super::matching::tools::{self, Claimed};
use super::matching::{Fit, Side, name, words};
use super::raw;
use super::when::Held;
use crate::file::model::ZoneText;
use crate::{Decision, JudgeRequest};
use callgate_model::description::Part;
use callgate_model::place::{Place, Rest, Zone};

/// What is judged: an effect of the description, or one that stands for a call or part without any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The simple command it belongs to.
    pub part: Option<(usize, &'a Part)>,
    pub effect: Option<&'a Effect>,
    pub place: Option<&'a Place>,
    /// What is done; `None`: nothing at all.
    pub action: Option<Action>,
}

/// What one policy says of one effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub decision: Decision,
    /// The rule, if it was one.
    pub rule: Option<u32>,
    pub why: Why,
}

/// How a decision came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The rule matched.
    Rule,
    /// The rule may match; what would decide it is not known.
    Doubt,
    /// A regular expression of the rule overran its limit.
    Overrun,
    /// No rule matched.
    Default,
    /// No rule matched, and the default does not cover what is not understood.
    NotUnderstood,
    /// Nothing would be done.
    Nothing,
}

/// Whether a rule matches.
enum Match {
    No,
    Maybe,
    Yes,
    Overrun,
}

/// One call against one policy; remembers what several rules need.
pub(crate) struct Judge<'a> {
    compiled: &'a Compiled,
    request: JudgeRequest<'a>,
    home: Option<&'a Path>,
    workspace: Option<&'a Path>,
    /// Made when a path is first compared.
    around: OnceCell<NamedDirectories<'a>>,
    /// Rules found by the tool and by the text of the command.
    call_rules: OnceCell<Vec<u32>>,
    conditions: RefCell<HashMap<u32, Held>>,
}

const OPAQUE_BITS: u16 = 1 << Action::Opaque as u16;

impl<'a> Judge<'a> {
    pub(crate) fn new(compiled: &'a Compiled, request: JudgeRequest<'a>, home: Option<&'a Path>) -> Self {
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
    pub(crate) fn judge(&self, subject: &Subject<'_>) -> Outcome {
        self.with_view(subject, |view| self.first_match(view))
    }

    /// What stands in for a question about an effect.
    pub(crate) fn instead_of_ask(&self, subject: &Subject<'_>) -> Option<Outcome> {
        self.with_view(subject, |view| {
            self.candidates(view).into_iter().find_map(|number| {
                let rule = self.compiled.rules.get(number as usize).filter(|rule| rule.instead_of_ask)?;
                matches!(self.matches(&rule, view), Match::Yes).then_some(Outcome {
                    decision: rule.decision,
                    rule: Some(number),
                    why: Why::Rule,
                })
            })
        })
    }

    /// The rules that match and that the index would not have found: none, if it is right.
    #[cfg(test)]
    pub(crate) fn missed(&self, subject: &Subject<'_>) -> Vec<u32> {
        self.with_view(subject, |view| {
            let candidates = self.candidates(view);
            (0_u32..)
                .zip(self.compiled.rules.iter())
                .filter(|(number, rule)| !candidates.contains(number) && !matches!(self.matches(rule, view), Match::No))
                .map(|(number, _)| number)
                .collect()
        })
    }

    /// Looks up what several rules need to know of an effect.
    fn with_view<T>(&self, subject: &Subject<'_>, then: impl FnOnce(&View<'_>) -> T) -> T {
        let changes = matches!(subject.action, Some(Action::Write | Action::Delete));
        let is_path =
            subject.place.is_some() || matches!(subject.effect.map(|effect| &effect.target), Some(Target::Path(_)));
        let hits = if is_path {
            let around = self.around.get_or_init(|| NamedDirectories::new(self.home, self.workspace));
            self.compiled.paths.hits(subject.place, changes, around, &self.compiled.pool)
        } else {
            Hits::default()
        };
        let machine = match subject.effect.map(|effect| &effect.target) {
            Some(Target::Host(host)) => Some(Machine::new(host.name.as_deref())),
            _ => None,
        };
        then(&View { subject: *subject, hits: &hits, is_path, machine: machine.as_ref() })
    }

    fn first_match(&self, view: &View<'_>) -> Outcome {
        let mut doubt: Option<Outcome> = None;
        for number in self.candidates(view) {
            let Some(rule) = self.compiled.rules.get(number as usize).filter(|rule| !rule.instead_of_ask) else {
                continue;
            };
            match self.matches(&rule, view) {
                Match::No => {}
                Match::Overrun => {
                    return Outcome { decision: Decision::Deny, rule: Some(number), why: Why::Overrun };
                }
                Match::Maybe => {
                    doubt.get_or_insert(Outcome { decision: Decision::Ask, rule: Some(number), why: Why::Doubt });
                }
                Match::Yes => {
                    let sure = Outcome { decision: rule.decision, rule: Some(number), why: Why::Rule };
                    return stricter(doubt, sure);
                }
            }
        }
        stricter(doubt, self.default(&view.subject))
    }

    /// What happens to an effect that no rule matches.
    fn default(&self, subject: &Subject<'_>) -> Outcome {
        let default = self.compiled.about.default.unwrap_or(Decision::Ask);
        let (decision, why) = match subject.action {
            None => (Decision::Allow, Why::Nothing),
            Some(action) => {
                let silent = default < Decision::Ask;
                let unsure = action == Action::Opaque || subject.place.is_some_and(|place| place.traversal);
                if silent && unsure { (Decision::Ask, Why::NotUnderstood) } else { (default, Why::Default) }
            }
        };
        Outcome { decision, rule: None, why }
    }

    /// The numbers of the rules to compare, in order.
    fn candidates(&self, view: &View<'_>) -> Vec<u32> {
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
        let mut found = index.tool(&self.request.call.tool).into_owned();
        if index.has_command_grams() {
            if let Some(text) = raw::command(&self.request.call.input) {
                index.text(text.as_bytes(), &mut found, true);
            }
            for part in &self.request.description.parts {
                index.text(raw::join(&part.words).0.as_bytes(), &mut found, true);
            }
        }
        found
    }

    fn matches(&self, rule: &Rule, view: &View<'_>) -> Match {
        let side = rule.side();
        if !rule_is_about(rule, view) {
            return Match::No;
        }
        let Some(meant) = self.tool_meant(rule, side) else {
            return Match::No;
        };
        if !self.may_cover(rule, view, side, meant) {
            return Match::No;
        }
        let mut fit = Fit::Yes;
        for condition in [Self::zone, Self::program, Self::commands, Self::hosts, Self::paths] {
            fit = fit.min(condition(self, rule, view, side));
            if fit == Fit::No {
                return Match::No;
            }
        }
        for (patterns, search) in [
            (rule.command_patterns, Self::search_command as fn(&Self, usize, &View<'_>, Side) -> Option<Fit>),
            (rule.path_patterns, Self::search_path),
        ] {
            if patterns.is_empty() {
                continue;
            }
            let mut best = Fit::No;
            for offset in 0..patterns.len() {
                match search(self, patterns.index(offset), view, side) {
                    Some(found) => best = best.max(found),
                    None => return Match::Overrun,
                }
            }
            fit = fit.min(best);
            if fit == Fit::No {
                return Match::No;
            }
        }
        if let Some(when) = rule.when {
            let held = *self
                .conditions
                .borrow_mut()
                .entry(when)
                .or_insert_with(|| self.compiled.conditions.holds(when, &self.compiled.pool, &self.request));
            match (held, side) {
                (Held::Yes, _) | (Held::Failed, Side::Restricts) => {}
                (Held::No, _) | (Held::Failed, Side::Permits) => return Match::No,
            }
        }
        match (fit, side) {
            (Fit::Yes, _) => Match::Yes,
            (Fit::Maybe, Side::Restricts) => Match::Maybe,
            _ => Match::No,
        }
    }

    /// Whether the tool fits, and if so whether it was meant itself.
    fn tool_meant(&self, rule: &Rule, side: Side) -> Option<bool> {
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
        let claimed = Claimed { tags: &self.request.claims.tags, believed: &believed };
        let mut result = None;
        for pattern in rule.tools.of(&self.compiled.tools).iter() {
            let named = tools::fit(*pattern, &self.compiled.pool, tool, claimed, side);
            if named.fit == Fit::Yes {
                result = Some(result.unwrap_or(false) || named.meant);
            }
        }
        result
    }

    /// What a permitting rule never covers without saying so.
    fn may_cover(&self, rule: &Rule, view: &View<'_>, side: Side, meant: bool) -> bool {
        let custom = self.request.description.category == "unknown";
        if rule.custom_only && !custom || rule.complex_only && !raw::is_complex(&self.request) {
            return false;
        }
        if side == Side::Restricts {
            return true;
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
        let mut delicate = mark_bit(Mark::Elsewhere) | mark_bit(Mark::Environment);
        if !by_words {
            delicate |= mark_bit(Mark::Destructive) | mark_bit(Mark::Credentials);
        }
        view.marks() & delicate & !rule.marks == 0
    }

    fn zone(&self, rule: &Rule, view: &View<'_>, side: Side) -> Fit {
        if rule.zones == 0 && rule.traversal.is_none() && rule.recursive.is_none() {
            return Fit::Yes;
        }
        let Some(place) = view.subject.place else {
            // A path that could not be placed may lie anywhere.
            return if view.is_path && side == Side::Restricts { Fit::Maybe } else { Fit::No };
        };
        if rule.traversal.is_some_and(|wanted| wanted != place.traversal)
            || rule.recursive.is_some_and(|wanted| wanted != (place.tree || place.rest == Rest::Anything))
        {
            return Fit::No;
        }
        if rule.zones == 0 {
            return Fit::Yes;
        }
        let zone = match place.zone {
            Zone::Root => ZoneText::Root,
            Zone::Readable => ZoneText::Readable,
            Zone::Outside => ZoneText::Outside,
            Zone::Unresolved(_) => ZoneText::Unresolved,
        };
        if rule.zones >> zone as u8 & 1 == 1 {
            Fit::Yes
        } else if zone == ZoneText::Unresolved && side == Side::Restricts {
            Fit::Maybe
        } else {
            Fit::No
        }
    }

    fn program(&self, rule: &Rule, view: &View<'_>, _side: Side) -> Fit {
        if !rule.run_by.is_empty() && !self.run_by(rule, view) {
            return Fit::No;
        }
        if rule.code == 0 && rule.runs.is_empty() {
            return Fit::Yes;
        }
        let (program, origin) = match (view.subject.effect.map(|effect| &effect.target), view.subject.part) {
            (Some(Target::Program(program)), _) => (program.name.as_str(), program.origin),
            (Some(Target::Path(_)), _) if view.subject.action == Some(Action::Run) => ("", CodeOrigin::File),
            (None, Some((_, part))) => match part.words.first() {
                Some(Word::Known(program)) => (program.as_str(), CodeOrigin::Known),
                _ => return Fit::No,
            },
            _ => return Fit::No,
        };
        let code = rule.code == 0 || rule.code & code_bit(origin) != 0;
        let runs = rule.runs.is_empty()
            || rule
                .runs
                .of(&self.compiled.runs)
                .iter()
                .any(|pattern| name::matches(self.compiled.pool.get(*pattern), program.as_bytes()));
        Fit::certain(code && runs)
    }

    /// Whether one of the programs that run this part is meant.
    fn run_by(&self, rule: &Rule, view: &View<'_>) -> bool {
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

    fn commands(&self, rule: &Rule, view: &View<'_>, side: Side) -> Fit {
        if rule.commands.is_empty() {
            return Fit::Yes;
        }
        let Some((_, part)) = view.subject.part.filter(|_| view.comes_from_words()) else {
            return Fit::No;
        };
        let mut best = Fit::No;
        for command in rule.commands.of(&self.compiled.commands).iter() {
            let pattern = command.of(&self.compiled.segments);
            best = best.max(words::fit(&pattern, &self.compiled.pool, &part.words, &part.wrappers, side));
        }
        best
    }

    fn hosts(&self, rule: &Rule, view: &View<'_>, _side: Side) -> Fit {
        if rule.hosts.is_empty() {
            return Fit::Yes;
        }
        let Some(machine) = view.machine else {
            return Fit::No;
        };
        let hosts = rule.hosts.of(&self.compiled.hosts);
        hosts.iter().map(|host| machine.fit(*host, &self.compiled.pool)).max().unwrap_or(Fit::No)
    }

    fn paths(&self, rule: &Rule, view: &View<'_>, side: Side) -> Fit {
        match (rule.paths, side) {
            (None, _) => Fit::Yes,
            _ if !view.is_path => Fit::No,
            (Some(list), Side::Restricts) => view.hits.touched(list),
            (Some(list), Side::Permits) => Fit::certain(view.hits.covered(list)),
        }
    }

    /// Searches the text of a command; `None` if the pattern overran.
    fn search_command(&self, pattern: usize, view: &View<'_>, side: Side) -> Option<Fit> {
        let Some((_, part)) = view.subject.part else {
            return Some(Fit::No);
        };
        let (text, known) = raw::join(&part.words);
        let from_words = view.comes_from_words() && !text.is_empty();
        if from_words && (known || side == Side::Restricts) {
            match self.compiled.patterns.search(pattern, &self.compiled.pool, &text) {
                Found::Yes => return Some(Fit::Yes),
                Found::Overrun => return None,
                Found::No => {}
            }
        }
        if side == Side::Restricts
            && !part.words.is_empty()
            && let Some(whole) = raw::command(&self.request.call.input)
        {
            return match self.compiled.patterns.search(pattern, &self.compiled.pool, &whole) {
                Found::Yes => Some(Fit::Yes),
                Found::No => Some(Fit::No),
                Found::Overrun => None,
            };
        }
        Some(Fit::No)
    }

    /// Searches the text of a path; `None` if the pattern overran.
    fn search_path(&self, pattern: usize, view: &View<'_>, side: Side) -> Option<Fit> {
        let place = match view.subject.place {
            Some(place) if !matches!(place.zone, Zone::Unresolved(_)) => place,
            _ if view.is_path && side == Side::Restricts => return Some(Fit::Maybe),
            _ => return Some(Fit::No),
        };
        let exact = is_exact(place);
        if side == Side::Permits && !exact {
            return Some(Fit::No);
        }
        let mut found = Vec::with_capacity(2);
        for path in [&place.named, &place.resolved] {
            let mut path_fits = false;
            for text in raw::path_texts(path, &place.rest, self.workspace) {
                match self.compiled.patterns.search(pattern, &self.compiled.pool, &text) {
                    Found::Yes => path_fits = true,
                    Found::No => {}
                    Found::Overrun => return None,
                }
            }
            found.push(path_fits);
        }
        Some(match side {
            Side::Permits => Fit::certain(found.iter().all(|fits| *fits)),
            Side::Restricts if found.contains(&true) => Fit::Yes,
            // A regular expression cannot be asked about names below a directory.
            Side::Restricts if !exact && place.zone == Zone::Outside => Fit::Maybe,
            Side::Restricts => Fit::No,
        })
    }
}

/// Whether a place is one path, which is known.
fn is_exact(place: &Place) -> bool {
    place.rest == Rest::Nothing && !place.tree && !matches!(place.zone, Zone::Unresolved(_))
}

/// A subject with what was looked up for it.
struct View<'a> {
    subject: Subject<'a>,
    hits: &'a Hits,
    is_path: bool,
    machine: Option<&'a Machine>,
}

impl View<'_> {
    fn marks(&self) -> u8 {
        self.subject.effect.map_or(0, |effect| effect.marks.iter().fold(0, |bits, mark| bits | mark_bit(*mark)))
    }

    /// Whether the effect comes from the words of its command, and not from a redirection or the environment.
    fn comes_from_words(&self) -> bool {
        self.marks() & (mark_bit(Mark::Redirection) | mark_bit(Mark::Environment)) == 0
    }
}

/// The cheap conditions: actions and marks.
fn rule_is_about(rule: &Rule, view: &View<'_>) -> bool {
    match view.subject.action {
        Some(action) => {
            if rule.actions != 0 && rule.actions & action_bit(action) == 0 {
                return false;
            }
        }
        // Nothing would be done: only rules about the tool, the call or everything apply.
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

/// The stricter of a doubt and what follows; the doubt if they are alike, because it came first.
fn stricter(doubt: Option<Outcome>, sure: Outcome) -> Outcome {
    match doubt {
        Some(doubt) if doubt.decision >= sure.decision => doubt,
        _ => sure,
    }
}
