//! Names below directories that follow from other names: copies into a directory, and members of archives.

use super::{Collector, CopySource, IF_DIRECTORY};
use crate::effect::{Action, MemberSource, Members, PathTarget, Selection, Target, TreeNames};
use crate::programs::paths;
use crate::programs::scan::Scan;
use crate::programs::table::{MemberRole, RoleKind};
use crate::stream::Stream;
use crate::word::Word;

/// How many copies are followed, if there are several destinations.
const MAX_COPIES: usize = 1_000;

impl Collector<'_> {
    /// Names that the program chooses, unless they turn out to be the members of archives.
    pub(super) fn chosen(&self) -> TreeNames {
        TreeNames::Any(format!("{} chooses the names", self.program))
    }

    /// Reads which names of a tree the program visits.
    pub(in crate::programs) fn select(&mut self, scan: &Scan<'_>) {
        let mut except = Vec::new();
        for given in scan.given().filter(|given| !given.negated) {
            for (word, role) in &given.values {
                match (&role.kind, word.known()) {
                    // `rg -g !x`
                    (RoleKind::Only, Some(glob)) if glob.starts_with('!') => {
                        except.push(glob.trim_start_matches('!').to_owned());
                    }
                    (RoleKind::Only, glob) => self.selection.only.push(glob.unwrap_or("*").to_owned()),
                    (RoleKind::Except, Some(glob)) => except.push(glob.to_owned()),
                    (RoleKind::ExceptDirectory, Some(glob)) => {
                        self.selection.except_directories.push(glob.trim_end_matches('/').to_owned());
                    }
                    _ => {}
                }
            }
        }
        // With both kinds, the order decides what happens to names that neither matches.
        if !except.is_empty() && !self.selection.only.is_empty() {
            self.selection = Selection { only: vec!["*".to_owned()], ..std::mem::take(&mut self.selection) };
        }
        self.selection.except = except;
    }

    /// An archive or a patch whose members are written.
    pub(super) fn member(&mut self, word: &Word, role: MemberRole) {
        let source = match word {
            // A program may look for it before or after it changes its directory.
            Word::Known(text) if text.starts_with('/') || !self.directory_changed => {
                let path = paths::absolute(self.directory.as_deref(), text);
                path.starts_with('/').then_some(match role {
                    MemberRole::Archive => MemberSource::Archive(path),
                    MemberRole::Patch(_) => MemberSource::Patch(path),
                })
            }
            _ => None,
        };
        self.members.push(source);
        self.strips(role);
    }

    /// The same, on standard input.
    pub(super) fn stdin_members(&mut self, role: MemberRole) {
        self.members.push(match (self.stdin, role) {
            (Stream::Text(text), MemberRole::Patch(_)) => Some(MemberSource::Text(text.clone())),
            (Stream::File(path), MemberRole::Patch(_)) => Some(MemberSource::Patch(path.clone())),
            (Stream::File(path), MemberRole::Archive) => Some(MemberSource::Archive(path.clone())),
            _ => None,
        });
        self.strips(role);
    }

    fn strips(&mut self, role: MemberRole) {
        self.strip.get_or_insert(match role {
            MemberRole::Archive => Some(0),
            MemberRole::Patch(count) => count,
        });
    }

    /// Names that the program chooses are the members of its archives.
    pub(in crate::programs) fn finish_members(&mut self) {
        if self.members.is_empty() {
            return;
        }
        let Some(sources) = std::mem::take(&mut self.members).into_iter().collect::<Option<Vec<_>>>() else { return };
        let members = TreeNames::Members(Members { sources, strip: self.strip.unwrap_or(Some(0)) });
        let chosen = self.chosen();
        for effect in &mut self.effects {
            if let Target::Path(target) = &mut effect.target
                && target.below == chosen
            {
                target.below = members.clone();
            }
        }
    }

    /// The names of a source.
    pub(super) fn copied(&self, source: &CopySource) -> TreeNames {
        let Some(names) = paths::names(self.directory.as_deref(), &source.word) else { return TreeNames::default() };
        let below = match &source.word {
            Word::Below { names, .. } if !source.tree => paths::listed_names(names, Action::Read),
            _ => TreeNames::Existing(self.selection.clone()),
        };
        TreeNames::Copied(Box::new(PathTarget { names, tree: source.tree, below }))
    }

    /// A destination that is a directory gets the sources inside; one that does not exist becomes the source.
    pub(in crate::programs) fn finish_destinations(&mut self) {
        let sources = std::mem::take(&mut self.sources);
        if self.links && self.destinations.is_empty() && !sources.is_empty() {
            self.destinations.push((Word::Known(".".to_owned()), Vec::new()));
        }
        let known = self.destinations.iter().filter(|(destination, _)| destination.known().is_some()).count();
        if sources.len().saturating_mul(known) > MAX_COPIES.max(sources.len()) {
            return self.doubt(|program| format!("{program} copies to more places than are followed"), IF_DIRECTORY);
        }
        for (destination, marks) in std::mem::take(&mut self.destinations) {
            let Word::Known(folder) = &destination else {
                if matches!(destination, Word::Below { .. } | Word::Glob(_)) {
                    let below = TreeNames::Any("copies into a directory that is not known".to_owned());
                    self.path_with(Action::Write, &destination, false, below, &marks, IF_DIRECTORY);
                }
                continue;
            };
            self.replaces(&destination);
            if self.from_elsewhere {
                let below = self.chosen();
                self.path_with(Action::Write, &destination, false, below, &marks, IF_DIRECTORY);
            }
            for source in &sources {
                let name = source.word.known().and_then(paths::base_name);
                if let Some(name) = name {
                    let inside = Word::Known(format!("{}/{name}", folder.trim_end_matches('/')));
                    let below = if self.tree { self.copied(source) } else { TreeNames::default() };
                    self.path_with(Action::Write, &inside, self.tree, below, &marks, IF_DIRECTORY);
                    self.replaces(&inside);
                }
                if !source.tree && source.word.known().is_some() {
                    continue;
                }
                let is_known = !matches!(source.word, Word::Partly { .. } | Word::Unknown { .. });
                let below = match is_known {
                    true => self.copied(source),
                    false => TreeNames::Any("copies names that are not known".to_owned()),
                };
                // Without a name of its own, a source is the contents of a directory.
                let contents = name.is_none() && !matches!(source.word, Word::Below { .. } | Word::Glob(_));
                self.path_with(Action::Write, &destination, contents, below, &marks, IF_DIRECTORY);
                self.linked_below(folder, source, &marks);
            }
        }
    }

    /// A relative target of a symlink counts from the directory of the link.
    fn linked_below(&mut self, folder: &str, source: &CopySource, marks: &[crate::effect::Mark]) {
        let Some(target) = source.word.known().filter(|target| self.links && !target.starts_with('/')) else { return };
        let parent = folder.trim_end_matches('/').rsplit_once('/').map(|(parent, _)| parent.to_owned());
        for directory in [parent, Some(folder.to_owned())].into_iter().flatten() {
            let word = Word::Known(format!("{directory}/{target}"));
            let below = self.copied(&CopySource { word, tree: true });
            self.path_with(Action::Write, &Word::Known(folder.to_owned()), false, below, marks, IF_DIRECTORY);
        }
    }

    /// Notes a file whose old contents may be kept.
    fn replaces(&mut self, word: &Word) {
        if self.backs_up {
            self.updated.push(word.clone());
        }
    }
}
