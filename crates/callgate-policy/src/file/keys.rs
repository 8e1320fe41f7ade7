//! Every key of a policy file with its type and meaning: one table for parsing, suggestions and the schema.

/// The type of the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyType {
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
    /// A mapping from names to mappings with these keys.
    Named(&'static [Key]),
    /// A list of rules.
    Rules,
    /// A list of tool patterns: texts or `{server: name}`.
    Tools,
    /// A list of examples: texts or `{tool, input}`.
    Examples,
    /// Anything.
    Anything,
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub name: &'static str,
    pub shape: KeyType,
    pub description: &'static str,
}

const fn key(name: &'static str, shape: KeyType, description: &'static str) -> Key {
    Key { name, shape, description }
}

/// What a rule or a default can decide.
pub(crate) const ACTIONS: &[&str] = &["allow", "ask", "deny", "contain", "require_approval"];
pub(crate) const EFFECTS: &[&str] =
    &["list", "read", "write", "delete", "run", "connect", "send", "privilege", "opaque"];
pub(crate) const MARKS: &[&str] = &[
    "destructive",
    "elsewhere",
    "redirection",
    "environment",
    "project_code",
    "credentials",
    "own_files",
    "shared",
    "inside",
    "recoverable",
    "expendable",
    "metadata",
];
pub(crate) const ZONES: &[&str] = &["root", "readable", "outside", "unresolved"];
pub(crate) const CODE: &[&str] = &["known", "unknown", "file", "project", "inline", "fetched", "defined"];
pub(crate) const RISKS: &[&str] = &["low", "medium", "high", "critical"];
pub(crate) const OUTSIDE: &[&str] = &["deny", "ask"];
pub(crate) const LIST_OUTSIDE: &[&str] = &["silent", "ask", "deny"];
pub(crate) const MODES: &[&str] = &["ask", "allow", "deny"];
pub(crate) const NEEDS: &[&str] = &["sandbox"];
pub(crate) const WHERE: &[&str] = &["free"];
pub(crate) const INSTEAD_OF: &[&str] = &["allow", "ask"];
pub(crate) const AGENT_ANSWERS: &[&str] = &["session", "once"];
pub(crate) const EXEC_INPUT: &[&str] = &["covered", "judged", "asked"];
pub(crate) const APPROVAL_DECISIONS: &[&str] = &["approved", "approved_for_session", "denied", "abort"];
pub(crate) const SANDBOX_POLICIES: &[&str] = &["none", "restricted"];

pub(crate) const BOUNDARY: &[Key] = &[
    key(
        "roots",
        KeyType::Texts,
        "directories that may be read and written; \"@temporary\" and \"@plans\" are built in",
    ),
    key("readable", KeyType::Texts, "directories that may only be read"),
    key("outside", KeyType::OneOf(OUTSIDE), "the decision for paths outside the boundary; deny by default"),
    key("list_outside", KeyType::OneOf(LIST_OUTSIDE), "the decision for listing names outside the boundary"),
];

pub(crate) const TRUST: &[Key] = &[
    key("tags", KeyType::Texts, "trusted tags of tools that are registered without a server"),
    key("annotations", KeyType::Texts, "servers whose annotations of their own tools are trusted"),
];

pub(crate) const LIMITS: &[Key] = &[
    key("time", KeyType::Text, "from start to end: `90s`, `5m`"),
    key("memory", KeyType::Text, "memory of all processes together: `512MiB`"),
    key("processes", KeyType::Number, "processes and threads at a time"),
    key("written", KeyType::Text, "bytes written to disk by all processes together: `1GiB`"),
    key("file_size", KeyType::Text, "the size of one file: `256MiB`"),
    key("open_files", KeyType::Number, "open files of one process"),
    key("output", KeyType::Text, "standard output and standard error together: `10MiB`"),
];

/// The hosts that package managers fetch from.
pub(crate) const REGISTRIES: &str = "@registries";

/// As [`callgate_model::fence::Protection`] names them.
pub(crate) const PROTECTIONS: &[&str] =
    &["writes", "reads", "secrets", "protected_names", "network", "sockets", "processes", "kernel", "ending", "limits"];

pub(crate) const PROFILE: &[Key] = &[
    key(
        "network",
        KeyType::Texts,
        "the network: `none`, `all` or a list of hosts; \"@registries\" for package registries",
    ),
    key("limits", KeyType::Section(LIMITS), "the limits"),
    key(
        "requires",
        KeyType::ManyOf(PROTECTIONS),
        "what a machine must be able to hold, or the call is refused; everything by default",
    ),
];

