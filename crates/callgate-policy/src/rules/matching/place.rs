//! Lists of path globs, and an index to find those that may match a path.
//!
//! A policy may contain many sets with a thousand globs each, so globs are indexed: each is filed under its rarest component,
//! and a path looks up its components.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use super::case::fold;
use super::glob::{self, Anchor, Glob, GlobError, Segment};
use super::relate::{ComparedPath, Following, PathPattern, PathPrefix, ShellName};
use super::table::Table;
use super::{Match, Pool, Span, Text, hash, name};
use crate::rules::compile::action_bit;
use crate::rules::stored::{StoredList, flat_struct, stored_struct};
use callgate_model::effect::Action;
use callgate_model::glob::literal_prefix;
use callgate_model::place::{Contents, Place, Rest, Zone};

const LITERAL: u8 = 1;
const FRONT: u8 = 2;
const BACK: u8 = 3;
/// A name within a floating glob, not its last one.
const INNER: u8 = 4;
/// The length of the pieces of names that globs are filed under.
const PIECE: usize = 3;
/// The bits of all actions.
pub(crate) const EVERY_ACTION: u16 = (1 << 9) - 1;
/// The bits of the actions that change something. Globs of rules about nothing else are most of a policy; they have keys of their
/// own, so that other actions do not even find them.
const CHANGES: u16 = 1 << Action::Write as u16 | 1 << Action::Delete as u16;
/// The difference between the two keys of a name.
const KEY_OF_CHANGES: u64 = 0xd6e8_feb8_6659_fd93;
/// The limit for the globs of a policy, after sets and braces are expanded.
pub(crate) const MAXIMUM_GLOBS: usize = 500_000;
/// So many bits of a filed glob say its number.
const NUMBER_BITS: u32 = 20;
const _: () = assert!(MAXIMUM_GLOBS < 1 << NUMBER_BITS && EVERY_ACTION >> (32 - NUMBER_BITS) == 0);
const _: () = assert!(EVERY_ACTION >> Action::Opaque as u16 == 1);

stored_struct! {
    /// All path globs of a policy.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct PathLists {
        globs: StoredList<Glob>,
        segments: StoredList<Segment>,
        /// The list each glob belongs to.
        owners: StoredList<u32>,
        named: Table,
        /// Anchored globs, sorted by their literal prefix.
        below: StoredList<AnchoredGlob>,
        /// Filed globs, which the following are ranges of.
        filed: StoredList<u32>,
        /// Globs without a literal to file them under.
        loose: Span,
        /// Anchored globs with a wildcard after the literal prefix.
        wild: Span,
        /// Globs that match a name at any depth.
        floating: Span,
    }
}

flat_struct! {
    #[derive(Debug, Clone, Copy)]
    struct AnchoredGlob {
        anchor: Anchor,
        fixed: Text,
        /// As [`file`] gives it.
        filed: u32,
    }
}

/// A glob as the index holds it: its number, and above it the bits of the actions that rules with its list are about. So the
/// globs of all other rules are left out before anything else of them is read.
fn file(number: u32, actions: u16) -> u32 {
    number | u32::from(actions) << NUMBER_BITS
}

/// The numbers of the filed globs that belong to rules about one of these actions.
fn unfile(filed: &[u32], actions: u16) -> impl Iterator<Item = u32> {
    let wanted = filed.iter().filter(move |filed| **filed >> NUMBER_BITS & u32::from(actions) != 0);
    wanted.map(|filed| filed & ((1 << NUMBER_BITS) - 1))
}

/// The directories that `~` and `./` mean.
pub(crate) struct NamedDirectories<'a> {
    homes: Vec<Vec<PathPrefix<'a>>>,
    workspace: Vec<Vec<PathPrefix<'a>>>,
    root: [Vec<PathPrefix<'a>>; 1],
    /// Whether the first home is the caller's.
    first_is_own: bool,
}

/// A glob that matches a path or a part of it.
#[derive(Debug, Clone, Copy)]
struct GlobHit {
    list: u32,
    negated: bool,
    touches: Match,
    /// Whether the glob covers the path if `~` is the caller's home.
    covers_own: bool,
    /// Whether the glob covers the path if `~` is any user's home.
    covers_any: bool,
}

