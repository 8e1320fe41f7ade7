//! The key that checkpoints are signed with.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;

use callgate_model::digest::{from_hex, hex};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{AtPath, AuditError};

/// The secret key: signs checkpoints and tombstones, and seals the head of the log.
pub struct AuditKey {
    secret: [u8; 32],
    /// Computed when something is signed: sealing needs no point on a curve, and a short-lived writer only seals.
    signing: OnceLock<SigningKey>,
    seal: Hmac<Sha256>,
}

callgate_model::debug_fields!(AuditKey);

impl AuditKey {
    /// The key with this secret.
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        // The seal uses a derived key, so that neither use reveals anything about the other.
        let mut derived = keyed(secret);
        derived.update(b"callgate audit seal 1");
        let seal = keyed(&derived.finalize().into_bytes());
        AuditKey { secret: *secret, signing: OnceLock::new(), seal }
    }

    /// Reads the key, or creates one (mode 0600) if the file does not exist.
    pub fn open_or_create(path: &Path) -> Result<Self, AuditError> {
        match Self::open(path) {
            Err(AuditError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            other => return other,
        }
        if let Some(parent) = path.parent() {
            private_directory(parent)?;
        }
        let secret: [u8; 32] = random(path)?;
        let suffix: [u8; 8] = random(path)?;
        // Written next to the path and linked into place: other processes see a whole key or none, and the first one wins.
        let made = path.with_extension(format!("new-{}", hex(&suffix)));
        let result = (|| {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made).at("create", &made)?;
            file.write_all(format!("{}\n", hex(&secret)).as_bytes()).at("write", &made)?;
            file.sync_all().at("write", &made)?;
            match fs::hard_link(&made, path) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error).at("create", path),
                _ => Ok(()),
            }
        })();
        let _ = fs::remove_file(&made);
        result?;
        Self::open(path)
    }

    /// Reads a key. Rejects a file that others can read.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let mut file = File::open(path).at("open", path)?;
        let metadata = file.metadata().at("read", path)?;
        let wrong = |what: &str| AuditError::Key { path: path.to_owned(), what: what.to_owned() };
        if metadata.mode() & 0o077 != 0 {
            return Err(wrong("other users can read it; its mode must be 0600"));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(wrong("another user owns it"));
        }
        // One read: a short-lived process pays for every one of them, and a file this small comes whole.
        let mut text = [0_u8; 200];
        let length = file.read(&mut text).at("read", path)?;
        let text = text.get(..length).unwrap_or_default().trim_ascii();
        let secret = from_hex(text).ok_or_else(|| wrong("it is not 64 hexadecimal digits"))?;
        Ok(Self::from_secret(&secret))
    }

    /// The public key, hexadecimal.
    pub fn public(&self) -> String {
        hex(self.signing().verifying_key().as_bytes())
    }

    fn signing(&self) -> &SigningKey {
        self.signing.get_or_init(|| SigningKey::from_bytes(&self.secret))
    }

    pub(crate) fn sign(&self, message: &[u8]) -> String {
        hex(&self.signing().sign(message).to_bytes())
    }

    pub(crate) fn seal(&self, message: &[u8]) -> [u8; 32] {
        let mut seal = self.seal.clone();
        seal.update(message);
        seal.finalize().into_bytes().into()
    }

    pub(crate) fn seal_holds(&self, message: &[u8], seal: &[u8]) -> bool {
        let mut expected = self.seal.clone();
        expected.update(message);
        expected.verify_slice(seal).is_ok()
    }
}

/// Whether a signature by a public key (both hexadecimal) fits a message.
pub(crate) fn signature_holds(public: &str, message: &[u8], signature: &str) -> bool {
    let (Some(key), Some(signature)) = (from_hex(public.as_bytes()), from_hex(signature.as_bytes())) else {
        return false;
    };
    VerifyingKey::from_bytes(&key)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(&signature)).is_ok())
}

/// Random bytes for something at `path`.
pub(crate) fn random<const N: usize>(path: &Path) -> Result<[u8; N], AuditError> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|error| AuditError::Key {
        path: path.to_owned(),
        what: format!("no randomness available: {error}"),
    })?;
    Ok(bytes)
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        // keys of any length are taken
        Err(_) => Hmac::<Sha256>::new(&Default::default()),
    }
}

/// Creates a directory with mode 0700. Rejects an existing one, also behind a symlink, that others can write to or that another
/// user owns.
pub(crate) fn private_directory(path: &Path) -> Result<(), AuditError> {
    let ours = |metadata: &fs::Metadata| {
        metadata.permissions().mode() & 0o022 == 0 && metadata.uid() == rustix::process::geteuid().as_raw()
    };
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() && ours(&metadata) => Ok(()),
        Ok(_) => Err(AuditError::Key {
            path: path.to_owned(),
            what: "it must be a directory owned by you and writable only by you".to_owned(),
        }),
        Err(_) => fs::DirBuilder::new().recursive(true).mode(0o700).create(path).at("create", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/audit.key");
        let made = AuditKey::open_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(AuditKey::open_or_create(&path).unwrap().public(), made.public());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(AuditKey::open(&path).unwrap_err().kind(), "key");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short").unwrap();
        assert_eq!(AuditKey::open_or_create(&path).unwrap_err().kind(), "key", "a broken key is never replaced");
    }

    #[test]
    fn many_at_once_make_one_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.key");
        let keys: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| AuditKey::open_or_create(&path).unwrap().public())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
    }

    #[test]
    fn signatures_and_seals_fit_one_message_and_one_key() {
        let (ours, theirs) = (AuditKey::from_secret(&[1; 32]), AuditKey::from_secret(&[2; 32]));
        let signature = ours.sign(b"message");
        assert!(signature_holds(&ours.public(), b"message", &signature));
        assert!(!signature_holds(&ours.public(), b"massage", &signature));
        assert!(!signature_holds(&theirs.public(), b"message", &signature));
        assert!(!signature_holds("", b"message", &signature));
        assert!(!signature_holds(&ours.public(), b"message", "00"));
        let seal = ours.seal(b"message");
        assert!(ours.seal_holds(b"message", &seal));
        assert!(!ours.seal_holds(b"massage", &seal));
        assert!(!theirs.seal_holds(b"message", &seal));
    }
}