pub(crate) const RULE: &[Key] = &[
    key("name", KeyType::Text, "the name of the rule in answers and logs"),
    key("tools", KeyType::Tools, "tools: `Bash`, `github/*`, `*/search`, `@tag:read_only`, `{server: github}`"),
    key("effects", KeyType::ManyOf(EFFECTS), "the effects that the rule is about"),
    key("marks", KeyType::ManyOf(MARKS), "marks of the effect; `!` in front means that the mark must be absent"),
    key("zones", KeyType::ManyOf(ZONES), "where the path is relative to the boundary"),
    key("traversal", KeyType::Flag, "whether the path leaves a root through `..` or a symlink"),
    key("recursive", KeyType::Flag, "whether the effect includes everything below the path"),
    key("paths", KeyType::Texts, "path globs; \"@name\" for a set, \"!\" to exclude"),
    key("code", KeyType::ManyOf(CODE), "where the code that runs comes from"),
    key("runs", KeyType::Texts, "globs on the name of the program that runs"),
    key("run_by", KeyType::Texts, "globs on the names of wrappers, such as `sudo`; `!` to exclude"),
    key("commands", KeyType::Texts, "patterns on the words of a simple command, such as `git push **`"),
    key("hosts", KeyType::Texts, "host names, `*.example.com`, addresses, networks, services such as `<aws>`"),
    key("command_patterns", KeyType::Texts, "regular expressions on the text of a command"),
    key("path_patterns", KeyType::Texts, "regular expressions on paths"),
    key("when", KeyType::Text, "a CEL expression over call, input, origin and effects"),
    key("action", KeyType::OneOf(ACTIONS), "the decision; `require_approval` means `ask`"),
    key("instead_of", KeyType::OneOf(INSTEAD_OF), "the decision of all other rules together that this rule replaces"),
    key(
        "last",
        KeyType::Flag,
        "the rule is tried after all others with the same `instead_of`, also those of extended files",
    ),
    key("needs", KeyType::OneOf(NEEDS), "the rule is only tried where there is a sandbox"),
    key(
        "doubt",
        KeyType::Flag,
        "the rule is only tried where the question is a doubt of the analysis; needs `instead_of: ask`",
    ),
    key(
        "where",
        KeyType::OneOf(WHERE),
        "`free`: code that the rule allows runs outside the sandbox, even if there is one",
    ),
    key(
        "network",
        KeyType::Texts,
        "the network of a contained call: `none`, `all` or a list of hosts; \"@registries\" for package registries",
    ),
    key("limits", KeyType::Section(LIMITS), "the limits of a contained call"),
    key(
        "profile",
        KeyType::Text,
        "what `network`, `limits` and the required protections are by default: `dev`, `balanced`, `prod`, or a name under `sandbox.profiles`",
    ),
    key("reason", KeyType::Text, "the reason, shown to the agent and to the person who is asked"),
    key("description", KeyType::Text, "a description of the rule"),
    key("risk_level", KeyType::OneOf(RISKS), "the risk level"),
    key("matches", KeyType::Examples, "examples of which the rule decides at least one effect"),
    key("misses", KeyType::Examples, "examples of which the rule decides no effect"),
];

pub(crate) const APPROVALS: &[Key] = &[
    key("timeout_seconds", KeyType::Number, "how long a question waits for an answer; 300 by default"),
    key(
        "agent_answers",
        KeyType::OneOf(AGENT_ANSWERS),
        "how long a yes at the agent's own prompt counts for the same request",
    ),
    key("exec_input", KeyType::OneOf(EXEC_INPUT), "how to treat input to a program that is already running"),
    key("rules", KeyType::Anything, "rules that answer without a person: tools, commands, decision, reason"),
    key("default", KeyType::OneOf(APPROVAL_DECISIONS), "the answer if none of these rules matches, instead of asking"),
    key(
        "ask",
        KeyType::Anything,
        "who is asked, in order: agent, terminal, watch, {command: [PROGRAM]}, {webhook: URL, secret_file: PATH}, with `seconds` until the next",
    ),
    key(
        "notify",
        KeyType::Anything,
        "how you learn that a question waits: desktop (by default, where there is one), bell, off, {command: [PROGRAM]}",
    ),
];

pub(crate) const EXAMPLE: &[Key] = &[
    key("tool", KeyType::Text, "the tool"),
    key("input", KeyType::Anything, "its input"),
    key("command", KeyType::Text, "a shell command, instead of tool and input"),
];

pub(crate) const SAFETY: &[Key] = &[
    key("mode", KeyType::OneOf(MODES), "the decision for commands and tools on no list"),
    key("allowlist", KeyType::Texts, "programs that may run"),
    key("denylist", KeyType::Texts, "commands that may not run"),
    key("tool_allowlist", KeyType::Texts, "custom tools that may run, by exact name"),
    key("tool_denylist", KeyType::Texts, "custom tools that may not run, by exact name"),
    key("approval_timeout_ms", KeyType::Number, "the timeout of an approval"),
];

