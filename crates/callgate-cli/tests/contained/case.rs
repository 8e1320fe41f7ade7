//! The cases as data: one file for each class, in the form that `cases/README.md` describes.

use std::fmt::Write;

/// One attempt.
#[derive(Debug, Clone, Default)]
pub struct Case {
    pub class: &'static str,
    pub id: String,
    pub title: String,
    /// Shell text that prepares the world, outside.
    pub before: String,
    /// Shell text in front of the wrapper, in the same process: descriptors, variables, the working directory.
    pub launch: String,
    /// What is attempted, inside.
    pub attack: String,
    /// What runs without the sandbox to show that the check can fail; the attack itself unless this is given.
    pub control: String,
    /// The command itself in place of shell text.
    pub direct: String,
    /// The trusted step outside, after the run.
    pub after: String,
    /// Shell text outside that succeeds if harm was done; the suite's own checks are made as well.
    pub harm: String,
    pub users: Users,
    /// Why the control may fail on some machines.
    pub may_not_apply: Option<String>,
    /// Why the sandbox may refuse to start the command.
    pub may_be_refused: Option<String>,
    /// Nothing in the workspace may change either.
    pub watch_workspace: bool,
    pub workspace: Workspace,
    pub in_terminal: bool,
    /// Of ordinary work: what must be in the output, which exit code is right, what must be true outside afterwards.
    pub expect: Option<String>,
    pub code: i32,
    pub check: String,
    /// The home holds a Rust toolchain.
    pub with_rust: bool,
    /// Sent to the wrapper once the attack has made the file `started`.
    pub signal: Option<String>,
    /// More words for the wrapper.
    pub options: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Users {
    #[default]
    Both,
    OnlyOrdinary,
    OnlyRoot,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Workspace {
    /// A repository with a commit.
    #[default]
    Repository,
    /// A directory with two files.
    Plain,
    /// The home directory is the workspace.
    Home,
}

const CLASSES: &[(&str, &str)] = &[
    ("writes", include_str!("cases/writes.cases")),
    ("protected", include_str!("cases/protected.cases")),
    ("secrets", include_str!("cases/secrets.cases")),
    ("network", include_str!("cases/network.cases")),
    ("kernel", include_str!("cases/kernel.cases")),
    ("surface", include_str!("cases/surface.cases")),
    ("endings", include_str!("cases/endings.cases")),
    ("debris", include_str!("cases/debris.cases")),
    ("look-ups", include_str!("cases/look-ups.cases")),
];

/// The kinds of ordinary work.
pub fn work() -> Vec<Case> {
    read("work", include_str!("cases/work.cases")).into_iter().filter(wanted).collect()
}

/// Whether `CALLGATE_CASES` selects a case: a list of classes and of parts of ids, or nothing for all of them.
fn wanted(case: &Case) -> bool {
    let list = std::env::var("CALLGATE_CASES").unwrap_or_default();
    list.split(',').any(|one| case.id.contains(one) || case.class == one)
}

/// All cases, or those that are wanted.
pub fn all() -> Vec<Case> {
    let cases: Vec<Case> = CLASSES.iter().flat_map(|(class, text)| read(class, text)).collect();
    let mut ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair.first() == pair.last()) {
        panic!("two cases are called {twice:?}");
    }
    cases.into_iter().filter(wanted).collect()
}

fn read(class: &'static str, text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut section = String::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: &str| -> ! { panic!("{class}.cases, line {}: {what}: {line}", number + 1) };
        if let Some(id) = line.strip_prefix("== ") {
            cases.push(Case { class, id: id.trim().to_owned(), ..Case::default() });
            section.clear();
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(case) = cases.last_mut() else { wrong("text before the first case") };
        if let Some(body) = line.strip_prefix("  ") {
            let into = match section.as_str() {
                "before" => &mut case.before,
                "check" => &mut case.check,
                "launch" => &mut case.launch,
                "attack" => &mut case.attack,
                "control" => &mut case.control,
                "after" => &mut case.after,
                "harm" => &mut case.harm,
                _ => wrong("an indented line outside of a section"),
            };
            writeln!(into, "{body}").expect("a string takes text");
            continue;
        }
        if case.title.is_empty() {
            case.title = line.to_owned();
            continue;
        }
        let Some((key, value)) = line.split_once(':') else { wrong("neither a key nor a section") };
        let value = value.trim();
        match (key, value) {
            (name @ ("before" | "launch" | "attack" | "control" | "after" | "harm"), "") => section = name.to_owned(),
            ("before", text) => case.before = format!("{text}\n"),
            ("launch", text) => case.launch = format!("{text}\n"),
            ("attack", text) => {
                case.attack = format!("{text}\n");
                section = "attack".to_owned();
            }
            ("control", text) => case.control = format!("{text}\n"),
            ("after", text) => case.after = format!("{text}\n"),
            ("harm", text) => case.harm = format!("{text}\n"),
            ("direct", words) => case.direct = words.to_owned(),
            ("only", "root") => case.users = Users::OnlyRoot,
            ("only", "ordinary users") => case.users = Users::OnlyOrdinary,
            ("may not apply", why) => case.may_not_apply = Some(why.to_owned()),
            ("may be refused", why) => case.may_be_refused = Some(why.to_owned()),
            ("watch", "workspace") => case.watch_workspace = true,
            ("workspace", "plain") => case.workspace = Workspace::Plain,
            ("workspace", "home") => case.workspace = Workspace::Home,
            ("check", text) => case.check = format!("{text}\n"),
            ("expect", text) => case.expect = Some(text.to_owned()),
            ("code", number) => case.code = number.parse().unwrap_or_else(|_| wrong("not a number")),
            ("toolchain", "rust") => case.with_rust = true,
            ("terminal", "yes") => case.in_terminal = true,
            ("signal", name) => case.signal = Some(name.to_owned()),
            ("options", words) => case.options = words.split_whitespace().map(str::to_owned).collect(),
            _ => wrong("unknown key or value"),
        }
    }
    for case in &cases {
        assert!(
            (case.attack.is_empty() != case.direct.is_empty()) && !case.title.is_empty(),
            "{}: no attack or no title",
            case.id
        );
        assert!(!case.attack.contains("@secret@"), "{}: the attack would print the secret that it was told", case.id);
    }
    cases
}
