use super::super::{ExampleCall, PermissionPolicy, PermissionResult, PermissionRule, RuleExample, Severity};
use super::*;
use Decision::{Allow, Ask, Deny};

#[test]
fn the_bundled_policies_load() {
    for name in Policy::bundled_names() {
        let policy = Policy::bundled(name).unwrap_or_else(|error| panic!("{error}")).with_home("/home/me");
        let secret = Scene::tool("Read").effect(path(Action::Read, "/home/me/.ssh/id_rsa"));
        assert_eq!(secret.decide(&policy), Deny, "{name}");
        let plain = Scene::tool("Read").effect(path(Action::Read, "/w/src/main.rs"));
        assert_eq!(plain.decide(&policy), Allow, "{name}");
        assert!(policy.boundary_settings().roots.is_some());
    }
    assert!(Policy::bundled("nonesuch").is_err());
}

#[test]
fn every_bundled_set_can_be_used() {
    let text = include_str!("../../policies/sets.yaml");
    policy(text);
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'))
        .filter(|name| !name.starts_with([' ', '#']));
    let mut count = 0;
    for name in names {
        rules(&format!("  - {{action: deny, paths: ['@{name}']}}\n"));
        count += 1;
    }
    assert!(count > 10);
}

#[test]
fn the_bundled_policies_are_free_of_findings() {
    for name in Policy::bundled_names() {
        let findings = Policy::bundled(name).unwrap().lint(&root_around);
        let shown: Vec<&str> = findings.iter().map(|finding| finding.rendered()).collect();
        assert!(findings.is_empty(), "{}", shown.join("\n"));
    }
}

#[test]
fn the_policies_in_the_documentation_load_and_are_free_of_errors() {
    let text = include_str!("../../../../docs/policies.md");
    let mut count = 0;
    for block in text.split("```yaml\n").skip(1) {
        let yaml = block.split("```").next().unwrap();
        let serious: Vec<String> = policy(yaml)
            .lint(&root_around)
            .iter()
            // the recipes of earlier formats stand here as their users know them
            .filter(|finding| finding.severity > Severity::Note && finding.code != "no-effect")
            .map(|finding| finding.rendered().to_owned())
            .collect();
        assert!(serious.is_empty(), "{}", serious.join("\n"));
        count += 1;
    }
    assert!(count >= 4);
}

#[test]
fn a_file_extends_a_bundled_policy_with_its_rules_first() {
    let policy =
        policy("extends: standard\nrules:\n  - {name: mine, commands: ['rm **'], effects: [delete], action: allow}\n");
    let removal = |name: &str| Scene::shell("rm x").effect(path(Action::Delete, name));
    assert_eq!(removal("/w/x").decide(&policy), Allow);
    assert_eq!(Scene::tool("x").effect(path(Action::Delete, "/w/x")).decide(&policy), Ask);
    assert_eq!(Scene::tool("Read").effect(path(Action::Read, "/w/.env")).decide(&policy), Deny);
    let judgement = Scene::tool("Read").effect(path(Action::Read, "/w/.env")).judge(&policy);
    assert!(judgement.ruling.place.unwrap().starts_with("standard (bundled):"));
}

#[test]
fn a_file_may_replace_or_extend_a_set() {
    let read = |name: &str| Scene::tool("Read").effect(path(Action::Read, name));
    let more = policy("extends: standard\nsets:\n  secrets: ['@secrets', '**/my-secret']\n");
    assert_eq!(read("/w/my-secret").decide(&more), Deny);
    assert_eq!(read("/w/.env").decide(&more), Deny);
    let other = policy("extends: standard\nsets:\n  secrets: ['**/my-secret']\n");
    assert_eq!(read("/w/my-secret").decide(&other), Deny);
    assert_eq!(read("/w/.env").decide(&other), Allow);
}

