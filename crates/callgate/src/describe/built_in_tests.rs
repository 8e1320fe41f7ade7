use std::collections::HashSet;

use callgate_model::effect::{Coverage, Names, Target};
use serde_json::json;

use super::super::Registry;
use super::super::tools::tool;
use super::*;

fn describe(tool: &str, input: Value) -> Description {
    let context =
        CallContext { directory: Some("/ws".into()), home: Some("/home/ada".into()), ..CallContext::default() };
    Registry::default().describe(&Call::new(tool, input), &context).expect("a description").description
}

/// The effects in short: `read /ws/a`, `list /ws/*.rs glob`, `opaque`.
fn effects(tool: &str, input: Value) -> Vec<String> {
    let description = describe(tool, input);
    let mut effects: Vec<String> = description
        .parts
        .iter()
        .flat_map(|part| &part.effects)
        .map(|placed| {
            let action = serde_json::to_value(placed.effect.action).expect("a name");
            let action = action.as_str().expect("a text");
            match &placed.effect.target {
                Target::Path(target) => {
                    let tree = if target.tree { " tree" } else { "" };
                    match &target.names {
                        Names::Exact(path) => format!("{action} {path}{tree}"),
                        Names::Glob(pattern) => format!("{action} {pattern} glob{tree}"),
                        Names::Below(path) => format!("{action} {path} below{tree}"),
                        Names::Unknown(_) => format!("{action} unknown{tree}"),
                    }
                }
                Target::Program(program) => format!("{action} {}", program.name),
                Target::Host(host) => format!("{action} {}", host.name.clone().unwrap_or_default()),
                Target::Text(_) => action.to_owned(),
            }
        })
        .collect();
    effects.sort();
    effects.dedup();
    let partial = effects.iter().any(|effect| effect == "opaque");
    assert_eq!(description.coverage == Coverage::Partial, partial);
    effects
}

fn check(tool: &str, input: Value, expected: &[&str]) {
    assert_eq!(effects(tool, input.clone()), expected, "{tool} {input}");
}

#[test]
fn file_tools_of_every_agent_name_their_file() {
    for (tool, parameter) in [
        ("Read", "file_path"),
        ("read", "filePath"),
        ("read_file", "file_path"),
        ("read_file", "absolute_path"),
        ("read_file", "target_file"),
        ("file_read", "path"),
        ("view", "path"),
        ("view_image", "path"),
        ("NotebookRead", "notebook_path"),
    ] {
        check(tool, json!({parameter: "a.txt"}), &["read /ws/a.txt"]);
    }
    for (tool, parameter) in [
        ("Write", "file_path"),
        ("write", "filePath"),
        ("write_file", "file_path"),
        ("file_write", "path"),
        ("create", "path"),
    ] {
        check(tool, json!({parameter: "a.txt", "content": "x"}), &["write /ws/a.txt"]);
    }
    for (tool, parameter) in [
        ("Edit", "file_path"),
        ("MultiEdit", "file_path"),
        ("edit", "path"),
        ("edit", "filePath"),
        ("replace", "file_path"),
        ("edit_file", "target_file"),
        ("search_replace", "file_path"),
        ("NotebookEdit", "notebook_path"),
    ] {
        check(tool, json!({parameter: "/x/a"}), &["read /x/a", "write /x/a"]);
    }
    check("delete_file", json!({"target_file": "a"}), &["delete /ws/a"]);
}

#[test]
fn paths_are_taken_as_the_tool_would() {
    check("Read", json!({"file_path": "/etc/passwd"}), &["read /etc/passwd"]);
    check("Read", json!({"file_path": "../x"}), &["read /ws/../x"]);
    check("Read", json!({"file_path": "~/.ssh/id_rsa"}), &["read /home/ada/.ssh/id_rsa"]);
    check("Read", json!({"file_path": "~root/x"}), &["read unknown"]);
    check("Read", json!({"file_path": " /etc/passwd"}), &["read /etc/passwd", "read /ws/ /etc/passwd"]);
    check("Read", json!({"file_path": "~/../x"}), &["read /home/ada/../x", "read /ws/~/../x"]);
    check("Read", json!({"file_path": "$HOME/x"}), &["read /ws/$HOME/x", "read unknown"]);
    check("Read", json!({"file_path": "file:///etc/%70asswd"}), &["read /etc/%70asswd", "read /etc/passwd"]);
    check("Read", json!({"file_path": "a%2fb"}), &["read /ws/a%2fb"]);
    let nowhere = Registry::default()
        .describe(&Call::new("Read", json!({"file_path": "a"})), &CallContext::default())
        .expect("a description")
        .description;
    let Target::Path(target) = &nowhere.parts[0].effects[0].effect.target else {
        panic!("no path");
    };
    assert_eq!(target.names, Names::Exact("a".into()));
}

