//! Reading the text of tables: lines and blocks.

mod conditions;
mod effects;
mod error;
mod options;
mod roles;
mod tokens;

#[cfg(test)]
mod tests;

pub use error::{TableError, TableProblem};

use super::table::{Atom, Condition, Example, Level, Output, Repeat, Slot, Style, Sub, Table, When};
use tokens::{Commas, Kind, tokens};

/// How deep subcommands may be nested.
const MAX_DEPTH: usize = 8;

/// Reads all tables of a text. `first_line` is the number of its first line.
pub fn parse(text: &str, origin: &str, first_line: usize) -> (Vec<Table>, Vec<TableError>) {
    let mut reader = Reader { origin, lines: Vec::new(), position: 0, errors: Vec::new(), examples: Vec::new() };
    for (index, raw) in text.lines().enumerate() {
        reader.take_line(raw, first_line + index);
    }
    let mut tables = Vec::new();
    while let Some(line) = reader.lines.get(reader.position).copied() {
        reader.position += 1;
        if line.indent != 0 {
            reader.report(&line, line.indent, TableProblem::Indent { found: line.indent, expected: 0 });
            continue;
        }
        let (names, description) = match line.text.split_once(':') {
            Some((names, description)) if !names.trim().is_empty() => (names, description.trim()),
            _ => {
                reader.report(&line, 0, TableProblem::Header);
                ("", "")
            }
        };
        let mut level = reader.level(2);
        reader.settle(&mut level, &Style::Gnu, &mut Vec::new());
        tables.push(Table {
            names: names.split_whitespace().map(str::to_owned).collect(),
            description: description.to_owned(),
            origin: origin.to_owned(),
            line: line.number,
            level,
            examples: std::mem::take(&mut reader.examples),
        });
    }
    (tables, reader.errors)
}

#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

struct Reader<'a> {
    origin: &'a str,
    lines: Vec<Line<'a>>,
    position: usize,
    errors: Vec<TableError>,
    examples: Vec<Example>,
}

impl<'a> Reader<'a> {
    fn report(&mut self, line: &Line<'_>, column: usize, problem: TableProblem) {
        self.errors.push(TableError { origin: self.origin.to_owned(), line: line.number, column: column + 1, problem });
    }

    fn take_line(&mut self, raw: &'a str, number: usize) {
        let without_indent = raw.trim_start_matches(' ');
        let line = Line { number, indent: raw.len() - without_indent.len(), text: without_comment(without_indent) };
        if line.text.is_empty() {
            return;
        }
        if line.text.starts_with('\t') {
            self.report(&line, line.indent, TableProblem::Tab);
        } else if line.indent % 2 == 1 {
            self.report(&line, line.indent, TableProblem::OddIndent(line.indent));
        } else {
            self.lines.push(line);
        }
    }

    /// Reads the lines that are indented by `indent`.
    fn level(&mut self, indent: usize) -> Level {
        let mut level = Level { style: Style::Custom(String::new()), ..Level::default() };
        while let Some(line) = self.lines.get(self.position).copied() {
            if line.indent < indent {
                break;
            }
            self.position += 1;
            if line.indent > indent {
                self.report(&line, line.indent, TableProblem::Indent { found: line.indent, expected: indent });
            } else if let Err((column, problem)) = self.line(&line, &mut level) {
                self.report(&line, column, problem);
            }
        }
        level
    }