/// The globs that match a place: for the path as named and for the resolved path.
#[derive(Debug, Default)]
pub(crate) struct GlobHits {
    named: Vec<GlobHit>,
    /// `None`: the same as named.
    resolved: Option<Vec<GlobHit>>,
    /// The path is not known.
    pub unknown: bool,
}

impl PathLists {
    /// Adds a glob without braces to the list with this number, and returns its segments.
    pub(crate) fn add(&mut self, list: u32, pattern: &str, pool: &mut Pool) -> Result<Vec<Segment>, GlobError> {
        let glob = glob::compile(pattern, pool, &mut self.segments)?;
        self.globs.append([glob]);
        self.owners.append([list]);
        Ok(glob.segments.of(&self.segments).into_owned())
    }

    /// How many globs there are.
    pub(crate) fn len(&self) -> usize {
        self.globs.len()
    }

    /// Indexes all globs. Call it once, after the last glob was added.
    ///
    /// `actions` holds, for each list, the bits of what the rules with it are about.
    pub(crate) fn index(&mut self, actions: &[u16], pool: &mut Pool) {
        let keys: Vec<Vec<u64>> = self.globs.iter().map(|glob| keys(&glob.segments.of(&self.segments), pool)).collect();
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for key in keys.iter().flatten() {
            let count = counts.entry(*key).or_default();
            *count = count.saturating_add(1);
        }
        let mut entries = Vec::with_capacity(keys.len());
        let (mut loose, mut wild, mut floating) = (Vec::new(), Vec::new(), Vec::new());
        let mut below: Vec<(Anchor, String, u32)> = Vec::new();
        for (number, (glob, keys)) in self.globs.iter().zip(&keys).enumerate() {
            let list = self.owners.get(number).and_then(|list| actions.get(list as usize));
            let actions = list.copied().unwrap_or(EVERY_ACTION);
            let filed = file(u32::try_from(number).unwrap_or(u32::MAX), actions);
            let differs = if actions & !CHANGES == 0 { KEY_OF_CHANGES } else { 0 };
            let segments = glob.segments.of(&self.segments);
            match keys.iter().min_by_key(|key| counts.get(key)) {
                Some(key) => entries.push((*key ^ differs, filed)),
                None => loose.push(filed),
            }
            let last = segments.len().saturating_sub(1);
            if segments.iter().take(last).any(|segment| *segment == Segment::Many) {
                floating.push(filed);
                for segment in segments.iter().take(last) {
                    if let Segment::Literal(text) = segment {
                        entries.push((hash(INNER, &fold(pool.get(*text).as_bytes())) ^ differs, filed));
                    }
                }
                continue;
            }
            let fixed: Vec<&str> = segments
                .iter()
                .map_while(|segment| match segment {
                    Segment::Literal(text) => Some(pool.get(*text)),
                    _ => None,
                })
                .collect();
            if segments.get(fixed.len()).is_some_and(|segment| *segment != Segment::Many) {
                wild.push(filed);
            }
            below.push((glob.anchor, fixed.join("/"), filed));
        }
        below.sort();
        self.below.append(below.into_iter().map(|(anchor, fixed, filed)| AnchoredGlob {
            anchor,
            fixed: pool.add(&fixed),
            filed,
        }));
        self.loose = self.filed.append(loose);
        self.wild = self.filed.append(wild);
        self.floating = self.filed.append(floating);
        self.named = Table::new(entries);
    }

    /// The globs that match a place, of the lists of rules about the action.
    pub(crate) fn hits(
        &self,
        place: Option<&Place>,
        action: Option<Action>,
        around: &NamedDirectories<'_>,
        pool: &Pool,
    ) -> GlobHits {
        self.hits_of(action.map_or(EVERY_ACTION, action_bit), place, action, around, pool)
    }

