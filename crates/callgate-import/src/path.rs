//! Patterns on paths, as agents write them, and the globs they become.

use std::path::{Component, Path, PathBuf};

use super::Around;

/// Where a pattern starts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Start {
    /// At `/`.
    Root,
    /// At the user's home.
    Home,
    /// At a directory.
    Directory(PathBuf),
    /// At any depth below the project.
    Anywhere,
}

/// A pattern in the manner of `.gitignore`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    start: Start,
    components: Vec<String>,
}

/// What a pattern becomes in a rule that denies or asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestrictedPaths {
    /// For single paths.
    pub exact: Vec<String>,
    /// For whole trees, so that searching the project is not the same as reading the one file in it that is denied.
    /// Empty: the same as for single paths.
    pub trees: Vec<String>,
}

impl PathPattern {
    /// `//absolute`, `~/home`, `/relative to the settings`, `relative to the project`, `name anywhere`.
    pub(super) fn gitignore(text: &str, settings_root: &Path, around: &Around) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("it is empty");
        }
        if text.starts_with('!') {
            return Err("a negation alone matches nothing");
        }
        let (start, body) = if let Some(rest) = text.strip_prefix("//") {
            (Start::Root, rest)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Start::Home, rest)
        } else if text == "~" {
            (Start::Home, "")
        } else if let Some(rest) = text.strip_prefix('/') {
            (Start::Directory(settings_root.to_owned()), rest)
        } else {
            let body = text.strip_prefix("./").unwrap_or(text);
            let slash_inside = body.trim_end_matches('/').contains('/');
            (if slash_inside { Start::Directory(around.project.clone()) } else { Start::Anywhere }, body)
        };
        let mut pattern = PathPattern { start, components: Vec::new() };
        pattern.extend(body);
        if body.ends_with('/') {
            pattern.components.push("**".to_owned());
        }
        Ok(pattern)
    }

    fn extend(&mut self, body: &str) {
        for component in body.split('/') {
            match component {
                "" | "." => {}
                ".." => {
                    let popped = self.components.pop();
                    if let (None, Start::Directory(directory)) = (popped, &mut self.start) {
                        directory.pop();
                    }
                }
                "**" if self.components.last().is_some_and(|last| last == "**") => {}
                "**" => self.components.push("**".to_owned()),
                other => self.components.push(sanitised(other)),
            }
        }
    }

    /// For a rule that denies or asks: covers at least what the pattern covers.
    pub(super) fn restricting(&self, around: &Around) -> RestrictedPaths {
        let body = self.components.join("/");
        let globs = |front: &str| -> Vec<String> {
            let itself = match (front, body.as_str()) {
                (front, "") => front.trim_end_matches('/').to_owned(),
                (front, body) => format!("{front}{body}"),
            };
            if self.components.last().is_some_and(|last| last == "**") {
                vec![itself]
            } else {
                let below = format!("{itself}/**");
                vec![itself, below]
            }
        };
        match &self.start {
            Start::Root => RestrictedPaths { exact: globs("/"), trees: Vec::new() },
            Start::Home => RestrictedPaths { exact: globs("~/"), trees: Vec::new() },
            Start::Anywhere => RestrictedPaths { exact: globs("**/"), trees: Vec::new() },
            Start::Directory(directory) if *directory == around.project => {
                let trees =
                    if self.components.first().is_some_and(|first| first == "**") { Vec::new() } else { globs("**/") };
                RestrictedPaths { exact: globs("./"), trees }
            }
            Start::Directory(directory) => {
                RestrictedPaths { exact: globs(&format!("{}/", escaped(directory))), trees: Vec::new() }
            }
        }
    }

    /// The directory, if the pattern stands for everything below one; and whether that lies in the project.
    pub(super) fn directory(&self, around: &Around) -> Option<(String, bool)> {
        let (last, front) = self.components.split_last()?;
        if last != "**" || front.iter().any(|component| component.contains(['*', '?', '[', '\\'])) {
            return None;
        }
        let body = front.join("/");
        match &self.start {
            Start::Root => Some((format!("/{body}"), Path::new(&format!("/{body}")).starts_with(&around.project))),
            Start::Home => {
                let inside = around.home.join(&body).starts_with(&around.project);
                Some((if body.is_empty() { "~".to_owned() } else { format!("~/{body}") }, inside))
            }
            Start::Directory(directory) => {
                let whole = directory.join(&body);
                let inside = whole.starts_with(&around.project);
                Some((whole.display().to_string(), inside))
            }
            Start::Anywhere => Some((format!("./{body}"), true)),
        }
    }

    /// Whether it can only match inside of the project.
    pub(super) fn is_inside(&self, around: &Around) -> bool {
        match &self.start {
            Start::Anywhere => true,
            Start::Directory(directory) => directory.starts_with(&around.project),
            Start::Root | Start::Home => false,
        }
    }

    /// Whether a path, or a directory above it, fits: how the agent decides.
    pub(super) fn matches(&self, path: &Path, around: &Around) -> bool {
        let names = |path: &Path| -> Vec<String> {
            path.components()
                .filter_map(|component| match component {
                    Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                    _ => None,
                })
                .collect()
        };
        let base = match &self.start {
            Start::Root => PathBuf::from("/"),
            Start::Home => around.home.clone(),
            Start::Directory(directory) => directory.clone(),
            Start::Anywhere => around.project.clone(),
        };
        let Ok(relative) = path.strip_prefix(&base) else {
            return false;
        };
        let names = names(relative);
        let mut pattern: Vec<&str> = self.components.iter().map(String::as_str).collect();
        if self.start == Start::Anywhere {
            pattern.insert(0, "**");
        }
        (0..=names.len()).any(|length| components_fit(&pattern, names.get(..length).unwrap_or_default()))
    }

    /// A path that fits.
    pub(super) fn sample(&self, around: &Around) -> PathBuf {
        let base = match &self.start {
            Start::Root => PathBuf::from("/"),
            Start::Home => around.home.clone(),
            Start::Directory(directory) => directory.clone(),
            Start::Anywhere => around.project.join("some"),
        };
        self.components.iter().fold(base, |path, component| match component.as_str() {
            "**" => path.join("a/b"),
            other => path.join(sample_name(other)),
        })
    }
}

