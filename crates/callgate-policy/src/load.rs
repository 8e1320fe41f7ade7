//! Loads policies: a bundled one, a text, a file, or all layers that apply to a directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::PolicyCache;
use crate::directories;
use crate::file::mistake::PolicyError;
use crate::layers::{Layer, LayerBody, LayerKind, LayerTrust, Policy};
use crate::source::{BUNDLED, ChainStart, PolicyChain, RelativeGlobs};
use crate::trust::TrustStore;

/// The name of policy files.
pub const FILE_NAME: &str = "callgate.yaml";
/// The path of the managed policy.
pub const MANAGED_FILE: &str = "/etc/callgate/callgate.yaml";
/// Files are looked for in this many directories upwards.
const MAXIMUM_LEVELS: usize = 64;

/// Where policy files are looked for. [`Locations::of`] gives the usual places.
#[derive(Debug, Clone, Default)]
pub struct Locations {
    /// Files are looked for from here upwards.
    pub directory: Option<PathBuf>,
    /// The call's working directory, if it is below `directory`: files on the way down to it can only tighten, trusted or not. An
    /// agent chooses where it works, so what it finds there must not take the place of the project's own file.
    pub working: Option<PathBuf>,
    /// The project; a trust store inside it is ignored.
    pub workspace: Option<PathBuf>,
    /// The managed file.
    pub managed: Option<PathBuf>,
    /// The user's file.
    pub user: Option<PathBuf>,
    /// Which project files are trusted.
    pub trusted: Option<TrustStore>,
}

/// A file of a layered policy.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FoundFile {
    /// The layer.
    pub kind: LayerKind,
    /// The file; `None` for the bundled policy.
    pub path: Option<PathBuf>,
    /// Whether it can loosen the decisions of higher layers.
    pub trusted: bool,
}

