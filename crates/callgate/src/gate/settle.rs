//! Asking with everything that approvals know: keys, sessions, grants, proposals.

use std::path::Path;
use std::time::Duration;

use callgate_shell::effect::{Action, Effect, Target};
use serde_json::Value;

use super::{Explanation, Gate, Judged, unrecorded};
use crate::approval::{Answer, ApprovalRequest};
use crate::approvals::{
    ApprovalDecision, ApprovalId, Approvals, Asked, How, Outcome, Proposal, Question, QuestionCommand, QuestionEffect,
    Remembered, Settlement, narrowest, timeout,
};
use crate::call::Call;
use crate::clock::Timestamp;
use crate::describe::{PlacedEffect, built_in_tools};
use crate::event::{AnswerSource, ApprovalDecided, EventKind};
use crate::grant::{Demand, Scope, Target as GrantTarget, current_scope};
use crate::key::{KeyedRequest, approval_key};
use crate::path::resolve::resolve;
use crate::policy::{Decision, Policy, Request};
use crate::refusal::{Refusal, RefusalKind};

/// Parameters of tools that are built in which are words for people: they change nothing that runs.
const TEXTS: &[&str] = &["description", "explanation", "justification"];
/// Tools that type into a program which runs already, and the parameter that says which.
const TYPES_INTO: (&str, &str) = ("write_stdin", "session_id");

/// A question with what must be known to settle it.
pub(super) struct Matter<'a> {
    call: &'a Call,
    explanation: &'a Explanation,
    asked: Vec<(usize, usize)>,
    pub(super) question: Question,
    demands: Vec<Demand>,
}

impl Gate {
    /// Settles what is known already; else what must be asked.
    pub(super) fn settle(
        &self,
        approvals: &Approvals,
        call: &Call,
        judged: &Judged,
        request: &ApprovalRequest,
    ) -> Result<(), Refusal> {
        let mut matter = self.matter(call, judged, request)?;
        if let Some(settlement) = matter.known(approvals) {
            return self.conclude_settlement(settlement, None, judged, request);
        }
        self.announce(&mut matter, judged, request)?;
        let settlement = approvals.ask(&matter.question);
        self.conclude_settlement(settlement, Some(&matter.question.id), judged, request)
    }

    /// The same without holding up a thread.
    pub(super) async fn settle_async(
        &self,
        approvals: &Approvals,
        call: &Call,
        judged: &Judged,
        request: &ApprovalRequest,
    ) -> Result<(), Refusal> {
        let mut matter = self.matter(call, judged, request)?;
        if let Some(settlement) = matter.known(approvals) {
            return self.conclude_settlement(settlement, None, judged, request);
        }
        self.announce(&mut matter, judged, request)?;
        let id = matter.question.id.clone();
        let settlement = approvals.ask_async(matter.question).await;
        self.conclude_settlement(settlement, Some(&id), judged, request)
    }

    /// Somebody will be asked: what they could choose is found out now, and the event is recorded before they see it.
    fn announce(&self, matter: &mut Matter<'_>, judged: &Judged, request: &ApprovalRequest) -> Result<(), Refusal> {
        let asked = matter.asked();
        let passes = |proposal: &Proposal| self.would_pass(matter.call, matter.explanation, &matter.asked, proposal);
        let proposals = narrowest(&asked, &passes).unwrap_or_default();
        matter.question.proposals = proposals;
        let question = &matter.question;
        let timeout = u64::try_from(question.asked_at.until(question.deadline).as_millis()).unwrap_or(u64::MAX);
        let (reason, approval) = (request.reason.clone(), Some(question.id.to_string()));
        let kind = EventKind::ApprovalRequested { reason, approval, timeout: Some(timeout) };
        judged.recorder.emit(kind).map_err(unrecorded)
    }

