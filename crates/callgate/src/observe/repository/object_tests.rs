//! The reader of objects meets real repositories and hostile bytes.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;

use super::commits::{parse_commit, parse_tree};
use super::objects::{ObjectId, ObjectKind, Objects, apply_delta, entry_header, fan_out, loose_object, parse_id};
use super::revisions::Repository;
use crate::path::file_system::RealFileSystem;

fn git(directory: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(directory).args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(words);
    let output = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A repository with many similar files and commits, so that packs have deltas.
fn history() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q", "-b", "main"]);
    let mut lines: Vec<String> = (0..400).map(|line| format!("line {line}")).collect();
    for step in 0..30 {
        lines[step * 13 % 400] = format!("changed {step}");
        std::fs::create_dir_all(directory.path().join("deep/er")).unwrap();
        std::fs::write(directory.path().join("deep/er/file.txt"), lines.join("\n")).unwrap();
        std::fs::write(directory.path().join(format!("deep/{step}.txt")), "x").unwrap();
        git(directory.path(), &["add", "-A"]);
        git(directory.path(), &["commit", "-qm", &format!("step {step}")]);
    }
    git(directory.path(), &["tag", "-a", "-m", "one", "v1", "HEAD~3"]);
    directory
}

/// Compares every object with what git says it is.
fn read_all(directory: &Path) -> usize {
    let listed = git(directory, &["cat-file", "--batch-all-objects", "--batch-check"]);
    let mut objects = Objects::new(&RealFileSystem, directory.join(".git/objects"));
    for line in listed.lines() {
        let [name, kind, size] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let id = parse_id(name.as_bytes()).unwrap();
        let object = objects.find(&id).unwrap().unwrap();
        assert_eq!(object.bytes.len().to_string(), size, "{line}");
        assert_eq!(format!("{:?}", object.kind).to_lowercase(), kind, "{line}");
        if object.kind != ObjectKind::Tree {
            let raw =
                Command::new("git").current_dir(directory).args(["cat-file", kind, name]).output().unwrap().stdout;
            assert_eq!(&*object.bytes, raw, "{line}");
        }
    }
    listed.lines().count()
}

#[test]
fn every_object_is_read_loose_and_packed() {
    let directory = history();
    let loose = read_all(directory.path());
    git(directory.path(), &["repack", "-q", "-a", "-d", "-f", "--depth=40", "--window=60"]);
    git(directory.path(), &["prune-packed", "-q"]);
    assert_eq!(read_all(directory.path()), loose);
    // the same with names of bases in place of their places
    git(directory.path(), &["-c", "repack.useDeltaBaseOffset=false", "repack", "-q", "-a", "-d", "-f"]);
    assert_eq!(read_all(directory.path()), loose);
    let mut objects = Objects::new(&RealFileSystem, directory.path().join(".git/objects"));
    assert!(objects.find(&ObjectId::default()).unwrap().is_none());
}

#[test]
fn revisions_and_differences_are_those_of_git() {
    let directory = history();
    let root = directory.path();
    for packed in [false, true] {
        if packed {
            git(root, &["gc", "-q"]);
        }
        let folder = root.join(".git");
        let mut repository = Repository::open(&RealFileSystem, root, folder.clone(), folder).unwrap();
        let short = git(root, &["rev-parse", "--short", "HEAD~4"]);
        for revision in [
            "HEAD",
            "@",
            "main",
            "refs/heads/main",
            "HEAD~5",
            "main^",
            "v1",
            "v1~2",
            "v1^{}",
            "HEAD@{3}",
            "@{2}",
            &short,
        ] {
            let expected = parse_id(git(root, &["rev-parse", revision]).as_bytes());
            assert_eq!(repository.resolve(revision).unwrap(), expected, "{revision}");
        }
        for revision in ["nosuch", "HEAD~100", "main^2", "deadbeef"] {
            assert_eq!(repository.resolve(revision).unwrap(), None, "{revision}");
        }
        for revision in ["HEAD^{/step}", "HEAD@{yesterday}", "@{u}", ":/step"] {
            assert!(repository.resolve(revision).is_err(), "{revision}");
        }
        for (old, new) in [("HEAD~1", "HEAD"), ("v1", "HEAD"), ("HEAD", "HEAD~20")] {
            let [one, two] = [old, new].map(|revision| {
                let id = repository.resolve(revision).unwrap().unwrap();
                repository.tree(id).unwrap()
            });
            let changes = repository.objects.differences(Some(one), Some(two), &|_| true).unwrap();
            let mut found: Vec<String> = changes.into_iter().map(|change| change.path).collect();
            found.sort();
            let expected = git(root, &["diff", "--name-only", "--no-renames", old, new]);
            assert_eq!(found.join("\n"), expected, "{old} {new}");
        }
        assert_eq!(
            repository
                .objects
                .ancestors(&[repository.reference("HEAD").unwrap().unwrap()], None, &HashSet::new())
                .unwrap()
                .len(),
            30
        );
    }
}

