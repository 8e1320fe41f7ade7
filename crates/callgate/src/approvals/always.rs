//! "Always": a readable rule, with its date, at the top of the user's policy file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

/// The start of a new policy file.
const NEW_FILE: &str = "version: 1\nextends: standard\n\nrules:\n";

/// Why no rule was written. The file is as it was.
#[derive(Debug, Error)]
pub enum AlwaysError {
    /// The file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What went wrong.
        error: io::Error,
    },
    /// The rules stand in a form to which no line can be added.
    #[error("the rules of {0} are on one line; write one rule per line")]
    Form(PathBuf),
    /// The call would not pass with the rule.
    #[error("the rule would not allow the call: {0}")]
    Useless(String),
}

/// A policy text with a rule in front of its other rules, where the first match counts; `None` if its rules are written in one line.
///
/// ```
/// let text = "version: 1\nrules:\n  - name: old\n    action: ask\n";
/// let with = callgate::approvals::insert_rule(text, "- name: new\n  action: allow\n");
/// assert_eq!(
///     with.as_deref(),
///     Some("version: 1\nrules:\n  - name: new\n    action: allow\n  - name: old\n    action: ask\n")
/// );
/// ```
pub fn insert_rule(text: &str, rule: &str) -> Option<String> {
    let mut front = String::with_capacity(text.len().saturating_add(rule.len()));
    let mut lines = text.split_inclusive('\n');
    for line in lines.by_ref() {
        let Some(rest) = line.strip_prefix("rules:") else {
            front.push_str(line);
            continue;
        };
        let value = rest.split('#').next().unwrap_or_default().trim();
        if !matches!(value, "" | "[]" | "~" | "null") {
            return None;
        }
        let behind: String = lines.collect();
        if value.is_empty() {
            front.push_str(line.trim_end())
        } else {
            front.push_str("rules:")
        }
        front.push('\n');
        front.push_str(&indented(rule, indentation(&behind)));
        front.push_str(&behind);
        return Some(front);
    }
    if !front.is_empty() && !front.ends_with('\n') {
        front.push('\n');
    }
    front.push_str("\nrules:\n");
    front.push_str(&indented(rule, 2));
    Some(front)
}

/// A policy text without the rule of this name, which stands on lines of its own; `None` if there is no such rule.
///
/// ```
/// let text = "rules:\n  - name: \"new\"\n    action: allow\n  # old\n  - name: old\n    action: ask\n";
/// let without = callgate::approvals::remove_rule(text, "new");
/// assert_eq!(without.as_deref(), Some("rules:\n  # old\n  - name: old\n    action: ask\n"));
/// ```
pub fn remove_rule(text: &str, name: &str) -> Option<String> {
    let spaces = |line: &str| line.len().saturating_sub(line.trim_start().len());
    let names = |line: &str| {
        let value = line.trim().strip_prefix("- name:")?.trim();
        Some(value.trim_matches(['"', '\'']) == name)
    };
    let mut without = String::with_capacity(text.len());
    let mut removing: Option<usize> = None;
    let mut removed = false;
    for line in text.split_inclusive('\n') {
        match removing {
            None if !removed && names(line) == Some(true) => (removing, removed) = (Some(spaces(line)), true),
            Some(indentation) if line.trim().is_empty() || spaces(line) > indentation => {}
            _ => {
                removing = None;
                without.push_str(line);
            }
        }
    }
    removed.then_some(without)
}

/// The indentation of the first list item.
fn indentation(behind: &str) -> usize {
    behind
        .lines()
        .find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .filter(|line| line.trim_start().starts_with("- "))
        .map_or(2, |line| line.len().saturating_sub(line.trim_start().len()))
}

fn indented(rule: &str, spaces: usize) -> String {
    rule.lines().map(|line| format!("{}{line}\n", " ".repeat(spaces))).collect()
}

/// Whether a file with a rule more says that the call would pass, or why not.
type Check<'a> = &'a dyn Fn(&Path) -> Result<(), String>;

/// Adds a rule to a policy file and creates the file if needed. Before it replaces the file atomically, it calls `check` with the
/// path of the new file; `check` loads it in place of the old one and returns why the call would not pass.
/// A lock serializes concurrent writers.
pub fn add_rule(path: &Path, rule: &str, check: Check<'_>) -> Result<(), AlwaysError> {
    prepare(path, &|text| insert_rule(text, rule), check)?.replace(path)
}

/// Takes the rule of this name out of a policy file, the way that [`add_rule`] puts one in.
pub fn take_rule(path: &Path, name: &str, check: Check<'_>) -> Result<(), AlwaysError> {
    prepare(path, &|text| remove_rule(text, name), check)?.replace(path)
}

/// Whether [`add_rule`] would add the rule. The file stays as it is.
pub fn try_rule(path: &Path, rule: &str, check: Check<'_>) -> Result<(), AlwaysError> {
    prepare(path, &|text| insert_rule(text, rule), check).map(drop)
}

/// A checked file with the rule, next to the file that it replaces.
struct Prepared {
    beside: Beside,
    target: PathBuf,
    /// Locked, so that another writer waits.
    directory: File,
}

impl Prepared {
    fn replace(self, path: &Path) -> Result<(), AlwaysError> {
        let failed = |error: io::Error| AlwaysError::File { path: path.to_owned(), error };
        fs::rename(&self.beside.0, &self.target).map_err(failed)?;
        self.directory.sync_all().map_err(failed)
    }
}

fn prepare(path: &Path, edit: &dyn Fn(&str) -> Option<String>, check: Check<'_>) -> Result<Prepared, AlwaysError> {
    let failed = |error: io::Error| AlwaysError::File { path: path.to_owned(), error };
    // Through a link, so that a policy kept elsewhere stays linked.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(failed)?;
    let directory = File::open(directory).map_err(failed)?;
    flock(&directory, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    let (text, mode) = match fs::read_to_string(&target) {
        Ok(text) => (text, fs::metadata(&target).map_err(failed)?.permissions().mode()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (NEW_FILE.to_owned(), 0o600),
        Err(error) => return Err(failed(error)),
    };
    let text = edit(&text).ok_or_else(|| AlwaysError::Form(path.to_owned()))?;
    let beside = Beside(target.with_extension(format!("new-{}", std::process::id())));
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside.0)?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(failed)?;
    check(&beside.0).map_err(AlwaysError::Useless)?;
    Ok(Prepared { beside, target, directory })
}

/// A file that is of no use unless it replaces another.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        // gone already if it has replaced the other
        let _ = fs::remove_file(&self.0);
    }
}
