//! `cd`, `pushd`, `popd`: the working directory.

use super::Evaluator;
use super::simple::Call;
use super::state::{Ends, State, Value};
use crate::effect::Effect;
use crate::stream::Stream;
use crate::word::Word;
use callgate_model::lexical::{absolute, fold};
use std::path::Path;
use std::sync::Arc;

/// Removes `.` and `..` as `cd` does.
fn folded(path: &str) -> Arc<str> {
    Arc::from(fold(Path::new(path)).to_string_lossy())
}

impl Evaluator<'_> {
    /// Evaluates `cd` and `pushd`.
    pub fn change_directory(&mut self, call: &Call, state: State) -> (Ends, Stream) {
        let pushes = call.words.first().and_then(Word::known) == Some("pushd");
        let mut operands = Vec::new();
        let mut physical = false;
        let mut understood = true;
        let mut options = true;
        for word in call.words.iter().skip(1) {
            match word.known() {
                Some("--") if options => options = false,
                Some("-P" | "-e" | "-Pe") if options => physical = true,
                Some("-L" | "-@") if options => {}
                Some(other) if options && other.len() > 1 && other.starts_with(['-', '+']) => understood = false,
                _ => operands.push(word),
            }
        }
        let target = match operands.as_slice() {
            [] if pushes => None,
            [] => match self.lookup("HOME", &state) {
                Value::Text(home) => Some(vec![Some(home)]),
                _ => None,
            },
            [Word::Known(path)] if path == "-" => Some(vec![state.previous.clone()]),
            [Word::Known(path)] => self.destinations(path, physical, &state),
            _ => None,
        };
        let target = match target {
            Some(target) if understood => target,
            _ => vec![None],
        };
        let mut arrived = state.clone();
        if pushes {
            arrived.stack.push(Arc::clone(&state.directories));
        }
        let certain = self.is_taken_to_succeed(&target);
        arrived.go(target);
        let failed = if certain { state.unreachable() } else { state };
        let prints = pushes || operands.iter().any(|word| word.known() == Some("-"));
        (Ends::Split(arrived, failed), if prints { Stream::Unknown } else { Stream::Text(String::new()) })
    }

    /// Whether entering these directories is assumed to succeed. Not if an earlier command may have changed which directories
    /// exist.
    fn is_taken_to_succeed(&mut self, target: &[Option<Arc<str>>]) -> bool {
        let Some(entered) = &mut self.entered else {
            return false;
        };
        if target.contains(&None)
            || self.commands.iter().flat_map(|command| &command.effects).any(Effect::may_change_names)
        {
            return false;
        }
        entered.extend(target.iter().flatten().map(|directory| directory.to_string()));
        true
    }

    fn destinations(&self, path: &str, physical: bool, state: &State) -> Option<Vec<Option<Arc<str>>>> {
        if path.is_empty() {
            return Some(state.directories.to_vec());
        }
        let searched = !path.starts_with(['/', '.'])
            && (state.variables.contains_key("CDPATH") || self.context.variables.contains_key("CDPATH"));
        if searched {
            return None;
        }
        let resolve = |directory: &Option<Arc<str>>| {
            if directory.is_none() && !path.starts_with('/') {
                return None;
            }
            let whole = absolute(directory.as_deref(), path);
            // With `-P`, `..` follows symlinks; otherwise bash folds it by the text.
            let known = !physical || !whole.contains("..");
            known.then(|| folded(&whole))
        };
        Some(state.directories.iter().map(resolve).collect())
    }

    pub fn pop_directory(&mut self, call: &Call, state: State) -> (Ends, Stream) {
        let mut arrived = state.clone();
        let target = match (call.words.len(), arrived.stack.pop()) {
            (1, Some(directories)) => directories.to_vec(),
            _ => vec![None],
        };
        arrived.go(target);
        (Ends::Split(arrived, state), Stream::Unknown)
    }
}
