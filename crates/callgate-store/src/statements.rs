//! What is said to SQLite. Everything here runs inside a transaction of [`Group`](crate::group::Group).

use std::num::NonZeroU32;

use callgate::approvals::{ApprovalId, Outcome, Question, Remembered};
use callgate::clock::Timestamp;
use callgate::grant::{Demand, Grant, GrantId, GrantReach, GrantTarget, Scope, Terms};
use callgate::key::ApprovalKey;
use callgate::store::{Entry, SettleResult, StoreError, Unreadable};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::open::error;

type Done<T> = Result<T, StoreError>;

/// How many settled questions are kept for those who ask what became of them.
const SETTLED_KEPT: i64 = 200;
const GRANT: &str = "id, action, target, scope, key, uses, remaining, granted_at, expires, granted_by, reason";

fn corrupt(what: impl ToString) -> StoreError {
    StoreError::Corrupt(what.to_string())
}

fn to_json(value: &impl Serialize) -> Done<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Failed(error.to_string()))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Done<T> {
    serde_json::from_str(text).map_err(corrupt)
}

pub(crate) fn grant(connection: &Connection, terms: &Terms, now: Timestamp) -> Done<GrantId> {
    let target = match &terms.reach {
        GrantReach::GrantTarget(target) => Some(target.as_str()),
        GrantReach::Any => None,
    };
    let sql =
        "INSERT INTO grants (action, target, scope, key, uses, remaining, granted_at, expires, granted_by, reason)
               VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9)";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| {
            statement.insert(params![
                terms.action,
                target,
                terms.scope.as_ref().map(Scope::as_str),
                terms.key.as_ref().map(|key| key.as_bytes().as_slice()),
                terms.uses.get(),
                now.milliseconds(),
                terms.expires.map(Timestamp::milliseconds),
                terms.granted_by,
                terms.reason,
            ])
        })
        .map_err(error)
        .and_then(|id| u64::try_from(id).map(GrantId).map_err(corrupt))
}

/// The columns of a grant as they are stored.
struct Stored {
    id: i64,
    action: String,
    target: Option<String>,
    scope: Option<String>,
    key: Option<Vec<u8>>,
    uses: u32,
    remaining: u32,
    granted_at: i64,
    expires: Option<i64>,
    granted_by: String,
    reason: String,
}

impl Stored {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Stored {
            id: row.get(0)?,
            action: row.get(1)?,
            target: row.get(2)?,
            scope: row.get(3)?,
            key: row.get(4)?,
            uses: row.get(5)?,
            remaining: row.get(6)?,
            granted_at: row.get(7)?,
            expires: row.get(8)?,
            granted_by: row.get(9)?,
            reason: row.get(10)?,
        })
    }

    fn grant(self) -> Done<Grant> {
        let number = |number: u32| NonZeroU32::new(number).ok_or_else(|| corrupt("a grant without uses"));
        let key = |bytes: Vec<u8>| {
            let bytes: [u8; 32] = bytes.try_into().map_err(|_| corrupt("a key of the wrong length"))?;
            Ok::<_, StoreError>(ApprovalKey::from(bytes))
        };
        Ok(Grant {
            id: GrantId(u64::try_from(self.id).map_err(corrupt)?),
            granted_at: Timestamp::from_milliseconds(self.granted_at),
            left: number(self.remaining)?,
            terms: Terms {
                action: self.action,
                reach: self.target.map_or(GrantReach::Any, |target| GrantReach::GrantTarget(GrantTarget::new(&target))),
                scope: self.scope.as_deref().map(Scope::new),
                key: self.key.map(key).transpose()?,
                uses: number(self.uses)?,
                expires: self.expires.map(Timestamp::from_milliseconds),
                granted_by: self.granted_by,
                reason: self.reason,
            },
        })
    }
}

pub(crate) fn grants(connection: &Connection) -> Done<Vec<Grant>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {GRANT} FROM grants ORDER BY id")).map_err(error)?;
    let rows = statement.query_map([], Stored::read).map_err(error)?;
    rows.map(|row| row.map_err(error).and_then(Stored::grant)).collect()
}

pub(crate) fn revoke(connection: &Connection, id: GrantId) -> Done<Option<Grant>> {
    let Ok(id) = i64::try_from(id.0) else { return Ok(None) };
    connection
        .prepare_cached(&format!("DELETE FROM grants WHERE id = ?1 RETURNING {GRANT}"))
        .and_then(|mut statement| statement.query_row([id], Stored::read).optional())
        .map_err(error)?
        .map(Stored::grant)
        .transpose()
}

/// Chooses for every target first and spends then, so that nothing is spent if one has no grant.
pub(crate) fn consume(connection: &Connection, demand: &Demand, now: Timestamp) -> Done<Option<Vec<GrantId>>> {
    let mut chosen: Vec<i64> = Vec::with_capacity(demand.targets.len());
    for target in &demand.targets {
        match choose(connection, demand, target, &chosen, now)? {
            Some(id) => chosen.push(id),
            None => return Ok(None),
        }
    }
    if chosen.is_empty() {
        return Ok(None);
    }
    for id in &chosen {
        spend(connection, *id)?;
    }
    let ids: Result<Vec<GrantId>, _> = chosen.into_iter().map(|id| u64::try_from(id).map(GrantId)).collect();
    ids.map(Some).map_err(corrupt)
}

