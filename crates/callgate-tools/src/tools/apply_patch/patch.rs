//! The patch as text: its sections, and hunks put into a file.

/// One file of a patch.
#[derive(Debug, PartialEq, Eq)]
pub struct Section<'a> {
    pub path: &'a str,
    pub operation: Operation<'a>,
}

/// What is done to a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    Add(String),
    Delete,
    Update { hunks: Vec<Hunk<'a>>, moved: Option<&'a str> },
}

/// Lines that stand in a file, and those that take their place.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Hunk<'a> {
    pub before: Vec<&'a str>,
    pub after: Vec<&'a str>,
}

const HEADERS: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];

/// The sections of a patch.
pub fn parse(text: &str) -> Result<Vec<Section<'_>>, String> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.first().map(|line| line.trim()) != Some("*** Begin Patch") {
        return Err("missing *** Begin Patch".to_owned());
    }
    let end = lines.iter().position(|line| line.trim_end() == "*** End Patch").ok_or("missing *** End Patch")?;
    if let Some(rest) = lines.iter().skip(end.saturating_add(1)).find(|line| !line.trim().is_empty()) {
        return Err(format!("text after *** End Patch: {rest}"));
    }
    let mut body = lines.get(1..end).unwrap_or_default();
    let mut sections = Vec::new();
    while let Some((line, rest)) = body.split_first() {
        body = rest;
        if line.is_empty() {
            continue;
        }
        let Some((header, path)) = HEADERS.iter().find_map(|header| Some((*header, line.strip_prefix(header)?.trim())))
        else {
            return Err(format!("unknown section header: {line}"));
        };
        if path.is_empty() {
            return Err(format!("a section without a file name: {line}"));
        }
        let length =
            body.iter().position(|line| HEADERS.iter().any(|header| line.starts_with(header))).unwrap_or(body.len());
        let (own, rest) = body.split_at_checked(length).unwrap_or_default();
        body = rest;
        let operation = match header {
            "*** Add File: " => Operation::Add(added(own)?),
            "*** Delete File: " if own.iter().all(|line| line.trim().is_empty()) => Operation::Delete,
            "*** Delete File: " => return Err("a Delete File section must be empty".to_owned()),
            _ => updated(own)?,
        };
        sections.push(Section { path, operation });
    }
    if sections.is_empty() { Err("the patch names no file".to_owned()) } else { Ok(sections) }
}

fn added(lines: &[&str]) -> Result<String, String> {
    let mut text = String::new();
    for line in lines {
        let line =
            line.strip_prefix('+').ok_or_else(|| format!("lines of an Add File section start with `+`: {line}"))?;
        text.push_str(line);
        text.push('\n');
    }
    Ok(if lines.is_empty() { "\n".to_owned() } else { text })
}

fn updated<'a>(lines: &[&'a str]) -> Result<Operation<'a>, String> {
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    let mut moved = None;
    let mut fresh = true;
    for line in lines {
        if let Some(target) = line.strip_prefix("*** Move to: ") {
            if moved.replace(target.trim()).is_some() || !hunks.is_empty() {
                return Err("`*** Move to:` stands once, in front of the hunks".to_owned());
            }
            continue;
        }
        if line.starts_with("@@") {
            fresh = true;
            continue;
        }
        // an empty line of the file whose blank was lost
        let (sign, text) =
            line.chars().next().map_or((' ', ""), |sign| (sign, line.get(sign.len_utf8()..).unwrap_or_default()));
        if !matches!(sign, ' ' | '+' | '-') {
            return Err(format!("invalid line in an Update File section: {line}"));
        }
        if std::mem::take(&mut fresh) {
            hunks.push(Hunk::default());
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        if sign != '+' {
            hunk.before.push(text);
        }
        if sign != '-' {
            hunk.after.push(text);
        }
    }
    // empty lines in front of the next section are no lines of the file
    for _ in lines.iter().rev().take_while(|line| line.is_empty()) {
        if let Some(hunk) = hunks.last_mut() {
            hunk.before.pop();
            hunk.after.pop();
        }
    }
    hunks.retain(|hunk| !(hunk.before.is_empty() && hunk.after.is_empty()));
    Ok(Operation::Update { hunks, moved })
}

