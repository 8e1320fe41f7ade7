//! Finds the paths that rules restrict, before there are effects to judge.

use std::path::Path;

use callgate_model::effect::Action;
use callgate_model::place::{Contents, Place, Rest, Zone};

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
        Self { compiled, around: NamedDirectories::new(home, workspace), workspace, lists, patterns }
    }

    /// Whether a rule that asks or denies is about this action and path, whatever its other conditions are.
    pub(crate) fn contain(&self, action: Action, named: &Path, resolved: &Path) -> bool {
        let is_about = |actions: u16| actions == 0 || actions & action_bit(action) != 0;
        let place = Place {
            named: named.to_owned(),
            resolved: resolved.to_owned(),
            rest: Rest::Nothing,
            tree: false,
            zone: Zone::Root,
            traversal: false,
            contents: Contents::Existing,
        };
        let hits = self.compiled.paths.hits(Some(&place), false, &self.around, &self.compiled.pool);
        let listed = hits.lists().any(|list| {
            let from = self.lists.partition_point(|(other, _)| *other < list);
            let rules = self.lists.get(from..).unwrap_or_default().iter().take_while(|(other, _)| *other == list);
            rules.into_iter().any(|(_, actions)| is_about(*actions)) && hits.touched(list) != Match::No
        });
        listed
            || self.patterns.iter().filter(|(_, actions)| is_about(*actions)).any(|(span, _)| self.found(*span, named))
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
