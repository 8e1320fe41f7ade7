//! Packs `programs/*/*.prog` into one text and an index of program names, so that a process that judges one command reads
//! one table, and of that only the subcommand it needs.
//!
//! The packed text has no comments, examples or indentation. A line `sub@LENGTH NAMES: …` is followed by that many bytes
//! with the lines of the subcommand; whoever looks for another one skips them.

#[path = "src/programs/names.rs"]
mod names;
#[path = "src/programs/form/source.rs"]
mod source;

use source::{Shares, SourceLine, source_lines};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The packed tables.
#[derive(Default)]
struct Packed {
    text: String,
    /// Of each table, its bytes in the text.
    blocks: Vec<(usize, usize)>,
    /// The table of each name. The first table of a name counts; the tests refuse a second one.
    names: BTreeMap<String, usize>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("programs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for area in std::fs::read_dir(&folder)? {
        for file in std::fs::read_dir(area?.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "prog") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut texts = Vec::new();
    let mut sources = String::from("&[\n");
    for path in &files {
        let origin = path.strip_prefix(&folder)?.to_string_lossy().replace('\\', "/");
        writeln!(sources, "    ({origin:?}, include_str!({:?})),", path.display().to_string())?;
        texts.push((origin, std::fs::read_to_string(path)?));
    }
    sources.push_str("]\n");

    let mut shares = Shares::default();
    let tables: Vec<_> = texts.iter().map(|(origin, text)| (origin, shares.take(source_lines(text)))).collect();
    let mut packed = Packed::default();
    for (origin, lines) in tables {
        let (lines, unknown) = shares.expand(lines);
        if let Some(line) = unknown.first() {
            return Err(format!("{origin}:{}: unknown shared lines in `{}`", line.number, line.text).into());
        }
        gather(&lines, origin, &mut packed)?;
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("programs.txt"), &packed.text)?;
    std::fs::write(out.join("shares.txt"), plain(&shares)?)?;
    std::fs::write(out.join("sources.rs"), sources)?;
    std::fs::write(out.join("programs.rs"), index(&packed)?)?;
    Ok(())
}

/// The shared lines without comments, for tables that are not bundled.
fn plain(shares: &Shares) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for line in shares.own.values().flatten() {
        writeln!(text, "{:indent$}{}", "", line.text, indent = line.indent)?;
    }
    Ok(text)
}

/// The index as Rust source. Names stand in one text, found by their ends: two thousand pointers would have to be
/// adjusted each time a process starts.
fn index(packed: &Packed) -> Result<String, std::fmt::Error> {
    let mut source = String::from(
        "Bundle {\n    text: include_str!(concat!(env!(\"OUT_DIR\"), \"/programs.txt\")),\n    blocks: &[\n",
    );
    for (start, end) in &packed.blocks {
        writeln!(source, "        ({start}, {end}),")?;
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

/// Packs the tables of a file. In front of each stands the place of its header.
fn gather(lines: &[SourceLine<'_>], origin: &str, packed: &mut Packed) -> std::fmt::Result {
    let mut rest = lines;
    while let [header, behind @ ..] = rest {
        let length = behind.iter().take_while(|line| line.indent > header.indent).count();
        let (body, after) = behind.split_at(length);
        rest = after;
        let names = source::header(&header.text).map_or("", |(names, _)| names);
        for name in names.split_whitespace() {
            packed.names.entry(name.to_owned()).or_insert(packed.blocks.len());
        }
        let start = packed.text.len();
        let compared = if body.iter().any(|line| line.text.starts_with("from ")) { " compared" } else { "" };
        writeln!(packed.text, "{origin}:{}{compared}\n{}", header.number, header.text)?;
        pack(body, &mut packed.text)?;
        packed.blocks.push((start, packed.text.len()));
    }
    Ok(())
}

/// Packs the lines of one level.
fn pack(lines: &[SourceLine<'_>], packed: &mut String) -> std::fmt::Result {
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
            None if line.text.starts_with("example ") || line.text.starts_with("from ") => {}
            None => writeln!(packed, "{}", line.text)?,
        }
    }
    Ok(())
}
