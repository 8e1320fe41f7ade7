//! Collects the effects of a call from its parameters.

use std::cell::RefCell;
use std::path::Path;

use callgate_model::effect::{Action, CodeOrigin, Effect, Host, Names, PathTarget, Program, Target};
use callgate_model::glob::{LoneBraces, escape, expand_braces};
use callgate_model::lexical::absolute;
use callgate_shell::programs::Programs;
use callgate_shell::{Dialect, ShellState};

use super::role::Access;
use super::uri::{self, Destination};
use super::{CallContext, Part};
use callgate_model::show::brief;

/// The maximum number of effects of one call.
const MAXIMUM_EFFECTS: usize = 4096;

/// The longest path or pattern that is read: longer than the kernel accepts.
const MAXIMUM_PATH: usize = 8192;

/// The maximum number of patterns that the braces of one pattern expand to.
const MOST_CHOICES: usize = 256;

/// Collects the effects of one call.
pub(super) struct Collector<'a> {
    /// The directory of relative paths, if known.
    pub directory: Option<String>,
    /// The dialect of the shell that runs commands.
    pub dialect: Dialect,
    /// The state of the persistent shell before the call, if there is one.
    pub shell: Option<&'a ShellState>,
    /// Its state after the call.
    left: RefCell<Option<ShellState>>,
    home: Option<&'a str>,
    programs: &'a Programs,
    effects: Vec<Effect>,
    overflowed: bool,
}

impl<'a> Collector<'a> {
    pub(super) fn new(context: &'a CallContext) -> Self {
        Collector {
            directory: context.directory.clone(),
            dialect: context.dialect,
            shell: context.shell.as_deref(),
            left: RefCell::default(),
            home: context.home.as_deref(),
            programs: context.programs.as_deref().unwrap_or_else(|| Programs::bundled()),
            effects: Vec::new(),
            overflowed: false,
        }
    }

    /// Sets the state of the persistent shell after a command. With several commands, it is unknown which runs last.
    pub(super) fn leave_shell(&self, state: Option<ShellState>) {
        let mut left = self.left.borrow_mut();
        *left = match *left {
            None => state,
            Some(_) => Some(ShellState::lost("the call has several commands")),
        };
    }

    /// The state of the persistent shell after the call.
    pub(super) fn left_shell(&self) -> Option<Box<ShellState>> {
        self.left.take().map(Box::new)
    }

