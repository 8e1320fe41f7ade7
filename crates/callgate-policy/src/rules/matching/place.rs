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
use crate::rules::stored::{StoredList, flat_struct, stored_struct};
use callgate_model::glob::literal_prefix;
use callgate_model::place::{Contents, Place, Rest, Zone};

const LITERAL: u8 = 1;
const FRONT: u8 = 2;
const BACK: u8 = 3;
/// A name within a floating glob, not its last one.
const INNER: u8 = 4;
/// The length of the pieces of names that globs are filed under.
const PIECE: usize = 3;

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
        /// Numbers of globs, which the following are ranges of.
        numbers: StoredList<u32>,
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
        glob: u32,
    }
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
    /// Adds a glob without braces to the list with this number.
    pub(crate) fn add(&mut self, list: u32, pattern: &str, pool: &mut Pool) -> Result<(), GlobError> {
        let glob = glob::compile(pattern, pool, &mut self.segments)?;
        self.globs.append([glob]);
        self.owners.append([list]);
        Ok(())
    }

    /// How many globs there are.
    pub(crate) fn len(&self) -> usize {
        self.globs.len()
    }

    /// Indexes all globs. Call it once, after the last glob was added.
    pub(crate) fn index(&mut self, pool: &mut Pool) {
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
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let segments = glob.segments.of(&self.segments);
            match keys.iter().min_by_key(|key| counts.get(key)) {
                Some(key) => entries.push((*key, number)),
                None => loose.push(number),
            }
            let last = segments.len().saturating_sub(1);
            if segments.iter().take(last).any(|segment| *segment == Segment::Many) {
                floating.push(number);
                for segment in segments.iter().take(last) {
                    if let Segment::Literal(text) = segment {
                        entries.push((hash(INNER, &fold(pool.get(*text).as_bytes())), number));
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
                wild.push(number);
            }
            below.push((glob.anchor, fixed.join("/"), number));
        }
        below.sort();
        self.below.append(below.into_iter().map(|(anchor, fixed, glob)| AnchoredGlob {
            anchor,
            fixed: pool.add(&fixed),
            glob,
        }));
        self.loose = self.numbers.append(loose);
        self.wild = self.numbers.append(wild);
        self.floating = self.numbers.append(floating);
        self.named = Table::new(entries);
    }

    /// The globs that match a place.
    pub(crate) fn hits(
        &self,
        place: Option<&Place>,
        changes: bool,
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
        let changes = changes && place.contents != Contents::Given;
        let look = |path: &Path| {
            let components = components(path);
            let tree = place.tree || place.contents == Contents::Any;
            let subject = ComparedPath { components: &components, following, tree, floating_counts, changes };
            self.look_up(&subject, around, pool)
        };
        let named = look(&place.named);
        let resolved = (place.named != place.resolved).then(|| look(&place.resolved));
        GlobHits { named, resolved, unknown: false }
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
        let mut candidates = self.candidates(&exact, around, pool);
        candidates.retain(|number| self.hit(*number, &below, around, pool).is_some());
        candidates
    }

    /// The globs that match an exact path, if those that its directory brings along are known.
    pub(crate) fn hits_in(
        &self,
        inherited: &[u32],
        path: &Path,
        around: &NamedDirectories<'_>,
        pool: &Pool,
    ) -> Option<GlobHits> {
        let mut candidates = Vec::new();
        if let Some(name) = path.file_name() {
            self.named_like(&fold(name.as_encoded_bytes()), &mut candidates);
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
    fn named_like(&self, name: &[u8], candidates: &mut Vec<u32>) {
        candidates.extend_from_slice(&self.named.get(hash(LITERAL, name)));
        if let (Some(front), Some(back)) = (name.get(..PIECE), back(name)) {
            candidates.extend_from_slice(&self.named.get(hash(FRONT, front)));
            candidates.extend_from_slice(&self.named.get(hash(BACK, back)));
        }
    }

    fn look_up(&self, subject: &ComparedPath<'_>, around: &NamedDirectories<'_>, pool: &Pool) -> Vec<GlobHit> {
        let candidates = self.candidates(subject, around, pool);
        candidates.iter().filter_map(|number| self.hit(*number, subject, around, pool)).collect()
    }

    /// The numbers of all globs that may match a path, in order.
    fn candidates(&self, subject: &ComparedPath<'_>, around: &NamedDirectories<'_>, pool: &Pool) -> Vec<u32> {
        let mut candidates = self.loose.of(&self.numbers).into_owned();
        if !self.named.is_empty() {
            for component in subject.components {
                self.named_like(&fold(component), &mut candidates);
            }
        }
        if subject.tree || !matches!(subject.following, Following::Nothing) {
            self.search(subject, around, pool, &mut candidates);
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }

    /// Adds the globs that may match names below a directory.
    fn search(
        &self,
        subject: &ComparedPath<'_>,
        around: &NamedDirectories<'_>,
        pool: &Pool,
        candidates: &mut Vec<u32>,
    ) {
        candidates.extend_from_slice(&self.wild.of(&self.numbers));
        if subject.floating_counts || matches!(subject.following, Following::Shell(_)) {
            candidates.extend_from_slice(&self.floating.of(&self.numbers));
        } else if let (true, Some(last)) = (subject.changes, subject.components.last()) {
            candidates.extend_from_slice(&self.named.get(hash(INNER, &fold(last))));
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
                    self.range(anchor, inside, pool, candidates);
                }
            }
        }
    }

    /// Adds the anchored globs whose literal prefix is below `directory`.
    fn range(&self, anchor: Anchor, directory: &[&[u8]], pool: &Pool, candidates: &mut Vec<u32>) {
        let mut fixed = String::new();
        for component in directory {
            fixed.push_str(&String::from_utf8_lossy(component));
            fixed.push('/');
        }
        let key = |below: &AnchoredGlob| (below.anchor, pool.get(below.fixed));
        let start = self.below.partition_point(|below| key(below) < (anchor, fixed.as_str()));
        candidates.extend(
            (start..self.below.len())
                .map_while(|number| self.below.get(number))
                .take_while(|below| below.anchor == anchor && pool.get(below.fixed).starts_with(&fixed))
                .map(|below| below.glob),
        );
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The index must not lose anything: a glob that touches a subject is among its candidates.
        #[test]
        fn no_glob_is_missed(
            globs in prop::collection::vec(glob(), 1..8),
            path in path(),
            shell in prop::option::of("([ab*]{1,3}|abc[*]|[.]e[*])(/[ab*]{1,2})?"),
            anything: bool, tree: bool, floating_counts: bool, changes: bool,
        ) {
            let (mut lists, mut pool) = (PathLists::default(), Pool::default());
            for glob in &globs {
                let _ = lists.add(0, glob, &mut pool);
            }
            lists.index(&mut pool);
            let around = NamedDirectories::new(Some(Path::new("/home/me")), Some(Path::new("/w")));
            let components = components(Path::new(&path));
            let names = shell.as_deref().and_then(ShellName::parse);
            let following = match &names {
                Some(names) => Following::Shell(names),
                None if anything => Following::Anything,
                None => Following::Nothing,
            };
            let subject = ComparedPath { components: &components, following, tree, floating_counts, changes };
            let candidates = lists.candidates(&subject, &around, &pool);
            for number in 0..lists.len() as u32 {
                if lists.hit(number, &subject, &around, &pool).is_some() {
                    prop_assert!(candidates.contains(&number), "{:?} {path} {shell:?}", globs);
                }
            }
        }
    }
}
