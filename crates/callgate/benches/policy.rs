//! Loading and judging against 10, 100, 1,000 and 10,000 rules, in one run, with ratios.
//!
//! `cargo bench -p callgate --bench policy`. Read the ratios and the minimum, not the absolute times.

#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use callgate::call::{Call, Origin, Tool};
use callgate::describe::{Description, Part, PlacedEffect};
use callgate::path::{Contents, Place, Rest, Zone};
use callgate::policy::{Claims, JudgeRequest, Policy};
use callgate_shell::effect::{Action, CodeOrigin, Coverage, Effect, Names, PathTarget, Program, Target};
use callgate_shell::word::Word;
use serde_json::{Value, json};

/// A policy of `count` rules of every kind, in front of a few general ones.
fn policy_text(count: usize) -> String {
    let mut text = String::from("version: 1\ndefault: ask\nrules:\n");
    for number in 0..count {
        let condition = match number % 10 {
            0..=3 => format!("commands: ['tool{number} sub{number} **', 'git sub{number} **']"),
            4 | 5 => {
                format!("effects: [read, write]\n    paths: ['/srv/project{number}/**', './generated{number}/**']")
            }
            6 => format!("effects: [read]\n    paths: ['**/secret-{number}.key', '**/*.ext{number}']"),
            7 => format!("tools: [custom_tool_{number}, server{number}/*]"),
            8 => format!("effects: [connect]\n    hosts: [host{number}.example.com, '*.zone{number}.example.com']"),
            _ => format!("tools: [Bash]\n    command_patterns: ['^program{number}\\s+-x']"),
        };
        let action = if number % 3 == 0 { "allow" } else { "deny" };
        let _ = writeln!(text, "  - name: rule-{number}\n    {condition}\n    action: {action}\n    reason: because");
    }
    text.push_str("  - {name: read, effects: [read, list], zones: [root], action: allow}\n");
    text.push_str("  - {name: run, effects: [run], code: [known], action: allow}\n");
    text
}

struct Scene {
    name: &'static str,
    call: Call,
    description: Description,
}

fn scene(name: &'static str, tool: &str, input: Value, part: Part) -> Scene {
    let workspace = "/home/me/work/project";
    Scene {
        name,
        call: Call {
            tool: Tool { server: None, name: tool.to_owned() },
            input,
            origin: Origin {
                directory: Some(workspace.into()),
                workspace: Some(workspace.into()),
                ..Origin::default()
            },
        },
        description: Description { category: "shell".to_owned(), parts: vec![part], coverage: Coverage::Complete },
    }
}

fn path(action: Action, name: &str, tree: bool) -> PlacedEffect {
    PlacedEffect {
        effect: Effect {
            action,
            target: Target::Path(PathTarget::new(Names::Exact(name.to_owned()), tree)),
            marks: Vec::new(),
            because: String::new(),
        },
        place: Some(Place {
            named: name.into(),
            resolved: name.into(),
            rest: Rest::Nothing,
            tree,
            zone: Zone::Root,
            traversal: false,
            contents: Contents::Existing,
        }),
    }
}

fn shell(name: &'static str, command: &str, mut effects: Vec<PlacedEffect>) -> Scene {
    let words: Vec<Word> = command.split(' ').map(|word| Word::Known(word.to_owned())).collect();
    let program = command.split(' ').next().unwrap_or_default().to_owned();
    effects.insert(
        0,
        PlacedEffect {
            effect: Effect {
                action: Action::Run,
                target: Target::Program(Program { name: program, origin: CodeOrigin::Known }),
                marks: Vec::new(),
                because: String::new(),
            },
            place: None,
        },
    );
    scene(name, "Bash", json!({ "command": command }), Part { words, effects, ..Part::default() })
}

fn scenes() -> Vec<Scene> {
    let file = "/home/me/work/project/src/lib.rs";
    let read = Part { effects: vec![path(Action::Read, file, false)], ..Part::default() };
    vec![
        scene("Read one file", "Read", json!({ "file_path": file }), read),
        shell("git status", "git status", vec![path(Action::List, "/home/me/work/project", false)]),
        shell("grep a tree", "grep -rn foo src", vec![path(Action::Read, "/home/me/work/project/src", true)]),
    ]
}

/// The shortest of many runs, each of `inner` repetitions.
fn fastest(runs: usize, inner: u32, mut work: impl FnMut()) -> Duration {
    (0..runs)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..inner {
                work();
            }
            started.elapsed() / inner
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    let claims = Claims::default();
    let scenes = scenes();
    print!("{:>8} {:>12}", "rules", "load");
    for scene in &scenes {
        print!(" {:>24}", scene.name);
    }
    println!();
    let mut first: Option<Vec<Duration>> = None;
    for count in [10, 100, 1_000, 10_000] {
        let text = policy_text(count);
        let load = fastest(3, 1, || drop(black_box(Policy::from_yaml(&text, "bench.yaml"))));
        let policy = Policy::from_yaml(&text, "bench.yaml").expect("the policy is well formed").with_home("/home/me");
        let times: Vec<Duration> = scenes
            .iter()
            .map(|scene| {
                let request = JudgeRequest {
                    call: &scene.call,
                    description: &scene.description,
                    claims: &claims,
                    sandbox: callgate::policy::SandboxSupport::Missing,
                };
                fastest(50, 500, || drop(black_box(policy.judge(black_box(&request)))))
            })
            .collect();
        print!("{count:>8} {:>9.2} ms", load.as_secs_f64() * 1e3);
        let base = first.get_or_insert_with(|| times.clone());
        for (time, base) in times.iter().zip(base) {
            let ratio = time.as_secs_f64() / base.as_secs_f64();
            print!(" {:>14.0} ns ({ratio:>4.2}x)", time.as_secs_f64() * 1e9);
        }
        println!();
    }
    let standard = Policy::bundled("standard").expect("the bundled policy loads").with_home("/home/me");
    print!("{:>8} {:>12}", "standard", "");
    for scene in &scenes {
        let request = JudgeRequest {
            call: &scene.call,
            description: &scene.description,
            claims: &claims,
            sandbox: callgate::policy::SandboxSupport::Missing,
        };
        let time = fastest(50, 500, || drop(black_box(standard.judge(black_box(&request)))));
        print!(" {:>14.0} ns        ", time.as_secs_f64() * 1e9);
    }
    println!();
}
