//! Running git in a repository that nobody trusts.
//!
//! A repository's own configuration names programs that git runs even when it is only asked to look: a file system monitor,
//! hooks, a pager, external diffs, text conversions, content filters. [`harden`] gives the words of a git command with
//! those switched off, and [`examine`] reads the repository's configuration for what cannot be switched off from outside.
//! Only when `examine` finds nothing is a hardened look silent.

use std::path::{Path, PathBuf};

/// Reads a file of the repository: `Ok(None)` if it is not there.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<Option<Vec<u8>>>;

/// Settings given on the command line, which outrank the repository's own.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "diff.external=",
    "interactive.diffFilter=",
    "log.showSignature=false",
    "safe.bareRepository=explicit",
];

/// Subcommands that take `--no-ext-diff` and `--no-textconv`.
const SHOWS_DIFFERENCES: &[&str] =
    &["diff", "log", "show", "whatchanged", "diff-tree", "diff-index", "diff-files", "reflog", "format-patch"];

/// The words of a git command with everything switched off that the repository could make it run.
///
/// `words` starts with `git`; `subcommand` is the place of the subcommand in it.
pub fn harden(words: &[String], subcommand: usize) -> Vec<String> {
    let mut hardened =
        Vec::with_capacity(words.len().saturating_add(SETTINGS.len().saturating_mul(2)).saturating_add(3));
    for (place, word) in words.iter().enumerate() {
        if place == subcommand {
            hardened.push("--no-pager".to_owned());
            for setting in SETTINGS {
                hardened.push("-c".to_owned());
                hardened.push((*setting).to_owned());
            }
        }
        hardened.push(word.clone());
        if place == subcommand && SHOWS_DIFFERENCES.contains(&word.as_str()) {
            hardened.push("--no-ext-diff".to_owned());
            hardened.push("--no-textconv".to_owned());
        }
    }
    hardened
}

/// The place of the subcommand among the words of a git command; `None` if these are not the words of one.
pub fn subcommand(words: &[String]) -> Option<usize> {
    let mut place = 1_usize;
    if words.first()?.rsplit('/').next() != Some("git") {
        return None;
    }
    loop {
        match words.get(place)?.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" | "--config-env" => {
                place = place.checked_add(2)?;
            }
            option if option.starts_with('-') => place = place.checked_add(1)?,
            _ => return Some(place),
        }
    }
}

/// Finds what a repository could still make a hardened git run. Empty: nothing.
///
/// `directory` is where git starts to look for the repository. A configuration that cannot be read is a finding.
pub fn examine(directory: &Path, read: ReadFile<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    for ancestor in directory.ancestors() {
        match git_directory(ancestor, read) {
            Ok(None) => continue,
            Ok(Some(folder)) => {
                let common = match read(&folder.join("commondir")) {
                    Ok(Some(text)) => folder.join(String::from_utf8_lossy(&text).trim()),
                    Ok(None) => folder.clone(),
                    Err(error) => return vec![format!("{}: {error}", folder.join("commondir").display())],
                };
                for file in [common.join("config"), folder.join("config.worktree")] {
                    examine_file(&file, read, &mut findings);
                }
                if !matches!(read(&common.join("objects/info/alternates")), Ok(None)) {
                    findings.push("objects are borrowed from another repository".to_owned());
                }
                break;
            }
            Err(finding) => return vec![finding],
        }
    }
    findings
}

/// The git directory of a work tree: `.git`, or where the file `.git` points to.
fn git_directory(worktree: &Path, read: ReadFile<'_>) -> Result<Option<PathBuf>, String> {
    let dot_git = worktree.join(".git");
    if let Ok(Some(_)) = read(&dot_git.join("HEAD")) {
        return Ok(Some(dot_git));
    }
    match read(&dot_git) {
        Ok(Some(text)) => {
            let text = String::from_utf8_lossy(&text);
            match text.trim().strip_prefix("gitdir:") {
                Some(target) => Ok(Some(worktree.join(target.trim()))),
                None => Err(format!("{} is not understood", dot_git.display())),
            }
        }
        // A directory without HEAD is no repository; git goes on upwards, and so do we.
        Ok(None) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => Ok(None),
        Err(error) => Err(format!("{}: {error}", dot_git.display())),
    }
}

fn examine_file(file: &Path, read: ReadFile<'_>, findings: &mut Vec<String>) {
    match read(file) {
        Ok(None) => {}
        Ok(Some(text)) => match std::str::from_utf8(&text) {
            Ok(text) => match keys(text) {
                Ok(keys) => findings.extend(
                    keys.into_iter()
                        .filter(|key| !harmless(key))
                        .map(|key| format!("{} sets {}", file.display(), key.name())),
                ),
                Err(line) => findings.push(format!("{}:{line} is not understood", file.display())),
            },
            Err(_) => findings.push(format!("{} is not UTF-8", file.display())),
        },
        Err(error) => findings.push(format!("{}: {error}", file.display())),
    }
}

