//! From roles to effects.

mod derived;
mod trees;
mod words;

use crate::distinct::Distinct;
use crate::effect::{
    Action, CodeOrigin, Effect, Host, Mark, MemberSource, Names, PathTarget, Program, Selection, Target, TreeNames,
};
use crate::lists::listed;
use crate::programs::host::{self, Destination};
use crate::programs::languages;
use crate::programs::matching::matches_glob;
use crate::programs::paths;
use crate::programs::table::{EffectForm, EffectTarget, LoadPlace, LoadedFiles, Role, RoleKind, Text};
use crate::programs::{Invocation, Nested, NestedBody};
use crate::stream::Stream;
use crate::word::Word;
use callgate_model::description::{GitUse, LoadMatters, Loads};
use std::borrow::Cow;

/// Says of an effect that it happens only if the destination is a directory.
pub(in crate::programs) const IF_DIRECTORY: &str = "inside it if it is a directory";

/// A longer word is not the name of a file.
const LONGEST_NAME: usize = 4096;

/// Something that is copied, moved or linked to.
#[derive(Debug, Clone)]
struct CopySource {
    word: Word,
    /// With everything below.
    tree: bool,
}

/// Gathers what an invocation does.
#[derive(Default)]
pub(in crate::programs) struct Collector<'a> {
    /// The program and its subcommands, for reasons.
    pub(in crate::programs) program: Cow<'a, str>,
    pub(in crate::programs) effects: Vec<Effect>,
    distinct: Distinct,
    pub(in crate::programs) nested: Vec<Nested>,
    pub(in crate::programs) loads: Vec<Loads>,
    pub(in crate::programs) git: Vec<GitUse>,
    /// The working directory, which `<dir>` changes.
    pub(in crate::programs) directory: Option<Cow<'a, str>>,
    pub(in crate::programs) directory_changed: bool,
    pub(in crate::programs) home: Option<&'a str>,
    pub(in crate::programs) stdin: &'a Stream,
    pub(in crate::programs) environment: Vec<(String, Word)>,
    /// Path operands mean whole trees.
    pub(in crate::programs) tree: bool,
    /// The machine or container in which wrapped commands run.
    pub(in crate::programs) elsewhere: Option<String>,
    /// The table was compared with the program.
    pub(in crate::programs) compared: bool,
    /// The program may connect, so that a URL among its words is more than text.
    pub(in crate::programs) connects: bool,
    /// Hosts that are the service itself.
    pub(in crate::programs) own_hosts: Vec<Text>,
    /// The host that was connected to last.
    host: Option<String>,
    /// Operands that were read or listed: what a stream of names is below.
    pub(in crate::programs) listed: Vec<Word>,
    /// Somebody wants to know which operands were read or listed.
    pub(in crate::programs) keeps_listed: bool,
    /// An operand was read or listed.
    pub(in crate::programs) has_listed: bool,
    /// What is copied or moved, and where to.
    sources: Vec<CopySource>,
    /// Something may be copied or moved into a destination.
    pub(in crate::programs) copies: bool,
    /// The old contents of updated files may be kept.
    pub(in crate::programs) backs_up: bool,
    /// Files that are updated, and suffixes for their old contents.
    updated: Vec<Word>,
    suffixes: Vec<Word>,
    destinations: Vec<(Word, Vec<Mark>)>,
    /// Which names of a tree it visits.
    pub(in crate::programs) selection: Selection,
    /// Archives and patches whose members are written; `None` in place of one that is not known.
    members: Vec<Option<MemberSource>>,
    /// How many components are taken off their names.
    strip: Option<Option<usize>>,
    /// What it writes are links.
    pub(in crate::programs) links: bool,
    /// Something is copied from another machine.
    from_elsewhere: bool,
    /// What is written if code of this call does more than look.
    updated_by_code: Vec<(Word, Vec<Mark>)>,
    pub(in crate::programs) code_changes: bool,
    /// Code of this call throws something away that cannot be had back.
    pub(in crate::programs) code_destroys: bool,
}

impl<'a> Collector<'a> {
    pub(in crate::programs) fn new(program: &'a str, invocation: &Invocation<'a>) -> Self {
        Collector {
            program: Cow::Borrowed(program),
            directory: invocation.directory.map(Cow::Borrowed),
            home: invocation.home,
            stdin: invocation.stdin,
            ..Collector::default()
        }
    }

