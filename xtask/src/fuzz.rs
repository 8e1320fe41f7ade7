//! Bounded fuzzing with libFuzzer, on the stable compiler.

use std::path::Path;
use std::process::Command;

use crate::step::{Failure, cargo, run};

/// Coverage feedback for libFuzzer; these are stable code generation options.
const INSTRUMENT: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";

/// Fuzzes every target for so many seconds, starting from its committed seeds.
pub fn run_all(seconds: u32) -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    if !folder.join("Cargo.toml").exists() {
        return Ok(());
    }
    let manifest = folder.join("Cargo.toml").display().to_string();
    let host = host()?;
    let mut build = cargo(&["build", "--release", "--manifest-path", &manifest, "--target", &host]);
    build.env("RUSTFLAGS", INSTRUMENT).env("CARGO_TARGET_DIR", folder.join("target"));
    run("fuzz targets", &mut build)?;
    let targets =
        std::fs::read_dir(folder.join("targets")).map_err(|error| Failure::new(format!("fuzz/targets: {error}")))?;
    for target in targets {
        let path = target.map_err(|error| Failure::new(format!("fuzz/targets: {error}")))?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        fuzz_one(&folder, &host, name, seconds)?;
    }
    Ok(())
}

fn fuzz_one(folder: &Path, host: &str, name: &str, seconds: u32) -> Result<(), Failure> {
    let found = folder.join("target/corpus").join(name);
    std::fs::create_dir_all(&found).map_err(|error| Failure::new(format!("{}: {error}", found.display())))?;
    let mut fuzzer = Command::new(folder.join("target").join(host).join("release").join(name));
    fuzzer
        .arg(&found)
        .arg(folder.join("seeds").join(name))
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=8192", "-verbosity=0", "-print_final_stats=0"])
        .current_dir(folder.join("target"));
    run(&format!("fuzz {name}"), &mut fuzzer)
}

fn host() -> Result<String, Failure> {
    let output =
        Command::new("rustc").arg("-vV").output().map_err(|error| Failure::new(format!("rustc -vV: {error}")))?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .ok_or_else(|| Failure::new("rustc -vV names no host"))
}
