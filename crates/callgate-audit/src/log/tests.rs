use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Mutex;

use super::*;
use crate::checkpoint::SignedCheckpoint;
use crate::deliver::{Delivery, ToCommand, ToFile};
use crate::entry::{LogEntry, Started};
use crate::head::HeadFile;
use crate::verify::{FindingKind, Status, VerifyOptions, VerifyReport, verify};

pub(super) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Place { directory: tempfile::tempdir().unwrap() }
    }

    pub(super) fn settings(&self) -> LogSettings {
        LogSettings {
            boot: Some("boot 1".into()),
            compress: false,
            checkpoint_entries: 1_000_000,
            ..LogSettings::at(self.directory.path().join("audit")).sync(SyncMode::Os)
        }
    }

    pub(super) fn log(&self) -> Log {
        Log::open(self.settings()).unwrap()
    }

    pub(super) fn report(&self) -> VerifyReport {
        verify(&VerifyOptions::of(&self.settings())).unwrap()
    }

    pub(super) fn segment(&self, number: u64) -> PathBuf {
        segment::plain_path(&self.settings().directory, number)
    }

    pub(super) fn entries(&self) -> Vec<LogEntry> {
        let mut entries = Vec::new();
        for file in segment::list(&self.settings().directory).unwrap() {
            let mut lines = segment::SegmentLines::open(&file, 0, None).unwrap();
            while let segment::NextLine::Line(line) = lines.next().unwrap() {
                entries.push(serde_json::from_slice(line).unwrap());
            }
        }
        entries
    }
}

pub(super) fn started(call: usize) -> Record {
    Record::new(EntryBody::Started(Started { tool: "Bash".into(), sandbox: None })).call(call.to_string())
}

#[test]
fn entries_are_numbered_chained_and_for_their_owner_only() {
    let place = Place::new();
    let log = place.log();
    assert_eq!(log.append(&started(1)).unwrap(), Receipt { first: 2, last: 2 });
    assert_eq!(log.append_all(&[started(2), started(3)]).unwrap(), Receipt { first: 3, last: 4 });
    let kinds: Vec<&str> = place.entries().iter().map(|entry| entry.record.body.kind()).collect();
    assert_eq!(kinds, ["segment", "started", "started", "started"]);
    let directory = place.settings().directory;
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    for file in fs::read_dir(&directory).unwrap() {
        assert_eq!(file.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
    let report = place.report();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.entries, report.last), (4, 4));
}

#[test]
fn a_log_that_is_opened_again_goes_on() {
    let place = Place::new();
    for call in 0..5 {
        place.log().append(&started(call)).unwrap();
    }
    assert_eq!(place.report().last, 6);
    assert!(place.report().is_intact());
}

#[test]
fn several_logs_at_once_do_not_mix() {
    let place = Place::new();
    place.log();
    for sync in [SyncMode::Os, SyncMode::Always, SyncMode::Interval(Duration::from_millis(5))] {
        // one handle for two threads each: as two threads in each of four processes
        std::thread::scope(|scope| {
            for process in 0..4 {
                let log = Arc::new(Log::open(place.settings().sync(sync)).unwrap());
                for thread in 0..2 {
                    let log = Arc::clone(&log);
                    scope.spawn(move || {
                        for call in 0..50 {
                            log.append(&started(process * 1_000 + thread * 100 + call)).unwrap();
                        }
                    });
                }
            }
        });
    }
    let report = place.report();
    assert!(report.is_intact(), "{report:?}");
    let mut calls: Vec<String> = place.entries().into_iter().filter_map(|entry| entry.record.call).collect();
    assert_eq!(calls.len(), 1_200);
    calls.sort();
    calls.dedup();
    assert_eq!(calls.len(), 400);
}

#[test]
fn segments_rotate_by_size_and_age_and_are_compressed() {
    let place = Place::new();
    let settings = LogSettings { segment_bytes: 2_000, compress: true, ..place.settings() };
    let log = Log::open(settings).unwrap();
    for call in 0..40 {
        log.append(&started(call)).unwrap();
    }
    log.maintain().unwrap();
    // the thread that compresses after a rotation may still be at it
    let report = (0..100)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            log.maintain().unwrap();
            place.report()
        })
        .find(|_| {
            let files = segment::list(&place.settings().directory).unwrap();
            files.iter().filter(|file| !file.compressed).count() == 1
        })
        .unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert!(report.segments >= 4, "{report:?}");
    assert_eq!(report.checkpoints, report.segments - 1, "every closed segment ends with a checkpoint");
    drop(log);
    let settings = LogSettings { segment_age: Duration::ZERO, ..place.settings() };
    Log::open(settings).unwrap().append(&started(1)).unwrap();
    assert_eq!(place.report().segments, report.segments + 1);
}

