//! Packs `programs/*.prog` into one text and an index of program names, so that a process that judges one command reads
//! one table, and of that only the subcommand it needs.
//!
//! The packed text has no comments, examples or indentation. A line `sub@LENGTH NAMES: …` is followed by that many bytes
//! with the lines of the subcommand; whoever looks for another one skips them.

#[path = "src/programs/form/comment.rs"]
mod comment;
#[path = "src/programs/names.rs"]
mod names;

use comment::without_comment;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A line of a table, without its indentation and comment.
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

/// The packed tables.
#[derive(Default)]
struct Packed {
    text: String,
    /// Of each table: file, line of its header, and its bytes in the text.
    blocks: Vec<(usize, usize, usize, usize)>,
    /// The table of each name. The first table of a name counts; the tests refuse a second one.
    names: BTreeMap<String, usize>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)?
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "prog"))
        .collect();
    files.sort();
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut packed = Packed::default();
    let mut file_names = String::new();
    let mut sources = String::from("&[\n");
    for (index, file) in files.iter().enumerate() {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        writeln!(file_names, "        {name:?},")?;
        writeln!(sources, "    ({name:?}, include_str!({:?})),", file.canonicalize()?.display().to_string())?;
        gather(&std::fs::read_to_string(file)?, index, &mut packed)?;
    }
    sources.push_str("]\n");
    std::fs::write(out.join("programs.txt"), &packed.text)?;
    std::fs::write(out.join("sources.rs"), sources)?;
    std::fs::write(out.join("programs.rs"), index(&packed, &file_names)?)?;
    Ok(())
}

/// The index as Rust source. Names stand in one text, found by their ends: two thousand pointers would have to be
/// adjusted each time a process starts.
fn index(packed: &Packed, file_names: &str) -> Result<String, std::fmt::Error> {
    let mut source = format!(
        "Bundle {{\n    text: include_str!(concat!(env!(\"OUT_DIR\"), \"/programs.txt\")),\n    files: &[\n{file_names}    ],\n    blocks: &[\n"
    );
    for (file, line, start, end) in &packed.blocks {
        writeln!(source, "        Block {{ file: {file}, line: {line}, start: {start}, end: {end} }},")?;
    }
    source.push_str("    ],\n    names: Names {\n        text: \"");
    let mut ends = String::new();
    let mut end = 0usize;
    for (name, block) in &packed.names {
        write!(source, "{}", name.escape_default())?;
        end += name.len();
        write!(ends, "({end}, {block}), ")?;
    }
    let slots = slots(packed.names.keys());
    write!(source, "\",\n        ends: &[{ends}],\n        slots: &{slots:?},\n    }},\n    patterns: &[")?;
    for (name, block) in packed.names.iter().filter(|(name, _)| name.contains('*')) {
        write!(source, "({name:?}, {block}), ")?;
    }
    source.push_str("],\n}");
    Ok(source)
}

/// A hash table of the names' places, each plus one. At least half of it is free.
fn slots<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> Vec<u16> {
    let mut slots = vec![0; (names.len() * 2).next_power_of_two()];
    let mask = slots.len() - 1;
    for (place, name) in (1..).zip(names) {
        let mut at = names::hash(name) & mask;
        while let Some(slot) = slots.get_mut(at) {
            if *slot == 0 {
                *slot = place;
                break;
            }
            at = (at + 1) & mask;
        }
    }
    slots
}

/// Packs the tables of a file. A table starts at a line whose first character is neither space nor `#`.
fn gather(text: &str, file: usize, packed: &mut Packed) -> std::fmt::Result {
    let lines: Vec<Line<'_>> = text
        .lines()
        .enumerate()
        .map(|(index, raw)| {
            let text = raw.trim_start_matches(' ');
            Line { number: index + 1, indent: raw.len() - text.len(), text: without_comment(text) }
        })
        .filter(|line| !line.text.is_empty())
        .collect();
    let mut rest = lines.as_slice();
    while let [header, behind @ ..] = rest {
        let length = behind.iter().take_while(|line| line.indent > header.indent).count();
        let (body, after) = behind.split_at(length);
        rest = after;
        for name in header.text.split(':').next().unwrap_or_default().split_whitespace() {
            packed.names.entry(name.to_owned()).or_insert(packed.blocks.len());
        }
        let start = packed.text.len();
        writeln!(packed.text, "{}", header.text)?;
        pack(body, &mut packed.text)?;
        packed.blocks.push((file, header.number, start, packed.text.len()));
    }
    Ok(())
}

/// Packs the lines of one level.
fn pack(lines: &[Line<'_>], packed: &mut String) -> std::fmt::Result {
    let mut rest = lines;
    while let [line, behind @ ..] = rest {
        let length = behind.iter().take_while(|below| below.indent > line.indent).count();
        let (body, after) = behind.split_at(length);
        rest = after;
        match line.text.strip_prefix("sub ") {
            Some(names) => {
                let mut inner = String::new();
                pack(body, &mut inner)?;
                writeln!(packed, "sub@{} {names}", inner.len())?;
                packed.push_str(&inner);
            }
            None if line.text.starts_with("example ") => {}
            None => writeln!(packed, "{}", line.text)?,
        }
    }
    Ok(())
}
