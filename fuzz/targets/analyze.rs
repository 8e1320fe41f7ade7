//! Parsing and evaluating a shell command never panics, hangs or takes more than its budget.
#![no_main]

use std::collections::BTreeMap;

use callgate_shell::programs::Programs;
use callgate_shell::{ShellContext, Dialect, Limits, analyze};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let variables = BTreeMap::new();
    let context = ShellContext {
        directory: Some("/work"),
        home: Some("/home/user"),
        variables: &variables,
        programs: Programs::bundled(),
        dialect: Dialect::Bash,
        limits: Limits::default(),
        state: None,
    };
    let _ = analyze(source, &context);
});
