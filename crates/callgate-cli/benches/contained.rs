//! What containing costs: whole processes against plain ones in the same run.
//!
//! `CALLGATE_BENCH_BINARY` names another build of the command. Lines that need a program that is not installed are left out and
//! say so. Read ratios and minima: other work on the machine disturbs medians.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark says what is missing by failing")]

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io::Read;
    use std::net::TcpListener;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    pub fn main() {
        // `cargo test --benches` only wants to see that it builds and runs
        let whole = std::env::args().any(|word| word == "--bench");
        let bench = Bench::new();
        println!("{:<52} {:>11} {:>11}   compared", "", "minimum", "median");
        bench.starts(if whole { 300 } else { 3 });
        bench.work(if whole { 9 } else { 1 });
        bench.connections();
        bench.output(if whole { 1 << 30 } else { 1 << 20 });
    }

    /// A workspace, a home and the programs that are started in it.
    struct Bench {
        place: PathBuf,
        callgate: PathBuf,
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.place);
        }
    }

    /// Landlock alone holds less than everything, so it contains only what a trusted file says that this is enough for.
    const LESS: &str = "version: 1
extends: standard
sandbox: {profiles: {less: {requires: [writes, protected_names, kernel]}}}
rules: [{name: less, reason: measured, commands: ['PROGRAM'], action: contain, profile: less}]
";

    const TRUE: &str = "int main(void) { return 0; }\n";

    /// Connects as often as it is told and prints how many microseconds each connection took, the fastest and the middle one.
    const CONNECT: &str = r#"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static int compare(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }
int main(int count, char **words) {
    static double times[1000];
    int rounds = count > 2 ? atoi(words[2]) : 100;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < rounds; i++) {
        struct timespec start, end;
        int made = socket(AF_INET, SOCK_STREAM, 0);
        clock_gettime(CLOCK_MONOTONIC, &start);
        if (connect(made, (struct sockaddr *)&to, sizeof to)) { perror("connect"); return 1; }
        clock_gettime(CLOCK_MONOTONIC, &end);
        close(made);
        times[i] = (end.tv_sec - start.tv_sec) * 1e6 + (end.tv_nsec - start.tv_nsec) / 1e3;
    }
    qsort(times, rounds, sizeof *times, compare);
    printf("%.0f %.0f\n", times[0], times[rounds / 2]);
    return 0;
}
"#;

    const SET_UP: &str = r#"
