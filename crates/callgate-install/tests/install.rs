//! Installing, looking and uninstalling on real files in homes of their own.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use callgate_install::{
    CanaryExpectation, HARD_DENIES, HookState, HostEnvironment, InstallError, InstallReceipt, InstallReport,
    InstallScope, Installer, Sighting, StatusReport, all, find, report,
};
use serde_json::Value;

/// A home, a project and a machine of their own, and a program that answers like a hook.
struct World {
    _keep: tempfile::TempDir,
    environment: HostEnvironment,
    program: PathBuf,
}

/// Denies what mentions a key or is damaged, with exit code 2 and a reason; says yes in every dialect's words otherwise.
const GOOD: &str = r#"#!/bin/sh
input=$(cat)
case $input in
  *id_rsa*) echo "reads a key" >&2; exit 2;;
  *'"tool_name":') echo "damaged" >&2; exit 2;;
esac
case "$2" in
  claude|opencode) echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}';;
  cursor) echo '{"permission":"allow"}';;
esac
"#;

impl World {
    fn new() -> Self {
        let keep = tempfile::tempdir().expect("a directory");
        // Blanks and quotes in every path.
        let root = keep.path().canonicalize().expect("a path").join("it's a \"place\" $HOME");
        let mut environment = HostEnvironment::of_home(&root.join("home"));
        environment.project = root.join("project");
        environment.machine = root.join("machine");
        for directory in [&environment.home, &environment.project, &environment.machine] {
            fs::create_dir_all(directory).expect("a directory");
        }
        let program = root.join("bin/call gate");
        let world = World { _keep: keep, environment, program };
        world.program_says(GOOD);
        world
    }

    fn program_says(&self, script: &str) {
        fs::create_dir_all(self.program.parent().expect("a directory")).expect("a directory");
        let beside = self.program.with_extension("new");
        fs::write(&beside, script).expect("written");
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).expect("mode");
        fs::rename(&beside, &self.program).expect("moved");
    }

    fn installer(&self, scope: InstallScope) -> Installer<'_> {
        Installer {
            environment: &self.environment,
            program: &self.program,
            scope,
            denies: HARD_DENIES,
            trust: true,
            ask: None,
            expected: CanaryExpectation::default(),
        }
    }

    fn install(&self, agent: &str) -> Result<InstallReport, InstallError> {
        self.installer(InstallScope::User).install(find(agent).expect("known"))
    }

    fn uninstall(&self, agent: &str) -> InstallReport {
        self.installer(InstallScope::User).uninstall(find(agent).expect("known")).expect("uninstalled")
    }

    fn status(&self, agent: &str) -> StatusReport {
        report(find(agent).expect("known"), &self.environment).remove(0)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.environment.home.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, text).expect("written");
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.environment.home.join(name)).expect(name)
    }
}

/// Every file below a directory, with what is in it and its mode.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>, u32)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let mode = entry.metadata().expect("there").mode();
                found.push((path.clone(), fs::read(&path).expect("a file"), mode));
            }
        }
    }
    found.sort();
    found
}

const COMMENTED: &str = "{\r\n\t// mine\r\n\t\"model\": \"x\", /* why */\r\n\t\"hooks\": {\r\n\t\t\"PreToolUse\": [\r\n\t\t\t{ \"matcher\": \"Bash\", \"hooks\": [{ \"type\": \"command\", \"command\": \"mine\" }] }, // first\r\n\t\t],\r\n\t},\r\n}\r\n";

