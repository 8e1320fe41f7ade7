//! The tables there are: those compiled in, and those that a policy adds.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::form::{self, Shares, TableError, source_lines};
use super::matching::matches_glob;
use super::names::hash;
use super::table::Table;

/// The bundled tables as `build.rs` packs them.
struct Bundle {
    /// All of them, one behind the other.
    text: &'static str,
    /// Where each table stands in the text.
    blocks: &'static [(u32, u32)],
    names: Names,
    /// Names with a `*`, sorted, and the table of each.
    patterns: &'static [(&'static str, u16)],
}

/// Program names, sorted.
struct Names {
    /// One behind the other.
    text: &'static str,
    /// Where each ends, and its table.
    ends: &'static [(u32, u16)],
    /// The places of names by their hash, each plus one; zero is free.
    slots: &'static [u16],
}

impl Names {
    fn get(&self, place: usize) -> Option<(&'static str, u16)> {
        let start = match place.checked_sub(1) {
            Some(before) => self.ends.get(before)?.0,
            None => 0,
        };
        let (end, block) = *self.ends.get(place)?;
        Some((self.text.get(bytes(start, end))?, block))
    }

    /// The table of a name.
    fn find(&self, wanted: &str) -> Option<u16> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash(wanted) & mask;
        // A slot is free somewhere, so this ends.
        loop {
            let (name, block) = self.get(usize::from(self.slots.get(at)?.checked_sub(1)?))?;
            if name == wanted {
                return Some(block);
            }
            at = at.wrapping_add(1) & mask;
        }
    }
}

fn bytes(start: u32, end: u32) -> Range<usize> {
    start as usize..end as usize
}

static BUNDLE: Bundle = include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// One cell for each bundled table, filled when it is first asked for.
static PARSED: [OnceLock<Option<Box<Table>>>; BUNDLE.blocks.len()] = [const { OnceLock::new() }; BUNDLE.blocks.len()];

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
    pub(super) added: BTreeMap<String, Arc<Table>>,
}

impl Programs {
    /// The tables that are compiled in.
    pub fn bundled() -> &'static Programs {
        static PROGRAMS: OnceLock<Programs> = OnceLock::new();
        PROGRAMS.get_or_init(Programs::default)
    }

    /// These tables and those of `text`, which win. `origin` names the text in messages.
    pub fn extended(&self, text: &str, origin: &str) -> Result<Programs, TableError> {
        let (tables, errors) =
            form::parse(text, origin, &mut Shares { further: Some(bundled_shares), ..Shares::default() });
        if let Some(error) = errors.into_iter().next() {
            return Err(error);
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut extended = self.clone();
        for table in tables {
            let table = Arc::new(Table { compared: true, ..table });
            for name in &table.names {
                if let Some(line) = seen.insert(name.clone(), table.line) {
                    return Err(twice(&table, name, &format!("line {line}")));
                }
                extended.added.insert(name.clone(), Arc::clone(&table));
            }
        }
        Ok(extended)
    }

    /// The names of all programs that have a table, sorted.
    pub fn names(&self) -> Vec<&str> {
        let bundled = (0..BUNDLE.names.ends.len()).filter_map(|place| BUNDLE.names.get(place));
        let mut names: Vec<&str> = bundled.map(|(name, _)| name).collect();
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
        let index = usize::from(match BUNDLE.names.find(name) {
            Some(found) => found,
            None => BUNDLE.patterns.iter().find(|(other, _)| pattern(other))?.1,
        });
        let read = || {
            let (start, end) = *BUNDLE.blocks.get(index)?;
            form::packed_table(BUNDLE.text.get(bytes(start, end))?).map(Box::new)
        };
        PARSED.get(index)?.get_or_init(read).as_deref()
    }
}

/// The lines that the bundled tables share, for other tables to use.
pub(super) fn bundled_shares() -> &'static Shares {
    static SHARES: OnceLock<Shares> = OnceLock::new();
    SHARES.get_or_init(|| {
        let mut shares = Shares::default();
        shares.take(source_lines(include_str!(concat!(env!("OUT_DIR"), "/shares.txt"))));
        shares
    })
}

/// The bundled files with their texts, for checks.
#[cfg(test)]
pub(super) fn bundled_files() -> &'static [(&'static str, &'static str)] {
    include!(concat!(env!("OUT_DIR"), "/sources.rs"))
}

/// The mistake of a name that has two tables.
pub(super) fn twice(table: &Table, name: &str, other: &str) -> TableError {
    TableError {
        origin: table.origin.clone(),
        line: table.line,
        column: 1,
        problem: format!("duplicate table for `{name}`: the other one is in {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_a_policy_use_what_bundled_ones_share() {
        let programs = Programs::bundled();
        let own = programs.extended("ours: a build\n  use docker-build\n", "policy").expect("a table");
        assert!(own.get("ours").is_some_and(|table| table.level.options.len() > 20));
        let error = programs.extended("ours: a build\n  use no-such-lines\n", "policy").expect_err("a mistake");
        assert!(error.to_string().starts_with("policy:2:3: unknown shared lines `no-such-lines`"), "{error}");
    }
}
