//! Reads one invocation with its table.

use super::collect::{Collector, joined, names_configuration, names_file, names_host};
use super::custom;
use super::matching::{Truth, chosen, truth, truth_at};
use super::operands::place;
use super::paths;
use super::scan::{Given, Scan, ScannedWord, scan_as};
use super::table::{
    Condition, EffectForm, HostPlace, Level, LoadedFiles, Output, ProgramTrait, Repeat, Role, RoleKind, Slot, Style,
    Table, Text, When,
};
use super::{Invocation, ProgramAnalysis, Programs};
use crate::effect::{Action, CodeOrigin};
use crate::stream::{Listing, Stream};
use crate::word::{ListedNames, Word};
use callgate_model::description::GitUse;
use std::borrow::Cow;

impl Programs {
    /// Reads what an invocation does.
    ///
    /// ```
    /// use callgate_shell::programs::{Invocation, Programs};
    /// use callgate_shell::{effect::Action, stream::Stream, word::Word};
    ///
    /// let words = ["cp", "a", "b"].map(|word| Word::Known(word.to_owned()));
    /// let reading = Programs::bundled().read(&Invocation {
    ///     words: &words,
    ///     directory: Some("/project"),
    ///     home: None,
    ///     stdin: &Stream::Unconnected,
    /// });
    /// let actions: Vec<Action> = reading.effects.iter().map(|effect| effect.action).collect();
    /// assert_eq!(actions[..3], [Action::Run, Action::Read, Action::Write]);
    /// ```
    pub fn read(&self, invocation: &Invocation<'_>) -> ProgramAnalysis {
        let Some((first, rest)) = invocation.words.split_first() else {
            return unknown(invocation, "", "the command has no program");
        };
        let Some(written) = first.known().filter(|name| !name.is_empty()) else {
            return unknown(invocation, "", "the program name is unknown");
        };
        let name = if !written.contains('/') {
            written
        } else {
            match paths::system_program(written).or_else(|| self.loader(written)) {
                Some(name) => name,
                None => return file(invocation, written),
            }
        };
        match self.find(name) {
            Some(table) => read_with(table, name, rest, invocation),
            None => unknown(invocation, written, &format!("no table describes the program {written}")),
        }
    }

    /// The table of a name, or of the name without its version (`python3.11`, `gcc-12`).
    pub(super) fn find(&self, name: &str) -> Option<&Table> {
        self.get(name).or_else(|| {
            let is_version = |character: char| character.is_ascii_digit() || character == '.';
            let bare = name.trim_end_matches(is_version);
            let version = name.get(bare.len()..)?;
            // `cp2` and `cp` are different programs.
            match bare.strip_suffix('-') {
                Some(bare) if !version.is_empty() => self.get(bare),
                _ if version.contains('.') => self.get(bare),
                _ => None,
            }
        })
    }
}

fn read_with(table: &Table, name: &str, words: &[Word], invocation: &Invocation<'_>) -> ProgramAnalysis {
    let mut collector = Collector::new(name, invocation);
    collector.compared = table.compared;
    collector.run(name, CodeOrigin::Known, "the program");
    if let Style::Custom(reader) = &table.level.style {
        let stdout = custom::read(reader, table, words, &mut collector);
        return finish(collector, stdout, Some(name.to_owned()));
    }
    let scan = scan_as(&table.level.style, name, &table.level, words);
    let stdout = apply(&scan, &mut collector);
    let table = collector.program.to_string();
    finish(collector, stdout, Some(table))
}

