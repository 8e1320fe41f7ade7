//! Checking tables: their form, their names, their examples.

use std::collections::BTreeMap;
use std::fmt;

use super::form::{self, TableError};
use super::store::twice;

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
            Finding::Example {
                origin,
                line,
                difference,
            } => write!(formatter, "{origin}:{line}: {difference}"),
        }
    }
}

/// Checks files, given as names and texts.
pub fn check(files: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for (origin, text) in files {
        let (tables, errors) = form::parse(text, origin, 1);
        findings.extend(errors.into_iter().map(Finding::Form));
        for table in &tables {
            for name in &table.names {
                if let Some(other) = places.insert(name.clone(), format!("{origin}:{}", table.line))
                {
                    findings.push(Finding::Form(twice(table, name, other)));
                }
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
        let findings: Vec<String> = check(bundled_files())
            .iter()
            .map(Finding::to_string)
            .collect();
        assert!(
            findings.is_empty(),
            "{} findings:\n{}",
            findings.len(),
            findings.join("\n")
        );
    }
}