    /// The globs that match a place, of the lists of rules about one of `actions`.
    pub(crate) fn hits_of(
        &self,
        actions: u16,
        place: Option<&Place>,
        action: Option<Action>,
        around: &NamedDirectories<'_>,
        pool: &Pool,
    ) -> GlobHits {
        let Some(place) = place.filter(|place| !matches!(place.zone, Zone::Unresolved(_))) else {
            return GlobHits { unknown: true, ..GlobHits::default() };
        };
        if self.globs.is_empty() {
            return GlobHits::default();
        }
        let shell = match &place.rest {
            Rest::Glob(pattern) => match ShellName::parse(pattern) {
                Some(names) => Some(names),
                None => return GlobHits { unknown: true, ..GlobHits::default() },
            },
            _ => None,
        };
        let following = match (&place.rest, &shell) {
            (Rest::Nothing, _) => Following::Nothing,
            (_, Some(names)) => Following::Shell(names),
            _ => Following::Anything,
        };
        let floating_counts = !matches!(place.zone, Zone::Root | Zone::Readable) || place.contents == Contents::Any;
        // Names that other files or directories give have effects of their own.
        let changes = matches!(action, Some(Action::Write | Action::Delete)) && place.contents != Contents::Given;
        // The names that are there have effects of their own. What may match a pattern besides, the call itself makes.
        let is_met = shell.is_some() && action == Some(Action::Read) && place.contents == Contents::Made;
        let look = |path: &Path| {
            let components = components(path);
            let tree = place.tree || place.contents == Contents::Any;
            let subject = ComparedPath { components: &components, following, tree, floating_counts, changes };
            let mut hits = self.look_up(&subject, actions, around, pool);
            if is_met {
                hits.iter_mut().for_each(|hit| hit.touches = hit.touches.min(Match::Maybe));
            }
            hits
        };
        let named = look(&place.named);
        let resolved = (place.named != place.resolved).then(|| look(&place.resolved));
        GlobHits { named, resolved, unknown: false }
    }

    /// The list that a glob belongs to.
    pub(crate) fn owner(&self, glob: u32) -> Option<u32> {
        self.owners.get(glob as usize)
    }

    /// The globs that may match a name in a directory because of the directories around it.
    pub(crate) fn inherited(&self, directory: &Path, around: &NamedDirectories<'_>, pool: &Pool) -> Vec<u32> {
        let components = components(directory);
        let exact = ComparedPath {
            components: &components,
            following: Following::Nothing,
            tree: false,
            floating_counts: true,
            changes: false,
        };
        let below = ComparedPath { following: Following::Anything, ..exact };
        let mut candidates = self.candidates(&exact, EVERY_ACTION, around, pool);
        candidates.retain(|number| self.hit(*number, &below, around, pool).is_some());
        candidates
    }

    /// The globs that match an exact path, if those that its directory brings along are known. They are of the lists of rules
    /// about the action; those that the directory brings along may be of others too.
    pub(crate) fn hits_in(
        &self,
        inherited: &[u32],
        path: &Path,
        action: Action,
        around: &NamedDirectories<'_>,
        pool: &Pool,
    ) -> Option<GlobHits> {
        let mut candidates = Vec::new();
        if let Some(name) = path.file_name() {
            self.named_like(&fold(name.as_encoded_bytes()), action_bit(action), &mut candidates);
        }
        if candidates.is_empty() && inherited.is_empty() {
            return None;
        }
        candidates.extend_from_slice(inherited);
        candidates.sort_unstable();
        candidates.dedup();
        let components = components(path);
        let subject = ComparedPath {
            components: &components,
            following: Following::Nothing,
            tree: false,
            floating_counts: false,
            changes: false,
        };
        let named = candidates.iter().filter_map(|number| self.hit(*number, &subject, around, pool)).collect();
        Some(GlobHits { named, resolved: None, unknown: false })
    }

    /// Adds the globs that are filed under a folded name.
    fn named_like(&self, name: &[u8], actions: u16, candidates: &mut Vec<u32>) {
        self.keyed(hash(LITERAL, name), actions, candidates);
        if let (Some(front), Some(back)) = (name.get(..PIECE), back(name)) {
            self.keyed(hash(FRONT, front), actions, candidates);
            self.keyed(hash(BACK, back), actions, candidates);
        }
    }

    /// Adds the globs that are filed under a key.
    fn keyed(&self, key: u64, actions: u16, candidates: &mut Vec<u32>) {
        candidates.extend(unfile(&self.named.get(key), actions));
        if actions & CHANGES != 0 {
            candidates.extend(unfile(&self.named.get(key ^ KEY_OF_CHANGES), actions));
        }
    }

