//! A context for tests.

use super::{Analysis, ShellContext, analyze};
use crate::programs::Programs;
use crate::syntax::{Dialect, Limits};
use std::collections::BTreeMap;

/// Analyses a command in `/work`, with the home directory `/home/me` and the bundled tables.
pub(crate) fn analysis(source: &str) -> Analysis {
    with_limits(source, Limits::default())
}

pub(crate) fn with_limits(source: &str, limits: Limits) -> Analysis {
    within(source, limits, Dialect::Bash)
}

/// Analyses a command for another shell than bash.
pub(crate) fn in_dialect(source: &str, dialect: Dialect) -> Analysis {
    within(source, Limits::default(), dialect)
}

fn within(source: &str, limits: Limits, dialect: Dialect) -> Analysis {
    let variables = BTreeMap::new();
    let table = "p q r: stub\n  style none\n  args: <text>*\n\n  example p a =>\n";
    let programs = Programs::bundled().extended(table, "test").expect("the table is right");
    let context = ShellContext {
        directory: Some("/work"),
        home: Some("/home/me"),
        variables: &variables,
        programs: &programs,
        dialect,
        limits,
        state: None,
    };
    analyze(source, &context)
}
