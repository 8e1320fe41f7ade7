//! Writers are killed at random and the disk fills up: no acknowledged entry is missing, and `verify` never calls it tampering.
//!
//! The test starts itself again as a writer: an environment variable says where it writes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use callgate_audit::entry::{Body, Record, Started};
use callgate_audit::read::Entries;
use callgate_audit::verify::{Options, Report, Status, verify};
use callgate_audit::{Log, Settings, Sync};

const DIRECTORY: &str = "CALLGATE_AUDIT_CRASH_DIRECTORY";
const NAME: &str = "CALLGATE_AUDIT_CRASH_NAME";

fn settings(directory: &Path) -> Settings {
    let mut settings = Settings::at(directory.join("audit")).sync(Sync::Os);
    settings.segment_bytes = 40_000;
    settings.checkpoint_entries = 25;
    settings
}

fn started(call: &str) -> Record {
    Record::new(Body::Started(Started { tool: "Bash".into(), sandbox: None })).call(call)
}

/// Not a test of its own: the writer that gets killed. Says on its standard output what was acknowledged.
#[test]
fn writer() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let name = std::env::var(NAME).unwrap_or_default();
    let log = match Log::open(settings(&directory)) {
        Ok(log) => log,
        Err(error) => {
            println!("error {}", error.kind());
            return;
        }
    };
    let mut failures = 0;
    // the test harness leaves its line open
    println!();
    for number in 0..3_000 {
        let call = format!("{name}-{number}");
        match log.append(&started(&call)) {
            // one write a line: it is out before the kill, or it is not
            Ok(_) => std::io::stdout().write_all(format!("ack {call}\n").as_bytes()).unwrap(),
            Err(error) => {
                println!("error {}", error.kind());
                failures += 1;
                if failures > 20 {
                    return;
                }
            }
        }
    }
}

fn spawn(command: &mut Command, directory: &Path, name: &str) -> std::process::Child {
    command.env(DIRECTORY, directory).env(NAME, name).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn this_test() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "writer", "--nocapture", "--test-threads=1"]);
    command
}

/// What a writer said, by its first word.
fn said(child: &mut std::process::Child, word: &str) -> Vec<String> {
    let output = child.stdout.take().unwrap();
    BufReader::new(output)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()))
        .collect()
}

fn written(directory: &Path) -> HashSet<String> {
    Entries::open(&settings(directory).directory).unwrap().filter_map(|line| line.unwrap().entry.record.call).collect()
}

fn check(directory: &Path) -> Report {
    verify(&Options::of(&settings(directory))).unwrap()
}

#[test]
fn killed_writers_lose_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    let mut traces = 0;
    let mut state = 7_u64;
    let mut random = |limit: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % limit
    };
    for round in 0..150 {
        // two at once, both killed
        let mut writers: Vec<_> =
            (0..2).map(|writer| spawn(&mut this_test(), directory.path(), &format!("{round}-{writer}"))).collect();
        for writer in &mut writers {
            std::thread::sleep(Duration::from_micros(3_000 + random(20_000)));
            writer.kill().unwrap();
        }
        for mut writer in writers {
            acknowledged.extend(said(&mut writer, "ack"));
            writer.wait().unwrap();
        }
        if directory.path().join("audit").join("head").exists() {
            let report = check(directory.path());
            assert_ne!(report.status, Status::Tampered, "round {round}: {report:#?}");
            traces += u64::from(report.status == Status::CrashTraces);
        }
    }
    // somebody comes after the last crash
    Log::open(settings(directory.path())).unwrap().append(&started("last")).unwrap();
    let report = check(directory.path());
    assert!(report.is_intact(), "{report:#?}");
    let written = written(directory.path());
    let missing: Vec<&String> = acknowledged.iter().filter(|call| !written.contains(*call)).collect();
    println!("{} acknowledged, {} entries, {traces} crashes left traces", acknowledged.len(), report.entries);
    assert!(missing.is_empty(), "{missing:?}");
    assert!(acknowledged.len() > 500, "{}", acknowledged.len());
}

/// Runs the writer with a limit on the size of files, which a write meets as it meets a full disk: a part is written, then
/// an error. The shell ignores the signal that would kill it.
#[test]
fn a_full_disk_refuses_and_leaves_a_log_that_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut limited = Command::new("sh");
    // in blocks of 512 bytes: less than a segment
    limited.args(["-c", "trap '' XFSZ; ulimit -f 40; exec \"$0\" --exact writer --nocapture --test-threads=1"]);
    limited.arg(std::env::current_exe().unwrap());
    let mut writer = spawn(&mut limited, directory.path(), "full");
    let mut acknowledged = Vec::new();
    let mut errors = 0;
    for line in BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("ack", call)) => acknowledged.push(call.to_owned()),
            Some(("error", "io")) => errors += 1,
            _ => {}
        }
    }
    writer.wait().unwrap();
    assert!(errors > 0, "the limit was not met");
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    let report = check(directory.path());
    assert_ne!(report.status, Status::Tampered, "{report:#?}");
    Log::open(settings(directory.path())).unwrap().append(&started("after")).unwrap();
    assert!(check(directory.path()).is_intact());
    let written = written(directory.path());
    assert!(acknowledged.iter().all(|call| written.contains(call)));
    // what was refused is not there: nothing ran that is not in the log, and nothing is in the log that was taken back
    assert_eq!(written.len(), acknowledged.len() + 1);
}
