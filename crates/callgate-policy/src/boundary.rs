//! What policy files say about the boundary. Applying it is the work of whoever resolves paths.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Decision;
use crate::file::mistake::Mistake;
use crate::file::model::Texts;
use crate::roots::{RelativeTo, Root, Roots};
use crate::rules::compile::{Expansion, Source};
use crate::rules::matching::glob::Base;

/// Sets that are not lists of a file: whoever resolves paths knows what they stand for.
pub const BUILT_IN_SETS: &[&str] = &["@temporary", "@plans"];

/// The `boundary:` section with sets and braces expanded. `None`: the policy does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundarySettings {
    /// What may be read and written.
    pub roots: Option<Roots>,
    /// What may only be read.
    pub readable: Option<Roots>,
    /// What happens outside: deny or ask.
    pub outside: Option<Decision>,
    /// What happens when only names are seen outside: allow (silent), ask or deny.
    pub list_outside: Option<Decision>,
}

impl BoundarySettings {
    /// The first file that says something decides.
    pub(crate) fn of_sources(sources: &[Arc<Source>]) -> Self {
        let list = |of: fn(&Source) -> Option<&Texts>| {
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
pub(crate) fn paths(chain: &[Arc<Source>], file: usize, texts: &Texts) -> Result<Roots, (usize, Mistake)> {
    let relative_to = match chain.get(file).map(|source| &source.base) {
        Some(Base::Directory(directory)) => RelativeTo::Directory(PathBuf::from(directory)),
        _ => RelativeTo::Call,
    };
    let patterns = Expansion::boundary(chain, file, texts, BUILT_IN_SETS)?;
    // A boundary is made of directories. What names none adds nothing, but must not silently fail to take something out.
    let unusable = patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).find(|pattern| {
        let directory = pattern.strip_suffix("/**").unwrap_or(pattern);
        directory.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'['))
    });
    if let (Some(unusable), Some(first)) = (unusable, texts.first()) {
        let position = texts.iter().find(|text| text.value.contains(unusable)).unwrap_or(first).position;
        let mistake =
            Mistake::new(position, format!("`!{unusable}` takes nothing out of a boundary: it names no directory"));
        return Err((file, mistake.help("write the names out, or deny them with a rule")));
    }
    let root = |path| Root { path, relative_to: relative_to.clone() };
    Ok(patterns.into_iter().map(root).collect::<Vec<_>>().into())
}
