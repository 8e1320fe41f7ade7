//! Finds deletions that lose nothing: of files that git tracks, that are unchanged, and whose contents are in the repository, and
//! of files that are not there.

use std::path::{Component, Path, PathBuf};

use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::effect::{Action, CodeOrigin, Mark, Target};
use callgate_model::place::{Place, Rest, Zone};
use callgate_model::word::Word;

use super::repository;
use crate::git::index::{self, IndexEntry};
use crate::git::{FoundRepository, WorkTree};
use crate::path::file_system::{FileSystem, PathEntry};

/// Larger files are not read, and nothing is proven.
const LARGEST_INDEX: usize = 16 << 20;
const LARGEST_PACK_INDEX: usize = 64 << 20;
const LARGEST_ATTRIBUTES: usize = 64 << 10;
const MOST_PACKS: usize = 256;

/// Marks every deletion that git can undo. Nothing is proven about what an earlier command of the call may have changed.
pub(super) fn examine(description: &mut Description, file_system: &dyn FileSystem) {
    // What was changed, and whether a redirection wrote it.
    let mut changed: Vec<(PathBuf, bool)> = Vec::new();
    for part in &mut description.parts {
        if part.elsewhere.is_none() && runs_known_programs(part) {
            // A program that runs them may add names of its own.
            let may_find_nothing =
                part.wrappers.is_empty() && matches!(part.words.first().and_then(Word::known), Some("rm" | "mv"));
            for placed in part.effects.iter_mut().filter(|placed| placed.effect.action == Action::Delete) {
                let lost = |place: &Place| {
                    let path = &place.resolved;
                    let missing = || may_find_nothing && is_missing(place, file_system);
                    // A file that the call itself makes is not lost: `jq … > tmp && mv tmp data.json`.
                    let is_made = |change: &(PathBuf, bool)| change.1 && change.0 == *path;
                    let others: Vec<&Path> =
                        changed.iter().filter(|change| !is_made(change)).map(|(change, _)| change.as_path()).collect();
                    let kept = || !changed.iter().any(is_made) && proof(path, file_system).is_some();
                    !is_plain(place) || is_changed(path, &others) || !missing() && !kept()
                };
                if placed.place.as_ref().is_some_and(|place| !lost(place)) {
                    placed.effect.marks.push(Mark::Recoverable);
                    placed.effect.marks.sort();
                }
            }
        }
        for placed in part.effects.iter().filter(|placed| placed.effect.may_change_names()) {
            match &placed.place {
                Some(place) if place.rest == Rest::Nothing && place.zone == Zone::Root => {
                    changed.push((place.resolved.clone(), is_redirection(placed)));
                }
                _ => return,
            }
        }
    }
}

/// Whether one of these changes may be about a path, or about what git knows of it.
fn is_changed(path: &Path, changed: &[&Path]) -> bool {
    let is_git = |name: Component<'_>| matches!(name.as_os_str().to_str(), None | Some(".git" | ".gitattributes"));
    let above = |change: &Path| path.ancestors().any(|folder| folder.join(".git").starts_with(change));
    changed.iter().any(|change| change.starts_with(path) || above(change) || change.components().any(is_git))
}

/// Whether a redirection writes one file.
pub(super) fn is_redirection(placed: &PlacedEffect) -> bool {
    let is_one = placed.place.as_ref().is_some_and(|place| place.rest == Rest::Nothing && !place.tree);
    is_one && placed.effect.action == Action::Write && placed.effect.marks.contains(&Mark::Redirection)
}

/// Whether nothing but programs of the system runs: git itself would change what it knows.
pub(super) fn runs_known_programs(part: &Part) -> bool {
    part.effects.iter().all(|placed| match &placed.effect.target {
        Target::Program(program) => program.origin == CodeOrigin::Known,
        _ => true,
    })
}

/// Whether a place is exactly the path that was written, without links on the way to it.
pub(super) fn is_plain(place: &Place) -> bool {
    place.zone == Zone::Root && place.rest == Rest::Nothing && !place.traversal && place.named == place.resolved
}

