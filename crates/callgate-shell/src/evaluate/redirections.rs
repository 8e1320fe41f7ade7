//! Redirections are effects: `>` writes, `<` reads, `/dev/tcp` connects.

use super::state::{State, Value};
use super::{Evaluator, opaque};
use crate::effect::{Action, Effect, Host, Mark, Names, PathTarget, Target};
use crate::programs::paths::{glob, is_descriptor, listed_names as listed};
use crate::stream::Stream;
use crate::syntax::Dialect;
use crate::syntax::ast::{Descriptor, Part, Redirection, RedirectionKind, SourceWord};
use crate::word::Word;
use callgate_model::lexical::absolute;

/// Where a command's standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StandardOutput {
    /// To where it went before the redirection.
    Kept,
    /// Together with standard error.
    Mixed,
    /// Into a file or another descriptor.
    Away,
}

impl StandardOutput {
    /// What remains of a stream.
    pub fn apply(self, stream: Stream) -> Stream {
        match (self, stream) {
            (StandardOutput::Kept, stream) => stream,
            (StandardOutput::Mixed, Stream::Text(_) | Stream::Names(_) | Stream::File(_)) => Stream::Data,
            (StandardOutput::Mixed, stream) => stream,
            (StandardOutput::Away, _) => Stream::Text(String::new()),
        }
    }
}

/// What redirections change.
pub(super) struct Redirected {
    pub stdin: Option<Stream>,
    pub output: StandardOutput,
}

/// Whether redirections may fail, so that their command does not run. A here-document, a descriptor that every command has and
/// `/dev/null` do not.
pub(super) fn may_fail(redirections: &[Redirection]) -> bool {
    redirections.iter().any(|redirection| match &redirection.kind {
        RedirectionKind::HereString(_) | RedirectionKind::HereDocument(_) => false,
        RedirectionKind::DuplicateOutput(target) => !matches!(target.plain(), Some("1" | "2")),
        RedirectionKind::Write(target) | RedirectionKind::WriteBoth(target) | RedirectionKind::Read(target) => {
            target.plain() != Some("/dev/null")
        }
        RedirectionKind::ReadWrite(_) | RedirectionKind::DuplicateInput(_) => true,
    })
}

