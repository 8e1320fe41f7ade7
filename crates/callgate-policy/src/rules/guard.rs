//! Finds the paths that rules restrict, before there are effects to judge.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use callgate_model::effect::Action;
use callgate_model::place::Rest;

use super::command_text;
use super::compile::{CompiledPolicy, action_bit};
use super::matching::place::NamedDirectories;
use super::matching::{Match, Polarity, Span, pattern};

/// The restricting rules about paths of one policy.
pub(crate) struct RestrictedPaths<'a> {
    compiled: &'a CompiledPolicy,
    around: NamedDirectories<'a>,
    workspace: Option<&'a Path>,
    /// The lists of paths that rules name, with the bits of their actions; 0: every action.
    lists: Vec<(u32, u16)>,
    /// The regular expressions over paths, with the bits of their actions.
    patterns: Vec<(Span, u16)>,
    /// For the path as named and as resolved. A walk goes through a tree directory by directory.
    last: (RefCell<LastDirectory>, RefCell<LastDirectory>),
}

/// The directory that was looked at last, and the globs that it brings along for all names in it.
#[derive(Debug, Default)]
struct LastDirectory {
    path: PathBuf,
    globs: Vec<u32>,
}

impl<'a> RestrictedPaths<'a> {
    pub(crate) fn new(compiled: &'a CompiledPolicy, home: Option<&'a Path>, workspace: Option<&'a Path>) -> Self {
        let (mut lists, mut patterns) = (Vec::new(), Vec::new());
        for rule in compiled.rules.iter().filter(|rule| rule.side() == Polarity::Restricts) {
            lists.extend(rule.paths.map(|list| (list, rule.actions)));
            if !rule.path_patterns.is_empty() {
                patterns.push((rule.path_patterns, rule.actions));
            }
        }
        lists.sort_unstable();
        lists.dedup();
        Self {
            compiled,
            around: NamedDirectories::new(home, workspace),
            workspace,
            lists,
            patterns,
            last: Default::default(),
        }
    }

    /// Whether a rule that asks or denies is about this action and path, whatever its other conditions are.
    pub(crate) fn contain(&self, action: Action, named: &Path, resolved: &Path) -> bool {
        let is_about = |actions: u16| actions == 0 || actions & action_bit(action) != 0;
        let listed = |path: &Path, last: &RefCell<LastDirectory>| {
            let directory = path.parent().unwrap_or(path);
            // Compared as text: to compare components would take longer than all the rest.
            if last.borrow().path.as_os_str() != directory.as_os_str() {
                let mut globs = self.compiled.paths.inherited(directory, &self.around, &self.compiled.pool);
                globs.retain(|glob| self.compiled.paths.owner(*glob).is_some_and(|list| self.restricts(list)));
                *last.borrow_mut() = LastDirectory { path: directory.to_owned(), globs };
            }
            let hits =
                self.compiled.paths.hits_in(&last.borrow().globs, path, action, &self.around, &self.compiled.pool);
            hits.is_some_and(|hits| {
                hits.lists().any(|list| {
                    let from = self.lists.partition_point(|(other, _)| *other < list);
                    let rules = self.lists.get(from..).unwrap_or_default().iter();
                    let mut rules = rules.take_while(|(other, _)| *other == list);
                    rules.any(|(_, actions)| is_about(*actions)) && hits.touched(list) != Match::No
                })
            })
        };
        listed(named, &self.last.0)
            || named.as_os_str() != resolved.as_os_str() && listed(resolved, &self.last.1)
            || self.patterns.iter().filter(|(_, actions)| is_about(*actions)).any(|(span, _)| self.found(*span, named))
    }

    /// Whether a restricting rule names this list.
    fn restricts(&self, list: u32) -> bool {
        self.lists.binary_search_by_key(&list, |(list, _)| *list).is_ok()
    }

    /// Whether one of the regular expressions is found in the path, or exceeded its limit.
    fn found(&self, patterns: Span, path: &Path) -> bool {
        let texts = command_text::path_texts(path, &Rest::Nothing, self.workspace);
        let finds = |number: usize, text: &str| {
            pattern::search(&self.compiled.patterns, number, &self.compiled.pool, text).unwrap_or(true)
        };
        (0..patterns.len()).any(|offset| texts.iter().any(|text| finds(patterns.index(offset), text)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use callgate_model::call::Origin;
    use callgate_model::effect::Action;

    use crate::Policy;

    #[test]
    fn names_are_found_wherever_their_globs_are_filed() {
        let text = "version: 1\nrules:\n  - {effects: [read], paths: ['**/.env', '**/*.pem', '/w/a/b', '**/deep/in/**'], action: deny}\n  \
                    - {effects: [write], paths: ['**/hooks/x', './top'], action: ask}\n  - {paths: ['**/free'], action: allow}\n";
        let policy = Policy::from_yaml(text, "test.yaml").unwrap();
        let origin = Origin { workspace: Some("/w".into()), ..Origin::default() };
        let restricts = policy.restricts(&origin);
        for (action, path, expected) in [
            (Action::Read, "/w/.env", true),
            (Action::Read, "/w/x/.env", true),
            (Action::Read, "/w/x/.ENV", true),
            (Action::Write, "/w/.env", false),
            (Action::Read, "/w/k.pem", true),
            (Action::Read, "/w/k.pem/x", false),
            (Action::Read, "/w/a/b", true),
            (Action::Read, "/w/a/c", false),
            (Action::Read, "/w/deep/in/x/y", true),
            (Action::Read, "/w/deep/x", false),
            (Action::Write, "/w/.git/hooks/x", true),
            (Action::Write, "/w/top", true),
            (Action::Write, "/w/x/top", false),
            (Action::Read, "/w/free", false),
        ] {
            assert_eq!(restricts(action, Path::new(path), Path::new(path)), expected, "{action:?} {path}");
        }
        assert!(restricts(Action::Read, Path::new("/link/x"), Path::new("/w/x/.env")), "where it leads counts too");
    }
}
