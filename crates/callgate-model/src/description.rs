//! The description of a call: its parts and their effects.

use serde::{Deserialize, Serialize};

use crate::effect::{Action, Coverage, Effect, Mark};
use crate::place::Place;
use crate::word::Word;

/// What a call would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The category of the tool: `shell`, `file_read`, `file_write`, `network`, `agent`, `plan`, `unknown` …
    pub category: String,
    /// The simple commands of a shell call in the order they run; one part without words for any other tool.
    pub parts: Vec<Part>,
    /// Whether the effects are complete.
    pub coverage: Coverage,
}

/// One simple command, or a whole call that is not a shell command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The command's words as they will run; empty if it is not a shell command.
    pub words: Vec<Word>,
    /// Programs in front of the command that run it, outermost first (`sudo`, `env`).
    pub wrappers: Vec<String>,
    /// The machine or container that it runs in, if not this one.
    pub elsewhere: Option<String>,
    /// Its working directory, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What it would do.
    pub effects: Vec<PlacedEffect>,
    /// The files that its program would load, until somebody has looked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Loads>,
    /// What it does with the files of a git repository, until somebody has looked there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<GitUse>,
    /// The new contents of files that it writes, until somebody has compared them with the old ones. Never stored.
    #[serde(skip)]
    pub edits: Vec<FileEdit>,
}

/// The new contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The file, as in the effect that writes it.
    pub path: String,
    /// How they come about.
    pub change: FileChange,
}

/// How the contents of a file change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// This is all that the file contains then.
    Whole(String),
    /// One text is put in place of another, several times in order.
    Replaced(Vec<Replacement>),
}

/// A text that is put in place of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The text that is there.
    pub old: String,
    /// What comes in its place.
    pub new: String,
    /// Wherever it is; otherwise it must be there once.
    pub all: bool,
}

impl FileChange {
    /// The contents after the change; `None` if a text is missing, or is there several times.
    pub fn apply(&self, contents: &str) -> Option<String> {
        let replacements = match self {
            FileChange::Whole(text) => return Some(text.clone()),
            FileChange::Replaced(replacements) => replacements,
        };
        let mut text = contents.to_owned();
        for Replacement { old, new, all } in replacements {
            let count = if old.is_empty() { 0 } else { text.matches(old.as_str()).take(2).count() };
            if count == 0 || count > 1 && !all {
                return None;
            }
            text = text.replace(old.as_str(), new);
        }
        Some(text)
    }
}

/// What a command does with the files of a git repository. Which files these are, only the repository says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitUse {
    /// What it does.
    pub task: GitTask,
    /// The command, for reasons: `git log`.
    pub command: String,
    /// The directory in which it runs; `None` if unknown.
    pub directory: Option<String>,
    /// Its operands: revisions and pathspecs.
    pub operands: Vec<Word>,
    /// How many of them stand in front of `--`; `None` if there is none.
    pub before_dashes: Option<usize>,
    /// The names of the options that are given.
    pub options: Vec<String>,
    /// The most commits that it shows, if an option says so.
    pub limit: Option<usize>,
}

/// A kind of work with the files of a git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitTask {
    /// Shows how the work tree or a revision differs from another version.
    ShowsChanges,
    /// Shows how the index differs from HEAD or a revision.
    ShowsStaged,
    /// Shows the changes that commits made.
    ShowsCommits,
    /// Shows files of revisions, or of the index if none is named.
    ShowsFiles,
    /// Shows objects: what is named may be a file.
    ShowsObjects,
    /// Shows what is put aside.
    ShowsStash,
    /// Takes files from the work tree that may be new to git.
    TakesFiles,
    /// Switches to another revision.
    Switches,
    /// Brings in another branch.
    Merges,
    /// Repeats commits.
    Picks,
    /// Undoes commits.
    Reverts,
    /// Rewrites commits on another base.
    Rebases,
    /// Takes back what is put aside.
    Unstashes,
}

impl GitTask {
    /// Whether it only shows or takes files; every other task changes the work tree.
    pub fn looks(self) -> bool {
        !matches!(self, Self::Switches | Self::Merges | Self::Picks | Self::Reverts | Self::Rebases | Self::Unstashes)
    }
}

/// Files of the project that a program loads: code, or configuration that can change what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loads {
    /// The program, for reasons.
    pub program: String,
    /// Where it starts to look for them; it goes on in the directories above. `None` if unknown.
    pub directory: Option<String>,
    /// Their names relative to each of these directories; the last part may be a glob.
    pub files: Vec<String>,
    /// When they matter.
    pub matters: LoadMatters,
}

/// When a file that a program loads matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadMatters {
    /// If there is one.
    Found,
    /// If there is one that sets anything else than these keys, written `section.key`, possibly globs.
    SetsOther(Vec<String>),
    /// If there is one that contains one of these words.
    Contains(Vec<String>),
    /// If there is none: then it is not known what the program works on.
    Missing,
    /// If it is a file: its name stands in the call, and nobody has compared the program with what its table says of that word.
    Named {
        /// It configures the program, and so may say what runs.
        configures: bool,
    },
}

impl Part {
    /// Whether it is a command that runs here as its words say: without wrappers, redirections and variables that change it.
    pub fn is_bare(&self) -> bool {
        let changed = |placed: &PlacedEffect| {
            placed.effect.marks.iter().any(|mark| matches!(mark, Mark::Redirection | Mark::Environment))
        };
        self.wrappers.is_empty() && self.elsewhere.is_none() && !self.effects.iter().any(changed)
    }

    /// The command's words, if all of them are certain and there is at least one.
    pub fn known_words(&self) -> Option<Vec<&str>> {
        let words: Option<Vec<&str>> = self.words.iter().map(Word::known).collect();
        words.filter(|words| !words.is_empty())
    }

    /// Adds the doubt that files of the project may run something else than the words say.
    pub fn doubt_project(&mut self, doubt: String, because: &str) {
        let marks = vec![Mark::ProjectCode];
        let effect = Effect { marks, because: because.to_owned(), ..Effect::opaque(doubt) };
        self.effects.push(effect.into());
    }
}

/// An effect with the place of its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedEffect {
    /// The effect as described.
    pub effect: Effect,
    /// The place of its path; `None` if it has no path.
    pub place: Option<Place>,
}

impl From<Effect> for PlacedEffect {
    /// An effect whose path has not been resolved yet.
    fn from(effect: Effect) -> Self {
        PlacedEffect { effect, place: None }
    }
}

impl From<Vec<Effect>> for Part {
    /// The effects of a call that is not a shell command.
    fn from(effects: Vec<Effect>) -> Self {
        Part { effects: effects.into_iter().map(PlacedEffect::from).collect(), ..Part::default() }
    }
}

impl Description {
    /// Describes a call by its parts. The coverage is partial if an effect is opaque.
    pub fn of_parts(category: &str, parts: Vec<Part>) -> Self {
        let opaque = parts.iter().flat_map(|part| &part.effects).any(|placed| placed.effect.action == Action::Opaque);
        let coverage = if opaque { Coverage::Partial } else { Coverage::Complete };
        Description { category: category.to_owned(), parts, coverage }
    }

    /// Describes a call that is not a shell command. The coverage is partial if an effect is opaque.
    pub fn of_effects(category: &str, effects: Vec<Effect>) -> Self {
        Description::of_parts(category, vec![effects.into()])
    }

    /// Every effect of every part.
    pub fn effects(&self) -> impl Iterator<Item = &PlacedEffect> {
        self.parts.iter().flat_map(|part| &part.effects)
    }
}
