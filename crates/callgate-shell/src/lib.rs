//! What a shell command would do: its simple commands, their effects, and how sure that is.

pub mod effect;
pub mod programs;
pub mod stream;
pub mod syntax;
pub mod word;
