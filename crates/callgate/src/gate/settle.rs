//! From ask to a yes or a refusal: what is known already, what must be asked, what an answer means.
//!
//! All that is decided is decided here, without waiting. [`Gate::check`] and [`Gate::check_async`] only differ in how they
//! wait for the answer to a question that is left [open](Matter::Open).

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::question::demands;
use super::{Admitted, Assessment, CheckOptions, Gate, unrecorded};
use crate::approvals::store::StoreError;
use crate::approvals::{
    ApprovalDecision, ApprovalOutcome, AskedCall, Exec, NoProposal, Proposal, Question, Remembered, SettledBy,
    SettledQuestion, narrowest,
};
use crate::describe::is_interactive_shell;
use crate::event::{AnswerSource, ApprovalDecided, EventKind};
use crate::permit::Plan;
use crate::policy::{Decision, ExecInput, PermissionHandler, PermissionRequest, PermissionResult, Policy};
use callgate_model::call::Call;
use callgate_model::refusal::{Refusal, RefusalKind};

/// Where a call stands that was not denied.
pub(super) enum Matter {
    /// Nothing must be asked.
    Permitted,
    /// The answer is known.
    Settled(SettledQuestion),
    /// Somebody must be asked, which is recorded.
    Open(Box<Question>),
}

impl Gate {
    /// Settles what is known already; else finds out what must be asked.
    pub(super) fn settle(&self, call: &Call, admitted: &Admitted, options: &CheckOptions) -> Result<Matter, Refusal> {
        if admitted.assessment.ruling.decision != Decision::Ask {
            return Ok(Matter::Permitted);
        }
        if let Some(handler) = self.assessor.policy().and_then(Policy::handler) {
            self.announce(admitted, None)?;
            return Ok(Matter::Settled(self.ask_handler(handler.as_ref(), call, admitted)));
        }
        let typed = self.typed_command(call, options)?;
        if typed.as_ref().is_some_and(|typed| typed.ruling.decision == Decision::Allow) {
            let outcome = ApprovalDecision::Approved.into();
            return Ok(Matter::Settled(SettledQuestion { outcome, how: SettledBy::Session }));
        }
        let assessment = typed.as_ref().unwrap_or(&admitted.assessment);
        let mut question = self.question(call, admitted, assessment, options)?;
        let covered = |what: &Remembered| match what {
            Remembered::Rule(proposal) => self.would_pass(call, assessment, proposal),
            Remembered::Exec(exec) => {
                self.exec_input() == ExecInput::Covered
                    && self.registry().typed_input(call).is_some_and(|typed| typed.exec == exec.id)
            }
            Remembered::Request(_) => false,
        };
        let demands = demands(call, assessment, &question);
        if let Some(settlement) = self.approvals.known(&question, &demands, &covered) {
            return Ok(Matter::Settled(settlement));
        }
        match self.proposals(call, assessment) {
            Ok(proposals) => question.proposals = proposals,
            Err(why) => question.no_proposal = Some(why.to_string()),
        }
        self.announce(admitted, Some(&question))?;
        Ok(Matter::Open(Box::new(question)))
    }

    /// Recorded before anybody sees the question.
    fn announce(&self, admitted: &Admitted, question: Option<&Question>) -> Result<(), Refusal> {
        let milliseconds = |question: &Question| u64::try_from(question.time().as_millis()).unwrap_or(u64::MAX);
        let event = EventKind::ApprovalRequested {
            reason: self.redactor().text(&admitted.assessment.ruling.reason),
            approval: question.map(|question| question.id.to_string()),
            timeout: question.map(milliseconds),
        };
        admitted.recorder.emit(event).map_err(unrecorded)
    }

    fn exec_input(&self) -> ExecInput {
        self.assessor.policy().map(Policy::exec_input).unwrap_or_default()
    }

    /// What is typed into a running shell, judged as the command that it is, if the policy wants that. `None` if it cannot be.
    fn typed_command(&self, call: &Call, options: &CheckOptions) -> Result<Option<Assessment>, Refusal> {
        if self.exec_input() != ExecInput::Judged {
            return Ok(None);
        }
        let (Some(typed), Some(session)) = (self.registry().typed_input(call), &call.origin.session) else {
            return Ok(None);
        };
        let unusable = |error: StoreError| Refusal::new(RefusalKind::HumanRequired, error.to_string());
        if !typed.is_whole() || !self.approvals.is_shell(session, &typed.exec).map_err(unusable)? {
            return Ok(None);
        }
        let command = Call {
            tool: callgate_model::call::Tool::own("Bash"),
            input: serde_json::json!({ "command": typed.text }),
            origin: call.origin.clone(),
        };
        let assessment = self.assessor.assess_anywhere(&command, options.shell.as_ref())?;
        match assessment.ruling.decision {
            Decision::Deny => Err(self.denied(&assessment.ruling)),
            // a program that runs already cannot be contained
            Decision::Contain => Ok(None),
            Decision::Allow | Decision::Ask => Ok(Some(assessment)),
        }
    }

    /// Remembers that a permitted call started a program which takes input. How far that covers what is typed into it later
    /// (`approvals: {exec_input: …}`), the policy says.
    pub fn exec_started(&self, plan: &Plan, exec: impl Into<String>) -> Result<(), StoreError> {
        let Some(session) = &plan.call().origin.session else { return Ok(()) };
        let shell = is_interactive_shell(plan.description());
        self.approvals.cover_exec(session, Exec { id: exec.into(), shell })
    }

