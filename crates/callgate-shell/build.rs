//! Gathers `programs/*.prog` into an index of program names, so that a process that judges one
//! command reads one table and not all of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Where a block stands: file, first line, and its bytes in the file.
struct Block {
    file: usize,
    line: usize,
    start: usize,
    end: usize,
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
    let mut blocks: Vec<Block> = Vec::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut source = String::from("Bundle {\n    files: &[\n");
    for (index, file) in files.iter().enumerate() {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        writeln!(source, "        ({name:?}, include_str!({:?})),", file.canonicalize()?.display().to_string())?;
        gather(&std::fs::read_to_string(file)?, index, &mut blocks, &mut names);
    }
    source.push_str("    ],\n    blocks: &[\n");
    for Block { file, line, start, end } in &blocks {
        writeln!(source, "        Block {{ file: {file}, line: {line}, start: {start}, end: {end} }},")?;
    }
    source.push_str("    ],\n    names: &[\n");
    for (name, block) in &names {
        writeln!(source, "        ({name:?}, {block}),")?;
    }
    source.push_str("    ],\n}");
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("programs.rs"), source)?;
    Ok(())
}

/// A block starts at a line whose first character is neither space nor `#`. The first table of a
/// name counts; the tests refuse a second one.
fn gather(text: &str, file: usize, blocks: &mut Vec<Block>, names: &mut BTreeMap<String, usize>) {
    let mut start = 0;
    let mut open = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_header = line.starts_with(|first: char| !first.is_whitespace() && first != '#');
        if is_header {
            if let Some(last) = blocks.last_mut().filter(|_| open) {
                last.end = start;
            }
            open = true;
            for name in line.split(':').next().unwrap_or_default().split_whitespace() {
                names.entry(name.to_owned()).or_insert(blocks.len());
            }
            blocks.push(Block { file, line: number + 1, start, end: text.len() });
        }
        start += line.len();
    }
}
