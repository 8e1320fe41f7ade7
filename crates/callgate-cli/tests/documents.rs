//! Every command in the documents is run, and what it prints is compared with what the document shows.
//!
//! A block ` ```console ` holds commands behind `$ `, each followed by its exit code behind `? ` (if it is not 0) and by what it
//! prints. The commands of one document run one after the other in one home and one project. `[..]` stands for any text within a
//! line, `...` for any number of lines. `CALLGATE_RECORD_DOCUMENTS=1 cargo test -p callgate-cli --test documents` writes what is
//! printed into the documents, for you to read.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use world::{World, told};

/// Where the documents' commands happen.
const PROJECT: &str = "/home/ada/project";
const HOME: &str = "/home/ada";

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found: Vec<PathBuf> = ["README.md", "SECURITY.md", "ARCHITECTURE.md"].map(|name| root.join(name)).into();
    for directory in ["docs", "docs/agents"] {
        let entries = std::fs::read_dir(root.join(directory)).expect(directory);
        found.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.sort();
    found
}

/// One command of a block and what the document says it prints.
#[derive(Debug, PartialEq)]
struct Shown {
    command: String,
    code: i32,
    output: Vec<String>,
}

fn read_block(block: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => shown.push(Shown { command: command.to_owned(), code: 0, output: Vec::new() }),
            (None, Some(last)) => match line.strip_prefix("? ").filter(|_| last.output.is_empty()) {
                Some(code) => last.code = code.parse().expect("an exit code"),
                None => last.output.push(line.to_owned()),
            },
            (None, None) => panic!("a console block starts with `$ `: {line}"),
        }
    }
    shown
}

