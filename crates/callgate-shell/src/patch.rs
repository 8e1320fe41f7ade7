//! Reads patches: the paths in their headers and what happens to them.
//!
//! Two formats: `*** Begin Patch` with its sections, and unified diffs with or without git's headers. Lines inside a hunk that a
//! lenient reader could take for a header count as headers.

use thiserror::Error;

/// What a patch does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatchAction {
    /// Creates or changes it.
    Write,
    /// Deletes it, or moves it away.
    Delete,
}

/// Why a patch cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatchError {
    /// No header names a file.
    #[error("the patch names no file")]
    NoFiles,
    /// A header without a name.
    #[error("a header of the patch has no file name")]
    EmptyName,
    /// More files than are looked at.
    #[error("the patch touches too many files")]
    TooMany,
    /// It begins and does not end.
    #[error("the patch has no `*** End Patch`")]
    NoEnd,
    /// A name that is quoted in an unusual way.
    #[error("a file name in the patch has unsupported quoting")]
    Quoting,
    /// Lines that are read differently by different programs.
    #[error("the patch has lines that programs read differently")]
    Unusual,
}

const MAXIMUM_FILES: usize = 2_000;
const MAXIMUM_NAMES: usize = 20_000;

/// All files that a patch changes.
pub fn read(text: &str) -> Result<Vec<(PatchAction, String)>, PatchError> {
    let mut changes = if text.contains("*** Begin Patch") { sections(text)? } else { unified(text)? };
    if changes.is_empty() {
        return Err(PatchError::NoFiles);
    }
    if changes.len() > MAXIMUM_FILES {
        return Err(PatchError::TooMany);
    }
    changes.sort();
    changes.sort_by(|left, right| left.1.cmp(&right.1));
    changes.dedup();
    Ok(changes)
}

/// The files that a patch in sections updates in place, each with the blocks of lines that others are put in place of, as `(old,
/// new)`. Empty if it contains anything unusual.
pub fn updates(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut updates: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut is_update = false;
    for line in text.trim().lines() {
        match line.strip_prefix("*** ") {
            Some("Begin Patch" | "End Patch") => is_update = false,
            Some(header) => match header.split_once(": ") {
                Some(("Update File", name)) if !updates.iter().any(|(other, _)| other == name) => {
                    updates.push((name.to_owned(), Vec::new()));
                    is_update = true;
                }
                Some(("Add File" | "Delete File", _)) => is_update = false,
                _ => return Vec::new(),
            },
            None if !is_update => {}
            None if line.trim_start().starts_with("***") => return Vec::new(),
            None => {
                let Some((_, blocks)) = updates.last_mut() else { return Vec::new() };
                if line.starts_with("@@") {
                    blocks.push((String::new(), String::new()));
                    continue;
                }
                if blocks.is_empty() {
                    blocks.push((String::new(), String::new()));
                }
                let Some((old, new)) = blocks.last_mut() else { return Vec::new() };
                let sides: &mut [&mut String] = match line.chars().next() {
                    Some('-') => &mut [old],
                    Some('+') => &mut [new],
                    Some(' ') | None => &mut [old, new],
                    Some(_) => return Vec::new(),
                };
                for side in sides {
                    side.push_str(line.get(1..).unwrap_or_default());
                    side.push('\n');
                }
            }
        }
    }
    updates
}