    /// Adds an effect unless it is there already.
    pub(in crate::programs) fn push(&mut self, action: Action, target: Target, marks: &[Mark], because: &str) {
        let mut marks = marks.to_vec();
        marks.sort_unstable();
        marks.dedup();
        let key = (action, &target, marks.as_slice());
        if !self.distinct.contains(&self.effects, &key, |other| (other.action, &other.target, other.marks.as_slice())) {
            let because = [&self.program, ": ", because].concat();
            self.effects.push(Effect { action, target, marks, because });
        }
    }

    /// Notes an operand that is read or listed.
    fn lists(&mut self, word: &Word) {
        self.has_listed = true;
        if self.keeps_listed {
            self.listed.push(word.clone());
        }
    }

    /// Notes an operand that is copied, moved or linked to.
    fn takes(&mut self, word: &Word, tree: bool) {
        if self.copies {
            self.sources.push(CopySource { word: word.clone(), tree });
        }
    }

    pub(in crate::programs) fn opaque(&mut self, why: &str, because: &str) {
        self.push(Action::Opaque, Target::Text(why.to_owned()), &[], because);
    }

    /// Something about the program that is not understood.
    pub(in crate::programs) fn doubt(&mut self, say: impl FnOnce(&str) -> String, because: &str) {
        let why = say(&self.program);
        self.opaque(&why, because);
    }

    pub(in crate::programs) fn run(&mut self, name: &str, origin: CodeOrigin, because: &str) {
        let marks: &[Mark] = if origin == CodeOrigin::Project { &[Mark::ProjectCode] } else { &[] };
        self.push(Action::Run, Target::Program(Program { name: name.to_owned(), origin }), marks, because);
    }

    /// An effect on the path that a word names.
    pub(in crate::programs) fn path(&mut self, action: Action, word: &Word, tree: bool, marks: &[Mark], because: &str) {
        let below = match word {
            Word::Below { names, .. } if !tree => paths::listed_names(names, action),
            _ if tree => TreeNames::Existing(self.selection.clone()),
            _ => TreeNames::default(),
        };
        self.path_with(action, word, tree, below, marks, because);
    }

    /// An effect on the path that a word names, and on these names below it.
    pub(in crate::programs) fn path_with(
        &mut self,
        action: Action,
        word: &Word,
        tree: bool,
        below: TreeNames,
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
        // To see unknown names is an effect that a policy can judge; for anything else the name decides.
        if let Names::Unknown(why) = &names
            && action != Action::List
        {
            let verb = match action {
                Action::Read => "reads",
                Action::Write => "writes",
                Action::Delete => "deletes",
                _ => "uses",
            };
            self.doubt(|program| format!("the path that {program} {verb} is not known ({why})"), because);
        }
        self.push(action, Target::Path(PathTarget { names, tree, below }), marks, because);
    }

    /// An effect that a table states.
    pub(in crate::programs) fn stated(&mut self, form: &EffectForm, because: &str) {
        let target = match &form.target {
            EffectTarget::Path(path) => {
                let names = paths::of_table(self.directory.as_deref(), self.home, path);
                if let Names::Unknown(why) = &names {
                    let why = why.clone();
                    self.opaque(&why, because);
                }
                // Below the home or the root it is a file of the program's own: nobody named it.
                let mut marks = form.marks.clone();
                if path.starts_with(['~', '/']) {
                    marks.push(Mark::OwnFiles);
                }
                let below = match form.action {
                    Action::Write if form.tree => self.chosen(),
                    _ => TreeNames::Existing(self.selection.clone()),
                };
                let target = Target::Path(PathTarget { names, tree: form.tree, below });
                return self.push(form.action, target, &marks, because);
            }
            EffectTarget::Program(origin, name) => {
                let name = match (origin, name.as_str()) {
                    (CodeOrigin::File, path) => paths::absolute(self.directory.as_deref(), path),
                    (_, "") => self.program.to_string(),
                    (_, name) => name.to_owned(),
                };
                let mut marks = form.marks.clone();
                if *origin == CodeOrigin::Project {
                    marks.push(Mark::ProjectCode);
                }
                return self.push(form.action, Target::Program(Program { name, origin: *origin }), &marks, because);
            }
            EffectTarget::Host(name) => Target::Host(Host {
                name: name.clone(),
                shown: name.clone().unwrap_or_else(|| format!("the host that {} talks to", self.program)),
            }),
            EffectTarget::Words(words) => Target::Text(words.clone().unwrap_or_else(|| self.program.to_string())),
        };
        self.push(form.action, target, &form.marks, because);
    }

