//! Making policies: from a bundled one, a text, a file, or all layers that apply to a directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::PolicyCache;
use crate::directories;
use crate::file::mistake::PolicyError;
use crate::layers::{Body, Layer, LayerKind, Policy, Trust};
use crate::source::{BUNDLED, Chain, Relative, Start};
use crate::trust::TrustStore;

/// What policy files are called.
pub const FILE_NAME: &str = "callgate.yaml";
/// Where the machine's owner puts a policy.
pub const MANAGED_FILE: &str = "/etc/callgate/callgate.yaml";
/// Files are looked for in this many directories upwards.
const MAXIMUM_LEVELS: usize = 64;

/// Where policy files are looked for. [`Locations::of`] gives the usual places.
#[derive(Debug, Clone, Default)]
pub struct Locations {
    /// Files are looked for from here upwards.
    pub directory: Option<PathBuf>,
    /// The project; a trust store inside it says nothing.
    pub workspace: Option<PathBuf>,
    /// The file of the machine's owner.
    pub managed: Option<PathBuf>,
    /// The user's file.
    pub user: Option<PathBuf>,
    /// Which project files are trusted.
    pub trusted: Option<TrustStore>,
}

/// What was found where.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FoundFile {
    /// Whose file it is.
    pub kind: LayerKind,
    /// The file; `None` for the bundled policy.
    pub path: Option<PathBuf>,
    /// Whether it may loosen what higher layers say.
    pub trusted: bool,
}

impl Locations {
    /// The usual places for a working directory.
    pub fn of(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            workspace: Some(directory.clone()),
            directory: Some(directory),
            managed: Some(PathBuf::from(MANAGED_FILE)),
            user: directories::configuration().map(|directory| directory.join(FILE_NAME)),
            trusted: TrustStore::of_user(),
        }
    }

    /// The project's file: the first one from the directory upwards that is not the user's own.
    pub fn project_file(&self) -> Option<PathBuf> {
        self.directory
            .as_deref()?
            .ancestors()
            .take(MAXIMUM_LEVELS)
            .map(|directory| directory.join(FILE_NAME))
            .find(|file| exists(file) && Some(file) != self.user.as_ref() && Some(file) != self.managed.as_ref())
    }
}

/// Whether something lies there. What cannot be looked at counts, so that it is reported and not passed over.
fn exists(file: &Path) -> bool {
    !matches!(std::fs::symlink_metadata(file), Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory))
}

