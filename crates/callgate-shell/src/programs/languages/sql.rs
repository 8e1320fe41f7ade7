//! SQL statements: what they read, change and destroy.

use super::CodeEffects;
use super::duckdb;
use super::sql_functions::{Calling, calling};
use super::token::Token::{self, Meta, Name, Number, Other, Text, Word};
use crate::cursor::Cursor;
use crate::lists::listed;

/// The SQL shells that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqlDialect {
    Generic,
    Psql,
    Mysql,
    Sqlite,
    Duckdb,
}

/// Splits SQL into statements; `None` where dialects disagree.
pub(super) fn statements(text: &str, dialect: SqlDialect) -> Option<Vec<Vec<Token>>> {
    let mut cursor = Cursor::new(text);
    let mut statements: Vec<Vec<Token>> = vec![Vec::new()];
    let mut line_start = true;
    while let Some(character) = cursor.peek() {
        let starts_line = std::mem::replace(&mut line_start, false);
        let current = statements.last_mut()?;
        match character {
            '\n' => {
                cursor.next();
                line_start = true;
            }
            _ if character.is_whitespace() => {
                cursor.next();
                line_start = starts_line;
            }
            '.' if starts_line && current.is_empty() && matches!(dialect, SqlDialect::Sqlite | SqlDialect::Duckdb) => {
                current.push(Meta(cursor.line()));
                statements.push(Vec::new());
                line_start = true;
            }
            // A command of an unknown SQL shell.
            '\\' if !matches!(dialect, SqlDialect::Psql | SqlDialect::Mysql) => return None,
            '\\' => {
                current.push(Meta(cursor.line()));
                statements.push(Vec::new());
                line_start = true;
            }
            ';' => {
                cursor.next();
                statements.push(Vec::new());
            }
            '-' if cursor.ahead(1) == Some('-') => {
                let spaced = cursor.ahead(2).is_none_or(char::is_whitespace);
                if dialect == SqlDialect::Mysql && !spaced {
                    return None;
                }
                cursor.take_while(|next| next != '\n');
            }
            '#' if dialect == SqlDialect::Mysql => {
                cursor.take_while(|next| next != '\n');
            }
            '/' if cursor.ahead(1) == Some('*') => comment(&mut cursor)?,
            '\'' => current.push(Text(quoted(&mut cursor, '\'')?)),
            '"' if dialect == SqlDialect::Mysql => current.push(Text(quoted(&mut cursor, '"')?)),
            '"' | '`' => current.push(Name(quoted(&mut cursor, character)?)),
            '$' if cursor.ahead(1).is_some_and(|next| next == '$' || next.is_alphabetic() || next == '_') => {
                current.push(Text(dollar_quoted(&mut cursor)?));
            }
            _ if character.is_ascii_digit() => {
                cursor.take_while(|next| next.is_ascii_alphanumeric() || next == '.');
                current.push(Number);
            }
            _ if character.is_alphabetic() || character == '_' || character == '@' => {
                let word = cursor.take_while(|next| next.is_alphanumeric() || matches!(next, '_' | '@' | '$' | '#'));
                current.push(Word(word.to_uppercase()));
            }
            _ => {
                cursor.next();
                current.push(Other(character));
            }
        }
    }
    statements.retain(|statement| !statement.is_empty());
    Some(statements)
}

/// Skips a comment. Comments that some databases run or nest are not understood.
fn comment(cursor: &mut Cursor) -> Option<()> {
    cursor.skip(2);
    if matches!(cursor.peek(), Some('!' | '+' | 'M')) {
        return None;
    }
    loop {
        match (cursor.next()?, cursor.peek()) {
            ('*', Some('/')) => {
                cursor.next();
                return Some(());
            }
            ('/', Some('*')) => return None,
            _ => {}
        }
    }
}