/// From the most to the least specific: this request, then this target, then this task.
fn choose(
    connection: &Connection,
    demand: &Demand,
    target: &GrantTarget,
    chosen: &[i64],
    now: Timestamp,
) -> Done<Option<i64>> {
    let key = demand.key.as_ref().map(|key| key.as_bytes().as_slice());
    let scope = demand.scope.as_ref().map(Scope::as_str);
    let keys: &[Option<&[u8]>] = if key.is_some() { &[key, None] } else { &[None] };
    let scopes: &[Option<&str>] = if scope.is_some() { &[scope, None] } else { &[None] };
    for key in keys {
        for target in [Some(target.as_str()), None] {
            for scope in scopes {
                if let Some(id) = on_shelf(connection, &demand.action, target, *scope, *key, chosen, now)? {
                    return Ok(Some(id));
                }
            }
        }
    }
    Ok(None)
}

fn on_shelf(
    connection: &Connection,
    action: &str,
    target: Option<&str>,
    scope: Option<&str>,
    key: Option<&[u8]>,
    chosen: &[i64],
    now: Timestamp,
) -> Done<Option<i64>> {
    let sql = "SELECT id, remaining FROM grants
               WHERE action = ?1 AND target IS ?2 AND scope IS ?3 AND key IS ?4
                 AND (expires IS NULL OR (expires > ?5 AND granted_at <= ?6))
               ORDER BY expires IS NULL, expires, id";
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    let latest = Grant::not_before(now).milliseconds();
    let mut rows = statement.query(params![action, target, scope, key, now.milliseconds(), latest]).map_err(error)?;
    while let Some(row) = rows.next().map_err(error)? {
        let (id, remaining): (i64, u32) = (row.get(0).map_err(error)?, row.get(1).map_err(error)?);
        let taken = chosen.iter().filter(|other| **other == id).count();
        if u64::from(remaining) > taken as u64 {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn spend(connection: &Connection, id: i64) -> Done<()> {
    let run =
        |sql: &str| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([id])).map_err(error);
    // The last use takes the grant away.
    let spent = match run("UPDATE grants SET remaining = remaining - 1 WHERE id = ?1 AND remaining > 1")? {
        0 => run("DELETE FROM grants WHERE id = ?1 AND remaining = 1")?,
        spent => spent,
    };
    if spent == 1 { Ok(()) } else { Err(corrupt("a grant that was chosen is gone")) }
}

pub(crate) fn open(connection: &Connection, question: &Question) -> Done<()> {
    let run = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| {
        connection.prepare_cached(sql).and_then(|mut statement| statement.execute(parameters)).map_err(error)
    };
    let (id, text) = (question.id.as_str(), to_json(question)?);
    let deadline = question.deadline.milliseconds();
    run("INSERT INTO questions (id, question, deadline) VALUES (?1, ?2, ?3)", &[&id, &text, &deadline])?;
    let last = connection.last_insert_rowid();
    let old = last.saturating_sub(SETTLED_KEPT);
    // Abandoned by a process that died: nobody waits for an answer any more.
    let now = Timestamp::now().milliseconds();
    run("DELETE FROM questions WHERE number <= ?1 AND (outcome IS NOT NULL OR deadline <= ?2)", &[&old, &now])?;
    Ok(())
}

pub(crate) fn settle(connection: &Connection, id: &ApprovalId, outcome: &Outcome) -> Done<SettleResult> {
    let changed = connection
        .prepare_cached("UPDATE questions SET outcome = ?2 WHERE id = ?1 AND outcome IS NULL")
        .and_then(|mut statement| {
            let text = serde_json::to_string(outcome)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
            statement.execute(params![id.as_str(), text])
        })
        .map_err(error)?;
    if changed == 1 {
        return Ok(SettleResult::Settled);
    }
    match entry(connection, id)? {
        Some(Entry { outcome: Some(before), .. }) => Ok(SettleResult::Before(before)),
        Some(Entry { outcome: None, .. }) => Err(corrupt("a question that is neither open nor settled")),
        None => Ok(SettleResult::Unknown),
    }
}

pub(crate) fn entry(connection: &Connection, id: &ApprovalId) -> Done<Option<Entry>> {
    let found: Option<(String, Option<String>)> = connection
        .prepare_cached("SELECT question, outcome FROM questions WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(error)?;
    found
        .map(|(question, outcome)| {
            let outcome = outcome.map(|outcome| from_json(&outcome)).transpose()?;
            Ok(Entry { question: from_json(&question)?, outcome })
        })
        .transpose()
}

pub(crate) fn pending(connection: &Connection) -> Done<Vec<Question>> {
    let waiting = texts(connection, "SELECT question FROM questions WHERE outcome IS NULL ORDER BY number", &[])?;
    // One that cannot be read must not hide the others; `unreadable` names it.
    Ok(waiting.iter().filter_map(|text| from_json(text).ok()).collect())
}

pub(crate) fn unreadable(connection: &Connection, now: Timestamp) -> Done<Vec<Unreadable>> {
    let sql = "SELECT id, question FROM questions WHERE outcome IS NULL AND deadline > ?1 ORDER BY number";
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    let rows = statement.query_map([now.milliseconds()], |row| Ok((row.get(0)?, row.get(1)?))).map_err(error)?;
    let mut found = Vec::new();
    for row in rows {
        let (id, text): (String, String) = row.map_err(error)?;
        if let Err(problem) = serde_json::from_str::<Question>(&text) {
            found.push(Unreadable { id, why: problem.to_string() });
        }
    }
    Ok(found)
}

fn texts(connection: &Connection, sql: &str, parameters: &[&dyn rusqlite::ToSql]) -> Done<Vec<String>> {
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    let rows = statement.query_map(parameters, |row| row.get(0)).map_err(error)?;
    rows.map(|row| row.map_err(error)).collect()
}

fn execute(connection: &Connection, sql: &str, parameters: &[&dyn rusqlite::ToSql]) -> Done<()> {
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    statement.execute(parameters).map(|_| ()).map_err(error)
}

pub(crate) fn remembered(connection: &Connection, session: &str) -> Done<Vec<Remembered>> {
    texts(connection, "SELECT what FROM remembered WHERE session = ?1 ORDER BY number", &[&session])?
        .iter()
        .map(|text| from_json(text))
        .collect()
}

pub(crate) fn remember(connection: &Connection, session: &str, what: &Remembered) -> Done<()> {
    let text = to_json(what)?;
    execute(connection, "INSERT OR IGNORE INTO remembered (session, what) VALUES (?1, ?2)", &[&session, &text])
}

pub(crate) fn denials(connection: &Connection, session: &str, key: &ApprovalKey) -> Done<u32> {
    let found = connection.prepare_cached("SELECT count FROM denials WHERE session = ?1 AND key = ?2").and_then(
        |mut statement| statement.query_row(params![session, key.as_bytes().as_slice()], |row| row.get(0)).optional(),
    );
    found.map(Option::unwrap_or_default).map_err(error)
}

pub(crate) fn add_denial(connection: &Connection, session: &str, key: &ApprovalKey) -> Done<u32> {
    let sql = "INSERT INTO denials (session, key, count) VALUES (?1, ?2, 1)
               ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row(params![session, key.as_bytes().as_slice()], |row| row.get(0)))
        .map_err(error)
}

pub(crate) fn automatic(connection: &Connection, session: &str) -> Done<callgate::approvals::Automatic> {
    let found: Option<String> = connection
        .prepare_cached("SELECT automatic FROM automatic WHERE session = ?1")
        .and_then(|mut statement| statement.query_row([session], |row| row.get(0)).optional())
        .map_err(error)?;
    found.map_or_else(|| Ok(Default::default()), |text| from_json(&text))
}

pub(crate) fn set_automatic(
    connection: &Connection,
    session: &str,
    automatic: &callgate::approvals::Automatic,
) -> Done<()> {
    let text = to_json(automatic)?;
    let sql = "INSERT INTO automatic (session, automatic) VALUES (?1, ?2)
               ON CONFLICT DO UPDATE SET automatic = excluded.automatic";
    execute(connection, sql, &[&session, &text])
}

pub(crate) fn reset_session(connection: &Connection, session: &str) -> Done<()> {
    for table in ["remembered", "denials", "automatic"] {
        execute(connection, &format!("DELETE FROM {table} WHERE session = ?1"), &[&session])?;
    }
    Ok(())
}

pub(crate) fn sessions(connection: &Connection) -> Done<Vec<String>> {
    let sql = "SELECT session FROM remembered UNION SELECT session FROM denials
               UNION SELECT session FROM automatic ORDER BY 1";
    texts(connection, sql, &[])
}

#[cfg(test)]
mod tests {
    use callgate::approvals::Exec;

    use super::*;

    #[test]
    fn a_full_disk_is_called_so_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let connection = crate::open::open(&directory.path().join("store.sqlite"), crate::open::PATIENCE).unwrap();
        grant(&connection, &Terms::for_any("send"), Timestamp::now()).unwrap();
        // SQLite's own limit stands in for the disk's: it ends in the same error
        let limit = |pages: i64| {
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get::<_, i64>(0)).unwrap()
        };
        limit(30);
        let long = Remembered::Exec(Exec { id: "x".repeat(1_000_000), shell: false });
        assert_eq!(remember(&connection, "s", &long), Err(StoreError::Full));
        assert!(consume(&connection, &Demand::new("send", ["a"]), Timestamp::now()).unwrap().is_some());
        limit(1_000_000);
        assert_eq!(remember(&connection, "s", &long), Ok(()));
    }
}
