use std::fs;
use std::path::Path;

use super::*;
use crate::entry::{Body, Record, Started};
use crate::log::Log;
use callgate::policy::SyncMode;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

fn settings(directory: &Path) -> Settings {
    Settings {
        segment_bytes: 6_000,
        checkpoint_entries: 7,
        compress: false,
        boot: Some("boot".into()),
        ..Settings::at(directory.join("audit")).sync(SyncMode::Os)
    }
}

fn started(call: usize) -> Record {
    Record::new(Body::Started(Started { tool: "Bash".into(), sandbox: None })).call(call.to_string()).session("s")
}

/// A log of several segments, the older ones compressed, with a tombstone.
fn build(directory: &Path) -> Settings {
    let settings = settings(directory);
    let log = Log::open(settings.clone()).unwrap();
    for call in 0..60 {
        log.append(&started(call)).unwrap();
    }
    log.redact(20, "ada", "personal data").unwrap();
    for call in 60..80 {
        log.append(&started(call)).unwrap();
    }
    settings
}

type Files = Vec<(String, Vec<u8>)>;

fn load(directory: &Path) -> Files {
    let mut files: Files = fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap())
        .filter(|file| !file.file_name().to_string_lossy().ends_with("lock"))
        .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn store(directory: &Path, files: &Files, touched: &[usize]) {
    for index in touched {
        let (name, text) = &files[*index];
        fs::write(directory.join(name), text).unwrap();
    }
}

fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// One random edit of the files. Returns what was done and which files were touched.
fn edit(files: &mut Files, dice: &mut Dice) -> (String, Vec<usize>) {
    let mut file = dice.below(files.len());
    while files[file].1.is_empty() {
        file = (file + 1) % files.len();
    }
    let other = dice.below(files.len());
    let both_plain = file != other && [file, other].iter().all(|file| files[*file].0.ends_with(".jsonl"));
    let name = files[file].0.clone();
    let text = &mut files[file].1;
    let at = dice.below(text.len());
    let what = match dice.below(10) {
        0 => {
            text[at] ^= 1 << dice.below(8);
            format!("bit {at}")
        }
        1 => {
            text[at] = text[at].wrapping_add(1 + dice.below(255) as u8);
            format!("byte {at}")
        }
        2 => {
            text.remove(at);
            format!("removed byte {at}")
        }
        3 => {
            text.insert(at, b'0' + dice.below(70) as u8);
            format!("inserted byte {at}")
        }
        4 => {
            text.truncate(at);
            format!("cut at {at}")
        }
        5..=8 if name.ends_with(".jsonl") => {
            let mut all = lines(text);
            let first = dice.below(all.len());
            let second = dice.below(all.len());
            let what = match dice.below(5) {
                0 => {
                    all.remove(first);
                    format!("removed line {first}")
                }
                1 => {
                    all.swap(first, second);
                    format!("swapped lines {first} and {second}")
                }
                2 => {
                    all.insert(second, all[first].clone());
                    format!("line {first} again before {second}")
                }
                3 => {
                    all.truncate(first);
                    format!("cut before line {first}")
                }
                _ => {
                    let (low, high) = (first.min(second), first.max(second));
                    all.drain(low..=high);
                    format!("removed lines {low} to {high}")
                }
            };
            files[file].1 = all.concat();
            what
        }
        _ if both_plain => {
            // an old segment in place of a newer one, or a part of it
            let mut foreign = lines(&files[other].1);
            if dice.below(2) == 0 {
                files[file].1 = files[other].1.clone();
                format!("{name} is now {}", files[other].0)
            } else {
                let mut all = lines(&files[file].1);
                let from = dice.below(foreign.len());
                let to = dice.below(all.len());
                all.insert(to, foreign.remove(from));
                files[file].1 = all.concat();
                format!("line {from} of {} before {to} of {name}", files[other].0)
            }
        }
        _ => {
            let end = (at + 1 + dice.below(200)).min(text.len());
            text.drain(at..end);
            format!("removed bytes {at} to {end}")
        }
    };
    (format!("{name}: {what}"), vec![file])
}

#[test]
fn thousands_of_random_edits_are_all_found() {
    let directory = tempfile::tempdir().unwrap();
    let settings = build(directory.path());
    let options = Options::of(&settings);
    let intact = verify(&options).unwrap();
    assert!(intact.is_intact(), "{intact:?}");
    assert!(intact.segments >= 3 && intact.tombstones == 1 && intact.checkpoints >= 5, "{intact:?}");
    let original = load(&settings.directory);
    let mut dice = Dice(5);
    let mut edits = 0;
    for round in 0..4_000 {
        let mut files = original.clone();
        let (mut what, mut touched) = edit(&mut files, &mut dice);
        // every fourth time two edits, which must not make up for each other
        if round % 4 == 0 {
            let (more, others) = edit(&mut files, &mut dice);
            what = format!("{what}; {more}");
            touched.extend(others);
        }
        if files == original {
            continue;
        }
        edits += 1;
        store(&settings.directory, &files, &touched);
        let report = verify(&options).unwrap();
        assert_eq!(report.status, Status::Tampered, "{what}: {report:#?}");
        store(&settings.directory, &original, &touched);
    }
    assert!(edits > 3_500, "{edits}");
    assert_eq!(verify(&options).unwrap(), intact);
}

