//! Regular expressions: checked when a file is loaded, compiled when a call first needs them.
//!
//! The linear engine is tried first. Look-around and back-references go to the backtracking one, which has a limit; a
//! pattern that overruns it refuses the call.

use std::sync::OnceLock;

use regex_syntax::hir::literal::Extractor;

use super::{Pool, Span, Text};
use crate::rules::stored::List;

/// How far a backtracking pattern may go.
#[cfg(feature = "look-around")]
const BACKTRACK_LIMIT: usize = 100_000;
/// How large a compiled pattern may be, in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// All patterns of a policy.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    sources: List<Text>,
    compiled: OnceLock<Box<[OnceLock<Compiled>]>>,
}

#[derive(Debug)]
enum Compiled {
    Linear(regex::Regex),
    #[cfg(feature = "look-around")]
    Backtracking(Box<fancy_regex::Regex>),
    /// Too large to compile.
    Unusable,
}

/// What searching a text came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    No,
    Yes,
    /// The search was given up.
    Overrun,
}

/// What is known of a pattern without compiling it.
#[derive(Debug)]
pub(crate) struct Checked {
    /// One of these stands in every text that fits; `None` if there is no such list.
    pub literals: Option<Vec<Vec<u8>>>,
}

/// Checks a pattern, cheaply for all that need no look-around.
pub(crate) fn check(source: &str) -> Result<Checked, String> {
    match regex_syntax::parse(source) {
        Ok(expression) => {
            let mut extractor = Extractor::new();
            extractor.limit_total(16);
            let literals = extractor.extract(&expression);
            let literals = literals
                .literals()
                .filter(|list| !list.is_empty())
                .map(|list| list.iter().map(|literal| literal.as_bytes().to_vec()).collect());
            Ok(Checked { literals })
        }
        Err(error) => match backtracking(source) {
            Ok(_) => Ok(Checked { literals: None }),
            // The linear engine explains better what is wrong, except where it only misses look-around.
            Err(other) => {
                let plain = short(&error);
                Err(if plain.contains("not supported") { other } else { plain })
            }
        },
    }
}

/// The last line of a message that otherwise shows the pattern again.
fn short(error: &regex_syntax::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(feature = "look-around")]
fn backtracking(source: &str) -> Result<Compiled, String> {
    let regex =
        fancy_regex::RegexBuilder::new(source).backtrack_limit(BACKTRACK_LIMIT).delegate_size_limit(SIZE_LIMIT).build();
    regex.map(|regex| Compiled::Backtracking(Box::new(regex))).map_err(|error| error.to_string())
}

#[cfg(not(feature = "look-around"))]
fn backtracking(_source: &str) -> Result<Compiled, String> {
    Err("look-around and back-references need callgate's feature `look-around`".to_owned())
}

impl Compiled {
    fn new(source: &str) -> Self {
        if let Ok(regex) = regex::RegexBuilder::new(source).size_limit(SIZE_LIMIT).build() {
            return Self::Linear(regex);
        }
        backtracking(source).unwrap_or(Self::Unusable)
    }

    fn search(&self, text: &str) -> Found {
        match self {
            Self::Linear(regex) => {
                if regex.is_match(text) {
                    Found::Yes
                } else {
                    Found::No
                }
            }
            #[cfg(feature = "look-around")]
            Self::Backtracking(regex) => match regex.is_match(text) {
                Ok(true) => Found::Yes,
                Ok(false) => Found::No,
                Err(_) => Found::Overrun,
            },
            Self::Unusable => Found::Overrun,
        }
    }
}

impl Patterns {
    /// Patterns with these sources.
    pub(crate) fn new(sources: List<Text>) -> Self {
        Self { sources, compiled: OnceLock::new() }
    }

    /// All sources.
    pub(crate) fn sources(&self) -> &List<Text> {
        &self.sources
    }

    /// Adds several at once.
    pub(crate) fn append(&mut self, sources: Vec<Text>) -> Span {
        self.sources.append(sources)
    }

    /// Searches a text for the pattern of this number.
    pub(crate) fn search(&self, number: usize, pool: &Pool, text: &str) -> Found {
        let compiled = self.compiled.get_or_init(|| (0..self.sources.len()).map(|_| OnceLock::new()).collect());
        let (Some(slot), Some(source)) = (compiled.get(number), self.sources.get(number)) else {
            return Found::Overrun;
        };
        slot.get_or_init(|| Compiled::new(pool.get(source))).search(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(source: &str, text: &str) -> Found {
        check(source).unwrap();
        let (mut pool, mut patterns) = (Pool::default(), Patterns::default());
        patterns.append(vec![pool.add(source)]);
        patterns.search(0, &pool, text)
    }

    #[cfg(feature = "look-around")]
    #[test]
    fn both_engines() {
        assert_eq!(search(r"rm\s+-rf", "sudo rm  -rf /"), Found::Yes);
        assert_eq!(search(r"^git (?!push)", "git pull"), Found::Yes);
        assert_eq!(search(r"^git (?!push)", "git push"), Found::No);
        assert_eq!(search(r"(?<=a)b", "ab"), Found::Yes);
        assert_eq!(search(r"(\w)\1", "aa"), Found::Yes);
    }

    #[cfg(feature = "look-around")]
    #[test]
    fn a_pattern_that_overruns_says_so() {
        assert_eq!(search(r"^(?!x)(a|a|aa)+\1b$", &"a".repeat(60)), Found::Overrun);
    }

    #[test]
    fn mistakes_are_found_at_once() {
        for source in ["(", "[a", "a{3,1}", "*a", "(?<n", r"\9999999"] {
            assert!(check(source).is_err(), "{source}");
        }
    }

    #[test]
    fn what_must_occur_is_known() {
        assert_eq!(check("^rm -rf").unwrap().literals.unwrap(), [b"rm -rf".to_vec()]);
        assert!(check(".*x").unwrap().literals.is_none());
        #[cfg(feature = "look-around")]
        assert!(check("(?!x)y").unwrap().literals.is_none());
    }
}