/// All names in the headers of a unified diff, with their prefixes, as `patch` and `git apply` read it.
///
/// Both are lenient: they accept indented and encapsulated diffs, context diffs, scripts for ed. Only what has a single meaning
/// counts here: headers at the start of their lines, hunks of as many lines as they say, and text between files that is like
/// none of them. Links and deletions are errors too, because a name alone does not tell what they do.
pub fn header_names(text: &str) -> Result<Vec<String>, PatchError> {
    if text.contains(['\r', '\0']) {
        return Err(PatchError::Unusual);
    }
    let mut names = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(ranges) = line.strip_prefix("@@ ") {
            skip_hunk(ranges, &mut lines)?;
        } else if let Some(rest) = line.strip_prefix("diff --git ") {
            let half = rest.len().checked_div(2).unwrap_or_default();
            let halves = rest.split_at_checked(half).map(|(left, right)| [left.trim(), right.trim()]);
            let words = rest.split(' ').chain(halves.into_iter().flatten());
            for word in words.filter(|word| !word.is_empty()) {
                names.push(plain_name(word)?);
            }
        } else if let Some(rest) = ["--- ", "+++ ", "Index:"].iter().find_map(|front| line.strip_prefix(front)) {
            // A name ends at a tab, and for some at a blank.
            let whole = rest.trim_start().split('\t').next().unwrap_or_default().trim();
            let first = whole.split_whitespace().next().ok_or(PatchError::EmptyName)?;
            if line.starts_with('+') && first == "/dev/null" {
                return Err(PatchError::Unusual);
            }
            for name in [whole, first].iter().filter(|name| **name != "/dev/null") {
                names.push(plain_name(name)?);
            }
        } else if let Some(name) = MOVES.iter().find_map(|front| line.strip_prefix(front)) {
            // These names have no prefix, and one component less is taken off.
            names.push(format!("a/{}", plain_name(name)?));
        } else if !is_plain(line) {
            return Err(PatchError::Unusual);
        }
        if names.len() > MAXIMUM_NAMES {
            return Err(PatchError::TooMany);
        }
    }
    names.sort();
    names.dedup();
    if names.is_empty() { Err(PatchError::NoFiles) } else { Ok(names) }
}

const MOVES: [&str; 4] = ["rename from ", "rename to ", "copy from ", "copy to "];

/// Whether a line between hunks says nothing that changes which files are patched, however it is read.
fn is_plain(line: &str) -> bool {
    let modes = ["old mode 100", "new mode 100", "new file mode 100"];
    let known = ["index ", "similarity index ", "dissimilarity index ", "\\ "];
    if modes.iter().chain(&known).any(|front| line.starts_with(front)) || matches!(line, "---" | "-- ") {
        return true;
    }
    // Readers skip indentation, for which they also take `X`, and `- ` in front of a diff inside of a message.
    let indentation = |letter: char| letter.is_whitespace() || letter == 'X';
    let mut line = line.trim_start_matches(indentation);
    while let Some(inner) = line.strip_prefix("- ") {
        line = inner.trim_start_matches(indentation);
    }
    let special =
        ["---", "+++", "***", "@@", "Index", "Prereq", "diff ", "rename ", "copy ", "old mode", "new mode", "new file"];
    let numbers = line.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ',');
    let is_script = numbers.len() < line.len() && numbers.starts_with(['a', 'c', 'd', 'i', 's']);
    !special.iter().chain(&["deleted", "GIT binary"]).any(|front| line.starts_with(front)) && !is_script
}

/// Steps over the lines of a hunk.
fn skip_hunk(ranges: &str, lines: &mut std::str::Lines<'_>) -> Result<(), PatchError> {
    let count = |range: Option<&str>, sign: char| -> Option<usize> {
        let range = range?.strip_prefix(sign)?;
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()));
        number(start)?;
        usize::try_from(number(count)?).ok()
    };
    let mut words = ranges.split(' ');
    let (old, new) = (count(words.next(), '-'), count(words.next(), '+'));
    let (Some(mut old), Some(mut new), Some("@@")) = (old, new, words.next()) else { return Err(PatchError::Unusual) };
    while old > 0 || new > 0 {
        let line = lines.next().ok_or(PatchError::Unusual)?;
        let (takes_old, takes_new) = match line.bytes().next() {
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b' ') | None => (1, 1),
            Some(b'\\') => (0, 0),
            Some(_) => return Err(PatchError::Unusual),
        };
        old = old.checked_sub(takes_old).ok_or(PatchError::Unusual)?;
        new = new.checked_sub(takes_new).ok_or(PatchError::Unusual)?;
    }
    Ok(())
}

