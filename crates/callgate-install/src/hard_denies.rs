//! Denies that are also written into an agent's own rules, in case its hook is switched off or lost.
//!
//! The set is small: only what the bundled policies deny, and only what an agent's rules can express exactly. A broader rule
//! would refuse calls that the policy allows, for no visible reason.

use std::path::Path;

use callgate::Call;
use serde_json::json;

/// A call that is never allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HardDeny {
    /// Reading a file, or everything below a directory if the path ends with `/**`.
    Read(&'static str),
    /// Writing a file, with the same kind of path.
    Write(&'static str),
    /// Running exactly these words.
    Run(&'static [&'static str]),
}

/// All of them.
pub const HARD_DENIES: &[HardDeny] = &[
    HardDeny::Read("~/.ssh/id_rsa"),
    HardDeny::Read("~/.ssh/id_ecdsa"),
    HardDeny::Read("~/.ssh/id_ed25519"),
    HardDeny::Read("~/.gnupg/**"),
    HardDeny::Read("~/.aws/credentials"),
    HardDeny::Read("~/.config/gcloud/**"),
    HardDeny::Read("~/.azure/**"),
    HardDeny::Read("~/.kube/config"),
    HardDeny::Read("~/.docker/config.json"),
    HardDeny::Read("~/.netrc"),
    HardDeny::Read("~/.git-credentials"),
    HardDeny::Read("~/.config/gh/hosts.yml"),
    HardDeny::Read("~/.password-store/**"),
    HardDeny::Write("~/.config/callgate/**"),
    HardDeny::Write("~/.local/share/callgate/**"),
    HardDeny::Write("~/.local/state/callgate/**"),
    HardDeny::Write("~/.cache/callgate/**"),
    HardDeny::Run(&["rm", "-rf", "/"]),
    HardDeny::Run(&["rm", "-fr", "/"]),
    HardDeny::Run(&["rm", "-rf", "~"]),
    HardDeny::Run(&["rm", "-fr", "~"]),
    HardDeny::Run(&["cat", "~/.ssh/id_rsa"]),
    HardDeny::Run(&["cat", "~/.ssh/id_ecdsa"]),
    HardDeny::Run(&["cat", "~/.ssh/id_ed25519"]),
    HardDeny::Run(&["cat", "~/.aws/credentials"]),
    HardDeny::Run(&["cat", "~/.netrc"]),
];

/// The reason, for agents that show one.
pub(crate) const BECAUSE: &str = "callgate always denies this";

impl HardDeny {
    /// An example call, to check whether a policy denies it.
    pub fn call(&self) -> Call {
        match self {
            HardDeny::Read(path) => Call::new("Read", json!({ "file_path": path.replace("**", "x") })),
            HardDeny::Write(path) => Call::new("Write", json!({ "file_path": path.replace("**", "x"), "content": "" })),
            HardDeny::Run(words) => Call::new("Bash", json!({ "command": words.join(" ") })),
        }
    }

    /// The path without `~/`, and whether it stands for everything below.
    pub(crate) fn below_home(path: &str) -> (&str, bool) {
        let path = path.strip_prefix("~/").unwrap_or(path);
        match path.strip_suffix("/**") {
            Some(directory) => (directory, true),
            None => (path, false),
        }
    }
}

/// Claude Code's `permissions.deny`.
pub(crate) fn claude(deny: &HardDeny) -> String {
    match deny {
        HardDeny::Read(path) => format!("Read({path})"),
        HardDeny::Write(path) => format!("Edit({path})"),
        HardDeny::Run(words) => format!("Bash({})", words.join(" ")),
    }
}

/// Codex's rules for commands. Codex compares words literally, so `~` and the home directory are two alternatives. (Codex
/// 0.166 does not split commands with a bare `~`, so only the second one works there.) It has no rules for files; its
/// sandbox protects those.
pub(crate) fn codex(denies: &[HardDeny], home: &str) -> String {
    let mut rules = format!("# {}. `callgate uninstall codex` removes it.\n", crate::content::OWN_FILE);
    for deny in denies {
        if let HardDeny::Run(words) = deny {
            let pattern: Vec<String> = words
                .iter()
                .map(|word| match word.strip_prefix('~') {
                    Some(rest) => format!("[{}, {}]", json!(word), json!(format!("{home}{rest}"))),
                    None => json!(word).to_string(),
                })
                .collect();
            rules.push_str(&format!(
                "prefix_rule(pattern=[{}], decision=\"forbidden\", justification=\"{BECAUSE}\")\n",
                pattern.join(", ")
            ));
        }
    }
    rules
}

