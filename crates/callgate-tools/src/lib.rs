//! The tools an agent needs, each behind callgate's gate.
//!
//! A [`Toolbox`] has tools that run programs, read, search and change files, and talk to a person. [`Toolbox::dispatch`] takes a call as a model
//! makes it, compares it with the tool's schema, asks the gate, which asks a person where it must, runs what may run, contained where the policy
//! says so, and returns a [`ToolResult`]. Nothing runs without a permit: a handler gets a [`Run`], which only the toolbox makes.
//!
//! ```
//! use callgate::{Gate, Policy};
//! use callgate_tools::{ToolCall, Toolbox};
//! use serde_json::json;
//!
//! let workspace = std::env::current_dir()?.canonicalize()?;
//! let gate = Gate::builder().policy(Policy::bundled("standard")?);
//! let toolbox = Toolbox::builder(gate, workspace).build();
//! let result = toolbox.dispatch(ToolCall::new("1", "file_read", json!({"path": "Cargo.toml"})));
//! assert!(result.ok && result.stdout.contains("[package]"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Tools of your own are registered with a [`ToolSpec`], a [`Handler`] and the descriptor by which the gate understands their calls.
//! [`Toolbox::events`] is the timeline of all calls. Programs are started by a [`helper`] process, which ends everything that they leave behind.
//!
//! # What it does not protect against
//!
//! A handler of your own can do anything: the gate judges what its descriptor says. Built-in tools open files as they were judged, without following
//! symlinks; programs that run free are as free as the policy lets them.

mod exec;
mod files;
pub mod helper;
mod human;
mod result;
mod run;
mod schema;
mod spec;
mod timeline;
mod toolbox;
mod tools;

pub use human::{Human, HumanQuestion, NoAnswer};
pub use result::{ErrorKind, ToolError, ToolResult};
pub use run::{Handler, Run};
pub use schema::SchemaError;
pub use spec::{Idempotency, ToolSpec};
pub use timeline::TimelineEvent;
pub use toolbox::{RegisterError, ToolCall, Toolbox, ToolboxBuilder};
pub use tools::specs as built_in;
