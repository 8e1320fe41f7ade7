//! The directory in which a contained shell ends, for a shell outside that follows it there.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use callgate::fence::Fence;
use callgate_model::quote::shell_word;
use callgate_sandbox::LEFT;

/// The text, and then where it ends. A command that ends its shell says nothing, as with agents that ask their shells.
pub fn telling_where_it_ends(text: &str) -> String {
    format!("eval {}\nset -- \"$?\"; {{ pwd -P >| {LEFT}; }} 2>/dev/null; exit \"$1\"", shell_word(text))
}

/// Tells the agent's shell where the contained one ended. Whatever that says is a name and nothing more; one that is not a directory in
/// a root is the directory in which it began.
pub fn hand_back(descriptor: u32, outcome: &callgate_sandbox::Outcome, fence: &Fence, began: &Path) {
    let usable = |path: &&PathBuf| {
        path.to_str().is_some_and(|text| !text.contains(char::is_control))
            && path.canonicalize().is_ok_and(|real| real == **path && real.is_dir())
            && fence.roots.iter().any(|root| path.starts_with(root))
    };
    let directory = outcome.left.as_ref().filter(usable).map_or(began, PathBuf::as_path);
    // A shell that does not listen stays where it is.
    let _ = std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/self/fd/{descriptor}"))
        .and_then(|mut file| file.write_all(directory.as_os_str().as_bytes()));
}
