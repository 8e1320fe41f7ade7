//! Contained calls that live on: they are seen, reached and ended, by their own session and project only.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic like tests"
)]

mod support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callgate::fence::Protection;
use serde_json::Value;
use support::{Told, World, told};

/// Serves one page. It listens after a moment, as real servers do.
const SERVER: &str = "import http.server, sys, time
time.sleep(0.2)
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'the page of the server')
print('it serves', flush=True)
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Page).serve_forever()
";

/// A world with a server in it. All calls that live on end with it.
struct Served(World);

impl Drop for Served {
    fn drop(&mut self) {
        self.run(&["stop", "--all", "--any-session"]);
    }
}

impl Served {
    fn new() -> Self {
        let world = World::new();
        std::fs::write(world.project().join("serve.py"), SERVER).expect("a file");
        Served(world)
    }

    fn run(&self, words: &[&str]) -> Told {
        told(self.0.command(words).output().expect("the command starts"))
    }

    /// Starts a command in the background and returns its id.
    fn start(&self, options: &[&str], command: &[&str]) -> String {
        let words = [&["run", "--background", "--contain", "--json"], options, &["--"], command].concat();
        let told = self.run(&words);
        assert_eq!(told.code, 0, "{told:?}");
        let started: Value = serde_json::from_str(&told.stdout).expect("JSON");
        started["id"].as_str().expect("an id").to_owned()
    }

    fn serve(&self, port: u16) -> String {
        let id = self.start(&[], &["python3", "serve.py", &port.to_string()]);
        until(|| self.ports(&id).contains(&(port, "published".to_owned())));
        id
    }

    fn list(&self) -> Vec<Value> {
        serde_json::from_str(&self.run(&["ps", "--json"]).stdout).expect("JSON")
    }

    fn shown(&self, id: &str) -> Value {
        self.list().into_iter().find(|call| call["id"] == id).unwrap_or_default()
    }

    fn ports(&self, id: &str) -> Vec<(u16, String)> {
        let call = self.shown(id);
        let ports = call["ports"].as_array().cloned().unwrap_or_default();
        let port = |port: &Value| u16::try_from(port["port"].as_u64().expect("a number")).expect("a port");
        ports.iter().map(|entry| (port(entry), entry["state"].as_str().expect("text").to_owned())).collect()
    }

    /// A call of the project, contained, that fetches a page.
    fn fetch_inside(&self, directory: &std::path::Path, port: u16) -> String {
        let text = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3");
        let mut command = self.0.command(&["run", "--contain", "--workspace", ".", "--", "/bin/bash", "-c", &text]);
        let told = told(command.current_dir(directory).output().expect("it starts"));
        told.stdout
    }
}

/// A port that nobody listens on now.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port").local_addr().expect("an address").port()
}

fn fetch(port: u16) -> String {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return String::new() };
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it listens");
    let mut text = String::new();
    // a connection that is refused after it was accepted breaks off
    let _ = stream.read_to_string(&mut text);
    text
}

#[track_caller]
fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "it took too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process with this in its command line runs.
fn runs(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(mark))
}

fn sandbox() -> bool {
    let works = callgate_sandbox::choose(&Protection::ALL, None).is_ok();
    if !works {
        println!("there is no sandbox here, so nothing is tried");
    }
    works
}

