//! Reads the files that a policy consists of.

use std::fs::File as Handle;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use callgate_model::digest::sha256_hex_of;
use serde::{Deserialize, Serialize};

use crate::boundary::BoundarySettings;
use crate::file::audit::AuditSettings;
use crate::file::decode;
use crate::file::keys::nearest;
use crate::file::mistake::{Mistake, Mistakes, PolicyError, UnknownPolicy};
use crate::file::model::{AgentAnswers, ExecInput, SandboxSettings, Spanned, Timeouts};
use crate::file::yaml::{self, Limits};
use crate::roots::RelativeTo;
use crate::rules::compile::{CompiledPolicy, PolicySource, compile};
use crate::rules::stored::Image;

/// The bundled policies by name.
pub(crate) const BUNDLED: &[(&str, &str)] = &[
    ("strict", include_str!("../policies/strict.yaml")),
    ("standard", include_str!("../policies/standard.yaml")),
    ("relaxed", include_str!("../policies/relaxed.yaml")),
    ("permissive", include_str!("../policies/permissive.yaml")),
    ("unattended", include_str!("../policies/unattended.yaml")),
];
const SETS: &str = include_str!("../policies/sets.yaml");

/// The limit for a chain of `extends`.
const MAXIMUM_CHAIN: usize = 8;

/// A file of a chain with its text.
#[derive(Debug, Clone)]
pub(crate) struct LoadedFile {
    pub source: Arc<PolicySource>,
    pub text: String,
    /// The resolved path; `None` for bundled policies and texts.
    pub path: Option<PathBuf>,
}

/// A chain of files, the extending one first, the bundled sets last.
#[derive(Debug)]
pub(crate) struct PolicyChain {
    /// The files; empty for a chain from the cache.
    pub files: Vec<LoadedFile>,
    pub compiled: CompiledPolicy,
    pub settings: ChainSettings,
    /// The file of a chain from the cache.
    pub image: Option<Arc<Image>>,
}

/// What a chain sets besides its rules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ChainSettings {
    pub boundary: BoundarySettings,
    pub timeouts: Timeouts,
    /// The `approvals:` section of the first file that has one, checked.
    pub approvals: Option<serde_json::Value>,
    /// How input to a running program is treated, if a file sets it.
    pub exec_input: Option<ExecInput>,
    /// How long a yes at the agent's own prompt counts, if a file sets it.
    #[serde(default)]
    pub agent_answers: Option<AgentAnswers>,
    /// The audit settings, the extending file first.
    #[serde(default)]
    pub audit: AuditSettings,
    #[serde(default)]
    pub sandbox: SandboxSettings,
    /// Program tables, each with the file it comes from.
    pub programs: Vec<(String, String)>,
    /// A hash of everything that was read.
    pub version: String,
    /// A hash of the contents of all files. Bundled policies are part of the program and need no trust.
    pub contents: String,
}

impl ChainSettings {
    fn of(files: &[LoadedFile]) -> Self {
        let sources: Vec<Arc<PolicySource>> = files.iter().map(|file| Arc::clone(&file.source)).collect();
        let each = || sources.iter().map(|source| &source.file);
        Self {
            boundary: BoundarySettings::of_sources(&sources),
            timeouts: Timeouts::shortest(each().map(|file| file.timeouts)),
            approvals: each().find_map(|file| file.approvals.clone()),
            exec_input: each().find_map(|file| file.exec_input),
            agent_answers: each().find_map(|file| file.agent_answers),
            audit: each().fold(AuditSettings::default(), |audit, file| audit.or(&file.audit.settings)),
            sandbox: each().fold(SandboxSettings::default(), |settings, file| settings.or(file.sandbox)),
            programs: sources
                .iter()
                .filter_map(|source| Some((source.shown.clone(), source.file.programs.as_ref()?.value.clone())))
                .collect(),
            version: hash(files.iter()),
            contents: hash(files.iter().filter(|file| file.path.is_some())),
        }
    }
}

/// Where a chain starts.
pub(crate) enum ChainStart<'a> {
    /// A bundled policy.
    Bundled(&'a str),
    /// A text with the name it goes by in messages.
    Text { text: &'a str, shown: &'a str },
    /// A file.
    File { path: &'a Path, relative: RelativeGlobs },
}

/// What relative globs in a file are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelativeGlobs {
    /// The workspace of the call: for files that are about every project.
    ToWorkspace,
    /// The file's directory: for files of a project.
    ToFile,
}

impl PolicyChain {
    /// Reads a file and everything it extends, and compiles it.
    pub(crate) fn load(start: &ChainStart<'_>) -> Result<Self, PolicyError> {
        let mut files = vec![match start {
            ChainStart::Bundled(name) => bundled(name)?,
            ChainStart::Text { text, shown } => parse((*text).to_owned(), (*shown).to_owned(), None, RelativeTo::Call)?,
            ChainStart::File { path, relative } => read(path, *relative)?,
        }];
        while let Some(last) = files.last() {
            let Some(extends) = last.source.file.extends.clone() else { break };
            let next = follow(last, &extends)?;
            let again = files.iter().any(|file| match &next.path {
                Some(path) => file.path.as_ref() == Some(path),
                None => file.path.is_none() && file.text == next.text,
            });
            if again || files.len() >= MAXIMUM_CHAIN {
                let message = if again { "file extends itself" } else { "chain of `extends` is too long" };
                return Err(one(last, Mistake::new(extends.position, message).help("remove one `extends`")));
            }
            files.push(next);
        }
        files.push(sets()?);
        let sources: Vec<Arc<PolicySource>> = files.iter().map(|file| Arc::clone(&file.source)).collect();
        for (number, source) in sources.iter().enumerate() {
            for texts in [&source.file.boundary.roots, &source.file.boundary.readable].into_iter().flatten() {
                crate::boundary::paths(&sources, number, texts).map_err(|located| mistakes(&files, vec![located]))?;
            }
        }
        match compile(&sources) {
            Ok(compiled) => Ok(Self { settings: ChainSettings::of(&files), files, compiled, image: None }),
            Err(located) => Err(mistakes(&files, located)),
        }
    }

