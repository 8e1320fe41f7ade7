//! Realistic settings with the policies they become, hostile ones, and the one property that matters: never looser.

use std::path::Path;

use callgate::policy::{Decision, Policy, Severity};
use callgate::{Call, Gate};
use callgate_install::HostEnvironment;
use proptest::prelude::*;
use serde_json::json;

use super::probe::Probe;
use super::{
    ImportError, ImportProof, ImportedPolicy, Importer, SettingsFile, SettingsLayer, Translation, claude, codex,
    import, probe, proof, read,
};

fn environment() -> HostEnvironment {
    HostEnvironment { project: "/home/ada/project".into(), ..HostEnvironment::of_home("/home/ada".as_ref()) }
}

fn source(name: &str, layer: SettingsLayer, text: &str) -> SettingsFile {
    let environment = environment();
    let path = match layer {
        SettingsLayer::User | SettingsLayer::Managed => environment.home.join(name),
        SettingsLayer::Project | SettingsLayer::Local => environment.project.join(name),
    };
    SettingsFile::new(path, layer, text, &environment)
}

fn claude_settings(permissions: &serde_json::Value) -> SettingsFile {
    source(".claude/settings.json", SettingsLayer::Project, &json!({ "permissions": permissions }).to_string())
}

fn claude_import(permissions: &serde_json::Value) -> ImportedPolicy {
    import(Importer::Claude, &[claude_settings(permissions)], &environment()).unwrap()
}

fn judged(policy: &str, tool: &str, input: serde_json::Value) -> Decision {
    let environment = environment();
    let policy = Policy::from_yaml(policy, "imported").unwrap().with_home(&environment.home);
    let gate = Gate::builder().policy(policy).build();
    let call = Call::new(tool, input).directory(&environment.project).workspace(&environment.project);
    gate.assess(&call).map_or(Decision::Deny, |explained| explained.ruling().decision)
}

fn run(policy: &str, command: &str) -> Decision {
    judged(policy, "Bash", json!({ "command": command }))
}

macro_rules! fixture {
    ($path:literal) => {
        include_str!(concat!("../tests/fixtures/", $path))
    };
}

/// The fixtures as the agent would find them.
fn fixtures(importer: Importer) -> Vec<SettingsFile> {
    match importer {
        Importer::Claude => {
            vec![source(".claude/settings.json", SettingsLayer::Project, fixture!("claude/settings.json"))]
        }
        Importer::Codex => vec![
            source(".codex/config.toml", SettingsLayer::User, fixture!("codex/config.toml")),
            source(".codex/rules/default.rules", SettingsLayer::User, fixture!("codex/default.rules")),
        ],
        Importer::Gemini => vec![
            source(".gemini/settings.json", SettingsLayer::User, fixture!("gemini/settings.json")),
            source(".gemini/policies/team.toml", SettingsLayer::User, fixture!("gemini/team.toml")),
        ],
        Importer::OpenCode => {
            vec![source("opencode.jsonc", SettingsLayer::Project, fixture!("opencode/opencode.jsonc"))]
        }
    }
}

const ALL: [Importer; 4] = [Importer::Claude, Importer::Codex, Importer::Gemini, Importer::OpenCode];

#[test]
fn realistic_settings_become_these_policies() {
    for importer in ALL {
        let imported = import(importer, &fixtures(importer), &environment()).unwrap();
        insta::assert_snapshot!(importer.name(), imported.policy);
    }
}

#[test]
fn nothing_in_realistic_settings_becomes_looser_and_the_examples_say_something() {
    for importer in ALL {
        let ImportProof { examples, denied, asked, loosened, .. } =
            import(importer, &fixtures(importer), &environment()).unwrap().proof;
        assert_eq!(loosened, [], "{importer:?}");
        assert!(examples > 200 && denied > 40 && asked > 0, "{importer:?}: {examples} {denied} {asked}");
    }
}

