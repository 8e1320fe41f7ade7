//! The binary as it is shipped: static, because a hook starts with every call and a static program starts in a fraction of the time.

use crate::step::{Failure, cargo, run, succeeds};

/// Builds it. Where the parts for a static build cannot be had, the usual one is built, and that is said.
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
        println!("target/release/callgate");
        return Ok(());
    }
    let mut build = cargo(&["build", "--release", "-p", "callgate-cli", "--target", &target]);
    // Position independence costs a hook a third of its start: every page with an address in it is relocated and so copied. What it
    // hides from an attacker are the addresses of safe code in a process that reads one message; stack and heap stay random.
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    build.env("RUSTFLAGS", format!("{flags} -C relocation-model=static").trim());
    run("static build", &mut build)?;
    println!("target/{target}/release/callgate");
    Ok(())
}
