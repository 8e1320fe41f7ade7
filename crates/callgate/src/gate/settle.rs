//! From the decision "ask" to a yes or a refusal: uses answers that are known, prepares the question, and applies the answer.
//!
//! Nothing here waits. [`Gate::check`] and [`Gate::check_async`] differ only in how they wait for the answer to a
//! [pending](ApprovalState::Pending) question.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::question::demands;
use super::{AdmittedCall, Assessment, CheckOptions, Gate, unrecorded};
use crate::approvals::store::StoreError;
use crate::approvals::{
    Answerable, ApprovalDecision, ApprovalOutcome, AskedCall, Exec, NoProposal, Proposal, Question, Remembered,
    RuleBasedApprovalProvider, SettledBy, SettledQuestion, narrowest,
};
use crate::describe::is_interactive_shell;
use crate::event::{AnswerSource, ApprovalDecided, EventKind};
use crate::permit::Plan;
use crate::policy::{Decision, ExecInput, PermissionHandler, PermissionRequest, PermissionResult, Policy};
use callgate_model::call::Call;
use callgate_model::refusal::{Refusal, RefusalKind};

/// Whether an approval is needed for a call, and how far it is.
pub(super) enum ApprovalState {
    /// No approval is needed.
    NotNeeded,
    /// The answer is known without asking, or the policy's handler gave it.
    Known(SettledQuestion),
    /// Somebody must be asked. That they are asked is recorded.
    Pending(Box<Question>),
}

impl Gate {
    /// Looks for an answer that is known already, or prepares the question.
    pub(super) fn settle(
        &self,
        call: &Call,
        admitted: &AdmittedCall,
        options: &CheckOptions,
    ) -> Result<ApprovalState, Refusal> {
        if admitted.assessment.ruling.decision != Decision::Ask {
            return Ok(ApprovalState::NotNeeded);
        }
        if options.contained {
            let outcome = ApprovalDecision::Approved.into();
            return Ok(ApprovalState::Known(SettledQuestion { outcome, how: SettledBy::Mode }));
        }
        if let Some(handler) = self.assessor.policy().and_then(Policy::handler) {
            self.announce(admitted, None)?;
            return Ok(ApprovalState::Known(self.ask_handler(handler.as_ref(), call, admitted)));
        }
        let typed = self.typed_command(call, options)?;
        if typed.as_ref().is_some_and(|typed| typed.ruling.decision == Decision::Allow) {
            let outcome = ApprovalDecision::Approved.into();
            return Ok(ApprovalState::Known(SettledQuestion { outcome, how: SettledBy::Session }));
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
            return Ok(ApprovalState::Known(settlement));
        }
        let rules = self.assessor.policy().and_then(Policy::approval_rules);
        if let Some(answer) = rules.and_then(|rules| RuleBasedApprovalProvider::answer(rules, &question)) {
            let outcome = ApprovalOutcome::Answered(answer);
            return Ok(ApprovalState::Known(SettledQuestion { outcome, how: SettledBy::Rule }));
        }
        match self.proposals(call, assessment) {
            Ok(proposals) => question.proposals = proposals,
            Err(why) => question.no_proposal = Some(why.to_string()),
        }
        self.announce(admitted, Some(&question))?;
        Ok(ApprovalState::Pending(Box::new(question)))
    }

    /// Records the question before anybody sees it.
    fn announce(&self, admitted: &AdmittedCall, question: Option<&Question>) -> Result<(), Refusal> {
        let milliseconds = |question: &Question| u64::try_from(question.time().as_millis()).unwrap_or(u64::MAX);
        let event = EventKind::ApprovalRequested {
            reason: self.redactor().text(&admitted.assessment.ruling.reason),
            approval: question.map(|question| question.id.to_string()),
            timeout: question.map(milliseconds),
            key: question.and_then(|question| question.key.as_ref()).map(ToString::to_string),
            request: question.map(|question| self.redactor().anything(&question.request)),
        };
        admitted.recorder.emit(event).map_err(unrecorded)
    }

    fn exec_input(&self) -> ExecInput {
        self.assessor.policy().map(Policy::exec_input).unwrap_or_default()
    }

