//! How the command is linked.
//!
//! A hook starts with every call, so what a start costs counts for more than what the program does then.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if target("OS") != "linux" || target("ENV") != "gnu" || !release {
        return;
    }
    // In a position-independent program every page with an address in it is relocated and so copied at each start. What that
    // would hide are the addresses of safe code in a process that reads one message.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    // The few functions that a panic needs; loading their library would be felt.
    if let Some(directory) = directory_of("libgcc_eh.a") {
        println!("cargo:rustc-link-search=native={}", directory.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Where the compiler keeps a library; `None` if it has none of that name.
fn directory_of(library: &str) -> Option<PathBuf> {
    let asked = Command::new("cc").arg(format!("-print-file-name={library}")).output().ok()?;
    let file = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    file.is_absolute().then(|| file.parent().map(PathBuf::from)).flatten()
}
