//! Makes git safe in untrusted repositories.
//!
//! A repository's own configuration names programs that git runs even for commands that only read: a file system monitor,
//! hooks, a pager, external diffs, text conversions, content filters. [`harden`] returns a git command with these switched
//! off, and [`examine`] searches the repository's configuration for what cannot be switched off from outside. A hardened
//! command that only reads is allowed without a question only if `examine` finds nothing.

pub(crate) mod index;
mod settings;

use std::path::{Path, PathBuf};

use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::effect::Target;
use callgate_model::quote::shell_words;

/// Reads a file of the repository of at most so many bytes; `Ok(None)` if it does not exist. A link that leads nowhere is an error,
/// and so is a directory ([`std::io::ErrorKind::IsADirectory`]).
pub type ReadFile<'a> = &'a dyn Fn(&Path, usize) -> std::io::Result<Option<Vec<u8>>>;

/// Settings for the command line, which override the repository's own.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "diff.external=",
    "diff.submodule=short",
    "interactive.diffFilter=",
    "log.showSignature=false",
    "safe.bareRepository=explicit",
];

/// Subcommands that take `--no-ext-diff` and `--no-textconv`.
const SHOWS_DIFFERENCES: &str = "diff log show whatchanged diff-tree diff-index diff-files format-patch blame annotate";

/// Subcommands that also fetch in submodules, even in those that the index does not name, unless told not to.
const FETCHES: &[&str] = &["fetch", "pull"];

/// Returns a git command with everything switched off that the repository could make it run.
///
/// `words` starts with `git`; `subcommand` is the place of the subcommand in it.
pub fn harden<S: AsRef<str>>(words: &[S], subcommand: usize) -> Vec<String> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let Some((before, [name, arguments @ ..])) = words.split_at_checked(subcommand) else {
        return words.into_iter().map(str::to_owned).collect();
    };
    let mut hardened = [before, &["--no-pager"]].concat();
    hardened.extend(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    hardened.push(name);
    if settings::lists(SHOWS_DIFFERENCES, name) {
        hardened.extend(["--no-ext-diff", "--no-textconv"]);
    }
    if FETCHES.contains(name) {
        hardened.push("--no-recurse-submodules");
    }
    hardened.extend(arguments);
    hardened.into_iter().map(str::to_owned).collect()
}

/// The place of the subcommand among the words of a git command; `None` if these are not the words of one.
pub fn subcommand<S: AsRef<str>>(words: &[S]) -> Option<usize> {
    let words: Vec<Option<&str>> = words.iter().map(|word| Some(word.as_ref())).collect();
    match invocation(&words) {
        Invocation::Git(start) => start.subcommand,
        Invocation::Other | Invocation::Unknown => None,
    }
}

/// What the words of a command say about git.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation<'a> {
    /// They run git.
    Git(Start<'a>),
    /// They run another program.
    Other,
    /// They run git, but which repository it uses is not certain.
    Unknown,
}

/// Where git starts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Start<'a> {
    /// The directories that it changes to, one after the other.
    pub directories: Vec<&'a str>,
    /// The place of the subcommand among the words, if there is one.
    pub subcommand: Option<usize>,
}

/// Options of git itself that shape how it runs, but not where.
const FLAGS: &str = "-p --paginate -P --no-pager --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice \
    --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs";

/// Options of git itself with a value that says nothing about where it runs. All but the first take it behind `=` as well.
const OPTIONS: &str = "-c --config-env --namespace --attr-source --super-prefix";

/// Options of git itself that stand for a subcommand, or print something and end.
const ENDS: &str = "-h --help -v --version --exec-path --html-path --man-path --info-path";

/// Reads the words of a command up to git's subcommand. `None` stands for a word that is not certain.
pub(crate) fn invocation<'a>(words: &[Option<&'a str>]) -> Invocation<'a> {
    let is_git = |word: &Option<&str>| word.is_some_and(|word| word.rsplit('/').next() == Some("git"));
    let Some(place) = words.iter().position(is_git) else { return Invocation::Other };
    let (in_front, behind) = words.split_at(place);
    match in_front.first() {
        None => {}
        Some(Some("command" | "builtin" | "exec")) if runs_the_rest(in_front) => {}
        Some(Some("command" | "builtin" | "exec") | None) => return Invocation::Unknown,
        Some(Some(_)) => return Invocation::Other,
    }
    let mut start = Start::default();
    let mut behind = (place..).zip(behind.iter().copied()).skip(1);
    while let Some((place, word)) = behind.next() {
        let Some(word) = word else { return Invocation::Unknown };
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        if word == "-C" {
            let Some((_, Some(directory))) = behind.next() else { return Invocation::Unknown };
            start.directories.push(directory);
        } else if settings::lists(OPTIONS, word) {
            let Some((_, Some(_))) = behind.next() else { return Invocation::Unknown };
        } else if settings::lists(ENDS, word) || name == "--list-cmds" {
            return Invocation::Git(start);
        } else if !word.starts_with('-') {
            start.subcommand = Some(place);
            return Invocation::Git(start);
        } else if !(settings::lists(FLAGS, word) || name.starts_with("--") && settings::lists(OPTIONS, name)) {
            return Invocation::Unknown;
        }
    }
    Invocation::Git(start)
}

