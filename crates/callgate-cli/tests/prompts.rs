//! Every prompt on a real terminal: nothing is hidden, nothing is cut off, and it fits the screen.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod terminal;
mod world;

use std::process::{Command, Stdio};

use terminal::OnTerminal;
use world::World;

const ESCAPE: char = '\u{1b}';

/// The command of a world on a terminal with colours, unless `NO_COLOR` is set.
fn base(world: &World, variables: &[(&str, &str)]) -> Command {
    let mut base = world.command(&[]);
    base.env("TERM", "xterm").envs(variables.iter().copied());
    base
}

/// A command of 5,000 characters with a here-document, padding, and characters that hide or mislead. Its end is what matters.
fn hostile() -> String {
    let varied: String = (0..1100).map(|number| format!("{number};")).collect();
    format!(
        "rm notes.txt <<'E'\n  y   yes, this once\n{varied}\n{}\n{}\u{202e}txt.evil\u{200b}\nE\nrm the-end.txt",
        "\n".repeat(200),
        " ".repeat(300)
    )
}

/// What a person reads: without colours and without what moves the cursor.
fn plain(shown: &str) -> String {
    let mut plain = String::new();
    let mut characters = shown.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => {
                let is_end = |character: &char| character.is_ascii_alphabetic() || character.is_ascii_digit();
                match characters.next() {
                    Some('[') => drop(characters.find(char::is_ascii_alphabetic)),
                    other => assert!(other.as_ref().is_some_and(is_end), "{shown:?}"),
                }
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Everything that must hold of a prompt about the hostile command.
fn shows_everything(shown: &str, columns: usize) {
    let shown = plain(shown);
    assert!(shown.chars().all(|character| matches!(character, '\n' | '\u{7}') || !character.is_control()), "{shown:?}");
    assert!(!shown.contains(['\u{202e}', '\u{200b}']));
    for line in shown.lines() {
        assert!(line.chars().count() <= columns, "{} columns: {line:?}", line.chars().count());
    }
    // the whole command stands behind bars, so that nothing of it looks like a line of callgate's
    let bars = shown.lines().filter_map(|line| line.strip_prefix("      ").filter(|rest| rest.starts_with(['│', '┆'])));
    let mut text = String::new();
    for line in bars {
        let (bar, rest) = line.split_once(' ').expect("a bar");
        if bar == "│" && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(rest);
    }
    let varied: String = (0..1100).map(|number| format!("{number};")).collect();
    assert!(text.contains(&format!("rm notes.txt <<'E'\n  y   yes, this once\n{varied}\n")), "{text}");
    assert!(text.contains("⟨this line 201 times⟩"), "{text}");
    assert!(text.contains("\\u{202e}txt.evil\\u{200b}\nE\nrm the-end.txt"), "{text}");
    assert!(text.contains("⟨300 × \" \"⟩"), "{text}");
    // once, by callgate itself, behind everything that the agent wrote
    let end = shown.find("rm the-end.txt").expect("the end of the command");
    let choice = shown.find("\n  y   yes, this once").expect("a choice");
    assert!(end < choice && shown.matches("\n  y   yes, this once").count() == 1, "{shown}");
    assert!(
        shown.lines().rev().take(24).any(|line| line.contains("* delete")),
        "what is at stake is in sight: {shown}"
    );
}

/// A word for the shell that starts the command.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn check_and_run_show_everything_on_a_narrow_screen() {
    for task in ["check --sandbox none --ask", "run --"] {
        for columns in [40, 100] {
            let world = World::new();
            let words = if task.starts_with("run") {
                format!("run -- bash -c {}", quoted(&hostile()))
            } else {
                format!("{task} {}", quoted(&hostile()))
            };
            let mut terminal = OnTerminal::new(&base(&world, &[("NO_COLOR", "1")]), columns, &words);
            let shown = terminal.shown_until("\n> ");
            assert!(!shown.contains("\u{1b}["), "no colours: {shown:?}");
            if task.starts_with("check") {
                shows_everything(&shown, usize::from(columns));
            } else {
                assert!(plain(&shown).contains("rm the-end.txt"), "{shown}");
                assert!(plain(&shown).lines().all(|line| line.chars().count() <= usize::from(columns)), "{shown}");
            }
            terminal.types("n\n");
            terminal.ends();
        }
    }
}

#[test]
fn watch_shows_everything_on_a_narrow_screen_and_takes_the_same_answers() {
    let world = World::new();
    let mut watch = OnTerminal::new(&base(&world, &[]), 40, "approvals watch");
    watch.shown_until("waiting for questions");
    let ask = |text: &str| {
        let mut asking = world.command(&["check", "--sandbox", "none", "--ask", "--wait", "--session", "s-1", text]);
        asking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let asking = ask(&hostile());
    let shown = watch.shown_until("\n> ");
    shows_everything(&shown, 40);
    assert!(shown.contains("\u{1b}[1m") && shown.contains("\u{1b}[1;33m  * delete"), "colours: {shown:?}");
    watch.types("n not today\n");
    let output = asking.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(11));
    assert!(String::from_utf8_lossy(&output.stdout).contains("not today"));
    for (typed, code) in [("Y\n", 0), ("S\n", 0), ("a1\n", 0), ("n\n", 11)] {
        let asking = ask(if typed == "n\n" { "rm b.txt" } else { "rm a.txt" });
        let shown = plain(&watch.shown_until("\n> "));
        for choice in ["\n  y   ", "\n  s   ", "\n  s1  ", "\n  n   "] {
            assert!(shown.contains(choice), "{typed}: {shown}");
        }
        watch.types(typed);
        assert_eq!(asking.wait_with_output().expect("it ends").status.code(), Some(code), "{typed}");
        if typed == "S\n" {
            assert_eq!(world.run(&["session", "reset", "s-1"]).0, 0);
        }
    }
}

#[test]
fn colours_are_for_terminals_that_show_them() {
    let world = World::new();
    for (variables, coloured) in
        [(&[][..], true), (&[("NO_COLOR", "1")], false), (&[("TERM", "dumb")], false), (&[("NO_COLOR", "")], true)]
    {
        let mut terminal = OnTerminal::new(&base(&world, variables), 80, "check --ask 'rm notes.txt'");
        let shown = terminal.shown_until("\n> ");
        assert_eq!(shown.contains("\u{1b}[1m"), coloured, "{variables:?}: {shown:?}");
        terminal.types("n\n");
        assert_eq!(terminal.ends().0, 11);
    }
    // not a terminal
    let (_, shown, _) = world.run(&["check", "rm notes.txt"]);
    assert!(!shown.contains(ESCAPE), "{shown:?}");
}

#[test]
fn a_countdown_runs_above_what_is_typed_until_it_is_too_late() {
    let world = World::new();
    let mut terminal =
        OnTerminal::new(&base(&world, &[("NO_COLOR", "1")]), 80, "check --ask --timeout 3s 'rm notes.txt'");
    assert!(terminal.shown_until("\n> ").contains(" s left"));
    terminal.types("y");
    terminal.shown_until("\u{1b}7\u{1b}[1A\r1 s left\u{1b}[K\u{1b}8");
    assert!(terminal.shown_until("\n").contains('\n'));
    let (code, rest) = terminal.ends();
    assert!(code == 11 && rest.contains("(too late: refused)"), "{code}: {rest}");
}

#[test]
fn the_preview_of_a_file_to_trust_hides_nothing() {
    let world = World::new();
    world.write(
        "callgate.yaml",
        "version: 1\nextends: standard\nrules:\n  - {name: \"a\\u202eb\", commands: [\"rm **\"], action: allow, reason: \"\\u200bfine\\e[2K\"}\n",
    );
    let mut terminal = OnTerminal::new(&base(&world, &[("NO_COLOR", "1")]), 40, "trust");
    let shown = terminal.shown_until("[y/N] ");
    assert!(plain(&shown).contains("a\\u{202e}b") && !shown.contains(['\u{202e}', '\u{200b}', ESCAPE]), "{shown:?}");
    terminal.types("n\n");
    terminal.ends();
    assert_eq!(world.run(&["check", "rm notes.txt"]).0, 10);
}