#[test]
fn a_server_lives_on_and_is_reached_by_its_project_only() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let port = free_port();
    let id = served.serve(port);
    assert!(fetch(port).contains("the page of the server"));
    assert!(served.fetch_inside(&served.0.project(), port).contains("the page of the server"));

    // another project, and other ports of the host
    let other = served.0.home().join("other");
    std::fs::create_dir(&other).expect("a directory");
    assert_eq!(served.fetch_inside(&other, port), "");
    let host = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    host.set_nonblocking(true).expect("it does");
    assert_eq!(served.fetch_inside(&served.0.project(), host.local_addr().expect("an address").port()), "");
    assert!(host.accept().is_err(), "nobody came");

    assert!(served.run(&["ps", "--output", &id]).stdout.contains("it serves"));
    let shown = served.run(&["ps"]);
    assert!(shown.stdout.contains(&format!("http://localhost:{port}")), "{shown:?}");
    assert_eq!(served.run(&["stop", &id]).code, 0);
    assert_eq!(fetch(port), "");
    let ended = served.shown(&id);
    assert_eq!((ended["state"].as_str(), ended["running"].as_bool()), (Some("stopped"), Some(false)), "{ended}");
    assert!(!served.0.home().join(".local/state/callgate/live").exists(), "nothing is left");
    served.0.log_is_whole();
}

#[test]
fn a_port_in_use_is_not_taken_and_one_that_is_not_served_any_more_is_given_back() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let id = served.start(&[], &["python3", "serve.py", &port.to_string()]);
    until(|| served.ports(&id) == [(port, "in_use".to_owned())]);
    assert!(served.run(&["ps"]).stdout.contains("another program listens on it"));
    drop(taken);
    until(|| served.ports(&id) == [(port, "published".to_owned())]);
    served.run(&["stop", &id]);

    let port = free_port();
    let text = format!("timeout 2 python3 serve.py {port}; sleep 100");
    let id = served.start(&[], &["/bin/bash", "-c", &text]);
    until(|| fetch(port).contains("the page"));
    until(|| served.ports(&id).is_empty());
    drop(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("it is free again"));
}

#[test]
fn ports_of_the_system_and_of_other_addresses_are_not_published() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let port = free_port();
    let text = format!(
        "import socket, time
for address in [('127.0.0.1', 1023), ('127.0.0.1', {port})]:
    try:
        s = socket.socket(); s.bind(address); s.listen(); globals()['s%d' % address[1]] = s
    except OSError: pass
time.sleep(100)"
    );
    let id = served.start(&[], &["python3", "-c", &text]);
    until(|| !served.ports(&id).is_empty());
    assert_eq!(served.ports(&id), [(port, "published".to_owned())]);
}

/// Starts a command in the background from a process that stands for an agent: its commands have sessions of their own.
fn agent(served: &Served, mark: &str) -> Child {
    let command = served.0.command(&[]);
    let mut agent = Command::new("/bin/bash");
    let text = "setsid \"$1\" run --background --contain -- /bin/bash -c \"trap '' TERM; sleep 1000; : $2\"; echo done; read line";
    agent.args(["-c", text, "agent"]).arg(command.get_program()).arg(mark);
    agent.current_dir(served.0.project()).env_clear().envs(served.0.environment()).process_group(0);
    agent.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash")
}

#[test]
fn what_lives_on_ends_with_its_session() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let mut agent = agent(&served, "mark-of-the-session");
    until(|| served.list().iter().any(|call| call["state"] == "running"));
    let id = served.list()[0]["id"].as_str().expect("an id").to_owned();
    // this test is another session
    let refused = served.run(&["stop", &id]);
    assert!(refused.code != 0 && refused.stderr.contains("--any-session"), "{refused:?}");
    assert_eq!(served.run(&["stop", "--all"]).code, 0);
    assert_eq!(served.shown(&id)["state"], "running");
    assert!(runs("mark-of-the-session"));
    agent.kill().expect("it runs");
    agent.wait().expect("it ends");
    until(|| served.shown(&id)["state"] == "session ended");
    assert!(!runs("mark-of-the-session"));
}

#[test]
fn a_killed_supervisor_leaves_nothing() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let id = served.start(&[], &["/bin/bash", "-c", "setsid sleep 1000 & : mark-of-the-killed; wait"]);
    assert!(runs("mark-of-the-killed"));
    let process = rustix::process::Pid::from_raw(id.parse().expect("a number")).expect("a process");
    rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("it runs");
    until(|| !runs("mark-of-the-killed"));
    until(|| served.list().is_empty());
    assert!(!served.0.home().join(".local/state/callgate/live").exists());
}

