//! Proof that an installed hook works: it is started exactly as the agent would, with calls of which one must pass and
//! others must not.

use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::sighting::CANARY_SESSION;

/// A hook that has not answered a harmless call by then does not work.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than this is no answer.
const LONGEST_ANSWER: u64 = 1024 * 1024;

/// A call that must pass.
pub const HARMLESS: &str = "ls";
/// A call that must not.
pub const HARMFUL: &str = "cat ~/.ssh/id_rsa";
/// What no hook understands: it must be refused under every policy.
const DAMAGED: &str = "{\"hook_event_name\":\"PreToolUse\",\"tool_name\":";

/// How an agent starts its hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A program with arguments.
    Program(Vec<String>),
    /// A line that this shell reads.
    Shell(&'static str, String),
}

/// How an agent understands what its hook says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// `hookSpecificOutput.permissionDecision`, or exit code 2.
    ClaudeLike,
    /// The same, and silence is refused.
    Explicit,
    /// `decision`, or exit code 2.
    Decision,
    /// `permissionDecision`, or exit code 2.
    PermissionDecision,
    /// `permission`, or exit code 2. Silence is refused.
    Permission,
    /// Exit code 0 or 2 alone; `decision` where it is 0.
    ExitCode,
    /// Exit code 0 allows, 1 asks, more denies.
    Delegate,
}

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// The shell command.
    pub command: &'a str,
    /// Where.
    pub directory: &'a Path,
}

impl Probe<'_> {
    /// The directory as text.
    pub fn place(&self) -> String {
        self.directory.to_string_lossy().into_owned()
    }

    /// What many agents send before a shell tool runs.
    pub fn tool_event(&self, event: &str, tool: &str) -> Value {
        json!({
            "session_id": CANARY_SESSION,
            "cwd": self.place(),
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": { "command": self.command },
            "tool_use_id": "callgate-canary",
        })
    }
}

/// How a hook is tried out.
#[derive(Debug, Clone)]
pub struct Canary {
    /// How it is started.
    pub start: Start,
    /// What the agent sets in its environment.
    pub environment: Vec<(&'static str, &'static str)>,
    /// What the agent sends.
    pub payload: fn(&Probe<'_>) -> Value,
    /// How its answer is read.
    pub answers: Answers,
}

/// What the policy in force says of the two calls. Under a policy of one's own even `ls` may be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Whether the harmless call is allowed.
    pub harmless_allowed: bool,
    /// Whether the harmful call is denied.
    pub harmful_denied: bool,
}

impl Default for Expected {
    fn default() -> Self {
        Expected { harmless_allowed: true, harmful_denied: true }
    }
}

/// Why a hook does not work.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// It did not start, or not end.
    #[error("the hook could not be run: {0}")]
    Start(String),
    /// It did not answer as it must.
    #[error("{what} should be {expected}, and the hook answered: {answer}")]
    Answer {
        /// What was tried.
        what: &'static str,
        /// What should have come out.
        expected: &'static str,
        /// What came out.
        answer: String,
    },
}

/// An answer, understood as the agent understands it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Allowed,
    Denied,
    Neither,
}

struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

#[cfg(test)]
impl Canary {
    pub(crate) fn would_allow(&self, output: &callgate_hooks::HookOutput) -> bool {
        self.answers.understand(&Said::from(output)) == Seen::Allowed
    }

    pub(crate) fn would_deny(&self, output: &callgate_hooks::HookOutput) -> bool {
        self.answers.understand(&Said::from(output)) == Seen::Denied
    }
}

#[cfg(test)]
impl From<&callgate_hooks::HookOutput> for Said {
    fn from(output: &callgate_hooks::HookOutput) -> Self {
        let code = Some(output.code.into());
        Said { code, stdout: output.stdout.clone(), stderr: output.stderr.clone() }
    }
}

