//! Checking tables: their form, their names, their examples.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::custom;
use super::examples;
use super::form::{self, Shares, TableError, TableProblem, source_lines};
use super::store::{Programs, bundled_shares, twice};
use super::table::Style;

/// Something that is wrong with a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Its form.
    Form(TableError),
    /// An example does not have the effects it says.
    Example {
        /// The file.
        origin: String,
        /// The line of the example.
        line: usize,
        /// What it has too much and too little.
        difference: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Form(error) => write!(formatter, "{error}"),
            Finding::Example { origin, line, difference } => write!(formatter, "{origin}:{line}: {difference}"),
        }
    }
}

/// Checks files, given as names and texts. Wrapped commands are looked up in them, and else in
/// the bundled tables.
pub fn check(files: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut programs = Programs::default();
    let mut all = Vec::new();
    let mut shares = Shares { further: Some(bundled_shares), ..Shares::default() };
    for (_, text) in files {
        shares.take(source_lines(text));
    }
    for (origin, text) in files {
        let (tables, errors) = form::parse(text, origin, &mut shares);
        findings.extend(errors.into_iter().map(Finding::Form));
        for table in tables {
            let table = Arc::new(table);
            for name in &table.names {
                match places.get(name) {
                    Some(other) => findings.push(Finding::Form(twice(&table, name, other.clone()))),
                    None => {
                        places.insert(name.clone(), format!("{origin}:{}", table.line));
                        programs.add(name, Arc::clone(&table));
                    }
                }
            }
            if let Style::Custom(reader) = &table.level.style
                && !custom::READERS.contains(&reader.as_str())
            {
                let problem = TableProblem::Style(format!("custom {reader}"));
                findings.push(Finding::Form(TableError {
                    origin: table.origin.clone(),
                    line: table.line,
                    column: 1,
                    problem,
                }));
            }
            all.push(table);
        }
    }
    for table in &all {
        for example in &table.examples {
            if let Some(difference) = examples::difference(&programs, example) {
                let origin = table.origin.clone();
                findings.push(Finding::Example { origin, line: example.line, difference });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::store::bundled_files;

    #[test]
    fn the_bundled_tables_are_sound() {
        let findings: Vec<String> = check(bundled_files()).iter().map(Finding::to_string).collect();
        assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    }

    #[test]
    fn a_wrong_example_is_found() {
        let text = "frob: f\n  -o <write>\n  args: <read>*\n  example frob a -o b => read a\n  example frob a => read a\n  example frob a => write b\n";
        let lines: Vec<String> = check(&[("test", text)]).iter().map(Finding::to_string).collect();
        assert_eq!(
            lines,
            [
                "test:4: example `frob a -o b`: has `write b` (frob: -o)",
                "test:6: example `frob a`: has `read a` (frob: operand 1); lacks `write b`",
            ]
        );
    }
}