/// A path without `.` and `..`.
pub(super) fn fold(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut folded, component| {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            other => folded.push(other),
        }
        folded
    })
}

/// Patterns in which `*` stands for anything, slashes included (OpenCode): the globs that cover at least as much, and those
/// that cover at most as much.
pub(super) fn spanning(text: &str) -> (Vec<String>, Vec<String>) {
    let (front, body) = if let Some(rest) = text.strip_prefix("~/").or_else(|| text.strip_prefix("$HOME/")) {
        ("~/", rest)
    } else if let Some(rest) = text.strip_prefix('/') {
        ("/", rest)
    } else if text.starts_with('*') {
        ("", text)
    } else {
        ("./", text)
    };
    let (mut broad, mut narrow): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for component in body.split('/').filter(|component| !matches!(*component, "" | ".")) {
        let literal = component.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
        let literal = literal.replace('{', "\\{").replace('}', "\\}");
        if component.bytes().all(|byte| byte == b'*') {
            broad.push("**".to_owned());
            narrow.push("**".to_owned());
            continue;
        }
        let single = collapse(&literal);
        if let Some(tail) = single.strip_prefix('*') {
            broad.extend(["**".to_owned(), format!("*{tail}")]);
            narrow.extend(["**".to_owned(), format!("*{tail}")]);
        } else if let Some((head, _)) = single.split_once('*') {
            // What comes behind the star may lie any number of directories deeper.
            broad.extend([format!("{head}*"), "**".to_owned()]);
            narrow.push(single);
        } else {
            broad.push(single.clone());
            narrow.push(single);
        }
    }
    broad.dedup();
    narrow.dedup();
    let join = |components: &[String]| format!("{front}{}", components.join("/"));
    (vec![join(&broad)], vec![join(&narrow)])
}

