//! Looks through the roots once before a call starts: for secrets, which are hidden; and for what protected names lead to, which is
//! protected under its other names, too.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use callgate_model::fence::{Fence, Globs};
use callgate_policy::PathList;

use crate::denied::Denied;
use crate::order::{HiddenPath, Mount, MountKind};

/// How many names below the roots are looked at.
const MOST_NAMES: usize = 300_000;
/// How many files are hidden.
const MOST_HIDDEN: usize = 5_000;
/// How much of a repository's settings is read.
const LONGEST_SETTINGS: u64 = 1 << 20;
/// How many names are looked at in each directory of a toolchain.
const MOST_SHALLOW: usize = 2_000;
/// How deep settings that include others are followed.
const MOST_INCLUDED: usize = 8;
/// The settings of git that name directories or files, whether they exist or not.
const PATH_SETTINGS: &[&str] = &["hookspath", "path", "attributesfile", "excludesfile", "templatedir"];
/// The settings of git that name programs.
const PROGRAM_SETTINGS: &[&str] = &[
    "fsmonitor",
    "sshcommand",
    "editor",
    "pager",
    "askpass",
    "gitproxy",
    "textconv",
    "command",
    "clean",
    "smudge",
    "process",
    "driver",
    "external",
    "program",
    "helper",
    "cmd",
    "alternaterefscommand",
    "uploadpack",
    "receivepack",
    "defaultkeycommand",
    "tool",
    "guitool",
    "diff",
    "merge",
    "update",
];

/// What was found.
#[derive(Debug, Default)]
pub struct Survey {
    /// Files and directories to hide.
    pub hidden: Vec<HiddenPath>,
    /// Files and directories that are protected beside those that the fence names.
    pub protected: Vec<PathBuf>,
    /// Protected files with several names: device and inode.
    pub linked: Vec<(u64, u64)>,
}

/// Looks through the roots of a fence.
pub fn survey<'f>(fence: &'f Fence, mounts: &[Mount]) -> Result<Survey, Denied> {
    let is_seen = |path: &Path| {
        let path = path.as_os_str().as_bytes();
        let below = |rest: &[u8]| rest.is_empty() || rest.starts_with(b"/");
        mounts.iter().any(|mount| path.strip_prefix(mount.path.as_os_str().as_bytes()).is_some_and(below))
    };
    let mut hidden: BTreeSet<PathBuf> = BTreeSet::new();
    let own = [
        callgate_policy::directories::cache(),
        callgate_policy::directories::configuration(),
        callgate_policy::directories::data(),
        callgate_policy::directories::state(),
        callgate_policy::directories::permits(rustix::process::getuid().as_raw()),
    ];
    hidden.extend(own.into_iter().flatten().filter(|path| is_seen(path) && path.exists()));
    for pattern in fence.hidden.iter() {
        named_secrets(pattern, &is_seen, &mut hidden);
    }
    // Of the globs that say where, only those about the roots matter here.
    let in_roots = |glob: &&str| {
        let path = glob.strip_prefix('!').unwrap_or(glob).as_bytes();
        let below =
            |root: &PathBuf| path.strip_prefix(root.as_os_str().as_bytes()).is_some_and(|rest| rest.starts_with(b"/"));
        path.first() != Some(&b'/') || fence.roots.iter().any(below)
    };
    let globs = |all: &'f Globs| TellingNames::new(all.iter().filter(in_roots).collect());
    let mut walk = Walk {
        fence,
        secrets: globs(&fence.hidden),
        runs_outside: globs(&fence.protected),
        hidden,
        protected: BTreeSet::new(),
        linked: HashSet::new(),
        secret_inodes: HashSet::new(),
        left: MOST_NAMES,
    };
    for root in &fence.roots {
        walk.directory(root, Walk::look)?;
    }
    if !walk.secret_inodes.is_empty() {
        walk.left = MOST_NAMES;
        for root in &fence.roots {
            walk.directory(root, Walk::hide_other_names)?;
        }
    }
    // Toolchains and caches below the home hold credentials, too.
    let elsewhere = |mount: &&Mount| {
        mount.kind != MountKind::Writable && fence.home.iter().any(|home| mount.path.starts_with(home))
    };
    if mounts.iter().any(|mount| elsewhere(&mount)) {
        let all = TellingNames::new(fence.hidden.iter().collect());
        for mount in mounts.iter().filter(elsewhere) {
            walk.shallow(&mount.path, &all);
        }
    }
    walk.settings_of_user();
    if walk.hidden.len() > MOST_HIDDEN {
        return Err(Denied::new(format!("there are more than {MOST_HIDDEN} files to hide in the project"))
            .hint("leave names that hold no secrets out of `@secrets`"));
    }
    Ok(Survey {
        hidden: walk.hidden.into_iter().filter_map(|path| identified(path, fence)).collect(),
        protected: walk.protected.into_iter().collect(),
        linked: walk.linked.into_iter().collect(),
    })
}

