//! What we say about a script against what bash does with it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic like tests"
)]

mod generator;
mod oracle;

use callgate_shell::effect::Coverage;
use callgate_shell::syntax::{Dialect, Limits, parse};
use generator::{hostile, manual::Manual};
use oracle::{Stage, analysis, analysis_for, cases, find_shell, report};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn files() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut all = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let found = cases(&std::fs::read_to_string(&path).unwrap());
        all.extend(found.into_iter().map(|(name, script)| (format!("{file}/{name}"), script)));
    }
    all
}

/// A script that bash rejects must not be understood.
fn compare_acceptance(stage: &Stage, scripts: &[(String, String)]) {
    let (mut accepted, mut understood, mut wrong) = (0, 0, Vec::new());
    for (name, script) in scripts {
        let ours = parse(script, Dialect::Bash, Limits::default()).mistake;
        if stage.accepts(script) {
            accepted += 1;
            understood += usize::from(ours.is_none());
            if let Some(mistake) = ours
                && std::env::var_os("SHOW").is_some()
            {
                report(&format!("not understood: {name}: {script:?}: {}", mistake.what));
            }
        } else if ours.is_none() {
            wrong.push(format!("{name}: {script:?}"));
        }
    }
    report(&format!("understood {understood} of {accepted} scripts that bash accepts"));
    assert!(wrong.is_empty(), "bash rejects, we do not:\n{}", wrong.join("\n"));
}

/// Every program that bash starts must be predicted, or the analysis must say it is partial.
fn compare_runs(stage: &Stage, scripts: &[(String, String)]) {
    let (mut started, mut predicted, mut complete, mut misses) = (0, 0, 0, Vec::new());
    for (name, script) in scripts {
        let ours = analysis(script, &stage.directory());
        complete += usize::from(ours.coverage == Coverage::Complete);
        for start in stage.runs(script) {
            started += 1;
            let found = start.is_predicted(&ours);
            predicted += usize::from(found);
            if !found && ours.coverage == Coverage::Complete {
                misses.push(format!("{name}: {script:?} runs {start:?}"));
            } else if !found && std::env::var_os("SHOW").is_some() {
                report(&format!("excused: {name}: {script:?} runs {start:?} doubts {:?}", ours.doubts));
            }
        }
    }
    report(&format!(
        "predicted {predicted} of {started} programs started; {complete} of {} scripts complete",
        scripts.len()
    ));
    assert!(misses.is_empty(), "missed:\n{}", misses.join("\n"));
}

#[test]
fn written_cases_are_accepted_as_bash_does() {
    compare_acceptance(&Stage::new("accept"), &files());
}

#[test]
fn written_cases_run_as_predicted() {
    compare_runs(&Stage::new("run"), &files());
}

#[test]
fn generated_scripts_are_accepted_as_bash_does() {
    compare_acceptance(&Stage::new("accept-generated"), &generator::token_soups(1500));
}

#[test]
fn generated_scripts_run_as_predicted() {
    compare_runs(&Stage::new("run-generated"), &generator::scripts(800));
}

/// How many hostile scripts are run: the sample of CI, or what `cargo xtask nightly` says.
fn hostile_scripts() -> u64 {
    std::env::var("CALLGATE_ORACLE_SCRIPTS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000)
}

/// Runs hostile scripts in a shell. Nothing may start that nobody predicted while the analysis was silent.
fn compare_hostile_scripts(shell: &Path, dialect: Dialect) {
    let (manual, count) = (Manual::read(), hostile_scripts());
    let (next, started, silent) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let misses = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (manual, next, started, silent, misses) = (&manual, &next, &started, &silent, &misses);
            scope.spawn(move || {
                let stage = Stage::with(&format!("hostile-{dialect:?}-{thread}"), shell.to_owned());
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let script = hostile::script(manual, number);
                    let ours = analysis_for(&script, &stage.directory(), dialect);
                    let complete = ours.coverage == Coverage::Complete;
                    silent.fetch_add(u64::from(complete), Ordering::Relaxed);
                    for start in stage.runs(&script) {
                        started.fetch_add(1, Ordering::Relaxed);
                        if complete && !start.is_predicted(&ours) {
                            misses.lock().unwrap().push(format!("{number}: {script:?} runs {start:?}"));
                        }
                    }
                }
            });
        }
    });
    let misses = misses.into_inner().unwrap();
    report(&format!(
        "{count} hostile scripts in {}: {} programs started, {} scripts silent, {} starts not predicted in silence",
        shell.display(),
        started.into_inner(),
        silent.into_inner(),
        misses.len()
    ));
    assert!(misses.is_empty(), "missed:\n{}", misses.join("\n"));
}

#[test]
fn hostile_scripts_run_nothing_in_silence() {
    compare_hostile_scripts(&find_shell("bash").expect("bash is installed"), Dialect::Bash);
}

/// Where nobody names a shell it may be zsh.
#[test]
fn hostile_scripts_run_nothing_in_silence_in_zsh() {
    match find_shell("zsh") {
        Some(shell) => compare_hostile_scripts(&shell, Dialect::Any),
        None => report("zsh is not installed: `cargo xtask setup` installs it"),
    }
}

#[test]
fn everything_that_the_manual_lists_occurs_in_hostile_scripts() {
    let manual = Manual::read();
    assert!(manual.builtins.len() >= 55, "{:?}", manual.builtins.keys());
    assert!(manual.variables.len() >= 90 && manual.options.len() >= 60, "{manual:?}");
    assert!(manual.expansions.len() >= 20 && manual.operators.len() >= 8, "{manual:?}");
    assert!(manual.redirections.len() >= 12, "{:?}", manual.redirections);
    let scripts: Vec<String> = (0..100_000).map(|number| hostile::script(&manual, number)).collect();
    let all = scripts.join("\n");
    let words: std::collections::BTreeSet<&str> =
        all.split(|character: char| !(character.is_alphanumeric() || "_-+:.@".contains(character))).collect();
    let mut missing = Vec::new();
    for (builtin, letters) in &manual.builtins {
        for letter in letters {
            let option = format!("{builtin} -{letter}");
            missing.extend((!all.contains(&option)).then_some(option));
        }
        missing.extend((!words.contains(builtin.as_str())).then(|| builtin.clone()));
    }
    for name in manual.variables.iter().chain(&manual.options) {
        missing.extend((!words.contains(name.as_str())).then(|| name.clone()));
    }
    let operators = manual.operators.iter().map(|operator| format!("@{operator}}}"));
    missing.extend(operators.filter(|operator| !all.contains(operator)));
    // What stands between the placeholders of an expansion or redirection.
    let forms = manual.expansions.iter().chain(&manual.redirections);
    let signs = forms
        .flat_map(|form| form.split(|character: char| character.is_ascii_alphabetic() || "[]".contains(character)));
    missing.extend(signs.filter(|sign| !all.contains(*sign)).map(str::to_owned));
    assert!(missing.is_empty(), "never occurs: {missing:?}");
}

/// No form of assignment to a variable that the manual lists is silent with a value that may be evaluated.
#[test]
fn a_variable_that_the_manual_lists_is_not_plain() {
    for name in Manual::read().variables {
        for form in [
            "NAME=V",
            "read NAME <<< V",
            "printf -vNAME %s V",
            "for NAME in V; do :; done",
            "export NAME=V",
            "NAME[0]=V",
        ] {
            let script = form.replace("NAME", &name).replace('V', "'a[$(p hit)]'");
            assert_eq!(analysis(&script, "/work").coverage, Coverage::Partial, "{script}");
        }
    }
}
