//! Looks where programs are found: one in a directory that calls may write to is not the one that a table describes.

use std::path::{Path, PathBuf};

use callgate_model::description::{Description, Part};
use callgate_model::effect::{Action, CodeOrigin, Effect, Program, Target};

use crate::path::boundary::{ProgramDirectory, ResolvedBoundary};
use crate::path::file_system::{FileSystem, PathEntry};

/// Adds a run of the file to every part whose program is found where calls may write.
pub(super) fn examine(description: &mut Description, boundary: &ResolvedBoundary, file_system: &dyn FileSystem) {
    installed_tools(description, boundary, file_system);
    // The usual `PATH` has no such directory.
    let Some(directories) = boundary.doubtful_programs() else { return };
    for part in description.parts.iter_mut().filter(|part| part.elsewhere.is_none()) {
        let found: Vec<PathBuf> =
            names(part).iter().filter_map(|name| found(name, part, directories, file_system)).collect();
        for path in found {
            let name = path.to_string_lossy().into_owned();
            let target = Target::Program(Program { name, origin: CodeOrigin::File });
            part.effects.push(Effect::new(Action::Run, target, "found in a directory that may be written to").into());
        }
    }
}

/// Words that agents take for tools of their own.
const TOOLS: [&str; 2] = ["apply_patch", "applypatch"];

/// Adds a doubt where a word that stands for an agent's own tool is also the name of a program.
fn installed_tools(description: &mut Description, boundary: &ResolvedBoundary, file_system: &dyn FileSystem) {
    for part in description.parts.iter_mut().filter(|part| part.elsewhere.is_none()) {
        let Some(name) = part.words.first().and_then(|word| word.known()).filter(|name| TOOLS.contains(name)) else {
            continue;
        };
        let is_there = |directory: &ProgramDirectory| {
            let folder = Path::new(part.directory.as_deref().unwrap_or_default()).join(&directory.path);
            file_system.look(&folder.join(name)) != PathEntry::Missing
        };
        if boundary.program_directories().iter().any(is_there) {
            let target = Target::Program(Program { name: name.to_owned(), origin: CodeOrigin::Unknown });
            part.effects.push(Effect::new(Action::Run, target, "a program of that name is installed").into());
        }
    }
}

/// The programs that a part runs by their bare names.
fn names(part: &Part) -> Vec<String> {
    let by_path = part.words.first().and_then(|word| word.known()).filter(|word| word.contains('/'));
    let by_path = by_path.and_then(|path| path.rsplit('/').next());
    let programs = part.effects.iter().filter_map(|placed| match &placed.effect.target {
        Target::Program(program)
            if program.origin == CodeOrigin::Known
                && placed.effect.because != "builtin"
                && Some(&*program.name) != by_path =>
        {
            Some(program.name.clone())
        }
        _ => None,
    });
    programs.collect()
}

/// The file that a name finds, if it is in a directory that calls may write to.
fn found(name: &str, part: &Part, directories: &[ProgramDirectory], file_system: &dyn FileSystem) -> Option<PathBuf> {
    for directory in directories {
        let folder = match (&part.directory, directory.path.is_absolute()) {
            (_, true) => directory.path.clone(),
            (Some(working), false) => Path::new(working).join(&directory.path),
            (None, false) => continue,
        };
        let path = folder.join(name);
        if file_system.look(&path) != PathEntry::Missing {
            return directory.writable.then_some(path);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::path::boundary::HostDirectories;
    use crate::path::file_system::fake::Fake;
    use crate::policy::{Decision, Policy};
    use crate::{Call, Gate};

    #[test]
    fn a_table_is_believed_only_of_programs_that_calls_cannot_write() {
        let decide = |path: &[&str], command: &str| {
            let files = Fake::new().directory("/w").file("/w/.venv/bin/ls").file("/usr/bin/ls").file("/w/bin/wc");
            let host =
                HostDirectories { programs: path.iter().map(Into::into).collect(), ..HostDirectories::default() };
            let policy = Policy::bundled("standard").unwrap();
            let gate = Gate::builder().policy(policy).host(host).file_system(files).build();
            let call = Call::new("Bash", serde_json::json!({"command": command})).directory("/w").workspace("/w");
            gate.assess(&call).unwrap().ruling().decision
        };
        assert_eq!(decide(&["/usr/bin"], "ls"), Decision::Allow);
        assert_eq!(decide(&["/w/.venv/bin", "/usr/bin"], "ls"), Decision::Ask);
        assert_eq!(decide(&["/w/.venv/bin", "/usr/bin"], "timeout 5 ls"), Decision::Ask);
        assert_eq!(decide(&["/w/.venv/bin", "/usr/bin"], "wc -l a"), Decision::Allow, "it is not there");
        assert_eq!(decide(&["/w/.venv/bin", "/usr/bin"], "/usr/bin/ls"), Decision::Allow);
        assert_eq!(decide(&["/usr/bin", "/w/.venv/bin"], "ls"), Decision::Allow, "found elsewhere first");
        assert_eq!(decide(&["bin", "/usr/bin"], "wc -l a"), Decision::Ask, "relative to the working directory");
    }

    #[test]
    fn an_agents_patch_word_is_its_tool_unless_a_program_has_the_name() {
        let decide = |files: Fake, command: &str| {
            let host = HostDirectories { programs: vec!["/usr/bin".into()], ..HostDirectories::default() };
            let policy = Policy::bundled("standard").unwrap();
            let gate = Gate::builder().policy(policy).host(host).file_system(files).build();
            let call = Call::new("Bash", serde_json::json!({"command": command})).shell("bash");
            gate.assess(&call.directory("/w").workspace("/w")).unwrap().ruling().decision
        };
        let files = || Fake::new().directory("/w");
        let patch = |header: &str| format!("*** Begin Patch\n*** {header}\n@@\n-x\n+y\n*** End Patch");
        for (header, expected) in [
            ("Update File: src/a.rs", Decision::Allow),
            ("Add File: notes.md", Decision::Allow),
            ("Update File: Makefile", Decision::Ask),
            ("Delete File: src/a.rs", Decision::Ask),
            ("Update File: ../x", Decision::Ask),
            ("Update File: src/a.rs\n*** Move to: .claude/settings.json", Decision::Deny),
            ("Update File: .env", Decision::Ask),
            ("Frobnicate: x", Decision::Ask),
        ] {
            for command in [
                format!("apply_patch <<'EOF'\n{}\nEOF", patch(header)),
                format!("apply_patch \"$(cat <<'EOF'\n{}\nEOF\n)\"", patch(header)),
                format!("apply_patch '{}'", patch(header)),
                format!("cd /w && apply_patch << 'EOF'\n{}\nEOF", patch(header)),
            ] {
                assert_eq!(decide(files(), &command), expected, "{command}");
            }
        }
        let command = format!("apply_patch <<'EOF'\n{}\nEOF", patch("Update File: src/a.rs"));
        assert_eq!(decide(files().file("/usr/bin/apply_patch"), &command), Decision::Ask);
        for command in ["apply_patch < x.patch", "cat x | apply_patch", "apply_patch \"$x\"", "./apply_patch a"] {
            assert_eq!(decide(files(), command), Decision::Ask, "{command}");
        }
    }
}