/// What is still there. What has gone meanwhile was not moved by a contained call, because these wait.
fn identified(path: PathBuf, fence: &Fence) -> Option<HiddenPath> {
    let data = path.symlink_metadata().ok()?;
    let in_root = fence.roots.iter().any(|root| path.starts_with(root));
    Some(HiddenPath { identity: in_root.then(|| (data.dev(), data.ino())), path })
}

/// Globs of names. Most names are none of them, which their last components tell without compiling the globs.
///
/// A fence has a thousand globs and a call often starts in a directory with a dozen names, so what counts is that this is made quickly.
pub struct TellingNames<'f> {
    globs: Vec<&'f str>,
    /// Last components without wildcards, as [`fingerprint`]s: by themselves, or together with the name that their directory must have.
    names: HashSet<u64, BuildHasherDefault<Fingerprints>>,
    /// What others start and end with, by the [`side`] that tells most.
    affixes: Vec<Vec<(&'f str, &'f str)>>,
    compiled: OnceCell<PathList>,
}

/// How many sides there are: last bytes, first bytes, and none.
const SIDES: usize = 513;

/// What tells most of a name with a start and an end, whatever its case: the last byte; the first where any end will do.
fn side(start: &str, end: &str) -> usize {
    let lower = |byte: &u8| usize::from(byte.to_ascii_lowercase());
    let last = end.as_bytes().last().map(lower);
    let first = || start.as_bytes().first().map(|byte| lower(byte).saturating_add(256));
    last.or_else(first).unwrap_or(SIDES.saturating_sub(1))
}