/// Adds the effects of scanned words. Returns the standard output.
pub(super) fn apply(scan: &Scan<'_>, collector: &mut Collector<'_>) -> Stream {
    if scan.names.len() > 1 {
        collector.program = Cow::Owned(scan.names.join(" "));
    }
    for doubt in &scan.doubts {
        collector.opaque(doubt, "its words");
    }
    let Some(level) = scan.level().filter(|_| !scan.ended) else {
        counts_anyway(scan, collector);
        return Stream::Data;
    };
    collector.elsewhere = scan.levels.iter().rev().find_map(|level| level.elsewhere.clone());
    collector.tree = level.tree.iter().any(|condition| truth(condition, scan) != Truth::No)
        || scan.given().any(|given| given.form.tree && !given.negated);

    collector.connects = scan.levels.iter().any(|level| connects(level));
    collector.own_hosts = own_hosts(scan);
    collector.selection.only = level.only.iter().map(|glob| glob.to_string()).collect();
    collector.select(scan);
    let may = |wanted: ProgramTrait| {
        let mut lines = scan.levels.iter().flat_map(|level| &level.traits).filter(|line| line.then == wanted);
        lines.any(|line| truth(&line.condition, scan) != Truth::No)
    };
    let surely = |wanted: ProgramTrait| {
        let mut lines = scan.levels.iter().flat_map(|level| &level.traits).filter(|line| line.then == wanted);
        lines.any(|line| truth(&line.condition, scan) == Truth::Yes)
    };
    collector.selection.follows = may(ProgramTrait::Follows);
    collector.selection.skips_hidden = surely(ProgramTrait::SkipsHidden);
    collector.selection.skips_ignored = surely(ProgramTrait::SkipsIgnored);
    collector.selection.tracked = surely(ProgramTrait::Tracked);
    collector.links = may(ProgramTrait::Links);
    let output = output(level, scan);
    collector.keeps_listed |= matches!(output, Some(Output::Names | Output::Entries | Output::Resolved));
    collector.copies |= scan.levels.iter().any(|level| level.index.copies);
    collector.backs_up |= scan.levels.iter().any(|level| level.index.backs_up);
    let placements: Vec<_> = chosen(&level.args, scan).map(|slots| place(slots, &scan.operands)).collect();
    if placements.is_empty() && !scan.operands.is_empty() {
        collector.doubt(|program| format!("the table of {program} does not describe these operands"), "operands");
    }
    for placement in &placements {
        if let Some(doubt) = placement.doubt {
            collector.doubt(|program| format!("{program}: {doubt}"), "operands");
        }
    }
    let start = placements.iter().filter_map(|placement| placement.rest.map(|(start, _)| start)).min();
    for event in &scan.events {
        match event {
            ScannedWord::Given(given) if given.negated => {}
            ScannedWord::Given(given) => {
                for (place, (word, own)) in given.values.iter().enumerate() {
                    let roles = if place == 0 { value_roles(scan, given, own) } else { vec![*own] };
                    for role in roles {
                        // Options that make operands trees do not make their own values trees.
                        let before = std::mem::replace(&mut collector.tree, role.tree);
                        collector.role(word, role, &given.name);
                        collector.tree = before;
                    }
                    if !collector.compared
                        && (names_configuration(&given.name)
                            || given.form.names.iter().any(|name| names_configuration(name)))
                    {
                        collector.mention(word, true);
                    }
                    if place == 0 && own.kind == RoleKind::AnyValue && names_file(&given.name, word) {
                        let name = &given.name;
                        collector.doubt(|program| format!("unknown option {name} of {program} may name a file"), name);
                    }
                    let is_given = |name: &Text| *name == given.name || given.form.names.contains(name);
                    let says_host = || {
                        let is_text = matches!(own.kind, RoleKind::Text | RoleKind::AnyValue);
                        // Beside a long name, a short one is another name for the same.
                        let pair = given.form.names.iter().filter(|_| given.form.names.len() <= 2);
                        let mut names = pair.map(|name| name.as_ref()).chain([given.name.as_ref()]);
                        collector.connects && is_text && names.any(|name| names_host(name, word))
                    };
                    if says_host()
                        || lists_host(scan, |place| matches!(place, HostPlace::Option(name) if is_given(name)))
                    {
                        collector.listed_host(word, &given.name);
                    }
                }
                for form in &given.form.effects {
                    collector.stated(form, &given.name);
                }
                if let Some((words, role)) = given.rest.as_ref().filter(|(words, _)| !words.is_empty()) {
                    collector.rest(words.clone(), role);
                }
            }
            ScannedWord::Operand(index) => {
                let Some(word) = scan.operands.get(*index) else {
                    continue;
                };
                let because = nth_operand(*index);
                if lists_host(scan, |place| {
                    matches!(place, HostPlace::Operands) || *place == HostPlace::Operand(index.saturating_add(1))
                }) {
                    collector.listed_host(word, &because);
                }
                for placement in &placements {
                    for role in placement.roles(*index) {
                        crate::work::count(1);
                        match in_one_piece(role) {
                            true if placement.operands(role).next() == Some(*index) => {
                                let places = placement.operands(role).filter_map(|place| scan.operands.get(place));
                                let words: Vec<Word> = places.map(|word| word.as_ref().clone()).collect();
                                collector.role(&joined(&words), role, &because);
                            }
                            true => {}
                            false => collector.role(word, role, &because),
                        }
                    }
                    if let Some((_, role)) = placement.rest.filter(|(start, _)| start == index) {
                        let words = scan.operands.get(*index..).unwrap_or_default();
                        collector.rest(words.iter().map(|word| word.as_ref().clone()).collect(), role);
                    }
                }
                if start == Some(*index) && placements.len() == 1 {
                    break;
                }
            }
        }
    }
    collector.finish_destinations();
    collector.finish_backups();
    loads(scan, collector, |_| true);
    git_uses(scan, level, collector);
    for level in scan.levels.iter() {
        for line in level.does.iter().filter(|line| truth(&line.condition, scan) != Truth::No) {
            line.then.iter().for_each(|form| collector.stated(form, "running it"));
        }
    }
    if scan.lost {
        return Stream::Unknown;
    }
    let certainly_operands = scan.operands.iter().any(|word| !super::scan::is_many(word));
    if !certainly_operands {
        for forms in chosen(&level.none, scan) {
            forms.iter().for_each(|form| collector.stated(form, "no operands"));
        }
    }
    if matches!(collector.stdin, Stream::Text(text) if text.trim_end().is_empty()) {
        for line in level.no_input.iter().filter(|line| truth(&line.condition, scan) != Truth::No) {
            line.then.iter().for_each(|form| collector.stated(form, "nothing comes in"));
        }
    }
    let mut takes_input = false;
    for role in chosen(&level.stdin, scan) {
        takes_input = true;
        collector.stdin_role(role);
    }
    collector.finish_members();
    if !takes_input && commands_come_in(level, scan, collector) {
        collector.doubt(
            |program| format!("{program} may take what comes in on standard input for commands"),
            "standard input",
        );
    }
    collector.finish_code();
    let certain = |condition: &Condition| truth(condition, scan) == Truth::Yes;
    for line in level.warns.iter().filter(|line| certain(&line.condition)) {
        line.then.iter().for_each(|form| collector.stated(form, "running it"));
    }
    let endless = |line: &When<ProgramTrait>| line.then == ProgramTrait::Endless && certain(&line.condition);
    if level.traits.iter().any(endless) { Stream::Endless } else { stdout(output, collector) }
}

