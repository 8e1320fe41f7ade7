//! What a shell command would do: its simple commands, their effects, and how sure that is.

pub mod effect;
pub mod environment;
pub mod evaluate;
pub mod programs;
pub mod stream;
pub mod syntax;
pub mod word;

pub use evaluate::{Analysis, Context, Doubt, Flags, SimpleCommand, analyze};
pub use syntax::{Dialect, Limits};
