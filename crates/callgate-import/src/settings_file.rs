//! The settings files of agents, read strictly.

use std::collections::HashSet;
use std::path::PathBuf;

use callgate_install::{HostEnvironment, SettingsNode};

use crate::ImportError;

/// The largest settings file, in bytes.
pub const MAXIMUM_SIZE: usize = 4 * 1024 * 1024;
/// The most values that a file may have.
const MAXIMUM_VALUES: usize = 200_000;
/// The deepest nesting of values.
const MAXIMUM_DEPTH: usize = 64;

/// The owner of a settings file, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingsLayer {
    /// The user.
    User,
    /// The project, shared by everybody who works on it.
    Project,
    /// The user, for this project only.
    Local,
    /// The administrator of the machine.
    Managed,
}

/// A settings file.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// The path.
    pub path: PathBuf,
    /// The name in comments and notes.
    pub name: String,
    /// The owner.
    pub layer: SettingsLayer,
    /// The content.
    pub text: String,
}

impl SettingsFile {
    /// A file that is named by its path below the project or the home directory.
    pub fn new(
        path: impl Into<PathBuf>,
        layer: SettingsLayer,
        text: impl Into<String>,
        environment: &HostEnvironment,
    ) -> Self {
        let path = path.into();
        let name = match (path.strip_prefix(&environment.project), path.strip_prefix(&environment.home)) {
            (Ok(inside), _) => inside.display().to_string(),
            (_, Ok(below)) => format!("~/{}", below.display()),
            _ => path.display().to_string(),
        };
        SettingsFile { path, name, layer, text: text.into() }
    }

    /// Names something in the file, for comments and notes.
    pub(crate) fn origin(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }

    pub(crate) fn unusable(&self, why: impl Into<String>) -> ImportError {
        ImportError::Unusable { path: self.path.display().to_string(), why: why.into() }
    }

    /// The directory of the file.
    pub(crate) fn directory(&self) -> PathBuf {
        self.path.parent().map(PathBuf::from).unwrap_or_default()
    }

    pub(crate) fn has_extension(&self, wanted: &str) -> bool {
        self.path.extension().is_some_and(|extension| extension == wanted)
    }

    pub(crate) fn check_size(&self) -> Result<(), ImportError> {
        if self.text.len() > MAXIMUM_SIZE {
            return Err(self.unusable(format!("the file is larger than {MAXIMUM_SIZE} bytes")));
        }
        Ok(())
    }

    /// Parses the file as JSON with comments and trailing commas.
    pub(crate) fn json(&self) -> Result<SettingsNode, ImportError> {
        self.check_size()?;
        let node = SettingsNode::read_json(&self.text)
            .map_err(|error| self.unusable(format!("the file is not valid JSON: {error}")))?;
        check(&node, 0, &mut { MAXIMUM_VALUES }).map_err(|why| self.unusable(why))?;
        Ok(node)
    }

    /// Parses the file as TOML.
    pub(crate) fn toml(&self) -> Result<SettingsNode, ImportError> {
        self.check_size()?;
        let node = SettingsNode::read_toml(&self.text)
            .map_err(|error| self.unusable(format!("the file is not valid TOML: {error}")))?;
        check(&node, 0, &mut { MAXIMUM_VALUES }).map_err(|why| self.unusable(why))?;
        Ok(node)
    }
}

/// Checks the number and nesting of values, and that no key is defined twice: programs differ in which one they use, so
/// what the file denies would be a guess.
fn check(node: &SettingsNode, depth: usize, left: &mut usize) -> Result<(), String> {
    *left = left.checked_sub(1).ok_or_else(|| format!("the file has more than {MAXIMUM_VALUES} values"))?;
    if depth >= MAXIMUM_DEPTH {
        return Err(format!("the file is nested more than {MAXIMUM_DEPTH} levels deep"));
    }
    let mut seen = HashSet::new();
    if let Some((name, _)) = node.entries().iter().find(|(name, _)| !seen.insert(name)) {
        return Err(format!("the key \"{name}\" is defined twice"));
    }
    let children = node.items().iter().chain(node.entries().iter().map(|(_, value)| value));
    children.into_iter().try_for_each(|child| check(child, depth.saturating_add(1), left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> SettingsFile {
        let environment = HostEnvironment::of_home("/home/ada".as_ref());
        SettingsFile::new("settings", SettingsLayer::User, text, &environment)
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        for text in [
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": 1} {"b": 2}"#,
            "{'a': 1}",
            "{a: 1}",
            "{\"a\": ",
            &"[".repeat(100_000),
            &format!("{}1{}", "[".repeat(100), "]".repeat(100)),
            &format!("[{}1]", "1,".repeat(300_000)),
            &" ".repeat(MAXIMUM_SIZE + 1),
        ] {
            assert!(source(text).json().is_err(), "{}", text.chars().take(40).collect::<String>());
        }
        for text in ["a = 1\na = 2", "[a\n", "a = ", &format!("a = {}", "[".repeat(100_000))] {
            assert!(source(text).toml().is_err(), "{}", text.chars().take(40).collect::<String>());
        }
    }
}
