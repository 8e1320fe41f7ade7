//! GNU `parallel`: shell source made of words and of arguments behind `:::`.

use super::placeholder::is_plain;
use crate::programs::NestedBody;
use crate::programs::collect::Collector;
use crate::programs::table::{Style, Table};
use crate::stream::Stream;
use crate::word::Word;

/// How many arguments are followed one by one.
const MAX_ARGUMENTS: usize = 50;

pub(super) fn read(table: &Table, words: &[Word], collector: &mut Collector<'_>) -> Stream {
    let separator = words.iter().position(|word| word.known().is_some_and(|text| text.starts_with(":::")));
    let (front, back) = words.split_at(separator.unwrap_or(words.len()));
    let program = collector.program.clone();
    let (scanned, _) = super::front(&Style::Posix, table, front, &program, collector);
    if scanned.ended {
        return Stream::Data;
    }
    let command: Option<Vec<&str>> = scanned.operands.iter().map(|word| word.known()).collect();
    // Only the plain case is followed: known words, one list of plain arguments.
    let arguments: Option<Vec<&str>> = match back.split_first() {
        Some((Word::Known(mark), arguments)) if mark == ":::" => arguments.iter().map(Word::known).collect(),
        _ => None,
    };
    let (Some(command), Some(arguments)) = (command.filter(|words| !words.is_empty()), arguments) else {
        collector.opaque("what parallel runs is not known", "its words");
        return Stream::Unknown;
    };
    let special = |text: &&str| !is_plain(text);
    let other_placeholder = command.iter().any(|word| word.replace("{}", "").contains('{'));
    if other_placeholder || arguments.len() > MAX_ARGUMENTS || arguments.iter().any(special) {
        collector.opaque("the arguments of parallel are not plain words", ":::");
        return Stream::Unknown;
    }
    let source = command.join(" ");
    for argument in arguments {
        let source =
            if source.contains("{}") { source.replace("{}", argument) } else { format!("{source} {argument}") };
        let body = NestedBody::Shell { source: Word::Known(source), parameters: Vec::new() };
        collector.nest(body, None, Some(Stream::Unconnected));
    }
    Stream::Unknown
}