impl Evaluator<'_> {
    /// Adds the effects of redirections to a command.
    pub fn redirect(&mut self, redirections: &[Redirection], state: &mut State, slot: usize) -> Redirected {
        let mut redirected = Redirected { stdin: None, output: StandardOutput::Kept };
        for redirection in redirections {
            let input = redirected.stdin.clone();
            self.redirection(redirection, state, slot, &mut redirected);
            if self.dialect == Dialect::Any {
                // zsh reads from all inputs, and writes to a file and into a pipe at once.
                if input.is_some() && redirected.stdin != input {
                    redirected.stdin = Some(Stream::Unknown);
                }
                if redirected.output == StandardOutput::Away {
                    redirected.output = StandardOutput::Mixed;
                }
            }
        }
        redirected
    }

    fn redirection(&mut self, redirection: &Redirection, state: &mut State, slot: usize, redirected: &mut Redirected) {
        if let Descriptor::Variable(name) = &redirection.descriptor {
            self.set(name, Value::unknown("a descriptor"), &redirection.span, state);
        }
        let input = matches!(redirection.descriptor, Descriptor::Usual | Descriptor::Number(0));
        let output = matches!(redirection.descriptor, Descriptor::Usual | Descriptor::Number(1));
        match &redirection.kind {
            RedirectionKind::Read(source) => {
                let range =
                    |text: &str| text.contains('-') && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
                if self.dialect == Dialect::Any && source.plain().is_some_and(range) {
                    self.doubt("`<1-9>` is a wildcard in zsh", &redirection.span);
                }
                let stream = self.input(source, state, slot);
                if input {
                    redirected.stdin = Some(stream);
                }
            }
            RedirectionKind::ReadWrite(source) => {
                let target = self.target(source, state);
                self.path_effects(Action::Read, &target, state, slot);
                self.path_effects(Action::Write, &target, state, slot);
                if input {
                    redirected.stdin = Some(Stream::Data);
                }
            }
            RedirectionKind::Write(source) | RedirectionKind::WriteBoth(source) => {
                let target = self.target(source, state);
                self.path_effects(Action::Write, &target, state, slot);
                if output {
                    redirected.output = StandardOutput::Away;
                }
            }
            RedirectionKind::DuplicateInput(source) | RedirectionKind::DuplicateOutput(source) => {
                self.duplicate(redirection, source, state, slot, redirected);
            }
            RedirectionKind::HereString(source) => {
                let field = self.single(&source.parts, state);
                if input {
                    redirected.stdin = Some(field.stream("\n"));
                }
            }
            RedirectionKind::HereDocument(document) => {
                let parts = document.body.get().map_or(&[][..], Vec::as_slice);
                let field = self.double_quoted(parts, state);
                if input {
                    redirected.stdin = Some(field.stream(""));
                }
            }
        }
    }

    fn input(&mut self, source: &SourceWord, state: &mut State, slot: usize) -> Stream {
        if let [Part::Process { reads: true, body }] = source.parts.as_slice() {
            return self.substitution(body, state, self.input);
        }
        let target = self.target(source, state);
        match &target {
            Word::Known(path) if path == "/dev/null" => Stream::Text(String::new()),
            Word::Known(path) if is_descriptor(path) => Stream::Unknown,
            _ => {
                self.path_effects(Action::Read, &target, state, slot);
                match &target {
                    Word::Known(path) if network(path).is_some() => Stream::Fetched,
                    Word::Known(path) => match state.directories.as_ref() {
                        [directory] => {
                            let path = absolute(directory.as_deref(), path);
                            if path.starts_with('/') { Stream::File(path) } else { Stream::Data }
                        }
                        _ => Stream::Data,
                    },
                    _ => Stream::Data,
                }
            }
        }
    }

    fn duplicate(
        &mut self,
        redirection: &Redirection,
        source: &SourceWord,
        state: &mut State,
        slot: usize,
        redirected: &mut Redirected,
    ) {
        let target = self.target(source, state);
        let writes = matches!(redirection.kind, RedirectionKind::DuplicateOutput(_));
        let descriptor = match &target {
            Word::Known(text) => {
                let digits = text.strip_suffix('-').unwrap_or(text);
                text == "-" || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            }
            _ => false,
        };
        if !descriptor {
            // bash expands the word after `>&` and `<&` a second time.
            let plain =
                |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-+:,@%".contains(&byte));
            if !target.known().is_some_and(plain) {
                self.doubt("bash expands the target of this redirection twice", &redirection.span);
            }
            let file = writes && matches!(redirection.descriptor, Descriptor::Usual | Descriptor::Number(1));
            if file && matches!(target, Word::Known(_)) {
                self.path_effects(Action::Write, &target, state, slot);
                redirected.output = StandardOutput::Away;
            } else {
                self.add(slot, opaque("the target of a redirection is unknown", "redirection"));
            }
            return;
        }
        match (&redirection.descriptor, writes) {
            (Descriptor::Usual | Descriptor::Number(1), true) if target.known() != Some("1") => {
                redirected.output = StandardOutput::Away
            }
            (Descriptor::Number(2), true)
                if target.known() == Some("1") && redirected.output == StandardOutput::Kept =>
            {
                redirected.output = StandardOutput::Mixed;
            }
            (Descriptor::Usual | Descriptor::Number(0), false) if target.known() != Some("0") => {
                redirected.stdin = Some(Stream::Unknown);
            }
            _ => {}
        }
    }

    /// The target of a redirection.
    fn target(&mut self, source: &SourceWord, state: &mut State) -> Word {
        // `>! file` overwrites a file in zsh and csh; bash writes to a file called `!`.
        if let Some(Part::Literal(text)) = source.parts.first()
            && text.starts_with('!')
        {
            return Word::Unknown { why: "`>!` means something else in other shells".to_owned(), many: true };
        }
        let mut words = Vec::new();
        self.word(source, state, &mut words);
        match words.len() {
            1 => words.pop(),
            _ => None,
        }
        .unwrap_or(Word::Unknown { why: "a redirection to more than one word".to_owned(), many: true })
    }

    fn path_effects(&mut self, action: Action, target: &Word, state: &State, slot: usize) {
        if let Word::Known(path) = target {
            if path == "/dev/null" || path == "/dev/tty" || is_descriptor(path) {
                return;
            }
            if let Some(host) = network(path) {
                for action in [Action::Connect, Action::Send] {
                    self.add(slot, redirection_effect(action, Target::Host(host.clone())));
                }
                return;
            }
        }
        for directory in state.directories.iter() {
            let names = match target {
                Word::Known(path) => Names::Exact(absolute(directory.as_deref(), path)),
                Word::Glob(pattern) => glob(directory.as_deref(), pattern),
                Word::Below { directory: below, names, .. } => {
                    let path = Names::Below(absolute(directory.as_deref(), below));
                    let target = PathTarget { below: listed(names, action), ..PathTarget::new(path, false) };
                    self.add(slot, redirection_effect(action, Target::Path(target)));
                    continue;
                }
                Word::Partly { why, .. } | Word::Unknown { why, .. } => {
                    let why = format!("the target of a redirection is unknown ({why})");
                    return self.add(slot, opaque(&why, "redirection"));
                }
            };
            self.add(slot, redirection_effect(action, Target::Path(PathTarget::new(names, false))));
        }
    }
}

fn redirection_effect(action: Action, target: Target) -> Effect {
    Effect::new(action, target, "redirection").marked(Mark::Redirection)
}

/// `/dev/tcp/host/port`, which bash takes for a connection.
fn network(path: &str) -> Option<Host> {
    let rest = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))?;
    let name = rest.split('/').next().unwrap_or("");
    Some(Host { name: Some(name.to_ascii_lowercase()), shown: path.to_owned() })
}
