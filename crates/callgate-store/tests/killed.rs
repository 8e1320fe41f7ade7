//! Processes that spend grants and are killed at any moment: what was granted is spent or left, nothing twice, nothing lost.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use callgate::clock::Timestamp;
use callgate::grant::{Demand, Terms};
use callgate::store::Store;
use callgate_store::SqliteStore;

const DIRECTORY: &str = "CALLGATE_TEST_DIRECTORY";
const NUMBER: &str = "CALLGATE_TEST_NUMBER";

/// What a process does: spends grants until there are none, and writes down which.
#[test]
fn worker() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let store = SqliteStore::open(&directory.join("store.sqlite")).unwrap();
    let spent = directory.join(format!("spent-{}", std::env::var(NUMBER).unwrap()));
    let mut spent = OpenOptions::new().create(true).append(true).open(spent).unwrap();
    let demand = Demand::new("send", ["a"]);
    while let Some(ids) = store.consume(&demand, Timestamp::now()).unwrap() {
        spent.write_all(format!("{}\n", ids[0]).as_bytes()).unwrap();
    }
}

fn start(directory: &Path, number: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worker", "--test-threads", "1"])
        .env(DIRECTORY, directory)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn grant(directory: &Path, count: usize) -> HashSet<u64> {
    let store = SqliteStore::open(&directory.join("store.sqlite")).unwrap();
    (0..count).map(|_| store.grant(&Terms::for_any("send"), Timestamp::now()).unwrap().0).collect()
}

/// Everything that processes wrote down, in whichever order.
fn written(directory: &Path) -> Vec<u64> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("spent-"));
    files
        .flat_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            // a line that a kill cut in two says nothing
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            text[..whole].lines().map(|line| line.parse().unwrap()).collect::<Vec<u64>>()
        })
        .collect()
}

#[test]
fn processes_killed_at_random_spend_nothing_twice_and_lose_nothing() {
    const KILLS: usize = 300;
    const GRANTS: usize = 6000;
    let directory = tempfile::tempdir().unwrap();
    let granted = grant(directory.path(), GRANTS);
    let random = RandomState::new();
    let mut running: Vec<Child> = (0..4).map(|number| start(directory.path(), number)).collect();
    for kill in 0..KILLS {
        std::thread::sleep(Duration::from_millis(random.hash_one(kill) % 12));
        let mut victim = running.remove(usize::try_from(random.hash_one((kill, "who"))).unwrap() % running.len());
        victim.kill().unwrap();
        victim.wait().unwrap();
        running.push(start(directory.path(), 4 + kill));
    }
    for mut last in running {
        last.kill().unwrap();
        last.wait().unwrap();
    }
    let store = SqliteStore::open(&directory.path().join("store.sqlite")).unwrap();
    let left: HashSet<u64> = store.grants().unwrap().into_iter().map(|grant| grant.id.0).collect();
    let reported = written(directory.path());
    let distinct: HashSet<u64> = reported.iter().copied().collect();
    assert_eq!(distinct.len(), reported.len(), "a grant was spent twice");
    assert!(distinct.is_disjoint(&left), "a grant was spent and is still there");
    assert!(left.is_subset(&granted) && distinct.is_subset(&granted));
    let unreported = granted.len() - left.len() - distinct.len();
    assert!(unreported <= KILLS + 4, "each kill can hide one spent grant from the record, {unreported} are missing");
    assert!(!distinct.is_empty(), "nothing was spent at all: the test shows nothing");
    eprintln!(
        "granted {}, left {}, spent {}, of these unrecorded {unreported}",
        granted.len(),
        left.len(),
        granted.len() - left.len()
    );
}

#[test]
fn sixteen_processes_contending_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let granted = grant(directory.path(), 800);
    let running: Vec<Child> = (0..16).map(|number| start(directory.path(), number)).collect();
    for mut process in running {
        assert!(process.wait().unwrap().success());
    }
    let reported = written(directory.path());
    assert_eq!(reported.len(), 800);
    assert_eq!(reported.into_iter().collect::<HashSet<u64>>(), granted);
}