/// Rules for Gemini CLI's policy engine: patterns on the arguments as JSON text.
pub(crate) fn gemini(denies: &[HardDeny]) -> String {
    let mut rules = format!("# {}. `callgate uninstall gemini` removes it.\n", crate::content::OWN_FILE);
    for deny in denies {
        let (tools, pattern) = match deny {
            HardDeny::Read(path) => (r#"["read_file", "read_many_files"]"#, path_pattern(path)),
            HardDeny::Write(path) => (r#"["write_file", "replace"]"#, path_pattern(path)),
            HardDeny::Run(words) => {
                (r#""run_shell_command""#, format!(r#""command":"\s*{}\s*""#, escaped(&words.join(" "))))
            }
        };
        rules.push_str(&format!(
            "\n[[rule]]\ntoolName = {tools}\nargsPattern = '{pattern}'\ndecision = \"deny\"\npriority = 999\ndenyMessage = \"{BECAUSE}\"\n"
        ));
    }
    rules
}

/// Whether a file of rules is, byte for byte, one that [`Installer::install`](crate::Installer::install) wrote. Such a file says nothing
/// about what the user wants, and callgate denies what is in it anyway.
pub fn holds_only_own_denies(text: &str, home: &Path) -> bool {
    let home = home.to_string_lossy();
    is_made_by(gemini, text) || is_made_by(|denies| codex(denies, &home), text)
}

/// Whether a form makes this text of some of the denies.
fn is_made_by(form: impl Fn(&[HardDeny]) -> String, text: &str) -> bool {
    let header = form(&[]);
    let has = |deny: &HardDeny| {
        let alone = form(&[*deny]);
        alone.strip_prefix(&header).is_some_and(|rule| !rule.is_empty() && text.contains(rule))
    };
    let denies: Vec<HardDeny> = HARD_DENIES.iter().copied().filter(has).collect();
    form(&denies) == text
}

fn path_pattern(path: &str) -> String {
    let (name, below) = HardDeny::below_home(path);
    format!(r#""[^"]*/{}{}""#, escaped(name), if below { r#"/[^"]*"# } else { "" })
}

/// Escapes a text for a regular expression.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, character| {
        if ".*+?()[]{}|^$\\".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
        escaped
    })
}

/// OpenCode's `permission`: the name of a permission and a pattern. OpenCode compares paths relative to the project, so only
/// the end of a path can be matched.
pub(crate) fn opencode(deny: &HardDeny) -> (&'static str, String) {
    let end = |path: &str| {
        let (name, below) = HardDeny::below_home(path);
        format!("*/{name}{}", if below { "/*" } else { "" })
    };
    match deny {
        HardDeny::Read(path) => ("read", end(path)),
        HardDeny::Write(path) => ("edit", end(path)),
        HardDeny::Run(words) => ("bash", words.join(" ")),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests {
    use callgate::Gate;
    use callgate::policy::{Decision, Policy};

    use super::*;

    #[test]
    fn every_one_of_them_is_denied_by_the_bundled_policies() {
        for name in ["strict", "standard", "unattended"] {
            let gate = Gate::builder().policy(Policy::bundled(name).expect("bundled")).build();
            for deny in HARD_DENIES {
                let call = deny.call().directory("/srv/project").workspace("/srv/project");
                let decision = gate.assess(&call).expect("judged").ruling().decision;
                assert_eq!(decision, Decision::Deny, "{name}: {deny:?}");
            }
        }
    }

    #[test]
    fn own_files_are_known_by_every_byte() {
        let home = Path::new("/home/me");
        let [some, all] = [&HARD_DENIES[2..20], HARD_DENIES];
        for text in [gemini(all), gemini(some), codex(all, "/home/me"), codex(some, "/home/me")] {
            assert!(holds_only_own_denies(&text, home), "{text}");
            for changed in
                [format!("{text}\n[[rule]]\n"), text.replacen("deny", "ask", 1), text.replacen("rm", "ls", 1)]
            {
                assert!(changed == text || !holds_only_own_denies(&changed, home), "{changed}");
            }
        }
        assert!(!holds_only_own_denies("", home));
    }

    #[test]
    fn each_agent_is_told_in_its_own_words() {
        assert_eq!(claude(&HardDeny::Read("~/.gnupg/**")), "Read(~/.gnupg/**)");
        assert_eq!(claude(&HardDeny::Run(&["rm", "-rf", "~"])), "Bash(rm -rf ~)");
        assert_eq!(opencode(&HardDeny::Write("~/.config/callgate/**")), ("edit", "*/.config/callgate/*".to_owned()));
        let rules = codex(&[HardDeny::Run(&["cat", "~/.netrc"]), HardDeny::Read("~/.netrc")], "/home/me");
        assert_eq!(rules.lines().count(), 2);
        assert!(rules.contains(r#"pattern=["cat", ["~/.netrc", "/home/me/.netrc"]], decision="forbidden""#), "{rules}");
        let rules = gemini(&[HardDeny::Read("~/.aws/credentials"), HardDeny::Run(&["rm", "-rf", "~"])]);
        assert!(rules.contains(r#"argsPattern = '"[^"]*/\.aws/credentials"'"#), "{rules}");
        assert!(rules.contains(r#"argsPattern = '"command":"\s*rm -rf ~\s*"'"#), "{rules}");
        assert!(rules.parse::<toml_edit::DocumentMut>().is_ok());
    }
}
