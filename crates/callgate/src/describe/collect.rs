//! Effects as they are gathered from the parameters of a call.

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

/// How many effects one call may have.
const MAXIMUM_EFFECTS: usize = 4096;

/// The longest path or pattern that is looked at: more than the kernel takes.
const MAXIMUM_PATH: usize = 8192;

/// How many patterns the braces of one pattern may stand for.
const MOST_CHOICES: usize = 256;

/// Gathers the effects of one call.
pub(super) struct Collector<'a> {
    /// What relative paths are relative to, if known.
    pub directory: Option<String>,
    /// Which shell reads commands.
    pub dialect: Dialect,
    /// The state of the shell that lives on, if there is one.
    pub shell: Option<&'a ShellState>,
    /// The state in which commands leave it.
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
            dialect: Dialect::Bash,
            shell: context.shell.as_deref(),
            left: RefCell::default(),
            home: context.home.as_deref(),
            programs: context.programs.as_deref().unwrap_or_else(|| Programs::bundled()),
            effects: Vec::new(),
            overflowed: false,
        }
    }

    /// A command leaves the shell that lives on in this state. Of several commands nobody knows which comes last.
    pub(super) fn leave_shell(&self, state: Option<ShellState>) {
        let mut left = self.left.borrow_mut();
        *left = match *left {
            None => state,
            Some(_) => Some(ShellState::lost("several commands were given at once")),
        };
    }

    /// The state in which the commands leave the shell that lives on.
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

    /// Whether nothing more is taken in. Loops over what a caller gave stop here.
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

    /// Something that is not understood.
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

    /// A path as a parameter names it.
    pub(super) fn path(&mut self, access: Access, text: &str, because: &str) {
        if self.is_full() {
            return;
        }
        if text.len() > MAXIMUM_PATH {
            self.opaque(format!("`{because}` is longer than any path"));
            return;
        }
        for names in self.names(text) {
            self.at(access.actions(), names, access == Access::ReadTree, because);
        }
    }

    pub(super) fn at(&mut self, actions: &[Action], names: Names, tree: bool, because: &str) {
        for action in actions {
            let names = names.clone();
            self.push(*action, Target::Path(PathTarget { names, tree }), because);
        }
    }

    /// What a path text may mean. More than one where readers differ.
    fn names(&self, text: &str) -> Vec<Names> {
        if text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) {
            return match uri::read(text) {
                Destination::Paths(paths) => paths.iter().map(|path| self.exact(path)).collect(),
                _ => vec![Names::Unknown("a file URL that is not read".into())],
            };
        }
        if text.starts_with('$') || text.starts_with('%') {
            return vec![self.exact(text), Names::Unknown("it may be the name of a variable".into())];
        }
        let mut meanings = vec![self.exact(text)];
        // some tools trim, some do not
        let trimmed = text.trim().trim_matches(['"', '\'', '`']);
        if trimmed != text && !trimmed.is_empty() {
            meanings.push(self.exact(trimmed));
        }
        // some tools know `~`, some do not: with `..` behind it, the two lie far apart
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
            return Names::Unknown("the home of another user".into());
        }
        Names::Exact(self.joined(text))
    }

    /// Absolute if the directory is known.
    pub(super) fn joined(&self, text: &str) -> String {
        absolute(self.directory.as_deref(), text)
    }

    /// The text of a directory, absolute if that is known; `None` if not.
    pub(super) fn directory_of(&self, text: &str) -> Option<String> {
        match self.exact(text) {
            Names::Exact(path) if Path::new(&path).is_absolute() => Some(path),
            _ => None,
        }
    }

    /// A glob pattern of a tool, relative to a directory: braces expanded, plain names exact.
    pub(super) fn glob(&mut self, action: Action, base: &str, pattern: &str, because: &str) {
        if pattern.len() > MAXIMUM_PATH {
            self.opaque("a pattern is longer than any path");
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
            let absolute = choice.starts_with(['/', '~']);
            if !special {
                let text = if absolute { choice } else { format!("{}/{choice}", base.trim_end_matches('/')) };
                let names = self.exact(&text);
                self.at(&[action], names, action == Action::Read, because);
            } else if let Some(rest) = choice.strip_prefix("~/") {
                let names = match self.home {
                    Some(home) => Names::Glob(format!("{}/{rest}", escape(home))),
                    None => unknown_home(),
                };
                self.at(&[action], names, false, because);
            } else if absolute {
                let names = if choice.starts_with('/') {
                    Names::Glob(choice)
                } else {
                    Names::Unknown("the home of another user".into())
                };
                self.at(&[action], names, false, because);
            } else {
                let names = Names::Glob(format!("{}/{choice}", escape(base.trim_end_matches('/'))));
                self.at(&[action], names, false, because);
            }
        }
    }

    /// A URL to fetch or a resource to read.
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

    /// What was gathered, as one part without words.
    pub(super) fn into_part(self) -> Part {
        self.effects.into()
    }
}

fn unknown_home() -> Names {
    Names::Unknown("the home directory is not known".into())
}
