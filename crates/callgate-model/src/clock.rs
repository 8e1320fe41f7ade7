//! Timestamps as they are stored and shown.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A point in time, UTC.
///
/// It is stored as milliseconds since the beginning of 1970, except in the audit log, which stores [`rfc3339`] text with
/// microseconds.
///
/// ```
/// use callgate_model::clock::Timestamp;
///
/// assert_eq!(Timestamp::from_milliseconds(1_700_000_000_000).to_string(), "2023-11-14T22:13:20Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "i64", into = "i64")]
pub struct Timestamp {
    microseconds: i64,
}

impl Timestamp {
    /// The current time, to the millisecond.
    pub fn now() -> Self {
        Timestamp::from_milliseconds(Timestamp::now_precise().milliseconds())
    }

    /// The current time, to the microsecond.
    #[expect(
        clippy::disallowed_methods,
        reason = "the only access to the clock; code that decides takes a Timestamp instead"
    )]
    pub fn now_precise() -> Self {
        SystemTime::now().into()
    }

    /// Converts from milliseconds since the beginning of 1970.
    pub fn from_milliseconds(milliseconds: i64) -> Self {
        Timestamp { microseconds: milliseconds.saturating_mul(1000) }
    }

    /// Milliseconds since the beginning of 1970.
    pub fn milliseconds(self) -> i64 {
        self.microseconds.div_euclid(1000)
    }

    /// Microseconds since the beginning of 1970.
    pub fn microseconds(self) -> i64 {
        self.microseconds
    }

    /// Reads a time as people write it: `2h` (ago), `2026-11-15`, `2026-11-15T20:00:00Z`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(ago) = humantime::parse_duration(text) {
            let ago = i64::try_from(ago.as_micros()).ok()?;
            return Some(Timestamp { microseconds: Timestamp::now().microseconds.checked_sub(ago)? });
        }
        let midnight = format!("{text}T00:00:00Z");
        humantime::parse_rfc3339(text).or_else(|_| humantime::parse_rfc3339(&midnight)).ok().map(Timestamp::from)
    }

    /// Later by `duration`; saturates at the end of time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let later = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Timestamp { microseconds: self.microseconds.saturating_add(later) }
    }

    /// The time until `later`; zero if it has passed.
    pub fn until(self, later: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(later.microseconds.saturating_sub(self.microseconds)).unwrap_or(0))
    }

    /// The day, as in `2026-11-15`.
    pub fn day(self) -> String {
        self.to_string().chars().take(10).collect()
    }

    /// The time with microseconds, as in `2026-11-15T20:00:00.123456Z`.
    pub fn precise(self) -> String {
        humantime::format_rfc3339_micros(self.displayable()).to_string()
    }

    /// The nearest time that a calendar with four-digit years from 1970 on can show.
    fn displayable(self) -> SystemTime {
        const LATEST: u64 = 253_402_300_799_000_000;
        UNIX_EPOCH + Duration::from_micros(u64::try_from(self.microseconds).unwrap_or(0).min(LATEST))
    }
}

impl From<i64> for Timestamp {
    fn from(milliseconds: i64) -> Self {
        Timestamp::from_milliseconds(milliseconds)
    }
}

impl From<Timestamp> for i64 {
    fn from(time: Timestamp) -> Self {
        time.milliseconds()
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let count = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let microseconds = match time.duration_since(UNIX_EPOCH) {
            Ok(since) => count(since),
            Err(before) => 0_i64.saturating_sub(count(before.duration())),
        };
        Timestamp { microseconds }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&humantime::format_rfc3339_seconds(self.displayable()), formatter)
    }
}

/// Stores a [`Timestamp`] as text with microseconds: `#[serde(with = "callgate_model::clock::rfc3339")]`.
pub mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::Timestamp;

    /// Writes the text.
    pub fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time.precise())
    }

    /// Reads the text.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = humantime::parse_rfc3339(&text).map_err(|error| D::Error::custom(format!("{error}: {text:?}")))?;
        Ok(time.into())
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

    #[test]
    fn times_are_read_as_people_write_them() {
        let parsed = |text: &str| Timestamp::parse(text).map(Timestamp::precise);
        assert_eq!(parsed("2026-11-15").as_deref(), Some("2026-11-15T00:00:00.000000Z"));
        assert_eq!(parsed("2026-11-15T20:00:00Z"), parsed("2026-11-15T20:00:00.000Z"));
        assert!(Timestamp::parse("2h").is_some_and(|time| time < Timestamp::now()));
        for wrong in ["", "yesterday", "2026-13-01"] {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_current_time_survives_storing_in_milliseconds() {
        let now = Timestamp::now();
        assert_eq!(serde_json::from_str::<Timestamp>(&serde_json::to_string(&now).unwrap()).unwrap(), now);
    }
}
