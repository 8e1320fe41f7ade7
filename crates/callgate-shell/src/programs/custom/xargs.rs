//! `xargs`: a command whose last words come from standard input.

use super::placeholder::replaced;
use crate::programs::NestedBody;
use crate::programs::collect::Collector;
use crate::programs::scan::Given;
use crate::programs::table::{Style, Table};
use crate::stream::{Listing, Stream};
use crate::word::{DIGITS, ListedNames, Word};

/// How many lines of known text are followed one by one.
const MAX_LINES: usize = 100;

pub(super) fn read(table: &Table, words: &[Word], collector: &mut Collector<'_>) -> Stream {
    let program = collector.program.clone();
    let (scanned, _) = super::front(&Style::Posix, table, words, &program, collector);
    if scanned.ended {
        return Stream::Data;
    }
    let given = |name: &str| scanned.given().find(|given| given.form.names.iter().any(|other| other == name));
    let zero = |given: &&Given<'_>| matches!(given.values.first(), Some((word, _)) if word.known() == Some("0"));
    let ends = matches!(collector.stdin, Stream::Unconnected | Stream::Text(_) | Stream::Names(_));
    if !ends && given("-P").filter(zero).is_some() {
        collector.opaque("as many processes at once as there are words, of which there may be no end", "-P");
    }
    if let Some((name, _)) = given("--process-slot-var").and_then(|given| given.values.first()) {
        // A number for each process that runs at the same time.
        let assignment = match name.as_ref() {
            Word::Known(name) => Word::Known(format!("{name}=0")),
            other => other.clone(),
        };
        collector.assign(&assignment, "--process-slot-var");
    }
    let mut command: Vec<Word> = scanned.operands.iter().map(|word| word.as_ref().clone()).collect();
    if command.is_empty() {
        command.push(Word::Known("echo".to_owned()));
    }
    let placeholder = placeholder(given("-I"), given("-i"));
    let items = match (given("-a").is_some(), collector.stdin) {
        (true, _) => vec![Word::Unknown { why: "what stands in the file of xargs -a".to_owned(), many: true }],
        (false, stream) => {
            let separator = if given("-0").is_some() { Separator::Character('\0') } else { separator(given("-d")) };
            let separator =
                if placeholder.is_some() && separator == Separator::Blanks { Separator::Lines } else { separator };
            items(stream, separator)
        }
    };
    let commands: Vec<Vec<Word>> = match placeholder {
        Some(Ok(placeholder)) => items
            .iter()
            .map(|item| command.iter().map(|word| replaced(word, &placeholder, &single(item))).collect())
            .collect(),
        Some(Err(())) => {
            collector.opaque("the placeholder of xargs is not known", "-I");
            Vec::new()
        }
        None => vec![command.iter().cloned().chain(items).collect()],
    };
    for words in commands {
        collector.nest(NestedBody::Words(words), None, Some(Stream::Unconnected));
    }
    Stream::Unknown
}

fn placeholder(named: Option<&Given<'_>>, old: Option<&Given<'_>>) -> Option<Result<String, ()>> {
    Some(match named.or(old)?.values.first().map(|(word, _)| word.as_ref()) {
        Some(Word::Known(text)) => Ok(text.clone()),
        None if named.is_none() => Ok("{}".to_owned()),
        _ => Err(()),
    })
}

/// With a placeholder, each item is one word.
fn single(item: &Word) -> Word {
    match item {
        Word::Below { directory, names, .. } => {
            Word::Below { directory: directory.clone(), many: false, names: names.clone() }
        }
        Word::Unknown { why, .. } => Word::Unknown { why: why.clone(), many: false },
        other => other.clone(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Blanks,
    Lines,
    Character(char),
    Unknown,
}

fn separator(given: Option<&Given<'_>>) -> Separator {
    let Some(given) = given else {
        return Separator::Blanks;
    };
    match given.values.first().and_then(|(word, _)| word.known()) {
        Some("\\n" | "\n") => Separator::Character('\n'),
        Some("\\0") => Separator::Character('\0'),
        Some("\\t") => Separator::Character('\t'),
        Some(text) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Separator::Character(character),
                _ => Separator::Unknown,
            }
        }
        None => Separator::Unknown,
    }
}

/// The words that standard input turns into.
fn items(stream: &Stream, separator: Separator) -> Vec<Word> {
    let unknown = || vec![Word::Unknown { why: "what xargs reads".to_owned(), many: true }];
    match stream {
        Stream::Names(directories) => directories.iter().map(|listing| listing.word(true)).collect(),
        // Nothing comes.
        Stream::Unconnected => vec![Listing { names: ListedNames::Nothing, ..Listing::all("./") }.word(true)],
        Stream::Text(text) => {
            let found = match separator {
                Separator::Blanks => match quoted_words(text) {
                    Some(words) => words,
                    None => return unknown(),
                },
                Separator::Lines => {
                    if text.contains(['\'', '"', '\\']) {
                        return unknown();
                    }
                    text.lines().map(|line| line.trim_start().to_owned()).filter(|line| !line.is_empty()).collect()
                }
                Separator::Character(character) => {
                    let body = text.strip_suffix(character).unwrap_or(text);
                    body.split(character).map(str::to_owned).collect()
                }
                Separator::Unknown => return unknown(),
            };
            if found.len() > MAX_LINES { unknown() } else { found.into_iter().map(Word::Known).collect() }
        }
        Stream::Number | Stream::Numbers => vec![Word::Glob(DIGITS.to_owned())],
        Stream::Word
        | Stream::Integer
        | Stream::File(_)
        | Stream::Data
        | Stream::Endless
        | Stream::Environment
        | Stream::Fetched
        | Stream::Unknown => unknown(),
    }
}

/// Words between blanks; quotes and backslashes as `xargs` takes them.
fn quoted_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => loop {
                let current = word.get_or_insert_default();
                match characters.next()? {
                    '\n' => return None,
                    inside if inside == character => break,
                    inside => current.push(inside),
                }
            },
            '\\' => word.get_or_insert_default().push(characters.next()?),
            ' ' | '\t' | '\n' => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}