impl Policy {
    /// The names of the bundled policies.
    pub fn bundled_names() -> impl Iterator<Item = &'static str> {
        BUNDLED.iter().map(|(name, _)| *name)
    }

    /// The text of a bundled policy.
    pub fn bundled_text(name: &str) -> Option<&'static str> {
        BUNDLED.iter().find(|(bundled, _)| *bundled == name).map(|(_, text)| *text)
    }

    /// A bundled policy: `strict`, `standard`, `permissive` or `unattended`.
    pub fn bundled(name: &str) -> Result<Self, PolicyError> {
        Self::single(&Start::Bundled(name))
    }

    /// A policy from a text; `shown` is what it is called in messages. It can extend bundled policies.
    ///
    /// ```
    /// # use callgate_policy::Policy;
    /// let policy = Policy::from_yaml("extends: standard\nrules:\n  - {name: x, commands: [cargo test], action: allow}", "inline")?;
    /// let mistake = Policy::from_yaml("rulez: []", "inline").unwrap_err();
    /// assert!(mistake.to_string().contains("did you mean `rules`?"));
    /// # Ok::<(), callgate_policy::PolicyError>(())
    /// ```
    pub fn from_yaml(text: &str, shown: &str) -> Result<Self, PolicyError> {
        Self::single(&Start::Text { text, shown })
    }

    /// A policy from one file and what it extends.
    pub fn from_file(path: &Path) -> Result<Self, PolicyError> {
        Self::single(&Start::File { path, relative: Relative::ToFile })
    }

    fn single(start: &Start<'_>) -> Result<Self, PolicyError> {
        let body = Body::File(Box::new(Chain::load(start)?));
        Ok(Self::of_layers(vec![Layer { kind: LayerKind::User, trust: Trust::Trusted, body }]))
    }

    /// All layers that apply: managed, user and project, or the bundled `standard` where neither user nor a trusted project
    /// says anything. A file that is there and cannot be used is an error: it might have forbidden something.
    pub fn layered(locations: &Locations) -> Result<Self, PolicyError> {
        Self::layered_by(locations, Chain::load).map(|(policy, _)| policy)
    }

    /// All layers that apply, as far as possible from a cache. What had to be compiled is stored only by
    /// [`CompiledLayers::save`], so that its examples can be checked first.
    pub fn layered_from(cache: Option<&PolicyCache>, locations: &Locations) -> Result<CompiledLayers, PolicyError> {
        let cache = cache.filter(|cache| cache.is_safe_from(locations.workspace.as_deref()));
        let mut is_new = false;
        let (policy, files) = Self::layered_by(locations, |start| match cache.and_then(|cache| cache.open(start)) {
            Some(chain) => Ok(chain),
            None => {
                is_new = true;
                Chain::load(start)
            }
        })?;
        Ok(CompiledLayers { policy: Arc::new(policy), files, is_new })
    }

    fn layered_by(
        locations: &Locations,
        mut load: impl FnMut(&Start<'_>) -> Result<Chain, PolicyError>,
    ) -> Result<(Self, Vec<FoundFile>), PolicyError> {
        let mut layers = Vec::new();
        let mut files = Vec::new();
        let mut add = |kind, path: Option<PathBuf>, trust: Trust, chain| {
            files.push(FoundFile { kind, path, trusted: trust == Trust::Trusted });
            layers.push(Layer { kind, trust, body: Body::File(Box::new(chain)) });
        };
        for (kind, path) in [(LayerKind::Managed, &locations.managed), (LayerKind::User, &locations.user)] {
            if let Some(path) = path.as_deref().filter(|path| exists(path)) {
                let chain = load(&Start::File { path, relative: Relative::ToWorkspace })?;
                add(kind, Some(path.to_owned()), Trust::Trusted, chain);
            }
        }
        let has_user = locations.user.as_deref().is_some_and(exists);
        let project = match locations.project_file() {
            Some(path) => {
                let chain = load(&Start::File { path: &path, relative: Relative::ToFile })?;
                let trust = trust_in(locations, &path, &chain);
                Some((path, chain, trust))
            }
            None => None,
        };
        let stands_alone = matches!(&project, Some((_, _, Trust::Trusted)));
        if !has_user && !stands_alone {
            add(LayerKind::User, None, Trust::Trusted, load(&Start::Bundled("standard"))?);
        }
        if let Some((path, chain, trust)) = project {
            add(LayerKind::Project, Some(path), trust, chain);
        }
        Ok((Self::of_layers(layers), files))
    }
}

/// All layers that apply, some of which may come from a cache.
#[derive(Debug)]
pub struct CompiledLayers {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Which files it is made of.
    pub files: Vec<FoundFile>,
    /// Whether a part of it had to be compiled.
    pub is_new: bool,
}

impl CompiledLayers {
    /// Stores what had to be compiled. Failing to costs time with the next call, nothing else.
    pub fn save(&self, cache: &PolicyCache) {
        for (layer, found) in self.policy.layers.iter().zip(&self.files) {
            let Body::File(chain) = &layer.body else { continue };
            if chain.image.is_some() {
                continue;
            }
            let start = match (&found.path, layer.kind) {
                (None, _) => Start::Bundled("standard"),
                (Some(path), LayerKind::Project) => Start::File { path, relative: Relative::ToFile },
                (Some(path), _) => Start::File { path, relative: Relative::ToWorkspace },
            };
            let _ = cache.store(&start, chain);
        }
    }
}

fn trust_in(locations: &Locations, path: &Path, chain: &Chain) -> Trust {
    let trusted = locations.trusted.as_ref().is_some_and(|store| {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        store.is_safe_from(locations.workspace.as_deref()) && store.holds(&chain.settings.contents, &real)
    });
    if trusted { Trust::Trusted } else { Trust::MayOnlyTighten }
}
