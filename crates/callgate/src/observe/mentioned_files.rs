//! Looks whether words that a program's table takes for text name files.
//!
//! Nobody has compared these tables with their programs. A word that is the name of a file that rules protect, or that configures
//! the program, is a doubt: the program may read, write or load it.

use std::path::Path;

use callgate_model::description::{Description, LoadMatters, Loads};
use callgate_model::effect::{Action, Coverage, Effect};
use callgate_model::lexical::fold;

use super::trees::Restricts;
use crate::path::boundary::ResolvedBoundary;
use crate::path::file_system::{FileSystem, PathEntry};
use crate::path::resolve::resolve;

/// So many names are looked for in one word.
const MOST_NAMES: usize = 32;

/// What stands between names inside of a word: `format:file`, `key=file`, `@file`, `call('file')`.
const SEPARATORS: &[char] = &['=', ':', ',', '@', ';', '\'', '"', '`', '(', ')', '[', ']', '{', '}', '<', '>', '|'];

/// Turns names of files in words that are only text into doubts.
pub(super) fn examine(
    description: &mut Description,
    boundary: &ResolvedBoundary,
    restricts: Restricts<'_>,
    file_system: &dyn FileSystem,
) {
    let is_named = |loads: &Loads| matches!(loads.matters, LoadMatters::Named { .. });
    if !description.parts.iter().any(|part| part.loads.iter().any(is_named)) {
        return;
    }
    let look = Look { boundary, file_system, restricts };
    for part in &mut description.parts {
        let (named, loads) = std::mem::take(&mut part.loads).into_iter().partition::<Vec<_>, _>(is_named);
        part.loads = loads;
        // Elsewhere are other files.
        let doubt = named.iter().filter(|_| part.elsewhere.is_none()).find_map(|named| look.doubt(named));
        if let Some(why) = doubt {
            description.coverage = Coverage::Partial;
            part.effects.push(Effect { because: "its words".to_owned(), ..Effect::opaque(why) }.into());
        }
    }
}

struct Look<'a> {
    boundary: &'a ResolvedBoundary,
    file_system: &'a dyn FileSystem,
    restricts: Restricts<'a>,
}

impl Look<'_> {
    /// Why a word cannot be taken for text.
    fn doubt(&self, mentioned: &Loads) -> Option<String> {
        let configures = matches!(mentioned.matters, LoadMatters::Named { configures: true });
        let program = &mentioned.program;
        let names = mentioned.files.iter().flat_map(|text| {
            let parts = text.split(SEPARATORS).filter(move |part| *part != text);
            std::iter::once(text.as_str()).chain(parts).filter(|name| !name.is_empty()).take(MOST_NAMES)
        });
        for name in names {
            let path = match (&mentioned.directory, name.starts_with('/')) {
                (_, true) => fold(Path::new(name)),
                (Some(directory), false) => fold(&Path::new(directory).join(name)),
                (None, false) if configures || name.contains(['/', '.']) => {
                    return Some(format!(
                        "`{name}` may be a file that {program} uses, and the working directory is unknown"
                    ));
                }
                (None, false) => continue,
            };
            let is_whole = mentioned.files.iter().any(|text| text == name);
            if let Some(verb) = self.verb(name, &path, configures, is_whole) {
                return Some(format!("`{name}` may be a file that {program} {verb}"));
            }
        }
        None
    }

    /// What the program may do with a file of this name that it must not do unasked.
    fn verb(&self, name: &str, path: &Path, configures: bool, is_whole: bool) -> Option<&'static str> {
        let is_there = self.file_system.look(path) != PathEntry::Missing;
        // A plain word may be anything; of names that do not exist yet, those of recipes are told by their capital.
        let is_name = name.contains(['/', '.']) || name.starts_with(|first: char| first.is_ascii_uppercase());
        if name.bytes().all(|byte| byte == b'.') && !configures || !is_there && !is_name {
            return None;
        }
        let resolved = resolve(self.file_system, path).unwrap_or_else(|_| path.to_owned());
        let is_ours = self.boundary.is_in_root(&resolved, self.file_system);
        let is_file = is_there && self.file_system.look(&resolved) == PathEntry::Other;
        // A word that is the name of a file is hardly there for its own sake.
        if is_ours && (configures && is_there || is_whole && is_file && is_name) {
            return Some("uses");
        }
        // Without the directory nothing can be written; right below the root many words look like paths.
        let parent = path.parent().filter(|parent| parent.parent().is_some());
        let can_appear = is_there || parent.is_some_and(|parent| self.file_system.look(parent) != PathEntry::Missing);
        let is_outside = || name.contains('/') && !self.boundary.is_readable(&resolved, self.file_system);
        if can_appear && (is_outside() || is_ours && (self.restricts)(Action::Write, path, &resolved)) {
            return Some("writes");
        }
        (is_file && (self.restricts)(Action::Read, path, &resolved)).then_some("reads")
    }
}

#[cfg(test)]
mod tests {
    use crate::path::boundary::HostDirectories;
    use crate::path::file_system::fake::Fake;
    use crate::policy::{Decision, Policy};
    use crate::{Call, Gate};

    fn decide(command: &str) -> Decision {
        let files = Fake::new().file("/home/ada/w/.env").file("/home/ada/w/conf.yml").file("/home/ada/notes");
        let files = files.file("/home/ada/w/data.json").directory("/home/ada/w/.claude").file("/home/ada/.kube/config");
        let host = HostDirectories { home: Some("/home/ada".into()), ..HostDirectories::default() };
        let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).host(host).file_system(files).build();
        let call = Call::new("Bash", serde_json::json!({"command": command})).shell("bash");
        gate.assess(&call.directory("/home/ada/w").workspace("/home/ada/w")).unwrap().ruling().decision
    }

    /// scc, az and velero have tables that were not compared with the programs.
    #[test]
    fn protected_names_in_text_are_a_doubt() {
        for command in [
            "scc --format-multi json:.claude/settings.json src",
            "scc --format-multi json:Makefile src",
            "scc --format-multi json:../x src",
            "az vm list --query @.env",
            "az vm list --query ../notes",
            "az vm list --query data.json",
            "cmake --help-commands .claude/settings.json",
            "scc --version Makefile",
        ] {
            assert_ne!(decide(command), Decision::Allow, "{command}");
        }
        for command in [
            "scc --format-multi json:data.json src",
            "scc --format-multi json:out.json src",
            "az vm list --query json",
            "az vm list --query '[].{name: name}'",
            "az vm list --query /subscriptions/x",
            "echo .env Makefile json:.claude/settings.json",
            "grep Makefile data.json",
            "test -f Makefile",
        ] {
            assert_eq!(decide(command), Decision::Allow, "{command}");
        }
    }

    #[test]
    fn configuration_of_the_project_may_run_something() {
        for command in ["velero --kubeconfig conf.yml get backups", "velero get backups --kubeconfig=./conf.yml"] {
            assert_eq!(decide(command), Decision::Ask, "{command}");
        }
        assert_eq!(decide("velero get backups"), Decision::Allow);
    }
}
