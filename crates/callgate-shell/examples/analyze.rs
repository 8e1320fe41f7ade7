//! Prints what a command would do: `cargo run --example analyze -- 'rm -rf x'`.

use callgate_shell::programs::Programs;
use callgate_shell::{Dialect, Limits, ShellContext, analyze};

fn main() {
    let source = std::env::args().nth(1).unwrap_or_default();
    let variables = Default::default();
    let context = ShellContext {
        directory: Some("/work"),
        home: Some("/home/me"),
        variables: &variables,
        programs: Programs::bundled(),
        dialect: Dialect::Bash,
        limits: Limits::default(),
        state: None,
    };
    let analysis = analyze(&source, &context);
    for command in &analysis.commands {
        println!("{:?} in {:?}", command.words, command.directory);
        for effect in &command.effects {
            println!("    {:?} {:?} {:?} ({})", effect.action, effect.target, effect.marks, effect.because);
        }
    }
    println!("{:?} {:?}", analysis.coverage, analysis.doubts);
}