/// Reads a quoted text. Whether a backslash escapes its end depends on the database.
fn quoted(cursor: &mut Cursor, quote: char) -> Option<String> {
    cursor.next();
    let mut text = String::new();
    loop {
        match cursor.next()? {
            '\\' if cursor.peek() == Some(quote) => return None,
            '\\' if cursor.peek() == Some('\\') => {
                cursor.next();
                if cursor.peek() == Some(quote) {
                    return None;
                }
                text.push_str("\\\\");
            }
            character if character == quote => {
                if !cursor.take_if(quote) {
                    return Some(text);
                }
                text.push(quote);
            }
            character => text.push(character),
        }
    }
}

fn dollar_quoted(cursor: &mut Cursor) -> Option<String> {
    cursor.next();
    let tag = cursor.take_while(|next| next.is_alphanumeric() || next == '_');
    if !cursor.take_if('$') {
        return None;
    }
    let end = format!("${tag}$");
    let mut text = String::new();
    while !cursor.starts_with(&end) {
        text.push(cursor.next()?);
    }
    cursor.skip(end.chars().count());
    Some(text)
}

/// Whether a statement names a table or a column in which databases keep the passwords of their users.
fn shows_passwords(statement: &[Token]) -> bool {
    const NAMES: &str = "PG_SHADOW PG_AUTHID PG_USER_MAPPING ROLPASSWORD AUTHENTICATION_STRING";
    let name = |token: &Token| match token {
        Word(word) | Name(word) => Some(word.to_uppercase()),
        _ => None,
    };
    let shows = |token: &Token| name(token).is_some_and(|name| listed(NAMES, &name));
    let mysql_users = |three: &[Token]| {
        let [schema, Other('.'), table] = three else { return false };
        name(schema).as_deref() == Some("MYSQL")
            && matches!(name(table).as_deref(), Some("USER" | "GLOBAL_PRIV" | "PASSWORD_HISTORY"))
    };
    let everything = statement.contains(&Other('*'))
        || statement.iter().any(|token| name(token).is_some_and(|name| name.contains("PASSWORD")));
    statement.iter().any(shows) || everything && statement.windows(3).any(mysql_users)
}

