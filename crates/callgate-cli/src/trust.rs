//! `callgate trust`: whether a project's policy file may loosen rules.

use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::{Locations, TrustStore};

use crate::arguments::TrustArguments;
use crate::outcome::{Outcome, Trouble};

/// Trusts, untrusts, or tells.
pub fn run(arguments: &TrustArguments) -> Result<Outcome, Trouble> {
    let here = std::env::current_dir()
        .map_err(|error| Trouble::new(format!("the current directory is not known: {error}")))?;
    let file = match &arguments.path {
        Some(path) => here.join(path),
        None => Locations::of(&here)
            .project_file()
            .ok_or_else(|| Trouble::new("there is no callgate.yaml here or above; `callgate init` writes one"))?,
    };
    let store =
        TrustStore::of_user().ok_or_else(|| Trouble::new("neither XDG_DATA_HOME nor a home directory is known"))?;
    let shown = file.display();
    if arguments.status {
        let trusted = store.is_trusted(&file);
        anstream::println!("{shown} is {}", if trusted { "trusted" } else { "not trusted: it may only tighten" });
        return Ok(if trusted { Outcome::Done } else { Outcome::Found });
    }
    if arguments.remove {
        store.untrust(&file)?;
        anstream::println!("{shown} may only tighten the rules now");
        return Ok(Outcome::Done);
    }
    // What cannot be used is not worth trusting.
    load_policy(PolicyChoice::Named(&file.to_string_lossy()), None)?;
    store.trust(&file)?;
    anstream::println!("{shown} is trusted as it is now; when it changes, or a file it extends, it is not");
    Ok(Outcome::Done)
}
