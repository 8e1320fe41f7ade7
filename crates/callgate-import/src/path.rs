//! Patterns on paths, as agents write them, and their translation into globs.

use std::path::{Component, Path, PathBuf};

use callgate_install::HostEnvironment;

use crate::wildcard::{self, Token};

/// The start of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Start {
    /// At `/`.
    Root,
    /// At the user's home directory.
    Home,
    /// At a directory.
    Directory(PathBuf),
    /// At any depth below the project.
    Anywhere,
}

/// A pattern in the style of `.gitignore`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    start: Start,
    components: Vec<String>,
}

/// The translation of a pattern for a rule that denies or asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestrictedPaths {
    /// For single paths.
    pub exact: Vec<String>,
    /// For whole trees: searching the project is not the same as reading the one file in it that is denied. Empty if the
    /// globs for single paths apply.
    pub trees: Vec<String>,
}

impl PathPattern {
    /// Parses `//absolute`, `~/home`, `/relative to the settings`, `relative to the project` and `name anywhere`.
    pub(crate) fn gitignore(
        text: &str,
        settings_root: &Path,
        environment: &HostEnvironment,
    ) -> Result<Self, &'static str> {
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
            (if slash_inside { Start::Directory(environment.project.clone()) } else { Start::Anywhere }, body)
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
                other => self.components.push(sanitized(other)),
            }
        }
    }

    /// Translates the pattern for a rule that denies or asks. The result covers at least what the pattern covers.
    pub(crate) fn restricting(&self, environment: &HostEnvironment) -> RestrictedPaths {
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
        let exact = match &self.start {
            Start::Root => globs("/"),
            Start::Home => globs("~/"),
            Start::Anywhere => globs("**/"),
            Start::Directory(directory) if *directory == environment.project => {
                let anywhere = self.components.first().is_some_and(|first| first == "**");
                let trees = if anywhere { Vec::new() } else { globs("**/") };
                return RestrictedPaths { exact: globs("./"), trees };
            }
            Start::Directory(directory) => globs(&format!("{}/", escaped(&directory.to_string_lossy(), "*?[]\\{}!"))),
        };
        RestrictedPaths { exact, trees: Vec::new() }
    }

    /// The directory, if the pattern stands for everything below one, and whether it is in the project.
    pub(crate) fn directory(&self, environment: &HostEnvironment) -> Option<(String, bool)> {
        let (last, front) = self.components.split_last()?;
        if last != "**" || front.iter().any(|component| component.contains(['*', '?', '[', '\\'])) {
            return None;
        }
        let body = front.join("/");
        match &self.start {
            Start::Root => Some((format!("/{body}"), Path::new(&format!("/{body}")).starts_with(&environment.project))),
            Start::Home => {
                let inside = environment.home.join(&body).starts_with(&environment.project);
                Some((if body.is_empty() { "~".to_owned() } else { format!("~/{body}") }, inside))
            }
            Start::Directory(directory) => {
                let whole = directory.join(&body);
                let inside = whole.starts_with(&environment.project);
                Some((whole.display().to_string(), inside))
            }
            Start::Anywhere => Some((format!("./{body}"), true)),
        }
    }

    /// Whether the pattern can only match inside the project.
    pub(crate) fn is_inside(&self, environment: &HostEnvironment) -> bool {
        match &self.start {
            Start::Anywhere => true,
            Start::Directory(directory) => directory.starts_with(&environment.project),
            Start::Root | Start::Home => false,
        }
    }

    /// Whether the agent would match a path or a directory above it.
    pub(crate) fn matches(&self, path: &Path, environment: &HostEnvironment) -> bool {
        let Ok(relative) = path.strip_prefix(self.base(environment)) else {
            return false;
        };
        let names: Vec<String> = relative
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                _ => None,
            })
            .collect();
        let mut pattern: Vec<&str> = self.components.iter().map(String::as_str).collect();
        if self.start == Start::Anywhere {
            pattern.insert(0, "**");
        }
        (0..=names.len()).any(|length| components_fit(&pattern, names.get(..length).unwrap_or_default()))
    }

    /// The directory that relative paths start at.
    fn base<'a>(&'a self, environment: &'a HostEnvironment) -> &'a Path {
        match &self.start {
            Start::Root => Path::new("/"),
            Start::Home => &environment.home,
            Start::Directory(directory) => directory,
            Start::Anywhere => &environment.project,
        }
    }

    /// A path that fits.
    pub(crate) fn sample(&self, environment: &HostEnvironment) -> PathBuf {
        let base = self.base(environment);
        let base = if self.start == Start::Anywhere { base.join("some") } else { base.to_owned() };
        self.components.iter().fold(base, |path, component| match component.as_str() {
            "**" => path.join("a/b"),
            other => path.join(wildcard::component(other).iter().map(Token::sample).collect::<String>()),
        })
    }
}

/// Translates a pattern in which `*` stands for anything, including slashes (OpenCode): the globs that cover at least as
/// much, and those that cover at most as much.
pub(crate) fn spanning(text: &str) -> (Vec<String>, Vec<String>) {
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
        let literal = escaped(component, "[]\\{}");
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
            // What follows the star may be any number of directories deeper.
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

/// Replaces `**` within a name, where it means the same as `*`.
fn collapse(component: &str) -> String {
    let mut collapsed = component.to_owned();
    while collapsed.contains("**") {
        collapsed = collapsed.replace("**", "*");
    }
    collapsed
}

/// Translates one component of a `.gitignore` pattern: braces are literal, `**` within a name is `*`, unclosed classes are
/// literal.
fn sanitized(component: &str) -> String {
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

/// Escapes the special characters of a glob.
fn escaped(text: &str, special: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, character| {
        if special.contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
        escaped
    })
}

fn components_fit(pattern: &[&str], names: &[String]) -> bool {
    let fits = |component: &&str, name: &String| wildcard::fits(&wildcard::component(component), name);
    wildcard::fits_items(pattern, names, |component| *component == "**", fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> HostEnvironment {
        HostEnvironment { project: "/home/ada/project".into(), ..HostEnvironment::of_home("/home/ada".as_ref()) }
    }

    fn pattern(text: &str) -> PathPattern {
        PathPattern::gitignore(text, Path::new("/home/ada/project"), &environment()).unwrap()
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
            assert_eq!(pattern(text).matches(Path::new(path), &environment()), expected, "{text} {path}");
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
            let restricted = pattern(text).restricting(&environment());
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
            let directory = pattern(text).directory(&environment());
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