#[test]
fn a_forged_record_ends_nobody() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let id = served.start(&[], &["sleep", "1000"]);
    let mut stranger = Command::new("sleep").arg("1000").spawn().expect("it starts");
    let state = served.0.home().join(".local/state/callgate");
    let forged = stranger.id().to_string();
    let text = std::fs::read_to_string(state.join("live").join(&id)).expect("a record").replace(&id, &forged);
    std::fs::write(state.join("live").join(&forged), text).expect("a file");
    let told = served.run(&["stop", "--any-session", &forged]);
    assert!(told.code != 0 && told.stderr.contains("callgate ps"), "{told:?}");
    assert!(stranger.try_wait().expect("it is ours").is_none());
    assert!(!state.join("live").join(&forged).exists(), "it is removed");
    for id in ["../live", "", "1/../2"] {
        assert_ne!(served.run(&["stop", "--any-session", id]).code, 0);
        assert_ne!(served.run(&["ps", "--output", id]).code, 0);
    }
    stranger.kill().expect("it runs");
    stranger.wait().expect("it ends");
}

#[test]
fn limits_hold_and_output_is_bounded() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let text = "yes | head -c 5000000; echo the end; sleep 1000";
    let id = served.start(&["--limit", "time=3s"], &["/bin/bash", "-c", text]);
    until(|| served.shown(&id)["state"] == "time");
    assert_eq!(served.shown(&id)["exit"], 124);
    let output = served.run(&["ps", "--output", &id]).stdout;
    assert!(output.ends_with("the end\n") && output.len() < 3 << 20, "{}", output.len());
}

#[test]
fn what_lives_on_cannot_change_where_paths_lead() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let project = served.0.project();
    std::os::unix::fs::symlink("README.md", project.join("link")).expect("a link");
    std::fs::create_dir_all(project.join("with/links")).expect("a directory");
    std::os::unix::fs::symlink("..", project.join("with/links/up")).expect("a link");
    let text = "ln -s /etc/passwd made; mv link moved; mv with other; ln link second; mkdir new; mv new newer; \
                python3 -c 'import os; os.rename(\"link\", \"again\")'; rm README.md; touch finished; sleep 1000";
    served.start(&[], &["/bin/bash", "-c", text]);
    until(|| project.join("finished").exists());
    let there = |name: &str| project.join(name).symlink_metadata().is_ok();
    assert!(there("link") && there("with/links/up") && there("newer") && !there("README.md"));
    for name in ["made", "moved", "other", "second", "again"] {
        assert!(!there(name), "{name}");
    }
}

#[test]
fn what_cannot_start_says_so_at_once() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let told = served.run(&["run", "--background", "--contain", "--", "no-such-program"]);
    assert_eq!(told.code, 127, "{told:?}");
    assert!(told.stderr.contains("command not found"), "{told:?}");
    assert_eq!(served.list(), Vec::<Value>::new());
    let told = served.run(&["run", "--background", "--policy", "strict", "--", "rm", "-rf", "/"]);
    assert_eq!(told.code, 125, "{told:?}");
    assert!(!served.0.home().join(".local/state/callgate/live").exists());
}

/// A contained call in the foreground, which ends with this.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn busy(served: &Served, text: &str) -> Busy {
    let mut command = served.0.command(&["run", "--contain", "--", "/bin/bash", "-c", text]);
    let child = Busy(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts"));
    until(|| served.list().iter().any(|call| call["state"] == "foreground"));
    child
}

/// The decisions of `check` as exit codes, with a sandbox and without one.
fn decisions(served: &Served, call: &[&str]) -> (i32, i32) {
    let check = |sandbox| served.run(&[&["check", "--sandbox", sandbox], call].concat()).code;
    (check("found"), check("none"))
}

