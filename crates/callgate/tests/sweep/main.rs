//! The sweep: what the programs of Debian really do with each option, compared with what callgate predicts.
//!
//! Calls are made from the tables and from manual pages (`calls.rs`). callgate judges each of them with the bundled policy `standard`, first in
//! a hostile project, then in a plain one (`world.sh`). A call that it would ask about or deny misses nothing and is not run. One that it
//! allows silently runs in a sandbox under strace (`sandbox.rs`, `trace.rs`), and everything it was seen doing must have been predicted
//! (`judge.rs`, which states the exceptions).
//!
//! Without further ado this runs a fixed sample with the programs that are installed. `cargo xtask sweep` runs all of it with the
//! programs of `packages.txt`. `CALLGATE_SWEEP_ONLY='ls cp'` runs only these programs, without a limit.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod calls;
mod judge;
#[path = "../../../callgate-shell/tests/reality/manual.rs"]
#[allow(dead_code, reason = "the other test uses the rest")]
mod manual;
mod manuals;
#[path = "../../../callgate-shell/tests/reality/options.rs"]
#[allow(dead_code, reason = "the other test uses the rest")]
mod options;
mod sandbox;
mod trace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::assess::Assessment;
use callgate::path::boundary::HostDirectories;
use callgate::policy::{Decision, Policy};
use callgate::{Call, Gate};
use callgate_shell::programs::Programs;
use calls::{Extent, Source};
use manuals::Manuals;
use sandbox::{Sandbox, World};
use serde_json::json;

/// The runs of the sample.
const SAMPLE: usize = 600;

/// The packages of the sample: a Debian machine has them, or `cargo xtask setup` installs them.
const SAMPLED: &str = "bash bsdextrautils bsdutils busybox coreutils curl dash debianutils diffutils dpkg e2fsprogs file findutils gawk git grep gzip \
    hostname jq libc-bin login man-db mawk mount ncurses-bin openssl passwd perl-base procps psmisc python3-minimal ripgrep rsync sed sqlite3 strace \
    tar tree unzip util-linux wget xz-utils zip zstd";

/// Everything that a sweep needs.
struct Sweep {
    scratch: tempfile::TempDir,
    /// Where programs are found: `/`, or the root that packages were unpacked to.
    root: PathBuf,
    /// The hostile world and the plain one, each with a gate for it.
    worlds: Vec<(World, Gate)>,
}

/// A program, and the calls that are still to be tried; they are made when it is its turn.
struct Program<'s> {
    name: &'s str,
    make: Option<Box<dyn FnOnce() -> VecDeque<String> + Send + 's>>,
    calls: VecDeque<String>,
}

/// What came of it.
#[derive(Default)]
struct Report {
    runs: usize,
    asked: usize,
    programs: BTreeSet<String>,
    misses: Vec<(String, String)>,
}

impl Sweep {
    fn new(policy: &str, root: PathBuf) -> Self {
        // Not in `/tmp`: everything below that is a root of the boundary.
        let scratch = tempfile::Builder::new().prefix("callgate-sweep").tempdir_in("/var/tmp").expect("a directory");
        std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("a directory");
        sandbox::add_program(&scratch.path().join("system"), "canary-program", "#!/bin/sh\n:\n");
        let worlds = ["hostile", "plain"].map(|kind| {
            let world = World::new(scratch.path().join(kind), kind);
            let policy = Policy::from_yaml(policy, "sweep").expect("a policy").with_home(world.home());
            let host = HostDirectories { home: Some(world.home()), temporary: vec!["/tmp".into()], programs: vec![] };
            let gate = Gate::builder().policy(policy).host(host).build();
            (world, gate)
        });
        Sweep { scratch, root, worlds: worlds.into() }
    }

    /// The world in which the call is silent, the hostile one first.
    fn silent_in(&self, call: &str) -> Option<(usize, Assessment)> {
        self.worlds.iter().enumerate().find_map(|(number, (world, gate))| {
            let request = Call::new("Bash", json!({ "command": call })).shell("bash");
            let request = request.directory(world.project()).workspace(world.project());
            let assessment = gate.assess(&request).ok()?;
            (assessment.ruling().decision == Decision::Allow).then_some((number, assessment))
        })
    }

