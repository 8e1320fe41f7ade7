//! Looks whether `npx X` finds its program among the packages of the project: then it runs that and downloads nothing.

use std::path::Path;

use callgate_model::description::{Description, Part};
use callgate_model::effect::{Action, CodeOrigin, Mark, Program, Target};
use callgate_model::word::Word;

use crate::path::file_system::{FileSystem, PathEntry};

/// The programs that look there first.
const RUNNERS: [&str; 2] = ["npx", "bunx"];
/// Options that do not change what is looked for.
const PLAIN_OPTIONS: [&str; 9] =
    ["-y", "--yes", "--no", "--no-install", "-q", "--quiet", "--offline", "--prefer-offline", "--bun"];

/// Turns downloaded code into a program of the project where it is one. Once a command of the call may have changed which files
/// there are, nothing is known.
pub(super) fn examine(description: &mut Description, file_system: &dyn FileSystem) {
    for part in &mut description.parts {
        if part.elsewhere.is_none()
            && let Some((runner, program)) = wanted(part)
            && part.directory.as_ref().is_some_and(|directory| is_installed(directory, &program, file_system))
        {
            // Hosts that the program's own words name stay.
            let is_registry =
                |target: &Target| matches!(target, Target::Host(host) if host.name.as_deref() == Some("<npm>"));
            part.effects
                .retain(|placed| placed.effect.action != Action::Connect || !is_registry(&placed.effect.target));
            for placed in &mut part.effects {
                if let Target::Program(Program { name, origin }) = &mut placed.effect.target
                    && matches!(origin, CodeOrigin::Fetched | CodeOrigin::Project)
                {
                    *name = format!("node_modules/.bin/{program}");
                    *origin = CodeOrigin::Project;
                    placed.effect.because = format!("{runner} {program}: running it");
                    placed.effect.marks = vec![Mark::ProjectCode];
                }
            }
        }
        if part.effects.iter().any(|placed| matches!(placed.effect.action, Action::Write | Action::Delete)) {
            return;
        }
    }
}

/// The runner and the program it is to find, if the words say nothing else.
fn wanted(part: &Part) -> Option<(String, String)> {
    let mut words = part.words.iter().map(Word::known);
    let runner = words.next()??;
    let program = words.find(|word| word.is_none_or(|word| !PLAIN_OPTIONS.contains(&word)))??;
    // A version, a path or another option: it looks elsewhere.
    let is_name = program.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    (RUNNERS.contains(&runner) && is_name && !program.starts_with(['-', '.']))
        .then(|| (runner.to_owned(), program.to_owned()))
}

fn is_installed(directory: &str, program: &str, file_system: &dyn FileSystem) -> bool {
    let is_there = |folder: &Path| {
        let path = folder.join("node_modules/.bin").join(program);
        matches!(file_system.look(&path), PathEntry::Link(_) | PathEntry::Other)
    };
    Path::new(directory).ancestors().any(is_there)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::path::file_system::fake::Fake;
    use crate::policy::Policy;
    use crate::{Call, Gate};

    fn reason(command: &str) -> String {
        let files = Fake::new().directory("/home/ada/w/src").file("/home/ada/w/node_modules/.bin/tsc");
        let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).file_system(files).build();
        let call = Call::new("Bash", json!({"command": command})).shell("bash");
        let call = call.directory("/home/ada/w/src").workspace("/home/ada/w");
        gate.assess(&call).unwrap().ruling().reason.clone()
    }

    #[test]
    fn a_program_of_the_project_is_not_downloaded() {
        for command in
            ["npx tsc --noEmit", "npx --no-install tsc", "bunx tsc", "cd .. && npx -y tsc -p x", "time npx tsc"]
        {
            assert!(reason(command).contains("→ node_modules/.bin/tsc"), "{command}: {}", reason(command));
        }
        for command in [
            "npx vitest",
            "npx tsc@5",
            "npx -p typescript tsc",
            "npx ./tsc",
            "pnpx tsc",
            "rm -r ../node_modules; npx tsc",
        ] {
            assert!(!reason(command).contains(".bin"), "{command}: {}", reason(command));
        }
        assert!(reason("npx vitest").contains("downloaded"));
    }
}