#[test]
fn imported_policies_are_clean() {
    for importer in ALL {
        let imported = import(importer, &fixtures(importer), &environment()).unwrap();
        let policy = Policy::from_yaml(&imported.policy, "imported").unwrap();
        let findings: Vec<String> = callgate::policy::lint(&policy)
            .iter()
            .filter(|finding| finding.severity > Severity::Note)
            .map(|finding| finding.rendered().to_owned())
            .collect();
        assert_eq!(findings, Vec::<String>::new(), "{importer:?}");
    }
}

#[test]
fn what_standard_denies_stays_denied_whatever_was_allowed() {
    let everything =
        json!({ "allow": ["Bash", "Read", "Edit", "Write", "WebFetch", "Read(//**)", "Edit(//**)", "mcp__files"] });
    let imported = claude_import(&everything).policy;
    let environment = environment();
    let gate = |policy: Policy| Gate::builder().policy(policy.with_home(&environment.home)).build();
    let (bundled, imported) =
        (gate(Policy::bundled("standard").unwrap()), gate(Policy::from_yaml(&imported, "imported").unwrap()));
    let commands = [
        "rm -rf /",
        "rm -rf ~",
        "sudo rm -rf /usr",
        "find / -delete",
        "chmod -R 777 /",
        "chown -R nobody /etc",
        "dd if=image.iso of=/dev/sda",
        "cat /dev/zero > /dev/nvme0n1",
        "cat ~/.ssh/id_rsa",
        "tar cf - ~/.aws",
        "echo x >> ~/.ssh/authorized_keys",
        "echo 'default: allow' > callgate.yaml",
        "rm -rf ~/.config/callgate",
        "cat .env",
        "cat ~/.kube/config",
        "cp ~/.ssh/id_rsa x",
        "rm ~/.ssh/id_rsa",
    ];
    let probes = commands.map(|command| Probe::Shell(command.to_owned()));
    let mut denied = 0;
    for probe in probe::common(&environment).iter().chain(&probes) {
        let Some(call) = claude::TOOLS.call(probe, &environment) else { continue };
        let decision = |gate: &Gate| gate.assess(&call).unwrap().ruling().decision;
        if decision(&bundled) == Decision::Deny {
            denied += 1;
            assert_eq!(decision(&imported), Decision::Deny, "{probe:?}");
        }
    }
    assert!(denied > 20, "{denied}");
}

#[test]
fn claude_denies_first_however_specific_the_allow() {
    let imported = claude_import(&json!({
        "allow": ["Bash(aws s3 ls)", "Bash(git:*)", "Bash(make *)"],
        "ask": ["Bash(git push *)"],
        "deny": ["Bash(aws *)", "Bash(git push --force:*)", "Read(./secrets/**)", "Read(.env.local)", "Edit(/dist/**)"],
    }));
    for (command, expected) in [
        ("aws s3 ls", Decision::Deny),
        ("git commit -m x", Decision::Allow),
        ("git push", Decision::Ask),
        ("git push --force", Decision::Deny),
        ("timeout 5 git push --force", Decision::Deny),
        ("ls && git push --force", Decision::Deny),
        ("git 'push' --force", Decision::Deny),
        ("make all", Decision::Allow),
        ("make all && npm publish", Decision::Ask),
        ("make all > out.txt", Decision::Allow),
        ("make all > .git/hooks/pre-commit", Decision::Ask),
        ("cat secrets/key", Decision::Deny),
        ("grep -r x secrets", Decision::Deny),
        ("grep -r x .", Decision::Allow),
        ("cat config/.env.local", Decision::Deny),
        ("rm -r dist", Decision::Deny),
        ("touch dist/x", Decision::Deny),
        ("echo x > dist/a/b", Decision::Deny),
        ("grep -r x dist", Decision::Allow),
        ("rm -r target", Decision::Ask),
    ] {
        assert_eq!(run(&imported.policy, command), expected, "{command}");
    }
}

