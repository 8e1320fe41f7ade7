//! From a fence to what the sandbox sees: which directories, how, and what is hidden in them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use callgate_model::fence::{Fence, Network};

use crate::denied::Denied;
use crate::order::{HiddenPath, Mount, MountKind};
use crate::survey::survey;

/// What the sandbox has its own of.
const OWN: &[&str] = &["/proc", "/dev", "/sys", "/run", "/tmp", "/var/tmp", "/var/run", "/var/lock"];
/// What may be read and no build needs: each would be one more mount.
const NOT_NEEDED: &[&str] = &["/boot", "/var/log", "/var/cache", "/var/lib"];
/// Variables that name toolchains.
const TOOLCHAINS: &[&str] = &[
    "RUSTUP_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "GOROOT",
    "JAVA_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "SDKMAN_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "RBENV_ROOT",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "MISE_DATA_DIR",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GHCUP_INSTALL_BASE_PREFIX",
    "OPAMROOT",
    "BUN_INSTALL",
    "DENO_INSTALL",
    "ANDROID_HOME",
    "GRADLE_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "NPM_CONFIG_PREFIX",
];
/// What of cargo's directory is no secret.
const OF_CARGO: &[&str] = &["bin", "registry", "git", "config.toml", "config", "env"];
/// Directories of other tools that a `bin` directory does not belong to.
const NO_TOOLCHAINS: &[&str] = &[".local", "usr"];

/// What the sandbox sees.
#[derive(Debug, Default)]
pub struct Layout {
    /// Directories and files of the host.
    pub mounts: Vec<Mount>,
    /// Symbolic links.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Directories that only the sandbox has.
    pub private: Vec<PathBuf>,
    /// What is hidden.
    pub hidden: Vec<HiddenPath>,
    /// Files that the sandbox has instead of the host's.
    pub files: Vec<(PathBuf, String)>,
    /// What protected names lead to, and what settings of repositories name.
    pub protected: Vec<PathBuf>,
    /// Protected files that have other names, too: device and inode.
    pub linked: Vec<(u64, u64)>,
}

/// The toolchains that variables of the user name, outside the usual places.
pub fn toolchains(environment: &[(OsString, OsString)], fence: &Fence) -> Vec<PathBuf> {
    let value = |name: &str| environment.iter().find(|(other, _)| other == name).map(|(_, value)| PathBuf::from(value));
    let named = TOOLCHAINS.iter().filter_map(|name| value(name));
    let cargo = value("CARGO_HOME").into_iter().flat_map(|home| OF_CARGO.iter().map(move |name| home.join(name)));
    let resolved = named.chain(cargo).filter_map(|path| std::fs::canonicalize(path).ok());
    // a directory that holds the home or a root is no toolchain
    let holds = |path: &Path| fence.home.iter().chain(&fence.roots).any(|inner| inner.starts_with(path));
    resolved.filter(|path| !holds(path)).collect()
}

/// Lays out what a fence describes.
pub fn lay_out(
    fence: &Fence,
    programs: &[PathBuf],
    toolchains: &[PathBuf],
    directory: &Path,
) -> Result<Layout, Denied> {
    let mut layout = Layout::default();
    let mut seen: BTreeMap<PathBuf, MountKind> = BTreeMap::new();
    for path in fence.readable.iter().flat_map(|path| unless_root(path)) {
        seen.insert(path, MountKind::ReadOnly);
    }
    for path in programs.iter().filter_map(|path| toolchain(path, fence)) {
        seen.insert(path, MountKind::ReadOnly);
    }
    for path in toolchains {
        seen.insert(path.clone(), MountKind::ReadOnly);
    }
    for path in &fence.caches {
        if path.is_dir() {
            seen.insert(path.clone(), layer(fence, path).unwrap_or(MountKind::ReadOnly));
        }
    }
    // The sandbox has its own of these, except for what a root or the call itself names below them.
    seen.retain(|path, _| !OWN.iter().chain(NOT_NEEDED).any(|own| path.starts_with(own)));
    for shared in &fence.shared {
        let kind = if shared.writable { MountKind::Writable } else { MountKind::ReadOnly };
        // somebody else's file is not written for a name that anybody could have guessed
        let own = |data: std::fs::Metadata| !shared.writable || data.uid() == rustix::process::getuid().as_raw();
        if shared.path.symlink_metadata().is_ok_and(own) {
            seen.insert(shared.path.clone(), kind);
        }
    }
    for root in &fence.roots {
        if root == Path::new("/") {
            return Err(Denied::new("the whole file system cannot be a directory that a contained call may change")
                .hint("name the directories in `boundary: {roots: …}`"));
        }
        seen.insert(root.clone(), MountKind::Writable);
    }
    for (path, kind) in &seen {
        let covers =
            |other: &MountKind| other == kind || (*other == MountKind::Writable && *kind == MountKind::ReadOnly);
        let covered = path.ancestors().skip(1).any(|above| seen.get(above).is_some_and(covers));
        // A writable directory below another one is the same; a read-only one too, because protected names are protected anyway.
        let between = nearest(&seen, path).is_some_and(covers);
        if !(covered && between) && path.symlink_metadata().is_ok() {
            layout.mounts.push(Mount { path: path.clone(), kind: kind.clone() });
        }
    }
    // INVARIANT: the map is ordered, so a directory comes before what lies in it.
    if let Some(home) = &fence.home
        && !fence.roots.iter().any(|root| home.starts_with(root))
    {
        layout.private.push(home.clone());
    }
    layout.links = links(fence, programs, directory);
    let survey = survey(fence, &layout.mounts)?;
    layout.hidden = survey.hidden;
    layout.protected = survey.protected;
    layout.linked = survey.linked;
    if fence.network != Network::None {
        let file = std::fs::canonicalize("/etc/resolv.conf").unwrap_or_else(|_| "/etc/resolv.conf".into());
        layout.files.push((file, "nameserver 127.0.0.53\noptions edns0 trust-ad\n".to_owned()));
    }
    Ok(layout)
}

