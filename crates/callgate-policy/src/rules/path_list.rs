//! A list of path globs by itself, for those who hold paths at run time and not before.

use std::collections::HashSet;
use std::path::Path;

use callgate_model::effect::Action;
use callgate_model::glob::escape;

use super::compile::action_bit;
use super::matching::case::fold;
use super::matching::glob::{Segment, expand_braces};
use super::matching::place::{EVERY_ACTION, NamedDirectories, PathLists, components};
use super::matching::relate::{ComparedPath, Following};
use super::matching::{Match, Pool};

/// A list of globs that paths are compared with. Later entries win, and `!` takes names out again.
///
/// Upper and lower case are told apart only for what `!` takes out, because some file systems do not tell them apart.
///
/// ```
/// use std::path::Path;
/// use callgate_policy::PathList;
///
/// let list = PathList::new(["**/.vscode/*.json", "~/.ssh/**", "!~/.ssh/*.pub"], Some(Path::new("/home/me")));
/// assert!(list.matches(Path::new("/work/a/.vscode/tasks.json")));
/// assert!(list.matches(Path::new("/home/me/.SSH/id")) && !list.matches(Path::new("/home/me/.ssh/id.pub")));
/// assert!(list.holds(Path::new("/work/.vscode")) && !list.holds(Path::new("/work/a")));
/// ```
pub struct PathList {
    lists: PathLists,
    pool: Pool,
    around: NamedDirectories<'static>,
    /// The names, folded, of directories in globs that match at any depth.
    directories: HashSet<Vec<u8>>,
    /// The directories with everything below that the list takes out again.
    exempt: Option<Box<PathList>>,
}

impl PathList {
    /// Compiles globs. `~` is `home`; a glob that cannot be compiled is left out.
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>, home: Option<&Path>) -> Self {
        let bases = GlobBases::new(home, None);
        let absolute = |glob: String| bases.absolute(&glob).map(|parts| parts.concat());
        let expanded: Vec<String> =
            globs.into_iter().flat_map(|glob| expand_braces(glob).unwrap_or_default()).filter_map(absolute).collect();
        let is_exemption = |glob: &&String| glob.starts_with('!') && glob.ends_with("/**");
        let exempt: Vec<String> =
            expanded.iter().filter(is_exemption).filter_map(|glob| glob.strip_prefix('!')).map(str::to_owned).collect();
        let exempt = (!exempt.is_empty()).then(|| Box::new(Self::compile(&exempt, None)));
        Self::compile(&expanded, exempt)
    }

    fn compile(globs: &[String], exempt: Option<Box<PathList>>) -> Self {
        let (mut lists, mut pool, mut directories) = (PathLists::default(), Pool::default(), HashSet::new());
        for glob in globs {
            let Ok(segments) = lists.add(0, glob, &mut pool) else { continue };
            let floats = segments.first() == Some(&Segment::Many) && !glob.starts_with('!');
            if let Some((_, inner)) = segments.split_last().filter(|_| floats) {
                for segment in inner {
                    if let Segment::Literal(text) = segment {
                        directories.insert(fold(pool.get(*text).as_bytes()).into_owned());
                    }
                }
            }
        }
        lists.index(&[EVERY_ACTION], &mut pool);
        PathList { lists, pool, around: NamedDirectories::new(None, None), directories, exempt }
    }

    /// Whether the list means this absolute path.
    pub fn matches(&self, path: &Path) -> bool {
        self.compare(path, false)
    }

    /// Whether the list means this path, or names below it because of the name that the path itself has: a directory that is
    /// moved there brings them.
    pub fn holds(&self, path: &Path) -> bool {
        self.compare(path, true)
    }

    /// Whether a directory of this name, anywhere, holds names that the list means.
    pub fn is_component(&self, name: &[u8]) -> bool {
        self.directories.contains(fold(name).as_ref())
    }

    /// Whether the path lies in a tree that the list takes out again. A directory that is moved out of such a tree may bring
    /// names that the list means.
    pub fn is_exempt(&self, path: &Path) -> bool {
        self.exempt.as_ref().is_some_and(|exempt| exempt.matches(path))
    }

    fn compare(&self, path: &Path, tree: bool) -> bool {
        let components = components(path);
        let subject = ComparedPath {
            components: &components,
            following: Following::Nothing,
            tree,
            floating_counts: false,
            changes: tree,
        };
        let actions = action_bit(Action::Read);
        self.lists.hits_exactly(&subject, actions, &self.around, &self.pool).touched(0) != Match::No
    }
}

callgate_model::debug_fields!(PathList, directories);

/// The directories that globs start at, as globs.
pub(crate) struct GlobBases {
    home: Option<String>,
    workspace: Option<String>,
}

impl GlobBases {
    pub fn new(home: Option<&Path>, workspace: Option<&Path>) -> Self {
        let base = |path: Option<&Path>| Some(escape(path?.to_str()?.trim_end_matches('/')).into_owned());
        GlobBases { home: base(home), workspace: base(workspace) }
    }

    /// The parts of a glob without `~` and `./`: absolute, or at any depth. `None` if the directory that it starts at is unknown.
    pub fn absolute<'a>(&'a self, glob: &'a str) -> Option<[&'a str; 4]> {
        // What nearly all of them are.
        if glob.starts_with('/') || glob.starts_with("**/") {
            return Some([glob, "", "", ""]);
        }
        let (mark, body) = match glob.strip_prefix('!') {
            Some(body) => ("!", body),
            None => ("", glob),
        };
        let below =
            |base: &'a Option<String>, rest: &'a str| Some([mark, base.as_deref()?, "/", rest.trim_start_matches('/')]);
        match body.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => below(&self.home, rest),
            Some(_) => None,
            None if body.starts_with('/') || body == "**" || body.starts_with("**/") => Some([glob, "", "", ""]),
            None => below(&self.workspace, body.trim_start_matches("./")),
        }
    }
}