#[test]
fn paths_outside_are_opened_as_whole_directories_or_not_at_all() {
    let imported = claude_import(&json!({
        "allow": ["Read(//srv/data/**)", "Edit(//srv/shared/**)", "Read(//mnt/x/*.md)"],
    }));
    let file = |tool: &str, path: &str| match tool {
        "Write" => judged(&imported.policy, tool, json!({ "file_path": path, "content": "x" })),
        _ => judged(&imported.policy, tool, json!({ "file_path": path })),
    };
    for (tool, path, expected) in [
        ("Read", "/srv/data/a", Decision::Allow),
        ("Write", "/srv/data/a", Decision::Ask),
        ("Write", "/srv/shared/a", Decision::Allow),
        ("Read", "/srv/data/id_rsa", Decision::Deny),
        ("Read", "/mnt/x/a.md", Decision::Ask),
    ] {
        assert_eq!(file(tool, path), expected, "{tool} {path}");
    }
    assert_eq!(imported.notes.iter().filter(|note| note.outcome == Translation::LeftOut).count(), 1);
}

#[test]
fn settings_of_the_machines_owner_may_leave_only_their_own_allows() {
    let managed = json!({ "allowManagedPermissionRulesOnly": true, "permissions": { "allow": ["Bash(make:*)"] } });
    let sources = [
        source("managed-settings.json", SettingsLayer::Managed, &managed.to_string()),
        claude_settings(&json!({ "allow": ["Bash(npm:*)"], "deny": ["Bash(make install:*)"] })),
    ];
    let imported = import(Importer::Claude, &sources, &environment()).unwrap();
    assert_eq!(run(&imported.policy, "make all"), Decision::Allow);
    assert_eq!(run(&imported.policy, "make install"), Decision::Deny);
    assert_eq!(run(&imported.policy, "npm ci"), Decision::Ask);
}

#[test]
fn the_rest_is_denied_where_nobody_is_asked() {
    let imported = claude_import(&json!({ "allow": ["Bash(npm test:*)"], "defaultMode": "dontAsk" }));
    assert!(imported.proof.holds(), "{:?}", imported.proof.loosened);
    for (command, expected) in [
        ("npm test", Decision::Allow),
        ("A=1 npm test", Decision::Deny),
        ("ls -la", Decision::Allow),
        ("ls && env", Decision::Deny),
        ("rm x", Decision::Deny),
        ("curl https://example.com", Decision::Deny),
    ] {
        assert_eq!(run(&imported.policy, command), expected, "{command}");
    }
}

#[test]
fn codex_takes_the_strictest_and_gemini_the_highest_and_opencode_the_last() {
    let codex = import(Importer::Codex, &fixtures(Importer::Codex), &environment()).unwrap().policy;
    for (command, expected) in [
        ("git push --force", Decision::Deny),
        ("git push", Decision::Ask),
        ("bash -c 'git push --force'", Decision::Deny),
        ("cargo test --all", Decision::Allow),
        ("cargo testx", Decision::Ask),
        ("echo 'a b' '{x}'", Decision::Deny),
        ("curl https://telemetry.example.com/x", Decision::Deny),
    ] {
        assert_eq!(run(&codex, command), expected, "codex: {command}");
    }
    let gemini = import(Importer::Gemini, &fixtures(Importer::Gemini), &environment()).unwrap().policy;
    for (command, expected) in [
        ("git status", Decision::Allow),
        ("git log", Decision::Deny),
        ("rm -rf x", Decision::Deny),
        ("npm test", Decision::Allow),
        ("npm publish", Decision::Deny),
    ] {
        let decision = judged(&gemini, "run_shell_command", json!({ "command": command }));
        assert_eq!(decision, expected, "gemini: {command}");
    }
    let opencode = import(Importer::OpenCode, &fixtures(Importer::OpenCode), &environment()).unwrap().policy;
    for (command, expected) in [
        ("git status", Decision::Allow),
        ("git push", Decision::Ask),
        ("git push --force-with-lease", Decision::Deny),
        ("rm x", Decision::Deny),
        ("ls", Decision::Ask),
    ] {
        assert_eq!(judged(&opencode, "bash", json!({ "command": command })), expected, "opencode: {command}");
    }
    for (path, expected) in [("packages/web/src/content/docs/a.mdx", Decision::Allow), ("src/main.rs", Decision::Deny)]
    {
        let path = environment().project.join(path).display().to_string();
        let input = json!({ "filePath": path, "oldString": "a", "newString": "b" });
        assert_eq!(judged(&opencode, "edit", input), expected, "opencode: {path}");
    }
}

