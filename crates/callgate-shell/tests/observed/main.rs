//! What programs really do, compared with what their tables say.
//!
//! Harmless commands run in a throw-away directory under `strace`; every file they open, write or remove there, every
//! program they start from there and every connection must be among the predicted effects, or the analysis must have said
//! that it is partial. The cases are in `commands.txt`, one a line.

mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callgate_shell::effect::{Action, CodeOrigin, Coverage, Effect, Names, Target};
use callgate_shell::programs::Programs;
use callgate_shell::{Analysis, Dialect, Limits, ShellContext, analyze};
use trace::{Seen, fold, observe};

/// The throw-away directory's contents.
const FILES: &[(&str, &str)] = &[
    ("a.txt", "alpha\nbeta\ngamma\n"),
    ("b.txt", "beta\ndelta\n"),
    ("numbers", "3\n1\n2\n"),
    ("table.csv", "name,age\nann,3\nbob,4\n"),
    ("data.json", "{\"a\": [1, 2, {\"b\": null}]}\n"),
    ("page.html", "<p>text</p>\n"),
    ("script.sed", "s/a/b/\n"),
    ("program.awk", "{ print $1 }\n"),
    ("list", "a.txt\nb.txt\n"),
    ("run.sh", "cat a.txt\n"),
    ("src/main.c", "int main(void) { return 0; }\n"),
    ("src/util.c", "int twice(int x) { return 2 * x; }\n"),
    ("src/deep/notes.md", "# notes\n"),
    ("home/.profile", "# nothing\n"),
    ("Makefile", "all:\n\tcat a.txt > made\n"),
];

fn fixture(directory: &Path) -> std::io::Result<()> {
    for (name, contents) in FILES {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, contents)?;
    }
    Ok(())
}

/// Whether an effect stands for a path: exactly, as a tree, by a pattern, or as something below a directory.
fn covers(effect: &Effect, path: &Path) -> bool {
    let Target::Path(target) = &effect.target else { return false };
    match &target.names {
        // Relative where the working directory is not known, as in a trap.
        Names::Exact(name) if !name.starts_with('/') => path.ends_with(fold(Path::new(name))),
        Names::Exact(name) => {
            let name = fold(Path::new(name));
            name == path || target.tree && path.starts_with(&name) || beside(effect, &name, path)
        }
        Names::Below(name) => path.starts_with(fold(Path::new(name))),
        Names::Glob(pattern) => {
            // The directory before the first wildcard is as fine as this comparison needs to be.
            let fixed: PathBuf = Path::new(pattern)
                .components()
                .take_while(|component| !component.as_os_str().to_string_lossy().contains(['*', '?', '[', '{', '(']))
                .collect();
            path.starts_with(fold(&fixed))
        }
        Names::Unknown(_) => true,
    }
}

/// A name that grows out of the one that is written: `a.txt.gz` and `a.txt.bak` of `a.txt`, `part-aa` of `part-`, what goes
/// into a directory that is a destination, `tmp.Zx81` of `tmp.XXXX`.
fn beside(effect: &Effect, name: &Path, path: &Path) -> bool {
    let (name, path) = (name.to_string_lossy(), path.to_string_lossy());
    let fixed = name.trim_end_matches('X');
    matches!(effect.action, Action::Write | Action::Delete) && (path.starts_with(fixed) || name.starts_with(&*path))
}

fn predicted(analysis: &Analysis, actions: &[Action], path: &Path) -> bool {
    effects(analysis).any(|effect| actions.contains(&effect.action) && covers(effect, path))
}

fn effects(analysis: &Analysis) -> impl Iterator<Item = &Effect> {
    analysis.commands.iter().flat_map(|command| &command.effects)
}

/// Whether code runs that the analysis does not claim to have read: a policy sees that it runs, and everything may follow.
fn runs_foreign_code(analysis: &Analysis) -> bool {
    effects(analysis).any(|effect| match &effect.target {
        Target::Program(program) => !matches!(program.origin, CodeOrigin::Known | CodeOrigin::Defined),
        _ => false,
    })
}

