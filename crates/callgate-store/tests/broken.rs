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
