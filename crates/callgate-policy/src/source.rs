//! Finding and reading the files a policy is made of.

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
use crate::file::mistake::{Mistake, Mistakes, PolicyError};
use crate::file::model::{At, ExecInput, Timeouts};
use crate::file::yaml::{self, Limits};
use crate::rules::compile::{Compiled, Source, compile};
use crate::rules::matching::glob::Base;
use crate::rules::stored::Image;

/// The bundled policies by name.
pub(crate) const BUNDLED: &[(&str, &str)] = &[
    ("strict", include_str!("../policies/strict.yaml")),
    ("standard", include_str!("../policies/standard.yaml")),
    ("permissive", include_str!("../policies/permissive.yaml")),
    ("unattended", include_str!("../policies/unattended.yaml")),
];
const SETS: &str = include_str!("../policies/sets.yaml");

/// A file may extend a file that extends a file, this often.
const MAXIMUM_CHAIN: usize = 8;

/// A file of a chain with its text.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub source: Arc<Source>,
    pub text: String,
    /// Where it lies; `None` for bundled policies and texts.
    pub path: Option<PathBuf>,
}

/// A chain of files, the extending one first, the bundled sets last.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The files as they were read; none if the chain was stored.
    pub files: Vec<Loaded>,
    pub compiled: Compiled,
    pub settings: Settings,
    /// Where a stored chain lies.
    pub image: Option<Arc<Image>>,
}

/// What a chain says beside its rules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub boundary: BoundarySettings,
    pub timeouts: Timeouts,
    /// The `approvals:` section of the first file that has one, checked.
    pub approvals: Option<serde_json::Value>,
    /// How far a running program covers what is typed into it, if a file says so.
    pub exec_input: Option<ExecInput>,
    /// What the files say about the log, the extending one first.
    #[serde(default)]
    pub audit: AuditSettings,
    pub sandbox: bool,
    /// Program tables, each with the file it comes from.
    pub programs: Vec<(String, String)>,
    /// A hash of everything that was read.
    pub version: String,
    /// A hash of what lies in files. What is bundled comes with the program and needs no trust of its own.
    pub contents: String,
}

