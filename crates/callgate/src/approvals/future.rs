//! Waiting for an answer without holding up a thread of the caller's.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::{ApprovalId, Approvals, How, Outcome, Question, Settlement};

#[derive(Default)]
struct Slot {
    settlement: Option<Settlement>,
    waker: Option<Waker>,
}

/// The future of a settlement. Dropped before its time, it takes the question back.
pub struct Settling {
    approvals: Approvals,
    id: ApprovalId,
    slot: Arc<Mutex<Slot>>,
    done: bool,
}

impl Approvals {
    /// Puts a question to the channel and waits in a thread of its own.
    pub fn ask_async(&self, question: Question) -> Settling {
        let slot = Arc::new(Mutex::new(Slot::default()));
        let settling =
            Settling { approvals: self.clone(), id: question.id.clone(), slot: Arc::clone(&slot), done: false };
        let (approvals, there) = (self.clone(), Arc::clone(&slot));
        let asking = move || deliver(&there, approvals.ask(&question));
        if let Err(error) = std::thread::Builder::new().name("callgate-waiter".into()).spawn(asking) {
            let outcome = Outcome::Unanswerable(format!("nobody could be asked: {error}"));
            deliver(&slot, Settlement { outcome, how: How::Asked });
        }
        settling
    }
}

fn deliver(slot: &Mutex<Slot>, settlement: Settlement) {
    let waker = {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.settlement = Some(settlement);
        slot.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Future for Settling {
    type Output = Settlement;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Settlement> {
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

impl Drop for Settling {
    fn drop(&mut self) {
        if !self.done {
            // Nobody waits for the answer any more. If it is settled already, that is as good.
            let _ = self.approvals.coordinator().cancel(&self.id);
        }
    }
}
