//! Command patterns, which match the words of a simple command and never its text.
//!
//! `git push **` is the program `git`, then `push`, then any number of words; `*` is one word.

use callgate_model::word::Word;

use super::glob::{GlobError, Segment};
use super::name::{self, Tokens};
use super::{Match, Polarity, Pool, Span};
use crate::rules::stored::StoredList;
use callgate_model::glob::escape;

/// Directories in which a program of a bare name is looked for.
const SYSTEM_DIRECTORIES: &[&str] =
    &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];
/// A command pattern may have this many words.
const MAXIMUM_WORDS: usize = 100;

/// Compiles one pattern without braces.
pub(crate) fn compile(pattern: &str, pool: &mut Pool, segments: &mut StoredList<Segment>) -> Result<Span, GlobError> {
    let mut words = Vec::new();
    for word in split(pattern) {
        words.push(if word == "**" { Segment::Many } else { Segment::new(&word, pool)? });
    }
    if words.len() > MAXIMUM_WORDS {
        return Err(GlobError::TooDeep);
    }
    Ok(segments.append(words))
}

/// Splits at blanks; a quoted piece is one literal word.
fn split(pattern: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let text = word.get_or_insert_default();
                for quoted in characters.by_ref().take_while(|quoted| *quoted != character) {
                    if matches!(quoted, '*' | '?' | '[' | '\\') {
                        text.push('\\');
                    }
                    text.push(quoted);
                }
            }
            '\\' => {
                let text = word.get_or_insert_default();
                text.push('\\');
                text.extend(characters.next());
            }
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// Whether a simple command matches a pattern.
pub(crate) fn fit(pattern: &[Segment], pool: &Pool, words: &[Word], wrappers: &[String], side: Polarity) -> Match {
    if words.is_empty() || pattern.is_empty() {
        return Match::No;
    }
    let matcher = CommandMatcher { pattern, pool, side };
    if matcher.run(words, false) {
        return Match::Yes;
    }
    if side == Polarity::Permits {
        return Match::No;
    }
    let possible = words.iter().any(|word| word.known().is_none()) && matcher.run(words, true);
    let wrapped = matcher.wrapped(words, wrappers);
    if possible { wrapped.max(Match::Maybe) } else { wrapped }
}

/// The name under which a program is looked up: without its directory.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

struct CommandMatcher<'a> {
    pattern: &'a [Segment],
    pool: &'a Pool,
    side: Polarity,
}

