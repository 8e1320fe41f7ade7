//! Locates, protects, opens and migrates the database.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate::policy::directories;
use callgate::store::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// The version of the tables, kept in `user_version`.
pub(crate) const VERSION: i64 = 1;
/// How long another process may hold the database, unless said otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

const TABLES: &str = "
CREATE TABLE grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    action TEXT NOT NULL,
    target TEXT,
    scope TEXT,
    key BLOB,
    uses INTEGER NOT NULL,
    remaining INTEGER NOT NULL CHECK (remaining > 0),
    granted_at INTEGER NOT NULL,
    expires INTEGER,
    granted_by TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE INDEX grants_by_demand ON grants (action, target, scope, key);
CREATE TABLE questions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    question TEXT NOT NULL,
    deadline INTEGER NOT NULL,
    outcome TEXT
) STRICT;
CREATE INDEX questions_pending ON questions (number) WHERE outcome IS NULL;
CREATE TABLE remembered (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    what TEXT NOT NULL,
    UNIQUE (session, what)
) STRICT;
CREATE TABLE denials (
    session TEXT NOT NULL,
    key BLOB NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE automatic (
    session TEXT PRIMARY KEY NOT NULL,
    automatic TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The user's own database: below `$XDG_DATA_HOME`, or `~/.local/share`; `None` if neither is known.
pub fn default_path() -> Option<PathBuf> {
    let absolute = |name: &str| directories::variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("callgate/store.sqlite"))
}

/// Opens the database, creates it if needed, and migrates it.
pub(crate) fn open(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    prepare_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let real = path.canonicalize().map_err(|error| unavailable(path, &error))?;
    let mut connection = Connection::open_with_flags(&real, flags).map_err(error)?;
    connection.busy_timeout(patience).map_err(error)?;
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;")
        .map_err(error)?;
    migrate(&mut connection)?;
    Ok(connection)
}

fn unavailable(path: &Path, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly,
        io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Unavailable(format!("{}: {error}", path.display())),
    }
}

/// Creates the file, or checks that this user owns it and nobody else can read it.
fn prepare_file(path: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| unavailable(path, &error);
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(StoreError::Unavailable(format!("{} is not a file", path.display())));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(StoreError::Unavailable(format!("{} belongs to another user", path.display())));
    }
    if metadata.permissions().readonly() {
        return Err(StoreError::ReadOnly);
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    }
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let version = |connection: &Connection| -> Result<i64, StoreError> {
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(error)
    };
    if version(connection)? == VERSION {
        return Ok(());
    }
    // Several processes may come here at once: only one of them makes the tables.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(error)?;
    match version(&transaction)? {
        0 => {
            let strangers: i64 =
                transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(error)?;
            if strangers != 0 {
                return Err(StoreError::Corrupt("the file contains other tables".into()));
            }
            transaction.execute_batch(TABLES).map_err(error)?;
            transaction.execute_batch(&format!("PRAGMA user_version = {VERSION}")).map_err(error)?;
            transaction.commit().map_err(error)
        }
        VERSION => Ok(()),
        found => Err(StoreError::Newer { found, known: VERSION }),
    }
}

/// Converts an error of SQLite.
pub(crate) fn error(error: rusqlite::Error) -> StoreError {
    let code = error.sqlite_error_code();
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked,
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly,
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(error.to_string()),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StoreError::Unavailable(error.to_string()),
        _ => StoreError::Failed(error.to_string()),
    }
}
