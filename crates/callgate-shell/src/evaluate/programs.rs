//! Programs: finding out which one a word names, and asking its table.

use super::losses::copies_nothing;
use super::simple::Call;
use super::state::{Ends, State};
use super::{Evaluator, opaque, run};
use crate::effect::{Action, CodeOrigin, Effect, Mark};
use crate::programs::{Invocation, Nested, NestedBody};
use crate::secret_names::looks_for_secrets;
use crate::stream::Stream;
use crate::word::Word;
use std::borrow::Cow;

/// Where programs live that a bare name would find as well.
const SYSTEM_DIRECTORIES: [&str; 7] =
    ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/usr/local/sbin/", "/opt/homebrew/bin/"];

/// Builtins without effect, should there be no table for them.
const HARMLESS: [&str; 17] = [
    ":", "true", "false", "wait", "jobs", "fg", "bg", "disown", "times", "type", "pwd", "dirs", "umask", "ulimit",
    "help", "test", "[",
];

/// What a word in the place of a program names.
enum Found<'a> {
    /// A program that a bare name finds.
    Bare(Cow<'a, str>),
    /// The dynamic loader: the program it loads is in its arguments.
    Loader,
    /// Some file.
    File,
}

fn find(name: &str) -> Found<'_> {
    if !name.contains('/') {
        return Found::Bare(Cow::Borrowed(name));
    }
    let mut path = name.to_owned();
    while path.contains("//") {
        path = path.replace("//", "/");
    }
    while let Some(rest) = through_proc(&path) {
        path = rest;
    }
    let base = path.rsplit('/').next().unwrap_or("");
    if path.starts_with('/') && is_loader(base) {
        return Found::Loader;
    }
    let system = SYSTEM_DIRECTORIES.iter().any(|directory| path.strip_prefix(directory) == Some(base));
    if system && !base.is_empty() { Found::Bare(Cow::Owned(base.to_owned())) } else { Found::File }
}

/// `/proc/self/root/bin/cat` is `/bin/cat`.
fn through_proc(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/proc/")?;
    let (process, rest) = rest.split_once('/')?;
    let rest = rest.strip_prefix("root/")?;
    let ours = matches!(process, "self" | "thread-self") || process.bytes().all(|byte| byte.is_ascii_digit());
    ours.then(|| format!("/{rest}"))
}

fn is_loader(base: &str) -> bool {
    base == "ld.so" || base.starts_with("ld-") && base.contains(".so")
}

/// `ps e`, `ps auxe`, `ps -E`. An unknown word may be a number as well as letters, and is taken for one.
fn shows_environments(words: &[Word]) -> bool {
    let letters = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let bundle = words.get(1).and_then(Word::known).is_some_and(|word| letters(word) && word.contains('e'));
    bundle
        || words.iter().skip(2).any(|word| word.known() == Some("e"))
        || words.iter().any(|word| word.known() == Some("-E"))
}

