//! Examines the directories that Python imports modules from: a file there with the name of a module runs in its place.

use std::path::{Path, PathBuf};

use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::effect::{Action, Coverage, Effect, Names, Target, TreeNames};
use callgate_shell::programs::python_may_import;

use crate::path::file_system::{FileSystem, PathEntry};

/// The program tables' name for Python importing modules from its working directory.
const SEARCH: &str = "python-path";
/// A directory with more names is not examined and counts as doubtful.
const MAXIMUM_NAMES: usize = 10_000;

/// Adds a doubt to every part that runs Python where a file shadows a module, or may do so by then.
pub(super) fn examine(description: &mut Description, file_system: &dyn FileSystem) {
    if !description.parts.iter().any(searches) {
        return;
    }
    let written = description.parts.iter().find_map(|part| {
        // What Python code does to files that exist adds no name to those that are looked at here.
        let updates = |effect: &Effect| searches(part) && matches!(&effect.target, Target::Path(target) if target.tree && matches!(target.below, TreeNames::Existing(_)));
        part.effects.iter().filter(|placed| !updates(&placed.effect)).find_map(|placed| may_write_module(&placed.effect))
    });
    let mut doubted = false;
    for part in description.parts.iter_mut().filter(|part| searches(part)) {
        let finding = match &part.directory {
            _ if written.is_some() => written.clone(),
            None => Some("unknown working directory".to_owned()),
            Some(directory) => standing_in(Path::new(directory), file_system),
        };
        let Some(finding) = finding else { continue };
        doubted = true;
        part.doubt_project(
            format!("Python may import a project file in place of a module: {finding}"),
            "where Python looks for modules",
        );
    }
    if doubted {
        description.coverage = Coverage::Partial;
    }
}

fn searches(part: &Part) -> bool {
    let search =
        |placed: &PlacedEffect| matches!(&placed.effect.target, Target::Program(program) if program.name == SEARCH);
    part.elsewhere.is_none() && part.effects.iter().any(search)
}

/// A file that the same call writes and that may become a module.
fn may_write_module(effect: &Effect) -> Option<String> {
    let Target::Path(target) = &effect.target else { return None };
    if effect.action != Action::Write {
        return None;
    }
    match &target.names {
        Names::Exact(path) if !target.is_open() => {
            let name = path.rsplit('/').next().unwrap_or_default();
            // a directory may become a package; a write into a directory may create any name
            let open = name.is_empty() || name == ".";
            (open || module(name).is_some() || python_may_import(name)).then(|| format!("this call writes {path}"))
        }
        Names::Exact(path) | Names::Glob(path) | Names::Below(path) => Some(format!("this call writes {path}")),
        Names::Unknown(_) => Some("this call writes files with unknown names".to_owned()),
    }
}

/// The importable module that a file of this name would be.
fn module(name: &str) -> Option<&str> {
    let (stem, rest) = name.split_once('.')?;
    let code = matches!(rest.rsplit('.').next(), Some("py" | "pyc" | "pyo" | "pyw" | "so"));
    (code && python_may_import(stem)).then_some(stem)
}

/// The first name in a directory that shadows a module.
fn standing_in(directory: &Path, file_system: &dyn FileSystem) -> Option<String> {
    if file_system.look(directory) == PathEntry::Missing {
        return None;
    }
    let Some(names) = file_system.names(directory, MAXIMUM_NAMES) else {
        return Some("the directory cannot be read".to_owned());
    };
    let is_package = |name: &str| {
        let inside: PathBuf = directory.join(name);
        let begins = |names: Vec<std::ffi::OsString>| {
            names.iter().any(|name| name.to_str().is_some_and(|name| name.starts_with("__init__.")))
        };
        python_may_import(name)
            && !matches!(file_system.look(&inside), PathEntry::Missing | PathEntry::Other)
            && file_system.names(&inside, MAXIMUM_NAMES).is_none_or(begins)
    };
    let name = names.iter().filter_map(|name| name.to_str()).find(|name| module(name).is_some() || is_package(name))?;
    Some(format!("`{name}` is in its working directory"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::file_system::fake::Fake;
    use crate::policy::{Decision, Policy};
    use crate::{Call, Gate};

    #[test]
    fn files_and_packages_with_names_of_modules_stand_in_for_them() {
        let standing = |file_system: Fake| standing_in(Path::new("/w"), &file_system);
        for harmless in ["setup.py", "json.txt", "json", "notes.json.md", "__main__.py", "tests"] {
            assert_eq!(standing(Fake::new().directory("/w").file(&format!("/w/{harmless}"))), None, "{harmless}");
        }
        for harm in ["json.py", "re.pyc", "_json.py", "math.cpython-311-x86_64-linux-gnu.so", "sqlite3.py"] {
            assert!(standing(Fake::new().directory("/w").file(&format!("/w/{harm}"))).is_some(), "{harm}");
        }
        let folder = Fake::new().directory("/w").directory("/w/email");
        assert_eq!(standing(folder.file("/w/email/a.txt")), None);
        let package = Fake::new().directory("/w").directory("/w/email");
        assert!(standing(package.file("/w/email/__init__.py")).is_some());
        assert_eq!(standing(Fake::new()), None, "where nothing is, nothing stands in");
    }

    #[test]
    fn python_is_asked_about_where_a_file_may_run_in_place_of_a_module() {
        let decide = |command: &str, file_system: Fake| {
            let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).file_system(file_system).build();
            let call = Call::new("Bash", serde_json::json!({"command": command})).directory("/w");
            gate.assess(&call).unwrap().ruling().decision
        };
        let clean = || Fake::new().file("/w/a.json").file("/w/setup.py");
        let trapped = || clean().file("/w/json.py");
        for command in [
            "python3 -c 'import json; print(json.dumps(1))'",
            "python3 -m json.tool a.json",
            "echo '{}' | python3 -m json.tool",
            "python3 - <<'E'\nimport json\nE",
            "env python3 -c 'import re'",
            "cd /w && python3 -c 'import re'",
        ] {
            assert_eq!(decide(command, clean()), Decision::Allow, "{command}");
            assert_eq!(decide(command, trapped()), Decision::Ask, "{command}");
        }
        assert_eq!(decide("python3 -I -c 'import json'", trapped()), Decision::Allow);
        assert_eq!(decide("python3 --version", trapped()), Decision::Allow);
        for command in [
            "cp a.json json.py; python3 -c 'import json'",
            "cp -r /usr/lib/x . ; python3 -m json.tool a.json",
            "cd $X && python3 -c 'import json'",
            "curl -so \"$f\" http://localhost/x; python3 -c 'import json'",
        ] {
            assert_ne!(decide(command, clean()), Decision::Allow, "{command}");
        }
    }
}
