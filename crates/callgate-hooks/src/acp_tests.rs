use super::*;

fn options() -> Value {
    json!([
        { "optionId": "always", "name": "Always", "kind": "allow_always" },
        { "optionId": "proceed_once", "name": "Allow", "kind": "allow_once" },
        { "optionId": "cancel", "name": "Reject", "kind": "reject_once" },
    ])
}

fn version_one(tool_call: Value) -> AcpPermissionRequest {
    read(json!({ "sessionId": "s-1", "toolCall": tool_call, "options": options() })).expect("a whole request")
}

fn version_two(subject: Value) -> AcpPermissionRequest {
    let request =
        json!({ "sessionId": "s-1", "title": "Run?", "description": "…", "subject": subject, "options": options() });
    read(request).expect("a whole request")
}

fn tool(request: &AcpPermissionRequest) -> (String, Value) {
    (request.call.tool.to_string(), request.call.input.clone())
}

#[test]
fn a_tool_call_is_what_the_agent_really_says_of_it() {
    let cases = [
        // with the tool's own name
        (
            json!({ "toolCallId": "c", "name": "Bash", "kind": "execute", "title": "make", "rawInput": { "command": "make" } }),
            ("Bash", json!({ "command": "make" })),
        ),
        // as words, with the agent's notes beside
        (
            json!({ "toolCallId": "c", "kind": "execute", "rawInput": {
                "command": ["/bin/bash", "-lc", "make"], "cwd": "/work/app", "call_id": "c", "parsed_cmd": [{ "cmd": "make" }] } }),
            ("shell", json!({ "command": ["/bin/bash", "-lc", "make"] })),
        ),
        (
            json!({ "toolCallId": "c", "kind": "execute", "title": "x", "rawInput": { "command": "make", "commands": ["make"] } }),
            ("Bash", json!({ "command": "make" })),
        ),
        // only a title: no proof of anything
        (
            json!({ "toolCallId": "c", "kind": "execute", "title": "ls", "locations": [] }),
            ("acp_execute", json!({ "title": "ls", "paths": [] })),
        ),
        (
            json!({ "toolCallId": "c", "kind": "edit", "title": "Edit", "rawInput": { "file_path": "/work/a" },
                "locations": [{ "path": "/etc/b" }] }),
            ("acp_edit", json!({ "file_path": "/work/a", "title": "Edit", "paths": [{ "path": "/etc/b" }] })),
        ),
        (json!({ "toolCallId": "c" }), ("acp_other", json!({}))),
    ];
    for (tool_call, (name, input)) in cases {
        assert_eq!(tool(&version_one(tool_call.clone())), (name.to_owned(), input.clone()), "{tool_call}");
        let subject = json!({ "type": "tool_call", "toolCall": tool_call });
        assert_eq!(tool(&version_two(subject)), (name.to_owned(), input));
    }
}

#[test]
fn a_command_runs_where_it_says() {
    let words = version_one(
        json!({ "toolCallId": "c", "kind": "execute", "rawInput": { "command": ["ls"], "cwd": "/work/app" } }),
    );
    assert_eq!(words.call.origin.directory.as_deref(), Some(std::path::Path::new("/work/app")));
    let command = version_two(json!({ "type": "command", "command": "ls", "cwd": "/work/app", "toolCallId": "c-9" }));
    assert_eq!(tool(&command), ("Bash".to_owned(), json!({ "command": "ls" })));
    assert_eq!(command.call_id.as_deref(), Some("c-9"));
    assert_eq!(command.call.origin.directory.as_deref(), Some(std::path::Path::new("/work/app")));
}

#[test]
fn a_subject_that_is_not_known_is_no_command() {
    let request = version_two(json!({ "type": "_future", "command": "ls" }));
    assert_eq!(request.call.tool, Tool::own("acp__future"));
    let none = read(json!({ "sessionId": "s", "title": "Trust this folder?", "options": options() }))
        .expect("a whole request");
    assert_eq!(tool(&none), ("acp_request".to_owned(), json!({ "title": "Trust this folder?" })));
}

#[test]
fn an_option_is_chosen_by_its_kind_and_never_for_ever() {
    let request = version_one(json!({ "toolCallId": "c" }));
    let selected = |id: &str| Some(json!({ "outcome": { "outcome": "selected", "optionId": id } }));
    assert_eq!(outcome(&request, &HookAnswer::allow()), selected("proceed_once"));
    assert_eq!(outcome(&request, &HookAnswer::deny("no")), selected("cancel"));
    assert_eq!(outcome(&request, &HookAnswer::rewrite(json!({}))), selected("cancel"));
    assert_eq!(outcome(&request, &HookAnswer::ask("?")), None);
}

#[test]
fn where_no_option_fits_nothing_is_allowed() {
    let offered = json!([
        { "optionId": "a", "name": "a", "kind": "allow_always" },
        { "optionId": "b", "name": "b", "kind": "reject_always" },
        { "optionId": "c", "name": "allow_once", "kind": "future" },
    ]);
    let request =
        read(json!({ "sessionId": "s", "toolCall": { "toolCallId": "c" }, "options": offered })).expect("whole");
    for answer in [HookAnswer::allow(), HookAnswer::deny("no")] {
        assert_eq!(outcome(&request, &answer), Some(cancelled()));
    }
}

#[test]
fn a_request_that_is_not_understood_is_an_error() {
    let call = json!({ "toolCallId": "c" });
    let twice = json!([
        { "optionId": "x", "name": "a", "kind": "allow_once" },
        { "optionId": "x", "name": "b", "kind": "reject_once" },
    ]);
    let cases = [
        json!(null),
        json!({ "toolCall": call, "options": options() }),
        json!({ "sessionId": "s", "toolCall": "c", "options": options() }),
        json!({ "sessionId": "s", "toolCall": {}, "options": options() }),
        json!({ "sessionId": "s", "toolCall": call }),
        json!({ "sessionId": "s", "toolCall": call, "options": {} }),
        json!({ "sessionId": "s", "toolCall": call, "options": [{ "optionId": "x" }] }),
        json!({ "sessionId": "s", "toolCall": call, "options": twice }),
        json!({ "sessionId": "s", "toolCall": call, "subject": { "type": "command" }, "options": options() }),
        json!({ "sessionId": "s", "title": "t", "subject": { "type": "command" }, "options": options() }),
        json!({ "sessionId": "s", "title": "t", "subject": { "type": "command", "command": "ls", "cwd": "x" }, "options": options() }),
        json!({ "sessionId": "s", "toolCall": { "toolCallId": "c", "kind": "execute", "rawInput": { "command": 1 } }, "options": options() }),
    ];
    for request in cases {
        assert!(read(request.clone()).is_err(), "{request}");
    }
}
