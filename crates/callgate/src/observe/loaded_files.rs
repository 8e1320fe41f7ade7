//! Looks for the files of the project that programs load: a program that is known does what the project says where there is one.

use std::path::{Path, PathBuf};

use callgate_model::description::{Description, LoadMatters, Loads, Part};
use callgate_model::effect::{Action, CodeOrigin, Coverage, Effect, Mark, Names, PathTarget, Program, Target};
use callgate_model::lexical::fold;
use callgate_shell::programs::matches_glob;

use super::settings_keys;
use crate::path::boundary::ResolvedBoundary;
use crate::path::file_system::{FileSystem, PathEntry};
use crate::path::resolve::resolve;

/// A directory with more names is not searched, and a longer file is not read: both count as found.
const MAXIMUM_NAMES: usize = 10_000;
const LONGEST_FILE: usize = 1 << 20;

/// Turns the files that programs would load into effects: a file that is there runs.
pub(super) fn examine(description: &mut Description, boundary: &ResolvedBoundary, file_system: &dyn FileSystem) {
    if description.parts.iter().all(|part| part.loads.is_empty()) {
        return;
    }
    let writes: Vec<Vec<PathTarget>> = description.parts.iter().map(written).collect();
    for (place, part) in description.parts.iter_mut().enumerate() {
        let loads = std::mem::take(&mut part.loads);
        if part.elsewhere.is_some() {
            continue;
        }
        let others = writes.iter().enumerate().filter(|(other, _)| *other != place);
        let others: Vec<&PathTarget> = others.flat_map(|(_, targets)| targets).collect();
        let look = Look { boundary, file_system, written: &others };
        let effects: Vec<Effect> = loads.iter().filter_map(|loads| look.effect(loads)).collect();
        for effect in effects {
            if effect.action == Action::Opaque {
                description.coverage = Coverage::Partial;
            }
            part.effects.push(effect.into());
        }
    }
}

/// The paths that a part writes.
fn written(part: &Part) -> Vec<PathTarget> {
    let writes = part.effects.iter().filter(|placed| placed.effect.action == Action::Write);
    let targets = writes.filter_map(|placed| match &placed.effect.target {
        Target::Path(target) => Some(target.clone()),
        _ => None,
    });
    targets.collect()
}

struct Look<'a> {
    boundary: &'a ResolvedBoundary,
    file_system: &'a dyn FileSystem,
    /// What the rest of the call writes.
    written: &'a [&'a PathTarget],
}

impl Look<'_> {
    fn effect(&self, loads: &Loads) -> Option<Effect> {
        let program = &loads.program;
        let Some(directory) = &loads.directory else {
            return Some(doubt(format!("{program} may load files of the project: its working directory is unknown")));
        };
        let directory = fold(Path::new(directory));
        if self.file_system.look(&directory) == PathEntry::Missing && !self.may_appear(&directory) {
            // Nothing runs there.
            return None;
        }
        // Programs go up from where they really are; what the path names is looked at, too.
        let real = resolve(self.file_system, &directory).ok().filter(|real| *real != directory);
        let starts = [Some(directory), real].into_iter().flatten();
        if loads.matters == LoadMatters::Missing {
            let mut starts = starts;
            let found = starts.all(|start| start.ancestors().any(|folder| self.found_in(folder, loads).is_some()));
            let missing = || {
                let files = loads.files.join(" or ");
                doubt(format!(
                    "{program} needs {files} to tell which code it runs, and there is none in this directory or above it"
                ))
            };
            return (!found).then(missing);
        }
        let name = starts.into_iter().find_map(|start| self.found_above(&start, loads))?;
        let target = Target::Program(Program { name, origin: CodeOrigin::Project });
        Some(Effect::new(Action::Run, target, format!("{program}: loads it")).marked(Mark::ProjectCode))
    }

    /// The first of the files that matters in this directory or above it, up to the root of the project.
    fn found_above(&self, start: &Path, loads: &Loads) -> Option<String> {
        for folder in start.ancestors() {
            let is_root = self.boundary.is_root(folder);
            if self.boundary.is_home(folder) && !is_root {
                break;
            }
            let found = self.found_in(folder, loads);
            if found.is_some() || is_root {
                return found;
            }
        }
        None
    }

    /// The first of the files in this directory that matters.
    fn found_in(&self, folder: &Path, loads: &Loads) -> Option<String> {
        loads.files.iter().find_map(|file| {
            let path = folder.join(file);
            let pattern = path.file_name()?.to_str()?;
            if pattern.contains(['*', '?', '[']) {
                let parent = path.parent()?;
                if matches!(self.file_system.look(parent), PathEntry::Missing) {
                    return None;
                }
                let names = self.file_system.names(parent, MAXIMUM_NAMES)?;
                let mut names = names.iter().filter_map(|name| name.to_str());
                return names
                    .find(|name| matches_glob(pattern, name) && self.matters(&parent.join(name), loads))
                    .map(str::to_owned);
            }
            let appears = self.may_appear(&path);
            let there = appears || self.file_system.look(&path) != PathEntry::Missing;
            (there && (appears || self.matters(&path, loads))).then(|| file.clone())
        })
    }

    /// Whether a file that is there can change what runs.
    fn matters(&self, path: &Path, loads: &Loads) -> bool {
        let text = || match self.file_system.read(path, LONGEST_FILE) {
            Ok(Some(bytes)) => String::from_utf8(bytes).ok(),
            Ok(None) | Err(_) => None,
        };
        match &loads.matters {
            LoadMatters::Found | LoadMatters::Missing | LoadMatters::Named { .. } => true,
            LoadMatters::SetsOther(keys) => {
                let known = |key: &String| keys.iter().any(|glob| matches_glob(glob, key));
                text().and_then(|text| settings_keys::keys(path, &text)).is_none_or(|found| !found.iter().all(known))
            }
            LoadMatters::Contains(words) => text().is_none_or(|text| settings_keys::contains_word(&text, words)),
        }
    }

    /// Whether another command of the same call may put something at this path.
    fn may_appear(&self, path: &Path) -> bool {
        self.written.iter().any(|target| {
            let below = |directory: &str| path.starts_with(fold(Path::new(directory)));
            match &target.names {
                Names::Exact(written) => {
                    let written = fold(Path::new(written));
                    path == written
                        || path.starts_with(&written)
                            && (target.tree || self.file_system.look(&written) == PathEntry::Missing)
                }
                Names::Below(directory) => below(directory),
                Names::Glob(pattern) => {
                    let prefix = PathBuf::from(callgate_model::glob::literal_prefix(pattern));
                    prefix.parent().is_none_or(|parent| path.starts_with(fold(parent)))
                }
                Names::Unknown(_) => true,
            }
        })
    }
}

