//! `callgate run -- PROGRAM` starts the file that was judged. Whoever is asked puts another one in its place before saying yes.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what is missing by failing")]

mod world;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use world::World;

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A program that prints a word, compiled or as a script.
fn program(world: &World, name: &str, word: &str, is_script: bool) -> PathBuf {
    let path = world.home().join(name);
    if is_script {
        write_program(&path, &format!("#!/bin/sh\necho {word}\n"));
        return path;
    }
    let source = world.home().join(format!("{name}.c"));
    std::fs::write(&source, format!("#include <stdio.h>\nint main(void) {{ puts(\"{word}\"); return 0; }}\n")).unwrap();
    let made = Command::new("cc").arg("-o").arg(&path).arg(&source).status().expect("cc");
    assert!(made.success());
    path
}

/// Runs a program, about which somebody is asked who does `meanwhile` and says yes. What it prints and its exit code.
fn run(world: &World, words: &[&str], directory: &Path, meanwhile: &str) -> (String, i32) {
    let approver = world.home().join("approver");
    write_program(
        &approver,
        &format!("#!/bin/sh\ncat > /dev/null\n{meanwhile}\necho '{{\"decision\": \"approved\"}}'\n"),
    );
    let config = world.home().join(".config/callgate");
    std::fs::create_dir_all(&config).unwrap();
    let policy = format!(
        "version: 1\nextends: standard\nrules:\n  - {{name: everything, tools: [Bash], action: ask}}\napprovals:\n  ask: [{{command: [{}]}}]\n",
        approver.display()
    );
    std::fs::write(config.join("callgate.yaml"), policy).unwrap();
    let mut command = world.command(&["run", "--"]);
    command.args(words).env("PATH", format!("{}:/usr/bin:/bin", directory.display()));
    let ended = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    (said, ended.status.code().unwrap_or(-1))
}

#[test]
fn a_program_that_is_replaced_after_it_was_judged_does_not_run() {
    for is_script in [false, true] {
        let world = World::new();
        let judged = program(&world, "judged", "judged", is_script);
        let other = program(&world, "other", "other", is_script);
        // What lies in the project is contained. A known program that nobody here can write runs free.
        let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (project, elsewhere) = (world.project(), elsewhere.path());
        for (words, tool) in [(["./tool", "-V"], project.join("tool")), (["jq", "--version"], elsewhere.join("jq"))] {
            std::fs::copy(&judged, &tool).unwrap();
            let (said, code) = run(&world, &words, elsewhere, "true");
            assert!(code == 0 && said.contains("judged"), "the control, {words:?}: {code} {said}");
            let swap = format!("cp {} {1}.new && mv {1}.new {1}", other.display(), tool.display());
            let (said, code) = run(&world, &words, elsewhere, &swap);
            assert!(code == 125 && said.contains("was replaced or changed"), "{words:?}: {code} {said}");
            assert!(!said.lines().any(|line| line == "other"), "{words:?}: {said}");
        }
    }
}
