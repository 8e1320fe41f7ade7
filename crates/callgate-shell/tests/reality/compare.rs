//! What a source says of options, compared with what the table knows.

use callgate_shell::effect::Action;
use callgate_shell::programs::Programs;
use callgate_shell::programs::table::{Level, OptionForm, Role, RoleKind, Style, Sub, Values};

use super::options::Takes;

/// Programs some of whose options say what to do with the operands, which pages show beside them (shells: the long name).
const ACTIONS: &[&str] = &[
    "dash",
    "dpkg",
    "dpkg-deb",
    "dpkg-query",
    "git config",
    "git replace",
    "gpg",
    "gpg2",
    "ip6tables",
    "iptables",
    "sfdisk",
    "sh",
    "update-alternatives",
];

/// Programs whose sources list the options of every processor or extension there is; their tables say what they write and
/// leave the rest out.
const ENDLESS: &[&str] = &["as", "ebtables", "ld", "ld.bfd", "ld.gold"];

/// Where in the tables the options of a source belong: a program, or a subcommand of one.
pub struct Place<'t> {
    /// `git stash list`.
    pub name: String,
    /// The file of its table.
    table: &'t str,
    /// From the program's level inwards.
    levels: Vec<&'t Level>,
}

/// The place that `ls`, or a page called `git-stash-list`, is about.
pub fn place<'t>(programs: &'t Programs, page: &str) -> Option<Place<'t>> {
    if let Some(table) = programs.get(page).filter(|table| table.names.iter().any(|name| name == page)) {
        return Some(Place { name: page.to_owned(), table: &table.origin, levels: vec![&table.level] });
    }
    page.match_indices('-').find_map(|(dash, _)| {
        let (program, rest) = (&page[..dash], &page[dash + 1..]);
        let table = programs.get(program).filter(|table| table.names.iter().any(|name| name == program))?;
        let mut levels = vec![&table.level];
        let words = descend(&table.level, rest, &mut levels)?;
        Some(Place { name: format!("{program} {words}"), table: &table.origin, levels })
    })
}

/// The levels on the way to the subcommand that `rest` names.
fn descend<'t>(level: &'t Level, rest: &str, levels: &mut Vec<&'t Level>) -> Option<String> {
    let named = |sub: &&Sub, text: &str| sub.names.iter().any(|name| name == text);
    if let Some(sub) = level.subs.iter().find(|sub| named(sub, rest)) {
        levels.push(&sub.level);
        return Some(rest.to_owned());
    }
    rest.match_indices('-').find_map(|(dash, _)| {
        let (front, rest) = (&rest[..dash], &rest[dash + 1..]);
        let sub = level.subs.iter().find(|sub| named(sub, front))?;
        levels.push(&sub.level);
        let words = descend(&sub.level, rest, levels);
        if words.is_none() {
            levels.pop();
        }
        Some(format!("{front} {}", words?))
    })
}

