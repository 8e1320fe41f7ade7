//! Calls that a hook hands over to `callgate run`: what the permit says, and the command that presents it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate::Call;
use callgate::policy::directories;
use callgate_model::clock::Timestamp;
use callgate_model::digest::sha256_hex;
use callgate_model::quote::shell_word;
use callgate_store::{PermitError, PermitStore, PermitToken};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::processes::{self, Process};

/// How long a permit is good for. Agents start a tool as soon as its hook has answered; some ask their user in between.
pub const EXPIRES_IN: Duration = Duration::from_secs(120);
/// The longest command that is handed over: the kernel takes 128 KiB as one word.
pub const LONGEST: usize = 64 << 10;
/// The parameter in which agents pass a shell command.
pub const COMMAND: &str = "command";

/// A call that was judged, and what it is bound to.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedOver {
    /// The call's id in the log.
    pub id: String,
    /// The call without its command, which only its digest stands for.
    call: Call,
    text: String,
    /// The working directory, without symlinks.
    directory: PathBuf,
    /// The policy that the hook was told to use instead of the files that apply.
    pub policy: Option<String>,
    /// The version of the policy: a digest of its files.
    version: String,
    hook: Process,
    above: Vec<Process>,
    boot: String,
    /// The namespace of the hook's processes.
    namespace: String,
    issued: Timestamp,
    expires: Timestamp,
    /// The variables of the hook that decide where callgate's own files are.
    variables: Vec<(OsString, OsString)>,
}

/// What a hook knows of a call that it hands over.
pub struct Handing<'a> {
    pub id: &'a str,
    pub call: &'a Call,
    pub directory: &'a Path,
    pub policy: Option<&'a str>,
    pub version: &'a str,
    /// Whether the agent's next call starts where this one ends.
    pub keeps_directory: bool,
}

/// A call that was handed over.
pub struct Handed {
    /// The command that runs it.
    pub command: String,
    /// The digest of the permit's token.
    pub permit: String,
}

/// Issues a permit for a call.
pub fn hand_over(handing: &Handing<'_>, text: &str) -> Result<Handed, String> {
    let missing = |what: &str| format!("cannot issue a permit: {what}");
    let mut call = handing.call.clone();
    if let Some(input) = call.input.as_object_mut() {
        input.remove(COMMAND);
    }
    let issued = Timestamp::now();
    let expires = issued.milliseconds().saturating_add(i64::try_from(EXPIRES_IN.as_millis()).unwrap_or(i64::MAX));
    let permit = HandedOver {
        id: handing.id.to_owned(),
        call,
        text: sha256_hex(text.as_bytes()),
        directory: handing.directory.canonicalize().map_err(|error| missing(&error.to_string()))?,
        policy: handing.policy.map(str::to_owned),
        version: handing.version.to_owned(),
        hook: Process::own().ok_or_else(|| missing("/proc cannot be read"))?,
        above: Process::ancestors(),
        boot: processes::boot().ok_or_else(|| missing("/proc cannot be read"))?,
        namespace: processes::namespace().ok_or_else(|| missing("/proc cannot be read"))?,
        issued,
        expires: Timestamp::from_milliseconds(expires),
        variables: directories::deciding_variables().into_iter().collect(),
    };
    let program = program().ok_or_else(|| missing("callgate does not know its own path"))?;
    let store = PermitStore::of_user().ok_or_else(|| missing("no directory belongs to this user"))?;
    let token = store.issue(&permit).map_err(|error| missing(&error.to_string()))?;
    let follow = handing.keeps_directory && may_move(text);
    Ok(Handed { command: command(&program, &token, text, follow), permit: token.digest() })
}

/// The path of this program; `None` if it was replaced or has a name that cannot be passed on.
pub fn program() -> Option<String> {
    let path = std::env::current_exe().ok().filter(|path| path.is_file())?;
    path.to_str().filter(|path| !path.contains(char::is_control)).map(str::to_owned)
}

/// Whether a command may leave its shell in another directory. One too many costs nothing.
fn may_move(text: &str) -> bool {
    let words = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '-'));
    words.into_iter().any(|word| matches!(word, "cd" | "pushd" | "popd"))
}

/// The command that an agent runs in place of its own. The text stays readable for whoever looks at it, and for rules about commands.
///
/// If the agent's shell is to follow into another directory, that directory comes back through a descriptor: it is a value, which
/// the shell never evaluates, and standard output is left alone.
fn command(program: &str, token: &PermitToken, text: &str, follow: bool) -> String {
    let (program, text) = (shell_word(program), shell_word(text));
    let run = format!("{program} run --permit {}", token.as_str());
    if !follow {
        return format!("{run} --shell {text}");
    }
    format!(
        "{{ CALLGATE_LEFT=\"$({run} --left 3 --shell {text} 3>&1 >&4 4>&-)\"; }} 4>&1; CALLGATE_CODE=$?; \
         builtin cd -- \"${{CALLGATE_LEFT:-.}}\"; (exit \"$CALLGATE_CODE\")"
    )
}

