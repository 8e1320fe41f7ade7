//! The calls that are tried: made from the tables' own options, operands and examples, and from the options of manual pages.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use callgate_shell::programs::table::{Level, Repeat, Role, RoleKind, Slot, Table, Text, Values};

/// Values for a place that a table says has no effect. Each would be noticed if the program wrote, read, started or reached it.
const TEXTS: &[&str] = &[
    "new.out",
    ".env",
    "./planted",
    "'touch pwned'",
    "canary-program",
    "http://127.0.0.1:9/x",
    "1",
    "a.txt",
    "'|./planted'",
    "x=./planted",
    "src",
    "all",
    "json",
];

/// How many of them are tried as the value of an option: the first ones tell most.
const TELLING: usize = 7;

/// Files of every kind, for programs that look into them.
const FILES: &[&str] = &[
    "a.txt", "src", "a.json", "a.tar", "a.tar.gz", "a.zip", "a.png", "a.c", "a.py", "a.o", "a.xml", "a.html", "a.csv",
    "a.yaml", "a.sh", "a.pdf", "a.db", "a.gz", "a.patch", "a.js", "a.out", "x.so", "link-out", ".", "a.sql", "b.txt",
    "a.toml", "docs", "bin", "*.txt",
];

/// The tables of one file: the names that share it, and the commands that it shows.
pub struct Source {
    pub names: Vec<String>,
    examples: Vec<String>,
}

/// All files of tables.
pub fn sources() -> Vec<Source> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../callgate-shell/programs");
    let below =
        |folder: &Path| std::fs::read_dir(folder).expect("the tables").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = below(&folder).flat_map(|area| below(&area)).collect();
    files.sort();
    files.iter().filter_map(|file| source(&std::fs::read_to_string(file).expect("a table"))).collect()
}

fn source(text: &str) -> Option<Source> {
    let header = text.lines().find(|line| line.starts_with(|first: char| !first.is_whitespace() && first != '#'))?;
    let names: Vec<String> = header.split_once(": ")?.0.split(' ').map(str::to_owned).collect();
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("example "));
    let command = |line: &str| line.split(" =>").next().unwrap_or(line).trim_end_matches(" \\").trim().to_owned();
    let shared = names.first().is_some_and(|name| name == "share");
    (!shared).then(|| Source { examples: lines.map(command).collect(), names })
}

/// How much of each table is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Some subcommands of each level, always the same.
    Sample,
    /// All of it.
    Whole,
}

/// The calls of one program in an order that is always the same, without repetitions; `manual` gives the options on the page of these words.
pub fn of_program(
    name: &str,
    source: &Source,
    table: &Table,
    manual: &dyn Fn(&str) -> Vec<String>,
    extent: Extent,
) -> VecDeque<String> {
    let renamed = |command: &String| {
        let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
        source.names.iter().any(|name| name == first).then(|| format!("{name} {rest}").trim_end().to_owned())
    };
    let examples = source.examples.iter().filter_map(renamed).collect();
    let mut calls = Calls { examples, manual, extent, calls: BTreeSet::new() };
    calls.level(name, &table.level, &[]);
    let mut calls: Vec<(usize, String)> = calls.calls.into_iter().map(|call| (mixed(&call, 0), call)).collect();
    calls.sort_unstable();
    calls.into_iter().map(|(_, call)| call).collect()
}

struct Calls<'m> {
    examples: Vec<String>,
    manual: &'m dyn Fn(&str) -> Vec<String>,
    extent: Extent,
    calls: BTreeSet<String>,
}

