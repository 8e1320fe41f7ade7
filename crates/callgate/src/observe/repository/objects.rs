//! Reads the objects of a git repository: loose ones, and those in packs (index version 2, with deltas).
//!
//! Everything is bounded, and whatever is unusual is an error: a repository is untrusted bytes. That an object has the contents
//! that its name promises is not checked.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::ZlibDecoder;

use crate::path::file_system::{FileSystem, PathEntry};

/// The name of an object.
pub(crate) type ObjectId = [u8; 20];

/// Why something could not be read, for a reason.
pub(crate) type Unread = &'static str;

/// The most objects that are read for one call. More history may contain anything, on every machine.
const MAXIMUM_OBJECTS: usize = 20_000;
/// The largest object that is read, and how many bytes all of them may have.
const LARGEST_OBJECT: usize = 8 << 20;
const MAXIMUM_BYTES: usize = 256 << 20;
/// The longest chain of deltas. git makes chains of 50, or 250 if told to.
const DEEPEST_DELTA: usize = 300;
const MOST_PACKS: usize = 256;
/// What is read at once from a pack: most commits and trees are smaller.
const CHUNK: usize = 4 << 10;

/// The name of the tree without names.
const EMPTY_TREE: ObjectId = *b"\x4b\x82\x5d\xc6\x42\xcb\x6e\xb9\xa0\x60\xe5\x4b\xf8\xd6\x92\x88\xfb\xee\x49\x04";

const DAMAGED: Unread = "an object of the repository is damaged, or in a form that callgate does not read";
const TOO_LARGE: Unread = "an object of the repository is too large";
const TOO_MANY: Unread = "there is more history than callgate looks at; say how many commits with -n, or name files";

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

/// An object.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub kind: ObjectKind,
    pub bytes: Arc<[u8]>,
}

/// What a name in a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Directory,
    File,
    Executable,
    Link,
    /// A commit of another repository.
    Submodule,
}

/// A version of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub mode: Mode,
    pub id: ObjectId,
}

/// The names in a directory, sorted, each once.
pub(crate) type Tree = [(String, Version)];

/// The objects of one repository, each read once.
pub(crate) struct Objects<'a> {
    file_system: &'a dyn FileSystem,
    folder: PathBuf,
    packs: Option<Vec<Pack>>,
    known: HashMap<ObjectId, Option<Object>>,
    /// What was found at places in packs, as bases of further deltas.
    bases: HashMap<(PathBuf, u64), Object>,
    /// The names in the indexes of packs that begin with a byte.
    names: HashMap<(usize, u8), Arc<[u8]>>,
    /// Trees that were read.
    pub(super) trees: HashMap<ObjectId, Arc<Tree>>,
    objects_left: usize,
    bytes_left: usize,
}

/// The index of a pack: how many objects have names that begin with a byte up to this one.
struct Pack {
    index: PathBuf,
    counts: Vec<u32>,
}

/// Where the first name, and the tables behind the names, begin in an index.
const NAMES_START: u64 = 8 + 4 * 256;

impl Pack {
    fn count(&self, byte: u8) -> u64 {
        self.counts.get(usize::from(byte)).copied().unwrap_or_default().into()
    }

    fn total(&self) -> u64 {
        self.count(u8::MAX)
    }

    /// The places of the names that begin with a byte.
    fn range(&self, byte: u8) -> (u64, u64) {
        (byte.checked_sub(1).map_or(0, |before| self.count(before)), self.count(byte))
    }
}

impl<'a> Objects<'a> {
    /// The objects below this directory (`.git/objects`).
    pub(crate) fn new(file_system: &'a dyn FileSystem, folder: PathBuf) -> Self {
        let (objects_left, bytes_left) = (MAXIMUM_OBJECTS, MAXIMUM_BYTES);
        Objects {
            file_system,
            folder,
            packs: None,
            known: HashMap::new(),
            bases: HashMap::new(),
            names: HashMap::new(),
            trees: HashMap::new(),
            objects_left,
            bytes_left,
        }
    }

