//! `callgate trust`: lets a project's policy file loosen rules.

use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::{Locations, TrustStore};

use crate::arguments::TrustArguments;
use crate::outcome::{Outcome, Trouble};

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
    let shown = file.display();
    if arguments.status {
        let trusted = store.is_trusted(&file);
        anstream::println!(
            "{shown} is {}",
            if trusted { "trusted" } else { "not trusted: it can only tighten the rules" }
        );
        return Ok(if trusted { Outcome::Done } else { Outcome::Found });
    }
    if arguments.remove {
        store.untrust(&file)?;
        anstream::println!("{shown} can only tighten the rules now");
        return Ok(Outcome::Done);
    }
    // A broken file cannot be trusted.
    load_policy(PolicyChoice::Named(&file.to_string_lossy()), None)?;
    store.trust(&file)?;
    anstream::println!("{shown} is trusted until it, or a file it extends, changes");
    Ok(Outcome::Done)
}
