//! Mistakes that a table makes although its form is right: lines that can never count, and options that count as others.

use super::table::{Atom, Condition, Level, OptionForm, Style, Table, Term, Text, ValueSet, Values, When};

/// Lines are at most so long, so that they fit on a screen.
const MAX_COLUMNS: usize = 140;

/// The lines of a text that are too long, from 1.
pub(super) fn long_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lengths = text.lines().map(|line| line.chars().count());
    (1..).zip(lengths).filter(|(_, length)| *length > MAX_COLUMNS).map(|(number, length)| {
        let problem = format!(
            "line too long ({length} columns, at most {MAX_COLUMNS}): end it with ` \\` and continue on the next line"
        );
        (number, problem)
    })
}

/// The mistakes of a table and the lines they stand on.
pub(super) fn mistakes(table: &Table) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    inspect(&table.level, &[], table.line, &mut found);
    found
}

/// Looks through a level and those below it. `outer` are the levels around it, the innermost last.
fn inspect(level: &Level, outer: &[&Level], line: usize, found: &mut Vec<(usize, String)>) {
    let levels: Vec<&Level> = outer.iter().copied().chain([level]).collect();
    let scope = Scope { levels: &levels };
    for option in &level.options {
        let inner_star = |name: &&Text| name.len() > 1 && name.trim_end_matches('*').contains('*');
        if let Some(name) = option.names.iter().find(inner_star) {
            let rule = "only a `*` at the end matches the rest of a word";
            found.push((option.line, format!("the first `*` in `{name}` is a literal character: {rule}")));
        }
    }
    let mut report = |problem| found.push((line, problem));
    for condition in level.conditions() {
        if let Some(part) = scope.never(condition) {
            report(format!("the condition `{part}` can never hold here"));
        }
    }
    let atoms = || level.conditions().flat_map(|condition| &condition.all).flat_map(|term| &term.any);
    for glob in atoms().filter_map(values).flat_map(|values| &values.globs).filter(|glob| spans_values(glob)) {
        report(format!("the `*` in front of `=` in `{glob}` also spans a `=`: write the names out"));
    }
    unreachable("args", &level.args, &mut report);
    unreachable("none", &level.none, &mut report);
    unreachable("stdin", &level.stdin, &mut report);
    unreachable("stdout", &level.stdout, &mut report);
    let named = atoms().filter_map(Atom::option).chain(level.values.iter().map(|(name, _)| name));
    for option in named.filter_map(|name| scope.find(name)).filter(|option| !option.together && has_strangers(option)) {
        let problem = format!(
            "a condition on one of `{}` holds for all of them: give each option a line of its own, or add `together`",
            option.names.join(" ")
        );
        if !found.iter().any(|(_, other)| *other == problem) {
            found.push((option.line, problem));
        }
    }
    for sub in &level.subs {
        inspect(&sub.level, &levels, sub.line, found);
    }
}

/// The values that an atom asks for.
fn values(atom: &Atom) -> Option<&ValueSet> {
    match atom {
        Atom::Value(_, values) | Atom::Operand(_, values) | Atom::AnyOperand(values) => Some(values),
        Atom::Option(_) | Atom::Count(_) => None,
    }
}

/// Whether a glob means any name with a certain value, and also matches a value that only ends like it: `a.*=no` and `a.b=x=no`.
fn spans_values(glob: &str) -> bool {
    glob.split("*=").skip(1).any(|value| !value.starts_with('*'))
}

/// Reports a line that stands behind one that always counts, or behind one with the same condition.
fn unreachable<T>(keyword: &str, lines: &[When<T>], report: &mut impl FnMut(String)) {
    for (place, line) in lines.iter().enumerate() {
        let hides = |earlier: &When<T>| earlier.condition.all.is_empty() || earlier.condition == line.condition;
        if lines.iter().take(place).any(hides) {
            let why = "an earlier one always holds, or has the same condition";
            report(format!("unreachable `{keyword}` line: {why}"));
        }
    }
}

/// Whether names of one line look like different options: several letters, or several words.
fn has_strangers(option: &OptionForm) -> bool {
    let is_letter = |name: &&Text| name.starts_with(['-', '+']) && name.chars().count() == 2;
    let word = |name: &Text| {
        let name = name.trim_start_matches('-');
        name.strip_prefix("no-").unwrap_or(name).replace(['-', '_'], "").to_lowercase()
    };
    let letters = option.names.iter().filter(is_letter).count();
    let mut words: Vec<String> = option.names.iter().filter(|name| !is_letter(name)).map(word).collect();
    words.sort_unstable();
    words.dedup();
    letters > 1 || words.len() > 1
}

/// The levels in which a name may stand.
struct Scope<'t> {
    levels: &'t [&'t Level],
}

