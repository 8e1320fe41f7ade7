//! Learning from the log: judges recorded calls again, proposes rules and compares policies.

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