/// One setting: section and key in lower case, the subsection left out, since its name decides nothing.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    section: String,
    has_subsection: bool,
    key: String,
    value: String,
}

impl Key {
    fn name(&self) -> String {
        let middle = if self.has_subsection { ".*" } else { "" };
        format!("{}{middle}.{}", self.section, self.key)
    }
}

/// The settings of a configuration file; `Err` with the line that is not understood.
fn keys(text: &str) -> Result<Vec<Key>, usize> {
    let mut found = Vec::new();
    let mut section: Option<(String, bool)> = None;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let mistake = number.saturating_add(1);
        let mut rest = line.trim_start();
        if let Some(header) = rest.strip_prefix('[') {
            let (parsed, after) = section_header(header).ok_or(mistake)?;
            section = Some(parsed);
            rest = after.trim_start();
        }
        if rest.is_empty() || rest.starts_with('#') || rest.starts_with(';') {
            continue;
        }
        let (section, has_subsection) = section.clone().ok_or(mistake)?;
        let end =
            rest.find(|character: char| !character.is_ascii_alphanumeric() && character != '-').unwrap_or(rest.len());
        let (key, value) = rest.split_at_checked(end).ok_or(mistake)?;
        let value = value.trim_start();
        if key.is_empty() || !(value.is_empty() || value.starts_with(['=', '#', ';'])) {
            return Err(mistake);
        }
        let mut value = value.strip_prefix('=').unwrap_or_default().trim().to_owned();
        while value.ends_with('\\') {
            value.pop();
            let (_, continued) = lines.next().ok_or(mistake)?;
            value.push_str(continued.trim_end());
        }
        found.push(Key { section, has_subsection, key: key.to_ascii_lowercase(), value });
    }
    Ok(found)
}

/// `core]`, `remote "origin"]` or `remote.origin]`: the section, whether there is a subsection, and what follows.
fn section_header(header: &str) -> Option<((String, bool), &str)> {
    let end =
        header.find(|character: char| !character.is_ascii_alphanumeric() && character != '-' && character != '.')?;
    let (name, rest) = header.split_at_checked(end)?;
    let (section, dotted) = match name.split_once('.') {
        Some((section, _)) => (section, true),
        None => (name, false),
    };
    let rest = rest.trim_start();
    if let Some(after) = rest.strip_prefix(']') {
        return Some(((section.to_ascii_lowercase(), dotted), after));
    }
    let mut characters = rest.strip_prefix('"')?.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '"' => {
                let after = rest.get(place.saturating_add(2)..)?.trim_start().strip_prefix(']')?;
                return Some(((section.to_ascii_lowercase(), true), after));
            }
            _ => {}
        }
    }
    None
}

/// Settings of `core` that run nothing, or that [`harden`] overrides.
const CORE: &[&str] = &[
    "abbrev",
    "alternaterefscommand",
    "askpass",
    "attributesfile",
    "autocrlf",
    "bare",
    "bigfilethreshold",
    "checkroundtripencoding",
    "checkstat",
    "commentchar",
    "commitgraph",
    "compression",
    "createobject",
    "deltabasecachelimit",
    "editor",
    "eol",
    "excludesfile",
    "filemode",
    "fsmonitor",
    "fsyncmethod",
    "fsync",
    "hidedotfiles",
    "hookspath",
    "ignorecase",
    "ignorestat",
    "logallrefupdates",
    "longpaths",
    "loosecompression",
    "maxtreedepth",
    "multipackindex",
    "notesref",
    "packedgitlimit",
    "packedgitwindowsize",
    "packedrefstimeout",
    "pager",
    "precomposeunicode",
    "preloadindex",
    "protecthfs",
    "protectntfs",
    "quotepath",
    "repositoryformatversion",
    "safecrlf",
    "sharedrepository",
    "sparsecheckout",
    "sparsecheckoutcone",
    "splitindex",
    "sshcommand",
    "symlinks",
    "trustctime",
    "untrackedcache",
    "usereplacerefs",
    "warnambiguousrefs",
    "whitespace",
];

/// Sections none of whose settings make a look run anything.
const SECTIONS: &[&str] = &[
    "add",
    "advice",
    "alias",
    "am",
    "apply",
    "author",
    "blame",
    "branch",
    "checkout",
    "clean",
    "clone",
    "color",
    "column",
    "commit",
    "commitgraph",
    "committer",
    "credential",
    "feature",
    "fetch",
    "format",
    "fsck",
    "gc",
    "github",
    "gitlab",
    "grep",
    "gui",
    "help",
    "http",
    "i18n",
    "index",
    "init",
    "lfs",
    "log",
    "maintenance",
    "merge",
    "mergetool",
    "notes",
    "pack",
    "pager",
    "pull",
    "push",
    "rebase",
    "receive",
    "remote",
    "rerere",
    "revert",
    "safe",
    "sendemail",
    "sequence",
    "stash",
    "status",
    "submodule",
    "svn",
    "svn-remote",
    "tag",
    "transfer",
    "uploadpack",
    "url",
    "user",
    "versionsort",
    "vscode-merge-base",
    "worktree",
];