#[test]
fn every_parameter_that_carries_a_path_is_used() {
    check("Read", json!({"file_path": "a", "path": "/etc/passwd"}), &["read /etc/passwd", "read /ws/a"]);
    check(
        "Write",
        json!({"file_path": "a", "content": "x", "output_path": "/etc/b"}),
        &["read /etc/b", "write /etc/b", "write /ws/a"],
    );
    check(
        "MultiEdit",
        json!({"file_path": "a", "edits": [{"file_path": "/etc/b", "old_string": "x", "new_string": "path"}]}),
        &["read /etc/b", "read /ws/a", "write /etc/b", "write /ws/a"],
    );
    check("TodoWrite", json!({"todos": [], "uri": "https://x.example/y"}), &["connect x.example"]);
    check("TodoWrite", json!({"todos": [], "command": "rm -rf /"}), &["opaque"]);
}

#[test]
fn wrong_types_are_opaque_and_never_ignored() {
    for (tool, input) in [
        ("Bash", json!({"command": ["ls"]})),
        ("Bash", json!({"command": 7})),
        ("Bash", json!({"command": {"a": 1}})),
        ("Bash", json!({})),
        ("Bash", json!({"command": ""})),
        ("Bash", json!({"command": null})),
        ("Bash", json!("ls")),
        ("Bash", json!(["ls"])),
        ("Bash", json!(null)),
        ("shell_exec", json!({"argv": "ls"})),
        ("shell_exec", json!({"argv": []})),
        ("shell_exec", json!({"argv": ["ls", 7]})),
        ("Read", json!({"file_path": 7})),
        ("Read", json!({"file_path": {"x": "y"}})),
        ("Read", json!({"file_path": true})),
        ("Read", json!({"file_path": ""})),
        ("Read", json!({"file_path": []})),
        ("Read", json!({})),
        ("Read", json!({"filepath": 7})),
        ("Write", json!({"content": "x"})),
        ("Glob", json!({"path": "/x"})),
        ("Glob", json!({"pattern": 7})),
        ("Grep", json!({"pattern": "x", "path": 7})),
        ("WebFetch", json!({"url": 7})),
        ("WebFetch", json!({"url": "not a url"})),
        ("web_fetch", json!({"prompt": "no address here"})),
        ("apply_patch", json!({"input": "nonsense"})),
        ("apply_patch", json!({"input": ["*** Begin Patch"]})),
        ("write_stdin", json!({"session_id": 1})),
        ("str_replace_editor", json!({"command": "explode", "path": "/x"})),
    ] {
        assert!(effects(tool, input.clone()).contains(&"opaque".to_owned()), "{tool} {input}");
    }
}

