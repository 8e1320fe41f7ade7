//! Reads a repository's configuration file and finds the settings that can make git run something.

use callgate_model::lexical::fold;

use super::{GitExamination, GitReach, GitRun, Repository};

/// The names of the settings that could make git run something; `Err` with the number of an invalid line.
pub(super) fn findings(
    text: &str,
    repository: &Repository<'_>,
    examination: GitExamination<'_>,
) -> Result<Vec<String>, usize> {
    let settings = settings(text)?.into_iter();
    Ok(settings.filter(|key| !harmless(key, repository, examination)).map(|key| key.name()).collect())
}

/// All settings, by their names, with their values; `None` if a line is invalid.
pub(super) fn named(text: &str) -> Option<Vec<(String, String)>> {
    let settings = settings(text).ok()?.into_iter();
    Some(settings.map(|setting| (setting.name(), setting.value.trim_matches('"').to_owned())).collect())
}

/// One setting: section and key in lower case. The name of a subsection does not matter.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    has_subsection: bool,
    key: String,
    value: String,
}

impl Setting {
    fn name(&self) -> String {
        let middle = if self.has_subsection { ".*" } else { "" };
        format!("{}{middle}.{}", self.section, self.key)
    }
}

/// The settings of a configuration file; `Err` with the number of an invalid line.
fn settings(text: &str) -> Result<Vec<Setting>, usize> {
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
        let mut reading = Reading::default();
        let mut line = value.strip_prefix('=').unwrap_or_default();
        while reading.goes_on(line) {
            line = lines.next().ok_or(mistake)?.1;
        }
        let value = reading.finish().ok_or(mistake)?;
        found.push(Setting { section, has_subsection, key: key.to_ascii_lowercase(), value });
    }
    Ok(found)
}

/// A value while it is read: quotes, escapes, comments, and lines that go on.
#[derive(Default)]
struct Reading {
    value: String,
    quoted: bool,
}

impl Reading {
    /// Reads one line. Returns whether the value goes on in the next one.
    fn goes_on(&mut self, line: &str) -> bool {
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    None => return true,
                    Some(escaped) => self.value.extend(['\\', escaped]),
                },
                '"' => {
                    self.quoted = !self.quoted;
                    self.value.push(character);
                }
                // git ignores the rest of the line, with a backslash at its end.
                '#' | ';' if !self.quoted => return false,
                other => self.value.push(other),
            }
        }
        false
    }

    /// The value; `None` if a quote is not closed.
    fn finish(self) -> Option<String> {
        (!self.quoted).then(|| self.value.trim().to_owned())
    }
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

/// Settings of `core` that run nothing when git only reads, or that [`harden`](super::harden) overrides.
const CORE: &str = "
    abbrev alternaterefscommand askpass attributesfile autocrlf bare bigfilethreshold checkroundtripencoding
    checkstat commentchar commitgraph compression createobject deltabasecachelimit editor eol excludesfile filemode
    fsmonitor fsyncmethod fsync hidedotfiles hookspath ignorecase ignorestat logallrefupdates longpaths
    loosecompression maxtreedepth multipackindex notesref packedgitlimit packedgitwindowsize packedrefstimeout pager
    precomposeunicode preloadindex protecthfs protectntfs quotepath repositoryformatversion safecrlf
    sharedrepository sparsecheckout sparsecheckoutcone splitindex sshcommand symlinks trustctime untrackedcache
    usereplacerefs warnambiguousrefs whitespace
";

/// Sections without settings that run something when git only reads.
const SECTIONS: &str = "
    add advice alias am apply author blame branch checkout clean clone color column commit commitgraph committer
    credential feature fetch format fsck gc github gitlab grep gui help http i18n index init lfs log maintenance
    merge mergetool notes pack pager pull push rebase receive remote rerere revert safe sendemail sequence stash
    status submodule svn svn-remote tag transfer uploadpack url user versionsort vscode-merge-base worktree
";

/// Whether a setting runs nothing.
fn harmless(key: &Setting, repository: &Repository<'_>, examination: GitExamination<'_>) -> bool {
    let (section, name, value) = (key.section.as_str(), key.key.as_str(), key.value.trim_matches('"'));
    if examination.reach == GitReach::More && runs_beyond_looking(key, value)
        || examination.run == GitRun::AsWritten && runs_unless_hardened(key, value)
    {
        return false;
    }
    match (section, name) {
        // A subcommand that is not built in is looked for among the aliases.
        ("alias", name) => {
            examination.subcommand.is_none_or(|used| !key.has_subsection && !used.eq_ignore_ascii_case(name))
        }
        ("help", "browser" | "format" | "htmlpath") => false,
        ("core", "worktree") => fold(&repository.folder.join(value)) == fold(repository.root),
        ("core", name) => lists(CORE, name),
        // A promisor remote makes git fetch missing objects when it reads, with a program that the repository may name.
        ("remote", "promisor" | "partialclonefilter" | "vcs") => false,
        ("extensions", name) => {
            matches!(name, "objectformat" | "worktreeconfig" | "refstorage" | "noop" | "preciousobjects")
        }
        // Programs that show differences. Options switch them off, but not for blame, stash, range-diff and status -vv.
        ("diff", "command" | "textconv") if key.has_subsection => false,
        // `diff.external` is switched off by a setting.
        ("diff", _) | ("interactive", "difffilter" | "singlekey") => true,
        // Commands that read also merge: merge-tree, show --remerge-diff.
        ("merge", "driver") => false,
        // Content filters run whenever git compares the work tree. The one of Git LFS is known, unless it is extended.
        ("filter", "clean" | "smudge" | "process") => {
            matches!(value, "git-lfs clean -- %f" | "git-lfs smudge -- %f" | "git-lfs filter-process")
        }
        ("lfs", "clean" | "smudge" | "path" | "args") => false,
        ("filter", "required") => true,
        ("gpg", "format" | "mintrustlevel") => true,
        (section, _) => lists(SECTIONS, section),
    }
}

/// Settings that run something when git only reads, and that [`super::harden`] switches off.
fn runs_unless_hardened(key: &Setting, value: &str) -> bool {
    match (key.section.as_str(), key.key.as_str()) {
        // git's own monitor, or none
        ("core", "fsmonitor") => !matches!(value, "true" | "false" | "1" | "0" | ""),
        ("core", "hookspath" | "pager" | "alternaterefscommand")
        | ("diff", "external")
        | ("interactive", "difffilter")
        | ("log", "showsignature")
        | ("pager", _) => true,
        _ => false,
    }
}

/// Settings that run something only when git changes something or connects.
fn runs_beyond_looking(key: &Setting, value: &str) -> bool {
    match (key.section.as_str(), key.key.as_str()) {
        ("core", "askpass" | "editor" | "sshcommand")
        | ("sequence", "editor")
        | ("remote", "uploadpack" | "receivepack")
        | ("init", "templatedir")
        | ("gc", "recentobjectshook") => true,
        ("credential", "helper") => !value.is_empty(),
        ("submodule", "update") => value.starts_with('!'),
        ("commit" | "tag" | "push", "gpgsign") => value != "false",
        ("sendemail" | "mergetool" | "svn" | "svn-remote" | "gui", _) => true,
        _ => false,
    }
}

/// Whether `word` is one of the words of a list.
pub(super) fn lists(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}