impl Settings {
    fn of(files: &[Loaded]) -> Self {
        let sources: Vec<Arc<Source>> = files.iter().map(|file| Arc::clone(&file.source)).collect();
        let each = || sources.iter().map(|source| &source.file);
        let shortest = |of: fn(&Timeouts) -> Option<u64>| each().filter_map(|file| of(&file.timeouts)).min();
        Self {
            boundary: BoundarySettings::of_sources(&sources),
            timeouts: Timeouts {
                approval_ms: shortest(|timeouts| timeouts.approval_ms),
                human_ms: shortest(|timeouts| timeouts.human_ms),
            },
            approvals: each().find_map(|file| file.approvals.clone()),
            exec_input: each().find_map(|file| file.exec_input),
            audit: each().fold(AuditSettings::default(), |audit, file| audit.or(&file.audit.settings)),
            sandbox: each().any(|file| file.sandbox == Some(true)),
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
pub(crate) enum Start<'a> {
    /// A bundled policy.
    Bundled(&'a str),
    /// A text with the name it goes by in messages.
    Text { text: &'a str, shown: &'a str },
    /// A file.
    File { path: &'a Path, relative: Relative },
}

/// What relative globs in a file are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relative {
    /// The workspace of the call: for files that are about every project.
    ToWorkspace,
    /// The file's directory: for files of a project.
    ToFile,
}

impl Chain {
    /// Reads a file and everything it extends, and compiles it.
    pub(crate) fn load(start: &Start<'_>) -> Result<Self, PolicyError> {
        let mut files = vec![match start {
            Start::Bundled(name) => bundled(name)?,
            Start::Text { text, shown } => parse((*text).to_owned(), (*shown).to_owned(), None, Base::Workspace)?,
            Start::File { path, relative } => read(path, *relative)?,
        }];
        while let Some(last) = files.last() {
            let Some(extends) = last.source.file.extends.clone() else { break };
            let next = follow(last, &extends)?;
            let again = files.iter().any(|file| match &next.path {
                Some(path) => file.path.as_ref() == Some(path),
                None => file.path.is_none() && file.text == next.text,
            });
            if again || files.len() >= MAXIMUM_CHAIN {
                let message = if again { "this file extends itself" } else { "too many files extend each other" };
                return Err(one(last, Mistake::new(extends.position, message).help("remove one `extends`")));
            }
            files.push(next);
        }
        files.push(sets()?);
        let sources: Vec<Arc<Source>> = files.iter().map(|file| Arc::clone(&file.source)).collect();
        for (number, source) in sources.iter().enumerate() {
            for texts in [&source.file.boundary.roots, &source.file.boundary.readable].into_iter().flatten() {
                crate::boundary::paths(&sources, number, texts).map_err(|located| mistakes(&files, vec![located]))?;
            }
        }
        match compile(&sources) {
            Ok(compiled) => Ok(Self { settings: Settings::of(&files), files, compiled, image: None }),
            Err(located) => Err(mistakes(&files, located)),
        }
    }

    /// Whether something that was read of a stored chain was not as it was written.
    pub(crate) fn is_damaged(&self) -> bool {
        self.image.as_ref().is_some_and(|image| image.is_damaged())
    }
}

fn hash<'a>(files: impl Iterator<Item = &'a Loaded>) -> String {
    sha256_hex_of(
        files.flat_map(|file| [(file.text.len() as u64).to_le_bytes().to_vec(), file.text.clone().into_bytes()]),
    )
}

/// The mistakes of the first file that has any: those of the next are best read after they are gone.
fn mistakes(files: &[Loaded], located: Vec<(usize, Mistake)>) -> PolicyError {
    let first = located.iter().map(|(file, _)| *file).min().unwrap_or_default();
    let list = located.into_iter().filter(|(file, _)| *file == first).map(|(_, mistake)| mistake).collect();
    match files.get(first) {
        Some(file) => Mistakes::new(&file.source.shown, &file.text, list).into(),
        None => Mistakes::new("", "", list).into(),
    }
}

fn one(file: &Loaded, mistake: Mistake) -> PolicyError {
    Mistakes::new(&file.source.shown, &file.text, vec![mistake]).into()
}

fn bundled(name: &str) -> Result<Loaded, PolicyError> {
    match BUNDLED.iter().find(|(bundled, _)| *bundled == name) {
        Some((name, text)) => parse((*text).to_owned(), format!("{name} (bundled)"), None, Base::Workspace),
        None => Err(PolicyError::NoSuchPolicy { name: name.to_owned() }),
    }
}

/// The bundled sets, read once.
fn sets() -> Result<Loaded, PolicyError> {
    static READ: OnceLock<Result<Loaded, PolicyError>> = OnceLock::new();
    READ.get_or_init(|| parse(SETS.to_owned(), "sets.yaml (bundled)".to_owned(), None, Base::Workspace)).clone()
}

fn follow(file: &Loaded, extends: &At<String>) -> Result<Loaded, PolicyError> {
    let names = || BUNDLED.iter().map(|(name, _)| *name);
    if names().any(|name| name == extends.value) {
        return bundled(&extends.value);
    }
    let looks_like_file = extends.value.contains('/') || Path::new(&extends.value).extension().is_some();
    let directory = file.path.as_deref().and_then(Path::parent);
    match directory {
        Some(directory) if looks_like_file => {
            let relative = match file.source.base {
                Base::Workspace => Relative::ToWorkspace,
                Base::Directory(_) => Relative::ToFile,
            };
            read(&directory.join(&extends.value), relative).map_err(|error| match error {
                PolicyError::Unreadable { why, .. } => {
                    one(file, Mistake::new(extends.position, format!("cannot read this file: {why}")))
                }
                other => other,
            })
        }
        _ => {
            let known = names().collect::<Vec<_>>().join(", ");
            let help = match nearest(&extends.value, names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {known}; a file is written with its path (`./team.yaml`)"),
            };
            Err(one(file, Mistake::new(extends.position, "no policy of this name").help(help)))
        }
    }
}

/// Reads a file, but never more than the limit and never something that is no file (a pipe would block).
pub(crate) fn read_text(path: &Path) -> Result<String, PolicyError> {
    let unreadable = |why: String| PolicyError::Unreadable { path: path.display().to_string(), why };
    let handle = Handle::open(path).map_err(|error| unreadable(error.to_string()))?;
    let metadata = handle.metadata().map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() {
        return Err(unreadable("it is no file".to_owned()));
    }
    let limit = Limits::POLICY.bytes;
    let mut bytes = Vec::new();
    handle
        .take(limit.saturating_add(1) as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() > limit {
        return Err(unreadable(format!("it is larger than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))
}

fn read(path: &Path, relative: Relative) -> Result<Loaded, PolicyError> {
    // A pipe or device is refused before it is opened: opening alone may block.
    let unreadable =
        |why: &std::io::Error| PolicyError::Unreadable { path: path.display().to_string(), why: why.to_string() };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(PolicyError::Unreadable { path: path.display().to_string(), why: "it is no file".to_owned() });
    }
    let real = path.canonicalize().map_err(|error| unreadable(&error))?;
    let text = read_text(&real)?;
    let base = match (relative, real.parent()) {
        (Relative::ToFile, Some(directory)) => Base::Directory(directory.to_string_lossy().into_owned()),
        _ => Base::Workspace,
    };
    parse(text, path.display().to_string(), Some(real), base)
}

fn parse(text: String, shown: String, path: Option<PathBuf>, base: Base) -> Result<Loaded, PolicyError> {
    // A byte order mark is no part of the text.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let file = yaml::read(&text, Limits::POLICY)
        .map_err(|mistake| vec![mistake])
        .and_then(|root| decode::file(&root))
        .map_err(|list| Mistakes::new(&shown, &text, list))?;
    Ok(Loaded { source: Arc::new(Source { file, shown, base }), text, path })
}
