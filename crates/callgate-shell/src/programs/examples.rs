//! Running the examples of tables.

use super::collect::IF_DIRECTORY;
use super::table::{EffectForm, EffectTarget, Example};
use super::{Invocation, NestedBody, Programs, paths};
use crate::effect::{Action, CodeOrigin, Effect, Mark, Names, Target};
use crate::stream::Stream;
use crate::word::Word;

/// Where examples run.
const DIRECTORY: &str = "/example/directory";
const HOME: &str = "/home/someone";
/// How deep wrapped commands are followed.
const MAX_DEPTH: usize = 10;

/// What differs between an example's effects and what it says; `None`: nothing, or it needs
/// more of the shell than this reads.
pub(super) fn difference(programs: &Programs, example: &Example) -> Option<String> {
    let mut effects = Vec::new();
    let place = Place { directory: Some(DIRECTORY.to_owned()), elsewhere: false };
    run_source(programs, &example.command, &place, &Stream::Unconnected, 0, &mut effects)?;
    let found: Vec<&Effect> = effects.iter().filter(|effect| counts(effect)).collect();
    let mut lines = Vec::new();
    for effect in &found {
        if !example.expected.iter().any(|form| agrees(form, effect)) {
            lines.push(format!("has `{}` ({})", shown(effect), effect.because));
        }
    }
    for form in &example.expected {
        if !found.iter().any(|effect| agrees(form, effect)) {
            lines.push(format!("lacks `{}`", shown_form(form)));
        }
    }
    (!lines.is_empty()).then(|| format!("example `{}`: {}", example.command, lines.join("; ")))
}

#[derive(Clone)]
struct Place {
    directory: Option<String>,
    elsewhere: bool,
}

/// Runs a pipeline of simple commands; `None`: there is more in it than that.
fn run_source(
    programs: &Programs,
    source: &str,
    place: &Place,
    stdin: &Stream,
    depth: usize,
    effects: &mut Vec<Effect>,
) -> Option<Stream> {
    let mut stream = stdin.clone();
    for words in commands(source)? {
        stream = run_words(programs, &words, place, &stream, depth, effects)?;
    }
    Some(stream)
}

fn run_words(
    programs: &Programs,
    words: &[Word],
    place: &Place,
    stdin: &Stream,
    depth: usize,
    effects: &mut Vec<Effect>,
) -> Option<Stream> {
    if depth > MAX_DEPTH || words.is_empty() {
        return None;
    }
    let invocation = Invocation { words, directory: place.directory.as_deref(), home: Some(HOME), stdin };
    let reading = programs.read(&invocation);
    let mark = |mut effect: Effect| {
        if place.elsewhere {
            effect.marks.push(Mark::Elsewhere);
        }
        effect
    };
    effects.extend(reading.effects.into_iter().map(mark));
    for nested in &reading.nested {
        let inner = Place {
            directory: nested.directory.clone().unwrap_or_else(|| place.directory.clone()),
            elsewhere: place.elsewhere || nested.elsewhere.is_some(),
        };
        let stdin = nested.stdin.as_ref().unwrap_or(stdin);
        match &nested.body {
            NestedBody::Words(words) => run_words(programs, words, &inner, stdin, depth + 1, effects)?,
            NestedBody::Shell { source: Word::Known(source), .. } => {
                run_source(programs, source, &inner, stdin, depth + 1, effects)?
            }
            NestedBody::Shell { .. } => {
                effects.push(Effect {
                    action: Action::Opaque,
                    target: Target::Text("shell source is not known".to_owned()),
                    marks: Vec::new(),
                    because: String::new(),
                });
                Stream::Unknown
            }
        };
    }
    Some(reading.stdout)
}

/// The simple commands of a pipeline, in words; `None` if there is more shell in it.
fn commands(source: &str) -> Option<Vec<Vec<Word>>> {
    let mut commands = vec![Vec::new()];
    let mut word = Reader::default();
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => word.end(&mut commands),
            '|' if characters.peek() != Some(&'|') => {
                word.end(&mut commands);
                commands.push(Vec::new());
            }
            '\'' => {
                word.started = true;
                loop {
                    match characters.next()? {
                        '\'' => break,
                        inside => word.literal(inside),
                    }
                }
            }
            '"' => {
                word.started = true;
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' if matches!(characters.peek(), Some('"' | '\\' | '$' | '`')) => {
                            word.literal(characters.next()?)
                        }
                        '$' => variable(&mut characters, &mut word)?,
                        '`' => return None,
                        inside => word.literal(inside),
                    }
                }
            }
            '\\' => word.literal(characters.next()?),
            '$' => {
                variable(&mut characters, &mut word)?;
                word.many = true;
            }
            '*' | '?' | '[' => word.wildcard(character),
            '~' if !word.started => HOME.chars().for_each(|letter| word.literal(letter)),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '`' | '\n' => return None,
            '{' if matches!(characters.peek(), Some(next) if *next != '}') => return None,
            other => word.literal(other),
        }
    }
    word.end(&mut commands);
    commands.iter().all(|words| !words.is_empty()).then_some(commands)
}

fn variable(characters: &mut std::iter::Peekable<std::str::Chars<'_>>, word: &mut Reader) -> Option<()> {
    let mut name = String::from("$");
    while let Some(letter) = characters.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
        name.push(letter);
    }
    if name.len() == 1 {
        return None;
    }
    word.started = true;
    word.unknown.get_or_insert((word.text.clone(), name));
    Some(())
}

/// One word as it is read.
#[derive(Default)]
struct Reader {
    started: bool,
    text: String,
    pattern: String,
    is_glob: bool,
    unknown: Option<(String, String)>,
    many: bool,
}

