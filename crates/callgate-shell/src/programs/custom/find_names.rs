//! Which names an expression of `find` lets through, as far as its `-name` tests say so.

use crate::word::{ListedNames, Word};

/// A part of an expression: a test with the words that it takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test<'w> {
    /// `-name`, `-iname`: the last component matches this glob, if it is known.
    Name(Option<&'w str>),
    /// Runs, prints or deletes.
    Action,
    Open,
    Close,
    Or,
    Not,
    /// Evaluates both sides, and takes the result of the second.
    Comma,
    Other,
}

/// The names for which an action of the expression may be reached.
///
/// Both sides of an `-o` must be bounded by names, of the parts of an `and` one is enough, and a negation bounds nothing. A name
/// that is tested behind an action does not bound that action.
pub(super) fn bound(tests: &[Test<'_>]) -> ListedNames {
    let acts = tests.iter().position(|test| matches!(test, Test::Action)).unwrap_or(tests.len());
    let behind = tests.get(acts..).unwrap_or_default();
    let is_late = behind.iter().any(|test| matches!(test, Test::Name(_)));
    if is_late || tests.iter().any(|test| matches!(test, Test::Comma)) {
        return ListedNames::All;
    }
    // Sides of the `-o`s that are open, innermost last: what bounds the sides before, and the side that is read.
    let mut open = vec![Level::default()];
    for test in tests {
        let Some(level) = open.last_mut() else { return ListedNames::All };
        match test {
            Test::Name(glob) => level.and(glob.map(|glob| vec![glob.to_owned()])),
            Test::Not => level.negated = !level.negated,
            Test::Or => level.or(),
            Test::Open => open.push(Level::default()),
            Test::Close => {
                let Some(inner) = open.pop() else { return ListedNames::All };
                let Some(level) = open.last_mut() else { return ListedNames::All };
                level.and(inner.finish());
            }
            Test::Action | Test::Other | Test::Comma => level.and(None),
        }
    }
    match open.pop().filter(|_| open.is_empty()).and_then(Level::finish) {
        Some(globs) => ListedNames::Matching(globs),
        None => ListedNames::All,
    }
}

#[derive(Default)]
struct Level {
    /// The globs of the sides before; `None` in it: such a side has no bound.
    before: Vec<Option<Vec<String>>>,
    side: Option<Vec<String>>,
    negated: bool,
}

impl Level {
    fn and(&mut self, bound: Option<Vec<String>>) {
        let negated = std::mem::take(&mut self.negated);
        if self.side.is_none() {
            self.side = bound.filter(|_| !negated);
        }
    }

    fn or(&mut self) {
        self.before.push(self.side.take());
    }

    fn finish(mut self) -> Option<Vec<String>> {
        self.or();
        self.before.into_iter().collect::<Option<Vec<_>>>().map(|sides| sides.concat())
    }
}

/// The test that a word stands for.
pub(super) fn test<'w>(name: &str, words: &'w [Word]) -> Test<'w> {
    match name {
        "(" => Test::Open,
        ")" => Test::Close,
        "-o" | "-or" => Test::Or,
        "!" | "-not" => Test::Not,
        "," => Test::Comma,
        "-name" | "-iname" => Test::Name(words.first().and_then(Word::known)),
        "-delete" | "-ls" | "-fls" | "-quit" => Test::Action,
        _ if ["-exec", "-ok", "-print", "-fprint"].iter().any(|front| name.starts_with(front)) => Test::Action,
        _ => Test::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(expression: &str) -> ListedNames {
        let words: Vec<Word> = expression.split(' ').map(|word| Word::Known(word.to_owned())).collect();
        let mut tests = Vec::new();
        let mut skip = false;
        for (at, word) in words.iter().enumerate() {
            if std::mem::take(&mut skip) {
                continue;
            }
            let name = word.known().unwrap();
            skip = matches!(name, "-name" | "-iname" | "-type" | "-path");
            tests.push(test(name, &words[at + 1..]));
        }
        bound(&tests)
    }

    #[test]
    fn every_way_to_an_action_must_pass_a_name() {
        let matching = |globs: &[&str]| ListedNames::Matching(globs.iter().map(|glob| (*glob).to_owned()).collect());
        for (expression, expected) in [
            ("-name *.rs", matching(&["*.rs"])),
            ("-type f -name *.rs -print", matching(&["*.rs"])),
            ("( -name a -o -iname b ) -type f", matching(&["a", "b"])),
            ("-name a -o -name b", matching(&["a", "b"])),
            ("-name node_modules -prune -o -name *.ts -print", matching(&["node_modules", "*.ts"])),
            ("! -name a -name b", matching(&["b"])),
        ] {
            assert_eq!(names(expression), expected, "{expression}");
        }
        for open in [
            "-type f",
            "! -name a",
            "-not ( -name a -o -name b )",
            "-name a -o -type f",
            "-print -name a",
            "-name a , -print",
            "-name a -exec -o -name b -print",
            "-path x -prune -o -name a",
            ") -name a",
            "( -name a",
        ] {
            assert_eq!(names(open), ListedNames::All, "{open}");
        }
    }
}
