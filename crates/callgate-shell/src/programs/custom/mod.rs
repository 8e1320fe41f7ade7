//! Programs whose words follow no common style.

mod echo;
mod env;
mod fd;
mod find;
mod find_names;
mod parallel;
mod placeholder;
mod shell;
mod xargs;

use super::collect::Collector;
use super::read::apply;
use super::scan::{Scan, scan_as};
use super::table::{Style, Table};
use crate::stream::Stream;
use crate::word::Word;

/// The readers there are.
pub(super) const READERS: [&str; 9] =
    ["echo", "env", "fd", "find", "other-shell", "parallel", "printf", "shell", "xargs"];

/// Reads the words of a program by the reader of this name. Leaves what comes out.
pub(super) fn read(reader: &str, table: &Table, words: &[Word], collector: &mut Collector<'_>) -> Stream {
    match reader {
        "echo" => echo::echo(words),
        "env" => env::read(table, words, collector),
        "fd" => fd::read(table, words, collector),
        "find" => find::read(table, words, collector),
        "other-shell" => shell::other(table, words, collector),
        "parallel" => parallel::read(table, words, collector),
        "printf" => echo::printf(words),
        "shell" => shell::read(table, words, collector),
        "xargs" => xargs::read(table, words, collector),
        _ => {
            let why = format!("there is no reader {reader}");
            collector.opaque(&why, "its table");
            Stream::Unknown
        }
    }
}

/// Scans words by a table in a common style and applies what it finds; leaves both what that is and what comes out.
fn front<'t>(
    style: &'t Style,
    table: &'t Table,
    words: &'t [Word],
    program: &'t str,
    collector: &mut Collector<'_>,
) -> (Scan<'t>, Stream) {
    let scan = scan_as(style, program, &table.level, words);
    let stdout = apply(&scan, collector);
    (scan, stdout)
}
