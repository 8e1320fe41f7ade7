//! Scripts of packages, told apart from the package manager that fetches them.
//!
//! A call that may reach the registries may do so while it fetches, not while code of packages runs. Package managers are told by
//! variables (`scripts.txt`) to start that code with [`PLACE`], which is callgate itself. It marks its process with one more filter
//! of system calls, which refuses nothing, and becomes the shell or program. A filter is passed on to everything that is started and
//! cannot be taken off, so the broker connects nobody outside who has more of them than the call began with.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use callgate_model::fence::{Fence, Network};

use crate::outside::REGISTRIES;
use crate::{filter, system};

/// Where the program that starts scripts lies inside.
pub const PLACE: &str = "/run/callgate-script";
/// The shell of scripts.
const SHELL: &str = "/bin/sh";
/// In front of the words of a program.
const RUN: &str = "--";

/// The variables, one a line.
const VARIABLES: &str = include_str!("scripts.txt");

/// Whether scripts are told apart: where the registries are all that a call may reach. Hosts that somebody has listed are for scripts
/// as well.
pub fn are_told_apart(fence: &Fence) -> bool {
    matches!(&fence.network, Network::Hosts(hosts) if !hosts.is_empty() && hosts.iter().all(|host| host == REGISTRIES))
}

/// The variables that tell package managers, without those that the caller has set: who has chosen a shell keeps it.
pub fn variables(environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let is_set = |name: &str| environment.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    VARIABLES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| !is_set(name))
        .map(|(name, value)| {
            let value = value.replace("{shell}", PLACE).replace("{run}", &format!("{PLACE} {RUN}"));
            (name.into(), value.into())
        })
        .collect()
}

/// Whether the first word of a command is the program that starts scripts.
pub fn is_called(name: &OsStr) -> bool {
    name == PLACE
}

/// Marks this process and becomes the shell, or the program behind `--`, with the words that it was given.
pub fn run(words: &[OsString]) -> ExitCode {
    let failed = |what: &str, error: std::io::Error| {
        eprintln!("callgate: cannot {what}: {error}");
        ExitCode::from(126)
    };
    if let Err(error) = system::add_filter(&filter::mark()) {
        return failed("close the registries for a script", error);
    }
    let words: Vec<&OsStr> = match words.split_first() {
        Some((first, program)) if first == RUN => program.iter().map(OsString::as_os_str).collect(),
        _ => std::iter::once(OsStr::new(SHELL)).chain(words.iter().map(OsString::as_os_str)).collect(),
    };
    let text = |bytes: &[u8]| CString::new(bytes).map_err(std::io::Error::other);
    let words: std::io::Result<Vec<CString>> = words.iter().map(|word| text(word.as_bytes())).collect();
    let variable = |(name, value): (OsString, OsString)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat());
    let environment: std::io::Result<Vec<CString>> = std::env::vars_os().map(variable).collect();
    match (words, environment) {
        (Ok(words), Ok(environment)) => match words.first() {
            Some(program) => failed("start a script", system::execute(program, &words, &environment)),
            None => failed("start a script", std::io::Error::other("there is no program")),
        },
        (Err(error), _) | (_, Err(error)) => failed("start a script", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_registries_alone_are_closed_for_scripts() {
        let fence = |hosts: &[&str]| Fence {
            network: Network::Hosts(hosts.iter().map(|host| (*host).to_owned()).collect()),
            ..Fence::default()
        };
        assert!(are_told_apart(&fence(&["@registries"])));
        assert!(!are_told_apart(&fence(&["@registries", "example.org"])) && !are_told_apart(&fence(&[])));
        assert!(!are_told_apart(&Fence { network: Network::All, ..Fence::default() }));
    }

    #[test]
    fn a_shell_that_the_caller_has_chosen_stays() {
        let named = |environment: &[(&str, &str)]| {
            let given: Vec<(OsString, OsString)> =
                environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
            variables(&given)
        };
        let ours = ("npm_config_script_shell".into(), PLACE.into());
        assert!(named(&[]).contains(&ours));
        assert!(!named(&[("NPM_CONFIG_SCRIPT_SHELL", "/bin/bash")]).contains(&ours));
        assert!(named(&[]).iter().any(|(name, value)| {
            name == "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER" && value == "/run/callgate-script --"
        }));
    }
}
