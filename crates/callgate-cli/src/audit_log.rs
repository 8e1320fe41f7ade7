//! Where the audit log lies, and how it is kept.

use callgate::Policy;

use crate::outcome::Trouble;

/// Where the policy says that the log lies, and how it is kept.
pub fn settings(policy: &Policy) -> Result<callgate_audit::LogSettings, Trouble> {
    callgate_audit::LogSettings::of_policy(policy, callgate::policy::directories::home().as_deref())
        .map_err(|error| Trouble::new(error.to_string()))
}