/// Whether a program without operands may take its commands from standard input: it needs an operand or a subcommand, or
/// takes commands on a terminal.
fn commands_come_in(level: &Level, scan: &Scan<'_>, collector: &Collector<'_>) -> bool {
    let connected = match collector.stdin {
        Stream::Unconnected => false,
        Stream::Text(text) => !text.trim().is_empty(),
        _ => true,
    };
    let interactive =
        |line: &When<ProgramTrait>| line.then == ProgramTrait::Interactive && truth(&line.condition, scan) != Truth::No;
    let needs = |slots: &Vec<Slot>| slots.iter().any(|slot| matches!(slot.repeat, Repeat::Once | Repeat::Some));
    connected
        && scan.operands.is_empty()
        && (scan.levels.iter().any(|level| level.traits.iter().any(interactive))
            || !level.subs.is_empty() && level.args.is_empty()
            || chosen(&level.args, scan).any(needs))
}

/// Whether the tables list this place as one that may name a host.
fn lists_host(scan: &Scan<'_>, is: impl Fn(&HostPlace) -> bool) -> bool {
    scan.levels.iter().any(|level| level.hosts.iter().flatten().any(&is))
}

/// The hosts that are the service itself.
fn own_hosts(scan: &Scan<'_>) -> Vec<Text> {
    let places = scan.levels.iter().flat_map(|level| level.hosts.iter().flatten());
    let own = |place: &HostPlace| match place {
        HostPlace::Own(host) => Some(host.clone()),
        _ => None,
    };
    places.filter_map(own).collect()
}

/// Whether any line of a level speaks of a connection. A program that never connects takes URLs for text.
fn connects(level: &Level) -> bool {
    if level.hosts.as_ref().is_some_and(Vec::is_empty) {
        return false;
    }
    let role = |role: &Role| {
        matches!(
            role.kind,
            RoleKind::Host
                | RoleKind::HostSend
                | RoleKind::Url
                | RoleKind::UrlSend
                | RoleKind::RemoteRead
                | RoleKind::RemoteWrite
        )
    };
    let effect = |form: &EffectForm| matches!(form.action, Action::Connect | Action::Send);
    let stated = [&level.none, &level.does, &level.warns, &level.no_input];
    stated.into_iter().flatten().any(|line| line.then.iter().any(effect))
        || level.args.iter().any(|line| line.then.iter().any(|slot| role(&slot.role)))
        || level.options.iter().any(|form| form.values.roles().iter().any(role) || form.effects.iter().any(effect))
}