impl Calls<'_> {
    fn add(&mut self, call: String) {
        self.calls.insert(call);
    }

    /// All calls of a level: the words in front of it alone, with operands, and each of these with each option.
    fn level(&mut self, front: &str, level: &Level, outer: &[String]) {
        let mut bases = vec![String::new()];
        for line in &level.args {
            bases.extend((0..3).map(|variant| operands(&line.then, variant)));
        }
        bases.extend(self.examples.iter().filter_map(|command| behind(command, front)).map(str::to_owned));
        let mut options: Vec<String> = level.options.iter().flat_map(written).collect();
        options.extend(outer.iter().cloned());
        let mut manual = (self.manual)(front);
        manual.retain(|option| !level.options.iter().any(|form| form.names.iter().any(|name| name == option)));
        options.extend(manual.iter().flat_map(|option| {
            let glue = if option.starts_with("--") { "=" } else { " " };
            std::iter::once(option.clone())
                .chain(TEXTS.iter().take(TELLING).map(move |text| format!("{option}{glue}{text}")))
        }));
        for base in &bases {
            self.add(joined(&[front, base]));
        }
        for slots in level.args.iter().map(|line| &line.then) {
            for file in FILES.iter().filter(|_| slots.iter().any(|slot| is_path(&slot.role))) {
                self.add(joined(&[front, &operands_with(slots, file)]));
            }
            for text in TEXTS.iter().filter(|_| slots.iter().any(|slot| slot.role.kind.is_text())) {
                self.add(joined(&[front, &operands_of(slots, text)]));
            }
        }
        let end = level.options.iter().find(|form| form.ends).and_then(|form| written(form).into_iter().next());
        for (number, option) in options.iter().enumerate() {
            let chosen = |turn: usize| bases.get(mixed(option, turn) % bases.len()).map_or("", String::as_str);
            let other = options.get(mixed(front, number) % options.len()).map_or("", String::as_str);
            self.add(joined(&[front, option]));
            self.add(joined(&[front, option, chosen(1)]));
            self.add(joined(&[front, option, chosen(2)]));
            self.add(joined(&[front, option, other, chosen(3)]));
            // An option that ends the program does not undo what others do while they are read.
            if let Some(end) = &end {
                self.add(joined(&[front, option, end]));
            }
            // Many programs take options behind operands, too.
            self.add(joined(&[front, chosen(4), option]));
        }
        let handed: Vec<String> = if level.everywhere {
            options.clone()
        } else {
            level.options.iter().filter(|form| form.everywhere).flat_map(written).collect()
        };
        let literal = |name: &&Text| !name.contains(['*', '?', '[']);
        let mut subs: Vec<_> =
            level.subs.iter().flat_map(|sub| sub.names.iter().filter(literal).map(move |name| (name, sub))).collect();
        if self.extent == Extent::Sample {
            subs.sort_by_key(|(name, _)| mixed(name, 1));
            subs.truncate(5);
        }
        for (name, sub) in subs {
            self.level(&format!("{front} {name}"), &sub.level, &handed);
        }
    }
}

/// The words of a command behind `front`.
fn behind<'c>(command: &'c str, front: &str) -> Option<&'c str> {
    let rest = command.strip_prefix(front)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

/// The ways in which an option can be written, under each of its names.
fn written(form: &callgate_shell::programs::table::OptionForm) -> Vec<String> {
    let mut ways = Vec::new();
    for (number, name) in form.names.iter().enumerate() {
        // What a value does is the same under every name.
        let words =
            |role: &Role| words(role).into_iter().take(if number == 0 { TELLING } else { 1 }).collect::<Vec<_>>();
        let name = match name.as_ref() {
            "-NUMBER" => "-2".to_owned(),
            "+NUMBER" => "+2".to_owned(),
            name => name.trim_end_matches('*').to_owned(),
        };
        match &form.values {
            Values::None => ways.push(name),
            Values::Optional(role) => {
                let glue = if name.starts_with("--") { "=" } else { "" };
                ways.extend(words(role).iter().map(|word| format!("{name}{glue}{word}")));
                ways.push(name);
            }
            Values::Words(roles) => {
                let Some((first, rest)) = roles.split_first() else { continue };
                let rest: String =
                    rest.iter().map(|role| format!(" {}", words(role).first().map_or("x", String::as_str))).collect();
                let glued = name.ends_with('=') || form.fronts;
                let glue = if glued {
                    ""
                } else if name.starts_with("--") {
                    "="
                } else {
                    " "
                };
                ways.extend(words(first).iter().map(|word| format!("{name}{glue}{word}{rest}")));
            }
        }
    }
    ways
}

