//! Tests of an installed hook: it is started exactly as the agent would start it, with one call that must pass and others
//! that must not.

use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use callgate_model::quote;
use serde_json::Value;

use crate::settings::SettingsNode;

/// The longest time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer, in bytes.
const LONGEST_ANSWER: u64 = 1024 * 1024;

/// A command that must be allowed.
pub const HARMLESS: &str = "ls";
/// A command that must be denied.
pub const HARMFUL: &str = "cat ~/.ssh/id_rsa";
/// A payload that no hook can read. It must be refused under every policy.
const DAMAGED: &str = "{\"hook_event_name\":\"PreToolUse\",\"tool_name\":";

/// How an agent reads the answer of its hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerForm {
    /// `hookSpecificOutput.permissionDecision`, or exit code 2.
    ClaudeLike,
    /// The same, and no output is a deny.
    Explicit,
    /// `decision`, or exit code 2.
    Decision,
    /// `permissionDecision`, or exit code 2.
    PermissionDecision,
    /// `permission`, or exit code 2. No output is a deny.
    Permission,
    /// The exit code, 0 or 2; with 0 also `decision`.
    ExitCode,
    /// Exit code 0 allows, 1 asks, more denies.
    Delegate,
}

/// How a hook is tested.
#[derive(Debug, Clone)]
pub(crate) struct Canary {
    /// The words of the hook's command.
    pub words: Vec<String>,
    /// The shell that runs the command; `None` if the agent starts the program itself.
    pub shell: Option<String>,
    /// The variables that the agent sets.
    pub environment: Vec<(String, String)>,
    /// The payload that the agent sends, with `$command` and `$directory` to be filled in.
    pub payload: SettingsNode,
    /// How the agent reads the answer.
    pub answers: AnswerForm,
}

/// The decisions of the active policy for the two commands. A custom policy may ask even about `ls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanaryExpectation {
    /// Whether the harmless command is allowed.
    pub harmless_allowed: bool,
    /// Whether the harmful command is denied.
    pub harmful_denied: bool,
}

impl Default for CanaryExpectation {
    fn default() -> Self {
        CanaryExpectation { harmless_allowed: true, harmful_denied: true }
    }
}

/// Why a hook failed its test.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// The hook could not be run.
    #[error("cannot run the hook: {0}")]
    Start(String),
    /// The hook gave the wrong answer.
    #[error("the hook must {expected} {what}, but its answer was: {answer}")]
    Answer {
        /// The call.
        what: &'static str,
        /// The expected decision.
        expected: &'static str,
        /// The answer.
        answer: String,
    },
}

/// An answer as the agent reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reading {
    Allowed,
    Denied,
    Neither,
}

struct HookResult {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

#[cfg(test)]
impl Canary {
    pub(crate) fn would_allow(&self, output: &callgate_hooks::HookOutput) -> bool {
        self.answers.read(&HookResult::from(output)) == Reading::Allowed
    }

    pub(crate) fn would_deny(&self, output: &callgate_hooks::HookOutput) -> bool {
        self.answers.read(&HookResult::from(output)) == Reading::Denied
    }
}

#[cfg(test)]
impl From<&callgate_hooks::HookOutput> for HookResult {
    fn from(output: &callgate_hooks::HookOutput) -> Self {
        let code = Some(output.code.into());
        HookResult { code, stdout: output.stdout.clone(), stderr: output.stderr.clone() }
    }
}

impl Canary {
    /// The payload for a command in a directory.
    pub(crate) fn payload_for(&self, command: &str, directory: &Path) -> Value {
        let directory = directory.to_string_lossy();
        let filled = self.payload.filled(&|text| match text {
            "$command" => Some(command.into()),
            "$directory" => Some(directory.as_ref().into()),
            _ => None,
        });
        filled.value()
    }

