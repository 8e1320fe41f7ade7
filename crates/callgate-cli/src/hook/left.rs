//! Questions that were left to the agent's own prompt, and what became of them.
//!
//! No agent reports what its user answered, but what follows shows it: the tool ran, or the turn ended and it did not. Only events of
//! the same session about the same call count, with the agent's id of the call and the same input, and only in permission modes in
//! which the agent asks its user. In every other mode nobody answered, and nothing is learned.

use std::sync::Arc;

use callgate::approvals::channel::Nobody;
use callgate::approvals::{Answerable, ApprovalDecision, Approvals, OutcomeKind, RememberedBy};
use callgate::call::Call;
use callgate::gate::LeftQuestion;
use callgate::policy::{AgentAnswers, Policy};
use callgate_audit::{AuditSink, ObservedAnswer};
use callgate_hooks::HookRequest;
use callgate_store::SqliteStore;
use serde::{Deserialize, Serialize};

use super::arguments::HookArguments;
use super::session::{LEFT, Session, contents, identity};

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A question was left to the agent.
    Left(Box<Left>),
    /// The call of this question ran.
    Ran(String),
    /// The turn ended, and it had not run.
    NotRun(String),
}

/// A question that was left to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    /// The identity of the call, and a digest of its tool and input.
    call: String,
    contents: String,
    /// The id of the call in the log.
    logged: String,
    approval: String,
    tool: String,
    subagent: bool,
    /// Whether the agent asks its user and names the call, so that what follows is an answer.
    asked: bool,
    question: RememberedBy,
}

/// The lines of a session that can be read: what is lost is not learned from.
fn lines(session: &Session) -> Vec<Line> {
    let text = session.whole(LEFT).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn note(session: &Session, line: &Line) -> Result<(), String> {
    let text = serde_json::to_string(line).map_err(|error| error.to_string())?;
    session.note(LEFT, &format!("{text}\n")).map_err(|error| error.to_string())
}

/// Records that a question was left to the agent.
pub fn leave(
    arguments: &HookArguments,
    incoming: &HookRequest,
    session: &Session,
    call: &Call,
    left: &LeftQuestion,
) -> Result<(), String> {
    let asked = incoming.call_id.is_some() && arguments.agent.asks_its_user(incoming.mode.as_deref());
    let left = Left {
        call: identity(incoming, call),
        contents: contents(call),
        logged: left.call.clone(),
        approval: left.question.id.to_string(),
        tool: left.question.tool.clone(),
        subagent: incoming.subagent.is_some(),
        asked,
        question: left.question.remembered_by(),
    };
    note(session, &Line::Left(Box::new(left)))
}

/// Whether this very input was left to the agent's prompt, and neither ran nor was refused since: some agents tell of a call twice,
/// when it is about to run and when they ask.
pub fn is_open(session: &Session, call: &Call) -> bool {
    let (lines, contents) = (lines(session), contents(call));
    open(&lines).any(|left| left.contents == contents)
}

/// Whether anything was left to the agent's prompt that has neither run nor been refused.
pub fn anything_open(session: &Session) -> bool {
    open(&lines(session)).next().is_some()
}

/// The questions without an answer.
fn open(lines: &[Line]) -> impl Iterator<Item = &Left> {
    let settled: std::collections::HashSet<&str> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Ran(approval) | Line::NotRun(approval) => Some(approval.as_str()),
            Line::Left(_) => None,
        })
        .collect();
    lefts(lines).filter(move |left| !settled.contains(left.approval.as_str()))
}

fn lefts(lines: &[Line]) -> impl Iterator<Item = &Left> {
    lines.iter().filter_map(|line| match line {
        Line::Left(left) => Some(&**left),
        Line::Ran(_) | Line::NotRun(_) => None,
    })
}

/// Records and remembers what an event says about the questions of its session.
pub struct Learner<'a> {
    pub arguments: &'a HookArguments,
    pub incoming: &'a HookRequest,
    pub session: &'a Session,
    pub policy: &'a Policy,
    pub log: &'a AuditSink,
}

impl Learner<'_> {
    /// A tool has run: if its question was left to the agent, its user said yes.
    pub fn ran(&self, call: &Call) -> Result<(), String> {
        let lines = lines(self.session);
        let (identity, contents) = (identity(self.incoming, call), contents(call));
        // also one that seemed to be over: a user can type the next prompt while a tool runs
        let Some(left) = lefts(&lines).filter(|left| left.call == identity).last() else { return Ok(()) };
        if lines.contains(&Line::Ran(left.approval.clone())) {
            return Ok(());
        }
        note(self.session, &Line::Ran(left.approval.clone()))?;
        let (title, mode) = (self.arguments.agent.title(), self.incoming.mode.as_deref());
        let unknown = if !left.asked || !self.arguments.agent.asks_its_user(mode) {
            let mode = mode.map(|mode| format!(" in the mode `{mode}`")).unwrap_or_default();
            Some(format!("{title} ran it{mode}, and does not say whether anybody was asked"))
        } else if left.contents != contents {
            Some(format!("{title} ran it with another input than callgate asked about"))
        } else {
            None
        };
        if let Some(reason) = unknown {
            return self.record(left, OutcomeKind::Unanswerable, "nobody", &reason);
        }
        let remembered = self.policy.agent_answers() == AgentAnswers::Session
            && left.question.answerable != Answerable::ByAPerson
            && left.question.key.is_some();
        let decision = if remembered { ApprovalDecision::ApprovedForSession } else { ApprovalDecision::Approved };
        let reason = format!("{title} asked its user, and the tool ran");
        self.record(left, decision.into(), &self.user(), &reason)?;
        self.learn(left, decision)
    }

    /// The turn has ended: the user said no to every call that was left to the agent and has not run. Sub-agents may still wait.
    pub fn turn_ended(&self) -> Result<(), String> {
        let lines = lines(self.session);
        for left in open(&lines).filter(|left| left.asked && !left.subagent) {
            note(self.session, &Line::NotRun(left.approval.clone()))?;
            let reason = format!("{} asked its user, and the tool did not run", self.arguments.agent.title());
            self.record(left, OutcomeKind::Denied, &self.user(), &reason)?;
            self.learn(left, ApprovalDecision::Denied)?;
        }
        Ok(())
    }

    fn user(&self) -> String {
        format!("the user of {}", self.arguments.agent.name())
    }

    fn record(&self, left: &Left, outcome: OutcomeKind, by: &str, reason: &str) -> Result<(), String> {
        let answer = ObservedAnswer { approval: &left.approval, outcome, by, reason };
        let recorded = self.log.answered(&left.logged, &left.tool, &self.incoming.origin, &answer);
        recorded.map(|_| ()).map_err(|error| error.to_string())
    }

    /// After the log has it, so that nothing is remembered that nobody can look up.
    fn learn(&self, left: &Left, decision: ApprovalDecision) -> Result<(), String> {
        let approvals = Approvals::new(Arc::new(SqliteStore::of_user_when_needed()), Arc::new(Nobody));
        approvals.learn(&left.question, decision).map_err(|error| error.to_string())
    }
}