#[test]
fn searches_list_names_or_read_contents() {
    check("Glob", json!({"pattern": "**/*.rs"}), &["list /ws/**/*.rs glob"]);
    check("Glob", json!({"pattern": "*.rs", "path": "/x[1]"}), &["list /x\\[1\\]/*.rs glob"]);
    check("Glob", json!({"pattern": ".env"}), &["list /ws/.env"]);
    check("Glob", json!({"pattern": "**/.env"}), &["list /ws/**/.env glob"]);
    check("glob", json!({"pattern": "*.{a,b}"}), &["list /ws/*.a glob", "list /ws/*.b glob"]);
    check("glob", json!({"pattern": "/etc/*"}), &["list /etc/* glob"]);
    check("glob", json!({"pattern": "../*"}), &["list /ws/../* glob"]);
    check("glob", json!({"pattern": "~/.ssh/*"}), &["list /home/ada/.ssh/* glob"]);
    check("Grep", json!({"pattern": "x"}), &["read /ws tree"]);
    check("Grep", json!({"pattern": "x", "path": "/etc"}), &["read /etc tree"]);
    check("Grep", json!({"pattern": "x", "glob": "*.rs"}), &["read /ws/**/*.rs glob"]);
    check("Grep", json!({"pattern": "x", "path": ".env", "glob": "*"}), &["read /ws/.env", "read /ws/.env/**/* glob"]);
    check("Grep", json!({"pattern": "x", "glob": "!*.rs"}), &["read /ws tree"]);
    check("grep_files", json!({"pattern": "x", "include": "*.rs"}), &["read /ws/**/*.rs glob"]);
    check("search_file_content", json!({"pattern": "x", "dir_path": "src"}), &["read /ws/src tree"]);
    check("codebase_search", json!({"query": "x", "target_directories": []}), &["read /ws tree"]);
    check(
        "read_many_files",
        json!({"include": ["a.md", "src/*.rs"]}),
        &["read /ws/a.md tree", "read /ws/src/*.rs glob"],
    );
    check("LS", json!({"path": "/etc"}), &["list /etc"]);
    check("list_dir", json!({}), &["list /ws"]);
    check("list_directory", json!({"dir_path": "src"}), &["list /ws/src"]);
}

#[test]
fn patches_touch_every_file_they_name() {
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: /etc/b\n*** End Patch";
    for parameter in ["input", "patch", "command", "patchText"] {
        check("apply_patch", json!({parameter: patch}), &["delete /etc/b", "write /ws/a"]);
    }
    check("apply_patch", json!({"input": patch, "workdir": "/x"}), &["delete /etc/b", "list /x", "write /x/a"]);
}

#[test]
fn editors_do_what_their_command_says() {
    for tool in ["str_replace_editor", "str_replace_based_edit_tool"] {
        check(tool, json!({"command": "view", "path": "/x"}), &["read /x"]);
        check(tool, json!({"command": "create", "path": "/x", "file_text": "t"}), &["write /x"]);
        check(tool, json!({"command": "str_replace", "path": "/x"}), &["read /x", "write /x"]);
        check(tool, json!({"command": "insert", "path": "/x"}), &["read /x", "write /x"]);
    }
}

#[test]
fn the_network_is_named_by_its_hosts() {
    check("WebFetch", json!({"url": "https://Example.com/x", "prompt": "p"}), &["connect example.com"]);
    check("webfetch", json!({"url": "http://u:p@x.example:80/"}), &["connect x.example"]);
    check(
        "web_fetch",
        json!({"prompt": "see https://a.example and http://b.example/c"}),
        &["connect a.example", "connect b.example"],
    );
    check("web_fetch", json!({"url": "https://a.example", "prompt": "sum it up"}), &["connect a.example"]);
    check("WebFetch", json!({"url": "file:///etc/passwd"}), &["read /etc/passwd"]);
    check("WebSearch", json!({"query": "x"}), &["connect <web-search>"]);
    check("google_web_search", json!({"query": "x"}), &["connect <web-search>"]);
}

#[test]
fn resources_are_paths_or_hosts() {
    check("read_resource", json!({"uri": "file:///etc/passwd"}), &["read /etc/passwd"]);
    check(
        "read_resource",
        json!({"uri": "file:///ws/%252e%252e/x"}),
        &["read /ws/%252e%252e/x", "read /ws/%2e%2e/x", "read /ws/../x"],
    );
    check("read_resource", json!({"uri": "https://x.example/"}), &["connect x.example"]);
    check("read_resource", json!({"uri": "custom://x"}), &["opaque"]);
}

#[test]
fn agents_plans_and_questions_do_nothing_themselves() {
    for (tool, parameter) in [
        ("Task", "prompt"),
        ("spawn_agent", "message"),
        ("TodoWrite", "todos"),
        ("update_plan", "plan"),
        ("AskUserQuestion", "questions"),
        ("ask_human", "prompt"),
        ("ExitPlanMode", "plan"),
        ("StructuredOutput", "anything"),
        ("wait", "ids"),
        ("BashOutput", "bash_id"),
    ] {
        check(tool, json!({parameter: "rm -rf /"}), &[]);
        assert_eq!(describe(tool, json!({})).coverage, Coverage::Complete, "{tool}");
    }
}

