//! What is known already, and what must be asked.

use std::sync::Arc;

use super::*;
use crate::grant::{Demand, Terms};
use crate::store::{MemoryStore, Store, StoreError};

struct Setting {
    store: Arc<MemoryStore>,
    channel: Arc<Always>,
    approvals: Approvals,
}

fn setting(answer: impl Into<Option<ApprovalDecision>>) -> Setting {
    let store = Arc::new(MemoryStore::new());
    let channel = Always::saying(answer.into().map(Answer::new));
    let approvals = Approvals::new(store.clone(), channel.clone());
    Setting { store, channel, approvals }
}

impl Setting {
    fn settle(&self, question: &Question) -> SettledQuestion {
        // every question is a new one
        let question = Question { id: ApprovalId::random().unwrap(), ..question.clone() };
        self.approvals.settle(&question, &[], &|_| false)
    }
}

#[test]
fn approved_for_session_skips_the_next_identical_request_only() {
    let setting = setting(ApprovalDecision::ApprovedForSession);
    let first = question();
    assert_eq!(setting.settle(&first).how, SettledBy::Asked);
    assert_eq!(setting.settle(&first).how, SettledBy::Session);
    assert!(setting.settle(&first).outcome.is_yes());
    assert_eq!(setting.channel.times(), 1);
    let other = Question { key: Some(key(2)), ..question() };
    assert_eq!(setting.settle(&other).how, SettledBy::Asked);
    let elsewhere = Question { session: Some("s-2".into()), ..question() };
    assert_eq!(setting.settle(&elsewhere).how, SettledBy::Asked, "sessions do not share decisions");
}

#[test]
fn approved_once_is_asked_again() {
    let setting = setting(ApprovalDecision::Approved);
    assert_eq!(setting.settle(&question()).how, SettledBy::Asked);
    assert_eq!(setting.settle(&question()).how, SettledBy::Asked);
    assert_eq!(setting.channel.times(), 2);
}

#[test]
fn what_has_no_key_or_no_session_is_never_remembered() {
    let setting = setting(ApprovalDecision::ApprovedForSession);
    for question in [Question { key: None, ..question() }, Question { session: None, ..question() }] {
        assert_eq!(setting.settle(&question).how, SettledBy::Asked);
        assert_eq!(setting.settle(&question).how, SettledBy::Asked);
    }
}

#[test]
fn the_same_request_denied_twice_is_not_asked_a_third_time() {
    let setting = setting(ApprovalDecision::Denied);
    assert_eq!(setting.settle(&question()).how, SettledBy::Asked);
    assert_eq!(setting.settle(&question()).how, SettledBy::Asked);
    let third = setting.settle(&question());
    assert_eq!((third.how, third.outcome.is_yes()), (SettledBy::DeniedBefore, false));
    assert_eq!(setting.channel.times(), 2);
    assert_eq!(setting.settle(&Question { key: Some(key(2)), ..question() }).how, SettledBy::Asked);
    setting.store.reset_session("s-1").unwrap();
    assert_eq!(setting.settle(&question()).how, SettledBy::Asked);
}

#[test]
fn blanket_auto_approve_says_yes_to_every_tool_of_its_session() {
    let setting = setting(ApprovalDecision::Denied);
    setting.approvals.set_auto_approve("s-1", true).unwrap();
    assert_eq!(setting.settle(&question()).how, SettledBy::Automatic);
    assert_eq!(setting.settle(&Question { tool: "Write".into(), ..question() }).how, SettledBy::Automatic);
    assert_eq!(setting.settle(&Question { session: Some("s-2".into()), ..question() }).how, SettledBy::Asked);
    assert_eq!(setting.settle(&Question { session: None, ..question() }).how, SettledBy::Asked);
    assert_eq!(setting.channel.times(), 2);
}

#[test]
fn auto_approve_of_single_tools_and_switching_both_off() {
    let setting = setting(ApprovalDecision::Denied);
    setting.approvals.auto_approve_tool("s-1", "Write").unwrap();
    setting.approvals.auto_approve_tool("s-1", "Edit").unwrap();
    let status = setting.approvals.auto_approve_status("s-1").unwrap();
    assert!(!status.blanket && status.tools.iter().eq(["Edit", "Write"]));
    let using = |tool: &str| setting.settle(&Question { tool: tool.into(), key: None, ..question() }).how;
    assert_eq!(using("Write"), SettledBy::Automatic);
    assert_eq!(using("write"), SettledBy::Asked);
    assert_eq!(using("mcp__evil__Write"), SettledBy::Asked);
    setting.approvals.set_auto_approve("s-1", true).unwrap();
    setting.approvals.disable_auto_approve("s-1").unwrap();
    assert_eq!(setting.approvals.auto_approve_status("s-1").unwrap(), Automatic::default());
    assert_eq!(using("Write"), SettledBy::Asked);
}

#[test]
fn the_modes_allow_and_deny_ask_nobody() {
    for (mode, yes) in [(Mode::Allow, true), (Mode::Deny, false)] {
        let setting = setting(ApprovalDecision::Approved);
        let settlement = setting.approvals.clone().mode(mode).settle(&question(), &[], &|_| true);
        assert_eq!((settlement.how, settlement.outcome.is_yes()), (SettledBy::Mode, yes));
        assert_eq!(setting.channel.times(), 0);
    }
}

