//! The binary as it is shipped: static, because a hook starts with every call and a static program starts in a fraction of the time;
//! and with what a hook runs lying together, because every page that is touched for the first time costs as much as a system call.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::order;
use crate::step::{Failure, cargo, run, succeeds};

/// Builds it. Where the parts for that cannot be had, a simpler one is built, and that is said.
pub fn build() -> Result<(), Failure> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let mut missing = Vec::new();
    if !succeeds("rustup", &["target", "add", &target]) {
        missing.push(format!("the Rust target {target} (rustup target add {target})"));
    }
    if !succeeds("sh", &["-c", "command -v musl-gcc"]) {
        missing.push("musl-gcc (Debian's package musl-tools)".to_owned());
    }
    if !missing.is_empty() {
        eprintln!(
            "xtask: no static build without {}; building for this system's library instead",
            missing.join(" and ")
        );
        run("build", &mut cargo(&["build", "--release", "-p", "callgate-cli"]))?;
        println!("{}", output().join("release/callgate").display());
        return Ok(());
    }
    let binary = output().join(&target).join("release/callgate");
    run("static build", &mut linked(&target, &[]))?;
    match ordering(&binary)? {
        Ok(arguments) => run("static build with what hooks run together", &mut linked(&target, &arguments))?,
        Err(why) => {
            eprintln!("xtask: {why}: what hooks run lies scattered, and they start a little slower");
            run("static build without names", &mut linked(&target, &[STRIP.to_owned()]))?;
        }
    }
    println!("{}", binary.display());
    Ok(())
}

/// Names are only needed to put things in order.
const STRIP: &str = "-Cstrip=symbols";

fn output() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// Builds the command with arguments for its own compilation, which leaves everything else as it was built.
fn linked(target: &str, arguments: &[String]) -> Command {
    let mut build = cargo(&["rustc", "--release", "-p", "callgate-cli", "--bin", "callgate", "--target", target, "--"]);
    build.args(arguments);
    // Position independence costs a hook a third of its start: every page with an address in it is relocated and so copied. What it
    // hides from an attacker are the addresses of safe code in a process that reads one message; stack and heap stay random.
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    build.env("RUSTFLAGS", format!("{flags} -C relocation-model=static").trim());
    build.env("CARGO_PROFILE_RELEASE_STRIP", "none");
    build
}

/// How the linker puts what hooks run together; or why it cannot.
fn ordering(binary: &Path) -> Result<Result<Vec<String>, &'static str>, Failure> {
    let Some(linker) = linker() else { return Ok(Err("the toolchain has no lld of its own")) };
    if !succeeds("valgrind", &["--version"]) {
        return Ok(Err("without valgrind (Debian's package of that name) nobody knows what a hook runs"));
    }
    let list = order::write(binary, &output())?;
    Ok(Ok(vec![
        STRIP.to_owned(),
        "-Clink-arg=-fuse-ld=lld".to_owned(),
        format!("-Clink-arg=-B{}", linker.display()),
        format!("-Clink-arg=-Wl,--symbol-ordering-file={},--no-warn-symbol-ordering", list.display()),
    ]))
}

/// The directory with the linker that comes with the toolchain.
fn linker() -> Option<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc).args(["--print", "target-libdir"]).output().ok()?;
    let libraries = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    let directory = libraries.parent()?.join("bin/gcc-ld");
    directory.join("ld.lld").exists().then_some(directory)
}
