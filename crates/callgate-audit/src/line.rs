//! One line: how it is written, and the little that must be read of it to check the chain.
//!
//! Every line starts with the same fields in the same order, so that the chain can be checked without a JSON reader and a
//! torn line can be told from a forged one:
//! `{"v":1,"seq":17,"prev":"…","time":"…","kind":"…"` and so on.

use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};
use serde_json::{Value, json};

use crate::entry::{Record, Truncated, VERSION};
use crate::error::AuditError;
use crate::hash::Hash;

/// Texts longer than this many characters are cut.
pub const MAXIMUM_CHARACTERS: usize = 500;
/// The end of a truncated text.
pub const CUT: &str = "...[truncated]";
/// The longest line that is written or read.
pub const MAXIMUM_LINE: usize = 1024 * 1024;
/// How long a record may be before its largest values are replaced by their digests.
const MAXIMUM_RECORD: usize = 256 * 1024;
const MAXIMUM_DEPTH: usize = 160;

/// A record as JSON without what only the writer knows (version, number, predecessor, time).
#[derive(Debug, Clone)]
pub(crate) struct EncodedRecord(Vec<u8>);

impl EncodedRecord {
    /// Turns a record into JSON, with long texts cut.
    pub(crate) fn of(record: &Record) -> Result<Self, AuditError> {
        let mut bytes = Vec::with_capacity(1024);
        let mut measured = Measured::default();
        record.serialize(&mut Serializer::with_formatter(&mut bytes, &mut measured))?;
        if bytes.len() <= MAXIMUM_RECORD && !measured.found_long {
            return Ok(EncodedRecord(bytes));
        }
        let mut value = serde_json::to_value(record)?;
        let mut truncated = Vec::new();
        cut(&mut value, &mut String::new(), &mut truncated, 0);
        if let Value::Object(fields) = &mut value
            && !truncated.is_empty()
        {
            // For thousands of long texts, record the first hundred and the total.
            let all = truncated.len();
            truncated.truncate(100);
            fields.insert("truncated".to_owned(), serde_json::to_value(&truncated)?);
            if all > truncated.len() {
                fields.insert("truncated_texts".to_owned(), json!(all));
            }
        }
        for field in ["description", "input", "classification", "claims"] {
            if serde_json::to_vec(&value)?.len() <= MAXIMUM_RECORD {
                break;
            }
            if let Some(large) = value.get_mut(field) {
                let text = serde_json::to_vec(large)?;
                *large = json!({"omitted": {"bytes": text.len(), "sha256": Hash::of(&text)}});
            }
        }
        // The kind comes first, whatever the order of the map is.
        let kind = value.as_object_mut().and_then(|fields| fields.remove("kind")).unwrap_or_default();
        let rest = serde_json::to_vec(&value)?;
        let mut bytes = br#"{"kind":"#.to_vec();
        serde_json::to_writer(&mut bytes, &kind)?;
        if rest.len() > 2 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(rest.get(1..).unwrap_or_default());
        if bytes.len() > MAXIMUM_LINE.saturating_sub(512) {
            return Err(AuditError::Encode(serde::ser::Error::custom("the entry is too large")));
        }
        Ok(EncodedRecord(bytes))
    }

