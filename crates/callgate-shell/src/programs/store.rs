//! The tables there are: those compiled in, and those that a policy adds.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::form::{self, TableError, TableProblem};
use super::matching::matches_glob;
use super::table::Table;

/// The bundled files and the index that `build.rs` makes of them.
struct Bundle {
    /// File names and their texts.
    files: &'static [(&'static str, &'static str)],
    /// Where each table stands.
    blocks: &'static [Block],
    /// Program names, sorted, and the block of each.
    names: &'static [(&'static str, usize)],
}

/// Where a table stands in its file.
struct Block {
    file: usize,
    line: usize,
    start: usize,
    end: usize,
}

static BUNDLE: Bundle = include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// One cell for each bundled table, filled when it is first asked for.
static PARSED: OnceLock<Vec<OnceLock<Option<Table>>>> = OnceLock::new();

/// What is known of programs.
///
/// ```
/// use callgate_shell::programs::Programs;
///
/// let programs = Programs::bundled().extended("frob: frobnicate files\n  args: <update>+\n", "policy")?;
/// assert!(programs.get("frob").is_some());
/// # Ok::<(), callgate_shell::programs::TableError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Programs {
    added: BTreeMap<String, Arc<Table>>,
}

impl Programs {
    /// The tables that are compiled in.
    pub fn bundled() -> &'static Programs {
        static PROGRAMS: OnceLock<Programs> = OnceLock::new();
        PROGRAMS.get_or_init(Programs::default)
    }

    /// These tables and those of `text`, which win. `origin` names the text in messages.
    pub fn extended(&self, text: &str, origin: &str) -> Result<Programs, TableError> {
        let (tables, errors) = form::parse(text, origin, 1);
        if let Some(error) = errors.into_iter().next() {
            return Err(error);
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut extended = self.clone();
        for table in tables {
            let table = Arc::new(table);
            for name in &table.names {
                if let Some(line) = seen.insert(name.clone(), table.line) {
                    return Err(twice(&table, name, format!("line {line}")));
                }
                extended.added.insert(name.clone(), Arc::clone(&table));
            }
        }
        Ok(extended)
    }

    pub(super) fn add(&mut self, name: &str, table: Arc<Table>) {
        self.added.insert(name.to_owned(), table);
    }

    /// The names of all programs that have a table, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = BUNDLE.names.iter().map(|(name, _)| *name).collect();
        names.extend(self.added.keys().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The table of a program. A bundled table is parsed when it is first asked for; one that
    /// cannot be parsed counts as missing (the tests see to it that there is none).
    pub fn get(&self, name: &str) -> Option<&Table> {
        if let Some(table) = self.added.get(name) {
            return Some(table);
        }
        let pattern = |pattern: &str| pattern.contains('*') && matches_glob(pattern, name);
        if let Some((_, table)) = self.added.iter().find(|(other, _)| pattern(other)) {
            return Some(table);
        }
        let (_, index) = match BUNDLE.names.binary_search_by(|(other, _)| (*other).cmp(name)) {
            Ok(found) => BUNDLE.names.get(found)?,
            Err(_) => BUNDLE.names.iter().find(|(other, _)| pattern(other))?,
        };
        let cells = PARSED.get_or_init(|| BUNDLE.blocks.iter().map(|_| OnceLock::new()).collect());
        cells.get(*index)?.get_or_init(|| parse_block(BUNDLE.blocks.get(*index)?)).as_ref()
    }
}

fn parse_block(block: &Block) -> Option<Table> {
    let (file, text) = BUNDLE.files.get(block.file)?;
    let (mut tables, errors) = form::parse(text.get(block.start..block.end)?, file, block.line);
    if errors.is_empty() { tables.pop() } else { None }
}

/// The bundled files with their texts, for checks.
#[cfg(test)]
pub(super) fn bundled_files() -> &'static [(&'static str, &'static str)] {
    BUNDLE.files
}

/// The mistake of a name that has two tables.
pub(super) fn twice(table: &Table, name: &str, other: String) -> TableError {
    TableError {
        origin: table.origin.clone(),
        line: table.line,
        column: 1,
        problem: TableProblem::TwiceProgram { name: name.to_owned(), other },
    }
}
