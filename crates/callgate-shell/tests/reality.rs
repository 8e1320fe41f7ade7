//! Tables against the programs themselves: options that `--help` shows and a table does not know, or
//! knows to take other values. The count may only fall (`tests/reality-ceiling.txt`).
//!
//! Only programs that are installed, have a table, and are known to do nothing on `--help` are asked.
//! `cargo test -p callgate-shell --test reality -- --nocapture` lists what differs.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use callgate_shell::programs::Programs;
use callgate_shell::programs::table::{Level, Style, Values};

/// Programs that print and end on `--help`, whatever else.
const SAFE: &str = "arch b2sum base32 base64 basename basenc cat chgrp chmod chown cksum comm cp csplit cut date dd df dir \
    dircolors dirname du env expand expr factor fmt fold groups head hostid id install join link ln logname ls md5sum mkdir \
    mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv ptx pwd readlink realpath rm rmdir \
    runcon seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail \
    tee timeout touch tr truncate tsort tty uname unexpand uniq unlink users vdir wc who whoami cal chrt choom column \
    dmesg fallocate findmnt flock getopt hexdump ionice ipcs kill last line logger look lsblk lscpu lsipc lslocks lslogins \
    lsmem lsns mcookie more mountpoint namei nsenter prlimit rename renice rev script setarch setpriv setsid taskset ul \
    unshare uuidgen whereis grep egrep fgrep sed find xargs diff cmp diff3 sdiff patch tar gzip bzip2 xz zstd jq rg fd curl \
    wget rsync bash strace ltrace watch pgrep pkill ps free uptime vmstat w tree file less make gdb";

/// Subcommands that print their usage on `-h`.
const GIT: &str = "add blame branch checkout cherry-pick clean clone commit describe diff fetch grep init log ls-files \
    ls-tree merge mv notes pull push rebase reflog remote reset restore revert rev-parse rm shortlog show stash status \
    submodule switch tag worktree";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Perhaps,
    Value,
}

#[test]
fn tables_know_what_programs_say_of_themselves() {
    let programs = Programs::bundled();
    let mut differences = Vec::new();
    for name in SAFE.split_whitespace() {
        if let Some(table) = programs.get(name)
            && let Some(help) = output(name, &["--help"])
        {
            compare(name, &table.level, &help, &mut differences);
        }
    }
    if let Some(git) = programs.get("git") {
        for name in GIT.split_whitespace() {
            let sub = git.level.subs.iter().find(|sub| sub.names.iter().any(|other| other == name));
            if let Some(sub) = sub
                && let Some(help) = output("git", &[name, "-h"])
            {
                compare(&format!("git {name}"), &sub.level, &help, &mut differences);
            }
        }
    }
    for difference in &differences {
        println!("{difference}");
    }
    let ceiling: usize = include_str!("reality-ceiling.txt").trim().parse().expect("a number");
    println!("{} differences, at most {ceiling} are accepted", differences.len());
    assert!(
        differences.len() <= ceiling,
        "{} differences between tables and programs, at most {ceiling} are accepted:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// What a program prints; nothing if it is missing or takes its time.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("LC_ALL", "C")
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut pipe = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes)
    });
    let start = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if start.elapsed() > Duration::from_secs(3) {
            child.kill().ok()?;
            child.wait().ok()?;
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(String::from_utf8_lossy(&reader.join().ok()?.ok()?).into_owned())
}

fn compare(program: &str, level: &Level, help: &str, differences: &mut Vec<String>) {
    if level.style == Style::None || matches!(level.style, Style::Custom(_)) && level.options.is_empty() {
        return;
    }
    for (names, takes) in help.lines().filter_map(options_of_line) {
        for name in names {
            if matches!(name.as_str(), "--help" | "--version") {
                continue;
            }
            let single = matches!(level.style, Style::Single | Style::SingleFirst);
            let same = |other: &String| {
                *other == name || single && other.trim_start_matches('-') == name.trim_start_matches('-')
            };
            let form = level.options.iter().find(|form| form.names.iter().any(same));
            let known = match form {
                None if level.options_any || is_bundle(level, &name) => continue,
                None => {
                    differences.push(format!("{program}: {name} is not known"));
                    continue;
                }
                Some(form) => match form.values {
                    Values::None => Takes::Nothing,
                    Values::Optional(_) => Takes::Perhaps,
                    Values::Words(_) => Takes::Value,
                },
            };
            // A table that accepts a glued value more, or a help that hides one, misleads nobody.
            let lenient = known == Takes::Perhaps && takes == Takes::Nothing;
            let short = !name.starts_with("--");
            let seldom_shown = short && takes == Takes::Perhaps || form.is_some_and(|form| form.ends);
            if known != takes && !lenient && !seldom_shown {
                differences.push(format!("{program}: {name} takes {takes:?}, the table says {known:?}"));
            }
        }
    }
}

/// `-abc` in a help may show several flags at once, and `-20` a number.
fn is_bundle(level: &Level, name: &str) -> bool {
    let letters = name.trim_start_matches('-');
    let known = |letter: char| level.options.iter().any(|form| form.names.contains(&format!("-{letter}")));
    !name.starts_with("--") && (letters.chars().all(known) || letters.chars().all(|letter| letter.is_ascii_digit()))
}

/// The options that a line of help is about: `-k, --key=KEYDEF   sort by a key`.
fn options_of_line(line: &str) -> Option<(Vec<String>, Takes)> {
    let text = line.trim_start();
    if line.len() - text.len() > 8 || !text.starts_with('-') {
        return None;
    }
    let text = text.split("  ").next()?;
    let mut names = Vec::new();
    let mut takes = Takes::Nothing;
    for item in text.split(", ").filter(|item| item.starts_with('-')) {
        let item = item.replace("--[no-]", "--");
        let end = item.find(['=', '[', ' ', '<', '\t']).unwrap_or(item.len());
        let (name, rest) = item.split_at(end);
        let plain = name.len() > 1
            && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_'));
        if !plain || name == "--" {
            return None;
        }
        names.push(name.to_owned());
        let rest = rest.trim_end();
        if rest.starts_with('[') {
            takes = Takes::Perhaps;
        } else if !rest.is_empty() && !rest.starts_with(" -") {
            takes = Takes::Value;
        }
    }
    (!names.is_empty()).then_some((names, takes))
}

#[test]
fn lines_of_help_are_understood() {
    let cases = [
        ("  -k, --key=KEYDEF          sort via a key", Some((vec!["-k", "--key"], Takes::Value))),
        ("      --color[=WHEN]        use colors", Some((vec!["--color"], Takes::Perhaps))),
        ("  -v, --verbose             say more", Some((vec!["-v", "--verbose"], Takes::Nothing))),
        ("    -m, --[no-]message <message>", Some((vec!["-m", "--message"], Takes::Value))),
        ("Usage: x [OPTION]", None),
    ];
    for (line, expected) in cases {
        let expected = expected.map(|(names, takes)| (names.into_iter().map(str::to_owned).collect(), takes));
        assert_eq!(options_of_line(line), expected, "{line}");
    }
}
