//! `callgate init`: writes a commented policy file.

use std::io::Write;

use crate::arguments::InitArguments;
use crate::outcome::{Outcome, Trouble};

const TEMPLATE: &str = include_str!("template.yaml");

/// Writes the file. An existing file is not overwritten.
pub fn run(arguments: &InitArguments) -> Result<Outcome, Trouble> {
    let path = arguments.path.display();
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&arguments.path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            Trouble::new(format!("{path} already exists; pass another path to write a second policy"))
        } else {
            Trouble::new(format!("cannot write {path}: {error}"))
        }
    })?;
    file.write_all(TEMPLATE.replace("{from}", arguments.from.name()).as_bytes())
        .map_err(|error| Trouble::new(format!("cannot write {path}: {error}")))?;
    anstream::println!("wrote {path}, which extends '{}'", arguments.from.name());
    anstream::println!("it can only tighten the rules until you run `callgate trust`");
    Ok(Outcome::Done)
}
