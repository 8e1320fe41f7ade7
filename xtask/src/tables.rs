//! Where a program's table is, and which tables say what they were made from.

use std::path::Path;

use crate::step::Failure;

/// Prints where the tables of these programs begin. Programs that share a table lie in the file of the first one.
pub fn find(programs: &[String]) -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/callgate-shell/programs");
    let mut missing = programs.to_vec();
    for file in entries(&folder)?.iter().map(|area| entries(area)).collect::<Result<Vec<_>, _>>()?.concat() {
        let text = std::fs::read_to_string(&file).map_err(|error| failed(&file, &error))?;
        let lines: Vec<_> = text.lines().collect();
        for (number, _) in
            lines.iter().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with([' ', '#']))
        {
            // A header with many names goes on behind `\`.
            let header: Vec<_> = lines.iter().skip(number).take_while(|line| !line.contains(": ")).collect();
            let last = lines.get(number + header.len()).and_then(|line| line.split_once(": "));
            let words = header.iter().flat_map(|line| line.split_whitespace());
            let names: Vec<_> = words.chain(last.iter().flat_map(|(names, _)| names.split_whitespace())).collect();
            for program in programs.iter().filter(|program| names.contains(&program.as_str())) {
                let shown = file.strip_prefix(&folder).unwrap_or(&file);
                println!("{program}: programs/{}:{}", shown.display(), number + 1);
                missing.retain(|other| other != program);
            }
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(program) => Err(Failure::new(format!("no table for `{program}`: CONTRIBUTING.md says how to add one"))),
    }
}

/// Prints the tables without a `from` line, area by area, and how many there are of each kind.
pub fn list() -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/callgate-shell/programs");
    let (mut with, mut without) = (0_usize, 0_usize);
    for area in entries(&folder)? {
        let mut names = Vec::new();
        for file in entries(&area)? {
            let text = std::fs::read_to_string(&file).map_err(|error| failed(&file, &error))?;
            let shares_only =
                text.lines().all(|line| line.starts_with([' ', '#']) || line.starts_with("share ") || line.is_empty());
            if text.lines().any(|line| line.starts_with("  from ")) {
                with += 1;
            } else if !shares_only {
                names.extend(file.file_stem().map(|name| name.to_string_lossy().into_owned()));
            }
        }
        without += names.len();
        let area = area.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        if !names.is_empty() {
            println!("{area} ({}): {}", names.len(), names.join(" "));
        }
    }
    println!("{with} tables say from which version they were made, {without} do not");
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot read {}: {error}", path.display()))
}