fn harmless(key: &Key) -> bool {
    match (key.section.as_str(), key.key.as_str()) {
        ("core", name) => CORE.contains(&name),
        // A promisor remote makes git fetch missing objects when it looks, through a program the repository may name.
        ("remote", "promisor" | "partialclonefilter" | "vcs") => false,
        ("extensions", name) => {
            matches!(name, "objectformat" | "worktreeconfig" | "refstorage" | "noop" | "preciousobjects")
        }
        // `diff.NAME.command` and `textconv` are switched off by options; `diff.external` by a setting.
        ("diff", _) | ("interactive", "diffFilter" | "singlekey" | "difffilter") => true,
        // Content filters run whenever git compares the work tree. The one of Git LFS is known.
        ("filter", "clean" | "smudge" | "process") => {
            matches!(
                key.value.trim_matches('"'),
                "git-lfs clean -- %f" | "git-lfs smudge -- %f" | "git-lfs filter-process"
            )
        }
        ("filter", "required") => true,
        ("gpg", "format" | "minTrustLevel" | "mintrustlevel") => true,
        (section, _) => SECTIONS.contains(&section),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn findings(config: &str) -> Vec<String> {
        let files = BTreeMap::from([
            (PathBuf::from("/w/.git/HEAD"), "ref: refs/heads/main\n".to_owned()),
            (PathBuf::from("/w/.git/config"), config.to_owned()),
        ]);
        examine(Path::new("/w/src"), &|path| Ok(files.get(path).map(|text| text.clone().into_bytes())))
    }

    const ORDINARY: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\turl = git@example.com:x\n\
        \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n";

    #[test]
    fn an_ordinary_repository_is_clean() {
        assert_eq!(findings(ORDINARY), Vec::<String>::new());
    }

    #[test]
    fn what_hardening_overrides_is_no_finding() {
        assert_eq!(
            findings("[core]\n\tfsmonitor = ./evil\n\thooksPath = .hooks\n\tpager = ./evil\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_cannot_be_overridden_is_found() {
        for config in [
            "[filter \"x\"]\n\tclean = ./evil\n",
            "[filter.x] clean = ./evil\n",
            "[FILTER \"a\\\"b]\"] process=./evil",
            "[include]\n\tpath = ../evil\n",
            "[includeIf \"gitdir:/\"]\n\tpath = ../evil\n",
            "[gpg]\n\tprogram = ./evil\n",
            "[gpg \"ssh\"] program = ./evil\n",
            "[core]\n\tworktree = /\n",
            "[extensions]\n\tpartialClone = origin\n",
            "[remote \"origin\"] promisor = true\n",
            "[unheard-of]\n\tkey = 1\n",
        ] {
            assert_eq!(findings(config).len(), 1, "{config}");
        }
    }

    #[test]
    fn a_value_that_continues_does_not_hide_the_next_key() {
        assert_eq!(findings("[user]\n\tname = a\\\n[include]\n[filter \"x\"]\n\tclean = y\n").len(), 1);
    }

    #[test]
    fn what_is_not_understood_is_a_finding() {
        for config in ["[core", "key = 1\n", "[core]\n\t= x\n", "[core] a.b = 1\n", "[a \"b]\nx=1\n"] {
            assert_eq!(findings(config).len(), 1, "{config}");
        }
    }

    #[test]
    fn a_work_tree_elsewhere_is_followed() {
        let files = BTreeMap::from([
            (PathBuf::from("/w/.git"), "gitdir: /main/.git/worktrees/w\n".to_owned()),
            (PathBuf::from("/main/.git/worktrees/w/commondir"), "../..\n".to_owned()),
            (PathBuf::from("/main/.git/worktrees/w/../../config"), "[filter \"x\"]\nclean=evil\n".to_owned()),
        ]);
        let found = examine(Path::new("/w"), &|path| Ok(files.get(path).map(|text| text.clone().into_bytes())));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn the_subcommand_stands_behind_the_options() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(subcommand(&words("git status")), Some(1));
        assert_eq!(subcommand(&words("/usr/bin/git -C x -c a=b --no-pager log -3")), Some(6));
        assert_eq!(subcommand(&words("git --version")), None);
        assert_eq!(subcommand(&words("env git status")), None);
    }

    #[test]
    fn hardened_words_keep_their_order() {
        let words: Vec<String> = ["git", "-C", "x", "log", "-3"].map(str::to_owned).to_vec();
        let hardened = harden(&words, 3);
        assert_eq!(hardened.first().map(String::as_str), Some("git"));
        let log = hardened.iter().position(|word| word == "log").unwrap();
        assert_eq!(&hardened[log..], ["log", "--no-ext-diff", "--no-textconv", "-3"]);
        assert!(hardened[..log].windows(2).any(|pair| pair == ["-c", "core.fsmonitor=false"]));
    }
}
