//! What a hook costs: whole processes against `/bin/true` in the same run, both with the payload as a file on standard input and
//! nobody who reads what they print.
//!
//! `CALLGATE_BENCH_BINARY` names another build of the command, such as the static one of `cargo xtask dist`.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark says what is missing by failing")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

const ROUNDS: usize = 1_000;

fn main() {
    // `cargo test --benches` only wants to see that it builds and runs
    let rounds = if std::env::args().any(|word| word == "--bench") { ROUNDS } else { 3 };
    let binary = std::env::var_os("CALLGATE_BENCH_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_callgate")), PathBuf::from);
    let world = tempfile::tempdir().expect("a directory");
    let place = world.path().canonicalize().expect("it is there");
    let homes = [
        Home::new(&place, "standard", None),
        Home::new(&place, "ten-rules", Some(rules(10, ""))),
        Home::new(&place, "ten-thousand-rules", Some(rules(10_000, ""))),
        Home::new(&place, "standard-and-ten-thousand-rules", Some(rules(10_000, "extends: standard\n"))),
        Home::new(&place, "sync-always", Some("extends: standard\naudit: {sync: always}\n".to_owned())),
    ];
    let payload = |home: &Home| {
        json!({"session_id": "bench", "cwd": home.project, "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": {"command": "ls -la src"}, "tool_use_id": "toolu_1"})
        .to_string()
    };
    // once each, so that policies are compiled and sessions have begun; twice for files that were too new
    for home in &homes {
        for _ in 0..2 {
            std::fs::write(home.payload(), payload(home)).expect("a payload");
            let said = home.hook(&binary);
            assert!(said.contains("allow"), "{}: {said}", home.name);
            std::thread::sleep(Duration::from_millis(2_100));
        }
    }
    let mut truth = Vec::new();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); homes.len()];
    for _ in 0..rounds {
        truth.push(timed(|| homes.first().expect("a home").start(Path::new("/bin/true"))));
        for (home, times) in homes.iter().zip(&mut times) {
            times.push(timed(|| home.start(&binary)));
        }
    }
    let base = Summary::of(truth);
    println!("{:<34} {:>10} {:>10}   of /bin/true", "", "minimum", "median");
    println!("{:<34} {:>7} µs {:>7} µs", "/bin/true", base.minimum, base.median);
    for (home, times) in homes.iter().zip(times) {
        let own = Summary::of(times);
        let ratio = |own: u128, base: u128| own as f64 / base.max(1) as f64;
        println!(
            "hook, {:<28} {:>7} µs {:>7} µs   {:.2}x (minimum) {:.2}x (median)",
            home.name,
            own.minimum,
            own.median,
            ratio(own.minimum, base.minimum),
            ratio(own.median, base.median),
        );
    }
}

fn timed(body: impl FnOnce()) -> Duration {
    let start = Instant::now();
    body();
    start.elapsed()
}

/// In microseconds.
struct Summary {
    minimum: u128,
    median: u128,
}

impl Summary {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |index: usize| times.get(index).map_or(0, Duration::as_micros);
        Summary { minimum: at(0), median: at(times.len() / 2) }
    }
}

/// A user with a policy.
struct Home {
    name: &'static str,
    directory: PathBuf,
    project: PathBuf,
}

impl Home {
    fn new(place: &Path, name: &'static str, policy: Option<String>) -> Self {
        let directory = place.join(name);
        let project = directory.join("project");
        std::fs::create_dir_all(project.join("src")).expect("a directory");
        std::fs::create_dir_all(directory.join(".config/callgate")).expect("a directory");
        if let Some(policy) = policy {
            std::fs::write(directory.join(".config/callgate/callgate.yaml"), policy).expect("a policy");
        }
        Home { name, directory, project }
    }

    fn payload(&self) -> PathBuf {
        self.directory.join("payload")
    }

    fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        command
            .args(["hook", "claude"])
            .env_clear()
            .env("HOME", &self.directory)
            .current_dir(&self.project)
            .stdin(File::open(self.payload()).expect("the payload"));
        command
    }

    /// What the hook says.
    fn hook(&self, binary: &Path) -> String {
        let output = self.command(binary).output().expect("the hook runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// From its start to its end.
    fn start(&self, binary: &Path) {
        let ended = self.command(binary).stdout(Stdio::null()).status().expect("it runs");
        assert!(ended.success(), "{}", self.name);
    }
}

/// A policy that lets the call pass after it has been compared with this many rules of all kinds.
fn rules(count: usize, front: &str) -> String {
    let mut text = format!("{front}boundary: {{roots: [\".\"], outside: ask}}\ndefault: ask\nrules:\n");
    for number in 0..count {
        let condition = match number % 5 {
            0 => format!("commands: [\"tool{number} do **\"]"),
            1 => format!("paths: [\"~/area{number}/**\"]"),
            2 => format!("hosts: [\"host{number}.example\"]"),
            3 => format!("tools: [tool_{number}]"),
            _ => format!("commands: [\"git topic{number} **\"]"),
        };
        text.push_str(&format!("  - {{name: rule-{number}, {condition}, action: deny}}\n"));
    }
    text.push_str("  - {name: look, effects: [list, run], action: allow}\n");
    text
}
