//! Finds what follows a known point of a segment: whole entries, a torn line, or bytes that no writer leaves.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{AtPath, AuditError};
use crate::hash::Hash;
use crate::head::Point;
use crate::line::{Link, is_torn_start};
use crate::segment::{NextLine, SegmentFile, SegmentLines};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowedChain {
    /// The end of the last whole entry that is chained to the point.
    pub reached: Point,
    /// What follows it.
    pub rest: Remainder,
    /// Whether the entry with the number that was looked for has the hash it should have; `None` if it is not there.
    pub matches: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remainder {
    Nothing,
    /// The beginning of the line that was due: a writer was killed.
    Torn {
        bytes: u64,
        sha256: Hash,
    },
    /// Anything else.
    Foreign {
        bytes: u64,
        sha256: Hash,
    },
}

/// Follows the chain from a point to the end of a plain segment. `expected` is another point whose hash is compared on the way.
pub(crate) fn follow(
    segment: &SegmentFile,
    from: Point,
    length: u64,
    expected: Point,
) -> Result<FollowedChain, AuditError> {
    let path = segment.path.as_path();
    let mut lines = SegmentLines::open(segment, from.length, Some(length))?;
    let mut reached = from;
    let mut matches = (from.seq == expected.seq).then_some(from.hash == expected.hash);
    let torn = loop {
        match lines.next().at("read", path)? {
            NextLine::End => break false,
            NextLine::Torn(bytes) => break is_torn_start(bytes, reached.seq.saturating_add(1), &reached.hash),
            NextLine::TooLong => break false,
            NextLine::Line(line) => {
                let fits = Link::parse(line)
                    .is_some_and(|link| link.seq == reached.seq.saturating_add(1) && link.prev == reached.hash);
                if !fits {
                    break false;
                }
                let hash = Hash::of(line);
                reached = Point { length: lines.offset, seq: reached.seq.saturating_add(1), hash };
                if reached.seq == expected.seq {
                    matches = Some(hash == expected.hash);
                }
            }
        }
    };
    let bytes = length.saturating_sub(reached.length);
    let rest = match (bytes, torn) {
        (0, _) => Remainder::Nothing,
        (_, true) => Remainder::Torn { bytes, sha256: digest(path, reached.length, bytes)? },
        (_, false) => Remainder::Foreign { bytes, sha256: digest(path, reached.length, bytes)? },
    };
    Ok(FollowedChain { reached, rest, matches })
}

/// The digest of a stretch of a file; of its first mebibyte, where it is longer.
fn digest(path: &Path, from: u64, bytes: u64) -> Result<Hash, AuditError> {
    let mut file = File::open(path).at("open", path)?;
    file.seek(SeekFrom::Start(from)).at("read", path)?;
    let mut text = Vec::new();
    file.take(bytes.min(1024 * 1024)).read_to_end(&mut text).at("read", path)?;
    Ok(Hash::of(&text))
}
