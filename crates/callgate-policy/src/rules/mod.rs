//! Compiled rules: lists of values of a fixed size, found by index, compared with a call.

pub(crate) mod compile;
pub(crate) mod index;
pub(crate) mod judge;
pub(crate) mod matching;
pub(crate) mod raw;
pub(crate) mod stored;
pub(crate) mod when;
