//! Writers are killed at random and the disk fills up: no acknowledged entry is missing, and `verify` never calls it tampering.
//!
//! The test starts itself again as a writer: an environment variable says where it writes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use callgate::call::Call;
use callgate::gate::Gate;
use callgate::policy::Policy;
use callgate_audit::entry::{Body, Record, Started};
use callgate_audit::read::Entries;
use callgate_audit::verify::{Options, Report, Status, verify};
use callgate_audit::{AuditSink, Log, Settings, SyncMode};
use serde_json::json;

const DIRECTORY: &str = "CALLGATE_AUDIT_CRASH_DIRECTORY";
const NAME: &str = "CALLGATE_AUDIT_CRASH_NAME";

fn settings(directory: &Path) -> Settings {
    let mut settings = Settings::at(directory.join("audit")).sync(SyncMode::Os);
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

/// Not a test of its own either: an agent with a gate in front of its tools, that gets killed. Every tool says itself that it ran.
#[test]
fn agent() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let name = std::env::var(NAME).unwrap_or_default();
    println!();
    for number in 0..2_000 {
        // as a hook would: a log that is opened for one call
        let Ok(log) = Log::open_briefly(settings(&directory)) else { continue };
        let policy = Policy::from_yaml("default: allow", "all").unwrap();
        let gate = Gate::builder().policy(policy).events(AuditSink::new(log)).build();
        let call = Call::new("Read", json!({"file_path": "/tmp/x"})).session(&name).directory("/tmp");
        let Ok(permit) = gate.check(call) else {
            println!("error refused");
            if number > 400 {
                return;
            }
            continue;
        };
        let id = permit.id().to_owned();
        let _ = permit.run(|_| std::io::stdout().write_all(format!("ran {id}\n").as_bytes()));
    }
}

fn spawn(command: &mut Command, directory: &Path, name: &str) -> std::process::Child {
    command.env(DIRECTORY, directory).env(NAME, name).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn this_test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command
}

/// What has an attempt in the log.
fn attempted(directory: &Path) -> HashSet<String> {
    let entries = Entries::open(&settings(directory).directory).unwrap().map(|line| line.unwrap().entry.record);
    entries.filter(|record| record.body.kind() == "tool_attempt").filter_map(|record| record.call).collect()
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

/// A log whose writers are killed thirty times, two at once: how many entries were acknowledged, how many there are, and how often a crash
/// left traces.
fn killed_thirty_times(random: &mut dyn FnMut(u64) -> u64) -> (usize, u64, u64) {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    let mut traces = 0;
    for round in 0..30 {
        // two at once, both killed
        let mut writers: Vec<_> = (0..2)
            .map(|writer| spawn(&mut this_test("writer"), directory.path(), &format!("{round}-{writer}")))
            .collect();
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
    assert!(missing.is_empty(), "{missing:?}");
    (acknowledged.len(), report.entries, traces)
}

/// Five logs instead of a long one, because every log is verified as a whole after each crash.
#[test]
fn killed_writers_lose_nothing_that_was_acknowledged() {
    let mut state = 7_u64;
    let mut random = |limit: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % limit
    };
    let mut total = (0, 0, 0);
    for _ in 0..5 {
        let (acknowledged, entries, traces) = killed_thirty_times(&mut random);
        total = (total.0 + acknowledged, total.1 + entries, total.2 + traces);
    }
    let (acknowledged, entries, traces) = total;
    println!("{acknowledged} acknowledged, {entries} entries, {traces} crashes left traces");
    assert!(acknowledged > 500, "{acknowledged}");
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

#[test]
fn no_call_ran_whose_attempt_is_not_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let mut ran = Vec::new();
    for round in 0..40_u64 {
        let mut agents: Vec<_> =
            (0..2).map(|agent| spawn(&mut this_test("agent"), directory.path(), &format!("{round}-{agent}"))).collect();
        for agent in &mut agents {
            let mut output = BufReader::new(agent.stdout.take().unwrap()).lines().map_while(Result::ok);
            let mut tools = output.by_ref().filter_map(|line| line.strip_prefix("ran ").map(str::to_owned));
            // some calls in, and then at any moment of the next one
            ran.extend(tools.by_ref().take(1 + round as usize % 5));
            std::thread::sleep(Duration::from_micros(97 * (round * 31 % 50)));
            agent.kill().unwrap();
            ran.extend(tools);
            agent.wait().unwrap();
        }
    }
    let attempted = attempted(directory.path());
    println!("{} calls ran, {} attempts are in the log", ran.len(), attempted.len());
    assert!(ran.iter().all(|call| attempted.contains(call)));
    assert!(ran.len() > 100, "{}", ran.len());
    assert_ne!(check(directory.path()).status, Status::Tampered);
}

/// A real file system that is really full, where the machine lets us make one.
#[test]
fn on_a_file_system_that_is_full_nothing_runs_that_is_not_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let (small, kept) = (directory.path().join("small"), directory.path().join("kept"));
    std::fs::create_dir(&small).unwrap();
    let script = "mount -t tmpfs -o size=400k,mode=700 none \"$1\" || exit 77
        \"$0\" --exact agent --nocapture --test-threads=1; cp -a \"$1\" \"$2\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    command.arg(std::env::current_exe().unwrap()).arg(&small).arg(&kept);
    let Ok(mut agent) =
        command.env(DIRECTORY, &small).env(NAME, "full").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    else {
        println!("not tried: there is no unshare");
        return;
    };
    let lines: Vec<String> = BufReader::new(agent.stdout.take().unwrap()).lines().map_while(Result::ok).collect();
    if agent.wait().unwrap().code() == Some(77) || !kept.exists() {
        println!("not tried: no file system can be made here");
        return;
    }
    let ran: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("ran ")).collect();
    assert!(lines.iter().any(|line| line == "error refused"), "the file system was never full");
    assert!(ran.len() > 50, "{}", ran.len());
    let attempted = attempted(&kept);
    assert!(ran.iter().all(|call| attempted.contains(*call)));
    assert_ne!(check(&kept).status, Status::Tampered);
}