    /// Reads an object; `None` if there is none of this name.
    pub(crate) fn find(&mut self, id: &ObjectId) -> Result<Option<Object>, Unread> {
        if let Some(known) = self.known.get(id) {
            return Ok(known.clone());
        }
        self.objects_left = self.objects_left.checked_sub(1).ok_or(TOO_MANY)?;
        // git knows the tree without names even where it is not stored.
        if *id == EMPTY_TREE {
            return Ok(Some(Object { kind: ObjectKind::Tree, bytes: Arc::default() }));
        }
        let object = match self.packed(id)? {
            Some(object) => Some(object),
            None => self.loose(id)?,
        };
        if let Some(object) = &object {
            self.spend(object.bytes.len())?;
        }
        self.known.insert(*id, object.clone());
        Ok(object)
    }

    /// Reads an object of this kind, which must be there.
    pub(crate) fn read(&mut self, id: &ObjectId, kind: ObjectKind) -> Result<Arc<[u8]>, Unread> {
        match self.find(id)? {
            Some(object) if object.kind == kind => Ok(object.bytes),
            Some(_) => Err(DAMAGED),
            None => Err("an object of the repository is missing"),
        }
    }

    /// The names of all objects that begin with these hexadecimal digits.
    pub(crate) fn starting_with(&mut self, digits: &str) -> Result<Vec<ObjectId>, Unread> {
        let mut found = Vec::new();
        let front = digits.get(..2).and_then(|byte| u8::from_str_radix(byte, 16).ok()).ok_or(DAMAGED)?;
        let folder = self.folder.join(digits.get(..2).ok_or(DAMAGED)?.to_ascii_lowercase());
        let names = match self.file_system.names(&folder, MAXIMUM_OBJECTS) {
            Some(names) => names,
            None if self.file_system.look(&folder) == PathEntry::Missing => Vec::new(),
            None => return Err(TOO_MANY),
        };
        for name in names {
            let whole = name.to_str().map(|rest| format!("{front:02x}{rest}"));
            found.extend(whole.and_then(|whole| parse_id(whole.as_bytes())));
        }
        self.load_packs()?;
        for pack in self.packs.iter().flatten() {
            let names = names_with(pack, front, self.file_system)?;
            found.extend(names.as_chunks::<20>().0.iter().copied());
        }
        let digits = digits.to_ascii_lowercase();
        found.retain(|id| callgate_model::digest::hex(id).starts_with(&digits));
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Unread> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(TOO_MANY)?;
        Ok(())
    }

    fn loose(&self, id: &ObjectId) -> Result<Option<Object>, Unread> {
        let name = callgate_model::digest::hex(id);
        let (folder, rest) = name.split_at_checked(2).ok_or(DAMAGED)?;
        let path = self.folder.join(folder).join(rest);
        let Some(packed) = self.file_system.read(&path, LARGEST_OBJECT).map_err(|_| TOO_LARGE)? else {
            return Ok(None);
        };
        loose_object(&packed).map(Some)
    }

    fn load_packs(&mut self) -> Result<(), Unread> {
        if self.packs.is_some() {
            return Ok(());
        }
        let folder = self.folder.join("pack");
        let names = match self.file_system.names(&folder, MOST_PACKS.saturating_mul(8)) {
            Some(names) => names,
            None if self.file_system.look(&folder) == PathEntry::Missing => Vec::new(),
            None => return Err("the packs of the repository cannot be listed"),
        };
        let indexes = names.iter().map(Path::new).filter(|name| name.extension().is_some_and(|end| end == "idx"));
        let mut packs = Vec::new();
        for name in indexes {
            if packs.len() >= MOST_PACKS {
                return Err("the repository has too many packs");
            }
            let index = folder.join(name);
            let counts = fan_out(&part(self.file_system, &index, 0, NAMES_START)?)?;
            packs.push(Pack { index, counts });
        }
        self.packs = Some(packs);
        Ok(())
    }

