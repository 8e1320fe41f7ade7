//! A log as an earlier build of this version of the schema wrote it is read, checked and continued.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use callgate_audit::entry::{EntryBody, Record, SessionStarted, VERSION};
use callgate_audit::read::Entries;
use callgate_audit::verify::{Status, VerifyOptions, verify};
use callgate_audit::{Log, LogSettings};

fn copy(directory: &Path) -> LogSettings {
    let settings = LogSettings::at(directory.join("audit"));
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/version-1");
    fs::create_dir(&settings.directory).unwrap();
    fs::set_permissions(&settings.directory, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["audit-000001.jsonl", "head"] {
        fs::copy(from.join(name), settings.directory.join(name)).unwrap();
    }
    fs::copy(from.join("audit-key"), &settings.key).unwrap();
    fs::set_permissions(&settings.key, fs::Permissions::from_mode(0o600)).unwrap();
    settings
}

#[test]
fn every_entry_of_the_first_logs_is_still_understood() {
    let base = tempfile::tempdir().unwrap();
    let settings = copy(base.path());
    let mut entries = Entries::open(&settings.directory).unwrap();
    let kinds: Vec<&str> = entries.by_ref().map(|line| line.unwrap().entry.record.body.kind()).collect();
    assert_eq!((kinds.len(), entries.skipped), (27, 0));
    for kind in ["segment", "tool_attempt", "approval", "security_violation", "refused", "started", "finished"] {
        assert!(kinds.contains(&kind), "{kind}");
    }
    assert_eq!(verify(&VerifyOptions::of(&settings)).unwrap().status, Status::Intact);
}

#[test]
fn a_log_of_the_first_builds_goes_on_with_the_kinds_of_today() {
    let base = tempfile::tempdir().unwrap();
    let settings = copy(base.path());
    let body = EntryBody::SessionStarted(SessionStarted { writer: "test".into(), ..SessionStarted::default() });
    let receipt = Log::open(settings.clone()).unwrap().append(&Record::new(body).session("s")).unwrap();
    assert_eq!(receipt.first, 28);
    assert_eq!(verify(&VerifyOptions::of(&settings)).unwrap().status, Status::Intact);
}

#[test]
fn what_a_later_version_writes_is_left_out_and_counted() {
    let base = tempfile::tempdir().unwrap();
    let settings = copy(base.path());
    let path = settings.directory.join("audit-000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let later = r#"{"v":2,"seq":28,"prev":"00","time":"2026-11-15T23:00:00Z","kind":"from_the_future","new":[1]}"#;
    let unknown =
        text.lines().last().unwrap().replace("\"finished\"", "\"dreamed\"").replace("\"refused\"", "\"dreamed\"");
    fs::write(&path, format!("{text}{later}\n{unknown}\n")).unwrap();
    let mut entries = Entries::open(&settings.directory).unwrap();
    assert_eq!(entries.by_ref().map(Result::unwrap).filter(|line| line.entry.v == VERSION).count(), 27);
    assert_eq!(entries.skipped, 2);
}