impl Place<'_> {
    /// The file of the table.
    pub fn table(&self) -> &str {
        self.table
    }

    /// Whether there is a table to compare with: some programs are read by code, some take no options, and of some nothing is
    /// understood anyway.
    pub fn has_options(&self) -> bool {
        let opaque = |level: &Level| {
            let always = level.does.iter().filter(|when| when.condition.all.is_empty());
            always.flat_map(|when| &when.then).any(|effect| effect.action == Action::Opaque)
                || level
                    .args
                    .iter()
                    .flat_map(|when| &when.then)
                    .any(|slot| matches!(slot.role.kind, RoleKind::Opaque(_)))
                    && level.args.len() == 1
                    && level.subs.is_empty()
        };
        let custom = |level: &Level| matches!(level.style, Style::Custom(_)) && level.options.is_empty();
        let endless = ENDLESS.contains(&self.name.as_str());
        self.levels
            .last()
            .is_some_and(|level| level.style != Style::None && !endless && !custom(level) && !opaque(level))
    }

    /// All options that count here.
    pub fn options(&self) -> Vec<&OptionForm> {
        let mut options = Vec::new();
        let last = self.levels.len().saturating_sub(1);
        for (depth, level) in self.levels.iter().enumerate().rev() {
            options.extend(level.options.iter().filter(|form| depth == last || level.everywhere || form.everywhere));
        }
        // What is said of the whole may be about any part.
        if let Some(level) = self.levels.last() {
            below(level, &mut options);
        }
        options
    }

    /// Whether options that no line names are accepted.
    fn any(&self) -> bool {
        self.levels.iter().any(|level| level.options_any)
    }

    /// Whether the table knows the option and thinks that it does nothing.
    pub fn harmless(&self, name: &str) -> bool {
        let text = |role: &Role| role.kind.is_text();
        self.options().iter().any(|form| {
            let values = match &form.values {
                Values::None => true,
                Values::Optional(role) => text(role),
                Values::Words(roles) => roles.iter().all(text),
            };
            form.names.iter().any(|other| other == name) && form.effects.is_empty() && values && !form.ends
        })
    }

    /// Compares one option; what differs, in words. `takes` is `None` where the source does not say.
    pub fn difference(&self, name: &str, takes: Option<Takes>) -> Option<String> {
        if matches!(name, "--help" | "-help" | "--version" | "--usage") {
            return None;
        }
        let options = self.options();
        let single = self.levels.last().is_some_and(|level| matches!(level.style, Style::Single | Style::SingleFirst));
        let same = |other: &std::borrow::Cow<'_, str>| {
            other == name
                || other.trim_end_matches(['=', '*']) == name && name.len() > 1
                || single && other.trim_start_matches('-') == name.trim_start_matches('-')
        };
        let forms: Vec<&&OptionForm> = options.iter().filter(|form| form.names.iter().any(same)).collect();
        if forms.is_empty() {
            return (!self.any() && !is_bundle(&options, name)).then(|| "is not known".to_owned());
        }
        let takes = takes?;
        let known: Vec<Takes> = forms.iter().map(|form| arity(form)).collect();
        let acceptable = |known: &Takes| {
            // A table that accepts a glued value more, or a page that hides one, misleads nobody.
            let lenient = *known == Takes::Perhaps && takes == Takes::Nothing;
            let short = !name.starts_with("--");
            let action = *known == Takes::Nothing && ACTIONS.contains(&self.name.as_str());
            action || *known == takes || lenient || short && takes == Takes::Perhaps
        };
        let excused = forms.iter().any(|form| form.ends || form.fronts);
        (!excused && !known.iter().any(acceptable)).then(|| match known.first() {
            Some(known) => format!("takes {}, the table says {}", words(takes), words(*known)),
            None => "is not known".to_owned(),
        })
    }
}

fn below<'t>(level: &'t Level, options: &mut Vec<&'t OptionForm>) {
    for sub in &level.subs {
        options.extend(&sub.level.options);
        below(&sub.level, options);
    }
}

fn arity(form: &OptionForm) -> Takes {
    match form.values {
        Values::None => Takes::Nothing,
        Values::Optional(_) => Takes::Perhaps,
        Values::Words(_) => Takes::Value,
    }
}

fn words(takes: Takes) -> &'static str {
    match takes {
        Takes::Nothing => "nothing",
        Takes::Perhaps => "perhaps a value",
        Takes::Value => "a value",
    }
}

/// `-abc` may show several flags at once, and `-20` a number.
fn is_bundle(options: &[&OptionForm], name: &str) -> bool {
    let letters = name.trim_start_matches('-');
    let known = |letter: char| options.iter().any(|form| form.names.iter().any(|name| **name == format!("-{letter}")));
    let number = letters.chars().all(|letter| letter.is_ascii_digit())
        || matches!(letters, "NUM" | "NUMBER" | "n" | "number" | "num" | "#");
    !name.starts_with("--")
        && (letters.chars().all(known)
            || number && options.iter().any(|form| form.names.iter().any(|name| name == "-NUMBER")))
}