    /// Tries the calls of all programs in turns until there were so many runs.
    fn run(&self, programs: Vec<Program<'_>>, most: usize) -> Report {
        let queue = Mutex::new(VecDeque::from(programs));
        let report = Mutex::new(Report::default());
        let runs = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            // Some calls only wait until their time is up.
            for worker in 0..2 * std::thread::available_parallelism().map_or(2, usize::from) {
                let (queue, report, runs) = (&queue, &report, &runs);
                scope.spawn(move || {
                    let system = self.scratch.path().join("system");
                    let mut sandboxes: Vec<Sandbox<'_>> = self
                        .worlds
                        .iter()
                        .enumerate()
                        .map(|(number, (world, _))| {
                            Sandbox::new(
                                world,
                                &self.root,
                                &system,
                                &self.scratch.path().join(format!("{worker}-{number}")),
                            )
                        })
                        .collect();
                    loop {
                        let Some(mut program) = queue.lock().expect("no panic").pop_front() else { return };
                        if let Some(make) = program.make.take() {
                            program.calls = make();
                        }
                        let (mut asked, mut tried) = (0, None);
                        while tried.is_none()
                            && let Some(call) = program.calls.pop_front()
                        {
                            match self.silent_in(&call) {
                                Some(silent) => tried = Some((call, silent)),
                                None => asked += 1,
                            }
                        }
                        report.lock().expect("no panic").asked += asked;
                        let Some((call, (number, assessment))) = tried else { continue };
                        if runs.fetch_add(1, Ordering::Relaxed) >= most {
                            return;
                        }
                        let observed = sandboxes[number].run(&call);
                        let found = judge::misses(&call, &observed, &assessment, &self.worlds[number].0);
                        for miss in &found {
                            println!("miss: {call}\n      {miss}");
                        }
                        let mut report = report.lock().expect("no panic");
                        report.runs += 1;
                        if report.runs.is_multiple_of(1000) {
                            println!("{} runs", report.runs);
                        }
                        report.programs.insert(program.name.to_owned());
                        report.misses.extend(found.into_iter().map(|miss| (call.clone(), miss)));
                        drop(report);
                        queue.lock().expect("no panic").push_back(program);
                    }
                });
            }
        });
        report.into_inner().expect("no panic")
    }
}

/// The programs whose tables can be tried with what is below `root`, and why the others cannot.
fn programs<'s>(
    root: &Path,
    only: Option<&str>,
    extent: Extent,
    sources: &'s [Source],
    manuals: &'s Manuals,
) -> (Vec<Program<'s>>, BTreeMap<String, &'static str>) {
    let builtins = Command::new("bash").args(["-c", "compgen -b"]).output().expect("bash").stdout;
    let builtins = String::from_utf8_lossy(&builtins).into_owned();
    let folders = ["usr/bin", "usr/sbin", "bin", "sbin", "usr/games", "usr/local/bin"];
    let (mut found, mut never) = (Vec::new(), BTreeMap::new());
    let sampled = if extent == Extent::Sample { installed(SAMPLED) } else { String::new() };
    let in_sample =
        |name: &str| extent == Extent::Whole || sampled.lines().any(|path| path.ends_with(&format!("bin/{name}")));
    for source in sources {
        for name in &source.names {
            let there = folders.iter().any(|folder| root.join(folder).join(name).exists());
            if name.contains('*') || only.is_some_and(|only| !only.split(' ').any(|other| other == name)) {
                continue;
            }
            let Some(table) = Programs::bundled().get(name) else { continue };
            if there && !in_sample(name) {
                never.insert(name.clone(), "it is not in the sample");
                continue;
            }
            if !there && !builtins.lines().any(|builtin| builtin == name) {
                never.insert(name.clone(), left_out(name));
                continue;
            }
            let make = move || calls::of_program(name, source, table, &|front| manuals.options(front), extent);
            found.push(Program { name, make: Some(Box::new(make)), calls: VecDeque::new() });
        }
    }
    (found, never)
}