#[test]
fn what_no_line_names_is_not_understood() {
    check("Task", json!({"prompt": "x", "permissions": "all"}), &["opaque"]);
    check("ExitPlanMode", json!({"plan": "x", "grants": [{"tool": "Bash"}]}), &["opaque"]);
    check("Read", json!({"file_path": "a", "unguarded": true}), &["opaque", "read /ws/a"]);
    check("Read", json!({"file_path": "a", "limit": 5, "unguarded": false, "other": null}), &["read /ws/a"]);
    check("Skill", json!({"skill": "s"}), &["opaque"]);
}

#[test]
fn typing_into_a_program_is_not_understood() {
    check("write_stdin", json!({"session_id": 1, "chars": ""}), &[]);
    check("write_stdin", json!({"session_id": 1, "chars": "\u{3}"}), &[]);
    check("write_stdin", json!({"session_id": 1, "chars": "ls\n"}), &["opaque"]);
    check("write_bash", json!({"sessionId": "x", "input": "ls{enter}"}), &["opaque"]);
}

#[test]
fn skills_run_what_the_project_says() {
    check("skill_exec", json!({"skill_mention": "s", "action_id": "build"}), &["run s:build"]);
    check("skill_exec", json!({"skill_mention": "s"}), &["opaque"]);
    check("save_memory", json!({"fact": "x"}), &["write /home/ada/.gemini/GEMINI.md", "write /home/ada/.qwen/QWEN.md"]);
}

#[test]
fn shell_tools_tell_of_sandbox_environment_and_directory() {
    let with = |extra: Value| {
        let mut input = json!({"argv": ["ls"]});
        for (name, value) in extra.as_object().expect("fields") {
            input[name] = value.clone();
        }
        let description = describe("shell_exec", input);
        let last = description.parts.last().expect("a part").clone();
        last.effects.iter().map(|placed| placed.effect.clone()).collect::<Vec<_>>()
    };
    let has = |effects: &[callgate_model::effect::Effect], action: Action, text: &str| {
        effects.iter().any(|effect| {
            effect.action == action && serde_json::to_string(&effect.target).is_ok_and(|shown| shown.contains(text))
        })
    };
    assert!(has(&with(json!({"sandbox": "none"})), Action::Privilege, "sandbox"));
    assert!(has(&with(json!({"with_escalated_permissions": true})), Action::Privilege, "sandbox"));
    assert!(has(&with(json!({"sandbox_permissions": "require_escalated"})), Action::Privilege, "sandbox"));
    assert!(has(&with(json!({"sandbox": "bogus"})), Action::Opaque, "sandbox"));
    for sandbox in ["inherit", "restricted"] {
        assert!(!has(&with(json!({"sandbox": sandbox})), Action::Privilege, "sandbox"));
    }
    assert!(has(&with(json!({"env": {"LD_PRELOAD": "x"}})), Action::Opaque, "LD_PRELOAD"));
    assert!(has(&with(json!({"env": ["A=b"]})), Action::Opaque, "wrong type"));
    assert!(!has(&with(json!({"env": {"CI": "1"}})), Action::Opaque, "variable"));
    assert!(has(&with(json!({"cwd": "/etc"})), Action::List, "/etc"));
    assert!(has(&with(json!({"cwd": 7})), Action::Opaque, "cwd"));
    assert!(has(&with(json!({"cwd": "/ws", "workdir": "/etc"})), Action::Opaque, "several"));
    assert!(has(&with(json!({"stdin": "rm"})), Action::Opaque, "types text"));
}

#[test]
fn an_unknown_tool_is_opaque_and_what_it_tells_is_used() {
    for tool in ["frobnicate", "mcp__evil__Read", "mcp_fs_read", "READ", "read ", ""] {
        let found = effects(tool, json!({"file_path": "/etc/passwd", "url": "https://x.example", "note": "hello"}));
        assert_eq!(found, ["connect x.example", "opaque", "read /etc/passwd", "write /etc/passwd"], "{tool}");
        assert_eq!(describe(tool, json!({})).category, "unknown");
    }
    check("x", json!({"where": "/etc/passwd"}), &["opaque", "read /etc/passwd", "write /etc/passwd"]);
    check("x", json!({"a": [{"b": {"path": "q"}}]}), &["opaque", "read /ws/q", "write /ws/q"]);
    check("x", json!(["/etc/passwd"]), &["opaque", "read /etc/passwd", "write /etc/passwd"]);
    check("x", json!({"path": "file:///etc/passwd"}), &["opaque", "read /etc/passwd"]);
    assert_eq!(describe("x", json!({"command": "ls"})).parts.len(), 2);
}

