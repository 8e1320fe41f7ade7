//! `read_file`: lines of a file with their numbers, a slice of them or the block around one.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::file_read::missing;
use crate::files;
use crate::result::{ToolError, ToolResult, io_error};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

/// The longest line that is returned whole, in characters.
const LONGEST_LINE: usize = 500;
/// The largest file whose blocks are found.
const LARGEST_BLOCK_FILE: u64 = 64 * 1024 * 1024;

pub(super) fn spec() -> ToolSpec {
    let block = object(
        json!({
            "anchor_line": {"type": "integer", "minimum": 1, "description": "A line of the block; `offset` unless said"},
            "max_levels": {"type": "integer", "minimum": 0, "description": "How many levels of indentation to go up; 4 unless said, 0 for all"},
            "include_siblings": {"type": "boolean", "description": "Go up one level more"},
            "include_header": {"type": "boolean", "description": "Return the line above the block, too"},
            "max_lines": {"type": "integer", "minimum": 1, "description": "How many lines to return; `limit` unless said"},
        }),
        &[],
    );
    let properties = json!({
        "file_path": {"type": "string", "minLength": 1, "description": "The file"},
        "offset": {"type": "integer", "minimum": 1, "description": "The first line; 1 unless said"},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines; 2000 unless said"},
        "mode": {"type": "string", "description": "`slice` or `indentation`"},
        "indentation": block,
    });
    ToolSpec::new("read_file", "Read lines of a text file with their numbers", object(properties, &["file_path"]))
        .claims(false, Idempotency::Safe)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    file_path: String,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    indentation: Block,
}

#[derive(Debug, Default, Deserialize)]
struct Block {
    anchor_line: Option<u64>,
    max_levels: Option<usize>,
    #[serde(default)]
    include_siblings: bool,
    #[serde(default)]
    include_header: bool,
    max_lines: Option<u64>,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { file_path, offset, limit, mode, indentation } = run.arguments()?;
    let (offset, limit) = (offset.unwrap_or(1), limit.unwrap_or(2_000));
    let mode = mode.as_deref().map(str::trim).filter(|mode| !mode.is_empty()).unwrap_or("slice");
    if !["slice", "indentation"].contains(&mode) {
        let data = json!({"mode": mode, "supported": ["slice", "indentation"]});
        return Err(ToolError::validation("mode is not supported").data(data));
    }
    let place = run.path(&file_path)?;
    let open = || files::regular(&place).map_err(|error| missing(error, "file_path", &file_path));
    let failed = |error: ReadError| match error {
        ReadError::NotText => ToolError::validation("the file is not UTF-8 text").data(json!({"file_path": place})),
        ReadError::Io(error) => io_error("read", Path::new(&file_path), &error),
    };
    let (first, count) = if mode == "slice" {
        (offset, limit)
    } else {
        let file = open()?;
        if file.metadata().is_ok_and(|data| data.len() > LARGEST_BLOCK_FILE) {
            let message = format!("blocks are found in files of at most {LARGEST_BLOCK_FILE} bytes; read a slice");
            return Err(ToolError::validation(message));
        }
        let anchor = indentation.anchor_line.unwrap_or(offset);
        let lines = indents(file).map_err(failed)?;
        if anchor == 0 || usize::try_from(anchor).map_or(true, |anchor| anchor > lines.len()) {
            let data = json!({"anchor_line": anchor, "total_lines": lines.len()});
            return Err(ToolError::validation("anchor_line exceeds file length").data(data));
        }
        let lines_wanted = indentation.max_lines.unwrap_or(limit);
        match block(&lines, anchor, &indentation) {
            Some((start, end)) => (start, lines_wanted.min(end.saturating_sub(start).saturating_add(1))),
            None => (anchor, lines_wanted),
        }
    };
    let slice = slice(open()?, first, count).map_err(failed)?;
    if first > slice.total {
        let data = json!({"offset": first, "total_lines": slice.total});
        return Err(ToolError::validation("offset exceeds file length").data(data));
    }
    let data = json!({
        "file_path": place, "offset": offset, "limit": limit, "total_lines": slice.total, "mode": mode,
    });
    let last = first.saturating_add(count).saturating_sub(1);
    Ok(ToolResult::text(slice.text).truncated(last < slice.total).data(data))
}

