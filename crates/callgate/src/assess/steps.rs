//! How long each step of an assessment took.

use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};

/// The duration of one step of an assessment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepTime {
    /// The step: `describe`, `observe` or `judge`.
    pub name: &'static str,
    /// How long it took.
    #[serde(serialize_with = "microseconds")]
    pub duration: Duration,
}

fn microseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64() * 1e6)
}

/// Measures consecutive steps. The times are shown to people and do not affect decisions.
pub(super) struct Stopwatch {
    steps: Vec<StepTime>,
    since: Instant,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Stopwatch { steps: Vec::with_capacity(3), since: Instant::now() }
    }

    pub(super) fn done(&mut self, name: &'static str) {
        let now = Instant::now();
        self.steps.push(StepTime { name, duration: now.duration_since(self.since) });
        self.since = now;
    }

    pub(super) fn finish(self) -> Vec<StepTime> {
        self.steps
    }
}
