//! A root directory of Debian's packages for the nightly sweep, unpacked and not installed: no script of a package runs, and no service starts.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::packages::refresh_lists;
use crate::step::{Failure, target};

/// The packages, shared with the test that runs their programs.
const PACKAGES: &str = include_str!("../../crates/callgate/tests/sweep/packages.txt");

/// What every run needs, whatever is swept.
const BASE: &[&str] = &["base-files", "bash", "coreutils", "libc-bin", "strace", "util-linux"];

/// What the scripts of packages would have chosen among alternatives.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("awk", "mawk"),
    ("nawk", "mawk"),
    ("which", "which.debianutils"),
    ("nc", "nc.openbsd"),
    ("netcat", "nc.openbsd"),
    ("pager", "less"),
    ("editor", "nano"),
    ("vi", "vim.basic"),
    ("vim", "vim.basic"),
    ("view", "vim.basic"),
    ("rename", "file-rename"),
    ("traceroute", "traceroute.db"),
    ("telnet", "telnet.netkit"),
    ("ctags", "ctags-universal"),
    ("convert", "convert-im6.q16"),
    ("identify", "identify-im6.q16"),
    ("php", "php8.2"),
    ("lua", "lua5.4"),
    ("locate", "plocate"),
];

/// Unpacks the packages below `target/sweep/root`, once for each list, and gives back the root.
pub fn unpack() -> Result<PathBuf, Failure> {
    let folder = target()?.join("sweep");
    let root = folder.join("root");
    if std::fs::read_to_string(folder.join("unpacked")).is_ok_and(|list| list == PACKAGES) {
        return Ok(root);
    }
    eprintln!("── packages for the sweep");
    refresh_lists()?;
    let downloads = folder.join("downloads");
    make(&downloads)?;
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        make(&root.join("usr").join(name))?;
        if !root.join(name).is_symlink() {
            symlink(Path::new("usr").join(name), root.join(name)).map_err(|error| failed(&root, &error))?;
        }
    }
    let names: Vec<String> = closure()?.into_iter().collect();
    let missing: Vec<String> = std::thread::scope(|scope| {
        // apt takes a second to start, so it gets many names at a time.
        let threads = [0, 1].map(|first| {
            let part: Vec<&str> = names.iter().skip(first).step_by(2).map(String::as_str).collect();
            let (downloads, root) = (&downloads, &root);
            scope.spawn(move || {
                part.chunks(60).flat_map(|names| unpack_some(names, downloads, root)).collect::<Vec<_>>()
            })
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    // A release of Debian may lack a package: the sweep says which programs it has not found.
    eprintln!("   not unpacked: {}", missing.join(", "));
    for (name, target) in ALTERNATIVES {
        let path = root.join("usr/bin").join(name);
        if !path.exists() && root.join("usr/bin").join(target).exists() {
            symlink(target, &path).map_err(|error| failed(&path, &error))?;
        }
    }
    let etc = root.join("etc");
    let users = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000:Ada:/home/ada:/bin/bash\n";
    for (name, contents) in [
        ("passwd", users),
        ("group", "root:x:0:\nada:x:1000:\n"),
        ("hosts", "127.0.0.1 localhost\n"),
        ("resolv.conf", "nameserver 192.0.2.53\n"),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ] {
        std::fs::write(etc.join(name), contents).map_err(|error| failed(&etc, &error))?;
    }
    std::fs::remove_dir_all(&downloads).map_err(|error| failed(&downloads, &error))?;
    std::fs::write(folder.join("unpacked"), PACKAGES).map_err(|error| failed(&folder, &error))?;
    Ok(root)
}

/// The packages of the list and all that they depend on.
fn closure() -> Result<BTreeSet<String>, Failure> {
    let names = PACKAGES.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let mut list = Command::new("apt-cache");
    list.args(["depends", "--recurse", "--important", "-o", "APT::Cache::ShowOnlyFirstOr=true"]);
    let output = list.args(BASE).args(names).output().map_err(|error| Failure::new(format!("apt-cache: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let real = |line: &&str| line.starts_with(|first: char| first.is_ascii_alphanumeric()) && !line.contains(':');
    Ok(text.lines().filter(real).map(str::to_owned).collect())
}

/// Unpacks packages; gives back the names of those that cannot be had.
fn unpack_some(names: &[&str], downloads: &Path, root: &Path) -> Vec<String> {
    let folder = downloads.join(names.first().copied().unwrap_or_default());
    let mut missing: Vec<&str> = names.to_vec();
    // One name without a candidate makes apt give up on all of them.
    for names in [names.chunks(names.len().max(1)), names.chunks(1)].into_iter().flatten() {
        let names: Vec<&&str> = names.iter().filter(|name| missing.contains(*name)).collect();
        if names.is_empty() || make(&folder).is_err() {
            continue;
        }
        let mut fetch = Command::new("apt-get");
        fetch.args(["download", "-qq"]).args(names).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        // What came is unpacked, whether or not all did.
        let _ = fetch.status();
        for archive in std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let file = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if unpack_one(&archive, root).is_some() {
                missing.retain(|name| file.split('_').next() != Some(*name));
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
    missing.into_iter().map(str::to_owned).collect()
}

fn unpack_one(archive: &Path, root: &Path) -> Option<()> {
    let mut tarball =
        Command::new("dpkg-deb").arg("--fsys-tarfile").arg(archive).stdout(Stdio::piped()).spawn().ok()?;
    let input = tarball.stdout.take()?;
    let mut unpack = Command::new("tar");
    unpack.args(["-x", "--no-same-owner", "--keep-directory-symlink", "--exclude=./usr/share/doc", "-C"]);
    let unpacked = unpack.arg(root).stdin(input).stderr(Stdio::null()).status().ok()?;
    (tarball.wait().ok()?.success() && unpacked.success()).then_some(())
}

fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}
