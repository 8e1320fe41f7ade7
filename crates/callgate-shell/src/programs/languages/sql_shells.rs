//! The shells around SQL: psql, mysql, sqlite, duckdb.

use super::CodeEffects;
use super::sql::{SqlDialect, judge, statements};
use super::token::Token;
use crate::lists::listed;

/// Commands of psql that only look or change how results are shown.
const PSQL_LOOKS: &str = include_str!("words/psql-looks.txt");

/// The same for sqlite and duckdb.
const SQLITE_LOOKS: &str = include_str!("words/sqlite-looks.txt");

pub(super) fn read(text: &str, dialect: SqlDialect) -> CodeEffects {
    let mut found = CodeEffects::default();
    let Some(statements) = statements(text, dialect) else {
        found.doubt("cannot parse the SQL");
        return found;
    };
    if statements.is_empty() && !text.trim().is_empty() {
        // Another database may run what looks like a comment here, and nobody runs only a comment.
        found.doubt("the SQL contains only a comment, which another database may run");
    }
    for statement in &statements {
        let meta = match statement.split_last() {
            Some((Token::Meta(meta), rest)) => {
                if !rest.is_empty() {
                    judge(rest, dialect, &mut found);
                }
                meta
            }
            _ => {
                match dialect {
                    SqlDialect::Mysql => mysql_statement(statement, &mut found),
                    _ => judge(statement, dialect, &mut found),
                }
                continue;
            }
        };
        match dialect {
            SqlDialect::Psql => psql_meta(meta, &mut found),
            SqlDialect::Mysql => mysql_meta(meta, &mut found),
            _ => dot_command(meta, &mut found),
        }
    }
    found
}

fn psql_meta(meta: &str, found: &mut CodeEffects) {
    let body = meta.trim_start_matches('\\');
    if body.contains('`') || body.contains('\\') {
        return found.doubt("a psql command may run programs");
    }
    if let Some(source) = body.strip_prefix('!') {
        match source.trim() {
            "" => found.doubt("psql starts a shell"),
            source => found.shell.push(source.to_owned()),
        }
        return;
    }
    let mut words = body.split_whitespace();
    let name = words.next().unwrap_or_default();
    let arguments: Vec<&str> = words.collect();
    match name {
        _ if listed(PSQL_LOOKS, name)
            && arguments.iter().all(|argument| !argument.starts_with('|'))
            && (name != "gx" || arguments.is_empty()) => {}
        "g" if arguments.is_empty() => {}
        "o" | "out" | "g" | "gx" | "w" | "write" | "s" => match arguments.as_slice() {
            [] => {}
            [path] if !path.starts_with('|') && !path.contains(['\'', '"', ':', '(']) => {
                found.writes.push((*path).to_owned())
            }
            _ => found.doubt("psql writes to an unknown file"),
        },
        "copy" => psql_copy(&arguments, found),
        _ if name.starts_with('d')
            && name.chars().all(|letter| letter.is_ascii_alphabetic() || matches!(letter, '+' | 'S')) => {}
        _ => found.doubt(format!("unknown psql command \\{name}")),
    }
}

/// `\copy table from 'file'`, `\copy (query) to file`
fn psql_copy(arguments: &[&str], found: &mut CodeEffects) {
    let position = arguments.iter().rposition(|word| matches!(word.to_ascii_lowercase().as_str(), "to" | "from"));
    let Some((direction, target)) = position.and_then(|at| Some((arguments.get(at)?, arguments.get(at + 1)?))) else {
        return found.doubt("cannot parse a \\copy");
    };
    let path = target.trim_matches('\'');
    let writes = direction.eq_ignore_ascii_case("to");
    match path.to_ascii_lowercase().as_str() {
        "program" => found.doubt("\\copy runs a program"),
        "stdout" | "pstdout" => {}
        "stdin" | "pstdin" => found.sends = true,
        _ if path.contains(['\'', ':', '"']) => found.doubt("\\copy uses an unknown file"),
        _ if writes => found.writes.push(path.to_owned()),
        _ => {
            found.reads.push(path.to_owned());
            found.sends = true;
        }
    }
    let query = arguments.get(..position.unwrap_or_default()).unwrap_or_default().join(" ");
    if query.starts_with('(') {
        match statements(query.trim_start_matches('(').trim_end_matches(')'), SqlDialect::Psql) {
            Some(inner) => inner.iter().for_each(|statement| judge(statement, SqlDialect::Psql, found)),
            None => found.doubt("cannot parse a \\copy"),
        }
    }
}