/// A number for a name, whatever its case, in a directory of a name; the same for any directory if that is empty. Two names that
/// have the same one are only looked at more closely.
fn fingerprint(directory: &str, name: &str) -> u64 {
    // FNV-1a
    let bytes = directory.bytes().chain([b'/']).chain(name.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Hashes what is a hash already.
#[derive(Default)]
struct Fingerprints(u64);

impl Hasher for Fingerprints {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Which bytes mean something in a glob.
const SPECIAL: [bool; 256] = {
    let (mut table, bytes, mut at) = ([false; 256], b"*?[]{}\\!()|+@", 0);
    while at < bytes.len() {
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where a mistake is a compile error")]
        {
            table[bytes[at] as usize] = true;
        }
        at += 1;
    }
    table
};

fn is_special(byte: u8) -> bool {
    SPECIAL.get(usize::from(byte)).copied().unwrap_or(true)
}

/// The part of a path before its last slash, and the part behind it.
fn split_name(path: &str) -> (&str, &str) {
    let bytes = path.as_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/');
    slash.and_then(|at| Some((path.get(..at)?, path.get(at.saturating_add(1)..)?))).unwrap_or(("", path))
}

impl<'f> TellingNames<'f> {
    /// The names that globs mean.
    pub fn new(globs: Vec<&'f str>) -> Self {
        let mut names = HashSet::with_capacity_and_hasher(globs.len(), BuildHasherDefault::default());
        let mut affixes = vec![Vec::new(); SIDES];
        for glob in globs.iter().filter(|glob| !glob.starts_with('!')) {
            let bare = glob.strip_suffix("/**").unwrap_or(glob);
            let (front, last) = split_name(bare);
            let Some(start) = last.bytes().position(is_special) else {
                let (_, directory) = split_name(front);
                let any = directory.is_empty() || directory.bytes().any(is_special);
                names.insert(fingerprint(if any { "" } else { directory }, last));
                continue;
            };
            let end = last.bytes().rposition(is_special).unwrap_or(start);
            let start = last.get(..start).unwrap_or_default();
            let end = last.get(end..).and_then(|rest| rest.get(1..)).unwrap_or_default();
            if let Some(known) = affixes.get_mut(side(start, end))
                && known.last() != Some(&(start, end))
            {
                known.push((start, end));
            }
        }
        TellingNames { globs, names, affixes, compiled: OnceCell::new() }
    }

    /// The globs, compiled.
    pub fn list(&self) -> &PathList {
        self.compiled.get_or_init(|| PathList::new(self.globs.iter().copied(), None))
    }

    /// Whether the globs may mean a path, by its last components.
    fn tell(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let directory = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if self.names.contains(&fingerprint("", &name)) || self.names.contains(&fingerprint(&directory, &name)) {
            return true;
        }
        let bytes = name.as_bytes();
        let starts =
            |start: &str| bytes.get(..start.len()).is_some_and(|front| front.eq_ignore_ascii_case(start.as_bytes()));
        let ends = |end: &str| {
            let back = bytes.len().checked_sub(end.len()).and_then(|at| bytes.get(at..));
            back.is_some_and(|back| back.eq_ignore_ascii_case(end.as_bytes()))
        };
        [side("", ""), side(&name, ""), side("", &name)]
            .iter()
            .filter_map(|side| self.affixes.get(*side))
            .flatten()
            .any(|(start, end)| starts(start) && ends(end))
    }

    /// Whether the globs mean a file, or everything in a directory.
    pub fn covers(&self, path: &Path, is_directory: bool) -> bool {
        self.tell(path) && {
            if is_directory { self.list().matches(&path.join("x")) } else { self.list().matches(path) }
        }
    }
}

/// Secrets whose pattern says where they are: `/etc/ssl/private/**`.
fn named_secrets(pattern: &str, is_seen: &dyn Fn(&Path) -> bool, hidden: &mut BTreeSet<PathBuf>) {
    if !pattern.starts_with('/') {
        return;
    }
    let bare = pattern.strip_suffix("/**").unwrap_or(pattern);
    if bare.contains("**") {
        return;
    }
    let is_pattern = |text: &str| text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{'));
    if !is_pattern(bare) {
        let path = PathBuf::from(bare);
        // what this user cannot read cannot be read inside either
        if is_seen(&path) && rustix::fs::access(&path, rustix::fs::Access::READ_OK).is_ok() && !path.is_symlink() {
            hidden.insert(path);
        }
        return;
    }
    let Some((directory, _)) = bare.rsplit_once('/').filter(|(directory, _)| !is_pattern(directory)) else { return };
    if !is_seen(Path::new(directory)) {
        return;
    }
    let list = PathList::new([pattern], None);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten().take(2000) {
        let Ok(kind) = entry.file_type() else { continue };
        let (path, inner) = (entry.path(), entry.path().join("x"));
        if !kind.is_symlink() && list.matches(if kind.is_dir() { &inner } else { &path }) {
            hidden.insert(path);
        }
    }
}

/// A walk through the roots.
struct Walk<'a> {
    fence: &'a Fence,
    secrets: TellingNames<'a>,
    runs_outside: TellingNames<'a>,
    hidden: BTreeSet<PathBuf>,
    protected: BTreeSet<PathBuf>,
    linked: HashSet<(u64, u64)>,
    /// Secrets that have other names, too.
    secret_inodes: HashSet<u64>,
    left: usize,
}

/// Looks at one entry; `true` if it is a directory to go into. The flag says that its directory may be protected.
type Look<'a> = fn(&mut Walk<'a>, &DirEntry, bool) -> bool;

impl<'a> Walk<'a> {
    fn directory(&mut self, root: &Path, look: Look<'a>) -> Result<(), Denied> {
        let mut waiting = vec![(root.to_owned(), false)];
        while let Some((directory, may_be_protected)) = waiting.pop() {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // its mode may be changed inside, and nobody has looked for secrets in it
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    if !directory.ancestors().any(|above| self.hidden.contains(above)) {
                        self.hidden.insert(directory);
                    }
                    continue;
                }
                Err(error) => {
                    return Err(Denied::new(format!("cannot look through {}: {error}", directory.display())));
                }
            };
            for entry in entries.flatten() {
                self.left = self.left.checked_sub(1).ok_or_else(|| {
                    Denied::new(format!(
                        "the project has more than {MOST_NAMES} files, so callgate cannot hide the secrets in it"
                    ))
                    .hint("make a smaller directory the workspace")
                })?;
                if look(self, &entry, may_be_protected) {
                    let path = entry.path();
                    let may_be_protected = may_be_protected || self.runs_outside.tell(&path);
                    waiting.push((path, may_be_protected));
                }
            }
        }
        Ok(())
    }

    /// Hides the secrets near the top of a directory outside the roots.
    fn shallow(&mut self, directory: &Path, secrets: &TellingNames<'_>) {
        let mut waiting = vec![(directory.to_owned(), 0_usize)];
        let mut left = MOST_SHALLOW;
        while let Some((directory, depth)) = waiting.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                left = match left.checked_sub(1) {
                    Some(left) => left,
                    None => return,
                };
                // what a link leads to is outside, or is found under its own name
                if kind.is_symlink() {
                    continue;
                }
                if secrets.covers(&entry.path(), kind.is_dir()) {
                    self.hidden.insert(entry.path());
                } else if kind.is_dir() && depth < 2 {
                    waiting.push((entry.path(), depth.saturating_add(1)));
                }
            }
        }
    }

    fn look(&mut self, entry: &DirEntry, may_be_protected: bool) -> bool {
        let Ok(kind) = entry.file_type() else { return false };
        let path = entry.path();
        if kind.is_dir() {
            if self.hidden.contains(&path) || is_object_store(&path) {
                return false;
            }
            if self.secrets.covers(&path, true) {
                self.hidden.insert(path);
                return false;
            }
            return true;
        }
        if entry.file_name() == OsStr::new("HEAD") {
            self.repository(&path);
        }
        if entry.file_name() == OsStr::new(callgate_policy::FILE_NAME) {
            self.policy(&path, MOST_INCLUDED);
        }
        if kind.is_file() {
            if self.secrets.covers(&path, false) {
                self.hide(entry, path);
            } else if (may_be_protected || self.runs_outside.tell(&path))
                && let Ok(data) = entry.metadata()
                && data.nlink() > 1
                && self.runs_outside.list().matches(&path)
            {
                self.linked.insert((data.dev(), data.ino()));
            }
        } else if kind.is_symlink() && (self.secrets.covers(&path, false) || self.secrets.covers(&path, true)) {
            // What a secret name leads to is the secret.
            if let Ok(target) = std::fs::canonicalize(&path)
                && self.fence.roots.iter().any(|root| target.starts_with(root) && target != *root)
            {
                self.hidden.insert(target);
            }
        } else if kind.is_symlink()
            && (self.runs_outside.list().matches(&path) || (path.is_dir() && self.runs_outside.list().holds(&path)))
        {
            self.protect(&path);
        }
        false
    }

    fn hide(&mut self, entry: &DirEntry, path: PathBuf) {
        if entry.metadata().is_ok_and(|data| data.nlink() > 1) {
            self.secret_inodes.insert(entry.ino());
        }
        self.hidden.insert(path);
    }

    /// Hides files under all their names.
    fn hide_other_names(&mut self, entry: &DirEntry, _: bool) -> bool {
        let Ok(kind) = entry.file_type() else { return false };
        if kind.is_file() && self.secret_inodes.contains(&entry.ino()) {
            self.hidden.insert(entry.path());
        }
        kind.is_dir() && !self.hidden.contains(&entry.path())
    }

    /// Protects what a path leads to, if that lies in a root.
    fn protect(&mut self, path: &Path) {
        let resolved = std::fs::canonicalize(path).unwrap_or_else(|_| {
            // A link that leads nowhere leads to what may be made there.
            let target = std::fs::read_link(path).unwrap_or_default();
            callgate_model::lexical::fold(&path.parent().unwrap_or(Path::new("/")).join(target))
        });
        if self.fence.roots.iter().any(|root| resolved.starts_with(root) && resolved != *root) {
            self.protected.insert(resolved);
        }
    }

    /// The files that a policy file names: what it extends, and tables of programs.
    fn policy(&mut self, file: &Path, depth: usize) {
        if !std::fs::metadata(file).is_ok_and(|data| data.is_file() && data.len() <= LONGEST_SETTINGS) {
            return;
        }
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let directory = file.parent().unwrap_or(file).to_owned();
        for word in text.split(|character: char| character.is_whitespace() || "\"'[]{},".contains(character)) {
            let named = directory.join(word);
            let is_new = word.contains(['/', '.']) && named.is_file() && !self.protected.contains(&named);
            if is_new {
                self.protect(&named);
                if depth > 0 {
                    self.policy(&named, depth.saturating_sub(1));
                }
            }
        }
    }

    /// A git directory under any name, and what its settings name.
    fn repository(&mut self, head: &Path) {
        let Some(directory) = head.parent() else { return };
        if !directory.join("objects").is_dir() || !directory.join("refs").is_dir() {
            return;
        }
        // In a directory called `.git`, wherever it is moved, the fence protects them by their names; of submodules, too.
        if !directory.components().any(|part| part.as_os_str() == ".git") {
            self.protected.insert(directory.to_owned());
        }
        let worktree = directory.parent().unwrap_or(directory);
        self.settings(&directory.join("config"), worktree);
        self.settings(&directory.join("config.worktree"), worktree);
    }

    /// The user's own settings may name hooks that lie in every repository.
    fn settings_of_user(&mut self) {
        let Some(home) = self.fence.home.clone() else { return };
        for root in self.fence.roots.clone() {
            self.settings(&home.join(".gitconfig"), &root);
            self.settings(&home.join(".config/git/config"), &root);
        }
    }

    /// Protects every path that git's settings name: hooks, included files, programs.
    fn settings(&mut self, file: &Path, worktree: &Path) {
        self.settings_to(file, worktree, MOST_INCLUDED);
    }

    fn settings_to(&mut self, file: &Path, worktree: &Path, depth: usize) {
        if !std::fs::metadata(file).is_ok_and(|data| data.is_file() && data.len() <= LONGEST_SETTINGS) {
            return;
        }
        let text = std::fs::read(file).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
        let beside = file.parent().unwrap_or(worktree).to_owned();
        for line in text.replace("\\\n", " ").lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            // `[core] hooksPath = x` is one line
            let key = key.rsplit(']').next().unwrap_or(key).trim().to_ascii_lowercase();
            let value = value.trim().trim_start_matches('!').replace(['"', '\''], "");
            let names_a_path = PATH_SETTINGS.contains(&key.as_str());
            if !names_a_path && !PROGRAM_SETTINGS.contains(&key.as_str()) && !value.contains('/') {
                continue;
            }
            for text in std::iter::once(value.as_str()).chain(value.split_whitespace()) {
                let text = text.trim();
                if text.is_empty() {
                    continue;
                }
                let home = self.fence.home.as_deref().unwrap_or(worktree);
                let path = text.strip_prefix("~/").map_or_else(|| PathBuf::from(text), |rest| home.join(rest));
                // Programs are started in the worktree; `merge = refs/heads/main` names none in the repository.
                let bases = [Some(worktree), names_a_path.then_some(beside.as_path())];
                for base in bases.into_iter().flatten() {
                    let named = callgate_model::lexical::fold(&base.join(&path));
                    let is_worktree = named == *worktree || worktree.starts_with(&named);
                    if is_worktree || !(names_a_path || named.exists()) {
                        continue;
                    }
                    self.protect(&named);
                    if key == "path" && depth > 0 && named != *file {
                        self.settings_to(&named, worktree, depth.saturating_sub(1));
                    }
                }
            }
        }
    }
}