    fn packed(&mut self, id: &ObjectId) -> Result<Option<Object>, Unread> {
        let Some((pack, offset)) = self.locate(id)? else { return Ok(None) };
        let mut deltas: Vec<((PathBuf, u64), Vec<u8>)> = Vec::new();
        let (mut pack, mut offset) = (pack, offset);
        let mut object = loop {
            let place = (pack.clone(), offset);
            if let Some(base) = self.bases.get(&place) {
                break base.clone();
            }
            let entry = self.entry(&pack, offset)?;
            self.spend(entry.bytes.len())?;
            match entry.kind {
                EntryForm::Whole(kind) => {
                    let object = Object { kind, bytes: entry.bytes.into() };
                    self.bases.insert(place, object.clone());
                    break object;
                }
                _ if deltas.len() >= DEEPEST_DELTA => return Err(DAMAGED),
                EntryForm::Offset(back) => {
                    deltas.push((place, entry.bytes));
                    offset = offset.checked_sub(back).ok_or(DAMAGED)?;
                }
                EntryForm::Reference(base) => {
                    deltas.push((place, entry.bytes));
                    if let Some(Some(known)) = self.known.get(&base) {
                        break known.clone();
                    }
                    match self.locate(&base)? {
                        Some(place) => (pack, offset) = place,
                        None => break self.loose(&base)?.ok_or(DAMAGED)?,
                    }
                }
            }
        };
        for (place, delta) in deltas.into_iter().rev() {
            let bytes = apply_delta(&object.bytes, &delta)?;
            self.spend(bytes.len())?;
            object.bytes = bytes.into();
            self.bases.insert(place, object.clone());
        }
        Ok(Some(object))
    }

    /// The pack that has an object, and where in it.
    fn locate(&mut self, id: &ObjectId) -> Result<Option<(PathBuf, u64)>, Unread> {
        self.load_packs()?;
        let first = id.first().copied().unwrap_or_default();
        for (place, pack) in self.packs.iter().flatten().enumerate() {
            let names = match self.names.entry((place, first)) {
                Entry::Occupied(known) => Arc::clone(known.get()),
                Entry::Vacant(missing) => Arc::clone(missing.insert(names_with(pack, first, self.file_system)?.into())),
            };
            let (chunks, _) = names.as_chunks::<20>();
            let Ok(at) = chunks.binary_search(id) else { continue };
            let at = pack.range(first).0.checked_add(at as u64).ok_or(DAMAGED)?;
            let total = pack.total();
            let short = NAMES_START
                .checked_add(total.checked_mul(24).ok_or(DAMAGED)?)
                .and_then(|start| start.checked_add(at.checked_mul(4)?))
                .ok_or(DAMAGED)?;
            let offset = number(&part(self.file_system, &pack.index, short, 4)?)?;
            let offset = if offset & 0x8000_0000 == 0 {
                u64::from(offset)
            } else {
                let place = u64::from(offset & 0x7fff_ffff).checked_mul(8).ok_or(DAMAGED)?;
                let table = total.checked_mul(28).and_then(|length| length.checked_add(NAMES_START));
                let place = table.and_then(|table| table.checked_add(place)).ok_or(DAMAGED)?;
                let bytes = part(self.file_system, &pack.index, place, 8)?;
                u64::from_be_bytes(bytes.try_into().map_err(|_| DAMAGED)?)
            };
            return Ok(Some((pack.index.with_extension("pack"), offset)));
        }
        Ok(None)
    }

    fn entry(&self, pack: &Path, offset: u64) -> Result<PackEntry, Unread> {
        let read = |length: usize| match self.file_system.read_part(pack, offset, length) {
            Ok(Some(bytes)) => Ok(bytes),
            _ => Err("a pack of the repository cannot be read"),
        };
        let bytes = read(CHUNK)?;
        let (kind, size, start) = entry_header(&bytes)?;
        // What cannot be made smaller is stored with five bytes for each 16 kB, a header and a checksum.
        let longest = start.saturating_add(size).saturating_add(size / 1_000).saturating_add(64);
        let bytes = if longest > bytes.len() && bytes.len() == CHUNK { read(longest)? } else { bytes };
        let bytes = inflate(bytes.get(start..).ok_or(DAMAGED)?, size)?;
        Ok(PackEntry { kind, bytes })
    }
}