/// Adds what one statement does.
pub(super) fn judge(statement: &[Token], dialect: SqlDialect, found: &mut CodeEffects) {
    let local = matches!(dialect, SqlDialect::Sqlite | SqlDialect::Duckdb);
    let has = |wanted: &str| statement.iter().any(|token| matches!(token, Word(word) if word == wanted));
    let has_any = |list: &str| statement.iter().any(|token| matches!(token, Word(word) if listed(list, word)));
    let texts: Vec<&String> = statement
        .iter()
        .filter_map(|token| match token {
            Text(text) => Some(text),
            _ => None,
        })
        .collect();
    let Some(Word(first)) = statement.iter().find(|token| **token != Other('(')) else {
        return found.doubt("cannot parse an SQL statement");
    };
    functions(statement, found);
    if shows_passwords(statement) {
        found.doubt("reads password hashes");
    }
    if dialect == SqlDialect::Duckdb {
        duckdb::judge(statement, found);
    }
    match first.as_str() {
        "SELECT" | "WITH" | "VALUES" | "TABLE" | "EXPLAIN" | "DESCRIBE" | "DESC" | "FROM" => {
            if has("OUTFILE") || has("DUMPFILE") {
                found.doubt("the database server writes a file");
            } else if has("INTO") && !has("INSERT") {
                found.sends = true;
            }
            // EXPLAIN only shows a plan, which changes nothing.
            if first != "EXPLAIN" || has("ANALYZE") || has("ANALYSE") {
                changes_inside(statement, found);
            }
        }
        "SHOW" | "USE" | "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "CHECKPOINT"
        | "DETACH" | "HELP" | "STATUS" | "SUMMARIZE" | "GO" => {
            // Some databases need no semicolon, and allow blocks of code between these words.
            // `SHOW CREATE TABLE t` only shows a definition.
            let shows = matches!(statement, [Word(show), Word(create), ..] if show == "SHOW" && create == "CREATE");
            changes_inside(if shows { statement.get(2..).unwrap_or_default() } else { statement }, found);
            if statement.len() > 6 {
                found.doubt("cannot parse an SQL statement");
            }
        }
        "PRAGMA" => {
            let sets = statement.contains(&Other('='));
            let calls = statement.contains(&Other('('));
            const LOOKS: &str =
                "TABLE_INFO TABLE_XINFO INDEX_LIST INDEX_INFO FOREIGN_KEY_LIST INTEGRITY_CHECK QUICK_CHECK";
            // These change the database without a value.
            const CHANGES: &str = "OPTIMIZE INCREMENTAL_VACUUM WAL_CHECKPOINT";
            if sets || (calls && !has_any(LOOKS)) || has_any(CHANGES) {
                found.sends = true;
            }
            if has_any("TEMP_STORE_DIRECTORY DATA_STORE_DIRECTORY") {
                found.doubt("a pragma names a directory");
            }
        }
        "INSERT" | "REPLACE" | "MERGE" | "UPSERT" | "COMMENT" | "ANALYZE" | "REINDEX" | "REFRESH" | "LOCK"
        | "UNLOCK" | "OPTIMIZE" | "CLUSTER" | "NOTIFY" | "LISTEN" => {
            found.sends = true;
            changes_inside(statement.get(1..).unwrap_or_default(), found);
        }
        "SET" | "RESET" => {
            found.sends = true;
            if has("GLOBAL") || has("PERSIST") {
                found.rights = true;
            }
        }
        "VACUUM" => {
            found.sends = true;
            if has("INTO") {
                match statement {
                    [.., Word(into), Text(path)] if local && into == "INTO" => found.writes.push(path.clone()),
                    _ => found.doubt("VACUUM writes to an unknown file"),
                }
            }
        }
        "UPDATE" => {
            found.sends = true;
            found.destroys |= !has("WHERE");
        }
        "DELETE" | "TRUNCATE" | "DROP" | "PURGE" | "KILL" => found.destroys = true,
        "ALTER" => {
            found.sends = true;
            found.destroys |= has("DROP");
            if has("SYSTEM") {
                found.doubt("changes the settings of the database server");
            }
            found.rights |= has("USER") || has("ROLE");
        }
        "CREATE" => {
            found.sends = true;
            found.rights |= has("USER") || has("ROLE");
            const CODE: &str =
                "FUNCTION PROCEDURE EXTENSION LANGUAGE TRIGGER EVENT SERVER SUBSCRIPTION RULE SECRET MACRO";
            if has_any(CODE) {
                found.doubt("creates code or connections in the database");
            }
            if has("VIRTUAL") {
                found.doubt("a virtual table may reach outside the database");
            }
        }
        "GRANT" | "REVOKE" => {
            found.sends = true;
            found.rights = true;
        }
        "COPY" => copy(statement, local, found),
        "ATTACH" => match attached(statement) {
            Some(path) if local && !path.contains([':', '=']) => {
                found.reads.push(path.clone());
                found.writes.push(path.clone());
            }
            _ => found.doubt("ATTACH opens an unknown database"),
        },
        "LOAD" => match texts.first() {
            Some(path) if has("DATA") && has("LOCAL") => {
                found.reads.push((*path).clone());
                found.sends = true;
            }
            _ => found.doubt("LOAD loads unknown data or code"),
        },
        _ => found.doubt(format!("unknown SQL statement {first}")),
    }
}

/// The file of `ATTACH [DATABASE] [IF NOT EXISTS] 'file' [AS name] [(READ_ONLY)]`, if nothing is computed or converted.
fn attached(statement: &[Token]) -> Option<&String> {
    let at = statement.iter().position(|token| !matches!(token, Word(_)))?;
    let Some(Text(path)) = statement.get(at) else { return None };
    let known = |token: &Token| match token {
        Word(word) => !listed("TYPE SECRET", word),
        Name(_) | Other('(' | ')') => true,
        _ => false,
    };
    statement.get(at.saturating_add(1)..)?.iter().all(known).then_some(path)
}

