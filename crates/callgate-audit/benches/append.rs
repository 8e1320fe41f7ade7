//! One append, one check of a line: `cargo bench -p callgate-audit --bench append`.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use callgate_audit::entry::{Body, Record, Started};
use callgate_audit::verify::{Options, verify};
use callgate_audit::{Hash, Log, Settings, SyncMode};
use divan::Bencher;

fn main() {
    divan::main();
}

fn record() -> Record {
    Record::new(Body::Started(Started { tool: "Bash".into(), sandbox: None })).call("c").session("s")
}

#[divan::bench(args = [1, 16, 256])]
fn append_group(bencher: Bencher<'_, '_>, group: usize) {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(Settings::at(directory.path().join("audit")).sync(SyncMode::Os)).unwrap();
    let records = vec![record(); group];
    bencher.counter(group).bench_local(|| log.append_all(&records).unwrap());
}

#[divan::bench]
fn append_always(bencher: Bencher<'_, '_>) {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(Settings::at(directory.path().join("audit"))).unwrap();
    bencher.bench_local(|| log.append(&record()).unwrap());
}

#[divan::bench]
fn hash_of_a_line(bencher: Bencher<'_, '_>) {
    let line = vec![b'x'; 400];
    bencher.bench_local(|| Hash::of(divan::black_box(&line)));
}

#[divan::bench]
fn verify_ten_thousand(bencher: Bencher<'_, '_>) {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::at(directory.path().join("audit")).sync(SyncMode::Os);
    Log::open(settings.clone()).unwrap().append_all(&vec![record(); 10_000]).unwrap();
    bencher.counter(10_000_usize).bench_local(|| verify(&Options::of(&settings)).unwrap());
}
