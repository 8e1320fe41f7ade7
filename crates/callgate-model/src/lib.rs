//! The vocabulary that all callgate crates share.
//!
//! A [call] is [described](description) by its [effects](effect). Its paths are resolved to [places](place), a policy turns
//! effects into [decisions](decision), and a call that may not run gets a [refusal]. Texts for people and logs use one
//! [wording], are [redacted](redact), and have no [hidden characters](show).
//!
//! ```
//! use callgate_model::description::Description;
//! use callgate_model::effect::{Coverage, Effect};
//!
//! let description = Description::of_effects("unknown", vec![Effect::opaque("the tool has no descriptor")]);
//! assert_eq!(description.coverage, Coverage::Partial);
//! ```
//!
//! The crate does no I/O and contains no knowledge of programs, tools, agents or rules.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod debug;

pub mod call;
pub mod claims;
pub mod clock;
pub mod decision;
pub mod description;
pub mod digest;
pub mod effect;
pub mod fence;
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
