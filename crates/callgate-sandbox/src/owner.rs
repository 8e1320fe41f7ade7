//! Processes by number and start, and the one whose end ends what was started in the background: the agent or the terminal.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags};

/// A process, told apart from a later one with the same number by when it started.
pub type ProcessIdentity = (u32, u64);

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, Copy)]
pub struct Stat {
    /// Whether it has ended, and nobody has asked how.
    pub ended: bool,
    /// The process that started it, or took it over.
    pub parent: u32,
    /// The leader of its session.
    pub session: u32,
    /// Its terminal; zero if it has none.
    pub terminal: i32,
    /// When it started, in clock ticks since the machine did.
    pub started: u64,
}

/// What the kernel says of a process.
pub fn stat(process: u32) -> Option<Stat> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(format!("/proc/{process}/stat"), flags, Mode::empty()).ok()?;
    // It is one line of some 300 bytes, which the kernel gives at once to who asks for enough. Asking for its size, which it does not
    // have, makes seven calls out of one, and this looks at every process above.
    let mut text = [0_u8; 2048];
    let length = rustix::io::read(&file, &mut text).ok()?;
    let text = text.get(..length)?;
    // The name in parentheses may contain anything, so what follows the last one is counted.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(end.checked_add(1)?..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        terminal: fields.get(4)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// The session that this process belongs to: who leads the terminal's session, or, for a process that was put into a session of its
/// own as agents do with their commands, the nearest process above that was not.
pub fn owner() -> Option<ProcessIdentity> {
    let own = stat(std::process::id())?;
    let mut above = Vec::new();
    let mut next = own.parent;
    while next > 1 && above.len() < 1000 {
        let Some(found) = stat(next) else { break };
        let (process, parent) = (next, found.parent);
        above.push((process, found));
        next = parent;
    }
    let leader = || above.iter().find(|(process, _)| *process == own.session);
    let elsewhere = || above.iter().find(|(_, stat)| stat.session != own.session);
    let found = if own.terminal == 0 { elsewhere().or_else(leader) } else { leader().or_else(elsewhere) };
    found.or_else(|| above.last()).map(|(process, stat)| (*process, stat.started))
}

/// A descriptor that becomes readable when a process ends; an error if it has ended already.
pub fn watch((process, started): ProcessIdentity) -> io::Result<OwnedFd> {
    let ended = || io::Error::other("the session has ended");
    let number = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or_else(ended)?;
    let watched = rustix::process::pidfd_open(number, PidfdFlags::empty())?;
    // The number may belong to another process by now; once it is held it cannot change.
    if stat(process).is_some_and(|stat| stat.started == started) { Ok(watched) } else { Err(ended()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_above_is_the_owner() {
        let owner = owner().unwrap();
        assert_ne!(owner.0, std::process::id());
        assert!(watch(owner).is_ok());
        assert!(watch((owner.0, owner.1 + 1)).is_err(), "another process with the same number");
        assert!(watch((0, 0)).is_err());
    }
}
