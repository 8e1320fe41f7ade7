//! The boundary settings of policy files.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Decision;
use crate::file::mistake::Mistake;
use crate::file::model::Texts;
use crate::roots::{RelativeTo, Root, Roots};
use crate::rules::compile::{PolicySource, SetExpansion};

/// Sets that are not defined in a file but depend on the machine.
pub const BUILT_IN_SETS: &[&str] = &["@temporary", "@plans"];

/// The `boundary:` section with sets and braces expanded. `None` means that the policy does not set the value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundarySettings {
    /// Directories that may be read and written.
    pub roots: Option<Roots>,
    /// Directories that may only be read.
    pub readable: Option<Roots>,
    /// The decision for paths outside: deny or ask.
    pub outside: Option<Decision>,
    /// The decision for listing names outside: allow (`silent`), ask or deny.
    pub list_outside: Option<Decision>,
}

impl BoundarySettings {
    /// The settings of a chain: the first file that sets a value wins.
    pub(crate) fn of_sources(sources: &[Arc<PolicySource>]) -> Self {
        let list = |of: fn(&PolicySource) -> Option<&Texts>| {
            sources.iter().enumerate().find_map(|(number, source)| {
                let texts = of(source)?;
                // A list that cannot be read was reported when the chain was loaded.
                paths(sources, number, texts).ok()
            })
        };
        Self {
            roots: list(|source| source.file.boundary.roots.as_ref()),
            readable: list(|source| source.file.boundary.readable.as_ref()),
            outside: sources.iter().find_map(|source| source.file.boundary.outside),
            list_outside: sources.iter().find_map(|source| source.file.boundary.list_outside),
        }
    }
}

/// Reads one list of the boundary.
pub(crate) fn paths(chain: &[Arc<PolicySource>], file: usize, texts: &Texts) -> Result<Roots, (usize, Mistake)> {
    let relative_to = chain.get(file).map_or(RelativeTo::Call, |source| source.relative_to.clone());
    let patterns = SetExpansion::boundary(chain, file, texts, BUILT_IN_SETS)?;
    // An exclusion that has no effect must not be ignored silently.
    let unusable = patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).find(|pattern| {
        let directory = pattern.strip_suffix("/**").unwrap_or(pattern);
        directory.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'['))
    });
    if let (Some(unusable), Some(first)) = (unusable, texts.first()) {
        let position = texts.iter().find(|text| text.value.contains(unusable)).unwrap_or(first).position;
        let mistake =
            Mistake::new(position, format!("`!{unusable}` excludes nothing: a boundary consists of directories"));
        return Err((file, mistake.help("write the directories without wildcards, or deny the paths with a rule")));
    }
    let root = |path| Root { path, relative_to: relative_to.clone() };
    Ok(patterns.into_iter().map(root).collect::<Vec<_>>().into())
}