    /// What a word means in its role.
    pub(in crate::programs) fn role(&mut self, word: &Word, role: &Role, because: &str) {
        let tree = role.tree || self.tree;
        let is_stream = word.known() == Some("-");
        if let Some(derived) = &role.derived {
            return self.derive(word, role, derived, because);
        }
        match &role.kind {
            RoleKind::Text => {
                self.hidden_host(word, because);
                if !self.compared {
                    self.mention(word, false);
                }
            }
            RoleKind::List => {
                self.lists(word);
                self.path(Action::List, word, tree, &role.marks, because);
            }
            RoleKind::Read if is_stream => {}
            RoleKind::Read => {
                // Libraries that open files often take addresses, too.
                let is_address = |text: &str| is_web(text) || !self.compared && text.contains("://");
                if let Some(Destination::Remote(host)) =
                    host::hidden(word).filter(|_| word.known().is_some_and(is_address))
                {
                    self.reach(Action::Connect, host, &[], because);
                }
                if let Some(strip) = role.members {
                    self.member(word, strip);
                }
                self.lists(word);
                self.takes(word, tree);
                self.path(Action::Read, word, tree, &role.marks, because);
            }
            RoleKind::Write | RoleKind::WriteInto | RoleKind::Update if is_stream => {}
            RoleKind::Write if role.tree => {
                let below = self.chosen();
                self.path_with(Action::Write, word, true, below, &role.marks, because);
            }
            RoleKind::Write => self.path(Action::Write, word, tree, &role.marks, because),
            RoleKind::WriteInto => {
                self.path(Action::Write, word, role.tree, &role.marks, because);
                self.destinations.push((word.clone(), role.marks.clone()));
            }
            RoleKind::Delete => self.path(Action::Delete, word, tree, &role.marks, because),
            RoleKind::Update => {
                if self.backs_up {
                    self.updated.push(word.clone());
                }
                self.lists(word);
                // A link stands for everything below what it leads to.
                self.takes(word, true);
                self.path(Action::Read, word, tree, &role.marks, because);
                self.path(Action::Write, word, tree, &role.marks, because);
            }
            RoleKind::UpdateByCode => {
                self.path(Action::Read, word, tree, &role.marks, because);
                self.updated_by_code.push((word.clone(), role.marks.clone()));
            }
            RoleKind::AnyValue => {
                self.any_value(word, because);
                self.hidden_host(word, because);
                self.mention(word, false);
            }
            RoleKind::Move => {
                self.takes(word, true);
                self.path(Action::Read, word, tree, &role.marks, because);
                self.path(Action::Delete, word, tree, &role.marks, because);
            }
            RoleKind::RunFile => self.run_file(word, because),
            RoleKind::Directory => self.change_directory(word, because),
            RoleKind::Shell => self.shell(word.clone(), Vec::new(), role, None),
            RoleKind::ShellWords | RoleKind::Command { .. } => self.rest(vec![word.clone()], role),
            RoleKind::Assign => self.assign(word, because),
            RoleKind::Code(language) => languages::read(self, language, word, because),
            RoleKind::Host | RoleKind::HostSend => {
                let action = if role.kind == RoleKind::Host { Action::Connect } else { Action::Send };
                let host = host::host(word);
                self.reach(action, host, &role.marks, because);
            }
            RoleKind::Url | RoleKind::UrlSend | RoleKind::RemoteRead | RoleKind::RemoteWrite => {
                let (action, local) = match role.kind {
                    RoleKind::Url | RoleKind::RemoteRead => (Action::Connect, Action::Read),
                    _ => (Action::Send, Action::Write),
                };
                let is_url = matches!(role.kind, RoleKind::Url | RoleKind::UrlSend);
                match if is_url { Some(host::url(word)) } else { host::remote(word) } {
                    Some(Destination::Remote(host)) => {
                        self.from_elsewhere |= local == Action::Read;
                        self.reach(action, host, &role.marks, because);
                    }
                    Some(Destination::Local(path)) => self.path(local, &Word::Known(path), tree, &role.marks, because),
                    None => {
                        if local == Action::Read {
                            self.takes(word, tree);
                            return self.path(local, word, tree, &role.marks, because);
                        }
                        self.destinations.push((word.clone(), role.marks.clone()));
                        let source = self.sources.first().cloned().filter(|_| !self.from_elsewhere);
                        let below = match source {
                            Some(source) if tree => self.copied(&source),
                            _ if tree => self.chosen(),
                            _ => TreeNames::default(),
                        };
                        self.path_with(local, word, tree, below, &role.marks, because);
                    }
                }
            }
            RoleKind::BackupSuffix => self.suffixes.push(word.clone()),
            // Applied before anything else, because options may stand behind the operands that they are about.
            RoleKind::Only | RoleKind::Except | RoleKind::ExceptDirectory => {}
            RoleKind::Strip => {
                self.strip = Some(word.known().and_then(|text| text.trim_start_matches('=').parse().ok()))
            }
            RoleKind::AtRead => self.at_read(word, role, because),
            // Magic of a pathspec: what it means is found in the repository.
            RoleKind::Revision if word.known().is_some_and(is_magic) => {}
            RoleKind::Revision => {
                // A plain word may be a path as well as a revision.
                if let Some(text) = word.known().filter(|text| !text.contains(':') && self.directory.is_some()) {
                    self.path(Action::Read, &Word::Known(text.to_owned()), tree, &role.marks, because);
                }
                if matches!(word, Word::Unknown { .. } | Word::Partly { .. }) {
                    self.opaque("it is not known which file of which version is shown", because);
                }
                self.revision(word, because);
            }
            RoleKind::Pathspec => {
                let is_plain = |text: &str| !text.starts_with(':') && !text.contains(['*', '?', '[', '\\']);
                self.lists(word);
                if word.known().is_none_or(is_plain) {
                    self.path(Action::Read, word, tree, &role.marks, because);
                }
            }
            RoleKind::Opaque(why) => self.opaque(why, because),
        }
    }