impl<'t> Scope<'t> {
    fn find(&self, name: &str) -> Option<&'t OptionForm> {
        self.levels
            .iter()
            .rev()
            .find_map(|level| level.options.iter().find(|option| option.names.iter().any(|other| other == name)))
    }

    /// The part of a condition that can never hold, in words.
    fn never(&self, condition: &Condition) -> Option<String> {
        let denied: Vec<&Atom> = condition.all.iter().filter(|term| term.negated).flat_map(|term| &term.any).collect();
        let required = condition.all.iter().filter(|term| !term.negated);
        let hopeless = |term: &&Term| {
            term.any.iter().all(|atom| self.impossible(atom) || denied.iter().any(|other| self.excludes(other, atom)))
        };
        let term = required.into_iter().find(hopeless)?;
        Some(term.any.iter().map(shown).collect::<Vec<_>>().join("|"))
    }

    /// Whether nothing on a command line makes the atom hold.
    fn impossible(&self, atom: &Atom) -> bool {
        let no_options = self.levels.last().is_some_and(|level| level.style == Style::None && level.options.is_empty());
        match atom {
            Atom::Option(name) => no_options || self.find(name).is_some_and(|option| option.ends && !option.everywhere),
            // `--no-x` counts as `--x=false`
            Atom::Value(name, values) => {
                no_options
                    || self.find(name).is_some_and(|option| option.values == Values::None && !values.contain("false"))
            }
            Atom::Count(_) | Atom::Operand(..) | Atom::AnyOperand(_) => false,
        }
    }

    /// Whether an atom cannot hold where another one does not.
    fn excludes(&self, denied: &Atom, atom: &Atom) -> bool {
        let same = |one: &str, other: &str| match (self.find(one), self.find(other)) {
            (Some(one), Some(other)) => std::ptr::eq(one, other),
            _ => false,
        };
        match (denied, atom) {
            (Atom::Option(denied), Atom::Option(name) | Atom::Value(name, _)) => same(denied, name),
            (Atom::Value(denied, values), Atom::Value(name, wanted)) => same(denied, name) && values == wanted,
            (Atom::Count(denied), Atom::Count(place) | Atom::Operand(place, _)) => denied <= place,
            (Atom::Count(1), Atom::AnyOperand(_)) => true,
            (Atom::Operand(denied, values), Atom::Operand(place, wanted)) => denied == place && values == wanted,
            _ => false,
        }
    }
}

/// An atom as a table writes it.
fn shown(atom: &Atom) -> String {
    let with = |name: &str, values: &ValueSet| {
        let sign = if values.others { " not " } else { "=" };
        format!("{name}{sign}{}", values.globs.join("|"))
    };
    match atom {
        Atom::Option(name) => name.to_string(),
        Atom::Value(name, values) => with(name, values),
        Atom::Count(1) => "args".to_owned(),
        Atom::Count(place) => format!("arg{place}"),
        Atom::Operand(place, values) => with(&format!("arg{place}"), values),
        Atom::AnyOperand(values) => with("args", values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::form::parse;

    #[track_caller]
    fn found(text: &str) -> Vec<String> {
        let (tables, errors) = parse(text, "test", &mut Default::default());
        assert_eq!(errors, []);
        let mistakes = tables.iter().flat_map(mistakes);
        mistakes.map(|(line, problem)| format!("{line}: {problem}")).collect()
    }

    #[test]
    fn a_condition_that_can_never_hold() {
        let options = "x: x\n  -a -A\n  -b <text>\n  -h ends\n  args: <text>*\n";
        for never in [
            "-a and not -A",
            "-a=x",
            "-h",
            "args and no args",
            "arg2=x and not arg1",
            "args=x and no args",
            "-b=x and not -b=x",
            "-b=x|-b=y and not -b",
        ] {
            let lines = found(&format!("{options}  does if {never}: read a\n"));
            assert!(lines.iter().any(|line| line.contains("can never hold")), "{never}: {lines:?}");
        }
        for sound in ["-b and not -a", "-b=x and not -b=y", "-a=false", "not -h", "arg1 and not arg2", "-h|-b"] {
            let lines = found(&format!("{options}  does if {sound}: read a\n"));
            assert!(!lines.iter().any(|line| line.contains("can never hold")), "{sound}: {lines:?}");
        }
        assert_eq!(found("x: x\n  style none\n  args: <text>*\n  does if --help: read a\n").len(), 1);
    }

    #[test]
    fn a_line_behind_one_that_always_counts() {
        let lines = found("x: x\n  -a\n  args: <read>*\n  args if -a: <text>*\n  does: read a\n  does if -a: read b\n");
        assert_eq!(lines, ["1: unreachable `args` line: an earlier one always holds, or has the same condition"]);
    }

    #[test]
    fn options_that_count_as_one_say_so() {
        let table = |option: &str| format!("x: x\n  {option}\n  does if -n: read a\n");
        let same = ["-n --dry-run", "-n --dry-run --dryrun", "-n --[no-]dry-run", "-n -N --no together"];
        same.into_iter().for_each(|option| assert!(found(&table(option)).is_empty(), "{option}"));
        for option in ["-n -N", "-n --dry-run --system"] {
            assert_eq!(found(&table(option)).len(), 1, "{option}");
        }
        assert!(found("x: x\n  -a -b\n").is_empty());
        assert_eq!(found("x: x\n  -a -n <text>\n  value -n: <read>\n").len(), 1);
    }

    #[test]
    fn a_star_for_a_name_is_no_star_for_a_value() {
        let lines = |glob: &str| found(&format!("x: x\n  -c <opaque \"y\">\n  value -c if -c={glob}: <text>\n")).len();
        assert_eq!((lines("a.*=no"), lines("a.b=1|*=no"), lines("a.*=")), (1, 1, 1));
        assert_eq!((lines("a.b=no"), lines("a.b=*"), lines("a.*"), lines("*=*")), (0, 0, 0, 0));
    }

    #[test]
    fn stars_and_lengths() {
        assert_eq!(
            found("x: x\n  +*/*\n"),
            ["2: the first `*` in `+*/*` is a literal character: only a `*` at the end matches the rest of a word"]
        );
        assert!(found("x: x\n  +*\n  *\n").is_empty());
        let text = format!("x: x\n  # {}\n", "y".repeat(140));
        assert_eq!(long_lines(&text).map(|(line, _)| line).collect::<Vec<_>>(), [2]);
    }
}
