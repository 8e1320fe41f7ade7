//! `callgate init`: a commented policy file to start from.

use std::io::Write;

use crate::arguments::InitArguments;
use crate::outcome::{Outcome, Trouble};

const TEMPLATE: &str = include_str!("template.yaml");

/// Writes the file; one that is there is left alone.
pub fn run(arguments: &InitArguments) -> Result<Outcome, Trouble> {
    let path = arguments.path.display();
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&arguments.path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            Trouble::new(format!("{path} is there already and stays as it is; give another name to write a second one"))
        } else {
            Trouble::new(format!("cannot write {path}: {error}"))
        }
    })?;
    file.write_all(TEMPLATE.replace("{from}", arguments.from.name()).as_bytes())
        .map_err(|error| Trouble::new(format!("cannot write {path}: {error}")))?;
    anstream::println!("wrote {path}, which extends '{}'", arguments.from.name());
    anstream::println!("it may only tighten the rules until you say: callgate trust");
    Ok(Outcome::Done)
}