/// git's objects have no names that mean anything.
fn is_object_store(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new("objects")) && path.parent().is_some_and(|parent| parent.ends_with(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_globs_mean_are_told_without_compiling_them() {
        let globs = [
            "**/.env",
            "**/.aws/credentials",
            "**/id_{rsa,dsa}*",
            "**/*.PEM",
            "/home/me/.ssh/**",
            "**/secret?",
            "**/[ab]*c",
            "**/*",
            "!**/.env.example",
        ];
        let without_any =
            |left_out: &str| TellingNames::new(globs.into_iter().filter(|glob| *glob != left_out).collect());
        let names = without_any("**/*");
        for told in [
            "/w/.env",
            "/w/a/.ENV",
            "/w/.aws/credentials",
            "/w/.AWS/Credentials",
            "/w/id_rsa",
            "/w/ID_dsa.old",
            "/w/server.pem",
            "/home/me/.ssh",
            "/w/secret1",
            "/w/abc",
        ] {
            assert!(names.tell(Path::new(told)), "{told}");
        }
        for other in ["/w/env", "/w/credentials", "/w/aws/credentials", "/w/my_id_rs", "/w/pem", "/w/ssh", "/w/é", "/"]
        {
            assert!(!names.tell(Path::new(other)), "{other}");
        }
        assert!(without_any("").tell(Path::new("/w/anything")));
        // whatever the list means is told
        let list = PathList::new(globs.into_iter().filter(|glob| *glob != "**/*"), None);
        for path in ["/w/x.pem", "/w/.env", "/w/id_dsa", "/w/secretX", "/w/b-c", "/home/me/.ssh/id", "/w/plain"] {
            let path = Path::new(path);
            assert!(!list.matches(path) || path.ancestors().any(|above| names.tell(above)), "{}", path.display());
        }
    }
}
