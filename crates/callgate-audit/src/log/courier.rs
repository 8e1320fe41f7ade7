//! The thread that runs slow deliveries of checkpoints.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::checkpoint::SignedCheckpoint;
use crate::deliver::Delivery;
use crate::entry::DeliveryFailed;

/// How many checkpoints may wait to be sent.
const WAITING: usize = 64;
/// How often sending is tried.
const TRIES: u32 = 3;

type Parcel = (Arc<dyn Delivery>, SignedCheckpoint);

#[derive(Debug)]
pub(super) struct Courier {
    parcels: SyncSender<Parcel>,
    failures: Arc<Mutex<Vec<DeliveryFailed>>>,
    /// Only `finish` waits for it; the lock makes the courier shareable.
    done: Mutex<Receiver<()>>,
}

impl Courier {
    /// Starts the thread if any delivery needs it.
    pub(super) fn start(deliveries: &[Arc<dyn Delivery>]) -> Option<Self> {
        if deliveries.iter().all(|delivery| delivery.is_quick()) {
            return None;
        }
        let (parcels, receiver) = mpsc::sync_channel::<Parcel>(WAITING);
        let (finished, done) = mpsc::channel();
        let failures = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&failures);
        std::thread::Builder::new()
            .name("callgate-audit-courier".to_owned())
            .spawn(move || {
                for (delivery, checkpoint) in receiver {
                    if let Err(reason) = try_often(delivery.as_ref(), &checkpoint)
                        && let Ok(mut noted) = noted.lock()
                    {
                        noted.push(failed(delivery.as_ref(), &checkpoint, reason));
                    }
                }
                let _ = finished.send(());
            })
            .ok()?;
        Some(Courier { parcels, failures, done: Mutex::new(done) })
    }

    pub(super) fn send(&self, delivery: &Arc<dyn Delivery>, checkpoint: &SignedCheckpoint) -> Result<(), String> {
        self.parcels
            .try_send((Arc::clone(delivery), checkpoint.clone()))
            .map_err(|_| "the delivery queue is full".to_owned())
    }

    /// What failed since the last time this was asked.
    pub(super) fn failures(&self) -> Vec<DeliveryFailed> {
        self.failures.lock().map(|mut failures| std::mem::take(&mut *failures)).unwrap_or_default()
    }

    /// Waits for pending deliveries, at most `patience`.
    pub(super) fn finish(self, patience: Duration) -> Vec<DeliveryFailed> {
        let Courier { parcels, failures, done } = self;
        drop(parcels);
        if let Ok(done) = done.into_inner() {
            let _ = done.recv_timeout(patience);
        }
        failures.lock().map(|mut failures| std::mem::take(&mut *failures)).unwrap_or_default()
    }
}

fn try_often(delivery: &dyn Delivery, checkpoint: &SignedCheckpoint) -> Result<(), String> {
    let mut pause = Duration::from_millis(100);
    let mut result = delivery.deliver(checkpoint);
    for _ in 1..TRIES {
        if result.is_ok() {
            break;
        }
        std::thread::sleep(pause);
        pause = pause.saturating_mul(4);
        result = delivery.deliver(checkpoint);
    }
    result
}

pub(super) fn failed(delivery: &dyn Delivery, checkpoint: &SignedCheckpoint, reason: String) -> DeliveryFailed {
    DeliveryFailed { checkpoint: checkpoint.seq, to: delivery.name(), reason }
}
