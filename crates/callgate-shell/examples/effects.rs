//! Prints what a command would do: `cargo run -p callgate-shell --example effects 'cat a | sort > b'`.

use std::collections::BTreeMap;

use callgate_shell::programs::Programs;
use callgate_shell::{Context, Dialect, Limits, analyze};

fn main() {
    let variables = BTreeMap::new();
    for source in std::env::args().skip(1) {
        let context = Context {
            directory: Some("/work"),
            home: Some("/home/user"),
            variables: &variables,
            programs: Programs::bundled(),
            dialect: Dialect::Bash,
            limits: Limits::default(),
        };
        let analysis = analyze(&source, &context);
        println!("{source}\n  {:?}", analysis.coverage);
        for effect in analysis.effects() {
            println!("  {:?} {:?} {:?} ({})", effect.action, effect.target, effect.marks, effect.because);
        }
    }
}
