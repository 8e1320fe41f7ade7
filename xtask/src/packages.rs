//! The Debian packages that the tests use: the real shells and programs that predictions are compared with.

use std::process::Command;

use crate::step::{Failure, run, succeeds};

/// Installed by name; the list is what a fresh Debian machine lacks.
const PACKAGES: &[&str] = &[
    "bash",
    "bsdextrautils",
    "bubblewrap",
    "busybox",
    "curl",
    "dash",
    "diffutils",
    "exim4-daemon-light",
    "faketime",
    "file",
    "findutils",
    "g++",
    "gawk",
    "git",
    "grep",
    "gzip",
    "jq",
    "mawk",
    "man-db",
    "nodejs",
    "openssl",
    "procps",
    "psmisc",
    "python3",
    "ripgrep",
    "rsync",
    "sed",
    "sqlite3",
    "strace",
    "tar",
    "tree",
    "unzip",
    "wget",
    "xz-utils",
    "zip",
    "zsh",
    "zstd",
];

/// Installs what is missing. Does nothing, and needs no rights, when everything is there.
pub fn install() -> Result<(), Failure> {
    let missing: Vec<&str> = PACKAGES.iter().copied().filter(|package| !installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !succeeds("sh", &["-c", "command -v apt-get"]) {
        return Err(Failure::new(format!(
            "the tests need these Debian packages, and there is no apt-get here: {}",
            missing.join(" ")
        )));
    }
    refresh_lists()?;
    let mut install = apt(&["install", "-y", "-qq", "--no-install-recommends"]);
    install.args(&missing).env("DEBIAN_FRONTEND", "noninteractive");
    run("packages", &mut install)
}

/// Fetches the lists of packages that there are.
pub fn refresh_lists() -> Result<(), Failure> {
    run("package lists", apt(&["update", "-qq"]).env("DEBIAN_FRONTEND", "noninteractive"))
}

fn installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["-W", "-f=${db:Status-Status}", package])
        .output()
        .is_ok_and(|output| output.stdout == b"installed")
}

fn apt(arguments: &[&str]) -> Command {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let mut command = Command::new(if root { "apt-get" } else { "sudo" });
    if !root {
        command.args(["-n", "apt-get"]);
    }
    command.args(arguments);
    command
}
