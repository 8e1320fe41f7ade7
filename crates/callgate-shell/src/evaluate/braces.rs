//! Brace expansion: `{a,b}`, `{1..5}`.

use crate::syntax::ast::Part;

/// One character of unquoted text, or a part that braces look past.
#[derive(Debug, Clone, PartialEq)]
enum Unit {
    Character(char),
    Part(Part),
}

/// How many bytes of expansions are copied into the words that braces make.
const MOST_COPIED: usize = 1 << 20;

/// A budget for the work.
struct Budget {
    /// Units in words.
    units: usize,
    /// Units searched for a closing brace.
    looked_at: usize,
    /// Bytes of expansions inside the braces.
    copied: usize,
}

impl Budget {
    fn take(from: &mut usize, count: usize) -> Option<()> {
        crate::work::count(count);
        *from = from.checked_sub(count)?;
        Some(())
    }
}

/// How many bytes of source a unit represents.
fn weight(unit: &Unit) -> usize {
    fn of(part: &Part) -> usize {
        match part {
            Part::Literal(text) | Part::Quoted(text) => text.len(),
            Part::Double(parts) => parts.iter().map(of).fold(0, usize::saturating_add),
            Part::Parameter(parameter) => parameter.span.len(),
            Part::Command(body) | Part::Process { body, .. } => body.span.len(),
            Part::Arithmetic(_, span) | Part::Unclear(_, span) => span.len(),
        }
    }
    match unit {
        Unit::Character(_) => 0,
        Unit::Part(part) => of(part),
    }
}

/// Whether a word contains braces.
pub(super) fn has_braces(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Literal(text) if text.contains('{')))
}

/// Expands the braces of a word. `None`: more words than allowed.
pub(super) fn expand(parts: &[Part], most: usize) -> Option<Vec<Vec<Part>>> {
    let mut units = Vec::new();
    for part in parts {
        match part {
            Part::Literal(text) => units.extend(text.chars().map(Unit::Character)),
            other => units.push(Unit::Part(other.clone())),
        }
    }
    let mut budget = Budget {
        units: most.saturating_mul(units.len().saturating_add(8)).saturating_mul(4),
        looked_at: units.len().saturating_add(64).saturating_mul(64),
        copied: MOST_COPIED,
    };
    let words = expand_units(&units, most, &mut budget, 0)?;
    Some(words.into_iter().map(|word| to_parts(&word)).collect())
}

fn to_parts(units: &[Unit]) -> Vec<Part> {
    let mut parts = Vec::new();
    for unit in units {
        match (unit, parts.last_mut()) {
            (Unit::Character(character), Some(Part::Literal(text))) => text.push(*character),
            // Braces are expanded first: `$x{a,b}` is `$xa` and `$xb`.
            (Unit::Character(character), Some(Part::Parameter(parameter)))
                if !parameter.braced
                    && parameter.name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                    && (character.is_ascii_alphanumeric() || *character == '_') =>
            {
                parameter.name.push(*character);
            }
            (Unit::Character(character), _) => parts.push(Part::Literal(character.to_string())),
            (Unit::Part(part), _) => parts.push(part.clone()),
        }
    }
    parts
}

