//! Timestamps as they are stored and shown.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since the beginning of 1970, UTC.
///
/// ```
/// use callgate_model::clock::Timestamp;
///
/// assert_eq!(Timestamp::from_milliseconds(1_700_000_000_000).to_string(), "2023-11-14T22:13:20Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Now, by the machine's clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "the only access to the clock; code that decides takes a Timestamp instead"
    )]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// From milliseconds since the beginning of 1970.
    pub fn from_milliseconds(milliseconds: i64) -> Self {
        Timestamp(milliseconds)
    }

    /// Milliseconds since the beginning of 1970.
    pub fn milliseconds(self) -> i64 {
        self.0
    }

    /// Adds a duration, up to the latest possible timestamp.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Timestamp(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time until `later`; zero if it has passed.
    pub fn until(self, later: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }

    /// The day, as in `2026-11-15`.
    pub fn day(self) -> String {
        self.to_string().chars().take(10).collect()
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Err(before) => Timestamp(
                i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX).checked_neg().unwrap_or(i64::MIN),
            ),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // the end of the year 9999
        const LATEST: u64 = 253_402_300_799_000;
        let milliseconds = u64::try_from(self.0).unwrap_or(0).min(LATEST);
        let time = UNIX_EPOCH + Duration::from_secs(milliseconds / 1000);
        fmt::Display::fmt(&humantime::format_rfc3339_seconds(time), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_at_the_edges_are_shown_without_a_panic() {
        assert_eq!(Timestamp::from_milliseconds(i64::MAX).to_string(), "9999-12-31T23:59:59Z");
        assert_eq!(Timestamp::from_milliseconds(i64::MIN).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp::from_milliseconds(0).day(), "1970-01-01");
        assert_eq!(Timestamp::from_milliseconds(i64::MAX).after(Duration::MAX), Timestamp::from_milliseconds(i64::MAX));
        assert_eq!(Timestamp::from_milliseconds(5).until(Timestamp::from_milliseconds(3)), Duration::ZERO);
    }
}
