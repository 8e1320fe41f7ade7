//! Reading the text of tables: lines and blocks.

mod conditions;
mod effects;
mod lines;
mod options;
mod packed;
mod roles;
mod source;
mod tokens;

#[cfg(test)]
mod tests;

pub(super) use lines::unknown_style;
pub(super) use packed::{packed_level, packed_table};
pub(super) use source::{Shares, source_lines, used};

use super::table::{Atom, Example, HostPlace, Level, ProgramTrait, Style, Table, Text};
use lines::Line;
use source::SourceLine;

/// A mistake in a table, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}:{line}:{column}: {problem}")]
pub struct TableError {
    /// The file or policy the table stands in.
    pub origin: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong, and what to write instead.
    pub problem: String,
}

/// A mistake in a line: its column, from 0, and what is wrong.
type Problem = (usize, String);

/// How deep subcommands may be nested.
const MAX_DEPTH: usize = 8;

/// Reads all tables of a text. The lines that it shares are added to `shares`.
pub fn parse(text: &str, origin: &str, shares: &mut Shares) -> (Vec<Table>, Vec<TableError>) {
    let lines = shares.take(source_lines(text));
    let (lines, unknown) = shares.expand(lines);
    let keep = |text: &str| Text::Owned(text.to_owned());
    let mut reader = Reader {
        origin,
        keep,
        lines: Vec::new(),
        position: 0,
        errors: Vec::new(),
        examples: Vec::new(),
        compared: false,
    };
    for line in &unknown {
        let name = used(line).unwrap_or_default();
        let problem = format!("unknown shared lines `{name}`: see programs/shared, or add a block `share {name}: …`");
        reader.report(&borrowed(line), line.indent, problem);
    }
    for line in &lines {
        reader.take_line(borrowed(line));
    }
    let mut tables = Vec::new();
    while let Some(line) = reader.lines.get(reader.position).copied() {
        reader.position += 1;
        if line.indent != 0 {
            reader.misplaced(&line, 0);
            continue;
        }
        let (names, description) = match source::header(line.text) {
            Some((names, description)) if !names.trim().is_empty() => (names, description.trim()),
            _ => {
                reader.report(&line, 0, "a table starts with `NAMES: DESCRIPTION` in the first column".to_owned());
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
            compared: std::mem::take(&mut reader.compared),
            level,
            examples: std::mem::take(&mut reader.examples),
        });
    }
    (tables, reader.errors)
}

fn borrowed<'a>(line: &'a SourceLine<'_>) -> Line<'a> {
    Line { number: line.number, indent: line.indent, text: &line.text }
}

struct Reader<'a> {
    origin: &'a str,
    /// Makes text of the table that stays.
    keep: fn(&'a str) -> Text,
    lines: Vec<Line<'a>>,
    position: usize,
    errors: Vec<TableError>,
    examples: Vec<Example>,
    compared: bool,
}

impl<'a> Reader<'a> {
    fn report(&mut self, line: &Line<'_>, column: usize, problem: String) {
        self.errors.push(TableError { origin: self.origin.to_owned(), line: line.number, column: column + 1, problem });
    }

    fn misplaced(&mut self, line: &Line<'_>, most: usize) {
        let problem = format!(
            "unexpected indentation of {} spaces (at most {most} here): indent by 2 for each level",
            line.indent
        );
        self.report(line, line.indent, problem);
    }

    fn take_line(&mut self, line: Line<'a>) {
        if line.text.starts_with('\t') {
            self.report(&line, line.indent, "indent with spaces, not tabs".to_owned());
        } else if line.indent % 2 == 1 {
            let problem = format!("odd indentation of {} spaces: indent by 2 for each level", line.indent);
            self.report(&line, line.indent, problem);
        } else {
            self.lines.push(line);
        }
    }