    fn line(&mut self, line: &Line<'a>, level: &mut Level) -> Result<(), (usize, TableProblem)> {
        let (first, rest) = line.text.split_once(' ').unwrap_or((line.text, ""));
        let keyword = first.strip_suffix(':').unwrap_or(first);
        let rest_column = line.indent + first.len() + 1;
        match keyword {
            "args" => {
                let (condition, body, column) = conditional(line, keyword)?;
                level.args.push(When { condition, then: slots(body, column)? });
            }
            "none" | "does" => {
                let (condition, body, column) = conditional(line, keyword)?;
                let end = column + body.len();
                let then = effects::effects(&tokens(body, column, Commas::Separate)?, end)?;
                let list = if keyword == "none" { &mut level.none } else { &mut level.does };
                list.push(When { condition, then });
            }
            "stdin" => {
                let (condition, body, column) = conditional(line, keyword)?;
                let mut slots = slots(body, column)?;
                match (slots.pop(), slots.pop()) {
                    (Some(slot), None) => level.stdin.push(When { condition, then: slot.role }),
                    _ => return Err((column, TableProblem::NotARole(body.to_owned()))),
                }
            }
            "stdout" => {
                let (condition, body, column) = conditional(line, keyword)?;
                let then = match body {
                    "names" => Output::Names,
                    "entries" => Output::Entries,
                    "same" => Output::Same,
                    "directory" => Output::Directory,
                    "program" => Output::Program,
                    "word" => Output::Word,
                    "number" => Output::Number,
                    "numbers" => Output::Numbers,
                    "data" => Output::Data,
                    "fetched" => Output::Fetched,
                    "unknown" => Output::Unknown,
                    _ => return Err((column, TableProblem::Output(body.to_owned()))),
                };
                level.stdout.push(When { condition, then });
            }
            "tree" => level.tree.push(match rest.trim().split_once(' ') {
                None if rest.trim().is_empty() => Condition::default(),
                Some(("if", text)) => {
                    conditions::condition(text.trim_end_matches(':')).map_err(|problem| (rest_column, problem))?
                }
                _ => return Err((rest_column, TableProblem::ExpectedIf(rest.to_owned()))),
            }),
            "style" => level.style = style(rest.trim()).map_err(|problem| (rest_column, problem))?,
            "everywhere" if rest.trim().is_empty() => level.everywhere = true,
            "everywhere" => return Err((rest_column, TableProblem::Trailing(keyword.to_owned()))),
            "globs" if rest.trim() == "unsafe" => level.globs_unsafe = true,
            "globs" => return Err((rest_column, TableProblem::Globs)),
            "options" if rest.trim() == "any" => level.options_any = true,
            "value" => {
                let (name, _) = rest.split_once([' ', ':']).unwrap_or((rest, ""));
                let (condition, body, column) = conditional(line, &format!("value {name}"))?;
                let mut slots = slots(body, column)?;
                match (slots.pop(), slots.pop()) {
                    (Some(slot), None) => level.values.push((name.to_owned(), When { condition, then: slot.role })),
                    _ => return Err((column, TableProblem::NotARole(body.to_owned()))),
                }
            }
            "elsewhere" => level.elsewhere = Some(rest.trim().trim_matches('"').to_owned()),
            "example" => self.examples.push(example(line, rest, rest_column)?),
            "sub" => {
                let (names, description) =
                    rest.split_once(':').ok_or((rest_column, TableProblem::Colon("sub".to_owned())))?;
                let indent = line.indent + 2;
                let inner = self.level(indent);
                if indent > 2 * MAX_DEPTH {
                    return Err((rest_column, TableProblem::TooDeep(MAX_DEPTH)));
                }
                let mut names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
                let again = names.len() > 1 && names.last().is_some_and(|last| last == "again");
                if again {
                    names.pop();
                }
                level.subs.push(Sub {
                    names,
                    again,
                    description: description.trim().to_owned(),
                    line: line.number,
                    level: inner,
                });
            }
            _ => {
                let form = options::option(line.text, line.indent, line.number)?;
                for name in &form.names {
                    if level.options.iter().any(|other| other.names.contains(name)) {
                        return Err((line.indent, TableProblem::TwiceOption(name.clone())));
                    }
                }
                level.options.push(form);
            }
        }
        Ok(())
    }

    /// Hands styles down and checks that conditions name options that exist.
    fn settle(&mut self, level: &mut Level, style: &Style, outer: &mut Vec<String>) {
        if level.style == Style::Custom(String::new()) {
            level.style = style.clone();
        }
        let depth = outer.len();
        outer.extend(level.options.iter().flat_map(|option| option.names.iter().cloned()));
        let conditions = level
            .args
            .iter()
            .map(|when| &when.condition)
            .chain(level.none.iter().map(|when| &when.condition))
            .chain(level.does.iter().map(|when| &when.condition))
            .chain(level.stdin.iter().map(|when| &when.condition))
            .chain(level.stdout.iter().map(|when| &when.condition))
            .chain(level.values.iter().map(|(_, when)| &when.condition))
            .chain(level.tree.iter());
        let mut missing = Vec::new();
        for atom in conditions.flat_map(|condition| &condition.all).flat_map(|term| &term.any) {
            if let Atom::Option(name) | Atom::Value(name, _) = atom
                && !outer.contains(name)
                && !(atom == &Atom::Option(name.clone()) && matches!(name.as_str(), "--help" | "--version"))
            {
                missing.push(name.clone());
            }
        }
        missing.extend(level.values.iter().map(|(name, _)| name).filter(|name| !outer.contains(name)).cloned());
        let number = level.options.first().map_or(1, |option| option.line);
        for name in missing {
            let line = Line { number, indent: 0, text: "" };
            self.report(&line, 0, TableProblem::ConditionOption(name));
        }
        let style = level.style.clone();
        for sub in &mut level.subs {
            self.settle(&mut sub.level, &style, outer);
        }
        outer.truncate(depth);
    }
}

