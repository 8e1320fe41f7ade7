//! The gate in front of every tool call an AI agent makes.
//!
//! Hand it a call, get a verdict: a [permit](permit::Permit), which alone can run the call, once, or a
//! [refusal](refusal::Refusal) that says why not and what else to do.
//!
//! ```
//! use callgate::{call::Call, gate::Gate, gate::Verdict, policy::Policy};
//!
//! let gate = Gate::builder().policy(Policy::bundled("standard")?).build();
//! let call = Call::new("Bash", serde_json::json!({"command": "cat ~/.ssh/id_rsa"})).directory("/tmp");
//! match gate.check(call) {
//!     Ok(permit) => permit.run(|plan| Ok::<_, ()>(println!("runs {}", plan.call().tool))).unwrap(),
//!     Err(refusal) => println!("{refusal}"),
//! }
//! # Ok::<(), callgate::policy::PolicyError>(())
//! ```
//!
//! # The way a call takes
//!
//! [`call`] who calls what, read strictly by [`json`] → [`describe`] what it would do, as effects → [`path`] whether these
//! paths may be touched → [`policy`] allow, contain, ask or deny → [`approvals`] somebody is asked → [`permit`] the plan that
//! was judged, ready to run once. [`gate`] is all of it in one place, each step an [`event`], nothing secret in any of
//! them ([`redact`]).
//!
//! # What it does not do
//!
//! It decides. It does not run tools, and it does not hold to its word a tool that lies about what it does: that takes a
//! sandbox. A file can be swapped between judging and running, unless whoever runs the call opens the
//! [resolved paths](permit::Plan::places) and refuses links on the way.

pub mod approvals;
pub mod assess;
pub mod describe;
pub mod event;
pub mod gate;
pub mod grant;
pub mod key;
pub mod load;
pub mod monitor;
pub mod observe;
pub mod path;
pub mod permit;
pub mod policy;

pub use callgate_model::{call, clock, json, redact, refusal, risk, show};

pub use approvals::store;
pub use call::Call;
pub use callgate_model::decision::Decision;
pub use callgate_model::refusal::Refusal;
pub use gate::{Gate, SandboxSupport, Verdict};
pub use policy::Policy;
