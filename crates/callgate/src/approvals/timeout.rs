//! How long a question waits.

use std::time::Duration;

use thiserror::Error;

/// The variable that says how many seconds a question waits.
pub const VARIABLE: &str = "CALLGATE_APPROVAL_TIMEOUT_SECONDS";
/// How long a question waits if nobody says otherwise.
pub const DEFAULT: Duration = Duration::from_secs(300);
/// The longest that a question may wait: a week.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A value of [`VARIABLE`] that says no time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{VARIABLE} is no number of seconds between 0 and {}", LONGEST.as_secs())]
pub struct BadTimeout;

/// How long to wait: what the call says, else the environment variable, else the policy, else [`DEFAULT`]; never longer than [`LONGEST`].
///
/// A variable that makes no sense is an error, not the default: whoever set it wanted something.
pub fn timeout(
    call: Option<Duration>,
    variable: Option<&str>,
    policy: Option<Duration>,
) -> Result<Duration, BadTimeout> {
    let variable = variable.map(seconds).transpose()?;
    Ok(call.or(variable).or(policy).unwrap_or(DEFAULT).min(LONGEST))
}

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
        assert_eq!(timeout(None, None, None), Ok(second(300)));
        assert_eq!(timeout(None, None, Some(second(60))), Ok(second(60)));
        assert_eq!(timeout(None, Some("5"), Some(second(60))), Ok(second(5)));
        assert_eq!(timeout(Some(second(1)), Some("5"), Some(second(60))), Ok(second(1)));
        assert_eq!(timeout(None, Some("0.5"), None), Ok(Duration::from_millis(500)));
        assert_eq!(timeout(Some(Duration::MAX), None, None), Ok(LONGEST));
    }

    #[test]
    fn a_variable_that_makes_no_sense_is_an_error() {
        for text in ["", "five", "-1", "NaN", "inf", "1e300", "5s"] {
            assert_eq!(timeout(None, Some(text), None), Err(BadTimeout), "{text}");
        }
    }
}