    fn matter<'a>(&self, call: &'a Call, judged: &'a Judged, request: &ApprovalRequest) -> Result<Matter<'a>, Refusal> {
        let explanation = &judged.explanation;
        let failed = |why: String| Refusal::new(RefusalKind::Unknown, why);
        let variable = std::env::var(timeout::VARIABLE).ok();
        let time: Duration =
            timeout::timeout(None, variable.as_deref(), request.timeout).map_err(|error| failed(error.to_string()))?;
        let id = ApprovalId::random().ok_or_else(|| failed("there are no random numbers to be had".into()))?;
        let asked = explanation.asked();
        let contained = explanation.judgement.effects.iter().any(|(_, _, ruling)| ruling.decision == Decision::Contain);
        let directory = call.origin.directory.as_deref().or(call.origin.workspace.as_deref());
        let resolved = directory.and_then(|directory| resolve(self.file_system.as_ref(), directory).ok());
        let own = call.tool.server.is_none() && built_in_tools().contains(&call.tool.name.as_str());
        let parts = &explanation.description.parts;
        let places = parts.iter().flat_map(|part| &part.effects).filter_map(|placed| placed.place.as_ref());
        let key = approval_key(&KeyedRequest {
            tool: &call.tool,
            input: &call.input,
            texts: if own { TEXTS } else { &[] },
            redacted: request.input.as_value(),
            paths: places.map(|place| place.resolved.as_path()).collect(),
            directory: resolved.as_deref().or(directory),
            sandbox: if contained { "required" } else { "none" },
        });
        let now = Timestamp::now();
        let question = Question {
            id,
            tool: call.tool.to_string(),
            key: key.ok(),
            session: call.origin.session.clone(),
            agent: call.origin.agent.clone(),
            scope: call.origin.scope.clone(),
            directory: call.origin.directory.clone(),
            request: request.input.as_value().clone(),
            commands: self.commands(explanation),
            effects: self.question_effects(explanation, &asked),
            risk_level: request.risk.as_str().to_owned(),
            rule: request.rule.clone(),
            place: explanation.ruling().place.clone(),
            reason: request.reason.clone(),
            proposals: Vec::new(),
            asked_at: now,
            deadline: now.after(time),
        };
        let demands = demands(call, explanation, &asked, &question);
        Ok(Matter { call, explanation, asked, question, demands })
    }

    fn commands(&self, explanation: &Explanation) -> Vec<QuestionCommand> {
        let parts = explanation.description.parts.iter().filter(|part| !part.words.is_empty());
        parts
            .map(|part| QuestionCommand {
                words: part.words.iter().map(|word| word.known().map(|text| self.redactor.text(text))).collect(),
                wrappers: part.wrappers.clone(),
            })
            .collect()
    }

    /// In full: an approver sees everything, however long it is.
    fn question_effects(&self, explanation: &Explanation, asked: &[(usize, usize)]) -> Vec<QuestionEffect> {
        let mut effects = Vec::new();
        for (part_index, part) in explanation.description.parts.iter().enumerate() {
            for (index, placed) in part.effects.iter().enumerate() {
                let marks = placed.effect.marks.iter().filter_map(|mark| serde_json::to_value(mark).ok());
                effects.push(QuestionEffect {
                    action: name_of(placed.effect.action),
                    target: self.redactor.text(&target_text(placed)),
                    marks: marks.filter_map(|mark| mark.as_str().map(str::to_owned)).collect(),
                    asked: asked.contains(&(part_index, index)),
                });
            }
        }
        effects
    }

