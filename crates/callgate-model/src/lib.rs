//! The vocabulary of callgate.
//!
//! Every other crate speaks these words: a [call] is described by its [effects](effect), which a policy turns into
//! [decisions](decision); a call that may not run gets a [refusal]. What people and logs see of them is worded
//! [once](wording), [redacted](redact), and free of [hidden characters](show).
//!
//! ```
//! use callgate_model::description::Description;
//! use callgate_model::effect::{Coverage, Effect};
//!
//! let description = Description::of_effects("unknown", vec![Effect::opaque("the tool has no descriptor")]);
//! assert_eq!(description.coverage, Coverage::Partial);
//! ```
//!
//! The crate does no I/O and knows no program, tool, agent or rule.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod call;
pub mod claims;
pub mod clock;
pub mod decision;
pub mod description;
pub mod digest;
pub mod effect;
pub mod glob;
pub mod json;
pub mod lexical;
pub mod place;
pub mod quote;
pub mod redact;
pub mod refusal;
pub mod risk;
pub mod show;
pub mod word;
pub mod wording;
