//! The hook dialects of coding agents: a hook's payload becomes a call, and the gate's answer becomes the hook's output.
//!
//! Each agent is one file in `agents/`. None of them decides anything, and none of them reads files: bytes in, bytes out.
//!
//! ```
//! use callgate_hooks::{HookAnswer, HookDetails, HookInput};
//!
//! let agent = callgate_hooks::find("claude").expect("built in");
//! let payload = br#"{"session_id":"s","cwd":"/work","hook_event_name":"PreToolUse","tool_name":"Bash",
//!     "tool_input":{"command":"rm -rf /"},"tool_use_id":"toolu_1"}"#;
//! let request = agent.read(&HookInput::of(payload))?;
//! let HookDetails::Before(call) = &request.details else { panic!("an event before a tool runs") };
//! assert_eq!(call.tool.name, "Bash");
//!
//! let output = agent.write(request.event, Some(&HookAnswer::deny("deletes everything")));
//! assert!(output.stdout.contains(r#""permissionDecision":"deny""#));
//! # Ok::<(), callgate_hooks::PayloadError>(())
//! ```
//!
//! # Fail closed
//!
//! Most agents treat silence, a crash or an answer they cannot parse as a yes. So every writer here is total, an answer
//! that an agent cannot express becomes a deny, and a payload that cannot be read is refused with
//! [`HookOutput::refusal`], the one form that every agent treats as a no.
//!
//! # Limits
//!
//! This crate does not protect against an agent that never calls its hook, or that kills the hook before it has
//! answered: the program that runs the hook must answer before [`Agent::default_timeout`] ends.

pub mod acp;
mod agent;
mod agents;
mod answer;
mod error;
mod event;
mod fields;
pub mod permission_prompt;
mod reading;

pub use agent::{Agent, ContainedCalls};
pub use agents::{all, find};
pub use answer::{HookAnswer, HookOutput};
pub use error::PayloadError;
pub use event::{CallOutcome, CompletedCall, HookDetails, HookEvent, HookEventKind, HookInput, HookRequest};
