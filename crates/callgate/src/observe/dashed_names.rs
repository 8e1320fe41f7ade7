//! Looks for files whose names programs take for options: `grep x *` is another command where a file is called `-r`.

use std::path::Path;

use callgate_model::description::{Description, Part};
use callgate_model::effect::{Action, Coverage, Effect, Names, Target};
use callgate_model::lexical::fold;
use callgate_model::word::Word;
use callgate_shell::programs::matches_glob;

use crate::path::file_system::{FileSystem, PathEntry};

/// A directory with more names is not searched: it counts as having one.
const MAXIMUM_NAMES: usize = 10_000;

/// Adds a doubt to every command of which a word may be the name of a file that starts with `-`.
pub(super) fn examine(description: &mut Description, file_system: &dyn FileSystem) {
    if !description.parts.iter().any(|part| part.words.iter().any(|word| listed(word).is_some())) {
        return;
    }
    let brings = description.parts.iter().any(brings_one);
    for part in description.parts.iter_mut().filter(|part| part.elsewhere.is_none()) {
        let behind = part.words.iter().skip(1).take_while(|word| word.known() != Some("--"));
        let found = behind.filter_map(listed).find_map(|names| {
            // Where the directory is not known, neither is what the names lead to, and that is a doubt already.
            let directory = part.directory.as_deref().map(Path::new)?;
            names.dashed(directory, file_system).or_else(|| brings.then(|| "-…".to_owned()))
        });
        if let Some(name) = found {
            description.coverage = Coverage::Partial;
            let why = format!("a file named `{name}` would be read as an option");
            part.effects.push(Effect { because: "its words".to_owned(), ..Effect::opaque(why) }.into());
        }
    }
}

/// Names of files that a word stands for, as the program gets them.
struct ListedNames<'a> {
    folder: &'a str,
    glob: &'a str,
}

/// The names that a word stands for, if they may start with `-`.
fn listed(word: &Word) -> Option<ListedNames<'_>> {
    match word {
        Word::Glob(pattern) if pattern.starts_with(['*', '?', '[', '-']) => {
            Some(ListedNames { folder: ".", glob: pattern.split('/').next()? })
        }
        Word::Below { directory, .. } if !directory.contains('/') => Some(ListedNames { folder: directory, glob: "*" }),
        _ => None,
    }
}

impl ListedNames<'_> {
    /// One of the names that starts with `-`.
    fn dashed(&self, directory: &Path, file_system: &dyn FileSystem) -> Option<String> {
        let folder = fold(&directory.join(self.folder));
        let Some(names) = file_system.names(&folder, MAXIMUM_NAMES) else {
            return (file_system.look(&folder) == PathEntry::Directory).then(|| "-…".to_owned());
        };
        let mut names = names.iter().map(|name| name.to_string_lossy());
        names.find(|name| name.starts_with('-') && matches_glob(self.glob, name)).map(|name| name.into_owned())
    }
}

/// Whether a command writes a file whose name starts with `-`.
fn brings_one(part: &Part) -> bool {
    part.effects.iter().filter(|placed| placed.effect.action == Action::Write).any(|placed| {
        let Target::Path(target) = &placed.effect.target else { return false };
        match &target.names {
            Names::Exact(path) | Names::Glob(path) => path.rsplit('/').next().is_some_and(|name| name.starts_with('-')),
            Names::Below(_) | Names::Unknown(_) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::path::file_system::fake::Fake;
    use crate::policy::{Decision, Policy};
    use crate::{Call, Gate};

    fn decide(files: Fake, command: &str) -> Decision {
        let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).file_system(files).build();
        let call = Call::new("Bash", serde_json::json!({"command": command})).shell("bash");
        gate.assess(&call.directory("/home/ada/w").workspace("/home/ada/w")).unwrap().ruling().decision
    }

    #[test]
    fn a_name_that_is_read_as_an_option_is_a_doubt() {
        let plain = || Fake::new().file("/home/ada/w/a.txt").file("/home/ada/w/sub/-x");
        let dashed = || plain().file("/home/ada/w/-r");
        for command in ["grep S *", "wc *", "head -3 ?r", "for f in *; do wc -l $f; done", "du -sh *", "wc [!a]*"] {
            assert_eq!(decide(plain(), command), Decision::Allow, "{command}");
            assert_eq!(decide(dashed(), command), Decision::Ask, "{command}");
        }
        for command in ["wc ./*", "wc -- *", "wc *.txt", "wc sub/*"] {
            assert_eq!(decide(dashed(), command), Decision::Allow, "{command}");
        }
        assert_eq!(decide(plain(), "touch ./-r; grep S *"), Decision::Ask);
        assert_eq!(decide(plain(), "cd sub && wc *"), Decision::Ask);
    }
}
