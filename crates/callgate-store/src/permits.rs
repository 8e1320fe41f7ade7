//! One-time permits: what one process may do because another one judged it.
//!
//! A permit is a file of its own, named after the digest of its token. It lies in a directory that follows from the user id alone: no
//! variable of the environment leads elsewhere, so a copy of the directory is worth nothing. Presenting a permit renames its file, which
//! only one process can do. Times of last change cannot be set, so a file that was edited, or put back after it was used, is
//! recognised: it changed after it was made.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use callgate::policy::directories;
use callgate_model::digest::{hex, sha256_hex};
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest that making a permit's file may take, measured by the clock of its file system.
const MAKING: Duration = Duration::from_millis(50);
/// How often making it is tried again, if it took longer.
const ATTEMPTS: usize = 3;
/// How long files are kept, so that a permit that is presented again is recognised.
const KEPT: Duration = Duration::from_secs(3600);
/// More than this of a file is not read.
const LARGEST: u64 = 1 << 20;
/// What the name of a used permit ends with.
const USED: &str = "used";

const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The secret that stands for a permit: 128 random bits in hexadecimal.
#[derive(Clone, PartialEq, Eq)]
pub struct PermitToken(String);

impl PermitToken {
    fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(PermitToken(hex(&bytes)))
    }

    /// Reads a token; `None` if the text cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 32 && text.bytes().all(digit)).then(|| PermitToken(text.to_owned()))
    }

    /// The token as it is passed on.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digest by which the permit is stored, and which may be written down.
    pub fn digest(&self) -> String {
        sha256_hex(self.0.as_bytes())
    }
}

impl std::fmt::Debug for PermitToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PermitToken")
    }
}

/// Why a permit cannot be used.
#[derive(Debug, Error)]
pub enum PermitError {
    /// There is none for this token.
    #[error("there is no such permit")]
    Unknown,
    /// It was presented before.
    #[error("the permit was used before")]
    Used,
    /// Its file changed after it was made.
    #[error("the permit was changed after it was issued")]
    Changed,
    /// The directory of permits cannot be used.
    #[error("callgate's permits in {directory} cannot be used: {error}")]
    Unusable {
        /// The directory.
        directory: String,
        /// Why.
        error: io::Error,
    },
}

/// What became of a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermitState {
    /// Nobody has presented it.
    Issued,
    /// It was presented.
    Used,
    /// Nothing is known of it any more.
    Unknown,
}

#[derive(Serialize, Deserialize)]
struct Stored<T> {
    /// When the file was made, by the clock of its file system: seconds and nanoseconds.
    made: (i64, i64),
    permit: T,
}

/// The permits of this user.
#[derive(Debug)]
pub struct PermitStore {
    directory: PathBuf,
}

impl PermitStore {
    /// The store of the user that this process runs as, wherever its environment points; `None` if the machine knows no directory that
    /// belongs to the user.
    pub fn of_user() -> Option<Self> {
        Some(PermitStore { directory: directories::permits(rustix::process::geteuid().as_raw())? })
    }

