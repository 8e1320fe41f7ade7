//! Python one-liners that only compute, print, and open files by literal names.

use std::collections::BTreeSet;

use super::CodeEffects;
use super::python_paths::{self, PathOrigin, PathVariables};
use super::token::Token::{self, Newline, Number, Other, Text, Word};
use crate::cursor::{Cursor, is_name_character};
use crate::effect::Action;
use crate::lists::listed;

/// Modules that do not reach files, programs or the network through the attributes below.
const MODULES: &str = include_str!("words/python-modules.txt");

/// Modules of the standard library that can do more than compute: of these only the version is shown. Packages that somebody
/// installed are not here: what they import, and where they lie, is not known.
const PACKAGES: &str = include_str!("words/python-packages.txt");

/// Modules of Python's standard library, except those that begin with an underscore. Modules in `MODULES` import some of these.
const STANDARD: &str = include_str!("words/python-standard.txt");

/// Whether harmless code may import a module of this name, directly or through another one. A file of that name in
/// the directory where Python starts would run in its place.
pub fn may_be_imported(name: &str) -> bool {
    let private = name.starts_with('_') && !name.starts_with("__");
    private || listed(STANDARD, name) || listed(PACKAGES, name)
}

/// What may follow the name of a package, and has no side effects.
const PACKAGE_PARTS: &str = include_str!("words/python-package-parts.txt");

const KEYWORDS: &str = include_str!("words/python-keywords.txt");

const BUILTINS: &str = include_str!("words/python-builtins.txt");

const ATTRIBUTES: &str = include_str!("words/python-attributes.txt");

/// Functions of `os` that only compute or ask the system about itself. `os` is not a value here, so that
/// no other function of it can be reached by another name.
const SYSTEM: &str = include_str!("words/python-system.txt");
/// Functions of `os.path` that look at a file.
const SYSTEM_LOOKS: &str = "exists isfile isdir islink getsize getmtime";
/// Methods of a `Path` that read or write its contents, look at it, or only compute. The values of the last are opened nowhere.
const PATH_READS: &str = "read_text read_bytes";
const PATH_WRITES: &str = "write_text write_bytes";
const PATH_LOOKS: &str = "exists is_file is_dir is_symlink stat lstat";
const PATH_PARTS: &str =
    "name stem suffix suffixes parts parent as_posix relative_to with_suffix with_name is_absolute match";
const PATH_LISTS: &str = "rglob glob iterdir";
const SYSTEM_PATHS: &str = "join basename dirname splitext split normpath isabs commonprefix commonpath";

pub(super) fn read(code: &str) -> CodeEffects {
    let mut reader = PythonReader::default();
    match reader.code(code, 0) {
        Some(()) => reader.found,
        None => CodeEffects::unknown("cannot tell what the python code does"),
    }
}

#[derive(Default)]
struct PythonReader {
    found: CodeEffects,
    /// Names that the code binds.
    bound: BTreeSet<String>,
    /// Names of packages that may only be used in part.
    packages: BTreeSet<String>,
    /// Variables that stand for files which literal text names.
    paths: PathVariables,
    /// The code makes values that are paths.
    uses_paths: bool,
    /// The insides of texts with places for code.
    places: Vec<String>,
}