fn write_block(shown: &[Shown]) -> String {
    let mut text = String::new();
    for Shown { command, code, output } in shown {
        text.push_str(&format!("$ {command}\n"));
        if *code != 0 {
            text.push_str(&format!("? {code}\n"));
        }
        for line in output {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

/// Runs a command line in the world of a document.
fn run(world: &World, line: &str) -> (i32, Vec<String>) {
    let program = env!("CARGO_BIN_EXE_callgate");
    let mut shell = Command::new("sh");
    let line = format!("callgate() {{ '{program}' \"$@\"; }}\n{line}");
    shell.args(["-c", &line]).current_dir(world.project()).env_clear().stdin(Stdio::null());
    for (name, value) in world.command(&[]).get_envs() {
        shell.env(name, value.expect("a value"));
    }
    let (code, output, error) = told(shell.output().expect("a shell"));
    let steady = |text: String| {
        let text = text.replace(&world.project().display().to_string(), PROJECT);
        text.replace(&world.home().display().to_string(), HOME).replace(program, "/usr/bin/callgate")
    };
    (code, steady(output + &error).lines().map(|line| line.trim_end().to_owned()).collect())
}

/// The line with `[..]` for line numbers of bundled rules, times, digests and ids.
fn without_changing_parts(line: &str) -> String {
    let digits = |text: &str, is_digit: fn(&char) -> bool| text.chars().take_while(is_digit).count();
    let mut steady = String::new();
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        let after_word = steady.ends_with(|character: char| character.is_ascii_alphanumeric());
        let hexadecimal = digits(rest, char::is_ascii_hexdigit);
        let number = digits(rest, |character| character.is_ascii_digit() || *character == '.');
        let changing = match rest.get(number..) {
            _ if steady.ends_with("(bundled):") => number,
            _ if !after_word && matches!(hexadecimal, 16 | 64) => hexadecimal,
            Some(unit) if !after_word && number > 0 && unit.starts_with(" µs") => number,
            _ => 0,
        };
        let taken = if changing == 0 { character.len_utf8() } else { changing };
        steady.push_str(if changing == 0 { &rest[..taken] } else { "[..]" });
        rest = &rest[taken..];
    }
    steady
}

/// Columns move with the length of paths, so any run of spaces is as good as another.
fn without_columns(line: &str) -> String {
    let mut narrow = line.to_owned();
    while narrow.contains("   ") {
        narrow = narrow.replace("   ", "  ");
    }
    narrow.replace("  [..]", " [..]")
}

/// Whether a line is as shown; `[..]` stands for any text.
fn line_fits(shown: &str, line: &str) -> bool {
    let (shown, line) = (without_columns(shown), without_columns(line));
    let mut pieces = shown.split("[..]");
    let Some(mut rest) = line.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        match rest.find(piece) {
            Some(place) => rest = &rest[place + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether lines are as shown; a line `...` stands for any number of them.
fn fits(shown: &[String], lines: &[String]) -> bool {
    match (shown, lines) {
        ([], lines) => lines.is_empty(),
        ([first, rest @ ..], lines) if first == "..." => (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..])),
        ([first, rest @ ..], [line, others @ ..]) => line_fits(first, line) && fits(rest, others),
        (_, []) => false,
    }
}

#[test]
fn what_commands_print_is_what_the_documents_show() {
    let record = std::env::var_os("CALLGATE_RECORD_DOCUMENTS").is_some();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in documents() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a document");
        let world = World::new();
        let mut written = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("```console\n") {
            let (block, after) = after.split_once("```").expect("a closed block");
            let mut shown = read_block(block);
            for shown in &mut shown {
                count += 1;
                let (code, output) = run(&world, &shown.command);
                if code == shown.code && fits(&shown.output, &output) {
                    continue;
                }
                if record {
                    (shown.code, shown.output) =
                        (code, output.iter().map(|line| without_changing_parts(line)).collect());
                } else {
                    wrong.push(format!("{name}: $ {}\n? {code}\n{}", shown.command, output.join("\n")));
                }
            }
            written.push_str(&format!("{before}```console\n{}```", write_block(&shown)));
            rest = after;
        }
        written.push_str(rest);
        if record && written != text {
            std::fs::write(&path, written).expect("the document is written");
        }
    }
    assert!(wrong.is_empty(), "these commands print something else:\n\n{}", wrong.join("\n\n"));
    assert!(count >= 40, "only {count} commands were found");
}

/// A command that is only listed says its decision in a comment, or is shown with its output elsewhere.
#[test]
fn commands_in_lists_do_what_their_comments_say() {
    let texts: Vec<(PathBuf, String)> = documents()
        .into_iter()
        .map(|path| (path.clone(), std::fs::read_to_string(path).expect("a document")))
        .collect();
    let shown: String = texts.iter().map(|(_, text)| text.as_str()).collect();
    for (path, text) in &texts {
        let world = World::new();
        for block in text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            for line in block.lines().filter(|line| line.starts_with("callgate ")) {
                let (command, comment) = line.split_once("  # ").unwrap_or((line, ""));
                let (decision, rule) = comment.trim().split_once(": ").unwrap_or((comment.trim(), ""));
                if !["allow", "contain", "ask", "deny"].contains(&decision) {
                    let listed = format!("$ {}", command.trim());
                    assert!(shown.contains(&listed), "{}: {line}: no document shows what it prints", path.display());
                    continue;
                }
                let (_, output) = run(&world, command);
                let said = output.join("\n");
                assert!(said.starts_with(decision), "{}: {line}\n{said}", path.display());
                let named = rule.split_whitespace().next().is_none_or(|rule| said.contains(&format!("rule {rule} ")));
                assert!(named || rule.contains(' '), "{}: {line}\n{said}", path.display());
            }
        }
    }
}

#[test]
fn wildcards_stand_for_text_and_lines() {
    assert!(line_fits("a [..] c", "a b c") && line_fits("[..]", "") && !line_fits("a [..] c", "a b d"));
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert!(fits(&lines("a\n...\nd"), &lines("a\nb\nc\nd")) && !fits(&lines("a\n...\nd"), &lines("a\nb")));
}
