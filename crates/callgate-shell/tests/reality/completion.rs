//! The long options that a bash completion offers.

/// Every long option that stands in a completion, comments left out. Whether it takes a value is not said, unless it
/// is offered with `=`.
pub fn options(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut foreign = false;
    for line in source.lines().filter(|line| !line.trim_start().starts_with('#')) {
        // git svn has a table that understands none of it; functions of the completion have options of their own.
        if line.starts_with("_git") || line.starts_with("__git") {
            foreign = line.contains("_git_svn");
        }
        if foreign || line.contains("__git_complete") || line.contains("completion") {
            continue;
        }
        let separators = |character: char| character.is_whitespace() || "'\"|()`;{},".contains(character);
        for word in line.split(separators) {
            let Some(name) = word.strip_prefix("--") else { continue };
            let name = name.trim_end_matches(['=', '\\']);
            let name = name.split('=').next().unwrap_or_default();
            let plain = name.len() > 1
                && name.starts_with(|first: char| first.is_ascii_alphanumeric())
                && name.chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character));
            if plain {
                found.push(format!("--{name}"));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn offered_options_are_found() {
    let source = "# --not-this\n    case $prev in\n        --config | --cookie)\n            _filedir\n            ;;\n    esac\n    \
        COMPREPLY=($(compgen -W '--all --key= -x $(_parse_help \"$1\")' -- \"$cur\"))\n";
    assert_eq!(options(source), ["--all", "--config", "--cookie", "--key"]);
}