impl Canary {
    /// Tries it out in a directory; says what was shown.
    pub fn prove(&self, directory: &Path, expected: Expected) -> Result<Vec<&'static str>, CanaryError> {
        let mut shown = Vec::new();
        let payload = |command| (self.payload)(&Probe { command, directory }).to_string();
        if expected.harmless_allowed {
            self.expect(directory, &payload(HARMLESS), "a harmless call (ls)", &Seen::Allowed)?;
            shown.push("`ls` passes");
        }
        if expected.harmful_denied {
            self.expect(directory, &payload(HARMFUL), "a harmful call (cat ~/.ssh/id_rsa)", &Seen::Denied)?;
            shown.push("`cat ~/.ssh/id_rsa` does not");
        }
        self.expect(directory, DAMAGED, "a damaged call", &Seen::Denied)?;
        shown.push("a damaged call does not");
        Ok(shown)
    }

    fn expect(&self, directory: &Path, payload: &str, what: &'static str, wanted: &Seen) -> Result<(), CanaryError> {
        let said = self.run(directory, payload)?;
        if self.answers.understand(&said) == *wanted {
            return Ok(());
        }
        let expected = if *wanted == Seen::Allowed { "allowed" } else { "denied" };
        let answer = format!(
            "exit code {}, {}{}",
            said.code.map_or_else(|| "none".to_owned(), |code| code.to_string()),
            if said.stdout.trim().is_empty() { "nothing printed" } else { said.stdout.trim() },
            if said.stderr.trim().is_empty() { String::new() } else { format!(", {}", said.stderr.trim()) },
        );
        Err(CanaryError::Answer { what, expected, answer: callgate::show::visible(&answer) })
    }

    fn run(&self, directory: &Path, payload: &str) -> Result<Said, CanaryError> {
        let failed = |error: std::io::Error| CanaryError::Start(error.to_string());
        let mut command = match &self.start {
            Start::Program(words) => {
                let (program, arguments) =
                    words.split_first().ok_or_else(|| CanaryError::Start("no program".to_owned()))?;
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
            Start::Shell(shell, line) => {
                let mut command = Command::new(shell);
                command.args(["-c", line]);
                command
            }
        };
        command.current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.environment.iter().copied());
        let mut child = command.spawn().map_err(failed)?;
        let input = child.stdin.take();
        let text = payload.to_owned();
        // A hook that does not read is no reason to wait.
        let writer = thread::spawn(move || drop(input.map(|mut input| input.write_all(text.as_bytes()))));
        let stdout = reader(child.stdout.take());
        let stderr = reader(child.stderr.take());
        let code = wait(&mut child).map_err(failed)?;
        let collected = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
        let said = Said { code, stdout: collected(stdout), stderr: collected(stderr) };
        drop(writer.join());
        Ok(said)
    }
}