impl Evaluator<'_> {
    /// A program in each of the directories this may be.
    pub fn program(&mut self, name: &str, call: &Call, state: State) -> (Ends, Stream) {
        let bare = match find(name) {
            Found::Bare(bare) => bare,
            Found::Loader => {
                self.loader(name, call, &state);
                return (Ends::Either(state), Stream::Unknown);
            }
            Found::File => {
                self.add(call.slot, run(name, CodeOrigin::File, "a file named by its path"));
                self.add(call.slot, opaque(&format!("what {name} does is not known"), "a file named by its path"));
                return (Ends::Either(state), Stream::Unknown);
            }
        };
        let moved = state.path_changed || call.assignments.iter().any(|(name, _)| name == "PATH");
        if moved && !name.contains('/') {
            let mut effect = opaque(&format!("PATH was changed: `{name}` may be another program"), "environment");
            effect.marks.push(Mark::Environment);
            self.add(call.slot, effect);
        }
        if state.swayed {
            let mut effect = opaque("a variable that was set changes what programs run", "environment");
            effect.marks.push(Mark::Environment);
            self.add(call.slot, effect);
        }
        if matches!(bare.as_ref(), "busybox" | "toybox") && self.applet(&bare, call, &state) {
            return (Ends::Either(state), Stream::Unknown);
        }
        let mut words = Cow::Borrowed(call.words);
        if bare != name
            && let Some(first) = words.to_mut().first_mut()
        {
            *first = Word::Known(bare.to_string());
        }
        if bare == "ps" && shows_environments(call.words) {
            self.add(call.slot, opaque("the environment of other processes is shown", "ps"));
        }
        if copies_nothing(call.words, call.stdin) {
            self.add(call.slot, opaque("what is in the file is lost", "nothing is copied over it"));
        }
        let mut stdout: Option<Stream> = None;
        let mut first_effects = Vec::new();
        for (place, directory) in state.directories.iter().enumerate() {
            let invocation = Invocation {
                words: &words,
                directory: directory.as_deref(),
                home: self.context.home,
                stdin: call.stdin,
            };
            let reading = self.context.programs.read(&invocation);
            let unknown_builtin = reading.table.is_none() && HARMLESS.contains(&bare.as_ref());
            let effects =
                if unknown_builtin { vec![run(&bare, CodeOrigin::Known, "builtin")] } else { reading.effects };
            let slot = if place == 0 {
                if state.directories.len() > 1 {
                    first_effects.clone_from(&effects);
                }
                call.slot
            } else if effects == first_effects && reading.nested.is_empty() {
                continue;
            } else {
                let slot = self.reserve(directory.as_deref(), call.span);
                if let Some(entry) = self.commands.get_mut(slot) {
                    entry.words = call.words.to_vec();
                    entry.assignments = call.assignments.to_vec();
                }
                slot
            };
            if let Some(entry) = self.commands.get_mut(slot) {
                entry.table = reading.table;
                if entry.directory.as_deref() != directory.as_deref() {
                    entry.directory = directory.as_deref().map(str::to_owned);
                }
            }
            self.add_all(slot, effects);
            if matches!(call.stdin, Stream::Environment)
                && call.words.iter().skip(1).filter_map(Word::known).any(looks_for_secrets)
            {
                self.add(slot, opaque("this looks for secrets in the environment", "standard input"));
            }
            let keeps = |effect: &Effect| matches!(effect.action, Action::Write | Action::Send | Action::Connect);
            if matches!(call.stdin, Stream::Environment)
                && self.commands.get(slot).is_some_and(|entry| entry.effects.iter().any(keeps))
            {
                self.add(slot, opaque("the environment, with the secrets in it, goes somewhere", "standard input"));
            }
            let mut output = match bare.as_ref() {
                "env" | "printenv" if reading.nested.is_empty() => Stream::Environment,
                _ => reading.stdout,
            };
            for nested in reading.nested {
                let here = Call { slot, ..*call };
                let printed = self.nested(&bare, &nested, &here, directory.as_deref(), &state);
                if matches!(output, Stream::Unknown | Stream::Data) {
                    output = match printed {
                        Stream::Text(_) => Stream::Data,
                        other => other,
                    };
                }
            }
            stdout = match stdout {
                Some(earlier) if earlier != output => Some(Stream::Unknown),
                _ => Some(output),
            };
        }
        (Ends::Either(state), stdout.unwrap_or(Stream::Unknown))
    }

    /// `ld-linux.so [options] program …`
    fn loader(&mut self, name: &str, call: &Call, state: &State) {
        self.add(call.slot, run(name, CodeOrigin::File, "the dynamic loader"));
        let mut rest = call.words.get(1..).unwrap_or(&[]);
        while let Some(Word::Known(option)) = rest.first() {
            let takes = match option.as_str() {
                "--argv0" => 2,
                "--inhibit-cache" | "--verify" | "--list" => 1,
                other if other.starts_with('-') => {
                    self.add(call.slot, opaque("the dynamic loader may load other code", "the dynamic loader"));
                    match other {
                        "--library-path" | "--preload" | "--audit" | "--inhibit-rpath" | "--glibc-hwcaps-prepend" => 2,
                        _ => 1,
                    }
                }
                _ => break,
            };
            rest = rest.get(takes..).unwrap_or(&[]);
        }
        self.wrapped(name, rest, call, state);
    }

    /// `busybox cat …`. Whether the words name an applet.
    fn applet(&mut self, name: &str, call: &Call, state: &State) -> bool {
        let rest = call.words.get(1..).unwrap_or(&[]);
        let named =
            matches!(rest.first(), Some(Word::Known(applet)) if !applet.starts_with('-') && !applet.contains('/'));
        if named {
            self.add(call.slot, run(name, CodeOrigin::Known, "a box of programs"));
            self.wrapped(name, rest, call, state);
        }
        named
    }

    fn wrapped(&mut self, name: &str, words: &[Word], call: &Call, state: &State) {
        if words.is_empty() {
            return;
        }
        let nested = Nested {
            body: NestedBody::Words(words.to_vec()),
            environment: Vec::new(),
            directory: None,
            elsewhere: None,
            stdin: None,
        };
        self.nested(name, &nested, call, state.directory(), state);
    }
}
