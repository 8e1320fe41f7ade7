//! Waiting for an answer without holding up a thread of the caller's.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::approver::Guarded;
use super::channel::Elsewhere;
use super::desk::Asks;
use super::{ApprovalId, Approvals, Approver, Question, SettledQuestion};

#[derive(Default)]
struct Slot {
    settlement: Option<SettledQuestion>,
    waker: Option<Waker>,
}

/// The future of a settled question. Dropping it early cancels the question.
pub struct SettleFuture {
    approvals: Approvals,
    id: ApprovalId,
    slot: Arc<Mutex<Slot>>,
    /// What an approver that is awaited will say; `None` once it has said it, or if another one is asked.
    asking: Option<Guarded>,
    done: bool,
}

impl Approvals {
    /// Asks the approver. A separate thread waits for the first answer.
    pub fn ask_async(&self, question: Question) -> SettleFuture {
        let slot = Arc::new(Mutex::new(Slot::default()));
        let (waited_for, asking): (Arc<dyn Approver>, _) = match self.asks() {
            Asks::Waiting(approver) => (Arc::clone(approver), None),
            Asks::Awaited(approver) => {
                let (approver, question) = (Arc::clone(approver), question.clone());
                let answer = async move { approver.ask(&question).await };
                (Arc::new(Elsewhere), Some(Guarded(Box::pin(answer))))
            }
        };
        let id = question.id.clone();
        // Asked before anybody is awaited, so that an answer finds the question.
        match self.put(&question, &waited_for) {
            Ok(asked) => {
                let (approvals, there) = (self.clone(), Arc::clone(&slot));
                let waiting = move || {
                    deliver(&there, approvals.wait(&question, asked).unwrap_or_else(|refused| refused));
                };
                if let Err(error) = std::thread::Builder::new().name("callgate-waiter".into()).spawn(waiting) {
                    deliver(&slot, SettledQuestion::unanswerable(&format!("cannot ask: {error}")));
                }
            }
            Err(refused) => deliver(&slot, refused),
        }
        SettleFuture { approvals: self.clone(), id, slot, asking, done: false }
    }
}

fn deliver(slot: &Mutex<Slot>, settlement: SettledQuestion) {
    let waker = {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.settlement = Some(settlement);
        slot.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Future for SettleFuture {
    type Output = SettledQuestion;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<SettledQuestion> {
        if let Some(asking) = &mut self.asking
            && let Poll::Ready(said) = Pin::new(asking).poll(context)
        {
            self.asking = None;
            // The thread that waits sees it and delivers, as it does for every other answer.
            self.approvals.coordinator().take(&self.id, said);
        }
        let slot = Arc::clone(&self.slot);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.settlement.take() {
            Some(settlement) => {
                self.done = true;
                Poll::Ready(settlement)
            }
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for SettleFuture {
    fn drop(&mut self) {
        if !self.done {
            // The caller no longer waits. Fails if the question is already settled, which is fine.
            let _ = self.approvals.coordinator().cancel(&self.id);
        }
    }
}
