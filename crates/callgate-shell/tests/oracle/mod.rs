//! Real bash as the judge: does it accept a script, and which programs does the script start?

use callgate_shell::programs::Programs;
use callgate_shell::word::Word;
use callgate_shell::{Analysis, Dialect, Limits, ShellContext, SimpleCommand, analyze};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where a shell is, found before the search path is taken away.
pub fn find_shell(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// The stub programs. They record their arguments and do nothing else.
const STUBS: [&str; 5] = ["p", "q", "r", "s", "t"];

/// A stub writes its directory and its arguments into a file of its own, in the folder of the run it belongs to.
const STUB: &str = r#"#!/bin/sh
printf '%s\037' "$PWD" "${0##*/}" "$@" > "${0%/*}/record/$$" 2>/dev/null
"#;

/// The user that scripts run as where the tests run as root.
const NOBODY: u32 = 65534;

/// A program that was started.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    pub directory: String,
    pub words: Vec<String>,
    /// It is another program than the one that its name finds.
    pub planted: bool,
}

impl Start {
    /// Whether an analysis says that it may start.
    pub fn is_predicted(&self, analysis: &Analysis) -> bool {
        !self.planted && analysis.commands.iter().any(|command| self.may_come_from(command))
    }

    fn may_come_from(&self, command: &SimpleCommand) -> bool {
        let here = command.directory.as_ref().is_none_or(|directory| *directory == self.directory);
        // `command p`, `exec p`: the entry keeps the whole words.
        let behind = (1..command.words.len()).any(|from| {
            let prefix = command.words[0].known().is_some_and(|name| matches!(name, "command" | "exec" | "builtin"));
            prefix && may_be(&command.words[from..], &self.words)
        });
        here && (behind || may_be(&command.words, &self.words))
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
}

/// A directory with stub programs and some files to match.
pub struct Stage {
    root: PathBuf,
    shell: PathBuf,
    runs: Cell<usize>,
}

impl Stage {
    pub fn new(name: &str) -> Stage {
        Stage::with(name, find_shell("bash").expect("bash is installed"))
    }

