use super::super::PolicyError;
use super::*;

fn mistakes(text: &str) -> String {
    match Policy::from_yaml(text, "test.yaml") {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_mistake_is_shown_with_its_line_a_caret_and_what_to_write() {
    insta::assert_snapshot!(mistakes("version: 1\nrules:\n  - name: x\n    comands: [ls]\n    action: allow\n"), @r"
    error: unknown key `comands` in a rule
     --> test.yaml:4:5
      |
    4 |     comands: [ls]
      |     ^^^^^^^
      |
      = help: did you mean `commands`?
    ");
    insta::assert_snapshot!(mistakes("rules:\n  - {action: allwo}\n"), @r"
    error: unknown word `allwo` in `action`
     --> test.yaml:2:14
      |
    2 |   - {action: allwo}
      |              ^^^^^
      |
      = help: did you mean `allow`?
    ");
    insta::assert_snapshot!(mistakes("rules:\n  - {action: deny, paths: ['/a/[x']}\n"), @r"
    error: unclosed `[`; write `\[` for the character itself (in `/a/[x`)
     --> test.yaml:2:28
      |
    2 |   - {action: deny, paths: ['/a/[x']}
      |                            ^^^^^^^
    ");
}

#[test]
fn several_mistakes_are_shown_at_once() {
    let Err(PolicyError::Mistakes(mistakes)) = Policy::from_yaml(
        "verson: 1\nrules:\n  - {effects: [raed], action: deny}\n  - {tools: []}\ndefault: maybe\n",
        "test.yaml",
    ) else {
        panic!()
    };
    let lines: Vec<usize> = mistakes.list().iter().map(|mistake| mistake.position.line).collect();
    assert_eq!(lines, [1, 3, 4, 4, 5]);
}

#[test]
fn every_kind_of_mistake_is_refused_with_a_help() {
    for (text, message) in [
        ("rulez: []", "did you mean `rules`?"),
        ("version: 2", "write `version: 1`"),
        ("rules: {a: b}", "expected a list of rules, found a mapping"),
        ("rules: [x]", "expected a rule"),
        ("rules:\n  - {name: x}", "missing key `action`"),
        ("rules:\n  - {action: deny, action: allow}", "duplicate key `action`"),
        ("default: deny\ndefault: allow", "duplicate key `default`"),
        ("sets: {a: ['/x'], a: ['/y']}\n", "duplicate set `a`"),
        ("rules:\n  - {action: deny, tools: []}", "remove `tools`"),
        ("rules:\n  - {action: deny, paths: [7, [x]]}", "expected text, found a list"),
        ("rules:\n  - {action: deny, recursive: yes}", "write `true` or `false`"),
        ("rules:\n  - {action: deny, command_patterns: ['(']}", "unclosed group"),
        ("rules:\n  - {action: deny, path_patterns: ['a{3,1}']}", "regular expression"),
        ("rules:\n  - {action: deny, commands: ['git {push']}", "unclosed `{`"),
        ("rules:\n  - {action: deny, hosts: ['https://x.example/']}", "found a URL"),
        ("rules:\n  - {action: deny, hosts: ['10.0.0.0/99']}", "invalid network"),
        ("rules:\n  - {action: deny, paths: ['@nothing']}", "unknown set"),
        ("rules:\n  - {action: deny, paths: ['@secret']}", "did you mean \"@secrets\"?"),
        ("rules:\n  - {action: deny, paths: ['!/a']}", "match nothing"),
        ("rules:\n  - {action: deny, paths: ['/a/../b']}", "`..` is not supported"),
        ("rules:\n  - {action: deny, paths: ['~bob/x']}", "home directory of every user"),
        ("rules:\n  - {action: allow, traversal: true}", "cannot allow paths that leave a root"),
        ("rules:\n  - {action: deny, tools: ['@tagg:x']}", "invalid tool pattern"),
        ("rules:\n  - {action: deny, marks: [distructive]}", "did you mean `destructive`?"),
        ("rules:\n  - {action: deny, matches: [{tool: x, command: y}]}", "invalid example"),
        ("sets: {'@a': ['/x']}", "without `@`"),
        ("sets: {a: ['@b'], b: ['@a']}", "contains itself"),
        ("sets: {a: ['@a']}", "unknown set"),
        ("extends: standrad", "did you mean `standard`?"),
        ("extends: ./other.yaml", "unknown policy `./other.yaml`"),
        ("boundary: {outside: allow}", "`outside`"),
        ("boundary: {roots: ['@nowhere']}", "unknown set"),
        ("a: &x 1\nb: *x\n", "anchors and aliases"),
        ("version: 1\n---\nversion: 1\n", "second document"),
        ("version: !!int 1\n", "tags"),
        ("rules: [", "invalid YAML"),
        ("a: b: c", "invalid YAML"),
        ("just text", "expected a mapping"),
    ] {
        let shown = mistakes(text);
        assert!(shown.contains(message), "{text}\n{shown}");
        assert!(shown.contains("test.yaml:"), "{shown}");
    }
}

#[cfg(feature = "conditions")]
#[test]
fn conditions_are_compiled_when_the_file_is_loaded() {
    for (condition, message) in [
        ("input.to ==", "invalid condition"),
        ("inputs.to == 1", "unknown name `inputs`"),
        (&"(".repeat(100), "too deeply nested"),
        (&"a".repeat(5000), "too long"),
        ("input.a.all(x, input.a.all(y, input.a.all(z, x == z)))", "too many lists"),
    ] {
        let shown = mistakes(&format!("rules:\n  - {{action: deny, when: '{condition}'}}\n"));
        assert!(shown.contains(message), "{shown}");
    }
}

#[test]
fn huge_and_nested_input_is_refused() {
    let rules = "  - {action: deny}\n".repeat(60_000);
    let braces = format!("rules:\n  - {{action: deny, paths: ['{}']}}", "{a,b}".repeat(30));
    let bomb: String = (0..40).map(|n| format!("s{}: ['@s{n}', '@s{n}']\n  ", n + 1)).collect();
    for text in [
        "[".repeat(1_000_000),
        format!("rules: {}", "[".repeat(100_000)),
        format!("rules:\n{rules}"),
        "x".repeat(20 * 1024 * 1024),
        format!("rules:\n  - {{action: deny, paths: ['{}']}}", "a".repeat(5000)),
        braces,
        format!("sets:\n  s0: ['/a']\n  {bomb}\nrules: []"),
        format!("a: &a [x]\nb: &b [{}]", "*a,".repeat(10_000)),
    ] {
        assert!(Policy::from_yaml(&text, "test.yaml").is_err(), "{}", &text[..60.min(text.len())]);
    }
}

#[test]
fn odd_but_legal_files_load() {
    for text in ["", "# nothing\n", "rules:\n", "version: 1\nrules: []\n", "\u{feff}version: 1\n", "{}"] {
        policy(text);
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[ -~\\n]{0,200}") {
        let _ = Policy::from_yaml(&text, "test.yaml");
    }

    #[test]
    fn no_pattern_panics(pattern in ".{0,40}") {
        let quoted = pattern.replace('\'', "''").replace('\n', " ");
        for key in ["paths", "commands", "hosts", "command_patterns", "tools", "when"] {
            let text = if key == "when" { format!("'{quoted}'") } else { format!("['{quoted}']") };
            if let Ok(policy) = Policy::from_yaml(&format!("rules:\n  - {{action: deny, {key}: {text}}}\n"), "test.yaml") {
                let scene = Scene::shell("git push").effect(path(Action::Read, "/w/a")).effect(host(Action::Connect, Some("x.example")));
                scene.judge(&policy);
            }
        }
    }
}

#[test]
fn a_boundary_exclusion_that_would_do_nothing_is_a_mistake() {
    for exclusion in ["!/var/log/auth*", "!~/*/private", "!./[ab]"] {
        let text = format!("boundary: {{roots: [\".\"], readable: [\"/var/log/**\", \"{exclusion}\"]}}");
        let mistake = Policy::from_yaml(&text, "inline").unwrap_err().to_string();
        assert!(mistake.contains("excludes nothing"), "{mistake}");
    }
    for exclusion in ["!/var/log/private/**", "!/var/log/{auth.log,btmp}", "!~/notes"] {
        let text = format!("boundary: {{roots: [\".\"], readable: [\"/var/log/**\", \"{exclusion}\"]}}");
        Policy::from_yaml(&text, "inline").unwrap();
    }
}

#[test]
fn what_rules_say_about_the_fence_is_checked() {
    let said = |keys: &str| {
        let text = format!("rules:\n  - {{commands: [make], {keys}}}\nsandbox: {{}}\n");
        Policy::from_yaml(&text, "test.yaml").map_or_else(|error| error.to_string(), |_| String::new())
    };
    for keys in [
        "action: contain, network: none",
        "action: contain, network: all, limits: {time: 5m, memory: 512MiB, processes: 256, output: 4096}",
        "action: contain, network: ['@registries', db.example:5432, '*.example.org', 10.0.0.0/8]",
        "action: allow, where: free",
        "action: contain, instead_of: ask, needs: sandbox, doubt: true, last: true",
    ] {
        assert_eq!(said(keys), "", "{keys}");
    }
    for (keys, part) in [
        ("action: contain, network: [none, all]", "is not a host"),
        ("action: contain, network: ['https://example.com/x']", "is not a host"),
        ("action: contain, network: [example.com:0]", "is not a host"),
        ("action: contain, limits: {time: 0s}", "stops every call"),
        ("action: contain, limits: {processes: 0}", "stops every call"),
        ("action: contain, limits: {memory: 0}", "stops every call"),
        ("action: contain, limits: {memory: much}", "expected a size"),
        ("action: contain, limits: {memori: 1}", "did you mean `memory`"),
        ("action: ask, network: all", "contains nothing"),
        ("action: ask, profile: dev", "contains nothing"),
        ("action: contain, profile: balancd", "did you mean `balanced`?"),
        ("action: contain, where: free", "changes nothing"),
        ("action: allow, where: outside", "expected one of free"),
        ("action: contain, doubt: true", "needs `instead_of: ask`"),
        ("action: contain, last: true", "needs `instead_of`"),
    ] {
        assert!(said(keys).contains(part), "{keys}: {}", said(keys));
    }
    let profile = Policy::from_yaml("sandbox: {profile: produktion}\n", "test.yaml").unwrap_err().to_string();
    assert!(profile.contains("unknown profile `produktion`"), "{profile}");
    for (section, part) in [
        ("profile: prodd", "did you mean `prod`?"),
        ("profile: weekly, profiles: {weakly: {}}", "did you mean `weakly`?"),
        ("profiles: {prod: {}}", "there is a profile `prod` already"),
        ("profiles: {x: {requires: [write]}}", "did you mean `writes`?"),
        ("profiles: {x: {requires: []}}", "is empty"),
        ("profiles: {x: {limits: {time: 0s}}}", "stops every call"),
        ("profile: x, profiles: {x: {network: [example.com]}}", "cannot list hosts"),
        ("profiles: 7", "expected a mapping from names to profiles"),
    ] {
        let said = Policy::from_yaml(&format!("sandbox: {{{section}}}\n"), "test.yaml").unwrap_err().to_string();
        assert!(said.contains(part), "{section}: {said}");
    }
    let hosts = "sandbox: {profiles: {x: {network: ['https://x.y/z']}}}\nrules: [{commands: [make], action: contain, profile: x}]\n";
    let said = Policy::from_yaml(hosts, "test.yaml").unwrap_err().to_string();
    assert!(said.contains("is not a host"), "{said}");
}