impl CommandMatcher<'_> {
    /// With `doubt`, an unknown word matches everything that it could be.
    fn run(&self, words: &[Word], doubt: bool) -> bool {
        let end = self.pattern.len();
        let mut states = self.closure(1);
        for (index, word) in words.iter().enumerate() {
            states = self.step(states, word, index == 0, doubt);
            if states == 0 {
                return false;
            }
        }
        states >> end & 1 == 1
    }

    fn closure(&self, mut states: u128) -> u128 {
        for (index, segment) in self.pattern.iter().enumerate() {
            if states >> index & 1 == 1 && *segment == Segment::Many {
                states |= 1 << index.saturating_add(1);
            }
        }
        states
    }

    fn step(&self, states: u128, word: &Word, first: bool, doubt: bool) -> u128 {
        let many = match word {
            Word::Known(_) => false,
            Word::Glob(_) => true,
            Word::Below { many, .. } | Word::Partly { many, .. } | Word::Unknown { many, .. } => *many,
        };
        let mut next = 0;
        for (index, segment) in self.pattern.iter().enumerate().filter(|(index, _)| states >> index & 1 == 1) {
            if many && doubt {
                // No word at all, or any number: every later place is possible.
                next |= u128::MAX << index;
                break;
            }
            if *segment == Segment::Many {
                next |= 1 << index;
            } else if !many && self.word_fits(*segment, word, first, doubt) {
                next |= 1 << index.saturating_add(1);
            }
        }
        if many && doubt && states >> self.pattern.len() & 1 == 1 {
            next |= 1 << self.pattern.len();
        }
        self.closure(next)
    }

    fn word_fits(&self, segment: Segment, word: &Word, first: bool, doubt: bool) -> bool {
        match word {
            Word::Known(text) if first => self.program_fits(segment, text),
            Word::Known(text) => self.text_fits(segment, text),
            Word::Unknown { .. } | Word::Glob(_) => doubt || self.is_anything(segment),
            Word::Partly { prefix, .. } | Word::Below { directory: prefix, .. } => {
                if doubt {
                    self.could_start_with(segment, prefix)
                } else {
                    self.is_anything(segment) || self.holds_all_that_start_with(segment, prefix)
                }
            }
        }
    }

    fn text_fits(&self, segment: Segment, text: &str) -> bool {
        match segment {
            Segment::Many => true,
            Segment::Literal(wanted) => self.pool.get(wanted) == text,
            Segment::Pattern(pattern) => name::matches(self.pool.get(pattern), text.as_bytes()),
        }
    }

    /// A pattern without a slash means the program of that name: any of that name if the rule restricts, only the one of
    /// the system if it permits.
    fn program_fits(&self, segment: Segment, program: &str) -> bool {
        if self.text_fits(segment, program) {
            // `*` must not let `./anything` pass as a program's name.
            return self.side == Polarity::Restricts || !program.contains('/') || self.has_slash(segment);
        }
        let Some((directory, base)) = program.rsplit_once('/') else {
            return false;
        };
        (self.side == Polarity::Restricts || SYSTEM_DIRECTORIES.contains(&directory)) && self.text_fits(segment, base)
    }

    fn has_slash(&self, segment: Segment) -> bool {
        match segment {
            Segment::Many => false,
            Segment::Literal(text) | Segment::Pattern(text) => self.pool.get(text).contains('/'),
        }
    }

    fn is_anything(&self, segment: Segment) -> bool {
        match segment {
            Segment::Many => true,
            Segment::Pattern(text) => self.pool.get(text) == "*",
            Segment::Literal(_) => false,
        }
    }

    fn could_start_with(&self, segment: Segment, prefix: &str) -> bool {
        match segment {
            Segment::Many => true,
            Segment::Literal(text) => self.pool.get(text).starts_with(prefix),
            Segment::Pattern(text) => {
                let open = Tokens::new(&format!("{}*", escape(prefix)), false);
                Tokens::new(self.pool.get(text), false).overlaps(&open)
            }
        }
    }

    fn holds_all_that_start_with(&self, segment: Segment, prefix: &str) -> bool {
        let Segment::Pattern(text) = segment else {
            return false;
        };
        let pattern = self.pool.get(text);
        pattern.strip_suffix('*').is_some_and(|front| !name::is_pattern(front) && prefix.starts_with(front))
    }

    /// Programs that were peeled off are still programs that run: `sudo **` holds for what runs under `sudo`.
    fn wrapped(&self, words: &[Word], wrappers: &[String]) -> Match {
        let Some((first, rest)) = self.pattern.split_first() else {
            return Match::No;
        };
        if *first == Segment::Many || !wrappers.iter().any(|wrapper| self.program_fits(*first, wrapper)) {
            return Match::No;
        }
        let inner = CommandMatcher { pattern: rest, ..*self };
        if rest.is_empty() || rest.iter().all(|segment| *segment == Segment::Many) || inner.run(words, false) {
            return Match::Yes;
        }
        // The wrapper's own options are not among the words.
        match rest.first() {
            Some(Segment::Literal(text)) if !self.pool.get(*text).starts_with('-') => {
                if inner.run(words, true) {
                    Match::Maybe
                } else {
                    Match::No
                }
            }
            _ => Match::Maybe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::glob::expand_braces;
    use super::*;

    fn check(pattern: &str, words: &[Word], wrappers: &[&str], side: Polarity) -> Match {
        let (mut pool, mut segments) = (Pool::default(), StoredList::default());
        let wrappers: Vec<String> = wrappers.iter().map(|wrapper| (*wrapper).to_owned()).collect();
        let patterns = expand_braces(pattern).unwrap().into_iter();
        patterns
            .map(|pattern| compile(&pattern, &mut pool, &mut segments).unwrap())
            .collect::<Vec<_>>()
            .into_iter()
            .map(|span| fit(&span.of(&segments), &pool, words, &wrappers, side))
            .max()
            .unwrap()
    }

    fn known(text: &str) -> Vec<Word> {
        text.split(' ').map(|word| Word::Known(word.to_owned())).collect()
    }

    #[test]
    fn known_words() {
        for (pattern, words, fits) in [
            ("git push **", "git push", true),
            ("git push **", "git push --force origin", true),
            ("git push **", "git pull", false),
            ("git * origin", "git push origin", true),
            ("git * origin", "git push -f origin", false),
            ("git {push,fetch} **", "git fetch x", true),
            ("rm ** -rf **", "rm -v -rf x", true),
            ("cargo test", "cargo test --all", false),
            ("cargo te*", "cargo test", true),
            ("git **", "/usr/bin/git log", true),
        ] {
            for side in [Polarity::Permits, Polarity::Restricts] {
                assert_eq!(check(pattern, &known(words), &[], side), Match::certain(fits), "{pattern} / {words}");
            }
        }
    }

    #[test]
    fn a_program_elsewhere_is_restricted_but_not_permitted() {
        let words = known("./git push");
        assert_eq!(check("git **", &words, &[], Polarity::Restricts), Match::Yes);
        assert_eq!(check("git **", &words, &[], Polarity::Permits), Match::No);
        assert_eq!(check("* **", &words, &[], Polarity::Permits), Match::No);
        assert_eq!(check("./git **", &words, &[], Polarity::Permits), Match::Yes);
    }

    #[test]
    fn unknown_words_are_doubt() {
        let unknown = |many| Word::Unknown { why: String::new(), many };
        let git = Word::Known("git".to_owned());
        for (pattern, word, permits, restricts) in [
            ("git push **", unknown(false), Match::No, Match::Maybe),
            ("git **", unknown(true), Match::Yes, Match::Yes),
            ("git *", unknown(false), Match::Yes, Match::Yes),
            ("git *", unknown(true), Match::No, Match::Maybe),
            ("git", unknown(true), Match::No, Match::Maybe),
            ("svn **", unknown(true), Match::No, Match::No),
            (
                "git --force",
                Word::Partly { prefix: "out-".into(), why: String::new(), many: false },
                Match::No,
                Match::No,
            ),
            (
                "git --force",
                Word::Partly { prefix: "--f".into(), why: String::new(), many: false },
                Match::No,
                Match::Maybe,
            ),
            ("git a*", Word::Partly { prefix: "ab".into(), why: String::new(), many: false }, Match::Yes, Match::Yes),
        ] {
            let words = [git.clone(), word];
            assert_eq!(check(pattern, &words, &[], Polarity::Permits), permits, "{pattern}");
            assert_eq!(check(pattern, &words, &[], Polarity::Restricts), restricts, "{pattern}");
        }
        assert_eq!(
            check("git push", &[unknown(false), Word::Known("push".into())], &[], Polarity::Restricts),
            Match::Maybe
        );
    }

    #[test]
    fn wrappers_count_for_restricting_rules() {
        let words = known("rm -rf /");
        assert_eq!(check("sudo **", &words, &["sudo"], Polarity::Restricts), Match::Yes);
        assert_eq!(check("sudo", &words, &["sudo"], Polarity::Restricts), Match::Yes);
        assert_eq!(check("sudo rm **", &words, &["sudo"], Polarity::Restricts), Match::Yes);
        assert_eq!(check("sudo ls **", &words, &["sudo"], Polarity::Restricts), Match::No);
        assert_eq!(check("sudo -u root **", &words, &["sudo"], Polarity::Restricts), Match::Maybe);
        assert_eq!(check("sudo **", &words, &["sudo"], Polarity::Permits), Match::No);
        assert_eq!(check("rm **", &words, &["sudo"], Polarity::Restricts), Match::Yes);
    }

    #[test]
    fn quotes_make_one_word() {
        let words = [Word::Known("echo".into()), Word::Known("a b*".into())];
        assert_eq!(check("echo 'a b*'", &words, &[], Polarity::Permits), Match::Yes);
        assert_eq!(check("echo a b*", &words, &[], Polarity::Permits), Match::No);
    }
}
