//! Examines the repositories that a call runs git in for programs that git would run.

use std::path::{Path, PathBuf};

use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::effect::{Action, CodeOrigin, Coverage, Target};
use callgate_model::word::Word;

use crate::describe::git::{self, GitExamination, GitReach, GitRun};
use crate::path::file_system::FileSystem;
use crate::path::resolve::resolve;

/// Adds a doubt to every part that runs git in a repository whose configuration may run something.
pub(super) fn examine(description: &mut Description, run: GitRun, file_system: &dyn FileSystem) {
    let mut doubted = false;
    for part in &mut description.parts {
        if part.elsewhere.is_some() || !git::looks(part) {
            continue;
        }
        let findings = match directory(part) {
            Some(directory) => {
                let words: Vec<&str> = part.words.iter().map(|word| word.known().unwrap_or_default()).collect();
                let subcommand = git::subcommand(&words).and_then(|place| words.get(place).copied());
                let examination = GitExamination { reach: reach(part), run, subcommand };
                let examine = |directory: &Path| {
                    git::examine(directory, examination, &|path: &Path, limit| file_system.read(path, limit))
                };
                // git goes up from where it really is.
                let mut findings = examine(&directory);
                if let Some(real) = resolve(file_system, &directory).ok().filter(|real| *real != directory) {
                    findings.extend(examine(&real));
                }
                findings
            }
            None => vec!["unknown working directory".to_owned()],
        };
        for finding in findings {
            doubted = true;
            let doubt = format!("git may run a program of the repository: {finding}");
            part.doubt_project(doubt, "the repository's configuration");
        }
    }
    if doubted {
        description.coverage = Coverage::Partial;
    }
}

/// Whether git only reads, by the program tables.
fn reach(part: &Part) -> GitReach {
    let looks = |placed: &PlacedEffect| match placed.effect.action {
        Action::List | Action::Read => true,
        Action::Run => match &placed.effect.target {
            Target::Program(program) => program.name == git::CONFIGURATION || program.origin == CodeOrigin::Known,
            _ => false,
        },
        _ => false,
    };
    if part.effects.iter().all(looks) { GitReach::Looks } else { GitReach::More }
}

/// Where git starts searching for the repository: the working directory, changed by every `-C`.
fn directory(part: &Part) -> Option<PathBuf> {
    let mut directory = PathBuf::from(part.directory.as_deref()?);
    let mut words = part.words.iter().skip(1);
    while let Some(word) = words.next() {
        match word.known() {
            Some("-C") => directory.push(words.next().and_then(Word::known)?),
            Some(option) if option.starts_with('-') => {}
            _ => break,
        }
    }
    Some(directory)
}

#[cfg(test)]
mod tests {
    use crate::path::file_system::fake::Fake;
    use crate::policy::{Decision, Policy};
    use crate::{Call, Gate};

    #[test]
    fn git_goes_up_from_where_it_really_is() {
        let decide = |command: &str| {
            let files = Fake::new().contents("/w/.git/HEAD", "").contents("/w/.git/config", "");
            let files =
                files.contents("/w/x/.git/HEAD", "").contents("/w/x/.git/config", "[filter \"a\"]\nclean = ./b\n");
            let files = files.file("/w/x/sub/c").link("/w/link", "/w/x/sub");
            let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).file_system(files).build();
            let call = Call::new("Bash", serde_json::json!({"command": command})).directory("/w").workspace("/w");
            gate.assess(&call).unwrap().ruling().decision
        };
        assert_eq!(decide("git status"), Decision::Allow);
        for command in ["git -C x status", "cd link && git status", "git -C link status"] {
            assert_eq!(decide(command), Decision::Ask, "{command}");
        }
    }
}