    /// Writes the whole line, with its end, to the end of a buffer; returns its hash.
    pub(crate) fn write_to(&self, buffer: &mut Vec<u8>, seq: u64, prev: &Hash, time: &str) -> Hash {
        let start = buffer.len();
        write_start(buffer, seq, prev);
        buffer.extend_from_slice(br#","time":""#);
        buffer.extend_from_slice(time.as_bytes());
        buffer.extend_from_slice(br#"","#);
        // the opening brace of the record is the line's own
        buffer.extend_from_slice(self.0.get(1..).unwrap_or_default());
        let hash = Hash::of(buffer.get(start..).unwrap_or_default());
        buffer.push(b'\n');
        hash
    }
}

/// How the line of an entry with this number and predecessor starts. Never the whole of one.
pub(crate) fn start_of(seq: u64, prev: &Hash) -> Vec<u8> {
    let mut start = Vec::new();
    write_start(&mut start, seq, prev);
    start
}

fn write_start(buffer: &mut Vec<u8>, seq: u64, prev: &Hash) {
    use std::io::Write as _;
    // writing to memory does not fail
    let _ = write!(buffer, r#"{{"v":{VERSION},"seq":{seq},"prev":""#);
    prev.write_to(buffer);
    buffer.push(b'"');
}

/// Whether some bytes could be the beginning of that entry's line, as a killed writer leaves it.
pub(crate) fn is_torn_start(bytes: &[u8], seq: u64, prev: &Hash) -> bool {
    let start = start_of(seq, prev);
    let common = bytes.len().min(start.len());
    bytes.len() < MAXIMUM_LINE && !bytes.contains(&b'\n') && bytes.get(..common) == start.get(..common)
}

/// The part of a line that the chain needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    pub seq: u64,
    pub prev: Hash,
    pub kind: &'a str,
}

impl<'a> Link<'a> {
    /// Reads the fixed beginning of a line (without its end).
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(br#"{"v":1,"seq":"#)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = rest.split_at_checked(digits)?;
        if number.first() == Some(&b'0') && number.len() > 1 {
            return None;
        }
        let seq = std::str::from_utf8(number).ok()?.parse().ok()?;
        let rest = rest.strip_prefix(br#","prev":""#)?;
        let (prev, rest) = rest.split_at_checked(64)?;
        let prev = Hash::parse(prev)?;
        let rest = rest.strip_prefix(br#"","time":""#)?;
        let time = rest.iter().take(40).position(|byte| *byte == b'"')?;
        let rest = rest.get(time..)?.strip_prefix(br#"","kind":""#)?;
        let end = rest.iter().take(40).position(|byte| *byte == b'"')?;
        let kind = std::str::from_utf8(rest.get(..end)?).ok()?;
        (line.last() == Some(&b'}')).then_some(Link { seq, prev, kind })
    }
}

/// Writes compact JSON and notes whether a text may be too long, which saves a second pass.
#[derive(Debug, Default)]
struct Measured {
    length: usize,
    found_long: bool,
}

impl Formatter for &mut Measured {
    fn begin_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.length = 0;
        writer.write_all(b"\"")
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.found_long |= self.length > MAXIMUM_CHARACTERS;
        writer.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        self.length = self.length.saturating_add(fragment.len());
        writer.write_all(fragment.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        self.length = self.length.saturating_add(1);
        CompactFormatter.write_char_escape(writer, escape)
    }
}

/// Cuts long texts and keys, and notes where.
fn cut(value: &mut Value, at: &mut String, truncated: &mut Vec<Truncated>, depth: usize) {
    if depth > MAXIMUM_DEPTH {
        *value = json!("[nested too deeply]");
        return;
    }
    let deeper = depth.saturating_add(1);
    let length = at.len();
    match value {
        Value::String(text) => {
            if let Some(note) = cut_text(text, at) {
                truncated.push(note);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                at.push('/');
                at.push_str(&index.to_string());
                cut(item, at, truncated, deeper);
                at.truncate(length);
            }
        }
        Value::Object(fields) => {
            let long: Vec<String> =
                fields.keys().filter(|name| name.chars().nth(MAXIMUM_CHARACTERS).is_some()).cloned().collect();
            for name in long {
                if let Some(value) = fields.remove(&name) {
                    let mut short = name;
                    // The place of a cut key is that of its object; two cut keys differ by their digest.
                    if let Some(note) = cut_text(&mut short, at) {
                        short.push_str(&format!(" {}", note.sha256));
                        truncated.push(note);
                    }
                    fields.insert(short, value);
                }
            }
            for (name, item) in fields.iter_mut() {
                at.push('/');
                at.push_str(&name.replace('~', "~0").replace('/', "~1"));
                cut(item, at, truncated, deeper);
                at.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Cuts one text if it is too long.
fn cut_text(text: &mut String, at: &str) -> Option<Truncated> {
    let (end, _) = text.char_indices().nth(MAXIMUM_CHARACTERS)?;
    let note = Truncated {
        at: at.to_owned(),
        characters: u64::try_from(text.chars().count()).unwrap_or(u64::MAX),
        sha256: Hash::of(text.as_bytes()),
    };
    text.truncate(end);
    text.push_str(CUT);
    Some(note)
}

/// Any value that can be written, as the bytes that are signed or authenticated.
pub(crate) fn statement<T: Serialize>(title: &str, value: &T) -> Result<Vec<u8>, AuditError> {
    let mut bytes = title.as_bytes().to_vec();
    bytes.push(b'\n');
    serde_json::to_writer(&mut bytes, value)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{EntryBody, LogEntry, RanWithoutVerdict};
    use callgate_model::clock::Timestamp;

    fn record(input: Value) -> Record {
        let body =
            EntryBody::RanWithoutVerdict(RanWithoutVerdict { tool: "Bash".into(), input, reason: "hook lost".into() });
        Record::new(body).call("c-1").session("s")
    }

    fn written(input: Value) -> (Vec<u8>, LogEntry) {
        let mut line = Vec::new();
        let hash = EncodedRecord::of(&record(input)).unwrap().write_to(
            &mut line,
            7,
            &Hash::of(b"x"),
            &Timestamp::now_precise().precise(),
        );
        assert_eq!(line.pop(), Some(b'\n'));
        assert_eq!(hash, Hash::of(&line));
        let entry = serde_json::from_slice(&line).unwrap();
        (line, entry)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (line, entry) = written(json!({"command": "ls"}));
        let link = Link::parse(&line).unwrap();
        assert_eq!((link.seq, link.prev, link.kind), (7, Hash::of(b"x"), "ran_without_verdict"));
        assert_eq!(entry.record, record(json!({"command": "ls"})));
        assert_eq!(entry.seq, 7);
        assert!(entry.truncated.is_empty());
    }

    #[test]
    fn texts_of_more_than_500_characters_are_cut_and_carry_length_and_digest() {
        let fits = "é".repeat(500);
        let long = "é".repeat(501);
        let (line, entry) = written(json!({"fits": fits, "a/b": [{"long": long}]}));
        let value: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["input"]["fits"], json!(fits));
        assert_eq!(value["input"]["a/b"][0]["long"], json!(format!("{fits}...[truncated]")));
        assert_eq!(
            entry.truncated,
            [Truncated { at: "/input/a~1b/0/long".into(), characters: 501, sha256: Hash::of(long.as_bytes()) }]
        );
        assert!(Link::parse(&line).is_some(), "the kind still comes first");
    }

    #[test]
    fn a_huge_input_becomes_a_digest_and_never_a_huge_line() {
        let items: Vec<String> = (0..100_000).map(|index| format!("item {index}")).collect();
        let (line, entry) = written(json!({"items": items}));
        assert!(line.len() < 2_000, "{}", line.len());
        let EntryBody::RanWithoutVerdict(body) = entry.record.body else { panic!() };
        assert!(body.input["omitted"]["bytes"].as_u64().unwrap() > 1_000_000);
        let keys: serde_json::Map<_, _> =
            (0..50).map(|index| (format!("{index}{}", "k".repeat(600)), json!(1))).collect();
        let (line, entry) = written(Value::Object(keys));
        assert!(line.len() < 100_000);
        assert_eq!(entry.truncated.len(), 50);
    }

    #[test]
    fn only_the_fixed_beginning_links() {
        let (line, _) = written(json!({}));
        let text = String::from_utf8(line).unwrap();
        for broken in [
            text.replacen("{\"v\":1", "{\"v\": 1", 1),
            text.replacen("\"seq\":7", "\"seq\":07", 1),
            text.replacen("\"seq\":7", "\"seq\":-7", 1),
            text.replacen("\"seq\":7", "\"seq\":99999999999999999999", 1),
            text.replacen("\"prev\"", "\"prev \"", 1),
            text[..text.len() - 1].to_owned(),
            String::new(),
        ] {
            assert_eq!(Link::parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn a_torn_line_starts_like_the_one_that_was_due() {
        let (line, _) = written(json!({}));
        let prev = Hash::of(b"x");
        for length in 1..line.len() {
            assert!(is_torn_start(&line[..length], 7, &prev));
        }
        assert!(!is_torn_start(b"{\"v\":2", 7, &prev));
        assert!(!is_torn_start(&line, 8, &prev));
        assert!(!is_torn_start(&line, 7, &Hash::NONE));
        assert!(!is_torn_start(b"garbage", 7, &prev));
    }
}
