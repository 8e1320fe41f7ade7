//! Questions, grants and sessions, as people meet them: one process asks, another answers.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod terminal;
mod world;

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use terminal::OnTerminal;
use world::{World, told};

/// A call that is asked about, in a process of its own.
struct Asking(Child);

impl Asking {
    fn new(world: &World, arguments: &[&str]) -> Self {
        let arguments = [&["check", "--ask", "--wait", "--json"], arguments].concat();
        let mut command = world.command(&arguments);
        Asking(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts"))
    }

    /// How it ended.
    fn ended(self) -> (i32, Value) {
        let (code, output, error) = told(self.0.wait_with_output().expect("it ends"));
        (code, serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}{error}")))
    }
}

/// The questions that wait, once there is one.
fn pending(world: &World) -> Vec<Value> {
    for _ in 0..600 {
        let (code, output, error) = world.run(&["approvals", "list", "--json"]);
        assert_eq!(code, 0, "{error}");
        let list: Vec<Value> = serde_json::from_str(&output).expect("JSON");
        if !list.is_empty() {
            return list;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("nobody asks anything");
}

fn id(question: &Value) -> &str {
    question["id"].as_str().expect("an id")
}

/// What changes from run to run, made the same: dates, ids, keys, places.
fn steady(world: &World, text: &str) -> String {
    let text =
        text.replace(&*world.project().to_string_lossy(), "PROJECT").replace(&*world.home().to_string_lossy(), "HOME");
    // the countdown
    let lines = text.split('\n').map(|line| if line.ends_with(" s left") { "TIME left" } else { line });
    let text = lines.collect::<Vec<_>>().join("\n");
    let words = text.split_inclusive([' ', '\n', ')', ':', '"']);
    words
        .map(|word| {
            let bare = word.trim_end_matches([' ', '\n', ')', ':', '"', ',']);
            let rest = &word[bare.len()..];
            let digits = |byte: u8| byte.is_ascii_hexdigit();
            match bare.len() {
                16 if bare.bytes().all(digits) => format!("ID{rest}"),
                64 if bare.bytes().all(digits) => format!("KEY{rest}"),
                1..6 if bare.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with(')') => {
                    format!("LINE{rest}")
                }
                _ => word.to_owned(),
            }
        })
        .collect()
}

/// Dates and times of day, which stand between a year and a Z.
fn undated(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("20") {
        let (before, after) = rest.split_at(start);
        shown.push_str(before);
        let is_date = |text: &str| {
            text.len() >= 10
                && text.bytes().enumerate().take(10).all(|(at, byte)| match at {
                    4 | 7 => byte == b'-',
                    _ => byte.is_ascii_digit(),
                })
        };
        if is_date(after) {
            let whole = after.get(19..20) == Some("Z");
            shown.push_str(if whole { "TIME" } else { "DAY" });
            rest = &after[if whole { 20 } else { 10 }..];
        } else {
            shown.push_str("20");
            rest = &after[2..];
        }
    }
    shown + rest
}

#[test]
fn a_second_process_answers_what_the_first_one_waits_for() {
    let world = World::new();
    let asking = Asking::new(&world, &["rm notes.txt"]);
    let waiting = pending(&world);
    let shown = world.run(&["approvals", "show", id(&waiting[0])]);
    assert_eq!(shown.0, 0, "{}", shown.2);
    insta::assert_snapshot!("show", steady(&world, &shown.1));
    let list = world.run(&["approvals", "list"]).1;
    let (line, _) = list.split_once("  (").expect("how long it waits");
    insta::assert_snapshot!(steady(&world, line), @r#"ID  Bash {"command":"rm notes.txt"}"#);
    // as much of the id as no other has
    let (code, output, error) = world.run(&["approvals", "approve", &id(&waiting[0])[..6], "--reason", "go on"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(output, format!("{}: approved\n", id(&waiting[0])));
    let (code, answer) = asking.ended();
    assert_eq!((code, answer["decision"].as_str()), (0, Some("allow")));
    assert_eq!(world.run(&["approvals", "list"]).1, "no questions are waiting\n");
    assert!(world.run(&["approvals", "show", id(&waiting[0])]).1.contains("settled: approved"));
    assert_eq!(world.run(&["audit", "verify"]).0, 0);
}

#[test]
fn a_no_reaches_the_agent_with_its_reason_and_abort_stops_the_run() {
    let world = World::new();
    let asking = Asking::new(&world, &["rm notes.txt"]);
    let question = pending(&world).remove(0);
    assert_eq!(world.run(&["approvals", "deny", id(&question), "--reason", "use the trash"]).0, 0);
    let (code, answer) = asking.ended();
    assert_eq!((code, answer["kind"].as_str()), (11, Some("permission")));
    assert_eq!(answer["reason"], "denied by the approver: use the trash");
    let asking = Asking::new(&world, &["rm notes.txt"]);
    let question = pending(&world).remove(0);
    assert_eq!(world.run(&["approvals", "deny", id(&question), "--abort"]).0, 0);
    assert_eq!(asking.ended().1["kind"], "cancelled");
}

#[test]
fn unknown_and_answered_ids_are_refused_by_name() {
    let world = World::new();
    let asking = Asking::new(&world, &["rm notes.txt"]);
    let question = pending(&world).remove(0);
    assert_eq!(world.run(&["approvals", "deny", id(&question)]).0, 0);
    asking.ended();
    for wrong in [id(&question), "0123456789abcdef", "", "zz", "../../etc/passwd", "\u{1b}[2J"] {
        for task in ["approve", "deny"] {
            let (code, output, error) = world.run(&["approvals", task, wrong]);
            assert_eq!((code, output.as_str()), (2, ""), "{task} {wrong:?}");
            assert!(error.contains("is waiting") && !error.contains('\u{1b}'), "{error}");
        }
    }
    assert_eq!(world.run(&["approvals", "show", "0123456789abcdef"]).0, 2);
}

#[test]
fn of_two_answers_at_once_one_counts() {
    let world = World::new();
    let asking = Asking::new(&world, &["rm notes.txt"]);
    let question = pending(&world).remove(0);
    let answer = |task: &str| {
        let mut command = world.command(&["approvals", task, id(&question)]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let both = [answer("approve"), answer("deny")];
    let codes = both.map(|child| told(child.wait_with_output().expect("it ends")).0);
    assert!(matches!(codes, [0, 2] | [2, 0]), "{codes:?}");
    assert_eq!(asking.ended().0, if codes[0] == 0 { 0 } else { 11 });
}

#[test]
fn silence_is_a_timeout_and_the_closest_word_says_when() {
    let world = World::new();
    let begin = std::time::Instant::now();
    let ask = |variable: Option<&str>, arguments: &[&str]| {
        let mut command =
            world.command(&[&["check", "--ask", "--wait", "--json"], arguments, &["rm notes.txt"]].concat());
        if let Some(seconds) = variable {
            command.env("CALLGATE_APPROVAL_TIMEOUT_SECONDS", seconds);
        }
        let (code, output, _) = told(command.output().expect("it ends"));
        assert_eq!(code, 11);
        serde_json::from_str::<Value>(&output).expect("JSON")
    };
    // the default and the policy's word would take minutes
    world.write("callgate.yaml", "version: 1\napprovals:\n  timeout_seconds: 200\n");
    assert_eq!(ask(Some("0.2"), &[])["kind"], "timeout");
    assert_eq!(ask(None, &["--timeout", "200ms"])["kind"], "timeout");
    assert_eq!(ask(Some("200"), &["--timeout", "200ms"])["kind"], "timeout");
    let nonsense = ask(Some("soon"), &["--timeout", "200ms"]);
    assert_eq!(nonsense["kind"], "unknown");
    assert!(nonsense["reason"].as_str().expect("a reason").contains("CALLGATE_APPROVAL_TIMEOUT_SECONDS"));
    world.write("callgate.yaml", "version: 1\napprovals:\n  timeout_seconds: 0\n");
    assert_eq!(ask(None, &[])["kind"], "timeout");
    assert!(begin.elapsed() < Duration::from_secs(150), "somebody waited for what nobody said");
}

#[test]
fn a_process_that_is_killed_while_it_waits_leaves_a_question_that_nobody_waits_for() {
    let world = World::new();
    let mut asking = Asking::new(&world, &["--timeout", "1h", "rm notes.txt"]);
    let question = pending(&world).remove(0);
    asking.0.kill().expect("killed");
    asking.0.wait().expect("gone");
    assert_eq!(world.run(&["approvals", "approve", id(&question)]).0, 0, "the answer is taken, and permits nothing");
    assert_eq!(world.run(&["check", "--ask", "rm notes.txt"]).0, 11, "the yes was for the call that is gone");
}

#[test]
fn a_session_remembers_what_was_approved_for_it_until_it_is_reset() {
    let world = World::new();
    let arguments = ["--session", "s-1", "rm notes.txt"];
    let asking = Asking::new(&world, &arguments);
    let question = pending(&world).remove(0);
    assert_eq!(world.run(&["approvals", "approve", id(&question), "--session"]).0, 0);
    assert_eq!(asking.ended().0, 0);
    let again = |arguments: &[&str]| world.run(&[&["check", "--ask"], arguments].concat()).0;
    assert_eq!(again(&arguments), 0, "nobody is asked");
    assert_eq!(again(&["--session", "s-2", "rm notes.txt"]), 11);
    assert_eq!(again(&["--session", "s-1", "rm other.txt"]), 11);
    assert_eq!(world.run(&["session", "show"]).1, "s-1\n");
    let shown = world.run(&["session", "show", "s-1"]).1;
    insta::assert_snapshot!(steady(&world, &shown), @r"
    approves nothing without asking
    approved: the request KEY
    ");
    assert_eq!(world.run(&["session", "reset", "s-1"]).0, 0);
    assert_eq!(again(&arguments), 11);
    assert_eq!(world.run(&["session", "show"]).1, "no session has made a decision\n");
}

#[test]
fn a_session_answers_by_itself_and_overturns_no_deny() {
    let world = World::new();
    let ask = |command: &str| world.run(&["check", "--ask", "--session", "s-1", command]).0;
    assert_eq!(ask("rm notes.txt"), 11);
    let auto = |arguments: &[&str]| world.run(&[&["session", "auto", "s-1"], arguments].concat()).1;
    assert_eq!(
        auto(&["--tool", "Bash"]),
        "s-1: approves questions about Bash without asking; denials and the boundary still apply\n"
    );
    assert_eq!(ask("rm notes.txt"), 0);
    assert_eq!(world.run(&["check", "--ask", "--session", "s-1", "--tool", "mcp__x__y"]).0, 11);
    assert_eq!(auto(&["--all"]), "s-1: approves every question without asking; denials and the boundary still apply\n");
    assert_eq!(world.run(&["check", "--ask", "--session", "s-1", "--tool", "mcp__x__y"]).0, 0);
    assert_eq!(ask("cat ~/.ssh/id_rsa"), 11);
    assert_eq!(auto(&["--off"]), "s-1: approves nothing without asking\n");
    assert_eq!(ask("rm notes.txt"), 11);
}

#[test]
fn grants_are_listed_with_who_and_why_and_taken_back_once() {
    let world = World::new();
    let add = |arguments: &[&str]| {
        let (code, _, error) = world.run(&[&["grant", "add"], arguments].concat());
        assert_eq!(code, 0, "{error}");
    };
    add(&["email_send", "--target", "Ada@Example.com", "--reason", "the invoice"]);
    add(&["Bash", "--any", "--scope", "task-7", "--uses", "3", "--expires", "10m"]);
    add(&["Bash", "--any", "--expires", "0s"]);
    add(&["Bash", "--request", &"ab".repeat(32), "--reason", "spoof\u{202e}\n2  Bash (any target)"]);
    let listed = world.run(&["grant", "list"]).1;
    insta::assert_snapshot!(undated(&steady(&world, &listed)), @r"
    1  email_send ada@example.com, once (by ada on TIME: the invoice)
    2  Bash (any target), 3 times, for the task task-7, until TIME (by ada on TIME)
    3  Bash (any target), once, expired on TIME (by ada on TIME)
    4  Bash (any target), once, for the request KEY (by ada on TIME: spoof\u{202e}\n2  Bash (any target))
    ");
    let ask = |scope: &str| world.run(&["check", "--ask", "--scope", scope, "rm notes.txt"]).0;
    assert_eq!(ask("task-8"), 11, "another task, and an expired grant");
    assert_eq!(ask("task-7"), 0);
    assert!(world.run(&["grant", "list"]).1.contains("2 times"));
    let (code, output, _) = world.run(&["grant", "revoke", "2"]);
    assert!(code == 0 && output.starts_with("revoked: 2  Bash"), "{output}");
    let (code, _, error) = world.run(&["grant", "revoke", "2"]);
    assert!(code == 2 && error.contains("there is no outstanding grant 2"), "{error}");
    assert_eq!(ask("task-7"), 11);
}

fn on_terminal(world: &World, arguments: &str) -> OnTerminal {
    OnTerminal::new(&world.command(&[]), 100, arguments)
}

#[test]
fn watch_prompts_in_one_terminal_for_what_another_process_asks() {
    let world = World::new();
    let mut watch = on_terminal(&world, "approvals watch");
    watch.shown_until("waiting for questions");
    let asking = Asking::new(&world, &["rm notes.txt"]);
    let shown = watch.shown_until("\n> ");
    assert!(shown.contains("rm notes.txt"), "{shown}");
    watch.types("n not today\n");
    let (code, answer) = asking.ended();
    assert_eq!((code, answer["reason"].as_str()), (11, Some("denied by the approver: not today")));
    let asking = Asking::new(&world, &["rm notes.txt"]);
    watch.shown_until("\n> ");
    watch.types("y\n");
    assert_eq!(asking.ended().0, 0);
    watch.types("\u{3}");
    watch.ends();
}

#[test]
fn watch_offers_always_and_writes_the_rule_after_the_yes_has_counted() {
    let world = World::new();
    let mut watch = on_terminal(&world, "approvals watch");
    watch.shown_until("waiting for questions");
    let asking = Asking::new(&world, &["git push origin main"]);
    let shown = watch.shown_until("\n> ");
    assert!(shown.contains("a1  yes, always (writes a rule): `git push origin main`"), "{shown}");
    // capital letters are answers, too
    watch.types("A1\n");
    assert_eq!(asking.ended().0, 0);
    watch.shown_until("wrote a rule to");
    watch.types("\u{3}");
    watch.ends();
    assert_eq!(world.run(&["check", "git push origin main"]).0, 0);
    assert_eq!(world.run(&["check", "git push origin next"]).0, 10);
}

#[test]
fn always_writes_a_dated_rule_that_lets_the_call_pass_and_nothing_that_was_denied() {
    let world = World::new();
    let policies = world.home().join(".config/callgate");
    std::fs::create_dir_all(&policies).expect("a directory");
    let file = policies.join("callgate.yaml");
    let before = "# mine\nversion: 1\nextends: standard\n\nrules:\n  # shared history\n  - name: no-force\n    commands: [\"git push ** --force **\"]\n    action: deny\n    reason: shared\n";
    std::fs::write(&file, before).expect("a file");
    let mut terminal = on_terminal(&world, "check --ask 'git push origin main'");
    let shown = terminal.shown_until("\n> ");
    let shown = shown.trim_start().strip_prefix('\u{7}').expect("the bell rings");
    insta::assert_snapshot!("prompt", steady(&world, shown));
    terminal.types("a2\n");
    assert_eq!(terminal.ends().0, 0);
    insta::assert_snapshot!("always", undated(&std::fs::read_to_string(&file).expect("the file")));
    let check = |command: &str| world.run(&["check", command]).0;
    assert_eq!(check("git push origin main"), 0);
    assert_eq!(check("git push origin next"), 0, "it also covers this, as the prompt said");
    assert_eq!(check("git push origin main --force"), 11, "a deny behind the rule stands");
    assert_eq!(check("cat ~/.ssh/id_rsa"), 11);
    assert_eq!(check("git pull"), 10);
    assert_eq!(world.run(&["policy", "lint"]).0, 0);
}

#[test]
fn a_question_that_cannot_be_read_is_named_and_hides_no_other() {
    let world = World::new();
    let asking = Asking::new(&world, &["git push origin main"]);
    let question = pending(&world).remove(0);
    let store = world.home().join(".local/share/callgate/store.sqlite");
    let connection = rusqlite::Connection::open(&store).expect("a store");
    let add = "INSERT INTO questions (id, question, deadline) VALUES ('00damaged', 'not \u{202e}JSON', 9000000000000)";
    connection.execute(add, []).expect("a row");
    let (code, output, error) = world.run(&["approvals", "list"]);
    assert!(output.contains(id(&question)), "{output}");
    assert_eq!(code, 1, "{error}");
    let said = "callgate: cannot read question 00damaged; it is refused when it expires: expected ident";
    assert!(error.starts_with(said) && error.lines().count() == 1, "{error}");
    let (code, output, _) = world.run(&["approvals", "list", "--json"]);
    assert_eq!((code, serde_json::from_str::<Vec<Value>>(&output).expect("JSON").len()), (1, 1));
    let (code, _, error) = world.run(&["approvals", "approve", "00dam"]);
    assert!(code == 2 && error.contains("cannot read question 00damaged"), "{error}");
    assert_eq!(world.run(&["approvals", "approve", id(&question)]).0, 0);
    assert_eq!(asking.ended().0, 0);
}

#[test]
fn always_from_a_second_terminal_writes_the_rule_after_the_yes_has_counted() {
    let world = World::new();
    let asking = Asking::new(&world, &["git push origin main"]);
    let question = pending(&world).remove(0);
    assert_eq!(world.run(&["approvals", "approve", id(&question), "--always", "9"]).0, 2);
    let (code, output, error) = world.run(&["approvals", "approve", id(&question), "--always", "1"]);
    assert!(code == 0 && output.contains("wrote a rule to"), "{output}{error}");
    assert_eq!(asking.ended().0, 0);
    assert_eq!(world.run(&["check", "git push origin main"]).0, 0);
    assert_eq!(world.run(&["check", "git push origin next"]).0, 10);
}

#[test]
fn always_is_refused_with_the_reason_where_no_rule_can_help() {
    let world = World::new();
    let mut terminal = on_terminal(&world, "check --sandbox none --ask 'git push origin main; make'");
    let shown = terminal.shown_until("\n> ");
    assert!(shown.contains("(no broader choice: several commands"), "{shown}");
    terminal.types("a1\n");
    assert!(terminal.shown_until("\n> ").contains("no rule can allow this call: several commands"));
    terminal.types("n\n");
    assert_eq!(terminal.ends().0, 11);
    // a project that asks, and is not trusted, stands below the user's file: the rule in it would not be the last word
    world.write(
        "callgate.yaml",
        "version: 1\nrules:\n  - {name: ours, commands: ['git push **'], action: deny, reason: no}\n",
    );
    assert_eq!(world.run(&["check", "--ask", "git push origin main"]).0, 11);
}

#[test]
fn a_store_that_cannot_be_used_refuses_with_its_reason_and_the_next_call_works() {
    let world = World::new();
    assert_eq!(world.run(&["grant", "add", "Bash", "--any"]).0, 0);
    let file = world.home().join(".local/share/callgate/store.sqlite");
    let good = std::fs::read(&file).expect("the store");
    for beside in ["store.sqlite-wal", "store.sqlite-shm"] {
        let _ = std::fs::remove_file(file.with_file_name(beside));
    }
    std::fs::write(
        &file,
        "this is no database, however long it is looked at, and a hundred bytes are enough to see that it is none",
    )
    .expect("written");
    let (code, _, error) = world.run(&["check", "--ask", "rm notes.txt"]);
    assert!(code != 0 && error.contains("damaged"), "{code} {error}");
    for task in [&["grant", "list"][..], &["approvals", "list"], &["session", "show"]] {
        assert_eq!(world.run(task).0, 2, "{task:?}");
    }
    std::fs::write(&file, good).expect("written");
    assert_eq!(world.run(&["check", "--ask", "rm notes.txt"]).0, 0, "the grant was not lost");
}
