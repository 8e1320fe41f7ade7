//! Every key of a policy file, its shape and what it means: one table for reading, for suggestions and for the schema.

/// What may stand behind a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Text.
    Text,
    /// A list of texts, or one text.
    Texts,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Number,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of these words.
    ManyOf(&'static [&'static str]),
    /// A mapping with these keys.
    Section(&'static [Key]),
    /// A mapping from names to lists of texts.
    NamedLists,
    /// A list of rules.
    Rules,
    /// A list of tool patterns: texts or `{server: name}`.
    Tools,
    /// A list of examples: texts or `{tool, input}`.
    Examples,
    /// Anything; kept for files of other systems.
    Anything,
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub description: &'static str,
}

const fn key(name: &'static str, shape: Shape, description: &'static str) -> Key {
    Key { name, shape, description }
}

/// What a rule or a default may decide, in the order a person would choose.
pub(crate) const ACTIONS: &[&str] = &["allow", "ask", "deny", "contain", "require_approval"];
pub(crate) const EFFECTS: &[&str] =
    &["list", "read", "write", "delete", "run", "connect", "send", "privilege", "opaque"];
pub(crate) const MARKS: &[&str] =
    &["destructive", "elsewhere", "redirection", "environment", "project_code", "credentials", "own_files", "shared"];
pub(crate) const ZONES: &[&str] = &["root", "readable", "outside", "unresolved"];
pub(crate) const CODE: &[&str] = &["known", "unknown", "file", "project", "inline", "fetched", "defined"];
pub(crate) const RISKS: &[&str] = &["low", "medium", "high", "critical"];
pub(crate) const OUTSIDE: &[&str] = &["deny", "ask"];
pub(crate) const LIST_OUTSIDE: &[&str] = &["silent", "ask", "deny"];
pub(crate) const MODES: &[&str] = &["ask", "allow", "deny"];
pub(crate) const INSTEAD_OF: &[&str] = &["ask"];
pub(crate) const EXEC_INPUT: &[&str] = &["covered", "judged", "asked"];
pub(crate) const APPROVAL_DECISIONS: &[&str] = &["approved", "approved_for_session", "denied", "abort"];
pub(crate) const SANDBOX_POLICIES: &[&str] = &["none", "restricted"];

pub(crate) const BOUNDARY: &[Key] = &[
    key("roots", Shape::Texts, "directories that may be read and written; \"@temporary\" and \"@plans\" are built in"),
    key("readable", Shape::Texts, "what may only be read"),
    key("outside", Shape::OneOf(OUTSIDE), "what happens elsewhere; deny unless said otherwise"),
    key("list_outside", Shape::OneOf(LIST_OUTSIDE), "what happens when only names are seen elsewhere"),
];

pub(crate) const TRUST: &[Key] = &[
    key("tags", Shape::Texts, "tags that are believed of tools registered without a server"),
    key("annotations", Shape::Texts, "servers whose claims about their own tools are believed"),
];

pub(crate) const RULE: &[Key] = &[
    key("name", Shape::Text, "what the rule is called in answers and logs"),
    key("tools", Shape::Tools, "tools: `Bash`, `github/*`, `*/search`, `@tag:read_only`, `{server: github}`"),
    key("effects", Shape::ManyOf(EFFECTS), "what would be done"),
    key("marks", Shape::ManyOf(MARKS), "what is special about the effect; `!` in front: must not be"),
    key("zones", Shape::ManyOf(ZONES), "where the path lies relative to the boundary"),
    key("traversal", Shape::Flag, "whether the path left a root by `..` or by a link"),
    key("recursive", Shape::Flag, "whether everything below the path is meant too"),
    key("paths", Shape::Texts, "path globs, compared by component; \"@name\" for a set, \"!\" takes names out again"),
    key("code", Shape::ManyOf(CODE), "where code that runs comes from"),
    key("runs", Shape::Texts, "globs on the name of what runs"),
    key(
        "run_by",
        Shape::Texts,
        "globs on the names of the programs that run it: wrappers and programs that take commands; `!` takes names out",
    ),
    key("commands", Shape::Texts, "patterns on the words of a simple command: `git push **`"),
    key("hosts", Shape::Texts, "host names, `*.example.com`, addresses, networks, services such as `<aws>`"),
    key("command_patterns", Shape::Texts, "regular expressions on the text of a command"),
    key("path_patterns", Shape::Texts, "regular expressions on paths"),
    key("when", Shape::Text, "an expression (CEL) over call, input, origin and effects"),
    key("action", Shape::OneOf(ACTIONS), "what the rule decides; require_approval is ask"),
    key(
        "instead_of",
        Shape::OneOf(INSTEAD_OF),
        "the rule is tried only where all others together say this, wherever it stands: it never overturns a deny",
    ),
    key("reason", Shape::Text, "why, for whoever is refused or asked"),
    key("description", Shape::Text, "what the rule is about"),
    key("risk_level", Shape::OneOf(RISKS), "how bad it would be"),
    key("matches", Shape::Examples, "examples for which this rule decides at least one effect"),
    key("misses", Shape::Examples, "examples for which this rule decides nothing"),
];

pub(crate) const APPROVALS: &[Key] = &[
    key("timeout_seconds", Shape::Number, "how long a question waits for its answer; 300 unless said otherwise"),
    key(
        "exec_input",
        Shape::OneOf(EXEC_INPUT),
        "what is typed into a program that was started with a permit: covered by that, judged as a command, or asked",
    ),
    key("rules", Shape::Anything, "answers without a person, in order: tools, commands, decision, reason"),
    key(
        "default",
        Shape::OneOf(APPROVAL_DECISIONS),
        "the answer where none of these rules matches; denied unless said otherwise",
    ),
];