#[test]
fn an_agent_of_opencodes_that_may_not_makes_it_a_question_for_all() {
    let text = r#"{"permission": {"bash": {"git *": "allow", "rm *": "deny"}},
                   "agent": {"plan": {"permission": {"bash": "deny"}}}}"#;
    let imported =
        import(Importer::OpenCode, &[source("opencode.json", SettingsLayer::Project, text)], &environment()).unwrap();
    assert_eq!(judged(&imported.policy, "bash", json!({ "command": "git log" })), Decision::Ask);
    assert_eq!(judged(&imported.policy, "bash", json!({ "command": "rm x" })), Decision::Deny);
    assert!(imported.notes.iter().any(|note| note.outcome == Translation::Broader));
}

#[test]
fn gemini_settings_may_name_the_tools_that_stay() {
    let text = r#"{"tools": {"core": ["read_file", "ShellTool(git status)"], "allowed": ["run_shell_command(ls)"]}}"#;
    let imported =
        import(Importer::Gemini, &[source(".gemini/settings.json", SettingsLayer::User, text)], &environment())
            .unwrap();
    assert!(imported.proof.holds(), "{:?}", imported.proof.loosened);
    let shell = |command: &str| judged(&imported.policy, "run_shell_command", json!({ "command": command }));
    assert_eq!((shell("git status"), shell("ls"), shell("git push")), (Decision::Ask, Decision::Deny, Decision::Deny));
    assert_eq!(judged(&imported.policy, "write_file", json!({ "file_path": "x", "content": "" })), Decision::Deny);
}