#[derive(Debug)]
enum ReadError {
    NotText,
    Io(io::Error),
}

/// Hands the file over in pieces of valid text. Memory does not grow with the file, nor with its lines.
fn pieces(mut file: impl Read, mut each: impl FnMut(&str)) -> Result<(), ReadError> {
    let mut buffer = vec![0_u8; 256 * 1024];
    let mut kept = 0_usize;
    loop {
        let length = file.read(buffer.get_mut(kept..).unwrap_or_default()).map_err(ReadError::Io)?;
        let filled = kept.saturating_add(length);
        let bytes = buffer.get(..filled).unwrap_or_default();
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => {
                each(text);
                filled
            }
            // a character that the next piece completes
            Err(error) if error.error_len().is_none() && length > 0 => {
                let valid = error.valid_up_to();
                each(bytes.get(..valid).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default());
                valid
            }
            Err(_) => return Err(ReadError::NotText),
        };
        if length == 0 {
            return Ok(());
        }
        buffer.copy_within(valid..filled, 0);
        kept = filled.saturating_sub(valid);
    }
}

struct Slice {
    text: String,
    total: u64,
}

/// Some lines as they are returned, and how many there are in all.
fn slice(file: impl Read, first: u64, count: u64) -> Result<Slice, ReadError> {
    let last = first.saturating_add(count);
    let mut slice = Slice { text: String::new(), total: 0 };
    // the line that is being read: its number, how many characters of it are there, and whether it has any
    let (mut number, mut length, mut begun) = (1_u64, 0_usize, false);
    pieces(file, |mut text| {
        while !text.is_empty() {
            let (part, rest, ends) = match text.split_once('\n') {
                Some((part, rest)) => (part, rest, true),
                None => (text, "", false),
            };
            if (first..last).contains(&number) {
                if !begun {
                    slice.text.push_str(&format!("L{number}: "));
                }
                for letter in part.chars().take(LONGEST_LINE.saturating_add(1).saturating_sub(length)) {
                    length = length.saturating_add(1);
                    if length <= LONGEST_LINE {
                        slice.text.push(letter);
                    }
                }
                if ends {
                    end_line(&mut slice.text, length);
                }
            }
            begun = !ends;
            if ends {
                number = number.saturating_add(1);
                length = 0;
            }
            text = rest;
        }
    })?;
    if begun && (first..last).contains(&number) {
        end_line(&mut slice.text, length);
    }
    slice.total = if begun { number } else { number.saturating_sub(1) };
    Ok(slice)
}

fn end_line(text: &mut String, length: usize) {
    if length > LONGEST_LINE {
        text.push_str("...");
    } else if text.ends_with('\r') {
        text.pop();
    }
    text.push('\n');
}

/// The width of each line's indentation; `None` for a blank line.
fn indents(file: impl Read) -> Result<Vec<Option<u32>>, ReadError> {
    let mut lines = Vec::new();
    let (mut width, mut seen, mut begun) = (0_u32, false, false);
    pieces(file, |text| {
        for letter in text.chars() {
            begun = true;
            match letter {
                '\n' => {
                    lines.push(seen.then_some(width));
                    (width, seen, begun) = (0, false, false);
                }
                ' ' if !seen => width = width.saturating_add(1),
                '\t' if !seen => width = width.saturating_add(4),
                letter => seen |= !letter.is_whitespace(),
            }
        }
    })?;
    if begun {
        lines.push(seen.then_some(width));
    }
    Ok(lines)
}

