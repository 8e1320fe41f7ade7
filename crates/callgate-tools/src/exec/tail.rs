//! Keeps the end of what a program prints.

use std::collections::VecDeque;

use base64::Engine;
use serde_json::{Map, Value};

/// What stands in front of output of which the beginning is missing.
const CUT: &str = "...<truncated>\n";

/// The last bytes of a stream, at most as many as it was made for.
#[derive(Debug)]
pub struct Tail {
    bytes: VecDeque<u8>,
    limit: usize,
    cut: bool,
}

impl Tail {
    /// An empty one that keeps `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Tail { bytes: VecDeque::new(), limit, cut: false }
    }

    /// Adds what was printed.
    pub fn push(&mut self, printed: &[u8]) {
        let kept = printed.get(printed.len().saturating_sub(self.limit)..).unwrap_or_default();
        let over = self.bytes.len().saturating_add(kept.len()).saturating_sub(self.limit);
        self.cut |= over > 0 || kept.len() < printed.len();
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// Takes what is there, and at most `limit` bytes of it.
    pub fn take(&mut self, limit: usize) -> Output {
        let over = self.bytes.len().saturating_sub(limit);
        let cut = self.cut || over > 0;
        self.cut = false;
        let mut bytes: Vec<u8> = std::mem::take(&mut self.bytes).into();
        bytes.drain(..over);
        if cut {
            // a character may have been cut in two
            let broken = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
            bytes.drain(..broken);
        }
        Output { bytes, cut }
    }
}

/// What a program printed, or the end of it.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    /// Whether the beginning is missing.
    pub cut: bool,
}

impl Output {
    /// As text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        if self.cut && !text.is_empty() { format!("{CUT}{text}") } else { text.into_owned() }
    }

    /// Adds the bytes themselves to `data` if the text is not the same.
    pub fn keep_apart(&self, name: &str, data: &mut Map<String, Value>) {
        if std::str::from_utf8(&self.bytes).is_err() {
            let bytes = base64::engine::general_purpose::STANDARD.encode(&self.bytes);
            data.insert(format!("{name}_base64"), Value::String(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_said_to_be_one() {
        let mut tail = Tail::new(8);
        tail.push(b"0123");
        tail.push(b"4567");
        let whole = tail.take(8);
        assert_eq!((whole.text().as_str(), whole.cut), ("01234567", false));
        tail.push(b"0123456789");
        assert_eq!(tail.take(8).text(), "...<truncated>\n23456789");
        tail.push("aäöü".as_bytes());
        assert_eq!(tail.take(3).text(), "...<truncated>\nü");
        assert_eq!(tail.take(8).text(), "");
        tail.push(&[b'a', 0xff]);
        let output = tail.take(8);
        let mut data = Map::new();
        output.keep_apart("stdout", &mut data);
        assert_eq!((output.text().as_str(), data.get("stdout_base64")), ("a\u{fffd}", Some(&Value::from("Yf8="))));
    }
}