impl PythonReader {
    /// `None`: not known to be harmless.
    fn code(&mut self, code: &str, depth: usize) -> Option<()> {
        if depth > 3 {
            return None;
        }
        let tokens = self.tokens(code)?;
        self.bind(&tokens);
        self.note_packages(&tokens);
        self.uses_paths |= tokens.iter().any(|token| matches!(token, Word(name) if name == "Path" || name == "glob"));
        if self.uses_paths && depth == 0 {
            self.paths = python_paths::variables(&tokens)?;
        }
        // A loop in such a place binds names of its own.
        let paths = std::mem::take(&mut self.paths);
        for text in std::mem::take(&mut self.places) {
            self.interpolations(&text, depth)?;
        }
        self.paths = paths;
        let mut at = 0;
        let mut statement_start = true;
        while let Some(token) = tokens.get(at) {
            let rest = tokens.get(at + 1..).unwrap_or_default();
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let starts = std::mem::replace(&mut statement_start, false);
            at += 1;
            match token {
                Newline | Other(';') => statement_start = true,
                Other('@' | '`') => return None,
                Word(name) if starts && matches!(name.as_str(), "import" | "from") => {
                    at += self.import(name, rest)?;
                }
                Word(name) if name == "import" || name == "from" && before != Some(&Word("yield".into())) => {
                    return None;
                }
                Word(name) if before == Some(&Other('.')) && name == "format" => {
                    let receiver = at.checked_sub(3).and_then(|at| tokens.get(at));
                    matches!(receiver, Some(Text(text)) if has_plain_places(text)).then_some(())?;
                }
                Word(name) if before == Some(&Other('.')) => {
                    listed(ATTRIBUTES, name).then_some(())?;
                    // `Path.replace` moves a file, and `Path.copy` copies one.
                    let is_text = match name.as_str() {
                        "replace" => takes_two(rest),
                        "copy" => matches!(rest, [Other('('), Other(')'), ..]),
                        _ => true,
                    };
                    (is_text || !self.uses_paths).then_some(())?;
                }
                Word(name) if name == "open" => at += self.open(rest)?,
                Word(name) if name == "os" => at += self.system(rest)?,
                Word(name) if name == "Path" && self.bound.contains(name) => at += self.path(rest)?,
                Word(name) if name == "pathlib" && self.bound.contains(name) => match rest {
                    [Other('.'), Word(class), behind @ ..] if class == "Path" => {
                        at += self.path(behind)?.saturating_add(2);
                    }
                    _ => return None,
                },
                Word(name) if name == "glob" && self.bound.contains(name) => match rest {
                    [Other('.'), Word(function), Other('('), Text(pattern), Other(')' | ','), ..]
                        if matches!(function.as_str(), "glob" | "iglob") =>
                    {
                        self.touch(Action::List, &BTreeSet::from([python_paths::of_pattern(pattern)?]));
                        at += 2;
                    }
                    _ => return None,
                },
                Word(name) if self.paths.contains_key(name) => {
                    let origins = self.paths.get(name).cloned().unwrap_or_default();
                    at += self.method(&origins, rest)?;
                }
                Word(name) if self.packages.contains(name) => at += package(rest)?,
                Word(name) if name == "sys" && rest.get(1) == Some(&Word("path".into())) => {
                    at += search_path(tokens.get(..at.saturating_sub(1)).unwrap_or_default(), rest)?;
                }
                Word(name) => {
                    let keyword_argument = rest.first() == Some(&Other('=')) && rest.get(1) != Some(&Other('='));
                    let known = listed(KEYWORDS, name)
                        || listed(BUILTINS, name)
                        || (self.bound.contains(name) && !name.starts_with("__"))
                        || (keyword_argument && !name.starts_with('_'));
                    known.then_some(())?;
                }
                Text(_) | Number | Other(_) => {}
                _ => return None,
            }
        }
        Some(())
    }