/// The names in an index that begin with a byte.
fn names_with(pack: &Pack, byte: u8, file_system: &dyn FileSystem) -> Result<Vec<u8>, Unread> {
    let (from, to) = pack.range(byte);
    let length = to.checked_sub(from).and_then(|count| count.checked_mul(20)).ok_or(DAMAGED)?;
    let start = from.checked_mul(20).and_then(|start| start.checked_add(NAMES_START)).ok_or(DAMAGED)?;
    part(file_system, &pack.index, start, length)
}

/// So many bytes of a file, which must be there.
fn part(file_system: &dyn FileSystem, path: &Path, offset: u64, length: u64) -> Result<Vec<u8>, Unread> {
    let length = usize::try_from(length).ok().filter(|length| *length <= LARGEST_OBJECT).ok_or(TOO_LARGE)?;
    match file_system.read_part(path, offset, length) {
        Ok(Some(bytes)) if bytes.len() == length => Ok(bytes),
        _ => Err("the index of a pack cannot be read"),
    }
}

/// The counts at the beginning of an index of version 2.
pub(super) fn fan_out(bytes: &[u8]) -> Result<Vec<u32>, Unread> {
    let counts = bytes.strip_prefix(b"\xfftOc\0\0\0\x02").ok_or(DAMAGED)?;
    let counts: Vec<u32> = counts.as_chunks::<4>().0.iter().map(|count| u32::from_be_bytes(*count)).collect();
    if counts.len() == 256 && counts.is_sorted() { Ok(counts) } else { Err(DAMAGED) }
}

fn number(bytes: &[u8]) -> Result<u32, Unread> {
    Ok(u32::from_be_bytes(bytes.try_into().map_err(|_| DAMAGED)?))
}

/// An entry of a pack.
struct PackEntry {
    kind: EntryForm,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryForm {
    Whole(ObjectKind),
    /// A delta to the entry that begins so many bytes before.
    Offset(u64),
    /// A delta to this object.
    Reference(ObjectId),
}

/// The form and the unpacked size of an entry, and where its compressed bytes begin.
pub(super) fn entry_header(bytes: &[u8]) -> Result<(EntryForm, usize, usize), Unread> {
    let mut rest = bytes.iter();
    let mut next = || rest.next().copied().ok_or(DAMAGED);
    let first = next()?;
    let mut size = u64::from(first & 0x0f);
    let (mut byte, mut shift) = (first, 4_u32);
    while byte & 0x80 != 0 {
        byte = next()?;
        size |= u64::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 40).ok_or(TOO_LARGE)?;
        shift = shift.saturating_add(7);
    }
    let kind = match (first >> 4) & 7 {
        1 => EntryForm::Whole(ObjectKind::Commit),
        2 => EntryForm::Whole(ObjectKind::Tree),
        3 => EntryForm::Whole(ObjectKind::Blob),
        4 => EntryForm::Whole(ObjectKind::Tag),
        6 => {
            let mut byte = next()?;
            let mut back = u64::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = next()?;
                back = back.checked_add(1).and_then(|back| back.checked_mul(128)).ok_or(DAMAGED)?;
                back |= u64::from(byte & 0x7f);
            }
            if back == 0 {
                return Err(DAMAGED);
            }
            EntryForm::Offset(back)
        }
        7 => {
            let mut base = ObjectId::default();
            for byte in &mut base {
                *byte = next()?;
            }
            EntryForm::Reference(base)
        }
        _ => return Err(DAMAGED),
    };
    let size = usize::try_from(size).ok().filter(|size| *size <= LARGEST_OBJECT).ok_or(TOO_LARGE)?;
    let start = bytes.len().checked_sub(rest.len()).ok_or(DAMAGED)?;
    Ok((kind, size, start))
}

