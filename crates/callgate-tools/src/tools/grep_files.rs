//! `grep_files`: the files that contain a pattern.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use serde::Deserialize;
use serde_json::json;

use crate::files::{self, EntryKind};
use crate::result::{ErrorKind, ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

/// A file with a NUL byte among its first bytes is not text.
const HEAD: usize = 1_024;
/// The longest line that is searched.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

pub(super) fn spec() -> ToolSpec {
    let properties = json!({
        "pattern": {"type": "string", "minLength": 1, "description": "A regular expression, without look-around and backreferences"},
        "path": {"type": "string", "description": "The directory or file to search; the workspace unless said"},
        "include": {"type": "string", "description": "Search only files whose path fits this glob, such as *.rs"},
        "limit": {"type": "integer", "minimum": 1, "description": "How many files to return; 100 unless said"},
    });
    ToolSpec::new(
        "grep_files",
        "List the files that contain a pattern; hidden and binary files are left out",
        object(properties, &["pattern"]),
    )
    .claims(false, Idempotency::Safe)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    include: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { pattern, path, include, limit } = run.arguments()?;
    let (pattern, limit) = (pattern.trim(), limit.unwrap_or(100));
    let include = include.filter(|include| !include.trim().is_empty());
    if pattern.is_empty() {
        return Err(ToolError::validation("pattern must not be empty"));
    }
    let matcher = Pattern::new(pattern)?;
    let filter = include.as_deref().map(glob).transpose()?;
    let root = run.path(path.as_deref().unwrap_or("."))?;
    let (mut found, skipped) = match search(&root, &matcher, filter.as_ref()) {
        Err(missing) if missing.kind == ErrorKind::NotFound => Default::default(),
        searched => searched?,
    };
    found.sort_unstable();
    let truncated = found.len() >= limit;
    found.truncate(limit);
    let names: Vec<String> = found.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    let text = if names.is_empty() { "No matches found.\n".to_owned() } else { format!("{}\n", names.join("\n")) };
    let data = json!({"files": names, "pattern": pattern, "root": root, "include": include, "limit": limit});
    let mut result = ToolResult::text(text).truncated(truncated).data(data);
    if skipped > 0 {
        result.stderr = format!("skipped {skipped} files with lines of more than {LONGEST_LINE} bytes");
    }
    Ok(result)
}

/// `*` also stands for `/`, as in the shells' `fnmatch`.
fn glob(text: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(text).literal_separator(false).build();
    Ok(glob.map_err(|error| ToolError::validation(format!("invalid include: {error}")))?.compile_matcher())
}

/// A pattern and whether it may match across lines.
struct Pattern {
    matcher: RegexMatcher,
    across_lines: bool,
}

impl Pattern {
    fn new(text: &str) -> Result<Self, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true);
        if let Ok(matcher) = builder.clone().line_terminator(Some(b'\n')).build(text) {
            return Ok(Pattern { matcher, across_lines: false });
        }
        match builder.build(text) {
            Ok(matcher) => Ok(Pattern { matcher, across_lines: true }),
            Err(error) => Err(ToolError::validation(format!("invalid pattern regex: {error}"))),
        }
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_number(false)
            .bom_sniffing(false)
            .binary_detection(BinaryDetection::none())
            .heap_limit(Some(LONGEST_LINE))
            .multi_line(self.across_lines)
            .build()
    }
}

/// Notes the first match.
struct First(bool);

impl Sink for First {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> io::Result<bool> {
        self.0 = true;
        Ok(false)
    }
}

/// A directory whose turn has not come.
struct Waiting {
    above: Arc<OwnedFd>,
    name: Option<OsString>,
    path: PathBuf,
}

/// What the threads share: directories that wait, and how many are being looked at.
#[derive(Default)]
struct Queue {
    state: Mutex<(Vec<Waiting>, usize)>,
    changed: Condvar,
}

