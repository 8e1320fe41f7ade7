//! The lines of a table, one by one.

use super::Problem;
use super::tokens::{Commas, Kind, tokens};
use super::{conditions, effects, options, roles};
use crate::programs::index::OptionIndex;
use crate::programs::table::{
    Condition, Deferred, Example, HostPlace, Level, LoadPlace, LoadedFiles, Repeat, Role, Slot, Style, Sub, Text, When,
};
use callgate_model::description::LoadMatters;
use serde::Deserialize;
use serde::de::value::BorrowedStrDeserializer;

/// A line without its indentation and comment.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) indent: usize,
    pub(super) text: &'a str,
}

/// A level that no line has been read of: it has no style yet.
pub(super) fn empty_level() -> Level {
    Level { style: Style::Custom(String::new()), ..Level::default() }
}

/// Completes a level whose lines have been read, inside a level of this style.
pub(super) fn finish(level: &mut Level, outer: &Style) {
    if level.style == Style::Custom(String::new()) {
        level.style = outer.clone();
    }
    level.index = OptionIndex::new(level);
}

/// Reads a line that is neither a subcommand nor an example.
pub(super) fn entry<'a>(line: &Line<'a>, level: &mut Level, keep: fn(&'a str) -> Text) -> Result<(), Problem> {
    if line.text.starts_with('-') {
        level.options.push(options::option(line.text, line.indent, line.number, keep)?);
        return Ok(());
    }
    let (first, rest) = line.text.split_once(' ').unwrap_or((line.text, ""));
    let keyword = first.strip_suffix(':').unwrap_or(first);
    let rest_column = line.indent + first.len() + 1;
    match keyword {
        "args" => {
            let (condition, body, column) = conditional(line, keyword, keep)?;
            level.args.push(When { condition, then: slots(body, column)? });
        }
        "none" | "does" | "warns" | "no-input" => {
            let (condition, body, column) = conditional(line, keyword, keep)?;
            let end = column + body.len();
            let then = effects::effects(&tokens(body, column, Commas::Separate)?, end)?;
            let list = match keyword {
                "none" => &mut level.none,
                "does" => &mut level.does,
                "warns" => &mut level.warns,
                _ => &mut level.no_input,
            };
            list.push(When { condition, then });
        }
        "stdin" => {
            let (condition, body, column) = conditional(line, keyword, keep)?;
            level.stdin.push(When { condition, then: one_role(body, column)? });
        }
        "stdout" => {
            let (condition, body, column) = conditional(line, keyword, keep)?;
            let unknown = || format!("unknown output `{body}`: the outputs are listed in docs/program-tables.md");
            let then = named(body).ok_or_else(|| (column, unknown()))?;
            level.stdout.push(When { condition, then });
        }
        "tree" => level.tree.push(bare_condition(rest, keep).map_err(|problem| (rest_column, problem))?),
        "style" => level.style = style(rest.trim()).map_err(|problem| (rest_column, problem))?,
        "everywhere" if rest.trim().is_empty() => level.everywhere = true,
        "everywhere" => return Err((rest_column, format!("unexpected text after `{keyword}`"))),
        "globs" if rest.trim() == "unsafe" => level.globs_unsafe = true,
        "globs" => return Err((rest_column, "write `globs unsafe`".to_owned())),
        "options" if rest.trim() == "any" => level.options_any = true,
        "value" => {
            let (name, _) = rest.split_once([' ', ':']).unwrap_or((rest, ""));
            let (condition, body, column) = conditional(line, &format!("value {name}"), keep)?;
            level.values.push((keep(name), When { condition, then: one_role(body, column)? }));
        }
        "loads" => {
            let (place, after) = rest.split_once([' ', ':']).unwrap_or((rest, ""));
            let first = after.starts_with("first:") || after.starts_with("first ");
            let head = format!("loads {place}{}", if first { " first" } else { "" });
            let (condition, body, column) = conditional(line, &head, keep)?;
            let place = named(place).ok_or_else(|| (rest_column, invalid_load(place)))?;
            let (files, matters) = loaded_files(body).ok_or_else(|| (column, invalid_load(rest)))?;
            let files = files.split_whitespace().map(keep).collect();
            level.loads.push(When { condition, then: LoadedFiles { place, files, matters, first } });
        }
        "needs" => {
            let first = rest.starts_with("first:") || rest.starts_with("first ");
            let (condition, body, column) = conditional(line, if first { "needs first" } else { keyword }, keep)?;
            let (files, matters) = loaded_files(body).ok_or_else(|| (column, invalid_load(rest)))?;
            if matters != LoadMatters::Found {
                return Err((column, invalid_load(rest)));
            }
            let files = files.split_whitespace().map(keep).collect();
            let then = LoadedFiles { place: LoadPlace::Project, files, matters: LoadMatters::Missing, first };
            level.loads.push(When { condition, then });
        }
        "heeds" => {
            level.heeds_only |= rest.starts_with("only:");
            let keyword = if rest.starts_with("only:") { "heeds only" } else { keyword };
            let (names, column) = plain_list(line, keyword)?;
            if let Some(name) = names.iter().find(|name| !is_variable(name)) {
                return Err((column, format!("invalid variable name `{name}`")));
            }
            level.heeds.extend(names.into_iter().map(keep));
        }
        "only" => level.only.extend(plain_list(line, keyword)?.0.into_iter().map(keep)),
        "hosts" => {
            let (places, column) = plain_list(line, keyword)?;
            let places = if places == ["none"] { Vec::new() } else { places };
            let places = places.into_iter().map(|place| host_place(place, keep)).collect::<Option<Vec<_>>>();
            let wrong =
                "invalid `hosts` line: write `hosts: none`, or list `args`, `arg1`, options and hosts of the service";
            level.hosts = Some(places.ok_or_else(|| (column, wrong.to_owned()))?);
        }
        "git" => {
            let (task, condition) = rest.split_once(' ').unwrap_or((rest, ""));
            let unknown = || format!("unknown task `{task}`: the tasks are listed in docs/program-tables.md");
            let then = named(task).ok_or_else(|| (rest_column, unknown()))?;
            let condition = bare_condition(condition, keep).map_err(|problem| (rest_column, problem))?;
            level.git.push(When { condition, then });
        }
        "elsewhere" => level.elsewhere = Some(rest.trim().trim_matches('"').to_owned()),
        _ => match named(keyword) {
            Some(then) => {
                let condition = bare_condition(rest, keep).map_err(|problem| (rest_column, problem))?;
                level.traits.push(When { condition, then });
            }
            None => level.options.push(options::option(line.text, line.indent, line.number, keep)?),
        },
    }
    Ok(())
}

