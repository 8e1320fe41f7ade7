//! Examines the repositories that a call runs git in: for programs that git would run, and for the files that it shows and changes.

mod changed;
mod files;
mod pathspec;
mod shown;

use std::path::{Path, PathBuf};

use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::effect::{Action, CodeOrigin, Coverage, Effect, Names, PathTarget, Selection, Target};
use callgate_model::word::Word;

use self::files::Files;
use super::repository::{self, read};
use super::trees::Restricts;
use super::trees::walk::TreeWalker;
use crate::git::{self, FoundRepository, GitExamination, GitReach, GitRun, Invocation, Start};
use crate::path::boundary::ResolvedBoundary;
use crate::path::file_system::{EntryKind, FileSystem};
use crate::path::resolve::resolve;

/// Adds a doubt to every part that runs git in a repository whose configuration may run something, and an effect for every file that
/// matters among those that git shows or changes.
pub(super) fn examine(
    description: &mut Description,
    run: GitRun,
    boundary: &ResolvedBoundary,
    restricts: Restricts<'_>,
    file_system: &dyn FileSystem,
) {
    let mut doubted = false;
    let mut files = Files::new(file_system, restricts, &description.parts);
    let mut changes = IndexChanges::None;
    let mut walker = TreeWalker::new(file_system);
    let read = |path: &Path, limit: usize| read(path, limit, file_system);
    for (place, part) in description.parts.iter_mut().enumerate() {
        let uses = std::mem::take(&mut part.git);
        if part.elsewhere.is_some() {
            continue;
        }
        if !git::looks(part) {
            continue;
        }
        let reach = reach(part);
        let words: Vec<Option<&str>> = part.words.iter().map(Word::known).collect();
        let start = match git::invocation(&words) {
            Invocation::Git(start) => Ok(start),
            Invocation::Other => Ok(Start::default()),
            Invocation::Unknown => Err("unknown repository".to_owned()),
        };
        let subcommand = start.as_ref().ok().and_then(|start| words.get(start.subcommand?).copied().flatten());
        let directory = start.and_then(|start| {
            let directory = part.directory.as_deref().ok_or_else(|| "unknown working directory".to_owned())?;
            Ok(start
                .directories
                .iter()
                .filter(|change| !change.is_empty())
                .fold(PathBuf::from(directory), |all, change| all.join(change)))
        });
        let examination = GitExamination { reach, run, subcommand };
        let (mut outside, mut stands) = (None, None);
        let mut findings = match directory {
            Ok(directory) => {
                // git goes up from where it really is.
                let real = resolve(file_system, &directory).ok();
                stands.clone_from(&real);
                if !real.as_ref().is_some_and(|real| boundary.is_in_root(real, file_system)) {
                    outside = directory.to_str().map(str::to_owned);
                }
                let real = real.filter(|real| *real != directory);
                let mut findings = Vec::new();
                for directory in [Some(directory), real].iter().flatten() {
                    findings.extend(git::examine(directory, examination, &read));
                    if changes != IndexChanges::None {
                        let skips_ignored = changes == IndexChanges::NotIgnored;
                        for root in git::roots(directory, &read) {
                            examine_below(root, skips_ignored, examination, &mut walker, &read, &mut findings);
                        }
                    }
                }
                findings
            }
            Err(finding) => vec![finding],
        };
        // That no hook runs is proven only by a repository without one.
        let is_nowhere = |stands: &PathBuf| matches!(repository::find(stands, file_system), FoundRepository::Missing);
        if subcommand == Some("commit") && findings.is_empty() && stands.as_ref().is_none_or(is_nowhere) {
            findings.push("there is no repository here yet".to_owned());
        }
        if reach == GitReach::More {
            let forces = |word: &Option<&str>| {
                word.is_none_or(|word| {
                    word.starts_with("--f") || !word.starts_with("--") && word.starts_with('-') && word.contains('f')
                })
            };
            let heeds_ignored = matches!(subcommand, Some("add" | "commit")) && !words.iter().any(forces);
            changes = if heeds_ignored && changes != IndexChanges::Any {
                IndexChanges::NotIgnored
            } else {
                IndexChanges::Any
            };
        }
        let is_certain = !part.effects.iter().any(|placed| placed.effect.action == Action::Opaque);
        for git in &uses {
            let Some(stands) = &stands else { continue };
            if git.task.looks() {
                files.shows(place, git, stands, &mut walker, &mut part.effects);
            } else if findings.is_empty() && is_certain {
                files.changes(place, git, stands, &mut part.effects);
                doubted |= part.effects.iter().any(|placed| placed.effect.action == Action::Opaque);
            }
        }
        // What a repository shows is read from there, whether files are named or not.
        if let Some(directory) = outside.filter(|_| subcommand.is_some()) {
            let target = Target::Path(PathTarget::new(Names::Exact(directory), false));
            part.effects.push(Effect::new(Action::Read, target, "the repository is there").into());
        }
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

/// What earlier commands of the call may have put into the index: git enters every repository that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndexChanges {
    None,
    /// Names that no `.gitignore` leaves out.
    NotIgnored,
    Any,
}

/// Examines every repository below a work tree.
fn examine_below(
    root: &Path,
    skips_ignored: bool,
    examination: GitExamination<'_>,
    walker: &mut TreeWalker<'_>,
    read: git::ReadFile<'_>,
    findings: &mut Vec<String>,
) {
    let except_directories = vec![".git".to_owned()];
    let selection = Selection { skips_ignored, except_directories, ..Selection::default() };
    match walker.walk(root, &selection) {
        Ok(entries) => {
            for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Directory) {
                git::examine_nested(&root.join(&entry.path), examination, read, findings);
            }
        }
        Err(_) => findings.push("the call may add a repository to the index, and git would enter it".to_owned()),
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

    #[test]
    fn a_repository_outside_is_read_there() {
        let decide = |command: &str| {
            let mut files = Fake::new().link("/w/link", "/srv/other");
            for root in ["/w", "/w/sub", "/srv/other"] {
                files = files.contents(&format!("{root}/.git/HEAD"), "ref: refs/heads/main\n");
                files = files.directory(&format!("{root}/.git/objects")).directory(&format!("{root}/.git/refs"));
            }
            let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).file_system(files).build();
            let call = Call::new("Bash", serde_json::json!({"command": command})).directory("/w").workspace("/w");
            gate.assess(&call).unwrap().ruling().decision
        };
        for look in ["log -p", "diff", "show", "stash show -p", "fast-export --all"] {
            for inside in [format!("git {look}"), format!("git -C sub {look}"), format!("cd sub && git {look}")] {
                assert_eq!(decide(&inside), Decision::Allow, "{inside}");
            }
            for directory in ["/srv/other", "../srv/other", "link"] {
                for outside in [format!("git -C {directory} {look}"), format!("cd {directory} && git {look}")] {
                    assert_ne!(decide(&outside), Decision::Allow, "{outside}");
                }
            }
        }
        assert_eq!(decide("cd /srv/other && git --version"), Decision::Allow);
    }

    #[test]
    fn every_form_of_a_directory_is_heard() {
        let hostile = "[filter \"a\"]\nclean = ./b\n";
        let decide = |command: &str| {
            let files = Fake::new().contents("/w/.git/HEAD", "").contents("/w/.git/config", "");
            let files = files.contents("/w/x/.git/HEAD", "").contents("/w/x/.git/config", hostile);
            let files = files.link("/w/bare/HEAD", "refs/heads/main").contents("/w/bare/commondir", "../c\n");
            let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).file_system(files).build();
            let call = Call::new("Bash", serde_json::json!({"command": command})).directory("/w").workspace("/w");
            gate.assess(&call).unwrap().ruling().decision
        };
        for options in ["", "-c color.ui=never", "--namespace n", "--attr-source HEAD", "--no-pager -c color.ui=never"]
        {
            for wrapper in ["", "command", "command -p", "exec", "builtin command", "time", "timeout 5", "env"] {
                let command = |directory: &str| format!("{wrapper} git {options} {directory} status");
                assert_eq!(decide(&command("")), Decision::Allow, "{}", command(""));
                assert_eq!(decide(&command("-C .")), Decision::Allow, "{}", command("-C ."));
                assert_eq!(decide(&command("-C x")), Decision::Ask, "{}", command("-C x"));
            }
        }
        for command in ["git -C bare log", "cd bare && git log", "git --unheard-of -C x log"] {
            assert_eq!(decide(command), Decision::Ask, "{command}");
        }
    }
}
