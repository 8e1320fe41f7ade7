//! Paths by their text alone, without looking at the file system.

use std::path::{Component, Path, PathBuf};

/// Makes `path` absolute against `directory`. A path stays as it is if the directory is unknown.
///
/// Removes only a leading `./`, because where `..` leads depends on symlinks.
///
/// ```
/// use callgate_model::lexical::absolute;
///
/// assert_eq!(absolute(Some("/work"), "./src/../a"), "/work/src/../a");
/// assert_eq!(absolute(None, "src"), "src");
/// ```
pub fn absolute(directory: Option<&str>, path: &str) -> String {
    let Some(directory) = directory.filter(|_| !path.starts_with('/')) else {
        return path.to_owned();
    };
    let mut rest = path;
    while let Some(shorter) = rest.strip_prefix("./") {
        rest = shorter.trim_start_matches('/');
    }
    match rest {
        "" | "." => directory.to_owned(),
        _ => [directory.trim_end_matches('/'), "/", rest].concat(),
    }
}

/// Removes `.` and `..` by the text alone, as `cd` and many tools do.
///
/// ```
/// use callgate_model::lexical::fold;
/// use std::path::Path;
///
/// assert_eq!(fold(Path::new("/work/./src/../../etc")), Path::new("/etc"));
/// ```
pub fn fold(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            other => folded.push(other),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_without_touching_dots_inside() {
        let cases = [
            ("a", "/w/a"),
            ("./a", "/w/a"),
            (".//a", "/w/a"),
            (".", "/w"),
            ("./", "/w"),
            ("../a", "/w/../a"),
            ("/a", "/a"),
            ("a/./b", "/w/a/./b"),
        ];
        for (path, expected) in cases {
            assert_eq!(absolute(Some("/w"), path), expected);
        }
        assert_eq!(absolute(None, "a"), "a");
        assert_eq!(absolute(Some("/"), "a"), "/a");
    }

    #[test]
    fn folding_stops_at_the_root() {
        for (path, expected) in [("/", "/"), ("/a/../..", "/"), ("//a//./b/", "/a/b"), ("/../a", "/a")] {
            assert_eq!(fold(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
