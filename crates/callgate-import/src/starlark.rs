//! A strict reader for Codex's rule files, which consist of calls with named arguments, texts and lists.
//!
//! Anything else (assignments, loops, functions, expressions) is returned as an unknown statement.

use std::collections::HashSet;

use callgate_install::SettingsNode;

use crate::command::escape_word;

/// A statement of a rule file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    /// `name(key = value, …)`, with its text in one line.
    Call { name: String, arguments: SettingsNode, text: String },
    /// Something else.
    Unknown { text: String },
}

/// The most tokens in a file.
const MAXIMUM_TOKENS: usize = 500_000;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    Symbol(char),
    Newline,
    /// A character that cannot be part of a call.
    Other,
}

/// Reads a file. An error means that it cannot be split into tokens.
pub(crate) fn read(text: &str) -> Result<Vec<Statement>, String> {
    let tokens = tokens(text)?;
    let mut statements = Vec::new();
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        if matches!(first.0, Token::Newline | Token::Symbol(';')) {
            rest = after;
            continue;
        }
        let (statement, length) = statement(rest, text);
        statements.push(statement);
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    Ok(statements)
}

type Placed = (Token, usize, usize);

fn tokens(text: &str) -> Result<Vec<Placed>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut depth = 0_usize;
    while let Some(character) = rest.chars().next() {
        if tokens.len() >= MAXIMUM_TOKENS {
            return Err(format!("the file has more than {MAXIMUM_TOKENS} tokens"));
        }
        let start = text.len().saturating_sub(rest.len());
        let (token, length) = match character {
            '#' => {
                rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
                continue;
            }
            '\n' if depth == 0 => (Token::Newline, 1),
            character if character.is_whitespace() => {
                rest = rest.get(character.len_utf8()..).unwrap_or_default();
                continue;
            }
            '"' | '\'' => string(rest, false).ok_or_else(|| unclosed(text, start))?,
            'r' if rest.starts_with("r\"") || rest.starts_with("r'") => {
                let (token, length) =
                    string(rest.get(1..).unwrap_or_default(), true).ok_or_else(|| unclosed(text, start))?;
                (token, length.saturating_add(1))
            }
            character if character.is_alphabetic() || character == '_' => {
                let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                (Token::Name(rest.get(..length).unwrap_or_default().to_owned()), length)
            }
            '(' | '[' | '{' => {
                depth = depth.saturating_add(1);
                (Token::Symbol(character), 1)
            }
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                (Token::Symbol(character), 1)
            }
            ',' | '=' | ';' => (Token::Symbol(character), 1),
            other => (Token::Other, other.len_utf8()),
        };
        tokens.push((token, start, start.saturating_add(length)));
        rest = rest.get(length..).unwrap_or_default();
    }
    if depth > 0 {
        return Err("a bracket is not closed".to_owned());
    }
    Ok(tokens)
}

fn unclosed(text: &str, at: usize) -> String {
    let line = text.get(..at).unwrap_or_default().matches('\n').count().saturating_add(1);
    format!("the string that starts in line {line} is not closed")
}

/// Reads a quoted text at the start; `None` if it is not closed.
fn string(rest: &str, raw: bool) -> Option<(Token, usize)> {
    let quote = rest.chars().next()?;
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let (open, close) = if rest.starts_with(&triple) { (3, triple) } else { (1, quote.to_string()) };
    let mut text = String::new();
    let mut body = rest.get(open..)?;
    loop {
        if body.starts_with(&close) {
            let length = rest.len().saturating_sub(body.len()).saturating_add(close.len());
            return Some((Token::Text(text), length));
        }
        let character = body.chars().next()?;
        body = body.get(character.len_utf8()..)?;
        match character {
            '\n' if open == 1 => return None,
            '\\' => {
                let escaped = body.chars().next()?;
                body = body.get(escaped.len_utf8()..)?;
                match (raw, escaped) {
                    (true, _) => text.extend(['\\', escaped]),
                    (false, 'n') => text.push('\n'),
                    (false, 't') => text.push('\t'),
                    (false, 'r') => text.push('\r'),
                    (false, '\n') => {}
                    (false, '\\' | '"' | '\'') => text.push(escaped),
                    // An unknown escape.
                    (false, _) => return None,
                }
            }
            other => text.push(other),
        }
    }
}