    /// A store in this directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        PermitStore { directory: directory.into() }
    }

    fn unusable(&self, error: io::Error) -> PermitError {
        PermitError::Unusable { directory: self.directory.display().to_string(), error }
    }

    fn place(&self, digest: &str) -> PathBuf {
        self.directory.join(digest)
    }

    fn used(&self, digest: &str) -> PathBuf {
        self.place(digest).with_extension(USED)
    }

    /// Issues a permit.
    pub fn issue(&self, permit: &impl Serialize) -> Result<PermitToken, PermitError> {
        let token = PermitToken::random().map_err(|error| self.unusable(error))?;
        self.prepare().and_then(|()| self.write(&token, permit)).map_err(|error| self.unusable(error))?;
        Ok(token)
    }

    /// Makes the directory, or checks that it belongs to this user alone, and removes what is old.
    fn prepare(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let user = rustix::process::geteuid().as_raw();
        for directory in [Some(self.directory.as_path()), self.directory.parent()].into_iter().flatten() {
            let data = fs::symlink_metadata(directory)?;
            if !data.is_dir() || data.uid() != user || data.mode() & 0o022 != 0 {
                return Err(io::Error::other(format!("{} does not belong to this user alone", directory.display())));
            }
        }
        let now = SystemTime::now();
        for entry in fs::read_dir(&self.directory)?.flatten() {
            let modified = entry.metadata().and_then(|data| data.modified());
            let is_old = modified.is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > KEPT));
            if is_old {
                // another process may be faster
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    fn write(&self, token: &PermitToken, permit: &impl Serialize) -> io::Result<()> {
        let place = self.place(&token.digest());
        for _ in 0..ATTEMPTS {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(NOFOLLOW).open(&place)?;
            let data = file.metadata()?;
            let made = (data.ctime(), data.ctime_nsec());
            file.write_all(&serde_json::to_vec(&Stored { made, permit })?)?;
            if is_as_made(&file, made)? {
                return Ok(());
            }
            fs::remove_file(&place)?;
        }
        Err(io::Error::other("the file system is too slow"))
    }

    /// Uses a permit: of all that present it, one gets it.
    pub fn redeem<T: DeserializeOwned>(&self, token: &PermitToken) -> Result<T, PermitError> {
        let digest = token.digest();
        let (place, used) = (self.place(&digest), self.used(&digest));
        let stored = match self.read::<Stored<T>>(&place) {
            Ok(stored) => stored,
            Err(PermitError::Unknown) if used.symlink_metadata().is_ok() => return Err(PermitError::Used),
            Err(error) => return Err(error),
        };
        match fs::rename(&place, &used) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(PermitError::Used),
            Err(error) => return Err(self.unusable(error)),
        }
        match stored {
            (stored, true) => Ok(stored.permit),
            (_, false) => Err(PermitError::Changed),
        }
    }

    /// What the permit of a token says, for a report; whether it was used does not matter, and nothing is proven about it.
    pub fn peek<T: DeserializeOwned>(&self, digest: &str) -> Option<T> {
        let read = |path: PathBuf| self.read::<Stored<T>>(&path).ok();
        read(self.place(digest)).or_else(|| read(self.used(digest))).map(|(stored, _)| stored.permit)
    }

    /// What the latest of all permits says, for a report.
    pub fn latest<T: DeserializeOwned>(&self) -> Option<T> {
        let entries = fs::read_dir(&self.directory).ok()?.flatten();
        let latest = entries.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok())?;
        self.read::<Stored<T>>(&latest.path()).ok().map(|(stored, _)| stored.permit)
    }

    /// What became of a permit.
    pub fn state(&self, digest: &str) -> PermitState {
        match (self.place(digest).symlink_metadata(), self.used(digest).symlink_metadata()) {
            (_, Ok(_)) => PermitState::Used,
            (Ok(_), Err(_)) => PermitState::Issued,
            (Err(_), Err(_)) => PermitState::Unknown,
        }
    }

    /// Reads a permit, and whether its file is as it was made.
    fn read<S: DeserializeOwned + Made>(&self, path: &Path) -> Result<(S, bool), PermitError> {
        let mut file = match OpenOptions::new().read(true).custom_flags(NOFOLLOW).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(PermitError::Unknown),
            Err(error) => return Err(self.unusable(error)),
        };
        let mut bytes = Vec::new();
        (&mut file).take(LARGEST).read_to_end(&mut bytes).map_err(|error| self.unusable(error))?;
        // what is no permit was one
        let stored: S = serde_json::from_slice(&bytes).map_err(|_| PermitError::Changed)?;
        let own = file.metadata().is_ok_and(|data| data.uid() == rustix::process::geteuid().as_raw());
        let intact = is_as_made(&file, stored.made()).map_err(|error| self.unusable(error))?;
        Ok((stored, own && intact))
    }
}

trait Made {
    fn made(&self) -> (i64, i64);
}

impl<T> Made for Stored<T> {
    fn made(&self) -> (i64, i64) {
        self.made
    }
}

