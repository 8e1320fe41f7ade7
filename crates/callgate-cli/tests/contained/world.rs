//! The world of one case: a workspace, a home, a directory beside them with canaries, and a bystander process, all of one user.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::case::{Case, Workspace};

/// Who runs a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    pub id: u32,
}

impl User {
    pub const ROOT: Self = Self { id: 0 };

    /// An ordinary user. Everyone gets a number that nothing else on the machine has, so that every process of that number belongs
    /// to the case. Without root it is the user who runs the tests.
    pub fn ordinary() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !is_root() {
            return Self { id: rustix::process::getuid().as_raw() };
        }
        // tests in other processes count on their own
        let start = 700_000 + std::process::id() % 1_000 * 1_000;
        Self { id: start + NEXT.fetch_add(1, Ordering::Relaxed) % 1_000 }
    }

    pub fn is_root(self) -> bool {
        self.id == 0
    }

    /// A command of this user with an empty environment but for the usual.
    pub fn command(self, program: impl AsRef<std::ffi::OsStr>, home: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear();
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm");
        command.env("USER", "somebody").env("SHELL", "/bin/bash").stdin(Stdio::null());
        if is_root() {
            command.uid(self.id).gid(self.id);
        }
        command
    }
}

pub fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// The directory of this test process. It is not below a temporary directory, because a sandbox gives its command its own ones,
/// and every user can reach it.
pub struct Base {
    pub path: PathBuf,
}

impl Base {
    pub fn get() -> &'static Self {
        static BASE: OnceLock<Base> = OnceLock::new();
        BASE.get_or_init(|| {
            sweep();
            let parent = if is_root() && Path::new("/srv").is_dir() { "/srv" } else { "/var/tmp" };
            let path = PathBuf::from(parent).join(format!("callgate-contained-{}", std::process::id()));
            fs::create_dir_all(path.join("programs")).expect("a directory");
            let base = Self { path };
            if std::env::var_os("CALLGATE_KEEP").is_none() {
                remove_at_the_end(&base.path);
            }
            open_to_all(&base.path);
            open_to_all(&base.program(""));
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contained/programs");
            for name in ["attack", "bystander", "terminal"] {
                let done = Command::new("gcc")
                    .args(["-O1", "-w", "-o"])
                    .arg(base.program(name))
                    .arg(sources.join(format!("{name}.c")))
                    .args(["-lpthread", "-lutil"])
                    .status();
                assert!(done.is_ok_and(|code| code.success()), "gcc cannot compile {name}.c");
            }
            let binary = std::env::var_os("CALLGATE_TEST_BINARY")
                .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_callgate")), PathBuf::from);
            fs::copy(binary, base.program("callgate")).expect("the callgate command can be copied");
            open_to_all(&base.program("callgate"));
            let template = base.path.join("template");
            let made = Command::new("/bin/bash")
                .arg("-ec")
                .arg(TEMPLATE)
                .arg("template")
                .arg(&template)
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("HOME", template.join("home"))
                .output()
                .expect("bash");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            base
        })
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.path.join("programs").join(name)
    }
}

const TEMPLATE: &str = r#"
umask 022
mkdir -p "$1"/home "$1"/repository/src "$1"/repository/sub "$1"/plain/src "$1"/outside/deep
cd "$1"
printf '[user]\n\tname = Some Body\n\temail = somebody@example.org\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n' > home/.gitconfig
printf '# nothing\n' > home/.bashrc
printf 'a canary that is long enough to be shortened\n' | tee outside/canary outside/deep/canary > outside/second
printf '#!/bin/sh\nexit 0\n' > outside/tool; chmod 755 outside/tool
for place in repository plain; do
  printf 'read me\n' > $place/README.md
  printf 'int main(void) { return 0; }\n' > $place/src/main.c
done
cd repository
printf 'inner\n' > sub/file
git init -q .
git add . && git commit -qm first
"#;

/// Template, world, kind of workspace, attack program, directory of the workspace.
const SET_UP: &str = r#"
umask 022
cp -R "$1/outside" "$1/home" "$2/"
chmod 600 "$2/outside/second"
cp -R "$1/$3" "$2/workspace"
mkdir "$2/service"
cp "$4" "$2/$5/attack"
printf '#!/bin/sh\ntouch %s/outside/ran\n' "$2" > "$2/$5/payload"
chmod 755 "$2/$5/payload"
"#;

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be opened to all");
}

/// Removes the directory once this process has ended, however it ends: the cleaner waits for the end of its input.
fn remove_at_the_end(path: &Path) {
    let mut cleaner = Command::new("/bin/sh");
    cleaner.args(["-c", "cat > /dev/null; rm -rf \"$1\"", "cleaner"]).arg(path).stdin(Stdio::piped()).process_group(0);
    std::mem::forget(cleaner.spawn().expect("sh"));
}

