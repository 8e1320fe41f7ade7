//! The directories of a boundary.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use callgate_model::glob::{LoneBraces, expand_braces};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The limit for the directories of one path with braces.
const MOST_DIRECTORIES: usize = 256;

/// The set of directories for temporary files.
pub const TEMPORARY: &str = "@temporary";
/// The set of directories in which coding agents keep their plans.
pub const PLANS: &str = "@plans";

/// The directories of [`PLANS`].
const PLAN_FOLDERS: [&str; 2] = ["~/.claude/plans", "~/.cursor/plans"];

/// The directories that only the host knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostDirectories {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The directories for temporary files.
    pub temporary: Vec<PathBuf>,
    /// The directories in which programs are found, in their order (`PATH`). A relative one stands in the working directory.
    pub programs: Vec<PathBuf>,
}

/// One directory (or file) of a boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Absolute, starting with `~`, or relative; or one of the machine's own sets, [`TEMPORARY`] and [`PLANS`].
    ///
    /// Braces are expanded, a trailing `/**` is ignored, and a leading `!` excludes a directory that an earlier root includes.
    /// Other patterns are ignored.
    pub path: String,
    /// What a relative path is relative to.
    pub relative_to: RelativeTo,
}

/// What the relative paths of a boundary are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelativeTo {
    /// The call's workspace, or its working directory if there is none.
    Call,
    /// A directory, such as that of the policy file.
    Directory(PathBuf),
}

impl Root {
    /// A path that, if relative, is relative to the call's workspace.
    pub fn of_call(path: impl Into<String>) -> Self {
        Root { path: path.into(), relative_to: RelativeTo::Call }
    }

    /// A path that, if relative, is relative to a directory.
    pub fn of_directory(path: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Root { path: path.into(), relative_to: RelativeTo::Directory(directory.into()) }
    }

    /// The directories that the root means, as far as they are known; `true` for those it excludes.
    pub fn directories(&self, workspace: Option<&Path>, host: &HostDirectories) -> Vec<(PathBuf, bool)> {
        let (text, excluded) = match self.path.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (self.path.as_str(), false),
        };
        let directories: Vec<PathBuf> = match text {
            TEMPORARY => host.temporary.clone(),
            PLANS => PLAN_FOLDERS.iter().filter_map(|folder| self.absolute(folder, workspace, host)).collect(),
            text => expand_braces(text, MOST_DIRECTORIES, LoneBraces::Kept)
                .unwrap_or_default()
                .iter()
                .filter_map(|text| self.absolute(text, workspace, host))
                .collect(),
        };
        directories.into_iter().map(|path| (path, excluded)).collect()
    }

    fn absolute(&self, text: &str, workspace: Option<&Path>, host: &HostDirectories) -> Option<PathBuf> {
        let text = match text.strip_suffix("/**") {
            Some("") => "/",
            Some(front) => front,
            None => text,
        };
        if text == "~" {
            return host.home.clone();
        }
        if let Some(rest) = text.strip_prefix("~/") {
            return Some(host.home.as_ref()?.join(rest));
        }
        // the home directory of `~other` is unknown
        if text.is_empty() || text.starts_with('~') || text.contains(['*', '?', '[']) {
            return None;
        }
        let base = match &self.relative_to {
            RelativeTo::Directory(directory) => Some(directory.as_path()),
            RelativeTo::Call => workspace,
        };
        match base {
            Some(base) => Some(base.join(text)),
            None => Path::new(text).is_absolute().then(|| text.into()),
        }
    }
}

/// A list of directories.
///
/// A compiled policy stores it as one text, which is parsed on first use: the list of readable directories is long, and most
/// calls do not need it.
///
/// ```
/// use callgate_policy::{Root, Roots};
///
/// let roots = Roots::from(vec![Root::of_call("."), Root::of_directory("data", "/srv/policy")]);
/// assert_eq!(roots.iter().filter(|root| root.path == "data").count(), 1);
/// ```
#[derive(Clone, Default)]
pub struct Roots(Arc<LazyRoots>);

/// The separator: rare in paths, and not escaped in JSON.
const END: char = '\u{7f}';

#[derive(Default)]
struct LazyRoots {
    /// Of each root its path and what that is relative to, if anything, each with [`END`] behind it. Empty if the roots are there.
    text: String,
    roots: OnceLock<Vec<Root>>,
}

impl From<Vec<Root>> for Roots {
    fn from(roots: Vec<Root>) -> Self {
        Roots(Arc::new(LazyRoots { text: String::new(), roots: OnceLock::from(roots) }))
    }
}

impl Deref for Roots {
    type Target = [Root];

    fn deref(&self) -> &[Root] {
        self.0.roots.get_or_init(|| {
            let mut parts = self.0.text.split_terminator(END);
            std::iter::from_fn(|| match (parts.next()?, parts.next()?) {
                (path, "") => Some(Root::of_call(path)),
                (path, directory) => Some(Root::of_directory(path, directory)),
            })
            .collect()
        })
    }
}

impl Serialize for Roots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        for Root { path, relative_to } in self.iter() {
            let directory = match relative_to {
                RelativeTo::Call => Some(""),
                RelativeTo::Directory(directory) => directory.to_str().filter(|directory| !directory.is_empty()),
            };
            for part in [Some(path.as_str()), directory] {
                let part = part.filter(|part| !part.contains(END));
                text.push_str(part.ok_or_else(|| S::Error::custom("cannot store a directory with this name"))?);
                text.push(END);
            }
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Roots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Roots(Arc::new(LazyRoots { text, roots: OnceLock::new() })))
    }
}

impl PartialEq for Roots {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Roots {}

impl fmt::Debug for Roots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_back() {
        for roots in [
            Vec::new(),
            vec![Root::of_call(""), Root::of_call("a\nb\0")],
            vec![Root::of_call("."), Root::of_call("!/usr/**"), Root::of_directory("data é", "/srv/\"x\"")],
        ] {
            let roots = Roots::from(roots);
            let stored = serde_json::to_string(&roots).unwrap();
            assert_eq!(serde_json::from_str::<Roots>(&stored).unwrap(), roots, "{stored}");
        }
    }

    #[test]
    fn what_would_be_read_back_as_something_else_is_not_stored() {
        for root in [Root::of_call("a\u{7f}b"), Root::of_directory("a", "/b\u{7f}/c"), Root::of_directory("a", "")] {
            assert!(serde_json::to_string(&Roots::from(vec![root])).is_err());
        }
    }
}
