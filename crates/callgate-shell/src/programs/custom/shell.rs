//! Shells: `-c` with its source, script files, and code on standard input.

use super::placeholder::is_plain;
use crate::effect::Action;
use crate::lists::listed;
use crate::programs::NestedBody;
use crate::programs::collect::Collector;
use crate::programs::table::{OptionForm, Role, RoleKind, Table, Values};
use crate::stream::Stream;
use crate::word::Word;

const SHELL: Role = Role::plain(RoleKind::Shell);

/// The names after `-o` and `-O` that do not change what is read of a script.
const HARMLESS: &str =
    "errexit nounset pipefail xtrace verbose noexec noclobber extglob nullglob globstar inherit_errexit";

/// What the words of a shell say.
#[derive(Default)]
struct ShellCall {
    ends: bool,
    command: bool,
    from_stdin: bool,
    /// `-n`: the source is only checked…
    checks: bool,
    /// …unless somebody types at the shell, or another option takes that back.
    runs_anyway: bool,
    operands: Vec<Word>,
}

/// A shell whose source is read: `sh`, `bash`, `dash`, `ksh`.
pub(super) fn read(table: &Table, words: &[Word], collector: &mut Collector<'_>) -> Stream {
    let call = options(table, words, collector);
    if call.ends {
        return Stream::Data;
    }
    let mut operands = call.operands.into_iter().peekable();
    if call.checks && !call.runs_anyway {
        if let Some(script) = operands.next_if(|_| !call.command && !call.from_stdin) {
            collector.path(Action::Read, &script, false, &[], "script");
        }
        return Stream::Data;
    }
    if call.command {
        if let Some(source) = operands.next() {
            collector.shell(source, operands.collect(), &SHELL, None);
        }
    } else if let Some(script) = operands.next_if(|_| !call.from_stdin) {
        collector.run_file(&script, "script");
    } else if let Stream::Text(text) = collector.stdin {
        let source = Word::Known(text.clone());
        collector.shell(source, operands.collect(), &SHELL, Some(Stream::Unconnected));
    } else {
        collector.stdin_code("standard input");
    }
    Stream::Unknown
}

/// A shell with a grammar of its own, of which only plain words are understood.
pub(super) fn other(table: &Table, words: &[Word], collector: &mut Collector<'_>) -> Stream {
    let call = options(table, words, collector);
    if call.ends {
        return Stream::Data;
    }
    let Some(first) = call.operands.first().filter(|_| !call.from_stdin) else {
        collector.stdin_code("standard input");
        return Stream::Unknown;
    };
    if !call.command {
        collector.run_file(first, "script");
        return Stream::Unknown;
    }
    let words: Option<Vec<Word>> = first.known().and_then(|source| {
        let plain = |word: &str| is_plain(word) || (is_plain(word.trim_start_matches('-')) && word.starts_with('-'));
        source
            .split(' ')
            .filter(|word| !word.is_empty())
            .map(|word| plain(word).then(|| Word::Known(word.to_owned())))
            .collect()
    });
    match words.filter(|words| words.first().is_some_and(|name| name.known().is_some_and(|name| !name.contains('=')))) {
        Some(words) => collector.nest(NestedBody::Words(words), None, None),
        None => collector.doubt(|program| format!("{program} code is not read"), "-c"),
    }
    Stream::Unknown
}

/// Shells read options until the first operand; `-c` only says that this is source.
fn options(table: &Table, words: &[Word], collector: &mut Collector<'_>) -> ShellCall {
    let mut call = ShellCall::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Word::Known(text) = word else {
            let may_be_option = match word {
                Word::Partly { prefix, .. } => prefix.starts_with(['-', '+']),
                _ => true,
            };
            if may_be_option {
                collector.doubt(|program| format!("what {program} is given may be an option"), "its words");
            }
            break;
        };
        at += 1;
        if text == "--" || text == "-" {
            break;
        }
        if text.len() < 2 || !text.starts_with(['-', '+']) {
            at -= 1;
            break;
        }
        let names: Vec<String> = match text.strip_prefix("--") {
            Some(_) => vec![text.clone()],
            None => {
                let sign = if text.starts_with('+') { '+' } else { '-' };
                text.chars().skip(1).map(|letter| format!("{sign}{letter}")).collect()
            }
        };
        for name in names {
            let (bare, glued) = match name.split_once('=') {
                Some((bare, glued)) if name.starts_with("--") => (bare.to_owned(), Some(glued.to_owned())),
                _ => (name.clone(), None),
            };
            match bare.as_str() {
                "-c" => call.command = true,
                "-s" => call.from_stdin = true,
                "-n" => call.checks = true,
                "-i" | "+n" | "+o" => call.runs_anyway = true,
                _ => {}
            }
            let Some(form) = form(table, &bare) else {
                collector.doubt(|program| format!("option {bare} of {program} is not known"), "its words");
                continue;
            };
            call.ends |= form.ends;
            for effect in &form.effects {
                collector.stated(effect, &bare);
            }
            if let Values::Words(roles) = &form.values {
                let mut glued = glued.map(Word::Known);
                for role in roles {
                    let value = glued.take().or_else(|| {
                        at += 1;
                        words.get(at - 1).cloned()
                    });
                    if let Some(value) = value {
                        collector.role(&value, role, &bare);
                        if matches!(bare.as_str(), "-o" | "+o" | "-O" | "+O")
                            && !value.known().is_some_and(|name| listed(HARMLESS, name))
                        {
                            collector.doubt(|program| format!("{program} {bare} changes what commands mean"), &bare);
                        }
                    }
                }
            }
        }
    }
    call.operands = words.get(at..).unwrap_or_default().to_vec();
    call
}

fn form<'t>(table: &'t Table, name: &str) -> Option<&'t OptionForm> {
    // `+x` switches off what `-x` switches on, and takes the same words.
    let minus = name.strip_prefix('+').map(|rest| format!("-{rest}"));
    let wanted = minus.as_deref().unwrap_or(name);
    table.level.index.find(&table.level.options, wanted).map(|(form, _)| form)
}