/// The files of packages.
fn installed(packages: &str) -> String {
    let output = Command::new("dpkg-query").arg("-L").args(packages.split_whitespace()).output().expect("dpkg-query");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Why a program that is not there is not there: `left-out.txt` has a heading for each reason.
fn left_out(name: &str) -> &'static str {
    let mut reason = "";
    if name.starts_with("python-m-") {
        return "it is a module that Python runs";
    }
    for line in include_str!("left-out.txt").lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            reason = heading;
        } else if line.split(' ').any(|other| other == name) {
            return reason;
        }
    }
    "Debian does not package it, or this machine does not have it"
}

#[test]
fn everything_that_silent_calls_do_was_predicted() {
    let root = std::env::var_os("CALLGATE_SWEEP_ROOT").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let only = std::env::var("CALLGATE_SWEEP_ONLY").ok();
    let most = std::env::var("CALLGATE_SWEEP_RUNS").map_or(SAMPLE, |runs| runs.parse().expect("a number of runs"));
    let sweep = Sweep::new("version: 1\nextends: standard\n", root.clone());
    let extent = if most > SAMPLE || only.is_some() { Extent::Whole } else { Extent::Sample };
    let (sources, manuals) = (calls::sources(), Manuals::below(&root));
    let (programs, mut never) = programs(&root, only.as_deref(), extent, &sources, &manuals);
    let tried: Vec<String> = programs.iter().map(|program| program.name.to_owned()).collect();
    let report = sweep.run(programs, if only.is_some() { usize::MAX } else { most });
    for name in tried.into_iter().filter(|name| !report.programs.contains(name)) {
        never.insert(name, "no call of it is silent");
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in &never {
        reasons.entry(why).or_default().push(name);
    }
    for (why, names) in reasons {
        println!("never swept because {why} ({}): {}", names.len(), names.join(" "));
    }
    println!(
        "sweep: {} runs of {} programs, {} calls not silent, {} misses",
        report.runs,
        report.programs.len(),
        report.asked,
        report.misses.len()
    );
    let misses: Vec<String> = report.misses.iter().map(|(call, miss)| format!("{call}\n      {miss}")).collect();
    assert!(misses.is_empty(), "seen but not predicted:\n{}", misses.join("\n"));
    assert!(only.is_some() || report.runs >= most, "only {} runs", report.runs);
}

/// A table that says nothing of what its program does must be found out, each thing by itself, and a true one must not.
#[test]
fn a_wrong_table_is_found_out() {
    let script = "#!/bin/bash\ncase $1 in\n-w) echo > new.out ;;\n-t) echo > dir/x ;;\n-d) rm a.txt ;;\n-s) read -r x < .env ;;\n-l) read -r x < link-secret ;;\n\
        -x) ./planted ;;\n-p) canary-program ;;\n-c) exec 3<> /dev/tcp/127.0.0.1/9 ;;\n-e) echo > /etc/x ;;\n-m) mount -t tmpfs x /mnt ;;\n-n) cat a.txt ;;\nesac\n";
    let flags = ["-w", "-t", "-d", "-s", "-l", "-x", "-p", "-c", "-e", "-m", "-n"];
    let wrong: String = flags.iter().map(|flag| format!("    {flag}\n")).collect();
    let policy = format!(
        "version: 1\nextends: standard\nprograms: |\n  sneaky: hides what it does\n{wrong}  honest: says it\n    -w => write new.out\n"
    );
    let sweep = Sweep::new(&policy, PathBuf::from("/"));
    for name in ["sneaky", "honest"] {
        sandbox::add_program(&sweep.scratch.path().join("system"), name, script);
    }
    let calls = flags.iter().map(|flag| format!("sneaky {flag}")).chain(["honest -w".to_owned()]).collect();
    let report = sweep.run(vec![Program { name: "sneaky", make: None, calls }], usize::MAX);
    assert_eq!(report.runs, flags.len() + 1, "all of them are silent");
    let found: BTreeSet<&str> = report.misses.iter().map(|(call, _)| call.as_str()).collect();
    let expected: BTreeSet<String> =
        flags.iter().filter(|flag| **flag != "-n").map(|flag| format!("sneaky {flag}")).collect();
    assert_eq!(found, expected.iter().map(String::as_str).collect(), "{:#?}", report.misses);
}
