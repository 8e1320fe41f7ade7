//! The sandbox from outside: what gets out of it, what still works in it, what its limits hold.
//!
//! Every attempt runs without the sandbox first, where it must do harm. `CALLGATE_CASES` selects cases by a part of their id or by
//! class, `CALLGATE_TEST_BINARY` names another build of the command, and `CALLGATE_KEEP` keeps the directories.

#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a suite says what is missing by failing, and its tables are its result"
)]

mod case;
mod compare;
mod debris;
mod escapes;
mod limits;
mod registries;
mod run;
mod work;
mod world;
