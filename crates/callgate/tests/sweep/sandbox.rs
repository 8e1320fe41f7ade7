//! Runs a call in a world that is thrown away: namespaces without network, made by bubblewrap as an ordinary user, under strace.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::trace::{self, Seen};

/// How many seconds a call may take; what it has done by then is judged. Everything in the namespace dies with bubblewrap.
const LIMIT: &str = "2";

/// The most of a trace that is read.
const MOST_TRACE: u64 = 16_000_000;

/// The user that runs calls where the tests run as root.
const NOBODY: u32 = 65534;

/// Programs that are not Debian's: `canary-program`, which no table knows, and those of the control.
pub const SYSTEM: &str = "/opt/system";

/// A world as it is before a run, at the place where the run will see it.
pub struct World {
    /// Holds `home`, `project` and `outside`.
    pub place: PathBuf,
    /// Nothing in it is there to be run.
    is_plain: bool,
}

/// One worker's copy of a world.
pub struct Sandbox<'w> {
    world: &'w World,
    /// Where the programs come from.
    root: &'w Path,
    /// The directory with the programs that are not Debian's.
    system: &'w Path,
    copy: PathBuf,
    traces: PathBuf,
    used: bool,
}

/// What a run has shown.
pub struct Observed {
    /// What was seen, in order.
    pub seen: Vec<Seen>,
    /// Where the world of the run is, for a look at what is left of it.
    pub copy: PathBuf,
    /// Its time was up, so it had no chance to clean up.
    pub killed: bool,
}

impl World {
    /// Makes a world with `world.sh`.
    pub fn new(place: PathBuf, kind: &str) -> World {
        std::fs::create_dir_all(&place).expect("a directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sweep/world.sh");
        let mut make = Command::new("sh");
        make.arg(script).arg(kind).current_dir(&place).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &place);
        let output = make.output().expect("sh starts");
        assert!(output.status.success(), "world.sh: {}", String::from_utf8_lossy(&output.stderr));
        World { place, is_plain: kind == "plain" }
    }

    /// The project of the world.
    pub fn project(&self) -> PathBuf {
        self.place.join("project")
    }

    /// The home of the world.
    pub fn home(&self) -> PathBuf {
        self.place.join("home")
    }
}

impl<'w> Sandbox<'w> {
    pub fn new(world: &'w World, root: &'w Path, system: &'w Path, scratch: &Path) -> Self {
        let traces = scratch.join("trace");
        std::fs::create_dir_all(&traces).expect("a directory");
        give(&traces);
        Sandbox { world, root, system, copy: scratch.join("world"), traces, used: true }
    }

    /// Runs a call in a world that no other run has changed.
    pub fn run(&mut self, call: &str) -> Observed {
        if self.used {
            let _ = std::fs::remove_dir_all(&self.copy);
            copy(&self.world.place, &self.copy);
        }
        let trace = self.traces.join("trace");
        let _ = std::fs::remove_file(&trace);
        // Whether it succeeds does not matter; what it did is in the trace.
        let status = self.command(call).status().expect("bubblewrap starts");
        let mut text = Vec::new();
        let file = std::fs::File::open(&trace).expect("strace writes a trace: are user namespaces allowed here?");
        file.take(MOST_TRACE).read_to_end(&mut text).expect("a trace");
        let seen = trace::read(&String::from_utf8_lossy(&text), &self.world.project());
        assert!(!seen.is_empty(), "nothing was observed for {call}: is strace allowed to trace here?");
        let changed =
            |seen: &Seen| matches!(seen, Seen::Write(path) | Seen::Delete(path) if path.starts_with(&self.world.place));
        self.used = seen.iter().any(changed);
        Observed { seen, copy: self.copy.clone(), killed: status.code().is_none_or(|code| code == 137) }
    }

    fn command(&self, call: &str) -> Command {
        let mut command = unprivileged("timeout");
        command.args(["--signal=KILL", LIMIT, "bwrap"]);
        command.args([
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--clearenv",
            "--hostname",
            "localhost",
            "--uid",
            "1000",
            "--gid",
            "1000",
        ]);
        for folder in ["usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "var/lib", "var/cache"] {
            let (source, target) = (self.root.join(folder), Path::new("/").join(folder));
            match std::fs::read_link(&source) {
                Ok(link) => command.arg("--symlink").arg(link).arg(target),
                Err(_) if source.exists() => command.arg("--ro-bind").arg(source).arg(target),
                Err(_) => continue,
            };
        }
        command.args([
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--tmpfs",
            "/var/tmp",
            "--tmpfs",
            "/run",
            "--dir",
            "/home/ada",
        ]);
        command.arg("--ro-bind").arg(self.system).arg(SYSTEM);
        command.arg("--bind").arg(&self.copy).arg(&self.world.place).arg("--bind").arg(&self.traces).arg("/trace");
        let path = format!("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:{SYSTEM}");
        for (name, value) in [("PATH", path.as_str()), ("LC_ALL", "C.UTF-8"), ("USER", "ada"), ("TERM", "xterm")] {
            command.args(["--setenv", name, value]);
        }
        command.arg("--setenv").arg("HOME").arg(self.world.home()).arg("--chdir").arg(self.world.project());
        // git reads a file again if it is another one than the index says, as every file of a copy is.
        if self.world.is_plain {
            command.args(["sh", "-c", "git update-index -q --refresh; exec \"$@\"", "sh"]);
        }
        command.args(["prlimit", "--fsize=20000000", "--core=0"]);
        command.args([
            "strace",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-yy",
            "-s",
            "1000",
            "-e",
            trace::CALLS,
            "-e",
            "signal=none",
            "-o",
            "/trace/trace",
        ]);
        command.args(["bash", "--norc", "--noprofile", "-c", call]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// A command of an ordinary user: what is swept never runs as root.
fn unprivileged(program: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={NOBODY}")).arg(format!("--regid={NOBODY}"));
    command.args(["--clear-groups", "--no-new-privs", "--", program]);
    command
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Hands a file to the user who runs the calls.
fn give(path: &Path) {
    if is_root() {
        lchown(path, Some(NOBODY), Some(NOBODY)).expect("the file can be handed over");
    }
}

fn copy(from: &Path, to: &Path) {
    let kind = std::fs::symlink_metadata(from).expect("a file").file_type();
    if kind.is_symlink() {
        symlink(std::fs::read_link(from).expect("a link"), to).expect("a link");
    } else if kind.is_dir() {
        std::fs::create_dir(to).expect("a directory");
        for entry in std::fs::read_dir(from).expect("a directory") {
            let entry = entry.expect("an entry");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::copy(from, to).expect("a file");
        let modified = std::fs::metadata(from).and_then(|metadata| metadata.modified()).expect("a time");
        std::fs::File::options().write(true).open(to).and_then(|file| file.set_modified(modified)).expect("a time");
    }
    give(to);
}

/// Writes a program into the directory of programs that are not Debian's.
pub fn add_program(system: &Path, name: &str, script: &str) {
    std::fs::create_dir_all(system).expect("a directory");
    let path = system.join(name);
    std::fs::write(&path, script).expect("a program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
}
