//! Finds commands that wait for input which no gate sees.
//!
//! Some agents keep a command running and type into it later without asking the gate. Allowing `bash`, harmless while nothing
//! is on its standard input, would then allow everything.

use std::collections::BTreeMap;

use callgate_model::effect::Action;
use callgate_model::word::Word;
use callgate_shell::programs::Programs;
use callgate_shell::programs::table::ProgramTrait;
use callgate_shell::stream::Stream;
use callgate_shell::{Analysis, Dialect, Limits, ShellContext, SimpleCommand, analyze_with_input};

/// The longest command that is analyzed. A longer one counts as waiting for input.
const MAXIMUM_COMMAND: usize = 256 * 1024;

/// The program of a command that would act on text typed into it later; `None` if there is none. A command that is doubtful
/// without any input (`cat | bash`) is left to the policy.
///
/// ```
/// use callgate::describe::typed_into;
///
/// assert_eq!(typed_into("cd /srv && python3").as_deref(), Some("python3"));
/// assert_eq!(typed_into("python3 build.py < /dev/null"), None);
/// ```
pub fn typed_into(command: &str) -> Option<String> {
    if command.len() > MAXIMUM_COMMAND {
        return Some("a very long command".to_owned());
    }
    let typed = analysis(command, &Stream::Unknown);
    let listening = typed.commands.iter().find(|command| takes_commands(command)).map(name);
    // nearly every command ends here
    if listening.is_some() || typed.commands.iter().all(|command| doubts(command) == 0) {
        return listening;
    }
    // a command that becomes doubtful with unknown input is one that listens
    let alone = analysis(command, &Stream::Unconnected);
    let (before, after) = (doubts_by_place(&alone), doubts_by_place(&typed));
    let place = after.iter().find(|(place, count)| before.get(place).is_none_or(|before| before < count))?.0;
    typed
        .commands
        .iter()
        .find(|command| doubts(command) > 0 && (command.span.start, command.span.end) == *place)
        .map(name)
}

/// The number of opaque effects at each place of the command.
fn doubts_by_place(analysis: &Analysis) -> BTreeMap<(usize, usize), usize> {
    let mut places = BTreeMap::new();
    for command in analysis.commands.iter().filter(|command| doubts(command) > 0) {
        let count: &mut usize = places.entry((command.span.start, command.span.end)).or_default();
        *count = count.saturating_add(doubts(command));
    }
    places
}

fn analysis(command: &str, input: &Stream) -> Analysis {
    let variables = BTreeMap::new();
    let context = ShellContext {
        directory: None,
        home: None,
        variables: &variables,
        programs: Programs::bundled(),
        dialect: Dialect::Bash,
        limits: Limits::default(),
        state: None,
    };
    analyze_with_input(command, &context, input)
}

fn doubts(command: &SimpleCommand) -> usize {
    command.effects.iter().filter(|effect| effect.action == Action::Opaque).count()
}

/// Whether a program reads commands from its terminal, whatever its standard input is.
fn takes_commands(command: &SimpleCommand) -> bool {
    Programs::bundled().has_trait(&command.words, ProgramTrait::Interactive)
}

/// The program's name without its directory.
fn name(command: &SimpleCommand) -> String {
    let program = command.words.first().and_then(Word::known).and_then(|word| word.rsplit('/').next());
    program.unwrap_or("a command").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_waits_for_more_is_named() {
        let cases = [
            ("bash", "bash"),
            ("sh -i", "sh"),
            ("bash -l", "bash"),
            ("/bin/bash --norc", "bash"),
            ("zsh", "zsh"),
            ("python3", "python3"),
            ("python3 -", "python3"),
            ("python3 -i", "python3"),
            ("node", "node"),
            ("perl", "perl"),
            ("irb", "irb"),
            ("psql", "psql"),
            ("mysql -u root shop", "mysql"),
            ("sqlite3 x.db", "sqlite3"),
            ("ssh build.example", "ssh"),
            ("env FOO=1 bash", "bash"),
            ("exec bash", "exec"),
            ("cd /srv && python3", "python3"),
            ("true; sh", "sh"),
            ("(bash)", "bash"),
            ("if true; then bash; fi", "bash"),
            ("x=$(bash)", "bash"),
            ("cat <(sh)", "sh"),
            ("nohup bash", "bash"),
            ("bash -c python3", "python3"),
            ("less notes.md", "less"),
            ("man ls", "man"),
            ("vim notes.md", "vim"),
            ("git log | less", "less"),
            ("tmux", "tmux"),
            ("systemctl status ssh", "systemctl"),
            ("awk -f -", "awk"),
            ("docker exec -it web bash", "bash"),
        ];
        let wrong: Vec<_> = cases
            .into_iter()
            .map(|(command, expected)| (command, Some(expected.to_owned()), typed_into(command)))
            .filter(|(_, expected, found)| expected != found)
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn a_program_that_has_been_told_everything_is_not() {
        let cases = [
            "ls -la",
            "git status",
            "git log --oneline -5",
            "cargo test",
            "npm test",
            "make -j8 all",
            "cat notes.md",
            "cat",
            "grep -rn todo src",
            "rg todo",
            "sed -n 1,20p notes.md",
            "jq .name package.json",
            "sort",
            "tee out.txt",
            "bash build.sh",
            "bash -c 'ls; pwd'",
            "bash < /dev/null",
            "python3 -c 'print(1)'",
            "python3 build.py",
            "python3 -m pytest",
            "python3 <<'EOF'\nprint(1)\nEOF",
            "echo 'print(1)' | python3",
            "node build.js",
            "psql -c 'select 1'",
            "psql --command='select 1'",
            "sqlite3 x.db 'select 1'",
            "ssh build.example uptime",
            "bash --version",
            "less --version",
            "journalctl --no-pager -n 20",
            "bat --paging=never notes.md",
            "find src -name '*.rs' | xargs wc -l",
            "cat > notes.md <<'EOF'\nhello\nEOF",
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF",
            "docker compose up -d",
            "curl -s https://example.com",
            "echo bash",
            "which python3",
        ];
        let wrong: Vec<_> = cases.into_iter().filter_map(|command| Some((command, typed_into(command)?))).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