pub(crate) const EXAMPLE: &[Key] = &[
    key("tool", Shape::Text, "the tool"),
    key("input", Shape::Anything, "its input"),
    key("command", Shape::Text, "a shell command, instead of tool and input"),
];

pub(crate) const SAFETY: &[Key] = &[
    key("mode", Shape::OneOf(MODES), "what happens to what no list names"),
    key("allowlist", Shape::Texts, "programs that may run"),
    key("denylist", Shape::Texts, "commands that may not run"),
    key("tool_allowlist", Shape::Texts, "custom tools that may run, by exact name"),
    key("tool_denylist", Shape::Texts, "custom tools that may not run, by exact name"),
    key("approval_timeout_ms", Shape::Number, "how long an approver may take"),
];

pub(crate) const SANDBOX_MODES: &[&str] = &["auto", "none", "seatbelt", "bubblewrap"];
pub(crate) const SANDBOX_PROFILES: &[&str] = &["dev", "balanced", "prod"];
pub(crate) const SANDBOX_OS: &[Key] =
    &[key("mode", Shape::OneOf(SANDBOX_MODES), "which sandbox of the operating system")];
pub(crate) const SANDBOX: &[Key] = &[
    key("default_policy", Shape::OneOf(SANDBOX_POLICIES), "whether commands run in the sandbox"),
    key("os", Shape::Section(SANDBOX_OS), "the sandbox of the operating system"),
    key("profile", Shape::OneOf(SANDBOX_PROFILES), "the sandbox profile"),
];
pub(crate) const RUN: &[Key] = &[key("human_timeout_ms", Shape::Number, "how long a person may take")];

pub(crate) const CHECKPOINTS: &[Key] = &[
    key("file", Shape::Texts, "files that checkpoints are appended to: on another disk, a share, append-only"),
    key("command", Shape::Texts, "a program and its arguments; it gets each checkpoint on its standard input"),
    key("webhook", Shape::Texts, "URLs that checkpoints are posted to"),
];

pub(crate) const AUDIT: &[Key] = &[
    key("directory", Shape::Text, "the log's directory: absolute or starting with ~/, outside of the boundary"),
    key("key", Shape::Text, "the file of the key that seals and signs; beside the directory unless said otherwise"),
    key(
        "sync",
        Shape::Text,
        "when entries are forced onto the disk: always (the default), interval, interval 500ms, os",
    ),
    key("segment_bytes", Shape::Number, "a segment of this size is closed; 67108864 unless said otherwise"),
    key("segment_age", Shape::Text, "so is one of this age; 7days unless said otherwise"),
    key(
        "checkpoint_entries",
        Shape::Number,
        "a signed checkpoint follows after so many entries; 1000 unless said otherwise",
    ),
    key("checkpoint_age", Shape::Text, "and with the first entry after this time; 60s unless said otherwise"),
    key("compress", Shape::Flag, "whether closed segments are compressed; true unless said otherwise"),
    key("checkpoints", Shape::Section(CHECKPOINTS), "where else checkpoints are sent"),
];

pub(crate) const FILE: &[Key] = &[
    key("version", Shape::Number, "the version of this format: 1"),
    key("name", Shape::Text, "what the policy is called"),
    key("description", Shape::Text, "what the policy is for"),
    key("extends", Shape::Text, "a bundled policy or a file whose rules follow after these"),
    key("default", Shape::OneOf(ACTIONS), "what happens when no rule matches; ask unless said otherwise"),
    key("boundary", Shape::Section(BOUNDARY), "which directories calls may touch"),
    key("sets", Shape::NamedLists, "named lists of globs, used as \"@name\""),
    key("programs", Shape::Text, "program tables of your own"),
    key("trust", Shape::Section(TRUST), "whose claims about tools are believed"),
    key("rules", Shape::Rules, "the rules; the first that matches decides"),
    key(
        "approvals",
        Shape::Section(APPROVALS),
        "how long a question waits, what is not asked again, and who answers without being asked",
    ),
    key("audit", Shape::Section(AUDIT), "where the audit log lies and how it is kept; not in a project's file"),
    key("settings", Shape::Anything, "settings of an earlier format: default_action"),
    key("config_version", Shape::Number, "the version of an earlier format: 1"),
    key("safety", Shape::Section(SAFETY), "mode and lists of an earlier format"),
    key("sandbox", Shape::Section(SANDBOX), "the sandbox section of an earlier format"),
    key("run", Shape::Section(RUN), "the run section of an earlier format"),
];

/// The word among `known` that was probably meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=3 => 1,
        4..=8 => 2,
        _ => 3,
    };
    let folded = word.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|candidate| (distance(&folded, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be changed, added or removed. Words longer than 64 letters are far from everything.
fn distance(left: &str, right: &str) -> usize {
    if left.len() > 64 || right.len() > 64 {
        return usize::MAX;
    }
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, letter) in left.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(line.saturating_add(1));
        for (pair, other) in row.windows(2).zip(&right) {
            if let ([diagonal, above], Some(&before)) = (pair, next.last()) {
                let change = diagonal.saturating_add(usize::from(letter != *other));
                next.push(change.min(above.saturating_add(1)).min(before.saturating_add(1)));
            }
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant() {
        let names = || RULE.iter().map(|key| key.name);
        for (written, meant) in [
            ("tool", Some("tools")),
            ("command", Some("commands")),
            ("path-patterns", Some("path_patterns")),
            ("Reason", Some("reason")),
            ("efects", Some("effects")),
            ("frobnicate", None),
        ] {
            assert_eq!(nearest(written, names()), meant, "{written}");
        }
    }
}
