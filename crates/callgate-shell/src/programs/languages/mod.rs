//! Little languages: arguments that are programs.

use super::collect::Collector;
use crate::effect::CodeOrigin;
use crate::word::Word;

/// Reads code in a language. What is not understood is opaque.
pub(super) fn read(collector: &mut Collector<'_>, language: &str, _code: &Word, because: &str) {
    let program = collector.program.clone();
    collector.run(&program, CodeOrigin::Inline, because);
    collector.opaque(&format!("{language} code is not read"), because);
}
