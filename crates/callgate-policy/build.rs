//! Names this build of the policy compiler, so that a stored policy of another one is not used.

use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    for directory in ["src", "policies"] {
        println!("cargo:rerun-if-changed={directory}");
        collect(Path::new(directory), &mut files);
    }
    files.sort();
    // FNV-1a: this tells builds apart, it keeps nobody out.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        for byte in std::fs::read(&file).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=CALLGATE_POLICY_BUILD={hash:016x}");
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
