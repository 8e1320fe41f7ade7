//! What looking into a tree costs: a recursive search in projects of 1,000, 20,000 and 200,000 files, beside a plain walk of the
//! same directories and beside a call that touches no tree.
//!
//! `cargo bench -p callgate --bench trees`. Read the ratios and the minimum, not the absolute times.

#![allow(missing_docs, clippy::expect_used, clippy::print_stdout, clippy::disallowed_methods, clippy::disallowed_types)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use callgate::assess::Assessor;
use callgate::{Call, Policy};
use serde_json::json;

const PER_DIRECTORY: usize = 100;

fn fill(directory: &Path, files: usize) {
    for number in 0..files {
        let folder = directory.join(format!("src/module{}", number / PER_DIRECTORY));
        if number % PER_DIRECTORY == 0 {
            fs::create_dir_all(&folder).expect("a directory");
        }
        fs::write(folder.join(format!("file{number}.rs")), "").expect("a file");
    }
}

/// Reads every directory, as `find` does.
fn walk(directory: &Path) -> usize {
    let mut waiting = vec![directory.to_path_buf()];
    let mut count = 0;
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            count += 1;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    count
}

fn fastest(mut body: impl FnMut()) -> Duration {
    let run = |body: &mut dyn FnMut()| {
        let start = Instant::now();
        body();
        start.elapsed()
    };
    (0..7).map(|_| run(&mut body)).min().unwrap_or_default()
}

fn main() {
    let assessor = Assessor::new(Policy::bundled("standard").expect("a policy"));
    println!("{:>9} {:>12} {:>12} {:>7} {:>12}  decision", "files", "plain walk", "grep -rn .", "ratio", "ls");
    for files in [1_000, 20_000 - 300, 200_000] {
        let directory = tempfile::tempdir().expect("a directory");
        let project = directory.path().join("project");
        fill(&project, files);
        let call = |command: &str| {
            Call::new("Bash", json!({"command": command})).directory(project.clone()).workspace(project.clone())
        };
        let (search, list) = (call("grep -rn x ."), call("ls -la"));
        let decision = assessor.assess(&search).expect("an assessment").ruling().decision;
        let plain = fastest(|| {
            black_box(walk(&project));
        });
        let searched = fastest(|| {
            black_box(assessor.assess(&search).is_ok());
        });
        let listed = fastest(|| {
            black_box(assessor.assess(&list).is_ok());
        });
        let ratio = searched.as_secs_f64() / plain.as_secs_f64();
        println!("{files:>9} {plain:>12.2?} {searched:>12.2?} {ratio:>7.2} {listed:>12.2?}  {}", decision.as_str());
    }
}
