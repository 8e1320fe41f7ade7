//! Grant plus consume in memory; durable consumes in SQLite beside raw SQLite transactions of the same run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use callgate::clock::Timestamp;
use callgate::grant::{ConfirmationGate, Demand, Terms};
use callgate::store::Store;
use callgate_store::SqliteStore;
use rusqlite::Connection;

/// How long each durable case is measured.
const TIME: Duration = Duration::from_secs(2);

fn main() {
    divan::main();
    println!("\ndurable consumes a second (synchronous = FULL)");
    let directory = tempfile::tempdir().expect("a directory");
    let raw = raw_transactions(&directory.path().join("raw.sqlite"));
    println!("  raw SQLite, one transaction each, one thread   {raw:>9.0}  1.00");
    for threads in [1, 4, 16, 64] {
        let rate = consumes(&directory.path().join(format!("store-{threads}.sqlite")), threads);
        println!("  callgate-store, {threads:>2} threads                     {rate:>9.0}  {:.2}", rate / raw);
    }
}

#[divan::bench]
fn grant_and_consume_in_memory(bencher: divan::Bencher<'_, '_>) {
    let gate = ConfirmationGate::new();
    bencher.bench(|| {
        gate.grant("alice@x.com");
        gate.consume("alice@x.com")
    });
}

/// The same update, made durable one by one.
fn raw_transactions(path: &Path) -> f64 {
    let connection = Connection::open(path).expect("a database");
    let set_up = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                  CREATE TABLE grants (id INTEGER PRIMARY KEY, remaining INTEGER NOT NULL);
                  INSERT INTO grants VALUES (1, 1000000000);";
    connection.execute_batch(set_up).expect("tables");
    let mut update =
        connection.prepare("UPDATE grants SET remaining = remaining - 1 WHERE id = 1 RETURNING id").expect("an update");
    let (begin, mut count) = (Instant::now(), 0_u32);
    while begin.elapsed() < TIME {
        let _: i64 = update.query_row([], |row| row.get(0)).expect("one row");
        count += 1;
    }
    f64::from(count) / begin.elapsed().as_secs_f64()
}

fn consumes(path: &Path, threads: usize) -> f64 {
    let store = Arc::new(SqliteStore::open(path).expect("a store"));
    let terms = Terms::for_target("send", "a@x.com").uses(u32::MAX.try_into().expect("uses"));
    store.grant(&terms, Timestamp::now()).expect("a grant");
    let count = Arc::new(AtomicUsize::new(0));
    let begin = Instant::now();
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let (store, count) = (Arc::clone(&store), Arc::clone(&count));
            std::thread::spawn(move || {
                let demand = Demand::new("send", ["a@x.com"]);
                while begin.elapsed() < TIME {
                    assert!(store.consume(&demand, Timestamp::now()).expect("consumed").is_some());
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("a worker");
    }
    let count = count.load(Ordering::Relaxed);
    f64::from(u32::try_from(count).expect("a count")) / begin.elapsed().as_secs_f64()
}
