//! Whether everything that a silent call was seen doing is among the effects that callgate predicted.
//!
//! The rules by which something that no effect names is still no miss:
//!
//! - *devices*: writing to `/dev/null`, a terminal or another device that everybody may write to, and to files of the own process in `/proc`.
//! - *temporary files*: a name that was not there before, that the call does not spell out, and that the program removes again unless its time is up, in a
//!   directory for temporary files or beside a file that it was predicted to write.
//! - *own files*: what a program keeps for itself and the call does not spell out: anything below `~/.cache`, a file or directory of the home that is
//!   named after the program (`~/.config/NAME`, `~/.NAME_history`; so in `/tmp`), the system's state below `/run`, `/var/cache` and `/var/lib`, and the
//!   compiled form of installed Python modules.
//! - *directories*: a name that was not there before and is not made from a word of the call, in a directory that the call was predicted to write.
//! - *unchanged*: a file that was opened for writing and has the same contents and time as before.
//! - *own credentials*: a program that is predicted to talk to its service, or that shows its own configuration, reads the file with its credentials.
//! - *attributes*: `lsattr` and `filefrag` open a file to ask for its attributes; they see nothing of its contents.
//! - *helpers*: a program of the system that another one starts. One that is named by the call's words, or lies where the call's author can
//!   write, is not a helper.
//! - *name services*: the sockets by which the C library asks for users, hosts and the time zone, and the system's log.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use callgate::assess::Assessment;
use callgate_model::description::PlacedEffect;
use callgate_model::effect::{Action, Target, TreeNames};
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
const SERVICES: &[&str] = &[
    "/run/nscd/",
    "/var/run/nscd/",
    "/run/systemd/userdb/",
    "/dev/log",
    "/run/systemd/journal/",
    "/var/run/log",
    "/var/run/syslog",
    "/run/uuidd/",
];

/// Fronts of the names of programs that use the credentials in these files for the service they talk to.
const CREDENTIALS: &[(&str, &str)] = &[
    ("docker", "home/.docker/config.json"),
    ("docker", "home/.kube/config"),
    ("docker-compose", "home/.netrc"),
    ("kube", "home/.kube/config"),
    ("gh", "home/.config/gh/hosts.yml"),
    ("", "home/.netrc"),
];

/// Fronts of names of files that programs keep under another name than their own.
const OWN: &[(&str, &str)] = &[
    ("gpg", "gnupg"),
    ("gpg-connect-agent", "gnupg"),
    ("top", "procps"),
    ("byobu", "tmux"),
    ("buildah", "containers"),
    ("iverilog", "ivrl"),
    ("pipx", "bin"),
    ("neofetch", "rpmdb"),
    ("inxi", "rpmdb"),
    ("svn", "subversion"),
    ("pacmd", "pulse"),
    ("pactl", "pulse"),
    ("dlv", "config"),
];