    pub(super) fn home(&self) -> Option<&'a str> {
        self.home
    }

    pub(super) fn programs(&self) -> &'a Programs {
        self.programs
    }

    pub(super) fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Whether the maximum is reached. Loops over input stop then.
    pub(super) fn is_full(&self) -> bool {
        self.overflowed
    }

    fn push(&mut self, action: Action, target: Target, because: &str) {
        if self.effects.len() < MAXIMUM_EFFECTS {
            self.effects.push(Effect { action, target, marks: Vec::new(), because: because.to_owned() });
        } else if !self.overflowed {
            self.overflowed = true;
            self.effects.push(Effect::opaque("the call has too many effects"));
        }
    }

    /// Adds something that cannot be analyzed.
    pub(super) fn opaque(&mut self, why: impl Into<String>) {
        let why = why.into();
        self.push(Action::Opaque, Target::Text(why), "");
    }

    pub(super) fn privilege(&mut self, why: &str, because: &str) {
        self.push(Action::Privilege, Target::Text(why.to_owned()), because);
    }

    pub(super) fn run(&mut self, name: String, origin: CodeOrigin, because: &str) {
        self.push(Action::Run, Target::Program(Program { name, origin }), because);
    }

    pub(super) fn service(&mut self, name: &str, because: &str) {
        let host = Host { name: Some(name.to_owned()), shown: name.to_owned() };
        self.push(Action::Connect, Target::Host(host), because);
    }

    /// Adds a path as a parameter names it.
    pub(super) fn path(&mut self, access: Access, text: &str, because: &str) {
        if self.is_full() {
            return;
        }
        if text.len() > MAXIMUM_PATH {
            self.opaque(format!("`{because}` is longer than a path can be"));
            return;
        }
        for names in self.names(text) {
            self.at(access.actions(), names, access == Access::ReadTree, because);
        }
    }

    pub(super) fn at(&mut self, actions: &[Action], names: Names, tree: bool, because: &str) {
        for action in actions {
            let names = names.clone();
            self.push(*action, Target::Path(PathTarget::new(names, tree)), because);
        }
    }

    /// The paths that a text may mean: more than one where tools differ.
    fn names(&self, text: &str) -> Vec<Names> {
        if text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) {
            return match uri::read(text) {
                Destination::Paths(paths) => paths.iter().map(|path| self.exact(path)).collect(),
                _ => vec![Names::Unknown("an invalid file URL".into())],
            };
        }
        if text.starts_with('$') || text.starts_with('%') {
            return vec![self.exact(text), Names::Unknown("may be a variable".into())];
        }
        let mut meanings = vec![self.exact(text)];
        // some tools trim, some do not
        let trimmed = text.trim().trim_matches(['"', '\'', '`']);
        if trimmed != text && !trimmed.is_empty() {
            meanings.push(self.exact(trimmed));
        }
        // some tools expand `~`, some do not: with `..` behind it, the two paths are far apart
        if text.starts_with('~') && text.contains("..") {
            meanings.push(Names::Exact(self.joined(text)));
        }
        meanings
    }

    fn exact(&self, text: &str) -> Names {
        if text == "~" {
            return self.home.map_or_else(unknown_home, |home| Names::Exact(home.to_owned()));
        }
        if let Some(rest) = text.strip_prefix("~/") {
            return self.home.map_or_else(unknown_home, |home| Names::Exact(format!("{home}/{rest}")));
        }
        if text.starts_with('~') {
            return Names::Unknown("the home directory of another user".into());
        }
        Names::Exact(self.joined(text))
    }

    /// Makes a path absolute, if the directory is known.
    pub(super) fn joined(&self, text: &str) -> String {
        absolute(self.directory.as_deref(), text)
    }

    /// The absolute path of a directory; `None` if it is unknown.
    pub(super) fn directory_of(&self, text: &str) -> Option<String> {
        match self.exact(text) {
            Names::Exact(path) if Path::new(&path).is_absolute() => Some(path),
            _ => None,
        }
    }

    /// Adds a glob pattern relative to a directory: expands braces, and treats names without wildcards as exact.
    pub(super) fn glob(&mut self, action: Action, base: &str, pattern: &str, because: &str) {
        if pattern.len() > MAXIMUM_PATH {
            self.opaque("a pattern is longer than a path can be");
            return;
        }
        let Ok(choices) = expand_braces(pattern, MOST_CHOICES, LoneBraces::Kept) else {
            self.at(&[action], Names::Exact(base.to_owned()), true, because);
            return;
        };
        for choice in choices {
            if self.is_full() {
                return;
            }
            let special = choice.contains(['*', '?', '[', '(', '\\']);
            let names = match (choice.chars().next(), choice.strip_prefix("~/")) {
                (Some('/' | '~'), _) if !special => self.exact(&choice),
                _ if !special => self.exact(&format!("{}/{choice}", base.trim_end_matches('/'))),
                (_, Some(rest)) => {
                    self.home.map_or_else(unknown_home, |home| Names::Glob(format!("{}/{rest}", escape(home))))
                }
                (Some('/'), _) => Names::Glob(choice),
                (Some('~'), _) => Names::Unknown("the home directory of another user".into()),
                _ => Names::Glob(format!("{}/{choice}", escape(base.trim_end_matches('/')))),
            };
            self.at(&[action], names, !special && action == Action::Read, because);
        }
    }

    /// Adds a URL to fetch or a resource to read.
    pub(super) fn resource(&mut self, text: &str, because: &str) {
        if self.is_full() {
            return;
        }
        match uri::read(text) {
            Destination::Host(host) => self.push(Action::Connect, Target::Host(host), because),
            Destination::Inline => {}
            Destination::Unknown(why) => self.opaque(format!("`{}`: {why}", brief(text))),
            Destination::Paths(paths) => {
                for path in paths {
                    let names = self.exact(&path);
                    self.at(&[Action::Read], names, false, because);
                }
            }
        }
    }

    /// Returns the effects as one part without words.
    pub(super) fn into_part(self) -> Part {
        self.effects.into()
    }
}

fn unknown_home() -> Names {
    Names::Unknown("unknown home directory".into())
}