/// Whether a file was last changed when it was made.
fn is_as_made(file: &File, made: (i64, i64)) -> io::Result<bool> {
    let data = file.metadata()?;
    let nanoseconds = |(seconds, rest): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let since = nanoseconds((data.ctime(), data.ctime_nsec())).saturating_sub(nanoseconds(made));
    Ok((0..=MAKING.as_nanos().try_into().unwrap_or(0)).contains(&since))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, PermitStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = PermitStore::at(directory.path().join("own/permits"));
        (directory, store)
    }

    fn file(store: &PermitStore, token: &PermitToken) -> PathBuf {
        store.place(&token.digest())
    }

    #[test]
    fn a_permit_is_used_once() {
        let (_directory, store) = store();
        let token = store.issue(&"make").unwrap();
        assert_eq!(store.state(&token.digest()), PermitState::Issued);
        assert_eq!(store.redeem::<String>(&token).unwrap(), "make");
        assert!(matches!(store.redeem::<String>(&token), Err(PermitError::Used)));
        assert_eq!(store.state(&token.digest()), PermitState::Used);
        assert_eq!(store.peek::<String>(&token.digest()).as_deref(), Some("make"));
        assert!(matches!(
            store.redeem::<String>(&PermitToken::parse(&"0".repeat(32)).unwrap()),
            Err(PermitError::Unknown)
        ));
    }

    #[test]
    fn of_many_at_once_one_gets_it() {
        let (_directory, store) = store();
        for _ in 0..50 {
            let token = store.issue(&1).unwrap();
            let got = std::thread::scope(|scope| {
                let all: Vec<_> = (0..8).map(|_| scope.spawn(|| store.redeem::<u32>(&token).is_ok())).collect();
                all.into_iter().map(|one| one.join().unwrap()).filter(|got| *got).count()
            });
            assert_eq!(got, 1);
        }
    }

    #[test]
    fn a_permit_that_was_edited_copied_or_put_back_is_worth_nothing() {
        let (_directory, store) = store();
        type Harm = fn(&Path);
        let harms: [Harm; 4] = [
            |path| fs::write(path, fs::read_to_string(path).unwrap().replace("make", "evil")).unwrap(),
            |path| {
                let copy = path.with_extension("copy");
                fs::copy(path, &copy).unwrap();
                fs::rename(copy, path).unwrap();
            },
            |path| {
                let times = fs::metadata(path).unwrap().modified().unwrap();
                fs::write(path, fs::read(path).unwrap()).unwrap();
                File::options().write(true).open(path).unwrap().set_modified(times).unwrap();
            },
            |path| fs::write(path, "{}").unwrap(),
        ];
        for harm in harms {
            let token = store.issue(&"make").unwrap();
            std::thread::sleep(MAKING * 2);
            harm(&file(&store, &token));
            assert!(matches!(store.redeem::<String>(&token), Err(PermitError::Changed)));
        }
        let token = store.issue(&"make").unwrap();
        let saved = fs::read(file(&store, &token)).unwrap();
        std::thread::sleep(MAKING * 2);
        store.redeem::<String>(&token).unwrap();
        fs::write(file(&store, &token), saved).unwrap();
        assert!(matches!(store.redeem::<String>(&token), Err(PermitError::Changed)));
    }

    #[test]
    fn the_token_is_not_in_the_store() {
        let (_directory, store) = store();
        let token = store.issue(&"make").unwrap();
        for entry in fs::read_dir(&store.directory).unwrap().flatten() {
            assert!(!entry.file_name().to_str().unwrap().contains(token.as_str()));
            assert!(!fs::read_to_string(entry.path()).unwrap().contains(token.as_str()));
            assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600);
        }
        assert_eq!(format!("{token:?}"), "PermitToken");
    }

    #[test]
    fn a_directory_that_others_can_change_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let (directory, store) = store();
        store.issue(&1).unwrap();
        fs::set_permissions(directory.path().join("own"), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(store.issue(&1), Err(PermitError::Unusable { .. })));
    }

    #[test]
    fn old_permits_go_away() {
        let (_directory, store) = store();
        let token = store.issue(&1).unwrap();
        let long_ago = SystemTime::now() - KEPT * 2;
        File::options().write(true).open(file(&store, &token)).unwrap().set_modified(long_ago).unwrap();
        store.issue(&2).unwrap();
        assert_eq!(store.state(&token.digest()), PermitState::Unknown);
    }
}