    /// Records names bound by `x = …`, `for x in`, `as x`, `lambda x:`.
    fn bind(&mut self, tokens: &[Token]) {
        let mut binding = false;
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Word(name) if matches!(name.as_str(), "for" | "as" | "lambda") => binding = true,
                Word(name) if name == "in" => binding = false,
                Other(':') | Newline | Other(';') => binding = false,
                Word(name) => {
                    let before = at.checked_sub(1).and_then(|at| tokens.get(at));
                    let assigned = tokens.get(at + 1) == Some(&Other('='))
                        && tokens.get(at + 2) != Some(&Other('='))
                        && matches!(before, None | Some(Newline | Other(';' | ':' | ',')));
                    let several = matches!(before, None | Some(Newline | Other(';' | ',')))
                        && tokens.get(at + 1) == Some(&Other(','));
                    let free = !name.starts_with('_') || name == "_";
                    let shadows = listed(BUILTINS, name) || listed(MODULES, name) || is_dangerous(name);
                    if (binding || assigned || several) && free && !shadows && before != Some(&Other('.')) {
                        self.bound.insert(name.clone());
                    }
                }
                _ => {}
            }
        }
    }

    /// Records the names of imported packages in advance, because a loop may come back to one of them.
    fn note_packages(&mut self, tokens: &[Token]) {
        for window in tokens.windows(3) {
            if let [Word(package), Word(keyword), Word(name)] = window
                && keyword == "as"
                && (listed(PACKAGES, package) || package == "metadata")
            {
                self.packages.insert(name.clone());
            }
        }
    }

    /// `import a, b`, `from a import b`; returns how many tokens that takes.
    fn import(&mut self, keyword: &str, rest: &[Token]) -> Option<usize> {
        let end = rest.iter().position(|token| matches!(token, Newline | Other(';'))).unwrap_or(rest.len());
        let words = rest.get(..end)?.iter().map(|token| match token {
            Word(name) => Some(name.as_str()),
            Other('.') => Some("."),
            Other(',') => Some(","),
            _ => None,
        });
        let words = words.collect::<Option<Vec<&str>>>()?;
        match (keyword, words.as_slice()) {
            ("from", ["pathlib", "import", name @ "Path"])
            | ("from", ["importlib", ".", "metadata", "import", name @ "version"]) => {
                self.bound.insert((*name).to_owned());
            }
            ("from", [module, "import", names @ ..]) if listed(MODULES, module) => {
                for name in names.iter().filter(|name| **name != ",") {
                    listed(ATTRIBUTES, name).then(|| self.bound.insert((*name).to_owned()))?;
                }
            }
            ("from", _) => return None,
            // What follows the name is on the list of attributes, or not known.
            (_, [name @ "importlib", ".", "metadata"]) => {
                self.packages.insert((*name).to_owned());
            }
            (_, ["importlib", ".", "metadata", "as", name]) if !is_dangerous(name) => {
                self.packages.insert((*name).to_owned());
            }
            (_, [package, "as", name]) if listed(PACKAGES, package) && !is_dangerous(name) => {
                self.packages.insert((*name).to_owned());
            }
            (_, words) => {
                for word in words {
                    if listed(MODULES, word) {
                        self.bound.insert((*word).to_owned());
                    } else if listed(PACKAGES, word) {
                        self.packages.insert((*word).to_owned());
                    } else if matches!(*word, "pathlib" | "glob") {
                        self.bound.insert((*word).to_owned());
                    // Uses of `os` are checked where they occur.
                    } else if !matches!(*word, "," | "os") {
                        return None;
                    }
                }
            }
        }
        Some(end)
    }

    /// `open('file')`, `open('file', 'w')`; returns how many tokens that takes.
    fn open(&mut self, rest: &[Token]) -> Option<usize> {
        let end = rest.iter().position(|token| *token == Other(')'))?;
        let (origins, options) = match rest.get(..end)? {
            [Other('('), Text(path), options @ ..] => {
                (BTreeSet::from([PathOrigin { path: path.clone(), names: None }]), options)
            }
            [Other('('), Word(name), options @ ..] => (self.paths.get(name)?.clone(), options),
            _ => return None,
        };
        self.opened(&origins, options)?;
        Some(end.saturating_add(1))
    }

    /// Options of `open`: a mode and an encoding.
    fn opened(&mut self, origins: &BTreeSet<PathOrigin>, options: &[Token]) -> Option<()> {
        let mode = match options {
            [] => "r",
            [Other(','), Text(mode)] => mode,
            [Other(','), Word(name), Other('='), Text(mode)] if name == "mode" => mode,
            [Other(','), Word(name), Other('='), Text(_)] if name == "encoding" => "r",
            [Other(','), Text(mode), Other(','), Word(name), Other('='), Text(_)] if name == "encoding" => mode,
            _ => return None,
        };
        if mode.contains(['r', '+']) || mode.is_empty() {
            self.touch(Action::Read, origins);
        }
        if mode.contains(['w', 'a', 'x', '+']) {
            self.touch(Action::Write, origins);
        }
        Some(())
    }

    /// Notes an effect on what a value stands for.
    fn touch(&mut self, action: Action, origins: &BTreeSet<PathOrigin>) {
        for PathOrigin { path, names } in origins {
            match (names, action) {
                (Some(names), Action::Read | Action::Write) => {
                    self.found.trees.push((action, path.clone(), names.clone()));
                }
                (None, Action::Write) => self.found.writes.push(path.clone()),
                // A directory that is listed counts as one that is read, as for `os.listdir`.
                _ => self.found.reads.push(path.clone()),
            }
        }
    }

    /// What follows a path: `.read_text()`, `.write_text(…)`, `.name`; returns how many tokens that takes.
    fn method(&mut self, origins: &BTreeSet<PathOrigin>, rest: &[Token]) -> Option<usize> {
        let [Other('.'), Word(name), behind @ ..] = rest else { return Some(0) };
        match name.as_str() {
            name if listed(PATH_READS, name) => self.touch(Action::Read, origins),
            name if listed(PATH_WRITES, name) => self.touch(Action::Write, origins),
            // What is there can be seen, as in a listing; a single name is looked at.
            name if listed(PATH_LOOKS, name) => {
                let one: BTreeSet<PathOrigin> =
                    origins.iter().filter(|origin| origin.names.is_none()).cloned().collect();
                self.touch(Action::Read, &one);
            }
            "open" => {
                let end = behind.iter().position(|token| *token == Other(')'))?;
                let [Other('('), options @ ..] = behind.get(..end)? else { return None };
                match options {
                    [] => self.touch(Action::Read, origins),
                    [Text(mode)] if mode.contains(['w', 'a', 'x', '+']) => self.touch(Action::Write, origins),
                    [Text(_)] => {}
                    _ => return None,
                }
                self.touch(Action::Read, origins);
            }
            name if listed(PATH_PARTS, name) => {}
            name if listed(PATH_LISTS, name) => {
                let pattern = match behind {
                    [Other('('), Text(pattern), Other(')'), ..] => pattern,
                    [Other('('), Other(')'), ..] if name == "iterdir" => "*",
                    _ => return None,
                };
                self.touch(Action::List, &python_paths::below(origins, pattern)?);
            }
            _ => return None,
        }
        Some(2)
    }

    /// `.getcwd`, `.path.join`, `.path.exists('file')` after `os`; returns how many tokens that takes.
    fn system(&mut self, rest: &[Token]) -> Option<usize> {
        let (taken, read) = match rest {
            [Other('.'), Word(path), Other('.'), Word(function), Other('('), Text(file), Other(')'), ..]
                if path == "path" && listed(SYSTEM_LOOKS, function) =>
            {
                (7, file.as_str())
            }
            [Other('.'), Word(path), Other('.'), Word(function), ..] if path == "path" => {
                return listed(SYSTEM_PATHS, function).then_some(4);
            }
            [Other('.'), Word(name), Other('('), Text(file), Other(')'), ..] if name == "listdir" => (5, file.as_str()),
            [Other('.'), Word(name), Other('('), Other(')'), ..] if name == "listdir" => (4, "."),
            [Other('.'), Word(name), ..] => return listed(SYSTEM, name).then_some(2),
            _ => return None,
        };
        self.found.reads.push(read.to_owned());
        Some(taken)
    }

    /// `('file').read_text()` after `Path`; returns how many tokens that takes.
    fn path(&mut self, rest: &[Token]) -> Option<usize> {
        let (origins, behind) = python_paths::literal(rest)?;
        let taken = rest.len().checked_sub(behind.len())?;
        Some(taken.saturating_add(self.method(&origins, behind)?))
    }

    fn tokens(&mut self, code: &str) -> Option<Vec<Token>> {
        let mut cursor = Cursor::new(code);
        let mut found = Vec::new();
        while let Some(character) = cursor.peek() {
            match character {
                '\n' => {
                    cursor.next();
                    found.push(Newline);
                }
                _ if character.is_whitespace() => cursor.skip(1),
                '#' => {
                    cursor.take_while(|next| next != '\n');
                }
                '\\' => {
                    cursor.next();
                    cursor.take_if('\n').then_some(())?;
                }
                '"' | '\'' => {
                    let text = string(&mut cursor)?;
                    found.push(Text(if text.contains('\\') { return_if_plain(&text)? } else { text }));
                }
                _ if character.is_ascii_alphabetic() || character == '_' => {
                    let name = cursor.name();
                    match cursor.peek() {
                        Some('"' | '\'')
                            if name.len() <= 2 && name.chars().all(|letter| "rRbBuUfF".contains(letter)) =>
                        {
                            let text = string(&mut cursor)?;
                            if name.contains(['f', 'F']) {
                                self.places.push(text.clone());
                            }
                            // With a prefix, the text is not a plain string and must not name a file.
                            found.push(Text(text));
                            if name.contains(['f', 'F', 'b', 'B']) {
                                found.push(Other('~'));
                            }
                        }
                        _ => found.push(Word(name)),
                    }
                }
                _ if character.is_ascii_digit() => {
                    cursor.take_while(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '.'));
                    found.push(Number);
                }
                _ if character.is_ascii() => {
                    cursor.next();
                    found.push(Other(character));
                }
                _ => return None,
            }
        }
        Some(found)
    }

    /// The code in the braces of an f-string.
    fn interpolations(&mut self, text: &str, depth: usize) -> Option<()> {
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let body = rest.get(start + 1..)?;
            if let Some(after) = body.strip_prefix('{') {
                rest = after;
                continue;
            }
            let end = body.find('}')?;
            let code = body.get(..end)?;
            // `:=` binds a name for everything that follows.
            if code.contains(['{', '\\']) || code.contains(":=") && code.contains('(') {
                return None;
            }
            // The surrounding code binds the names and is read later, so they are checked there.
            let breaks = |character: char| !is_name_character(character);
            if code.split(breaks).any(|name| name.starts_with("__") || is_dangerous(name)) {
                return None;
            }
            if code.contains('(') {
                self.code(code, depth + 1)?;
            } else {
                for attribute in code.split('.').skip(1) {
                    let name = attribute.split(breaks).next().unwrap_or_default();
                    let is_format = name.bytes().all(|byte| byte.is_ascii_digit()) || code.contains(':');
                    (is_format || listed(ATTRIBUTES, name)).then_some(())?;
                }
            }
            rest = body.get(end + 1..)?;
        }
        Some(())
    }
}

