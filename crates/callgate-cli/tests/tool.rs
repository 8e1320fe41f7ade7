//! The built-in tools through the command: programs, terminals, and lines of JSON.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests may panic like tests"
)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{World, told};

/// Everything is allowed, also what is not understood, and nothing is contained.
const FREE: &str = "version: 1\ndefault: allow\napprovals:\n  default: approved\n";

fn policy(world: &World, text: &str) {
    let directory = world.home().join(".config/callgate");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("callgate.yaml"), text).unwrap();
}

fn free() -> World {
    let world = World::new();
    policy(&world, FREE);
    world
}

fn call(world: &World, tool: &str, input: &Value) -> Value {
    let told = told(world.command(&["tool", "call", "--json", tool, &input.to_string()]).output().unwrap());
    serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"))
}

/// A server of tools, and a conversation with it.
struct Server {
    process: Child,
    requests: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Server {
    fn start(world: &World) -> Self {
        let mut command = world.command(&["tool", "serve"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let requests = process.stdin.take();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Server { process, requests, lines }
    }

    fn send(&mut self, line: &str) {
        let requests = self.requests.as_mut().unwrap();
        writeln!(requests, "{line}").and_then(|()| requests.flush()).unwrap();
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request and returns its result and the kinds of the events before it.
    fn call(&mut self, tool: &str, args: &Value) -> (Value, Vec<String>) {
        self.send(&json!({"id": "7", "name": tool, "args": args}).to_string());
        let mut kinds = Vec::new();
        loop {
            let line = self.line();
            match line["type"].as_str().unwrap() {
                "result" => return (line["result"].clone(), kinds),
                kind => kinds.push(kind.to_owned()),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.requests.take());
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if self.process.try_wait().unwrap().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.process.kill().unwrap();
        panic!("the server did not end with its input");
    }
}

/// Whether a process runs whose command line contains a text.
fn runs(text: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let state = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let dead = state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'));
        !dead && String::from_utf8_lossy(&words).contains(text)
    })
}

fn gone(text: &str) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if !runs(text) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn programs_end_as_their_results_say() {
    let world = free();
    std::fs::create_dir(world.project().join("sub")).unwrap();
    let sh = |text: &str| json!({"argv": ["/bin/sh", "-c", text]});
    let cases = [
        (
            "shell_exec",
            sh("echo out; echo err >&2"),
            json!({"ok": true, "stdout": "out\n", "stderr": "err\n", "exit_code": 0}),
        ),
        ("shell_exec", sh("exit 3"), json!({"ok": false, "error_kind": "exit_code", "exit_code": 3})),
        ("shell_exec", sh("kill -9 $$"), json!({"ok": false, "error_kind": "exit_code", "exit_code": 137})),
        ("shell_exec", json!({"argv": ["no-such-program"]}), json!({"ok": false, "error_kind": "not_found"})),
        (
            "shell_exec",
            json!({"argv": ["pwd"], "cwd": "sub"}),
            json!({"ok": true, "stdout": format!("{}/sub\n", world.project().display())}),
        ),
        ("shell_exec", json!({"argv": ["pwd"], "cwd": "none"}), json!({"ok": false, "error_kind": "validation"})),
        (
            "shell_exec",
            json!({"argv": ["printenv", "GREETING"], "env": {"GREETING": "hello"}}),
            json!({"ok": true, "stdout": "hello\n"}),
        ),
        ("shell_exec", sh("cat"), json!({"ok": true, "stdout": ""})),
        ("shell_exec", json!({"argv": ["printf", "a\\377b"]}), json!({"ok": true, "data": {"stdout_base64": "Yf9i"}})),
        ("shell", json!({"command": ["echo", "a b"], "workdir": "sub"}), json!({"ok": true, "stdout": "a b\n"})),
        ("shell_command", json!({"command": "echo $((1 + 2)) | cat"}), json!({"ok": true, "stdout": "3\n"})),
    ];
    for (tool, input, expected) in cases {
        let result = call(&world, tool, &input);
        for (name, value) in expected.as_object().unwrap() {
            match value {
                Value::Object(fields) => {
                    for (inner, value) in fields {
                        assert_eq!(&result[name][inner], value, "{tool} {input}: {result}");
                    }
                }
                value => assert_eq!(&result[name], value, "{tool} {input}: {result}"),
            }
        }
        assert_eq!(result["data"]["sandbox"]["effective"].as_str().unwrap_or("none"), "none", "{result}");
    }
}

#[test]
fn output_without_end_is_kept_to_its_tail() {
    let world = free();
    let result = call(
        &world,
        "shell_exec",
        &json!({"argv": ["/bin/sh", "-c", "head -c 300000000 /dev/zero | tr '\\0' x; echo end"]}),
    );
    let text = result["stdout"].as_str().unwrap();
    assert!(result["truncated"].as_bool().unwrap() && text.starts_with("...<truncated>\n") && text.ends_with("xend\n"));
    assert_eq!(text.len(), 65_536 + "...<truncated>\n".len());
}

#[test]
fn the_whole_tree_ends_with_its_time_and_with_its_call() {
    let world = free();
    // one that does not hear, and one that has left its session and its parents
    let text = "trap '' TERM; (setsid sleep 4711.25 > /dev/null 2>&1 &) ; sleep 4711.25 & wait; wait";
    let result = call(&world, "shell_exec", &json!({"argv": ["/bin/bash", "-c", text], "timeout_ms": 300}));
    assert_eq!((&result["error_kind"], &result["exit_code"]), (&json!("timeout"), &Value::Null), "{result}");
    assert!(gone("4711.25"), "something outlived its time");
    let result =
        call(&world, "shell_command", &json!({"command": "(setsid sleep 4712.25 > /dev/null 2>&1 &) ; echo started"}));
    assert_eq!(result["stdout"], "started\n");
    assert!(gone("4712.25"), "something outlived its call");
}

#[test]
fn a_terminal_stays_and_is_typed_into() {
    let world = free();
    let mut server = Server::start(&world);
    let text = "tty > /dev/null && read x && echo got $x && stty size && read y && exit $y";
    let (started, kinds) = server.call("exec_command", &json!({"cmd": text, "yield_time_ms": 100}));
    assert_eq!(kinds, ["tool_call_requested", "tool_call_started", "tool_call_finished"]);
    assert_eq!(
        (&started["ok"], &started["exit_code"], &started["data"]["running"]),
        (&json!(true), &Value::Null, &json!(true)),
        "{started}"
    );
    let id = started["data"]["session_id"].as_u64().unwrap();
    let mut printed = String::new();
    let (typed, _) = server.call("write_stdin", &json!({"session_id": id, "chars": "hello\n", "yield_time_ms": 100}));
    printed.push_str(typed["stdout"].as_str().unwrap());
    let start = Instant::now();
    while !printed.contains("24 80") && start.elapsed() < Duration::from_secs(20) {
        let (polled, _) = server.call("write_stdin", &json!({"session_id": id, "yield_time_ms": 50}));
        printed.push_str(polled["stdout"].as_str().unwrap());
    }
    assert!(printed.contains("got hello") && printed.contains("24 80"), "{printed}");
    let (ended, _) = server.call("write_stdin", &json!({"session_id": id, "chars": "5\n", "yield_time_ms": 20000}));
    assert_eq!((&ended["error_kind"], &ended["exit_code"]), (&json!("exit_code"), &json!(5)), "{ended}");
    assert_eq!((&ended["data"]["running"], &ended["data"]["session_id"]), (&json!(false), &Value::Null));
    let (unknown, _) = server.call("write_stdin", &json!({"session_id": id}));
    assert_eq!(unknown["error_kind"], "not_found");
}

#[test]
fn sessions_end_with_the_server_even_if_it_is_killed() {
    let world = free();
    let mut server = Server::start(&world);
    let (started, _) =
        server.call("exec_command", &json!({"cmd": "trap '' HUP TERM; setsid sleep 4713.25 & sleep 4713.25"}));
    assert_eq!(started["data"]["running"], true);
    let start = Instant::now();
    while !runs("4713.25") && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    server.process.kill().unwrap();
    assert!(gone("4713.25"), "a session outlived its server");
}

#[test]
fn what_must_be_contained_is_and_what_is_held_back_is_said() {
    let world = World::new();
    policy(&world, "version: 1\ndefault: contain\nboundary: {readable: [\"@system\"]}\n");
    let result = call(&world, "shell_command", &json!({"command": "echo x > made && cat made; echo y > .envrc"}));
    assert_eq!(result["data"]["sandbox"]["effective"], "restricted", "{result}");
    assert_eq!(result["data"]["sandbox"]["active"], true);
    assert!(result["stdout"].as_str().unwrap().starts_with("x\n"), "{result}");
    assert!(result["data"]["held_back"][0]["target"].as_str().unwrap().ends_with(".envrc"), "{result}");
    assert!(!world.project().join(".envrc").exists() && world.project().join("made").exists());
    let late = call(&world, "shell_exec", &json!({"argv": ["sleep", "60"], "timeout_ms": 300}));
    assert_eq!(late["error_kind"], "timeout", "{late}");
    // files are not opened by a process that could be contained
    let read = call(&world, "file_read", &json!({"path": "made"}));
    assert_eq!(read["error_kind"], "sandbox_denied", "{read}");
}

#[test]
fn a_refusal_is_a_result_that_tells_why() {
    let world = World::new();
    let secret = call(&world, "file_read", &json!({"path": "~/.ssh/id_rsa"}));
    assert_eq!(secret["error_kind"], "permission", "{secret}");
    let told = told(world.command(&["tool", "call", "shell_command", r#"{"command": "rm -rf ~"}"#]).output().unwrap());
    assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{told:?}");
    assert!(told.stderr.starts_with("callgate: permission: "), "{told:?}");
}

#[test]
fn lines_that_are_no_calls_are_errors_and_the_next_one_is_answered() {
    let world = free();
    let mut server = Server::start(&world);
    for line in
        ["nonsense", "{}", r#"{"id": "1", "name": "x", "name": "y"}"#, r#"{"id": 1, "name": "file_read"}"#, "[1]"]
    {
        server.send(line);
        let answer = server.line();
        assert_eq!(
            (&answer["type"], &answer["error_kind"]),
            (&json!("error"), &json!("validation")),
            "{line}: {answer}"
        );
    }
    // the end of a line that is too long is no request of its own
    let inner = r#"{"id": "9", "name": "shell_command", "args": {"command": "echo smuggled > smuggled"}}"#;
    server.send(&format!("{}{inner}", " ".repeat(32 << 20)));
    let answer = server.line();
    assert!(answer["message"].as_str().unwrap().contains("longer than"), "{answer}");
    std::fs::write(world.project().join("a"), "text").unwrap();
    assert_eq!(server.call("file_read", &json!({"path": "a"})).0["stdout"], "text");
    assert!(!world.project().join("smuggled").exists());
    // a list is judged in its order and answered in it
    server.send(r#"[{"id": "a", "name": "shell_command", "args": {"command": "sleep 0.2; echo slow"}}, {"id": "b", "name": "file_read", "args": {"path": "a"}}]"#);
    let mut results = Vec::new();
    while results.len() < 2 {
        let line = server.line();
        if line["type"] == "result" {
            results.push((line["id"].clone(), line["result"]["stdout"].clone()));
        }
    }
    assert_eq!(results, [(json!("a"), json!("slow\n")), (json!("b"), json!("text"))]);
}

#[test]
fn tools_and_their_schemas_are_listed() {
    let world = World::new();
    let list = told(world.command(&["tool", "list"]).output().unwrap());
    assert_eq!(list.stdout.lines().count(), 15, "{list:?}");
    let schema = told(world.command(&["tool", "schema", "file_read", "--form", "openai"]).output().unwrap());
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(
        (&schema["type"], &schema["function"]["parameters"]["required"]),
        (&json!("function"), &json!(["path"]))
    );
    let unknown = told(world.command(&["tool", "schema", "x"]).output().unwrap());
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("unknown tool `x`; expected one of shell_exec"), "{unknown:?}");
}
