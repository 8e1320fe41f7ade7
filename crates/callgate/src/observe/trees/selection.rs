//! Which names of a tree a program visits, as far as that is certain.

use std::ffi::OsStr;

use callgate_model::effect::Selection;

use crate::path::pattern::may_match;

/// The maximum number of globs that braces stand for.
const MAXIMUM_GLOBS: usize = 64;

/// A selection whose globs are taken apart. It leaves a name out only if the program certainly does.
#[derive(Debug, Default)]
pub(crate) struct NameFilter {
    skips_hidden: bool,
    /// `None`: all names.
    only: Option<Vec<String>>,
    except: Vec<String>,
    except_directories: Vec<String>,
}

impl NameFilter {
    pub(crate) fn new(selection: &Selection) -> Self {
        // Some programs know no braces, and a glob that is too complicated may match anything.
        let forms = |glob: &String| {
            alternatives(glob).unwrap_or_else(|| vec!["*".to_owned()]).into_iter().chain([glob.clone()])
        };
        let only: Vec<String> = selection.only.iter().flat_map(forms).map(|glob| last(&glob).to_owned()).collect();
        let only = Some(only).filter(|globs| !globs.is_empty());
        let mut except = Vec::new();
        let mut except_directories = selection.except_directories.clone();
        for glob in selection.except.iter().filter_map(|glob| alternatives(glob)).flatten() {
            let inner = glob.strip_prefix("**/").unwrap_or(&glob);
            let directory = inner.trim_end_matches('*').trim_end_matches('/');
            if inner.ends_with('/') || inner.ends_with("/**") || inner.ends_with("/*") {
                except_directories.push(directory.to_owned());
            } else {
                except.push(inner.to_owned());
                except_directories.push(inner.to_owned());
            }
        }
        except.retain(|glob| is_plain(glob));
        except_directories.retain(|glob| is_plain(glob));
        NameFilter { skips_hidden: selection.skips_hidden, only, except, except_directories }
    }

    /// Whether a directory of this name is entered.
    pub(crate) fn enters(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return true };
        // A glob that names a hidden directory enters it.
        let hidden = self.skips_hidden && name.starts_with('.') && !self.names(name);
        !hidden && !self.except_directories.iter().any(|glob| may_match(glob, name))
    }

    /// Whether a glob asks for this name.
    pub(crate) fn names(&self, name: &str) -> bool {
        // Programs differ in whether case counts; what any of them finds is found.
        let folded = name.to_lowercase();
        let fits = |glob: &String| may_match(glob, name) || may_match(&glob.to_lowercase(), &folded);
        self.only.iter().flatten().any(fits)
    }

    /// Whether a file of this name is visited.
    pub(crate) fn visits(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return true };
        match &self.only {
            Some(_) => self.names(name),
            None => {
                let hidden = self.skips_hidden && name.starts_with('.');
                !hidden && !self.except.iter().any(|glob| may_match(glob, name))
            }
        }
    }
}

/// The last component of a glob; `**` for one that ends in a directory.
fn last(glob: &str) -> &str {
    match glob.trim_end_matches('/').rsplit('/').next() {
        Some(name) if !glob.ends_with('/') && name != "**" => name,
        _ => "*",
    }
}

/// Whether a glob means the same to every program: names with `*` and `?`.
fn is_plain(glob: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'?' | b'.' | b'_' | b'-' | b'+' | b'@');
    !glob.is_empty() && glob.bytes().all(plain)
}

/// The globs that one with braces stands for; `None` if it is too complicated.
fn alternatives(glob: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut waiting = vec![glob.to_owned()];
    while let Some(glob) = waiting.pop() {
        if glob.contains('\\') {
            return None;
        }
        let Some((front, rest)) = glob.split_once('{') else {
            done.push(glob);
            continue;
        };
        let (inside, back) = rest.split_once('}')?;
        if inside.contains('{') || done.len().saturating_add(waiting.len()) > MAXIMUM_GLOBS {
            return None;
        }
        waiting.extend(inside.split(',').map(|choice| format!("{front}{choice}{back}")));
    }
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(change: impl FnOnce(&mut Selection)) -> NameFilter {
        let mut selection = Selection::default();
        change(&mut selection);
        NameFilter::new(&selection)
    }

    fn globs(globs: &[&str]) -> Vec<String> {
        globs.iter().map(|glob| (*glob).to_owned()).collect()
    }

    #[test]
    fn a_name_is_left_out_only_if_that_is_certain() {
        let sources = filter(|selection| selection.only = globs(&["*.{ts,tsx}", "src/**/*.rs"]));
        for (name, visited) in [("a.ts", true), ("A.TSX", true), ("lib.rs", true), (".env", false), ("ts", false)] {
            assert_eq!(sources.visits(OsStr::new(name)), visited, "{name}");
        }
        for strange in ["{a", "a\\b", "{a,{b,c}}", "src/**", "x/"] {
            assert!(filter(|selection| selection.only = globs(&[strange])).visits(OsStr::new(".env")), "{strange}");
        }
        let without = filter(|selection| selection.except = globs(&[".env*", "*.pem", "[ab]", "**/vendor/**"]));
        for (name, visited) in [(".env", false), (".env.local", false), ("a.pem", false), ("a", true), ("vendor", true)]
        {
            assert_eq!(without.visits(OsStr::new(name)), visited, "{name}");
        }
        assert!(!without.enters(OsStr::new("vendor")));
        let both = filter(|selection| {
            selection.only = globs(&[".e*"]);
            selection.except = globs(&[".env"]);
            selection.skips_hidden = true;
        });
        assert!(both.visits(OsStr::new(".env")), "the last of several options may win");
        assert!(both.enters(OsStr::new(".extra")) && !both.enters(OsStr::new(".config")));
        let plain = filter(|selection| selection.skips_hidden = true);
        assert!(
            !plain.visits(OsStr::new(".env")) && !plain.enters(OsStr::new(".git")) && plain.visits(OsStr::new("a"))
        );
    }
}
