//! `callgate demo`: half a minute in a scratch directory that shows an allow, a contained build, a question and a refusal.
//!
//! Every step is this very program with the bundled policy, in a home and a project of its own: the user's policy, log and store are
//! not touched. The directory is removed at the end.

use std::fs::{self, DirBuilder};
use std::io::IsTerminal;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anstyle::Style;
use callgate_model::fence::Protection;
use callgate_model::quote::shell_words;

use crate::outcome::{Outcome, Trouble};

const BUILD: &str = "#!/bin/sh
echo 'building, and trying what a build should not do:'
if cat ~/.ssh/id_ed25519 2>/dev/null; then echo '  read ~/.ssh/id_ed25519'; else echo '  could not read ~/.ssh/id_ed25519'; fi
if { echo evil > .git/hooks/pre-commit; } 2>/dev/null; then echo '  wrote .git/hooks/pre-commit'; else echo '  could not write .git/hooks/pre-commit'; fi
echo built > build.txt
";
/// What stands in the key that the build must not see.
const KEY: &str = "the private key of the demo\n";
/// How long a question at the terminal waits.
const PATIENCE: &str = "20s";

/// Shows it.
pub fn run() -> Result<Outcome, Trouble> {
    let scratch =
        Scratch::new().map_err(|error| Trouble::new(format!("cannot prepare a scratch directory: {error}")))?;
    let trouble = |error: std::io::Error| Trouble::new(format!("the demo cannot go on: {error}"));
    anstream::println!("A scratch project in {}; nothing of yours is touched.", scratch.directory.display());

    title("1. Harmless calls pass at once");
    scratch.callgate(&["check", "ls -la"]).map_err(trouble)?;

    title("2. A build runs contained");
    match callgate_sandbox::choose(&Protection::ALL, None) {
        Ok(_) => {
            scratch.callgate(&["run", "--", "./build.sh"]).map_err(trouble)?;
            scratch.say_what_is_there();
        }
        Err(denied) => {
            anstream::println!("This machine cannot contain calls: {}.", denied.reason);
            anstream::println!(
                "callgate asks before it runs code of the project, and `callgate doctor` says what helps:"
            );
            scratch.callgate(&["check", "./build.sh"]).map_err(trouble)?;
        }
    }

    title("3. What cannot be taken back is a question");
    let interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if interactive {
        anstream::println!("Answer as you like; after {PATIENCE} the answer is no. Nothing is deleted.");
    } else {
        anstream::println!("There is no terminal here, so a rule of the demo's policy answers: no.");
        scratch.answer_no().map_err(trouble)?;
    }
    let question = ["check", "--ask", "--timeout", PATIENCE, "rm notes.txt"];
    scratch.callgate(&["check", "rm notes.txt"]).map_err(trouble)?;
    scratch.callgate(&question).map_err(trouble)?;

    title("4. A refusal says what would change it");
    anstream::println!("Here the remedy is one command, for people only; agents that run it are denied.");
    for words in [&["allow", "rm notes.txt"][..], &["check", "rm notes.txt"], &["check", "callgate policy undo"]] {
        scratch.callgate(words).map_err(trouble)?;
    }
    anstream::println!();
    anstream::println!("Secrets stay refused, and callgate says that no rule helps:");
    scratch.callgate(&["check", "cat ~/.ssh/id_ed25519"]).map_err(trouble)?;

    title("Next");
    anstream::println!("callgate init      writes a policy that fits your project");
    anstream::println!("callgate install   puts callgate in front of your agents");
    Ok(Outcome::Done)
}

fn title(text: &str) {
    let bold = Style::new().bold();
    anstream::println!("\n{bold}{text}{bold:#}");
}

/// A directory with a home and a project, which goes when it is dropped.
struct Scratch {
    directory: PathBuf,
    program: PathBuf,
}

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let program = std::env::current_exe()?;
        let scratch = Scratch { directory: private_directory(&std::env::temp_dir().canonicalize()?)?, program };
        for name in ["home/.ssh", "project/.git/hooks"] {
            DirBuilder::new().recursive(true).mode(0o700).create(scratch.directory.join(name))?;
        }
        fs::write(scratch.directory.join("home/.ssh/id_ed25519"), KEY)?;
        fs::write(scratch.project().join("notes.txt"), "keep me\n")?;
        fs::write(scratch.project().join(".git/HEAD"), "ref: refs/heads/main\n")?;
        let build = scratch.project().join("build.sh");
        fs::write(&build, BUILD)?;
        fs::set_permissions(build, fs::Permissions::from_mode(0o700))?;
        Ok(scratch)
    }

    fn project(&self) -> PathBuf {
        self.directory.join("project")
    }

    /// Shows a command line of callgate and runs it. Its exit code is its verdict, not a failure.
    fn callgate(&self, words: &[&str]) -> std::io::Result<()> {
        let dim = Style::new().dimmed();
        let shown: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        anstream::println!("\n{dim}$ callgate {}{dim:#}", shell_words(&shown));
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.project()).env_clear().env("HOME", self.directory.join("home"));
        for name in ["PATH", "TERM", "LANG", "LC_ALL", "COLUMNS", "NO_COLOR", "USER"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("SHELL", "/bin/sh");
        if !std::io::stdin().is_terminal() {
            command.stdin(Stdio::null());
        }
        command.status().map(drop)
    }

    /// Lets the demo's own policy answer questions.
    fn answer_no(&self) -> std::io::Result<()> {
        let directory = self.directory.join("home/.config/callgate");
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        fs::write(directory.join("callgate.yaml"), "version: 1\nextends: standard\napprovals: {default: denied}\n")
    }

    /// What the build left behind, seen from outside.
    fn say_what_is_there(&self) {
        let there = |name: &str| if self.project().join(name).exists() { "is there" } else { "is not there" };
        anstream::println!(
            "Seen from outside: build.txt {}, .git/hooks/pre-commit {}.",
            there("build.txt"),
            there(".git/hooks/pre-commit")
        );
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the directory for temporary files.
        drop(fs::remove_dir_all(&self.directory));
    }
}

/// A new directory that only this user can enter.
fn private_directory(parent: &Path) -> std::io::Result<PathBuf> {
    let mut last = None;
    for attempt in 0..16_u32 {
        let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
        let path = parent.join(format!("callgate-demo-{}-{nanoseconds}-{attempt}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::ErrorKind::AlreadyExists.into()))
}