impl Queue {
    fn push(&self, directories: Vec<Waiting>) {
        if !directories.is_empty() {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).0.extend(directories);
            self.changed.notify_all();
        }
    }

    /// The next directory; `None` if none is left and nobody can find another one.
    fn next(&self) -> Option<Waiting> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(next) = state.0.pop() {
                state.1 = state.1.saturating_add(1);
                return Some(next);
            }
            if state.1 == 0 {
                self.changed.notify_all();
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = state.1.saturating_sub(1);
        if state.1 == 0 {
            self.changed.notify_all();
        }
    }
}

/// The files that match, and how many could not be searched.
fn search(root: &Path, pattern: &Pattern, filter: Option<&GlobMatcher>) -> Result<(Vec<PathBuf>, usize), ToolError> {
    let opened = match files::directory(root) {
        Ok(opened) => opened,
        Err(rustix::io::Errno::NOTDIR) => return search_one(root, pattern, filter),
        Err(error) => return Err(files::failed("open", root, error)),
    };
    let queue = Queue::default();
    queue.push(vec![Waiting { above: Arc::new(opened), name: None, path: PathBuf::new() }]);
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let found = Mutex::new((Vec::new(), 0_usize));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut searcher = pattern.searcher();
                let (mut matches, mut skipped) = (Vec::new(), 0_usize);
                while let Some(directory) = queue.next() {
                    look_into(directory, &queue, pattern, filter, &mut searcher, &mut matches, &mut skipped);
                    queue.done();
                }
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.0.extend(matches.into_iter().map(|path: PathBuf| root.join(path)));
                found.1 = found.1.saturating_add(skipped);
            });
        }
    });
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn look_into(
    waiting: Waiting,
    queue: &Queue,
    pattern: &Pattern,
    filter: Option<&GlobMatcher>,
    searcher: &mut Searcher,
    matches: &mut Vec<PathBuf>,
    skipped: &mut usize,
) {
    let directory = match waiting.name {
        None => waiting.above,
        Some(name) => match files::inner(&waiting.above, &name) {
            Ok(inner) => Arc::new(inner),
            Err(_) => return,
        },
    };
    let (mut inner, mut names) = (Vec::new(), Vec::new());
    for entry in files::entries(&*directory).unwrap_or_default() {
        match entry.kind {
            _ if entry.is_hidden() => {}
            EntryKind::Directory => inner.push(Waiting {
                above: Arc::clone(&directory),
                path: waiting.path.join(&entry.name),
                name: Some(entry.name),
            }),
            EntryKind::File => names.push(entry.name),
            EntryKind::Symlink | EntryKind::Other => {}
        }
    }
    // others can begin with these
    queue.push(inner);
    for name in names {
        let path = waiting.path.join(&name);
        if filter.is_some_and(|filter| !filter.is_match(&path)) {
            continue;
        }
        // what cannot be read is left out, as by every other search
        let Ok(file) = files::open_regular(&directory, &name, &path) else { continue };
        match contains(&file, pattern, searcher) {
            Ok(true) => matches.push(path),
            Ok(false) => {}
            Err(_) => *skipped = skipped.saturating_add(1),
        }
    }
}

/// Searches a single file.
fn search_one(
    path: &Path,
    pattern: &Pattern,
    filter: Option<&GlobMatcher>,
) -> Result<(Vec<PathBuf>, usize), ToolError> {
    let name = path.file_name().map(Path::new);
    if name.is_some_and(|name| filter.is_some_and(|filter| !filter.is_match(name))) {
        return Ok(Default::default());
    }
    let file = files::regular(path)?;
    Ok(match contains(&file, pattern, &mut pattern.searcher()) {
        Ok(true) => (vec![path.to_owned()], 0),
        Ok(false) => (Vec::new(), 0),
        Err(_) => (Vec::new(), 1),
    })
}

/// Whether a text file contains the pattern.
fn contains(file: &std::fs::File, pattern: &Pattern, searcher: &mut Searcher) -> io::Result<bool> {
    let mut head = [0_u8; HEAD];
    let length = file.read_at(&mut head, 0)?;
    if head.get(..length).unwrap_or_default().contains(&0) {
        return Ok(false);
    }
    let mut first = First(false);
    searcher.search_file(&pattern.matcher, file, &mut first)?;
    Ok(first.0)
}