/// Whether words of a shell that stand in front of a command do nothing but run it.
fn runs_the_rest(words: &[Option<&str>]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word {
            Some("command" | "builtin" | "exec" | "-p" | "-c" | "-l" | "-cl" | "-lc" | "--") => {}
            Some("-a") if matches!(words.next(), Some(Some(_))) => {}
            _ => return false,
        }
    }
    true
}

/// The hardened form of a shell call that is nothing but one git command, as text for a shell; `None` for every other call.
pub fn rewritten(description: &Description) -> Option<String> {
    let [part] = description.parts.as_slice() else { return None };
    let words = part.known_words().filter(|_| part.is_bare())?;
    Some(shell_words(harden(&words, subcommand(&words)?)))
}

/// What a git command does to the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitReach {
    /// It only reads.
    Looks,
    /// It changes something or connects: editors, credential helpers and transports matter as well.
    More,
}

/// Whether the caller can run git with the repository's own settings switched off, as [`harden`] does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GitHardening {
    /// It runs the command as the call says, like the shell of an agent.
    #[default]
    Never,
    /// It runs the hardened command if the assessment [says so](crate::assess::Assessment::rewritten), like an agent that accepts
    /// a changed input.
    WhenNeeded,
    /// It always runs [the plan's hardened words](crate::permit::Plan::hardened_commands).
    Always,
}

/// How a git command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitRun {
    /// As the call says.
    AsWritten,
    /// With the repository's own settings switched off.
    Hardened,
}

/// The program tables' name for git reading the repository's configuration.
pub(crate) const CONFIGURATION: &str = "git-config";

/// Whether this part runs git in a repository.
pub(crate) fn looks(part: &Part) -> bool {
    let is_git = |placed: &PlacedEffect| match &placed.effect.target {
        Target::Program(program) => program.name == CONFIGURATION,
        _ => false,
    };
    part.effects.iter().any(is_git)
}

/// What to examine a repository for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitExamination<'a> {
    /// What the command does.
    pub reach: GitReach,
    /// How it will run.
    pub run: GitRun,
    /// The subcommand, for which an alias may stand in.
    pub subcommand: Option<&'a str>,
}

/// A repository under examination.
struct Repository<'a> {
    /// Its work tree.
    root: &'a Path,
    /// Its own git directory.
    folder: &'a Path,
}

/// Hooks that run whatever command changes the index, a reference or the work tree.
const HOOKS_OF_CHANGES: &[&str] = &[
    "post-index-change",
    "reference-transaction",
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-merge-commit",
    "post-checkout",
    "post-merge",
    "pre-auto-gc",
    "pre-rebase",
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "post-rewrite",
];

/// A longer git configuration is not read, and so not trusted.
const LONGEST_CONFIGURATION: usize = 256 * 1024;

/// A longer index (about 300,000 files) is not read, so whether it has submodules is unknown.
const LONGEST_INDEX: usize = 32 * 1024 * 1024;

/// The maximum nesting of submodules.
const DEEPEST: usize = 8;

/// Finds what a repository, or a submodule that git enters, could still make git run. Returns nothing if it is safe.
///
/// git enters submodules by running git there, with the settings of [`harden`] but not with its options.
///
/// `directory` is where git starts searching for the repository. A configuration that cannot be read is a finding.
pub fn examine(directory: &Path, examination: GitExamination<'_>, read: ReadFile<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    for root in directory.ancestors() {
        match git_directory(root, read) {
            // Hardened, git refuses to take the directory itself for a repository: nothing is gained by running it.
            Ok(None) if is_bare_repository(root, read) => {
                findings.push(format!("{} is itself a repository, without a `.git` directory", root.display()));
                break;
            }
            Ok(None) => {}
            Ok(Some(folder)) => {
                let repository = Repository { root, folder: &folder };
                examine_repository(&repository, examination, DEEPEST, read, &mut findings);
                // git passes by what is no repository for it, and goes up.
                if is_repository(&folder, read) {
                    break;
                }
            }
            Err(finding) => {
                findings.push(finding);
                break;
            }
        }
    }
    findings
}

