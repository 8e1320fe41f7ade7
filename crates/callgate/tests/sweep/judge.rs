//! Whether everything that a silent call was seen doing is among the effects that callgate predicted.
//!
//! The rules by which something that no effect names is still no miss:
//!
//! - *devices*: writing to `/dev/null`, a terminal or another device that everybody may write to, and to files of the own process in `/proc`.
//! - *temporary files*: a name that was not there before, that the call does not spell out, and that the program removes again, in a
//!   directory for temporary files or beside a file that it was predicted to write.
//! - *caches*: what a program keeps below `~/.cache`, which it can make again, and its own history of what was done with it.
//! - *helpers*: a program of the system that another one starts. One that is named by the call's words, or lies where the call's author can
//!   write, is not a helper.
//! - *name services*: the sockets by which the C library asks for users, hosts and the time zone, and the system's log.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use callgate::assess::Assessment;
use callgate_model::description::PlacedEffect;
use callgate_model::effect::Action;
use callgate_model::place::{Place, Rest};
use callgate_shell::programs::matches_glob;

use super::sandbox::{Observed, SYSTEM, World};
use super::trace::Seen;

/// Files of the world whose contents nobody may see without being asked.
const SECRETS: &[&str] = &[
    "project/.env",
    "project/src/.env.production",
    "project/dir/id_rsa",
    "home/.ssh/id_ed25519",
    "home/.aws/credentials",
    "home/.config/gh/hosts.yml",
    "home/.docker/config.json",
    "home/.kube/config",
    "home/.netrc",
    "home/.git-credentials",
    "home/.pypirc",
    "home/.npmrc",
];

/// Sockets by which the C library and the system are asked, and not another machine or a service that acts.
const SERVICES: &[&str] =
    &["/run/nscd/", "/var/run/nscd/", "/run/systemd/userdb/", "/dev/log", "/run/systemd/journal/"];

/// What was seen and not predicted.
pub fn misses(call: &str, observed: &Observed, assessment: &Assessment, world: &World) -> Vec<String> {
    let effects: Vec<&PlacedEffect> = assessment.description().effects().collect();
    let run = Run { call, observed, effects, world };
    let seen: BTreeSet<&Seen> = observed.seen.iter().collect();
    seen.into_iter().filter(|seen| !run.explains(seen)).map(|seen| format!("{seen:?}")).collect()
}

struct Run<'r> {
    call: &'r str,
    observed: &'r Observed,
    effects: Vec<&'r PlacedEffect>,
    world: &'r World,
}

impl Run<'_> {
    fn explains(&self, seen: &Seen) -> bool {
        match seen {
            Seen::Read(path) => !self.is_secret(path) || self.predicted(&[Action::Read, Action::Run], path),
            Seen::Write(path) => {
                is_device(path)
                    || self.is_cache(path)
                    || self.predicted(&[Action::Write, Action::Delete], path)
                    || self.is_temporary(path)
            }
            Seen::Delete(path) => {
                self.is_cache(path) || self.predicted(&[Action::Delete, Action::Write], path) || self.is_temporary(path)
            }
            Seen::Run(path) => {
                let ours = path.starts_with(&self.world.place) || path.starts_with("/tmp") || path.starts_with(SYSTEM);
                !ours || self.named_program(path) || self.predicted(&[Action::Run], path)
            }
            Seen::Connect(address) => {
                SERVICES.iter().any(|service| address.starts_with(service))
                    || self.effects.iter().any(|placed| matches!(placed.effect.action, Action::Connect | Action::Send))
            }
            Seen::Privilege(_) => self.effects.iter().any(|placed| placed.effect.action == Action::Privilege),
        }
    }

    /// The control's programs are what the call begins with.
    fn named_program(&self, path: &Path) -> bool {
        path.starts_with(SYSTEM) && path.file_name().is_some_and(|name| self.call.split(' ').next() == name.to_str())
    }

    fn is_secret(&self, path: &Path) -> bool {
        path.strip_prefix(&self.world.place).is_ok_and(|inner| SECRETS.iter().any(|secret| inner == Path::new(secret)))
    }

    fn predicted(&self, actions: &[Action], path: &Path) -> bool {
        let places = self.effects.iter().filter(|placed| actions.contains(&placed.effect.action));
        places.filter_map(|placed| placed.place.as_ref()).any(|place| covers(place, path))
    }

    fn is_cache(&self, path: &Path) -> bool {
        path.starts_with(self.world.home().join(".cache"))
    }

    /// A name that was not there before and is not there afterwards.
    fn is_temporary(&self, path: &Path) -> bool {
        let spelled = path.file_name().is_some_and(|name| self.call.contains(&*name.to_string_lossy()));
        if spelled || path.symlink_metadata().is_ok() {
            return false;
        }
        if let Ok(inner) = path.strip_prefix(&self.world.place) {
            let parents = || path.parent().into_iter().flat_map(Path::ancestors);
            let beside = |place: &Place| {
                place.named.parent() == path.parent()
                    || parents().any(|parent| parent == place.named || parent == place.resolved)
            };
            let writes =
                self.effects.iter().filter(|placed| matches!(placed.effect.action, Action::Write | Action::Delete));
            return self.observed.copy.join(inner).symlink_metadata().is_err()
                && writes.filter_map(|placed| placed.place.as_ref()).any(beside);
        }
        let removed: BTreeSet<&PathBuf> = self
            .observed
            .seen
            .iter()
            .filter_map(|seen| if let Seen::Delete(path) = seen { Some(path) } else { None })
            .collect();
        ["/tmp", "/var/tmp", "/dev/shm", "/run"].iter().any(|folder| path.starts_with(folder))
            && (removed.contains(&path.to_owned()) || path.to_string_lossy().contains("(deleted)"))
    }
}

fn is_device(path: &Path) -> bool {
    let own = ["/proc/self", "/proc/thread-self"].iter().any(|front| path.starts_with(front));
    let number = path
        .strip_prefix("/proc")
        .ok()
        .and_then(|rest| rest.components().next())
        .and_then(|first| first.as_os_str().to_str());
    let process = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let devices = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/tty",
        "/dev/ptmx",
        "/dev/random",
        "/dev/urandom",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/console",
    ];
    own || process
        || path.starts_with("/dev/pts")
        || path.starts_with("/dev/fd")
        || devices.iter().any(|device| path == Path::new(device))
}

fn covers(place: &Place, path: &Path) -> bool {
    [&place.named, &place.resolved].into_iter().any(|fixed| match &place.rest {
        Rest::Nothing => path == fixed || place.tree && path.starts_with(fixed),
        Rest::Anything => path.starts_with(fixed),
        Rest::Glob(glob) => path.strip_prefix(fixed).is_ok_and(|rest| {
            let parts = glob.split('/').count();
            let front: PathBuf = rest.components().take(parts).collect();
            matches_glob(glob, &front.to_string_lossy()) && (place.tree || rest == front)
        }),
    })
}
