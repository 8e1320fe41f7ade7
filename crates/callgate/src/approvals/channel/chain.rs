//! Several ways to ask as one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::{Approver, AskError, time_left};
use crate::approvals::approver::ask_guarded;
use crate::approvals::{Answer, ApprovalDecision, Question};
use callgate_model::clock::Timestamp;

/// How often it is looked whether a question still matters.
const LOOK: Duration = Duration::from_millis(100);

/// Asks all approvers at once; the first answer counts. Skips unavailable approvers; an invalid answer is a refusal.
pub struct FirstAnswer {
    channels: Vec<Arc<dyn Approver>>,
}

/// Asks all approvers at once and approves only if all of them do, and only as much as all of them do.
pub struct AllAgree {
    channels: Vec<Arc<dyn Approver>>,
}

impl FirstAnswer {
    /// Of these.
    pub fn new(channels: Vec<Arc<dyn Approver>>) -> Self {
        FirstAnswer { channels }
    }
}

impl AllAgree {
    /// Combines these approvers; an empty list refuses.
    pub fn new(channels: Vec<Arc<dyn Approver>>) -> Self {
        AllAgree { channels }
    }
}

/// Asks one approver after the other: the next one if one is unavailable, or has not answered in the time that it has. An invalid
/// answer is a refusal.
pub struct InOrder {
    channels: Vec<(Arc<dyn Approver>, Option<Duration>)>,
}

impl InOrder {
    /// These, each with the time after which the next one is asked.
    pub fn new(channels: Vec<(Arc<dyn Approver>, Option<Duration>)>) -> Self {
        InOrder { channels }
    }
}

impl Approver for InOrder {
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        let mut last = AskError::Unavailable("no approver is configured for this session".into());
        for (channel, limit) in &self.channels {
            let mut asked = question.clone();
            if let Some(limit) = limit {
                asked.deadline = asked.deadline.min(Timestamp::now().after(*limit));
            }
            match ask_guarded(channel.as_ref(), &asked, open) {
                Err(AskError::Closed) if !open() => return Err(AskError::Closed),
                Err(error @ (AskError::Closed | AskError::TimedOut | AskError::Unavailable(_))) => last = error,
                answered => return answered,
            }
            if time_left(question).is_zero() {
                return Err(AskError::TimedOut);
            }
        }
        // nobody further can answer: waiting would help nobody
        Err(match last {
            AskError::Closed => AskError::Unavailable("nobody answered".into()),
            other => other,
        })
    }
}

callgate_model::debug_fields!(InOrder);
callgate_model::debug_fields!(FirstAnswer);
callgate_model::debug_fields!(AllAgree);

type Reply = Result<Answer, AskError>;

/// Asks every channel in its own thread and passes the replies to `next` as they arrive, until `next` returns a result.
fn ask_all(
    channels: &[Arc<dyn Approver>],
    question: &Question,
    open: &dyn Fn() -> bool,
    mut next: impl FnMut(Reply) -> Option<Reply>,
) -> Option<Reply> {
    let (sender, receiver) = mpsc::channel();
    let wanted = Arc::new(AtomicBool::new(true));
    let mut outstanding = 0_usize;
    for channel in channels {
        let (channel, question) = (Arc::clone(channel), question.clone());
        let (sender, still_wanted) = (sender.clone(), Arc::clone(&wanted));
        let asking = move || {
            let reply = ask_guarded(channel.as_ref(), &question, &|| still_wanted.load(Ordering::Acquire));
            // the receiver is gone if the answer came too late
            let _ = sender.send(reply);
        };
        match std::thread::Builder::new().name("callgate-approver".into()).spawn(asking) {
            Ok(_) => outstanding = outstanding.saturating_add(1),
            Err(error) => {
                if let Some(result) = next(Err(AskError::Unavailable(error.to_string()))) {
                    wanted.store(false, Ordering::Release);
                    return Some(result);
                }
            }
        }
    }
    let result = loop {
        if outstanding == 0 {
            break None;
        }
        if !open() {
            break Some(Err(AskError::Closed));
        }
        let left = time_left(question);
        if left.is_zero() {
            break Some(Err(AskError::TimedOut));
        }
        match receiver.recv_timeout(left.min(LOOK)) {
            Ok(reply) => {
                outstanding = outstanding.saturating_sub(1);
                if let Some(result) = next(reply) {
                    break Some(result);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    wanted.store(false, Ordering::Release);
    result
}

impl Approver for FirstAnswer {
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Reply {
        let mut last = AskError::Unavailable("no approver is configured".into());
        let answered = ask_all(&self.channels, question, open, |reply| match reply {
            Err(error @ (AskError::Unavailable(_) | AskError::Closed | AskError::TimedOut)) => {
                // The question stays pending while one approver defers to others.
                if matches!(last, AskError::Unavailable(_)) {
                    last = error;
                }
                None
            }
            other => Some(other),
        });
        answered.unwrap_or(Err(last))
    }
}

impl Approver for AllAgree {
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Reply {
        let mut agreed: Vec<Answer> = Vec::new();
        let ended = ask_all(&self.channels, question, open, |reply| match reply {
            Ok(answer) if answer.decision.is_yes() => {
                agreed.push(answer);
                None
            }
            other => Some(other),
        });
        if let Some(refused) = ended {
            return refused;
        }
        if agreed.len() != self.channels.len() || agreed.is_empty() {
            return Err(AskError::Unavailable("not every approver answered".into()));
        }
        let for_session = agreed.iter().all(|answer| answer.decision == ApprovalDecision::ApprovedForSession);
        let same = agreed.windows(2).all(|pair| matches!(pair, [one, other] if one.proposal == other.proposal));
        let decision =
            if for_session && same { ApprovalDecision::ApprovedForSession } else { ApprovalDecision::Approved };
        let always = agreed.first().and_then(|answer| answer.always);
        let all_always = agreed.iter().all(|answer| answer.always == always);
        let joined = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join("; "));
        Ok(Answer {
            decision,
            reason: joined(agreed.iter().filter_map(|answer| answer.reason.clone()).collect()),
            by: joined(agreed.iter().filter_map(|answer| answer.by.clone()).collect()),
            proposal: agreed.first().and_then(|answer| answer.proposal).filter(|_| for_session && same),
            always: always.filter(|_| all_always),
        })
    }
}