    /// The rules that would have let the call pass, the narrowest first. One that would write a secret down is none.
    fn proposals(&self, call: &Call, assessment: &Assessment) -> Result<Vec<Proposal>, NoProposal> {
        if assessment.is_held_by_boundary() {
            return Err(NoProposal::Boundary);
        }
        let effects = assessment.effects_from(Decision::Ask);
        let asked = AskedCall { tool: &call.tool, description: &assessment.description, effects: &effects };
        let mut proposals = narrowest(&asked, &|proposal| self.would_pass(call, assessment, proposal))?;
        let words = self.redactor().of_words(&assessment.description);
        proposals.retain(|proposal| proposal.texts().iter().all(|text| self.shown(words.as_ref(), text) == *text));
        if proposals.is_empty() { Err(NoProposal::Secret) } else { Ok(proposals) }
    }

    /// Whether the call would pass all layers if the user's file had this rule too. The boundary asks beside the rules.
    fn would_pass(&self, call: &Call, assessment: &Assessment, proposal: &Proposal) -> bool {
        let claims = self.registry().claims(&call.tool);
        proposal.as_policy().is_ok_and(|rule| self.assessor.would_pass_with(&rule, call, assessment, claims))
    }

    /// The policy's own handler, which is code and sees the arguments themselves.
    fn ask_handler(&self, handler: &dyn PermissionHandler, call: &Call, admitted: &Admitted) -> SettledQuestion {
        let ruling = &admitted.assessment.ruling;
        let request = PermissionRequest {
            tool: call.tool.clone(),
            parameters: call.input.clone(),
            reason: self.redactor().text(&ruling.reason),
            rule_name: ruling.rule.clone().unwrap_or_default(),
            claims: self.registry().claims(&call.tool).clone(),
        };
        let outcome = match catch_unwind(AssertUnwindSafe(|| handler.handle(&request))) {
            Ok(PermissionResult::Allow) => ApprovalDecision::Approved.into(),
            Ok(PermissionResult::Deny) => ApprovalDecision::Denied.into(),
            Ok(PermissionResult::Ask) => ApprovalOutcome::Unanswerable("the policy's handler asks in turn".to_owned()),
            Err(_) => ApprovalOutcome::Unanswerable("the policy's handler failed".to_owned()),
        };
        SettledQuestion { outcome, how: SettledBy::Asked }
    }

    /// Only an explicit yes goes on.
    pub(super) fn heed(
        &self,
        settlement: SettledQuestion,
        asked: Option<&Question>,
        admitted: &Admitted,
    ) -> Result<(), Refusal> {
        let SettledQuestion { outcome, how } = settlement;
        let said = match &outcome {
            ApprovalOutcome::Answered(answer) => answer.reason.as_deref(),
            ApprovalOutcome::Unanswerable(why) => Some(why.as_str()),
            ApprovalOutcome::TimedOut | ApprovalOutcome::Cancelled => None,
        };
        let decided = ApprovalDecided {
            outcome: outcome.kind(),
            by: self.redactor().text(&by(&how, &outcome)),
            approval: asked.map(|question| question.id.to_string()),
            source: source(&how),
            reason: said.map(|said| self.redactor().text(said)),
        };
        admitted.recorder.emit(EventKind::ApprovalDecided(decided)).map_err(unrecorded)?;
        let ruling = &admitted.assessment.ruling;
        let (kind, reason, hint) = match (&outcome, &how) {
            (outcome, _) if outcome.is_yes() => {
                if let Some(question) = asked {
                    self.approvals.recorded(question, outcome);
                }
                return Ok(());
            }
            (_, SettledBy::DeniedBefore) => (
                RefusalKind::Permission,
                "this request was denied twice in this session and is not asked about again".to_owned(),
                "do not try it again: find another way, or ask the person what they want",
            ),
            (ApprovalOutcome::Answered(answer), _) => {
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
            (ApprovalOutcome::TimedOut, _) => {
                (RefusalKind::Timeout, "nobody answered in time".to_owned(), "go on with something else")
            }
            (ApprovalOutcome::Cancelled, _) => {
                (RefusalKind::Cancelled, "the question was taken back".to_owned(), "go on with something else")
            }
            (ApprovalOutcome::Unanswerable(why), _) => (
                RefusalKind::HumanRequired,
                why.clone(),
                "ask a person to allow this, or find a way that does not need it",
            ),
        };
        Err(Refusal::new(kind, self.redactor().text(&reason)).hint(hint).rule(ruling.rule.clone()))
    }
}

/// Where the answer comes from, for the log.
fn source(how: &SettledBy) -> AnswerSource {
    match how {
        SettledBy::Session | SettledBy::DeniedBefore => AnswerSource::Earlier,
        SettledBy::Mode | SettledBy::Automatic | SettledBy::Grants(_) => AnswerSource::Settings,
        SettledBy::Asked | SettledBy::Store(_) => AnswerSource::Asked,
    }
}

/// Who decided, for the log.
fn by(how: &SettledBy, outcome: &ApprovalOutcome) -> String {
    match how {
        SettledBy::Mode => "mode".into(),
        SettledBy::Session => "session".into(),
        SettledBy::Automatic => "automatic".into(),
        SettledBy::Grants(grants) => {
            let ids: Vec<String> = grants.iter().map(ToString::to_string).collect();
            format!("grant {}", ids.join(", "))
        }
        SettledBy::DeniedBefore => "denied twice before".into(),
        SettledBy::Asked => match outcome {
            // whoever calls himself `session` or `grant 7` is told apart by the source
            ApprovalOutcome::Answered(answer) => answer.by.clone().unwrap_or_else(|| "approver".into()),
            _ => "nobody".into(),
        },
        SettledBy::Store(_) => "the store failed".into(),
    }
}