    /// The globs that match one path, of the lists of rules about one of `actions`.
    pub(crate) fn hits_exactly(
        &self,
        subject: &ComparedPath<'_>,
        actions: u16,
        around: &NamedDirectories<'_>,
        pool: &Pool,
    ) -> GlobHits {
        GlobHits { named: self.look_up(subject, actions, around, pool), resolved: None, unknown: false }
    }

    fn look_up(
        &self,
        subject: &ComparedPath<'_>,
        actions: u16,
        around: &NamedDirectories<'_>,
        pool: &Pool,
    ) -> Vec<GlobHit> {
        let candidates = self.candidates(subject, actions, around, pool);
        candidates.iter().filter_map(|number| self.hit(*number, subject, around, pool)).collect()
    }

    /// The numbers of all globs that may match a path and belong to rules about these actions, in order.
    fn candidates(
        &self,
        subject: &ComparedPath<'_>,
        actions: u16,
        around: &NamedDirectories<'_>,
        pool: &Pool,
    ) -> Vec<u32> {
        let mut candidates: Vec<u32> = unfile(&self.loose.of(&self.filed), actions).collect();
        if !self.named.is_empty() {
            for component in subject.components {
                self.named_like(&fold(component), actions, &mut candidates);
            }
        }
        if subject.tree || !matches!(subject.following, Following::Nothing) {
            self.search(subject, actions, around, pool, &mut candidates);
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }

    /// Adds the globs that may match names below a directory.
    fn search(
        &self,
        subject: &ComparedPath<'_>,
        actions: u16,
        around: &NamedDirectories<'_>,
        pool: &Pool,
        candidates: &mut Vec<u32>,
    ) {
        candidates.extend(unfile(&self.wild.of(&self.filed), actions));
        if subject.floating_counts || matches!(subject.following, Following::Shell(_)) {
            candidates.extend(unfile(&self.floating.of(&self.filed), actions));
        } else if let (true, Some(last)) = (subject.changes, subject.components.last()) {
            self.keyed(hash(INNER, &fold(last)), actions, candidates);
        }
        for anchor in [Anchor::Absolute, Anchor::Home, Anchor::Workspace] {
            for prefix in around.prefixes(anchor) {
                let length = prefix.len().min(subject.components.len());
                let agrees = prefix.iter().zip(subject.components).all(|(prefix, component)| match prefix {
                    PathPrefix::AnyName => true,
                    PathPrefix::Name(name) => name == component,
                });
                if agrees {
                    let inside = subject.components.get(length..).unwrap_or_default();
                    candidates.extend(unfile(&self.range(anchor, inside, pool), actions));
                }
            }
        }
    }

    /// The filed anchored globs whose literal prefix is below `directory`.
    fn range(&self, anchor: Anchor, directory: &[&[u8]], pool: &Pool) -> Vec<u32> {
        let mut fixed = String::new();
        for component in directory {
            fixed.push_str(&String::from_utf8_lossy(component));
            fixed.push('/');
        }
        let key = |below: &AnchoredGlob| (below.anchor, pool.get(below.fixed));
        let start = self.below.partition_point(|below| key(below) < (anchor, fixed.as_str()));
        (start..self.below.len())
            .map_while(|number| self.below.get(number))
            .take_while(|below| below.anchor == anchor && pool.get(below.fixed).starts_with(&fixed))
            .map(|below| below.filed)
            .collect()
    }

    fn hit(
        &self,
        number: u32,
        subject: &ComparedPath<'_>,
        around: &NamedDirectories<'_>,
        pool: &Pool,
    ) -> Option<GlobHit> {
        let glob = self.globs.get(number as usize)?;
        let mut hit = GlobHit {
            list: self.owners.get(number as usize)?,
            negated: glob.negated,
            touches: Match::No,
            covers_own: false,
            covers_any: false,
        };
        let segments = glob.segments.of(&self.segments);
        // `.SSH` is `.ssh` on some file systems. Protected names with capitals, such as `BUILD`, are too common without.
        let folded: Vec<Cow<'_, [u8]>> = subject.components.iter().map(|component| fold(component)).collect();
        let folded: Vec<&[u8]> = folded.iter().map(AsRef::as_ref).collect();
        for (index, prefix) in around.prefixes(glob.anchor).iter().enumerate() {
            let relation = PathPattern { prefix, segments: &segments, pool }.relate(subject);
            hit.touches = hit.touches.max(relation.touches);
            if hit.touches == Match::No && folded.as_slice() != subject.components {
                let names: Vec<Option<Cow<'_, [u8]>>> = prefix.iter().map(PathPrefix::folded).collect();
                let prefix: Vec<PathPrefix<'_>> =
                    names.iter().map(|name| name.as_deref().map_or(PathPrefix::AnyName, PathPrefix::Name)).collect();
                let in_lower_case = PathPattern { prefix: &prefix, segments: &segments, pool };
                let relation = in_lower_case.relate(&ComparedPath { components: &folded, ..*subject });
                hit.touches = relation.touches.min(Match::Maybe);
            }
            hit.covers_any |= relation.covers;
            hit.covers_own |= relation.covers && (index == 0 && around.first_is_own || glob.anchor != Anchor::Home);
        }
        (hit.touches != Match::No || hit.covers_any).then_some(hit)
    }
}

impl GlobHits {
    fn each(&self) -> impl Iterator<Item = &[GlobHit]> {
        std::iter::once(self.named.as_slice()).chain(self.resolved.as_deref())
    }

