//! From roles to effects.

use super::host::{self, Place};
use super::languages;
use super::paths;
use super::table::{EffectForm, EffectTarget, Role, RoleKind};
use super::{Nested, NestedBody};
use crate::effect::{Action, CodeOrigin, Effect, Host, Mark, Names, PathTarget, Program, Target};
use crate::stream::Stream;
use crate::word::Word;

/// Says of an effect that it happens only if the destination is a directory.
pub(super) const IF_DIRECTORY: &str = "inside it if it is a directory";

/// Gathers what an invocation does.
pub(super) struct Collector<'a> {
    /// The program and its subcommands, for reasons.
    pub(super) program: String,
    pub(super) effects: Vec<Effect>,
    pub(super) nested: Vec<Nested>,
    /// The working directory, which `<dir>` changes.
    pub(super) directory: Option<String>,
    pub(super) directory_changed: bool,
    pub(super) home: Option<&'a str>,
    pub(super) stdin: &'a Stream,
    pub(super) environment: Vec<(String, Word)>,
    /// Path operands mean whole trees.
    pub(super) tree: bool,
    /// The machine or container in which wrapped commands run.
    pub(super) elsewhere: Option<String>,
    /// The host that was connected to last.
    host: Option<String>,
    /// Operands that were read or listed: what a stream of names is below.
    pub(super) listed: Vec<Word>,
    /// What is copied or moved, and where to.
    sources: Vec<Word>,
    destinations: Vec<(Word, Vec<Mark>)>,
    /// What is written if code of this call does more than look.
    updated_by_code: Vec<(Word, Vec<Mark>)>,
    pub(super) code_changes: bool,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        program: &str,
        directory: Option<&str>,
        home: Option<&'a str>,
        stdin: &'a Stream,
    ) -> Self {
        Collector {
            program: program.to_owned(),
            effects: Vec::new(),
            nested: Vec::new(),
            directory: directory.map(str::to_owned),
            directory_changed: false,
            home,
            stdin,
            environment: Vec::new(),
            tree: false,
            elsewhere: None,
            host: None,
            listed: Vec::new(),
            sources: Vec::new(),
            destinations: Vec::new(),
            updated_by_code: Vec::new(),
            code_changes: false,
        }
    }

    /// Adds an effect unless it is there already.
    pub(super) fn push(&mut self, action: Action, target: Target, marks: &[Mark], because: &str) {
        let mut marks = marks.to_vec();
        marks.sort_unstable();
        marks.dedup();
        let because = format!("{}: {because}", self.program);
        if !self
            .effects
            .iter()
            .any(|other| other.action == action && other.target == target && other.marks == marks)
        {
            self.effects.push(Effect {
                action,
                target,
                marks,
                because,
            });
        }
    }

    pub(super) fn opaque(&mut self, why: &str, because: &str) {
        self.push(Action::Opaque, Target::Text(why.to_owned()), &[], because);
    }

    pub(super) fn run(&mut self, name: &str, origin: CodeOrigin, because: &str) {
        let marks: &[Mark] = if origin == CodeOrigin::Project {
            &[Mark::ProjectCode]
        } else {
            &[]
        };
        self.push(
            Action::Run,
            Target::Program(Program {
                name: name.to_owned(),
                origin,
            }),
            marks,
            because,
        );
    }

    /// An effect on the path that a word names.
    pub(super) fn path(
        &mut self,
        action: Action,
        word: &Word,
        tree: bool,
        marks: &[Mark],
        because: &str,
    ) {
        let Some(names) = paths::names(self.directory.as_deref(), word) else {
            return;
        };
        if let Names::Exact(path) = &names
            && matches!(action, Action::Read | Action::Write | Action::List)
            && paths::is_harmless_device(path)
        {
            return;
        }
        if let Names::Unknown(why) = &names {
            let verb = match action {
                Action::List => "lists",
                Action::Read => "reads",
                Action::Write => "writes",
                Action::Delete => "deletes",
                _ => "uses",
            };
            let why = format!("the path that {} {verb} is not known ({why})", self.program);
            self.opaque(&why, because);
        }
        self.push(
            action,
            Target::Path(PathTarget { names, tree }),
            marks,
            because,
        );
    }

    /// An effect that a table states.
    pub(super) fn stated(&mut self, form: &EffectForm, because: &str) {
        let target = match &form.target {
            EffectTarget::Path(path) => {
                let names = paths::of_table(self.directory.as_deref(), self.home, path);
                if let Names::Unknown(why) = &names {
                    let why = why.clone();
                    self.opaque(&why, because);
                }
                Target::Path(PathTarget {
                    names,
                    tree: form.tree,
                })
            }
            EffectTarget::Program(origin, name) => {
                let name = match (origin, name.as_str()) {
                    (CodeOrigin::File, path) => paths::absolute(self.directory.as_deref(), path),
                    (_, "") => self.program.clone(),
                    (_, name) => name.to_owned(),
                };
                let mut marks = form.marks.clone();
                if *origin == CodeOrigin::Project {
                    marks.push(Mark::ProjectCode);
                }
                return self.push(
                    form.action,
                    Target::Program(Program {
                        name,
                        origin: *origin,
                    }),
                    &marks,
                    because,
                );
            }
            EffectTarget::Host(name) => Target::Host(Host {
                name: name.clone(),
                shown: name
                    .clone()
                    .unwrap_or_else(|| format!("the host that {} talks to", self.program)),
            }),
            EffectTarget::Words(words) => {
                Target::Text(words.clone().unwrap_or_else(|| self.program.clone()))
            }
        };
        self.push(form.action, target, &form.marks, because);
    }

    /// What a word means in its role.
    pub(super) fn role(&mut self, word: &Word, role: &Role, because: &str) {
        let tree = role.tree || self.tree;
        let is_stream = word.known() == Some("-");
        match &role.kind {
            RoleKind::Text => {}
            RoleKind::List => {
                self.listed.push(word.clone());
                self.path(Action::List, word, tree, &role.marks, because);
            }
            RoleKind::Read if is_stream => {}
            RoleKind::Read => {
                self.listed.push(word.clone());
                self.sources.push(word.clone());
                self.path(Action::Read, word, tree, &role.marks, because);
            }
            RoleKind::Write | RoleKind::WriteInto | RoleKind::Update if is_stream => {}
            RoleKind::Write => self.path(Action::Write, word, tree, &role.marks, because),
            RoleKind::WriteInto => {
                self.path(Action::Write, word, role.tree, &role.marks, because);
                self.destinations.push((word.clone(), role.marks.clone()));
            }
            RoleKind::Delete => self.path(Action::Delete, word, tree, &role.marks, because),
            RoleKind::Update => {
                self.listed.push(word.clone());
                self.path(Action::Read, word, tree, &role.marks, because);
                self.path(Action::Write, word, tree, &role.marks, because);
            }
            RoleKind::UpdateByCode => {
                self.path(Action::Read, word, tree, &role.marks, because);
                self.updated_by_code
                    .push((word.clone(), role.marks.clone()));
            }
            RoleKind::AnyValue => self.any_value(word, because),
            RoleKind::Move => {
                self.sources.push(word.clone());
                self.path(Action::Read, word, tree, &role.marks, because);
                self.path(Action::Delete, word, tree, &role.marks, because);
            }
            RoleKind::RunFile => self.run_file(word, because),
            RoleKind::Directory => self.change_directory(word, because),
            RoleKind::Shell => self.shell(word.clone(), Vec::new(), role, None),
            RoleKind::ShellWords | RoleKind::Command { .. } => {
                self.rest(std::slice::from_ref(word), role)
            }
            RoleKind::Assign => self.assign(word, because),
            RoleKind::Code(language) => languages::read(self, language, word, because),
            RoleKind::Host | RoleKind::HostSend => {
                let action = if role.kind == RoleKind::Host {
                    Action::Connect
                } else {
                    Action::Send
                };
                let host = host::host(word);
                self.reach(action, host, &role.marks, because);
            }
            RoleKind::Url | RoleKind::UrlSend => {
                let (action, local) = match role.kind {
                    RoleKind::Url => (Action::Connect, Action::Read),
                    _ => (Action::Send, Action::Write),
                };
                match host::url(word) {
                    Place::Remote(host) => self.reach(action, host, &role.marks, because),
                    Place::Local(path) => {
                        self.path(local, &Word::Known(path), tree, &role.marks, because)
                    }
                }
            }
            RoleKind::RemoteRead | RoleKind::RemoteWrite => {
                let (action, local) = match role.kind {
                    RoleKind::RemoteRead => (Action::Connect, Action::Read),
                    _ => (Action::Send, Action::Write),
                };
                match host::remote(word) {
                    Some(Place::Remote(host)) => self.reach(action, host, &role.marks, because),
                    Some(Place::Local(path)) => {
                        self.path(local, &Word::Known(path), tree, &role.marks, because)
                    }
                    None => {
                        match local {
                            Action::Read => self.sources.push(word.clone()),
                            _ => self.destinations.push((word.clone(), role.marks.clone())),
                        }
                        self.path(local, word, tree, &role.marks, because);
                    }
                }
            }
            RoleKind::AtRead => self.at_read(word, role, because),
            RoleKind::Opaque(why) => self.opaque(why, because),
        }
    }

    /// A command, or shell source made of words.
    pub(super) fn rest(&mut self, words: &[Word], role: &Role) {
        match role.kind {
            RoleKind::ShellWords => {
                let source = joined(words);
                self.shell(source, Vec::new(), role, None);
            }
            RoleKind::Command {
                prefix: Some(ref prefix),
                ..
            } => {
                let mut words = words.to_vec();
                match words.first_mut() {
                    Some(Word::Known(first)) if !first.contains('/') => {
                        *first = format!("{prefix}{first}")
                    }
                    _ => {
                        let why = format!("what {} runs is not known", self.program);
                        return self.opaque(&why, "its words");
                    }
                }
                let nested = self.nest(NestedBody::Words(words), role.elsewhere.as_ref());
                self.nested.push(nested);
            }
            _ => {
                let nested = self.nest(NestedBody::Words(words.to_vec()), role.elsewhere.as_ref());
                self.nested.push(nested);
            }
        }
    }

    pub(super) fn shell(
        &mut self,
        source: Word,
        parameters: Vec<Word>,
        role: &Role,
        stdin: Option<Stream>,
    ) {
        let mut nested = self.nest(
            NestedBody::Shell { source, parameters },
            role.elsewhere.as_ref(),
        );
        nested.stdin = stdin;
        self.nested.push(nested);
    }

    /// Something that runs in the environment and place gathered so far.
    pub(super) fn nest(&self, body: NestedBody, elsewhere: Option<&String>) -> Nested {
        let elsewhere =
            elsewhere
                .or(self.elsewhere.as_ref())
                .map(|place| match (&self.host, place.as_str()) {
                    (Some(host), "host") => host.clone(),
                    _ => place.clone(),
                });
        Nested {
            body,
            environment: self.environment.clone(),
            directory: self.directory_changed.then(|| self.directory.clone()),
            elsewhere,
            stdin: None,
        }
    }

    fn reach(&mut self, action: Action, host: Host, marks: &[Mark], because: &str) {
        if host.name.is_none() {
            let why = format!(
                "the host that {} talks to is not known ({})",
                self.program, host.shown
            );
            self.opaque(&why, because);
        }
        self.host = host.name.clone();
        self.push(action, Target::Host(host), marks, because);
    }

    pub(super) fn run_file(&mut self, word: &Word, because: &str) {
        match word {
            Word::Known(text) if text.is_empty() => {}
            Word::Known(text) if matches!(text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0") => {
                self.stdin_code(because)
            }
            Word::Known(text) => {
                let path = paths::absolute(self.directory.as_deref(), text);
                self.run(&path, CodeOrigin::File, because);
            }
            _ => {
                let why = format!("the file that {} runs is not known", self.program);
                self.opaque(&why, because);
            }
        }
    }

    /// Standard input is run as code that we do not read.
    pub(super) fn stdin_code(&mut self, because: &str) {
        match self.stdin {
            Stream::Unconnected => {}
            Stream::Fetched => {
                let program = self.program.clone();
                self.run(&program, CodeOrigin::Fetched, because);
                self.opaque("code from the network is run", because);
            }
            _ => {
                let why = format!("{} runs what comes through the pipe", self.program);
                self.opaque(&why, because);
            }
        }
    }

    pub(super) fn change_directory(&mut self, word: &Word, because: &str) {
        self.directory_changed = true;
        match word {
            Word::Known(text) => {
                if !text.is_empty() {
                    self.directory = match &self.directory {
                        None if !text.starts_with('/') => None,
                        directory => Some(paths::absolute(directory.as_deref(), text)),
                    };
                }
            }
            _ => {
                self.directory = None;
                let why = format!("the directory in which {} works is not known", self.program);
                self.opaque(&why, because);
            }
        }
    }

    pub(super) fn assign(&mut self, word: &Word, because: &str) {
        let pair = match word {
            Word::Known(text) => text
                .split_once('=')
                .map(|(name, value)| (name, Word::Known(value.to_owned()))),
            Word::Partly {
                prefix,
                why,
                many: false,
            } => prefix.split_once('=').map(|(name, front)| {
                let why = why.clone();
                let value = match front {
                    "" => Word::Unknown { why, many: false },
                    _ => Word::Partly {
                        prefix: front.to_owned(),
                        why,
                        many: false,
                    },
                };
                (name, value)
            }),
            _ => None,
        };
        match pair {
            Some((name, value)) => self.environment.push((name.to_owned(), value)),
            None => {
                let why = format!("the variable that {} sets is not known", self.program);
                self.opaque(&why, because);
            }
        }
    }

    fn at_read(&mut self, word: &Word, role: &Role, because: &str) {
        let doubtful = |text: &str| {
            text.starts_with('@')
                || text.contains("=@")
                || text.contains("=<")
                || text.ends_with('=')
        };
        match word {
            Word::Known(text) => {
                let file = match text.strip_prefix('@') {
                    Some(rest) => Some(rest),
                    None => text
                        .split_once("=@")
                        .or(text.split_once("=<"))
                        .map(|(_, rest)| rest),
                };
                let Some(file) = file else { return };
                let whole = Word::Known(file.to_owned());
                if text.starts_with('@') || !file.contains([';', ',']) {
                    return self.role(
                        &whole,
                        &Role {
                            kind: RoleKind::Read,
                            ..role.clone()
                        },
                        because,
                    );
                }
                // `name=@a,b;type=text/plain`
                let files = file.split(';').next().unwrap_or_default();
                for part in files.split(',') {
                    self.path(
                        Action::Read,
                        &Word::Known(part.to_owned()),
                        false,
                        &role.marks,
                        because,
                    );
                }
            }
            // Text that has begun like JSON or like `name=value` stays text.
            Word::Partly {
                prefix,
                many: false,
                ..
            } if !doubtful(prefix)
                && (prefix.contains('=') || prefix.starts_with(['{', '[', '<', '"'])) => {}
            _ => {
                let why = format!("data of {} may name a file", self.program);
                self.opaque(&why, because);
            }
        }
    }

    /// What standard input is to the program.
    pub(super) fn stdin_role(&mut self, role: &Role) {
        let because = "standard input";
        match (&role.kind, self.stdin) {
            (_, Stream::Unconnected) | (RoleKind::Text, _) => {}
            (RoleKind::Shell | RoleKind::ShellWords, Stream::Text(text)) => {
                self.shell(
                    Word::Known(text.clone()),
                    Vec::new(),
                    role,
                    Some(Stream::Unconnected),
                );
            }
            (RoleKind::Code(_), Stream::Text(text)) => {
                self.role(&Word::Known(text.clone()), role, because)
            }
            (RoleKind::Shell | RoleKind::ShellWords | RoleKind::Code(_) | RoleKind::RunFile, _) => {
                self.stdin_code(because)
            }
            (RoleKind::Opaque(why), _) => self.opaque(why, because),
            (_, Stream::Names(directories)) => {
                for directory in directories {
                    self.role(
                        &Word::Below {
                            directory: directory.clone(),
                            many: true,
                        },
                        role,
                        because,
                    );
                }
            }
            (_, Stream::Text(text)) => {
                for line in text.split(['\n', '\0']).filter(|line| !line.is_empty()) {
                    self.role(&Word::Known(line.to_owned()), role, because);
                }
            }
            _ => {
                let why = format!(
                    "what {} finds on its standard input is not known",
                    self.program
                );
                self.opaque(&why, because);
            }
        }
    }

    /// What code of this call has changed.
    pub(super) fn finish_code(&mut self) {
        for (word, marks) in std::mem::take(&mut self.updated_by_code) {
            if self.code_changes {
                self.path(Action::Write, &word, false, &marks, "changed by its code");
            }
        }
    }

    /// The value of an option that the table accepts without knowing it.
    fn any_value(&mut self, word: &Word, because: &str) {
        let Word::Known(text) = word else {
            if !matches!(word, Word::Partly { prefix, .. } if !prefix.ends_with('=') && !"fileb://".starts_with(prefix.as_str()) && !prefix.starts_with(['@', 'f']))
            {
                let why = format!("a value of {} may name a file", self.program);
                self.opaque(&why, because);
            }
            return;
        };
        let behind_name = text.split_once('=').map(|(_, value)| value);
        for value in [Some(text.as_str()), behind_name].into_iter().flatten() {
            let path = ["fileb://", "file://", "@"]
                .iter()
                .find_map(|front| value.strip_prefix(front));
            if let Some(path) = path.filter(|path| *path != "-") {
                self.path(
                    Action::Read,
                    &Word::Known(path.to_owned()),
                    false,
                    &[],
                    because,
                );
            }
        }
    }

    /// A destination that is a directory gets the sources inside.
    pub(super) fn finish_destinations(&mut self) {
        for (destination, marks) in std::mem::take(&mut self.destinations) {
            let Word::Known(folder) = &destination else {
                continue;
            };
            for source in &self.sources.clone() {
                let (word, tree) = match source {
                    Word::Known(text) => match paths::base_name(text) {
                        Some(name) => (
                            Word::Known(format!("{}/{name}", folder.trim_end_matches('/'))),
                            self.tree,
                        ),
                        None => (Word::Known(folder.clone()), true),
                    },
                    Word::Glob(pattern) => {
                        let last = pattern.rsplit('/').next().unwrap_or_default();
                        let pattern =
                            format!("{}/{last}", paths::escape(folder.trim_end_matches('/')));
                        (Word::Glob(pattern), self.tree)
                    }
                    _ => (Word::Known(folder.clone()), true),
                };
                self.path(Action::Write, &word, tree, &marks, IF_DIRECTORY);
            }
        }
    }
}

/// Words joined by spaces, as `ssh` and `watch` do it.
pub(super) fn joined(words: &[Word]) -> Word {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        match word {
            Word::Known(known) => text.push_str(known),
            Word::Partly { prefix, why, .. } => {
                text.push_str(prefix);
                return Word::Partly {
                    prefix: text,
                    why: why.clone(),
                    many: false,
                };
            }
            other => {
                let why = match other {
                    Word::Unknown { why, .. } => why.clone(),
                    Word::Glob(pattern) => format!("the names of {pattern}"),
                    _ => "names of files".to_owned(),
                };
                return match text.as_str() {
                    "" => Word::Unknown { why, many: false },
                    _ => Word::Partly {
                        prefix: text,
                        why,
                        many: false,
                    },
                };
            }
        }
    }
    Word::Known(text)
}
