//! What the log costs a process that writes one call and ends: `cargo bench -p callgate-audit --bench brief`.
//!
//! Every figure is the median over fresh processes of the time from the first line of `main` to the last, by the process's
//! own clock; the time of a process that does nothing stands beside it.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use callgate::policy::Decision;
use callgate_audit::entry::{Body, Record, ToolAttempt};
use callgate_audit::{Log, Settings, SyncMode};
use serde_json::json;

fn attempt() -> Record {
    let body = ToolAttempt {
        tool: "Bash".into(),
        input: json!({"command": "cargo test"}),
        decision: Decision::Ask,
        rule: Some("project-code".into()),
        rule_place: Some("standard.yaml:40:5".into()),
        reason: "runs code of the project".into(),
        policy: Some("0123456789abcdef".into()),
        classification: Some(json!({"category": "shell", "risk_level": "medium"})),
        description: json!({"category": "shell", "coverage": "complete", "parts": [
            {"words": [{"known": "cargo"}, {"known": "test"}], "wrappers": [], "elsewhere": null, "effects": [
                {"effect": {"action": "run", "target": {"program": {"name": "cargo", "origin": "known"}}}, "place": null}]}]}),
        claims: json!(null),
        directory: Some("/home/ada/project".into()),
        workspace: Some("/home/ada/project".into()),
    };
    Record::new(Body::ToolAttempt(Box::new(body))).call("18d8f-1a2b-0").session("s")
}

/// What a child does; prints how many nanoseconds it took.
fn child(task: &str, directory: &str) {
    let start = Instant::now();
    let settings = |sync| Settings::at(directory).sync(sync);
    let log = match task {
        "brief" | "open" => Log::open_briefly(settings(SyncMode::Os)),
        "brief-always" => Log::open_briefly(settings(SyncMode::Always)),
        "long" => Log::open(settings(SyncMode::Interval(Duration::from_millis(200)))),
        _ => return println!("{}", start.elapsed().as_nanos()),
    };
    let log = log.unwrap();
    if task != "open" {
        log.append(&attempt()).unwrap();
    }
    drop(log);
    println!("{}", start.elapsed().as_nanos());
}

fn median(task: &str, directory: &Path, runs: usize) -> (f64, f64) {
    let program = std::env::current_exe().unwrap();
    let mut inside = Vec::new();
    let mut outside = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        let output = Command::new(&program).arg("child").arg(task).arg(directory).output().unwrap();
        outside.push(start.elapsed().as_nanos() as f64 / 1000.0);
        inside.push(String::from_utf8(output.stdout).unwrap().trim().parse::<f64>().unwrap() / 1000.0);
    }
    inside.sort_by(f64::total_cmp);
    outside.sort_by(f64::total_cmp);
    (inside[runs / 2], outside[runs / 2])
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, marker, task, directory] = arguments.as_slice()
        && marker == "child"
    {
        return child(task, directory);
    }
    // `cargo test --benches` only wants to see that it builds
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let directory = base.path().join("audit");
    Log::open(Settings::at(&directory)).unwrap().append(&attempt()).unwrap();
    println!("median of 400 fresh processes, in microseconds: within `main`, and the whole process");
    for task in ["nothing", "open", "brief", "brief-always", "long"] {
        let (inside, outside) = median(task, &directory, 400);
        println!("  {task:<13} {inside:>8.0} {outside:>8.0}");
    }
}
