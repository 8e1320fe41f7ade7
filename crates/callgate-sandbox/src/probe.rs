//! What this machine can hold, tried out and not guessed.

use callgate_model::fence::{Fence, Protection};

use crate::denied::Denied;
use crate::order::Backend;
use crate::supervisor::{Launch, try_out};
use crate::system;

/// What was found out about one way to contain calls.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The way.
    pub backend: Backend,
    /// What it holds here; or why it cannot be used.
    pub holds: Result<Vec<Protection>, Denied>,
}

/// What this machine can hold.
#[derive(Debug, Clone)]
pub struct Findings {
    /// Each way to contain calls, the best first.
    pub probes: Vec<Probe>,
    /// The version of Landlock; zero if there is none.
    pub landlock: u32,
    /// The kernel.
    pub kernel: String,
    /// What may keep namespaces from being made, and what helps.
    pub advice: Vec<String>,
}

impl Findings {
    /// The best way that works.
    pub fn best(&self) -> Option<&Probe> {
        self.probes.iter().find(|probe| probe.holds.is_ok())
    }
}

/// Tries everything out, as this user, in an empty directory that goes away again.
pub fn probe() -> Findings {
    let probes = Backend::ALL.map(|backend| {
        let held = || Protection::ALL.into_iter().filter(|protection| backend.holds(*protection)).collect();
        Probe { backend, holds: works(backend).map(|()| held()) }
    });
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let namespaces = probes.first().is_some_and(|probe| probe.holds.is_ok());
    Findings {
        probes: probes.to_vec(),
        landlock: system::landlock_version(),
        kernel: release,
        advice: if namespaces { Vec::new() } else { advice() },
    }
}

/// Whether a program can be started this way.
pub fn works(backend: Backend) -> Result<(), Denied> {
    let readable = ["/usr", "/etc", "/nix", "/opt"].map(Into::into).to_vec();
    let fence = Fence { readable, ..Fence::default() };
    let program = ["/usr/bin/true", "/bin/true"].into_iter().find(|path| std::path::Path::new(path).exists());
    let launch = Launch {
        words: vec![program.unwrap_or("/bin/true").into()],
        directory: "/".into(),
        left: false,
        environment: Vec::new(),
        backend: Some(backend),
        ..Launch::default()
    };
    try_out(&fence, &launch)
}

/// What keeps an ordinary user from making namespaces, as far as it can be seen, and what helps.
fn advice() -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let exists = |path: &str| std::path::Path::new(path).exists();
    let surroundings = Surroundings {
        apparmor: read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1",
        namespaces: read("/proc/sys/user/max_user_namespaces") == "0",
        clone: read("/proc/sys/kernel/unprivileged_userns_clone") == "0",
        container: exists("/.dockerenv") || exists("/run/.containerenv"),
        filtered: read("/proc/self/status").lines().any(|line| line.starts_with("Seccomp:") && !line.ends_with('0')),
        wsl1: read("/proc/version").contains("Microsoft"),
        bubblewrap: exists("/usr/bin/bwrap") || exists("/usr/local/bin/bwrap") || exists("/bin/bwrap"),
        release: read("/etc/os-release"),
    };
    surroundings.advice()
}

/// What is seen of a machine that lets nobody make namespaces.
#[derive(Debug, Default)]
struct Surroundings {
    /// AppArmor restricts user namespaces.
    apparmor: bool,
    /// There may be no user namespaces.
    namespaces: bool,
    /// Debian's own switch is off.
    clone: bool,
    /// This is a container.
    container: bool,
    /// A filter of system calls is in force.
    filtered: bool,
    /// This is WSL without a Linux kernel.
    wsl1: bool,
    /// Bubblewrap is installed.
    bubblewrap: bool,
    /// `/etc/os-release`.
    release: String,
}

impl Surroundings {
    fn advice(&self) -> Vec<String> {
        let mut advice: Vec<&str> = Vec::new();
        if self.wsl1 {
            advice.push("WSL 1 has no Linux kernel that could hold anything: run `wsl --set-version DISTRIBUTION 2`");
            return advice.into_iter().map(str::to_owned).collect();
        }
        if self.apparmor {
            advice.push(
                "AppArmor lets only listed programs make namespaces (Ubuntu 23.10 and later): as root, write a profile for callgate: \
                 printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile callgate %s flags=(unconfined) {\\n  userns,\\n}\\n' \
                 \"$(command -v callgate)\" > /etc/apparmor.d/callgate && apparmor_parser -r /etc/apparmor.d/callgate",
            );
        }
        if self.namespaces {
            advice.push(
                "user namespaces are switched off: as root, sysctl -w user.max_user_namespaces=15000, and write the same line to \
                 /etc/sysctl.d/90-namespaces.conf to keep it",
            );
        }
        if self.clone {
            advice.push(
                "Debian's switch for namespaces is off: as root, sysctl -w kernel.unprivileged_userns_clone=1, and write the same \
                 line to /etc/sysctl.d/90-namespaces.conf to keep it",
            );
        }
        if self.container {
            advice.push(
                "containers forbid namespaces and mounting /proc: start this one with --security-opt seccomp=unconfined \
                 --security-opt systempaths=unconfined (Docker), or --security-opt unmask=all (Podman)",
            );
        } else if self.filtered {
            advice.push("a filter of system calls is in force: whoever started this shell may forbid namespaces");
        }
        if !self.bubblewrap {
            let named = |name: &str| {
                let words = self.release.lines().filter_map(|line| line.split_once('='));
                let mut words = words.filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"));
                words.any(|(_, value)| value.trim_matches('"').split(' ').any(|word| word == name))
            };
            advice.push(if named("debian") || named("ubuntu") {
                "bubblewrap is the second way: as root, apt install bubblewrap"
            } else if named("fedora") || named("rhel") {
                "bubblewrap is the second way: as root, dnf install bubblewrap"
            } else {
                "bubblewrap is the second way: install the package `bubblewrap`"
            });
        }
        advice.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(surroundings: &Surroundings) -> String {
        surroundings.advice().join("\n")
    }

    #[test]
    fn advice_fits_the_machine() {
        let release = |text: &str| Surroundings { release: text.to_owned(), ..Surroundings::default() };
        assert!(advice(&release("NAME=\"Debian\"\nID=debian\n")).contains("apt install bubblewrap"));
        assert!(advice(&release("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n")).contains("apt install bubblewrap"));
        assert!(advice(&release("ID=rocky\nID_LIKE=\"rhel centos fedora\"\n")).contains("dnf install bubblewrap"));
        assert!(advice(&release("")).contains("install the package `bubblewrap`"));
        let ubuntu = Surroundings { apparmor: true, bubblewrap: true, ..release("ID=ubuntu\n") };
        assert!(advice(&ubuntu).contains("/etc/apparmor.d/callgate") && !advice(&ubuntu).contains("apt install"));
        let switched_off = Surroundings { namespaces: true, clone: true, bubblewrap: true, ..Surroundings::default() };
        assert!(advice(&switched_off).contains("user.max_user_namespaces=15000"));
        assert!(advice(&switched_off).contains("kernel.unprivileged_userns_clone=1"));
        let container = Surroundings { container: true, filtered: true, bubblewrap: true, ..Surroundings::default() };
        assert!(advice(&container).contains("seccomp=unconfined") && !advice(&container).contains("a filter of"));
        assert!(advice(&Surroundings { wsl1: true, ..Surroundings::default() }).starts_with("WSL 1"));
    }
}
