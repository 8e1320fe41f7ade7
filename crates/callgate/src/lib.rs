//! The gate in front of every tool call an AI agent makes.
//!
//! Hand [`Gate::check`] a [`Call`]. It works out what the call would do, decides by a [`Policy`], asks an [`Approver`] where it
//! must, and returns a [`Verdict`]: a [`Permit`], which alone can run the call, once, or a [`Refusal`] that says why not and what
//! else to do.
//!
//! ```
//! use callgate::{Call, Gate, Policy};
//!
//! let gate = Gate::builder().policy(Policy::bundled("standard")?).build();
//! let call = Call::new("Bash", serde_json::json!({"command": "cat ~/.ssh/id_rsa"})).directory("/tmp");
//! match gate.check(call) {
//!     Ok(permit) => permit.run(|plan| Ok::<_, ()>(println!("runs {}", plan.call().tool))).unwrap(),
//!     Err(refusal) => println!("{refusal}"),
//! }
//! # Ok::<(), callgate::PolicyError>(())
//! ```
//!
//! # The way a call takes
//!
//! describe (what it would do, as effects) → observe (the file system and the repository, the one step with I/O) → judge
//! (boundary and policy) → approval → permit → run. [`Gate::assess`] is the first half: it asks nobody and records nothing.
//! Every step is an [`Event`], and nothing secret is in any of them.
//!
//! # What this crate adds to a policy
//!
//! - [`approvals`]: who is asked, and what is remembered of the answers
//! - [`grant`]: permission given beforehand, spent when it is used
//! - [`describe`]: how tools of your own are understood
//! - [`policy`]: policy files, layers, trust, lint
//!
//! # Features
//!
//! | feature | default | what it brings |
//! |---|---|---|
//! | `annotated-errors` | yes | mistakes in policy files are shown with the lines they stand in |
//! | `grants` | yes | confirmation gates; targets compared by Unicode's rules |
//! | `legacy` | yes | the sections of earlier policy formats (`safety:`, `sandbox:`, `run:`) |
//! | `look-around` | yes | look-around in the patterns of earlier policy formats |
//! | `conditions` | no | `when:` in rules, written in CEL |
//! | `webhook`, `webhook-tls` | no | questions to an HTTP endpoint |
//!
//! # What it does not do
//!
//! It decides. It does not run tools, and it cannot hold a tool to its word that lies about what it does: that takes a sandbox.
//! A file can be swapped between judging and running, unless the caller opens the [resolved paths](Plan::places) and refuses
//! symlinks on the way.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod approvals;
#[doc(hidden)]
pub mod assess;
pub mod describe;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "events have a time and an id")]
#[doc(hidden)]
pub mod event;
#[doc(hidden)]
pub mod gate;
#[doc(hidden)]
pub mod git;
pub mod grant;
#[doc(hidden)]
pub mod key;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "looks for contained calls that run")]
#[doc(hidden)]
pub mod live;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "finds policy files")]
#[doc(hidden)]
pub mod load;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "waits")]
mod monitor;
mod observe;
#[doc(hidden)]
pub mod path;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "measures how long a call ran")]
#[doc(hidden)]
pub mod permit;
pub mod policy;

#[doc(inline)]
pub use approvals::{Answer, ApprovalDecision, Approver, Question};
#[doc(inline)]
pub use assess::Assessment;
#[doc(inline)]
pub use callgate_model::call::{Call, Origin, Tool};
#[doc(inline)]
pub use callgate_model::decision::Decision;
#[doc(inline)]
pub use callgate_model::refusal::{Refusal, RefusalKind};
#[doc(inline)]
pub use event::{Event, EventSink};
#[doc(inline)]
pub use gate::{CheckOptions, Gate, SandboxSupport, Verdict};
#[doc(inline)]
pub use permit::{Permit, Plan};
#[doc(inline)]
pub use policy::{Policy, PolicyError};

#[doc(hidden)]
pub use approvals::store;
#[doc(hidden)]
pub use callgate_model::{call, clock, fence, json, redact, refusal, risk, show};

/// The README's examples are compiled with the crate's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
