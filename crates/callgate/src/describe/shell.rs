//! Describes shell commands with `callgate-shell`.

use std::collections::BTreeMap;

use callgate_model::effect::{Action, Coverage, Effect};
use callgate_shell::{Analysis, Dialect, Limits, ShellState, SimpleCommand};

use super::collect::Collector;
use super::{Part, PlacedEffect};

/// The longest command that is analyzed, in bytes.
const MAXIMUM_COMMAND: usize = 256 * 1024;

/// The parts of a command given as shell source.
pub(super) fn source(source: &str, collector: &Collector<'_>) -> Vec<Part> {
    if source.trim().is_empty() {
        return vec![unknown("the command is empty")];
    }
    if source.len() > MAXIMUM_COMMAND {
        return vec![unknown("the command is too long to analyze")];
    }
    if source.contains('\0') {
        return vec![unknown("the command contains a NUL byte")];
    }
    analyze(source, collector)
}

/// The parts of a command given as words, without shell expansion.
pub(super) fn words(words: &[&str], collector: &Collector<'_>) -> Vec<Part> {
    let length = words.iter().fold(0_usize, |sum, word| sum.saturating_add(word.len()).saturating_add(3));
    if length > MAXIMUM_COMMAND {
        return vec![unknown("the command is too long to analyze")];
    }
    if words.first().is_none_or(|program| program.is_empty()) {
        return vec![unknown("the command names no program")];
    }
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    source(&quoted.join(" "), collector)
}

/// Quotes a word even if it is plain: a bare `if` would be a keyword.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The dialect of a known shell. A program in an unusual directory may be anything.
pub(super) fn dialect_of(name: &str) -> Option<Dialect> {
    match name.strip_prefix("/usr/bin/").or_else(|| name.strip_prefix("/bin/")).unwrap_or(name) {
        "bash" => Some(Dialect::Bash),
        "sh" | "dash" => Some(Dialect::Sh),
        _ => None,
    }
}

/// The dialect of the shell that the agent's host names, for example in `SHELL`.
pub(super) fn dialect_of_host(path: &str) -> Dialect {
    match path.rsplit('/').next() {
        Some("bash") => Dialect::Bash,
        Some("sh" | "dash") => Dialect::Sh,
        _ => Dialect::Any,
    }
}

fn unknown(why: &str) -> Part {
    vec![Effect::opaque(why)].into()
}

/// More parts than this are not compared one by one.
const MOST_COMPARED: usize = 256;

/// Analyzes a command. In a persistent shell, the result combines its effects there and in a fresh shell, so tracked state can
/// make a call look worse but never better.
fn analyze(source: &str, collector: &Collector<'_>) -> Vec<Part> {
    let Some(before) = collector.shell else {
        return parts(analysis(source, collector, None));
    };
    let mut kept = analysis(source, collector, Some(before));
    collector.leave_shell(kept.state.take());
    let mut all = parts(kept);
    if !before.is_fresh(collector.directory.as_deref()) {
        let compared = all.len().min(MOST_COMPARED);
        for part in parts(analysis(source, collector, None)) {
            if all.iter().take(compared).all(|known| *known != part) {
                all.push(part);
            }
        }
    }
    all
}

/// Calls the shell analysis. No other place does.
fn analysis(source: &str, collector: &Collector<'_>, state: Option<&ShellState>) -> Analysis {
    static NO_VARIABLES: BTreeMap<String, String> = BTreeMap::new();
    let context = callgate_shell::ShellContext {
        directory: collector.directory.as_deref(),
        home: collector.home(),
        variables: &NO_VARIABLES,
        programs: collector.programs(),
        dialect: collector.dialect,
        limits: Limits::default(),
        state,
    };
    callgate_shell::analyze(source, &context)
}

