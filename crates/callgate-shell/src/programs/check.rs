//! Checking tables: their form, their names, their examples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::custom;
use super::examples;
use super::form::{self, Shares, TableError, source_lines, unknown_style, used};
use super::lint;
use super::store::{Programs, bundled_shares, twice};
use super::table::Style;

/// Checks files, given as names and texts. Wrapped commands are looked up in them, and else in
/// the bundled tables. Returns what is wrong with them, and where.
pub fn check(files: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut programs = Programs::default();
    let mut all = Vec::new();
    let mut shares = Shares { further: Some(bundled_shares), ..Shares::default() };
    share_lines(files, &mut shares, &mut findings);
    for (origin, text) in files {
        let (tables, errors) = form::parse(text, origin, &mut shares);
        findings.extend(errors.iter().map(TableError::to_string));
        findings.extend(lint::long_lines(text).map(|(line, problem)| mistake(origin, line, problem)));
        for table in tables {
            findings.extend(lint::mistakes(&table).into_iter().map(|(line, problem)| mistake(origin, line, problem)));
            let table = Arc::new(table);
            for name in &table.names {
                match places.get(name) {
                    Some(other) => findings.push(twice(&table, name, other).to_string()),
                    None => {
                        places.insert(name.clone(), format!("{origin}:{}", table.line));
                        programs.added.insert(name.clone(), Arc::clone(&table));
                    }
                }
            }
            if let Style::Custom(reader) = &table.level.style
                && !custom::READERS.contains(&reader.as_str())
            {
                findings.push(mistake(&table.origin, table.line, unknown_style(&format!("custom {reader}"))));
            }
            all.push(table);
        }
    }
    for table in &all {
        for example in &table.examples {
            if let Some(difference) = examples::difference(&programs, example) {
                findings.push(format!("{}:{}: {difference}", table.origin, example.line));
            }
        }
    }
    findings
}

/// Gathers the lines that files share, and finds those that nothing uses. Files that only share are used by others.
fn share_lines(files: &[(&str, &str)], shares: &mut Shares, findings: &mut Vec<String>) {
    let mut places: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    let mut uses: BTreeSet<String> = BTreeSet::new();
    let mut tables = false;
    for (origin, text) in files {
        let mut own = Shares::default();
        let lines = source_lines(text);
        uses.extend(lines.iter().filter_map(used).map(str::to_owned));
        tables |= !own.take(lines).is_empty();
        for (name, lines) in own.own {
            let line = lines.first().map_or(1, |header| header.number);
            if let Some((other, line)) = places.insert(name.clone(), (origin, line)) {
                let problem = format!("duplicate shared lines `{name}`: the others are in {other}:{line}");
                findings.push(mistake(origin, line, problem));
            }
            shares.own.insert(name, lines);
        }
    }
    for (name, (origin, line)) in places.into_iter().filter(|(name, _)| tables && !uses.contains(name)) {
        findings.push(mistake(origin, line, format!("unused shared lines `{name}`")));
    }
}

fn mistake(origin: &str, line: usize, problem: String) -> String {
    TableError { origin: origin.to_owned(), line, column: 1, problem }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::store::bundled_files;

    #[test]
    fn the_bundled_tables_are_sound() {
        let findings = check(bundled_files());
        assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    }

    #[test]
    fn a_file_has_one_table_and_its_name() {
        for (origin, text) in bundled_files() {
            let (tables, _) = form::parse(text, origin, &mut bundled_shares().clone());
            let stem = origin.rsplit('/').next().and_then(|file| file.strip_suffix(".prog")).unwrap_or_default();
            let names: Vec<&str> = tables.iter().map(|table| table.names[0].as_str()).collect();
            let shares_only = tables.is_empty() && text.contains("share ");
            assert!(shares_only || names == [stem], "{origin} has tables of {names:?}");
        }
    }

    #[test]
    fn a_wrong_example_is_found() {
        let text = "frob: f\n  -o <write>\n  args: <read>*\n  example frob a -o b => read a\n  example frob a => read a\n  example frob a => write b\n";
        let lines = check(&[("test", text)]);
        assert_eq!(
            lines,
            [
                "test:4: example `frob a -o b`: has `write b` (frob: -o)",
                "test:6: example `frob a`: has `read a` (frob: operand 1); lacks `write b`",
            ]
        );
    }

    #[test]
    fn shared_lines_have_one_name_and_a_user() {
        let files =
            [("a", "share x: one\n  -a\nshare y: two\n  -b\n"), ("b", "share x: three\n  -c\nfrob: f\n  use x\n")];
        let lines = check(&files);
        assert_eq!(
            lines,
            ["b:1:1: duplicate shared lines `x`: the others are in a:1", "a:3:1: unused shared lines `y`"]
        );
        assert!(check(&files[..1]).is_empty(), "others may use them");
    }
}