#[test]
fn edits_of_compressed_segments_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let settings = build(directory.path());
    Log::open(settings.clone()).unwrap().maintain().unwrap();
    let options = Options::of(&settings);
    assert!(verify(&options).unwrap().is_intact());
    let original = load(&settings.directory);
    let plain = |text: &[u8]| {
        let mut all = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(text), &mut all).ok().map(|_| all)
    };
    let compressed: Vec<usize> = (0..original.len()).filter(|file| original[*file].0.ends_with(".gz")).collect();
    assert!(compressed.len() >= 2);
    let mut dice = Dice(6);
    let mut edits = 0;
    for _ in 0..1_000 {
        let mut files = original.clone();
        let file = compressed[dice.below(compressed.len())];
        let text = &mut files[file].1;
        let at = dice.below(text.len());
        match dice.below(4) {
            0 => text[at] ^= 1 << dice.below(8),
            1 => text.truncate(at),
            2 => {
                text.remove(at);
            }
            _ => files[file].1 = original[compressed[dice.below(compressed.len())]].1.clone(),
        }
        // the compressed form has a few bits that say nothing; entries are what counts
        if plain(&files[file].1) == plain(&original[file].1) {
            continue;
        }
        edits += 1;
        store(&settings.directory, &files, &[file]);
        let report = verify(&options).unwrap();
        assert_eq!(report.status, Status::Tampered, "{}: {report:#?}", files[file].0);
        store(&settings.directory, &original, &[file]);
    }
    assert!(edits > 700, "{edits}");
}

/// Finds what `tamper` does to the lines of the first segment.
fn found_after(tamper: impl FnOnce(&mut Vec<Vec<u8>>)) -> Report {
    let directory = tempfile::tempdir().unwrap();
    let settings = build(directory.path());
    let path = segment::plain_path(&settings.directory, 1);
    let mut all = lines(&fs::read(&path).unwrap());
    tamper(&mut all);
    fs::write(&path, all.concat()).unwrap();
    verify(&Options::of(&settings)).unwrap()
}

#[test]
fn what_was_done_and_where_is_told() {
    let changed = found_after(|lines| {
        let text = String::from_utf8(lines[4].clone()).unwrap().replace("\"Bash\"", "\"Read\"");
        lines[4] = text.into_bytes();
    });
    assert_eq!(changed.found, 1, "{changed:#?}");
    let finding = &changed.findings[0];
    assert_eq!((finding.kind, finding.place.segment, finding.place.line), (FindingKind::Changed, Some(1), Some(5)));
    assert_eq!(finding.place.to_string(), "segment 1, line 5, entry 5");

    let relinked = found_after(|lines| {
        let text = String::from_utf8(lines[4].clone()).unwrap();
        let prev = text.find("prev").unwrap() + 7;
        let forged = format!("{}{}{}", &text[..prev], "0".repeat(64), &text[prev + 64..]);
        lines[4] = forged.into_bytes();
    });
    assert_eq!(relinked.findings[0].kind, FindingKind::Changed);
    assert_eq!(relinked.findings[0].place.seq, Some(5), "{relinked:#?}");

    let removed = found_after(|lines| {
        lines.drain(4..6);
    });
    assert_eq!(removed.findings[0].kind, FindingKind::Removed);
    assert_eq!(removed.findings[0].what, "entries 5 to 6 are missing");

    let again = found_after(|lines| lines.insert(9, lines[3].clone()));
    assert_eq!(again.findings[0].kind, FindingKind::Reordered);
    assert_eq!(again.findings[0].place.line, Some(10));

    let garbage = found_after(|lines| lines.insert(2, b"hello\n".to_vec()));
    assert_eq!((garbage.findings[0].kind, garbage.findings[0].place.line), (FindingKind::Changed, Some(3)));
}

#[test]
fn a_log_rewritten_with_a_stolen_key_does_not_fit_checkpoints_kept_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    let settings = settings(directory.path()).deliver_to(crate::deliver::ToFile(kept.clone()));
    let log = Log::open(settings.clone()).unwrap();
    for call in 0..30 {
        log.append(&started(call)).unwrap();
    }
    drop(log);
    let with_kept = || Options::of(&settings).with_checkpoints(&kept).unwrap();
    assert!(verify(&with_kept()).unwrap().is_intact());
    // the thief begins anew with the same key
    fs::remove_dir_all(&settings.directory).unwrap();
    let quiet = Settings { deliveries: Vec::new(), ..settings.clone() };
    let log = Log::open(quiet).unwrap();
    for call in 0..30 {
        log.append(&started(call)).unwrap();
    }
    assert!(verify(&Options::of(&settings)).unwrap().is_intact(), "the log alone looks well");
    let report = verify(&with_kept()).unwrap();
    assert_eq!(report.status, Status::Tampered);
    assert!(report.findings.iter().all(|finding| finding.kind == FindingKind::CheckpointMismatch));
}

#[test]
fn with_the_public_key_alone_everything_up_to_the_last_checkpoint_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let settings = build(directory.path());
    let public = Log::open(settings.clone()).unwrap().public_key();
    let options = Options { key: None, public_keys: vec![public], ..Options::of(&settings) };
    let report = verify(&options).unwrap();
    assert!(report.is_intact() && !report.head_checked, "{report:?}");
    let stranger = Options { key: None, public_keys: vec!["00".repeat(32)], ..Options::of(&settings) };
    let report = verify(&stranger).unwrap();
    assert_eq!((report.checkpoints, report.findings[0].kind), (0, FindingKind::BadSignature), "{report:#?}");
}

#[test]
fn a_copy_without_lock_can_be_checked() {
    let directory = tempfile::tempdir().unwrap();
    let settings = build(directory.path());
    fs::remove_file(settings.directory.join("lock")).unwrap();
    assert!(verify(&Options::of(&settings)).unwrap().is_intact());
}
