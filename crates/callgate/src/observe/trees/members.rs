//! The names that stand in archives and patches: tar, with or without gzip, zip, and diffs.
//!
//! Whatever could make a program see other names than this reader is an error: links, names that climb, unusual headers, bytes that
//! programs read differently, compression that is not read here. An error means that any name may be written.

use std::io::Read;
use std::path::{Path, PathBuf};

use callgate_shell::patch::{self, PatchError};
use flate2::read::MultiGzDecoder;

use crate::path::file_system::FileSystem;

/// The largest file that is read.
const MAXIMUM_FILE: usize = 32 << 20;
/// How much of a compressed archive is unpacked to find its names.
const MAXIMUM_UNPACKED: u64 = 64 << 20;
const MAXIMUM_MEMBERS: usize = 20_000;

/// Why the names are not known.
type Why = &'static str;

fn contents(file_system: &dyn FileSystem, path: &Path) -> Result<Vec<u8>, Why> {
    match file_system.read(path, MAXIMUM_FILE) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err("there is no such file"),
        Err(_) => Err("it cannot be read, or is too large"),
    }
}

/// The names that a patch in a file touches.
pub(super) fn of_patch_file(
    file_system: &dyn FileSystem,
    path: &Path,
    strip: Option<usize>,
) -> Result<Vec<PathBuf>, Why> {
    let text = String::from_utf8(contents(file_system, path)?).map_err(|_| "it is not valid UTF-8")?;
    of_patch(&text, strip)
}

/// The names that an archive puts below a directory.
pub(super) fn of_archive(file_system: &dyn FileSystem, path: &Path, strip: Option<usize>) -> Result<Vec<PathBuf>, Why> {
    names_in(&contents(file_system, path)?, strip)
}

/// The names in the bytes of an archive.
pub(super) fn names_in(bytes: &[u8], strip: Option<usize>) -> Result<Vec<PathBuf>, Why> {
    let is_zip = bytes.starts_with(b"PK\x03\x04");
    // A program goes by the format that it knows, and not by the first bytes.
    let ends_as_zip = || bytes.windows(4).any(|four| four == END_OF_ZIP);
    let begins_as_tar = || bytes.get(..BLOCK).is_some_and(has_checksum);
    if if is_zip { begins_as_tar() } else { ends_as_zip() } {
        return Err("it can be read in two ways");
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(bytes)
            .take(MAXIMUM_UNPACKED)
            .read_to_end(&mut unpacked)
            .map_err(|_| "its compression is damaged")?;
        if unpacked.len() as u64 >= MAXIMUM_UNPACKED {
            return Err("it is too large");
        }
        return stripped(tar(&unpacked)?, strip);
    }
    if is_zip {
        return stripped(zip(bytes)?, strip);
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return stripped(tar(bytes)?, strip);
    }
    Err("its format is not one that callgate reads")
}

/// The names that a patch touches.
pub(super) fn of_patch(text: &str, strip: Option<usize>) -> Result<Vec<PathBuf>, Why> {
    let names = patch::header_names(text).map_err(|error| match error {
        PatchError::NoFiles => "no file names were found in it",
        _ => "programs may read it differently",
    })?;
    stripped(names, strip)
}

