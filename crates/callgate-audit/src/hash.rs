//! The hash that chains entries.

use std::fmt;

use callgate_model::digest::{from_hex, hex, sha256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A SHA-256. An entry's hash is that of its line, byte for byte, without the line's end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The predecessor of the first entry.
    pub const NONE: Hash = Hash([0; 32]);

    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Hash(sha256(bytes))
    }

    /// Reads 64 hexadecimal digits, lower case only: one hash has one spelling.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        from_hex(text).map(Hash)
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Hash(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Writes the 64 digits to the end of a buffer.
    pub(crate) fn write_to(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(hex(&self.0).as_bytes());
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Hash::parse(text.as_bytes()).ok_or_else(|| serde::de::Error::custom("no SHA-256 in lower case hexadecimal"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hash_has_one_spelling() {
        let hash = Hash::of(b"abc");
        let text = hash.to_string();
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Hash::parse(text.as_bytes()), Some(hash));
        assert_eq!(Hash::parse(text.to_uppercase().as_bytes()), None);
        assert_eq!(Hash::parse(&text.as_bytes()[1..]), None);
        assert_eq!(Hash::parse(b""), None);
    }
}
