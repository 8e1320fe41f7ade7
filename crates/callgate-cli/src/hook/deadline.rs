//! The hook's own deadline, shorter than the agent's: an agent that has waited too long runs the tool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use callgate_hooks::{Agent, HookEvent};

/// Answers with a refusal when the time is over.
pub struct Deadline {
    shared: Arc<Shared>,
    until: Instant,
}

struct Shared {
    /// Somebody has the word: the answer, or the refusal when the time was over.
    spoken: AtomicBool,
    event: Mutex<Option<HookEvent>>,
}

impl Deadline {
    /// Starts to count.
    pub fn start(agent: &'static Agent, time: Duration) -> Self {
        let shared = Arc::new(Shared { spoken: AtomicBool::new(false), event: Mutex::new(None) });
        let until = Instant::now().checked_add(time).unwrap_or_else(Instant::now);
        let watching = Arc::clone(&shared);
        let watch = move || {
            std::thread::sleep(time);
            if !watching.spoken.swap(true, Ordering::SeqCst) {
                let event = *watching.event.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = super::say(&agent.refuse(event, "callgate could not decide in the time it had"));
                // A refusal of any dialect: those that print also end with 0, and others take 2.
                std::process::exit(agent.refuse(event, "-").code.into());
            }
        };
        // Without the thread there is no deadline, and a hook that may hang for ever must not begin.
        if std::thread::Builder::new().stack_size(64 << 10).spawn(watch).is_err() {
            let _ = super::say(&agent.refuse(None, "callgate could not start its clock"));
            std::process::exit(2);
        }
        Self { shared, until }
    }

    /// The refusal is written for this event from now on.
    pub fn of_event(&self, event: HookEvent) {
        *self.shared.event.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
    }

    /// How much time is left.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether the answer is in time. Then nobody else speaks any more.
    pub fn met(&self) -> bool {
        !self.shared.spoken.swap(true, Ordering::SeqCst)
    }
}

/// The refusal is being printed; the process ends with it.
pub fn wait_for_the_end() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}