/// Reads what stands behind `sub`.
pub(super) fn sub<'a>(text: &'a str, line: usize, keep: fn(&'a str) -> Text) -> Result<Sub, String> {
    let (names, description) = text.split_once(':').ok_or_else(|| missing_colon("sub"))?;
    let mut names: Vec<&str> = names.split_whitespace().collect();
    let again = names.len() > 1 && names.last() == Some(&"again");
    if again {
        names.pop();
    }
    Ok(Sub {
        globs: names.iter().any(|name| name.contains(['*', '?', '['])),
        names: names.into_iter().map(keep).collect(),
        again,
        description: keep(description.trim()),
        line,
        level: Deferred::default(),
    })
}

/// The words of a line without condition: `KEYWORD: WORDS`, at least one.
fn plain_list<'a>(line: &Line<'a>, keyword: &str) -> Result<(Vec<&'a str>, usize), Problem> {
    let colon = || (line.indent, missing_colon(keyword));
    let words = line.text.strip_prefix(keyword).and_then(|rest| rest.strip_prefix(':')).ok_or_else(colon)?;
    let words: Vec<&str> = words.split_whitespace().collect();
    if words.is_empty() { Err(colon()) } else { Ok((words, line.indent + keyword.len() + 2)) }
}

/// The name of a variable, possibly a glob (`GIT_*`).
fn is_variable(name: &str) -> bool {
    let part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '*');
    name.chars().all(part) && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// `FILES`, `FILES except KEYS` or `FILES with WORDS`; `None` if that is not what it is.
