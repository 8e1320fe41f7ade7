//! Tells the user that a question waits: a desktop notification or a command of the user's choice, and the bell of the terminal.
//!
//! Nothing here can delay a question or change its answer: whatever fails is ignored. In CI nobody looks, so nothing is sent.

use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use callgate::approvals::{Answer, ApprovalId, Approver, AskError, Question};
use callgate::policy::{NotifyText, Policy};
use callgate::show::visible;

/// How long a notification may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether it is done.
const LOOK: Duration = Duration::from_millis(50);
/// The longest text, in characters.
const LONGEST: usize = 100;
const TITLE: &str = "callgate: a question waits";

/// Sends one notification for a question.
#[derive(Debug, Clone, Default)]
pub struct Notifier {
    way: Way,
    last: Arc<Mutex<Option<ApprovalId>>>,
}

/// How it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Way {
    Off,
    /// Only the bell.
    #[default]
    Bell,
    /// A program with these arguments in front of title and text; with `markup`, the text may not contain any.
    Program {
        words: Vec<String>,
        markup: bool,
    },
}

impl Notifier {
    /// What the policy's trusted files say; the desktop if they say nothing.
    pub fn of(policy: &Policy) -> Self {
        let wish = policy.approval_rules().and_then(|section| section.notify);
        let variable = |name: &str| std::env::var(name).ok();
        let program = |path: &str| Path::new(path).exists();
        Notifier { way: way(wish, &variable, &program), last: Arc::default() }
    }

    /// Notifies about a question, once.
    pub fn notify(&self, question: &Question) {
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if self.way == Way::Off || last.as_ref() == Some(&question.id) {
                return;
            }
            *last = Some(question.id.clone());
        }
        self.ring();
        let Way::Program { words, markup } = &self.way else { return };
        let Some((program, arguments)) = words.split_first() else { return };
        let text = text(question, *markup);
        let guard = crate::guard::words();
        let mut words = guard.into_iter().chain([program.into()]).chain(arguments.iter().map(Into::into));
        let started = Command::new(words.next().unwrap_or_default())
            .args(words)
            .args([TITLE, &text])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        if let Ok(child) = started {
            std::thread::spawn(move || reap(child));
        }
    }

    /// Rings the bell of the terminal at which a question appears.
    pub fn ring(&self) {
        let mut terminal = std::io::stderr();
        if self.way != Way::Off && terminal.is_terminal() {
            drop(terminal.write_all(b"\x07"));
        }
    }
}

/// Waits for the end of a notification; one that hangs is ended.
fn reap(mut child: Child) {
    let begun = Instant::now();
    while let Ok(None) = child.try_wait() {
        if begun.elapsed() > PATIENCE {
            drop(child.kill());
            drop(child.wait());
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn way(wish: Option<NotifyText>, variable: &dyn Fn(&str) -> Option<String>, exists: &dyn Fn(&str) -> bool) -> Way {
    let set = |name: &str| variable(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    if set("CI") {
        return Way::Off;
    }
    let desktop = || {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        // Programs of the system, not of whatever PATH the agent has.
        if cfg!(target_os = "macos") && exists("/usr/bin/osascript") {
            let script = "display notification (item 2 of argv) with title (item 1 of argv)";
            let words = words(&["/usr/bin/osascript", "-e", "on run argv", "-e", script, "-e", "end run"]);
            return Way::Program { words, markup: false };
        }
        let shown = set("DISPLAY") || set("WAYLAND_DISPLAY");
        let program = ["/usr/bin/notify-send", "/usr/local/bin/notify-send"].into_iter().find(|path| exists(path));
        match program.filter(|_| shown) {
            Some(program) => Way::Program { words: words(&[program, "--app-name=callgate", "--"]), markup: true },
            None => Way::Bell,
        }
    };
    match wish {
        Some(NotifyText::Off) => Way::Off,
        Some(NotifyText::Bell) => Way::Bell,
        Some(NotifyText::Command(words)) => Way::Program { words, markup: false },
        Some(NotifyText::Desktop) | None => desktop(),
    }
}

/// The question in a few words, without secrets.
fn text(question: &Question, markup: bool) -> String {
    let agent = question.agent.as_deref().map(|agent| format!("{agent}, ")).unwrap_or_default();
    let whole = visible(&format!("{agent}{}: {}", question.tool, question.reason));
    let mut text: String = whole.chars().take(LONGEST).collect();
    if text.len() < whole.len() {
        text.push('…');
    }
    if markup { text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;") } else { text }
}

/// Notifies before somebody at this process's terminal is asked.
pub struct Notifying {
    /// Who is asked.
    pub who: Arc<dyn Approver>,
    /// How the user learns of it.
    pub notifier: Notifier,
}

impl Approver for Notifying {
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        if std::fs::File::open("/dev/tty").is_ok() {
            self.notifier.notify(question);
        }
        self.who.ask(question, open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_desktop_needs_a_display_and_ci_is_silent() {
        let of = |wish: Option<NotifyText>, set: &'static [(&str, &str)]| {
            let variable =
                |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            way(wish, &variable, &|path| path == "/usr/bin/notify-send")
        };
        let command = || Some(NotifyText::Command(vec!["/bin/x".to_owned()]));
        let sent = |way: Way| matches!(way, Way::Program { .. });
        assert!(
            sent(of(None, &[("DISPLAY", ":0")])) && sent(of(Some(NotifyText::Desktop), &[("WAYLAND_DISPLAY", "w")]))
        );
        assert_eq!(of(None, &[]), Way::Bell);
        assert!(sent(of(command(), &[])) && sent(of(command(), &[("CI", "false")])));
        assert_eq!(of(command(), &[("CI", "true")]), Way::Off);
        assert_eq!(of(Some(NotifyText::Off), &[("DISPLAY", ":0")]), Way::Off);
    }
}
