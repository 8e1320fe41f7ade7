//! Manual pages and completions of Debian's packages, unpacked where an installation has none: slim images drop them, and
//! not every program whose table is compared needs to be installed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::packages::refresh_lists;
use crate::step::{Failure, target};

/// The packages, shared with the test that reads them.
const PACKAGES: &str = include_str!("../../crates/callgate-shell/tests/reality/packages.txt");

/// What is unpacked of a package.
const WANTED: &[&str] =
    &["./usr/share/man/man[168]/*", "./usr/share/*/man/man1/*", "./usr/share/bash-completion/completions/*"];

/// Unpacks below `target/manuals` what cannot be read on this machine.
pub fn unpack() -> Result<(), Failure> {
    let folder = target()?.join("manuals");
    let names = PACKAGES.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let missing: Vec<&str> =
        names.filter(|name| !folder.join(name).join("version").exists() && !readable(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    refresh_lists()?;
    eprintln!("── manual pages of {}", missing.join(" "));
    for name in missing {
        // A release of Debian may lack a package: the test compares what there is.
        if let Err(failure) = unpack_one(name, &folder) {
            eprintln!("   {failure}");
        }
    }
    Ok(())
}

/// Whether the package is installed with a manual page or a completion.
fn readable(package: &str) -> bool {
    let output = Command::new("dpkg-query").args(["-L", package]).stderr(Stdio::null()).output();
    output.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).lines().any(|path| {
            (path.contains("/man/man") || path.contains("/bash-completion/completions/")) && Path::new(path).is_file()
        })
    })
}

fn unpack_one(package: &str, folder: &Path) -> Result<(), Failure> {
    let failed = |what: &str| Failure::new(format!("{package}: {what}"));
    let downloads = folder.join("downloads");
    std::fs::create_dir_all(&downloads).map_err(|error| failed(&error.to_string()))?;
    let fetched = Command::new("apt-get")
        .args(["download", "-qq", package])
        .current_dir(&downloads)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let front = format!("{package}_");
    let archive = std::fs::read_dir(&downloads)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&front)))
        .filter(|_| fetched)
        .ok_or_else(|| failed("cannot be downloaded"))?;
    let version = Command::new("dpkg-deb").arg("-f").arg(&archive).arg("Version").output();
    let version = version.map_err(|error| failed(&error.to_string()))?.stdout;
    let place = folder.join(package);
    std::fs::create_dir_all(&place).map_err(|error| failed(&error.to_string()))?;
    let mut tarball = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&archive)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error.to_string()))?;
    let input = tarball.stdout.take().ok_or_else(|| failed("dpkg-deb prints nothing"))?;
    // tar complains about a pattern that matches nothing, which most packages have.
    let unpacked = Command::new("tar")
        .args(["-x", "--no-same-owner", "--wildcards", "-C"])
        .arg(&place)
        .args(WANTED)
        .stdin(input)
        .stderr(Stdio::null())
        .status();
    unpacked.map_err(|error| failed(&error.to_string()))?;
    if !tarball.wait().is_ok_and(|status| status.success()) {
        return Err(failed("cannot be unpacked"));
    }
    std::fs::remove_file(&archive).map_err(|error| failed(&error.to_string()))?;
    std::fs::write(place.join("version"), version).map_err(|error| failed(&error.to_string()))
}
