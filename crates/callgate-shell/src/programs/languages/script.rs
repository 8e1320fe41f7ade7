//! One-liners of Node.js, Ruby and PHP that only compute and print.
//!
//! One reader for the three: every name must be on a list, computed values must not be called, and
//! strings with interpolated code are not understood.

use super::CodeEffects;
use crate::cursor::Cursor;
use crate::lists::listed;

pub(super) struct Language {
    name: &'static str,
    /// Names that may be called or used.
    names: &'static str,
    /// Names that may follow a dot.
    attributes: &'static str,
    /// Quotes without interpolation.
    plain_quotes: &'static [char],
    /// Quotes with interpolation, and how it starts.
    code_quotes: &'static [(char, &'static str)],
    variables: Variables,
}

#[derive(PartialEq, Eq)]
enum Variables {
    /// Any name that is declared or a parameter: `const x`, `x =>`.
    Declared,
    /// Parameters of a block, of one letter: `|x|`.
    Block,
    /// Names after a dollar sign.
    Dollar,
}

/// Names that code must not redefine.
const NEVER_DECLARED: &str = include_str!("words/script-never-declared.txt");

pub(super) const NODE: Language = Language {
    name: "node",
    names: include_str!("words/node-names.txt"),
    attributes: include_str!("words/node-attributes.txt"),
    plain_quotes: &['\'', '"'],
    code_quotes: &[('`', "${")],
    variables: Variables::Declared,
};

pub(super) const RUBY: Language = Language {
    name: "ruby",
    names: include_str!("words/ruby-names.txt"),
    attributes: include_str!("words/ruby-attributes.txt"),
    plain_quotes: &['\''],
    code_quotes: &[('"', "#")],
    variables: Variables::Block,
};

pub(super) const PHP: Language = Language {
    name: "php",
    names: include_str!("words/php-names.txt"),
    attributes: "",
    plain_quotes: &['\''],
    code_quotes: &[('"', "{$"), ('"', "${")],
    variables: Variables::Dollar,
};

pub(super) fn read(code: &str, language: &Language) -> CodeEffects {
    let mut found = CodeEffects::default();
    if harmless(code, language, &mut found).is_none() {
        return CodeEffects::unknown(format!("cannot tell what the {} code does", language.name));
    }
    found
}

