//! Variables of Python code that stand for files which literal text names: `for p in Path('src').rglob('*.ts')`.
//!
//! A name counts only if every place that binds it is understood. All other values may be anything, and the reader opens none
//! of them.

use std::collections::{BTreeMap, BTreeSet};

use super::token::Token::{self, Newline, Other, Text, Word};

/// What a variable may stand for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathOrigin {
    pub path: String,
    /// Names that exist below the path and match this glob; `None`: the path itself.
    pub names: Option<String>,
}

pub(super) type PathVariables = BTreeMap<String, BTreeSet<PathOrigin>>;

/// Functions that hand on what they are given, in some order.
const WRAPPERS: [&str; 5] = ["sorted", "list", "set", "tuple", "reversed"];
/// Names that must mean what Python says.
const FIXED: [&str; 10] =
    ["sorted", "list", "set", "tuple", "reversed", "enumerate", "open", "Path", "pathlib", "glob"];
/// How often the bindings are walked before the code counts as too complicated.
const ROUNDS: usize = 8;
/// With more bindings, the code counts as too complicated.
const MAXIMUM_BINDINGS: usize = 200;

/// A name, and where the value begins that it is bound to.
struct Binding<'a> {
    name: &'a str,
    value: &'a [Token],
    /// The value is counted: `for i, p in enumerate(…)`.
    counted: bool,
    kind: BindingKind,
}

/// What binds a name, and so what may stand behind the value: `for p in a if b else c:` means something else than
/// `[p for p in a if b]`.
#[derive(Clone, Copy)]
enum BindingKind {
    Assignment,
    Loop,
    Comprehension,
}

/// The variables that stand for paths; `None` if the code is too complicated to tell.
pub(super) fn variables(tokens: &[Token]) -> Option<PathVariables> {
    let mut bindings = Vec::new();
    let mut spoiled = BTreeSet::new();
    scan(tokens, &mut bindings, &mut spoiled)?;
    for statement in statements(tokens) {
        assigned(statement, &mut bindings, &mut spoiled)?;
    }
    if bindings.len() > MAXIMUM_BINDINGS || FIXED.iter().any(|name| spoiled.contains(name)) {
        return None;
    }
    if bindings.iter().any(|binding| FIXED.contains(&binding.name)) {
        return None;
    }
    for _ in 0..ROUNDS {
        let mut known = PathVariables::new();
        for _ in 0..ROUNDS {
            let before = known.clone();
            for binding in bindings.iter().filter(|binding| !spoiled.contains(binding.name)) {
                if let Some(origins) = binding.origins(&before) {
                    known.entry(binding.name.to_owned()).or_default().extend(origins);
                }
            }
            if known == before {
                break;
            }
        }
        // A name that is also bound to something else stands for anything.
        let others = bindings.iter().filter(|binding| binding.origins(&known).is_none()).map(|binding| binding.name);
        let count = spoiled.len();
        spoiled.extend(others);
        if spoiled.len() == count {
            return Some(known);
        }
    }
    None
}

impl Binding<'_> {
    fn origins(&self, known: &PathVariables) -> Option<BTreeSet<PathOrigin>> {
        let (value, closes) = match (self.counted, self.value) {
            (true, [Word(name), Other('('), value @ ..]) if name == "enumerate" => (value, true),
            (true, _) => return None,
            (false, value) => (value, false),
        };
        let (origins, mut rest) = expression(value, known)?;
        if closes {
            let [Other(')'), behind @ ..] = rest else { return None };
            rest = behind;
        }
        let ends = match (self.kind, rest) {
            (BindingKind::Assignment, rest) => rest.is_empty(),
            (BindingKind::Loop, [Other(':'), ..]) => true,
            (BindingKind::Comprehension, [Other(']' | ')' | '}'), ..]) => true,
            (BindingKind::Comprehension, [Word(name), ..]) => name == "if" || name == "for",
            _ => false,
        };
        ends.then_some(origins)
    }
}

