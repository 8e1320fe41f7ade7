//! The hash that chains entries.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A SHA-256. An entry's hash is that of its line, byte for byte, without the line's end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// What stands where the first entry's predecessor would.
    pub const NONE: Hash = Hash([0; 32]);

    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Hash(Sha256::digest(bytes).into())
    }

    /// Reads 64 hexadecimal digits, lower case only: one hash has one spelling.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Hash(bytes))
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
        let mut digits = [0; 64];
        // 32 bytes fit into 64 digits
        let _ = hex::encode_to_slice(self.0, &mut digits);
        buffer.extend_from_slice(&digits);
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digits = [0; 64];
        // 32 bytes fit into 64 digits, and digits are text
        let _ = hex::encode_to_slice(self.0, &mut digits);
        serializer.serialize_str(std::str::from_utf8(&digits).unwrap_or_default())
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
