//! What DuckDB does beyond other databases: it opens files and addresses that stand in place of a table, and its
//! settings and functions reach them too. Only what a list calls harmless is believed.

use super::CodeEffects;
use super::sql_functions::{Calling, calling};
use super::token::Token::{self, Name, Other, Text, Word};
use crate::lists::listed;

/// Settings and pragmas that neither name a file or a host nor load code.
const SETTINGS: &str = include_str!("words/duckdb-settings.txt");

/// Functions that only compute or look, beside those of other databases.
const LOOKS: &str = include_str!("words/duckdb-looks.txt");

/// How the names of the files end that DuckDB opens in place of a table without quotes.
const EXTENSIONS: &str = include_str!("words/duckdb-extensions.txt");

/// Adds what a statement does to files, settings and other machines.
pub(super) fn judge(statement: &[Token], found: &mut CodeEffects) {
    settings(statement, found);
    names(statement, found);
    functions(statement, found);
    if matches!(statement, [Word(update), Word(extensions), ..] if update == "UPDATE" && extensions == "EXTENSIONS") {
        found.doubt("DuckDB fetches code");
    }
    explained(statement, found);
}

/// `EXPLAIN ANALYZE` runs the statement behind it, which may be any.
fn explained(statement: &[Token], found: &mut CodeEffects) {
    const QUERIES: &str = "SELECT WITH FROM VALUES TABLE DESCRIBE SUMMARIZE SHOW INSERT UPDATE DELETE";
    let [Word(explain), rest @ ..] = statement else { return };
    let query = rest.iter().find(|token| !matches!(token, Other('(')) && **token != Word("ANALYZE".to_owned()));
    if explain == "EXPLAIN" && !matches!(query, Some(Word(word)) if listed(QUERIES, word)) {
        found.doubt("explains an unknown statement");
    }
}

fn settings(statement: &[Token], found: &mut CodeEffects) {
    let mut words = statement.iter();
    if !matches!(words.next(), Some(Word(first)) if matches!(first.as_str(), "SET" | "RESET" | "PRAGMA")) {
        return;
    }
    let name = words.find(|token| !matches!(token, Word(scope) if listed("GLOBAL SESSION LOCAL", scope)));
    if !matches!(name, Some(Word(name)) if listed(SETTINGS, name)) {
        found.doubt("a setting of DuckDB may name files, hosts or code");
    }
}

/// Quoted words that may be paths are read, wherever they stand.
fn names(statement: &[Token], found: &mut CodeEffects) {
    let mut before: Option<&Token> = None;
    for token in statement {
        match (before, token) {
            (Some(Other('.')), Word(name) | Name(name)) if listed(EXTENSIONS, &name.to_uppercase()) => {
                found.doubt("DuckDB opens a file that is named without quotes");
            }
            // Pieces of one text, and texts with escapes.
            (Some(Text(_)), Text(_)) => found.doubt("cannot read a text of DuckDB"),
            (Some(Word(prefix)), Text(text)) if prefix.len() == 1 && text.contains('\\') => {
                found.doubt("cannot read a text of DuckDB");
            }
            _ => {}
        }
        // What a value is compared with is not opened.
        let compared = match before {
            Some(Other(operator)) => matches!(operator, '<' | '>' | '~'),
            Some(Word(word)) => listed("LIKE ILIKE GLOB", word),
            _ => false,
        };
        if let Text(name) | Name(name) = token
            && !compared
            && (name.contains(['.', '/', '\\', ':', '*', '?']) || name.starts_with('~'))
        {
            if name.contains(['*', '?', '[', '{', '=', ':', '\\']) {
                found.doubt("DuckDB may open unknown files or hosts");
            } else if !matches!((statement.first(), before), (Some(Word(copy)), Some(Word(to))) if copy == "COPY" && to == "TO")
            {
                found.reads.push(name.clone());
            }
        }
        before = Some(token);
    }
}

fn functions(statement: &[Token], found: &mut CodeEffects) {
    let begins = |wanted: &str| matches!(statement.first(), Some(Word(first)) if first == wanted);
    let indexes = begins("CREATE") && statement.contains(&Word("INDEX".to_owned()));
    let mut before: Option<&Token> = None;
    for pair in statement.windows(2) {
        let [token, next] = pair else { continue };
        let name = match token {
            Word(name) | Name(name) if *next == Other('(') => name.to_uppercase(),
            _ => {
                before = Some(token);
                continue;
            }
        };
        // `INSERT INTO t (a)`, `CREATE TABLE t (a INT)`, `CREATE INDEX i ON t (a)`, `WITH t (a) AS`, `ATTACH 'f' AS t (READ_ONLY)`
        let is_table = matches!(before, Some(Word(word))
            if listed("INTO REFERENCES WITH RECURSIVE", word)
                || begins("ATTACH") && word == "AS"
                || begins("CREATE") && listed("TABLE EXISTS", word)
                || indexes && word == "ON");
        let harmless = match calling(&name) {
            None => true,
            Some(Calling::Looks) => name != "CURRENT_SETTING",
            _ => begins("PRAGMA") || listed(LOOKS, &name),
        };
        if !is_table && !harmless {
            found.doubt(format!("the DuckDB function {name} may reach outside the database"));
        }
        before = Some(token);
    }
}