/// An expression that stands for paths, and what follows it.
fn expression<'a>(tokens: &'a [Token], known: &PathVariables) -> Option<(BTreeSet<PathOrigin>, &'a [Token])> {
    let mut rest = tokens;
    let mut open = 0_usize;
    while let [Word(name), Other('('), inner @ ..] = rest
        && WRAPPERS.contains(&name.as_str())
    {
        open = open.saturating_add(1);
        rest = inner;
    }
    let (mut origins, mut rest) = match rest {
        [Word(module), Other('.'), Word(class), behind @ ..] if module == "pathlib" && class == "Path" => {
            literal(behind)?
        }
        [Word(class), behind @ ..] if class == "Path" => literal(behind)?,
        [Word(module), Other('.'), Word(function), Other('('), Text(pattern), behind @ ..]
            if module == "glob" && matches!(function.as_str(), "glob" | "iglob") =>
        {
            let behind = match behind {
                [Other(','), Word(name), Other('='), Word(value), behind @ ..]
                    if name == "recursive" && value == "True" =>
                {
                    behind
                }
                behind => behind,
            };
            let [Other(')'), behind @ ..] = behind else { return None };
            (BTreeSet::from([of_pattern(pattern)?]), behind)
        }
        [Word(name), behind @ ..] => (known.get(name)?.clone(), behind),
        _ => return None,
    };
    match rest {
        [Other('.'), Word(function), Other('('), Text(pattern), Other(')'), behind @ ..]
            if matches!(function.as_str(), "rglob" | "glob") =>
        {
            origins = below(&origins, pattern)?;
            rest = behind;
        }
        [Other('.'), Word(function), Other('('), Other(')'), behind @ ..] if function == "iterdir" => {
            origins = below(&origins, "*")?;
            rest = behind;
        }
        _ => {}
    }
    for _ in 0..open {
        let [Other(')'), behind @ ..] = rest else { return None };
        rest = behind;
    }
    Some((origins, rest))
}

/// `('src') / 'a'` after `Path`, and what follows it.
pub(super) fn literal(tokens: &[Token]) -> Option<(BTreeSet<PathOrigin>, &[Token])> {
    let (mut path, mut rest) = match tokens {
        [Other('('), Text(path), Other(')'), rest @ ..] => (path.clone(), rest),
        [Other('('), Other(')'), rest @ ..] => (".".to_owned(), rest),
        _ => return None,
    };
    while let [Other('/'), Text(name), behind @ ..] = rest {
        path = if name.starts_with('/') { name.clone() } else { format!("{path}/{name}") };
        rest = behind;
    }
    Some((BTreeSet::from([PathOrigin { path, names: None }]), rest))
}

/// The names below paths that match a pattern.
pub(super) fn below(origins: &BTreeSet<PathOrigin>, pattern: &str) -> Option<BTreeSet<PathOrigin>> {
    let goes_up = pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") || pattern.contains('\0');
    (!goes_up).then(|| {
        let names = Some(pattern.to_owned());
        origins.iter().map(|origin| PathOrigin { names: names.clone(), ..origin.clone() }).collect()
    })
}

/// The names that match a pattern which begins with a directory.
pub(super) fn of_pattern(pattern: &str) -> Option<PathOrigin> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let fixed = parts.iter().position(|part| part.contains(['*', '?', '['])).unwrap_or(parts.len().saturating_sub(1));
    let (front, back) = parts.split_at_checked(fixed)?;
    let path = match front {
        [] => ".".to_owned(),
        [""] => "/".to_owned(),
        front => front.join("/"),
    };
    let origins = below(&BTreeSet::from([PathOrigin { path, names: None }]), &back.join("/"))?;
    origins.into_iter().next()
}

/// Finds what loops, `as`, `lambda`, `:=` and imports bind, wherever they stand.
fn scan<'a>(tokens: &'a [Token], bindings: &mut Vec<Binding<'a>>, spoiled: &mut BTreeSet<&'a str>) -> Option<()> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let rest = tokens.get(at.checked_add(1)?..).unwrap_or_default();
        match token {
            Other('(' | '[' | '{') => depth = depth.saturating_add(1),
            Other(')' | ']' | '}') => depth = depth.checked_sub(1)?,
            _ => {}
        }
        let kind = if depth == 0 { BindingKind::Loop } else { BindingKind::Comprehension };
        let Word(word) = token else { continue };
        let follows_dot = at.checked_sub(1).and_then(|at| tokens.get(at)) == Some(&Other('.'));
        match word.as_str() {
            _ if follows_dot => {}
            "for" => {
                let end = rest.iter().position(|token| matches!(token, Word(name) if name == "in"))?;
                let (targets, value) = rest.split_at_checked(end)?;
                let value = value.get(1..).unwrap_or_default();
                match targets {
                    [Word(name)] => bindings.push(Binding { name, value, counted: false, kind }),
                    [Word(number), Other(','), Word(name)] => {
                        spoiled.insert(number);
                        bindings.push(Binding { name, value, counted: true, kind });
                    }
                    targets => spoiled.extend(names(targets)),
                }
            }
            "as" => match rest.first() {
                Some(Word(name)) => drop(spoiled.insert(name)),
                _ => return None,
            },
            "lambda" => {
                let end = rest.iter().position(|token| *token == Other(':'))?;
                spoiled.extend(names(rest.get(..end)?));
            }
            name if matches!(rest, [Other(':'), Other('='), ..]) => drop(spoiled.insert(name)),
            _ => {}
        }
    }
    Some(())
}

