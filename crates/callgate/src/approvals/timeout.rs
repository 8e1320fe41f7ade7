//! How long a question waits.
//!
//! The first of these counts: the caller ([`Patience`]), the environment variable, the policy,
//! [`DEFAULT`]. A caller who is himself waited for caps all of them. Nothing waits longer than [`LONGEST`].

use std::time::Duration;

use thiserror::Error;

/// The variable that says how many seconds a question waits.
pub const VARIABLE: &str = "CALLGATE_APPROVAL_TIMEOUT_SECONDS";
/// The default timeout.
pub const DEFAULT: Duration = Duration::from_secs(300);
/// The longest that a question may wait: a week.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long the caller of one check can wait for an answer.
///
/// ```
/// use std::time::Duration;
/// use callgate::approvals::Patience;
///
/// let long = Patience::of(Duration::from_secs(3600)); // instead of what policy and environment say
/// let hook = Patience::at_most(Duration::from_secs(55)); // or less, if they say less
/// # drop((long, hook));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Patience {
    of: Option<Duration>,
    at_most: Option<Duration>,
}

impl Patience {
    /// That long, whatever environment and policy say.
    pub fn of(duration: Duration) -> Self {
        Patience { of: Some(duration), at_most: None }
    }

    /// As long as environment and policy say, but no longer than that: for a caller who must answer in time.
    pub fn at_most(duration: Duration) -> Self {
        Patience { of: None, at_most: Some(duration) }
    }

    /// How long a question waits.
    ///
    /// An invalid variable is an error and not replaced by the default.
    pub fn timeout(self, variable: Option<&str>, policy: Option<Duration>) -> Result<Duration, BadTimeout> {
        let variable = variable.map(seconds).transpose()?;
        let wanted = self.of.or(variable).or(policy).unwrap_or(DEFAULT);
        Ok(wanted.min(self.at_most.unwrap_or(LONGEST)).min(LONGEST))
    }
}

/// An invalid value of [`VARIABLE`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{VARIABLE} must be a number of seconds between 0 and {}", LONGEST.as_secs())]
pub struct BadTimeout;

fn seconds(text: &str) -> Result<Duration, BadTimeout> {
    let seconds: f64 = text.trim().parse().map_err(|_| BadTimeout)?;
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| *duration <= LONGEST).ok_or(BadTimeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_counts() {
        let second = Duration::from_secs;
        let nobody = Patience::default();
        let cases = [
            (nobody, None, None, 300),
            (nobody, None, Some(60), 60),
            (nobody, Some("5"), Some(60), 5),
            (nobody, Some("90"), Some(60), 90),
            (Patience::of(second(1)), Some("5"), Some(60), 1),
            (Patience::of(second(900)), Some("5"), Some(60), 900),
            (Patience::of(Duration::MAX), None, None, LONGEST.as_secs()),
            (Patience::at_most(second(55)), None, None, 55),
            (Patience::at_most(second(55)), Some("5"), None, 5),
            (Patience::at_most(second(55)), None, Some(60), 55),
            (Patience::at_most(Duration::MAX), None, None, 300),
        ];
        for (patience, variable, policy, expected) in cases {
            let timeout = patience.timeout(variable, policy.map(second));
            assert_eq!(timeout, Ok(second(expected)), "{patience:?} {variable:?} {policy:?}");
        }
        assert_eq!(nobody.timeout(Some("0.5"), None), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn a_variable_that_makes_no_sense_is_an_error() {
        for text in ["", "five", "-1", "NaN", "inf", "1e300", "5s"] {
            assert_eq!(Patience::of(DEFAULT).timeout(Some(text), None), Err(BadTimeout), "{text}");
        }
    }
}