    /// A command, or shell source made of words.
    pub(in crate::programs) fn rest(&mut self, mut words: Vec<Word>, role: &Role) {
        match role.kind {
            RoleKind::ShellWords => return self.shell(joined(&words), Vec::new(), role, None),
            RoleKind::Command { prefix: Some(ref prefix), .. } => match words.first_mut() {
                Some(Word::Known(first)) if !first.contains('/') => *first = format!("{prefix}{first}"),
                _ => return self.doubt(|program| format!("what {program} runs is not known"), "its words"),
            },
            _ => {}
        }
        self.nest(NestedBody::Words(words), role.elsewhere.as_ref(), None);
    }

    pub(in crate::programs) fn shell(
        &mut self,
        source: Word,
        parameters: Vec<Word>,
        role: &Role,
        stdin: Option<Stream>,
    ) {
        self.nest(NestedBody::Shell { source, parameters }, role.elsewhere.as_ref(), stdin);
    }

    /// Notes something that runs in the environment and place gathered so far.
    pub(in crate::programs) fn nest(&mut self, body: NestedBody, elsewhere: Option<&String>, stdin: Option<Stream>) {
        let elsewhere = elsewhere.or(self.elsewhere.as_ref()).map(|place| match (&self.host, place.as_str()) {
            (Some(host), "host") => host.clone(),
            _ => place.clone(),
        });
        let directory = self.directory_changed.then(|| self.directory.as_deref().map(str::to_owned));
        self.nested.push(Nested { body, environment: self.environment.clone(), directory, elsewhere, stdin });
    }

    /// A host in a word that is only text to a program that connects.
    fn hidden_host(&mut self, word: &Word, because: &str) {
        // A program that is not known to connect may do so if nobody has compared its table with it.
        if !self.connects && (self.compared || !matches!(host::hidden(word), Some(Destination::Remote(_)))) {
            return;
        }
        match host::hidden(word) {
            Some(Destination::Remote(host)) => self.other_host(host, because),
            Some(Destination::Local(path)) => self.path(Action::Read, &Word::Known(path), false, &[], because),
            None if matches!(word, Word::Unknown { .. }) && !because.starts_with('-') => {
                self.doubt(|program| format!("an unknown word of {program} may name another host"), because);
            }
            None => {}
        }
    }

    /// A word in a place that the table lists as one that may name a host.
    pub(in crate::programs) fn listed_host(&mut self, word: &Word, because: &str) {
        let host = match (host::hidden(word), because.starts_with('-')) {
            (Some(Destination::Remote(host)), _) => Some(host),
            (Some(Destination::Local(_)), _) => None,
            (None, true) => Some(host::host(word)),
            (None, false) if word.known().is_none_or(|text| text.contains('/')) => host::leading(word),
            (None, false) => None,
        };
        if let Some(host) = host {
            self.other_host(host, because);
        }
    }

    /// A connection to a host that is not the service itself.
    fn other_host(&mut self, host: Host, because: &str) {
        let own = |glob: &Text| host.name.as_deref().is_some_and(|name| matches_glob(glob, name));
        if !self.own_hosts.iter().any(own) {
            self.reach(Action::Connect, host, &[], because);
        }
    }