#[test]
fn every_agent_in_every_scope_is_installed_once_and_leaves_nothing_behind() {
    for recipe in all() {
        for scope in InstallScope::ALL {
            let world = World::new();
            let installer = world.installer(scope);
            if scope == InstallScope::Managed && !rustix::process::geteuid().is_root() {
                continue;
            }
            let before = files(&world.environment.home);
            let steps = match installer.install(recipe) {
                Err(InstallError::UnsupportedScope { .. }) => continue,
                other => other.unwrap_or_else(|error| panic!("{} {scope:?}: {error}", recipe.name())),
            };
            assert!(steps.changes() && steps.shown.len() == 3, "{}", recipe.name());
            let installed = files(&world.environment.home);
            let again = installer.install(recipe).expect("again");
            assert!(!again.changes(), "{} {scope:?}", recipe.name());
            let settings = |files: &[(PathBuf, Vec<u8>, u32)]| -> Vec<_> {
                files.iter().filter(|(path, ..)| !path.starts_with(world.environment.own_data())).cloned().collect()
            };
            assert_eq!(settings(&files(&world.environment.home)), settings(&installed));
            installer.uninstall(recipe).expect("uninstalled");
            assert_eq!(files(&world.environment.home), before, "{} {scope:?}", recipe.name());
            assert!(files(&world.environment.project).is_empty() && files(&world.environment.machine).is_empty());
        }
    }
}

#[test]
fn settings_of_every_kind_come_back_byte_for_byte() {
    for text in [
        "{}",
        "",
        "\u{feff}{\n  \"a\": 1\n}",
        COMMENTED,
        "{\"hooks\":{\"PreToolUse\":[]},\"permissions\":{\"deny\":[\"Read(~/.netrc)\"]}}",
        "// only a comment\n",
        "{\n    \"permissions\": {\n        \"deny\": [\n            \"WebFetch\" // no\n        ]\n    }\n}\n\n",
    ] {
        let world = World::new();
        let path = world.write(".claude/settings.json", text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mode");
        assert!(world.install("claude").expect("installed").changes());
        let installed = world.read(".claude/settings.json");
        assert!(installed.contains("call gate") && installed != text);
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(path.with_file_name("settings.json.callgate-backup")).expect("a backup"), text);
        world.uninstall("claude");
        assert_eq!(world.read(".claude/settings.json"), text);
        assert_eq!(fs::read_dir(path.parent().expect("a directory")).expect("there").count(), 1, "the backup is gone");
    }
}

/// Settings as people write them: any layout, comments and trailing commas.
fn settings() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let gap = || prop_oneof![Just(""), Just(" "), Just("\n  "), Just("\r\n\t"), Just(" /* c */ "), Just(" // c\n")];
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("\"x // y\"".to_owned()),
        Just("{}".to_owned()),
        Just("{ \"PreToolUse\": [ ], }".to_owned()),
        Just("{\n    \"deny\": [\n      \"Read(~/.netrc)\" // n\n    ]\n  }".to_owned()),
        Just("{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]},]}".to_owned()),
        Just("{\n\t\t\"SessionEnd\": [\n\t\t\t// none\n\t\t]\n\t}".to_owned()),
    ];
    let key = prop_oneof![Just("hooks"), Just("permissions"), Just("model"), Just("env")];
    let member = (gap(), key, gap(), value, gap());
    (prop::collection::vec(member, 0..5), any::<bool>(), gap(), any::<bool>()).prop_map(
        |(members, comma, tail, mark)| {
            let mut seen = std::collections::BTreeSet::new();
            let members: Vec<String> = members
                .into_iter()
                .filter(|(_, key, ..)| seen.insert(*key))
                .map(|(a, key, b, value, c)| format!("{a}\"{key}\":{b}{value}{c}"))
                .collect();
            let comma = if comma && !members.is_empty() { "," } else { "" };
            format!("{}{{{}{comma}{tail}}}{tail}", if mark { "\u{feff}" } else { "" }, members.join(","))
        },
    )
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    #[test]
    fn any_settings_come_back_byte_for_byte(text in settings()) {
        let world = World::new();
        world.write(".claude/settings.json", &text);
        match world.install("claude") {
            Ok(_) => {
                proptest::prop_assert!(!world.install("claude").expect("again").changes());
                world.uninstall("claude");
            }
            // `"hooks": null` and the like are refused.
            Err(error) => proptest::prop_assert!(error.to_string().contains("is not a"), "{error}"),
        }
        proptest::prop_assert_eq!(world.read(".claude/settings.json"), text);
    }
}