impl Reader {
    fn literal(&mut self, character: char) {
        self.started = true;
        self.text.push(character);
        self.pattern.push_str(&paths::escape(character.encode_utf8(&mut [0; 4])));
    }

    fn wildcard(&mut self, character: char) {
        self.started = true;
        self.is_glob = true;
        self.text.push(character);
        self.pattern.push(character);
    }

    fn end(&mut self, commands: &mut [Vec<Word>]) {
        let word = std::mem::take(self);
        if !word.started {
            return;
        }
        let made = match word.unknown {
            Some((prefix, why)) if prefix.is_empty() => Word::Unknown { why, many: word.many },
            Some((prefix, why)) => Word::Partly { prefix, why, many: word.many },
            None if word.is_glob
                && (word.text.contains(['*', '?']) || word.text.contains('[') && word.text.contains(']')) =>
            {
                Word::Glob(word.pattern)
            }
            None => Word::Known(word.text),
        };
        if let Some(last) = commands.last_mut() {
            last.push(made);
        }
    }
}

/// Examples leave out what goes without saying.
fn counts(effect: &Effect) -> bool {
    match &effect.target {
        Target::Program(program) => {
            !matches!(program.origin, CodeOrigin::Known | CodeOrigin::Unknown | CodeOrigin::Defined)
        }
        // Beside it stands an opaque effect.
        Target::Path(path) if matches!(path.names, Names::Unknown(_)) => false,
        _ => !effect.because.ends_with(IF_DIRECTORY),
    }
}

fn agrees(form: &EffectForm, effect: &Effect) -> bool {
    if form.action != effect.action {
        return false;
    }
    let marks = |marks: &[Mark]| {
        let told = [Mark::Destructive, Mark::Credentials, Mark::Elsewhere];
        told.map(|mark| marks.contains(&mark))
    };
    if form.action == Action::Opaque {
        return match (&form.target, &effect.target) {
            (EffectTarget::Words(Some(wanted)), Target::Text(found)) => wanted == found,
            _ => true,
        };
    }
    if marks(&form.marks) != marks(&effect.marks) {
        return false;
    }
    match (&form.target, &effect.target) {
        (EffectTarget::Path(wanted), Target::Path(found)) => {
            let written = wanted;
            let wanted = expected_path(wanted);
            match &found.names {
                Names::Exact(path) => (same_path(path, &wanted) || path == written) && found.tree == form.tree,
                Names::Glob(pattern) => {
                    pattern.replace('\\', "") == wanted.replace('\\', "") && found.tree == form.tree
                }
                Names::Below(folder) => same_path(folder, wanted.strip_suffix("/**").unwrap_or(&wanted)),
                Names::Unknown(_) => false,
            }
        }
        (EffectTarget::Program(origin, name), Target::Program(found)) => {
            *origin == found.origin
                && match origin {
                    CodeOrigin::File => same_path(&expected_path(name), &found.name),
                    CodeOrigin::Project => *name == found.name,
                    _ => name.is_empty() || *name == found.name,
                }
        }
        (EffectTarget::Host(wanted), Target::Host(found)) => *wanted == found.name,
        (EffectTarget::Words(None), Target::Text(_)) => true,
        (EffectTarget::Words(Some(wanted)), Target::Text(found)) => wanted == found,
        _ => false,
    }
}

fn same_path(one: &str, other: &str) -> bool {
    let plain = |path: &str| {
        if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path.to_owned() }
    };
    plain(one) == plain(other)
}

fn expected_path(path: &str) -> String {
    match path.strip_prefix('~') {
        Some(rest) => format!("{HOME}{rest}"),
        None => paths::absolute(Some(DIRECTORY), path),
    }
}

fn shown(effect: &Effect) -> String {
    let action = format!("{:?}", effect.action).to_lowercase();
    let short = |path: &str| {
        let path = path.replace('\\', "");
        match path.strip_prefix(DIRECTORY) {
            Some("") => ".".to_owned(),
            Some(rest) => rest.trim_start_matches('/').to_owned(),
            None => path.replace(HOME, "~"),
        }
    };
    let target = match &effect.target {
        Target::Path(path) => {
            let names = match &path.names {
                Names::Exact(path) | Names::Glob(path) => short(path),
                Names::Below(folder) => format!("{}/**", short(folder)),
                Names::Unknown(why) => why.clone(),
            };
            if path.tree { format!("{names} tree") } else { names }
        }
        Target::Program(program) => {
            format!("{} {}", format!("{:?}", program.origin).to_lowercase(), short(&program.name))
        }
        Target::Host(host) => host.name.clone().unwrap_or_default(),
        Target::Text(text) => format!("\"{text}\""),
    };
    let marks: String = effect.marks.iter().map(|mark| format!(" !{}", format!("{mark:?}").to_lowercase())).collect();
    format!("{action} {target}{marks}")
}

fn shown_form(form: &EffectForm) -> String {
    let action = format!("{:?}", form.action).to_lowercase();
    let target = match &form.target {
        EffectTarget::Path(path) => path.clone(),
        EffectTarget::Program(origin, name) => {
            format!("{} {name}", format!("{origin:?}").to_lowercase())
        }
        EffectTarget::Host(host) => host.clone().unwrap_or_default(),
        EffectTarget::Words(words) => words.clone().unwrap_or_default(),
    };
    let tree = if form.tree { " tree" } else { "" };
    let marks: String = form.marks.iter().map(|mark| format!(" !{}", format!("{mark:?}").to_lowercase())).collect();
    format!("{action} {target}{tree}{marks}").trim_end().to_owned()
}
