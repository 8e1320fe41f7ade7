//! What the log costs, as ratios to what the machine does without it, measured in the same run.
//!
//! `cargo bench -p callgate-audit --bench ratios` prints a table; `CALLGATE_BENCH_ENTRIES` makes it smaller or larger.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate::assess::Assessor;
use callgate::policy::{Decision, Policy};
use callgate_audit::entry::{Body, Record, ToolAttempt};
use callgate_audit::learn::Replay;
use callgate_audit::read::Entries;
use callgate_audit::verify::{Options, verify};
use callgate_audit::{Log, Settings, SyncMode};
use serde_json::json;

fn attempt(number: usize) -> Record {
    let body = ToolAttempt {
        tool: "Bash".into(),
        input: json!({"command": "cargo test"}),
        decision: Decision::Ask,
        rule: Some("project-code".into()),
        rule_place: None,
        reason: "runs code of the project".into(),
        policy: None,
        classification: None,
        description: json!({"category": "shell", "coverage": "complete", "parts": [
            {"words": [{"known": "cargo"}, {"known": "test"}], "wrappers": [], "elsewhere": null, "effects": [
                {"effect": {"action": "run", "target": {"program": {"name": "cargo", "origin": "known"}}}, "place": null}]}]}),
        claims: json!(null),
        directory: None,
        workspace: None,
    };
    Record::new(Body::ToolAttempt(Box::new(body))).call(number.to_string()).session("s")
}

fn append_file(path: &Path) -> File {
    OpenOptions::new().append(true).create(true).open(path).unwrap()
}

/// The best of several runs of each, in turn: whatever disturbs the machine meets both, and the best were disturbed least.
fn best(runs: usize, mut plain: impl FnMut() -> Duration, mut ours: impl FnMut() -> Duration) -> (Duration, Duration) {
    let both: Vec<_> = (0..runs).map(|_| (plain(), ours())).collect();
    (both.iter().map(|times| times.0).min().unwrap(), both.iter().map(|times| times.1).min().unwrap())
}

fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn main() {
    // `cargo test --benches` only wants to see that it builds
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let entries: usize =
        std::env::var("CALLGATE_BENCH_ENTRIES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let base = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..20_000).map(attempt).collect();
    let settings = |name: &str, sync: SyncMode| Settings::at(base.path().join(name)).sync(sync);

    println!("appending {} entries one by one, and in groups of 64", records.len());
    let line_length = {
        let log = Log::open(settings("probe", SyncMode::Os)).unwrap();
        log.append_all(&records[..100]).unwrap();
        std::fs::metadata(base.path().join("probe/audit-000001.jsonl")).unwrap().len() as usize / 101
    };
    // the same bytes without number, hash, lock and head: turned into JSON and written line by line
    let json_and_write = |group: usize| {
        let path = base.path().join("raw");
        let _ = std::fs::remove_file(&path);
        let mut file = append_file(&path);
        let padding = vec![b' '; line_length];
        let start = Instant::now();
        for some in records.chunks(group) {
            let mut buffer = Vec::new();
            for record in some {
                let before = buffer.len();
                serde_json::to_writer(&mut buffer, record).unwrap();
                let length = buffer.len() - before;
                buffer.extend_from_slice(&padding[..line_length.saturating_sub(length + 1)]);
                buffer.push(b'\n');
            }
            file.write_all(&buffer).unwrap();
        }
        start.elapsed()
    };
    let mut run = 0;
    let mut chained = |group: usize, sync: SyncMode| {
        run += 1;
        let log = Log::open(settings(&format!("chained-{run}"), sync)).unwrap();
        let start = Instant::now();
        for some in records.chunks(group) {
            log.append_all(some).unwrap();
        }
        start.elapsed()
    };
    let rate = |count: usize, time: Duration| count as f64 / time.as_secs_f64();
    for group in [1, 64] {
        let every = SyncMode::Interval(Duration::from_millis(200));
        let (plain, interval) = best(9, || json_and_write(group), || chained(group, every));
        println!(
            "  group {group:>2}: plain {:>9.0}/s   chained, interval {:>9.0}/s   ratio {:.2} (at most 3)",
            rate(records.len(), plain),
            rate(records.len(), interval),
            interval.as_secs_f64() / plain.as_secs_f64()
        );
    }

    println!("appending with `always`, against the machine's own syncs");
    for group in [1, 16, 64] {
        let count = 300;
        let plain = || {
            let mut file = append_file(&base.path().join(format!("synced-{group}")));
            let bytes = vec![b'x'; line_length * group];
            let start = Instant::now();
            for _ in 0..count {
                file.write_all(&bytes).unwrap();
                file.sync_data().unwrap();
            }
            start.elapsed()
        };
        let mut run = 0;
        let always = || {
            run += 1;
            let log = Log::open(settings(&format!("always-{group}-{run}"), SyncMode::Always)).unwrap();
            let start = Instant::now();
            for some in records.chunks(group).take(count) {
                log.append_all(some).unwrap();
            }
            start.elapsed()
        };
        let (plain, always) = best(5, plain, always);
        println!(
            "  group {group:>2}: syncs {:>6.0}/s   entries {:>8.0}/s   ratio {:.2} (at most 2)",
            rate(count, plain),
            rate(count * group, always),
            always.as_secs_f64() / plain.as_secs_f64()
        );
    }
    let log = Arc::new(Log::open(settings("threads", SyncMode::Always)).unwrap());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (log, records) = (Arc::clone(&log), &records);
            scope.spawn(move || {
                records[thread * 300..][..300].iter().for_each(|record| assert!(log.append(record).is_ok()))
            });
        }
    });
    println!("  16 threads, one entry each at a time: {:>8.0}/s", rate(16 * 300, start.elapsed()));

    println!("verifying {entries} entries");
    let large = settings("large", SyncMode::Os);
    let log = Log::open(large.clone()).unwrap();
    for number in 0..entries.div_ceil(500) {
        log.append_all(&records[number % 40 * 500..][..500]).unwrap();
    }
    log.maintain().unwrap();
    drop(log);
    let before = resident_kilobytes();
    let start = Instant::now();
    let report = verify(&Options::of(&large)).unwrap();
    let time = start.elapsed();
    assert!(report.is_intact(), "{report:?}");
    println!(
        "  {} entries in {} segments: {:.2} s ({:.2} s for a million; at most 5), {} kB more memory",
        report.entries,
        report.segments,
        time.as_secs_f64(),
        time.as_secs_f64() * 1e6 / report.entries as f64,
        resident_kilobytes().saturating_sub(before)
    );

    let calls = 100_000.min(entries);
    println!("replaying {calls} calls");
    let judge = Assessor::new(Policy::bundled("standard").unwrap());
    let lines = Entries::open(&large.directory).unwrap().map(|line| line.map(|line| line.entry)).take(calls);
    let start = Instant::now();
    let replay = Replay::of(lines, &judge, &mut |_| {}).unwrap();
    println!("  {} calls: {:.2} s", replay.calls, start.elapsed().as_secs_f64());
}
