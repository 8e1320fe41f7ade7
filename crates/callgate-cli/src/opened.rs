//! What can be opened of a fence for one call, after something was held back.

use std::path::PathBuf;

use callgate::fence::{Fence, Globs, HeldBack, Network, SharedPath};
use callgate::policy::PathList;

/// How secrets stand in the log.
pub const REDACTED: &str = "[redacted: ";
const RUNS_OUTSIDE: &str = "something outside runs this file by itself; write it outside the sandbox";

/// Something that a fence can open for one call.
#[derive(Debug, PartialEq, Eq)]
pub enum Addition {
    Host(String),
    /// A file outside the roots.
    Outside(PathBuf),
    /// A protected path inside them.
    Protected(PathBuf),
}

/// What has to be opened for something that was held back; otherwise why nothing can be.
pub fn addition(held: &HeldBack, fence: &Fence) -> Result<Addition, &'static str> {
    if held.target.contains(REDACTED) {
        return Err("the log has it without its secrets");
    }
    match held.by.as_str() {
        // One name or address, never what means several of them.
        "network" => {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]".contains(letter);
            let is_host = held.target.chars().all(plain) && !["", "all", "none"].contains(&held.target.as_str());
            is_host.then(|| Addition::Host(held.target.clone())).ok_or("this is not the name of one host")
        }
        "protected" | "files" => of_file(held, fence),
        "secrets" => Err("files that may hold secrets are hidden from contained calls"),
        "sockets" => Err("services of this machine are out of reach"),
        _ => Err("contained calls have no use for this"),
    }
}

fn of_file(held: &HeldBack, fence: &Fence) -> Result<Addition, &'static str> {
    let path = PathBuf::from(&held.target);
    let is_in = |globs: &Globs| PathList::new(globs.iter(), None).matches(&path);
    if is_in(&fence.own) {
        return Err("contained calls never change callgate's own files");
    }
    match (is_in(&fence.hidden), held.by == "protected") {
        (false, true) => return Ok(Addition::Protected(path)),
        (true, true) => return Err(RUNS_OUTSIDE),
        (true, false) => return Err("contained calls do not change files that may hold secrets"),
        (false, false) if is_in(&fence.protected) => return Err(RUNS_OUTSIDE),
        (false, false) => {}
    }
    let parent_is_there = path.parent().is_some_and(|parent| parent.canonicalize().is_ok_and(|real| real == parent));
    let is_file = path.symlink_metadata().map_or(parent_is_there, |data| data.is_file());
    if held.action == "write" && parent_is_there && is_file {
        Ok(Addition::Outside(path))
    } else {
        Err("outside the directories that it may change; `boundary: {roots: …}` in the policy adds one")
    }
}

/// Opens it.
pub fn open(fence: &mut Fence, addition: Addition) {
    match addition {
        Addition::Host(host) => match &mut fence.network {
            Network::All => {}
            Network::Hosts(hosts) => hosts.push(host),
            none @ Network::None => *none = Network::Hosts(vec![host]),
        },
        Addition::Outside(path) => fence.shared.push(SharedPath { path, writable: true, redirected: true }),
        Addition::Protected(path) => fence.allowed.push(path),
    }
}