fn harmless(code: &str, language: &Language, found: &mut CodeEffects) -> Option<()> {
    let mut cursor = Cursor::new(code);
    let mut declared: Vec<String> = Vec::new();
    let mut before = ' ';
    while let Some(character) = cursor.peek() {
        match character {
            _ if language.plain_quotes.contains(&character)
                || language.code_quotes.iter().any(|(quote, _)| *quote == character) =>
            {
                let text = cursor.quoted()?;
                let mut code = language.code_quotes.iter().filter(|(quote, _)| *quote == character);
                if code.any(|(_, start)| text.contains(start)) || before == 'n' && character == '`' {
                    return None;
                }
                // PHP can call a function by its name in a string.
                if cursor.at_call() {
                    return None;
                }
                before = '"';
            }
            '$' if language.variables == Variables::Dollar => {
                cursor.next();
                let name = cursor.name();
                if name.is_empty() || name.starts_with('_') || name == "GLOBALS" || cursor.at_call() {
                    return None;
                }
                before = 'v';
            }
            _ if character.is_ascii_alphabetic() || character == '_' => {
                let name = cursor.name();
                if name == "require" && language.name == "node" {
                    required(&mut cursor, found)?;
                    before = ')';
                    continue;
                }
                // A property name: `{name: value}`.
                if language.name == "node" && matches!(before, '{' | ',') && follows(&cursor, ":") {
                    (!listed(NEVER_DECLARED, &name)).then_some(())?;
                    before = 'n';
                    continue;
                }
                let behind_dot = before == '.' && language.name != "php";
                let declares = match language.variables {
                    Variables::Declared => before == 'd' || follows(&cursor, "=>"),
                    Variables::Block => before == '|' && follows(&cursor, "|") && name.len() == 1,
                    Variables::Dollar => false,
                };
                if !behind_dot && declares {
                    (!listed(NEVER_DECLARED, &name)).then_some(())?;
                    declared.push(name.clone());
                }
                let calls = cursor.at_call();
                // `process` as a value contains the environment.
                if calls && declared.contains(&name) || name == "process" && cursor.peek() != Some('.') {
                    return None;
                }
                let known = if behind_dot {
                    listed(language.attributes, &name)
                } else {
                    listed(language.names, &name) || declared.contains(&name)
                };
                known.then_some(())?;
                before = if matches!(name.as_str(), "const" | "let" | "var") { 'd' } else { 'n' };
            }
            _ if character.is_ascii_digit() => {
                cursor.name();
                before = '0';
            }
            ')' | ']' => {
                cursor.next();
                // Computed values must not be called.
                if cursor.at_call() {
                    return None;
                }
                before = character;
            }
            ' ' | '\t' | '\n' => cursor.skip(1),
            // A member that is computed may be any: only a number behind a value is an index.
            '[' if language.name == "node" && matches!(before, 'n' | '"' | ')' | ']') => {
                cursor.next();
                let index = cursor.take_while(|next| next.is_ascii_digit());
                (!index.is_empty() && cursor.take_if(']') && !cursor.at_call()).then_some(())?;
                before = ']';
            }
            // A slash may start a pattern, a percent sign a text with code, a backtick a command.
            '/' if !matches!(before, '0' | ')' | ']') || language.name != "node" => return None,
            '%' if !matches!(before, '0' | ')' | ']' | 'v') => return None,
            '.' | ',' | ';' | ':' | '(' | '[' | '{' | '}' | '+' | '-' | '*' | '/' | '%' | '=' | '<' | '>' | '!'
            | '?' | '|' => {
                cursor.next();
                before = character;
            }
            '&' if cursor.ahead(1) == Some('&') => {
                cursor.skip(2);
                before = '&';
            }
            _ => return None,
        }
    }
    Some(())
}

fn follows(cursor: &Cursor, text: &str) -> bool {
    let mut ahead = cursor.clone();
    ahead.skip_blanks();
    ahead.starts_with(text)
}

/// `require('./package.json')`, and `require('fs').readFileSync('file')`.
fn required(cursor: &mut Cursor, found: &mut CodeEffects) -> Option<()> {
    let module = argument(cursor)?;
    if module.starts_with(['.', '/']) && module.ends_with(".json") {
        found.reads.push(module);
        return cursor.take_if(')').then_some(());
    }
    if !cursor.take_if(')') {
        return None;
    }
    if matches!(module.as_str(), "os" | "node:os" | "path" | "node:path") {
        return cursor.starts_with(".").then_some(());
    }
    if !matches!(module.as_str(), "fs" | "node:fs") {
        return None;
    }
    let method = ".readFileSync";
    if !cursor.starts_with(method) {
        return None;
    }
    cursor.skip(method.len());
    let path = argument(cursor)?;
    found.reads.push(path);
    cursor.skip_blanks();
    if cursor.take_if(',') {
        cursor.skip_blanks();
        let quote = cursor.next().filter(|quote| matches!(quote, '"' | '\''))?;
        cursor.until(quote)?;
    }
    cursor.take_if(')').then_some(())
}

/// `('text'`, a literal without escapes.
fn argument(cursor: &mut Cursor) -> Option<String> {
    if !cursor.take_if('(') {
        return None;
    }
    cursor.skip_blanks();
    let quote = cursor.next().filter(|quote| matches!(quote, '"' | '\''))?;
    let text = cursor.until(quote)?;
    cursor.skip_blanks();
    (!text.contains('\\') && !text.is_empty()).then_some(text)
}