    /// The lists of all hits; a list may occur several times.
    pub(crate) fn lists(&self) -> impl Iterator<Item = u32> {
        self.each().flatten().map(|hit| hit.list)
    }

    /// For restricting rules: one of the two paths is enough. Later globs win; an exclusion must cover the path completely.
    pub(crate) fn touched(&self, list: u32) -> Match {
        if self.unknown {
            return Match::Maybe;
        }
        self.each()
            .map(|hits| {
                hits.iter().filter(|hit| hit.list == list).fold(Match::No, |fit, hit| match hit.negated {
                    false => fit.max(hit.touches),
                    true if hit.covers_any => Match::No,
                    true => fit,
                })
            })
            .max()
            .unwrap_or(Match::No)
    }

    /// For permitting rules: both paths must be covered completely. Later globs win; an exclusion that touches the path is
    /// enough.
    pub(crate) fn covered(&self, list: u32) -> bool {
        !self.unknown
            && self.each().all(|hits| {
                hits.iter().filter(|hit| hit.list == list).fold(false, |covered, hit| match hit.negated {
                    false => covered || hit.covers_own,
                    true => covered && hit.touches == Match::No,
                })
            })
    }
}

impl<'a> NamedDirectories<'a> {
    pub(crate) fn new(home: Option<&'a Path>, workspace: Option<&'a Path>) -> Self {
        let names =
            |path: &'a Path| -> Vec<PathPrefix<'a>> { components(path).into_iter().map(PathPrefix::Name).collect() };
        Self {
            homes: home
                .map(names)
                .into_iter()
                .chain([
                    vec![PathPrefix::Name(b"home"), PathPrefix::AnyName],
                    vec![PathPrefix::Name(b"Users"), PathPrefix::AnyName],
                    vec![PathPrefix::Name(b"root")],
                ])
                .collect(),
            workspace: workspace.map(names).into_iter().collect(),
            root: [Vec::new()],
            first_is_own: home.is_some(),
        }
    }

    fn prefixes(&self, anchor: Anchor) -> &[Vec<PathPrefix<'a>>] {
        match anchor {
            Anchor::Absolute => &self.root,
            Anchor::Home => &self.homes,
            Anchor::Workspace => &self.workspace,
        }
    }
}

/// The keys that a glob can be filed under.
fn keys(segments: &[Segment], pool: &Pool) -> Vec<u64> {
    let mut keys = Vec::new();
    for segment in segments {
        match segment {
            Segment::Many => {}
            Segment::Literal(text) => keys.push(hash(LITERAL, &fold(pool.get(*text).as_bytes()))),
            Segment::Pattern(text) => {
                let pattern = pool.get(*text);
                if let Some(front) = fold(literal_prefix(pattern).as_bytes()).get(..PIECE) {
                    keys.push(hash(FRONT, front));
                }
                if let Some(back) = back(&fold(name::literal_back(pattern).as_bytes())) {
                    keys.push(hash(BACK, back));
                }
            }
        }
    }
    keys
}

fn back(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(bytes.len().checked_sub(PIECE)?..)
}

/// The names of an absolute path.
pub(crate) fn components(path: &Path) -> Vec<&[u8]> {
    let mut names = Vec::with_capacity(12);
    names.extend(
        path.as_os_str()
            .as_encoded_bytes()
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty() && *name != b"."),
    );
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn component() -> impl Strategy<Value = String> {
        prop_oneof![Just("**".to_owned()), "(home|root|me|w|etc|[ab*?]{1,3}|a[*]bcd|[*]abc|abc[*])"]
    }

