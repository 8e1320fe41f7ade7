//! A world of its own for the command: an empty home and an empty project.

#![allow(dead_code, clippy::expect_used, reason = "each test uses a part of it, and says what is missing by failing")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The command in an empty home and an empty project.
pub struct World {
    directory: tempfile::TempDir,
}

impl World {
    /// Empty.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["home", "project"] {
            std::fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        World { directory }
    }

    /// The home directory.
    pub fn home(&self) -> std::path::PathBuf {
        self.directory.path().join("home")
    }

    /// The project.
    pub fn project(&self) -> std::path::PathBuf {
        self.directory.path().join("project")
    }

    /// The command, ready to start.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.directory.path().join("home"))
            .env("PATH", "/usr/bin:/bin")
            .env("USER", "ada")
            .stdin(Stdio::null());
        command
    }

    /// Runs the command: its exit code, what it said, and what it complained about.
    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        told(self.command(arguments).output().expect("the command starts"))
    }

    /// The same with something on its standard input.
    pub fn with_input(&self, arguments: &[&str], input: &[u8]) -> (i32, String, String) {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("the command ends");
        writer.join().expect("the writer ends");
        told(output)
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, contents: &str) {
        std::fs::write(self.project().join(name), contents).expect("a file");
    }
}

/// The exit code and both outputs.
pub fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}
