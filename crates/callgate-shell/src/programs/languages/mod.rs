//! Little languages: arguments that are programs.
//!
//! Each reader either accounts for everything the code may do, or says that it could not.

mod awk;
mod cursor;
mod fzf;
mod jq;
mod mongo;
mod perl;
mod python;
mod redis;
mod script;
mod sed;
mod sql;
mod sql_functions;
mod sql_shells;
mod vim;

pub use python::may_be_imported as python_may_import;

#[cfg(test)]
mod tests;

use super::collect::Collector;
use super::table::{Role, RoleKind};
use crate::effect::{Action, CodeOrigin, Host, Mark, Target};
use crate::stream::Stream;
use crate::word::{Word, with_some_numbers};
use std::borrow::Cow;

/// Longer code is not read.
const MAX_CODE: usize = 256 * 1024;

const SHELL: Role = Role::plain(RoleKind::Shell);

/// What code does, as far as its reader could tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Found {
    reads: Vec<String>,
    writes: Vec<String>,
    /// Shell source that it runs.
    shell: Vec<String>,
    /// Data or changes that it hands to its server.
    sends: bool,
    destroys: bool,
    rights: bool,
    /// What was not understood.
    doubts: Vec<String>,
}

impl Found {
    fn doubt(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.doubts.contains(&why) {
            self.doubts.push(why);
        }
    }
}

/// Reads code in a language. What is not understood is opaque.
pub(super) fn read(collector: &mut Collector<'_>, language: &str, code: &Word, because: &str) {
    let mut found = Found::default();
    let text = match code {
        Word::Known(text) => Some(Cow::Borrowed(text.as_str())),
        // Which number stands there makes no difference to what else the code says.
        Word::Glob(pattern) if matches!(language, "sed" | "awk" | "jq") => with_some_numbers(pattern).map(Cow::Owned),
        _ => None,
    };
    match text.filter(|text| text.len() <= MAX_CODE) {
        Some(text) => found = read_text(language, &text),
        None => found.doubt(format!("{language} code is not known")),
    }
    let service = match language {
        "psql" => Some("<postgres>"),
        "mysql" => Some("<mysql>"),
        "mongo" => Some("<mongodb>"),
        "redis" => Some("<redis>"),
        "sql" => Some("<database>"),
        _ => None,
    };
    collector.code_destroys |= found.destroys;
    if found.reads.iter().chain(&found.writes).any(|path| path.starts_with('~')) {
        found.doubt("`~` is the home directory to some programs and a name to others");
    }
    collector.code_changes |= found.sends || found.destroys || !found.doubts.is_empty();
    for path in &found.reads {
        collector.path(Action::Read, &Word::Known(path.clone()), false, &[], because);
    }
    for path in &found.writes {
        collector.path(Action::Write, &Word::Known(path.clone()), false, &[], because);
    }
    for source in found.shell {
        collector.shell(Word::Known(source), Vec::new(), &SHELL, Some(Stream::Unknown));
    }
    if let Some(service) = service.filter(|_| found.sends || found.destroys) {
        let host = Host { name: Some(service.to_owned()), shown: service.to_owned() };
        let marks: &[Mark] = if found.destroys { &[Mark::Destructive] } else { &[] };
        collector.push(Action::Send, Target::Host(host), marks, because);
    }
    if found.rights {
        collector.push(Action::Privilege, Target::Text("rights in a database".to_owned()), &[], because);
    }
    if !found.doubts.is_empty() {
        let program = collector.program.clone();
        collector.run(&program, CodeOrigin::Inline, because);
        for doubt in &found.doubts {
            collector.opaque(doubt, because);
        }
    }
}

/// Whether a word stands in a list of words separated by spaces.
fn listed(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|other| other == word)
}

fn read_text(language: &str, text: &str) -> Found {
    match language {
        "sed" => sed::read(text),
        "awk" => awk::read(text),
        "jq" => jq::read(text),
        "sql" => sql_shells::generic(text),
        "psql" => sql_shells::psql(text),
        "mysql" => sql_shells::mysql(text),
        "sqlite" => sql_shells::sqlite(text),
        "duckdb" => sql_shells::duckdb(text),
        "mongo" => mongo::read(text),
        "redis" => redis::read(text),
        "python" => python::read(text),
        "perl" => perl::read(text),
        "node" => script::node(text),
        "ruby" => script::ruby(text),
        "php" => script::php(text),
        "vim" => vim::read(text),
        "fzf" => fzf::read(text),
        _ => {
            let mut found = Found::default();
            found.doubt(format!("{language} code is not read"));
            found
        }
    }
}