fn doubt(why: String) -> Effect {
    Effect { marks: vec![Mark::ProjectCode], because: "the files it loads".to_owned(), ..Effect::opaque(why) }
}

#[cfg(test)]
mod tests {
    use crate::path::boundary::HostDirectories;
    use crate::path::file_system::fake::Fake;
    use crate::policy::{Decision, Policy};
    use crate::{Call, Gate};

    fn decide(files: Fake, command: &str) -> Decision {
        let host = HostDirectories { home: Some("/home/ada".into()), ..HostDirectories::default() };
        let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).host(host).file_system(files).build();
        let call = Call::new("Bash", serde_json::json!({"command": command}))
            .directory("/home/ada/w/src")
            .workspace("/home/ada/w");
        gate.assess(&call).unwrap().ruling().decision
    }

    fn rust() -> Fake {
        Fake::new().directory("/home/ada/w/src").file("/home/ada/w/Cargo.toml")
    }

    #[test]
    fn a_look_is_silent_where_nothing_is_loaded() {
        for command in ["cargo tree", "cargo --version", "cargo metadata --no-deps", "rustc --version", "cargo fmt"] {
            assert_eq!(decide(rust(), command), Decision::Allow, "{command}");
            assert_eq!(
                decide(Fake::new().directory("/home/ada/w/src"), command),
                Decision::Ask,
                "{command} without a package"
            );
            assert_eq!(decide(Fake::new(), command), Decision::Allow, "{command} where nothing is");
        }
    }

    #[test]
    fn a_file_of_the_project_runs_where_it_is_loaded() {
        let path = "[toolchain]\npath = \"/x\"\n";
        for (file, text, command) in [
            ("rust-toolchain.toml", path, "cargo --version"),
            ("src/rust-toolchain.toml", path, "rustc --version"),
            ("rust-toolchain", path, "rustfmt --check main.rs"),
            ("rust-toolchain.toml", "toolchain = { path = '/x' }", "cargo tree"),
            (".cargo/config.toml", "[build]\nrustc = \"./x\"\n", "cargo metadata"),
            (".cargo/config", "[env]\nX = \"1\"\n", "cargo tree"),
            (".cargo/config.toml", "[alias]\nfmt = \"run\"\n", "cargo fmt"),
            (".mvn/jvm.config", "-javaagent:x", "mvn -v"),
            (".npmrc", "registry=https://x.example\n", "npm view react"),
            (".pnpmfile.cjs", "", "pnpm ls"),
        ] {
            let files = || rust().file("/home/ada/w/pom.xml").contents(&format!("/home/ada/w/{file}"), text);
            assert_eq!(decide(files(), command), Decision::Ask, "{file}: {command}");
        }
    }

    #[test]
    fn settings_that_change_nothing_stay_silent() {
        for (file, text, command) in [
            ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.81\"\ncomponents = [\"clippy\"]\n", "cargo --version"),
            ("rust-toolchain", "stable\n", "cargo tree"),
            (".cargo/config.toml", "[alias]\nxtask = \"run -p xtask --\"\n\n[net]\nretry = 2\n", "cargo fmt"),
            (".npmrc", "save-exact=true\n", "npm view react"),
        ] {
            let files = rust().contents(&format!("/home/ada/w/{file}"), text);
            assert_eq!(decide(files, command), Decision::Allow, "{file}: {command}");
        }
        // What stands in the home directory is the user's own.
        let home = rust().contents("/home/ada/.cargo/config.toml", "[build]\nrustc = \"x\"\n");
        assert_eq!(decide(home, "cargo tree"), Decision::Allow);
    }

    #[test]
    fn mypy_loads_code_only_where_its_configuration_says_so() {
        for (file, text) in [
            ("mypy.ini", "[mypy]\nstrict = True\n[mypy-a.*]\nignore_errors = True\n"),
            ("setup.cfg", "[metadata]\nname = x\n[mypy]\npretty = true\n"),
            (
                "pyproject.toml",
                "[project]\nauthors = [{ name = \"x\" }]\n[tool.ruff]\nplugins = 1\n[tool.mypy]\nstrict = true\n",
            ),
            ("pyproject.toml", "[[tool.mypy.overrides]]\nmodule = \"a.*\"\nignore_missing_imports = true\n"),
        ] {
            let files = Fake::new().directory("/home/ada/w/src").contents(&format!("/home/ada/w/{file}"), text);
            assert_eq!(decide(files, "mypy --strict ."), Decision::Allow, "{text}");
        }
        for (file, text) in [
            ("mypy.ini", "[mypy]\nplugins = x\n"),
            (".mypy.ini", "[mypy]\npython_executable = ./x\n"),
            ("mypy.ini", "[mypy]\nplugins =\n  x\n"),
            ("mypy.ini", "[mypy]\nPlugins: x\n"),
            ("mypy.ini", "[DEFAULT]\nplugins = x\n[mypy]\nstrict = true\n"),
            ("setup.cfg", "[mypy]\ncache_dir = /x\n"),
            ("src/mypy.ini", "[mypy]\nfiles = /home/ada/.aws/credentials\n"),
            ("pyproject.toml", "[tool.mypy]\nplugins = [\"x\"]\n"),
            ("pyproject.toml", "[tool]\nmypy = { plugins = [\"x\"] }\n"),
            ("pyproject.toml", "tool.\"my\\u0070y\".install_types = true\n"),
            ("pyproject.toml", "[tool.mypy]\nhtml_report = \"x\"\n"),
        ] {
            let files = Fake::new().directory("/home/ada/w/src").contents(&format!("/home/ada/w/{file}"), text);
            assert_eq!(decide(files, "mypy --strict ."), Decision::Ask, "{text}");
        }
        for (text, expected) in [
            ("[flake8]\nmax-line-length = 100\n[tool:pytest]\n", Decision::Ask),
            ("[flake8]\nmax-line-length = 100\n[metadata]\nname = x\n", Decision::Allow),
            ("[flake8:local-plugins]\nextension = X = x:y\n", Decision::Ask),
            ("[flake8]\noutput-file = x\n", Decision::Ask),
            ("[DEFAULT]\noutput-file = x\n[flake8]\ncount = 1\n", Decision::Ask),
        ] {
            let files = Fake::new().directory("/home/ada/w/src").contents("/home/ada/w/setup.cfg", text);
            assert_eq!(decide(files, "flake8 ."), expected, "{text}");
        }
        for command in ["python3 -m mypy .", "dmypy run .", "python3 -m flake8 ."] {
            assert_eq!(decide(Fake::new().directory("/home/ada/w/src"), command), Decision::Ask, "{command}");
        }
    }

    #[test]
    fn a_link_leads_to_the_files_above_its_target() {
        let files = || {
            let files = rust().file("/home/ada/w/a/b/x").link("/home/ada/w/src/link", "/home/ada/w/a/b");
            files.contents("/home/ada/w/a/rust-toolchain.toml", "[toolchain]\npath = \"/x\"\n")
        };
        assert_eq!(decide(files(), "cargo tree"), Decision::Allow);
        assert_eq!(decide(files(), "cd link && cargo tree"), Decision::Ask);
    }

    #[test]
    fn what_the_same_call_brings_along_is_not_known_to_be_harmless() {
        for command in [
            "git clone . y && cd y && cargo tree",
            "echo x > rust-toolchain.toml; cargo --version",
            "cp a ../.cargo/config.toml; cargo tree",
            "cp a \"$X\"; cargo tree",
            "cd \"$X\"; cargo tree",
        ] {
            assert_ne!(decide(rust(), command), Decision::Allow, "{command}");
        }
        assert_eq!(decide(rust(), "touch notes.txt; cargo tree"), Decision::Allow);
    }
}