    /// Reads the lines that are indented by `indent`.
    fn level(&mut self, indent: usize) -> Level {
        let mut level = lines::empty_level();
        while let Some(line) = self.lines.get(self.position).copied() {
            if line.indent < indent {
                break;
            }
            self.position += 1;
            if line.indent > indent {
                self.misplaced(&line, indent);
            } else if let Err((column, problem)) = self.line(&line, &mut level) {
                self.report(&line, column, problem);
            }
        }
        level
    }

    fn line(&mut self, line: &Line<'a>, level: &mut Level) -> Result<(), Problem> {
        let (first, rest) = line.text.split_once(' ').unwrap_or((line.text, ""));
        let keyword = first.strip_suffix(':').unwrap_or(first);
        let rest_column = line.indent + first.len() + 1;
        match keyword {
            _ if line.indent > 2 && lines::named(keyword).is_some_and(|of: ProgramTrait| !of.is_selection()) => {
                let problem = format!("`{keyword}` describes the whole program: move it to the top level of the table");
                return Err((line.indent, problem));
            }
            "from" if line.indent == 2 && lines::is_source(rest) => self.compared = true,
            "from" => {
                let problem = "invalid `from` line: write `from PROGRAM VERSION: SOURCES` at the top level; \
                    the sources are manual, --help, completion and source";
                return Err((rest_column, problem.to_owned()));
            }
            "example" => self.examples.push(lines::example(line, rest, rest_column)?),
            "sub" => {
                let mut sub = lines::sub(rest, line.number, self.keep).map_err(|problem| (rest_column, problem))?;
                let indent = line.indent + 2;
                sub.level = self.level(indent).into();
                if indent > 2 * MAX_DEPTH {
                    return Err((rest_column, format!("subcommands are nested too deeply (at most {MAX_DEPTH})")));
                }
                level.subs.push(sub);
            }
            _ => {
                let before = level.options.len();
                lines::entry(line, level, self.keep)?;
                if let Some((added, earlier)) =
                    level.options.split_last().filter(|(_, earlier)| earlier.len() == before)
                    && let Some((_, name)) = added.names.iter().enumerate().find(|(place, name)| {
                        added.names.iter().take(*place).any(|other| other == *name)
                            || earlier.iter().any(|other| other.names.contains(name))
                    })
                {
                    let problem = format!("duplicate option `{name}`");
                    level.options.pop();
                    return Err((line.indent, problem));
                }
            }
        }
        Ok(())
    }

    /// Hands styles down, indexes options and checks that conditions name options that exist.
    fn settle(&mut self, level: &mut Level, style: &Style, outer: &mut Vec<Text>) {
        lines::finish(level, style);
        let depth = outer.len();
        outer.extend(level.options.iter().flat_map(|option| option.names.iter().cloned()));
        let mut missing = Vec::new();
        for atom in level.conditions().flat_map(|condition| &condition.all).flat_map(|term| &term.any) {
            let always_known = matches!(atom, Atom::Option(name) if matches!(name.as_ref(), "--help" | "--version"));
            missing.extend(atom.option().filter(|name| !always_known && !outer.contains(name)).cloned());
        }
        let hosts = level.hosts.iter().flatten().filter_map(|place| match place {
            HostPlace::Option(name) => Some(name),
            _ => None,
        });
        missing.extend(hosts.filter(|name| !outer.contains(name)).cloned());
        missing.extend(level.values.iter().map(|(name, _)| name).filter(|name| !outer.contains(name)).cloned());
        let number = level.options.first().map_or(1, |option| option.line);
        for name in missing {
            let line = Line { number, indent: 0, text: "" };
            let why = "this table does not have it";
            self.report(&line, 0, format!("unknown option `{name}` in a condition or a `hosts` line: {why}"));
        }
        let style = level.style.clone();
        for inner in level.subs.iter_mut().filter_map(|sub| sub.level.read_mut()) {
            self.settle(inner, &style, outer);
        }
        outer.truncate(depth);
    }
}
