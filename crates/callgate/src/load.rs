//! Loads policies: finds the files that apply, compiles them, and checks the examples of their rules.
//!
//! Examples are checked whenever a file is compiled: not if a cache contains the compiled form of the same contents, and not for
//! the bundled policies, whose examples callgate's tests check. [`Policy::from_yaml`](crate::Policy::from_yaml) and
//! [`Policy::from_file`](crate::Policy::from_file) do not check examples.

use std::path::Path;
use std::sync::Arc;

use crate::assess::Assessor;
use crate::policy::{FoundFile, Locations, Policy, PolicyCache, PolicyError};

/// Which policy to load.
#[derive(Debug, Clone, Copy)]
pub enum PolicyChoice<'a> {
    /// A bundled policy by its name, or a file by its path.
    Named(&'a str),
    /// All layers that apply: managed, user and project.
    Layers(&'a Locations),
}

/// A loaded policy.
#[derive(Debug)]
pub struct LoadedPolicy {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The files of its layers.
    pub files: Vec<FoundFile>,
}

/// Loads a policy. Uses and fills `cache`, if there is one.
pub fn load_policy(choice: PolicyChoice<'_>, cache: Option<&PolicyCache>) -> Result<LoadedPolicy, PolicyError> {
    match choice {
        PolicyChoice::Named(name) => {
            let path = Path::new(name);
            let is_name = !path.exists() && path.components().count() == 1 && path.extension().is_none();
            if is_name || Policy::bundled_text(name).is_some() {
                return Ok(LoadedPolicy { policy: Arc::new(Policy::bundled(name)?), files: Vec::new() });
            }
            let policy = Arc::new(Policy::from_file(path)?);
            check_examples(&policy)?;
            Ok(LoadedPolicy { policy, files: Vec::new() })
        }
        PolicyChoice::Layers(locations) => {
            let compiled = Policy::layered_from(cache, locations)?;
            if compiled.is_new && compiled.files.iter().any(|file| file.path.is_some()) {
                check_examples(&compiled.policy)?;
            }
            if let Some(cache) = cache.filter(|_| compiled.is_new) {
                compiled.save(cache);
            }
            Ok(LoadedPolicy { policy: compiled.policy, files: compiled.files })
        }
    }
}

fn check_examples(policy: &Arc<Policy>) -> Result<(), PolicyError> {
    for checked in Assessor::new(Arc::clone(policy)).check_examples() {
        checked.into_result()?;
    }
    Ok(())
}
