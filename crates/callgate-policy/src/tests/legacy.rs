use super::*;
use Decision::{Allow, Ask, Contain, Deny};

/// A file of the kind the second format's users have: settings, look-around patterns, risk levels.
const SECOND: &str = r"
name: default
description: balanced rules
settings:
  default_action: require_approval
  log_level: info
  approval_timeout_seconds: 300
rules:
  - name: credential-files
    tools: [Read, Write, Edit]
    path_patterns: ['\.env(?!\.example)', '\.ssh/', '.*\.pem$']
    action: deny
    reason: credential file
    risk_level: critical
  - name: destructive-bash
    tools: [Bash]
    command_patterns:
      - 'rm\s+(-[a-z]*r[a-z]*f|-[a-z]*f[a-z]*r)'
      - '(?<!git )push --force'
      - 'curl[^|]*\|\s*(ba)?sh'
    action: deny
    reason: destructive
    description: cannot be undone
    risk_level: critical
  - name: read-only-bash
    tools: [Bash]
    command_patterns: ['^(ls|cat|pwd)\b', '^git (status|log|diff)(?! --output)']
    action: allow
    risk_level: low
  - name: read-only-tools
    tools: [Read, Glob, Grep]
    action: allow
  - name: file-writes
    tools: [Write, Edit]
    action: require_approval
    risk_level: medium
";

#[test]
fn the_second_format_loads_unchanged() {
    let policy = policy(SECOND);
    for (command, expected) in [
        ("rm -rf x", Deny),
        ("rm -fr x", Deny),
        ("ls -la", Allow),
        ("git status", Allow),
        ("git log --output=x", Ask),
        ("make", Ask),
    ] {
        assert_eq!(Scene::shell(command).decide(&policy), expected, "{command}");
    }
    let read = |name: &str| Scene::tool("Read").effect(path(Action::Read, name));
    assert_eq!(read("/w/.env").decide(&policy), Deny);
    assert_eq!(read("/w/.env.example").decide(&policy), Allow);
    assert_eq!(Scene::tool("Write").effect(path(Action::Write, "/w/a")).decide(&policy), Ask);
    assert_eq!(Scene::custom("unknown_tool").decide(&policy), Ask);
    let judgement = Scene::shell("rm -rf x").judge(&policy);
    assert_eq!(judgement.classification.category, "destructive-bash");
    assert_eq!(judgement.classification.risk_level, "critical");
    assert_eq!(judgement.classification.description, "cannot be undone");
    assert_eq!(judgement.classification.deny_reason.as_deref(), Some("destructive"));
    assert_eq!(policy.timeouts().approval_ms, Some(300_000));
}

/// The third format's first recipe.
const CI_RUNNER: &str = r#"
config_version: 1
safety:
  mode: "ask"
  allowlist: ["pwd", "ls", "cat", "rg", "pytest"]
  denylist: ["sudo", "rm -rf", "mkfs", "dd", "shutdown", "reboot"]
  approval_timeout_ms: 5000
sandbox:
  default_policy: "restricted"
  os:
    mode: "auto"
run:
  human_timeout_ms: 3000
"#;

#[test]
fn the_third_formats_sections_become_rules() {
    let policy = policy(CI_RUNNER);
    for (command, expected) in [
        ("pwd", Contain),
        ("ls -la", Contain),
        ("pytest -q tests", Contain),
        ("lsof", Ask),
        ("make", Ask),
        ("rm x", Ask),
        ("rm -rf /", Deny),
        ("rm -fr /", Deny),
        ("rm -r -f /", Deny),
        ("rm -v -rf x", Deny),
        ("rm -rvf x", Deny),
        ("/bin/rm -rf x", Deny),
        ("dd if=a of=b", Deny),
        ("reboot", Deny),
        ("echo reboot", Ask),
        // Complex shell asks even though every command is on the list; what is denied stays denied.
        ("ls ; pwd", Ask),
        ("ls ; reboot", Deny),
    ] {
        assert_eq!(Scene::shell(command).decide(&policy), expected, "{command}");
    }
    let complex = |command: &str| Scene::shell("ls").input(json!({ "command": command }));
    for command in ["ls > x", "ls | cat", "ls $(pwd)", "ls && ls", "ls `pwd`", "ls\nls"] {
        assert_eq!(complex(command).decide(&policy), Ask, "{command}");
    }
    assert_eq!(Scene::shell("ls").effect(path(Action::Write, "/w/x").mark(Mark::Redirection)).decide(&policy), Ask);
    assert_eq!(Scene::shell("ls").wrapped_in("sudo").decide(&policy), Deny);
    assert_eq!(policy.timeouts().approval_ms, Some(5000));
    assert_eq!(policy.timeouts().human_ms, Some(3000));
    assert!(policy.wants_sandbox());
}

#[test]
fn modes() {
    let text = |mode: &str| format!("safety: {{mode: {mode}, allowlist: [ls], denylist: [sudo]}}\n");
    for (mode, command, expected) in [
        ("ask", "ls", Allow),
        ("ask", "make", Ask),
        ("allow", "make", Allow),
        ("allow", "sudo x", Deny),
        ("deny", "ls", Allow),
        ("deny", "make", Deny),
        ("deny", "ls ; ls", Deny),
    ] {
        assert_eq!(Scene::shell(command).decide(&policy(&text(mode))), expected, "{mode} {command}");
    }
    let opaque_call = Scene::shell("make").effect(opaque()).partial();
    assert_eq!(opaque_call.decide(&policy(&text("allow"))), Ask);
}

#[test]
fn custom_tools_ask_unless_they_are_listed() {
    for mode in ["ask", "allow"] {
        let policy = policy(&format!("safety: {{mode: {mode}, tool_allowlist: [weather], tool_denylist: [mail]}}\n"));
        assert_eq!(Scene::custom("weather").decide(&policy), Allow);
        assert_eq!(Scene::custom("mail").decide(&policy), Deny);
        assert_eq!(Scene::custom("other").decide(&policy), Ask);
        assert_eq!(Scene::custom("evil/weather").decide(&policy), Ask);
    }
}

#[test]
fn the_no_human_recipe_asks_and_leaves_the_answer_to_code() {
    // The second recipe: mode ask with a deterministic approver. Nothing that is not listed is silent.
    let policy = policy(
        "config_version: 1\nsafety:\n  mode: ask\n  allowlist: []\n  denylist: []\n  tool_allowlist: []\n  tool_denylist: []\n",
    );
    assert_eq!(Scene::shell("ls").decide(&policy), Ask);
    assert_eq!(Scene::custom("x").decide(&policy), Ask);
}

#[test]
fn mistakes_in_sections_are_mistakes() {
    for text in [
        "safety: {mod: ask}",
        "safety: {mode: maybe}",
        "sandbox: {default_policy: strong}",
        "run: {human_timeout_ms: soon}",
        "config_version: 3",
    ] {
        assert!(Policy::from_yaml(text, "test.yaml").is_err(), "{text}");
    }
}
