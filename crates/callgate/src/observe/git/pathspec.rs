//! Which names a git command means: paths, wildcards whose `*` also matches `/`, and magic such as `:(icase)` and `:!`.
//!
//! Whatever is unusual means more names: a pathspec narrows only where it certainly does.

use std::path::Path;

use callgate_model::word::Word;

/// The pathspecs of a command.
#[derive(Debug, Default)]
pub(crate) struct Pathspecs {
    includes: Vec<Pattern>,
    excludes: Vec<Pattern>,
    /// Something in them is not understood: every name is meant.
    all: bool,
    given: bool,
}

#[derive(Debug)]
struct Pattern {
    /// Relative to the root of the work tree.
    text: String,
    wild: bool,
    folds_case: bool,
}

impl Pathspecs {
    /// Reads the words of a command that stands in a directory of the work tree, given relative to its root.
    pub(crate) fn new<'w>(words: impl IntoIterator<Item = &'w Word>, directory: &str, root: &Path) -> Self {
        let mut specs = Pathspecs::default();
        for word in words {
            specs.add(word, directory, root);
        }
        specs
    }

    /// All names.
    pub(crate) fn all() -> Self {
        Pathspecs { all: true, given: true, ..Pathspecs::default() }
    }

    fn add(&mut self, word: &Word, directory: &str, root: &Path) {
        self.given = true;
        let (text, shell) = match word {
            Word::Known(text) => (text.as_str(), false),
            // The shell replaces it by names, or hands it over as it is.
            Word::Glob(pattern) if !pattern.contains(['(', '\\']) => (pattern.as_str(), true),
            _ => return self.all = true,
        };
        let mut spec = Magic::default();
        let Some(path) = spec.read(text).filter(|_| !shell || !text.starts_with(':')) else { return self.all = true };
        let wild = !spec.literal && path.contains(['*', '?', '[', '\\']);
        let inside = if path.starts_with('/') { inside(path, root) } else { Some(path) };
        let directory = if spec.top || path.starts_with('/') { "" } else { directory };
        let Some(text) = inside.and_then(|path| from_root(path, directory)) else { return self.all = true };
        // With `glob`, `**/` also stands for no directory at all.
        let text = if wild { text.replace("**/", "*") } else { text };
        let pattern = Pattern { text, wild, folds_case: spec.folds_case };
        if !spec.exclude {
            self.includes.push(pattern);
        } else if !wild
            && !spec.folds_case
            && path == pattern.text.strip_prefix(directory).unwrap_or_default().trim_start_matches('/')
        {
            // Only a plain path leaves out for certain: one with a slash at its end means a directory and no file.
            self.excludes.push(pattern);
        }
    }

    /// Whether a name is meant.
    pub(crate) fn mean(&self, name: &str) -> bool {
        if self.all {
            return true;
        }
        let excluded = self.excludes.iter().any(|pattern| pattern.matches(name));
        !excluded && (self.includes.is_empty() || self.includes.iter().any(|pattern| pattern.matches(name)))
    }

    /// Whether a name at or below a directory may be meant.
    pub(crate) fn reach(&self, directory: &str) -> bool {
        self.all || self.includes.is_empty() || self.includes.iter().any(|pattern| pattern.reaches(directory))
    }

    /// The one path that is meant, if that is all.
    pub(crate) fn single(&self) -> Option<&str> {
        match self.includes.as_slice() {
            [one] if !self.all && !one.wild && !one.folds_case && !one.text.is_empty() => Some(&one.text),
            _ => None,
        }
    }

    /// Whether there are any, so that commits without such names are left out.
    pub(crate) fn are_given(&self) -> bool {
        self.given
    }
}

impl Pattern {
    fn matches(&self, name: &str) -> bool {
        let folded;
        let name = if self.folds_case {
            folded = name.to_lowercase();
            folded.as_str()
        } else {
            name
        };
        let text = if self.folds_case { self.text.to_lowercase() } else { self.text.clone() };
        if text.is_empty() || is_at_or_below(name, &text) {
            return true;
        }
        // A wildcard may also match a directory in which the name lies.
        self.wild && ancestors(name).any(|path| wildcard(text.as_bytes(), path.as_bytes()))
    }

    fn reaches(&self, directory: &str) -> bool {
        if self.wild || self.folds_case {
            let fixed = self.text.split(['*', '?', '[', '\\']).next().unwrap_or_default();
            let fixed = fixed.rsplit_once('/').map_or("", |(directory, _)| directory);
            return self.folds_case
                || fixed.is_empty()
                || is_at_or_below(directory, fixed)
                || is_at_or_below(fixed, directory);
        }
        self.text.is_empty() || is_at_or_below(directory, &self.text) || is_at_or_below(&self.text, directory)
    }
}

/// What stands in front of a path: `:(top,icase)`, `:/`, `:!`.
#[derive(Default)]
struct Magic {
    top: bool,
    literal: bool,
    /// Its stars match less than those of other pathspecs.
    glob: bool,
    folds_case: bool,
    exclude: bool,
}

impl Magic {
    /// Reads the magic. Returns the path behind it; `None` if it is not understood.
    fn read<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let Some(rest) = text.strip_prefix(':') else { return Some(text) };
        if let Some(rest) = rest.strip_prefix('(') {
            let (words, path) = rest.split_once(')')?;
            for word in words.split(',') {
                match word {
                    "top" => self.top = true,
                    "literal" => self.literal = true,
                    "icase" => self.folds_case = true,
                    "exclude" => self.exclude = true,
                    "glob" => self.glob = true,
                    "" => {}
                    _ => return None,
                }
            }
            return Some(path);
        }
        let mut rest = rest;
        while let Some(sign) = rest.chars().next() {
            match sign {
                '/' => self.top = true,
                '!' | '^' => self.exclude = true,
                ':' => return rest.get(1..),
                letter if letter.is_ascii_punctuation() && !".*?[\\_-".contains(letter) => return None,
                _ => break,
            }
            rest = rest.get(1..)?;
        }
        Some(rest)
    }
}