fn named(name: &str) -> Result<String, PatchError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(PatchError::EmptyName);
    }
    Ok(name.to_owned())
}

fn sections(text: &str) -> Result<Vec<(PatchAction, String)>, PatchError> {
    if !text.contains("*** End Patch") {
        return Err(PatchError::NoEnd);
    }
    let mut changes = Vec::new();
    let mut last_updated: Option<String> = None;
    for line in text.lines() {
        // lenient readers trim lines before they look at them
        let line = line.trim();
        if let Some(name) = line.strip_prefix("*** Add File:") {
            changes.push((PatchAction::Write, named(name)?));
        } else if let Some(name) = line.strip_prefix("*** Update File:") {
            let name = named(name)?;
            last_updated = Some(name.clone());
            changes.push((PatchAction::Write, name));
        } else if let Some(name) = line.strip_prefix("*** Delete File:") {
            changes.push((PatchAction::Delete, named(name)?));
        } else if let Some(name) = line.strip_prefix("*** Move to:") {
            changes.push((PatchAction::Write, named(name)?));
            let from = last_updated.take().ok_or(PatchError::EmptyName)?;
            changes.push((PatchAction::Delete, from));
        }
    }
    Ok(changes)
}

fn unified(text: &str) -> Result<Vec<(PatchAction, String)>, PatchError> {
    const NOWHERE: &str = "/dev/null";
    let mut changes = Vec::new();
    let mut old: Option<String> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            if let Some(name) = git_name(rest) {
                changes.push((PatchAction::Write, named(name)?));
            }
        } else if let Some(name) = line.strip_prefix("--- ") {
            old = Some(header_name(name)?);
        } else if let Some(name) = line.strip_prefix("+++ ") {
            let new = header_name(name)?;
            match (old.take(), new.as_str()) {
                (Some(old), NOWHERE) if old != NOWHERE => changes.push((PatchAction::Delete, unprefixed(old))),
                (_, NOWHERE) => return Err(PatchError::EmptyName),
                (old, _) => {
                    changes.push((PatchAction::Write, unprefixed(new)));
                    if let Some(old) = old.filter(|old| old != NOWHERE) {
                        changes.push((PatchAction::Write, unprefixed(old)));
                    }
                }
            }
        } else if let Some(name) = line.strip_prefix("rename from ") {
            changes.push((PatchAction::Delete, plain_name(name)?));
        } else if let Some(name) = line
            .strip_prefix("rename to ")
            .or_else(|| line.strip_prefix("copy to "))
            .or_else(|| line.strip_prefix("Index: "))
        {
            changes.push((PatchAction::Write, plain_name(name)?));
        } else if let Some(name) = line.strip_prefix("copy from ") {
            changes.push((PatchAction::Write, plain_name(name)?));
        }
    }
    Ok(changes)
}

/// The name in a `---` or `+++` line, which ends at a tab.
fn header_name(text: &str) -> Result<String, PatchError> {
    plain_name(text.split('\t').next().unwrap_or_default())
}

fn plain_name(text: &str) -> Result<String, PatchError> {
    let text = text.trim();
    match text.strip_prefix('"') {
        // git quotes names with special characters in its own way
        Some(quoted) => match quoted.strip_suffix('"') {
            Some(name) if !name.contains(['\\', '"']) => named(name),
            _ => Err(PatchError::Quoting),
        },
        None => named(text),
    }
}

/// A name without the prefix `a/` or `b/` that diffs put in front.
fn unprefixed(name: String) -> String {
    match name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")) {
        Some(stripped) => stripped.to_owned(),
        None => name,
    }
}

