//! The text of calls, for regular expressions and for detecting complex shell commands.

use std::borrow::Cow;
use std::path::Path;

use callgate_model::effect::Mark;
use callgate_model::word::Word;
use serde_json::Value;

use crate::JudgeRequest;
use callgate_model::place::Rest;

/// The parameters in which tools take commands.
const COMMAND_KEYS: &[&str] = &["command", "cmd", "script", "argv", "args"];

/// The command of a call as it was written.
pub(crate) fn command(input: &Value) -> Option<Cow<'_, str>> {
    COMMAND_KEYS.iter().find_map(|key| match input.get(key)? {
        Value::String(text) => Some(Cow::Borrowed(text.as_str())),
        Value::Array(items) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Some(Cow::Owned(words.join(" ")))
        }
        _ => None,
    })
}

/// The words of a command in one line, and whether they are all known. A word with special characters is quoted, so
/// that a pattern for `git status` does not match a program of that name.
pub(crate) fn join(words: &[Word]) -> (String, bool) {
    let mut line = String::new();
    let mut known = true;
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        match word {
            Word::Known(text) if is_plain(text) => line.push_str(text),
            Word::Known(text) => {
                line.push('\'');
                line.push_str(text);
                line.push('\'');
            }
            Word::Glob(pattern) => {
                known = false;
                line.push_str(pattern);
            }
            Word::Below { directory: prefix, .. } | Word::Partly { prefix, .. } => {
                known = false;
                line.push_str(prefix);
                line.push('\u{fffc}');
            }
            Word::Unknown { .. } => {
                known = false;
                line.push('\u{fffc}');
            }
        }
    }
    (line, known)
}

fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && !word.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '|' | '&' | '<' | '>'))
}

/// The absolute path as text, and the path relative to the workspace.
pub(crate) fn path_texts(path: &Path, rest: &Rest, workspace: Option<&Path>) -> Vec<String> {
    let mut text = path.to_string_lossy().into_owned();
    if let Rest::Glob(pattern) = rest {
        text.push('/');
        text.push_str(pattern);
    }
    let relative =
        workspace.and_then(|workspace| text.strip_prefix(workspace.to_str()?)?.strip_prefix('/').map(str::to_owned));
    std::iter::once(text).chain(relative).collect()
}

/// Whether a call is more than one simple command with plain words: pipes, lists, redirections, substitutions, wrappers.
pub(crate) fn is_complex(request: &JudgeRequest<'_>) -> bool {
    let parts = &request.description.parts;
    let commands = parts.iter().filter(|part| !part.words.is_empty()).count();
    if commands == 0 {
        return false;
    }
    let by_description = commands > 1
        || parts.iter().any(|part| {
            !part.wrappers.is_empty()
                || part.elsewhere.is_some()
                || part.words.iter().any(|word| word.known().is_none())
                || part.effects.iter().any(|placed| {
                    placed.effect.marks.iter().any(|mark| matches!(mark, Mark::Redirection | Mark::Environment))
                })
        });
    by_description || COMMAND_KEYS.iter().filter_map(|key| request.call.input.get(key)?.as_str()).any(has_operators)
}

/// Whether a command line has operators, expansions or several lines outside of quotes.
fn has_operators(line: &str) -> bool {
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None | Some('"'), '\\') => {
                characters.next();
            }
            (None | Some('"'), '$' | '`') => return true,
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '{' | '}' | '\n') => return true,
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_outside_of_quotes() {
        for (line, complex) in [
            ("ls -la", false),
            ("rg 'a|b' src", false),
            ("rg \"a|b\" src", false),
            ("ls | cat", true),
            ("ls > x", true),
            ("ls && pwd", true),
            ("ls $(pwd)", true),
            ("echo \"$HOME\"", true),
            ("echo '$HOME'", false),
            ("echo \\$HOME", false),
            ("ls\npwd", true),
            ("echo 'open", true),
        ] {
            assert_eq!(has_operators(line), complex, "{line}");
        }
    }

    #[test]
    fn words_that_do_not_stand_alone_are_quoted() {
        let words = [Word::Known("git status".into()), Word::Known("x".into())];
        assert_eq!(join(&words), ("'git status' x".to_owned(), true));
    }
}
