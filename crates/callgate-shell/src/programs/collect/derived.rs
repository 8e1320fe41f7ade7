//! Names that a program makes out of the names it is given.

use super::Collector;
use crate::effect::Action;
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
