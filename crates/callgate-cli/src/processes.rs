//! Processes by number and start, from `/proc`: a number alone may be given to another process.

use callgate_sandbox::owner::stat;
use serde::{Deserialize, Serialize};

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    id: u32,
    /// When it started, in clock ticks since the machine did.
    started: u64,
}

/// Processes above this one that are looked at.
const MOST: usize = 256;

/// The id of this run of the machine: numbers and times of processes mean nothing in another one.
pub fn boot() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}

/// The namespace in which processes have their numbers: in another one, the same numbers are other processes.
pub fn namespace() -> Option<String> {
    std::fs::read_link("/proc/self/ns/pid").ok()?.into_os_string().into_string().ok()
}

impl Process {
    /// This process.
    pub fn own() -> Option<Self> {
        Self::numbered(std::process::id())
    }

    /// The processes above this one, the nearest first.
    pub fn ancestors() -> Vec<Self> {
        let above = |id: &u32| stat(*id).map(|found| found.parent).filter(|parent| *parent != 0);
        let numbers = std::iter::successors(above(&std::process::id()), above);
        numbers.take(MOST).map_while(Self::numbered).collect()
    }

    fn numbered(id: u32) -> Option<Self> {
        Some(Process { id, started: stat(id)?.started })
    }

    fn is_alive(self) -> bool {
        stat(self.id).is_some_and(|found| found.started == self.started && !found.ended)
    }

    /// Of the processes above one that has ended, the one that called it: the nearest that still lives. A shell that was started only
    /// for that call has ended with it; `None` if one that was there before has ended, too.
    pub fn caller(called: Process, above: &[Process]) -> Option<Self> {
        for process in above {
            if process.is_alive() {
                return Some(*process);
            }
            if called.started.saturating_sub(process.started) > SHORT {
                return None;
            }
        }
        None
    }
}

/// How long before a hook a shell may start that is only there to start the hook, in clock ticks: a second.
const SHORT: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_number_and_start() {
        let own = Process::own().unwrap();
        let above = Process::ancestors();
        assert!(own.is_alive() && !above.is_empty() && !above.contains(&own));
        assert!(!Process { started: own.started + 1, ..own }.is_alive());
    }

    #[test]
    fn the_caller_is_the_nearest_that_lives() {
        let own = Process::own().unwrap();
        let gone = |before: u64| Process { id: own.id, started: own.started - before };
        assert_eq!(Process::caller(own, &[own]), Some(own));
        assert_eq!(Process::caller(own, &[gone(1), gone(2), own]), Some(own));
        assert_eq!(Process::caller(own, &[gone(SHORT + 1), own]), None);
        assert_eq!(Process::caller(own, &[]), None);
    }
}
