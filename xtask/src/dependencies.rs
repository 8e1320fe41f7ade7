//! Licences and sources of everything we build from.

use cargo_metadata::MetadataCommand;
use spdx::{Expression, LicenseReq, ParseMode};

use crate::step::Failure;

/// Licences that may be in the tree: permissive ones only.
const ACCEPTED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Every dependency comes from the registry, is locked, and has an accepted licence.
pub fn check() -> Result<(), Failure> {
    eprintln!("── licences and sources");
    let metadata = MetadataCommand::new()
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .map_err(|error| Failure::new(format!("cargo metadata: {error}")))?;
    let mut mistakes = Vec::new();
    for package in &metadata.packages {
        let name = format!("{} {}", package.name, package.version);
        match &package.source {
            None if metadata.workspace_members.contains(&package.id) => {}
            Some(source) if source.is_crates_io() => {}
            _ => mistakes.push(format!("{name}: does not come from the registry")),
        }
        match package.license.as_deref().map(|text| Expression::parse_mode(text, ParseMode::LAX)) {
            Some(Ok(expression)) if expression.evaluate(accepted) => {}
            Some(Ok(expression)) => mistakes.push(format!("{name}: licence {expression} is not accepted")),
            Some(Err(error)) => mistakes.push(format!("{name}: licence cannot be read: {error}")),
            None => mistakes.push(format!("{name}: has no licence")),
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::new(mistakes.join("\n       "))) }
}

fn accepted(requirement: &LicenseReq) -> bool {
    requirement.license.id().is_some_and(|licence| ACCEPTED.contains(&licence.name))
}
