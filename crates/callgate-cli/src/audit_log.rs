//! Where the audit log lies, and how it is kept.

use callgate::Policy;

use crate::outcome::Trouble;

/// Where the policy says that the log lies, and how it is kept.
pub fn settings(policy: &Policy) -> Result<callgate_audit::Settings, Trouble> {
    callgate_audit::Settings::of_policy(policy, std::env::home_dir().as_deref())
        .map_err(|error| Trouble::new(error.to_string()))
}
