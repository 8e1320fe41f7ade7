//! Reads parameter values, and describes parameters that are not in the table.

use serde_json::Value;

use super::collect::Collector;
use super::role::Access;
use callgate_model::show::brief;

/// The maximum nesting of an unknown parameter.
const MAXIMUM_DEPTH: usize = 128;

/// A parameter value of the wrong type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrongType;

/// The strings of a value: one, or a list of them.
pub(super) fn texts(value: &Value) -> Result<Vec<&str>, WrongType> {
    match value {
        Value::String(text) => Ok(vec![text]),
        Value::Array(items) => items.iter().map(|item| item.as_str().ok_or(WrongType)).collect(),
        _ => Err(WrongType),
    }
}

/// What a parameter seems to carry, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    Path,
    Url,
    Command,
    Nothing,
}

/// Guesses from a name what a parameter carries.
pub(super) fn likeness(name: &str) -> Likeness {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .take(100)
        .collect();
    const URL: [&str; 8] = ["url", "urls", "uri", "uris", "endpoint", "href", "webhook", "host"];
    const COMMAND: [&str; 8] = ["command", "commands", "cmd", "argv", "script", "shell", "commandline", "bash"];
    const PATH: &str =
        "path paths file files dir dirs directory directories folder folders filename filenames cwd workdir";
    const EXACT: [&str; 8] = ["root", "roots", "src", "dst", "dest", "destination", "source", "workspace"];
    if URL.iter().any(|word| plain.ends_with(word)) {
        Likeness::Url
    } else if COMMAND.iter().any(|word| plain.ends_with(word)) {
        Likeness::Command
    } else if PATH.split(' ').any(|word| plain.ends_with(word)) || EXACT.contains(&plain.as_str()) {
        Likeness::Path
    } else {
        Likeness::Nothing
    }
}

/// How parameters that are not in the table are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caution {
    /// The tool is known: a parameter whose name suggests a path or URL counts as such; any other text or switch may
    /// mean anything.
    KnownTool,
    /// Contents of a known tool: only what names suggest counts.
    Content,
    /// The tool is unknown: values that look like a path or URL count as well.
    UnknownTool,
}

/// Describes a parameter that is not in the table. Commands are collected for the caller to analyze.
pub(super) fn unknown<'v>(
    collector: &mut Collector<'_>,
    name: &'v str,
    value: &'v Value,
    caution: Caution,
    commands: &mut Vec<&'v Value>,
) {
    let mut waiting = vec![(name, value, 0_usize)];
    while let Some((name, value, depth)) = waiting.pop() {
        if collector.is_full() {
            return;
        }
        if depth > MAXIMUM_DEPTH {
            collector.opaque("a parameter is nested too deeply");
            return;
        }
        let deeper = depth.saturating_add(1);
        let like = likeness(name);
        match value {
            Value::Null | Value::Bool(false) => {}
            // A switch or a mode that nobody described may change what is permitted.
            Value::Bool(true) => {
                if caution == Caution::KnownTool {
                    collector.opaque(format!("unknown parameter `{}`", brief(name)));
                }
            }
            Value::Number(_) => {
                if matches!(like, Likeness::Path | Likeness::Command) && caution != Caution::UnknownTool {
                    collector.opaque(format!("`{}` is a number", brief(name)));
                }
            }
            Value::Array(_) if like == Likeness::Command => commands.push(value),
            Value::Array(items) => waiting.extend(items.iter().rev().map(|item| (name, item, deeper))),
            Value::Object(fields) => {
                waiting.extend(fields.iter().rev().map(|(name, value)| (name.as_str(), value, deeper)));
            }
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => {
                let because = brief(name);
                let url = text.contains("://") || text.starts_with("file:");
                let rooted = text.starts_with('/') || text.starts_with("~/") || text.starts_with("../");
                let guess = caution == Caution::UnknownTool && !text.contains('\n');
                match like {
                    Likeness::Command => commands.push(value),
                    Likeness::Path | Likeness::Url if url => collector.resource(text, &because),
                    Likeness::Path => collector.path(Access::Update, text, &because),
                    Likeness::Url if caution != Caution::UnknownTool => {
                        collector.opaque(format!("`{because}` is not a URL"));
                    }
                    Likeness::Url => {}
                    Likeness::Nothing if guess && url => collector.resource(text, &because),
                    Likeness::Nothing if guess && rooted => collector.path(Access::Update, text, &because),
                    Likeness::Nothing if caution == Caution::KnownTool => {
                        collector.opaque(format!("unknown parameter `{because}`"));
                    }
                    Likeness::Nothing => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell() {
        let cases = [
            ("path", Likeness::Path),
            ("file_path", Likeness::Path),
            ("filePaths", Likeness::Path),
            ("output-dir", Likeness::Path),
            ("cwd", Likeness::Path),
            ("uri", Likeness::Url),
            ("callbackUrl", Likeness::Url),
            ("command", Likeness::Command),
            ("shell_command", Likeness::Command),
            ("message", Likeness::Nothing),
            ("resource", Likeness::Nothing),
            ("", Likeness::Nothing),
        ];
        for (name, expected) in cases {
            assert_eq!(likeness(name), expected, "{name}");
        }
    }
}