fn loaded_files(body: &str) -> Option<(&str, LoadMatters)> {
    let owned = |words: &str| words.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (files, words, matters) = match (body.split_once(" except "), body.split_once(" with ")) {
        (Some((files, keys)), None) => (files, owned(keys), LoadMatters::SetsOther as fn(_) -> _),
        (None, Some((files, words))) => (files, owned(words), LoadMatters::Contains as fn(_) -> _),
        (None, None) => return is_relative(body).then_some((body, LoadMatters::Found)),
        (Some(_), Some(_)) => return None,
    };
    (is_relative(files) && !words.is_empty()).then(|| (files, matters(words)))
}

/// Names of files relative to a directory, at least one.
fn is_relative(files: &str) -> bool {
    let is_file = |file: &str| !file.starts_with(['/', '~']) && !matches!(file, "except" | "with");
    !files.trim().is_empty() && files.split_whitespace().all(is_file)
}

/// `args`, `arg2`, an option, or a host.
fn host_place<'a>(place: &'a str, keep: fn(&'a str) -> Text) -> Option<HostPlace> {
    match place.strip_prefix("arg") {
        _ if place.contains('.') && !place.starts_with('-') => Some(HostPlace::Own(keep(place))),
        Some("s") => Some(HostPlace::Operands),
        Some(number) => number.parse().ok().filter(|number| *number > 0).map(HostPlace::Operand),
        None => place.starts_with('-').then(|| HostPlace::Option(keep(place))),
    }
}

/// The variant of this name.
pub(super) fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    T::deserialize(BorrowedStrDeserializer::<serde::de::value::Error>::new(name)).ok()
}

/// Reads `[if CONDITION]` behind a keyword that says all.
fn bare_condition<'a>(rest: &'a str, keep: fn(&'a str) -> Text) -> Result<Condition, String> {
    match rest.trim().split_once(' ') {
        None if rest.trim().is_empty() => Ok(Condition::default()),
        Some(("if", text)) => conditions::condition(text.trim_end_matches(':'), keep),
        _ => Err(expected_if(rest)),
    }
}

/// Cuts `KEYWORD [if CONDITION]: BODY`.
fn conditional<'a>(
    line: &Line<'a>,
    keyword: &str,
    keep: fn(&'a str) -> Text,
) -> Result<(Condition, &'a str, usize), Problem> {
    let after = line.text.get(keyword.len()..).unwrap_or_default();
    let colon = if after.starts_with(':') { Some(0) } else { after.find(": ") }
        .or_else(|| after.ends_with(':').then(|| after.len() - 1))
        .ok_or_else(|| (line.indent, missing_colon(keyword)))?;
    let head = after.get(..colon).unwrap_or_default().trim();
    let tail = after.get(colon + 1..).unwrap_or_default();
    let body = tail.trim();
    let column = line.indent + keyword.len() + colon + 1 + (tail.len() - tail.trim_start().len());
    let place = line.indent + keyword.len() + 1;
    let condition = match head.split_once(' ') {
        None if head.is_empty() => Condition::default(),
        Some(("if", text)) => conditions::condition(text, keep).map_err(|problem| (place, problem))?,
        _ => return Err((place, expected_if(head))),
    };
    Ok((condition, body, column))
}

/// The role of a line that has one.
fn one_role(body: &str, column: usize) -> Result<Role, Problem> {
    let mut slots = slots(body, column)?;
    match (slots.pop(), slots.pop()) {
        (Some(slot), None) => Ok(slot.role),
        _ => Err((column, not_a_role(body))),
    }
}