/// The directories from this one upwards whose `.git` git may use, the lowest first. The last is the one that it uses for certain,
/// if there is such a one.
pub(crate) fn roots<'a>(directory: &'a Path, read: ReadFile<'_>) -> Vec<&'a Path> {
    let mut roots = Vec::new();
    for root in directory.ancestors() {
        if let Ok(Some(folder)) = git_directory(root, read) {
            roots.push(root);
            if is_repository(&folder, read) {
                break;
            }
        }
    }
    roots
}

/// The repository of a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkTree {
    pub root: PathBuf,
    /// Its own git directory, and the one that it shares with other work trees.
    pub folder: PathBuf,
    pub common: PathBuf,
}

/// Which repository git uses in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundRepository {
    /// None.
    Missing,
    /// This one, for certain.
    Certain(WorkTree),
    /// It is not certain which one.
    Unclear,
}

/// Finds the repository that git uses in a resolved directory.
pub(crate) fn find(directory: &Path, read: ReadFile<'_>) -> FoundRepository {
    for root in directory.ancestors() {
        match git_directory(root, read) {
            Ok(None) if is_bare_repository(root, read) => return FoundRepository::Unclear,
            Ok(None) => {}
            Ok(Some(folder)) if is_repository(&folder, read) => match common_directory(&folder, read) {
                Ok(common) => return FoundRepository::Certain(WorkTree { root: root.to_owned(), folder, common }),
                Err(_) => return FoundRepository::Unclear,
            },
            Ok(Some(_)) | Err(_) => return FoundRepository::Unclear,
        }
    }
    FoundRepository::Missing
}

/// The settings in a repository's own configuration, in lower case (`core.bare`, `branch.*.merge`), with their values; `None` if it
/// cannot be read.
pub(crate) fn settings_of(tree: &WorkTree, read: ReadFile<'_>) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    for file in [tree.common.join("config"), tree.folder.join("config.worktree")] {
        if let Some(text) = read(&file, LONGEST_CONFIGURATION).ok()? {
            found.extend(settings::named(std::str::from_utf8(&text).ok()?)?);
        }
    }
    Some(found)
}

/// Finds what the repository of a work tree could make git run, if git entered this directory as a submodule.
pub(crate) fn examine_nested(
    root: &Path,
    examination: GitExamination<'_>,
    read: ReadFile<'_>,
    findings: &mut Vec<String>,
) {
    match git_directory(root, read) {
        Ok(None) => {}
        Ok(Some(folder)) => {
            let repository = Repository { root, folder: &folder };
            examine_repository(&repository, examination, DEEPEST, read, findings);
        }
        Err(finding) => findings.push(finding),
    }
}

fn examine_repository(
    repository: &Repository<'_>,
    examination: GitExamination<'_>,
    deepest: usize,
    read: ReadFile<'_>,
    findings: &mut Vec<String>,
) {
    let folder = repository.folder;
    let common = match common_directory(folder, read) {
        Ok(common) => common,
        Err(finding) => return findings.push(finding),
    };
    for file in [common.join("config"), folder.join("config.worktree")] {
        examine_file(&file, repository, examination, read, findings);
    }
    // The first is the only one that runs for commands that read: status and diff refresh the index. A change without the hooks
    // that somebody set up for it is not what was asked for, so hardening does not help there.
    let hooks = match (examination.reach, examination.run) {
        (GitReach::Looks, GitRun::Hardened) => None,
        (GitReach::Looks, GitRun::AsWritten) => HOOKS_OF_CHANGES.get(..1),
        (GitReach::More, _) => Some(HOOKS_OF_CHANGES),
    };
    for hook in hooks.into_iter().flatten() {
        let hook = common.join("hooks").join(hook);
        if !matches!(read(&hook, LONGEST_CONFIGURATION), Ok(None)) {
            findings.push(format!("the hook {} exists", hook.display()));
        }
    }
    if !matches!(read(&common.join("objects/info/alternates"), LONGEST_CONFIGURATION), Ok(None)) {
        findings.push("the repository borrows objects from another one".to_owned());
    }
    let gitlinks = match read(&folder.join("index"), LONGEST_INDEX) {
        Ok(None) => Some(Vec::new()),
        Ok(Some(bytes)) => index::gitlinks(&bytes),
        Err(_) => None,
    };
    let Some(gitlinks) = gitlinks else {
        return findings.push(format!("{} cannot be read, so there may be submodules", folder.join("index").display()));
    };
    for path in gitlinks {
        let root = repository.root.join(path);
        match git_directory(&root, read) {
            Ok(None) => {}
            Ok(Some(_)) if deepest == 0 => findings.push("submodules are nested too deeply".to_owned()),
            Ok(Some(folder)) => {
                let nested = Repository { root: &root, folder: &folder };
                examine_repository(&nested, examination, deepest.saturating_sub(1), read, findings);
            }
            Err(finding) => findings.push(finding),
        }
    }
}

