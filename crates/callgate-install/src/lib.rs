//! Installs callgate in front of coding agents: `callgate install`, `uninstall` and `status`.
//!
//! What is installed for each agent is in `recipes/`. Files are edited in place: only the added text changes, removing it
//! restores the same bytes, and a crash at any moment leaves the old file or the new one.
//!
//! ```no_run
//! use callgate_install::{CanaryExpectation, HARD_DENIES, HostEnvironment, InstallScope, Installer, find};
//!
//! let environment = HostEnvironment::of_process().expect("a home directory");
//! let installer = Installer {
//!     environment: &environment,
//!     program: "/usr/local/bin/callgate".as_ref(),
//!     scope: InstallScope::User,
//!     denies: HARD_DENIES,
//!     trust: false,
//!     ask: None,
//!     expected: CanaryExpectation::default(),
//! };
//! let report = installer.preview(find("claude").expect("known"))?;
//! for step in &report.files {
//!     print!("{}", step.diff());
//! }
//! # Ok::<(), callgate_install::InstallError>(())
//! ```
//!
//! # Limits
//!
//! If an agent is started with its hooks switched off on the command line (`claude --bare`, `opencode --pure`), no file
//! shows it. Only a managed installation prevents that, for agents that have one.

mod canary;
mod content;
mod environment;
mod error;
mod file;
mod hard_denies;
mod installer;
mod json;
mod receipt;
mod recipes;
mod settings;
mod sighting;
mod status;
mod toml;

pub use canary::{CanaryError, CanaryExpectation, HARMFUL, HARMLESS};
pub use environment::{HostEnvironment, InstallScope};
pub use error::EditError;
pub use file::FileError;
pub use hard_denies::{HARD_DENIES, HardDeny, holds_only_own_denies};
pub use installer::{FileStep, InstallError, InstallReport, Installer};
pub use receipt::InstallReceipt;
pub use recipes::{Recipe, all, find};
pub use settings::{SettingsNode, SyntaxError};
pub use sighting::{CANARY_SESSION, Sighting};
pub use status::{HookState, StatusReport, detect, report};