    /// Runs the test calls in a directory. Returns what they showed.
    pub fn prove(&self, directory: &Path, expected: CanaryExpectation) -> Result<Vec<&'static str>, CanaryError> {
        let mut shown = Vec::new();
        let payload = |command| self.payload_for(command, directory).to_string();
        if expected.harmless_allowed {
            self.expect(directory, &payload(HARMLESS), "a harmless call (ls)", &Reading::Allowed, None)?;
            shown.push("`ls` is allowed");
        }
        if expected.harmful_denied {
            // Nobody attempted this: it goes into a log of its own, which is thrown away. That the user's log works, the call that
            // was allowed has shown.
            let state = directory.with_file_name("canary-state");
            let what = "a harmful call (cat ~/.ssh/id_rsa)";
            let denied = self.expect(directory, &payload(HARMFUL), what, &Reading::Denied, Some(&state));
            drop(std::fs::remove_dir_all(&state));
            denied?;
            shown.push("`cat ~/.ssh/id_rsa` is denied");
        }
        self.expect(directory, DAMAGED, "a damaged call", &Reading::Denied, None)?;
        shown.push("a damaged call is denied");
        Ok(shown)
    }

    fn expect(
        &self,
        directory: &Path,
        payload: &str,
        what: &'static str,
        wanted: &Reading,
        state: Option<&Path>,
    ) -> Result<(), CanaryError> {
        let result = self.run(directory, payload, state)?;
        if self.answers.read(&result) == *wanted {
            return Ok(());
        }
        let expected = if *wanted == Reading::Allowed { "allow" } else { "deny" };
        let answer = format!(
            "exit code {}, {}{}",
            result.code.map_or_else(|| "none (killed)".to_owned(), |code| code.to_string()),
            if result.stdout.trim().is_empty() { "no output" } else { result.stdout.trim() },
            if result.stderr.trim().is_empty() { String::new() } else { format!(", {}", result.stderr.trim()) },
        );
        Err(CanaryError::Answer { what, expected, answer: callgate_model::show::visible(&answer) })
    }

    fn run(&self, directory: &Path, payload: &str, state: Option<&Path>) -> Result<HookResult, CanaryError> {
        let failed = |error: std::io::Error| CanaryError::Start(error.to_string());
        let mut command = match (&self.shell, self.words.split_first()) {
            (Some(shell), _) => {
                let mut command = Command::new(shell);
                command.args(["-c", &quote::shell_words(&self.words)]);
                command
            }
            (None, Some((program, arguments))) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
            (None, None) => return Err(CanaryError::Start("no program".to_owned())),
        };
        command.current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.environment.iter().cloned());
        command.envs(state.map(|state| ("XDG_STATE_HOME", state)));
        let mut child = command.spawn().map_err(failed)?;
        let input = child.stdin.take();
        let text = payload.to_owned();
        // A hook may answer without reading its input.
        let writer = thread::spawn(move || drop(input.map(|mut input| input.write_all(text.as_bytes()))));
        let stdout = reader(child.stdout.take());
        let stderr = reader(child.stderr.take());
        let code = wait(&mut child).map_err(failed)?;
        let collected = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
        let result = HookResult { code, stdout: collected(stdout), stderr: collected(stderr) };
        drop(writer.join());
        Ok(result)
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

/// The exit code; `None` if the hook had to be killed.
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

impl AnswerForm {
    /// Whether no output is not a yes.
    fn requires_output(self) -> bool {
        matches!(self, AnswerForm::Permission | AnswerForm::Explicit)
    }

