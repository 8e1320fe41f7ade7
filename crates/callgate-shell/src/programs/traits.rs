//! What is special about programs beside their effects.

use super::matching::{Truth, matches_glob, truth};
use super::scan::scan_as;
use super::store::Programs;
use super::table::{ProgramTrait, Style};
use crate::word::Word;

impl Programs {
    /// Whether a program is known to heed a variable: its table says so, or the variable is named after it (`FROB_HOME`).
    pub(crate) fn heeds(&self, program: &str, variable: &str) -> bool {
        let named = variable.split_once('_').is_some_and(|(front, _)| {
            program.split(['-', '.']).next().is_some_and(|name| name.eq_ignore_ascii_case(front))
        });
        let table = || {
            self.find(program).is_some_and(|table| table.level.heeds.iter().any(|glob| matches_glob(glob, variable)))
        };
        named || table()
    }

    /// Whether the table of a program says which variables it heeds, and this is not one of them.
    pub(crate) fn ignores(&self, program: &str, variable: &str) -> bool {
        self.find(program).is_some_and(|table| table.level.heeds_only) && !self.heeds(program, variable)
    }

    /// Whether a program that is called with these words has the trait, wherever it lies. What is in doubt counts as yes.
    ///
    /// ```
    /// use callgate_shell::programs::{Programs, table::ProgramTrait};
    /// use callgate_shell::word::Word;
    ///
    /// let words = |line: &str| -> Vec<Word> { line.split(' ').map(|word| Word::Known(word.to_owned())).collect() };
    /// let programs = Programs::bundled();
    /// assert!(programs.has_trait(&words("psql shop"), ProgramTrait::Interactive));
    /// assert!(!programs.has_trait(&words("psql -c select"), ProgramTrait::Interactive));
    /// ```
    pub fn has_trait(&self, words: &[Word], wanted: ProgramTrait) -> bool {
        let Some((first, rest)) = words.split_first() else {
            return false;
        };
        let name = first.known().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
        let Some(level) = self.find(name).map(|table| &table.level) else {
            return false;
        };
        let mut lines = level.traits.iter().filter(|line| line.then == wanted).peekable();
        if lines.peek().is_none() {
            return false;
        }
        let style = if matches!(level.style, Style::Custom(_)) { &Style::Posix } else { &level.style };
        let scan = scan_as(style, name, level, rest);
        !scan.ended && lines.any(|line| truth(&line.condition, &scan) != Truth::No)
    }

    /// The name of the dynamic loader if this path is one: it runs the program it is given.
    pub(crate) fn loader<'p>(&self, path: &'p str) -> Option<&'p str> {
        let name = path.rsplit('/').next().filter(|name| path.starts_with('/') && name.contains(".so"))?;
        let is_loader = |line: &super::table::When<ProgramTrait>| line.then == ProgramTrait::Loader;
        self.get(name).is_some_and(|table| table.level.traits.iter().any(is_loader)).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use crate::effect::Coverage;
    use crate::evaluate::testing::analysis;

    /// The doubts and reasons of a command that is not wholly understood.
    fn doubts(source: &str) -> Vec<String> {
        let analysis = analysis(source);
        let complete = analysis.coverage == Coverage::Complete;
        let effects = analysis.effects().map(|effect| format!("{:?}", effect.target));
        if complete {
            Vec::new()
        } else {
            effects.chain(analysis.doubts.iter().map(|doubt| format!("{doubt:?}"))).collect()
        }
    }

    #[track_caller]
    fn hold(why: &str, sources: &[&str]) {
        for source in sources {
            let doubts = doubts(source);
            assert!(doubts.iter().any(|doubt| doubt.contains(why)), "{source}: {doubts:?}");
        }
    }

    #[test]
    fn what_fills_a_disk() {
        hold(
            "fills the disk",
            &[
                "yes > f",
                "cat /dev/zero > f",
                "nohup cat /dev/urandom > f",
                "/bin/cat /dev/zero > f",
                "seq inf > f",
                "dd if=/dev/zero of=x",
                "dd if=/dev/zero of=x bs=1G count=500",
                "cp /dev/zero x",
            ],
        );
        for source in
            ["cat a > f", "yes | head -3 > f", "yes > /dev/null", "dd if=/dev/zero of=x bs=1G count=2", "cp *.c d"]
        {
            assert_eq!(doubts(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn what_empties_a_file() {
        let sources =
            ["cp /dev/null x", "cp -f /dev/null x", "dd if=/dev/null of=x", "tee x < /dev/null", "printf '' | tee x"];
        hold("is lost", &sources);
        for source in ["tee -a x < /dev/null", "cp a b", "printf a | tee x"] {
            assert_eq!(doubts(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn what_shows_environments() {
        let sources = [
            "ps auxe",
            "ps -E",
            "env | grep TOKEN",
            "printenv > f",
            "env A=1 > f",
            "set",
            "export -p",
            "env | sort",
            "env | grep .",
        ];
        hold("environment", &sources);
        for source in [
            "ps aux",
            "env A=1 date > f",
            "ps -p 1",
            "env | wc -l",
            "env | grep -i node",
            "set -e",
            "export A=1",
            "printenv HOME",
        ] {
            assert_eq!(doubts(source), Vec::<String>::new(), "{source}");
        }
    }
}
