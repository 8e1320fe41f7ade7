//! The index of a git repository: the tracked files, and which entries are other repositories.

/// The mode of an entry that is a commit of another repository.
const GITLINK: u32 = 0o160_000;
/// The mode of a symlink.
const LINK: u32 = 0o120_000;

/// The paths of all submodules in an index; `None` if it is invalid or unsupported.
///
/// Versions 2 to 4 are supported, split indexes are not.
pub(super) fn gitlinks(bytes: &[u8]) -> Option<Vec<String>> {
    let entries = entries(bytes)?;
    let gitlinks = entries.into_iter().filter(|entry| entry.mode == GITLINK);
    gitlinks.map(|entry| Some(inside(&entry.path)?.to_owned())).collect()
}

/// A tracked path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    mode: u32,
    pub path: String,
    /// Seconds and nanoseconds of the last change of the file and of its contents, when git last saw it.
    pub changed: (u32, u32),
    pub modified: (u32, u32),
    pub inode: u32,
    pub size: u32,
    /// The name of the object with its contents.
    pub object: Vec<u8>,
    /// git does not look at the file, or it is in conflict.
    pub is_special: bool,
}

impl IndexEntry {
    /// Whether it is a regular file.
    pub(crate) fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    /// Whether it is a symlink.
    pub(crate) fn is_link(&self) -> bool {
        self.mode == LINK
    }
}

/// All entries of an index; `None` if it is invalid or unsupported, or has a path that is not valid UTF-8.
pub(crate) fn entries(bytes: &[u8]) -> Option<Vec<IndexEntry>> {
    // The length of object names is a setting. For an index that can be read both ways, both readings count.
    match (read(bytes, 20), read(bytes, 32)) {
        (Some(mut short), Some(long)) => {
            short.extend(long);
            Some(short)
        }
        (short, long) => short.or(long),
    }
}

/// Reads an index whose object names have `hash` bytes. The entries must end where an extension or the checksum starts.
fn read(bytes: &[u8], hash: usize) -> Option<Vec<IndexEntry>> {
    let mut rest = bytes.strip_prefix(b"DIRC")?;
    let version = take_number(&mut rest)?;
    let count = take_number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut entries = Vec::new();
    let mut previous: Vec<u8> = Vec::new();
    for _ in 0..count {
        let before = rest.len();
        let entry = take(&mut rest, 40_usize.checked_add(hash)?)?;
        let number = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(entry.get(at..at.checked_add(4)?)?.try_into().ok()?))
        };
        let flags = u16::from_be_bytes(take(&mut rest, 2)?.try_into().ok()?);
        // A bit says that extended flags follow, since version 3.
        if flags & 0x4000 != 0 {
            take(&mut rest, 2)?;
        }
        if version == 4 {
            let dropped = take_length(&mut rest)?;
            previous.truncate(previous.len().checked_sub(dropped)?);
            previous.extend_from_slice(take_name(&mut rest)?);
        } else {
            previous.clear();
            previous.extend_from_slice(take_name(&mut rest)?);
            // One to eight zero bytes fill the entry up; the first has been taken with the name.
            let length = before.checked_sub(rest.len())?;
            let padding = take(&mut rest, length.checked_next_multiple_of(8)?.checked_sub(length)?)?;
            if padding.iter().any(|byte| *byte != 0) {
                return None;
            }
        }
        if previous.is_empty() {
            return None;
        }
        entries.push(IndexEntry {
            mode: number(24)?,
            path: std::str::from_utf8(&previous).ok()?.to_owned(),
            changed: (number(0)?, number(4)?),
            modified: (number(8)?, number(12)?),
            inode: number(20)?,
            size: number(36)?,
            object: entry.get(40..)?.to_vec(),
            // assume-valid, extended flags such as skip-worktree, and the stage of a conflict
            is_special: flags & 0xf000 != 0,
        });
    }
    loop {
        if rest.len() == hash {
            return Some(entries);
        }
        let name = take(&mut rest, 4)?;
        // `link`: the other entries are in another file.
        if name == b"link" || !name.iter().all(u8::is_ascii_alphabetic) {
            return None;
        }
        let length = take_number(&mut rest)?;
        take(&mut rest, usize::try_from(length).ok()?)?;
    }
}

/// A path that stays below the work tree.
fn inside(path: &str) -> Option<&str> {
    let stays = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    stays.then_some(path)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (front, back) = rest.split_at_checked(length)?;
    *rest = back;
    Some(front)
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}

/// A name and the zero byte behind it.
fn take_name<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = rest.iter().position(|byte| *byte == 0)?;
    let name = take(rest, length)?;
    take(rest, 1)?;
    Some(name)
}

/// A length as version 4 writes it: seven bits a byte, one added for each further byte.
fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let mut length = 0_usize;
    loop {
        let byte = *take(rest, 1)?.first()?;
        length = length.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(length);
        }
        length = length.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(mode: u32, path: &str) -> Vec<u8> {
        let mut bytes = vec![0_u8; 24];
        bytes.extend(mode.to_be_bytes());
        bytes.extend([0_u8; 32]);
        bytes.extend(u16::try_from(path.len()).unwrap().to_be_bytes());
        bytes.extend(path.as_bytes());
        let padded = (bytes.len() / 8 + 1) * 8;
        bytes.resize(padded, 0);
        bytes
    }

    fn index(entries: &[Vec<u8>], extensions: &[u8]) -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x02".to_vec();
        bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        bytes.extend(entries.concat());
        bytes.extend(extensions);
        bytes.extend([7_u8; 20]);
        bytes
    }

    #[test]
    fn submodules_are_found_among_files() {
        let bytes =
            index(&[entry(0o100_644, "a"), entry(GITLINK, "sub/deep"), entry(0o100_755, "z.sh")], b"TREE\0\0\0\x02xx");
        assert_eq!(gitlinks(&bytes), Some(vec!["sub/deep".to_owned()]));
        assert_eq!(gitlinks(&index(&[], b"")), Some(Vec::new()));
    }

    #[test]
    fn what_is_not_understood_is_not_taken_for_empty() {
        let good = index(&[entry(GITLINK, "sub")], b"");
        for length in 0..good.len() {
            assert_eq!(gitlinks(&good[..length]), None, "cut at {length}");
        }
        assert_eq!(gitlinks(&index(&[entry(GITLINK, "../sub")], b"")), None);
        assert_eq!(gitlinks(&index(&[entry(0o100_644, "a")], b"link\0\0\0\x01x")), None);
        assert_eq!(gitlinks(b"DIRC\0\0\0\x05\0\0\0\0"), None);
    }
}
