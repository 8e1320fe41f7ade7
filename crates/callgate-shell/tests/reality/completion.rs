//! The long options that a bash completion offers.

/// Whether a completion is about that program alone: otherwise it does not say which option belongs to which.
pub fn is_about(source: &str, program: &str) -> bool {
    let commands = source.lines().map(str::trim).filter_map(|line| line.strip_prefix("complete "));
    commands.flat_map(|line| line.split_whitespace().skip_while(|word| !word.starts_with("-F")).skip(2)).all(|word| {
        word == program
            || word.starts_with(['-', '$', '&', '|', '\\', '"'])
            || matches!(word, "default" | "bashdefault" | "nospace" | "filenames")
    })
}

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
fn a_completion_of_several_programs_is_told() {
    assert!(is_about("complete -F _curl curl\n", "curl"));
    assert!(is_about("_x() {\n} &&\n    complete -F _x -o nospace x\n", "x"));
    assert!(!is_about("complete -F _svn svn\ncomplete -F _svnadmin svnadmin\n", "svn"));
}

#[test]
fn offered_options_are_found() {
    let source = "# --not-this\n    case $prev in\n        --config | --cookie)\n            _filedir\n            ;;\n    esac\n    \
        COMPREPLY=($(compgen -W '--all --key= -x $(_parse_help \"$1\")' -- \"$cur\"))\n";
    assert_eq!(options(source), ["--all", "--config", "--cookie", "--key"]);
}
