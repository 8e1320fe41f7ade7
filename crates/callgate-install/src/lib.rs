//! Putting callgate in front of agents: `callgate install`, `uninstall` and `status`.
//!
//! What is installed for which agent is one file each in `recipes/`. Files are edited in place: only what is put in changes,
//! taking it out leads back to the same bytes, and a kill at any moment leaves the old file or the new one.
//!
//! # What it does not do
//!
//! An agent that is started with its hooks switched off on the command line (`claude --bare`, `opencode --pure`) cannot be seen
//! in any file. Only a managed installation stands against that, where the agent has one.

pub mod canary;
pub mod change;
mod file;
mod json;
#[doc(hidden)]
pub mod jsonc;
mod mirror;
mod receipt;
mod recipes;
mod sighting;
mod status;
mod surroundings;
mod toml;
mod work;

pub use file::FileError;
pub use mirror::{HARD_DENIES, HardDeny};
pub use receipt::{Receipt, Written};
pub use recipes::{Plan, Recipe, Request, TIME_LIMIT, all, find};
pub use sighting::{CANARY_SESSION, Sighting};
pub use status::{Report, State, detect, report};
pub use surroundings::{Scope, Surroundings};
pub use work::{InstallError, Installer, Step, Steps};
