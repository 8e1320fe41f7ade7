//! Redis commands, one per line.

use super::CodeEffects;
use crate::lists::listed;

const READS: &str = include_str!("words/redis-reads.txt");

const WRITES: &str = include_str!("words/redis-writes.txt");

const DESTROYS: &str = include_str!("words/redis-destroys.txt");

/// Subcommands of `CONFIG`, `CLIENT`, `CLUSTER` and others that only look.
const LOOKING_SUBCOMMANDS: &str = include_str!("words/redis-looking-subcommands.txt");

/// Whether a setting, or a pattern that may mean several, is among those that hold passwords.
fn holds_password(setting: &str) -> bool {
    const SETTINGS: [&str; 4] = ["REQUIREPASS", "MASTERAUTH", "MASTERUSER", "TLS-KEY-FILE-PASS"];
    let front = setting.split(['*', '?', '[']).next().unwrap_or_default();
    SETTINGS.iter().any(|name| *name == setting || front.len() < setting.len() && name.starts_with(front))
        || setting.contains("PASS")
}

pub(super) fn read(code: &str) -> CodeEffects {
    let mut found = CodeEffects::default();
    for line in code.lines() {
        let mut words = line.split_whitespace().map(str::to_ascii_uppercase);
        let Some(first) = words.next() else { continue };
        // `redis-cli 5 GET x` repeats.
        let command =
            if first.bytes().all(|byte| byte.is_ascii_digit()) { words.next().unwrap_or_default() } else { first };
        let second = words.next().unwrap_or_default();
        let shows_passwords = match (command.as_str(), second.as_str()) {
            ("CONFIG", "GET") => words.next().is_none_or(|setting| holds_password(&setting)),
            ("ACL", "LIST" | "GETUSER") => true,
            _ => false,
        };
        if shows_passwords {
            found.doubt("shows passwords of the redis server");
            continue;
        }
        let looks = match command.as_str() {
            "CONFIG" | "CLIENT" | "SLOWLOG" | "MEMORY" | "LATENCY" | "COMMAND" | "CLUSTER" | "PUBSUB" | "MODULE"
            | "ACL" => second.is_empty() || listed(LOOKING_SUBCOMMANDS, &second),
            other => listed(READS, other),
        };
        if looks {
            continue;
        }
        if listed(DESTROYS, &command) {
            found.destroys = true;
        } else if listed(WRITES, &command) {
            found.sends = true;
        } else {
            found.doubt(format!("unknown redis command {command} {second}"));
        }
    }
    found
}