/// Operands for every slot of a line; several where several may stand.
fn operands(slots: &[Slot], variant: usize) -> String {
    let pick = |role: &Role| {
        let words = words(role);
        words.get(variant % words.len().max(1)).cloned().unwrap_or_default()
    };
    let words: Vec<String> = slots
        .iter()
        .flat_map(|slot| match slot.repeat {
            Repeat::Optional | Repeat::Any if variant == 0 => vec![],
            Repeat::Some | Repeat::Any if variant == 2 => vec![pick(&slot.role), "b.txt".to_owned()],
            _ => vec![pick(&slot.role)],
        })
        .collect();
    words.join(" ")
}

/// One operand for every slot: this file where a path is wanted.
fn operands_with(slots: &[Slot], file: &str) -> String {
    let word = |slot: &Slot| {
        if is_path(&slot.role) { file.to_owned() } else { words(&slot.role).first().cloned().unwrap_or_default() }
    };
    slots.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// One operand for every slot: this text where text is wanted.
fn operands_of(slots: &[Slot], text: &str) -> String {
    let word = |slot: &Slot| {
        if slot.role.kind.is_text() { text.to_owned() } else { words(&slot.role).first().cloned().unwrap_or_default() }
    };
    slots.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn is_path(role: &Role) -> bool {
    matches!(role.kind, RoleKind::List | RoleKind::Read | RoleKind::RemoteRead | RoleKind::Directory)
}

/// Typical words for a role.
fn words(role: &Role) -> Vec<String> {
    let words: &[&str] = match &role.kind {
        RoleKind::Text | RoleKind::AnyValue => TEXTS,
        RoleKind::List | RoleKind::Read | RoleKind::RemoteRead => &["a.txt", "src", "a.json"],
        RoleKind::Write | RoleKind::WriteInto | RoleKind::RemoteWrite => &["new.out", "dir"],
        RoleKind::Delete | RoleKind::Update | RoleKind::UpdateByCode | RoleKind::Move => &["a.txt", "a.gz"],
        RoleKind::RunFile => &["a.sh"],
        RoleKind::Directory => &["src", "."],
        RoleKind::Shell => &["'echo hi'"],
        RoleKind::ShellWords | RoleKind::Command { .. } => &["echo hi", "cat a.txt"],
        RoleKind::Assign => &["A=1"],
        RoleKind::Code(language) => return vec![code(language).to_owned()],
        RoleKind::Host | RoleKind::HostSend => &["localhost"],
        RoleKind::Url | RoleKind::UrlSend => &["http://127.0.0.1:9/x"],
        RoleKind::AtRead => &["x", "@a.txt"],
        RoleKind::Revision => &["HEAD", "main"],
        RoleKind::Pathspec => &["a.txt", "'*.txt'", ".env"],
        RoleKind::BackupSuffix => &[".bak"],
        RoleKind::Only | RoleKind::Except | RoleKind::ExceptDirectory => &["'*.txt'", ".env"],
        RoleKind::Strip => &["1"],
        RoleKind::Opaque(_) => &["x"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn code(language: &str) -> &'static str {
    match language {
        "sed" => "s/a/b/",
        "awk" => "'{ print $1 }'",
        "jq" => ".",
        "python" => "'print(1)'",
        "perl" | "ruby" => "'print 1'",
        "node" => "'console.log(1)'",
        "php" => "'echo 1;'",
        "vim" => "quit",
        _ => "'select 1'",
    }
}

/// A number that is always the same for the same text, and otherwise any (FNV-1a).
pub fn mixed(text: &str, number: usize) -> usize {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ number as u64;
    let hash = text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ (hash >> 29)) as usize
}
