//! Code for the mongo shell: calls of a known set of methods.

use super::CodeEffects;
use crate::cursor::Cursor;
use crate::lists::listed;

const READS: &str = include_str!("words/mongo-reads.txt");

const WRITES: &str = include_str!("words/mongo-writes.txt");

const DESTROYS: &str = include_str!("words/mongo-destroys.txt");

/// Names of objects, and constants.
const NAMES: &str = "db rs sh JSON true false null undefined new admin local config Infinity NaN";

pub(super) fn read(code: &str) -> CodeEffects {
    let mut found = CodeEffects::default();
    let is_shell_command = |line: &&str| {
        let mut words = line.split_whitespace();
        matches!(
            (words.next(), words.next(), words.next()),
            (Some("show" | "use"), Some(_), None) | (Some("exit" | "quit" | "help"), None, None)
        )
    };
    // An expression may span several lines.
    let rest: Vec<&str> = code.lines().filter(|line| !is_shell_command(line)).collect();
    if expression(&rest.join("\n"), &mut found).is_none() {
        found.doubt("cannot tell what the mongo shell code does");
    }
    found
}

fn expression(line: &str, found: &mut CodeEffects) -> Option<()> {
    let mut cursor = Cursor::new(line);
    let mut before = ' ';
    while let Some(character) = cursor.peek() {
        match character {
            '"' | '\'' => {
                let text = cursor.quoted()?;
                // An escape could hide an operator.
                if text.contains('\\') {
                    return None;
                }
                operator(&text, found)?;
                before = '"';
            }
            _ if character.is_ascii_alphabetic() || matches!(character, '_' | '$') => {
                let name = cursor.take_while(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '$'));
                let calls = cursor.at_call();
                let is_key = cursor.peek() == Some(':');
                operator(&name, found)?;
                if calls {
                    if listed(DESTROYS, &name) {
                        found.destroys = true;
                    } else if listed(WRITES, &name) {
                        found.sends = true;
                    } else if !listed(READS, &name) {
                        return None;
                    }
                // `db.system.users` holds the hashes of passwords.
                } else if before == '.' && matches!(name.as_str(), "constructor" | "prototype" | "system")
                    || !is_key && before != '.' && !listed(NAMES, &name)
                {
                    return None;
                }
                before = 'a';
            }
            '/' => return None,
            // The value at an index could be a function.
            ']' => {
                cursor.next();
                if cursor.at_call() {
                    return None;
                }
                before = ']';
            }
            '.' | '(' | ')' | '{' | '}' | '[' | ',' | ':' | ';' | ' ' | '\t' | '-' | '+' | '0'..='9' => {
                cursor.next();
                if character == ')' && cursor.at_call() {
                    return None;
                }
                if !character.is_whitespace() {
                    before = character;
                }
            }
            _ => return None,
        }
    }
    Some(())
}

/// Operators of queries and pipelines that do more than look.
fn operator(name: &str, found: &mut CodeEffects) -> Option<()> {
    match name {
        "$out" | "$merge" => found.destroys = true,
        // `showCredentials` shows the hashes of passwords; the others run code.
        "showCredentials" | "$function" | "$where" | "$accumulator" | "mapReduce" | "mapreduce" | "eval" | "$eval" => {
            return None;
        }
        _ => {}
    }
    Some(())
}
