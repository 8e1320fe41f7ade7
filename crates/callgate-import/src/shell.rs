//! A small model of how agents read a command line: text, split at its operators. It is independent of callgate's own
//! analysis, so that the two can be compared.

/// The simple commands in a command line, without redirections. Substitutions and groups are commands too; text in single
/// quotes is not split.
pub(crate) fn segments(line: &str) -> Vec<String> {
    let mut segments = vec![String::new()];
    let mut quote: Option<char> = None;
    let mut characters = line.chars().peekable();
    let add = |segments: &mut Vec<String>, character: char| {
        if let Some(last) = segments.last_mut() {
            last.push(character);
        }
    };
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some('\''), '\'') => {
                quote = None;
                add(&mut segments, character);
            }
            (Some('\''), _) => add(&mut segments, character),
            (_, '\\') => {
                add(&mut segments, character);
                if let Some(next) = characters.next() {
                    add(&mut segments, next);
                }
            }
            (_, '$') if characters.peek() == Some(&'(') => {
                characters.next();
                segments.push(String::new());
            }
            (_, '`') => segments.push(String::new()),
            (Some('"'), '"') => {
                quote = None;
                add(&mut segments, character);
            }
            (Some(_), _) => add(&mut segments, character),
            (None, '\'' | '"') => {
                quote = Some(character);
                add(&mut segments, character);
            }
            // `2>&1`, `&>log`
            (None, '&') if segments.last().is_some_and(|last| last.ends_with(['<', '>'])) => {
                add(&mut segments, character)
            }
            (None, '&') if characters.peek() == Some(&'>') => {}
            (None, ';' | '|' | '&' | '\n' | '(' | ')') => segments.push(String::new()),
            (None, _) => add(&mut segments, character),
        }
    }
    segments.iter().map(|segment| without_redirections(segment.trim())).filter(|segment| !segment.is_empty()).collect()
}

/// A simple command without its redirections.
fn without_redirections(segment: &str) -> String {
    if !segment.contains(['<', '>']) {
        return segment.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut target_follows = false;
    for word in raw_words(segment) {
        if std::mem::take(&mut target_follows) {
            continue;
        }
        let operator = word.trim_start_matches(|c: char| c.is_ascii_digit());
        if operator.starts_with(['<', '>']) {
            target_follows = operator.trim_start_matches(['<', '>', '|', '&']).is_empty();
            continue;
        }
        kept.push(word);
    }
    kept.join(" ")
}

/// Words with their quotes.
fn raw_words(segment: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut quote, mut escaped) = (None, None, false);
    for (index, character) in segment.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (quote, character) {
            (None, character) if character.is_whitespace() => {
                if let Some(from) = start.take() {
                    words.extend(segment.get(from..index));
                }
                continue;
            }
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            _ => {}
        }
        start.get_or_insert(index);
    }
    if let Some(from) = start {
        words.extend(segment.get(from..));
    }
    words
}

/// The words of a simple command without their quotes.
pub(crate) fn words(segment: &str) -> Vec<String> {
    raw_words(segment).into_iter().map(unquoted).collect()
}

fn unquoted(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut quote = None;
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None | Some('"'), '\\') => text.extend(characters.next()),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            _ => text.push(character),
        }
    }
    text
}

/// A simple command without the assignments in front of it.
pub(crate) fn without_assignments(segment: &str) -> &str {
    let mut rest = segment;
    for word in raw_words(segment) {
        let name = word.split('=').next().unwrap_or_default();
        let is_assignment = word.contains('=')
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match rest.strip_prefix(word) {
            Some(after) if is_assignment => rest = after.trim_start(),
            _ => break,
        }
    }
    rest
}

/// A simple command without a leading wrapper program, its options and numbers.
pub(crate) fn peeled<'a>(segment: &'a str, wrappers: &[&str]) -> Option<&'a str> {
    let (first, mut rest) = segment.split_once(char::is_whitespace)?;
    if !wrappers.contains(&first) {
        return None;
    }
    rest = rest.trim_start();
    let mut after_option = false;
    while let Some((word, after)) = rest.split_once(char::is_whitespace) {
        let (option, number) = (word.starts_with('-'), word.starts_with(|c: char| c.is_ascii_digit()));
        if !option && !number {
            break;
        }
        rest = after.trim_start();
        // A number that is not the value of an option is the duration of `timeout`, and the command follows.
        if number && !after_option {
            break;
        }
        after_option = option;
    }
    (!rest.is_empty()).then_some(rest)
}

/// The script of `bash -c 'script'`, also with `-lc`.
pub(crate) fn shell_script(segment: &str) -> Option<String> {
    let words = words(segment);
    let (program, arguments) = words.split_first()?;
    if !matches!(program.as_str(), "bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh") {
        return None;
    }
    let takes_script = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    // The script is the first word after `-c` that is not an option.
    let rest = arguments.get(arguments.iter().position(takes_script)?..)?;
    rest.iter().find(|word| !word.starts_with('-')).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_its_operators() {
        for (line, expected) in [
            ("ls", &["ls"][..]),
            ("a && b || c; d | e & f\ng", &["a", "b", "c", "d", "e", "f", "g"]),
            ("echo 'a && b' \"c; d\"", &["echo 'a && b' \"c; d\""]),
            ("echo \"$(rm x)\" y", &["echo \"", "rm x)\" y"]),
            ("echo `rm x`", &["echo", "rm x"]),
            ("(rm x)", &["rm x"]),
            ("rm x > log 2>&1 <in", &["rm x"]),
            ("echo a\\;b", &["echo a\\;b"]),
        ] {
            assert_eq!(segments(line), expected, "{line}");
        }
    }

    #[test]
    fn fronts_are_taken_off() {
        assert_eq!(without_assignments("A=1 B='x y' rm z"), "rm z");
        assert_eq!(without_assignments("rm A=1"), "rm A=1");
        assert_eq!(peeled("timeout -s 9 5 rm x", &["timeout"]), Some("rm x"));
        assert_eq!(peeled("rm x", &["timeout"]), None);
        assert_eq!(peeled("timeout 5 --force rm x", &["timeout"]), Some("--force rm x"));
        assert_eq!(shell_script("bash -lc 'rm x'").as_deref(), Some("rm x"));
        assert_eq!(shell_script("bash -c '-x'"), None);
        assert_eq!(words("a 'b c' \"d\\\"e\" f\\ g"), ["a", "b c", "d\"e", "f g"]);
    }
}