fn reader(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            drop(stream.take(LONGEST_ANSWER).read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The exit code; `None` if it had to be ended.
fn wait(child: &mut Child) -> std::io::Result<Option<i32>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if started.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

impl Answers {
    /// Whether silence is no yes.
    fn wants_a_word(self) -> bool {
        matches!(self, Answers::Permission | Answers::Explicit)
    }

    /// Strictly: what an agent might take for something else is neither.
    fn understand(self, said: &Said) -> Seen {
        let reason = !said.stderr.trim().is_empty();
        match (said.code, self) {
            (Some(2..), Answers::Delegate) if reason => return Seen::Denied,
            (Some(0), Answers::Delegate) => return Seen::Allowed,
            (_, Answers::Delegate) => return Seen::Neither,
            (Some(2), _) if reason => return Seen::Denied,
            (Some(0), _) => {}
            _ => return Seen::Neither,
        }
        if said.stdout.trim().is_empty() {
            return if self.wants_a_word() { Seen::Neither } else { Seen::Allowed };
        }
        let Ok(value) = serde_json::from_str::<Value>(&said.stdout) else { return Seen::Neither };
        let specific = value.get("hookSpecificOutput");
        let decision = match self {
            Answers::ClaudeLike | Answers::Explicit => specific.and_then(|it| it.get("permissionDecision")),
            Answers::Decision | Answers::ExitCode | Answers::Delegate => value.get("decision"),
            Answers::PermissionDecision => {
                value.get("permissionDecision").or_else(|| specific.and_then(|it| it.get("permissionDecision")))
            }
            Answers::Permission => value.get("permission"),
        };
        match decision.and_then(Value::as_str) {
            Some("allow") => Seen::Allowed,
            Some("deny" | "block") => Seen::Denied,
            // Nothing decided, only something said beside.
            None if !self.wants_a_word() && value.is_object() => Seen::Allowed,
            _ => Seen::Neither,
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests {
    use super::*;

    fn canary(line: &str, answers: Answers) -> Canary {
        Canary {
            start: Start::Shell("/bin/sh", line.to_owned()),
            environment: Vec::new(),
            payload: |probe| probe.tool_event("PreToolUse", "Bash"),
            answers,
        }
    }

    /// Denies what mentions a key or is damaged, in the form that every agent understands.
    const GOOD: &str = "input=$(cat); case $input in *id_rsa*|*tool_name\\\":) echo no >&2; exit 2;; esac";

    #[test]
    fn a_hook_that_tells_good_from_bad_is_proven() {
        let here = tempfile::tempdir().expect("a directory");
        for answers in [Answers::ClaudeLike, Answers::Decision, Answers::ExitCode, Answers::Delegate] {
            let shown = canary(GOOD, answers).prove(here.path(), Expected::default()).expect("proven");
            assert_eq!(shown.len(), 3);
        }
        let json = format!("{GOOD}; echo '{{\"permission\":\"allow\"}}'");
        assert!(canary(&json, Answers::Permission).prove(here.path(), Expected::default()).is_ok());
        assert!(canary(GOOD, Answers::Permission).prove(here.path(), Expected::default()).is_err());
    }

    #[test]
    fn a_hook_that_does_not_is_found_out() {
        let here = tempfile::tempdir().expect("a directory");
        for line in [
            "cat >/dev/null",
            "exit 1",
            "echo no >&2; exit 2",
            "cat >/dev/null; exit 2",
            "/no/such/program hook claude",
            "echo '{not json'",
            "kill -9 $$",
            "case $(cat) in *id_rsa*) echo no >&2; exit 2;; esac",
        ] {
            let error = canary(line, Answers::ClaudeLike).prove(here.path(), Expected::default());
            assert!(error.is_err(), "{line}");
        }
    }

    #[test]
    fn answers_are_read_as_the_agents_read_them() {
        let seen = |answers: Answers, code, stdout: &str, stderr: &str| {
            answers.understand(&Said { code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() })
        };
        let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}"#;
        assert_eq!(seen(Answers::ClaudeLike, 0, deny, ""), Seen::Denied);
        assert_eq!(seen(Answers::ClaudeLike, 0, &deny.replace("deny", "ask"), ""), Seen::Neither);
        assert_eq!(seen(Answers::ClaudeLike, 2, "", ""), Seen::Neither);
        assert_eq!(seen(Answers::ClaudeLike, 2, "", "no"), Seen::Denied);
        assert_eq!(seen(Answers::Decision, 0, r#"{"decision":"deny","reason":"x"}"#, ""), Seen::Denied);
        assert_eq!(seen(Answers::PermissionDecision, 0, r#"{"permissionDecision":"deny"}"#, ""), Seen::Denied);
        assert_eq!(seen(Answers::Permission, 0, "", ""), Seen::Neither);
        assert_eq!(seen(Answers::Permission, 0, r#"{"permission":"allow"}"#, ""), Seen::Allowed);
        assert_eq!(seen(Answers::Delegate, 3, "", "no"), Seen::Denied);
        assert_eq!(seen(Answers::Delegate, 1, "", "no"), Seen::Neither);
    }
}