/// The digest of the token in a command that [`hand_over`] has made for this text, if it looks like one.
pub fn token_in(command: &str) -> Option<(PermitToken, String)> {
    let program = program()?;
    let start = format!("{} run --permit ", shell_word(&program));
    let (before, rest) = command.split_once(&start)?;
    let token = PermitToken::parse(rest.get(..32)?)?;
    let (_, quoted) = rest.split_once(" --shell ")?;
    let follow = !before.is_empty();
    // INVARIANT: only the command that would be made again from the text in it counts.
    let end = if follow { quoted.rfind(" 3>&1 >&4 4>&-)")? } else { quoted.len() };
    let text = unquoted(quoted.get(..end)?)?;
    (self::command(&program, &token, &text, follow) == command).then_some((token, text))
}

/// The text that [`shell_word`] has quoted.
fn unquoted(word: &str) -> Option<String> {
    match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
        Some(inner) => Some(inner.replace(r"'\''", "'")),
        None => (shell_word(word) == word).then(|| word.to_owned()),
    }
}

/// Why a permit is no good for what somebody wants to run with it.
pub type Unfit = String;

impl HandedOver {
    /// The permit of a token, without using it.
    pub fn peek(token: &PermitToken) -> Option<Self> {
        PermitStore::of_user()?.peek(&token.digest())
    }

    /// Uses the permit of a token.
    pub fn redeem(token: &PermitToken) -> Result<Self, PermitError> {
        PermitStore::of_user().ok_or(PermitError::Unknown)?.redeem(token)
    }

    /// What is known of a permit that cannot be used, or else of the latest one: only to find the log.
    pub fn behind(token: Option<&PermitToken>) -> Option<Self> {
        let store = PermitStore::of_user()?;
        token.and_then(|token| store.peek(&token.digest())).or_else(|| store.latest())
    }

    /// From now on callgate's own files are where they were for the hook.
    pub fn settle_in(&self) {
        directories::fix_variables(self.variables.iter().cloned().collect());
    }

    /// The call with its command, if the permit is good for this text, here and now.
    pub fn call(&self, text: &str, directory: &Path) -> Result<Call, Unfit> {
        if self.text != sha256_hex(text.as_bytes()) {
            return Err("the permit was issued for another command".to_owned());
        }
        if self.directory != directory {
            return Err(format!(
                "the permit was issued for {}, and this is {}",
                self.directory.display(),
                directory.display()
            ));
        }
        if self.is_surrounded() {
            return Err("the permit was issued to another process".to_owned());
        }
        if processes::boot().as_ref() != Some(&self.boot) {
            return Err("the permit was issued before the machine was started".to_owned());
        }
        let agent = Process::caller(self.hook, &self.above);
        if agent.is_none_or(|agent| !Process::ancestors().contains(&agent)) {
            return Err("the permit was issued to another process".to_owned());
        }
        let now = Timestamp::now();
        if now < self.issued || now >= self.expires {
            return Err("the permit has expired".to_owned());
        }
        Ok(self.with(text))
    }

    /// The call with a command.
    pub fn with(&self, text: &str) -> Call {
        let mut call = self.call.clone();
        if let Some(input) = call.input.as_object_mut() {
            input.insert(COMMAND.to_owned(), Value::from(text));
        }
        call
    }

    /// Whether the permit was issued under this version of the policy.
    pub fn is_under(&self, version: &str) -> bool {
        self.version == version
    }

    /// Whether something surrounds this process that did not surround the hook, such as a sandbox of the agent's own.
    pub fn is_surrounded(&self) -> bool {
        processes::namespace().as_ref() != Some(&self.namespace)
    }

    /// The session of the call.
    pub fn session(&self) -> Option<&str> {
        self.call.origin.session.as_deref()
    }

    /// Whether it was issued for this text.
    pub fn is_for(&self, text: &str) -> bool {
        self.text == sha256_hex(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_commands_are_recognised_and_nothing_else_is() {
        let token = PermitToken::parse(&"0f".repeat(16)).unwrap();
        let program = program().unwrap();
        for text in ["npm test", "make", "echo it's 'x' --shell y", "cd a && make\nmake 3>&1 >&4 4>&-)", "'", "a\\'b"] {
            for follow in [false, true] {
                let command = command(&program, &token, text, follow);
                let found = token_in(&command).map(|(token, text)| (token.as_str().to_owned(), text));
                assert_eq!(found, Some((token.as_str().to_owned(), text.to_owned())), "{command}");
                for changed in [format!("{command}; rm -rf x"), format!("rm x; {command}"), format!("X=1 {command}")] {
                    assert!(token_in(&changed).is_none(), "{changed}");
                }
            }
        }
    }

    #[test]
    fn a_command_that_may_move_is_followed() {
        for text in ["cd src && make", "(cd x)", "pushd a;make", "builtin cd x"] {
            assert!(may_move(text), "{text}");
        }
        for text in ["npm test", "make cdrom", "abcd", "x_cd"] {
            assert!(!may_move(text), "{text}");
        }
    }
}