/// The name in `diff --git a/x b/x`; `None` if there are two, because other headers name them then.
fn git_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("a/")?;
    rest.match_indices(" b/").find_map(|(position, separator)| {
        let (left, right) = rest.split_at_checked(position)?;
        (right.get(separator.len()..)? == left).then_some(left)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(text: &str) -> Vec<(PatchAction, String)> {
        read(text).expect(text)
    }

    fn owned(pairs: &[(PatchAction, &str)]) -> Vec<(PatchAction, String)> {
        pairs.iter().map(|(change, name)| (*change, (*name).to_owned())).collect()
    }

    #[test]
    fn every_section_names_its_files() {
        let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-x\n+y\n\
                     *** Delete File: old.txt\n*** End Patch\n";
        assert_eq!(
            changes(patch),
            owned(&[
                (PatchAction::Write, "new.txt"),
                (PatchAction::Delete, "old.txt"),
                (PatchAction::Write, "src/a.rs"),
                (PatchAction::Delete, "src/a.rs"),
                (PatchAction::Write, "src/b.rs"),
            ])
        );
    }

    #[test]
    fn a_patch_in_a_here_document_is_read_too() {
        let patch = "apply_patch <<'EOF'\n*** Begin Patch\n  *** Update File: /etc/passwd\n*** End Patch\nEOF";
        assert_eq!(changes(patch), owned(&[(PatchAction::Write, "/etc/passwd")]));
    }

    #[test]
    fn unified_diffs_name_their_files() {
        let git = "diff --git a/x.rs b/x.rs\nindex 1..2\n--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-a\n+b\n\
                   diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
                   diff --git a/one b/two\nrename from one\nrename to two\n";
        let found = changes(git);
        for expected in owned(&[
            (PatchAction::Write, "x.rs"),
            (PatchAction::Delete, "gone"),
            (PatchAction::Delete, "one"),
            (PatchAction::Write, "two"),
        ]) {
            assert!(found.contains(&expected), "{expected:?} in {found:?}");
        }
        let plain = "--- /etc/hosts\t2024-01-01\n+++ /etc/hosts\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(changes(plain), owned(&[(PatchAction::Write, "/etc/hosts")]));
        let new = "--- /dev/null\n+++ b/fresh file\n@@ -0,0 +1 @@\n+a\n";
        assert_eq!(changes(new), owned(&[(PatchAction::Write, "fresh file")]));
    }

    #[test]
    fn blocks_of_lines_take_the_place_of_others() {
        let patch = "*** Begin Patch\n*** Add File: n\n+x\n*** Update File: a\n@@ in f\n b\n-c\n+d\n\n@@\n-e\n+f\n*** End Patch\n";
        let blocks = vec![("b\nc\n\n".to_owned(), "b\nd\n\n".to_owned()), ("e\n".to_owned(), "f\n".to_owned())];
        assert_eq!(updates(patch), vec![("a".to_owned(), blocks)]);
        for unusual in [
            "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-c\n+d\n*** End Patch",
            "*** Begin Patch\n*** Update File: a\n@@\n-c\n+d\n *** Update File: b\n*** End Patch",
            "*** Begin Patch\n*** Update File: a\n@@\n-c\n+d\n*** Update File: a\n@@\n-d\n+e\n*** End Patch",
            "*** Begin Patch\n*** Update File: a\nc\n*** End Patch",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        ] {
            assert_eq!(updates(unusual), Vec::new(), "{unusual}");
        }
    }

    #[test]
    fn what_is_no_patch_is_said_to_be_none() {
        let cases = [
            ("", PatchError::NoFiles),
            ("hello", PatchError::NoFiles),
            ("*** Begin Patch\n*** Update File: x\n", PatchError::NoEnd),
            ("*** Begin Patch\n*** End Patch", PatchError::NoFiles),
            ("*** Begin Patch\n*** Update File:\n*** End Patch", PatchError::EmptyName),
            ("*** Begin Patch\n*** Move to: x\n*** End Patch", PatchError::EmptyName),
            ("--- \"a/\\303\"\n+++ b/x\n", PatchError::Quoting),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), Err(expected), "{text}");
        }
        let many = format!("*** Begin Patch\n{}*** End Patch", "*** Add File: a\n".repeat(100_000));
        assert_eq!(read(&many), Err(PatchError::TooMany));
    }
}
