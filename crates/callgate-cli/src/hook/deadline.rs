//! The hook's own deadline. Shorter than the agent's, because agents run the tool when a hook times out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use callgate_hooks::{Agent, HookEvent};

/// Prints a refusal when the time is up.
pub struct Deadline {
    shared: Arc<Shared>,
    until: Instant,
}

struct Shared {
    /// Set by the first of the two to answer: the hook itself, or the refusal at the deadline.
    spoken: AtomicBool,
    event: Mutex<Option<HookEvent>>,
    /// Whether the payload is there.
    received: AtomicBool,
}

/// How long the payload may take to arrive. Agents write it at once; one that trickles in would keep the agent waiting.
const ARRIVAL: Duration = Duration::from_secs(10);

impl Deadline {
    /// Starts the timer.
    pub fn start(agent: &'static Agent, time: Duration) -> Self {
        let (spoken, received) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(Shared { spoken, event: Mutex::new(None), received });
        let until = Instant::now().checked_add(time).unwrap_or_else(Instant::now);
        let watching = Arc::clone(&shared);
        let watch = move || {
            let arrival = ARRIVAL.min(time);
            std::thread::sleep(arrival);
            let mut why = "the payload of this hook did not arrive in time";
            if watching.received.load(Ordering::SeqCst) {
                std::thread::sleep(time.saturating_sub(arrival));
                why = "callgate did not finish before the timeout of this hook";
            }
            if !watching.spoken.swap(true, Ordering::SeqCst) {
                let event = *watching.event.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = super::say(&agent.refuse(event, why));
                // A refusal of any dialect: those that print also end with 0, and others take 2.
                std::process::exit(agent.refuse(event, "-").code.into());
            }
        };
        // Without the thread there is no deadline, so refuse instead of risking a hang.
        if std::thread::Builder::new().stack_size(64 << 10).spawn(watch).is_err() {
            let _ = super::say(&agent.refuse(None, "callgate could not start its timer"));
            std::process::exit(2);
        }
        Self { shared, until }
    }

    /// The payload is there.
    pub fn received(&self) {
        self.shared.received.store(true, Ordering::SeqCst);
    }

    /// Sets the event that the refusal is written for.
    pub fn of_event(&self, event: HookEvent) {
        *self.shared.event.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
    }

    /// How much time is left.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether the answer is in time. If so, the timer stays silent.
    pub fn met(&self) -> bool {
        !self.shared.spoken.swap(true, Ordering::SeqCst)
    }
}

/// Waits while the timer prints its refusal and ends the process.
pub fn wait_for_the_end() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}