#[test]
fn checkpoints_follow_by_number_and_age_and_are_sent() {
    let place = Place::new();
    let kept = place.directory.path().join("kept");
    let piped = place.directory.path().join("piped");
    let tee = ToCommand {
        words: vec!["tee".into(), "-a".into(), piped.display().to_string()],
        timeout: Duration::from_secs(20),
    };
    let settings =
        LogSettings { checkpoint_entries: 10, ..place.settings() }.deliver_to(ToFile(kept.clone())).deliver_to(tee);
    let log = Log::open(settings).unwrap();
    for call in 0..35 {
        log.append(&started(call)).unwrap();
    }
    log.checkpoint().unwrap();
    drop(log);
    let options =
        VerifyOptions::of(&place.settings()).with_checkpoints(&kept).unwrap().with_checkpoints(&piped).unwrap();
    assert_eq!(options.checkpoints.len(), 8);
    let report = verify(&options).unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.checkpoints, report.outside_checkpoints), (4, 8));
    let log = Log::open(LogSettings { checkpoint_age: Duration::ZERO, ..place.settings() }).unwrap();
    log.append(&started(1)).unwrap();
    assert_eq!(place.report().checkpoints, 5);
}

#[derive(Debug)]
struct Broken(Mutex<usize>);

impl Delivery for Broken {
    fn name(&self) -> String {
        "broken".into()
    }
    fn deliver(&self, _: &SignedCheckpoint) -> Result<(), String> {
        *self.0.lock().unwrap() += 1;
        Err("nobody is there".into())
    }
}

#[test]
fn a_checkpoint_that_could_not_be_sent_is_noted() {
    let place = Place::new();
    let log = Log::open(place.settings().deliver_to(Broken(Mutex::new(0)))).unwrap();
    log.checkpoint().unwrap();
    drop(log);
    let last = place.entries().pop().unwrap();
    let EntryBody::DeliveryFailed(failed) = last.record.body else { panic!("{last:?}") };
    assert_eq!((failed.checkpoint, failed.to.as_str(), failed.reason.as_str()), (2, "broken", "nobody is there"));
}

#[test]
fn an_entry_that_cannot_be_written_is_an_error_and_leaves_nothing() {
    let place = Place::new();
    let log = place.log();
    log.append(&started(1)).unwrap();
    // a directory in place of the next segment stands for any failure of the file system
    fs::create_dir(place.segment(2)).unwrap();
    assert_eq!(log.rotate().unwrap_err().kind(), "io");
    fs::remove_dir(place.segment(2)).unwrap();
    log.append(&started(2)).unwrap();
    assert!(place.report().is_intact(), "{:?}", place.report());
}

/// Writes a line as a writer that is killed before it moves the head.
fn write_unsealed(place: &Place, bytes: usize) {
    let head = fs::read(HeadFile::path_in(&place.settings().directory)).unwrap();
    place.log().append(&started(99)).unwrap();
    fs::write(HeadFile::path_in(&place.settings().directory), head).unwrap();
    let file = OpenOptions::new().write(true).open(place.segment(1)).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length - bytes as u64).unwrap();
}

#[test]
fn a_torn_line_is_a_trace_of_a_crash_and_the_next_writer_cuts_it() {
    let place = Place::new();
    place.log().append(&started(1)).unwrap();
    write_unsealed(&place, 10);
    let report = place.report();
    assert_eq!(report.status, Status::CrashTraces, "{report:?}");
    assert_eq!(report.findings[0].kind, FindingKind::TornLine);
    assert_eq!((report.findings[0].place.line, report.findings[0].place.seq), (Some(3), Some(3)));
    place.log().append(&started(2)).unwrap();
    assert!(place.report().is_intact(), "{:?}", place.report());
    let entries = place.entries();
    let EntryBody::Recovered(recovered) = &entries[2].record.body else { panic!("{entries:?}") };
    assert!(recovered.cut_bytes > 100 && recovered.adopted == 0 && recovered.lost == 0);
}

#[test]
fn whole_entries_that_were_not_sealed_are_taken_over() {
    let place = Place::new();
    place.log().append(&started(1)).unwrap();
    write_unsealed(&place, 0);
    let report = place.report();
    assert_eq!((report.status, report.findings[0].kind), (Status::CrashTraces, FindingKind::Unsealed));
    place.log().append(&started(2)).unwrap();
    assert!(place.report().is_intact());
    let EntryBody::Recovered(recovered) = &place.entries()[3].record.body else { panic!() };
    assert_eq!((recovered.adopted, recovered.cut_bytes), (1, 0));
}

