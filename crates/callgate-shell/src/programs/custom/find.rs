//! `find`: starting points, then an expression whose actions may run, write and delete.

use super::find_names;
use super::placeholder::{holds, replaced};
use crate::effect::Action;
use crate::programs::NestedBody;
use crate::programs::collect::Collector;
use crate::programs::paths;
use crate::programs::read::names_below;
use crate::programs::scan::is_many;
use crate::programs::table::{OptionForm, Table, Values};
use crate::secret_names::looks_for_secrets;
use crate::stream::{Listing, Stream};
use crate::word::{ListedNames, Word};

/// How many pairs of a starting point and a test or command are looked at, beyond the first test.
const MAX_PAIRS: usize = 5_000;

pub(super) fn read(table: &Table, words: &[Word], collector: &mut Collector<'_>) -> Stream {
    let mut at = 0;
    let follows = words.iter().any(|word| matches!(word.known(), Some("-L" | "-follow")));
    collector.selection.follows |= follows;
    let mut starts: Vec<Word> = Vec::new();
    // Options that must stand in front; `-f` of BSD names a starting point.
    while let Some(Word::Known(text)) = words.get(at) {
        match text.as_str() {
            "-H" | "-L" | "-P" | "-E" | "-X" | "-d" | "-s" | "-x" => at += 1,
            "-D" => at += 2,
            "-f" => {
                starts.extend(words.get(at.saturating_add(1)).cloned());
                at += 2;
            }
            _ if text.starts_with("-O") => at += 1,
            "--help" | "-help" | "--version" | "-version" => return Stream::Data,
            _ => break,
        }
    }
    while let Some(word) = words.get(at) {
        let in_expression = match word {
            Word::Known(text) => {
                text.starts_with('-') && text.len() > 1 || matches!(text.as_str(), "(" | ")" | "!" | ",")
            }
            Word::Partly { prefix, .. } => prefix.starts_with('-'),
            _ => false,
        };
        if in_expression {
            break;
        }
        if matches!(word, Word::Unknown { .. }) {
            collector.opaque("a starting point of find is not known and may be an action", "starting points");
        }
        starts.push(word.clone());
        at += 1;
    }
    if starts.is_empty() {
        starts.push(Word::Known(".".to_owned()));
    }
    for start in &starts {
        collector.path(Action::List, start, true, &[], "starting point");
    }
    let rest = words.get(at..).unwrap_or_default();
    let mut expression = Expression {
        table,
        starts: &starts,
        collector,
        prints_names: true,
        deletes: false,
        left: MAX_PAIRS,
        names: ListedNames::All,
    };
    // Behind a link, any name may follow.
    expression.names = if follows { ListedNames::All } else { expression.bound(rest) };
    expression.read(rest);
    let names = expression.names;
    match names_below(&starts, false) {
        Stream::Names(listings) if expression.prints_names => {
            Stream::Names(listings.into_iter().map(|listing| Listing { names: names.clone(), ..listing }).collect())
        }
        other if expression.prints_names => other,
        _ => Stream::Unknown,
    }
}

/// Whether no `find` knows such a word, so that it complains before it looks at anything: a word without a dash
/// ("paths must precede expression"), parentheses with something at them, a letter of its own, a number, or
/// characters that no test or action has in its name.
fn is_refused(name: &str) -> bool {
    let Some(body) = name.strip_prefix('-') else {
        return !matches!(name, "(" | ")" | "!" | ",");
    };
    let is_named = body.starts_with(|first: char| first.is_ascii_alphabetic())
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    !is_named || body.len() == 1
}

