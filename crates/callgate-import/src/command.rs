//! Patterns on the text of commands, as agents write them, and what they become: patterns on words where that is the same, and
//! regular expressions on the text where a deny would otherwise be lost.

/// Programs that callgate takes off in front of what they run, so that an allow for them would match nothing.
const PEELED: &[&str] = &[
    "env",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "nohup",
    "setsid",
    "timeout",
    "time",
    "stdbuf",
    "unbuffer",
    "flock",
    "watch",
    "xargs",
    "parallel",
    "sudo",
    "doas",
    "su",
    "command",
    "builtin",
    "exec",
    "eval",
    "bash",
    "sh",
    "dash",
    "zsh",
    "ksh",
    "ash",
    "busybox",
    "toybox",
    "caffeinate",
];
/// Programs that run what stands among their words.
const CARRIERS: &[&str] =
    &["find", "fd", "ssh", "docker", "podman", "kubectl", "fish", "script", "systemd-run", "chroot"];

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    /// Any text, also none and also several words.
    Any,
    /// Any character.
    One,
}

/// What may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing.
    End,
    /// Nothing, or a blank and anything.
    MoreWords,
}

/// A pattern on the text of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPattern {
    pieces: Vec<Piece>,
    tail: Tail,
}

/// What a pattern becomes in a rule that denies or asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Restricting {
    /// Patterns on words.
    pub commands: Vec<String>,
    /// Regular expressions on the text.
    pub patterns: Vec<String>,
}

impl TextPattern {
    pub(super) fn exact(text: &str) -> Self {
        TextPattern { pieces: literal(text), tail: Tail::End }
    }

    /// The text, alone or followed by a blank and anything.
    pub(super) fn prefix(text: &str) -> Self {
        TextPattern { pieces: literal(text), tail: Tail::MoreWords }
    }

