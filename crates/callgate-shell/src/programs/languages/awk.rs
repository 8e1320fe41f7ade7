//! `awk` programs: pipes, `system`, `getline` and redirections.

use super::CodeEffects;
use super::token::Token::{self, Newline, Number, Operator, Other, Pattern, Text, Word};
use crate::cursor::Cursor;

pub(super) fn read(program: &str) -> CodeEffects {
    let mut found = CodeEffects::default();
    match tokens(program) {
        Some(tokens) => judge(&tokens, &mut found),
        None => found.doubt("cannot parse the awk program"),
    }
    found
}

const OPERATORS: [&str; 16] =
    ["|&", "||", "&&", ">>", ">=", "<=", "==", "!=", "++", "--", "+=", "-=", "*=", "/=", "%=", "**"];

fn tokens(program: &str) -> Option<Vec<Token>> {
    let mut cursor = Cursor::new(program);
    let mut found: Vec<Token> = Vec::new();
    while let Some(character) = cursor.peek() {
        match character {
            ' ' | '\t' | '\r' => cursor.skip(1),
            '\\' => {
                cursor.next();
                cursor.take_while(|next| matches!(next, ' ' | '\t' | '\r'));
                cursor.take_if('\n').then_some(())?;
            }
            '\n' => {
                cursor.next();
                // After these, the statement continues.
                let goes_on = matches!(found.last(), Some(Other(',') | Operator("&&" | "||")));
                if !goes_on {
                    found.push(Newline);
                }
            }
            '#' => {
                cursor.take_while(|next| next != '\n');
            }
            '"' => {
                found.push(Text(cursor.quoted()?));
            }
            // After `if (…)` a pattern may start; after `(…)` elsewhere a slash divides.
            '/' if found.last() == Some(&Other(')')) && another_slash(&cursor) => {
                return None;
            }
            '/' if pattern_may_start(found.last()) => {
                cursor.next();
                pattern(&mut cursor)?;
                found.push(Pattern);
            }
            _ if character.is_ascii_digit()
                || (character == '.' && cursor.ahead(1).is_some_and(|next| next.is_ascii_digit())) =>
            {
                cursor.take_while(|next| next.is_ascii_alphanumeric() || next == '.');
                found.push(Number);
            }
            _ if character.is_ascii_alphabetic() || character == '_' => {
                let name = cursor.take_while(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | ':'));
                found.push(Word(name));
            }
            _ => match OPERATORS.iter().find(|operator| cursor.starts_with(operator)) {
                Some(operator) => {
                    cursor.skip(2);
                    found.push(Operator(operator));
                }
                None => {
                    cursor.next();
                    found.push(Other(character));
                }
            },
        }
    }
    Some(found)
}

/// Whether a slash starts a pattern: after a value it divides.
fn pattern_may_start(before: Option<&Token>) -> bool {
    match before {
        Some(Number | Text(_) | Pattern | Other(')' | ']' | '$')) => false,
        Some(Operator("++" | "--")) => false,
        Some(Word(name)) => {
            matches!(name.as_str(), "print" | "printf" | "return" | "in" | "case" | "getline" | "do" | "else")
        }
        _ => true,
    }
}

fn another_slash(cursor: &Cursor) -> bool {
    let mut ahead = cursor.clone();
    ahead.next();
    ahead.take_while(|next| !matches!(next, '/' | '\n'));
    ahead.peek() == Some('/')
}

fn pattern(cursor: &mut Cursor) -> Option<()> {
    let mut in_class = false;
    loop {
        match cursor.next()? {
            '\\' => {
                cursor.next()?;
            }
            '[' if !in_class => {
                in_class = true;
                cursor.take_if('^');
                cursor.take_if(']');
            }
            ']' => in_class = false,
            '/' if !in_class => return Some(()),
            '\n' => return None,
            _ => {}
        }
    }
}

