//! `callgate trust`: lets a project's policy file loosen rules, once a person has seen what that makes possible.

use std::path::{Path, PathBuf};

use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::{LayerKind, Locations, TrustStore};
use callgate::show::visible;
use serde_json::json;

use crate::arguments::TrustArguments;
use crate::audit;
use crate::outcome::{Outcome, Trouble};
use crate::terminal;

/// Trusts a file, removes the trust, or shows it.
pub fn run(arguments: &TrustArguments) -> Result<Outcome, Trouble> {
    let here = std::env::current_dir()
        .map_err(|error| Trouble::new(format!("cannot determine the current directory: {error}")))?;
    let file = match &arguments.path {
        Some(path) => here.join(path),
        None => Locations::of(&here).project_file().ok_or_else(|| {
            Trouble::new("found no callgate.yaml here or in a parent directory; `callgate init` writes one")
        })?,
    };
    let store = TrustStore::of_user()
        .ok_or_else(|| Trouble::new("cannot determine the home directory; set HOME or XDG_DATA_HOME"))?;
    let shown = visible(&file.display().to_string());
    let say = |trusted: bool, words: &str| match arguments.json {
        true => anstream::println!("{}", json!({ "file": file, "trusted": trusted })),
        false => anstream::println!("{shown} {words}"),
    };
    if arguments.status {
        let trusted = store.is_trusted(&file);
        say(trusted, if trusted { "is trusted" } else { "is not trusted: it can only tighten the rules" });
        return Ok(if trusted { Outcome::Done } else { Outcome::Found });
    }
    if arguments.remove {
        store.untrust(&file)?;
        say(false, "can only tighten the rules now");
        return Ok(Outcome::Done);
    }
    // A broken file cannot be trusted.
    load_policy(PolicyChoice::Named(&file.to_string_lossy()), None)?;
    let trusting = store.as_if(&file)?;
    let (count, examples) = preview(&file, &trusting)?;
    if !arguments.json {
        match count {
            0 => anstream::eprintln!("no call that was tried becomes possible; others may"),
            _ => {
                anstream::eprintln!("{shown} would make these calls possible, among others:");
                examples.iter().for_each(|example| anstream::eprintln!("  {example}"));
                if let Some(more @ 1..) = count.checked_sub(examples.len()) {
                    anstream::eprintln!("  and {more} more of those that were tried");
                }
            }
        }
    }
    if !arguments.yes {
        let agreed = terminal::agrees("Trust this content of the file?").ok_or_else(|| {
            Trouble::new("nobody can be asked here, so the file is not trusted; to trust it, run: callgate trust --yes")
        })?;
        if !agreed {
            say(false, "is not trusted");
            return Ok(Outcome::Found);
        }
    }
    trusting.keep()?;
    if arguments.json {
        let answer =
            json!({ "file": file, "trusted": true, "becomes_possible": { "count": count, "examples": examples } });
        anstream::println!("{answer}");
    } else {
        say(true, "is trusted until it, or a file it extends, changes");
    }
    Ok(Outcome::Done)
}

/// What becomes possible where the file applies.
fn preview(file: &Path, trusting: &TrustStore) -> Result<(usize, Vec<String>), Trouble> {
    let directory = file.parent().unwrap_or(file);
    let now = Locations::of(directory);
    let old = load_policy(PolicyChoice::Layers(&now), None)?.policy;
    let real = |path: PathBuf| path.canonicalize().ok();
    let applies = now.project_file().and_then(real) == real(file.to_owned());
    let new = match applies {
        true => load_policy(PolicyChoice::Layers(&Locations { trusted: Some(trusting.clone()), ..now }), None)?,
        // under another name, such as one that a link leads to
        false => load_policy(PolicyChoice::Named(&file.to_string_lossy()), None)?,
    };
    // What is shown must be what would be trusted.
    if new.files.iter().any(|found| found.kind == LayerKind::Project && !found.trusted) || !trusting.is_trusted(file) {
        return Err(Trouble::new(
            "the file cannot be trusted: it has just changed, or the list of trusted files is inside the project",
        ));
    }
    let new = new.policy;
    Ok(audit::becomes_possible(old, new, directory))
}
