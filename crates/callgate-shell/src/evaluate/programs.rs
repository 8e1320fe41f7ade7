//! Programs: finding out which one a word names, and asking its table.

use super::simple::Call;
use super::state::{Ends, State, Value};
use super::{Evaluator, opaque, run};
use crate::effect::{Action, CodeOrigin, Effect, Mark};
use crate::environment::{influence, is_harmless};
use crate::lists::listed;
use crate::programs::{Invocation, paths};
use crate::secret_names::looks_for_secrets;
use crate::stream::Stream;
use crate::word::Word;
use std::borrow::Cow;

/// What a word in the place of a program names: a program that a bare name finds, or `None` for some other file.
fn find(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains('/') {
        return Some(Cow::Borrowed(name));
    }
    paths::system_program(&plain(name)).map(|base| Cow::Owned(base.to_owned()))
}

/// A path without doubled slashes, and not by way of `/proc`.
fn plain(name: &str) -> String {
    let mut path = name.to_owned();
    while path.contains("//") {
        path = path.replace("//", "/");
    }
    while let Some(rest) = through_proc(&path) {
        path = rest;
    }
    path
}

/// `/proc/self/root/bin/cat` is `/bin/cat`.
fn through_proc(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/proc/")?;
    let (process, rest) = rest.split_once('/')?;
    let rest = rest.strip_prefix("root/")?;
    let ours = matches!(process, "self" | "thread-self") || process.bytes().all(|byte| byte.is_ascii_digit());
    ours.then(|| format!("/{rest}"))
}

/// Whether of an environment only the names are shown, or the lines that contain a certain plain word.
fn picks_names(program: &str, words: &[Word]) -> bool {
    let words: Option<Vec<&str>> = words.iter().skip(1).map(Word::known).collect();
    let Some(words) = words else { return false };
    if program == "cut" {
        return words == ["-d=", "-f1"];
    }
    let harmless = |option: &&str| {
        option.strip_prefix('-').is_some_and(|letters| letters.chars().all(|letter| "EFinow".contains(letter)))
    };
    let pattern = words.iter().find(|word| !harmless(word));
    let plain = |pattern: &&str| {
        let letters = pattern.chars().filter(char::is_ascii_alphabetic).count();
        letters > 2 && pattern.chars().all(|letter| letter.is_ascii_alphanumeric() || "_^=".contains(letter))
    };
    listed("grep egrep fgrep rg", program) && pattern.is_some_and(plain) && pattern == words.last()
}

/// Programs that do not look at their environment; shells have them built in.
const HEEDLESS: &str = "echo printf test [ true false : pwd sleep yes";

impl Evaluator<'_> {
    /// Doubts for the variables that this call or an earlier command put into the environment of a program.
    fn environment_doubts(&mut self, program: &str, call: &Call, state: &State) {
        if call.assignments.is_empty() && state.variables.is_empty() || listed(HEEDLESS, program) {
            return;
        }
        let programs = self.context.programs;
        let heeds = |name: &str| programs.heeds(program, name);
        let set = call.assignments.iter().map(|(name, word)| (name.as_str(), word.known()));
        let kept = state.variables.iter().filter(|(_, variable)| variable.value != Value::Unset);
        // What was exported before this command stays so: a name that the program is known to heed may be one of these.
        let kept = kept.filter(|(name, variable)| variable.exported || heeds(name));
        let kept = kept.map(|(name, variable)| (&**name, variable.value.known()));
        let doubtful = set.chain(kept).filter(|(name, value)| !is_harmless(name, *value));
        let doubts: Vec<Effect> = doubtful
            .filter(|(name, value)| influence(name, *value).is_none() && !programs.ignores(program, name))
            .map(|(name, _)| opaque(&format!("sets {name}, which {program} may heed"), "environment"))
            .collect();
        for doubt in doubts {
            self.add(call.slot, doubt.marked(Mark::Environment));
        }
    }

    /// A program in each of the directories this may be.
    pub fn program(&mut self, name: &str, call: &Call, state: State) -> (Ends, Stream) {
        let bare = match find(name) {
            Some(bare) => bare,
            None => {
                let path = plain(name);
                let loader = self.context.programs.loader(&path).map(str::to_owned);
                let because = if loader.is_some() { "the dynamic loader" } else { "a file named by its path" };
                self.add(call.slot, run(name, CodeOrigin::File, because));
                let Some(loader) = loader else {
                    self.add(call.slot, opaque(&format!("what {name} does is not known"), because));
                    return (Ends::Either(state), Stream::Unknown);
                };
                Cow::Owned(loader)
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
        self.environment_doubts(&bare, call, &state);
        let mut words = Cow::Borrowed(call.words);
        if bare != name
            && let Some(first) = words.to_mut().first_mut()
        {
            *first = Word::Known(bare.to_string());
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
            let effects = reading.effects;
            let slot = if place == 0 {
                if state.directories.len() > 1 {
                    first_effects.clone_from(&effects);
                }
                call.slot
            } else if effects == first_effects
                && reading.nested.is_empty()
                && reading.loads.is_empty()
                && reading.git.is_empty()
            {
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
                entry.loads = reading.loads;
                entry.git = reading.git;
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
            let mut output = match reading.stdout {
                // Whatever form it has now, what comes out may still be the environment.
                Stream::Environment | Stream::Data | Stream::Unknown if *call.stdin == Stream::Environment => {
                    if picks_names(&bare, call.words) {
                        Stream::Data
                    } else {
                        Stream::Environment
                    }
                }
                other => other,
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
}