const ALLOW: (i32, i32) = (0, 0);
/// Contained, or asked about where nothing can contain it.
const CONTAIN: (i32, i32) = (12, 10);
const ASK: (i32, i32) = (10, 10);

#[test]
fn while_a_contained_call_lives_what_was_seen_proves_nothing() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let project = served.0.project();
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(words).current_dir(&project);
        assert!(command.env("HOME", served.0.home()).output().expect("git").status.success());
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let read = ["--tool", "Read", "--input", r#"{"file_path": "README.md"}"#];
    let write = ["--tool", "Write", "--input", r#"{"file_path": "README.md", "content": "x"}"#];
    let commands = ["git commit -m x", "git status", "cat README.md", "rm README.md"];
    let all = |expected: (i32, i32), tools: (i32, i32)| {
        for command in commands {
            assert_eq!(decisions(&served, &[command]), expected, "{command}");
        }
        assert_eq!((decisions(&served, &read), decisions(&served, &write)), (tools, tools));
        for command in ["echo hello", "callgate ps", "callgate stop --all"] {
            assert_eq!(decisions(&served, &[command]), ALLOW, "{command} looks at nothing that can change");
        }
    };
    all(ALLOW, ALLOW);

    let mut foreground = busy(&served, "read line");
    all(CONTAIN, ASK);
    let why = served.run(&["check", "git commit -m x"]);
    assert!(why.stdout.contains("a contained call is running here"), "{why:?}");
    let hook =
        support::feed(served.0.hook("claude", &[]), &support::payload("claude", "git commit -m x", "1", &project));
    let contained = hook.stdout.contains("run --permit");
    assert!(contained || support::answered("claude", b"", &hook) != support::Answered::Allowed, "{hook:?}");
    drop(foreground.0.stdin.take());
    foreground.0.wait().expect("it ends");
    all(ALLOW, ALLOW);

    // One in the background cannot change where paths lead.
    let id = served.start(&[], &["sleep", "1000"]);
    all(CONTAIN, ALLOW);
    served.run(&["stop", &id]);
    all(ALLOW, ALLOW);

    // what was left by a killed supervisor does not count
    let foreground = busy(&served, "read line; : mark-of-the-busy");
    let process = rustix::process::Pid::from_child(&foreground.0);
    rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("it runs");
    until(|| !runs("mark-of-the-busy"));
    all(ALLOW, ALLOW);

    // and what runs in another project does not count here
    let other = served.0.home().join("other");
    std::fs::create_dir(&other).expect("a directory");
    let mut elsewhere =
        served.0.command(&["run", "--contain", "--background", "--workspace", ".", "--", "sleep", "1000"]);
    assert!(elsewhere.current_dir(&other).output().expect("it starts").status.success());
    all(ALLOW, ALLOW);
    let there = other.join("file").display().to_string();
    let decision = decisions(&served, &[&format!("cat {there}")]);
    assert_ne!(decision.0, 0, "what lies there may change");
}

#[test]
fn a_link_that_is_exchanged_meanwhile_leads_nowhere() {
    if !sandbox() {
        return;
    }
    let served = Served::new();
    let (secret, notes) = (served.0.home().join("secret"), served.0.project().join("notes"));
    std::fs::write(&secret, "the secret\n").expect("a file");
    std::fs::write(&notes, "notes\n").expect("a file");
    let text = format!(
        "while :; do ln -sfn {} link; mv -T link notes; echo notes > file; mv file notes; done",
        secret.display()
    );
    // in a script, which nobody reads beforehand
    std::fs::write(served.0.project().join("swap.sh"), text).expect("a file");
    let _foreground = busy(&served, ". ./swap.sh");
    let mut seen = false;
    until(|| {
        seen |= std::fs::read_to_string(&notes).is_ok_and(|text| text.contains("secret"));
        seen
    });
    for _ in 0..40 {
        let told = served.run(&["run", "--", "cat", "notes"]);
        assert!(!told.stdout.contains("secret"), "{told:?}");
    }
}
