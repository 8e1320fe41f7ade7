//! Which policy applies, and which call is meant.

use std::io::Read;
use std::path::{Path, PathBuf};

use callgate::policy::{FoundFile, Locations, Policy};
use callgate::{Call, Gate, json};

use crate::arguments::{CallArguments, PlaceArguments};
use crate::outcome::Trouble;
use crate::terminal::Who;

/// The policy with this name or in this file.
pub fn named(policy: &str) -> Result<Policy, Trouble> {
    if Policy::bundled_names().any(|name| name == policy) {
        return Ok(Policy::bundled(policy)?);
    }
    let path = Path::new(policy);
    if !path.exists() && !policy.contains(['/', '.']) {
        return Err(Trouble::new(format!(
            "there is no policy '{policy}': write a file's path, or one of {}",
            Policy::bundled_names().collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(Policy::from_file(path)?)
}

/// The policy that was named, or all layers that apply to a directory; and what they were made of.
pub fn policy(policy: Option<&str>, directory: &Path) -> Result<(Policy, Vec<FoundFile>), Trouble> {
    match policy {
        Some(policy) => Ok((named(policy)?, Vec::new())),
        None => Ok(Policy::layered_with_files(&Locations::of(directory))?),
    }
}

/// A gate for calls from a directory.
pub fn gate(policy_name: Option<&str>, directory: &Path) -> Result<Gate, Trouble> {
    let (policy, files) = policy(policy_name, directory)?;
    let gate = Gate::builder().policy(policy).build();
    // The bundled policies' examples are checked by the tests; a file of the user's is checked whenever it is loaded.
    let own = files.iter().any(|file| file.path.is_some())
        || policy_name.is_some_and(|name| Policy::bundled_text(name).is_none());
    if own {
        for checked in gate.check_examples() {
            checked.into_result().map_err(callgate::policy::PolicyError::from)?;
        }
    }
    Ok(gate)
}

/// The same, with everybody who can answer: grants, the session, the terminal, and `callgate approvals` elsewhere.
pub fn asking_gate(policy_name: Option<&str>, call: &Call, who: Who) -> Result<Gate, Trouble> {
    let directory = call.origin.directory.clone().unwrap_or_default();
    let (policy, _) = policy(policy_name, &directory)?;
    // A policy that was named stands alone: a rule in the user's file would not help.
    let always = policy_name.is_none().then(|| (Locations::of(&directory), call.clone()));
    let approvals = crate::terminal::approvals(who, always)?;
    // What cannot be logged does not run.
    let settings = log_settings(&policy)?;
    let log = callgate_audit::Log::open(settings).map_err(|error| Trouble::new(format!("the audit log: {error}")))?;
    Ok(Gate::builder().policy(policy).approvals(approvals).events(callgate_audit::AuditSink::new(log)).build())
}

/// Where the policy says that the log lies, and how it is kept.
pub fn log_settings(policy: &Policy) -> Result<callgate_audit::Settings, Trouble> {
    callgate_audit::Settings::of_policy(policy, std::env::home_dir().as_deref())
        .map_err(|error| Trouble::new(error.to_string()))
}

/// The working directory and the workspace of a call, absolute.
pub fn place(place: &PlaceArguments) -> Result<(PathBuf, PathBuf), Trouble> {
    let here = std::env::current_dir()
        .map_err(|error| Trouble::new(format!("the current directory is not known: {error}")))?;
    let directory = place.cwd.as_ref().map_or_else(|| here.clone(), |directory| here.join(directory));
    let workspace = place.workspace.as_ref().map_or_else(|| directory.clone(), |workspace| here.join(workspace));
    Ok((directory, workspace))
}

/// The call that the arguments describe.
pub fn call(arguments: &CallArguments) -> Result<Call, Trouble> {
    let (directory, workspace) = place(&arguments.place)?;
    let call = match (&arguments.command, &arguments.tool) {
        (Some(command), _) => Call::new("Bash", serde_json::json!({ "command": command })),
        (None, Some(tool)) => {
            let text = input(arguments.input.as_deref().unwrap_or("{}"))?;
            let input =
                json::read(&text).map_err(|error| Trouble::new(format!("--input is not usable JSON: {error}")))?;
            Call::new(tool.as_str(), input)
        }
        (None, None) => return Err(Trouble::new("say what to judge: a command, or --tool with --input")),
    };
    Ok(call.directory(directory).workspace(workspace))
}

fn input(given: &str) -> Result<Vec<u8>, Trouble> {
    let limited = |reader: &mut dyn Read, name: &str| {
        let mut text = Vec::new();
        let limit = u64::try_from(json::MAXIMUM_SIZE).unwrap_or(u64::MAX).saturating_add(1);
        reader
            .take(limit)
            .read_to_end(&mut text)
            .map_err(|error| Trouble::new(format!("cannot read {name}: {error}")))?;
        Ok(text)
    };
    if given == "-" {
        return limited(&mut std::io::stdin().lock(), "standard input");
    }
    match given.strip_prefix('@') {
        Some(path) => {
            let mut file =
                std::fs::File::open(path).map_err(|error| Trouble::new(format!("cannot read {path}: {error}")))?;
            limited(&mut file, path)
        }
        None => Ok(given.as_bytes().to_vec()),
    }
}
