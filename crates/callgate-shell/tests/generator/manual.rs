//! What bash's own manual lists: builtins with their options, variables, expansions and redirections.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The lists of the manual.
#[derive(Debug, Default)]
pub struct Manual {
    /// The builtins, each with the letters of its options.
    pub builtins: BTreeMap<String, Vec<char>>,
    /// The names that `set -o` and `shopt` take.
    pub options: Vec<String>,
    pub variables: Vec<String>,
    /// `${parameter:-word}` and so on, with the manual's placeholders.
    pub expansions: Vec<String>,
    /// The letters of `${parameter@operator}`.
    pub operators: Vec<String>,
    /// `[n]<word` and so on.
    pub redirections: Vec<String>,
}

/// The page of the installed bash, or the one that `cargo xtask setup` unpacked.
fn page() -> String {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/manuals/bash");
    let places = [PathBuf::from("/"), unpacked].map(|root| root.join("usr/share/man/man1/bash.1.gz"));
    let bytes = places.iter().find_map(|path| std::fs::read(path).ok());
    let bytes = bytes.expect("bash's manual page; `cargo xtask setup` unpacks it");
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

/// Text without the commands of the formatter.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut characters = line.trim_start_matches(".BR ").trim_start_matches(".B ").chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('f') => drop(characters.next()),
                Some('|' | '^' | '&') | None => {}
                Some('e') => text.push('\\'),
                Some(other) => text.push(other),
            },
            other => text.push(other),
        }
    }
    text.trim().to_owned()
}

/// The lines between two headings.
fn section<'t>(page: &'t str, from: &str, to: &str) -> Vec<&'t str> {
    page.lines().skip_while(|line| *line != from).skip(1).take_while(|line| !line.starts_with(to)).collect()
}

/// The first lines of the entries of a section.
fn entries(lines: &[&str]) -> Vec<String> {
    let starts = |pair: &&[&str]| pair[0].starts_with(".TP") && !pair[1].starts_with(".TP");
    lines.windows(2).filter(starts).map(|pair| plain(pair[1])).collect()
}

impl Manual {
    pub fn read() -> Manual {
        let page = page();
        let mut manual = Manual::default();
        let mut current = String::new();
        for entry in entries(&section(&page, ".SH \"SHELL BUILTIN COMMANDS\"", ".SH")) {
            let first = entry.split([' ', '[']).next().unwrap_or_default().to_owned();
            let name = if entry.starts_with("[") || entry.starts_with("test ") { "test".to_owned() } else { first };
            let describes = entry.len() > name.len() || manual.builtins.is_empty() || BARE.contains(&name.as_str());
            let lower = name.bytes().all(|byte| byte.is_ascii_lowercase());
            let option = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            if (lower && describes || matches!(name.as_str(), ":" | ".")) && !name.is_empty() {
                current = name;
                manual.builtins.entry(current.clone()).or_default();
            } else if option && matches!(current.as_str(), "set" | "shopt") {
                manual.options.push(name);
                continue;
            }
            let letters = manual.builtins.entry(current.clone()).or_default();
            for word in entry.split([' ', '[', ']', '|']).filter(|word| word.starts_with('-') && word.len() > 1) {
                let option = word.trim_start_matches('-');
                if option.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '@') {
                    letters.extend(option.chars());
                }
            }
        }
        // These take the options of another builtin, and say so in words.
        for (name, other) in [("compgen", "complete"), ("local", "declare")] {
            let letters = manual.builtins[other].clone();
            manual.builtins.insert(name.to_owned(), letters);
        }
        for letters in manual.builtins.values_mut() {
            letters.sort_unstable();
            letters.dedup();
        }
        let name = |text: &String| {
            text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || text == "_"
        };
        manual.variables = entries(&section(&page, ".SS Shell Variables", ".SS")).into_iter().filter(name).collect();
        let expansions = section(&page, ".SS Parameter Expansion", ".SS");
        for entry in entries(&expansions) {
            match entry.starts_with("${") {
                true => manual.expansions.push(entry),
                false if entry.len() == 1 => manual.operators.push(entry),
                false => {}
            }
        }
        let starts = |line: &String| {
            let form = line.trim_start_matches("[n]");
            form.starts_with(['<', '>', '&']) && (line.ends_with("word") || line.ends_with("digit-"))
        };
        manual.redirections = section(&page, ".SH REDIRECTION", ".SH").into_iter().map(plain).filter(starts).collect();
        manual
    }
}

/// Builtins whose entry is their name alone.
const BARE: [&str; 4] = ["false", "logout", "times", "true"];