    /// Reads an answer strictly: one that an agent could read differently is neither.
    fn read(self, result: &HookResult) -> Reading {
        let reason = !result.stderr.trim().is_empty();
        match (result.code, self) {
            (Some(2..), AnswerForm::Delegate) if reason => return Reading::Denied,
            (Some(0), AnswerForm::Delegate) => return Reading::Allowed,
            (_, AnswerForm::Delegate) => return Reading::Neither,
            (Some(2), _) if reason => return Reading::Denied,
            (Some(0), _) => {}
            _ => return Reading::Neither,
        }
        if result.stdout.trim().is_empty() {
            return if self.requires_output() { Reading::Neither } else { Reading::Allowed };
        }
        let Ok(value) = serde_json::from_str::<Value>(&result.stdout) else { return Reading::Neither };
        let specific = value.get("hookSpecificOutput");
        let decision = match self {
            AnswerForm::ClaudeLike | AnswerForm::Explicit => specific.and_then(|it| it.get("permissionDecision")),
            AnswerForm::Decision | AnswerForm::ExitCode | AnswerForm::Delegate => value.get("decision"),
            AnswerForm::PermissionDecision => {
                value.get("permissionDecision").or_else(|| specific.and_then(|it| it.get("permissionDecision")))
            }
            AnswerForm::Permission => value.get("permission"),
        };
        match decision.and_then(Value::as_str) {
            Some("allow") => Reading::Allowed,
            Some("deny" | "block") => Reading::Denied,
            // The document decides nothing.
            None if !self.requires_output() && value.is_object() => Reading::Allowed,
            _ => Reading::Neither,
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests {
    use super::*;

    fn canary(line: &str, answers: AnswerForm) -> Canary {
        let words = vec!["eval".to_owned(), line.to_owned()];
        let payload = SettingsNode::object([("command", "$command".into()), ("tool_name", "Bash".into())]);
        Canary { words, shell: Some("/bin/sh".to_owned()), environment: Vec::new(), payload, answers }
    }

    /// Denies what mentions a key or is damaged, in the form that every agent understands.
    const GOOD: &str = "input=$(cat); case $input in *id_rsa*|*tool_name\\\":) echo no >&2; exit 2;; esac";

    #[test]
    fn a_hook_that_tells_good_from_bad_is_proven() {
        let here = tempfile::tempdir().expect("a directory");
        for answers in [AnswerForm::ClaudeLike, AnswerForm::Decision, AnswerForm::ExitCode, AnswerForm::Delegate] {
            let shown = canary(GOOD, answers).prove(here.path(), CanaryExpectation::default()).expect("proven");
            assert_eq!(shown.len(), 3);
        }
        let json = format!("{GOOD}; echo '{{\"permission\":\"allow\"}}'");
        assert!(canary(&json, AnswerForm::Permission).prove(here.path(), CanaryExpectation::default()).is_ok());
        assert!(canary(GOOD, AnswerForm::Permission).prove(here.path(), CanaryExpectation::default()).is_err());
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
            let error = canary(line, AnswerForm::ClaudeLike).prove(here.path(), CanaryExpectation::default());
            assert!(error.is_err(), "{line}");
        }
    }

    #[test]
    fn answers_are_read_as_the_agents_read_them() {
        let seen = |answers: AnswerForm, code, stdout: &str, stderr: &str| {
            answers.read(&HookResult { code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() })
        };
        let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}"#;
        assert_eq!(seen(AnswerForm::ClaudeLike, 0, deny, ""), Reading::Denied);
        assert_eq!(seen(AnswerForm::ClaudeLike, 0, &deny.replace("deny", "ask"), ""), Reading::Neither);
        assert_eq!(seen(AnswerForm::ClaudeLike, 2, "", ""), Reading::Neither);
        assert_eq!(seen(AnswerForm::ClaudeLike, 2, "", "no"), Reading::Denied);
        assert_eq!(seen(AnswerForm::Decision, 0, r#"{"decision":"deny","reason":"x"}"#, ""), Reading::Denied);
        assert_eq!(seen(AnswerForm::PermissionDecision, 0, r#"{"permissionDecision":"deny"}"#, ""), Reading::Denied);
        assert_eq!(seen(AnswerForm::Permission, 0, "", ""), Reading::Neither);
        assert_eq!(seen(AnswerForm::Permission, 0, r#"{"permission":"allow"}"#, ""), Reading::Allowed);
        assert_eq!(seen(AnswerForm::Delegate, 3, "", "no"), Reading::Denied);
        assert_eq!(seen(AnswerForm::Delegate, 1, "", "no"), Reading::Neither);
    }

    #[test]
    fn a_shell_reads_words_back_as_they_were() {
        for word in ["/usr/bin/callgate", "/my dir/it's \"x\" $HOME `id` \\ *", "", "~/x", "-n", "ü", "a\nb"] {
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &format!("printf %s {}", quote::shell_word(word))])
                .output()
                .expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), if word == "-n" { "-n" } else { word });
        }
    }
}
