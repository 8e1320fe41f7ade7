//! What a line of documentation says of options: `-k, --key=KEYDEF`, `--color[=WHEN]`, `--[no-]edit`.

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

/// Marks the place where a value starts in slanted type, which is how many pages show where a name ends.
pub const SLANTED: char = '\u{1}';

/// The options that one tag is about, all meaning the same. Empty if the tag is not about options.
pub fn options_of(tag: &str) -> (Vec<String>, Takes) {
    let tag = tag.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut names: Vec<String> = Vec::new();
    let mut takes = Takes::Nothing;
    let mut rest = tag.trim_start_matches(SLANTED);
    while rest.starts_with('-') {
        let Some((found, after)) = name(rest) else { break };
        let (taken, next) = value(after);
        // `-c, --check, --check=quiet`: the value may be left out.
        let again = found.iter().all(|name| names.contains(name));
        takes = if again && taken != takes { Takes::Perhaps } else { takes.max(taken) };
        names.extend(found);
        rest = next;
    }
    names.sort_by_key(|name| name.starts_with("--"));
    names.dedup();
    (names, takes)
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
    let switch = ["=true", "=false", "[=true]", "[=false]", "=true|false", "[=true|false]"];
    let takes = if spaced.is_empty() || spaced.starts_with([':', ',', ';', ')', '.']) || switch.contains(&spaced) {
        Takes::Nothing
    } else if spaced.starts_with('[') && !spaced.starts_with("[=]") || text.starts_with("(=") {
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
    let cases: &[(&str, &[&str], Takes)] = &[
        ("-k, --key=KEYDEF", &["-k", "--key"], Takes::Value),
        ("--color[=WHEN]", &["--color"], Takes::Perhaps),
        ("-A NUM, --after-context=NUM", &["-A", "--after-context"], Takes::Value),
        ("-a --ascii", &["-a", "--ascii"], Takes::Nothing),
        ("--[no-]edit", &["--edit", "--no-edit"], Takes::Nothing),
        ("-B[<n>][/<m>], --break-rewrites[=[<n>][/<m>]]", &["-B", "--break-rewrites"], Takes::Perhaps),
        ("--no-decorate, --decorate[=short|full|auto|no]", &["--no-decorate", "--decorate"], Takes::Perhaps),
        ("-in filename|uri", &["-in"], Takes::Value),
        ("--color-output / -C:", &["--color-output", "-C"], Takes::Nothing),
        ("-a, --all[=false]", &["-a", "--all"], Takes::Nothing),
        ("-c, --check, --check=quiet", &["-c", "--check"], Takes::Perhaps),
        ("-p\u{1}num  or  --strip=\u{1}num", &["-p", "--strip"], Takes::Value),
        ("--dirstat=a,b", &["--dirstat"], Takes::Value),
        ("--", &[], Takes::Nothing),
        ("-", &[], Takes::Nothing),
        ("text", &[], Takes::Nothing),
    ];
    for (tag, names, takes) in cases {
        let (found, taken) = options_of(tag);
        assert_eq!((found, taken), (names.iter().map(|name| (*name).to_owned()).collect(), *takes), "{tag}");
    }
}
