//! On whose behalf the running code works: the task that an orchestrator has set.
//!
//! The scope belongs to a task, not to a thread. It is set for the length of a closure ([`in_scope`]) or of a future
//! ([`InScope::in_scope`]), which sets it around every poll, so that it follows the task across awaits and from thread to
//! thread and is never seen by another task that runs on the same thread meanwhile. There is deliberately no guard that could be held
//! across an await or forgotten. A new thread starts without a scope; [`carry`] hands it over.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Scope;

thread_local! {
    static CURRENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// The scope of the running task, if one was set.
///
/// ```
/// use callgate::grant::{current_scope, in_scope, Scope};
///
/// assert_eq!(current_scope(), None);
/// in_scope("task-a", || assert_eq!(current_scope(), Some(Scope::new("task-a"))));
/// assert_eq!(current_scope(), None);
/// ```
pub fn current_scope() -> Option<Scope> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Restores the previous scope, also when the closure panics.
struct Restore(Option<Scope>);

impl Drop for Restore {
    fn drop(&mut self) {
        let before = self.0.take();
        // A thread that is being torn down has no scope any more: nothing to restore.
        let _ = CURRENT.try_with(|current| current.replace(before));
    }
}

fn with(scope: Option<Scope>) -> Restore {
    Restore(CURRENT.try_with(|current| current.replace(scope)).ok().flatten())
}

/// Runs a closure in a scope.
pub fn in_scope<R>(scope: impl Into<Scope>, action: impl FnOnce() -> R) -> R {
    let _restore = with(Some(scope.into()));
    action()
}

/// Runs a closure without a scope, whatever the caller's is.
pub fn without_scope<R>(action: impl FnOnce() -> R) -> R {
    let _restore = with(None);
    action()
}

/// Wraps a closure so that it runs in the scope of now, wherever it runs: in a new thread, in a pool.
///
/// ```
/// use callgate::grant::{carry, current_scope, in_scope, Scope};
///
/// let thread = in_scope("task-a", || std::thread::spawn(carry(current_scope)));
/// assert_eq!(thread.join().unwrap(), Some(Scope::new("task-a")));
/// ```
pub fn carry<R>(action: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let scope = current_scope();
    move || {
        let _restore = with(scope);
        action()
    }
}

/// Futures that run in a scope.
pub trait InScope: Future + Sized {
    /// The same future, with the scope set whenever it runs.
    fn in_scope(self, scope: impl Into<Scope>) -> Scoped<Self> {
        Scoped::new(Some(scope.into()), self)
    }

    /// The same future in the scope of now, to be handed to an executor.
    fn in_current_scope(self) -> Scoped<Self> {
        Scoped::new(current_scope(), self)
    }
}

impl<F: Future> InScope for F {}

/// A future that runs in a scope.
pub struct Scoped<F> {
    scope: Option<Scope>,
    /// `None` only while it is being dropped.
    future: Option<Pin<Box<F>>>,
}

impl<F> Scoped<F> {
    fn new(scope: Option<Scope>, future: F) -> Self {
        Scoped { scope, future: Some(Box::pin(future)) }
    }
}

callgate_model::debug_fields!(<F> Scoped, scope);

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _restore = with(self.scope.clone());
        match &mut self.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Scoped<F> {
    /// Drops the future in its scope.
    fn drop(&mut self) {
        let _restore = with(self.scope.take());
        self.future = None;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::mpsc;
    use std::task::Waker;
    use std::thread;

    use super::*;

    fn name() -> Option<String> {
        current_scope().map(|scope| scope.as_str().to_owned())
    }

    /// A future that is pending once and says what scope it sees before and after.
    async fn sees() -> (Option<String>, Option<String>) {
        let before = name();
        let mut polled = false;
        poll_fn(|_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
        (before, name())
    }

    fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn two_tasks_on_one_thread_see_each_their_own_scope() {
        let mut a = Box::pin(sees().in_scope("a"));
        let mut b = Box::pin(sees().in_scope("b"));
        let mut none = Box::pin(sees());
        assert!(poll(&mut a).is_pending());
        assert_eq!(name(), None);
        assert!(poll(&mut b).is_pending());
        assert!(poll(&mut none).is_pending());
        assert_eq!(poll(&mut a), Poll::Ready((Some("a".into()), Some("a".into()))));
        assert_eq!(poll(&mut b), Poll::Ready((Some("b".into()), Some("b".into()))));
        assert_eq!(poll(&mut none), Poll::Ready((None, None)));
        assert_eq!(name(), None);
    }

    #[test]
    fn a_task_keeps_its_scope_when_it_moves_to_another_thread() {
        let mut task = Box::pin(sees().in_scope("a"));
        assert!(poll(&mut task).is_pending());
        let seen = thread::spawn(move || in_scope("other", || (poll(&mut task), name()))).join().unwrap();
        assert_eq!(seen, (Poll::Ready((Some("a".into()), Some("a".into()))), Some("other".into())));
    }

    #[test]
    fn a_new_thread_has_no_scope_unless_it_is_carried() {
        in_scope("a", || {
            assert_eq!(thread::spawn(name).join().unwrap(), None);
            assert_eq!(thread::spawn(carry(name)).join().unwrap(), Some("a".into()));
            let mut carried = Box::pin(sees().in_current_scope());
            assert!(poll(&mut carried).is_pending());
            assert_eq!(
                thread::spawn(move || poll(&mut carried)).join().unwrap(),
                Poll::Ready((Some("a".into()), Some("a".into())))
            );
        });
    }

    #[test]
    fn scopes_nest_and_a_panic_leaves_nothing_behind() {
        in_scope("outer", || {
            let panicked = std::panic::catch_unwind(|| in_scope("inner", || panic!("on purpose")));
            assert!(panicked.is_err());
            assert_eq!(name(), Some("outer".into()));
            without_scope(|| assert_eq!(name(), None));
        });
        assert_eq!(name(), None);
    }

    #[test]
    fn what_a_task_holds_is_dropped_in_its_scope() {
        struct Tell(mpsc::Sender<Option<String>>);
        impl Drop for Tell {
            fn drop(&mut self) {
                let _ = self.0.send(name());
            }
        }
        let (sender, receiver) = mpsc::channel();
        let held = Tell(sender);
        let task = async move {
            let _held = held;
            std::future::pending::<()>().await;
        };
        let mut task = Box::pin(task.in_scope("a"));
        assert!(poll(&mut task).is_pending());
        drop(task);
        assert_eq!(receiver.recv().unwrap(), Some("a".into()));
        assert_eq!(name(), None);
    }
}