#[test]
fn views_have_no_contents_and_no_values() {
    let redactor = Redactor::default();
    let registry = Registry::default();
    let secret = "TOPSECRETTEXT";
    for (tool, input) in [
        ("Write", json!({"file_path": "a", "content": secret})),
        ("create", json!({"path": "a", "file_text": secret})),
        ("Edit", json!({"file_path": "a", "old_string": secret, "new_string": secret})),
        ("MultiEdit", json!({"file_path": "a", "edits": [{"old_string": secret}]})),
        ("NotebookEdit", json!({"notebook_path": "a", "new_source": secret})),
        ("apply_patch", json!({"input": secret})),
        ("apply_patch", json!({"command": secret})),
        ("write_stdin", json!({"session_id": 1, "chars": secret})),
        ("shell_exec", json!({"argv": ["ls"], "env": {"A": secret}})),
        ("shell_exec", json!({"argv": ["ls"], "stdin": secret})),
        ("edit_file", json!({"target_file": "a", "code_edit": secret})),
        ("unknown", json!({"env": {"A": secret}, "patch": secret, "password": secret})),
        ("Bash", json!({"command": format!("curl -u ada:{secret} https://x.example")})),
    ] {
        let call = Call::new(tool, input.clone());
        for view in [registry.for_approval(&call, &redactor), registry.for_event(&call, &redactor)] {
            let view = view.expect("a view").to_string();
            assert!(!view.contains(secret), "{tool} {input}: {view}");
        }
    }
}

#[test]
fn a_descriptor_that_panics_has_failed() {
    struct Broken;
    impl Descriptor for Broken {
        fn category(&self) -> &str {
            "broken"
        }
        fn describe(&self, _: &Call, _: &CallContext) -> Result<Described, DescribeError> {
            panic!("on purpose")
        }
        fn for_approval(&self, _: &Call, _: &Redactor) -> Redacted {
            panic!("on purpose")
        }
    }
    let mut registry = Registry::default();
    registry.register("broken", Broken).unwrap();
    let call = Call::new("broken", json!({}));
    assert_eq!(registry.describe(&call, &CallContext::default()), Err(DescribeError::Panicked));
    assert_eq!(registry.for_event(&call, &Redactor::default()).err(), Some(DescribeError::Panicked));
}

#[test]
fn every_block_of_the_table_is_valid() {
    assert!(tools::all().all(|tool| tool.is_some_and(|tool| !tool.names.is_empty())));
    assert_eq!(tool(&[vec!["Read"], vec!["=", "file_read"], vec!["reads!:", "path"]]), None);
}

#[test]
fn no_tool_is_described_twice() {
    let mut seen = HashSet::new();
    for name in tools::all().flatten().flat_map(|entry| entry.names) {
        assert!(seen.insert(name), "{name} stands twice in the table");
    }
    assert!(seen.len() > 120, "{}", seen.len());
    for entry in tools::all().flatten() {
        let mut names = HashSet::new();
        for name in entry.parameters.iter().flat_map(|parameter| &parameter.names) {
            assert!(names.insert(name), "{:?}: {name} has two roles", entry.names);
        }
    }
}

#[test]
fn large_and_odd_inputs_have_few_effects() {
    let long = "a".repeat(10_000_000);
    let many: Vec<String> = (0..100_000).map(|index| format!("/x/{index}")).collect();
    for tool in ["Bash", "shell_exec", "Read", "Grep", "Glob", "apply_patch", "WebFetch", "frobnicate"] {
        for input in [
            json!({"command": long, "argv": [long], "file_path": long, "pattern": long, "input": long, "url": long}),
            json!({"command": many, "argv": many, "file_path": many, "path": many, "pattern": many, "input": many, "url": many, "paths": many}),
        ] {
            let description = describe(tool, input);
            let count: usize = description.parts.iter().map(|part| part.effects.len()).sum();
            assert!(count > 0 && count < 10_000, "{tool}: {count}");
        }
    }
}
