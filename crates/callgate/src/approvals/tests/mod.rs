//! Questions and answers, from every side.

mod channels;
mod coordinator;
mod desk;
mod prompts;
mod proposals;
mod rules;

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::key::ApprovalKey;
use callgate_model::clock::Timestamp;

pub(super) fn key(byte: u8) -> ApprovalKey {
    ApprovalKey::from([byte; 32])
}

/// A question that waits for ten seconds.
pub(super) fn question() -> Question {
    question_for(Duration::from_secs(10))
}

pub(super) fn question_for(time: Duration) -> Question {
    let now = Timestamp::now();
    Question {
        id: ApprovalId::random().unwrap(),
        tool: "shell_exec".into(),
        key: Some(key(1)),
        session: Some("s-1".into()),
        agent: Some("claude".into()),
        scope: None,
        directory: Some("/home/ada/project".into()),
        request: json!({"argv": ["pytest", "-q"]}),
        commands: vec![QuestionCommand { words: Some(vec!["pytest".into(), "-q".into()]), wrappers: vec![] }],
        effects: vec![QuestionEffect { action: "run".into(), target: "pytest".into(), marks: vec![], asked: true }],
        risk_level: "medium".into(),
        rule: Some("runs-code".into()),
        place: Some("standard.yaml:83".into()),
        reason: "this runs code of the project".into(),
        proposals: vec![],
        no_proposal: None,
        kept: false,
        answerable: Answerable::InAdvance,
        asked_at: now,
        deadline: now.after(time),
    }
}

/// Answers always the same, and counts how often it was asked.
#[derive(Default)]
pub(super) struct Always {
    pub answer: Option<Answer>,
    pub asked: std::sync::atomic::AtomicUsize,
}

impl Always {
    pub fn saying(answer: impl Into<Option<Answer>>) -> std::sync::Arc<Self> {
        std::sync::Arc::new(Always { answer: answer.into(), ..Always::default() })
    }

    pub fn times(&self) -> usize {
        self.asked.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl Approver for Always {
    fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.answer.clone().ok_or(AskError::Unavailable("nobody is there".into()))
    }
}