/// Commands of the mysql shell that need no backslash.
fn mysql_statement(statement: &[Token], found: &mut CodeEffects) {
    match statement.first() {
        Some(Token::Word(word)) => match word.as_str() {
            "SYSTEM" | "SOURCE" | "TEE" | "PAGER" | "EDIT" | "DELIMITER" | "NOPAGER" | "NOTEE" => {
                found.doubt(format!("cannot tell what the mysql command {} does", word.to_lowercase()));
            }
            // Commands of the client end with their line: what follows is another one.
            "EXIT" | "QUIT" | "STATUS" | "CLEAR" | "EGO" | "GO" | "WARNINGS" if statement.len() == 1 => {}
            "USE" | "HELP" if statement.len() <= 2 => {}
            "EXIT" | "QUIT" | "STATUS" | "CLEAR" | "EGO" | "GO" | "WARNINGS" | "USE" | "HELP" => {
                found.doubt(format!("cannot read what follows the mysql command {}", word.to_lowercase()));
            }
            _ => judge(statement, SqlDialect::Mysql, found),
        },
        _ => judge(statement, SqlDialect::Mysql, found),
    }
}

fn mysql_meta(meta: &str, found: &mut CodeEffects) {
    let body = meta.trim_start_matches('\\');
    let mut letters = body.chars();
    match letters.next() {
        Some('!') => match letters.as_str().trim() {
            "" => found.doubt("mysql starts a shell"),
            source => found.shell.push(source.to_owned()),
        },
        Some('G' | 'g' | 'c' | 's' | 'q' | 'h' | '?' | 'W' | 'w' | 'u' | 'r' | 'p' | 'n' | 't') => {
            let rest = letters.as_str().trim();
            // What follows `\G` is SQL again.
            if rest.contains('\\') || rest.split_whitespace().count() > 1 {
                found.doubt("cannot read what follows a mysql command");
            }
        }
        Some('T') => match letters.as_str().trim() {
            "" => found.doubt("mysql writes to an unknown file"),
            path => found.writes.push(path.to_owned()),
        },
        _ => found.doubt("unknown mysql command"),
    }
}

fn dot_command(meta: &str, found: &mut CodeEffects) {
    let words: Vec<&str> = meta.split_whitespace().collect();
    let Some((name, arguments)) = words.split_first() else {
        return;
    };
    if arguments.iter().any(|argument| argument.starts_with('|') || argument.contains(['\'', '"', '\\']))
        && !matches!(*name, ".separator" | ".print" | ".mode" | ".shell" | ".system")
    {
        return found.doubt(format!("cannot parse the command {name}"));
    }
    let opens = matches!(*name, ".output" | ".once" | ".log" | ".open");
    let strange = |argument: &&str| {
        argument.starts_with('-') && !listed("--readonly --new -readonly -new", argument)
            || argument.contains([':', '=']) && *argument != ":memory:"
    };
    if opens && arguments.iter().any(strange) {
        return found.doubt(format!("an option or an address of the command {name}"));
    }
    let path = arguments.iter().rev().find(|argument| !argument.starts_with('-')).map(|path| (*path).to_owned());
    match (*name, path) {
        (name, _) if listed(SQLITE_LOOKS, name) => {}
        (".output" | ".once" | ".log", None) => {}
        (".output" | ".once" | ".log" | ".save" | ".backup" | ".clone" | ".trace" | ".iotrace", Some(path)) => {
            found.writes.push(path)
        }
        (".import", _) => match arguments {
            [options @ .., path, table]
                if !path.starts_with('-')
                    && !table.starts_with('-')
                    && options.iter().all(|option| {
                        listed("--csv -csv --ascii -ascii -v --skip -skip", option)
                            || option.bytes().all(|byte| byte.is_ascii_digit())
                    }) =>
            {
                found.reads.push((*path).to_owned());
                found.sends = true;
            }
            _ => found.doubt(".import reads an unknown file"),
        },
        (".restore", Some(path)) => {
            found.reads.push(path);
            found.sends = true;
            found.destroys = true;
        }
        (".open", Some(path)) => {
            found.reads.push(path.clone());
            found.writes.push(path);
        }
        (".shell" | ".system", _) => match meta.split_once(char::is_whitespace) {
            Some((_, source)) => found.shell.push(source.trim().to_owned()),
            None => found.doubt("starts a shell"),
        },
        _ => found.doubt(format!("unknown command {name}")),
    }
}
