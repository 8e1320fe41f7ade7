//! `fd`: a search whose results may be handed to a command.

use super::placeholder::{holds, replaced};
use crate::programs::NestedBody;
use crate::programs::collect::Collector;
use crate::programs::read::names_below;
use crate::programs::table::{Style, Table};
use crate::stream::{Listing, Stream};
use crate::word::{ListedNames, Word};

const PLACEHOLDERS: [&str; 5] = ["{}", "{.}", "{/}", "{//}", "{/.}"];

pub(super) fn read(table: &Table, words: &[Word], collector: &mut Collector<'_>) -> Stream {
    let start = words.iter().position(|word| match word.known() {
        Some(text) => {
            matches!(text, "-x" | "-X" | "--exec" | "--exec-batch")
                || text.starts_with("--exec=")
                || text.starts_with("--exec-batch=")
        }
        None => false,
    });
    let (front, back) = words.split_at(start.unwrap_or(words.len()));
    let program = collector.program.clone();
    collector.keeps_listed = true;
    let (_, stdout) = super::front(&Style::Long, table, front, &program, collector);
    let Some((option, command)) = back.split_first() else {
        return stdout;
    };
    let mut command: Vec<Word> = command.to_vec();
    if let Some((_, glued)) = option.known().and_then(|text| text.split_once('=')) {
        command.insert(0, Word::Known(glued.to_owned()));
    }
    if let Some(end) = command.iter().position(|word| word.known() == Some(";")) {
        if command.len() > end + 1 {
            collector.opaque("what stands behind the command of fd is not read", "-x");
        }
        command.truncate(end);
    }
    if !command.iter().any(|word| PLACEHOLDERS.iter().any(|placeholder| holds(word, placeholder))) {
        command.push(Word::Known("{}".to_owned()));
    }
    let directories = match names_below(&collector.listed, false) {
        Stream::Names(directories) => directories,
        _ => Vec::new(),
    };
    if directories.is_empty() {
        collector.opaque("where fd searches is not known", "-x");
    }
    for directory in directories {
        let item = directory.word(false);
        // All but `{}` are pieces of names.
        let piece = Listing { names: ListedNames::Changed, ..directory }.word(false);
        let words = command.iter().map(|word| {
            PLACEHOLDERS.iter().fold(word.clone(), |word, placeholder| {
                replaced(&word, placeholder, if *placeholder == "{}" { &item } else { &piece })
            })
        });
        collector.nest(NestedBody::Words(words.collect()), None, None);
    }
    Stream::Unknown
}