#[test]
fn files_extend_files_and_circles_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let base = "rules:\n  - {name: base, effects: [read], action: deny}\n";
    write("base/team.yaml", base);
    let mine = write("callgate.yaml", "extends: ./base/team.yaml\nrules:\n  - {paths: [docs/**], action: allow}\n");
    let policy = Policy::from_file(&mine).unwrap();
    let real = directory.path().canonicalize().unwrap();
    let read = |name: &str| Scene::tool("Read").effect(path(Action::Read, real.join(name).to_str().unwrap()));
    assert_eq!(read("x").decide(&policy), Deny);
    assert_eq!(read("docs/x").decide(&policy), Allow);

    write("a.yaml", "extends: b.yaml\n");
    write("b.yaml", "extends: ./a.yaml\n");
    write("self.yaml", "extends: self.yaml\n");
    for name in ["a.yaml", "self.yaml"] {
        let error = Policy::from_file(&directory.path().join(name)).unwrap_err().to_string();
        assert!(error.contains("extends itself"), "{error}");
    }
    for number in 0..20 {
        write(&format!("{number}.yaml"), &format!("extends: ./{}.yaml\n", number + 1));
    }
    let error = Policy::from_file(&directory.path().join("0.yaml")).unwrap_err().to_string();
    assert!(error.contains("chain of `extends` is too long"), "{error}");
    write("lost.yaml", "extends: ./nowhere.yaml\n");
    let error = Policy::from_file(&directory.path().join("lost.yaml")).unwrap_err().to_string();
    assert!(error.contains("lost.yaml:1") && error.contains("cannot read"), "{error}");
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    assert!(Policy::from_file(&directory.path().join("missing.yaml")).is_err());
    assert!(Policy::from_file(directory.path()).is_err());
    assert!(Policy::from_file(std::path::Path::new("/dev/zero")).is_err());
    let bytes = directory.path().join("bytes.yaml");
    std::fs::write(&bytes, b"rules: \xff\xfe").unwrap();
    assert!(Policy::from_file(&bytes).unwrap_err().to_string().contains("UTF-8"));
}

#[test]
fn the_boundary_is_read_with_sets_expanded() {
    let policy = policy(
        "sets: {here: ['./{a,b}', '!~/x']}\nboundary: {roots: ['.', '@here', '@temporary'], outside: ask, list_outside: silent}\n",
    );
    let settings = policy.boundary_settings();
    let roots: Vec<&str> =
        settings.roots.iter().flat_map(|roots| roots.iter()).map(|root| root.path.as_str()).collect();
    assert_eq!(roots, [".", "./a", "./b", "!~/x", "@temporary"]);
    assert_eq!(settings.readable, None);
    assert_eq!((settings.outside, settings.list_outside), (Some(Ask), Some(Allow)));
}

#[test]
fn the_version_follows_the_contents() {
    let one = policy("default: ask");
    assert_eq!(one.version(), policy("default: ask").version());
    assert_ne!(one.version(), policy("default: deny").version());
    assert_eq!(one.version().len(), 64);
}

fn describe(example: &RuleExample) -> ExampleCall {
    let scene = match example {
        RuleExample::Command(command) => Scene::shell(command),
        RuleExample::Call { tool, input } => {
            let file = input["file_path"].as_str().unwrap();
            Scene::tool(tool).input(input.clone()).effect(path(Action::Read, &format!("/w/{file}")))
        }
    };
    ExampleCall { call: scene.call, description: scene.description, claims: scene.claims }
}

