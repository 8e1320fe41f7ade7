//! SHA-256 digests, as bytes and in hexadecimal.

use sha2::{Digest, Sha256};

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes that hexadecimal digits of either case stand for; `None` if `text` is anything else.
///
/// ```
/// use callgate_model::digest::{hex, unhex};
///
/// assert_eq!(unhex("00fF").map(|bytes| hex(&bytes)).as_deref(), Some("00ff"));
/// assert_eq!(unhex("0"), None);
/// ```
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |character: u8| u8::try_from(char::from(character).to_digit(16)?).ok();
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

/// The SHA-256 digest of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The SHA-256 digest of several pieces one after the other, in lower-case hexadecimal.
pub fn sha256_hex_of<B: AsRef<[u8]>>(pieces: impl IntoIterator<Item = B>) -> String {
    let mut hasher = Sha256::new();
    for piece in pieces {
        hasher.update(piece);
    }
    hex(&hasher.finalize())
}

/// The SHA-256 digest of `bytes` in lower-case hexadecimal.
///
/// ```
/// assert!(callgate_model::digest::sha256_hex(b"").starts_with("e3b0c442"));
/// ```
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(bytes))
}