#[test]
fn what_is_installed_for_claude_is_what_was_measured() {
    let world = World::new();
    world.write(".claude/settings.json", COMMENTED);
    world.install("claude").expect("installed");
    let text = world.read(".claude/settings.json");
    assert!(text.contains("// mine\r\n") && text.contains("/* why */") && text.contains("// first"));
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.contains("//") && !line.contains("/*")).collect();
    lines.retain(|line| !line.trim().is_empty());
    let gate = world.program.to_string_lossy();
    let hook = format!(
        "{{\"type\":\"command\",\"command\":{},\"args\":[\"hook\",\"claude\",\"--timeout\",\"600\"],\"timeout\":600,\"onFailure\":\"block\"}}",
        Value::from(gate.as_ref())
    );
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join("");
    assert!(flat.contains(&hook.split_whitespace().collect::<Vec<_>>().join("")), "{text}");
    for event in ["PermissionRequest", "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd"] {
        assert!(flat.contains(&format!("\"{event}\":[{{\"matcher\":\"*\",\"hooks\":[")), "{event}");
    }
    assert!(text.contains("\"Read(~/.gnupg/**)\"") && text.contains("\"Bash(rm -rf ~)\""));
}

#[test]
fn what_the_user_did_meanwhile_stays() {
    let world = World::new();
    world.write(".claude/settings.json", "{\n  \"permissions\": {\n    \"deny\": [\"Read(~/.netrc)\"]\n  }\n}\n");
    world.install("claude").expect("installed");
    let text = world.read(".claude/settings.json");
    let edited = text
        .replace("{\n  \"permissions\"", "{\n  // new\n  \"model\": \"y\",\n  \"permissions\"")
        .replace("\"timeout\": 600", "\"timeout\": 30")
        .replace("\"SessionEnd\": [", "\"SessionEnd\": [\n      {\"hooks\": [{\"command\": \"mine\"}]},");
    world.write(".claude/settings.json", &edited);
    let steps = world.uninstall("claude");
    let left = world.read(".claude/settings.json");
    assert!(!left.contains("call gate"), "{left}");
    assert!(left.contains("// new") && left.contains("\"mine\"") && left.contains("Read(~/.netrc)"), "{left}");
    assert!(!left.contains("Read(~/.gnupg/**)"));
    assert_eq!(steps.advice.len(), 1, "the backup is mentioned");
}

#[test]
fn broken_settings_are_refused_with_the_place_and_nothing_changes() {
    for text in ["{\n  \"a\": ,\n}", "{\n  \"hooks\": \"none\"\n}", "{\"hooks\": {\"PreToolUse\": {}}}"] {
        let world = World::new();
        world.write(".claude/settings.json", text);
        let before = files(&world.environment.home);
        let error = world.install("claude").expect_err(text).to_string();
        assert!(error.contains("settings.json: line "), "{error}");
        assert_eq!(files(&world.environment.home), before);
    }
}

#[test]
fn a_hook_that_does_not_work_is_taken_back() {
    for script in ["#!/bin/sh\ncat >/dev/null\n", "#!/bin/sh\nexit 1\n", "#!/no/such/interpreter\n"] {
        let world = World::new();
        world.write(".claude/settings.json", COMMENTED);
        world.program_says(script);
        let before = files(&world.environment.home);
        for recipe in all() {
            let error = world.installer(InstallScope::User).install(recipe).expect_err(recipe.name());
            assert!(error.to_string().contains("reverted"), "{error}");
            assert_eq!(files(&world.environment.home), before, "{}", recipe.name());
        }
    }
}

#[test]
fn a_failed_update_leaves_what_was_installed() {
    let world = World::new();
    world.write(".claude/settings.json", "{}");
    world.install("claude").expect("installed");
    let before = files(&world.environment.home);
    let other = world.program.with_file_name("other");
    fs::write(&other, "#!/bin/sh\nexit 0\n").expect("written");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("mode");
    let installer = Installer { program: &other, ..world.installer(InstallScope::User) };
    assert!(installer.install(find("claude").expect("known")).is_err());
    assert_eq!(files(&world.environment.home), before);
}

