//! From ask to a yes or a refusal: what is known already, what must be asked, what an answer means.
//!
//! All that is decided is decided here, without waiting. [`Gate::check`] and [`Gate::check_async`] only differ in how they
//! wait for the answer to a question that is left [open](Matter::Open).

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::question::demands;
use super::{Explanation, Gate, Judged, unrecorded};
use crate::approvals::{
    ApprovalDecision, Asked, How, NoProposal, Outcome, Patience, Proposal, Question, Remembered, Settlement, narrowest,
};
use crate::call::Call;
use crate::clock::Timestamp;
use crate::event::{AnswerSource, ApprovalDecided, EventKind};
use crate::policy::{Decision, ExecInput, PermissionHandler, PermissionRequest, PermissionResult, Policy, Request};
use crate::refusal::{Refusal, RefusalKind};

/// Where a call stands that was not denied.
pub(super) enum Matter {
    /// Nothing must be asked.
    Permitted,
    /// The answer is known.
    Settled(Settlement),
    /// Somebody must be asked, which is recorded.
    Open(Box<Question>),
}

impl Gate {
    /// Settles what is known already; else finds out what must be asked.
    pub(super) fn settle(&self, call: &Call, judged: &Judged, patience: Patience) -> Result<Matter, Refusal> {
        if judged.explanation.ruling().decision != Decision::Ask {
            return Ok(Matter::Permitted);
        }
        if let Some(handler) = self.policy.as_ref().and_then(Policy::handler) {
            self.announce(judged, None)?;
            return Ok(Matter::Settled(self.ask_handler(handler.as_ref(), call, judged)));
        }
        let typed = self.typed_command(call)?;
        if typed.as_ref().is_some_and(|typed| typed.ruling().decision == Decision::Allow) {
            let outcome = ApprovalDecision::Approved.into();
            return Ok(Matter::Settled(Settlement { outcome, how: How::Session }));
        }
        let explanation = typed.as_ref().unwrap_or(&judged.explanation);
        let mut question = self.question(call, judged, explanation, patience)?;
        let covered = |what: &Remembered| match what {
            Remembered::Rule(proposal) => self.would_pass(call, explanation, proposal),
            Remembered::Exec(exec) => {
                self.exec_input() == ExecInput::Covered
                    && self.registry.typed_input(call).is_some_and(|typed| typed.exec == exec.id)
            }
            Remembered::Request(_) => false,
        };
        let demands = demands(call, explanation, &question);
        if let Some(settlement) = self.approvals.known(&question, &demands, &covered) {
            return Ok(Matter::Settled(settlement));
        }
        match self.proposals(call, explanation) {
            Ok(proposals) => question.proposals = proposals,
            Err(why) => question.no_proposal = Some(why.to_string()),
        }
        self.announce(judged, Some(&question))?;
        Ok(Matter::Open(Box::new(question)))
    }

    /// Recorded before anybody sees the question.
    fn announce(&self, judged: &Judged, question: Option<&Question>) -> Result<(), Refusal> {
        let milliseconds = |question: &Question| u64::try_from(question.time().as_millis()).unwrap_or(u64::MAX);
        let event = EventKind::ApprovalRequested {
            reason: self.redactor.text(&judged.explanation.ruling().reason),
            approval: question.map(|question| question.id.to_string()),
            timeout: question.map(milliseconds),
        };
        judged.recorder.emit(event).map_err(unrecorded)
    }

    fn exec_input(&self) -> ExecInput {
        self.policy.as_ref().map(Policy::exec_input).unwrap_or_default()
    }

    /// What is typed into a running shell, judged as the command that it is, if the policy wants that. `None` if it cannot be.
    fn typed_command(&self, call: &Call) -> Result<Option<Explanation>, Refusal> {
        if self.exec_input() != ExecInput::Judged {
            return Ok(None);
        }
        let (Some(typed), Some(session)) = (self.registry.typed_input(call), &call.origin.session) else {
            return Ok(None);
        };
        let unusable = |error: crate::store::StoreError| Refusal::new(RefusalKind::HumanRequired, error.to_string());
        if !typed.is_whole() || !self.approvals.is_shell(session, &typed.exec).map_err(unusable)? {
            return Ok(None);
        }
        let command = Call {
            tool: crate::call::Tool::own("Bash"),
            input: serde_json::json!({ "command": typed.text }),
            origin: call.origin.clone(),
            shell: call.shell.clone(),
        };
        let explanation = self.explain_anywhere(&command)?;
        match explanation.ruling().decision {
            Decision::Deny => Err(self.denied(explanation.ruling())),
            // a program that runs already cannot be contained
            Decision::Contain => Ok(None),
            Decision::Allow | Decision::Ask => Ok(Some(explanation)),
        }
    }

    /// Remembers that a permitted call started a program which takes input. How far that covers what is typed into it later
    /// (`approvals: {exec_input: …}`), the policy says.
    pub fn exec_started(
        &self,
        plan: &crate::permit::Plan,
        exec: impl Into<String>,
    ) -> Result<(), crate::store::StoreError> {
        let Some(session) = &plan.call().origin.session else { return Ok(()) };
        let shell = crate::describe::is_interactive_shell(plan.description());
        self.approvals.cover_exec(session, crate::approvals::Exec { id: exec.into(), shell })
    }

