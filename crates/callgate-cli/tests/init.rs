//! `callgate init` looks at a project and writes a policy that holds there.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing by failing")]

mod world;

use serde_json::Value;
use world::World;

fn project() -> World {
    let world = World::new();
    world.write("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n");
    world.write(
        "package.json",
        r#"{"scripts": {"test": "vitest run", "test:e2e": "playwright", "build": "tsc", "deploy": "x", "test; rm -rf ~": "y", "lint {a,b}": "z", "lint": "a\n- name: evil\u0085# \u202e"}}"#,
    );
    world.write("pnpm-lock.yaml", "");
    world.write("Makefile", "check: all\n\techo\nV := 1\n.PHONY: test\ntest$(X):\n\techo\n");
    for directory in [".claude", "tools/hooks", ".git", ".cursor"] {
        std::fs::create_dir_all(world.project().join(directory)).expect("a directory");
    }
    world.write(".git/config", "[core]\n\thooksPath = tools/hooks\n");
    world
}

fn as_json(world: &World, arguments: &[&str]) -> Value {
    let (code, output, error) = world.run(arguments);
    assert_eq!(code, 0, "{error}");
    serde_json::from_str(&output).expect("JSON")
}

#[test]
fn the_commands_of_the_project_are_contained_and_releases_are_denied() {
    let world = project();
    let told = as_json(&world, &["init", "--json"]);
    assert_eq!(told["found"]["manifests"], serde_json::json!(["Cargo.toml", "package.json", "Makefile"]));
    assert_eq!(told["found"]["git_hooks"], serde_json::json!(["tools/hooks"]));
    assert_eq!(told["found"]["agents"], serde_json::json!(["claude", "cursor"]));
    assert_eq!(told["written"], true);
    assert_eq!(world.run(&["policy", "lint", "callgate.yaml"]).0, 0);
    assert_eq!(world.run(&["policy", "test", "callgate.yaml"]).0, 0);
    assert_eq!(world.run(&["trust", "--yes"]).0, 0);
    for (command, decision, rule) in [
        ("pnpm test", "contain", "our-tests"),
        ("pnpm run test:e2e --headed", "contain", "our-tests"),
        ("cargo test -p x", "contain", "our-tests"),
        ("make check", "contain", "our-tests"),
        ("pnpm run build", "contain", "our-builds"),
        ("pnpm run lint", "contain", "our-linters"),
        ("pnpm install", "contain", "our-packages"),
        ("pnpm run deploy", "deny", "never-publish"),
        ("cargo publish", "deny", "never-publish"),
        ("echo x > tools/hooks/pre-push", "ask", "git-hooks"),
    ] {
        let answer = world.run(&["check", "--json", "--sandbox", "found", "--shell", "bash", command]).1;
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!((answer["decision"].as_str(), answer["rule"].as_str()), (Some(decision), Some(rule)), "{command}");
    }
    // More words are other packages.
    let other = world.run(&["check", "--json", "--sandbox", "found", "pnpm install some-package"]).1;
    assert!(!other.contains("our-packages"), "{other}");
}

#[test]
fn names_from_the_project_cannot_write_rules() {
    let world = project();
    let text = as_json(&world, &["init", "--json", "--dry-run"])["text"].as_str().expect("a text").to_owned();
    assert!(!world.project().join("callgate.yaml").exists(), "a dry run writes nothing");
    assert!(!text.contains("rm -rf ~") && !text.contains("{a,b}"), "{text}");
    assert!(!text.lines().any(|line| line.trim_start().starts_with("- name: evil")), "{text}");
    assert!(!text.contains('\u{85}') && !text.contains('\u{202e}'), "{text}");
    assert_eq!(world.run(&["init", "--dry-run"]).1, text);
}

#[test]
fn every_bundled_policy_gives_a_file_that_holds() {
    let world = project();
    for from in ["strict", "standard", "relaxed", "permissive", "unattended"] {
        let file = format!("{from}-callgate.yaml");
        let (code, output, error) = world.run(&["init", "--from", from, &file]);
        assert_eq!(code, 0, "{error}");
        assert!(output.contains("callgate trust") && output.contains("callgate install"), "{output}");
        assert!(output.contains("sandbox"), "{output}");
        assert_eq!(world.run(&["policy", "lint", &file]).0, 0, "{from}");
        assert_eq!(world.run(&["policy", "test", &file]).0, 0, "{from}");
        for command in ["pnpm test && cat ~/.ssh/id_rsa", "git push --force"] {
            let decision = |policy: &str| world.run(&["check", "--sandbox", "found", "--policy", policy, command]).0;
            assert_eq!(decision(&file), decision(from), "{from}: {command}");
        }
    }
}

#[test]
fn nothing_is_overwritten_not_even_through_a_link() {
    let world = World::new();
    std::os::unix::fs::symlink("elsewhere.yaml", world.project().join("callgate.yaml")).expect("a link");
    assert_eq!(world.run(&["init"]).0, 2);
    assert!(!world.project().join("elsewhere.yaml").exists());
}
