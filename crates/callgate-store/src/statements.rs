//! The SQL statements behind each method of the store. Writing statements run inside a transaction of [`Group`](crate::group::Group).

use std::num::NonZeroU32;

use callgate::approvals::{ApprovalId, ApprovalOutcome, Automatic, Question, Remembered};
use callgate::clock::Timestamp;
use callgate::grant::{Demand, Grant, GrantId, GrantReach, GrantTarget, Scope, Terms};
use callgate::key::ApprovalKey;
use callgate::store::{SettleResult, StoreError, StoredQuestion, Unreadable};
use rusqlite::types::FromSql;
use rusqlite::{Connection, Params, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::open::error;

type Done<T> = Result<T, StoreError>;

/// How many settled questions are kept, so that their outcome can be looked up.
const SETTLED_KEPT: i64 = 200;

fn corrupt(what: impl ToString) -> StoreError {
    StoreError::Corrupt(what.to_string())
}

fn to_json(value: &impl Serialize) -> Done<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Failed(error.to_string()))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Done<T> {
    serde_json::from_str(text).map_err(corrupt)
}

fn get<T: FromSql>(row: &Row<'_>, column: &str) -> Done<T> {
    row.get(column).map_err(error)
}

/// Runs a statement and returns how many rows it changed.
fn execute(connection: &Connection, sql: &str, parameters: impl Params) -> Done<usize> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.execute(parameters)).map_err(error)
}

/// Reads every row of a query.
fn query<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl Fn(&Row<'_>) -> Done<T>,
) -> Done<Vec<T>> {
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    let rows = statement.query_map(parameters, |row| Ok(read(row))).map_err(error)?;
    rows.map(|row| row.map_err(error)?).collect()
}

/// Reads the first row of a query, if there is one.
fn first<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl Fn(&Row<'_>) -> Done<T>,
) -> Done<Option<T>> {
    Ok(query(connection, sql, parameters, read)?.into_iter().next())
}

pub(crate) fn grant(connection: &Connection, terms: &Terms, now: &Timestamp) -> Done<GrantId> {
    let target = match &terms.reach {
        GrantReach::GrantTarget(target) => Some(target.as_str()),
        GrantReach::Any => None,
    };
    let sql =
        "INSERT INTO grants (action, target, scope, key, uses, remaining, granted_at, expires, granted_by, reason)
               VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9)";
    let parameters = params![
        terms.action,
        target,
        terms.scope.as_ref().map(Scope::as_str),
        terms.key.as_ref().map(|key| key.as_bytes().as_slice()),
        terms.uses.get(),
        now.milliseconds(),
        terms.expires.map(Timestamp::milliseconds),
        terms.granted_by,
        terms.reason,
    ];
    execute(connection, sql, parameters)?;
    u64::try_from(connection.last_insert_rowid()).map(GrantId).map_err(corrupt)
}

fn read_grant(row: &Row<'_>) -> Done<Grant> {
    let uses = |column| NonZeroU32::new(get(row, column)?).ok_or_else(|| corrupt("a grant has no uses"));
    let key = |bytes: Vec<u8>| <[u8; 32]>::try_from(bytes).map_err(|_| corrupt("a key has the wrong length"));
    let (target, scope): (Option<String>, Option<String>) = (get(row, "target")?, get(row, "scope")?);
    Ok(Grant {
        id: GrantId(u64::try_from(get::<i64>(row, "id")?).map_err(corrupt)?),
        granted_at: Timestamp::from_milliseconds(get(row, "granted_at")?),
        left: uses("remaining")?,
        terms: Terms {
            action: get(row, "action")?,
            reach: target.map_or(GrantReach::Any, |target| GrantReach::GrantTarget(GrantTarget::new(&target))),
            scope: scope.as_deref().map(Scope::new),
            key: get::<Option<Vec<u8>>>(row, "key")?.map(key).transpose()?.map(ApprovalKey::from),
            uses: uses("uses")?,
            expires: get::<Option<i64>>(row, "expires")?.map(Timestamp::from_milliseconds),
            granted_by: get(row, "granted_by")?,
            reason: get(row, "reason")?,
        },
    })
}

pub(crate) fn grants(connection: &Connection) -> Done<Vec<Grant>> {
    query(connection, "SELECT * FROM grants ORDER BY id", [], read_grant)
}