#[test]
fn a_new_place_of_the_program_replaces_the_old_hooks() {
    let world = World::new();
    world.write(".claude/settings.json", COMMENTED);
    world.install("claude").expect("installed");
    let other = world.program.with_file_name("other");
    fs::copy(&world.program, &other).expect("copied");
    let installer = Installer { program: &other, ..world.installer(InstallScope::User) };
    assert!(installer.install(find("claude").expect("known")).expect("installed").changes());
    let text = world.read(".claude/settings.json");
    assert!(text.contains("/other\"") && !text.contains("call gate"));
    installer.uninstall(find("claude").expect("known")).expect("uninstalled");
    assert_eq!(world.read(".claude/settings.json"), COMMENTED);
}

#[test]
fn codex_is_told_that_its_user_trusts_the_hook_only_when_asked() {
    let world = World::new();
    let configuration = "model = \"x\" # mine\n\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n";
    world.write(".codex/config.toml", configuration);
    world.write(
        ".codex/hooks.json",
        "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}]}}",
    );
    let without = Installer { trust: false, ..world.installer(InstallScope::User) };
    let steps = without.install(find("codex").expect("known")).expect("installed");
    assert!(steps.advice.iter().any(|advice| advice.contains("/hooks")));
    assert_eq!(world.read(".codex/config.toml"), configuration);
    assert_eq!(world.status("codex").state, HookState::Altered);
    assert!(world.status("codex").problems[0].contains("not trusted"));

    world.install("codex").expect("installed");
    let text = world.read(".codex/config.toml");
    assert!(text.starts_with(configuration));
    // Another hook is there before ours.
    assert!(text.contains("hooks.json:pre_tool_use:1:0\"]"), "{text}");
    assert!(text.contains("hooks.json:session_start:0:0\"]"), "{text}");
    assert_eq!(world.status("codex").state, HookState::Proven);
    // Trust once given is kept.
    assert!(!without.install(find("codex").expect("known")).expect("again").changes());

    let moved = world.read(".codex/hooks.json").replace("{\"PreToolUse\":[", "{\"PreToolUse\":[{\"hooks\":[]},");
    world.write(".codex/hooks.json", &moved);
    assert!(world.status("codex").problems[0].contains("not trusted"), "its place counts");
    world.write(".codex/config.toml", &format!("{text}\n[features]\nhooks = false\n"));
    assert!(world.status("codex").problems[0].contains("features.hooks"));
    world.uninstall("codex");
    assert_eq!(world.read(".codex/config.toml"), format!("{configuration}\n[features]\nhooks = false\n"));
    assert!(!world.environment.home.join(".codex/rules").exists());
}

#[test]
fn status_tells_installed_active_skipped_and_altered_apart() {
    let world = World::new();
    assert_eq!(world.status("claude").state, HookState::NotFound);
    world.write(".claude/settings.json", "{}");
    assert_eq!(world.status("claude").state, HookState::NotInstalled);
    world.install("claude").expect("installed");
    assert_eq!(world.status("claude").state, HookState::Proven);
    Sighting::record(&world.environment, "claude", "session-1").expect("noted");
    assert_eq!(world.status("claude").state, HookState::Active);

    // Used an hour later, without a word.
    let session = world.write(".claude/projects/p/session.jsonl", "{}");
    assert_eq!(world.status("claude").state, HookState::Active);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    fs::File::options().append(true).open(session).expect("there").set_modified(later).expect("set");
    assert_eq!(world.status("claude").state, HookState::Skipped);

    let text = world.read(".claude/settings.json");
    world.write(".claude/settings.json", &text.replace("\"hooks\": {", "\"disableAllHooks\": true,\n  \"hooks\": {"));
    assert_eq!(world.status("claude").state, HookState::Altered);
    assert!(world.status("claude").problems[0].contains("disableAllHooks"));
    world.write(".claude/settings.json", &text.replace("\"block\"", "\"continue\""));
    assert!(
        world.status("claude").problems[0].contains("PreToolUse is missing"),
        "{:?}",
        world.status("claude").problems
    );
    world.write(".claude/settings.json", &text);
    fs::remove_file(&world.program).expect("removed");
    assert!(world.status("claude").problems[0].contains("does not exist any more"));
}

