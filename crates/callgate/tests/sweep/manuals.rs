//! The options on the manual pages of the programs that are swept.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::manual;

/// Where pages may be: in the root of the programs, and where `cargo xtask setup` unpacks them.
pub struct Manuals {
    folders: Vec<PathBuf>,
}

impl Manuals {
    pub fn below(root: &Path) -> Self {
        let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("manuals");
        let packages = std::fs::read_dir(unpacked).into_iter().flatten().flatten().map(|entry| entry.path());
        Manuals {
            folders: std::iter::once(root.to_owned())
                .chain(packages)
                .map(|folder| folder.join("usr/share/man"))
                .collect(),
        }
    }

    /// The options of the page for these words: `git log` has the page `git-log`.
    pub fn options(&self, front: &str) -> Vec<String> {
        let page = front.replace(' ', "-");
        let files = self.folders.iter().flat_map(|folder| {
            let page = &page;
            ["1", "8", "6"].into_iter().map(move |section| folder.join(format!("man{section}/{page}.{section}.gz")))
        });
        let text = files.filter_map(|file| read(&file)).next().unwrap_or_default();
        let items = manual::items(&text).into_iter().flat_map(|item| item.options);
        items.map(|(name, _)| name).collect()
    }
}

fn read(file: &Path) -> Option<String> {
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(file).ok()?).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}
