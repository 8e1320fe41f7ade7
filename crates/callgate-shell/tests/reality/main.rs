//! Tables against what programs say of themselves: options that `--help`, a manual page or a completion shows and a table
//! does not know, or knows to take other values.
//!
//! `known.txt` lists the differences that are accepted, package by package, each with the version it was seen in. For that
//! version the list is exact: a new difference fails, and so does a line that no longer holds, so the list only shrinks.
//! Another version of a package may have other options; what differs there is printed, and nothing fails.
//!
//! `cargo test -p callgate-shell --test reality -- --nocapture` lists what differs;
//! `CALLGATE_RECORD_REALITY=1` in front of it writes the list anew.

mod compare;
mod completion;
mod help;
mod known;
mod manual;
mod options;
mod packages;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use callgate_shell::programs::Programs;
use compare::{Place, place};
use known::{Difference, Known};
use options::{Stated, Takes};
use packages::{Package, packages, read_page};
use sources::{Source, Sources};

/// What the sources of one package say of each option of each program; where they disagree, the most they say, since pages
/// often leave out that there is a value.
type Claims<'t> = BTreeMap<String, (Place<'t>, BTreeMap<String, Option<Takes>>)>;

#[test]
fn tables_know_what_programs_say_of_themselves() {
    let programs = Programs::bundled();
    let packages = packages();
    let mut found = Vec::new();
    let mut count = 0_usize;
    let mut tables = Sources::default();
    for package in &packages {
        let mut claims = Claims::new();
        let mut read = |table: &str, source| tables.add(table, &package.name, source);
        count += read_manuals(programs, package, &mut claims, &mut |table| read(table, Source::Manual));
        count += read_completions(programs, package, &mut claims, &mut |table| read(table, Source::Completion));
        count += read_help(programs, package, &mut claims, &mut |table| read(table, Source::Help));
        found.push((package, differences(&claims)));
    }
    let mut known = Known::read().expect("known.txt has its form");
    if std::env::var_os("CALLGATE_RECORD_REALITY").is_some() {
        known.record(&found);
        known.write().expect("the list can be written");
        tables.write(|package| known.version(package)).expect("the tables can be written");
        return;
    }
    let (report, mut mistakes) = known.judge(&found);
    mistakes.extend(sources::mistakes(|package| known.version(package)));
    for line in report {
        println!("{line}");
    }
    let differing: usize = found.iter().map(|(_, differences)| differences.len()).sum();
    println!("{differing} differences in {count} sources of {} packages; {} are listed", packages.len(), known.len());
    assert!(packages.is_empty() || count > 0, "nothing could be compared");
    assert!(mistakes.is_empty(), "tests/reality/known.txt and the tables differ:\n{}", mistakes.join("\n"));
}

/// Words of a manual that speak of what a table must not miss.
const POWERS: &str = "command program execute executed executes invoke script shell plugin load library module write written writes \
    output create overwrite delete remove file directory connect host server url address socket listen download upload send \
    password passphrase";

/// Options that a table takes for harmless while their manual speaks of running, writing or connecting: a list to read, not to pass.
#[test]
#[ignore = "a list for reviewers: cargo test -p callgate-shell --test reality -- --ignored --nocapture"]
fn options_that_may_do_more_than_their_table_says() {
    let programs = Programs::bundled();
    for package in packages() {
        for (page, path) in package.manuals() {
            let Some(place) = place(programs, &page).filter(Place::has_options) else { continue };
            let Some((text, _)) = read_page(path) else { continue };
            for item in manual::items(&text) {
                let text = item.text.to_lowercase();
                let mut words = text.split(|character: char| !character.is_alphanumeric());
                if item.options.iter().any(|(name, _)| place.harmless(name))
                    && words.any(|word| POWERS.split_whitespace().any(|power| power == word))
                {
                    let text: String = item.text.chars().take(200).collect();
                    let names: Vec<&str> = item.options.iter().map(|(name, _)| name.as_str()).collect();
                    let valued = item.options.iter().any(|(_, takes)| *takes > Some(Takes::Nothing));
                    println!("{} {}{}: {text}", place.name, names.join(" "), if valued { " VALUE" } else { "" });
                }
            }
        }
    }
}

fn differences(claims: &Claims<'_>) -> BTreeSet<Difference> {
    let mut found = BTreeSet::new();
    for (program, (place, options)) in claims {
        for (option, takes) in options {
            if let Some(what) = place.difference(option, *takes) {
                found.insert(Difference { program: program.clone(), option: option.clone(), what });
            }
        }
    }
    found
}

fn read_manuals<'t>(
    programs: &'t Programs,
    package: &Package,
    claims: &mut Claims<'t>,
    read: &mut dyn FnMut(&str),
) -> usize {
    let mut count = 0;
    for (page, path) in package.manuals() {
        let Some(place) = place(programs, &page).filter(Place::has_options) else { continue };
        let Some((text, about)) = read_page(path) else { continue };
        // A page shared with another program is about that one, unless both have the same table.
        if about != page && programs.get(&about).is_some_and(|table| !table.names.contains(&page)) {
            continue;
        }
        count += 1;
        read(place.table());
        let claims = claimed(claims, place);
        for item in manual::items(&text) {
            claim(claims, item.options);
        }
    }
    count
}

fn read_completions<'t>(
    programs: &'t Programs,
    package: &Package,
    claims: &mut Claims<'t>,
    read: &mut dyn FnMut(&str),
) -> usize {
    let mut count = 0;
    for (name, path) in package.completions() {
        let Some(place) = place(programs, &name).filter(Place::has_options) else { continue };
        let Some((text, _)) = read_page(path).filter(|(text, _)| completion::is_about(text, &name)) else { continue };
        count += 1;
        read(place.table());
        claim(claimed(claims, place), completion::options(&text).into_iter().map(|name| (name, None)));
    }
    count
}

fn read_help<'t>(
    programs: &'t Programs,
    package: &Package,
    claims: &mut Claims<'t>,
    read: &mut dyn FnMut(&str),
) -> usize {
    let mut count = 0;
    for name in help::SAFE.split_whitespace() {
        if let Some(path) = package.program(name)
            && let Some(place) = place(programs, name).filter(Place::has_options)
            && let Some(text) = help::output(path, &["--help"])
        {
            count += 1;
            read(place.table());
            let claims = claimed(claims, place);
            claim(claims, text.lines().flat_map(help::options_of_line));
        }
    }
    if let Some(git) = package.program("git") {
        for (name, options) in help::git_options(git) {
            let Some(place) = place(programs, &format!("git-{name}")) else { continue };
            count += 1;
            read(place.table());
            claim(claimed(claims, place), options);
        }
    }
    count
}

fn claimed<'c, 't>(claims: &'c mut Claims<'t>, place: Place<'t>) -> &'c mut BTreeMap<String, Option<Takes>> {
    &mut claims.entry(place.name.clone()).or_insert_with(|| (place, BTreeMap::new())).1
}

fn claim(claims: &mut BTreeMap<String, Option<Takes>>, options: impl IntoIterator<Item = Stated>) {
    for (name, takes) in options {
        let said = claims.entry(name).or_default();
        *said = (*said).max(takes);
    }
}