    /// `*` stands for anything. `\*` is the character if `escapes`, `?` is one character if `questions`.
    pub(super) fn wild(text: &str, escapes: bool, questions: bool) -> Self {
        let mut pieces = Vec::new();
        let mut run = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let special = match character {
                '\\' if escapes && matches!(characters.peek(), Some('*' | '\\')) => {
                    run.extend(characters.next());
                    continue;
                }
                '*' => Piece::Any,
                '?' if questions => Piece::One,
                _ => {
                    run.push(character);
                    continue;
                }
            };
            pieces.append(&mut literal(&std::mem::take(&mut run)));
            if special != Piece::Any || pieces.last() != Some(&Piece::Any) {
                pieces.push(special);
            }
        }
        pieces.append(&mut literal(&run));
        TextPattern { pieces, tail: Tail::End }
    }

    /// The same, where a blank and `*` at the end are optional together.
    #[must_use]
    pub(super) fn optional_tail(mut self) -> Self {
        if let [.., Piece::Literal(text), Piece::Any] = self.pieces.as_mut_slice()
            && text.ends_with(' ')
        {
            text.pop();
            let emptied = text.is_empty();
            self.pieces.pop();
            if emptied {
                self.pieces.pop();
            }
            self.tail = Tail::MoreWords;
        }
        self
    }

    /// How many `*` there are.
    pub(super) fn wildcards(&self) -> usize {
        self.pieces.iter().filter(|piece| **piece == Piece::Any).count()
    }

    /// Whether every text fits.
    pub(super) fn is_everything(&self) -> bool {
        self.pieces == [Piece::Any] || self.pieces.is_empty() && self.tail == Tail::MoreWords
    }

    /// Whether a text fits: how the agent decides.
    pub(super) fn matches(&self, text: &str) -> bool {
        if fits(&self.pieces, text) {
            return true;
        }
        self.tail == Tail::MoreWords
            && text
                .char_indices()
                .filter(|(_, character)| character.is_whitespace())
                .any(|(index, _)| text.get(..index).is_some_and(|front| fits(&self.pieces, front)))
    }

    /// For a rule that denies or asks: together these cover at least what the pattern covers.
    pub(super) fn restricting(&self) -> Restricting {
        if self.is_everything() {
            return Restricting { commands: vec!["**".to_owned()], patterns: Vec::new() };
        }
        let plain = self.is_plain();
        let words = self.words();
        let mut result = Restricting::default();
        if plain {
            let mut parts: Vec<String> = Vec::new();
            for word in &words {
                let starts_open = word.first() == Some(&Piece::Any);
                let ends_open = word.last() == Some(&Piece::Any);
                if starts_open {
                    parts.push("**".to_owned());
                }
                if word.as_slice() != [Piece::Any] {
                    parts.push(word_pattern(word));
                    if ends_open {
                        parts.push("**".to_owned());
                    }
                }
            }
            if self.tail == Tail::MoreWords {
                parts.push("**".to_owned());
            }
            parts.dedup_by(|later, earlier| later == "**" && earlier == "**");
            result.commands.push(parts.join(" "));
        }
        let open_inside =
            self.pieces.iter().rev().skip(1).any(|piece| *piece == Piece::Any) || self.pieces.contains(&Piece::One);
        let first = words.first().map(|word| word_pattern(word)).unwrap_or_default();
        let carries = [PEELED, CARRIERS].iter().any(|list| list.contains(&first.as_str()));
        if !plain || open_inside || carries {
            result.patterns.push(self.regular_expression());
        }
        result
    }

    /// For a rule that allows: a pattern on words that covers at most what the pattern covers, or why there is none.
    pub(super) fn permitting(&self) -> Result<String, &'static str> {
        if self.is_everything() {
            return Ok("**".to_owned());
        }
        if !self.is_plain() {
            return Err("it has quotes, variables or other shell syntax; callgate compares words, not text");
        }
        let words = self.words();
        let first = words.first().map(|word| word_pattern(word)).unwrap_or_default();
        if PEELED.contains(&first.as_str()) {
            return Err("it names a program that only starts others; callgate judges what is started");
        }
        let mut parts: Vec<String> = Vec::new();
        for word in &words {
            if word.as_slice() == [Piece::Any] {
                parts.extend(["*".to_owned(), "**".to_owned()]);
            } else {
                parts.push(word_pattern(word));
                if word.last() == Some(&Piece::Any) {
                    parts.push("**".to_owned());
                }
            }
        }
        if self.tail == Tail::MoreWords {
            parts.push("**".to_owned());
        }
        parts.dedup_by(|later, earlier| later == "**" && earlier == "**");
        Ok(parts.join(" "))
    }

    /// Whether the text says the same as its words: no quotes, expansions, operators, assignments.
    fn is_plain(&self) -> bool {
        let plain = self.pieces.iter().all(|piece| match piece {
            Piece::Literal(text) => text.chars().all(|character| {
                character.is_ascii_alphanumeric()
                    || matches!(character, ' ' | '_' | '-' | '.' | '/' | ':' | '@' | '%' | '+' | ',' | '=')
            }),
            Piece::Any | Piece::One => true,
        });
        let assigns = self
            .words()
            .first()
            .is_some_and(|word| word.iter().any(|piece| matches!(piece, Piece::Literal(text) if text.contains('='))));
        plain && !assigns
    }

    /// The pattern cut at blanks.
    fn words(&self) -> Vec<Vec<Piece>> {
        let mut words: Vec<Vec<Piece>> = Vec::new();
        let mut word: Vec<Piece> = Vec::new();
        for piece in &self.pieces {
            let Piece::Literal(text) = piece else {
                word.push(piece.clone());
                continue;
            };
            for (index, run) in text.split(' ').enumerate() {
                if index > 0 && !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                word.append(&mut literal(run));
            }
        }
        if !word.is_empty() {
            words.push(word);
        }
        words
    }

    /// Found wherever a command could start in the text.
    fn regular_expression(&self) -> String {
        let mut expression = String::from("(?s)");
        if self.pieces.first() != Some(&Piece::Any) {
            expression.push_str("(?:^|[\\s;&|(){}`$\"'/])");
        }
        for piece in &self.pieces {
            match piece {
                Piece::Any => expression.push_str(".*"),
                Piece::One => expression.push('.'),
                Piece::Literal(text) => {
                    let mut blank = false;
                    for character in text.chars() {
                        if character.is_whitespace() {
                            if !std::mem::replace(&mut blank, true) {
                                expression.push_str("\\s+");
                            }
                            continue;
                        }
                        blank = false;
                        escape_into(&mut expression, character);
                    }
                }
            }
        }
        if self.pieces.last() != Some(&Piece::Any) {
            expression.push_str("(?:$|[\\s;&|(){}`\"'<>])");
        }
        expression
    }

    /// Texts that fit, and some that nearly do.
    pub(super) fn samples(&self) -> Vec<String> {
        let fill = |filling: &str| {
            self.pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Literal(text) => text.as_str(),
                    Piece::Any => filling,
                    Piece::One => "x",
                })
                .collect::<String>()
        };
        let mut samples = vec![fill(""), fill("x"), fill("--all x"), fill("a b c")];
        if self.tail == Tail::MoreWords {
            samples.extend([format!("{} --quiet x", fill("x")), format!("{}x", fill("x"))]);
        } else {
            samples.push(format!("{} more", fill("x")));
        }
        if let Some((front, _)) = fill("x").rsplit_once(' ') {
            samples.push(front.to_owned());
        }
        samples.into_iter().map(|sample| sample.trim().to_owned()).filter(|sample| !sample.is_empty()).collect()
    }
}

