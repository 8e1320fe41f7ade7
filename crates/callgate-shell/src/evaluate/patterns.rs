//! Matching of shell patterns inside parameter expansions, for patterns made of text, `*` and `?`.

/// One step of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternStep {
    /// This character.
    Character(char),
    /// `?`
    Any,
    /// `*`
    Run,
}

/// Whether a whole text matches. Linear in text times pattern.
pub(super) fn matches(pattern: &[PatternStep], text: &[char]) -> bool {
    let (mut step, mut place) = (0usize, 0usize);
    let mut back: Option<(usize, usize)> = None;
    while let Some(character) = text.get(place) {
        match pattern.get(step) {
            Some(PatternStep::Run) => {
                back = Some((step, place));
                step = step.saturating_add(1);
                continue;
            }
            Some(PatternStep::Any) => {
                step = step.saturating_add(1);
                place = place.saturating_add(1);
                continue;
            }
            Some(PatternStep::Character(wanted)) if wanted == character => {
                step = step.saturating_add(1);
                place = place.saturating_add(1);
                continue;
            }
            _ => {}
        }
        match back {
            Some((run, from)) => {
                back = Some((run, from.saturating_add(1)));
                step = run.saturating_add(1);
                place = from.saturating_add(1);
            }
            None => return false,
        }
    }
    pattern.get(step..).is_some_and(|rest| rest.iter().all(|step| *step == PatternStep::Run))
}

/// Removes the shortest or longest match at the front or the back.
pub(super) fn remove(pattern: &[PatternStep], text: &str, front: bool, longest: bool) -> String {
    let characters: Vec<char> = text.chars().collect();
    let lengths: Box<dyn Iterator<Item = usize>> =
        if longest { Box::new((0..=characters.len()).rev()) } else { Box::new(0..=characters.len()) };
    for length in lengths {
        let (head, tail) = characters.split_at(if front { length } else { characters.len().saturating_sub(length) });
        let (part, rest) = if front { (head, tail) } else { (tail, head) };
        if matches(pattern, part) {
            return rest.iter().collect();
        }
    }
    text.to_owned()
}