/// Cuts a comment off: `#` at the front, or after two spaces and outside quotes.
fn without_comment(text: &str) -> &str {
    if text.starts_with('#') {
        return "";
    }
    let single_quotes = text.starts_with("example ");
    let mut quote = None;
    let mut spaces = 0usize;
    for (at, character) in text.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if character == '"' || (character == '\'' && single_quotes) => quote = Some(character),
            None if character == '#' && spaces >= 2 => {
                return text.get(..at).unwrap_or_default().trim_end();
            }
            None => {}
        }
        spaces = if character == ' ' { spaces + 1 } else { 0 };
    }
    text.trim_end()
}

/// Cuts `KEYWORD [if CONDITION]: BODY`.
fn conditional<'a>(line: &Line<'a>, keyword: &str) -> Result<(Condition, &'a str, usize), (usize, TableProblem)> {
    let after = line.text.get(keyword.len()..).unwrap_or_default();
    let colon = if after.starts_with(':') { Some(0) } else { after.find(": ") }
        .or_else(|| after.ends_with(':').then(|| after.len() - 1))
        .ok_or_else(|| (line.indent, TableProblem::Colon(keyword.to_owned())))?;
    let head = after.get(..colon).unwrap_or_default().trim();
    let tail = after.get(colon + 1..).unwrap_or_default();
    let body = tail.trim();
    let column = line.indent + keyword.len() + colon + 1 + (tail.len() - tail.trim_start().len());
    let place = line.indent + keyword.len() + 1;
    let condition = match head.split_once(' ') {
        None if head.is_empty() => Condition::default(),
        Some(("if", text)) => conditions::condition(text).map_err(|problem| (place, problem))?,
        _ => return Err((place, TableProblem::ExpectedIf(head.to_owned()))),
    };
    Ok((condition, body, column))
}

fn slots(body: &str, column: usize) -> Result<Vec<Slot>, (usize, TableProblem)> {
    let mut found: Vec<Slot> = Vec::new();
    for token in tokens(body, column, Commas::Literal)? {
        let (text, repeat) = match token.kind {
            Kind::Angle(text, None) => (text, Repeat::Once),
            Kind::Angle(text, Some('*')) => (text, Repeat::Any),
            Kind::Angle(text, Some('+')) => (text, Repeat::Some),
            Kind::Angle(text, Some(_)) | Kind::Optional(text) => (text, Repeat::Optional),
            other => return Err((token.column, TableProblem::NotARole(other.shown()))),
        };
        let role = roles::role(text).map_err(|problem| (token.column, problem))?;
        if found.iter().any(|slot| slot.role.takes_rest()) {
            return Err((token.column, TableProblem::CommandLast));
        }
        let repeats = |repeat| matches!(repeat, Repeat::Any | Repeat::Some);
        let is_command = role.takes_rest();
        if repeats(repeat) && !is_command && found.iter().any(|slot| repeats(slot.repeat)) {
            return Err((token.column, TableProblem::TwoRepeats));
        }
        found.push(Slot { role, repeat });
    }
    Ok(found)
}

fn style(text: &str) -> Result<Style, TableProblem> {
    Ok(match text {
        "gnu" => Style::Gnu,
        "posix" => Style::Posix,
        "long" => Style::Long,
        "long-first" => Style::LongFirst,
        "single" => Style::Single,
        "single-first" => Style::SingleFirst,
        "tar" => Style::Tar,
        "none" => Style::None,
        _ => match text.split_once(' ') {
            Some(("custom", name)) => Style::Custom(name.trim().to_owned()),
            _ => return Err(TableProblem::Style(text.to_owned())),
        },
    })
}

fn example(line: &Line<'_>, text: &str, column: usize) -> Result<Example, (usize, TableProblem)> {
    let arrow = text.rfind(" =>").ok_or((column, TableProblem::Example))?;
    let command = text.get(..arrow).unwrap_or_default().trim();
    let after = arrow + " =>".len();
    let effects_text = text.get(after..).unwrap_or_default();
    if command.is_empty() || !(effects_text.is_empty() || effects_text.starts_with(' ')) {
        return Err((column, TableProblem::Example));
    }
    let cut = tokens(effects_text, column + after, Commas::Separate)?;
    let expected = effects::effects(&cut, column + text.len())?;
    Ok(Example { line: line.number, command: command.to_owned(), expected })
}