#[test]
fn a_grant_answers_once_and_is_spent_only_where_somebody_would_be_asked() {
    let setting = setting(ApprovalDecision::Denied);
    setting.store.grant(&Terms::for_any("shell_exec"), Timestamp::now()).unwrap();
    let demand = Demand::new("shell_exec", ["pytest"]);
    let settle = |approvals: &Approvals| {
        let question = Question { key: None, ..question() };
        approvals.settle(&question, std::slice::from_ref(&demand), &|_| false).how
    };
    assert_eq!(settle(&setting.approvals.clone().mode(Mode::Deny)), SettledBy::Mode);
    setting.approvals.set_auto_approve("s-1", true).unwrap();
    assert_eq!(settle(&setting.approvals), SettledBy::Automatic);
    setting.approvals.disable_auto_approve("s-1").unwrap();
    assert!(matches!(settle(&setting.approvals), SettledBy::Grants(_)));
    assert_eq!(settle(&setting.approvals), SettledBy::Asked);
}

#[test]
fn an_approved_exec_session_covers_its_later_input_if_the_policy_says_so() {
    let setting = setting(ApprovalDecision::Denied);
    let exec = Exec { id: "7".into(), shell: false };
    setting.approvals.cover_exec("s-1", exec.clone()).unwrap();
    let typed = |covers: bool| {
        let question = Question { tool: "write_stdin".into(), key: None, ..question() };
        setting.approvals.settle(&question, &[], &|what| covers && *what == Remembered::Exec(exec.clone())).how
    };
    assert_eq!(typed(true), SettledBy::Session);
    assert_eq!(typed(false), SettledBy::Asked);
}

#[test]
fn abort_and_an_absent_approver_are_refusals() {
    assert_eq!(setting(ApprovalDecision::Abort).settle(&question()).outcome, ApprovalDecision::Abort.into());
    let nobody = setting(None).settle(&question());
    assert!(matches!(nobody.outcome, ApprovalOutcome::Unanswerable(_)));
}

#[test]
fn a_chosen_proposal_is_remembered_instead_of_the_exact_request() {
    let proposal = Proposal { extent: Extent::Subcommand("git".into(), "push".into()) };
    let store = Arc::new(MemoryStore::new());
    let answer = Answer { proposal: Some(0), ..Answer::new(ApprovalDecision::ApprovedForSession) };
    let approvals = Approvals::new(store.clone(), Always::saying(answer));
    let question = Question { proposals: vec![proposal.clone()], ..question() };
    approvals.settle(&question, &[], &|_| false);
    assert_eq!(store.remembered("s-1").unwrap(), [Remembered::Rule(proposal)]);
}

/// A store that cannot be used.
struct Broken;

impl Store for Broken {
    fn grant(&self, _: &Terms, _: Timestamp) -> Result<crate::grant::GrantId, StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn grants(&self) -> Result<Vec<crate::grant::Grant>, StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn revoke(&self, _: crate::grant::GrantId) -> Result<Option<crate::grant::Grant>, StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn consume(&self, _: &Demand, _: Timestamp) -> Result<Option<Vec<crate::grant::GrantId>>, StoreError> {
        Err(StoreError::Full)
    }
    fn open(&self, _: &Question) -> Result<(), StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn settle(&self, _: &ApprovalId, _: &ApprovalOutcome) -> Result<crate::store::SettleResult, StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn question(&self, _: &ApprovalId) -> Result<Option<crate::store::StoredQuestion>, StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn pending(&self) -> Result<Vec<Question>, StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn unreadable(&self, _: Timestamp) -> Result<Vec<crate::store::Unreadable>, StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn remembered(&self, _: &str) -> Result<Vec<Remembered>, StoreError> {
        Ok(vec![])
    }
    fn remember(&self, _: &str, _: &Remembered) -> Result<(), StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn denials(&self, _: &str, _: &ApprovalKey) -> Result<u32, StoreError> {
        Ok(0)
    }
    fn add_denial(&self, _: &str, _: &ApprovalKey) -> Result<u32, StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn automatic(&self, _: &str) -> Result<Automatic, StoreError> {
        Ok(Automatic::default())
    }
    fn set_automatic(&self, _: &str, _: &Automatic) -> Result<(), StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn reset_session(&self, _: &str) -> Result<(), StoreError> {
        Err(StoreError::ReadOnly)
    }
    fn sessions(&self) -> Result<Vec<String>, StoreError> {
        Ok(vec![])
    }
}

#[test]
fn a_store_that_cannot_be_used_is_a_refusal_with_its_reason() {
    let yes: Arc<dyn Approver> = Always::saying(Answer::new(ApprovalDecision::Approved));
    let approvals = Approvals::new(Arc::new(Broken), yes);
    let settlement = approvals.settle(&question(), &[], &|_| false);
    assert_eq!(settlement.how, SettledBy::Store(StoreError::ReadOnly));
    assert!(!settlement.outcome.is_yes());
    let demand = Demand::new("shell_exec", ["x"]);
    assert_eq!(
        approvals.settle(&question(), std::slice::from_ref(&demand), &|_| false).how,
        SettledBy::Store(StoreError::Full)
    );
}