fn parts(analysis: Analysis) -> Vec<Part> {
    let opaque_effects = analysis.effects().filter(|effect| effect.action == Action::Opaque).count();
    let doubt = analysis.doubts.first().map(|doubt| doubt.what.clone());
    let mut parts: Vec<Part> = analysis.commands.into_iter().map(part_of).collect();
    // a doubt that belongs to no command must not get lost
    if analysis.coverage == Coverage::Partial && opaque_effects == 0 {
        parts.push(unknown(doubt.as_deref().unwrap_or("the command cannot be analyzed")));
    }
    if parts.is_empty() {
        parts.push(Part::default());
    }
    parts
}

fn part_of(command: SimpleCommand) -> Part {
    Part {
        words: command.words,
        wrappers: command.wrappers,
        elsewhere: command.elsewhere,
        directory: command.directory,
        effects: command.effects.into_iter().map(PlacedEffect::from).collect(),
        loads: command.loads,
        edits: Vec::new(),
        git: command.git,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_so_that_nothing_expands() {
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("$(x)"), "'$(x)'");
    }

    #[test]
    fn what_is_believed_of_a_shell_makes_no_call_look_better() {
        use crate::describe::{CallContext, Described, Registry};
        use callgate_model::call::Call;

        let describe = |command: &str, shell: Option<ShellState>| -> Described {
            let call = Call::new("Bash", serde_json::json!({ "command": command }));
            let context = CallContext {
                directory: Some("/ws".into()),
                home: Some("/home/ada".into()),
                shell: shell.map(Box::new),
                ..CallContext::default()
            };
            Registry::default().describe(&call, &context).unwrap()
        };
        let earlier =
            ["true", "x=a", "cd /tmp || exit", "cd sub", "PATH=.", "alias ls=rm", "source x", "rm() { :; }", "set -f"];
        let later = ["ls", "cat $x", "rm -rf y", "cat *", "cd ..; cat z", "x=b; cat \"$x\"", "unset -f rm; rm y", "$x"];
        for first in earlier {
            let state = describe(first, Some(ShellState::default())).shell.unwrap();
            for second in later {
                let fresh = describe(second, None);
                let kept = describe(second, Some((*state).clone()));
                assert!(kept.shell.is_some(), "{second}");
                let lost: Vec<&Part> =
                    fresh.description.parts.iter().filter(|part| !kept.description.parts.contains(part)).collect();
                assert!(lost.is_empty(), "`{second}` after `{first}` lacks {lost:?}");
            }
        }
        // Without a shell that lives on there is nothing to say of it.
        assert_eq!(describe("cd sub", None).shell, None);
    }

    #[test]
    fn a_call_is_judged_for_the_shell_that_runs_it() {
        use crate::describe::{CallContext, Registry};
        use callgate_model::call::Call;

        let opaque = |shell: Option<&str>| {
            let mut call = Call::new("Bash", serde_json::json!({ "command": "l=(a b); cat ${l[1]}" })).directory("/ws");
            call.origin.shell = shell.map(str::to_owned);
            let context = CallContext::of(&call, None, &Default::default());
            let described = Registry::default().describe(&call, &context).unwrap();
            described
                .description
                .parts
                .iter()
                .flat_map(|part| &part.effects)
                .any(|effect| effect.effect.action == Action::Opaque)
        };
        for shell in ["bash", "/bin/bash", "/opt/homebrew/bin/bash"] {
            assert!(!opaque(Some(shell)), "{shell}");
        }
        for shell in [None, Some("zsh"), Some("/bin/zsh"), Some("fish"), Some("")] {
            assert!(opaque(shell), "{shell:?}");
        }
    }

    #[test]
    fn shells_are_known_by_their_place() {
        for name in ["bash", "/bin/sh", "/usr/bin/dash"] {
            assert!(dialect_of(name).is_some(), "{name}");
        }
        for name in ["", "python", "zsh", "./bash", "/tmp/bash", "/bin/bash/"] {
            assert!(dialect_of(name).is_none(), "{name}");
        }
    }
}
