//! The environment of contained programs: a list of names, without secrets.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use callgate_model::redact::Redactor;

/// The names, one a line.
const NAMES: &str = include_str!("environment.txt");

/// What names of secrets end with.
const SECRET_ENDINGS: &[&str] =
    &["KEY", "AUTH", "PASS", "PASSWORD", "PASSWD", "TOKEN", "SECRET", "CREDENTIAL", "CREDENTIALS"];

/// The variables of a caller that a contained program gets.
pub fn contained(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let redactor = Redactor::default();
    let names: Vec<&str> = NAMES.lines().filter(|line| !line.starts_with('#')).collect();
    variables.filter(|(name, value)| is_listed(name, &names) && !is_secret(name, value, &redactor)).collect()
}

fn is_listed(name: &OsStr, names: &[&str]) -> bool {
    let Some(name) = name.to_str() else { return false };
    names.iter().any(|listed| match listed.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *listed,
    })
}

/// Whether a variable is a secret by its name or its value.
fn is_secret(name: &OsStr, value: &OsStr, redactor: &Redactor) -> bool {
    let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { return !value.as_bytes().is_ascii() };
    // Bundler keeps the passwords of hosts in variables that are named after them: `BUNDLE_GEMS__EXAMPLE__COM`.
    let of_host = name.starts_with("BUNDLE_") && name.contains("__");
    let line = format!("{name}={value}");
    of_host
        || SECRET_ENDINGS.iter().any(|ending| name.to_ascii_uppercase().ends_with(ending))
        || redactor.text(&line) != line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_without_secrets_arrive() {
        let given = [
            ("PATH", "/usr/bin"),
            ("CARGO_HOME", "/home/u/.cargo"),
            ("CARGO_REGISTRY_TOKEN", "cio1234567890abcdefghij"),
            ("NPM_CONFIG__AUTHTOKEN", "npm_abcdefghijklmnopqrstuvwxyz0123456789"),
            ("PIP_INDEX_URL", "https://user:geheim12@pypi.example/simple"),
            ("BUNDLE_GEMS__EXAMPLE__COM", "89bf7d1a:2f3c9e8d"),
            ("GRADLE_PUBLISH_KEY", "x"),
            ("COMPOSER_AUTH", "{}"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("LC_ALL", "C"),
        ];
        let given = given.into_iter().map(|(name, value)| (name.into(), value.into()));
        let names: Vec<OsString> = contained(given).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["PATH", "CARGO_HOME", "LC_ALL"]);
    }
}