/// Whether git may take the directory itself for a repository: it has `HEAD`, and `objects` and `refs` here or elsewhere.
fn is_bare_repository(directory: &Path, read: ReadFile<'_>) -> bool {
    let exists = |name: &str| !matches!(read(&directory.join(name), LONGEST_CONFIGURATION), Ok(None));
    exists("HEAD") && (exists("commondir") || exists("objects") && exists("refs"))
}

/// Whether git certainly takes a git directory for one: `HEAD` is valid, and there are `objects` and `refs`.
fn is_repository(folder: &Path, read: ReadFile<'_>) -> bool {
    let is_head = |text: &[u8]| match text.strip_prefix(b"ref:") {
        Some(reference) => reference.trim_ascii_start().starts_with(b"refs/"),
        None => text.get(..40).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
    };
    // A directory that cannot be entered is none for git.
    let is_directory = |path: PathBuf| {
        let found = read(&path.join("."), LONGEST_CONFIGURATION);
        found.is_err_and(|error| error.kind() == std::io::ErrorKind::IsADirectory)
    };
    matches!(read(&folder.join("HEAD"), LONGEST_CONFIGURATION), Ok(Some(text)) if is_head(&text))
        && common_directory(folder, read)
            .is_ok_and(|common| is_directory(common.join("objects")) && is_directory(common.join("refs")))
}

/// The directory that a git directory shares with others: where the file `commondir` points to, or itself.
fn common_directory(folder: &Path, read: ReadFile<'_>) -> Result<PathBuf, String> {
    let file = folder.join("commondir");
    match read(&file, LONGEST_CONFIGURATION) {
        Ok(Some(text)) => match pointed(&text) {
            Some(target) => Ok(folder.join(target)),
            None => Err(format!("{} is not a plain path", file.display())),
        },
        Ok(None) => Ok(folder.to_owned()),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

/// The path in a file that holds nothing else. git takes off line ends, and nothing but those: a path that looks different from
/// what it is to git is refused.
fn pointed(text: &[u8]) -> Option<&str> {
    let path = std::str::from_utf8(text).ok()?.trim_end_matches(['\n', '\r']);
    let is_plain = !path.is_empty() && path.trim() == path && !path.contains(char::is_control);
    is_plain.then_some(path)
}

/// The git directory of a work tree: `.git`, or where the file `.git` points to.
fn git_directory(worktree: &Path, read: ReadFile<'_>) -> Result<Option<PathBuf>, String> {
    let dot_git = worktree.join(".git");
    if !matches!(read(&dot_git.join("HEAD"), LONGEST_CONFIGURATION), Ok(None)) {
        return Ok(Some(dot_git));
    }
    match read(&dot_git, LONGEST_CONFIGURATION) {
        Ok(Some(text)) => match text.strip_prefix(b"gitdir: ").and_then(pointed) {
            Some(target) => Ok(Some(worktree.join(target))),
            None => Err(format!("{} is not a valid `.git` file", dot_git.display())),
        },
        // A directory without HEAD is not a repository; git continues in the parent directory.
        Ok(None) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => Ok(None),
        Err(error) => Err(format!("{}: {error}", dot_git.display())),
    }
}

fn examine_file(
    file: &Path,
    repository: &Repository<'_>,
    examination: GitExamination<'_>,
    read: ReadFile<'_>,
    findings: &mut Vec<String>,
) {
    match read(file, LONGEST_CONFIGURATION) {
        Ok(None) => {}
        Ok(Some(text)) => match std::str::from_utf8(&text) {
            Ok(text) => match settings::findings(text, repository, examination) {
                Ok(found) => findings.extend(found.into_iter().map(|name| format!("{} sets {name}", file.display()))),
                Err(line) => findings.push(format!("{}:{line} is invalid", file.display())),
            },
            Err(_) => findings.push(format!("{} is not UTF-8", file.display())),
        },
        Err(error) => findings.push(format!("{}: {error}", file.display())),
    }
}

#[cfg(test)]
mod tests;