#[test]
fn gemini_hooks_that_are_switched_off_are_seen() {
    let world = World::new();
    world.write(".gemini/settings.json", "{\n  // mine\n  \"theme\": \"x\"\n}");
    world.install("gemini").expect("installed");
    let text = world.read(".gemini/settings.json");
    assert!(text.contains("\"timeout\": 600000"), "milliseconds: {text}");
    assert_eq!(world.status("gemini").state, HookState::Proven);
    world
        .write(".gemini/settings.json", &text.replace("\"theme\"", "\"hooksConfig\": {\"enabled\": false}, \"theme\""));
    assert!(world.status("gemini").problems[0].contains("hooksConfig.enabled"));
}

#[test]
fn rules_that_have_no_place_are_left_out_and_said() {
    let world = World::new();
    world.write(".config/opencode/opencode.jsonc", "{\n  // all\n  \"permission\": \"allow\"\n}");
    let steps = world.install("opencode").expect("installed");
    assert!(steps.advice.iter().any(|advice| advice.contains("left out")), "{:?}", steps.advice);
    assert!(world.read(".config/opencode/plugin/callgate.js").contains("\"hook\",\"opencode\",\"--timeout\",\"600\"]"));
    world.uninstall("opencode");
    assert_eq!(world.read(".config/opencode/opencode.jsonc"), "{\n  // all\n  \"permission\": \"allow\"\n}");
}

#[test]
fn amp_delegates_everything_before_any_other_rule() {
    let world = World::new();
    world.write(
        ".config/amp/settings.json",
        "{\n  \"amp.permissions\": [\n    {\"tool\": \"Bash\", \"action\": \"allow\"}\n  ]\n}",
    );
    world.install("amp").expect("installed");
    let settings: Value = serde_json::from_str(&world.read(".config/amp/settings.json")).expect("JSON");
    let first = &settings["amp.permissions"][0];
    assert_eq!((first["tool"].as_str(), first["action"].as_str()), (Some("*"), Some("delegate")));
    assert!(Path::new(first["to"].as_str().expect("a path")).is_file());
}

#[test]
fn files_that_are_somebody_elses_are_not_touched() {
    let world = World::new();
    world.write(".config/opencode/plugin/callgate.js", "// my own plugin\n");
    assert!(world.install("opencode").expect_err("foreign").to_string().contains("not written by callgate"));
    let outside = tempfile::tempdir().expect("a directory");
    let real = outside.path().join("settings.json");
    fs::write(&real, "{}").expect("written");
    fs::create_dir_all(world.environment.home.join(".claude")).expect("made");
    std::os::unix::fs::symlink(&real, world.environment.home.join(".claude/settings.json")).expect("a link");
    assert!(world.install("claude").expect_err("a link").to_string().contains("is a symlink to"));
    assert_eq!(fs::read_to_string(real).expect("there"), "{}");
}

#[test]
fn without_a_receipt_only_what_is_surely_ours_goes() {
    let world = World::new();
    world.write(".claude/settings.json", "{}");
    world.install("claude").expect("installed");
    fs::remove_file(InstallReceipt::path(&world.environment, "claude", InstallScope::User)).expect("removed");
    world.uninstall("claude");
    let left = world.read(".claude/settings.json");
    assert!(!left.contains("call gate") && left.contains("Read(~/.gnupg/**)"), "{left}");
}

#[test]
fn receipts_are_private() {
    let world = World::new();
    world.install("claude").expect("installed");
    let receipt = InstallReceipt::path(&world.environment, "claude", InstallScope::User);
    assert_eq!(fs::metadata(receipt).expect("there").mode() & 0o777, 0o600);
}