    /// Whether a rule in front of all others would have let the call pass: the boundary has nothing to ask, and the rule
    /// allows everything that must be asked about.
    fn would_pass(
        &self,
        call: &Call,
        explanation: &Explanation,
        asked: &[(usize, usize)],
        proposal: &Proposal,
    ) -> bool {
        if explanation.boundary.iter().any(|ruling| ruling.ruling.decision >= Decision::Ask) {
            return false;
        }
        let rule = proposal.rule("proposed", Timestamp::from_milliseconds(0), "nobody");
        let text: String = rule.lines().map(|line| format!("  {line}\n")).collect();
        let Ok(mut policy) = Policy::from_yaml(&format!("version: 1\ndefault: ask\nrules:\n{text}"), "proposed") else {
            return false;
        };
        if let Some(home) = &self.surroundings.home {
            policy = policy.with_home(home);
        }
        let claims = self.registry.claims(&call.tool);
        let judgement = policy.judge(&Request { call, description: &explanation.description, claims });
        asked.iter().all(|wanted| {
            let found = judgement.effects.iter().find(|(part, effect, _)| (*part, *effect) == *wanted);
            found.is_some_and(|(_, _, ruling)| ruling.decision == Decision::Allow)
        })
    }

    fn conclude_settlement(
        &self,
        settlement: Settlement,
        asked: Option<&ApprovalId>,
        judged: &Judged,
        request: &ApprovalRequest,
    ) -> Result<(), Refusal> {
        let Settlement { outcome, how } = settlement;
        let answer = match &outcome {
            Outcome::Answered(answer) => Some(match answer.decision {
                ApprovalDecision::Approved => Answer::Approved,
                ApprovalDecision::ApprovedForSession => Answer::ApprovedForSession,
                ApprovalDecision::Denied => Answer::Denied,
                ApprovalDecision::Abort => Answer::Abort,
            }),
            Outcome::TimedOut => Some(Answer::TimedOut),
            Outcome::Cancelled | Outcome::Unanswerable(_) => None,
        };
        let by = self.redactor.text(&by(&how, &outcome));
        let said = match &outcome {
            Outcome::Answered(answer) => answer.reason.as_deref(),
            Outcome::Unanswerable(why) => Some(why.as_str()),
            Outcome::TimedOut | Outcome::Cancelled => None,
        };
        let decided = ApprovalDecided {
            answer,
            by: Some(by),
            approval: asked.map(ToString::to_string),
            source: source(&how, &outcome),
            reason: said.map(|said| self.redactor.text(said)),
        };
        judged.recorder.emit(EventKind::ApprovalDecided(decided)).map_err(unrecorded)?;
        let (kind, reason, hint) = match (&outcome, &how) {
            (outcome, _) if outcome.is_yes() => return Ok(()),
            (_, How::DeniedBefore) => (
                RefusalKind::Permission,
                "this request was denied twice in this session and is not asked about again".to_owned(),
                "do not try it again: find another way, or ask the person what they want",
            ),
            (Outcome::Answered(answer), _) => {
                let said = answer.reason.as_deref().unwrap_or(&request.reason);
                match answer.decision {
                    ApprovalDecision::Abort => {
                        (RefusalKind::Cancelled, format!("the approver stopped the run: {said}"), "stop here")
                    }
                    _ => (
                        RefusalKind::Permission,
                        format!("the approver said no: {said}"),
                        "heed the reason, or find a way that does not need this",
                    ),
                }
            }
            (Outcome::TimedOut, _) => {
                (RefusalKind::Timeout, "nobody answered in time".to_owned(), "go on with something else")
            }
            (Outcome::Cancelled, _) => {
                (RefusalKind::Cancelled, "the question was taken back".to_owned(), "go on with something else")
            }
            (Outcome::Unanswerable(why), _) => (
                RefusalKind::HumanRequired,
                why.clone(),
                "ask a person to allow this, or find a way that does not need it",
            ),
        };
        Err(Refusal::new(kind, self.redactor.text(&reason)).hint(hint).rule(request.rule.clone()))
    }
}

impl<'a> Matter<'a> {
    fn asked(&self) -> Asked<'_> {
        Asked { tool: &self.call.tool, description: &self.explanation.description, effects: &self.asked }
    }

    fn known(&self, approvals: &Approvals) -> Option<Settlement> {
        let asked = self.asked();
        let covered = |what: &Remembered| match what {
            Remembered::Rule(proposal) => proposal.covers(&asked),
            Remembered::Exec(exec) => types_into(self.call).is_some_and(|into| into == *exec),
            Remembered::Request(_) => false,
        };
        approvals.known(&self.question, &self.demands, &covered)
    }
}

