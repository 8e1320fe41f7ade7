//! The command on a real terminal, made by `script`.

#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    reason = "each test uses a part of it, and says what is missing by failing"
)]

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a text may take to appear before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command on a terminal of its own.
pub struct OnTerminal {
    child: Child,
    keyboard: Option<ChildStdin>,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    /// How much of the screen was looked at.
    seen: usize,
}

#[derive(Default)]
struct Screen {
    bytes: Vec<u8>,
    closed: bool,
}

impl OnTerminal {
    /// Starts callgate with the directory and the variables of `base` on a terminal with so many columns.
    pub fn new(base: &Command, columns: u16, arguments: &str) -> Self {
        let command = format!("stty cols {columns} rows 24; exec {} {arguments}", env!("CARGO_BIN_EXE_callgate"));
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).env_clear();
        script.envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.current_dir(base.get_current_dir().expect("a directory"));
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is installed");
        let (keyboard, mut output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let screen: Arc<(Mutex<Screen>, Condvar)> = Arc::default();
        let shared = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0_u8; 4096];
            loop {
                let count = output.read(&mut buffer).unwrap_or(0);
                let (screen, changed) = &*shared;
                let mut screen = screen.lock().expect("no reader failed");
                screen.bytes.extend(buffer.iter().take(count));
                screen.closed = count == 0;
                changed.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        OnTerminal { child, keyboard, screen, seen: 0 }
    }

    /// What is shown up to some text, as far as it was not looked at before.
    pub fn shown_until(&mut self, end: &str) -> String {
        self.shown_within(PATIENCE, end).unwrap_or_else(|shown| panic!("no {end:?} in {shown:?}"))
    }

    /// The same, or what is shown instead after some time or at the end.
    pub fn shown_within(&mut self, time: Duration, end: &str) -> Result<String, String> {
        let until = Instant::now() + time;
        let (screen, changed) = &*self.screen;
        let mut screen = screen.lock().expect("the reader did not fail");
        loop {
            let new = screen.bytes.get(self.seen..).unwrap_or_default();
            let found = new.windows(end.len()).position(|window| window == end.as_bytes());
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
            if let Some(start) = found {
                let length = start + end.len();
                self.seen += length;
                return Ok(text(new.get(..length).unwrap_or_default()));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || screen.closed {
                return Err(text(new));
            }
            screen = changed.wait_timeout(screen, left).expect("the reader did not fail").0;
        }
    }

    /// Types a text.
    pub fn types(&mut self, text: &str) {
        self.keyboard.as_mut().expect("a pipe").write_all(text.as_bytes()).expect("typed");
    }

    /// Waits for the end: the exit code, and what was shown that was not looked at before.
    pub fn ends(mut self) -> (i32, String) {
        let (screen, changed) = &*self.screen;
        let screen = screen.lock().expect("the reader did not fail");
        let (screen, late) =
            changed.wait_timeout_while(screen, PATIENCE, |screen| !screen.closed).expect("the reader did not fail");
        let rest = String::from_utf8_lossy(screen.bytes.get(self.seen..).unwrap_or_default()).replace("\r\n", "\n");
        assert!(!late.timed_out(), "it does not end: {rest}");
        drop(screen);
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        (code, rest)
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // The end of `script` closes the terminal, which ends what runs on it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
