//! Gathers `programs/*.prog` into one sorted list that the crate includes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)?
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "prog"))
        .collect();
    files.sort();
    let mut source = String::from("&[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        writeln!(source, "    ({name:?}, include_str!({:?})),", file.canonicalize()?.display().to_string())?;
    }
    source.push(']');
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("programs.rs"), source)?;
    Ok(())
}