/// What counts although an option ends the program: the other options, of which many act while they are read (`vim -Vlog --version`
/// writes `log`), and what is loaded before any of them is.
fn counts_anyway(scan: &Scan<'_>, collector: &mut Collector<'_>) {
    for event in &scan.events {
        if let ScannedWord::Given(given) = event
            && !given.negated
        {
            for (word, own) in &given.values {
                for role in value_roles(scan, given, own) {
                    collector.role(word, role, &given.name);
                }
            }
            given.form.effects.iter().for_each(|form| collector.stated(form, &given.name));
            if let Some((words, role)) = given.rest.as_ref().filter(|(words, _)| !words.is_empty()) {
                collector.rest(words.clone(), role);
            }
        }
    }
    // Some programs write their help to a file.
    scan.operands.iter().for_each(|word| collector.mention(word, false));
    loads(scan, collector, |loaded| loaded.first);
}

/// Notes the files that the program loads.
fn loads(scan: &Scan<'_>, collector: &mut Collector<'_>, counts: impl Fn(&LoadedFiles) -> bool) {
    for level in scan.levels.iter() {
        for line in level.loads.iter().filter(|line| counts(&line.then) && truth(&line.condition, scan) != Truth::No) {
            collector.load(&line.then);
        }
    }
}

/// Notes what is done with the files of a git repository.
fn git_uses(scan: &Scan<'_>, level: &Level, collector: &mut Collector<'_>) {
    for line in &level.git {
        let counts = match truth(&line.condition, scan) {
            Truth::Yes => true,
            Truth::No => false,
            Truth::Maybe => line.then.looks(),
        };
        if !counts {
            continue;
        }
        if collector.git.iter().any(|other| other.task == line.then) {
            continue;
        }
        // `-3`, `-n 3` and `--max-count=3`
        let limit = |given: &Given<'_>| -> Option<Option<usize>> {
            let digits =
                given.name.strip_prefix('-').filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
            match (digits, given.values.first()) {
                (Some(digits), _) => Some(digits.parse().ok()),
                (None, Some((word, _))) if matches!(&*given.name, "-n" | "--max-count") => {
                    Some(word.known().and_then(|word| word.parse().ok()))
                }
                _ => None,
            }
        };
        let limits: Option<Vec<usize>> = scan.given().filter_map(limit).collect();
        collector.git.push(GitUse {
            task: line.then,
            command: collector.program.to_string(),
            directory: collector.directory.as_deref().map(str::to_owned),
            operands: scan.operands.iter().map(|word| word.as_ref().clone()).collect(),
            before_dashes: scan.before_dashes,
            // Short options of the program itself have other meanings than those of its subcommands.
            options: scan
                .given()
                .filter(|given| given.level > 0 || given.name.starts_with("--"))
                .map(|given| given.name.to_string())
                .collect(),
            limit: limits.and_then(|limits| limits.into_iter().max()),
        });
    }
}

/// How an operand is named in reasons.
fn nth_operand(index: usize) -> Cow<'static, str> {
    const FIRST: [&str; 6] = ["operand 1", "operand 2", "operand 3", "operand 4", "operand 5", "operand 6"];
    match FIRST.get(index) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("operand {}", index.saturating_add(1))),
    }
}

/// The roles that an option's value may have: from `value` lines, or its own.
fn value_roles<'t>(scan: &Scan<'t>, given: &Given<'t>, own: &'t Role) -> Vec<&'t Role> {
    let mut roles = Vec::new();
    for (name, line) in scan.levels.iter().rev().flat_map(|level| &level.values) {
        if !given.form.names.contains(name) {
            continue;
        }
        match truth_at(&line.condition, scan, Some(given)) {
            Truth::Yes => {
                roles.push(&line.then);
                return roles;
            }
            Truth::Maybe => roles.push(&line.then),
            Truth::No => {}
        }
    }
    roles.push(own);
    roles
}

/// Code that comes in several operands, which together are one command (`redis-cli DEL key`).
fn in_one_piece(role: &Role) -> bool {
    matches!(&role.kind, RoleKind::Code(language) if language == "redis")
}

/// The output according to the table; `None`: the table does not say.
fn output(level: &Level, scan: &Scan<'_>) -> Option<Output> {
    let mut outputs = chosen(&level.stdout, scan);
    match (outputs.next(), outputs.next()) {
        (Some(_), None) if scan.unseen_options => Some(Output::Unknown),
        (first, None) => first.copied(),
        (_, Some(_)) => Some(Output::Unknown),
    }
}