    fn glob() -> impl Strategy<Value = String> {
        let anchor = prop_oneof![Just("/"), Just("~/"), Just("./"), Just("**/")];
        (anchor, prop::collection::vec(component(), 0..4))
            .prop_map(|(anchor, names)| format!("{anchor}{}", names.join("/")))
    }

    fn path() -> impl Strategy<Value = String> {
        prop::collection::vec("(home|root|me|w|etc|[ab]{1,4}|abcd|xabc)", 0..5)
            .prop_map(|names| format!("/{}", names.join("/")))
    }

    #[test]
    fn globs_of_rules_about_other_actions_are_no_candidates() {
        let (mut lists, mut pool) = (PathLists::default(), Pool::default());
        // filed under a name, loose, with a wildcard after a literal prefix, and below a directory
        for list in [0, 1] {
            for glob in ["**/abc", "**/*[ab]", "/w/*/x", "/w/y/z", "**/a/**/b"] {
                lists.add(list, glob, &mut pool).unwrap();
            }
        }
        let (read, write) = (action_bit(Action::Read), action_bit(Action::Write));
        lists.index(&[read, write | action_bit(Action::Delete)], &mut pool);
        let around = NamedDirectories::new(None, None);
        for path in ["/w/abc", "/w"] {
            let components = components(Path::new(path));
            let following = Following::Anything;
            let subject =
                ComparedPath { components: &components, following, tree: true, floating_counts: true, changes: true };
            let of = |actions| lists.candidates(&subject, actions, &around, &pool);
            let (of_read, of_write) = (of(read), of(write));
            assert!(of_read.len() > 2 && of_read.iter().all(|number| lists.owner(*number) == Some(0)), "{of_read:?}");
            assert!(of_write.iter().all(|number| lists.owner(*number) == Some(1)), "{of_write:?}");
            assert!(of(action_bit(Action::Opaque)).is_empty());
            assert_eq!(of(EVERY_ACTION), [of_read, of_write].concat());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The index must not lose anything: a glob that touches a subject is among its candidates.
        #[test]
        fn no_glob_is_missed(
            globs in prop::collection::vec(glob(), 1..8),
            path in path(),
            shell in prop::option::of("([ab*]{1,3}|abc[*]|[.]e[*])(/[ab*]{1,2})?"),
            anything: bool, tree: bool, floating_counts: bool, changes: bool, only_changes: bool,
        ) {
            let (mut lists, mut pool) = (PathLists::default(), Pool::default());
            for glob in &globs {
                let _ = lists.add(0, glob, &mut pool);
            }
            lists.index(&[if only_changes { CHANGES } else { EVERY_ACTION }], &mut pool);
            let around = NamedDirectories::new(Some(Path::new("/home/me")), Some(Path::new("/w")));
            let components = components(Path::new(&path));
            let names = shell.as_deref().and_then(ShellName::parse);
            let following = match &names {
                Some(names) => Following::Shell(names),
                None if anything => Following::Anything,
                None => Following::Nothing,
            };
            let subject = ComparedPath { components: &components, following, tree, floating_counts, changes };
            let candidates = lists.candidates(&subject, action_bit(Action::Write), &around, &pool);
            for number in 0..lists.len() as u32 {
                if lists.hit(number, &subject, &around, &pool).is_some() {
                    prop_assert!(candidates.contains(&number), "{:?} {path} {shell:?}", globs);
                }
            }
        }
    }
}