    /// A stage on which another shell runs the scripts.
    pub fn with(name: &str, shell: PathBuf) -> Stage {
        let root = std::env::temp_dir().join(format!("callgate-shell-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join("work")).unwrap();
        let root = root.canonicalize().unwrap();
        let path = root.join("stub");
        std::fs::write(&path, STUB).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Stage { root, shell, runs: Cell::new(0) }
    }

    /// A fresh folder with the stubs: what an earlier script left running does not write there.
    fn folder(&self) -> PathBuf {
        self.runs.set(self.runs.get() + 1);
        let folder = self.root.join(format!("run-{}", self.runs.get()));
        self.place_stubs(&folder);
        folder
    }

    fn place_stubs(&self, folder: &Path) {
        std::fs::create_dir_all(folder.join("record")).unwrap();
        open_to_all(&folder.join("record"));
        for stub in STUBS {
            std::os::unix::fs::symlink(self.root.join("stub"), folder.join(stub)).unwrap();
        }
        // What it prints is predicted, so it is the real one.
        if let Some(cat) = find_shell("cat") {
            std::os::unix::fs::symlink(cat, folder.join("cat")).unwrap();
        }
    }

    fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The directory a script starts in.
    pub fn directory(&self) -> String {
        self.work().display().to_string()
    }

    fn bash(&self, path: &Path, arguments: &[&str], script: &str) -> Command {
        let mut command = Command::new(&self.shell);
        let alone: &[&str] = if self.shell.ends_with("zsh") { &["-f"] } else { &["--norc", "--noprofile"] };
        command.args(alone).args(arguments).args(["-c", script, "zero"]);
        command.env_clear().env("PATH", path).env("HOME", "/home/tester").env("LC_ALL", "C.UTF-8");
        command.current_dir(self.work()).stdin(Stdio::null()).process_group(0);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Whether bash can read the script.
    pub fn accepts(&self, script: &str) -> bool {
        let output = self.bash(Path::new("/nowhere"), &["-O", "extglob", "-n"], script).output().unwrap();
        output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("syntax error")
    }

    /// The programs that bash starts, each with its arguments.
    pub fn runs(&self, script: &str) -> Vec<Start> {
        let folder = self.folder();
        clean(&self.work());
        for file in ["a1", "a2", "b.txt", "c d"] {
            std::fs::write(self.work().join(file), "").unwrap();
        }
        std::fs::create_dir_all(self.work().join("sub")).unwrap();
        std::fs::write(self.work().join("sub/x"), "").unwrap();
        self.place_stubs(&self.work().join("evil"));
        std::fs::write(self.work().join("evil/code"), "p hit\n").unwrap();
        for path in ["", "sub", "evil", "a1"] {
            open_to_all(&self.work().join(path));
        }
        // A function that calls itself must end.
        let script = format!("ulimit -t 2 -f 100 -u 500; FUNCNEST=20\n{script}");
        let child = self.bash(&folder, &[], &script).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait(child);
        let mut found = Vec::new();
        for (folder, planted) in [(folder.clone(), false), (self.work().join("evil"), true)] {
            for entry in std::fs::read_dir(folder.join("record")).into_iter().flatten().flatten() {
                let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap_or_default()).into_owned();
                let mut words: Vec<String> = text.split('\u{1f}').map(descriptors).collect();
                // A file that is still being written has no end mark.
                if words.pop().is_some_and(|rest| rest.is_empty()) && words.len() > 1 {
                    let directory = words.remove(0);
                    found.push(Start { directory, words, planted });
                }
            }
        }
        found.sort();
        let _ = std::fs::remove_dir_all(&folder);
        found
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Waits until nobody holds the output of a script any more, or ends it and all it started after a while.
fn wait(child: Child) {
    let group = format!("-{}", child.id());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output().is_ok()));
    if receiver.recv_timeout(std::time::Duration::from_secs(4)).is_err() {
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
    }
}

fn clean(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
}

/// Which descriptor a process substitution gets does not matter.
fn descriptors(word: &str) -> String {
    let word = word.replace("/proc/self/fd/", "/dev/fd/");
    let mut pieces = word.split("/dev/fd/");
    let mut whole = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        whole.push_str("/dev/fd/63");
        whole.push_str(piece.trim_start_matches(|character: char| character.is_ascii_digit()));
    }
    whole
}

/// Our analysis, with tables for the stubs.
pub fn analysis(script: &str, directory: &str) -> Analysis {
    analysis_for(script, directory, Dialect::Bash)
}

pub fn analysis_for(script: &str, directory: &str, dialect: Dialect) -> Analysis {
    // The effect differs from directory to directory, so that every possible one becomes an entry.
    let table = "p q r s t: stub\n  style none\n  args: <text>*\n  does: list .\n\n  example p a => list .\n";
    let programs = Programs::bundled().extended(table, "test").unwrap();
    let variables = BTreeMap::from([("HOME".to_owned(), "/home/tester".to_owned())]);
    let context = ShellContext {
        directory: Some(directory),
        home: Some("/home/tester"),
        variables: &variables,
        programs: &programs,
        dialect,
        limits: Limits::default(),
        state: None,
    };
    analyze(script, &context)
}

/// Whether words may turn out to be these arguments.
pub fn may_be(words: &[Word], arguments: &[String]) -> bool {
    let Some((word, rest)) = words.split_first() else {
        return arguments.is_empty();
    };
    let many = match word {
        Word::Known(text) => {
            return arguments.first() == Some(&descriptors(text)) && may_be(rest, &arguments[1..]);
        }
        Word::Glob(_) => true,
        Word::Below { many, .. } | Word::Unknown { many, .. } => *many,
        Word::Partly { prefix, many, .. } => {
            if !*many && arguments.first().is_none_or(|argument| !argument.starts_with(prefix.as_str())) {
                return false;
            }
            *many
        }
    };
    if many {
        (0..=arguments.len()).any(|count| may_be(rest, &arguments[count..]))
    } else {
        !arguments.is_empty() && may_be(rest, &arguments[1..])
    }
}

/// The cases of a file: `--- name` and the script below it.
pub fn cases(text: &str) -> Vec<(String, String)> {
    let mut cases: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match (line.strip_prefix("--- "), cases.last_mut()) {
            (Some(name), _) => cases.push((name.trim().to_owned(), String::new())),
            (None, Some((_, script))) => script.push_str(line),
            (None, None) => {}
        }
    }
    for (_, script) in &mut cases {
        if script.ends_with('\n') {
            script.pop();
        }
    }
    cases
}

/// Prints a line that shows even when tests pass.
pub fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
