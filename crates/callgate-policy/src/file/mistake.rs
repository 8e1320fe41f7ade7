//! Mistakes in a policy file: where they are, what is wrong and what to write instead.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A position in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The first byte.
    #[serde(skip)]
    pub start: usize,
    /// One past the last byte.
    #[serde(skip)]
    pub end: usize,
}

/// A mistake in a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// The position.
    #[serde(flatten)]
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Mistake {
    pub(crate) fn new(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Why a policy cannot be loaded. Without a policy, every call is refused.
///
/// ```
/// use callgate_policy::{Policy, PolicyError};
///
/// let error = Policy::bundled("strickt").unwrap_err();
/// assert_eq!(error.kind(), "unknown_policy");
/// assert!(matches!(error, PolicyError::UnknownPolicy(unknown) if unknown.name == "strickt"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file contains mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// A file cannot be written.
    #[error(transparent)]
    Unwritable(#[from] UnwritableFile),
    /// No bundled policy has this name.
    #[error(transparent)]
    UnknownPolicy(#[from] UnknownPolicy),
}

impl PolicyError {
    /// A stable name for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mistakes(_) => "mistakes",
            Self::Unreadable(_) => "unreadable",
            Self::Unwritable(_) => "unwritable",
            Self::UnknownPolicy(_) => "unknown_policy",
        }
    }

    pub(crate) fn unreadable(path: &Path, why: impl fmt::Display) -> Self {
        UnreadableFile { path: path.to_owned(), why: why.to_string() }.into()
    }
}

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {}: {why}", path.display())]
#[non_exhaustive]
pub struct UnreadableFile {
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be read.
    pub why: String,
}

/// A file that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot write {}: {why}", path.display())]
#[non_exhaustive]
pub struct UnwritableFile {
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be written.
    pub why: String,
}

/// A name that no bundled policy has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy `{name}`; expected strict, standard, relaxed, permissive, unattended or the path of a file")]
#[non_exhaustive]
pub struct UnknownPolicy {
    /// The name.
    pub name: String,
}

/// All mistakes of one file, with its text for showing them.
#[derive(Clone, PartialEq, Eq)]
pub struct Mistakes {
    file: String,
    source: String,
    mistakes: Vec<Mistake>,
}

/// The number of mistakes that are shown; the others are counted.
const SHOWN: usize = 20;

impl Mistakes {
    pub(crate) fn new(file: impl Into<String>, source: impl Into<String>, mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| mistake.position.start);
        Self { file: file.into(), source: source.into(), mistakes }
    }

    /// The name of the file in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The mistakes in the order of the file.
    pub fn list(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// The mistakes with colors, for a terminal.
    pub fn coloured(&self) -> String {
        self.render(Colours::On)
    }

    fn render(&self, colours: Colours) -> String {
        let mut text = String::new();
        for mistake in self.mistakes.iter().take(SHOWN) {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&render(&self.file, &self.source, Severity::Error, mistake, colours));
        }
        if let Some(more) = self.mistakes.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            text.push_str(&format!("\n\nand {more} more mistakes"));
        }
        text
    }
}

/// Whether a message is for a terminal that shows colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

/// How serious a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Could be clearer.
    Note,
    /// Probably not what was meant.
    Warning,
    /// Certainly not what was meant, such as a deny rule that an allow rule makes unreachable.
    Error,
}

/// Renders one message in the style of `rustc`.
#[cfg(feature = "annotated-errors")]
pub(crate) fn render(file: &str, source: &str, severity: Severity, mistake: &Mistake, colours: Colours) -> String {
    use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

    // Only the first line is shown: the file may be large.
    let start = source.floor_char_boundary(mistake.position.start);
    let before = source.get(..start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
    let line = source.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
    let from = start.saturating_sub(line_start).min(line.len());
    let to = source.floor_char_boundary(mistake.position.end).saturating_sub(line_start).clamp(from, line.len());
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = level.primary_title(mistake.message.as_str()).element(
        Snippet::source(line)
            .line_start(mistake.position.line.max(1))
            .path(file)
            .annotation(AnnotationKind::Primary.span(from..to)),
    );
    if let Some(help) = &mistake.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if colours == Colours::On { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group]).to_string()
}

/// Renders one message.
#[cfg(not(feature = "annotated-errors"))]
pub(crate) fn render(file: &str, _source: &str, severity: Severity, mistake: &Mistake, _colours: Colours) -> String {
    let Position { line, column, .. } = mistake.position;
    let level = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let help = mistake.help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default();
    format!("{level}: {}\n --> {file}:{line}:{column}{help}", mistake.message)
}

impl fmt::Display for Mistakes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(Colours::Off))
    }
}

impl std::error::Error for Mistakes {}

// Without the text of the file, which may be long.
callgate_model::debug_fields!(Mistakes, file, mistakes);
