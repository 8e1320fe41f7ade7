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
    run("static build", &mut cargo(&["build", "--release", "-p", "callgate-cli", "--target", &target]))?;
    println!("target/{target}/release/callgate");
    Ok(())
}
