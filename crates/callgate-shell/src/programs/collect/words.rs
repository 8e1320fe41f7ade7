//! Words with a form of their own: files to run, assignments, `@file`, directories, streams.

use super::Collector;
use crate::effect::{Action, CodeOrigin, Mark};
use crate::programs::paths;
use crate::programs::table::{Role, RoleKind};
use crate::stream::Stream;
use crate::word::Word;
use std::borrow::Cow;

impl Collector<'_> {
    pub(in crate::programs) fn run_file(&mut self, word: &Word, because: &str) {
        match word {
            Word::Known(text) if text.is_empty() => {}
            Word::Known(text) if matches!(text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0") => self.stdin_code(because),
            Word::Known(text) => {
                let path = paths::absolute(self.directory.as_deref(), text);
                self.run(&path, CodeOrigin::File, because);
            }
            _ => self.doubt(|program| format!("the file that {program} runs is not known"), because),
        }
    }

    /// Standard input is run as code that we do not read.
    pub(in crate::programs) fn stdin_code(&mut self, because: &str) {
        match self.stdin {
            Stream::Unconnected => {}
            Stream::Fetched => {
                let program = self.program.clone();
                self.run(&program, CodeOrigin::Fetched, because);
                self.opaque("code from the network is run", because);
            }
            _ => self.doubt(|program| format!("{program} runs what comes through the pipe"), because),
        }
    }

    pub(in crate::programs) fn change_directory(&mut self, word: &Word, because: &str) {
        self.directory_changed = true;
        match word {
            Word::Known(text) => {
                if !text.is_empty() {
                    self.directory = match &self.directory {
                        None if !text.starts_with('/') => None,
                        directory => Some(Cow::Owned(paths::absolute(directory.as_deref(), text))),
                    };
                }
            }
            _ => {
                self.directory = None;
                self.doubt(|program| format!("the directory in which {program} works is not known"), because);
            }
        }
    }

    pub(in crate::programs) fn assign(&mut self, word: &Word, because: &str) {
        let pair = match word {
            Word::Known(text) => text.split_once('=').map(|(name, value)| (name, Word::Known(value.to_owned()))),
            Word::Partly { prefix, why, many: false } => prefix.split_once('=').map(|(name, front)| {
                let why = why.clone();
                let value = match front {
                    "" => Word::Unknown { why, many: false },
                    _ => Word::Partly { prefix: front.to_owned(), why, many: false },
                };
                (name, value)
            }),
            _ => None,
        };
        match pair {
            Some((name, value)) => self.environment.push((name.to_owned(), value)),
            None => self.doubt(|program| format!("the variable that {program} sets is not known"), because),
        }
    }

    /// `HEAD:file` shows what the file held then. What is not known is a version, not a file.
    pub(super) fn revision(&mut self, word: &Word, because: &str) {
        if let Word::Known(text) = word
            && let Some((_, file)) = text.split_once(':')
            && !file.is_empty()
        {
            self.path(Action::Read, &Word::Known(file.to_owned()), false, &[], because);
        }
    }

    pub(super) fn at_read(&mut self, word: &Word, role: &Role, because: &str) {
        let doubtful =
            |text: &str| text.starts_with('@') || text.contains("=@") || text.contains("=<") || text.ends_with('=');
        match word {
            Word::Known(text) => {
                let file = match text.strip_prefix('@') {
                    Some(rest) => Some(rest),
                    None => text.split_once("=@").or(text.split_once("=<")).map(|(_, rest)| rest),
                };
                let Some(file) = file else { return };
                let whole = Word::Known(file.to_owned());
                if text.starts_with('@') || !file.contains([';', ',']) {
                    return self.role(&whole, &Role { kind: RoleKind::Read, ..role.clone() }, because);
                }
                // `name=@a,b;type=text/plain`
                let files = file.split(';').next().unwrap_or_default();
                for part in files.split(',') {
                    self.path(Action::Read, &Word::Known(part.to_owned()), false, &role.marks, because);
                }
            }
            // Text that has begun like JSON or like `name=value` stays text.
            Word::Partly { prefix, many: false, .. }
                if !doubtful(prefix) && (prefix.contains('=') || prefix.starts_with(['{', '[', '<', '"'])) => {}
            _ => self.doubt(|program| format!("data of {program} may name a file"), because),
        }
    }

    /// What standard input is to the program.
    pub(in crate::programs) fn stdin_role(&mut self, role: &Role) {
        let because = "standard input";
        if let Some(strip) = role.members {
            return self.stdin_members(strip);
        }
        match (&role.kind, self.stdin) {
            (_, Stream::Unconnected) | (RoleKind::Text, _) => {}
            (RoleKind::Shell | RoleKind::ShellWords, Stream::Text(text)) => {
                self.shell(Word::Known(text.clone()), Vec::new(), role, Some(Stream::Unconnected));
            }
            (RoleKind::Code(_), Stream::Text(text)) => self.role(&Word::Known(text.clone()), role, because),
            (RoleKind::Shell | RoleKind::ShellWords | RoleKind::Code(_) | RoleKind::RunFile, _) => {
                self.stdin_code(because)
            }
            (RoleKind::Opaque(why), _) => self.opaque(why, because),
            (_, Stream::Names(directories)) => {
                for directory in directories {
                    self.role(&directory.word(true), role, because);
                }
            }
            (_, Stream::Text(text)) => {
                for line in text.split(['\n', '\0']).filter(|line| !line.is_empty()) {
                    self.role(&Word::Known(line.to_owned()), role, because);
                }
            }
            _ => self.doubt(|program| format!("what {program} finds on its standard input is not known"), because),
        }
    }

    /// What code of this call has changed.
    pub(in crate::programs) fn finish_code(&mut self) {
        for (word, mut marks) in std::mem::take(&mut self.updated_by_code) {
            if self.code_destroys {
                marks.push(Mark::Destructive);
            }
            if self.code_changes {
                self.path(Action::Write, &word, false, &marks, "changed by its code");
            }
        }
    }

    /// The value of an option that the table accepts without knowing it.
    pub(super) fn any_value(&mut self, word: &Word, because: &str) {
        let Word::Known(text) = word else {
            if !matches!(word, Word::Partly { prefix, .. } if !prefix.ends_with('=') && !"fileb://".starts_with(prefix.as_str()) && !prefix.starts_with(['@', 'f']))
            {
                self.doubt(|program| format!("a value of {program} may name a file"), because);
            }
            return;
        };
        let behind_name = text.split_once('=').map(|(_, value)| value);
        for value in [Some(text.as_str()), behind_name].into_iter().flatten() {
            let path = ["fileb://", "file://", "@"].iter().find_map(|front| value.strip_prefix(front));
            if let Some(path) = path.filter(|path| *path != "-") {
                self.path(Action::Read, &Word::Known(path.to_owned()), false, &[], because);
            }
        }
    }
}
