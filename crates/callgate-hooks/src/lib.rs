//! The dialects of coding agents' hooks: what an agent tells becomes a call, what the gate says becomes the agent's answer.
//!
//! Every agent is one file in `agents/`. None of them decides anything, and none of them reads files: bytes in, bytes out.
//!
//! ```
//! use callgate_hooks::{Answer, Event, Received};
//!
//! let agent = callgate_hooks::find("claude").expect("built in");
//! let payload = br#"{"session_id":"s","cwd":"/work","hook_event_name":"PreToolUse","tool_name":"Bash",
//!     "tool_input":{"command":"rm -rf /"},"tool_use_id":"toolu_1"}"#;
//! let incoming = agent.read(&Received::of(payload))?;
//! let Event::Before(call) = &incoming.event else { panic!("an event before a tool runs") };
//! assert_eq!(call.tool.name, "Bash");
//!
//! let output = agent.write(incoming.name, &Answer::deny("deletes everything"));
//! assert!(output.stdout.contains(r#""permissionDecision":"deny""#));
//! # Ok::<(), callgate_hooks::PayloadError>(())
//! ```
//!
//! # Never open
//!
//! Most agents take silence, a crash or an answer they cannot parse for a yes. So every writer here is total, an answer
//! that an agent cannot express becomes a deny, and a payload that is not understood is refused with [`Output::refusal`],
//! the one form that every agent takes for a no.
//!
//! # What it does not do
//!
//! It does not protect against an agent that never calls its hook, or that ends the hook before it has answered: whoever
//! runs the hook keeps a deadline shorter than [`Agent::patience`].

pub mod acp;
mod agent;
pub mod agents;
mod answer;
mod error;
mod event;
mod fields;
pub mod permission_prompt;
mod tool_events;

pub use agent::{Agent, Received};
pub use agents::{all, find};
pub use answer::{Answer, Output, Verdict};
pub use error::PayloadError;
pub use event::{After, Event, EventKind, EventName, Incoming, Outcome};
