//! Little languages: arguments that are programs.
//!
//! Each reader either accounts for everything the code may do, or reports that it cannot.

mod awk;
mod duckdb;
mod fzf;
mod jq;
mod mongo;
mod perl;
mod python;
mod python_paths;
mod redis;
mod script;
mod sed;
mod sql;
mod sql_functions;
mod sql_shells;
mod token;
mod vim;

pub use python::may_be_imported as python_may_import;

#[cfg(test)]
mod tests;

use self::sql::SqlDialect;
use super::collect::Collector;
use super::table::{Role, RoleKind};
use crate::effect::{Action, CodeOrigin, Host, Mark, Selection, Target, TreeNames};
use crate::patch::{self, PatchAction};
use crate::stream::Stream;
use crate::word::{Word, with_some_numbers};
use std::borrow::Cow;

/// Longer code is not read.
const MAX_CODE: usize = 256 * 1024;

const SHELL: Role = Role::plain(RoleKind::Shell);

/// What code does, as far as its reader can tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CodeEffects {
    reads: Vec<String>,
    writes: Vec<String>,
    deletes: Vec<String>,
    /// What is done to the names that exist below a directory and match a glob.
    trees: Vec<(Action, String, String)>,
    /// Shell source that it runs.
    shell: Vec<String>,
    /// Sends data or changes to its server.
    sends: bool,
    destroys: bool,
    rights: bool,
    /// What could not be understood.
    doubts: Vec<String>,
}

impl CodeEffects {
    /// The effects of unknown code.
    fn unknown(why: impl Into<String>) -> Self {
        CodeEffects { doubts: vec![why.into()], ..CodeEffects::default() }
    }

    fn doubt(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.doubts.contains(&why) {
            self.doubts.push(why);
        }
    }
}

/// Adds the effects of code in a language. Code that its reader does not understand is opaque.
pub(super) fn read(collector: &mut Collector<'_>, language: &str, code: &Word, because: &str) {
    let text = match code {
        Word::Known(text) => Some(Cow::Borrowed(text.as_str())),
        // An unknown number does not change what the rest of the code means.
        Word::Glob(pattern) if matches!(language, "sed" | "awk" | "jq") => with_some_numbers(pattern).map(Cow::Owned),
        _ => None,
    };
    let mut found = match text.filter(|text| text.len() <= MAX_CODE) {
        Some(text) => read_text(language, &text),
        None => CodeEffects::unknown(format!("the {language} code is unknown")),
    };
    let service = match language {
        "psql" => Some("<postgres>"),
        "mysql" => Some("<mysql>"),
        "mongo" => Some("<mongodb>"),
        "redis" => Some("<redis>"),
        "sql" => Some("<database>"),
        _ => None,
    };
    collector.code_destroys |= found.destroys;
    let trees = found.trees.iter().map(|(_, directory, _)| directory);
    if found.reads.iter().chain(&found.writes).chain(trees).any(|path| path.starts_with('~')) {
        found.doubt("`~` means the home directory to some programs and a file name to others");
    }
    collector.code_changes |= found.sends || found.destroys || !found.doubts.is_empty();
    for (action, paths) in [(Action::Read, found.reads), (Action::Write, found.writes), (Action::Delete, found.deletes)]
    {
        for path in paths {
            collector.path(action, &Word::Known(path), false, &[], because);
        }
    }
    for (action, directory, glob) in found.trees {
        let below = TreeNames::Existing(Selection { follows: true, only: vec![glob], ..Selection::default() });
        collector.path_with(action, &Word::Known(directory), true, below, &[], because);
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

/// The files that a patch for an agent's own patch tool names.
fn patch(text: &str) -> CodeEffects {
    let mut found = CodeEffects::default();
    match patch::read(text) {
        Ok(changes) => {
            for (action, path) in changes {
                match action {
                    PatchAction::Write => found.writes.push(path),
                    PatchAction::Delete => found.deletes.push(path),
                }
            }
        }
        Err(error) => found.doubt(error.to_string()),
    }
    found
}

fn read_text(language: &str, text: &str) -> CodeEffects {
    match language {
        "sed" => sed::read(text),
        "awk" => awk::read(text),
        "jq" => jq::read(text),
        "sql" => sql_shells::read(text, SqlDialect::Generic),
        "psql" => sql_shells::read(text, SqlDialect::Psql),
        "mysql" => sql_shells::read(text, SqlDialect::Mysql),
        "sqlite" => sql_shells::read(text, SqlDialect::Sqlite),
        "duckdb" => sql_shells::read(text, SqlDialect::Duckdb),
        "mongo" => mongo::read(text),
        "redis" => redis::read(text),
        "python" => python::read(text),
        "perl" => perl::read(text),
        "node" => script::read(text, &script::NODE),
        "ruby" => script::read(text, &script::RUBY),
        "php" => script::read(text, &script::PHP),
        "vim" => vim::read(text),
        "fzf" => fzf::read(text),
        "patch" => patch(text),
        _ => CodeEffects::unknown(format!("cannot read {language} code")),
    }
}
