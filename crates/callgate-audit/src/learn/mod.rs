//! Learning from the log: judging recorded calls again, proposing rules, and showing what another policy would allow.

mod compare;
mod recorded;
mod replay;
mod suggest;

#[cfg(test)]
mod tests;

pub use compare::{Difference, DifferingCall, compare};
pub use recorded::RecordedCall;
pub use replay::{Replay, ReplayChange, ReplayChanges};
pub use suggest::{Suggestion, suggest};
