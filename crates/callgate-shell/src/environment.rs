//! Environment variables that change what runs.
//!
//! A program may heed any variable in its environment, so one that is set for a program is doubtful unless `environment.txt`
//! lists it as harmless ([`is_harmless`]). A variable of the shell that is not exported reaches no program; but it may have been
//! exported before, so the names that are known to change what runs are doubtful wherever they are set ([`influence`]).

/// A name, `NAME*` for every name that starts like this, or `NAME=VALUE`; and what setting it does.
type Entry = (&'static str, &'static str);

/// What the variables do that change nothing.
const HARMLESS: &str = "is harmless";

const TEXT: &str = include_str!("environment.txt");

/// How many entries `environment.txt` has.
const COUNT: usize = read::<1024>(TEXT).1;

/// Reads the entries, and counts them.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn read<const MOST: usize>(text: &'static str) -> ([Entry; MOST], usize) {
    let mut entries = [("", ""); MOST];
    let (mut count, mut what, mut lines) = (0, "", text);
    while !lines.is_empty() {
        let line;
        (line, lines) = cut(lines, b'\n');
        match line.as_bytes() {
            [b' ', ..] => {
                let mut names = line;
                while !names.is_empty() {
                    let name;
                    (name, names) = cut(names, b' ');
                    if !name.is_empty() {
                        entries[count] = (name, what);
                        count += 1;
                    }
                }
            }
            [] | [b'#', ..] => {}
            _ => what = cut(line, b':').0,
        }
    }
    (entries, count)
}

/// Splits `text` at the first `separator`, or at its end.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn cut(text: &'static str, separator: u8) -> (&'static str, &'static str) {
    let mut end = 0;
    while end < text.len() && text.as_bytes()[end] != separator {
        end += 1;
    }
    let (front, back) = text.split_at(end);
    (front, if back.is_empty() { back } else { back.split_at(1).1 })
}

/// The entries, sorted by their first letters. The compiler reads and sorts them.
static SORTED: [Entry; COUNT] = sorted().0;

/// Where in [`SORTED`] the entries of each first letter start. Most variables of a script have a letter without entries.
static STARTS: [u16; 257] = sorted().1;

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn sorted() -> ([Entry; COUNT], [u16; 257]) {
    let (mut sorted, mut starts) = ([("", ""); COUNT], [0; 257]);
    let (mut letter, mut count, read) = (0, 0, read::<COUNT>(TEXT).0);
    while letter < 256 {
        let mut entries = read.as_slice();
        while let [entry, others @ ..] = entries {
            entries = others;
            if entry.0.as_bytes()[0] as usize == letter {
                sorted[count] = *entry;
                count += 1;
            }
        }
        letter += 1;
        starts[letter] = count as u16;
    }
    (sorted, starts)
}

/// Returns how setting this variable is known to change what runs. `value` is `None` if it is not known.
pub fn influence(name: &str, value: Option<&str>) -> Option<&'static str> {
    listed(name, value).filter(|what| *what != HARMLESS)
}

/// Whether no program does anything else because of this variable. `value` is `None` if it is not known.
///
/// ```
/// use callgate_shell::environment::is_harmless;
///
/// assert!(is_harmless("LANG", Some("C")) && is_harmless("PAGER", Some("cat")));
/// assert!(!is_harmless("PAGER", Some("./x")) && !is_harmless("NEVER_HEARD_OF", Some("1")));
/// ```
pub fn is_harmless(name: &str, value: Option<&str>) -> bool {
    listed(name, value) == Some(HARMLESS)
}

/// What `environment.txt` says of a variable.
fn listed(name: &str, value: Option<&str>) -> Option<&'static str> {
    let first = usize::from(*name.as_bytes().first()?);
    let entries = SORTED.get(usize::from(*STARTS.get(first)?)..usize::from(*STARTS.get(first.saturating_add(1))?))?;
    // How much of `NAME` or `NAME=VALUE` an entry fits; a whole name fits better than its beginning.
    let fit = |entry: &str| match (entry.strip_suffix('*'), entry.strip_prefix(name)) {
        (Some(front), _) => name.starts_with(front).then_some((front.len(), 0)),
        (None, Some("")) => Some((name.len(), 1)),
        (None, Some(rest)) => (rest.strip_prefix('=')? == value?).then_some((name.len(), 2)),
        (None, None) => None,
    };
    let fitting = entries.iter().filter_map(|(entry, what)| Some((fit(entry)?, *what)));
    fitting.max_by_key(|(length, _)| *length).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::{influence, is_harmless};

    #[test]
    fn what_changes_what_runs() {
        for name in ["PATH", "LD_PRELOAD", "GIT_SSH_COMMAND", "BASH_ENV", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5OPT"] {
            assert!(influence(name, Some("x")).is_some(), "{name}");
        }
        for name in
            ["FOO", "LANG", "LC_ALL", "TZ", "NO_COLOR", "CI", "TERM", "RUST_LOG", "NODE_ENV", "GIT_AUTHOR_NAME", "IFS"]
        {
            assert!(influence(name, None).is_none(), "{name}");
        }
    }

    #[test]
    fn a_variable_that_no_list_names_is_not_harmless() {
        for name in ["FOO", "FROB_ROOT", "FROB_API_URL", "LANGUAGE", "LOCPATH", "TERMINFO", "HOME", "NODE_OPTIONS"] {
            assert!(!is_harmless(name, Some("./x")), "{name}");
        }
        for name in ["LANG", "LC_ALL", "TZ", "NO_COLOR", "CI", "TERM", "RUST_LOG", "NODE_ENV", "GIT_AUTHOR_NAME"] {
            assert!(is_harmless(name, None), "{name}");
        }
    }

    #[test]
    fn commands_and_archives_that_single_programs_take_from_a_variable() {
        for name in ["GREP", "TAPE", "BORG_RSH", "RESTIC_PASSWORD_COMMAND", "CDPATH", "ACK_PAGER", "LESSECHO"] {
            assert!(influence(name, Some("x")).is_some(), "{name}");
        }
    }

    #[test]
    fn a_harmless_value_makes_a_name_harmless() {
        assert!(influence("PAGER", Some("cat")).is_none());
        assert!(influence("PAGER", Some("./x")).is_some());
        assert!(influence("PAGER", None).is_some());
    }
}
