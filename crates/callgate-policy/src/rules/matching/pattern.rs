//! Regular expressions: checked when a file is loaded, compiled when a call first needs them.
//!
//! The linear engine is tried first. Look-around and back-references need the backtracking one, which has a limit; a
//! pattern that exceeds it refuses the call.

use regex_syntax::hir::literal::Extractor;

use super::Pool;
use crate::rules::stored::CompiledTexts;

/// How far a backtracking pattern may go.
#[cfg(feature = "look-around")]
const BACKTRACK_LIMIT: usize = 100_000;
/// How large a compiled pattern may be, in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// All patterns of a policy.
pub(crate) type Patterns = CompiledTexts<CompiledRegex>;

#[derive(Debug)]
pub(crate) enum CompiledRegex {
    Linear(regex::Regex),
    #[cfg(feature = "look-around")]
    Backtracking(Box<fancy_regex::Regex>),
    /// Too large to compile.
    Unusable,
}

/// Literals of which every text that fits a pattern contains one; `None` if there is no such list.
pub(crate) type Literals = Option<Vec<Vec<u8>>>;

/// Checks a pattern, cheaply for all that need no look-around.
pub(crate) fn check(source: &str) -> Result<Literals, String> {
    match regex_syntax::parse(source) {
        Ok(expression) => {
            let mut extractor = Extractor::new();
            extractor.limit_total(16);
            let literals = extractor.extract(&expression);
            let literals = literals.literals().filter(|list| !list.is_empty());
            Ok(literals.map(|list| list.iter().map(|literal| literal.as_bytes().to_vec()).collect()))
        }
        Err(error) => match backtracking(source) {
            Ok(_) => Ok(None),
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
fn backtracking(source: &str) -> Result<CompiledRegex, String> {
    let regex =
        fancy_regex::RegexBuilder::new(source).backtrack_limit(BACKTRACK_LIMIT).delegate_size_limit(SIZE_LIMIT).build();
    regex.map(|regex| CompiledRegex::Backtracking(Box::new(regex))).map_err(|error| error.to_string())
}

#[cfg(not(feature = "look-around"))]
fn backtracking(_source: &str) -> Result<CompiledRegex, String> {
    Err("look-around and back-references require callgate's feature `look-around`".to_owned())
}

impl CompiledRegex {
    fn new(source: &str) -> Self {
        if let Ok(regex) = regex::RegexBuilder::new(source).size_limit(SIZE_LIMIT).build() {
            return Self::Linear(regex);
        }
        backtracking(source).unwrap_or(Self::Unusable)
    }

    fn search(&self, text: &str) -> Option<bool> {
        match self {
            Self::Linear(regex) => Some(regex.is_match(text)),
            #[cfg(feature = "look-around")]
            Self::Backtracking(regex) => regex.is_match(text).ok(),
            Self::Unusable => None,
        }
    }
}

/// Whether the pattern of this number is found in a text; `None` if the search was given up.
pub(crate) fn search(patterns: &Patterns, number: usize, pool: &Pool, text: &str) -> Option<bool> {
    patterns.get(number, pool, CompiledRegex::new)?.search(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "look-around")]
    fn search(source: &str, text: &str) -> Option<bool> {
        check(source).unwrap();
        let (mut pool, mut patterns) = (Pool::default(), Patterns::default());
        patterns.append([pool.add(source)]);
        super::search(&patterns, 0, &pool, text)
    }

    #[cfg(feature = "look-around")]
    #[test]
    fn both_engines() {
        assert_eq!(search(r"rm\s+-rf", "sudo rm  -rf /"), Some(true));
        assert_eq!(search(r"^git (?!push)", "git pull"), Some(true));
        assert_eq!(search(r"^git (?!push)", "git push"), Some(false));
        assert_eq!(search(r"(?<=a)b", "ab"), Some(true));
        assert_eq!(search(r"(\w)\1", "aa"), Some(true));
    }

    #[cfg(feature = "look-around")]
    #[test]
    fn a_pattern_that_overruns_says_so() {
        assert_eq!(search(r"^(?!x)(a|a|aa)+\1b$", &"a".repeat(60)), None);
    }

    #[test]
    fn mistakes_are_found_at_once() {
        for source in ["(", "[a", "a{3,1}", "*a", "(?<n", r"\9999999"] {
            assert!(check(source).is_err(), "{source}");
        }
    }

    #[test]
    fn what_must_occur_is_known() {
        assert_eq!(check("^rm -rf").unwrap().unwrap(), [b"rm -rf".to_vec()]);
        assert!(check(".*x").unwrap().is_none());
        #[cfg(feature = "look-around")]
        assert!(check("(?!x)y").unwrap().is_none());
    }
}
