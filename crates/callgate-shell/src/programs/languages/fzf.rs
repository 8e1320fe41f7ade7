//! Key bindings of fzf: `key:action+action(argument),…`. Some actions run commands.

use super::CodeEffects;
use crate::lists::listed;

/// Actions whose argument is a command.
const COMMANDS: &str = "execute execute-silent execute-multi become reload reload-sync preview change-preview";

/// Actions whose argument is only shown, searched for, or the name of a key.
const TEXTS: &str = "print put pos search rebind unbind toggle-bind trigger show-preview offset-up offset-down jump";

/// The placeholder for a chosen line: one unknown shell word.
const CHOSEN: &str = "\"$callgate_chosen_line\"";

pub(super) fn read(text: &str) -> CodeEffects {
    let mut found = CodeEffects::default();
    let mut rest = text;
    while !rest.is_empty() {
        match binding(rest, &mut found) {
            Some(after) => rest = after,
            None => {
                found.doubt("the key bindings of fzf may run commands");
                break;
            }
        }
    }
    found
}

/// Reads one key with its actions. Returns the rest of the text.
fn binding<'t>(text: &'t str, found: &mut CodeEffects) -> Option<&'t str> {
    // A key may be a colon or a comma itself.
    let key_end = text.char_indices().skip(1).find(|(_, character)| *character == ':').map(|(at, _)| at)?;
    let mut rest = text.get(key_end.checked_add(1)?..)?;
    loop {
        rest = action(rest, found)?;
        match rest.chars().next() {
            None => return Some(""),
            Some('+') => rest = rest.get(1..)?,
            Some(',') => return rest.get(1..),
            Some(_) => return None,
        }
    }
}

fn action<'t>(text: &'t str, found: &mut CodeEffects) -> Option<&'t str> {
    let is_name = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    let (name, rest) = text.split_at(text.find(|character| !is_name(character)).unwrap_or(text.len()));
    if name.is_empty() {
        return None;
    }
    let (argument, rest) = match rest.chars().next() {
        None | Some('+' | ',') => return Some(rest),
        Some(':') => (rest.get(1..)?, ""),
        Some(open) => {
            let close = match open {
                '(' => ')',
                '[' => ']',
                '{' => '}',
                '<' => '>',
                other if other.is_ascii_punctuation() => other,
                _ => return None,
            };
            let body = rest.get(open.len_utf8()..)?;
            let ends = |at: &usize| {
                matches!(body.get(at.saturating_add(1)..).and_then(|rest| rest.chars().next()), None | Some('+' | ','))
            };
            let end = body.match_indices(close).map(|(at, _)| at).find(ends)?;
            (body.get(..end)?, body.get(end.checked_add(1)?..)?)
        }
    };
    if listed(COMMANDS, name) || name.starts_with("transform") || name.starts_with("bg-transform") {
        found.shell.push(command(argument)?);
    } else if !(listed(TEXTS, name) || name.starts_with("change-")) {
        return None;
    }
    Some(rest)
}

/// Puts a placeholder into a command. fzf quotes the chosen line itself, so quotes around it would end the quoting.
fn command(argument: &str) -> Option<String> {
    if !argument.contains('{') {
        return Some(argument.to_owned());
    }
    if argument.contains(['\'', '"', '`', '$']) {
        return None;
    }
    let mut command = String::new();
    let mut rest = argument;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}')?;
        // Shell braces contain blanks or commas; `{+}` may be many words, `{f}` is a file.
        inside.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'q' | b'n' | b'.' | b'-')).then_some(())?;
        command.push_str(before);
        command.push_str(CHOSEN);
        rest = after;
    }
    command.push_str(rest);
    Some(command)
}
