//! A mutex with a condition variable, for state that threads share and wait on.
//!
//! All shared state of this crate is in a [`Monitor`], so that the same code runs on the standard library's primitives and, in
//! tests, on those of a model checker that tries every interleaving.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// State that several threads share.
pub trait Monitor<T>: Send + Sync {
    /// Creates a monitor around a state.
    fn new(state: T) -> Self;

    /// Reads or changes the state exclusively.
    fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R;

    /// Wakes all waiting threads, which check the state again.
    fn notify(&self);

    /// Waits until `ready` returns a value; `None` after a timeout.
    fn wait<R>(&self, at_most: Duration, ready: impl FnMut(&mut T) -> Option<R>) -> Option<R>;
}

/// A family of monitors, by their synchronization primitives.
pub trait Monitors: 'static {
    /// The monitor of this family for a state.
    type Of<T: Send + 'static>: Monitor<T>;
}

/// The standard library's primitives.
#[derive(Debug, Clone, Copy)]
pub struct Standard;

impl Monitors for Standard {
    type Of<T: Send + 'static> = StandardMonitor<T>;
}

/// A [`Monitor`] on the standard library's primitives.
pub struct StandardMonitor<T> {
    state: Mutex<T>,
    changed: Condvar,
}

callgate_model::debug_fields!(<T> StandardMonitor);

impl<T: Send> Monitor<T> for StandardMonitor<T> {
    fn new(state: T) -> Self {
        StandardMonitor { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        // Actions change the state last, so a panic leaves it unchanged.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        action(&mut state)
    }

    fn notify(&self) {
        self.changed.notify_all();
    }

    fn wait<R>(&self, at_most: Duration, mut ready: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let begin = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = ready(&mut state) {
                return Some(found);
            }
            let left = at_most.checked_sub(begin.elapsed()).filter(|left| !left.is_zero())?;
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The primitives of the model checker.
#[cfg(test)]
pub(crate) mod shuttled {
    use std::time::Duration;

    use shuttle::sync::{Condvar, Mutex};

    use super::{Monitor, Monitors};

    pub(crate) struct Shuttled;

    impl Monitors for Shuttled {
        type Of<T: Send + 'static> = ShuttledMonitor<T>;
    }

    pub(crate) struct ShuttledMonitor<T> {
        state: Mutex<T>,
        changed: Condvar,
    }

    impl<T: Send> Monitor<T> for ShuttledMonitor<T> {
        fn new(state: T) -> Self {
            ShuttledMonitor { state: Mutex::new(state), changed: Condvar::new() }
        }

        fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
            action(&mut self.state.lock().unwrap())
        }

        fn notify(&self) {
            self.changed.notify_all();
        }

        /// No time passes in a model: a wait of no length looks once, any other waits until it is woken.
        fn wait<R>(&self, at_most: Duration, mut ready: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
            let mut state = self.state.lock().unwrap();
            loop {
                if let Some(found) = ready(&mut state) {
                    return Some(found);
                }
                if at_most.is_zero() {
                    return None;
                }
                state = self.changed.wait(state).unwrap();
            }
        }
    }
}