/// Programs that open files only to ask for their attributes.
const ATTRIBUTES: &[&str] = &["lsattr", "filefrag"];

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
            Seen::Read(path) => {
                !self.is_secret(path)
                    || ATTRIBUTES.contains(&self.program())
                    || self.is_credential(path)
                    || self.predicted(&[Action::Read, Action::Run], path)
            }
            Seen::Write(path) => {
                is_device(path)
                    || self.is_unchanged(path)
                    || self.is_own(path)
                    || self.predicted(&[Action::Write, Action::Delete], path)
                    || self.is_temporary(path)
            }
            Seen::Delete(path) => {
                self.is_own(path) || self.predicted(&[Action::Delete, Action::Write], path) || self.is_temporary(path)
            }
            Seen::Run(path) => {
                let ours = path.starts_with(&self.world.place)
                    || path.starts_with("/tmp")
                    || path == &Path::new(SYSTEM).join("canary-program");
                !ours || self.predicted(&[Action::Run], path)
            }
            Seen::Connect(address) => {
                SERVICES.iter().any(|service| address.starts_with(service))
                    || !address.contains(':') && self.is_own(&Path::new("/tmp").join(address))
                    || self.effects.iter().any(|placed| matches!(placed.effect.action, Action::Connect | Action::Send))
            }
            Seen::Privilege(_) => self.effects.iter().any(|placed| placed.effect.action == Action::Privilege),
        }
    }

    fn is_secret(&self, path: &Path) -> bool {
        path.strip_prefix(&self.world.place).is_ok_and(|inner| SECRETS.iter().any(|secret| inner == Path::new(secret)))
    }

    fn predicted(&self, actions: &[Action], path: &Path) -> bool {
        let new = actions.contains(&Action::Write)
            && !(self.is_spelled(path) || self.is_derived(path) && !path.starts_with("/tmp"))
            && path.symlink_metadata().is_err();
        let inside = |place: &Place| {
            new && path.parent().is_some_and(|parent| parent == place.named || parent == place.resolved)
        };
        let places = self.effects.iter().filter(|placed| actions.contains(&placed.effect.action));
        places.filter_map(|placed| Some((placed, placed.place.as_ref()?))).any(|(placed, place)| {
            // The names come from elsewhere: sources, members, the program itself.
            let given = matches!(&placed.effect.target, Target::Path(target) if !matches!(target.below, TreeNames::Existing(_)));
            covers(place, path) || inside(place) || given && path.starts_with(&place.resolved)
        })
    }

    /// The program that the call begins with.
    fn program(&self) -> &str {
        self.call.split(' ').next().unwrap_or_default()
    }

    fn is_credential(&self, path: &Path) -> bool {
        let connects =
            || self.effects.iter().any(|placed| matches!(placed.effect.action, Action::Connect | Action::Send));
        CREDENTIALS.iter().any(|(program, file)| {
            self.program().starts_with(program)
                && path == self.world.place.join(file)
                && (!program.is_empty() || connects())
        })
    }

    fn is_own(&self, path: &Path) -> bool {
        if self.is_spelled(path) {
            return false;
        }
        let program = self.program().to_lowercase();
        let named = |name: &str| {
            let name = name.trim_start_matches('.').to_lowercase();
            let front = name.split(['-', '_', '.']).next().unwrap_or(&name);
            let listed = OWN.iter().any(|(owner, own)| *owner == program && name.starts_with(own));
            name.starts_with(&program) || program.starts_with(front) || listed
        };
        let shared = ["/tmp", "/dev/shm"].into_iter().find_map(|folder| path.strip_prefix(folder).ok());
        if let Some(first) = shared.and_then(|inner| inner.components().next()) {
            return named(&first.as_os_str().to_string_lossy());
        }
        // Some programs ask the list of users where the home is.
        let home =
            [self.world.home(), PathBuf::from("/home/ada")].into_iter().find_map(|home| path.strip_prefix(home).ok());
        if let Some(inner) = home {
            let front = [".config", ".local/share", ".local/state", ".local", ""]
                .into_iter()
                .find(|front| inner.starts_with(front))
                .unwrap_or_default();
            let first = inner.strip_prefix(front).ok().and_then(|rest| rest.components().next());
            let Some(first) = first else { return true };
            return inner.starts_with(".cache") || named(&first.as_os_str().to_string_lossy());
        }
        let state = ["/run", "/var/run", "/var/cache", "/var/lib", "/var/lock", "/etc/.pwd.lock"]
            .iter()
            .any(|folder| path.starts_with(folder));
        state || path.starts_with("/usr") && path.components().any(|part| part.as_os_str() == "__pycache__")
    }

    /// Whether a file was opened for writing and not written: it has the same contents, and the same time of the last change.
    fn is_unchanged(&self, path: &Path) -> bool {
        let Ok(inner) = path.strip_prefix(&self.world.place) else { return false };
        let state = |path: &Path| Some((std::fs::read(path).ok()?, path.metadata().ok()?.modified().ok()?));
        let before = state(path);
        before.is_some() && before == state(&self.observed.copy.join(inner))
    }

    /// Whether the call has the name among its words.
    fn is_spelled(&self, path: &Path) -> bool {
        self.pieces().any(|piece| path.file_name().is_some_and(|name| name == piece))
    }

    /// Whether the name is one of the call's words, or seems to be made from one.
    fn is_derived(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.is_spelled(path) || self.pieces().any(|piece| piece.len() > 2 && name.contains(piece))
    }

    /// The parts of the call's words that may be names.
    fn pieces(&self) -> impl Iterator<Item = &str> {
        self.call
            .split(' ')
            .skip(1)
            .flat_map(|word| word.split(['=', '/', ':', ',', '\'']))
            .filter(|piece| !piece.is_empty())
    }

    /// A name that was not there before and is not there afterwards.
    fn is_temporary(&self, path: &Path) -> bool {
        if self.is_spelled(path) || path.symlink_metadata().is_ok() {
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
            && (self.observed.killed || removed.contains(&path.to_owned()))
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
        "/dev/mapper",
        "/dev/mapper/control",
    ];
    own || process
        || path.starts_with("/dev/pts")
        || path.starts_with("/dev/fd")
        || devices.iter().any(|device| path == Path::new(device))
}

fn covers(place: &Place, path: &Path) -> bool {
    [&place.named, &place.resolved].into_iter().any(|fixed| match &place.rest {
        Rest::Nothing => path == fixed || place.tree && path.starts_with(fixed) || is_made_from(fixed, path),
        Rest::Anything => path.starts_with(fixed),
        Rest::Glob(glob) => path.strip_prefix(fixed).is_ok_and(|rest| {
            let parts = glob.split('/').count();
            let front: PathBuf = rest.components().take(parts).collect();
            matches_glob(glob, &front.to_string_lossy()) && (place.tree || rest == front)
        }),
    })
}

/// Whether a name was made from a template: `tmp.Zx81` from `tmp.XXXX`.
fn is_made_from(template: &Path, path: &Path) -> bool {
    let (template, path) = (template.to_string_lossy(), path.to_string_lossy());
    let end = template.rfind('X').map_or(0, |last| last + 1);
    let start = template.get(..end).map_or(0, |front| front.trim_end_matches('X').len());
    let [front, rest] = [template.get(..start), template.get(end..)].map(Option::unwrap_or_default);
    end >= start + 3 && template.len() == path.len() && path.starts_with(front) && path.ends_with(rest)
}
