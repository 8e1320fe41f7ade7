//! Puts the files of a patch in their places.
//!
//! First everything new is written beside its place, where nobody sees it; then names change, one after the other, and what was there before is kept
//! aside. If a step fails, the earlier ones are taken back.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::Tree;
use crate::files::{self, Replacement};
use crate::result::ToolError;

/// A change of names.
#[derive(Debug)]
pub enum Step {
    Add(PathBuf),
    Update(PathBuf),
    Delete(PathBuf),
    Move(PathBuf, PathBuf),
}

/// A file as it was when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen(u64, u64, u64, i64, i64);

impl Seen {
    pub fn of(file: &File) -> io::Result<Self> {
        let data = file.metadata()?;
        Ok(Seen(data.dev(), data.ino(), data.size(), data.mtime(), data.mtime_nsec()))
    }
}

/// A file that was there before, kept under another name until everything is done.
struct Aside {
    parent: OwnedFd,
    name: OsString,
    kept: OsString,
}

/// What was done, to be taken back if a later step fails.
enum Done {
    Made(OwnedFd, OsString),
    Replaced(Aside),
}

/// Carries out the steps. The last contents of each path are in the tree.
pub fn commit(steps: Vec<Step>, tree: &Tree) -> Result<(), ToolError> {
    let mut changes: Vec<(PathBuf, Option<&str>)> = Vec::new();
    // Several sections may be about one file: only what it is in the end counts.
    for step in &steps {
        let paths: &[&PathBuf] = match step {
            Step::Add(path) | Step::Update(path) | Step::Delete(path) => &[path],
            Step::Move(from, to) => &[from, to],
        };
        for path in paths {
            if !changes.iter().any(|(known, _)| known == *path) {
                let text = tree.files.get(*path).and_then(|text| text.as_deref());
                changes.push(((*path).clone(), text));
            }
        }
    }
    let moved: Vec<(&PathBuf, &PathBuf)> =
        steps.iter().filter_map(|step| if let Step::Move(from, to) = step { Some((from, to)) } else { None }).collect();
    let mut parents = Vec::new();
    for (path, text) in &changes {
        parents.push(if text.is_some() { files::parent_or_create(path)? } else { files::parent(path)? });
    }
    let mut prepared = Vec::new();
    for ((path, text), (parent, name)) in changes.iter().zip(&parents) {
        let replacement = match text {
            None => None,
            Some(text) => {
                let replacement = Replacement::prepare(parent, name, path, text.as_bytes())?;
                // what is moved keeps its mode
                if let Some((from, _)) = moved.iter().find(|(_, to)| *to == path) {
                    replacement.take_mode_of(from);
                }
                Some(replacement)
            }
        };
        prepared.push((path, parent, name, replacement));
    }
    let mut done: Vec<Done> = Vec::new();
    let mut failed = None;
    for (path, parent, name, replacement) in prepared {
        let outcome = put_aside(tree, path, parent, name).and_then(|aside| match (aside, replacement) {
            (Some(aside), replacement) => {
                done.push(Done::Replaced(aside));
                match replacement {
                    Some(replacement) => replacement.place(name, path),
                    None => remove(parent, name, path),
                }
            }
            (None, Some(replacement)) => {
                replacement.place_new(name, path)?;
                done.push(Done::Made(cloned(parent, path)?, name.clone()));
                Ok(())
            }
            // added and deleted by the same patch
            (None, None) => Ok(()),
        });
        if let Err(error) = outcome {
            failed = Some(error);
            break;
        }
    }
    match failed {
        None => {
            for change in done {
                if let Done::Replaced(aside) = change {
                    // The patch is applied; a file that cannot be removed is only litter.
                    let _ = rustix::fs::unlinkat(&aside.parent, &aside.kept, AtFlags::empty());
                }
            }
            Ok(())
        }
        Some(error) => Err(take_back(done, error)),
    }
}

fn cloned(parent: &OwnedFd, path: &Path) -> Result<OwnedFd, ToolError> {
    parent.try_clone().map_err(|error| crate::result::io_error("open", path, &error))
}

fn remove(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), ToolError> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(files::failed("delete", path, error)),
    }
}

/// Gives what is at a place a second name, if it is what was read. Nothing is done where nothing was.
fn put_aside(tree: &Tree, path: &Path, parent: &OwnedFd, name: &OsStr) -> Result<Option<Aside>, ToolError> {
    let Some(before) = tree.before.get(path) else { return Ok(None) };
    let now = files::open_regular(parent, name, path)?;
    if !Seen::of(&now).is_ok_and(|now| now == *before) {
        return Err(ToolError::validation(format!("{} has changed meanwhile; read it again", path.display())));
    }
    let failed = |error| files::failed("keep", path, error);
    let kept = files::unused_name().map_err(failed)?;
    match rustix::fs::linkat(parent, name, parent, &kept, AtFlags::empty()) {
        Ok(()) => {}
        // a file system without hard links: for a moment there is no file of that name
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK) => {
            rustix::fs::renameat(parent, name, parent, &kept).map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
    }
    Ok(Some(Aside { parent: cloned(parent, path)?, name: name.to_owned(), kept }))
}

/// Takes back what was done, the latest first. What cannot be taken back is named in the error.
fn take_back(done: Vec<Done>, error: ToolError) -> ToolError {
    let mut lost = Vec::new();
    for change in done.into_iter().rev() {
        let (result, name) = match &change {
            Done::Made(parent, name) => (rustix::fs::unlinkat(parent, name, AtFlags::empty()), name),
            Done::Replaced(aside) => {
                (rustix::fs::renameat(&aside.parent, &aside.kept, &aside.parent, &aside.name), &aside.kept)
            }
        };
        if result.is_err() {
            lost.push(name.to_string_lossy().into_owned());
        }
    }
    if lost.is_empty() {
        return error;
    }
    let message = format!("{}; these could not be put back as they were: {}", error.message, lost.join(", "));
    ToolError { message, ..error }
}
