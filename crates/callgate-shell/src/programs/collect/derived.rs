//! Names that a program makes out of the names it is given.

use super::Collector;
use crate::effect::{Action, TreeNames};
use crate::programs::paths;
use crate::programs::table::{Derived, Role};
use crate::word::Word;

impl Collector<'_> {
    /// What a word means in its role, and the file whose name follows from it.
    pub(super) fn derive(&mut self, word: &Word, role: &Role, derived: &Derived, because: &str) {
        let plain = Role { derived: None, ..role.clone() };
        self.role(word, &plain, because);
        let written = match (word, derived) {
            (Word::Known(name), _) if name == "-" => return,
            (_, Derived::Anything) => return self.beside(word, role, because),
            (Word::Known(name), Derived::Adds(suffix)) => Word::Known(format!("{name}{suffix}")),
            (Word::Known(name), Derived::Drops(suffixes)) => {
                let stripped =
                    |(old, new): &(String, String)| Some(format!("{}{new}", name.strip_suffix(old.as_str())?));
                match suffixes.iter().find_map(stripped) {
                    Some(written) => Word::Known(written),
                    None => {
                        return self.doubt(
                            |program| format!("the name of the file that {program} writes is not known"),
                            because,
                        );
                    }
                }
            }
            (Word::Known(name), Derived::Pieces(globs)) => {
                for glob in globs {
                    let pieces = Word::Glob(format!("{}{glob}", paths::escape(name)));
                    self.path(Action::Write, &pieces, role.tree, &role.marks, because);
                }
                return;
            }
            // Names that are not known now stand for those made out of them.
            (other, _) => other.clone(),
        };
        self.path(Action::Write, &written, role.tree, &role.marks, because);
    }

    /// A file whose name is not known, in the directory of another one.
    fn beside(&mut self, word: &Word, role: &Role, because: &str) {
        let below = TreeNames::Any(format!("{} makes the names", self.program));
        let directory = match word {
            _ if role.tree || self.tree => word.clone(),
            Word::Known(name) => match name.trim_end_matches('/').rsplit_once('/') {
                Some(("", _)) => Word::Known("/".to_owned()),
                Some((parent, _)) => Word::Known(parent.to_owned()),
                None => Word::Known(".".to_owned()),
            },
            Word::Glob(pattern) => match paths::literal_prefix(pattern).rsplit_once('/') {
                Some((parent, _)) => Word::Known(format!("{parent}/")),
                None => Word::Known(".".to_owned()),
            },
            other => other.clone(),
        };
        self.path_with(Action::Write, &directory, false, below, &role.marks, because);
    }

    /// Where the old contents of updated files go.
    pub(in crate::programs) fn finish_backups(&mut self) {
        let updated = std::mem::take(&mut self.updated);
        for suffix in std::mem::take(&mut self.suffixes) {
            let suffix = match suffix.known() {
                Some("") => continue,
                Some(suffix) if !suffix.contains(['*', '/']) => suffix,
                _ => {
                    self.doubt(|program| format!("where {program} keeps old files is not known"), "backup");
                    continue;
                }
            };
            for word in &updated {
                if let Word::Known(name) = word {
                    self.path(Action::Write, &Word::Known(format!("{name}{suffix}")), false, &[], "backup");
                }
            }
        }
    }
}