fn expand_units(units: &[Unit], most: usize, budget: &mut Budget, depth: usize) -> Option<Vec<Vec<Unit>>> {
    Budget::take(&mut budget.units, units.len().saturating_add(1))?;
    if depth > 16 {
        return None;
    }
    let mut from = 0usize;
    while let Some(open) = position(units, from, '{') {
        let found = matching(units, open);
        let end = found.as_ref().map_or(units.len(), |(close, _)| *close);
        Budget::take(&mut budget.looked_at, end.saturating_sub(open))?;
        let Some((close, commas)) = found else {
            from = open.saturating_add(1);
            continue;
        };
        let inside = units.get(open.saturating_add(1)..close)?;
        let alternatives = if commas.is_empty() {
            match sequence(inside, most) {
                Sequence::Is(words) => words,
                Sequence::TooLong => return None,
                Sequence::Not => {
                    from = open.saturating_add(1);
                    continue;
                }
            }
        } else {
            let mut alternatives = Vec::new();
            let mut start = open.saturating_add(1);
            for end in commas.into_iter().chain([close]) {
                alternatives.extend(expand_units(units.get(start..end)?, most, budget, depth.saturating_add(1))?);
                start = end.saturating_add(1);
            }
            alternatives
        };
        let front = units.get(..open)?;
        let backs = expand_units(units.get(close.saturating_add(1)..)?, most, budget, depth.saturating_add(1))?;
        if alternatives.len().saturating_mul(backs.len()) > most {
            return None;
        }
        let heavy = |units: &[Unit]| units.iter().map(weight).fold(0, usize::saturating_add);
        let front_weight = heavy(front);
        let mut words = Vec::new();
        for middle in &alternatives {
            for back in &backs {
                Budget::take(&mut budget.units, middle.len().saturating_add(back.len()))?;
                let copied = front_weight.saturating_add(heavy(middle)).saturating_add(heavy(back));
                Budget::take(&mut budget.copied, copied)?;
                words.push(front.iter().chain(middle).chain(back).cloned().collect());
            }
        }
        return Some(words);
    }
    Some(vec![units.to_vec()])
}

fn position(units: &[Unit], from: usize, wanted: char) -> Option<usize> {
    let found = units.get(from..)?.iter().position(|unit| *unit == Unit::Character(wanted))?;
    Some(from.saturating_add(found))
}

/// The position of the brace that closes the one at `open`, and of their commas.
fn matching(units: &[Unit], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0usize;
    let mut commas = Vec::new();
    for (place, unit) in units.iter().enumerate().skip(open) {
        match unit {
            Unit::Character('{') => depth = depth.saturating_add(1),
            Unit::Character('}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some((place, commas));
                }
            }
            Unit::Character(',') if depth == 1 => commas.push(place),
            _ => {}
        }
    }
    None
}

enum Sequence {
    Is(Vec<Vec<Unit>>),
    TooLong,
    Not,
}

/// `1..5`, `a..e`, `1..9..2`
fn sequence(inside: &[Unit], most: usize) -> Sequence {
    let mut text = String::new();
    for unit in inside {
        match unit {
            Unit::Character(character) => text.push(*character),
            Unit::Part(_) => return Sequence::Not,
        }
    }
    let pieces: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match pieces.as_slice() {
        [first, last] => (*first, *last, 1),
        [first, last, step] => match step.parse::<i64>() {
            Ok(step) => (*first, *last, step.saturating_abs().max(1)),
            Err(_) => return Sequence::Not,
        },
        _ => return Sequence::Not,
    };
    let letter = |text: &str| {
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) if character.is_ascii_alphabetic() => Some(i64::from(u32::from(character))),
            _ => None,
        }
    };
    let (from, to, letters) = match (first.parse::<i64>(), last.parse::<i64>(), letter(first), letter(last)) {
        (Ok(from), Ok(to), _, _) => (from, to, false),
        (_, _, Some(from), Some(to)) => (from, to, true),
        _ => return Sequence::Not,
    };
    // `{Z..a}` passes through characters that are special.
    if letters && first.chars().all(char::is_uppercase) != last.chars().all(char::is_uppercase) {
        return Sequence::TooLong;
    }
    let padded = |text: &str| text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0');
    let width = if padded(first) || padded(last) { first.len().max(last.len()) } else { 0 };
    let count = (i128::from(to) - i128::from(from)).unsigned_abs() / u128::from(step.unsigned_abs()) + 1;
    if count > most as u128 {
        return Sequence::TooLong;
    }
    let mut words = Vec::new();
    let mut value = from;
    for _ in 0..count {
        let text = match (letters, u32::try_from(value).ok().and_then(char::from_u32)) {
            (true, Some(character)) => character.to_string(),
            _ if width > 0 => format!("{value:0width$}"),
            _ => value.to_string(),
        };
        words.push(text.chars().map(Unit::Character).collect());
        value = if to >= from { value.saturating_add(step) } else { value.saturating_sub(step) };
    }
    Sequence::Is(words)
}
