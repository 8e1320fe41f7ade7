//! Runs one case in its world, without the sandbox or in one, and looks at what happened outside.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::world::{Base, User, World, differences, kill, wait_until};

/// What stands in front of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapper {
    /// The positive control.
    None,
    /// `true` in place of the attack: shows that the checks see nothing where nothing is done.
    Nothing,
    /// `callgate run --contain` with the backend that it chooses itself.
    Callgate,
    /// The same for a call whose readable part runs git, which may change repositories as far as git itself must.
    CallgateWithGit,
    /// `callgate run --contain --backend NAME`.
    Backend(&'static str),
    /// bubblewrap as people write it by hand.
    Bubblewrap,
    /// Another tool: the program that this variable names gets the command as its arguments.
    Other(&'static str),
}

impl Wrapper {
    pub fn words(self, world: &World, case: &Case) -> Vec<String> {
        let callgate = Base::get().program("callgate").display().to_string();
        let workspace = world.workspace.display().to_string();
        let mut words: Vec<String> = match self {
            Self::None | Self::Nothing => Vec::new(),
            Self::Callgate | Self::CallgateWithGit => vec![callgate, "run".into(), "--contain".into()],
            Self::Backend(name) => vec![callgate, "run".into(), "--contain".into(), "--backend".into(), name.into()],
            Self::Bubblewrap => [
                "bwrap",
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                "--proc",
                "/proc",
                "--tmpfs",
                "/tmp",
                "--bind",
                &workspace,
                &workspace,
                "--unshare-all",
                "--die-with-parent",
                "--new-session",
            ]
            .map(str::to_owned)
            .to_vec(),
            Self::Other(variable) => vec![std::env::var(variable).unwrap_or_default()],
        };
        match self {
            Self::Callgate | Self::CallgateWithGit | Self::Backend(_) => {
                words.extend(case.options.iter().map(|word| world.fill(word)));
                words.push("--".into());
            }
            _ => {}
        }
        words
    }
}

/// The outcome of one run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What reached the outside; empty if everything was held.
    pub harm: Vec<String>,
    /// The command was not started at all.
    pub refused: bool,
    /// The command began.
    pub began: bool,
    pub code: Option<i32>,
    pub took: Duration,
    /// The check outside succeeded.
    pub checked: bool,
    pub output: String,
}

/// Printed by every attack before it does anything.
const BEGAN: &str = "the attack begins";

pub fn run(case: &Case, user: User, wrapper: Wrapper) -> Outcome {
    let start = Instant::now();
    let mut world = World::new(case, user);
    world.outside_step(&case.before);
    std::thread::sleep(Duration::from_millis(12)); // the kernel's coarse clock must move on before anything is changed
    let before = world.watched(case.watch_workspace);
    let known = world.processes();
    let attack = if wrapper == Wrapper::None && !case.control.is_empty() { &case.control } else { &case.attack };
    let text = if case.class == "work" { world.fill(attack) } else { format!("echo {BEGAN}\n{}", world.fill(attack)) };
    let mut words = wrapper.words(&world, case);
    if wrapper == Wrapper::Nothing {
        words.push("/bin/true".to_owned());
    } else if case.direct.is_empty() {
        // in a form that cannot be read beforehand: the sandbox is tested here, not the analysis
        let bytes: String = text.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        let git = if wrapper == Wrapper::CallgateWithGit { "git --version > /dev/null; " } else { "" };
        let hidden = format!("{git}eval \"$(printf %b '{bytes}')\"");
        words.extend(["/bin/bash".to_owned(), "-c".to_owned(), if case.class == "work" { text } else { hidden }]);
    } else {
        words.extend(case.direct.split_whitespace().map(|word| world.fill(word)));
    }
    if case.in_terminal {
        let helper = Base::get().program("terminal").display().to_string();
        words.splice(0..0, [helper, world.events_file().display().to_string(), "31".to_owned(), "97".to_owned()]);
    }
    let place = world.path.join("output");
    let output = File::create(&place).expect("a file");
    let launch = format!("{}\nexec \"$@\"", world.fill(&case.launch));
    let mut command = if wrapper == Wrapper::None && user.is_root() {
        // what root mounts or renames in a control stays in namespaces that end with it
        let mut command = user.command("unshare", &world.home);
        command.args(["--mount", "--uts", "--propagation", "private", "--", "/bin/bash"]);
        command
    } else {
        user.command("/bin/bash", &world.home)
    };
    command.arg("-c").arg(launch).arg("launch").args(&words).env("SUITE_MARK", &world.mark);
    command
        .current_dir(&world.workspace)
        .stdout(output.try_clone().expect("a descriptor"))
        .stderr(output)
        .process_group(0);
    if case.with_rust {
        command.env("PATH", format!("{}/.cargo/bin:/usr/local/bin:/usr/bin:/bin", world.home.display()));
    }
    let mut child = command.spawn().expect("bash starts");
    let mut harm = Vec::new();
    if let Some(signal) = &case.signal {
        let started = world.workspace.join("started");
        wait_until(Duration::from_secs(8), || started.exists() || child.try_wait().is_ok_and(|ended| ended.is_some()));
        std::thread::sleep(Duration::from_millis(30));
        kill(child.id(), signal_named(signal));
    }
    // ordinary work may take its time on a loaded machine
    let limit = Duration::from_secs(if case.class == "work" { 240 } else { 25 });
    let status = wait(&mut child, limit);
    if status.is_none() {
        harm.push(format!("it did not end within {} seconds", limit.as_secs()));
        let _ = child.kill();
        let _ = child.wait();
    }
    let left = |world: &World| world.processes().into_iter().any(|id| !known.contains(&id));
    let grace = if wrapper == Wrapper::None { Duration::from_millis(60) } else { Duration::from_millis(1_500) };
    if !wait_until(grace, || !left(&world)) {
        harm.push("a process is still alive".to_owned());
    }
    if case.watch_workspace {
        let _ = std::fs::remove_file(world.workspace.join("started"));
    }
    let checked = world.outside_step(&case.check);
    world.outside_step(&case.after);
    let after = world.watched(case.watch_workspace);
    harm.extend(differences(&before, &after));
    if !case.harm.is_empty() && world.outside_step(&case.harm) {
        harm.push("the check outside succeeded".to_owned());
    }
    world.let_bystander_look();
    harm.extend(world.events());
    let output = String::from_utf8_lossy(&std::fs::read(&place).unwrap_or_default()).into_owned();
    if output.contains(&world.secret) {
        harm.push("the secret is in the output".to_owned());
    }
    let code = status.and_then(|status| status.code().or_else(|| status.signal().map(|number| 128 + number)));
    let began = output.contains(BEGAN) || !case.direct.is_empty() || case.launch.contains("exec >");
    Outcome {
        harm,
        refused: !began && code.is_some_and(|code| code != 0),
        began,
        code,
        took: start.elapsed(),
        checked,
        output,
    }
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

fn signal_named(name: &str) -> rustix::process::Signal {
    use rustix::process::Signal;
    match name {
        "KILL" => Signal::KILL,
        "TERM" => Signal::TERM,
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        other => panic!("unknown signal {other}"),
    }
}
