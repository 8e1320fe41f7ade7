//! `callgate run --contain` as an ordinary user where namespaces are denied: the next backend, or a refusal that names the way out,
//! and never a start that holds less. Every refusal has a control: the same call works where namespaces are allowed.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Installs a filter that denies user namespaces, as containers do, and becomes a program. `new-privileges` leaves set-user-id
/// programs their rights, which needs root.
const FILTER: &str = r#"
import ctypes, os, platform, struct, sys
unshare, clone, clone3, setns = (272, 56, 435, 308) if platform.machine() == "x86_64" else (97, 220, 435, 268)
allow, refuse, missing = 0x7fff0000, 0x50001, 0x50026
step = lambda code, value, yes=0, no=0: struct.pack("HBBI", code, yes, no, value)
by_bit = lambda call: [step(0x15, call, 0, 4), step(0x20, 16), step(0x45, 0x10000000, 0, 1), step(6, refuse), step(6, allow)]
program = [step(0x20, 0), step(0x15, clone3, 0, 1), step(6, missing)] + by_bit(unshare) + by_bit(clone) + [step(6, allow)]
text = ctypes.create_string_buffer(b"".join(program))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
if sys.argv[1] != "new-privileges":
    assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(program), ctypes.addressof(text))), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"#;

/// A home and a project of an ordinary user, and callgate where that user can start it.
struct World {
    directory: tempfile::TempDir,
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").map(|data| std::os::unix::fs::MetadataExt::uid(&data)).expect("proc") == 0
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let world = World { directory };
        std::fs::set_permissions(world.root(), PermissionsExt::from_mode(0o755)).expect("permissions");
        std::fs::copy(env!("CARGO_BIN_EXE_callgate"), world.callgate()).expect("a copy");
        std::fs::write(world.root().join("filter.py"), FILTER).expect("a file");
        for path in [world.home(), world.project()] {
            std::fs::create_dir(&path).expect("a directory");
            if is_root() {
                std::os::unix::fs::chown(&path, Some(65534), Some(65534)).expect("a new owner");
            }
        }
        // A repository is the project, whatever lies above it.
        let made = world.run(&["/usr/bin/git", "init", "--quiet"].map(str::to_owned));
        assert_eq!(made.code, 0, "{made:?}");
        world
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it is there")
    }

    fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    fn callgate(&self) -> PathBuf {
        self.root().join("callgate")
    }

    fn filter(&self, mode: &str) -> Vec<String> {
        ["/usr/bin/python3", text(&self.root().join("filter.py")), mode].map(str::to_owned).to_vec()
    }

    /// Runs words in the project, as an ordinary user.
    fn run(&self, words: &[String]) -> Told {
        let user = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"].map(str::to_owned);
        let words = if is_root() { [user.as_slice(), words].concat() } else { words.to_vec() };
        self.run_as_this_user(&words)
    }

    fn run_as_this_user(&self, words: &[String]) -> Told {
        let (program, words) = words.split_first().expect("a program");
        let mut command = Command::new(program);
        command.args(words).current_dir(self.project()).env_clear();
        command.env("HOME", self.home()).env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/bash");
        told(&command.output().expect("it starts"))
    }

    /// The words of a contained call that leaves a file behind if it runs.
    fn contained(&self, options: &[&str]) -> Vec<String> {
        let callgate = self.callgate();
        let words = [text(&callgate), "run", "--contain", "--json", "--policy", "standard"];
        let words = words.iter().chain(options).chain(&["--", "/usr/bin/touch", "ran"]);
        words.map(|word| (*word).to_owned()).collect()
    }

    /// Whether the call ran. The next one starts afresh.
    fn ran(&self) -> bool {
        std::fs::remove_file(self.project().join("ran")).is_ok()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[derive(Debug)]
struct Told {
    code: i32,
    output: String,
    errors: String,
}

fn told(output: &Output) -> Told {
    Told {
        code: output.status.code().unwrap_or(-1),
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Nothing was started, and the reason names every way that was tried and the way out.
fn assert_refused(world: &World, told: &Told) {
    assert_eq!(told.code, 125, "{told:?}");
    assert!(!world.ran(), "{told:?}");
    for expected in ["sandbox_denied", "namespaces cannot be used", "bubblewrap cannot be used", "landlock cannot hold"]
    {
        assert!(told.errors.contains(expected), "{expected}: {told:?}");
    }
    assert!(told.errors.contains("callgate doctor"), "{told:?}");
}

#[test]
fn where_namespaces_are_allowed_they_are_used() {
    let world = World::new();
    let told = world.run(&world.contained(&[]));
    assert_eq!(told.code, 0, "{told:?}");
    assert!(world.ran() && told.errors.contains(r#""backend":"namespaces""#), "{told:?}");
}

#[test]
fn a_filter_that_denies_namespaces_to_everybody_leaves_a_refusal() {
    let world = World::new();
    let told = world.run(&[world.filter("no-new-privileges"), world.contained(&[])].concat());
    assert_refused(&world, &told);
    for backend in ["namespaces", "bubblewrap", "landlock"] {
        let told = world.run(&[world.filter("no-new-privileges"), world.contained(&["--backend", backend])].concat());
        assert_eq!(told.code, 125, "{told:?}");
        assert!(!world.ran() && told.errors.contains("sandbox_denied"), "{told:?}");
    }
}

#[test]
fn doctor_shows_all_three_and_what_helps() {
    let world = World::new();
    let callgate = text(&world.callgate()).to_owned();
    let told = world.run(&[world.filter("no-new-privileges"), vec![callgate.clone(), "doctor".to_owned()]].concat());
    assert_eq!(told.code, 1, "{told:?}");
    for expected in
        ["namespaces  the sandbox could not", "bubblewrap  the sandbox could not", "landlock    works: cannot hold"]
    {
        assert!(told.output.contains(expected), "{expected}: {told:?}");
    }
    assert!(told.output.contains("asked about, or refused"), "{told:?}");
    let told = world.run(&[callgate, "doctor".to_owned()]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.output.contains("bubblewrap  works: holds everything"), "{told:?}");
}

#[test]
fn user_namespaces_that_are_switched_off_leave_a_refusal() {
    let world = World::new();
    let outer = |then: &str| {
        let script = format!("{then} && exec \"$@\"");
        ["/usr/bin/unshare", "--user", "--map-root-user", "/bin/sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
    };
    // Control: in an outer namespace without that switch the same call runs.
    let told = world.run(&[outer("true"), world.contained(&[])].concat());
    assert_eq!(told.code, 0, "{told:?}");
    assert!(world.ran());
    let told = world.run(&[outer("echo 0 > /proc/sys/user/max_user_namespaces"), world.contained(&[])].concat());
    assert_refused(&world, &told);
}

/// As on a machine where only bubblewrap may make namespaces. Its copy has root's rights, in a mount namespace of the test.
#[test]
fn where_only_bubblewrap_may_it_is_used_and_holds() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let script = "mount -t tmpfs -o mode=0755 tmpfs /mnt && cp /usr/bin/bwrap /mnt/bwrap && chmod 4755 /mnt/bwrap && \
                  mount --bind /mnt/bwrap /usr/bin/bwrap && exec \"$@\"";
    let machine = ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, "sh"].map(str::to_owned).to_vec();
    let user =
        ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"].map(str::to_owned).to_vec();
    let denied = [machine, world.filter("new-privileges"), user].concat();
    let told = world.run_as_this_user(&[denied.clone(), world.contained(&[])].concat());
    assert_eq!(told.code, 0, "{told:?}");
    assert!(world.ran() && told.errors.contains(r#""backend":"bubblewrap""#), "{told:?}");
    let told = world.run_as_this_user(&[denied, world.contained(&["--backend", "namespaces"])].concat());
    assert_eq!(told.code, 125, "{told:?}");
    assert!(!world.ran(), "{told:?}");
}

/// The words that start others on a machine with another bubblewrap: a script that says its version and does something before
/// it becomes the real one.
fn with_newer_bubblewrap(first: &str) -> Vec<String> {
    let script = format!(
        "mount -t tmpfs -o mode=0755 tmpfs /mnt && cp /usr/bin/bwrap /mnt/real && cat > /mnt/bwrap <<'END' && chmod 755 /mnt/bwrap && \
         mount --bind /mnt/bwrap /usr/bin/bwrap && exec \"$@\"\n\
         #!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.12.0 && exit\n{first}\nexec /mnt/real \"$@\"\nEND\n"
    );
    let user = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", &script, "sh"]
        .iter()
        .chain(&user)
        .map(|word| (*word).to_owned())
        .collect()
}

#[test]
fn a_bubblewrap_that_follows_no_link_hides_secrets_in_the_project() {
    if !is_root() {
        return;
    }
    let world = World::new();
    std::fs::create_dir(world.project().join("keys")).expect("a directory");
    for name in [".env", "keys/id_rsa"] {
        std::fs::write(world.project().join(name), "secret text\n").expect("a file");
    }
    std::fs::write(world.project().join("script.sh"), "cat .env keys/id_rsa && echo x > .env; touch ran")
        .expect("a file");
    let callgate = world.callgate();
    let words = [text(&callgate), "run", "--contain", "--backend", "bubblewrap", "--", "/bin/sh", "script.sh"];
    let words = words.map(str::to_owned);
    let told = world.run_as_this_user(&[with_newer_bubblewrap(""), words.to_vec()].concat());
    assert!(world.ran() && told.output.is_empty(), "{told:?}");
    assert_eq!(std::fs::read_to_string(world.project().join(".env")).expect("it is still there"), "secret text\n");
}

#[test]
fn a_root_that_is_swapped_while_bubblewrap_starts_is_noticed() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let other = world.root().join("other");
    std::fs::create_dir(&other).expect("a directory");
    std::fs::set_permissions(&other, PermissionsExt::from_mode(0o777)).expect("permissions");
    std::fs::set_permissions(world.root(), PermissionsExt::from_mode(0o777)).expect("permissions");
    let (project, away) = (world.project(), world.root().join("away"));
    let swap = format!("mv {0} {1} 2> /dev/null && ln -s {2} {0}", text(&project), text(&away), text(&other));
    let told =
        world.run_as_this_user(&[with_newer_bubblewrap(&swap), world.contained(&["--backend", "bubblewrap"])].concat());
    assert_eq!(told.code, 125, "{told:?}");
    assert!(told.errors.contains("it was replaced while the sandbox was set up"), "{told:?}");
    assert!(!other.join("ran").exists() && !away.join("ran").exists());
}

/// Runs a script in bubblewrap.
fn in_bubblewrap(world: &World, options: &[&str], script: &str) -> Told {
    let callgate = world.callgate();
    std::fs::write(world.project().join("script.sh"), script).expect("a file");
    let words = [text(&callgate), "run", "--contain", "--json", "--backend", "bubblewrap"];
    let words = words.iter().chain(options).chain(&["--", "/bin/sh", "script.sh"]);
    world.run(&words.map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

#[test]
fn bubblewrap_holds_what_namespaces_hold() {
    let world = World::new();
    let outside = world.root().join("outside");
    std::fs::create_dir(&outside).expect("a directory");
    std::fs::set_permissions(&outside, PermissionsExt::from_mode(0o777)).expect("permissions");
    std::fs::write(outside.join("private"), "private text").expect("a file");
    let script = format!(
        "outside={}\n\
         mkdir -p fresh/.git/hooks; echo x > fresh/.git/hooks/pre-commit; echo x > .envrc\n\
         cat $outside/private; echo x > $outside/new; echo x > /usr/new\n\
         grep -E '^Cap(Eff|Bnd|Prm)' /proc/self/status; ls /proc | grep -c '^[0-9]'\n\
         head -c 1 /proc/1/environ; cat /proc/1/maps\n\
         echo kept > kept; mkdir -p a/b && mv a/b a/c && rm -r a; echo shm > /dev/shm/x && cat /dev/shm/x\n\
         exit 7",
        text(&outside)
    );
    let told = in_bubblewrap(&world, &["--policy", "standard"], &script);
    assert_eq!(told.code, 7, "{told:?}");
    for path in ["fresh/.git/hooks/pre-commit", ".envrc"] {
        assert!(!world.project().join(path).exists(), "{path}: {told:?}");
    }
    assert!(!outside.join("new").exists() && !told.output.contains("private text"), "{told:?}");
    assert!(!told.output.contains("/.callgate-stage"), "the first process is closed: {told:?}");
    let capabilities: Vec<&str> = told.output.lines().filter_map(|line| line.strip_prefix("Cap")).collect();
    assert_eq!(capabilities.len(), 3, "{told:?}");
    assert!(capabilities.iter().all(|line| line.ends_with("0000000000000000")), "{told:?}");
    assert_eq!(std::fs::read_to_string(world.project().join("kept")).expect("kept"), "kept\n");
    assert!(told.output.contains("shm\n") && !world.project().join("a").exists(), "{told:?}");
    assert!(told.errors.contains(".envrc"), "{told:?}");
    // Control: without a sandbox the script does all of it.
    let told = world.run(&["/bin/sh", "script.sh"].map(str::to_owned));
    assert!(told.code == 7 && told.output.contains("private text"), "{told:?}");
    assert!(world.project().join(".envrc").exists() && outside.join("new").exists());
}

#[test]
fn bubblewrap_ends_everything_in_time() {
    let world = World::new();
    let script = "trap '' TERM\n(setsid sh -c 'trap \"\" TERM HUP; sleep 2; touch later' &)\nsleep 30\n";
    let told = in_bubblewrap(&world, &["--policy", "standard", "--limit", "time=500ms"], script);
    assert_eq!(told.code, 124, "{told:?}");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(!world.project().join("later").exists());
}

/// An old bubblewrap follows links where it makes mount points, so it covers nothing that lies next to what the call may write.
#[test]
fn secrets_in_the_project_are_hidden_or_the_call_is_refused() {
    let world = World::new();
    std::fs::write(world.project().join(".env"), "TOKEN=secret text\n").expect("a file");
    std::fs::set_permissions(world.project().join(".env"), PermissionsExt::from_mode(0o644)).expect("permissions");
    let told = in_bubblewrap(&world, &["--policy", "standard"], "cat .env; touch ran");
    assert!(!told.output.contains("secret text"), "{told:?}");
    let version = told_version();
    if version < (0, 12) {
        assert_eq!(told.code, 125, "{told:?}");
        assert!(!world.ran() && told.errors.contains("CVE-2026-87766") && told.errors.contains(".env"), "{told:?}");
    } else {
        assert!(world.ran(), "{told:?}");
    }
}

fn told_version() -> (u32, u32) {
    let output = Command::new("/usr/bin/bwrap").arg("--version").output().expect("bubblewrap is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers =
        text.trim().trim_start_matches("bubblewrap ").split('.').map(|number| number.parse().expect("a number"));
    (numbers.next().expect("a number"), numbers.next().expect("a number"))
}

#[test]
fn a_thousand_roots_fit() {
    let world = World::new();
    let many = world.root().join("many");
    let mut policy = format!("extends: standard\nboundary:\n  roots:\n    - {}\n", text(&world.project()));
    for number in 0..1000 {
        let directory = many.join(format!("r{number}"));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o777)).expect("permissions");
        policy.push_str(&format!("    - {}\n", text(&directory)));
    }
    let path = world.root().join("many.yaml");
    std::fs::write(&path, policy).expect("a file");
    let script = format!("touch {0}/r0/x {0}/r999/x ran", text(&many));
    let told = in_bubblewrap(&world, &["--policy", text(&path)], &script);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(world.ran() && many.join("r0/x").exists() && many.join("r999/x").exists(), "{told:?}");
}
