//! Commands of `vim -c`.

use super::CodeEffects;
use crate::cursor::Cursor;
use crate::lists::listed;

const HARMLESS: &str = include_str!("words/vim-harmless.txt");

const SETTINGS: &str = include_str!("words/vim-settings.txt");

pub(super) fn read(code: &str) -> CodeEffects {
    let mut found = CodeEffects::default();
    for command in code.split('\n') {
        if !is_harmless(command.trim().trim_start_matches(':')) {
            found.doubt("unknown vim command");
        }
    }
    found
}

fn is_harmless(command: &str) -> bool {
    let harmless = matches!(command, "syntax on" | "syntax off" | "sort u") || listed(HARMLESS, command);
    if harmless || command.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    if let Some(setting) = command.strip_prefix("set ") {
        let name = setting.split(['=', '!', '?']).next().unwrap_or_default();
        return listed(SETTINGS, name) || name.strip_prefix("no").is_some_and(|name| listed(SETTINGS, name));
    }
    substitution(command).is_some()
}

/// `%s/a/b/g`, without an expression and without another command after it.
fn substitution(command: &str) -> Option<()> {
    let rest = command
        .trim_start_matches(|character: char| matches!(character, '%' | ',' | '$' | '.') || character.is_ascii_digit());
    let mut cursor = Cursor::new(rest.strip_prefix('s')?);
    let delimiter = cursor.next().filter(|delimiter| matches!(delimiter, '/' | '#' | ',' | '@'))?;
    cursor.until(delimiter)?;
    let replacement = cursor.until(delimiter)?;
    let flags = cursor.line();
    let plain =
        !replacement.starts_with("\\=") && flags.chars().all(|flag| matches!(flag, 'g' | 'i' | 'I' | 'e' | 'c' | 'n'));
    plain.then_some(())
}
