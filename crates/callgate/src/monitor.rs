//! Shared state with waiting: a mutex and a condition variable as one thing.
//!
//! Everything here that threads share goes through a [`Monitor`], so that the same code runs on the standard library's
//! primitives and, in tests, on those of a model checker that tries every interleaving.

use std::fmt;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// State that several threads share.
pub trait Monitor<T>: Send + Sync {
    /// A monitor around a state.
    fn new(state: T) -> Self;

    /// Looks at or changes the state, alone.
    fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R;

    /// Wakes everyone who waits; they look at the state again.
    fn notify(&self);

    /// Waits until `ready` finds what it looks for, or the time is over: then `None`.
    fn wait<R>(&self, at_most: Duration, ready: impl FnMut(&mut T) -> Option<R>) -> Option<R>;
}

/// A family of monitors: which primitives are used.
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

impl<T> fmt::Debug for StandardMonitor<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StandardMonitor").finish_non_exhaustive()
    }
}

impl<T: Send> Monitor<T> for StandardMonitor<T> {
    fn new(state: T) -> Self {
        StandardMonitor { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        // What runs under the lock decides first and changes last, so a panic leaves the state as it was.
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
