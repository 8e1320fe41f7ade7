//! Finds deletions that lose nothing: of files that git tracks, that are unchanged, and whose contents are in the repository.

use std::path::Path;

use callgate_model::description::{Description, Part};
use callgate_model::effect::{Action, CodeOrigin, Mark, Target};
use callgate_model::place::{Place, Rest, Zone};

use super::repository;
use crate::describe::git::index::{self, IndexEntry};
use crate::describe::git::{FoundRepository, WorkTree};
use crate::path::file_system::FileSystem;

/// Larger files are not read, and nothing is proven.
const LARGEST_INDEX: usize = 16 << 20;
const LARGEST_PACK_INDEX: usize = 64 << 20;
const LARGEST_ATTRIBUTES: usize = 64 << 10;
const MOST_PACKS: usize = 256;

/// Marks every deletion that git can undo. Nothing is proven once a command of the call may have changed something.
pub(super) fn examine(description: &mut Description, file_system: &dyn FileSystem) {
    for part in &mut description.parts {
        if part.elsewhere.is_none() && runs_known_programs(part) {
            for placed in part.effects.iter_mut().filter(|placed| placed.effect.action == Action::Delete) {
                if placed.place.as_ref().is_some_and(|place| is_recoverable(place, file_system)) {
                    placed.effect.marks.push(Mark::Recoverable);
                    placed.effect.marks.sort();
                }
            }
        }
        if part.effects.iter().any(|placed| placed.effect.may_change_names()) {
            return;
        }
    }
}

/// Whether nothing but programs of the system runs: git itself would change what it knows.
fn runs_known_programs(part: &Part) -> bool {
    part.effects.iter().all(|placed| match &placed.effect.target {
        Target::Program(program) => program.origin == CodeOrigin::Known,
        _ => true,
    })
}

fn is_recoverable(place: &Place, file_system: &dyn FileSystem) -> bool {
    place.zone == Zone::Root
        && place.rest == Rest::Nothing
        && !place.traversal
        && place.named == place.resolved
        && proof(&place.resolved, file_system).is_some()
}

/// `Some` if git has the file as it is.
fn proof(path: &Path, file_system: &dyn FileSystem) -> Option<()> {
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
        .then_some(())
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