    /// Judges text typed into a running shell as a command, if the policy asks for it. `None` if that is not possible.
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
            // a running program cannot be moved into a sandbox
            Decision::Contain => Ok(None),
            Decision::Allow | Decision::Ask => Ok(Some(assessment)),
        }
    }

    /// Remembers that a permitted call started a program that takes input. The policy's `approvals: {exec_input: …}` says whether
    /// that covers text typed into it later.
    pub fn exec_started(&self, plan: &Plan, exec: impl Into<String>) -> Result<(), StoreError> {
        let Some(session) = &plan.call().origin.session else { return Ok(()) };
        let shell = is_interactive_shell(plan.description());
        self.approvals.cover_exec(session, Exec { id: exec.into(), shell })
    }

    /// The rules that would have allowed the call, narrowest first, or why there are none. Drops rules that contain a secret.
    pub fn proposals(&self, call: &Call, assessment: &Assessment) -> Result<Vec<Proposal>, NoProposal> {
        match assessment.answerable() {
            Answerable::ByAPerson => return Err(NoProposal::Doubt),
            Answerable::ForThisRequest => return Err(NoProposal::Boundary),
            Answerable::InAdvance => {}
        }
        let effects = assessment.effects_from(Decision::Ask);
        let asked = AskedCall { tool: &call.tool, description: &assessment.description, effects: &effects };
        let mut proposals = narrowest(&asked, &|proposal| self.would_pass(call, assessment, proposal))?;
        let words = self.redactor().of_words(&assessment.description);
        proposals.retain(|proposal| proposal.texts().iter().all(|text| self.shown(words.as_ref(), text) == *text));
        if proposals.is_empty() { Err(NoProposal::Secret) } else { Ok(proposals) }
    }

    /// Whether all layers would allow the call if the user's file had this rule too. No rule overrides the boundary.
    fn would_pass(&self, call: &Call, assessment: &Assessment, proposal: &Proposal) -> bool {
        let claims = self.registry().claims(&call.tool);
        proposal.as_policy().is_ok_and(|rule| self.assessor.would_pass_with(&rule, call, assessment, claims))
    }

    /// Asks the policy's own handler, which is code of the embedder and sees the unredacted arguments.
    fn ask_handler(&self, handler: &dyn PermissionHandler, call: &Call, admitted: &AdmittedCall) -> SettledQuestion {
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
            Ok(PermissionResult::Ask) => {
                ApprovalOutcome::Unanswerable("the policy's permission handler returned `ask`".to_owned())
            }
            Err(_) => ApprovalOutcome::Unanswerable("the policy's permission handler panicked".to_owned()),
        };
        SettledQuestion { outcome, how: SettledBy::Asked }
    }

    /// Applies an answer: only an explicit yes lets the call continue.
    pub(super) fn heed(
        &self,
        settlement: SettledQuestion,
        asked: Option<&Question>,
        admitted: &AdmittedCall,
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
        let remedy = match asked.map(Question::remedy) {
            Some(Ok(command)) => format!("your user can run: {command}"),
            Some(Err(why)) => format!("no rule can allow it: {why}"),
            None => "your user can allow this, or find a way that does not need it".to_owned(),
        };
        let (kind, reason, hint) = match (&outcome, &how) {
            (outcome, _) if outcome.is_yes() => {
                if let Some(question) = asked {
                    self.approvals.recorded(question, outcome);
                }
                return Ok(());
            }
            (_, SettledBy::DeniedBefore) => (
                RefusalKind::Permission,
                "this request was denied twice in this session; callgate does not ask again".to_owned(),
                "do not retry: find another way; your user can run: callgate session reset".to_owned(),
            ),
            (ApprovalOutcome::Answered(answer), _) => {
                let said = answer.reason.as_deref().unwrap_or(&ruling.reason);
                match answer.decision {
                    ApprovalDecision::Abort => (
                        RefusalKind::Cancelled,
                        format!("the approver stopped the run: {said}"),
                        "stop here".to_owned(),
                    ),
                    _ => (
                        RefusalKind::Permission,
                        format!("denied by the approver: {said}"),
                        "follow the reason given, or find a way that does not need this call".to_owned(),
                    ),
                }
            }
            (ApprovalOutcome::TimedOut, _) => (
                RefusalKind::Timeout,
                "approval timed out: nobody answered in time".to_owned(),
                format!("continue with something else; {remedy}"),
            ),
            (ApprovalOutcome::Cancelled, _) => (
                RefusalKind::Cancelled,
                "the approval request was cancelled".to_owned(),
                "continue with something else".to_owned(),
            ),
            (ApprovalOutcome::Unanswerable(why), _) => (RefusalKind::HumanRequired, why.clone(), remedy),
        };
        Err(Refusal::new(kind, self.redactor().text(&reason)).hint(hint).rule(ruling.rule.clone()))
    }
}

/// Where the answer comes from, for the log.
fn source(how: &SettledBy) -> AnswerSource {
    match how {
        SettledBy::Session | SettledBy::DeniedBefore => AnswerSource::Earlier,
        SettledBy::Mode | SettledBy::Automatic | SettledBy::Rule | SettledBy::Grants(_) => AnswerSource::Settings,
        SettledBy::Asked | SettledBy::Store(_) => AnswerSource::Asked,
    }
}

/// Who decided, for the log.
fn by(how: &SettledBy, outcome: &ApprovalOutcome) -> String {
    match how {
        SettledBy::Mode => "mode".into(),
        SettledBy::Session => "session".into(),
        SettledBy::Automatic => "automatic".into(),
        SettledBy::Rule => "rule".into(),
        SettledBy::Grants(grants) => {
            let ids: Vec<String> = grants.iter().map(ToString::to_string).collect();
            format!("grant {}", ids.join(", "))
        }
        SettledBy::DeniedBefore => "denied twice before".into(),
        SettledBy::Asked => match outcome {
            // an approver may be called `session` or `grant 7`; the source tells them apart
            ApprovalOutcome::Answered(answer) => answer.by.clone().unwrap_or_else(|| "approver".into()),
            _ => "nobody".into(),
        },
        SettledBy::Store(_) => "the store failed".into(),
    }
}