/// Whether something seen is among the effects. Only what concerns the throw-away directory or the network is judged:
/// libraries, locales and the like are part of running a program.
fn explained(seen: &Seen, analysis: &Analysis, directory: &Path) -> bool {
    match seen {
        Seen::Read(path) | Seen::List(path) if !path.starts_with(directory) || path == directory => true,
        Seen::Write(path) | Seen::Delete(path) if path.starts_with("/dev") || path.starts_with("/proc") => true,
        // A login shell reads the user's own start-up files: that is part of running it.
        Seen::Read(path) if path.ends_with("home/.profile") => true,
        Seen::Read(path) => {
            path.is_dir()
                || predicted(analysis, &[Action::Read, Action::Run], path)
                || predicted(analysis, &[Action::Write], path)
        }
        Seen::List(path) => {
            path.is_dir() || predicted(analysis, &[Action::List, Action::Read, Action::Write, Action::Delete], path)
        }
        Seen::Write(path) => predicted(analysis, &[Action::Write, Action::Delete], path) || temporary(path, analysis),
        // Programs write beside the target and rename: the temporary name goes away again.
        Seen::Delete(path) => {
            predicted(analysis, &[Action::Delete], path)
                || predicted(analysis, &[Action::Write], path)
                || temporary(path, analysis)
        }
        Seen::Run(path) => !path.starts_with(directory) || effects(analysis).any(|effect| effect.action == Action::Run),
        Seen::Connect(_) => effects(analysis).any(|effect| matches!(effect.action, Action::Connect | Action::Send)),
    }
}

/// A name that was not there before and is not there afterwards, beside something that was to be written, or in a
/// temporary directory.
fn temporary(path: &Path, analysis: &Analysis) -> bool {
    if path.exists() || FILES.iter().any(|(name, _)| path.ends_with(name)) {
        return false;
    }
    path.starts_with("/tmp")
        || path.parent().is_some_and(|parent| {
            effects(analysis).any(|effect| match (&effect.action, &effect.target) {
                (Action::Write | Action::Delete, Target::Path(target)) => match &target.names {
                    Names::Exact(name) | Names::Below(name) | Names::Glob(name) => {
                        fold(Path::new(name)).parent() == Some(parent) || fold(Path::new(name)) == parent
                    }
                    Names::Unknown(_) => true,
                },
                _ => false,
            })
        })
}

#[test]
fn everything_observed_was_predicted_or_the_coverage_said_partial() {
    let cases = include_str!("commands.txt");
    let root =
        tempfile::Builder::new().prefix("callgate-observed").tempdir_in("/var/tmp").expect("a temporary directory");
    let variables = BTreeMap::new();
    let (mut run, mut partial, mut misses) = (0_usize, 0_usize, Vec::new());
    for (number, case) in cases.lines().enumerate() {
        if case.is_empty() || case.starts_with('#') {
            continue;
        }
        let directory = root.path().join(format!("case-{number}"));
        std::fs::create_dir_all(&directory).expect("a directory");
        fixture(&directory).expect("a fixture");
        let place = directory.to_string_lossy().into_owned();
        let home = directory.join("home").to_string_lossy().into_owned();
        let analysis = analyze(
            case,
            &ShellContext {
                directory: Some(&place),
                home: Some(&home),
                variables: &variables,
                programs: Programs::bundled(),
                dialect: Dialect::Bash,
                limits: Limits::default(),
                state: None,
            },
        );
        run += 1;
        if analysis.coverage == Coverage::Partial || runs_foreign_code(&analysis) {
            partial += 1;
            continue;
        }
        let seen = observe(case, &directory, &root.path().join("trace")).expect("strace runs");
        assert!(!seen.is_empty(), "nothing was observed for {case}: is strace allowed to trace here?");
        for thing in seen {
            if !explained(&thing, &analysis, &directory) {
                misses.push(format!("line {}: {case}\n      {thing:?}", number + 1));
            }
        }
    }
    println!(
        "observed: {run} commands, {partial} partial or running what files say, {} effects not predicted",
        misses.len()
    );
    assert!(misses.is_empty(), "seen but not predicted:\n{}", misses.join("\n"));
    assert!(partial * 6 <= run, "{partial} of {run} commands were not understood");
}