fn stdout(output: Option<Output>, collector: &Collector<'_>) -> Stream {
    match output {
        None if !collector.nested.is_empty() => Stream::Unknown,
        None => Stream::Data,
        Some(Output::Names) if collector.selection.tracked => match names_below(&collector.listed, false) {
            Stream::Names(names) => {
                let names = names.into_iter().map(|listing| Listing { names: ListedNames::Tracked, ..listing });
                Stream::Names(names.collect())
            }
            other => other,
        },
        Some(Output::Names) => names_below(&collector.listed, false),
        Some(Output::Entries) => names_below(&collector.listed, true),
        Some(Output::Resolved) => match names_below(&collector.listed, false) {
            Stream::Names(names) => resolved(collector.directory.as_deref(), &names),
            other => other,
        },
        Some(Output::Input) => match collector.stdin {
            // What a person may type.
            Stream::Unconnected => Stream::Data,
            other => other.clone(),
        },
        Some(Output::Same) if !collector.has_listed => match collector.stdin {
            Stream::Text(_) => Stream::Unknown,
            // The input that a person may type, or a part of endless input.
            Stream::Unconnected | Stream::Endless | Stream::File(_) => Stream::Data,
            other => other.clone(),
        },
        Some(Output::Same | Output::Data) => Stream::Data,
        Some(Output::Directory) => match &collector.directory {
            Some(directory) => Stream::Text(format!("{directory}\n")),
            None => Stream::Unknown,
        },
        Some(Output::Program) => Stream::Names(vec![Listing::all("/usr/bin")]),
        Some(Output::Word) => Stream::Word,
        Some(Output::Number) => Stream::Number,
        Some(Output::Integer) => Stream::Integer,
        Some(Output::Numbers) => Stream::Numbers,
        Some(Output::Nothing) => Stream::Text(String::new()),
        Some(Output::Environment) if collector.nested.is_empty() => Stream::Environment,
        Some(Output::Fetched) => Stream::Fetched,
        Some(Output::Environment | Output::Unknown) => Stream::Unknown,
    }
}

/// Makes names absolute, because they may be used in another directory.
fn resolved(directory: Option<&str>, names: &[Listing]) -> Stream {
    let names: Vec<Listing> = names
        .iter()
        .map(|listing| Listing { directory: paths::absolute(directory, &listing.directory), ..listing.clone() })
        .collect();
    if names.iter().all(|listing| listing.directory.starts_with('/')) { Stream::Names(names) } else { Stream::Unknown }
}

/// A stream of names at or below these words.
pub(super) fn names_below(listed: &[Word], entries: bool) -> Stream {
    let mut directories: Vec<Listing> = Vec::new();
    for word in listed {
        directories.push(match word {
            Word::Known(text) => Listing::all(text.as_str()),
            Word::Below { directory, .. } => Listing::all(directory.as_str()),
            Word::Glob(pattern) => match paths::literal_prefix(pattern).rsplit_once('/') {
                Some(("", _)) => Listing::all("/"),
                Some((folder, _)) => Listing::all(folder),
                None => Listing::all("."),
            },
            Word::Partly { .. } | Word::Unknown { .. } => return Stream::Unknown,
        });
    }
    if directories.is_empty() || (entries && !directories.iter().any(|listing| listing.directory == ".")) {
        directories.push(Listing::all("."));
    }
    Stream::Names(directories)
}

fn finish(collector: Collector<'_>, stdout: Stream, table: Option<String>) -> ProgramAnalysis {
    let Collector { effects, nested, loads, git, .. } = collector;
    ProgramAnalysis { effects, nested, stdout, table, loads, git }
}

/// Reads an unknown program.
fn unknown(invocation: &Invocation<'_>, name: &str, why: &str) -> ProgramAnalysis {
    let mut collector = Collector::new(name, invocation);
    collector.run(name, CodeOrigin::Unknown, "the program");
    collector.opaque(why, "the program");
    finish(collector, Stream::Unknown, None)
}

/// Reads a file that is run by its path.
fn file(invocation: &Invocation<'_>, path: &str) -> ProgramAnalysis {
    let mut collector = Collector::new(path, invocation);
    let path = paths::absolute(invocation.directory, path);
    collector.run(&path, CodeOrigin::File, "the program");
    finish(collector, Stream::Unknown, None)
}
