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
use oracle::{Stage, analysis, cases, may_be, report};

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
        for arguments in stage.runs(script) {
            started += 1;
            let found = ours.commands.iter().any(|command| {
                let direct = may_be(&command.words, &arguments);
                // `command p`, `exec p`: the entry keeps the whole words.
                let behind = (1..command.words.len()).any(|from| {
                    let prefix =
                        command.words[0].known().is_some_and(|name| matches!(name, "command" | "exec" | "builtin"));
                    prefix && may_be(&command.words[from..], &arguments)
                });
                direct || behind
            });
            predicted += usize::from(found);
            if !found && ours.coverage == Coverage::Complete {
                misses.push(format!("{name}: {script:?} runs {arguments:?}"));
            } else if !found && std::env::var_os("SHOW").is_some() {
                report(&format!("excused: {name}: {script:?} runs {arguments:?} doubts {:?}", ours.doubts));
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