#[test]
fn a_file_that_cannot_be_read_may_have_denied_something() {
    for (importer, name, text) in [
        (Importer::Claude, "settings.json", "{"),
        (Importer::Claude, "settings.json", r#"{"permissions": []}"#),
        (Importer::Claude, "settings.json", r#"{"permissions": {"deny": "Bash"}}"#),
        (Importer::Claude, "settings.json", r#"{"permissions": {"deny": [1]}}"#),
        (Importer::Claude, "settings.json", r#"{"permissions": {"deny": ["Bash"], "deny": []}}"#),
        (Importer::Codex, "x.rules", "prefix_rule(pattern=[\"a\"], decision=\"never\")"),
        (Importer::Codex, "x.rules", "prefix_rule(pattern=[])"),
        (Importer::Codex, "x.rules", "prefix_rule(pattern=[\"a\"], unless=[\"b\"])"),
        (Importer::Codex, "x.rules", "prefix_rule(pattern=[\"a"),
        (Importer::Codex, "config.toml", "sandbox_mode = \"off\""),
        (Importer::Gemini, "x.toml", "[[rule]]\ntoolName = \"x\"\ndecision = \"maybe\""),
        (Importer::Gemini, "x.toml", "[[rule]]\ndecision = \"deny\"\npriority = 1000"),
        (Importer::Gemini, "x.toml", "rule = 1"),
        (Importer::Gemini, "settings.json", r#"{"tools": {"exclude": "x"}}"#),
        (Importer::OpenCode, "opencode.json", r#"{"permission": {"bash": "no"}}"#),
        (Importer::OpenCode, "opencode.json", r#"{"permission": 1}"#),
        (Importer::OpenCode, "opencode.json", r#"{"permissions": [{"action": "bash"}]}"#),
    ] {
        let error = import(importer, &[source(name, SettingsLayer::Project, text)], &environment()).unwrap_err();
        assert!(matches!(error, ImportError::Unusable { .. }), "{text}: {error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    for importer in ALL {
        let empty = [source("settings.json", SettingsLayer::Project, "{}")];
        let empty = if importer == Importer::Codex { &empty[..0] } else { &empty[..] };
        assert!(matches!(import(importer, empty, &environment()), Err(ImportError::Nothing { .. })), "{importer:?}");
    }
}

#[test]
fn rules_that_contradict_each_other() {
    let rules: Vec<String> = (0..40).map(|number| format!("Bash(tool{number} *)")).collect();
    let imported = claude_import(&json!({ "allow": rules, "deny": rules }));
    assert!(imported.proof.holds());
    assert_eq!(run(&imported.policy, "tool17 x"), Decision::Deny);
}

#[test]
fn thousands_of_rules_make_a_policy_and_a_bounded_proof() {
    let rules: Vec<String> = (0..3000).map(|number| format!("Bash(tool{number} *)")).collect();
    let settings = claude_settings(&json!({ "deny": rules }));
    let reading = claude::read(std::slice::from_ref(&settings), &environment()).unwrap();
    assert_eq!(run(&reading.draft.render(Importer::Claude, &[settings]), "tool2999 x"), Decision::Deny);
    let probes: Vec<Probe> = (0..6000).map(|number| Probe::Tool(format!("tool{number}"))).collect();
    let proof = proof::compare_on(&probes, Policy::bundled("strict").unwrap(), &reading, &environment());
    assert_eq!(proof.examples + proof.left_out, 6000);
    assert!(proof.left_out > 0);
}

#[test]
fn what_is_not_understood_in_rule_files_is_said() {
    let text = "RULES = [\"a\"]\nprefix_rule(pattern=[\"rm\"], decision=\"forbidden\")\nunknown_rule(x=\"y\")\n";
    let imported = import(Importer::Codex, &[source("x.rules", SettingsLayer::User, text)], &environment()).unwrap();
    let left: Vec<&str> = imported.notes.iter().map(|note| note.origin.as_str()).collect();
    assert_eq!(left, ["~/x.rules: RULES = [\"a\"]", "~/x.rules: unknown_rule(x=\"y\")"]);
    assert!(imported.policy.contains("# Not translated exactly:"));
}

/// The model of Codex against Codex, where it is installed.
#[test]
fn the_model_of_codex_decides_as_codex_does() {
    use std::process::Command;
    let codex_program = std::env::var_os("CALLGATE_TEST_CODEX").unwrap_or_else(|| "codex".into());
    if Command::new(&codex_program).arg("--version").output().is_err() {
        eprintln!("codex is not installed; nothing was compared");
        return;
    }
    let text = fixture!("codex/default.rules");
    // A list that nobody uses is Starlark, too; the network rule's form differs between versions.
    let text: String =
        text.lines().filter(|line| !line.starts_with("network_rule")).map(|line| format!("{line}\n")).collect();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.rules");
    std::fs::write(&file, &text).unwrap();
    for command in [
        &["git", "push"][..],
        &["git", "push", "--force"],
        &["git", "push", "origin", "--force"],
        &["git", "reset", "--hard"],
        &["git", "status"],
        &["gh", "pr", "view", "1"],
        &["gh", "pr", "create"],
        &["cargo", "test", "-q"],
        &["cargo"],
        &["sudo", "ls"],
        &["bash", "-c", "ls"],
        &["bash", "-lc", "ls"],
        &["env", "x"],
        &["echo", "a b", "{x}", "more"],
        &["echo", "a", "b", "{x}"],
    ] {
        let output = Command::new(&codex_program)
            .args(["execpolicy", "check", "--rules"])
            .arg(&file)
            .arg("--")
            .args(command)
            .env("CODEX_HOME", directory.path())
            .output()
            .unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let theirs = answer["decision"].as_str().map(|decision| match decision {
            "allow" => Decision::Allow,
            "prompt" => Decision::Ask,
            _ => Decision::Deny,
        });
        let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(codex::decision_by_rules(&text, &words), theirs, "{command:?}");
    }
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(
        &[
            "git", "npm", "push", "run", "test", "--force", "-x", "a.txt", "src/x", "rm", "ls", "cat", "sudo", "make",
            "x",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 1..4).prop_map(|words| words.join(" "))
}

fn rule() -> impl Strategy<Value = String> {
    prop_oneof![
        words().prop_map(|text| format!("Bash({text})")),
        words().prop_map(|text| format!("Bash({text}:*)")),
        words().prop_map(|text| format!("Bash({text} *)")),
        words().prop_map(|text| format!("Bash({text}*)")),
        (words(), words()).prop_map(|(front, back)| format!("Bash({front} * {back})")),
        (words(), words()).prop_map(|(front, back)| format!("Bash({front}*{back} *)")),
        words().prop_map(|text| format!("Bash(* {text})")),
        prop::sample::select(
            &[
                "Read(a.txt)",
                "Read(src/**)",
                "Edit(src/x)",
                "Read(//srv/**)",
                "Edit",
                "Read",
                "Bash",
                "WebFetch(domain:example.com)"
            ][..]
        )
        .prop_map(str::to_owned),
    ]
}

fn command() -> impl Strategy<Value = String> {
    let simple = (prop::sample::select(&["", "", "", "timeout 5 ", "nice ", "A=1 ", "sudo "][..]), words())
        .prop_map(|(front, words)| format!("{front}{words}"));
    let joined = prop::sample::select(&[" && ", "; ", " | ", " || ", "\n", " & "][..]);
    (prop::collection::vec((simple, joined), 1..4), prop::sample::select(&["", " > out.txt", " 2>&1"][..])).prop_map(
        |(parts, end)| {
            let mut line = String::new();
            for (index, (part, operator)) in parts.iter().enumerate() {
                if index > 0 {
                    line.push_str(operator);
                }
                line.push_str(part);
            }
            line + end
        },
    )
}

/// What comparing on these calls, and some that the rules are about, came to.
fn loosened(importer: Importer, source: SettingsFile, commands: Vec<String>) -> Result<(), TestCaseError> {
    let environment = environment();
    let sources = [source];
    let reading = read(importer, &sources, &environment).unwrap();
    let text = reading.draft.render(importer, &sources);
    let policy = Policy::from_yaml(&text, "imported").unwrap().with_home(&environment.home);
    // Every seventh: a sample from all over, and enough for a debug build.
    let derived = reading.probes().step_by(7).cloned();
    let probes: Vec<Probe> = commands.into_iter().map(Probe::Shell).chain(derived).collect();
    let proof = proof::compare_on(&probes, policy, &reading, &environment);
    prop_assert_eq!(proof.loosened, vec![], "{}\n{}", &sources[0].text, text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn random_claude_rules_never_become_looser(
        deny in prop::collection::vec(rule(), 0..4),
        ask in prop::collection::vec(rule(), 0..3),
        allow in prop::collection::vec(rule(), 1..5),
        mode in prop::sample::select(&["default", "dontAsk", "acceptEdits"][..]),
        commands in prop::collection::vec(command(), 20),
    ) {
        let settings = claude_settings(&json!({ "deny": deny, "ask": ask, "allow": allow, "defaultMode": mode }));
        loosened(Importer::Claude, settings, commands)?;
    }

    #[test]
    fn random_opencode_rules_never_become_looser(
        rules in prop::collection::vec((
            prop::sample::select(&["bash", "edit", "read", "webfetch", "external_directory", "*", "github_search"][..]),
            prop_oneof![
                words(),
                words().prop_map(|text| format!("{text} *")),
                prop::sample::select(&["*", "src/*", "*.txt"][..]).prop_map(str::to_owned),
            ],
            prop::sample::select(&["allow", "ask", "deny"][..]),
        ), 1..8),
        commands in prop::collection::vec(command(), 20),
    ) {
        let list: Vec<serde_json::Value> =
            rules.iter().map(|(action, resource, effect)| json!({ "action": action, "resource": resource, "effect": effect })).collect();
        let text = json!({ "permissions": list }).to_string();
        loosened(Importer::OpenCode, source("opencode.json", SettingsLayer::Project, &text), commands)?;
    }

    #[test]
    fn random_gemini_rules_never_become_looser(
        rules in prop::collection::vec((
            prop::sample::select(&["run_shell_command", "run_shell_command", "write_file", "read_file", "web_fetch", "*"][..]),
            prop::option::of(words()),
            prop::sample::select(&["allow", "ask_user", "deny"][..]),
            0_u16..1000,
        ), 1..8),
        commands in prop::collection::vec(command(), 20),
    ) {
        let mut text = String::new();
        for (tool, prefix, decision, priority) in &rules {
            text.push_str(&format!("[[rule]]\ntoolName = \"{tool}\"\ndecision = \"{decision}\"\npriority = {priority}\n"));
            if let Some(prefix) = prefix.as_ref().filter(|_| *tool == "run_shell_command") {
                text.push_str(&format!("commandPrefix = \"{prefix}\"\n"));
            }
        }
        loosened(Importer::Gemini, source("x.toml", SettingsLayer::User, &text), commands)?;
    }

    #[test]
    fn random_codex_rules_never_become_looser(
        rules in prop::collection::vec((prop::collection::vec(word(), 1..4), prop::sample::select(&["allow", "prompt", "forbidden"][..])), 1..8),
        commands in prop::collection::vec(command(), 20),
    ) {
        let text: String = rules.iter().map(|(words, decision)| format!("prefix_rule(pattern={words:?}, decision={decision:?})\n")).collect();
        loosened(Importer::Codex, source("x.rules", SettingsLayer::User, &text), commands)?;
    }

    #[test]
    fn any_text_as_a_rule_is_read_or_refused_but_never_breaks_the_policy(
        texts in prop::collection::vec(prop_oneof![
            ".{0,40}",
            "(Bash|Read|Edit|WebFetch|mcp__x|Task)\\(.{0,30}\\)",
            "[\\x00-\\x20'\"{}\\[\\]#:,*&!|>%@`\\\\$()/~.-]{0,30}",
        ], 1..6),
    ) {
        let environment = environment();
        let claude = json!({ "permissions": { "deny": texts, "allow": texts, "ask": texts } }).to_string();
        let permission: serde_json::Map<String, serde_json::Value> = texts.iter().map(|text| (text.clone(), json!({ text: "deny" }))).collect();
        let opencode = json!({ "permission": permission }).to_string();
        let list = texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(",");
        let rules = format!("prefix_rule(pattern=[{list}], decision=\"forbidden\")");
        for (importer, name, text) in [(Importer::Claude, "settings.json", claude), (Importer::OpenCode, "opencode.json", opencode), (Importer::Codex, "x.rules", rules)] {
            let sources = [source(name, SettingsLayer::User, &text)];
            match read(importer, &sources, &environment) {
                Ok(reading) => {
                    let text = reading.draft.render(importer, &sources);
                    let loaded = Policy::from_yaml(&text, "imported");
                    prop_assert!(loaded.is_ok(), "{}\n{text}", loaded.err().map(|error| error.to_string()).unwrap_or_default());
                }
                Err(error) => prop_assert!(matches!(error, ImportError::Unusable { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn files_are_called_by_their_place_below_the_project_or_home() {
    let environment = environment();
    for (path, name) in [
        ("/home/ada/project/.claude/settings.json", ".claude/settings.json"),
        ("/home/ada/.claude/settings.json", "~/.claude/settings.json"),
        ("/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-settings.json"),
    ] {
        assert_eq!(SettingsFile::new(Path::new(path), SettingsLayer::User, "", &environment).name, name);
    }
}