impl Locations {
    /// The usual places for a working directory.
    pub fn of(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            workspace: Some(directory.clone()),
            directory: Some(directory),
            working: None,
            managed: Some(PathBuf::from(MANAGED_FILE)),
            user: directories::configuration().map(|directory| directory.join(FILE_NAME)),
            trusted: TrustStore::of_user(),
        }
    }

    /// The same places for a call that works in this directory.
    #[must_use]
    pub fn working_in(self, directory: Option<PathBuf>) -> Self {
        Self { working: directory, ..self }
    }

    /// The files between the project and the working directory, from the project downwards.
    fn nested_files(&self) -> Vec<PathBuf> {
        let real = |path: &PathBuf| path.canonicalize().ok();
        let (Some(top), Some(working)) = (self.directory.as_ref().and_then(real), self.working.as_ref().and_then(real))
        else {
            return Vec::new();
        };
        let below = working.ancestors().take_while(|directory| *directory != top && directory.starts_with(&top));
        let files = below.map(|directory| directory.join(FILE_NAME)).filter(|file| exists(file));
        let mut files: Vec<PathBuf> = files.filter(|file| Some(file) != self.user.as_ref()).collect();
        files.reverse();
        files
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

/// Whether a file exists. If this cannot be determined, loading it reports the error.
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

    /// Loads a bundled policy: `strict`, `standard`, `relaxed`, `permissive` or `unattended`.
    pub fn bundled(name: &str) -> Result<Self, PolicyError> {
        Self::single(&ChainStart::Bundled(name))
    }

    /// Loads a policy from a text; `shown` is its name in messages. It can extend bundled policies.
    ///
    /// ```
    /// # use callgate_policy::Policy;
    /// let policy = Policy::from_yaml("extends: standard\nrules:\n  - {name: x, commands: [cargo test], action: allow}", "inline")?;
    /// let mistake = Policy::from_yaml("rulez: []", "inline").unwrap_err();
    /// assert!(mistake.to_string().contains("did you mean `rules`?"));
    /// # Ok::<(), callgate_policy::PolicyError>(())
    /// ```
    pub fn from_yaml(text: &str, shown: &str) -> Result<Self, PolicyError> {
        Self::single(&ChainStart::Text { text, shown })
    }

    /// Loads a policy from a file and the files it extends.
    pub fn from_file(path: &Path) -> Result<Self, PolicyError> {
        Self::single(&ChainStart::File { path, relative: RelativeGlobs::ToFile })
    }

    fn single(start: &ChainStart<'_>) -> Result<Self, PolicyError> {
        let body = LayerBody::File(Box::new(PolicyChain::load(start)?));
        Ok(Self::of_layers(vec![Layer { kind: LayerKind::User, trust: LayerTrust::Trusted, body }]))
    }

    /// Loads all layers that apply: managed, user and project. The bundled `standard` replaces the user layer if there is
    /// neither a user file nor a trusted project file. A file that exists but cannot be loaded is an error, because it might
    /// deny something.
    pub fn layered(locations: &Locations) -> Result<Self, PolicyError> {
        Self::layered_by(locations, PolicyChain::load).map(|(policy, _)| policy)
    }

    /// Loads all layers that apply, from a cache if possible. Layers that had to be compiled are stored only by
    /// [`CompiledLayers::save`], so that their examples can be checked first.
    pub fn layered_from(cache: Option<&PolicyCache>, locations: &Locations) -> Result<CompiledLayers, PolicyError> {
        let cache = cache.filter(|cache| cache.is_safe_from(locations.workspace.as_deref()));
        let mut is_new = false;
        let (policy, files) = Self::layered_by(locations, |start| match cache.and_then(|cache| cache.open(start)) {
            Some(chain) => Ok(chain),
            None => {
                is_new = true;
                PolicyChain::load(start)
            }
        })?;
        Ok(CompiledLayers { policy: Arc::new(policy), files, is_new })
    }

    fn layered_by(
        locations: &Locations,
        mut load: impl FnMut(&ChainStart<'_>) -> Result<PolicyChain, PolicyError>,
    ) -> Result<(Self, Vec<FoundFile>), PolicyError> {
        let mut layers = Vec::new();
        let mut files = Vec::new();
        let mut add = |kind, path: Option<PathBuf>, trust: LayerTrust, chain| {
            files.push(FoundFile { kind, path, trusted: trust == LayerTrust::Trusted });
            layers.push(Layer { kind, trust, body: LayerBody::File(Box::new(chain)) });
        };
        for (kind, path) in [(LayerKind::Managed, &locations.managed), (LayerKind::User, &locations.user)] {
            if let Some(path) = path.as_deref().filter(|path| exists(path)) {
                let chain = load(&ChainStart::File { path, relative: RelativeGlobs::ToWorkspace })?;
                add(kind, Some(path.to_owned()), LayerTrust::Trusted, chain);
            }
        }
        let has_user = locations.user.as_deref().is_some_and(exists);
        let project = match locations.project_file() {
            Some(path) => {
                let chain = load(&ChainStart::File { path: &path, relative: RelativeGlobs::ToFile })?;
                let trust = trust_in(locations, &path, &chain);
                Some((path, chain, trust))
            }
            None => None,
        };
        let stands_alone = matches!(&project, Some((_, _, LayerTrust::Trusted)));
        if !has_user && !stands_alone {
            add(LayerKind::User, None, LayerTrust::Trusted, load(&ChainStart::Bundled("standard"))?);
        }
        if let Some((path, chain, trust)) = project {
            add(LayerKind::Project, Some(path), trust, chain);
        }
        for path in locations.nested_files() {
            let chain = load(&ChainStart::File { path: &path, relative: RelativeGlobs::ToFile })?;
            add(LayerKind::Project, Some(path), LayerTrust::MayOnlyTighten, chain);
        }
        Ok((Self::of_layers(layers), files))
    }
}

/// A layered policy, parts of which may come from a cache.
#[derive(Debug)]
pub struct CompiledLayers {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The files it consists of.
    pub files: Vec<FoundFile>,
    /// Whether a layer had to be compiled.
    pub is_new: bool,
}

impl CompiledLayers {
    /// Stores the layers that had to be compiled. Errors are ignored: the next call compiles them again.
    pub fn save(&self, cache: &PolicyCache) {
        for (layer, found) in self.policy.layers.iter().zip(&self.files) {
            let LayerBody::File(chain) = &layer.body else { continue };
            if chain.image.is_some() {
                continue;
            }
            let start = match (&found.path, layer.kind) {
                (None, _) => ChainStart::Bundled("standard"),
                (Some(path), LayerKind::Project) => ChainStart::File { path, relative: RelativeGlobs::ToFile },
                (Some(path), _) => ChainStart::File { path, relative: RelativeGlobs::ToWorkspace },
            };
            let _ = cache.store(&start, chain);
        }
    }
}

fn trust_in(locations: &Locations, path: &Path, chain: &PolicyChain) -> LayerTrust {
    let trusted = locations.trusted.as_ref().is_some_and(|store| {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        store.is_safe_from(locations.workspace.as_deref()) && store.holds(&chain.settings.contents, &real)
    });
    if trusted { LayerTrust::Trusted } else { LayerTrust::MayOnlyTighten }
}