#[test]
fn what_no_writer_leaves_stops_the_log() {
    type Tamper = (&'static str, fn(&Place));
    let tampered: &[Tamper] = &[
        ("cut", |place| {
            let file = OpenOptions::new().write(true).open(place.segment(1)).unwrap();
            file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        }),
        ("garbage", |place| {
            let file = OpenOptions::new().append(true).open(place.segment(1)).unwrap();
            std::io::Write::write_all(&mut &file, b"garbage").unwrap();
        }),
        ("no head", |place| fs::remove_file(HeadFile::path_in(&place.settings().directory)).unwrap()),
        ("another head", |place| {
            let path = HeadFile::path_in(&place.settings().directory);
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.write_all_at(b"x", 1030).unwrap();
        }),
    ];
    for (name, tamper) in tampered {
        let place = Place::new();
        let log = place.log();
        log.append(&started(1)).unwrap();
        log.append(&started(2)).unwrap();
        tamper(&place);
        // a head that was removed is only missed by those who look for it
        let error = Log::open(place.settings()).and_then(|log| log.append(&started(3))).unwrap_err();
        assert_eq!(error.kind(), "damaged", "{name}");
        assert_eq!(place.report().status, Status::Tampered, "{name}");
        drop(log);
        let (log, aside) = Log::set_aside(place.settings()).unwrap();
        log.append(&started(4)).unwrap();
        assert!(place.report().is_intact(), "{name}");
        assert!(aside.join("audit-000001.jsonl").exists());
        let EntryBody::Segment(first) = &place.entries()[0].record.body else { panic!() };
        assert_eq!(first.follows.as_deref(), aside.file_name().unwrap().to_str());
    }
}

#[test]
fn what_a_power_failure_takes_is_no_tampering() {
    let place = Place::new();
    let log = place.log();
    log.append(&started(1)).unwrap();
    log.sync().unwrap();
    log.append_all(&[started(2), started(3)]).unwrap();
    drop(log);
    // the machine stops: the last two entries never reached the disk, one of them came back as zeros
    let file = OpenOptions::new().write(true).open(place.segment(1)).unwrap();
    let text = fs::read(place.segment(1)).unwrap();
    let kept = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0 + 1;
    file.set_len(kept as u64).unwrap();
    assert_eq!(place.report().status, Status::Tampered, "the machine has not stopped");
    let after = LogSettings { boot: Some("boot 2".into()), ..place.settings() };
    let report = verify(&VerifyOptions::of(&after)).unwrap();
    assert_eq!((report.status, report.findings[0].kind), (Status::CrashTraces, FindingKind::LostInPowerFailure));
    Log::open(after.clone()).unwrap().append(&started(4)).unwrap();
    let report = verify(&VerifyOptions::of(&after)).unwrap();
    assert!(report.is_intact(), "{report:?}");
    let EntryBody::Recovered(recovered) = &place.entries()[2].record.body else { panic!() };
    assert_eq!(recovered.lost, 2);
    // what was known to be on the disk cannot be lost that way
    file.set_len(0).unwrap();
    let later = LogSettings { boot: Some("boot 3".into()), ..place.settings() };
    assert_eq!(verify(&VerifyOptions::of(&later)).unwrap().status, Status::Tampered);
}

#[test]
fn an_entry_taken_out_on_purpose_leaves_a_tombstone() {
    for compress in [false, true] {
        let place = Place::new();
        let log = place.log();
        for call in 0..5 {
            log.append(&started(call)).unwrap();
        }
        if compress {
            log.rotate().unwrap();
            log.maintain().unwrap();
        }
        log.redact(4, "ada", "a name that must not be kept").unwrap();
        log.append(&started(6)).unwrap();
        let report = place.report();
        assert!(report.is_intact(), "{report:?}");
        assert_eq!(report.tombstones, 1);
        let entries = place.entries();
        let EntryBody::Tombstone(tombstone) = &entries[3].record.body else { panic!("{:?}", entries[3]) };
        assert_eq!((tombstone.by.as_str(), entries[3].record.call.as_deref()), ("ada", Some("2")));
        assert_eq!(log.redact(1, "ada", "x").unwrap_err().kind(), "not_found", "the log's own entries stay");
        assert_eq!(log.redact(4, "ada", "x").unwrap_err().kind(), "not_found", "once is enough");
        assert_eq!(log.redact(999, "ada", "x").unwrap_err().kind(), "not_found");
    }
}

#[test]
fn a_log_without_its_directory_or_key_is_refused() {
    let place = Place::new();
    place.log();
    fs::write(place.settings().key, "zz").unwrap();
    assert_eq!(Log::open(place.settings()).unwrap_err().kind(), "key");
    let key = place.settings().key;
    fs::remove_file(&key).unwrap();
    assert_eq!(Log::open(place.settings()).unwrap_err().kind(), "damaged", "another key does not fit");
}

#[test]
fn a_clock_that_goes_back_stops_nothing_and_is_no_tampering() {
    let place = Place::new();
    place.log().append(&started(0)).unwrap();
    let settings = place.settings();
    let key = AuditKey::open(&settings.key).unwrap();
    let mut file = HeadFile::open(&settings.directory).unwrap().unwrap();
    let Some(crate::head::HeadState::Whole(mut head)) = file.changed(&key).unwrap() else { panic!() };
    // as if everything so far had been written ten days from now
    let ten_days = std::time::Duration::from_secs(10 * 24 * 60 * 60);
    (head.begun, head.checkpoint_time) = (head.begun.after(ten_days), head.checkpoint_time.after(ten_days));
    file.write(&mut head, &key).unwrap();
    let log = Log::open(LogSettings { checkpoint_entries: 10, segment_bytes: 5_000, ..settings }).unwrap();
    for call in 0..50 {
        log.append(&started(call)).unwrap();
    }
    let report = place.report();
    assert!(report.is_intact() && report.segments > 1 && report.checkpoints >= 4, "{report:#?}");
}
