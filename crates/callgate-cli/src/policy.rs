//! `callgate policy`: shows, checks and compares policies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate::assess::Assessor;
use callgate::load::LoadedPolicy;
use callgate::policy::{LayerKind, Policy, Severity, schema};
use serde_json::json;

use crate::arguments::PolicyTask;
use crate::outcome::{self, Outcome, Trouble};
use crate::{audit, choice};

/// Runs one of the tasks.
pub fn run(task: PolicyTask) -> Result<Outcome, Trouble> {
    match task {
        PolicyTask::Show { policy, json } => show(policy.policy.as_deref(), json),
        PolicyTask::Lint { policies, json } => lint(&chosen(&policies)?, json),
        PolicyTask::Test { policies, json } => test(chosen(&policies)?, json),
        PolicyTask::Suggest(arguments) => outcome::coded(audit::suggest(&arguments)),
        PolicyTask::Diff(arguments) => outcome::coded(audit::diff(&arguments)),
        PolicyTask::Undo { json } => crate::remedy::undo(json),
        PolicyTask::Schema => {
            anstream::println!("{:#}", schema());
            Ok(Outcome::Done)
        }
    }
}

fn here() -> Result<PathBuf, Trouble> {
    std::env::current_dir().map_err(|error| Trouble::new(format!("cannot determine the current directory: {error}")))
}

/// The policies that were named, or the one that applies here.
fn chosen(policies: &[String]) -> Result<Vec<(String, Arc<Policy>)>, Trouble> {
    if policies.is_empty() {
        return Ok(vec![("the policy that applies here".to_owned(), choice::policy(None, &here()?)?.policy)]);
    }
    policies.iter().map(|name| Ok((name.clone(), choice::policy(Some(name), &here()?)?.policy))).collect()
}

fn show(policy: Option<&str>, as_json: bool) -> Result<Outcome, Trouble> {
    let LoadedPolicy { policy: loaded, files } = choice::policy(policy, &here()?)?;
    if as_json {
        let sources: Vec<_> = loaded.sources().map(|(file, text)| json!({ "file": file, "text": text })).collect();
        anstream::println!("{:#}", json!({ "layers": files, "version": loaded.version(), "sources": sources }));
        return Ok(Outcome::Done);
    }
    for file in &files {
        let path = file
            .path
            .as_deref()
            .map_or_else(|| "bundled standard".to_owned(), |path: &Path| path.display().to_string());
        let trust = if file.trusted { "" } else { "  (not trusted: can only tighten)" };
        anstream::println!("# {}: {path}{trust}", layer(file.kind));
    }
    anstream::println!("# version {}", loaded.version());
    anstream::println!();
    for (file, text) in loaded.sources() {
        anstream::println!("# ── {file}\n\n{}", text.trim_end());
        anstream::println!();
    }
    Ok(Outcome::Done)
}

fn layer(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Managed => "managed",
        LayerKind::User => "user",
        LayerKind::Project => "project",
    }
}

fn lint(policies: &[(String, Arc<Policy>)], as_json: bool) -> Result<Outcome, Trouble> {
    let findings: Vec<_> = policies.iter().flat_map(|(_, policy)| callgate::policy::lint(policy)).collect();
    let bad = findings.iter().any(|finding| finding.severity > Severity::Note);
    if as_json {
        anstream::println!("{:#}", json!(findings));
    } else {
        for finding in &findings {
            anstream::println!("{}\n", finding.rendered());
        }
        let names: Vec<&str> = policies.iter().map(|(name, _)| name.as_str()).collect();
        let plural = if findings.len() == 1 { "" } else { "s" };
        anstream::println!("{}: {} finding{plural}", names.join(", "), findings.len());
    }
    Ok(if bad { Outcome::Found } else { Outcome::Done })
}

fn test(policies: Vec<(String, Arc<Policy>)>, as_json: bool) -> Result<Outcome, Trouble> {
    let mut outcome = Outcome::Done;
    let mut results = Vec::new();
    for (name, policy) in policies {
        // report the layers of one policy together
        let (mut held, mut failures) = (0_usize, false);
        for checked in Assessor::new(policy).check_examples() {
            let (count, failed) = (checked.checked, checked.failed.clone());
            if !failed.is_empty() {
                outcome = Outcome::Found;
                failures = true;
            }
            if !as_json {
                match checked.into_result() {
                    Ok(count) => held = held.saturating_add(count),
                    Err(mistakes) => anstream::println!(
                        "{}\n\n{name}: {} of {count} examples fail",
                        mistakes.coloured(),
                        failed.len()
                    ),
                }
            }
            results.push(json!({ "policy": name, "checked": count, "failed": failed }));
        }
        if !as_json && !failures {
            anstream::println!("{name}: {held} examples pass");
        }
    }
    if as_json {
        anstream::println!("{:#}", json!(results));
    }
    Ok(outcome)
}
