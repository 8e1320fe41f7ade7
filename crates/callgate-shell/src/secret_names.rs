//! Names of variables that hold secrets.

use crate::lists::listed;

/// Parts of names, between underscores, of variables that hold a secret.
const SECRET_PARTS: &str =
    "TOKEN SECRET SECRETS PASSWORD PASSWORDS PASS PWD PASSWD PASSPHRASE CREDENTIAL CREDENTIALS APIKEY PAT";

/// Addresses that usually contain a password.
const ADDRESSES: &str = "DATABASE_URL DB_URL MONGO_URL MONGO_URI MONGODB_URI REDIS_URL POSTGRES_URL AMQP_URL";

/// Whether an environment variable holds a secret, going by its name: `GITHUB_TOKEN`, `AWS_SECRET_ACCESS_KEY`.
pub(crate) fn is_secret(name: &str) -> bool {
    if name.bytes().any(|byte| byte.is_ascii_lowercase()) || matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    name.split('_').any(|part| listed(SECRET_PARTS, part))
        || listed(ADDRESSES, name)
        || name.ends_with("_DSN")
        || name.ends_with("_KEY") && !name.ends_with("PUBLIC_KEY") && !name.ends_with("HOST_KEY")
}

/// Whether someone who searches an environment for `word` is looking for secrets.
pub(crate) fn looks_for_secrets(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["key", "token", "secret", "pass", "pwd", "credential", "creds", "auth", "aws", "private"]
        .iter()
        .any(|part| word.contains(part))
}

#[cfg(test)]
mod tests {
    use super::{is_secret, looks_for_secrets};

    #[test]
    fn names_of_secrets() {
        for name in ["GITHUB_TOKEN", "DB_PASS", "API_KEY", "DATABASE_URL", "SENTRY_DSN"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PWD", "OLDPWD", "HOME", "PATH", "SSH_PUBLIC_KEY", "BASE_URL"] {
            assert!(!is_secret(name), "{name}");
        }
        assert!(looks_for_secrets("^AWS_") && looks_for_secrets("pass") && !looks_for_secrets("LANG"));
    }
}