/// Removes what earlier test processes that were killed have left.
fn sweep() {
    for parent in ["/srv", "/var/tmp"] {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(owner) = name.strip_prefix("callgate-contained-") else { continue };
            if !Path::new("/proc").join(owner).exists() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// The directories and the bystander of one case.
pub struct World {
    pub user: User,
    pub path: PathBuf,
    pub workspace: PathBuf,
    pub home: PathBuf,
    pub outside: PathBuf,
    /// Appears in the command line or environment of every process of the run.
    pub mark: String,
    pub secret: String,
    bystander: Child,
    names: BTreeMap<String, String>,
}

impl World {
    pub fn new(case: &Case, user: User) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base = Base::get();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base.path.join(format!("case-{number}"));
        fs::create_dir(&path).expect("a directory");
        if is_root() {
            std::os::unix::fs::chown(&path, Some(user.id), Some(user.id)).expect("root may give away");
        }
        let random = random();
        let secret = format!("secret-{}", random.get(..20).expect("it is long enough"));
        let mark = format!("mark{}", random.get(20..32).expect("it is long enough"));
        let home = path.join("home");
        let template = base.path.join("template");
        let from = if case.workspace == Workspace::Plain { "plain" } else { "repository" };
        let made = user
            .command("/bin/bash", &home)
            .args(["-ec", SET_UP, "set-up"])
            .arg(&template)
            .arg(&path)
            .arg(from)
            .arg(base.program("attack"))
            .arg(if case.workspace == Workspace::Home { "home" } else { "workspace" })
            .output()
            .expect("bash");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        if case.class == "work" {
            for name in ["attack", "payload"] {
                fs::remove_file(path.join("workspace").join(name)).expect("it was just made");
            }
        }
        if case.with_rust {
            add_rust(&home);
        }
        let bystander = user
            .command(base.program("bystander"), &home)
            .arg(path.join("service"))
            .arg(format!("b{}", random.get(20..32).expect("it is long enough")))
            .env("BYSTANDER_SECRET", &secret)
            .stdout(Stdio::null())
            .spawn()
            .expect("the bystander starts");
        let info = path.join("service/info");
        wait_until(Duration::from_secs(10), || info.exists());
        let mut names: BTreeMap<String, String> = fs::read_to_string(&info)
            .expect("the bystander is ready")
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let workspace = if case.workspace == Workspace::Home { home.clone() } else { path.join("workspace") };
        let outside = path.join("outside");
        for (name, value) in
            [("workspace", &workspace), ("home", &home), ("outside", &outside), ("service", &path.join("service"))]
        {
            names.insert(name.to_owned(), value.display().to_string());
        }
        names.insert("space".to_owned(), " ".to_owned());
        names.insert("mark".to_owned(), mark.clone());
        names.insert("secret".to_owned(), secret.clone());
        names.insert("tools".to_owned(), base.program("").display().to_string().trim_end_matches('/').to_owned());
        Self { user, path, workspace, home, outside, mark, secret, bystander, names }
    }

    /// The text with every `@name@` replaced.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, value) in &self.names {
            filled = filled.replace(&format!("@{name}@"), value);
        }
        filled
    }

    /// Runs shell text outside, as the user of the case.
    pub fn outside_step(&self, text: &str) -> bool {
        if text.is_empty() {
            return true;
        }
        let done = self
            .user
            .command("/bin/bash", &self.home)
            .arg("-c")
            .arg(self.fill(text))
            .current_dir(&self.workspace)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("bash");
        done.success()
    }

    pub fn events_file(&self) -> PathBuf {
        self.path.join("service/events")
    }

    /// Waits until the bystander has looked at everything after this moment.
    pub fn let_bystander_look(&self) {
        let beat = || {
            fs::read_to_string(self.path.join("service/beat"))
                .ok()
                .and_then(|text| text.parse::<u64>().ok())
                .unwrap_or(0)
        };
        let now = beat();
        wait_until(Duration::from_secs(1), || beat() > now + 2);
    }

    /// What reached the bystander.
    pub fn events(&mut self) -> Vec<String> {
        let mut events: Vec<String> =
            fs::read_to_string(self.events_file()).unwrap_or_default().lines().map(str::to_owned).collect();
        events.dedup();
        if self.bystander.try_wait().expect("it is our child").is_some() {
            events.push("the bystander has ended".to_owned());
        } else if stopped(self.bystander.id()) {
            events.push("the bystander is stopped".to_owned());
        }
        events
    }

    /// What an attack must not change: everything outside the workspace, with the times at which the kernel last saw a change.
    pub fn watched(&self, workspace_too: bool) -> Tree {
        let mut tree = Tree::new();
        list(&self.outside, &mut tree, Detail::Everything);
        if self.workspace != self.home {
            list(&self.home, &mut tree, Detail::Contents);
        }
        if workspace_too {
            list(&self.workspace, &mut tree, Detail::Everything);
        }
        for shared in ["/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/run"] {
            for entry in fs::read_dir(shared).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().contains(&self.mark) {
                    tree.insert(entry.path(), "left in a shared directory".to_owned());
                }
            }
        }
        tree
    }

    /// Processes of the run: those of the user's number, or those that carry the mark.
    pub fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("there is /proc").flatten() {
            let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            if id == self.bystander.id() || id == std::process::id() {
                continue;
            }
            let own = if self.user.is_root() || !is_root() {
                let marked = |file: &str| {
                    fs::read(entry.path().join(file))
                        .is_ok_and(|text| String::from_utf8_lossy(&text).contains(&self.mark))
                };
                marked("cmdline")
                    || marked("environ")
                    || fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(&self.path))
            } else {
                fs::metadata(entry.path().join("stat")).is_ok_and(|file| file.uid() == self.user.id)
                    || fs::read_to_string(entry.path().join("status"))
                        .is_ok_and(|text| text.contains(&format!("\nUid:\t{}\t", self.user.id)))
            };
            if own && !zombie(id) {
                found.push(id);
            }
        }
        found
    }

    pub fn end_processes(&self) {
        for id in self.processes() {
            kill(id, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.end_processes();
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
        for shared in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
            for entry in fs::read_dir(shared).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().contains(&self.mark) {
                    let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path()));
                }
            }
        }
        if std::env::var_os("CALLGATE_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A Rust toolchain below the home, where rustup puts it. Hard links make that quick.
fn add_rust(home: &Path) {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().expect("the tests were built by rustc");
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    let to = home.join(".rustup/toolchains/own");
    let script = r#"
mkdir -p "$2/lib" "$3/.cargo/bin" && for part in bin lib; do cp -al "$1/$part" "$2/" 2> /dev/null || cp -a "$1/$part" "$2/"; done
for name in cargo rustc rustdoc; do ln -s ../../.rustup/toolchains/own/bin/$name "$3/.cargo/bin/$name"; done
chown -h --reference="$3" "$3/.cargo" "$3/.cargo/bin" "$3/.rustup" "$3/.rustup/toolchains" "$2"
"#;
    let done = Command::new("/bin/bash").args(["-c", script, "rust"]).arg(sysroot).arg(to).arg(home).status();
    assert!(done.is_ok_and(|code| code.success()), "the toolchain cannot be linked");
}

pub type Tree = BTreeMap<PathBuf, String>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// With the time of the last change of each inode, so that modes, attributes and new hard links show.
    Everything,
    /// Without times of directories: a command may keep its own state in the home directory.
    Contents,
}

