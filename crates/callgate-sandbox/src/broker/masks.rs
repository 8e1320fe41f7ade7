//! The file mode masks of contained programs, with which their files are made.

use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

/// How long a mask is remembered: far shorter than it takes to give the number of an ended process to another one.
const REMEMBERED: Duration = Duration::from_millis(200);

/// The mask of the thread that made a file last.
///
/// Only `/proc/PID/status` tells it, and reading that takes as long as everything else that making a file needs. A program often makes
/// many files, one after the other.
#[derive(Debug, Default)]
pub struct Masks {
    last: Option<(i32, u32, Instant)>,
}

impl Masks {
    /// Forgets the mask, because a program sets one. `umask` passes the broker for this, and waits until this is done.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// The mask of a thread.
    pub fn of(&mut self, thread: i32) -> Mode {
        if let Some((of, mask, since)) = self.last
            && of == thread
            && since.elapsed() < REMEMBERED
        {
            return Mode::from_raw_mode(mask);
        }
        let status = read_status(thread).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let mask = field("Umask:").and_then(|text| u32::from_str_radix(text, 8).ok()).unwrap_or(0o077);
        // Another thread of the same process could set its mask between this and the next file.
        let alone = field("Threads:") == Some("1");
        self.last = alone.then(|| (thread, mask, Instant::now()));
        Mode::from_raw_mode(mask)
    }
}

fn read_status(thread: i32) -> Option<String> {
    let path = format!("/proc/{thread}/status");
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0_u8; 4096];
    let length = rustix::io::read(&file, &mut buffer).ok()?;
    // The program chooses its own name, which may be anything but has no end of line in it.
    Some(String::from_utf8_lossy(buffer.get(..length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_remembered_for_the_thread_that_it_belongs_to_until_it_is_forgotten() {
        let mut masks = Masks { last: Some((7, 0o027, Instant::now())) };
        assert_eq!(masks.of(7), Mode::from_raw_mode(0o027));
        let own = i32::try_from(std::process::id()).unwrap();
        let real = masks.of(own);
        // this process has several threads
        assert_eq!(masks.last, None);
        masks.last = Some((own, real.as_raw_mode() ^ 0o7, Instant::now()));
        assert_ne!(masks.of(own), real);
        masks.forget();
        assert_eq!(masks.of(own), real);
        // no such process: nobody else gets anything
        assert_eq!(masks.of(i32::MAX), Mode::from_raw_mode(0o077));
    }
}