/// Unpacks exactly so many bytes.
fn inflate(bytes: &[u8], size: usize) -> Result<Vec<u8>, Unread> {
    let most = u64::try_from(size).ok().and_then(|size| size.checked_add(1)).ok_or(TOO_LARGE)?;
    let mut unpacked = Vec::new();
    ZlibDecoder::new(bytes).take(most).read_to_end(&mut unpacked).map_err(|_| DAMAGED)?;
    if unpacked.len() == size { Ok(unpacked) } else { Err(DAMAGED) }
}

/// Reads a file below `objects`.
pub(crate) fn loose_object(packed: &[u8]) -> Result<Object, Unread> {
    let most = u64::try_from(LARGEST_OBJECT).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed).take(most).read_to_end(&mut bytes).map_err(|_| DAMAGED)?;
    let end = bytes.iter().take(32).position(|byte| *byte == 0).ok_or(DAMAGED)?;
    let (header, contents) = bytes.split_at_checked(end).ok_or(DAMAGED)?;
    let contents = contents.get(1..).ok_or(DAMAGED)?;
    let (kind, size) = std::str::from_utf8(header).ok().and_then(|header| header.split_once(' ')).ok_or(DAMAGED)?;
    let kind = match kind {
        "commit" => ObjectKind::Commit,
        "tree" => ObjectKind::Tree,
        "blob" => ObjectKind::Blob,
        "tag" => ObjectKind::Tag,
        _ => return Err(DAMAGED),
    };
    if size.parse() != Ok(contents.len()) {
        return Err(DAMAGED);
    }
    Ok(Object { kind, bytes: contents.into() })
}

/// Makes an object from another one and the difference to it.
pub(crate) fn apply_delta(base: &[u8], delta: &[u8]) -> Result<Vec<u8>, Unread> {
    let mut rest = delta.iter();
    let length = |rest: &mut std::slice::Iter<'_, u8>| -> Result<usize, Unread> {
        let (mut length, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = *rest.next().ok_or(DAMAGED)?;
            length |= u64::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 40).ok_or(DAMAGED)?;
            if byte & 0x80 == 0 {
                return usize::try_from(length).map_err(|_| DAMAGED);
            }
            shift = shift.saturating_add(7);
        }
    };
    let base_size = length(&mut rest)?;
    let size = length(&mut rest)?;
    if base_size != base.len() || size > LARGEST_OBJECT {
        return Err(DAMAGED);
    }
    let mut made = Vec::with_capacity(size.min(1 << 20));
    while let Some(operation) = rest.next().copied() {
        if operation & 0x80 == 0 {
            let count = usize::from(operation);
            let (inserted, behind) = rest.as_slice().split_at_checked(count).filter(|_| count > 0).ok_or(DAMAGED)?;
            made.extend_from_slice(inserted);
            rest = behind.iter();
        } else {
            let mut argument = |bits: &[u8]| -> Result<usize, Unread> {
                let mut value = 0_usize;
                for (place, bit) in bits.iter().enumerate() {
                    if operation & bit != 0 {
                        value |= usize::from(*rest.next().ok_or(DAMAGED)?) << (8 * place);
                    }
                }
                Ok(value)
            };
            let start = argument(&[1, 2, 4, 8])?;
            let count = argument(&[16, 32, 64])?;
            let count = if count == 0 { 0x10000 } else { count };
            let end = start.checked_add(count).ok_or(DAMAGED)?;
            made.extend_from_slice(base.get(start..end).ok_or(DAMAGED)?);
        }
        if made.len() > size {
            return Err(DAMAGED);
        }
    }
    if made.len() == size { Ok(made) } else { Err(DAMAGED) }
}

/// The name of an object, written in 40 hexadecimal digits.
pub(crate) fn parse_id(digits: &[u8]) -> Option<ObjectId> {
    let mut id = ObjectId::default();
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != id.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in id.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = (digit(*high)? << 4) | digit(*low)?;
    }
    Some(id)
}
