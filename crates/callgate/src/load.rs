//! The one loader of policies: finds the files that apply, compiles them, and checks the examples that their rules carry.
//!
//! The examples of a file are checked whenever the file is compiled. They are not checked again where a cache holds the compiled
//! form of exactly these contents, nor for the bundled policies, whose examples are part of callgate's tests. The functions of
//! [`Policy`](crate::Policy) itself (`from_yaml`, `from_file`) read a file without checking its examples.

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

/// A policy that is ready for use.
#[derive(Debug)]
pub struct LoadedPolicy {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The files it is made of, if it was made of layers.
    pub files: Vec<FoundFile>,
}

/// Loads a policy. Compiled forms are taken from `cache` and put there, if there is one.
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