/// `**` within a name means no more than `*`.
fn collapse(component: &str) -> String {
    let mut collapsed = component.to_owned();
    while collapsed.contains("**") {
        collapsed = collapsed.replace("**", "*");
    }
    collapsed
}

/// One component of a `.gitignore` pattern as callgate writes it: no braces, no `**` within a name, every class closed.
fn sanitised(component: &str) -> String {
    let component = collapse(component);
    let closed = component.find('[').is_none_or(|open| component.get(open..).is_some_and(|rest| rest.contains(']')));
    let mut result = String::with_capacity(component.len());
    let mut characters = component.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(next) => result.extend(['\\', next]),
                None => result.push_str("\\\\"),
            },
            '[' if !closed => result.push_str("\\["),
            '{' | '}' => result.extend(['\\', character]),
            other => result.push(other),
        }
    }
    result
}

/// A directory as a glob that means just it.
fn escaped(directory: &Path) -> String {
    let mut text = String::new();
    for character in directory.to_string_lossy().chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '{' | '}' | '!') {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

fn components_fit(pattern: &[&str], names: &[String]) -> bool {
    // reachable.get(j): the pattern so far fits the first j names
    let mut reachable = vec![false; names.len().saturating_add(1)];
    if let Some(first) = reachable.first_mut() {
        *first = true;
    }
    for component in pattern {
        let mut next = vec![false; reachable.len()];
        let mut open = false;
        for (index, slot) in next.iter_mut().enumerate() {
            let here = reachable.get(index).copied().unwrap_or(false);
            *slot = if *component == "**" {
                open |= here;
                open
            } else {
                let before = index.checked_sub(1);
                before.is_some_and(|before| {
                    reachable.get(before).copied().unwrap_or(false)
                        && names.get(before).is_some_and(|name| name_fits(component, name))
                })
            };
        }
        reachable = next;
    }
    reachable.last().copied().unwrap_or(false)
}

enum Token {
    Any,
    One,
    Character(char),
    Class(Vec<(char, char)>, bool),
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => Token::Any,
            '?' => Token::One,
            '\\' => Token::Character(characters.next().unwrap_or('\\')),
            '[' => {
                let negated = characters.next_if(|next| matches!(next, '!' | '^')).is_some();
                let mut ranges = Vec::new();
                while let Some(low) = characters.next() {
                    if low == ']' && !ranges.is_empty() {
                        break;
                    }
                    let mut high = low;
                    let mut ahead = characters.clone();
                    if ahead.next() == Some('-')
                        && let Some(end) = ahead.next().filter(|end| *end != ']')
                    {
                        high = end;
                        characters = ahead;
                    }
                    ranges.push((low, high));
                }
                Token::Class(ranges, negated)
            }
            other => Token::Character(other),
        });
    }
    tokens
}

fn name_fits(pattern: &str, name: &str) -> bool {
    let tokens = tokens(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut token, mut at) = (0_usize, 0_usize);
    let mut back: Option<(usize, usize)> = None;
    while let Some(character) = name.get(at) {
        let fits = match tokens.get(token) {
            Some(Token::Any) => {
                token = token.saturating_add(1);
                back = Some((token, at));
                continue;
            }
            Some(Token::One) => true,
            Some(Token::Character(wanted)) => wanted == character,
            Some(Token::Class(ranges, negated)) => {
                ranges.iter().any(|(low, high)| (low..=high).contains(&character)) != *negated
            }
            None => false,
        };
        if fits {
            token = token.saturating_add(1);
            at = at.saturating_add(1);
        } else if let Some((after, from)) = back {
            let next = from.saturating_add(1);
            (token, at, back) = (after, next, Some((after, next)));
        } else {
            return false;
        }
    }
    tokens.get(token..).unwrap_or_default().iter().all(|token| matches!(token, Token::Any))
}