fn nearest<'a>(seen: &'a BTreeMap<PathBuf, MountKind>, path: &Path) -> Option<&'a MountKind> {
    path.ancestors().skip(1).find_map(|above| seen.get(above))
}

/// A readable root directory means what is in it: the root itself is the sandbox's own.
fn unless_root(path: &Path) -> Vec<PathBuf> {
    if path != Path::new("/") {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink())).map(|entry| entry.path()).collect()
}

/// What belongs to a directory of programs: `/opt/node/bin` belongs to `/opt/node`.
fn toolchain(programs: &Path, fence: &Fence) -> Option<PathBuf> {
    let resolved = std::fs::canonicalize(programs).ok()?;
    if fence.roots.iter().any(|root| resolved.starts_with(root)) {
        return None;
    }
    let parent = resolved.parent()?;
    let is_bin = resolved.file_name().is_some_and(|name| ["bin", "sbin", "shims"].iter().any(|bin| name == *bin));
    let name = parent.file_name().unwrap_or_default();
    let is_home = fence.home.as_deref() == Some(parent) || name.is_empty();
    let hidden = name == ".cargo" || NO_TOOLCHAINS.iter().any(|other| name == *other);
    Some(if is_bin && !is_home && !hidden { parent.to_owned() } else { resolved })
}

/// A layer for a cache: what the workspace's calls put there stays in a directory of callgate's own.
fn layer(fence: &Fence, cache: &Path) -> Option<MountKind> {
    let state = callgate_policy::directories::state()?;
    if state.starts_with(cache) {
        return None;
    }
    let workspace = fence.workspace.as_deref()?;
    let name = callgate_model::digest::sha256_hex(workspace.as_os_str().as_bytes());
    let cache_name = callgate_model::digest::sha256_hex(cache.as_os_str().as_bytes());
    let directory = state.join("layers").join(name.get(..16)?).join(cache_name.get(..16)?);
    let (upper, work) = (directory.join("upper"), directory.join("work"));
    std::fs::create_dir_all(&upper).and_then(|()| std::fs::create_dir_all(&work)).ok()?;
    Some(MountKind::Layer { upper, work })
}

/// The symbolic links that lead to what is seen.
fn links(fence: &Fence, programs: &[PathBuf], directory: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir("/").into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink())
            && let Ok(target) = std::fs::read_link(entry.path())
        {
            found.insert(entry.path(), target);
        }
    }
    let home = callgate_policy::directories::home();
    let named = programs.iter().map(PathBuf::as_path).chain([directory]).chain(home.as_deref());
    for path in named.chain(fence.workspace.as_deref()) {
        let mut at = PathBuf::new();
        for component in path.components() {
            at.push(component);
            let inside = fence.roots.iter().chain(&fence.readable).any(|seen| at.starts_with(seen) && at != *seen);
            if !inside && let Ok(target) = std::fs::read_link(&at) {
                found.insert(at.clone(), target);
            }
        }
    }
    found.into_iter().collect()
}
