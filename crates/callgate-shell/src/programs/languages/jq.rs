//! `jq` filters: pure, except for the environment and modules.

use super::CodeEffects;
use crate::cursor::Cursor;

pub(super) fn read(filter: &str) -> CodeEffects {
    let mut found = CodeEffects::default();
    let mut cursor = Cursor::new(filter);
    // Open parentheses, and strings with an open interpolation.
    let mut open: Vec<Open> = Vec::new();
    let mut before = ' ';
    while let Some(character) = cursor.next() {
        match character {
            '"' => string(&mut cursor, &mut open, &mut found),
            '(' => open.push(Open::Parenthesis),
            ')' if open.pop() == Some(Open::Interpolation) => string(&mut cursor, &mut open, &mut found),
            '#' => {
                cursor.line();
            }
            _ if character.is_alphabetic() || character == '_' => {
                let mut name = String::from(character);
                name.push_str(&cursor.take_while(|next| next.is_alphanumeric() || next == '_'));
                let dangerous = matches!(
                    name.as_str(),
                    "env" | "strenv" | "envsubst" | "import" | "include" | "eval" | "system" | "exec" | "ENV"
                ) || name.starts_with("load");
                if dangerous && before != '.' {
                    found.doubt(format!("the jq filter uses {name}"));
                }
                before = 'a';
                continue;
            }
            _ => {}
        }
        before = character;
    }
    found
}

#[derive(PartialEq, Eq)]
enum Open {
    Parenthesis,
    Interpolation,
}

/// The rest of a string; stops at its end or where an interpolation starts.
fn string(cursor: &mut Cursor, open: &mut Vec<Open>, found: &mut CodeEffects) {
    loop {
        match cursor.next() {
            Some('\\') => {
                if cursor.next() == Some('(') {
                    open.push(Open::Interpolation);
                    return;
                }
            }
            Some('"') => return,
            Some(_) => {}
            None => {
                found.doubt("unclosed string in the jq filter");
                return;
            }
        }
    }
}
