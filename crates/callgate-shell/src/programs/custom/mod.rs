//! Programs whose words follow no common style.

mod echo;

use super::Programs;
use super::collect::Collector;
use super::table::Table;
use crate::stream::Stream;
use crate::word::Word;

/// The readers there are.
pub(super) const READERS: [&str; 2] = ["echo", "printf"];

/// Reads the words of a program by the reader of this name. Leaves what comes out.
pub(super) fn read(
    reader: &str,
    _programs: &Programs,
    _table: &Table,
    words: &[Word],
    collector: &mut Collector<'_>,
) -> Stream {
    match reader {
        "echo" => echo::echo(words),
        "printf" => echo::printf(words),
        _ => {
            let why = format!("there is no reader {reader}");
            collector.opaque(&why, "its table");
            Stream::Unknown
        }
    }
}