/// Finds what the assignments of a statement bind.
fn assigned<'a>(
    statement: &'a [Token],
    bindings: &mut Vec<Binding<'a>>,
    spoiled: &mut BTreeSet<&'a str>,
) -> Option<()> {
    const HEADS: [&str; 9] = ["for", "while", "if", "elif", "else", "try", "except", "finally", "with"];
    let mut body = statement;
    while let Some(Word(head)) = body.first()
        && HEADS.contains(&head.as_str())
    {
        let end = outer(body).find(|(_, token)| **token == Other(':')).map(|(at, _)| at)?;
        let (header, rest) = body.split_at_checked(end)?;
        if header.iter().any(|token| matches!(token, Word(name) if name == "lambda")) {
            return None;
        }
        body = rest.get(1..)?;
    }
    // These bind names where they stand in front of a pattern, though they may be names themselves.
    if matches!(body.first(), Some(Word(name)) if matches!(name.as_str(), "match" | "case" | "type")) {
        return None;
    }
    let is_comparison = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| body.get(at));
        let behind = at.checked_add(1).and_then(|at| body.get(at));
        behind == Some(&Other('=')) || matches!(before, Some(Other('=' | '!' | '<' | '>')))
    };
    let signs: Vec<usize> =
        outer(body).filter(|(at, token)| **token == Other('=') && !is_comparison(*at)).map(|(at, _)| at).collect();
    let Some(last) = signs.last() else { return Some(()) };
    let (targets, value) = body.split_at_checked(*last)?;
    let value = value.get(1..).unwrap_or_default();
    match targets {
        [Word(name)] => {
            bindings.push(Binding { name, value, counted: false, kind: BindingKind::Assignment });
        }
        targets => spoiled.extend(bound_names(targets)),
    }
    Some(())
}

/// The statements of code: lines and what semicolons separate, outside of brackets.
fn statements(tokens: &[Token]) -> Vec<&[Token]> {
    let ends = outer(tokens).filter(|(_, token)| matches!(token, Newline | Other(';'))).map(|(at, _)| at);
    let mut found = Vec::new();
    let mut start = 0_usize;
    for end in ends.chain([tokens.len()]) {
        found.extend(tokens.get(start..end).filter(|statement| !statement.is_empty()));
        start = end.saturating_add(1);
    }
    found
}

/// The tokens outside of brackets.
fn outer(tokens: &[Token]) -> impl Iterator<Item = (usize, &Token)> {
    let mut depth = 0_usize;
    tokens.iter().enumerate().filter(move |(_, token)| {
        match token {
            Other('(' | '[' | '{') => depth = depth.saturating_add(1),
            Other(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    })
}

fn names(tokens: &[Token]) -> impl Iterator<Item = &str> {
    tokens.iter().filter_map(|token| match token {
        Word(name) => Some(name.as_str()),
        _ => None,
    })
}

/// The names in the targets of an assignment, without those in an index: `d[p] = 1` leaves `p` as it is.
fn bound_names(targets: &[Token]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut indices = Vec::new();
    for (at, token) in targets.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| targets.get(at));
        match token {
            Other('(' | '[' | '{') => {
                let inside = indices.last().copied().unwrap_or(false);
                indices.push(inside || matches!(before, Some(Word(_) | Other(')' | ']'))));
            }
            Other(')' | ']' | '}') => drop(indices.pop()),
            Word(name) if !indices.last().copied().unwrap_or(false) && before != Some(&Other('.')) => {
                found.push(name.as_str())
            }
            _ => {}
        }
    }
    found
}