/// The running program that a call types into.
fn types_into(call: &Call) -> Option<String> {
    let (tool, parameter) = TYPES_INTO;
    if call.tool.server.is_some() || call.tool.name != tool {
        return None;
    }
    match call.input.get(parameter)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What grants could be spent for: each target of what must be asked about, or else the call as a whole.
fn demands(call: &Call, explanation: &Explanation, asked: &[(usize, usize)], question: &Question) -> Vec<Demand> {
    let action = call.tool.to_string();
    let find = |(part, effect): &(usize, usize)| explanation.description.parts.get(*part)?.effects.get(*effect);
    let targets: Vec<GrantTarget> = asked.iter().filter_map(find).map(|placed| target_text(placed).into()).collect();
    let scope = call.origin.scope.as_deref().map(Scope::new).or_else(current_scope);
    [Demand::new(action.clone(), targets), Demand::new(action.clone(), [action.as_str()])]
        .into_iter()
        .filter(|demand| !demand.targets.is_empty())
        .map(|demand| demand.scope(scope.clone()).request(question.key))
        .collect()
}

/// What an effect is about, in full. A path as it was resolved.
fn target_text(placed: &PlacedEffect) -> String {
    let PlacedEffect { effect, place } = placed;
    let tree = |tree: bool| if tree { " and all below" } else { "" };
    match (&effect.target, place) {
        (Target::Path(target), Some(place)) if place.rest == crate::path::Rest::Nothing => {
            format!("{}{}", lossless(&place.resolved), tree(target.tree))
        }
        (Target::Path(target), _) => path_text(effect, tree(target.tree)),
        (Target::Program(program), _) => program.name.clone(),
        (Target::Host(host), _) => host.name.clone().unwrap_or_else(|| host.shown.clone()),
        (Target::Text(text), _) => text.clone(),
    }
}

fn path_text(effect: &Effect, tree: &str) -> String {
    use callgate_shell::effect::Names;
    let Target::Path(target) = &effect.target else { return String::new() };
    match &target.names {
        Names::Exact(path) => format!("{path}{tree}"),
        Names::Glob(pattern) => format!("what matches {pattern}{tree}"),
        Names::Below(directory) => format!("something below {directory}{tree}"),
        Names::Unknown(why) => format!("an unknown path ({why})"),
    }
}

/// A path in text, such that two paths stay two.
fn lossless(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}

fn name_of(action: Action) -> String {
    format!("{action:?}").to_lowercase()
}

/// Where the answer comes from, for the log.
fn source(how: &How, outcome: &Outcome) -> AnswerSource {
    match how {
        How::Session | How::DeniedBefore => AnswerSource::Earlier,
        How::Mode | How::Automatic | How::Grants(_) => AnswerSource::Settings,
        How::Asked | How::Store(_) if *outcome == Outcome::Cancelled => AnswerSource::Withdrawn,
        How::Asked | How::Store(_) => AnswerSource::Asked,
    }
}

/// Who decided, for the log.
fn by(how: &How, outcome: &Outcome) -> String {
    match how {
        How::Mode => "mode".into(),
        How::Session => "session".into(),
        How::Automatic => "automatic".into(),
        How::Grants(grants) => {
            let ids: Vec<String> = grants.iter().map(ToString::to_string).collect();
            format!("grant {}", ids.join(", "))
        }
        How::DeniedBefore => "denied twice before".into(),
        How::Asked => match outcome {
            Outcome::Answered(answer) => answer.by.clone().unwrap_or_else(|| "approver".into()),
            _ => "nobody".into(),
        },
        How::Store(_) => "the store failed".into(),
    }
}