    /// Notes a word that may be, or contain, the name of a file, although the table takes it for text.
    pub(in crate::programs) fn mention(&mut self, word: &Word, configures: bool) {
        // With a blank in it, it is a sentence.
        if let Some(text) = word.known().filter(|text| text.len() < LONGEST_NAME && !text.contains(char::is_whitespace))
        {
            self.loads.push(Loads {
                program: self.program.to_string(),
                directory: self.directory.as_deref().map(str::to_owned),
                files: vec![text.to_owned()],
                matters: LoadMatters::Named { configures },
            });
        }
    }

    /// Notes files of the project that the program loads.
    pub(in crate::programs) fn load(&mut self, loaded: &LoadedFiles) {
        if loaded.place == LoadPlace::Project {
            self.loads.push(Loads {
                program: self.program.to_string(),
                directory: self.directory.as_deref().map(str::to_owned),
                files: loaded.files.iter().map(|file| file.to_string()).collect(),
                matters: loaded.matters.clone(),
            });
        }
    }

    fn reach(&mut self, action: Action, host: Host, marks: &[Mark], because: &str) {
        if host.name.is_none() {
            let shown = &host.shown;
            self.doubt(|program| format!("the host that {program} talks to is not known ({shown})"), because);
        }
        self.host = host.name.clone();
        self.push(action, Target::Host(host), marks, because);
    }
}

/// Whether a word begins with magic of git's pathspecs that no revision begins with.
fn is_magic(text: &str) -> bool {
    [":(", ":!", ":^"].iter().any(|magic| text.starts_with(magic))
}

/// Whether a word is the address of a page, rather than of a file.
fn is_web(text: &str) -> bool {
    ["http://", "https://", "ftp://", "ftps://"].iter().any(|scheme| text.starts_with(scheme))
}

/// Whether the name of an option says that its value is a host, or may be one and it looks like it.
pub(in crate::programs) fn names_host(option: &str, value: &Word) -> bool {
    let mut words = option.trim_start_matches('-').rsplit(['-', '_', '.']);
    let last = words.clone().next().unwrap_or_default();
    let surely = "host hosts hostname endpoint endpoints broker brokers registry proxy url uri mirror address addr";
    let perhaps = |word| listed("server servers api remote host endpoint registry", word);
    // `-addr`, in a program that writes long names with one dash.
    (option.starts_with("--") || option.len() > 4)
        && (listed(surely, last)
            || option == "--bootstrap-server"
            || words.any(perhaps) && host::leading(value).is_some())
}

/// Whether the name of an option says that its value configures the program, or is code.
pub(in crate::programs) fn names_configuration(option: &str) -> bool {
    let mut words = option.trim_start_matches('-').split(['-', '_', '.']);
    matches!(option, "-L" | "-I" | "-lib") || words.any(|word| {
        word.len() > 3 && word.ends_with("rc") || listed("config conf cfg configuration rc rcfile settings kubeconfig plugin plugins load require include lib library libs module modules init template loader import extension extensions external reporter formatter driver provider playbook interpreter python classpath", word)
    })
}

/// Whether the value of an option that no line names may be a file or directory that is written or loaded.
pub(in crate::programs) fn names_file(option: &str, value: &Word) -> bool {
    let last = option.trim_start_matches('-').rsplit(['-', '_', '.']).next().unwrap_or_default();
    let surely = "file files dir dirs directory folder outfile logfile rcfile workdir cwd kubeconfig";
    let perhaps =
        "o c d C L output out log logs config path paths plugin plugins dest destination target save dump export";
    // `-o json` names a format.
    let plain = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_,".contains(&byte))
    };
    // What such an address reads is known.
    let address = |text: &str| text.starts_with("file://") || text.starts_with("fileb://");
    let known = value.known();
    (listed(surely, last) || listed(perhaps, last) && !known.is_some_and(plain)) && !known.is_some_and(address)
}

/// Words joined by spaces, as `ssh` and `watch` do it.
pub(in crate::programs) fn joined(words: &[Word]) -> Word {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        match word {
            Word::Known(known) => text.push_str(known),
            Word::Partly { prefix, why, .. } => {
                text.push_str(prefix);
                return Word::Partly { prefix: text, why: why.clone(), many: false };
            }
            other => {
                let why = match other {
                    Word::Unknown { why, .. } => why.clone(),
                    Word::Glob(pattern) => format!("the names of {pattern}"),
                    _ => "names of files".to_owned(),
                };
                return match text.as_str() {
                    "" => Word::Unknown { why, many: false },
                    _ => Word::Partly { prefix: text, why, many: false },
                };
            }
        }
    }
    Word::Known(text)
}
