//! Compiled rules: lists of values of a fixed size, an index to find them, and matching.

pub(crate) mod command_text;
pub(crate) mod compile;
pub(crate) mod guard;
pub(crate) mod index;
pub(crate) mod judge;
pub(crate) mod matching;
pub(crate) mod path_list;
pub(crate) mod stored;
pub(crate) mod when;