/// Puts hunks into a text, one after the other. The error says where the nearest match is.
pub fn apply(text: &str, hunks: &[Hunk<'_>]) -> Result<String, String> {
    // A file with Windows line ends keeps them.
    let ends = text.matches('\n').count();
    let windows = ends > 0 && text.matches("\r\n").count() == ends;
    let line_end = if windows { "\r\n" } else { "\n" };
    let mut lines: Vec<&str> = text
        .split_terminator('\n')
        .map(|line| if windows { line.strip_suffix('\r').unwrap_or(line) } else { line })
        .collect();
    let mut from = 0_usize;
    for (number, hunk) in hunks.iter().enumerate() {
        let number = number.saturating_add(1);
        if hunk.before.is_empty() {
            return Err(format!("hunk {number} has no lines that stand in the file; add some of the lines around it"));
        }
        let place = find(&lines, &hunk.before, from).ok_or_else(|| conflict(&lines, &hunk.before, from, number))?;
        lines.splice(place..place.saturating_add(hunk.before.len()), hunk.after.iter().copied());
        from = place.saturating_add(hunk.after.len());
    }
    let mut text = lines.join(line_end);
    if !lines.is_empty() {
        text.push_str(line_end);
    }
    Ok(text)
}

fn find(lines: &[&str], wanted: &[&str], from: usize) -> Option<usize> {
    let places = lines.get(from..)?.windows(wanted.len());
    places.enumerate().find(|(_, window)| *window == wanted).map(|(index, _)| from.saturating_add(index))
}

/// How many lines are compared to find the nearest match.
const COMPARED: usize = 2_000_000;

fn conflict(lines: &[&str], wanted: &[&str], from: usize, number: usize) -> String {
    let elsewhere = find(lines, wanted, 0).map(|place| place.saturating_add(1));
    if let Some(line) = elsewhere {
        return format!(
            "hunk {number} fits only at line {line}, in front of an earlier hunk; put the hunks in the order of the file"
        );
    }
    let most = COMPARED.checked_div(wanted.len()).unwrap_or(1).max(1);
    let equal = |window: &[&str]| window.iter().zip(wanted).filter(|(one, other)| one.trim() == other.trim()).count();
    let windows = lines.get(from..).unwrap_or_default().windows(wanted.len()).take(most).enumerate();
    let nearest = windows
        .map(|(index, window)| (equal(window), index))
        .max_by_key(|(equal, index)| (*equal, std::cmp::Reverse(*index)));
    match nearest.filter(|(equal, _)| *equal > 0) {
        None => format!("hunk {number} does not apply: none of its lines is in the file"),
        Some((_, index)) => {
            let place = from.saturating_add(index);
            let differs = wanted
                .iter()
                .zip(lines.iter().skip(place))
                .zip(place.saturating_add(1)..)
                .find(|((wanted, found), _)| wanted != found);
            let Some(((wanted, found), line)) = differs else { return format!("hunk {number} does not apply") };
            let expected = shortened(wanted);
            format!(
                "hunk {number} does not apply; at its nearest match, line {line} is `{}` and not `{expected}`",
                shortened(found)
            )
        }
    }
}

fn shortened(line: &str) -> String {
    let line = callgate::show::visible(line);
    if line.chars().count() > 120 { format!("{}…", line.chars().take(120).collect::<String>()) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update<'a>(text: &'a str) -> Vec<Hunk<'a>> {
        let Operation::Update { hunks, .. } = parse(text).unwrap().remove(0).operation else { panic!("no update") };
        hunks
    }

    #[test]
    fn hunks_are_applied_in_their_order() {
        let hunks = update("*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+B\n@@ x\n-d\n+D\n+E\n\n*** End Patch");
        assert_eq!(apply("a\nb\nc\nd\n", &hunks).unwrap(), "a\nB\nc\nD\nE\n");
        assert_eq!(apply("a\r\nb\r\nc\r\nd\r\n", &hunks).unwrap(), "a\r\nB\r\nc\r\nD\r\nE\r\n");
        assert_eq!(
            apply("a\nx\nc\nd\n", &hunks).unwrap_err(),
            "hunk 1 does not apply; at its nearest match, line 2 is `x` and not `b`"
        );
        assert!(apply("d\na\nb\n", &hunks).unwrap_err().contains("fits only at line 1"));
        assert!(apply("q\n", &hunks).unwrap_err().contains("none of its lines"));
    }

    #[test]
    fn an_empty_line_is_an_empty_line_of_the_file() {
        let hunks = update("*** Begin Patch\n*** Update File: f\n a\n\n-b\n+c\n*** End Patch");
        assert_eq!(apply("a\n\nb\n", &hunks).unwrap(), "a\n\nc\n");
    }

    #[test]
    fn what_is_no_patch_is_explained() {
        for (text, error) in [
            ("", "missing *** Begin Patch"),
            ("*** Begin Patch\n", "missing *** End Patch"),
            ("*** Begin Patch\n*** End Patch", "the patch names no file"),
            ("*** Begin Patch\nx\n*** End Patch", "unknown section header: x"),
            ("*** Begin Patch\n*** Add File: \n*** End Patch", "a section without a file name: *** Add File: "),
            ("*** Begin Patch\n*** Add File: a\nb\n*** End Patch", "lines of an Add File section start with `+`: b"),
            ("*** Begin Patch\n*** Delete File: a\n-b\n*** End Patch", "a Delete File section must be empty"),
            ("*** Begin Patch\n*** Update File: a\nb\n*** End Patch", "invalid line in an Update File section: b"),
            ("*** Begin Patch\n*** Delete File: a\n*** End Patch\nx", "text after *** End Patch: x"),
        ] {
            assert_eq!(parse(text), Err(error.to_owned()), "{text}");
        }
    }
}
