//! Runs what callgate permits under the kernel's control.
//!
//! The [`Fence`](callgate_model::fence::Fence) of a permit says what a contained call may reach. The supervisor starts a stage, which
//! is the same program once more; the stage makes namespaces, puts a file system together in which nothing else is seen, becomes
//! the first process in it, and starts the call under Landlock and a filter of system calls. What changes files or connects
//! sockets is performed by that first process, which knows the names that nobody inside may change.

pub mod background;
mod broker;
mod bubblewrap;
mod channel;
mod choose;
mod denied;
mod environment;
mod filter;
mod first;
mod layout;
mod listening;
mod mounts;
mod names;
pub mod network;
mod order;
mod outside;
pub mod owner;
mod prepared;
mod probe;
mod program;
mod publish;
pub mod scripts;
pub mod seatbelt;
pub mod stage;
mod streams;
mod supervisor;
mod survey;
mod system;

pub use choose::{Enforced, choose, choose_with, run, support};
pub use denied::Denied;
pub use order::{Backend, LEFT};
pub use prepared::Prepared;
pub use probe::{Findings, Probe, probe, works};
pub use program::Program;
pub use publish::Port;
pub use supervisor::{Detached, Launch, Outcome, hold_signals, run_free};
pub use system::standard_output_was_closed;