#[test]
fn sizes_that_are_only_declared_cost_nothing() {
    assert!(loose_object(&zlib(b"blob 99999999999999999999\0x")).is_err());
    assert!(loose_object(&zlib(b"blob 5\0x")).is_err());
    assert!(loose_object(&zlib(b"bomb 1\0x")).is_err());
    assert_eq!(&*loose_object(&zlib(b"blob 1\0x")).unwrap().bytes, b"x");
    // a header that claims 2^60 bytes
    assert!(entry_header(&[0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
    // a delta that copies its base without end
    let mut delta = vec![4, 0xff, 0xff, 0xff, 0xff, 0x0f];
    delta.extend([0x90, 4].repeat(1_000));
    assert!(apply_delta(b"base", &delta).is_err());
    // what unpacks to more than an object may have
    let bomb = [b"blob 16777216\0".to_vec(), vec![0; 16 << 20]].concat();
    assert!(loose_object(&zlib(&bomb)).is_err());
}

#[test]
fn a_delta_of_itself_ends() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("objects/pack");
    std::fs::create_dir_all(&folder).unwrap();
    let id: ObjectId = [7; 20];
    let delta = [4, 4, 0x90, 4];
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    pack.push(0x70 | delta.len() as u8);
    pack.extend(id);
    pack.extend(zlib(&delta));
    std::fs::write(folder.join("pack-x.pack"), pack).unwrap();
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    (0..=255_u32).for_each(|byte| index.extend(u32::from(byte >= 7).to_be_bytes()));
    index.extend(id);
    index.extend([0; 4]);
    index.extend(12_u32.to_be_bytes());
    index.extend([0; 40]);
    std::fs::write(folder.join("pack-x.idx"), index).unwrap();
    let mut objects = Objects::new(&RealFileSystem, directory.path().join("objects"));
    assert!(objects.find(&id).is_err());
}

#[test]
fn odd_trees_are_errors() {
    let entry = |mode: &str, name: &str| [format!("{mode} {name}\0").into_bytes(), vec![1; 20]].concat();
    assert_eq!(parse_tree(&[entry("100644", "a"), entry("40000", "b")].concat()).unwrap().len(), 2);
    for (mode, name) in
        [("100644", ".."), ("100644", ".git"), ("40000", ".GIT"), ("100644", "a/b"), ("100644", ""), ("777", "a")]
    {
        assert!(parse_tree(&entry(mode, name)).is_err(), "{mode} {name}");
    }
    assert!(parse_tree(&[entry("100644", "a"), entry("100644", "a")].concat()).is_err());
    assert!(parse_tree(b"100644 a\0short").is_err());
}

proptest! {
    #[test]
    fn hostile_bytes_never_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..400), base in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = loose_object(&bytes);
        let _ = loose_object(&zlib(&bytes));
        let _ = apply_delta(&base, &bytes);
        let _ = entry_header(&bytes);
        let _ = fan_out(&bytes);
        let _ = parse_tree(&bytes);
        let _ = parse_commit(&bytes);
    }

    #[test]
    fn a_delta_with_sound_sizes_makes_what_it_says(base in proptest::collection::vec(any::<u8>(), 1..100), insert in proptest::collection::vec(any::<u8>(), 1..100)) {
        let size = base.len() + insert.len();
        let mut delta = vec![base.len() as u8];
        delta.extend(if size < 128 { vec![size as u8] } else { vec![(size & 0x7f) as u8 | 0x80, (size >> 7) as u8] });
        delta.push(insert.len() as u8);
        delta.extend(&insert);
        delta.extend([0x90, base.len() as u8]);
        prop_assert_eq!(apply_delta(&base, &delta).unwrap(), [insert, base].concat());
    }
}