/// Reads one statement. Returns it with the number of its tokens.
fn statement(tokens: &[Placed], text: &str) -> (Statement, usize) {
    let end = tokens
        .iter()
        .position(|(token, ..)| matches!(token, Token::Newline | Token::Symbol(';')))
        .unwrap_or(tokens.len());
    let line = tokens.get(..end).unwrap_or_default();
    let from = line.first().map_or(0, |(_, start, _)| *start);
    let to = line.last().map_or(from, |(.., end)| *end);
    let shown = text.get(from..to).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let statement = match call(line) {
        Some((name, arguments)) => Statement::Call { name, arguments, text: shown },
        None => Statement::Unknown { text: shown },
    };
    (statement, end)
}

/// Reads a call with named arguments, by way of a JSON object with the same content.
fn call(line: &[Placed]) -> Option<(String, SettingsNode)> {
    let tokens: Vec<&Token> = line.iter().map(|(token, ..)| token).collect();
    let [Token::Name(name), Token::Symbol('('), arguments @ .., Token::Symbol(')')] = tokens.as_slice() else {
        return None;
    };
    let mut json = String::from("{");
    let mut rest = arguments;
    while let [token, after @ ..] = rest {
        rest = after;
        match (token, after) {
            (Token::Name(key), [Token::Symbol('='), after @ ..]) => {
                json.push_str(&format!("\"{key}\":"));
                rest = after;
            }
            (Token::Text(text), _) => json.push_str(&serde_json::Value::from(text.as_str()).to_string()),
            (Token::Symbol(symbol @ ('[' | ']' | ',')), _) => json.push(*symbol),
            _ => return None,
        }
    }
    json.push('}');
    let arguments = SettingsNode::read_json(&json).ok()?;
    let mut seen = HashSet::new();
    arguments.entries().iter().all(|(key, _)| seen.insert(key)).then(|| (name.clone(), arguments.clone()))
}

/// Writes words with alternatives as a pattern on words.
pub(crate) fn word_pattern(pattern: &[Vec<String>]) -> String {
    let word = |alternatives: &Vec<String>| match alternatives.as_slice() {
        [only] => escape_word(only),
        several => format!("{{{}}}", several.iter().map(|word| escape_word(word)).collect::<Vec<_>>().join(",")),
    };
    pattern.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_nothing_else() {
        let read = read(
            "# a comment\nprefix_rule(\n  pattern = [\"git\", ['push', \"re#set\"]], # why\n  decision=\"prompt\",\n)\nx = 1\nprefix_rule(pattern=[\"a\"]); prefix_rule([\"b\"])\nfor x in y:\n  f(x)\n",
        )
        .unwrap();
        let calls: Vec<bool> = read.iter().map(|statement| matches!(statement, Statement::Call { .. })).collect();
        assert_eq!(calls, [true, false, true, false, false, false]);
        let Statement::Call { name, arguments, text } = &read[0] else { panic!("a call") };
        assert_eq!(name, "prefix_rule");
        assert_eq!(arguments.get("decision").and_then(SettingsNode::text), Some("prompt"));
        assert!(!text.contains('\n'));
        let pattern = arguments.get("pattern").unwrap().items();
        assert_eq!(pattern[1].texts().unwrap(), ["push", "re#set"]);
    }

    #[test]
    fn texts() {
        for (source, expected) in [
            (r#"f(a="x\"y")"#, "x\"y"),
            (r"f(a='x\\y')", "x\\y"),
            ("f(a='''x\ny''')", "x\ny"),
            (r#"f(a=r"x\d")"#, "x\\d"),
        ] {
            let Statement::Call { arguments, .. } = &read(source).unwrap()[0] else { panic!("{source}") };
            assert_eq!(arguments.get("a").unwrap().text(), Some(expected), "{source}");
        }
    }

    #[test]
    fn hostile_files_are_errors_or_unknown_statements() {
        for source in ["f(a=\"x", "f(a=[", "f('\\q')", &"[".repeat(100_000)] {
            assert!(read(source).is_err(), "{}", source.chars().take(20).collect::<String>());
        }
        let deep = format!("f(a={}{})", "[".repeat(1000), "]".repeat(1000));
        for source in
            ["f(a=1)", "f(a=b)", "f(a=\"x\" + \"y\")", "f(a=\"x\", a=\"y\")", "f()()", "f(a=\"x\" \"y\")", &deep]
        {
            assert!(
                matches!(read(source).unwrap()[0], Statement::Unknown { .. }),
                "{}",
                source.chars().take(40).collect::<String>()
            );
        }
    }
}
