//! The files of a log: plain while they are written, compressed afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::error::{AtPath, AuditError};
use crate::line::MAXIMUM_LINE;

/// One file of a log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentFile {
    pub number: u64,
    pub path: PathBuf,
    pub compressed: bool,
}

impl SegmentFile {
    /// The segment with this number, which may have been compressed meanwhile.
    pub(crate) fn plain(directory: &Path, number: u64) -> Self {
        SegmentFile { number, path: plain_path(directory, number), compressed: false }
    }
}

pub(crate) fn plain_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("audit-{number:06}.jsonl"))
}

pub(crate) fn compressed_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("audit-{number:06}.jsonl.gz"))
}

/// All segments of a log, in order. Where a crash left both forms of one, the plain one counts.
pub(crate) fn list(directory: &Path) -> Result<Vec<SegmentFile>, AuditError> {
    let mut files = Vec::new();
    for found in fs::read_dir(directory).at("read", directory)? {
        let found = found.at("read", directory)?;
        let name = found.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("audit-")) else { continue };
        let (number, compressed) = match (rest.strip_suffix(".jsonl"), rest.strip_suffix(".jsonl.gz")) {
            (Some(number), _) => (number, false),
            (_, Some(number)) => (number, true),
            _ => continue,
        };
        if let Ok(number) = number.parse() {
            files.push(SegmentFile { number, path: found.path(), compressed });
        }
    }
    // plain before compressed
    files.sort_by_key(|file| (file.number, file.compressed));
    files.dedup_by_key(|file| file.number);
    Ok(files)
}

/// The next thing in a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextLine<'a> {
    /// A whole line, without its end.
    Line(&'a [u8]),
    /// The file ends in the middle of a line.
    Torn(&'a [u8]),
    /// A line that is longer than any that is written. Its beginning was read, the rest is skipped.
    TooLong,
    /// The end.
    End,
}

/// Reads the lines of a segment with bounded memory.
pub(crate) struct SegmentLines {
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    /// Where in the plain text the next line starts.
    pub offset: u64,
}

callgate_model::debug_fields!(SegmentLines, offset);

const BUFFER: usize = 256 * 1024;

impl SegmentLines {
    /// Opens a segment and reads its (plain) bytes from `start` to `end`.
    pub(crate) fn open(segment: &SegmentFile, start: u64, end: Option<u64>) -> Result<Self, AuditError> {
        let (file, compressed) = match File::open(&segment.path) {
            // It may have been compressed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !segment.compressed => {
                let compressed = segment.path.with_extension("jsonl.gz");
                (File::open(compressed).or(Err(error)), true)
            }
            file => (file, segment.compressed),
        };
        let mut file = file.at("open", &segment.path)?;
        let length = end.map_or(u64::MAX, |end| end.saturating_sub(start));
        let reader: Box<dyn BufRead + Send> = if compressed {
            let mut reader = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file));
            io::copy(&mut reader.by_ref().take(start), &mut io::sink()).at("read", &segment.path)?;
            Box::new(reader.take(length))
        } else {
            file.seek(SeekFrom::Start(start)).at("read", &segment.path)?;
            Box::new(BufReader::with_capacity(BUFFER, file.take(length)))
        };
        Ok(SegmentLines { reader, line: Vec::new(), offset: start })
    }

    #[cfg(test)]
    pub(crate) fn of(reader: Box<dyn BufRead + Send>) -> Self {
        SegmentLines { reader, line: Vec::new(), offset: 0 }
    }

    pub(crate) fn next(&mut self) -> io::Result<NextLine<'_>> {
        self.line.clear();
        let limit = MAXIMUM_LINE.saturating_add(1) as u64;
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.line)?;
        self.offset = self.offset.saturating_add(read as u64);
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(NextLine::Line(&self.line));
        }
        if self.line.len() > MAXIMUM_LINE {
            self.skip_line()?;
            return Ok(NextLine::TooLong);
        }
        Ok(if self.line.is_empty() { NextLine::End } else { NextLine::Torn(&self.line) })
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let (used, done) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end.saturating_add(1), true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.reader.consume(used);
            self.offset = self.offset.saturating_add(used as u64);
            if done {
                return Ok(());
            }
        }
    }
}

/// Replaces a plain segment by its compressed form. A crash at any moment leaves one whole form.
pub(crate) fn compress(directory: &Path, number: u64) -> Result<(), AuditError> {
    let plain = plain_path(directory, number);
    let compressed = compressed_path(directory, number);
    let made = directory.join(format!("audit-{number:06}.gz.new"));
    let mut source = File::open(&plain).at("open", &plain)?;
    write_whole(&made, &compressed, |writer| {
        let mut encoder = GzEncoder::new(writer, Compression::default());
        io::copy(&mut source, &mut encoder)?;
        encoder.finish().map(|_| ())
    })?;
    fs::remove_file(&plain).at("remove", &plain)?;
    sync_directory(directory)
}

/// Writes a file that appears under its name only when it is whole and on the disk.
pub(crate) fn write_whole(
    made: &Path,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), AuditError> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(made).at("create", made)?;
    let result = (|| {
        let mut writer = BufWriter::with_capacity(BUFFER, file);
        write(&mut writer)?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(made, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(made);
    }
    result.at("write", path)
}

pub(crate) fn sync_directory(directory: &Path) -> Result<(), AuditError> {
    File::open(directory).and_then(|file| file.sync_all()).at("write", directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut lines = SegmentLines::of(Box::new(io::Cursor::new(text.to_vec())));
        let mut found = Vec::new();
        loop {
            found.push(match lines.next().unwrap() {
                NextLine::Line(line) => format!("line {}", String::from_utf8_lossy(line)),
                NextLine::Torn(line) => format!("torn {}", String::from_utf8_lossy(line)),
                NextLine::TooLong => "too long".to_owned(),
                NextLine::End => break,
            });
        }
        assert_eq!(lines.offset, text.len() as u64);
        found
    }

    #[test]
    fn lines_are_whole_torn_or_too_long() {
        assert_eq!(lines(b""), [""; 0]);
        assert_eq!(lines(b"a\n\nb"), ["line a", "line ", "torn b"]);
        let long = [vec![b'x'; 3 * MAXIMUM_LINE], b"\nafter\n".to_vec()].concat();
        assert_eq!(lines(&long), ["too long", "line after"]);
    }

    #[test]
    fn a_compressed_segment_reads_like_the_plain_one() {
        let directory = tempfile::tempdir().unwrap();
        let text: String = (0..10_000).map(|number| format!("line number {number}\n")).collect();
        fs::write(plain_path(directory.path(), 3), &text).unwrap();
        compress(directory.path(), 3).unwrap();
        let found = list(directory.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].compressed && found[0].number == 3);
        assert!(fs::metadata(&found[0].path).unwrap().len() < text.len() as u64 / 3);
        let mut read = SegmentLines::open(&found[0], 0, None).unwrap();
        let mut count = 0;
        while let NextLine::Line(line) = read.next().unwrap() {
            assert_eq!(line, format!("line number {count}").as_bytes());
            count += 1;
        }
        assert_eq!(count, 10_000);
    }

    #[test]
    fn where_both_forms_exist_the_plain_one_counts() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(plain_path(directory.path(), 1), "a\n").unwrap();
        fs::write(compressed_path(directory.path(), 1), "half").unwrap();
        fs::write(directory.path().join("audit-x.jsonl"), "").unwrap();
        fs::write(directory.path().join("other"), "").unwrap();
        let found = list(directory.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert!(!found[0].compressed);
    }
}
