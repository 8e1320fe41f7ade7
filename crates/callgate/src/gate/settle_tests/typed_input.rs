//! How far a running program covers what is typed into it, as the policy says.

use super::*;

fn policy(exec_input: &str) -> String {
    format!("{POLICY}approvals:\n  exec_input: {exec_input}\n").replace(
        "rules:\n",
        "rules:\n  - {name: no-sudo, commands: ['sudo **'], action: deny, reason: no root}\n  - {name: look, commands: ['ls **', 'pwd'], action: allow}\n",
    )
}

struct Typing {
    gate: Gate,
    person: Person,
}

/// A gate under which `bash` runs as 1 and `python` as 2, both approved.
fn typing(exec_input: &str) -> Typing {
    let person = person(ApprovalDecision::Approved);
    let gate = under(&policy(exec_input), &person, &Arc::new(MemoryStore::new()));
    for (command, exec) in [("bash", "1"), ("python", "2")] {
        let permit = gate.check(call("exec_command", json!({"cmd": command}))).unwrap();
        permit.run(|plan| gate.exec_started(plan, exec)).unwrap();
    }
    *person.says.lock().unwrap() = Answer::new(ApprovalDecision::Denied);
    person.asked.lock().unwrap().clear();
    Typing { gate, person }
}

impl Typing {
    /// How input into a program ends: `yes`, `asked` or `denied`.
    fn types(&self, exec: u32, chars: &str) -> &'static str {
        self.tool("write_stdin", json!({"session_id": exec, "chars": chars}))
    }

    fn tool(&self, tool: &str, input: Value) -> &'static str {
        self.person.asked.lock().unwrap().clear();
        let permitted = self.gate.check(call(tool, input)).is_ok();
        match (permitted, self.person.asked.lock().unwrap().len()) {
            (true, 0) => "yes",
            (false, 1) => "asked",
            (false, 0) => "denied",
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn asked_is_the_default_and_asks_about_every_input() {
    for typing in [typing("asked"), typing("asked # nothing else")] {
        assert_eq!(typing.types(1, "ls\n"), "asked");
        assert_eq!(typing.types(1, "sudo id\n"), "asked");
        assert_eq!(typing.types(1, ""), "yes", "looking at the output is no input");
    }
    let silent = under(POLICY, &person(ApprovalDecision::Denied), &Arc::new(MemoryStore::new()));
    assert!(silent.check(call("write_stdin", json!({"session_id": 1, "chars": "ls\n"}))).is_err());
}

#[test]
fn covered_asks_no_more_about_the_programs_that_were_started_here() {
    let typing = typing("covered");
    assert_eq!(typing.types(1, "rm x\n"), "yes");
    assert_eq!(typing.types(2, "import os\n"), "yes");
    assert_eq!(typing.tool("write_bash", json!({"sessionId": "2", "input": "1\n"})), "yes");
    assert_eq!(typing.types(3, "ls\n"), "asked", "nobody started that");
    let other = call("write_stdin", json!({"session_id": 1, "chars": "ls\n"})).session("s-2");
    assert!(typing.gate.check(other).is_err(), "another session's program");
    assert_eq!(typing.tool("mcp__evil__write_stdin", json!({"session_id": 1, "chars": "ls\n"})), "asked");
}

#[test]
fn judged_takes_what_is_typed_into_a_shell_for_a_command() {
    let typing = typing("judged");
    assert_eq!(typing.types(1, "pwd\n"), "yes");
    assert_eq!(typing.types(1, "sudo id\n"), "denied");
    assert_eq!(typing.types(1, "cat /ws/.env\n"), "denied");
    assert_eq!(typing.types(1, "make\n"), "asked");
    assert_eq!(typing.types(1, "cat a.txt\n"), "asked", "where the shell stands is not known");
    assert_eq!(typing.types(2, "pwd\n"), "asked", "python is no shell");
    assert_eq!(typing.types(3, "pwd\n"), "asked");
    for half in ["pwd", "pwd \\\n", "pwd\r", "pwd\t\n", "\u{1b}[A\n", "pwd\n\u{4}"] {
        assert_eq!(typing.types(1, half), "asked", "{half:?}");
    }
}

#[test]
fn an_id_that_a_shell_had_before_is_not_judged_when_another_program_has_it() {
    let typing = typing("judged");
    *typing.person.says.lock().unwrap() = Answer::new(ApprovalDecision::Approved);
    let permit = typing.gate.check(call("exec_command", json!({"cmd": "ed"}))).unwrap();
    permit.run(|plan| typing.gate.exec_started(plan, "1")).unwrap();
    *typing.person.says.lock().unwrap() = Answer::new(ApprovalDecision::Denied);
    assert_eq!(typing.types(1, "pwd\n"), "asked");
}

#[test]
fn the_question_about_a_typed_command_shows_its_effects_and_not_the_input() {
    let typing = typing("judged");
    assert_eq!(typing.types(1, "rm /ws/a.txt\n"), "asked");
    let question = typing.person.asked.lock().unwrap()[0].clone();
    assert!(question.effects.iter().any(|effect| effect.action == "delete" && effect.target == "/ws/a.txt"));
    assert!(!question.request.to_string().contains("rm"), "{}", question.request);
}

#[test]
fn a_word_that_is_none_is_a_mistake_and_the_strictest_layer_counts() {
    assert!(Policy::from_yaml(&policy("perhaps"), "test.yaml").is_err());
    assert_eq!(Policy::from_yaml(POLICY, "test.yaml").unwrap().exec_input(), ExecInput::Asked);
    assert_eq!(Policy::from_yaml(&policy("judged"), "test.yaml").unwrap().exec_input(), ExecInput::Judged);
}
