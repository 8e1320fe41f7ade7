//! Mistakes in a policy file: where, what, and what to write instead.

use std::fmt;

use serde::Serialize;

/// Where something stands in a file.
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

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// Where it stands.
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

/// Why a policy cannot be used. A policy that cannot be used refuses everything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The file says something that is not understood.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// The file cannot be read.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        why: String,
    },
    /// No bundled policy has this name.
    #[error("unknown policy `{name}`; expected strict, standard, permissive, unattended or the path of a file")]
    NoSuchPolicy {
        /// The name.
        name: String,
    },
}

/// All mistakes of one file, with its text for showing them.
#[derive(Clone, PartialEq, Eq)]
pub struct Mistakes {
    file: String,
    source: String,
    mistakes: Vec<Mistake>,
}

/// More than this many mistakes are counted, not shown.
const SHOWN: usize = 20;

impl Mistakes {
    pub(crate) fn new(file: impl Into<String>, source: impl Into<String>, mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| mistake.position.start);
        Self { file: file.into(), source: source.into(), mistakes }
    }

    /// The file as it should be called in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The mistakes in the order of the file.
    pub fn list(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// For a terminal, with colours.
    pub fn coloured(&self) -> String {
        self.render(Colours::On)
    }

    fn render(&self, colours: Colours) -> String {
        let mut text = String::new();
        for mistake in self.mistakes.iter().take(SHOWN) {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&render(&self.file, &self.source, Level::Error, mistake, colours));
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

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warning,
    Note,
}

/// One message about a place in a file, as `rustc` would show it.
#[cfg(feature = "annotated-errors")]
pub(crate) fn render(file: &str, source: &str, level: Level, mistake: &Mistake, colours: Colours) -> String {
    use annotate_snippets::{AnnotationKind, Level as Title, Renderer, Snippet};

    // Only the line itself: a span over several lines says no more, and the file may be large.
    let start = source.floor_char_boundary(mistake.position.start);
    let before = source.get(..start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
    let line = source.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
    let from = start.saturating_sub(line_start).min(line.len());
    let to = source.floor_char_boundary(mistake.position.end).saturating_sub(line_start).clamp(from, line.len());
    let title = match level {
        Level::Error => Title::ERROR,
        Level::Warning => Title::WARNING,
        Level::Note => Title::NOTE,
    };
    let mut group = title.primary_title(mistake.message.as_str()).element(
        Snippet::source(line)
            .line_start(mistake.position.line.max(1))
            .path(file)
            .annotation(AnnotationKind::Primary.span(from..to)),
    );
    if let Some(help) = &mistake.help {
        group = group.element(Title::HELP.message(help.as_str()));
    }
    let renderer = if colours == Colours::On { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group]).to_string()
}

/// One message about a place in a file.
#[cfg(not(feature = "annotated-errors"))]
pub(crate) fn render(file: &str, _source: &str, level: Level, mistake: &Mistake, _colours: Colours) -> String {
    let Position { line, column, .. } = mistake.position;
    let level = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
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

impl fmt::Debug for Mistakes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the text of the file, which may be long.
        formatter
            .debug_struct("Mistakes")
            .field("file", &self.file)
            .field("mistakes", &self.mistakes)
            .finish_non_exhaustive()
    }
}