/// A number, perhaps with a sign.
fn is_depth(word: &Word) -> bool {
    word.known().is_some_and(|text| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

struct Expression<'e, 'a, 'c> {
    table: &'e Table,
    starts: &'e [Word],
    collector: &'c mut Collector<'a>,
    prints_names: bool,
    deletes: bool,
    /// How many more pairs of a starting point and a test or command are looked at.
    left: usize,
    /// The names that its tests let through.
    names: ListedNames,
}

impl<'e> Expression<'e, '_, '_> {
    fn read(&mut self, words: &[Word]) {
        let mut at = 0;
        // An action was meant, though find refuses it as it stands: whoever wrote that wants to hear of it.
        let mut mistyped = false;
        while let Some(word) = words.get(at) {
            at += 1;
            let name = match word {
                Word::Known(name) => name,
                // Names of files that start like none of its own words: see `is_refused`.
                Word::Glob(pattern) if pattern.starts_with(|first: char| first.is_ascii_alphanumeric()) => continue,
                _ => {
                    self.collector.opaque("a part of the expression of find is not known", "expression");
                    continue;
                }
            };
            match name.as_str() {
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    self.prints_names = false;
                    let rest = words.get(at..).unwrap_or_default();
                    let end = command_end(rest);
                    self.run(rest.get(..end).unwrap_or_default(), name.ends_with("dir"));
                    at = at.saturating_add(end).saturating_add(1);
                }
                // BSD knows `-depth 2` as a test beside the flag.
                "-depth" if words.get(at).is_some_and(is_depth) => at += 1,
                // Once more deletes nothing more.
                "-delete" if self.deletes => {}
                "-delete" => {
                    self.deletes = true;
                    if let ListedNames::Matching(globs) = &self.names {
                        self.collector.selection.only.clone_from(globs);
                    }
                    for start in self.starts {
                        self.collector.path(Action::Delete, start, true, &[], name);
                    }
                    self.collector.selection.only.clear();
                }
                "-files0-from" => {
                    self.collector.opaque("the starting points of find stand in a file", name);
                    at += 1;
                }
                _ => match self.form(name) {
                    Some(form) => at = at.saturating_add(self.apply(form, name, words.get(at..).unwrap_or_default())),
                    None if is_refused(name) && !(mistyped && name.starts_with('-')) => {
                        mistyped |= name.contains("exec") || name.contains("delete");
                    }
                    None => {
                        let why = format!("option {name} of find is not known");
                        self.collector.opaque(&why, "expression");
                    }
                },
            }
        }
    }

    /// The names that the tests of the expression let through.
    fn bound(&self, words: &[Word]) -> ListedNames {
        let mut tests = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let Some(name) = word.known() else { return ListedNames::All };
            at += 1;
            let rest = words.get(at..).unwrap_or_default();
            tests.push(find_names::test(name, rest));
            let taken = match (name, self.form(name)) {
                ("-exec" | "-execdir" | "-ok" | "-okdir", _) => command_end(rest).saturating_add(1),
                ("-depth", _) if rest.first().is_some_and(is_depth) => 1,
                (_, Some(form)) => form.values.roles().len(),
                ("(" | ")" | "!" | "," | "-delete", None) => 0,
                (_, None) => return ListedNames::All,
            };
            at = at.saturating_add(taken);
        }
        find_names::bound(&tests)
    }

    fn form(&self, name: &str) -> Option<&'e OptionForm> {
        let forms = &self.table.level.options;
        let exact = self.table.level.index.find(forms, name).map(|(form, _)| form);
        exact.or_else(|| {
            self.table.level.index.fronts(forms).find(|form| {
                form.names.iter().any(|other| other.strip_suffix('*').is_some_and(|front| name.starts_with(front)))
            })
        })
    }

    /// Applies a test or an action; leaves how many words it takes.
    fn apply(&mut self, form: &OptionForm, name: &str, words: &[Word]) -> usize {
        if matches!(name, "-printf" | "-ls") {
            self.prints_names = false;
        }
        for effect in &form.effects {
            self.collector.stated(effect, name);
        }
        let Values::Words(roles) = &form.values else {
            return 0;
        };
        for (role, word) in roles.iter().zip(words) {
            if is_many(word) && !matches!(word, Word::Glob(_)) {
                self.collector.opaque("an unquoted value in the expression of find may hold actions", name);
            } else if matches!(word, Word::Glob(_)) && !role.kind.is_text() {
                self.collector.opaque("a wildcard stands where find takes one word", name);
            }
            self.collector.role(word, role, name);
            if let ("-name" | "-iname", Some(wanted)) = (name, word.known()) {
                self.looks_for(wanted, name);
            }
        }
        roles.len()
    }

    /// Pays for something that is done for each starting point; whether that may be.
    fn pay(&mut self) -> bool {
        match self.left.checked_sub(self.starts.len()) {
            Some(left) => {
                crate::work::count(self.starts.len());
                self.left = left;
                true
            }
            None => {
                self.collector.opaque("more starting points and tests of find than are followed", "expression");
                false
            }
        }
    }

    /// Whoever looks for one certain name wants that file: a policy may care which.
    fn looks_for(&mut self, wanted: &str, name: &str) {
        if wanted.contains('*') && aims_at_secrets(wanted) {
            // What the wildcard stands for may be nothing, or anything: `.env*`, `*.pem`.
            for filling in ["", "x"] {
                self.looks_for(&wanted.replace('*', filling), name);
            }
            return;
        }
        if wanted.is_empty() || wanted.contains(['*', '?', '[', '\\', '/']) {
            return;
        }
        if !self.pay() {
            return;
        }
        for start in self.starts.iter().filter_map(Word::known) {
            let pattern = format!("{}/**/{}", paths::escape(start.trim_end_matches('/')), paths::escape(wanted));
            self.collector.path(Action::List, &Word::Glob(pattern), false, &[], name);
        }
    }

    /// A command for each name, once for every starting point.
    fn run(&mut self, command: &[Word], in_directory: bool) {
        if command.is_empty() || !self.pay() {
            return;
        }
        for start in self.starts {
            let directory = match (start, names_below(std::slice::from_ref(start), false)) {
                (Word::Known(text), _) if in_directory => {
                    Some(paths::absolute(self.collector.directory.as_deref(), text))
                }
                (_, Stream::Names(folders)) => folders.into_iter().next().map(|listing| listing.directory),
                _ => None,
            };
            let item = match directory {
                Some(directory) => Word::Below { directory, many: false, names: self.names.clone() },
                None => Word::Unknown { why: "{}".to_owned(), many: false },
            };
            let words: Vec<Word> = command.iter().map(|word| replaced(word, "{}", &item)).collect();
            self.collector.nest(NestedBody::Words(words), None, Some(Stream::Unconnected));
            if let Some(nested) = self.collector.nested.last_mut().filter(|_| in_directory) {
                nested.directory = Some(None);
            }
            if !command.iter().any(|word| holds(word, "{}")) {
                break;
            }
        }
    }
}

/// The index of the `;`, or of the `+` behind `{}`, that ends a command.
fn command_end(words: &[Word]) -> usize {
    let mut before = None;
    for (at, word) in words.iter().enumerate() {
        match word.known() {
            Some(";") => return at,
            Some("+") if before == Some("{}") => return at,
            text => before = text,
        }
    }
    words.len()
}

/// Whether a pattern for names may be meant for files with secrets in them; a policy says which names those are.
fn aims_at_secrets(pattern: &str) -> bool {
    const PARTS: [&str; 10] = [".env", "id_", ".pem", ".p12", ".pfx", ".kdb", ".jks", ".ppk", ".ovpn", ".key"];
    looks_for_secrets(pattern) || PARTS.iter().any(|part| pattern.contains(part))
}