    /// The rules that would have let the call pass, the narrowest first. One that would write a secret down is none.
    fn proposals(&self, call: &Call, explanation: &Explanation) -> Result<Vec<Proposal>, NoProposal> {
        if explanation.boundary.iter().any(|ruling| ruling.ruling.decision >= Decision::Ask) {
            return Err(NoProposal::Boundary);
        }
        let effects = explanation.asked();
        let asked = Asked { tool: &call.tool, description: &explanation.description, effects: &effects };
        let mut proposals = narrowest(&asked, &|proposal| self.would_pass(call, explanation, proposal))?;
        let words = self.redactor.of_words(&explanation.description);
        proposals.retain(|proposal| proposal.texts().iter().all(|text| self.shown(words.as_ref(), text) == *text));
        if proposals.is_empty() { Err(NoProposal::Secret) } else { Ok(proposals) }
    }

    /// Whether the call would pass all layers if the user's file had this rule too. The boundary asks beside the rules.
    fn would_pass(&self, call: &Call, explanation: &Explanation, proposal: &Proposal) -> bool {
        if explanation.boundary.iter().any(|ruling| ruling.ruling.decision >= Decision::Ask) {
            return false;
        }
        let rule = proposal.rule("proposed", Timestamp::from_milliseconds(0), "nobody");
        let text: String = rule.lines().map(|line| format!("  {line}\n")).collect();
        let rule = Policy::from_yaml(&format!("version: 1\nrules:\n{text}"), "proposed");
        let (Some(policy), Ok(rule)) = (&self.policy, rule) else { return false };
        let claims = self.registry.claims(&call.tool);
        let request = Request { call, description: &explanation.description, claims };
        policy.judge_with(&request, &rule).ruling.decision < Decision::Ask
    }

    /// The policy's own handler, which is code and sees the arguments themselves.
    fn ask_handler(&self, handler: &dyn PermissionHandler, call: &Call, judged: &Judged) -> Settlement {
        let ruling = judged.explanation.ruling();
        let request = PermissionRequest {
            tool: call.tool.clone(),
            parameters: call.input.clone(),
            reason: self.redactor.text(&ruling.reason),
            rule_name: ruling.rule.clone().unwrap_or_default(),
            claims: self.registry.claims(&call.tool).clone(),
        };
        let outcome = match catch_unwind(AssertUnwindSafe(|| handler.handle(&request))) {
            Ok(PermissionResult::Allow) => ApprovalDecision::Approved.into(),
            Ok(PermissionResult::Deny) => ApprovalDecision::Denied.into(),
            Ok(PermissionResult::Ask) => Outcome::Unanswerable("the policy's handler asks in turn".to_owned()),
            Err(_) => Outcome::Unanswerable("the policy's handler failed".to_owned()),
        };
        Settlement { outcome, how: How::Asked }
    }

    /// Only an explicit yes goes on.
    pub(super) fn heed(
        &self,
        settlement: Settlement,
        asked: Option<&Question>,
        judged: &Judged,
    ) -> Result<(), Refusal> {
        let Settlement { outcome, how } = settlement;
        let said = match &outcome {
            Outcome::Answered(answer) => answer.reason.as_deref(),
            Outcome::Unanswerable(why) => Some(why.as_str()),
            Outcome::TimedOut | Outcome::Cancelled => None,
        };
        let decided = ApprovalDecided {
            outcome: outcome.kind(),
            by: self.redactor.text(&by(&how, &outcome)),
            approval: asked.map(|question| question.id.to_string()),
            source: source(&how),
            reason: said.map(|said| self.redactor.text(said)),
        };
        judged.recorder.emit(EventKind::ApprovalDecided(decided)).map_err(unrecorded)?;
        let ruling = judged.explanation.ruling();
        let (kind, reason, hint) = match (&outcome, &how) {
            (outcome, _) if outcome.is_yes() => {
                if let Some(question) = asked {
                    self.approvals.recorded(question, outcome);
                }
                return Ok(());
            }
            (_, How::DeniedBefore) => (
                RefusalKind::Permission,
                "this request was denied twice in this session and is not asked about again".to_owned(),
                "do not try it again: find another way, or ask the person what they want",
            ),
            (Outcome::Answered(answer), _) => {
                let said = answer.reason.as_deref().unwrap_or(&ruling.reason);
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
        Err(Refusal::new(kind, self.redactor.text(&reason)).hint(hint).rule(ruling.rule.clone()))
    }
}

/// Where the answer comes from, for the log.
fn source(how: &How) -> AnswerSource {
    match how {
        How::Session | How::DeniedBefore => AnswerSource::Earlier,
        How::Mode | How::Automatic | How::Grants(_) => AnswerSource::Settings,
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
            // whoever calls himself `session` or `grant 7` is told apart by the source
            Outcome::Answered(answer) => answer.by.clone().unwrap_or_else(|| "approver".into()),
            _ => "nobody".into(),
        },
        How::Store(_) => "the store failed".into(),
    }
}