/// Whether one name in a repository is of nothing. Elsewhere, people keep what no other place has, and a mistake costs more; a name
/// that begins with `~` was meant to lie elsewhere.
fn is_missing(place: &Place, file_system: &dyn FileSystem) -> bool {
    let path = &place.resolved;
    let in_repository = |folder| matches!(repository::find(folder, file_system), FoundRepository::Certain(_));
    let is_home = |name: Component<'_>| name.as_os_str().to_string_lossy().starts_with('~');
    !place.tree
        && file_system.look(path) == PathEntry::Missing
        && path.parent().is_some_and(in_repository)
        && !path.components().any(is_home)
}

/// What the index says of a file, if git has the file as it is.
pub(super) fn proof(path: &Path, file_system: &dyn FileSystem) -> Option<IndexEntry> {
    let stamp = file_system.stamp(path)?;
    let FoundRepository::Certain(tree) = repository::find(path.parent()?, file_system) else { return None };
    let WorkTree { root, folder, common } = &tree;
    let index_path = folder.join("index");
    let written = file_system.stamp(&index_path)?.modified;
    let entries = index::entries(&file_system.read(&index_path, LARGEST_INDEX).ok()??)?;
    let name = path.strip_prefix(root).ok()?.to_str()?;
    let mut found = entries.into_iter().filter(|entry| entry.path == name);
    let (entry, None) = (found.next()?, found.next()) else { return None };
    let unchanged = repository::is_unchanged(&entry, &stamp, written);
    let attributes = common.join("info/attributes");
    (unchanged && !is_filtered(path, root, &attributes, file_system) && has_object(common, &entry, file_system))
        .then_some(entry)
}

/// Whether a filter may stand between the file and the object, so that the object alone does not bring it back.
fn is_filtered(path: &Path, root: &Path, common: &Path, file_system: &dyn FileSystem) -> bool {
    let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let files = folders.map(|folder| folder.join(".gitattributes")).chain([common.to_owned()]);
    files.into_iter().any(|file| match file_system.read(&file, LARGEST_ATTRIBUTES) {
        Ok(None) => false,
        Ok(Some(text)) => String::from_utf8_lossy(&text).contains("filter"),
        Err(_) => true,
    })
}

fn has_object(repository: &Path, entry: &IndexEntry, file_system: &dyn FileSystem) -> bool {
    let name = callgate_model::digest::hex(&entry.object);
    let objects = repository.join("objects");
    let Some((folder, rest)) = name.split_at_checked(2) else { return false };
    if file_system.stamp(&objects.join(folder).join(rest)).is_some() {
        return true;
    }
    let packs = objects.join("pack");
    let names = file_system.names(&packs, MOST_PACKS).unwrap_or_default();
    names.iter().map(|name| packs.join(name)).filter(|file| file.extension().is_some_and(|end| end == "idx")).any(
        |file| {
            file_system.stamp(&file.with_extension("pack")).is_some()
                && matches!(file_system.read(&file, LARGEST_PACK_INDEX),
                Ok(Some(bytes)) if lists_object(&bytes, &entry.object) == Some(true))
        },
    )
}

/// Whether the index of a pack (version 2) lists an object; `None` if it is not understood.
fn lists_object(bytes: &[u8], object: &[u8]) -> Option<bool> {
    let rest = bytes.strip_prefix(b"\xfftOc\0\0\0\x02")?;
    let (counts, names) = rest.split_at_checked(4 * 256)?;
    let count = |first: usize| -> Option<usize> {
        let at = first.checked_mul(4)?;
        usize::try_from(u32::from_be_bytes(counts.get(at..at.checked_add(4)?)?.try_into().ok()?)).ok()
    };
    let first = usize::from(*object.first()?);
    let from = first.checked_sub(1).map_or(Some(0), count)?;
    let listed = names.get(from.checked_mul(object.len())?..count(first)?.checked_mul(object.len())?)?;
    Some(listed.chunks_exact(object.len()).any(|name| name == object))
}