/// Takes components off the front of names.
fn stripped(names: Vec<String>, strip: Option<usize>) -> Result<Vec<PathBuf>, Why> {
    let mut paths = Vec::new();
    for name in &names {
        if name.starts_with('/') || name.contains(['\0', '\\']) || name.split('/').any(|part| part == "..") {
            return Err("a name in it leads elsewhere");
        }
        // Whether `.` counts as a component that is taken off depends on the program.
        let real: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let all: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
        for parts in [&real, &all] {
            let levels = match strip {
                Some(strip) => strip..strip.saturating_add(1),
                None => 0..parts.len(),
            };
            let tails = levels.filter_map(|level| parts.get(level..));
            let paths_of = tails.map(|tail| tail.iter().filter(|part| **part != ".").collect::<PathBuf>());
            paths.extend(paths_of.filter(|path| !path.as_os_str().is_empty()));
        }
        if paths.len() > MAXIMUM_MEMBERS {
            return Err("it has too many names");
        }
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

const BLOCK: usize = 512;

fn tar(bytes: &[u8]) -> Result<Vec<String>, Why> {
    const DAMAGED: Why = "its format is not one that callgate reads";
    let mut names = Vec::new();
    let mut rest = bytes;
    let mut long: Option<String> = None;
    let mut extended = false;
    loop {
        let Some((header, behind)) = rest.split_at_checked(BLOCK) else { return Err("it is incomplete") };
        if header.iter().all(|byte| *byte == 0) {
            // With an option, programs go on behind the end.
            return if behind.iter().all(|byte| *byte == 0) && long.is_none() { Ok(names) } else { Err(DAMAGED) };
        }
        if !has_checksum(header) {
            return Err(DAMAGED);
        }
        let size = octal(header.get(124..136).unwrap_or_default())
            .and_then(|size| usize::try_from(size).ok())
            .ok_or(DAMAGED)?;
        let padded = size.checked_next_multiple_of(BLOCK).ok_or(DAMAGED)?;
        let (data, after) = behind.split_at_checked(padded).ok_or("it is incomplete")?;
        let data = data.get(..size).unwrap_or_default();
        let kind = header.get(156).copied().unwrap_or_default();
        match kind {
            // A long name of GNU tar, for the next member.
            b'L' if long.is_none() && !extended => long = Some(text(data)?),
            // A header for the next member is forgotten if another one follows it.
            b'x' | b'g' if long.is_some() || extended => return Err("a header in it is unusual"),
            b'x' | b'g' => {
                extended = kind == b'x';
                for (key, value) in pax(data)? {
                    match key {
                        "path" if kind == b'x' && long.is_none() => long = Some(text(value.as_bytes())?),
                        "mtime" | "atime" | "ctime" | "uid" | "gid" | "uname" | "gname" | "comment" => {}
                        _ => return Err("a header in it is unusual"),
                    }
                }
            }
            // Some programs skip what a directory contains, and others take it for the next member.
            b'5' if size != 0 => return Err(DAMAGED),
            b'0' | 0 | b'5' => {
                let plain = || -> Result<String, Why> {
                    let name = text(header.get(..100).unwrap_or_default())?;
                    let is_posix = header.get(257..263) == Some(b"ustar\0");
                    let prefix = if is_posix { text(header.get(345..500).unwrap_or_default())? } else { String::new() };
                    Ok(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
                };
                let name = match long.take() {
                    Some(name) => name,
                    None => plain()?,
                };
                names.push(name);
                extended = false;
            }
            b'1' | b'2' => return Err("it contains links"),
            _ => return Err("a header in it is unusual"),
        }
        if names.len() > MAXIMUM_MEMBERS {
            return Err("it has too many names");
        }
        rest = after;
    }
}

/// A name in a field that a zero byte ends.
fn text(field: &[u8]) -> Result<String, Why> {
    let name = field.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8(name.to_vec()).map_err(|_| "a name in it is not valid UTF-8")
}

/// Whether a header of a tar file has the checksum of its bytes.
fn has_checksum(header: &[u8]) -> bool {
    let is_sum = |at: &usize| (148..156).contains(at);
    let sum: u64 = header.iter().enumerate().map(|(at, byte)| u64::from(if is_sum(&at) { b' ' } else { *byte })).sum();
    octal(header.get(148..156).unwrap_or_default()) == Some(sum)
}

/// A number in octal digits, between blanks and zero bytes.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches([' ', '\0']);
    digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')).then(|| u64::from_str_radix(digits, 8).ok())?
}

/// The records of an extended header: `length key=value`.
fn pax(mut data: &[u8]) -> Result<Vec<(&str, &str)>, Why> {
    const DAMAGED: Why = "a header in it is unusual";
    let mut records = Vec::new();
    while !data.is_empty() {
        let space = data.iter().position(|byte| *byte == b' ').ok_or(DAMAGED)?;
        let digits = data.get(..space).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or(DAMAGED)?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
        let length: usize = digits.parse().ok().filter(|_| is_number).ok_or(DAMAGED)?;
        let (record, rest) = data.split_at_checked(length).ok_or(DAMAGED)?;
        let record =
            record.get(space.saturating_add(1)..).and_then(|record| record.strip_suffix(b"\n")).ok_or(DAMAGED)?;
        records.push(std::str::from_utf8(record).ok().and_then(|record| record.split_once('=')).ok_or(DAMAGED)?);
        data = rest;
    }
    Ok(records)
}

/// What the record at the end of a zip file starts with.
const END_OF_ZIP: &[u8] = b"PK\x05\x06";

fn zip(bytes: &[u8]) -> Result<Vec<String>, Why> {
    const DAMAGED: Why = "its format is not one that callgate reads";
    let number = |at: usize, length: usize| -> Option<usize> {
        let field = bytes.get(at..at.checked_add(length)?)?;
        Some(field.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    // The end of the directory is the only one of its kind, and nothing follows it but its comment.
    let ends: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, four)| *four == END_OF_ZIP).map(|(at, _)| at).collect();
    let [end] = ends.as_slice() else { return Err(DAMAGED) };
    let field = |offset: usize, length: usize| end.checked_add(offset).and_then(|at| number(at, length)).ok_or(DAMAGED);
    let (count, start, comment) = (field(10, 2)?, field(16, 4)?, field(20, 2)?);
    if count == 0xffff
        || field(8, 2)? != count
        || start.checked_add(field(12, 4)?) != Some(*end)
        || end.checked_add(22).and_then(|at| at.checked_add(comment)) != Some(bytes.len())
    {
        return Err(DAMAGED);
    }
    let mut names = Vec::with_capacity(count.min(MAXIMUM_MEMBERS));
    let mut at = start;
    for _ in 0..count.min(MAXIMUM_MEMBERS) {
        let field =
            |offset: usize, length: usize| at.checked_add(offset).and_then(|at| number(at, length)).ok_or(DAMAGED);
        if field(0, 4)? != 0x0201_4b50 {
            return Err(DAMAGED);
        }
        let (name, extra, comment) = (field(28, 2)?, field(30, 2)?, field(32, 2)?);
        // The upper half of the attributes is a mode where Unix made the archive.
        if field(38, 4)? >> 28 == 0o12 {
            return Err("it contains links");
        }
        let name_start = at.checked_add(46).ok_or(DAMAGED)?;
        let name_end = name_start.checked_add(name).ok_or(DAMAGED)?;
        names.push(text_of(bytes.get(name_start..name_end).ok_or(DAMAGED)?)?);
        let extra_end = name_end.checked_add(extra).ok_or(DAMAGED)?;
        // A field with the name once more, in Unicode.
        if bytes.get(name_end..extra_end).ok_or(DAMAGED)?.windows(2).any(|two| two == [0x75, 0x70]) {
            return Err("a header in it is unusual");
        }
        let local = field(42, 4)?;
        let local_name = local.checked_add(26).and_then(|at| number(at, 2)).ok_or(DAMAGED)?;
        let local_start = local.checked_add(30).ok_or(DAMAGED)?;
        let local_end = local_start.checked_add(local_name).ok_or(DAMAGED)?;
        names.push(text_of(bytes.get(local_start..local_end).ok_or(DAMAGED)?)?);
        at = extra_end.checked_add(comment).ok_or(DAMAGED)?;
    }
    if count > MAXIMUM_MEMBERS { Err("it has too many names") } else { Ok(names) }
}

fn text_of(name: &[u8]) -> Result<String, Why> {
    String::from_utf8(name.to_vec()).map_err(|_| "a name in it is not valid UTF-8")
}
