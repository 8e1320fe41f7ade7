//! The hash of names, by which programs and options are found. `build.rs` uses this file, too.

/// FNV-1a: names are short, and nobody from outside chooses which are in a table.
pub fn hash(name: &str) -> usize {
    let mut hash = 0x811c_9dc5_u32;
    for byte in name.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    // The low bits of a product know nothing of the high ones.
    (hash ^ (hash >> 15)) as usize
}
