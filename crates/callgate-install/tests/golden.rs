//! What settings look like before and after. `BLESS=1 cargo test --test golden` writes the second halves anew.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use std::fs;
use std::path::Path;

use callgate_install::{CanaryExpectation, HardDeny, HostEnvironment, InstallScope, Installer, find};

/// Which file of the home a pair is about.
fn place(name: &str) -> (&str, &'static str) {
    let agent = name.split('-').next().unwrap_or(name);
    let path = match agent {
        "claude" => ".claude/settings.json",
        "codex" => ".codex/hooks.json",
        "gemini" => ".gemini/settings.json",
        "amp" => ".config/amp/settings.json",
        "opencode" => ".config/opencode/opencode.json",
        _ => ".cursor/hooks.json",
    };
    (agent, path)
}

#[test]
fn settings_look_as_a_person_would_have_written_them() {
    let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut seen = 0;
    for entry in fs::read_dir(&pairs).expect("the pairs").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "before") {
            continue;
        }
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let (agent, file) = place(name);
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path().canonicalize().expect("a path");
        let settings = root.join(file);
        fs::create_dir_all(settings.parent().expect("a directory")).expect("made");
        fs::copy(&path, &settings).expect("copied");
        let environment = HostEnvironment::of_home(&root);
        let denies =
            [HardDeny::Read("~/.netrc"), HardDeny::Write("~/.config/callgate/**"), HardDeny::Run(&["rm", "-rf", "~"])];
        let installer = Installer {
            environment: &environment,
            program: Path::new("/usr/bin/callgate"),
            scope: InstallScope::User,
            denies: &denies,
            trust: false,
            ask: None,
            expected: CanaryExpectation::default(),
        };
        let steps = installer.preview(find(agent).expect("known")).expect(name);
        let step = steps.files.into_iter().find(|step| step.path == settings).expect("the file");
        let after = step.after.expect("a text").replace(&*root.to_string_lossy(), "/home/me");
        let golden = path.with_extension("after");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&golden, &after).expect("written");
        }
        assert_eq!(after, fs::read_to_string(&golden).expect("its other half"), "{name}");
        seen += 1;
    }
    assert!(seen >= 9);
}
