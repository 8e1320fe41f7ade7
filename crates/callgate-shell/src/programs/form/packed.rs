//! Tables as `build.rs` packs them. They have been checked by the tests: here they are only read, and quickly.

use super::lines::{self, Line};
use super::source;
use crate::effect::Action;
use crate::programs::table::{Deferred, EffectForm, EffectTarget, Level, Style, Table, Text, When};

/// Reads a packed table; the lines of its subcommands wait. `None`: it lacks its place or its header.
pub(in crate::programs) fn packed_table(text: &'static str) -> Option<Table> {
    let (place, table) = text.split_once('\n')?;
    let (place, compared) = place.strip_suffix(" compared").map_or((place, false), |place| (place, true));
    let (origin, line) = place.split_once(':')?;
    let (header, body) = table.split_once('\n')?;
    let (names, description) = source::header(header)?;
    Some(Table {
        names: names.split_whitespace().map(str::to_owned).collect(),
        description: description.trim().to_owned(),
        origin: origin.to_owned(),
        line: line.parse().ok()?,
        compared,
        level: packed_level(body, &Style::Gnu),
        examples: Vec::new(),
    })
}

/// There is room for so many options before any is read.
const MANY: usize = 128;

/// Reads the packed lines of a level inside one of style `outer`.
pub(in crate::programs) fn packed_level(text: &'static str, outer: &Style) -> Level {
    let mut level = lines::empty_level();
    // nearly every line is an option, unless there are subcommands
    if !text.starts_with("sub@") {
        level.options.reserve(text.bytes().filter(|byte| *byte == b'\n').count().min(MANY));
    }
    let mut rest = text;
    let mut sound = true;
    while let Some((line, after)) = rest.split_once('\n') {
        rest = after;
        sound &= match line.strip_prefix("sub@") {
            Some(header) => subcommand(header, &mut rest, &mut level).is_some(),
            None => lines::entry(&Line { number: 0, indent: 0, text: line }, &mut level, Text::Borrowed).is_ok(),
        };
    }
    lines::finish(&mut level, outer);
    for sub in &mut level.subs {
        sub.level.inherit(&level.style);
    }
    if !sound {
        let target = EffectTarget::Words(Some("its table cannot be read".to_owned()));
        let effect = EffectForm { action: Action::Opaque, target, tree: false, marks: Vec::new() };
        level.does.push(When { condition: Default::default(), then: vec![effect] });
    }
    level
}

/// Notes a subcommand and steps over its lines.
fn subcommand(header: &'static str, rest: &mut &'static str, level: &mut Level) -> Option<()> {
    let (length, names) = header.split_once(' ')?;
    let (body, after) = rest.split_at_checked(length.parse().ok()?)?;
    let mut sub = lines::sub(names, 0, Text::Borrowed).ok()?;
    sub.level = Deferred::packed(body);
    level.subs.push(sub);
    *rest = after;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Programs;
    use crate::programs::form::parse;
    use crate::programs::store::{bundled_files, bundled_shares};

    /// Without what is only there for messages and checks.
    fn bare(level: &mut Level) {
        level.options.iter_mut().for_each(|form| form.line = 0);
        for sub in &mut level.subs {
            sub.line = 0;
            let mut inner = (*sub.level).clone();
            bare(&mut inner);
            sub.level = inner.into();
        }
    }

    #[test]
    fn packed_tables_say_the_same_as_the_files() {
        for (origin, text) in bundled_files() {
            for mut checked in parse(text, origin, &mut bundled_shares().clone()).0 {
                let packed = Programs::bundled().get(&checked.names[0]).expect("a bundled table");
                checked.examples.clear();
                bare(&mut checked.level);
                let same = format!("{packed:?}") == format!("{checked:?}");
                assert!(same, "{origin}:{} differs", checked.line);
            }
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_makes_its_level_opaque() {
        let level = packed_level("-v\nargs <read>\n", &Style::Gnu);
        assert_eq!(level.does[0].then[0].action, Action::Opaque);
        let level = packed_level("sub@900 x: beyond the end\n-v\n", &Style::Gnu);
        assert_eq!(level.does[0].then[0].action, Action::Opaque);
    }
}
