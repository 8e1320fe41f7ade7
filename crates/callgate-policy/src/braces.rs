//! `{a,b}` in patterns written by people and tools.

/// How many texts one pattern may stand for.
const MAXIMUM: usize = 256;

/// All texts that a pattern with braces stands for; `None` if there are too many or the braces do not match up.
///
/// Braces without a comma stand for themselves, as in the shell. A character after `\` is kept with its backslash.
pub fn expand(text: &str) -> Option<Vec<String>> {
    let mut finished = Vec::new();
    let mut waiting = vec![text.to_owned()];
    while let Some(text) = waiting.pop() {
        if finished.len().saturating_add(waiting.len()) > MAXIMUM {
            return None;
        }
        match first_group(&text)? {
            None => finished.push(text),
            Some(group) => waiting
                .extend(group.choices.iter().rev().map(|choice| format!("{}{choice}{}", group.before, group.after))),
        }
    }
    Some(finished)
}

struct Group<'a> {
    before: &'a str,
    choices: Vec<&'a str>,
    after: &'a str,
}

/// The first group with a comma; `Some(None)` if there is none, `None` if a brace is left open.
fn first_group(text: &str) -> Option<Option<Group<'_>>> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut characters = text.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '{' => open.push((position, Vec::new())),
            ',' => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(position);
                }
            }
            '}' => {
                let Some((start, commas)) = open.pop() else {
                    continue;
                };
                // inner groups close first, so the outermost one with a comma is split last: take any complete one
                if commas.is_empty() {
                    continue;
                }
                let mut choices = Vec::with_capacity(commas.len().saturating_add(1));
                let mut from = start.saturating_add(1);
                for comma in commas {
                    choices.push(text.get(from..comma)?);
                    from = comma.saturating_add(1);
                }
                choices.push(text.get(from..position)?);
                return Some(Some(Group {
                    before: text.get(..start)?,
                    choices,
                    after: text.get(position.saturating_add(1)..)?,
                }));
            }
            _ => {}
        }
    }
    if open.is_empty() { Some(None) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stand_for_their_choices() {
        let cases: &[(&str, &[&str])] = &[
            ("a", &["a"]),
            ("/dev/{null,zero}", &["/dev/null", "/dev/zero"]),
            ("{a,b}{c,d}", &["ac", "ad", "bc", "bd"]),
            ("x{a,{b,c}}", &["xa", "xb", "xa", "xc"]),
            ("{,a}x", &["x", "ax"]),
            ("{single}", &["{single}"]),
            ("\\{a,b\\}", &["\\{a,b\\}"]),
            ("a}b", &["a}b"]),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text).expect(text), *expected, "{text}");
        }
    }

    #[test]
    fn too_many_choices_and_open_braces_are_not_expanded() {
        assert_eq!(expand(&"{a,b}".repeat(20)), None);
        assert_eq!(expand("{a,b"), None);
        assert_eq!(expand(&"{".repeat(100_000)), None);
    }
}
