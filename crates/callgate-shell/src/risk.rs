//! How much is at stake, at a glance: a word for people, not a decision.

use crate::effect::{Action, CodeOrigin, Effect, Mark, Names, Target};
use crate::evaluate::Analysis;
use serde::{Deserialize, Serialize};

/// How much is at stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// A simple command.
    Low,
    /// A compound of commands: a pipe, a chain, a subshell, a redirection.
    Medium,
    /// One thing that can do real harm.
    High,
    /// Two or more such things.
    Critical,
}

/// A thing that can do real harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Factor {
    /// Acts with other rights, or changes rights.
    Privilege,
    /// Deletes whole trees.
    RecursiveDelete,
    /// Runs code that comes from the network or through a pipe.
    FetchedCode,
    /// Does what cannot be undone.
    Destructive,
    /// Writes or deletes what belongs to the system.
    SystemPath,
    /// The environment changes what runs.
    Environment,
    /// Shows or hands out secrets.
    Credentials,
    /// Is not fully understood.
    Opaque,
}

/// Where the system keeps what is its own.
const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/sbin", "/sys", "/usr", "/System", "/Library",
];

impl Risk {
    /// The risk of a command, from its effects and its build.
    pub fn of(analysis: &Analysis) -> Risk {
        match factors(analysis).len() {
            0 => {}
            1 => return Risk::High,
            _ => return Risk::Critical,
        }
        let flags = analysis.flags;
        let compound =
            flags.pipe || flags.chain || flags.subshell || flags.redirect || flags.background || flags.control;
        if compound { Risk::Medium } else { Risk::Low }
    }
}

/// The things in a command that can do real harm, each once.
pub fn factors(analysis: &Analysis) -> Vec<Factor> {
    let mut factors: Vec<Factor> = analysis.effects().flat_map(of_effect).collect();
    if !analysis.doubts.is_empty() {
        factors.push(Factor::Opaque);
    }
    if analysis.flags.privilege {
        factors.push(Factor::Privilege);
    }
    factors.sort_unstable();
    factors.dedup();
    factors
}

fn of_effect(effect: &Effect) -> Vec<Factor> {
    let mut factors = Vec::new();
    let environment = effect.marks.contains(&Mark::Environment);
    match effect.action {
        Action::Privilege => factors.push(Factor::Privilege),
        Action::Opaque if !environment => factors.push(Factor::Opaque),
        Action::Delete | Action::Write => {
            if let Target::Path(path) = &effect.target {
                if effect.action == Action::Delete && path.tree {
                    factors.push(Factor::RecursiveDelete);
                }
                if belongs_to_the_system(&path.names) {
                    factors.push(Factor::SystemPath);
                }
            }
        }
        Action::Run => {
            if let Target::Program(program) = &effect.target
                && program.origin == CodeOrigin::Fetched
            {
                factors.push(Factor::FetchedCode);
            }
        }
        _ => {}
    }
    if environment {
        factors.push(Factor::Environment);
    }
    if effect.marks.contains(&Mark::Destructive) {
        factors.push(Factor::Destructive);
    }
    if effect.marks.contains(&Mark::Credentials) {
        factors.push(Factor::Credentials);
    }
    factors
}

fn belongs_to_the_system(names: &Names) -> bool {
    let path = match names {
        Names::Exact(path) | Names::Glob(path) | Names::Below(path) => path.as_str(),
        Names::Unknown(_) => return false,
    };
    let below = |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path == "/" || path.starts_with("/*") || SYSTEM.iter().any(|root| below(root))
}

#[cfg(test)]
mod tests {
    use super::{Factor, Risk, factors};
    use crate::evaluate::testing::analysis;

    #[test]
    fn risk_grows_with_what_is_at_stake() {
        let cases = [
            ("cp a b", Risk::Low),
            ("cp a b; cp b c", Risk::Medium),
            ("cp a b > c", Risk::Medium),
            ("cp a /etc/x", Risk::High),
            ("$x", Risk::High),
            ("$x; cp a /etc/x", Risk::Critical),
        ];
        for (source, risk) in cases {
            assert_eq!(Risk::of(&analysis(source)), risk, "{source}");
        }
    }

    #[test]
    fn a_changed_environment_is_a_factor() {
        assert_eq!(factors(&analysis("LD_PRELOAD=x cp a b")), [Factor::Environment]);
    }
}
