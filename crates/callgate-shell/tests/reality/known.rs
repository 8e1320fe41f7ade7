//! The list of differences that are accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use super::packages::Package;

/// One difference between a table and a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    pub program: String,
    pub option: String,
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} {}", self.program, self.option, self.what)
    }
}

/// What is accepted: for each package the version it was seen in and the differences, in words.
pub struct Known(BTreeMap<String, (String, BTreeSet<String>)>);

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reality/known.txt");

impl Known {
    /// Reads `known.txt`: a line `PACKAGE VERSION`, below it, indented, the differences.
    pub fn read() -> Result<Known, String> {
        Known::parse(&std::fs::read_to_string(FILE).map_err(|error| error.to_string())?)
    }

    fn parse(text: &str) -> Result<Known, String> {
        let mut known: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
        let mut current = String::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if let Some(difference) = line.strip_prefix("  ") {
                let (_, differences) = known.get_mut(&current).ok_or("a package comes first")?;
                differences.insert(difference.to_owned());
            } else {
                let (name, version) = line.split_once(' ').ok_or("a package has a version")?;
                known.insert(name.to_owned(), (version.to_owned(), BTreeSet::new()));
                name.clone_into(&mut current);
            }
        }
        Ok(Known(known))
    }

    /// How many differences are accepted.
    pub fn len(&self) -> usize {
        self.0.values().map(|(_, differences)| differences.len()).sum()
    }

    /// What to print, and what is wrong.
    pub fn judge(&self, found: &[(&Package, BTreeSet<Difference>)]) -> (Vec<String>, Vec<String>) {
        let (mut report, mut mistakes) = (Vec::new(), Vec::new());
        let none = BTreeSet::new();
        for (package, differences) in found {
            let seen: BTreeSet<String> = differences.iter().map(Difference::to_string).collect();
            let (recorded, accepted) =
                self.0.get(&package.name).map_or((None, &none), |(version, list)| (Some(version), list));
            if recorded == Some(&package.version) {
                mistakes.extend(seen.difference(accepted).map(|line| format!("new in {}: {line}", package.name)));
                mistakes
                    .extend(accepted.difference(&seen).map(|line| format!("no longer in {}: {line}", package.name)));
                report.extend(seen);
            } else {
                let version = &package.version;
                let recorded = recorded.map_or("none", String::as_str);
                report.push(format!("{} {version} (the list is about {recorded}):", package.name));
                report.extend(seen.difference(accepted).map(|line| format!("  {line}")));
            }
        }
        (report, mistakes)
    }

    /// The version of a package that the list is about.
    pub fn version(&self, package: &str) -> Option<&str> {
        self.0.get(package).map(|(version, _)| version.as_str())
    }

    /// Takes what was found; packages that this machine does not have stay as they are.
    pub fn record(&mut self, found: &[(&Package, BTreeSet<Difference>)]) {
        for (package, differences) in found {
            let lines = differences.iter().map(Difference::to_string).collect();
            self.0.insert(package.name.clone(), (package.version.clone(), lines));
        }
    }

    /// Writes the list anew.
    pub fn write(&self) -> std::io::Result<()> {
        let mut text = String::from(
            "# What tables and documentation differ in, package by package (tests/reality/main.rs says how it is used).\n\
             # Most lines are options left out on purpose, since their meaning is not certain: they make a call partial.\n",
        );
        for (name, (version, differences)) in &self.0 {
            text.push_str(&format!("{name} {version}\n"));
            for line in differences {
                text.push_str(&format!("  {line}\n"));
            }
        }
        std::fs::write(Path::new(FILE), text)
    }
}