/// The first and the last line of the block around an anchor, counted from 1; `None` if there is nothing above it.
fn block(lines: &[Option<u32>], anchor: u64, wanted: &Block) -> Option<(u64, u64)> {
    let at = |index: usize| lines.get(index).copied().flatten();
    let anchor = usize::try_from(anchor).ok()?.checked_sub(1)?;
    let mut indent = at(anchor).filter(|indent| *indent > 0)?;
    let levels = wanted.max_levels.unwrap_or(4);
    let most = match (levels, wanted.include_siblings) {
        (0, _) => usize::MAX,
        (levels, siblings) => levels.saturating_add(siblings.into()),
    };
    let mut header = None;
    let mut from = anchor;
    let mut climbed = 0_usize;
    while climbed < most {
        // less indented, and followed by something that is more so
        let leads = |index: &usize| {
            let next = lines.iter().skip(index.saturating_add(1)).flatten().next();
            at(*index).is_some_and(|own| own < indent && next.is_some_and(|next| *next > own))
        };
        let Some(found) = (0..from).rev().find(leads) else { break };
        header = Some(found);
        (from, indent) = (found, at(found)?);
        climbed = climbed.saturating_add(1);
    }
    let header = header?;
    let own = at(header)?;
    let after = lines.iter().enumerate().skip(header.saturating_add(1));
    let end =
        after.clone().find(|(_, line)| line.is_some_and(|line| line <= own)).map_or(lines.len(), |(index, _)| index);
    let start = if wanted.include_header { header } else { header.saturating_add(1) };
    let number = |index: usize| u64::try_from(index).ok();
    Some((number(start.saturating_add(1))?, number(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_slice_has_numbers_and_says_how_many_lines_there_are() {
        let text = "a\r\n\nc";
        let whole = slice(text.as_bytes(), 1, 10).unwrap();
        assert_eq!((whole.text.as_str(), whole.total), ("L1: a\nL2: \nL3: c\n", 3));
        let second = slice("a\nb\nc\n".as_bytes(), 2, 1).unwrap();
        assert_eq!((second.text.as_str(), second.total), ("L2: b\n", 3));
        let long = "x".repeat(501);
        assert_eq!(slice(long.as_bytes(), 1, 1).unwrap().text, format!("L1: {}...\n", "x".repeat(500)));
        assert!(matches!(slice([0xff_u8].as_slice(), 1, 1), Err(ReadError::NotText)));
        assert!(matches!(slice([b'a', 0xc3].as_slice(), 1, 1), Err(ReadError::NotText)));
        assert_eq!(slice("".as_bytes(), 1, 1).unwrap().total, 0);
    }

    const CODE: &str = "mod a {\n    fn f() {\n        one();\n\n        two();\n    }\n\n    fn g() {}\n}\nmod b {}\n";

    #[test]
    fn a_block_is_what_a_line_with_less_indentation_leads() {
        let lines = indents(CODE.as_bytes()).unwrap();
        let wanted = |max_levels, include_siblings, include_header| Block {
            max_levels: Some(max_levels),
            include_siblings,
            include_header,
            ..Block::default()
        };
        assert_eq!(block(&lines, 3, &wanted(1, false, false)), Some((3, 5)));
        assert_eq!(block(&lines, 3, &wanted(1, false, true)), Some((2, 5)));
        assert_eq!(block(&lines, 3, &wanted(2, false, false)), Some((2, 8)));
        assert_eq!(block(&lines, 3, &wanted(1, true, true)), Some((1, 8)));
        assert_eq!(block(&lines, 3, &wanted(0, false, true)), Some((1, 8)));
        assert_eq!(block(&lines, 1, &wanted(4, false, true)), None);
    }

    /// Gives one byte at a time, so that every character is cut in two.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(text in "[ab ä€\u{1f600}\n]{0,60}", first in 1_u64..6, count in 1_u64..6) {
            let expected: String = text
                .lines()
                .enumerate()
                .skip(usize::try_from(first).unwrap() - 1)
                .take(usize::try_from(count).unwrap())
                .map(|(number, line)| format!("L{}: {line}\n", number + 1))
                .collect();
            for slice in [slice(text.as_bytes(), first, count), slice(Trickle(text.as_bytes()), first, count)] {
                let slice = slice.unwrap();
                prop_assert_eq!(&slice.text, &expected);
                prop_assert_eq!(slice.total, text.lines().count() as u64);
            }
        }
    }
}