pub(crate) fn revoke(connection: &Connection, id: &GrantId) -> Done<Option<Grant>> {
    let Ok(id) = i64::try_from(id.0) else { return Ok(None) };
    first(connection, "DELETE FROM grants WHERE id = ?1 RETURNING *", [id], read_grant)
}

/// Chooses for every target first and spends then, so that nothing is spent if one has no grant.
pub(crate) fn consume(connection: &Connection, demand: &Demand, now: &Timestamp) -> Done<Option<Vec<GrantId>>> {
    let mut chosen: Vec<i64> = Vec::with_capacity(demand.targets.len());
    for target in &demand.targets {
        match choose(connection, demand, target, &chosen, *now)? {
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
               ORDER BY expires IS NULL, expires, id LIMIT ?7";
    // Of one more grant than are chosen already, at least one is free.
    let limit = i64::try_from(chosen.len()).unwrap_or(i64::MAX).saturating_add(1);
    let latest = Grant::not_before(now).milliseconds();
    let parameters = params![action, target, scope, key, now.milliseconds(), latest, limit];
    let read = |row: &Row<'_>| Ok((get::<i64>(row, "id")?, get::<u32>(row, "remaining")?));
    let taken = |id: i64| chosen.iter().filter(|other| **other == id).count() as u64;
    let grants = query(connection, sql, parameters, read)?;
    Ok(grants.into_iter().find(|(id, remaining)| u64::from(*remaining) > taken(*id)).map(|(id, _)| id))
}

fn spend(connection: &Connection, id: i64) -> Done<()> {
    // The last use removes the grant.
    let update = "UPDATE grants SET remaining = remaining - 1 WHERE id = ?1 AND remaining > 1";
    let spent = match execute(connection, update, [id])? {
        0 => execute(connection, "DELETE FROM grants WHERE id = ?1 AND remaining = 1", [id])?,
        spent => spent,
    };
    if spent == 1 { Ok(()) } else { Err(corrupt("a chosen grant is missing")) }
}

pub(crate) fn open(connection: &Connection, question: &Question) -> Done<()> {
    let (id, text) = (question.id.as_str(), to_json(question)?);
    let insert = "INSERT INTO questions (id, question, deadline) VALUES (?1, ?2, ?3)";
    execute(connection, insert, params![id, text, question.deadline.milliseconds()])?;
    let old = connection.last_insert_rowid().saturating_sub(SETTLED_KEPT);
    // An expired question without an outcome was abandoned by a process that died.
    let tidy = "DELETE FROM questions WHERE number <= ?1 AND (outcome IS NOT NULL OR deadline <= ?2)";
    execute(connection, tidy, [old, Timestamp::now().milliseconds()]).map(drop)
}

pub(crate) fn settle(connection: &Connection, id: &ApprovalId, outcome: &ApprovalOutcome) -> Done<SettleResult> {
    let update = "UPDATE questions SET outcome = ?2 WHERE id = ?1 AND outcome IS NULL";
    if execute(connection, update, [id.as_str(), &to_json(outcome)?])? == 1 {
        return Ok(SettleResult::Settled);
    }
    match question(connection, id)? {
        Some(StoredQuestion { outcome: Some(before), .. }) => Ok(SettleResult::Before(before)),
        Some(StoredQuestion { outcome: None, .. }) => Err(corrupt("a question is neither pending nor settled")),
        None => Ok(SettleResult::Unknown),
    }
}

pub(crate) fn question(connection: &Connection, id: &ApprovalId) -> Done<Option<StoredQuestion>> {
    first(connection, "SELECT question, outcome FROM questions WHERE id = ?1", [id.as_str()], |row| {
        let outcome: Option<String> = get(row, "outcome")?;
        let outcome = outcome.map(|outcome| from_json(&outcome)).transpose()?;
        Ok(StoredQuestion { question: from_json(&get::<String>(row, "question")?)?, outcome })
    })
}

/// Leaves out questions that cannot be read; [`unreadable`] names them.
pub(crate) fn pending(connection: &Connection) -> Done<Vec<Question>> {
    let sql = "SELECT question FROM questions WHERE outcome IS NULL ORDER BY number";
    let texts: Vec<String> = query(connection, sql, [], |row| get(row, "question"))?;
    Ok(texts.iter().filter_map(|text| from_json(text).ok()).collect())
}

pub(crate) fn unreadable(connection: &Connection, now: Timestamp) -> Done<Vec<Unreadable>> {
    let sql = "SELECT id, question FROM questions WHERE outcome IS NULL AND deadline > ?1 ORDER BY number";
    let found = query(connection, sql, [now.milliseconds()], |row| {
        let problem = serde_json::from_str::<Question>(&get::<String>(row, "question")?).err();
        let id = get(row, "id")?;
        Ok(problem.map(|problem| Unreadable { id, why: problem.to_string() }))
    })?;
    Ok(found.into_iter().flatten().collect())
}

pub(crate) fn remembered(connection: &Connection, session: &str) -> Done<Vec<Remembered>> {
    let sql = "SELECT what FROM remembered WHERE session = ?1 ORDER BY number";
    query(connection, sql, [session], |row| from_json(&get::<String>(row, "what")?))
}

pub(crate) fn remember(connection: &Connection, session: &str, what: &Remembered) -> Done<()> {
    let sql = "INSERT OR IGNORE INTO remembered (session, what) VALUES (?1, ?2)";
    execute(connection, sql, [session, &to_json(what)?]).map(drop)
}

pub(crate) fn denials(connection: &Connection, session: &str, key: &ApprovalKey) -> Done<u32> {
    let sql = "SELECT count FROM denials WHERE session = ?1 AND key = ?2";
    let found = first(connection, sql, params![session, key.as_bytes().as_slice()], |row| get(row, "count"))?;
    Ok(found.unwrap_or_default())
}

pub(crate) fn add_denial(connection: &Connection, session: &str, key: &ApprovalKey) -> Done<u32> {
    let sql = "INSERT INTO denials (session, key, count) VALUES (?1, ?2, 1)
               ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count";
    let count = first(connection, sql, params![session, key.as_bytes().as_slice()], |row| get(row, "count"))?;
    count.ok_or_else(|| corrupt("a denial was not counted"))
}

pub(crate) fn automatic(connection: &Connection, session: &str) -> Done<Automatic> {
    let sql = "SELECT automatic FROM automatic WHERE session = ?1";
    let found = first(connection, sql, [session], |row| from_json(&get::<String>(row, "automatic")?))?;
    Ok(found.unwrap_or_default())
}

pub(crate) fn set_automatic(connection: &Connection, session: &str, automatic: &Automatic) -> Done<()> {
    let sql = "INSERT INTO automatic (session, automatic) VALUES (?1, ?2)
               ON CONFLICT DO UPDATE SET automatic = excluded.automatic";
    execute(connection, sql, [session, &to_json(automatic)?]).map(drop)
}

pub(crate) fn reset_session(connection: &Connection, session: &str) -> Done<()> {
    for table in ["remembered", "denials", "automatic"] {
        execute(connection, &format!("DELETE FROM {table} WHERE session = ?1"), [session])?;
    }
    Ok(())
}

pub(crate) fn sessions(connection: &Connection) -> Done<Vec<String>> {
    let sql = "SELECT session FROM remembered UNION SELECT session FROM denials
               UNION SELECT session FROM automatic ORDER BY 1";
    query(connection, sql, [], |row| get(row, "session"))
}

#[cfg(test)]
mod tests {
    use callgate::approvals::Exec;

    use super::*;

    #[test]
    fn a_full_disk_is_called_so_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let connection = crate::open::open(&directory.path().join("store.sqlite"), crate::open::PATIENCE).unwrap();
        grant(&connection, &Terms::for_any("send"), &Timestamp::now()).unwrap();
        // SQLite's own limit stands in for the disk's: it ends in the same error
        let limit = |pages: i64| {
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get::<_, i64>(0)).unwrap()
        };
        limit(30);
        let long = Remembered::Exec(Exec { id: "x".repeat(1_000_000), shell: false });
        assert_eq!(remember(&connection, "s", &long), Err(StoreError::Full));
        assert!(consume(&connection, &Demand::new("send", ["a"]), &Timestamp::now()).unwrap().is_some());
        limit(1_000_000);
        assert_eq!(remember(&connection, "s", &long), Ok(()));
    }
}
