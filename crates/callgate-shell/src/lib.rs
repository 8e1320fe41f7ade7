//! What a shell command would do: its simple commands, their effects, and how sure that is.
//!
//! A gate that matches the text of a command misses `c\at`, `$'\x63at'` and `{cat,.env}`, and stumbles over a commit message
//! that mentions `rm -rf`. This crate reads the command as bash would ([`syntax`]), follows variables, directories,
//! functions, loops, substitutions and wrappers ([`evaluate`]), asks a table what each program does with its words
//! ([`programs`]), and answers with effects ([`effect`]): list, read, write, delete, run, connect, send, privilege, and
//! `opaque` for what is not understood. It does no I/O.
//!
//! ```
//! use callgate_shell::effect::{Action, Coverage};
//! use callgate_shell::programs::Programs;
//! use callgate_shell::{Context, Dialect, Limits, analyze};
//!
//! let variables = Default::default();
//! let context = Context {
//!     directory: Some("/work"),
//!     home: Some("/home/me"),
//!     variables: &variables,
//!     programs: Programs::bundled(),
//!     dialect: Dialect::Bash,
//!     limits: Limits::default(),
//!     state: None,
//! };
//!
//! // Quotes, braces and variables are gone before a table is asked.
//! let analysis = analyze("f=notes; {cp,~/.ssh/id_rsa} \"$f\"", &context);
//! let copied = analysis.commands.last().unwrap();
//! assert_eq!(copied.words[1].known(), Some("/home/me/.ssh/id_rsa"));
//! assert!(copied.effects.iter().any(|effect| effect.action == Action::Read));
//!
//! // What is not certain is said.
//! let analysis = analyze("cp a b; $(cat todo)", &context);
//! assert_eq!(analysis.coverage, Coverage::Partial);
//! ```
//!
//! The parser can be used alone:
//!
//! ```
//! use callgate_shell::syntax::{Dialect, Limits, parse};
//!
//! let reading = parse("make && ./run 'a b' > log", Dialect::Bash, Limits::default());
//! assert!(reading.mistake.is_none());
//! assert_eq!(reading.script.items[0].rest.len(), 1);
//! ```
//!
//! # What it does not protect against
//!
//! - It believes its context: a wrong working directory, home or environment gives wrong paths.
//! - It believes its tables: a program that does more than its table says does so unnoticed.
//! - It does not look at files. What a script, a Makefile or a link stands for is for others to find out.
//! - Functions and aliases that the shell has from start-up files are not known here; those of earlier commands only if
//!   [`Context::state`] says them.
//! - A command that is stopped half-way leaves another state than [`Analysis::state`] says.
//! - `zsh` and `fish` are not read; what bash would reject is `opaque`, but text that both accept is read as bash does.
//! - Names that a program prints are taken to be one a line: a file name with a line break in it breaks that promise.

mod distinct;
pub mod environment;
pub mod evaluate;
pub mod programs;
pub mod risk;
mod secret_names;
pub mod stream;
pub mod syntax;
pub mod word;
mod work;

pub use callgate_model::effect;
pub use evaluate::{Analysis, Context, Doubt, Flags, ShellState, SimpleCommand, analyze, analyze_with_input};
pub use risk::Risk;
pub use syntax::{Dialect, Limits};