pub(crate) const SANDBOX_MODES: &[&str] = &["auto", "none", "seatbelt", "bubblewrap"];
pub(crate) const SANDBOX_PROFILES: &[&str] = &["dev", "balanced", "prod"];
pub(crate) const SEATBELT: &[Key] =
    &[key("profile", KeyType::Text, "read and not used: callgate generates the profile from the fence")];
pub(crate) const BUBBLEWRAP: &[Key] = &[
    key(
        "bwrap_path",
        KeyType::Text,
        "read and not used: callgate starts only programs that it finds in system directories",
    ),
    key("unshare_net", KeyType::Flag, "false: contained commands may use the network; true by default"),
];
pub(crate) const SANDBOX_OS: &[Key] = &[
    key("mode", KeyType::OneOf(SANDBOX_MODES), "the sandbox of the operating system to use; auto by default"),
    key("seatbelt", KeyType::Section(SEATBELT), "settings for macOS"),
    key("bubblewrap", KeyType::Section(BUBBLEWRAP), "settings for Linux"),
];
pub(crate) const SANDBOX: &[Key] = &[
    key(
        "default_policy",
        KeyType::OneOf(SANDBOX_POLICIES),
        "restricted: every command runs in the sandbox, or not at all",
    ),
    key("os", KeyType::Section(SANDBOX_OS), "the sandbox of the operating system"),
    key(
        "profile",
        KeyType::Text,
        "what the other keys are by default: `dev` means none; `balanced`, `prod` and a name under `profiles` mean restricted",
    ),
    key("profiles", KeyType::Named(PROFILE), "profiles of your own, for `profile` here and in rules of this file"),
];
pub(crate) const RUN: &[Key] = &[key("human_timeout_ms", KeyType::Number, "the timeout of a question to a person")];

pub(crate) const CHECKPOINTS: &[Key] = &[
    key("file", KeyType::Texts, "files to append checkpoints to, such as on another disk"),
    key("command", KeyType::Texts, "a program and its arguments; it receives each checkpoint on standard input"),
    key("webhook", KeyType::Texts, "URLs to post checkpoints to"),
];

pub(crate) const AUDIT: &[Key] = &[
    key("directory", KeyType::Text, "the log directory, outside the boundary; absolute or starting with `~/`"),
    key("key", KeyType::Text, "the key file; next to the directory by default"),
    key(
        "sync",
        KeyType::Text,
        "when to sync entries to disk: `always` (the default), `interval`, `interval 500ms`, `os`",
    ),
    key("segment_bytes", KeyType::Number, "the size at which a segment is closed; 67108864 by default"),
    key("segment_age", KeyType::Text, "the age at which a segment is closed; 7days by default"),
    key("checkpoint_entries", KeyType::Number, "the number of entries between signed checkpoints; 1000 by default"),
    key("checkpoint_age", KeyType::Text, "the longest time between checkpoints; 60s by default"),
    key("compress", KeyType::Flag, "whether to compress closed segments; true by default"),
    key("checkpoints", KeyType::Section(CHECKPOINTS), "where else to send checkpoints"),
];

pub(crate) const FILE: &[Key] = &[
    key("version", KeyType::Number, "the format version: 1"),
    key("name", KeyType::Text, "the name of the policy"),
    key("description", KeyType::Text, "the purpose of the policy"),
    key("extends", KeyType::Text, "a bundled policy or a file whose rules come after these"),
    key("default", KeyType::OneOf(ACTIONS), "the decision if no rule matches; ask by default"),
    key("boundary", KeyType::Section(BOUNDARY), "the directories that calls may use"),
    key("sets", KeyType::NamedLists, "named lists of globs, used as \"@name\""),
    key("programs", KeyType::Text, "your own program tables"),
    key("trust", KeyType::Section(TRUST), "whose claims about tools are trusted"),
    key("rules", KeyType::Rules, "the rules; the first match decides"),
    key("approvals", KeyType::Section(APPROVALS), "how questions are answered and how long they wait"),
    key("audit", KeyType::Section(AUDIT), "where the audit log is and how it is kept; ignored in project files"),
    key("settings", KeyType::Anything, "settings of an earlier format: default_action"),
    key("config_version", KeyType::Number, "the version of an earlier format: 1"),
    key("safety", KeyType::Section(SAFETY), "mode and lists of an earlier format"),
    key("sandbox", KeyType::Section(SANDBOX), "whether every command runs in the sandbox"),
    key("run", KeyType::Section(RUN), "the run section of an earlier format"),
];

/// Longer words are not compared.
const LONGEST: usize = 64;

/// The word of `known` that is closest to `word`, if one is close enough.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=3 => 1,
        4..=8 => 2,
        _ => 3,
    };
    let folded = word.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .filter(|candidate| folded.len().max(candidate.len()) <= LONGEST)
        .map(|candidate| (strsim::levenshtein(&folded, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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
