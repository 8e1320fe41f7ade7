//! Databases that cannot be used: a clear refusal, nothing lost, and the next call works.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use callgate::approvals::{ApprovalId, Question};
use callgate::clock::Timestamp;
use callgate::grant::{Demand, Terms};
use callgate::store::{Store, StoreError};
use callgate_store::SqliteStore;
use rusqlite::Connection;

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("callgate/store.sqlite");
    (directory, path)
}

fn made(path: &Path) -> SqliteStore {
    let store = SqliteStore::open(path).unwrap();
    store.grant(&Terms::for_any("send"), Timestamp::now()).unwrap();
    store
}

fn question(tool: &str) -> Question {
    let now = Timestamp::now();
    serde_json::from_value(serde_json::json!({
        "id": ApprovalId::random().unwrap(), "tool": tool, "key": null, "session": "s", "agent": null, "scope": null,
        "directory": "/p", "request": {"command": "make"}, "effects": [], "risk_level": "low", "rule": null, "place": null,
        "reason": "why", "asked_at": now, "deadline": now.after(Duration::from_secs(60)),
    }))
    .unwrap()
}

fn consume(store: &SqliteStore) -> Result<bool, StoreError> {
    store.consume(&Demand::new("send", ["a"]), Timestamp::now()).map(|spent| spent.is_some())
}

#[test]
fn the_file_is_for_its_owner_only() {
    let (_directory, path) = place();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    drop(made(&path));
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let _store = SqliteStore::open(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    for beside in ["store.sqlite-wal", "store.sqlite-shm"] {
        assert_eq!(mode(&path.with_file_name(beside)), 0o600, "{beside}");
    }
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let (_directory, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "this is no database, but it is long enough to be looked at as if it were one, since that takes a hundred bytes";
    fs::write(&path, text).unwrap();
    assert!(matches!(SqliteStore::open(&path), Err(StoreError::Corrupt(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_damaged_database_is_refused() {
    let (_directory, path) = place();
    drop(made(&path));
    // the pages behind the header, whatever they hold; the log beside it has been merged when the store was closed
    for beside in ["store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::remove_file(path.with_file_name(beside));
    }
    let mut bytes = fs::read(&path).unwrap();
    for byte in bytes.iter_mut().skip(100) {
        *byte = 0xa5;
    }
    fs::write(&path, bytes).unwrap();
    let refused = SqliteStore::open(&path).and_then(|store| consume(&store));
    assert!(matches!(refused, Err(StoreError::Corrupt(_) | StoreError::Failed(_))), "{refused:?}");
}

#[test]
fn somebody_elses_or_a_newer_database_is_refused() {
    let (_directory, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE photos (id INTEGER)").unwrap();
    assert!(matches!(SqliteStore::open(&path), Err(StoreError::Corrupt(_))));
    connection.execute_batch("PRAGMA user_version = 99").unwrap();
    assert_eq!(SqliteStore::open(&path).err(), Some(StoreError::Newer { found: 99, known: 1 }));
}

#[test]
fn a_file_that_may_only_be_read_is_refused() {
    let (_directory, path) = place();
    drop(made(&path));
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    assert_eq!(SqliteStore::open(&path).err(), Some(StoreError::ReadOnly));
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(consume(&SqliteStore::open(&path).unwrap()), Ok(true), "nothing was lost");
}

#[test]
fn a_directory_or_a_place_that_cannot_be_made_is_refused() {
    let (directory, path) = place();
    assert!(matches!(SqliteStore::open(directory.path()), Err(StoreError::Unavailable(_))));
    fs::write(path.parent().unwrap(), "a file where the directory should be").unwrap();
    assert!(matches!(SqliteStore::open(&path), Err(StoreError::Unavailable(_))));
}

#[test]
fn a_database_that_is_locked_for_a_moment_is_waited_for() {
    let (_directory, path) = place();
    let store = made(&path);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = std::thread::spawn(move || (consume(&store), store));
    std::thread::sleep(std::time::Duration::from_millis(300));
    other.execute_batch("COMMIT").unwrap();
    let (spent, store) = waiting.join().unwrap();
    assert_eq!((spent, consume(&store)), (Ok(true), Ok(false)));
}

#[test]
fn a_database_that_stays_locked_is_a_refusal_and_the_next_call_works() {
    let (_directory, path) = place();
    drop(made(&path));
    let store = SqliteStore::open_with(&path, Duration::from_millis(100)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(consume(&store), Err(StoreError::Locked));
    assert_eq!(store.grants().map(|grants| grants.len()), Ok(1), "who only looks need not wait");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!((consume(&store), consume(&store)), (Ok(true), Ok(false)));
}

const FULL: &str = "CALLGATE_TEST_FULL";

/// What a process does whose files may not grow: grants until that fails, and says how often it went well.
#[test]
fn granter() {
    let Some(directory) = std::env::var_os(FULL) else { return };
    let store = SqliteStore::open(&PathBuf::from(directory).join("store.sqlite")).unwrap();
    let terms = Terms::for_any("send").because("x".repeat(500));
    let mut count = 0_usize;
    let error = loop {
        match store.grant(&terms, Timestamp::now()) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full | StoreError::Failed(_)), "{error:?}");
    // the process goes on, and what was there can still be looked at
    assert_eq!(store.grants().unwrap().len(), count);
    eprintln!("granted {count}");
}

/// `ulimit` makes the kernel refuse to let a file grow, in the middle of whatever is written.
#[test]
fn no_room_is_a_refusal_that_loses_nothing_and_spends_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let script = format!("trap '' XFSZ; ulimit -f 128; exec '{}' --exact granter --nocapture", test.display());
    let output = Command::new("bash").args(["-c", &script]).env(FULL, directory.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stdout));
    let count: usize = told.lines().find_map(|line| line.strip_prefix("granted ")).unwrap().parse().unwrap();
    assert!(count > 0, "nothing was granted at all: the test shows nothing");
    let store = SqliteStore::open(&directory.path().join("store.sqlite")).unwrap();
    assert_eq!(store.grants().unwrap().len(), count, "what was reported is there, what was refused is not");
    assert_eq!(consume(&store), Ok(true), "with room again, the next call works");
    assert_eq!(store.grants().unwrap().len(), count - 1);
}

#[test]
fn a_question_that_cannot_be_read_is_said_to_be_damaged_and_hides_no_other() {
    let (_directory, path) = place();
    let store = made(&path);
    let put = |tool: &str| {
        let question = question(tool);
        store.open(&question).unwrap();
        question
    };
    let [first, damaged, last] = ["first", "damaged", "last"].map(put);
    let change = "UPDATE questions SET question = '{\"from\": \"the future\"}' WHERE id = ?1";
    Connection::open(&path).unwrap().execute(change, [damaged.id.as_str()]).unwrap();
    assert_eq!(store.pending().unwrap(), [first, last]);
    let [named] = &store.unreadable(Timestamp::now()).unwrap()[..] else { panic!("one") };
    assert_eq!(named.id, damaged.id.as_str());
    assert!(!named.why.is_empty());
    assert!(store.unreadable(damaged.deadline).unwrap().is_empty(), "nobody waits for it any more");
    assert!(matches!(store.question(&damaged.id), Err(StoreError::Corrupt(_))));
    assert_eq!(consume(&store), Ok(true), "grants still work");
}
