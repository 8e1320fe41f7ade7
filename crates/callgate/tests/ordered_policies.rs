//! The bundled policies are ordered: what `strict` allows, `standard` allows; what `standard` allows, `relaxed` allows; what `relaxed` allows,
//! `permissive` allows;
//! `unattended` allows nothing that `standard` does not, and denies whatever `standard` denies.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use std::path::Path;

use callgate::policy::{Decision, Policy, SandboxSupport};
use callgate::{Call, Gate};
use proptest::prelude::*;
use serde_json::{Value, json};

struct Gates {
    strict: Gate,
    standard: Gate,
    relaxed: Gate,
    permissive: Gate,
    unattended: Gate,
    project: tempfile::TempDir,
    /// Whether there is a sandbox.
    contains: bool,
}

impl Gates {
    fn new(sandbox: SandboxSupport) -> Self {
        let bundled = |name| Policy::bundled(name).expect("a bundled policy");
        let gate = |name| Gate::builder().policy(bundled(name)).sandbox(sandbox).build();
        let project = tempfile::tempdir().expect("a directory");
        for name in ["src/main.rs", "README.md", ".env", "Makefile", "package.json", "node_modules/x/index.js"] {
            let path = project.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, "x\n").expect("a file");
        }
        Gates {
            strict: gate("strict"),
            standard: gate("standard"),
            relaxed: gate("relaxed"),
            permissive: gate("permissive"),
            unattended: gate("unattended"),
            project,
            contains: sandbox == SandboxSupport::Available,
        }
    }

    fn check(&self, tool: &str, input: Value) {
        let call = Call::new(tool, input).directory(self.project.path()).workspace(self.project.path());
        let decision =
            |gate: &Gate| gate.assess(&call).map_or(Decision::Deny, |assessment| assessment.ruling().decision);
        let [strict, standard, relaxed, permissive, unattended] =
            [&self.strict, &self.standard, &self.relaxed, &self.permissive, &self.unattended].map(decision);
        let shown = format!(
            "{tool} {}: strict {strict}, standard {standard}, relaxed {relaxed}, permissive {permissive}, unattended {unattended}",
            call.input
        );
        let implies = |loose: Decision, strict: Decision| strict != Decision::Allow || loose == Decision::Allow;
        assert!(implies(standard, strict), "{shown}");
        assert!(implies(relaxed, standard), "{shown}");
        assert!(implies(permissive, relaxed), "{shown}");
        assert!(implies(standard, unattended), "{shown}");
        assert!(standard != Decision::Deny || unattended == Decision::Deny && strict == Decision::Deny, "{shown}");
        assert_ne!(unattended, Decision::Ask, "{shown}");
        if self.contains {
            let silent = |loose: Decision, strict: Decision| strict > Decision::Contain || loose <= Decision::Contain;
            assert!(silent(standard, strict) && silent(relaxed, standard), "{shown}");
        }
    }

    fn command(&self, command: &str) {
        self.check("Bash", json!({ "command": command }));
    }
}

/// The texts below a directory of the workspace.
fn files(directory: &str) -> Vec<String> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory)];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                texts.extend(std::fs::read_to_string(&path));
            }
        }
    }
    texts
}

#[test]
fn for_the_examples_of_all_tables_and_policies() {
    for_all_examples(&Gates::new(SandboxSupport::Missing));
    for_all_examples(&Gates::new(SandboxSupport::Available));
}

fn for_all_examples(gates: &Gates) {
    let examples = |text: &str, front: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(front));
        lines.map(|line| line.split(" => ").next().unwrap_or(line).trim_end_matches(" \\").to_owned()).collect()
    };
    let mut count = 0_usize;
    for command in files("programs").iter().flat_map(|text| examples(text, "example ")) {
        gates.command(&command);
        count += 1;
    }
    assert!(count > 3_000, "{count}");
    for command in files("policies").iter().flat_map(|text| examples(text, "- ")) {
        gates.command(command.trim_matches(['"', '\'']));
    }
}

fn word() -> impl Strategy<Value = String> {
    let plain = proptest::sample::select(vec![
        "README.md",
        "src",
        ".",
        "..",
        "/",
        "~",
        "~/.ssh/id_rsa",
        ".env",
        "*",
        "*.rs",
        "$x",
        "$(ls)",
        "-r",
        "-rf",
        "-f",
        "--help",
        "--version",
        "-c",
        "-o",
        "x",
        "/etc/passwd",
        "/tmp/x",
        "Makefile",
        "callgate.yaml",
        ".git/config",
        "https://example.com",
        "localhost",
        "HEAD",
        "push",
        "status",
        "commit",
        "log",
        "install",
        "run",
        "test",
        "'print(1)'",
        "{}",
        "link/../x",
    ]);
    plain.prop_map(str::to_owned)
}

fn simple() -> impl Strategy<Value = String> {
    let programs = proptest::sample::select(vec![
        "ls",
        "cat",
        "rm",
        "cp",
        "mv",
        "touch",
        "tee",
        "grep",
        "find",
        "git",
        "npm",
        "cargo",
        "make",
        "curl",
        "python3",
        "sudo",
        "env",
        "xargs",
        "chmod",
        "tar",
        "sed",
        "echo",
        "docker",
        "gh",
        "kubectl",
        "callgate",
        "bash",
        "eval",
        "unknown-program",
    ]);
    (programs, prop::collection::vec(word(), 0..4))
        .prop_map(|(program, words)| format!("{program} {}", words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn for_generated_commands(parts in prop::collection::vec((simple(), proptest::sample::select(vec![" && ", " | ", "; ", " > ", " || "])), 1..4)) {
        thread_local!(static GATES: [Gates; 2] = [SandboxSupport::Missing, SandboxSupport::Available].map(Gates::new));
        let text: String = parts.iter().flat_map(|(part, joint)| [part.as_str(), joint]).collect();
        let text = text.trim_end_matches([' ', '&', '|', ';', '>']).to_owned();
        GATES.with(|all| all.iter().for_each(|gates| gates.command(&text)));
    }

    #[test]
    fn for_generated_tool_calls(tool in proptest::sample::select(vec!["Read", "Write", "Edit", "Grep", "Glob", "WebFetch", "mcp__x__y", "frobnicate"]), path in word()) {
        thread_local!(static GATES: [Gates; 2] = [SandboxSupport::Missing, SandboxSupport::Available].map(Gates::new));
        let input = json!({
            "file_path": path, "path": path, "pattern": path, "content": "x", "old_string": "x", "new_string": "y", "url": path, "prompt": "x",
        });
        GATES.with(|all| all.iter().for_each(|gates| gates.check(tool, input.clone())));
    }
}