fn literal(text: &str) -> Vec<Piece> {
    if text.is_empty() { Vec::new() } else { vec![Piece::Literal(text.to_owned())] }
}

fn word_pattern(word: &[Piece]) -> String {
    word.iter()
        .map(|piece| match piece {
            Piece::Literal(text) => escape_word(text),
            Piece::Any => "*".to_owned(),
            Piece::One => "?".to_owned(),
        })
        .collect()
}

/// A word as callgate's patterns write it when it is meant literally.
pub(super) fn escape_word(word: &str) -> String {
    if word.is_empty() {
        return "''".to_owned();
    }
    let mut escaped = String::with_capacity(word.len());
    for character in word.chars() {
        if character.is_whitespace()
            || matches!(character, '*' | '?' | '[' | ']' | '\\' | '{' | '}' | ',' | '!' | '\'' | '"')
        {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn escape_into(expression: &mut String, character: char) {
    if character.is_ascii() && !character.is_ascii_alphanumeric() && !matches!(character, '_' | '/' | ':' | ' ') {
        expression.push('\\');
    }
    expression.push(character);
}

/// Whether a text fits: one pass with a way back to the last `*`.
fn fits(pieces: &[Piece], text: &str) -> bool {
    let tokens: Vec<Option<Option<char>>> = pieces
        .iter()
        .flat_map(|piece| match piece {
            Piece::Any => vec![None],
            Piece::One => vec![Some(None)],
            Piece::Literal(text) => text.chars().map(|character| Some(Some(character))).collect(),
        })
        .collect();
    let text: Vec<char> = text.chars().collect();
    let (mut token, mut at) = (0_usize, 0_usize);
    let mut back: Option<(usize, usize)> = None;
    while at < text.len() {
        match tokens.get(token) {
            Some(None) => {
                token = token.saturating_add(1);
                back = Some((token, at));
            }
            Some(Some(wanted)) if wanted.is_none() || *wanted == text.get(at).copied() => {
                token = token.saturating_add(1);
                at = at.saturating_add(1);
            }
            _ => match back {
                Some((after, from)) => {
                    let next = from.saturating_add(1);
                    (token, at, back) = (after, next, Some((after, next)));
                }
                None => return false,
            },
        }
    }
    tokens.get(token..).unwrap_or_default().iter().all(Option::is_none)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wild(text: &str) -> TextPattern {
        TextPattern::wild(text, true, false).optional_tail()
    }

    #[test]
    fn how_text_is_matched() {
        for (pattern, text, expected) in [
            (TextPattern::exact("npm test"), "npm test", true),
            (TextPattern::exact("npm test"), "npm test x", false),
            (TextPattern::prefix("npm test"), "npm test", true),
            (TextPattern::prefix("npm test"), "npm test x y", true),
            (TextPattern::prefix("npm test"), "npm tests", false),
            (wild("git push *"), "git push", true),
            (wild("git push *"), "git push -f", true),
            (wild("git push *"), "git pushx", false),
            (wild("git push*"), "git pushx y", true),
            (wild("git * main"), "git push -f main", true),
            (wild("git * main"), "git push main x", false),
            (wild("*"), "", true),
            (wild("echo \\*"), "echo *", true),
            (wild("echo \\*"), "echo x", false),
            (TextPattern::wild("a?c", false, true), "abc", true),
        ] {
            assert_eq!(pattern.matches(text), expected, "{pattern:?} {text}");
        }
    }

    #[test]
    fn what_patterns_become() {
        for (pattern, restricting, permitting) in [
            (TextPattern::exact("npm test"), &["npm test"][..], Some("npm test")),
            (TextPattern::prefix("npm test"), &["npm test **"], Some("npm test **")),
            (wild("git push*"), &["git push* **"], Some("git push* **")),
            (wild("git * main"), &["git ** main"], Some("git * ** main")),
            (wild("*"), &["**"], Some("**")),
            (wild("* --help"), &["** --help"], Some("* ** --help")),
            (wild("sudo *"), &["sudo **"], None),
            (wild("echo \"x\"*"), &[], None),
            (wild("A=1 rm *"), &[], None),
            (wild("rm $HOME/*"), &[], None),
        ] {
            assert_eq!(pattern.restricting().commands, restricting, "{pattern:?}");
            assert_eq!(pattern.permitting().ok().as_deref(), permitting, "{pattern:?}");
            assert!(!restricting.is_empty() || !pattern.restricting().patterns.is_empty(), "a deny is never lost");
        }
    }

    #[test]
    fn samples_are_about_the_pattern() {
        for pattern in [wild("git push *"), TextPattern::exact("make"), wild("npm run *:unit")] {
            let fitting = pattern.samples().iter().filter(|sample| pattern.matches(sample)).count();
            assert!(fitting > 0 && fitting < pattern.samples().len(), "{pattern:?}");
        }
    }
}
