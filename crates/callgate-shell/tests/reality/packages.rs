//! Debian's packages as sources: their programs, manual pages and completions, and which version that is.
//!
//! Where the machine's installation dropped the manual pages (slim images do), or a package is not installed,
//! `cargo xtask setup` has unpacked them below `target/manuals`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages that are read; `xtask` sees to it that they can be.
const PACKAGES: &str = include_str!("packages.txt");

/// A package whose files can be read.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    /// The version of the program, without what Debian adds to it.
    pub version: String,
    files: Vec<PathBuf>,
}

/// All packages of the list that this machine has.
pub fn packages() -> Vec<Package> {
    PACKAGES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .filter_map(|name| installed(name).into_iter().chain(unpacked(name)).reduce(fuller))
        .collect()
}

/// Programs come from the installation, pages from wherever they are.
fn fuller(installed: Package, unpacked: Package) -> Package {
    if installed.manuals().is_empty() && installed.completions().is_empty() && installed.version == unpacked.version {
        let files = installed.files.into_iter().chain(unpacked.files).collect();
        return Package { files, ..unpacked };
    }
    installed
}

fn installed(name: &str) -> Option<Package> {
    let version = Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status} ${Version}", name]).output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout).strip_prefix("installed ")?.to_owned();
    let list = Command::new("dpkg-query").args(["-L", name]).output().ok()?;
    let files =
        String::from_utf8_lossy(&list.stdout).lines().map(PathBuf::from).filter(|path| path.is_file()).collect();
    Some(Package { name: name.to_owned(), version: upstream(&version), files })
}

fn unpacked(name: &str) -> Option<Package> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("manuals").join(name);
    let version = std::fs::read_to_string(folder.join("version")).ok()?;
    let mut files = Vec::new();
    walk(&folder, &mut files);
    files.sort();
    Some(Package { name: name.to_owned(), version: upstream(version.trim()), files })
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), files),
            _ => files.push(entry.path()),
        }
    }
}

/// `1:2.39.5-0+deb12u3` is 2.39.5.
fn upstream(version: &str) -> String {
    let version = version.split_once(':').map_or(version, |(_, version)| version);
    version.rsplit_once('-').map_or(version, |(version, _)| version).to_owned()
}

impl Package {
    /// The installed program of that name.
    pub fn program(&self, name: &str) -> Option<&Path> {
        self.files.iter().map(PathBuf::as_path).find(|path| {
            path.file_name().is_some_and(|file| file == name)
                && path.parent().and_then(Path::file_name).is_some_and(|folder| folder == "bin" || folder == "sbin")
        })
    }

    /// The manual pages of programs: what they are about, and where they are.
    pub fn manuals(&self) -> Vec<(String, &Path)> {
        self.files
            .iter()
            .filter(|path| {
                let mut folders = path.components().rev().skip(1).filter_map(|part| part.as_os_str().to_str());
                matches!(folders.next(), Some("man1" | "man6" | "man8")) && folders.next() == Some("man")
            })
            .filter_map(|path| Some((page_name(path)?, path.as_path())))
            .collect()
    }

    /// The completions: of which program, and where. A link shares the file of another program.
    pub fn completions(&self) -> Vec<(String, &Path)> {
        self.files
            .iter()
            .filter(|path| path.parent().is_some_and(|folder| folder.ends_with("bash-completion/completions")))
            .filter(|path| !path.is_symlink())
            .filter_map(|path| Some((path.file_name()?.to_str()?.to_owned(), path.as_path())))
            .collect()
    }
}

/// The text of a page, unpacked, or of the page it stands for; and what that one is called.
pub fn read_page(path: &Path) -> Option<(String, String)> {
    let path = path.canonicalize().ok()?;
    let text = read(&path)?;
    let Some(other) = text.lines().find_map(|line| line.strip_prefix(".so ")) else {
        return Some((text, page_name(&path)?));
    };
    let target = path.parent()?.parent()?.join(other.trim());
    let compressed = PathBuf::from(format!("{}.gz", target.display()));
    Some((read(&compressed).or_else(|| read(&target))?, page_name(&target)?))
}

/// `ls.1.gz` is about `ls`.
fn page_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let file = file.strip_suffix(".gz").unwrap_or(file);
    Some(file.rsplit_once('.').map_or(file, |(name, _)| name).to_owned())
}

/// The text of a file, unpacked.
fn read(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let mut text = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text).ok()?;
    } else {
        text = bytes;
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}
