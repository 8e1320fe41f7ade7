//! The rooms of the house: no two modules of a crate use each other in a circle, and crates depend one way.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "a test reads the sources and fails loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What each module uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        match entry {
            directory if directory.is_dir() => found.extend(sources(&directory)),
            file if file.extension().is_some_and(|extension| extension == "rs") => found.push(file),
            _ => {}
        }
    }
    found
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part.to_string_lossy().trim_end_matches(".rs").ends_with("tests"))
}

/// The code of a file without comments and without the tests at its end.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source file");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The names that stand behind `crate::`: one, or several in braces.
fn used(code: &str) -> BTreeSet<String> {
    let name = |text: &str| {
        let end = text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len());
        text.get(..end).unwrap_or_default().to_owned()
    };
    let mut names = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            // the first name of every item on the outermost level
            Some(list) => {
                let mut depth = 0_usize;
                for (place, character) in list.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    let starts = place == 0 || list.get(..place).is_some_and(|before| before.trim_end().ends_with(','));
                    if depth == 0 && starts && character.is_alphabetic() {
                        names.insert(name(list.get(place..).unwrap_or_default()));
                    }
                }
            }
            None => {
                names.insert(name(after));
            }
        }
    }
    names
}

/// The modules of a crate and what each uses of the others.
fn modules(source: &Path) -> Graph {
    let module = |path: &Path| {
        let inside = path.strip_prefix(source).expect("a path inside");
        inside.iter().next().expect("a name").to_string_lossy().trim_end_matches(".rs").to_owned()
    };
    let files: Vec<PathBuf> = sources(source).into_iter().filter(|path| !is_test(path)).collect();
    let names: BTreeSet<String> = files.iter().map(|path| module(path)).collect();
    let mut graph = Graph::new();
    for path in &files {
        let from = module(path);
        // the root only lists and re-exports
        if from == "lib" || from == "main" {
            continue;
        }
        let mut uses = used(&code(path));
        // a file right below the root also reaches its siblings by `super::`
        if path.parent() == Some(source) {
            uses.extend(used(&code(path).replace("super::", "crate::")));
        }
        let others = uses.into_iter().filter(|to| names.contains(to) && *to != from);
        graph.entry(from.clone()).or_default().extend(others);
    }
    graph
}

/// A way from a module back to itself.
fn circle(graph: &Graph) -> Option<Vec<String>> {
    fn visit(graph: &Graph, at: &str, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        if let Some(start) = way.iter().position(|module| module == at) {
            way.drain(..start);
            way.push(at.to_owned());
            return true;
        }
        if !done.insert(at.to_owned()) {
            return false;
        }
        way.push(at.to_owned());
        let next = graph.get(at).into_iter().flatten();
        if next.into_iter().any(|to| visit(graph, to, way, done)) {
            return true;
        }
        way.pop();
        false
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| {
        let mut way = Vec::new();
        visit(graph, start, &mut way, &mut done).then_some(way)
    })
}

fn drawn(graph: &Graph) -> String {
    let lines =
        graph.iter().map(|(from, to)| format!("  {from} -> {}\n", to.iter().cloned().collect::<Vec<_>>().join(", ")));
    lines.collect()
}

#[test]
fn no_two_modules_use_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates");
    let mut circles = Vec::new();
    for directory in std::fs::read_dir(crates).expect("the crates").map(|entry| entry.expect("a crate").path()) {
        let graph = modules(&directory.join("src"));
        println!("{}\n{}", directory.display(), drawn(&graph));
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        circles.extend(circle(&graph).map(|way| format!("{name}: {}", way.join(" -> "))));
    }
    assert!(circles.is_empty(), "these modules use each other in a circle:\n{}", circles.join("\n"));
}

#[test]
fn a_circle_is_found() {
    assert_eq!(used("use crate::{a::B, c, d::{e, f}}; crate::g::h();"), ["a", "c", "d", "g"].map(str::to_owned).into());
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    };
    assert_eq!(circle(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let found = circle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap_or_default();
    assert_eq!(found, ["b", "c", "b"]);
}