    /// Whether a page of a chain from the cache was damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.image.as_ref().is_some_and(|image| image.is_damaged())
    }
}

fn hash<'a>(files: impl Iterator<Item = &'a LoadedFile>) -> String {
    sha256_hex_of(
        files.flat_map(|file| [(file.text.len() as u64).to_le_bytes().to_vec(), file.text.clone().into_bytes()]),
    )
}

/// The mistakes of the first file that has any.
fn mistakes(files: &[LoadedFile], located: Vec<(usize, Mistake)>) -> PolicyError {
    let first = located.iter().map(|(file, _)| *file).min().unwrap_or_default();
    let list = located.into_iter().filter(|(file, _)| *file == first).map(|(_, mistake)| mistake).collect();
    match files.get(first) {
        Some(file) => Mistakes::new(&file.source.shown, &file.text, list).into(),
        None => Mistakes::new("", "", list).into(),
    }
}

fn one(file: &LoadedFile, mistake: Mistake) -> PolicyError {
    Mistakes::new(&file.source.shown, &file.text, vec![mistake]).into()
}

fn bundled(name: &str) -> Result<LoadedFile, PolicyError> {
    match BUNDLED.iter().find(|(bundled, _)| *bundled == name) {
        Some((name, text)) => parse((*text).to_owned(), format!("{name} (bundled)"), None, RelativeTo::Call),
        None => Err(UnknownPolicy { name: name.to_owned() }.into()),
    }
}

/// The bundled sets, read once.
fn sets() -> Result<LoadedFile, PolicyError> {
    static READ: OnceLock<Result<LoadedFile, PolicyError>> = OnceLock::new();
    READ.get_or_init(|| parse(SETS.to_owned(), "sets.yaml (bundled)".to_owned(), None, RelativeTo::Call)).clone()
}

fn follow(file: &LoadedFile, extends: &Spanned<String>) -> Result<LoadedFile, PolicyError> {
    let names = || BUNDLED.iter().map(|(name, _)| *name);
    if names().any(|name| name == extends.value) {
        return bundled(&extends.value);
    }
    let looks_like_file = extends.value.contains('/') || Path::new(&extends.value).extension().is_some();
    let directory = file.path.as_deref().and_then(Path::parent);
    match directory {
        Some(directory) if looks_like_file => {
            let relative = match file.source.relative_to {
                RelativeTo::Call => RelativeGlobs::ToWorkspace,
                RelativeTo::Directory(_) => RelativeGlobs::ToFile,
            };
            read(&directory.join(&extends.value), relative).map_err(|error| match error {
                PolicyError::Unreadable(error) => one(file, Mistake::new(extends.position, error.to_string())),
                other => other,
            })
        }
        _ => {
            let known = names().collect::<Vec<_>>().join(", ");
            let help = match nearest(&extends.value, names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("expected {known}, or the path of a file such as `./team.yaml`"),
            };
            Err(one(file, Mistake::new(extends.position, format!("unknown policy `{}`", extends.value)).help(help)))
        }
    }
}

/// Reads a file, but never more than the limit, and never a pipe or device: opening one alone may block.
pub(crate) fn read_text(path: &Path) -> Result<String, PolicyError> {
    let unreadable = |error: std::io::Error| PolicyError::unreadable(path, error);
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(PolicyError::unreadable(path, "not a file"));
    }
    let limit = Limits::POLICY.bytes;
    let mut bytes = Vec::new();
    let handle = Handle::open(path).map_err(unreadable)?;
    handle.take(limit.saturating_add(1) as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > limit {
        return Err(PolicyError::unreadable(path, format_args!("larger than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| PolicyError::unreadable(path, "not UTF-8 text"))
}

fn read(path: &Path, relative: RelativeGlobs) -> Result<LoadedFile, PolicyError> {
    let real = path.canonicalize().map_err(|error| PolicyError::unreadable(path, error))?;
    let text = read_text(&real)?;
    let base = match (relative, real.parent()) {
        (RelativeGlobs::ToFile, Some(directory)) => RelativeTo::Directory(directory.to_owned()),
        _ => RelativeTo::Call,
    };
    parse(text, path.display().to_string(), Some(real), base)
}

fn parse(
    text: String,
    shown: String,
    path: Option<PathBuf>,
    relative_to: RelativeTo,
) -> Result<LoadedFile, PolicyError> {
    // Skip a byte order mark.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let file = yaml::read(&text, Limits::POLICY)
        .map_err(|mistake| vec![mistake])
        .and_then(|root| decode::file(&root))
        .map_err(|list| Mistakes::new(&shown, &text, list))?;
    Ok(LoadedFile { source: Arc::new(PolicySource { file, shown, relative_to }), text, path })
}
