//! A first and a second day with an agent: forty calls of ordinary work, answered as a user would, and the same calls again.
//!
//! Each agent is installed into a home of its own and its hook is started as the settings say. What the hook lets pass really happens:
//! files change, git commits, tests run contained. Only what needs a network or a package manager is not run.

#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod support;
mod terminal;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Answered, Told, World, answered, feed, start, told};
use terminal::OnTerminal;

/// The most questions on each day. Who changes this number changes how often every user is asked.
const MOST: [usize; 2] = [7, 5];

/// What the agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Read(&'static str),
    Search(&'static str),
    Write(&'static str, &'static str),
    Edit(&'static str, &'static str, &'static str),
    /// A command that is run if it may.
    Run(&'static str),
    /// A command that is judged only: it needs a network, or a program that may be missing.
    Judge(&'static str),
}
use Work::{Edit, Judge, Read, Run, Search, Write};

/// What the user says if asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Say {
    Once,
    Session,
    Always,
    No,
}

/// What the user says about the calls that are known to be asked about; once to any other.
const ANSWERS: &[(&str, Say)] = &[
    ("npm install left-pad", Say::Session),
    ("rm scratch.txt", Say::Once),
    ("git push origin main", Say::Always),
    ("curl https://api.example.com/v1/status", Say::No),
    ("rm -r notes", Say::Session),
    ("git push origin next", Say::Always),
    ("gh pr create --fill", Say::Session),
];

const DAY: [Work; 40] = [
    Run("ls -la"),
    Run("git status"),
    Read("package.json"),
    Read("src/sum.js"),
    Search("sum"),
    Judge("npm test"),
    Edit("src/sum.js", "a - b", "a + b"),
    Judge("npm test"),
    Run("sh test.sh"),
    Run("git diff"),
    Run("git add src/sum.js"),
    Run("git commit -m 'sum adds'"),
    Write("src/product.js", "exports.product = (a, b) => a * b\n"),
    Write("tests/test_product.py", "def test_product():\n    assert 2 * 3 == 6\n"),
    Judge("python3 -m pytest -q"),
    Judge("cargo test"),
    Run("grep -rn TODO src"),
    Judge("rg -n sum src | head -20"),
    Run("git log --oneline -5"),
    Judge("npm install left-pad"),
    Run("mkdir -p docs"),
    Write("docs/notes.md", "# Notes\n"),
    Run("sed -n 1,20p src/sum.js"),
    Run("rm scratch.txt"),
    Judge("npm run build"),
    Run("sh test.sh"),
    Run("wc -l src/*.js"),
    Run("git push origin main"),
    Judge("curl https://api.example.com/v1/status"),
    Run("git checkout -b next"),
    Edit("src/product.js", "a * b", "b * a"),
    Run("git add -A"),
    Run("git commit -m 'product'"),
    Run("rm -r notes"),
    Run("git push origin next"),
    Judge("gh pr create --fill"),
    Run("find . -name '*.js' -not -path './.git/*'"),
    Judge("npm test"),
    Run("git push origin main"),
    Judge("npm install left-pad"),
];

/// The project as it is in the morning.
fn set_up(world: &World) {
    let project = world.project();
    std::fs::remove_dir_all(&project).expect("removed");
    for directory in ["src", "tests", "notes"] {
        std::fs::create_dir_all(project.join(directory)).expect("a directory");
    }
    let files = [
        (
            "package.json",
            "{\"name\": \"sums\", \"scripts\": {\"test\": \"node --test\", \"build\": \"node build.js\"}}\n",
        ),
        ("Cargo.toml", "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
        ("build.js", "console.log('built')\n"),
        ("test.sh", "echo 3 tests passed\n"),
        ("src/sum.js", "// TODO: test it\nexports.sum = (a, b) => a - b\n"),
        ("tests/test_sum.py", "def test_sum():\n    assert 1 + 2 == 3\n"),
        (".gitignore", "scratch.txt\nnotes\n"),
    ];
    for (name, text) in files {
        std::fs::write(project.join(name), text).expect("a file");
    }
    let remote = world.home().join("remote.git");
    let _ = std::fs::remove_dir_all(&remote);
    let script = format!(
        "git init -q --bare -b main {remote} && git init -q -b main . && git config user.name Ada && git config user.email ada@example.com \
         && git remote add origin {remote} && git add -A && git commit -q -m start",
        remote = remote.display()
    );
    let output = shell(world, &script);
    assert_eq!(output.code, 0, "{output:?}");
    std::fs::write(project.join("scratch.txt"), "scratch\n").expect("a file");
    std::fs::write(project.join("notes/idea.md"), "an idea\n").expect("a file");
}

fn shell(world: &World, command: &str) -> Told {
    let mut shell = Command::new("/bin/bash");
    shell.args(["-c", command]).current_dir(world.project()).env_clear().envs(world.environment());
    told(shell.stdin(Stdio::null()).output().expect("a shell"))
}

fn callgate(world: &World, arguments: &[&str]) -> Told {
    told(world.command(arguments).output().expect("it starts"))
}

/// An agent with callgate in front of it, on one day.
struct Agent<'a> {
    name: &'static str,
    world: &'a World,
    /// The hook as the agent's settings start it.
    hook: Vec<String>,
    session: String,
    calls: usize,
    /// Where questions are answered, if not in the agent or afterwards.
    watch: Option<OnTerminal>,
    asked: Vec<Work>,
}

/// How the agent names the tool and its input.
fn tool(agent: &str, world: &World, work: Work) -> (&'static str, Value) {
    let path = |name: &str| world.project().join(name);
    let patch = |name: &str, hunk: String| json!({"command": format!("*** Begin Patch\n{}: {name}\n{hunk}*** End Patch", if hunk.starts_with("@@") { "*** Update File" } else { "*** Add File" })});
    let run = |command: &str| match agent {
        "gemini" => ("run_shell_command", json!({"command": command})),
        _ => ("Bash", json!({"command": command})),
    };
    match (agent, work) {
        (_, Run(command) | Judge(command)) => run(command),
        ("codex", Read(name)) => run(&format!("sed -n 1,200p {name}")),
        ("codex", Search(text)) => run(&format!("grep -rn {text} src")),
        ("codex", Write(name, text)) => {
            let added: String = text.lines().map(|line| format!("+{line}\n")).collect();
            ("apply_patch", patch(name, added))
        }
        ("codex", Edit(name, old, new)) => {
            let text = std::fs::read_to_string(path(name)).expect("a file");
            let line = text.lines().find(|line| line.contains(old)).expect("a line");
            ("apply_patch", patch(name, format!("@@\n-{line}\n+{}\n", line.replace(old, new))))
        }
        ("gemini", Read(name)) => ("read_file", json!({"file_path": path(name)})),
        ("gemini", Search(text)) => ("search_file_content", json!({"pattern": text, "path": path("src")})),
        ("gemini", Write(name, text)) => ("write_file", json!({"file_path": path(name), "content": text})),
        ("gemini", Edit(name, old, new)) => {
            ("replace", json!({"file_path": path(name), "old_string": old, "new_string": new, "instruction": "fix"}))
        }
        (_, Read(name)) => ("Read", json!({"file_path": path(name)})),
        (_, Search(text)) => ("Grep", json!({"pattern": text, "path": path("src")})),
        (_, Write(name, text)) => ("Write", json!({"file_path": path(name), "content": text})),
        (_, Edit(name, old, new)) => {
            ("Edit", json!({"file_path": path(name), "old_string": old, "new_string": new, "replace_all": false}))
        }
    }
}

/// The words that start the hook, from the agent's own settings.
fn installed(world: &World, agent: &str) -> Vec<String> {
    let (file, event) = match agent {
        "codex" => (".codex/hooks.json", "PreToolUse"),
        "gemini" => (".gemini/settings.json", "BeforeTool"),
        _ => (".claude/settings.json", "PreToolUse"),
    };
    let text = std::fs::read_to_string(world.home().join(file)).expect("settings");
    let settings: Value = serde_json::from_str(&text).expect("JSON");
    let hook = &settings["hooks"][event][0]["hooks"][0];
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    match hook["args"].as_array() {
        Some(arguments) => [vec![word(&hook["command"])], arguments.iter().map(word).collect()].concat(),
        None => vec!["/bin/sh".to_owned(), "-c".to_owned(), word(&hook["command"])],
    }
}

impl Agent<'_> {
    fn event(&self, name: &str, fields: &Value) -> (Command, Vec<u8>) {
        let name = match (self.name, name) {
            ("gemini", "PreToolUse") => "BeforeTool",
            ("gemini", "PostToolUse") => "AfterTool",
            _ => name,
        };
        let mut payload = json!({"session_id": self.session, "transcript_path": "/t", "cwd": self.world.project(), "hook_event_name": name});
        if self.name != "gemini" {
            payload["permission_mode"] = "default".into();
        }
        for (key, value) in fields.as_object().expect("fields") {
            payload[key] = value.clone();
        }
        let mut hook = Command::new(&self.hook[0]);
        hook.args(&self.hook[1..]).current_dir(self.world.project()).env_clear().envs(self.world.environment());
        (hook, payload.to_string().into_bytes())
    }

    fn tells(&self, name: &str, fields: &Value) -> Told {
        let (hook, payload) = self.event(name, fields);
        let output = feed(hook, &payload);
        assert_eq!(output.code, 0, "{name}: {output:?}");
        output
    }

    /// The agent announces a call: how it takes the answer, and the answer.
    fn announces(&mut self, work: Work, call: &Value) -> (Answered, Told) {
        let (hook, payload) = self.event("PreToolUse", call);
        let Some(watch) = &mut self.watch else {
            let output = feed(hook, &payload);
            return (answered(self.name, &payload, &output), output);
        };
        // The hook waits for an answer in the other terminal, if it asks.
        let mut hook = start(hook, &payload);
        while hook.try_wait().expect("a state").is_none() {
            if watch.shown_within(Duration::from_millis(10), "\n> ").is_ok() {
                self.asked.push(work);
                let letter = match says(work) {
                    Say::Once => "y\n",
                    Say::Session => "s\n",
                    Say::Always => "a1\n",
                    Say::No => "n not that one\n",
                };
                watch.types(letter);
            }
        }
        let output = told(hook.wait_with_output().expect("it ends"));
        (answered(self.name, &payload, &output), output)
    }

    /// One call, with everything that the user does about it.
    fn makes(&mut self, work: Work) {
        self.calls += 1;
        let (tool, input) = tool(self.name, self.world, work);
        let mut call = json!({"tool_name": tool, "tool_input": input});
        if self.name != "gemini" {
            call["tool_use_id"] = format!("{}-{}", self.session, self.calls).into();
        }
        let (mut answer, mut output) = self.announces(work, &call);
        if answer == Answered::Refused && self.name == "codex" && self.answers_afterwards(work) {
            // the agent tries it once more
            (answer, output) = self.announces(work, &call);
            assert_eq!(answer, Answered::Allowed, "{work:?}: {output:?}");
        }
        if answer == Answered::Asked {
            self.asked.push(work);
            if says(work) == Say::No {
                self.tells("Stop", &json!({}));
                return;
            }
            if says(work) == Say::Always {
                self.runs_the_remedy(&output);
            }
            answer = Answered::Allowed;
        }
        if answer == Answered::Refused {
            assert_eq!(says(work), Say::No, "{}: {work:?}: {output:?}", self.name);
            return;
        }
        assert_eq!(answer, Answered::Allowed, "{work:?}: {output:?}");
        if matches!(work, Judge(_)) && changed(self.name, &output).is_some() {
            return;
        }
        self.does(work, &output);
        call["tool_response"] = json!({"stdout": ""});
        self.tells("PostToolUse", &call);
    }

    /// What nobody could answer is kept, and the user answers it; whether the answer was a yes.
    fn answers_afterwards(&mut self, work: Work) -> bool {
        let kept: Vec<Value> =
            serde_json::from_str(&callgate(self.world, &["approvals", "list", "--json"]).stdout).expect("JSON");
        let [question] = kept.as_slice() else { panic!("{work:?}: {kept:?}") };
        self.asked.push(work);
        let id = question["id"].as_str().expect("an id");
        let words: &[&str] = match says(work) {
            Say::Once => &["approve", id],
            Say::Session => &["approve", id, "--session"],
            Say::Always => &["approve", id, "--always", "1"],
            Say::No => &["deny", id, "--reason", "not that one"],
        };
        let output = callgate(self.world, &[&["approvals"], words].concat());
        assert_eq!(output.code, 0, "{work:?}: {output:?}");
        says(work) != Say::No
    }

    /// The user runs the command that the prompt names.
    fn runs_the_remedy(&self, output: &Told) {
        let answer: Value = serde_json::from_str(&output.stdout).expect("JSON");
        let words = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().expect("a reason");
        let (_, command) = words.split_once("to always allow it: ").unwrap_or_else(|| panic!("{words}"));
        let arguments = command.strip_prefix("callgate ").expect("a command of callgate");
        let output = shell(self.world, &format!("{} {arguments}", env!("CARGO_BIN_EXE_callgate")));
        assert_eq!(output.code, 0, "{command}: {output:?}");
    }

    /// The call happens.
    fn does(&self, work: Work, output: &Told) {
        let file = |name: &str| self.world.project().join(name);
        match work {
            Read(_) | Search(_) | Judge(_) => {}
            Write(name, text) => std::fs::write(file(name), text).expect("written"),
            Edit(name, old, new) => {
                let text = std::fs::read_to_string(file(name)).expect("a file");
                std::fs::write(file(name), text.replace(old, new)).expect("written");
            }
            Run(command) => {
                let changed = changed(self.name, output);
                let contained = changed.as_deref().is_some_and(|changed| changed.contains(" run --permit "));
                assert_eq!(contained, command.starts_with("sh "), "{}: {command}: {output:?}", self.name);
                let ran = shell(self.world, changed.as_deref().unwrap_or(command));
                assert_eq!(ran.code, 0, "{}: {command}: {ran:?}", self.name);
            }
        }
    }
}

/// The command that the agent is to run in place of its own.
fn changed(agent: &str, output: &Told) -> Option<String> {
    let answer: Value = serde_json::from_str(&output.stdout).ok()?;
    let field = if agent == "gemini" { "tool_input" } else { "updatedInput" };
    answer["hookSpecificOutput"][field]["command"].as_str().map(str::to_owned)
}

fn says(work: Work) -> Say {
    let (Run(command) | Judge(command)) = work else { return Say::Once };
    ANSWERS.iter().find(|(known, _)| *known == command).map_or(Say::Once, |(_, say)| *say)
}

/// Works for a day; what was asked about.
fn day(agent: &'static str, world: &World, number: usize) -> Vec<Work> {
    set_up(world);
    let watch = (agent == "gemini").then(|| {
        let mut watch = OnTerminal::new(&world.command(&[]), 100, "approvals watch");
        watch.shown_until("waiting for questions");
        watch
    });
    let session = format!("day-{number}");
    let mut agent =
        Agent { name: agent, world, hook: installed(world, agent), session, calls: 0, watch, asked: Vec::new() };
    agent.tells("SessionStart", &json!({"source": "startup"}));
    for work in DAY {
        agent.makes(work);
    }
    agent.asked
}

fn two_days(agent: &'static str) {
    if callgate_sandbox::choose(&callgate::fence::Protection::ALL, None).is_err() {
        return;
    }
    support::permits_in_turn();
    let world = World::new();
    let output = callgate(&world, &["install", agent, "--trust"]);
    assert_eq!(output.code, 0, "{output:?}");
    let days = [day(agent, &world, 1), day(agent, &world, 2)];
    println!(
        "{agent}: {} questions on day one, {} on day two, {} calls a day",
        days[0].len(),
        days[1].len(),
        DAY.len()
    );
    for (number, asked) in (1..).zip(&days) {
        println!("  day {number}: {asked:?}");
        let mut times: BTreeMap<Work, usize> = BTreeMap::new();
        asked.iter().for_each(|work| *times.entry(*work).or_default() += 1);
        assert!(times.values().all(|times| *times == 1), "asked twice in a session: {times:?}");
        let known = |work: &Work| matches!(work, Run(command) | Judge(command) if ANSWERS.iter().any(|(known, _)| known == command));
        assert!(asked.iter().all(known), "nobody thought that this is asked about: {asked:?}");
        assert!(asked.len() <= MOST[number - 1], "day {number}: {asked:?}");
    }
    assert!(days[0].iter().any(|work| says(*work) == Say::Always), "the day has answers that are kept");
    assert!(days[1].iter().all(|work| says(*work) != Say::Always), "asked again after `always`: {:?}", days[1]);
    world.log_is_whole();
    assert!(Path::new(&world.project()).join("docs/notes.md").exists(), "the work was done");
}

#[test]
fn with_claude_code_whose_own_prompt_asks() {
    two_days("claude");
}

#[test]
fn with_codex_whose_questions_are_answered_afterwards() {
    two_days("codex");
}

#[test]
fn with_gemini_and_a_second_terminal_that_watches() {
    two_days("gemini");
}
