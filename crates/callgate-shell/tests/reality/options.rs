//! What a line of documentation says of options: `-k, --key=KEYDEF`, `--color[=WHEN]`, `--[no-]edit`.

use std::collections::BTreeSet;

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Takes {
    /// It is a flag.
    Nothing,
    /// A value may follow.
    Perhaps,
    /// A value must follow.
    Value,
}

/// An option, and whether it takes a value: `None` where that is not said.
pub type Stated = (String, Option<Takes>);

/// Marks the place where a value starts in slanted type, which is how many pages show where a name ends.
pub const SLANTED: char = '\u{1}';

/// The options that one tag is about, and whether each takes a value: `None` where the tag does not say it of that name.
/// Empty if the tag is not about options.
pub fn options_of(tag: &str) -> Vec<Stated> {
    let tag = tag.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: Vec<(String, Takes)> = Vec::new();
    let mut rest = tag.trim_start_matches(SLANTED);
    while rest.starts_with('-') {
        let Some((names, after)) = name(rest) else { break };
        let (takes, next) = value(after);
        shown.extend(names.into_iter().map(|name| (name, takes)));
        rest = next;
    }
    let most = shown.iter().map(|(_, takes)| *takes).max();
    let long: BTreeSet<&String> = shown.iter().map(|(name, _)| name).filter(|name| name.starts_with("--")).collect();
    let mut options: Vec<Stated> = Vec::new();
    for (name, takes) in &shown {
        let again: Vec<Takes> = shown.iter().filter(|(other, _)| other == name).map(|(_, takes)| *takes).collect();
        let takes = if again.iter().any(|other| other != takes) {
            // `--check, --check=quiet`: the value may be left out.
            Some(Takes::Perhaps)
        } else if Some(*takes) == most {
            most
        } else if long.len() == 1
            && shown.iter().all(|(other, _)| other == name || !long.contains(name) || !long.contains(other))
        {
            // `-k, --key=KEYDEF`: what is said of the long name holds for the short one, unless that one is ambiguous.
            let ambiguous = shown.iter().filter(|(other, _)| long.contains(other)).count() > 1;
            most.filter(|_| !ambiguous)
        } else {
            None
        };
        if !options.iter().any(|(other, _)| other == name) {
            options.push((name.clone(), takes));
        }
    }
    options
}

/// The name at the front, both of them for `--[no-]name`, and what follows.
fn name(text: &str) -> Option<(Vec<String>, &str)> {
    let dashes = text.chars().take_while(|character| *character == '-').count();
    if dashes > 2 {
        return None;
    }
    let (front, rest) = text.split_at(dashes);
    let (negation, rest) = ["[no-]", "(no-)", "[no]", "{no-}"]
        .iter()
        .find_map(|form| rest.strip_prefix(form).map(|rest| (Some(if *form == "[no]" { "no" } else { "no-" }), rest)))
        .unwrap_or((None, rest));
    let part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '+');
    let mut end = rest.find(|character: char| !part(character)).unwrap_or(rest.len());
    while rest[..end].ends_with(['.', '-']) {
        end -= 1;
    }
    if end == 0 && dashes == 1 && rest.starts_with(['?', '@', '#', '!', '$', '~', '%', ':']) {
        end = 1;
    }
    if end == 0 {
        return None;
    }
    let (name, rest) = rest.split_at(end);
    let mut names = vec![format!("{front}{name}")];
    names.extend(negation.map(|negation| format!("{front}{negation}{name}")));
    Some((names, rest))
}

/// Whether what follows a name is a value, and where the next name starts.
fn value(text: &str) -> (Takes, &str) {
    let next = ["", ", ", ",", " ", " | ", "|", " or ", " / ", "/", ": ", "; "]
        .iter()
        .filter_map(|separator| text.strip_prefix(separator))
        .map(|rest| rest.trim_start_matches(SLANTED))
        .find(|rest| rest.starts_with('-'));
    if let Some(next) = next {
        return (Takes::Nothing, next);
    }
    let spaced = text.trim_start();
    let spaced = spaced.trim_start_matches(SLANTED);
    let value = spaced.replace(SLANTED, "");
    let switch = ["=true", "=false", "[=true]", "[=false]", "=true|false", "[=true|false]", "=true|false]"];
    let takes =
        if spaced.is_empty() || spaced.starts_with([':', ',', ';', ')', '.']) || switch.contains(&value.as_str()) {
            Takes::Nothing
        } else if spaced.starts_with('[') && !["[=]", "[=[]]", "[=[["].iter().any(|form| value.starts_with(form))
            || text.starts_with("(=")
        {
            Takes::Perhaps
        } else if text.starts_with(['=', '<', ' ', '[', '{', '"', '\'', ':', SLANTED]) {
            Takes::Value
        } else {
            Takes::Nothing
        };
    // The value itself may hold commas and dashes: the next name starts behind a separator and with a dash.
    let mut depth = 0_usize;
    for (place, character) in text.char_indices() {
        match character {
            '[' | '<' | '{' | '(' => depth += 1,
            ']' | '>' | '}' | ')' => depth = depth.saturating_sub(1),
            ',' | ' ' | '|' | '/' if depth == 0 => {
                let rest = text[place..].trim_start_matches([',', ' ', '|', '/', SLANTED]);
                let rest = rest.strip_prefix("or ").unwrap_or(rest);
                if rest.len() > 1 && rest.starts_with('-') && !rest.starts_with("- ") {
                    return (takes, rest);
                }
            }
            _ => {}
        }
    }
    (takes, "")
}

#[test]
fn tags_are_understood() {
    let (nothing, perhaps, value) = (Some(Takes::Nothing), Some(Takes::Perhaps), Some(Takes::Value));
    type Expected<'a> = &'a [(&'a str, Option<Takes>)];
    let cases: &[(&str, Expected<'_>)] = &[
        ("-k, --key=KEYDEF", &[("-k", value), ("--key", value)]),
        ("--color[=WHEN]", &[("--color", perhaps)]),
        ("-A NUM, --after-context=NUM", &[("-A", value), ("--after-context", value)]),
        ("-a --ascii", &[("-a", nothing), ("--ascii", nothing)]),
        ("--[no-]edit", &[("--edit", nothing), ("--no-edit", nothing)]),
        ("-B[<n>][/<m>], --break-rewrites[=[<n>][/<m>]]", &[("-B", perhaps), ("--break-rewrites", perhaps)]),
        ("--no-decorate, --decorate[=short|full]", &[("--no-decorate", None), ("--decorate", perhaps)]),
        ("--diff-merges=combined, -c", &[("--diff-merges", value), ("-c", value)]),
        ("-in filename|uri", &[("-in", value)]),
        ("--color-output / -C:", &[("--color-output", nothing), ("-C", nothing)]),
        ("-a, --all[=false]", &[("-a", nothing), ("--all", nothing)]),
        ("-c, --check, --check=quiet", &[("-c", None), ("--check", perhaps)]),
        ("-p\u{1}num  or  --strip=\u{1}num", &[("-p", value), ("--strip", value)]),
        ("--rm=\u{1}true|\u{1}false", &[("--rm", nothing)]),
        ("--add-host[=[]]", &[("--add-host", value)]),
        ("--dirstat=a,b", &[("--dirstat", value)]),
        ("--", &[]),
        ("-", &[]),
        ("text", &[]),
    ];
    for (tag, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|(name, takes)| ((*name).to_owned(), *takes)).collect();
        assert_eq!(options_of(tag), expected, "{tag}");
    }
}