/// `WITH x AS (DELETE …)`, `SELECT … FOR UPDATE`.
fn changes_inside(statement: &[Token], found: &mut CodeEffects) {
    let mut before = "";
    for (at, token) in statement.iter().enumerate() {
        let Word(word) = token else {
            before = "";
            continue;
        };
        let called = statement.get(at + 1) == Some(&Other('('));
        match word.as_str() {
            "INSERT" | "MERGE" if !called => found.sends = true,
            "UPDATE" if !matches!(before, "FOR" | "KEY" | "DO" | "ON" | "NO") => found.sends = true,
            "DELETE" | "TRUNCATE" | "DROP" if !called && before != "ON" => found.destroys = true,
            "ALTER" | "CREATE" | "GRANT" | "REVOKE" if at > 0 && !called => found.sends = true,
            "BACKUP" | "RESTORE" | "SHUTDOWN" | "RECONFIGURE" if at > 0 => found.doubt("changes the database server"),
            "CALL" | "EXEC" | "EXECUTE" => found.doubt("an SQL statement runs code"),
            _ => {}
        }
        before = word;
    }
}

fn functions(statement: &[Token], found: &mut CodeEffects) {
    let first = statement.first();
    for (at, pair) in statement.windows(2).enumerate() {
        let [token, Other('(')] = pair else {
            continue;
        };
        let name = match token {
            Word(word) => word.clone(),
            Name(name) => name.to_uppercase(),
            _ => continue,
        };
        // `INSERT INTO t (a)`, `CREATE TABLE t (a INT)`, `WITH t (a) AS`
        let before = at.checked_sub(1).and_then(|before| statement.get(before));
        let behind_table = matches!(before, Some(Word(word)) if matches!(word.as_str(), "INTO" | "TABLE" | "EXISTS" | "WITH" | "REFERENCES" | "ON" | "INDEX"));
        let defines = matches!(first, Some(Word(word)) if matches!(word.as_str(), "CREATE" | "ALTER" | "PRAGMA" | "GRANT" | "COPY" | "ATTACH"));
        match calling(&name) {
            Some(Calling::Reaches) => found.doubt(format!("the SQL function {name} reaches outside the database")),
            Some(Calling::Unknown) if !behind_table && !defines => found.sends = true,
            _ => {}
        }
    }
}

/// Words behind the file of a COPY that only say how its lines look.
const COPY_OPTIONS: &str = "WITH FORMAT CSV PARQUET JSON HEADER TRUE FALSE DELIMITER DELIM SEP QUOTE ESCAPE NULL NULLSTR \
                            COMPRESSION CODEC UNCOMPRESSED ZSTD GZIP SNAPPY ARRAY ENCODING DATEFORMAT TIMESTAMPFORMAT";

fn copy(statement: &[Token], local: bool, found: &mut CodeEffects) {
    let mut direction = "";
    let mut depth = 0_usize;
    for (at, pair) in statement.windows(2).enumerate() {
        let [token, next] = pair else { continue };
        match token {
            Other('(') => depth = depth.saturating_add(1),
            Other(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let Word(word) = token else { continue };
        if depth > 0 || !matches!(word.as_str(), "TO" | "FROM") {
            continue;
        }
        let behind = statement.get(at.saturating_add(2)..).unwrap_or_default();
        match next {
            Text(_)
                if behind.iter().any(|token| matches!(token, Word(word) if !listed(COPY_OPTIONS, word)))
                    || behind.contains(&Other('|')) =>
            {
                found.doubt("cannot parse a COPY statement");
            }
            Text(path) if local && word == "TO" => found.writes.push(path.clone()),
            Text(path) if local => {
                found.reads.push(path.clone());
                found.sends = true;
            }
            Text(_) => found.doubt("the database server reads or writes a file"),
            Word(other) if other == "PROGRAM" => found.doubt("the database server runs a program"),
            Word(other) if other == "STDIN" => found.sends = true,
            Word(other) if other == "STDOUT" => {}
            _ => continue,
        }
        direction = word;
    }
    if direction.is_empty() {
        found.doubt("cannot parse a COPY statement");
    }
}