/// Where callgate and the other tools of the comparison keep their own state, and shared toolchains.
const OWN_STATE: &[&str] = &[
    ".config/callgate",
    ".local/share/callgate",
    ".local/state/callgate",
    ".cache/callgate",
    ".codex",
    ".rustup/toolchains",
];

/// The directories above it may be new; what else lies in them may not.
const ABOVE_OWN_STATE: &[&str] = &[".config", ".local", ".local/share", ".local/state", ".cache"];

pub fn list(root: &Path, tree: &mut Tree, detail: Detail) {
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let below = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
        if detail == Detail::Contents && OWN_STATE.iter().any(|own| below == Path::new(own)) {
            continue;
        }
        let mut line = format!("{:o} {} {}", found.mode(), found.uid(), found.ino());
        if found.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            if detail == Detail::Everything {
                line += &format!(" {}.{}", found.ctime(), found.ctime_nsec());
            }
        } else {
            line += &format!(" {} {} {}.{}", found.size(), found.nlink(), found.ctime(), found.ctime_nsec());
        }
        if detail == Detail::Everything || !ABOVE_OWN_STATE.iter().any(|above| below == Path::new(above)) {
            tree.insert(path, line);
        }
    }
}

/// What differs, in words.
pub fn differences(before: &Tree, after: &Tree) -> Vec<String> {
    let mut said = Vec::new();
    for (path, line) in after {
        match before.get(path) {
            None => said.push(format!("{} is new", path.display())),
            Some(old) if old != line => said.push(format!("{} has changed", path.display())),
            Some(_) => {}
        }
    }
    said.extend(
        before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("{} has gone", path.display())),
    );
    said
}

pub fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(4));
    }
    done()
}

pub fn kill(id: u32, signal: rustix::process::Signal) {
    if let Some(id) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(id, signal);
    }
}

fn state(id: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

fn stopped(id: u32) -> bool {
    matches!(state(id), Some('T' | 't'))
}

pub fn zombie(id: u32) -> bool {
    matches!(state(id), None | Some('Z' | 'X'))
}

fn random() -> String {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).expect("the kernel has random numbers");
    hex::encode(bytes)
}
