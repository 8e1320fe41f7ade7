//! The `from` lines of tables: which package, in which version, was read of which kind of text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What was read, in the order in which a table names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Manual,
    Help,
    Completion,
}

const NAMES: [(Source, &str); 3] =
    [(Source::Manual, "manual"), (Source::Help, "--help"), (Source::Completion, "completion")];

/// By the file of a table, the packages that were compared with it, and what was read of each.
#[derive(Default)]
pub struct Sources(BTreeMap<String, BTreeMap<String, BTreeSet<Source>>>);

impl Sources {
    pub fn add(&mut self, table: &str, package: &str, source: Source) {
        self.0.entry(table.to_owned()).or_default().entry(package.to_owned()).or_default().insert(source);
    }

    /// Writes the lines behind the headers of the tables. What a line about the same package says already stays: another
    /// machine has other sources.
    pub fn write<'v>(&self, version: impl Fn(&str) -> Option<&'v str>) -> std::io::Result<()> {
        for (table, packages) in &self.0 {
            let text = std::fs::read_to_string(file(table))?;
            let mut lines = Vec::new();
            for (package, sources) in packages {
                let earlier = text.lines().filter_map(from_line).filter(|(other, _, _)| other == package);
                let earlier: Vec<&str> = earlier.flat_map(|(_, _, read)| read.split(", ")).collect();
                let read = NAMES.iter().filter(|(source, name)| sources.contains(source) || earlier.contains(name));
                let read: Vec<&str> = read.map(|(_, name)| *name).collect();
                let version = version(package).unwrap_or_default();
                lines.push(format!("  from {package} {version}: {}", read.join(", ")));
            }
            let ours = |line: &&str| from_line(line).is_some_and(|(package, _, _)| packages.contains_key(package));
            let kept: Vec<&str> = text.lines().filter(|line| !ours(line)).collect();
            let header = kept.iter().position(|line| !line.starts_with([' ', '#'])).unwrap_or_default();
            let continued = kept.iter().skip(header).take_while(|line| line.ends_with(" \\")).count();
            let (front, back) = kept.split_at(header + continued + 1);
            let lines: Vec<&str> =
                front.iter().copied().chain(lines.iter().map(String::as_str)).chain(back.iter().copied()).collect();
            std::fs::write(file(table), lines.join("\n") + "\n")?;
        }
        Ok(())
    }
}

/// The `from` lines of bundled tables that name another version than the one a package was compared in.
pub fn mistakes<'v>(version: impl Fn(&str) -> Option<&'v str>) -> Vec<String> {
    let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut mistakes = Vec::new();
    for path in below(&file("")).flat_map(|area| below(&area)) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for (package, found, _) in text.lines().filter_map(from_line) {
            if version(package).is_some_and(|compared| compared != found) {
                mistakes.push(format!("{}: {package} was not compared in version {found}", path.display()));
            }
        }
    }
    mistakes
}

/// The package, version and sources of a `from` line.
fn from_line(line: &str) -> Option<(&str, &str, &str)> {
    let (version, read) = line.strip_prefix("  from ")?.split_once(": ")?;
    let (package, version) = version.split_once(' ')?;
    Some((package, version, read))
}

fn file(table: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(table)
}