fn judge(tokens: &[Token], found: &mut CodeEffects) {
    let mut depth: usize = 0;
    // The depth of a `print` whose redirection may follow.
    let mut printing: Option<usize> = None;
    for (at, token) in tokens.iter().enumerate() {
        let after = tokens.get(at + 1..).unwrap_or_default();
        match token {
            Other('(' | '[') => depth = depth.saturating_add(1),
            Other(')' | ']') => depth = depth.saturating_sub(1),
            Other(';' | '{' | '}') | Newline => printing = None,
            Other('@') => found.doubt("awk loads other code or calls functions by name"),
            Word(name) => match name.as_str() {
                "print" | "printf" => printing = Some(depth),
                "system" => match after {
                    [Other('('), Text(source), Other(')'), ..] => run(source, found),
                    _ => found.doubt("awk runs a command"),
                },
                "getline" => getline(after, found),
                "ARGV" | "ARGC" => found.doubt("awk changes which files it reads"),
                "ENVIRON" => found.doubt("awk reads its environment"),
                "extension" | "SYMTAB" | "FUNCTAB" => found.doubt("awk uses an extension or its symbol table"),
                _ => {}
            },
            Operator(">>") => file(after, found, Direction::Write),
            Other('>') if printing.is_some_and(|base| base == depth) => file(after, found, Direction::Write),
            Operator("|&") => found.doubt("awk talks to a command or a host"),
            Other('|') => match (before_two(tokens, at), after) {
                (_, [Text(source), rest @ ..]) if ends_statement(rest) => run(source, found),
                ((Some(Text(source)), before), [Word(name), ..]) if name == "getline" && starts_expression(before) => {
                    run(source, found);
                }
                _ => found.doubt("awk runs a command"),
            },
            _ => {}
        }
    }
}

fn before_two(tokens: &[Token], at: usize) -> (Option<&Token>, Option<&Token>) {
    (at.checked_sub(1).and_then(|at| tokens.get(at)), at.checked_sub(2).and_then(|at| tokens.get(at)))
}

fn starts_expression(before: Option<&Token>) -> bool {
    matches!(before, None | Some(Newline | Other('{' | '}' | ';' | '(')))
}

fn ends_statement(after: &[Token]) -> bool {
    matches!(after.first(), None | Some(Newline | Other(';' | '}' | ')')))
}

fn run(source: &str, found: &mut CodeEffects) {
    if source.contains('\\') {
        found.doubt("awk runs a command");
    } else {
        found.shell.push(source.to_owned());
    }
}

enum Direction {
    Read,
    Write,
}

/// Reads the file after `>` or `<`, which is known if it is one literal.
fn file(after: &[Token], found: &mut CodeEffects, direction: Direction) {
    match (after, direction) {
        ([Text(path), rest @ ..], direction) if !path.contains('\\') && !path.starts_with("/inet") => match direction {
            Direction::Write if ends_statement(rest) => found.writes.push(path.clone()),
            Direction::Read if !matches!(rest.first(), Some(Text(_) | Word(_) | Other('$'))) => {
                found.reads.push(path.clone());
            }
            _ => found.doubt("awk opens an unknown file"),
        },
        (_, Direction::Write) => found.doubt("awk writes an unknown file"),
        (_, Direction::Read) => found.doubt("awk reads an unknown file"),
    }
}

/// `getline [variable] < file`
fn getline(after: &[Token], found: &mut CodeEffects) {
    let mut rest = after;
    if let [Other('$'), tail @ ..] = rest {
        rest = tail;
    }
    if let [Word(_) | Number, tail @ ..] = rest {
        rest = tail;
    }
    if let [Other('['), tail @ ..] = rest {
        match tail.iter().position(|token| *token == Other(']')) {
            Some(end) => rest = tail.get(end + 1..).unwrap_or_default(),
            None => return found.doubt("cannot parse a `getline` of awk"),
        }
    }
    match rest {
        [Other('<'), tail @ ..] => file(tail, found, Direction::Read),
        [Other('(' | '$' | '['), ..] => found.doubt("cannot parse a `getline` of awk"),
        _ => {}
    }
}