fn slots(body: &str, column: usize) -> Result<Vec<Slot>, Problem> {
    let mut found: Vec<Slot> = Vec::new();
    for token in tokens(body, column, Commas::Literal)? {
        let (text, repeat) = match token.kind {
            Kind::Angle(text, None) => (text, Repeat::Once),
            Kind::Angle(text, Some('*')) => (text, Repeat::Any),
            Kind::Angle(text, Some('+')) => (text, Repeat::Some),
            Kind::Angle(text, Some(_)) | Kind::Optional(text) => (text, Repeat::Optional),
            other => return Err((token.column, not_a_role(&other.shown()))),
        };
        let role = roles::role(text).map_err(|problem| (token.column, problem))?;
        if found.iter().any(|slot| slot.role.takes_rest()) {
            let wrong = "`<command>` takes all words that follow, so it must be the last role";
            return Err((token.column, wrong.to_owned()));
        }
        let repeats = |repeat| matches!(repeat, Repeat::Any | Repeat::Some);
        let is_command = role.takes_rest();
        if repeats(repeat) && !is_command && found.iter().any(|slot| repeats(slot.repeat)) {
            return Err((token.column, "only one role of an `args` line can repeat".to_owned()));
        }
        found.push(Slot { role, repeat });
    }
    Ok(found)
}

fn style(text: &str) -> Result<Style, String> {
    match text.split_once(' ') {
        Some(("custom", name)) => Ok(Style::Custom(name.trim().to_owned())),
        _ => named(text).ok_or_else(|| unknown_style(text)),
    }
}

pub(in crate::programs) fn unknown_style(style: &str) -> String {
    format!(
        "unknown style `{style}`: write gnu, posix, long, long-first, single, single-first, tar, none or custom NAME"
    )
}

fn missing_colon(keyword: &str) -> String {
    format!("missing colon after `{keyword}`: write `{keyword}: …` or `{keyword} if CONDITION: …`")
}

fn expected_if(text: &str) -> String {
    format!("unexpected `{text}`: write `if CONDITION` or a colon")
}

fn not_a_role(text: &str) -> String {
    format!("`{text}` is not a role: write roles in angle brackets, like `<text>` or `<read>*`")
}

fn invalid_load(text: &str) -> String {
    format!(
        "invalid `loads {text}`: write `loads project: FILES`, `loads home: FILES` or `loads system: FILES`, relative to that directory, \
         with `except KEYS` or `with WORDS` behind them"
    )
}

/// The kinds of text that a table is made from.
const SOURCES: [&str; 4] = ["manual", "--help", "completion", "source"];

/// Whether this is what stands behind `from`: `PROGRAM VERSION: SOURCES`. It is there for readers.
pub(super) fn is_source(text: &str) -> bool {
    text.split_once(": ").is_some_and(|(version, read)| {
        version.split_whitespace().count() == 2 && read.split(", ").all(|source| SOURCES.contains(&source))
    })
}

/// Reads what stands behind `example`.
pub(super) fn example(line: &Line<'_>, text: &str, column: usize) -> Result<Example, Problem> {
    let wrong = || (column, "invalid example: write `example COMMAND => EFFECTS`".to_owned());
    let arrow = text.rfind(" =>").ok_or_else(wrong)?;
    let command = text.get(..arrow).unwrap_or_default().trim();
    let after = arrow + " =>".len();
    let effects_text = text.get(after..).unwrap_or_default();
    if command.is_empty() || !(effects_text.is_empty() || effects_text.starts_with(' ')) {
        return Err(wrong());
    }
    let cut = tokens(effects_text, column + after, Commas::Separate)?;
    let expected = effects::effects(&cut, column + text.len())?;
    Ok(Example { line: line.number, command: command.to_owned(), expected })
}
