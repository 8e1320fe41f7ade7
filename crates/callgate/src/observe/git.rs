//! Examines the repositories that a call runs git in for programs that git would run.

use std::path::{Path, PathBuf};

use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::effect::{Action, CodeOrigin, Coverage, Target};
use callgate_model::word::Word;

use crate::describe::git::{self, GitExamination, GitReach, GitRun};
use crate::path::file_system::FileSystem;

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
                git::examine(&directory, examination, &|path: &Path, limit| file_system.read(path, limit))
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