/// What follows the root of the work tree in an absolute path; `None` if the path is written in another way.
fn inside<'p>(path: &'p str, root: &Path) -> Option<&'p str> {
    let rest = path.strip_prefix(root.to_str()?)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

/// A path relative to the root of the work tree; `None` if it leads out.
fn from_root(path: &str, directory: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_at_or_below(name: &str, directory: &str) -> bool {
    name.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path and the directories in which it lies.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    ends.filter_map(|end| path.get(..end))
}

/// Matches a wildcard. `*` stands for any text, `?` for one byte, and a set in brackets for any character: wider than in git.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        let step = match pattern {
            [] => text.is_empty().then_some((pattern, text, true)),
            [b'*', rest @ ..] => {
                retry = Some((rest, text));
                Some((rest, text, false))
            }
            // Where a set ends is a matter of taste, so anything may follow.
            [b'[', ..] => return true,
            [b'\\', letter, rest @ ..] | [letter, rest @ ..] => match text {
                [first, behind @ ..] if first == letter || *letter == b'?' => Some((rest, behind, false)),
                _ => None,
            },
        };
        match (step, retry) {
            (Some((_, _, true)), _) => return true,
            (Some((rest, behind, false)), _) => (pattern, text) = (rest, behind),
            (None, Some((rest, [_, behind @ ..]))) => {
                retry = Some((rest, behind));
                (pattern, text) = (rest, behind);
            }
            (None, _) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(words: &[&str], directory: &str) -> Pathspecs {
        let words: Vec<Word> = words.iter().map(|word| Word::Known((*word).to_owned())).collect();
        Pathspecs::new(&words, directory, Path::new("/work/tree"))
    }

    #[track_caller]
    fn check(words: &[&str], directory: &str, means: &[&str], not: &[&str]) {
        let specs = specs(words, directory);
        for name in means {
            assert!(specs.mean(name), "{words:?} means {name}");
            assert!(ancestors(name).all(|path| specs.reach(path)), "{words:?} reaches {name}");
        }
        for name in not {
            assert!(!specs.mean(name), "{words:?} does not mean {name}");
        }
    }

    #[test]
    fn paths_and_wildcards() {
        check(&[], "", &["a", "b/c"], &[]);
        check(&["src"], "", &["src", "src/a/b"], &["srcs", "a/src"]);
        check(&["."], "sub", &["sub/a"], &["a"]);
        check(&["../a"], "sub", &["a", "a/b"], &["sub/a"]);
        check(&[".e*"], "", &[".env", ".extra/deep/x"], &["a/.env"]);
        check(&["*.env"], "", &["x.env", "a/b/x.env"], &["x.envy"]);
        check(&["s*c"], "", &["src", "s/deep/c", "src/x"], &["srd"]);
        check(&[".e?v", "x"], "", &[".env", "x"], &[".ennv"]);
        check(&[".en[v]"], "", &[".env"], &["en"]);
        check(&["a\\*"], "", &["a*"], &["ab"]);
    }

    #[test]
    fn magic() {
        check(&[":/a"], "sub", &["a"], &["sub/a"]);
        check(&[":(top)a"], "sub", &["a"], &["sub/a"]);
        check(&[":(icase).ENV"], "", &[".env"], &["a"]);
        check(&[":(glob)**/.env"], "", &["a/.env", ".env"], &["a/b"]);
        check(&[":(glob)a/**/.env"], "", &["a/.env", "a/b/c/.env"], &["b/.env"]);
        // only a plain path leaves out for certain
        check(&[":!*.lock"], "", &["a", "b.rs", "x.lock"], &[]);
        check(&[":!docs/"], "", &["docs"], &[]);
        check(&[":!docs/."], "", &["docs"], &[]);
        check(&[":(exclude,icase)Docs"], "", &["docs"], &[]);
        check(&[":!docs"], "sub", &["docs", "sub/a"], &["sub/docs/a"]);
        check(&[":^docs", "."], "", &["a"], &["docs/a"]);
        check(&[":(exclude)docs"], "", &["a"], &["docs/a"]);
        check(&[":(literal)a*"], "", &["a*"], &["ab"]);
        // what is not understood means everything
        check(&[":(attr:x)a"], "", &["a", "b"], &[]);
        check(&[":(new)a"], "", &["a", "b"], &[]);
        check(&["/abs"], "", &["a", "b"], &[]);
        check(&["/work/tree/src"], "sub", &["src/a"], &["sub/src", "b"]);
        check(&["/work/trees"], "", &["a"], &[]);
        check(&[":![a]"], "", &["a", "b"], &[]);
        check(&[":!a/*.b"], "", &["a/c.b"], &[]);
        check(&[":(exclude,glob)*.b"], "", &["c.b"], &[]);
    }

    proptest::proptest! {
        #[test]
        fn a_wildcard_means_every_name_that_it_is_made_from(name in "[a-c./]{1,12}", from in 0_usize..12, to in 0_usize..12) {
            let (from, to) = (from.min(name.len()), to.min(name.len()));
            let (from, to) = (from.min(to), from.max(to));
            let pattern = format!("{}*{}", &name[..from], &name[to..]);
            proptest::prop_assert!(wildcard(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
