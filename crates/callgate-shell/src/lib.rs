//! What a shell command would do: its simple commands, their effects, and how certain that is.
//!
//! Matching the text of a command does not work: it misses `c\at`, `$'\x63at'` and `{cat,.env}`, and it stumbles over a commit
//! message that mentions `rm -rf`. This crate reads a command the way bash does and returns its effects: list, read, write,
//! delete, run, connect, send, privilege, and `opaque` for everything it does not understand.
//!
//! # Example
//!
//! ```
//! use callgate_shell::effect::{Action, Coverage};
//! use callgate_shell::programs::Programs;
//! use callgate_shell::{Dialect, Limits, ShellContext, analyze};
//!
//! let variables = Default::default();
//! let context = ShellContext {
//!     directory: Some("/work"),
//!     home: Some("/home/me"),
//!     variables: &variables,
//!     programs: Programs::bundled(),
//!     dialect: Dialect::Bash,
//!     limits: Limits::default(),
//!     state: None,
//! };
//!
//! // Quotes, braces and variables are expanded before a table is consulted.
//! let analysis = analyze("f=notes; {cp,~/.ssh/id_rsa} \"$f\"", &context);
//! let copy = analysis.commands.last().unwrap();
//! assert_eq!(copy.words[1].known(), Some("/home/me/.ssh/id_rsa"));
//! assert!(copy.effects.iter().any(|effect| effect.action == Action::Read));
//!
//! // Whatever is uncertain makes the analysis partial, and a doubt says why.
//! let analysis = analyze("cp a b; $(cat todo)", &context);
//! assert_eq!(analysis.coverage, Coverage::Partial);
//! assert_eq!(analysis.doubts[0].what, "the program name is unknown");
//!
//! let analysis = analyze("echo 'hello", &context);
//! assert_eq!(analysis.doubts[0].what, "cannot parse the command at line 1, column 6: unclosed single quote");
//! ```
//!
//! # How it works
//!
//! ```text
//! source ─► syntax ─► evaluate ─► programs ─► effects
//!           parse     expand      look up
//!                     words,      what each
//!                     follow      program does
//!                     the shell   with its words
//! ```
//!
//! 1. [`syntax`] parses bash and POSIX shell scripts. It never panics, its work is bounded, and it refuses constructs that shells
//!    read differently.
//! 2. `evaluate` walks the script as the shell would: it expands words, follows variables, directories, functions, loops,
//!    substitutions and pipes, and keeps for each word how much of it is certain ([`word::Word`]).
//! 3. [`programs`] knows what each program does with its words. The knowledge is in tables, one small text file for each program;
//!    readers for little languages (sed, awk, jq, SQL, one-liners of Python and others) look into code that is given as an argument.
//!    [`environment`] lists the variables that change what runs.
//!
//! A shell that an agent keeps from call to call has a [`ShellState`]: what one call leaves is where the next one starts.
//!
//! The crate does no I/O, which clippy enforces: everything it depends on is in the [`ShellContext`].
//!
//! # What it does not protect against
//!
//! - It believes its context: a wrong working directory, home directory or environment gives wrong paths.
//! - It believes its tables: if a program does more than its table says, nobody notices.
//! - It does not read files. What a script, a Makefile or a symlink leads to is for the caller to find out.
//! - It does not know functions and aliases from start-up files, and knows those of earlier commands only from
//!   [`ShellContext::state`].
//! - If a command is interrupted, the shell's state differs from [`Analysis::state`].
//! - It does not parse `zsh` or `fish`. With [`Dialect::Any`], what bash and zsh read differently is `opaque`; options and functions
//!   from a person's own start-up files are not known.
//! - It assumes that programs print one name per line. A line break in a file name breaks that assumption.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod cursor;
mod distinct;
pub mod environment;
mod evaluate;
mod lists;
pub mod patch;
pub mod programs;
mod secret_names;
pub mod stream;
pub mod syntax;
pub mod word;
mod work;

pub use callgate_model::effect;
pub use evaluate::{Analysis, Doubt, ShellContext, ShellState, SimpleCommand, analyze, analyze_with_input};
pub use syntax::{Dialect, Limits};
