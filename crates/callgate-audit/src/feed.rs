//! Events for programs: subscriptions with bounded queues that count what a slow reader loses.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use callgate::event::{Event, EventError, EventSink};

/// What a reader receives.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedItem<T> {
    /// The next event.
    Event(Arc<T>),
    /// This many events were dropped because the reader was too slow.
    Lost(u64),
}

/// Passes events to any number of readers. A slow reader never delays the gate.
///
/// ```
/// use callgate_audit::feed::{Feed, FeedItem};
///
/// let feed = Feed::new();
/// let reader = feed.subscribe(2);
/// for number in 1..=4 {
///     feed.publish(number);
/// }
/// let received: Vec<FeedItem<i32>> = std::iter::from_fn(|| reader.try_next()).collect();
/// assert_eq!(received, [FeedItem::Lost(2), FeedItem::Event(3.into()), FeedItem::Event(4.into())]);
/// ```
#[derive(Debug)]
pub struct Feed<T> {
    readers: Mutex<Vec<Weak<FeedQueue<T>>>>,
}

#[derive(Debug)]
struct FeedQueue<T> {
    state: Mutex<FeedState<T>>,
    arrived: Condvar,
    bound: usize,
}

#[derive(Debug)]
struct FeedState<T> {
    events: VecDeque<Arc<T>>,
    lost: u64,
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // nothing in here leaves a queue half changed
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Default for Feed<T> {
    fn default() -> Self {
        Feed::new()
    }
}

impl<T> Feed<T> {
    /// A feed without readers.
    pub fn new() -> Self {
        Feed { readers: Mutex::new(Vec::new()) }
    }

    /// Adds a reader for future events. Its queue holds at most `bound` events and drops the oldest.
    pub fn subscribe(&self, bound: usize) -> Subscription<T> {
        let state = Mutex::new(FeedState { events: VecDeque::new(), lost: 0, closed: false });
        let queue = Arc::new(FeedQueue { state, arrived: Condvar::new(), bound: bound.max(1) });
        lock(&self.readers).push(Arc::downgrade(&queue));
        Subscription { queue }
    }

    /// Passes an event to all readers without waiting for them.
    pub fn publish(&self, event: T) {
        let event = Arc::new(event);
        lock(&self.readers).retain(|reader| {
            let Some(queue) = reader.upgrade() else { return false };
            let mut waiting = lock(&queue.state);
            if waiting.events.len() >= queue.bound {
                waiting.events.pop_front();
                waiting.lost = waiting.lost.saturating_add(1);
            }
            waiting.events.push_back(Arc::clone(&event));
            queue.arrived.notify_one();
            true
        });
    }
}

impl<T> Drop for Feed<T> {
    fn drop(&mut self) {
        for queue in lock(&self.readers).iter().filter_map(Weak::upgrade) {
            lock(&queue.state).closed = true;
            queue.arrived.notify_all();
        }
    }
}

/// A feed can be given to a gate as it is.
impl EventSink for Feed<Event> {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        self.publish(event.clone());
        Ok(())
    }
}

/// One reader of a feed.
#[derive(Debug)]
pub struct Subscription<T> {
    queue: Arc<FeedQueue<T>>,
}

impl<T> Subscription<T> {
    /// The next item, if there is one. Losses come first, because they are older.
    pub fn try_next(&self) -> Option<FeedItem<T>> {
        take(&mut lock(&self.queue.state))
    }

    /// The next item; waits for it at most this long. `None` also when the feed is gone and nothing is left.
    pub fn next_within(&self, patience: Duration) -> Option<FeedItem<T>> {
        let deadline = Instant::now().checked_add(patience);
        let mut waiting = lock(&self.queue.state);
        loop {
            if let Some(item) = take(&mut waiting) {
                return Some(item);
            }
            let left = deadline
                .map_or(Duration::from_secs(3600), |deadline| deadline.saturating_duration_since(Instant::now()));
            if waiting.closed || left.is_zero() {
                return None;
            }
            waiting = self.queue.arrived.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether the feed is gone and nothing is left.
    pub fn is_over(&self) -> bool {
        let waiting = lock(&self.queue.state);
        waiting.closed && waiting.events.is_empty() && waiting.lost == 0
    }
}

fn take<T>(waiting: &mut FeedState<T>) -> Option<FeedItem<T>> {
    match std::mem::take(&mut waiting.lost) {
        0 => waiting.events.pop_front().map(FeedItem::Event),
        lost => Some(FeedItem::Lost(lost)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_received_or_counted_as_lost() {
        let feed = Arc::new(Feed::new());
        let readers: Vec<Subscription<u64>> = [1, 10, 100_000].map(|bound| feed.subscribe(bound)).into();
        std::thread::scope(|scope| {
            for reader in &readers {
                scope.spawn(move || {
                    let (mut seen, mut lost, mut last) = (0, 0, 0);
                    while !reader.is_over() {
                        match reader.next_within(Duration::from_secs(10)) {
                            Some(FeedItem::Event(number)) => {
                                // in order, and every gap was told before
                                assert_eq!(*number, seen + lost + 1, "after {last}");
                                last = *number;
                                seen += 1;
                            }
                            Some(FeedItem::Lost(count)) => lost += count,
                            None => {}
                        }
                    }
                    assert_eq!(seen + lost, 20_000);
                });
            }
            for number in 1..=20_000 {
                feed.publish(number);
            }
            drop(feed);
        });
    }

    #[test]
    fn a_reader_that_went_away_is_forgotten() {
        let feed = Feed::new();
        drop(feed.subscribe(5));
        feed.publish(1);
        assert!(lock(&feed.readers).is_empty());
        assert_eq!(feed.subscribe(5).next_within(Duration::from_millis(1)), None);
    }
}