#[test]
fn examples_are_checked() {
    let good = policy(
        "rules:
  - {name: push, commands: ['git push **'], action: deny, matches: [git push -f], misses: [git pull, {command: ls}]}
  - {name: env, paths: ['**/.env'], action: deny, matches: [{tool: Read, input: {file_path: .env}}]}
",
    );
    let checked = good.check_examples(&describe);
    assert_eq!((checked[0].checked, checked[0].failed.len()), (4, 0));
    let bad = policy(
        "rules:
  - name: push
    commands: ['git push **']
    action: deny
    matches: [git pull]
    misses: [git push]
",
    );
    let error = bad.check_examples(&describe).remove(0).into_result().unwrap_err();
    insta::assert_snapshot!(error.to_string(), @r"
    error: rule `push` should match this example but decides none of its effects
     --> test.yaml:5:15
      |
    5 |     matches: [git pull]
      |               ^^^^^^^^
      |
      = help: no rule matches any of its effects

    error: rule `push` should not match this example but decides one of its effects
     --> test.yaml:6:14
      |
    6 |     misses: [git push]
      |              ^^^^^^^^
      |
      = help: the deciding rules are: push
    ");
}

#[test]
fn lint_finds_what_is_probably_not_meant() {
    let policy = policy(
        "sets: {unused: ['/x']}
rules:
  - {name: git, reason: r, commands: ['git **'], action: allow}
  - {name: no-push, reason: r, commands: ['git push **'], action: deny}
  - {name: all-reads, reason: r, effects: [read], action: ask}
  - {name: some-reads, reason: r, effects: [read], paths: ['/etc/**'], action: deny}
  - {name: never, reason: r, effects: [connect], paths: ['/etc/**'], action: deny}
  - {name: narrow, reason: r, effects: [write], paths: ['.env'], action: deny}
  - {name: narrow, effects: [delete], action: deny}
  - {effects: [opaque], reason: r, action: deny}
  - {name: everything, reason: r, action: allow}
",
    );
    let findings: Vec<(&str, usize, Severity)> = policy
        .lint(&root_around)
        .iter()
        .map(|finding| (finding.code, finding.mistake.position.line, finding.severity))
        .collect();
    for expected in [
        ("swallowed", 4, Severity::Error),
        ("unreachable", 6, Severity::Warning),
        ("cannot-match", 7, Severity::Warning),
        ("narrow-path", 8, Severity::Note),
        ("repeated-name", 9, Severity::Warning),
        ("no-reason", 9, Severity::Note),
        ("unnamed", 10, Severity::Note),
        ("allows-everything", 11, Severity::Warning),
        ("unused-set", 1, Severity::Warning),
    ] {
        assert!(findings.contains(&expected), "{expected:?} is not in {findings:?}");
    }
    assert_eq!(findings.len(), 9, "{findings:?}");
}

#[test]
fn lint_warns_where_less_than_everything_must_be_held() {
    let policy = policy("sandbox: {profiles: {all: {limits: {time: 1m}}, less: {requires: [writes, reads]}}}\n");
    let findings = policy.lint(&root_around);
    let found: Vec<(&str, Severity)> = findings.iter().map(|finding| (finding.code, finding.severity)).collect();
    assert_eq!(found, [("less-is-held", Severity::Warning)]);
    assert!(findings[0].rendered().contains("secrets, protected_names, network"), "{}", findings[0].rendered());
}

#[test]
fn an_allow_that_does_not_cover_the_deny_behind_it_is_fine() {
    for text in [
        "  - {name: a, reason: r, effects: [send], action: allow}\n  - {name: b, reason: r, effects: [send], marks: [destructive], action: deny}\n",
        "  - {name: a, reason: r, tools: [Bash], action: allow}\n  - {name: b, reason: r, tools: [Bash], effects: [opaque], action: deny}\n",
        "  - {name: a, reason: r, paths: ['./**', '!./x/**'], action: allow}\n  - {name: b, reason: r, paths: ['./x/**'], action: deny}\n",
    ] {
        assert!(rules(text).lint(&root_around).is_empty(), "{text}");
    }
}

#[test]
fn policies_built_in_rust() {
    let tool = |name: &str, tag: &str| Scene::custom(name).tag(tag);
    let policy: Policy = PermissionPolicy::new()
        .rule(PermissionRule::deny_privileged())
        .rule(PermissionRule::ask_destructive())
        .rule(PermissionRule::ask_network())
        .rule(PermissionRule::ask_file_system())
        .rule(PermissionRule::allow_readonly())
        .into();
    for (tag, expected) in [
        ("privileged", Deny),
        ("destructive", Ask),
        ("network", Ask),
        ("file_system", Ask),
        ("read_only", Allow),
        ("slow", Deny),
    ] {
        assert_eq!(tool("x", tag).decide(&policy), expected, "{tag}");
    }
    assert_eq!(tool("server/x", "read_only").decide(&policy), Deny);
    assert_eq!(tool("x", "read_only").tag("privileged").decide(&policy), Deny);
    let ruling = tool("x", "privileged").judge(&policy).ruling;
    assert_eq!(ruling.rule.as_deref(), Some("deny_privileged"));
    assert_eq!(Scene::custom("x").decide(&Policy::from(PermissionPolicy::new())), Deny);
}

#[test]
fn a_predicate_that_panics_or_fails_is_a_deny_or_no_match() {
    let failing = |result| PermissionRule::new("fails", result, |_, _, _| Err::<bool, _>("broken"));
    let panicking = |result| PermissionRule::new("panics", result, |_, _, _| -> bool { panic!("broken") });
    let decide = |rule| {
        let policy = PermissionPolicy::new().rule(rule).fallback(PermissionResult::Ask);
        Scene::custom("x").decide(&policy.into())
    };
    for make in [&failing as &dyn Fn(PermissionResult) -> PermissionRule, &panicking] {
        assert_eq!(decide(make(PermissionResult::Deny)), Deny);
        assert_eq!(decide(make(PermissionResult::Ask)), Deny);
        assert_eq!(decide(make(PermissionResult::Allow)), Ask);
    }
}