fn sample_name(pattern: &str) -> String {
    tokens(pattern)
        .iter()
        .map(|token| match token {
            Token::Any | Token::One => 'x',
            Token::Character(character) => *character,
            Token::Class(ranges, false) => ranges.first().map_or('x', |(low, _)| *low),
            Token::Class(_, true) => 'x',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> Around {
        Around { home: "/home/ada".into(), project: "/home/ada/project".into() }
    }

    fn pattern(text: &str) -> PathPattern {
        PathPattern::gitignore(text, Path::new("/home/ada/project"), &around()).unwrap()
    }

    #[test]
    fn how_paths_are_matched() {
        for (text, path, expected) in [
            (".env", "/home/ada/project/.env", true),
            (".env", "/home/ada/project/a/b/.env", true),
            (".env", "/home/ada/.env", false),
            ("./secrets/**", "/home/ada/project/secrets/a/b", true),
            ("./secrets/**", "/home/ada/project/src/secrets/a", false),
            ("secrets", "/home/ada/project/src/secrets/a", true),
            ("/docs/*.md", "/home/ada/project/docs/a.md", true),
            ("/docs/*.md", "/home/ada/project/docs/a/b.md", false),
            ("~/.zshrc", "/home/ada/.zshrc", true),
            ("//etc/ssl/**", "/etc/ssl/private/x", true),
            ("src/**/*.ts", "/home/ada/project/src/a.ts", true),
            ("src/[ab]?.ts", "/home/ada/project/src/b1.ts", true),
            ("src/[!ab]?.ts", "/home/ada/project/src/b1.ts", false),
            ("../other/x", "/home/ada/other/x", true),
        ] {
            assert_eq!(pattern(text).matches(Path::new(path), &around()), expected, "{text} {path}");
        }
    }

    #[test]
    fn what_patterns_become() {
        for (text, exact, trees) in [
            (".env", &["**/.env", "**/.env/**"][..], &[][..]),
            ("./secrets/**", &["./secrets/**"], &["**/secrets/**"]),
            ("/config/key", &["./config/key", "./config/key/**"], &["**/config/key", "**/config/key/**"]),
            ("~/.aws/**", &["~/.aws/**"], &[]),
            ("//srv/x{1}/", &["/srv/x\\{1\\}/**"], &[]),
            ("a**b", &["**/a*b", "**/a*b/**"], &[]),
            ("x[", &["**/x\\[", "**/x\\[/**"], &[]),
            ("../x/y", &["/home/ada/x/y", "/home/ada/x/y/**"], &[]),
        ] {
            let restricted = pattern(text).restricting(&around());
            assert_eq!(
                (restricted.exact.as_slice(), restricted.trees.as_slice()),
                (
                    exact.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>().as_slice(),
                    trees.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>().as_slice(),
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn whole_directories() {
        for (text, expected) in [
            ("~/notes/**", Some(("~/notes", false))),
            ("//srv/data/", Some(("/srv/data", false))),
            ("src/**", Some(("/home/ada/project/src", true))),
            ("~/notes/*.md", None),
        ] {
            let directory = pattern(text).directory(&around());
            assert_eq!(directory.as_ref().map(|(path, inside)| (path.as_str(), *inside)), expected, "{text}");
        }
    }

    #[test]
    fn stars_that_span_directories() {
        for (text, broad, narrow) in [
            ("*", "**", "**"),
            ("*.env", "**/*.env", "**/*.env"),
            ("src/*", "./src/**", "./src/**"),
            ("docs/*.mdx", "./docs/**/*.mdx", "./docs/**/*.mdx"),
            ("src/a*b.rs", "./src/a*/**", "./src/a*b.rs"),
            ("~/work/**", "~/work/**", "~/work/**"),
        ] {
            assert_eq!(spanning(text), (vec![broad.to_owned()], vec![narrow.to_owned()]), "{text}");
        }
    }
}
