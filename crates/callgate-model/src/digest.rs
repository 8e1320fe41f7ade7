//! SHA-256 digests, as bytes and in hexadecimal.

use sha2::{Digest, Sha256};

/// The SHA-256 digest of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The SHA-256 digest of `bytes` in lower-case hexadecimal.
///
/// ```
/// assert!(callgate_model::digest::sha256_hex(b"").starts_with("e3b0c442"));
/// ```
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(sha256(bytes))
}
