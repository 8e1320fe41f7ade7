//! Checks program tables: `cargo run -q -p callgate-shell --example check-tables [FILES…]`.
//!
//! Without files, all of `programs/` is checked. Every mistake is printed with its place, and
//! the exit code is 1 if there is one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        paths = below(&folder).flat_map(|area| below(&area)).collect();
        paths.sort();
    }
    let mut texts = Vec::new();
    for path in &paths {
        match std::fs::read_to_string(path) {
            Ok(text) => texts.push((path.display().to_string(), text)),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let findings = callgate_shell::programs::check(&files);
    for finding in &findings {
        println!("{finding}");
    }
    println!("{} files, {} mistakes", files.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
