//! Text typed into a running program.

use super::Description;
use super::shell::dialect_of;

/// Text that a call types into a running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedInput {
    /// The program's id, as the tool that started it says.
    pub exec: String,
    /// The text.
    pub text: String,
}

impl TypedInput {
    /// Whether it consists of complete lines of printable text, so that a shell runs exactly the commands it shows: no control
    /// characters that edit or complete, no partial line, no line continuation.
    pub fn is_whole(&self) -> bool {
        let Some(lines) = self.text.strip_suffix('\n') else { return false };
        !lines.ends_with('\\') && lines.chars().all(|character| character == '\n' || !character.is_control())
    }
}

/// Whether a call only starts a shell that reads its commands from its input.
pub fn is_interactive_shell(description: &Description) -> bool {
    const HARMLESS: [&str; 5] = ["-i", "-l", "--login", "--norc", "--noprofile"];
    let [part] = description.parts.as_slice() else { return false };
    part.is_bare()
        && part.known_words().is_some_and(|words| match words.as_slice() {
            [shell, options @ ..] => {
                dialect_of(shell).is_some() && options.iter().all(|option| HARMLESS.contains(option))
            }
            [] => false,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::describe::{CallContext, Registry};
    use callgate_model::call::Call;

    #[test]
    fn only_whole_printable_lines_are_what_they_show() {
        let whole = |text: &str| TypedInput { exec: "1".into(), text: text.into() }.is_whole();
        for text in ["ls\n", "ls\npwd\n", "\n", "echo 'ä'\n"] {
            assert!(whole(text), "{text:?}");
        }
        for text in ["", "ls", "ls \\\n", "ls\r\n", "l\ts\n", "\u{3}\n", "ls\n\u{1b}[A", "ls\0\n", "rm \u{7f}\n"] {
            assert!(!whole(text), "{text:?}");
        }
    }

    #[test]
    fn a_shell_that_is_given_a_script_or_stands_elsewhere_is_none() {
        let interactive = |command: &str| {
            let call = Call::new("exec_command", json!({"cmd": command})).directory("/ws");
            let context = CallContext { directory: Some("/ws".into()), ..CallContext::default() };
            is_interactive_shell(&Registry::default().describe(&call, &context).unwrap().description)
        };
        for command in ["bash", "sh -i", "/bin/bash --norc -l"] {
            assert!(interactive(command), "{command}");
        }
        for command in [
            "bash x.sh",
            "bash -c ls",
            "python",
            "bash; ls",
            "sudo bash",
            "ssh host bash",
            "$SHELL",
            "bash < x",
            "BASH_ENV=x bash",
            "env A=1 bash",
            "bash -s x",
        ] {
            assert!(!interactive(command), "{command}");
        }
    }

    #[test]
    fn the_tools_that_type_say_into_what() {
        let typed = |tool: &str, input: serde_json::Value| Registry::default().typed_input(&Call::new(tool, input));
        let expected = Some(TypedInput { exec: "7".into(), text: "ls\n".into() });
        assert_eq!(typed("write_stdin", json!({"session_id": 7, "chars": "ls\n"})), expected);
        assert_eq!(typed("write_bash", json!({"sessionId": "7", "input": "ls\n"})), expected);
        assert_eq!(typed("write_shell", json!({"shellId": "7", "text": "ls\n"})), expected);
        for (tool, input) in [
            ("write_stdin", json!({"chars": "ls\n"})),
            ("write_stdin", json!({"session_id": 7})),
            ("write_stdin", json!({"session_id": 7, "sessionId": 8, "chars": "ls\n"})),
            ("write_stdin", json!({"session_id": 7, "chars": "ls\n", "input": "rm x\n"})),
            ("write_stdin", json!({"session_id": [7], "chars": "ls\n"})),
            ("mcp__evil__write_stdin", json!({"session_id": 7, "chars": "ls\n"})),
            ("Bash", json!({"session_id": 7, "command": "ls"})),
        ] {
            assert_eq!(typed(tool, input.clone()), None, "{tool} {input}");
        }
    }
}
