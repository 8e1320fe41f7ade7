//! What SQL functions do.

use crate::lists::listed;

/// What calling a function means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calling {
    /// It only computes or reads.
    Looks,
    /// It reaches files, programs or other machines.
    Reaches,
    /// It may change something.
    Unknown,
}

/// Words that precede a parenthesis without being functions.
const SYNTAX: &str = include_str!("words/sql-syntax.txt");

const LOOKS: &str = include_str!("words/sql-looks.txt");

/// Functions that leave the database. `GETENV` reads an environment variable of the program.
const REACHES: &str = include_str!("words/sql-reaches.txt");

/// How the names of families of such functions start.
const REACHES_BY_PREFIX: &str =
    "PG_READ PG_LS PG_STAT_FILE PG_FILE PG_EXECUTE PG_LOGDIR PG_CURRENT_LOGFILE DBLINK XP_ SP_ READ_ PARQUET_ UTL_";

/// What calling this function (in upper case) means; `None`: it is not a function.
pub(super) fn calling(name: &str) -> Option<Calling> {
    if listed(SYNTAX, name) {
        return None;
    }
    if listed(LOOKS, name) || name.starts_with("PRAGMA_") || name.starts_with("PG_GET_") {
        return Some(Calling::Looks);
    }
    let reaches = listed(REACHES, name) || REACHES_BY_PREFIX.split(' ').any(|prefix| name.starts_with(prefix));
    Some(if reaches { Calling::Reaches } else { Calling::Unknown })
}