mkdir -p many app/src && cd many
for i in $(seq 1000); do echo "file $i" > f$i; done
cd .. && tar -cf many.tar many
git init -q . && git add many app && git -c user.name=x -c user.email=x@example.org commit -qm first
printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n' > app/Cargo.toml
for i in $(seq 60); do echo "pub fn f$i(x: u64) -> u64 { (0..x).map(|n| n.wrapping_mul($i)).filter(|n| n % 3 == 0).sum() }"; done > app/src/lib.rs
"#;

    impl Bench {
        fn new() -> Self {
            // not below a temporary directory: a contained command has its own ones
            let place = PathBuf::from("/var/tmp").join(format!("callgate-bench-{}", std::process::id()));
            fs::create_dir_all(place.join("workspace")).expect("a directory");
            fs::create_dir_all(place.join("home")).expect("a directory");
            let trusted = place.join("less/.config/callgate");
            fs::create_dir_all(&trusted).expect("a directory");
            let program = place.join("workspace/true");
            fs::write(trusted.join("callgate.yaml"), LESS.replace("PROGRAM", program.to_str().expect("UTF-8")))
                .expect("a file");
            let callgate = std::env::var_os("CALLGATE_BENCH_BINARY")
                .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_callgate")), PathBuf::from);
            let bench = Self { place, callgate };
            for (name, text) in [("true", TRUE), ("connect", CONNECT)] {
                let source = bench.place.join(format!("{name}.c"));
                fs::write(&source, text).expect("a file");
                let done = Command::new("gcc")
                    .args(["-O1", "-static", "-o"])
                    .arg(bench.workspace().join(name))
                    .arg(&source)
                    .status();
                assert!(done.is_ok_and(|code| code.success()), "gcc cannot compile {name}.c");
            }
            let done = bench.plain("bash").args(["-ec", SET_UP]).status().expect("bash");
            assert!(done.success(), "the workspace cannot be made");
            bench
        }

        fn workspace(&self) -> PathBuf {
            self.place.join("workspace")
        }

        fn plain(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
            let mut command = Command::new(program);
            command.current_dir(self.workspace()).env("HOME", self.place.join("home")).stdin(Stdio::null());
            if let Some(home) = std::env::home_dir() {
                for (name, below) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
                    if std::env::var_os(name).is_none() {
                        command.env(name, home.join(below));
                    }
                }
            }
            command
        }

        fn contained(&self, options: &[&str]) -> Command {
            let mut command = self.plain(&self.callgate);
            command.args(["run", "--contain"]).args(options).arg("--");
            command
        }

        fn bubblewrap(&self) -> Command {
            let mut command = self.plain("bwrap");
            let workspace = self.workspace();
            command.args([
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                "--proc",
                "/proc",
                "--tmpfs",
                "/tmp",
                "--tmpfs",
                "/var/tmp",
                "--bind",
            ]);
            command.arg(&workspace).arg(&workspace).args(["--unshare-all", "--die-with-parent", "--new-session"]);
            command
        }

        /// What a hook makes of a command: it is announced here, and only what runs it is measured.
        fn handed_over(&self, text: &str) -> Command {
            let payload = serde_json::json!({"session_id": "s", "transcript_path": "/t", "cwd": self.workspace(),
                "hook_event_name": "PreToolUse", "permission_mode": "default", "tool_use_id": "t", "tool_name": "Bash",
                "tool_input": {"command": text}});
            let mut hook = self.plain(&self.callgate);
            hook.args(["hook", "claude"]).env("SHELL", "/bin/bash").env("CLAUDE_PROJECT_DIR", self.workspace());
            let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
            let stdin = hook.stdin.take().expect("it is piped");
            serde_json::to_writer(stdin, &payload).expect("it reads");
            let answer = hook.wait_with_output().expect("it ends").stdout;
            let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
            let rewritten = answer.pointer("/hookSpecificOutput/updatedInput/command").and_then(|text| text.as_str());
            let token = rewritten.and_then(|command| command.split_once("--permit ")?.1.get(..32)).unwrap_or("none");
            let mut command = self.plain(&self.callgate);
            command.args(["run", "--permit", token, "--shell", text]);
            command
        }

        /// One static program that does nothing: alone, contained, in bubblewrap.
        fn starts(&self, rounds: usize) {
            let program = self.workspace().join("true");
            let text = program.to_str().expect("UTF-8").to_owned();
            let makers: [(&str, &dyn Fn() -> Command); 6] = [
                ("static true", &|| self.plain(&program)),
                ("contained", &|| with(self.contained(&[]), &program)),
                ("contained, Landlock and seccomp alone", &|| {
                    let mut command = with(self.contained(&["--backend", "landlock"]), &program);
                    command.env("HOME", self.place.join("less"));
                    command
                }),
                ("bwrap with the same namespaces", &|| with(self.bubblewrap(), &program)),
                ("contained, in a shell", &|| {
                    let mut command = self.plain(&self.callgate);
                    command.args(["run", "--contain", "--shell", &text]);
                    command
                }),
                ("contained, in a shell, with the permit of a hook", &|| self.handed_over(&text)),
            ];
            let mut times: Vec<Option<Vec<Duration>>> = Vec::new();
            for (_, make) in &makers {
                times.push(works(make()).then(Vec::new));
            }
            for _ in 0..rounds {
                for ((_, make), times) in makers.iter().zip(&mut times) {
                    if let Some(times) = times {
                        times.push(timed(make()));
                    }
                }
            }
            let mut base = None;
            for ((name, _), times) in makers.iter().zip(times) {
                match times {
                    Some(times) => {
                        let own = Summary::of(times);
                        own.print(name, base.as_ref());
                        base.get_or_insert(own);
                    }
                    None => println!("{name:<52} not available on this machine"),
                }
            }
        }

        /// The same work inside and outside, long enough that the start does not count.
        fn work(&self, rounds: usize) {
            let pieces = [
                (
                    "untar of a thousand files, 5 times",
                    "for i in 1 2 3 4 5; do rm -rf out && mkdir out && tar -xf many.tar -C out; done",
                ),
                (
                    "git status of a thousand files, 40 times",
                    "for i in $(seq 40); do git status --porcelain > /dev/null; done",
                ),
                ("cargo build of a small crate", "cd app && rm -rf target && cargo build --offline -q"),
            ];
            for (name, text) in pieces {
                let outside = || with_shell(self.plain("/bin/bash"), text);
                let inside = || with_shell(with(self.contained(&[]), Path::new("/bin/bash")), text);
                if !works(outside()) || !works(inside()) {
                    println!("{name:<52} does not run here");
                    continue;
                }
                let (mut plain, mut held) = (Vec::new(), Vec::new());
                for _ in 0..rounds {
                    plain.push(timed(outside()));
                    held.push(timed(inside()));
                }
                let base = Summary::of(plain);
                base.print(name, None);
                Summary::of(held).print("  contained", Some(&base));
            }
        }

        /// Connections that are made on behalf of the command.
        fn connections(&self) {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("it is bound").port().to_string();
            std::thread::spawn(move || listener.incoming().for_each(drop));
            let program = self.workspace().join("connect");
            let host = format!("127.0.0.1:{port}");
            for (name, mut command) in [
                ("connect to a port", self.plain(&program)),
                ("  on behalf of a contained command", with(self.contained(&["--network", &host]), &program)),
            ] {
                let said = command.args([port.as_str(), "200"]).output().expect("it starts");
                let text = String::from_utf8_lossy(&said.stdout).into_owned();
                match text.trim().split_once(' ') {
                    Some((minimum, median)) => println!("{name:<52} {minimum:>8} µs {median:>8} µs"),
                    None => println!("{name:<52} not possible here: {}", String::from_utf8_lossy(&said.stderr).trim()),
                }
            }
        }

        /// Output without end: what the wrapper and its helpers hold in memory meanwhile.
        fn output(&self, bytes: u64) {
            let start = Instant::now();
            let mut command = with(self.contained(&["--limit", "output=2GiB"]), Path::new("/usr/bin/head"));
            let mut child = command
                .args(["-c", &bytes.to_string(), "/dev/zero"])
                .stdout(Stdio::piped())
                .spawn()
                .expect("it starts");
            let mut output = child.stdout.take().expect("it is piped");
            let (mut read, mut peak, mut looked) = (0_u64, 0_u64, Instant::now());
            let mut piece = vec![0_u8; 1 << 16];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                read += length as u64;
                if looked.elapsed() > Duration::from_millis(10) || peak == 0 {
                    peak = peak.max(memory_of_tree(child.id()));
                    looked = Instant::now();
                }
            }
            child.wait().expect("it is our child");
            println!(
                "{} MiB of output in {:.2} s: the wrapper and everything below it hold at most {} KiB",
                read >> 20,
                start.elapsed().as_secs_f64(),
                peak
            );
        }
    }

    fn with(mut command: Command, program: &Path) -> Command {
        command.arg(program);
        command
    }

    fn with_shell(mut command: Command, text: &str) -> Command {
        command.args(["-c", text]);
        command
    }

    fn works(mut command: Command) -> bool {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|code| code.success())
    }

    fn timed(mut command: Command) -> Duration {
        let start = Instant::now();
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts");
        let took = start.elapsed();
        assert!(status.success(), "it worked before and does not work now");
        took
    }

    /// The largest resident sizes of a process and everything below it, added up, in KiB.
    fn memory_of_tree(root: u32) -> u64 {
        let mut parents = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(entry.path().join("status")) else { continue };
            let field = |name: &str| -> Option<u64> {
                text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
            };
            if let (Some(id), Some(parent), Some(size)) = (field("Pid:"), field("PPid:"), field("VmHWM:")) {
                parents.push((id, parent, size));
            }
        }
        let mut tree = vec![u64::from(root)];
        let mut at = 0;
        while let Some(parent) = tree.get(at).copied() {
            tree.extend(parents.iter().filter(|(_, of, _)| *of == parent).map(|(id, _, _)| *id));
            at += 1;
        }
        parents.iter().filter(|(id, _, _)| tree.contains(id)).map(|(_, _, size)| size).sum()
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
            Self { minimum: at(0), median: at(times.len() / 2) }
        }

        fn print(&self, name: &str, base: Option<&Self>) {
            let compared = base.map_or_else(String::new, |base| {
                let ratio = |own: u128, base: u128| own as f64 / base.max(1) as f64;
                format!(
                    "   {:.2}x (minimum) {:.2}x (median)",
                    ratio(self.minimum, base.minimum),
                    ratio(self.median, base.median)
                )
            });
            println!("{name:<52} {:>8} µs {:>8} µs{compared}", self.minimum, self.median);
        }
    }
}
