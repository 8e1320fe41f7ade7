//! What somebody could try who may write the files of a log but has not its key, or who chooses what is written into it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use callgate_audit::entry::{Body, Entry, RanWithoutVerdict, Record, Started};
use callgate_audit::read::Entries;
use callgate_audit::verify::{Options, Report, Status, verify};
use callgate_audit::{Hash, Log, Settings, SyncMode};
use serde_json::json;

fn settings(directory: &Path) -> Settings {
    let mut settings = Settings::at(directory.join("audit")).sync(SyncMode::Os);
    settings.checkpoint_entries = 5;
    settings.compress = false;
    settings
}

fn started(call: impl Into<String>) -> Record {
    Record::new(Body::Started(Started { tool: "Bash".into(), sandbox: None })).call(call)
}

/// A log with twenty entries about calls and a few checkpoints.
fn build(directory: &Path) -> Settings {
    let settings = settings(directory);
    let log = Log::open(settings.clone()).unwrap();
    for call in 0..20 {
        log.append(&started(call.to_string())).unwrap();
    }
    settings
}

fn report(settings: &Settings) -> Report {
    verify(&Options::of(settings)).unwrap()
}

fn lines(settings: &Settings) -> Vec<String> {
    let text = fs::read_to_string(settings.directory.join("audit-000001.jsonl")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn store(settings: &Settings, lines: &[String]) {
    fs::write(settings.directory.join("audit-000001.jsonl"), lines.concat_lines()).unwrap();
}

trait ConcatLines {
    fn concat_lines(&self) -> String;
}

impl ConcatLines for [String] {
    fn concat_lines(&self) -> String {
        self.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Gives every line after the first changed one the hash it needs: what anybody can do.
fn chain_again(lines: &mut [String]) {
    for index in 1..lines.len() {
        let prev = Hash::of(lines[index - 1].as_bytes()).to_string();
        let (front, back) = lines[index].split_once("\"prev\":\"").unwrap();
        lines[index] = format!("{front}\"prev\":\"{prev}{}", &back[64..]);
    }
}

#[test]
fn whatever_stands_in_a_field_stays_in_its_line() {
    let base = tempfile::tempdir().unwrap();
    let settings = settings(base.path());
    let log = Log::open(settings.clone()).unwrap();
    let nasty = [
        "\n",
        "\r\n",
        "\0",
        "\u{1b}[2J",
        "\u{2028}\u{2029}\u{85}",
        "\u{202e}txt.exe",
        "\"}\n{\"v\":1,\"seq\":3,\"prev\":\"",
        "\\",
        "\u{7f}",
        "\u{feff}",
        "é\u{301}",
    ];
    for text in nasty {
        let body = RanWithoutVerdict { tool: text.into(), input: json!({text: [text]}), reason: text.into() };
        let record =
            Record { agent: Some(text.into()), ..Record::new(Body::RanWithoutVerdict(body)).call(text).session(text) };
        log.append(&record).unwrap();
        let last = Entries::open(&settings.directory).unwrap().map(Result::unwrap).last().unwrap();
        let about_call = Entries::open(&settings.directory).unwrap().map(Result::unwrap);
        let found = about_call.filter(|line| line.entry.record == record).count();
        assert_eq!(found, 1, "{text:?}: {last:?}");
    }
    let text = fs::read_to_string(settings.directory.join("audit-000001.jsonl")).unwrap();
    assert!(
        !text
            .chars()
            .any(|character| character.is_control() && character != '\n' && !matches!(character, '\u{7f}'..='\u{9f}'))
    );
    assert!(report(&settings).is_intact());
}

#[test]
fn huge_fields_become_digests_and_never_a_line_that_cannot_be_read() {
    let base = tempfile::tempdir().unwrap();
    let settings = settings(base.path());
    let log = Log::open(settings.clone()).unwrap();
    let huge = "a\u{1}\"".repeat(1_000_000);
    let body =
        RanWithoutVerdict { tool: huge.clone(), input: json!({"x": huge, huge.as_str(): 1}), reason: huge.clone() };
    log.append(&Record::new(Body::RanWithoutVerdict(body)).call(huge.as_str()).session(huge.as_str())).unwrap();
    let many: Vec<String> = (0..200_000).map(|number| number.to_string()).collect();
    let body = RanWithoutVerdict { tool: "x".into(), input: json!(many), reason: "x".into() };
    log.append(&Record::new(Body::RanWithoutVerdict(body))).unwrap();
    assert!(lines(&settings).iter().all(|line| line.len() < 300_000));
    assert_eq!(
        Entries::open(&settings.directory).unwrap().filter(|line| line.as_ref().is_ok()).count(),
        lines(&settings).len()
    );
    assert!(report(&settings).is_intact());
}

#[test]
fn a_chain_made_anew_without_the_key_is_found() {
    let base = tempfile::tempdir().unwrap();
    let settings = build(base.path());
    let original = lines(&settings);
    // one entry changed, everything after it chained again: as good as anybody can do it
    let mut forged = original.clone();
    forged[3] = forged[3].replace("\"Bash\"", "\"Read\"");
    chain_again(&mut forged);
    store(&settings, &forged);
    assert_eq!(report(&settings).status, Status::Tampered);
    // without a head there is nothing that could be believed
    let head = fs::read(settings.directory.join("head")).unwrap();
    fs::remove_file(settings.directory.join("head")).unwrap();
    assert_eq!(report(&settings).status, Status::Tampered);
    assert_eq!(Log::open(settings.clone()).unwrap_err().kind(), "damaged", "no new log is begun over it");
    fs::write(settings.directory.join("head"), head).unwrap();
    store(&settings, &original);
    assert!(report(&settings).is_intact());
}

#[test]
fn an_end_cut_off_at_a_checkpoint_is_found() {
    let base = tempfile::tempdir().unwrap();
    let settings = build(base.path());
    let original = lines(&settings);
    let checkpoints: Vec<usize> =
        (0..original.len()).filter(|index| original[*index].contains("\"kind\":\"checkpoint\"")).collect();
    assert!(checkpoints.len() >= 3);
    for checkpoint in checkpoints.iter().filter(|index| **index + 1 < original.len()) {
        store(&settings, &original[..=*checkpoint]);
        assert_eq!(report(&settings).status, Status::Tampered, "cut after line {checkpoint}");
        assert_eq!(Log::open(settings.clone()).unwrap().append(&started("x")).unwrap_err().kind(), "damaged");
    }
}

#[test]
fn checkpoints_and_tombstones_of_another_key_or_place_are_found() {
    let base = tempfile::tempdir().unwrap();
    let settings = build(base.path());
    let other = tempfile::tempdir().unwrap();
    let theirs = build(other.path());
    Log::open(theirs.clone()).unwrap().redact(8, "mallory", "nothing to see").unwrap();
    let foreign = lines(&theirs);
    let original = lines(&settings);
    let entry = |line: &str| serde_json::from_str::<Entry>(line).unwrap();
    let tombstone = foreign.iter().find(|line| line.contains("\"kind\":\"tombstone\"")).unwrap();
    let checkpoint = original.iter().rposition(|line| line.contains("\"kind\":\"checkpoint\"")).unwrap();
    let earlier = original.iter().position(|line| line.contains("\"kind\":\"checkpoint\"")).unwrap();
    let signature = |line: &str| match entry(line).record.body {
        Body::Checkpoint(checkpoint) => checkpoint.signature,
        _ => panic!(),
    };
    let own_log = match entry(&original[0]).record.body {
        Body::Segment(segment) => segment.log,
        _ => panic!(),
    };
    let their_log = match entry(&foreign[0]).record.body {
        Body::Segment(segment) => segment.log,
        _ => panic!(),
    };
    type Forgery<'a> = Box<dyn Fn(&mut Vec<String>) + 'a>;
    let forgeries: Vec<(&str, Forgery<'_>)> = vec![
        ("a tombstone signed by another key", Box::new(|lines| lines[7] = tombstone.clone())),
        (
            "the same, made to fit this log",
            Box::new(|lines| {
                let fitting = tombstone.replace(&their_log, &own_log);
                let (front, back) = fitting.split_once("\"prev\":\"").unwrap();
                let prev = Hash::of(lines[6].as_bytes());
                let (before, after) = back[64..].split_once("\"original\":\"").unwrap();
                let original = Hash::of(lines[7].as_bytes());
                lines[7] = format!("{front}\"prev\":\"{prev}{before}\"original\":\"{original}{}", &after[64..]);
            }),
        ),
        (
            "the signature of an earlier checkpoint",
            Box::new(|lines| {
                lines[checkpoint] =
                    lines[checkpoint].replace(&signature(&lines[checkpoint]), &signature(&lines[earlier]));
                chain_again(lines);
            }),
        ),
        (
            "a checkpoint of another log",
            Box::new(|lines| {
                let line = foreign.iter().find(|line| line.contains("\"kind\":\"checkpoint\"")).unwrap();
                lines[checkpoint] = line.clone();
            }),
        ),
    ];
    for (what, forge) in forgeries {
        let mut lines = original.clone();
        forge(&mut lines);
        assert_ne!(lines, original);
        store(&settings, &lines);
        assert_eq!(report(&settings).status, Status::Tampered, "{what}");
    }
}

#[test]
fn writers_that_rotate_and_compress_at_once_lose_nothing() {
    let base = tempfile::tempdir().unwrap();
    let mut settings = settings(base.path());
    settings.segment_bytes = 1_500;
    settings.compress = true;
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let settings = settings.clone();
            scope.spawn(move || {
                let log = Log::open(settings.clone()).unwrap();
                for call in 0..60 {
                    log.append(&started(format!("{writer}-{call}"))).unwrap();
                    if call % 7 == writer {
                        log.rotate().unwrap();
                        log.maintain().unwrap();
                        let brief = Log::open_briefly(settings.clone()).unwrap();
                        brief.append(&started(format!("{writer}-{call}-brief"))).unwrap();
                    }
                }
            });
        }
    });
    Log::open(settings.clone()).unwrap().maintain().unwrap();
    let calls: std::collections::HashSet<String> =
        Entries::open(&settings.directory).unwrap().filter_map(|line| line.unwrap().entry.record.call).collect();
    assert_eq!(calls.iter().filter(|call| !call.ends_with("brief")).count(), 240);
    let report = report(&settings);
    assert!(report.is_intact() && report.segments > 50, "{report:#?}");
}

#[test]
fn a_place_where_others_may_write_is_refused_also_behind_a_link() {
    let base = tempfile::tempdir().unwrap();
    let open = |name: &str| Log::open(settings(&base.path().join(name))).map(|log| log.append(&started("x")));
    for (name, mode) in [("group", 0o770), ("all", 0o777), ("sticky", 0o1777)] {
        let directory = base.path().join(name).join("audit");
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(open(name).unwrap_err().kind(), "key", "{name}");
    }
    fs::create_dir(base.path().join("link")).unwrap();
    std::os::unix::fs::symlink(base.path().join("all/audit"), base.path().join("link/audit")).unwrap();
    assert_eq!(open("link").unwrap_err().kind(), "key");
    fs::create_dir(base.path().join("file")).unwrap();
    fs::write(base.path().join("file/audit"), "").unwrap();
    assert_eq!(open("file").unwrap_err().kind(), "key");
}