/// Whether a call has two arguments or more, and none that stands for several.
fn takes_two(rest: &[Token]) -> bool {
    let [Other('('), arguments @ ..] = rest else { return false };
    let mut depth = 0_usize;
    let mut commas = 0_usize;
    for (at, token) in arguments.iter().enumerate() {
        match token {
            Other('(' | '[' | '{') => depth = depth.saturating_add(1),
            Other(')' | ']' | '}') if depth > 0 => depth = depth.saturating_sub(1),
            Other(')') => return commas > 0 && at.checked_sub(1).and_then(|at| arguments.get(at)) != Some(&Other(',')),
            Other(',') if depth == 0 => commas = commas.saturating_add(1),
            Other('*' | '=') if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// Whether the places of a format string are plain: `{}`, `{0}`, `{name:>8}`. `{0.x}` and `{0[x]}` reach into values.
fn has_plain_places(text: &str) -> bool {
    text.split('{').skip(1).all(|place| {
        let name = place.split(['}', ':', '!']).next().unwrap_or_default();
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// `.version`, `.metadata.version` after a package; returns how many tokens that takes.
fn package(rest: &[Token]) -> Option<usize> {
    match rest {
        [Other('.'), Word(part), Other('.'), Word(name), ..] if part == "metadata" => {
            listed(PACKAGE_PARTS, name).then_some(4)
        }
        [Other('.'), Word(name), ..] => listed(PACKAGE_PARTS, name).then_some(2),
        _ => None,
    }
}

/// `.path` after `sys`, where it is only printed: changing the list changes where modules come from.
fn search_path(before: &[Token], rest: &[Token]) -> Option<usize> {
    let called = matches!(before, [.., Word(name), Other('(')] if matches!(name.as_str(), "print" | "join" | "len"));
    let ends = matches!(rest, [Other('.'), Word(_), Other(')'), ..]);
    (called && ends).then_some(2)
}

/// Names that reach beyond what the lists above allow.
const DANGEROUS: &str = include_str!("words/python-dangerous.txt");

fn is_dangerous(name: &str) -> bool {
    listed(DANGEROUS, name)
}

/// Decodes text that contains only simple escapes.
fn return_if_plain(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next()? {
            'n' => plain.push('\n'),
            't' => plain.push('\t'),
            escaped @ ('\\' | '\'' | '"') => plain.push(escaped),
            // Other escapes could mean anything; a NUL cannot be part of a file name.
            _ => plain.push('\0'),
        }
    }
    Some(plain)
}

fn string(cursor: &mut Cursor) -> Option<String> {
    let quote = cursor.next()?;
    let triple = cursor.peek() == Some(quote) && cursor.ahead(1) == Some(quote);
    if !triple {
        return cursor.until(quote);
    }
    cursor.skip(2);
    let mut text = String::new();
    loop {
        if cursor.peek()? == quote && cursor.ahead(1) == Some(quote) && cursor.ahead(2) == Some(quote) {
            cursor.skip(3);
            return Some(text);
        }
        match cursor.next()? {
            '\\' => {
                text.push('\\');
                text.push(cursor.next()?);
            }
            character => text.push(character),
        }
    }
}
