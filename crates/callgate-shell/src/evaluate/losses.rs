//! Commands that fill a disk, or empty a file, without a word that says so.

use crate::stream::Stream;
use crate::word::Word;

/// Devices that can be read for ever.
const ENDLESS_DEVICES: [&str; 4] = ["/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"];

/// Whether a program copies something that has no end.
pub(super) fn never_ends(words: &[Word]) -> bool {
    const COPY: [&str; 14] =
        ["cat", "tac", "nl", "rev", "tr", "pv", "base64", "base32", "gzip", "xz", "bzip2", "zstd", "strings", "tee"];
    let names = |wanted: &[&str]| {
        let mut texts = words.iter().filter_map(Word::known);
        texts.any(|text| wanted.contains(&text))
    };
    match words.first().and_then(Word::known).and_then(|name| name.rsplit('/').next()) {
        Some("yes") => true,
        Some("seq") => names(&["inf", "infinity", "Inf"]),
        Some("nohup" | "nice" | "setsid" | "stdbuf") => never_ends(words.get(1..).unwrap_or(&[])),
        Some(name) if COPY.contains(&name) => names(&ENDLESS_DEVICES),
        _ => false,
    }
}

/// `dd if=/dev/zero of=x` without a count, `cp /dev/zero x`.
pub(super) fn copies_a_device(words: &[Word]) -> bool {
    let texts = || words.iter().skip(1).filter_map(Word::known);
    let device = |text: &str| ENDLESS_DEVICES.contains(&text);
    match words.first().and_then(Word::known) {
        Some("dd") => {
            texts().any(|text| text.strip_prefix("if=").is_some_and(device))
                && texts().any(|text| text.starts_with("of="))
                && (!texts().any(|text| text.starts_with("count="))
                    || texts().any(huge_block) && texts().any(|text| text.starts_with("count=") && text.len() > 8))
        }
        Some("cp" | "install" | "rsync") => texts().any(device),
        _ => false,
    }
}

/// `bs=1G`
fn huge_block(text: &str) -> bool {
    let size = text.strip_prefix("bs=").or_else(|| text.strip_prefix("obs="));
    size.is_some_and(|size| size.contains(['G', 'T', 'P']))
}

/// `cp /dev/null x`, `dd if=/dev/null of=x`, `tee x < /dev/null`
pub(super) fn copies_nothing(words: &[Word], stdin: &Stream) -> bool {
    let name = words.first().and_then(Word::known);
    let second = words.get(1).and_then(Word::known);
    match name {
        Some("cp" | "install") => {
            let option = |word: &&Word| word.known().is_some_and(|text| text.starts_with('-'));
            let operands: Vec<&Word> = words.iter().skip(1).filter(|word| !option(word)).collect();
            matches!(operands.as_slice(), [from, _] if from.known() == Some("/dev/null"))
        }
        Some("dd") => {
            let given = |wanted: &str| words.iter().filter_map(Word::known).any(|text| text.starts_with(wanted));
            given("if=/dev/null") && given("of=")
        }
        Some("tee" | "sponge") => {
            second.is_some_and(|text| !text.starts_with('-'))
                && matches!(stdin, Stream::Text(text) if text.trim_end().is_empty())
        }
        _ => false,
    }
}

/// Whether a command is known to print nothing. The redirections of `exec` are for what comes later.
pub(super) fn prints_nothing(words: &[Word], stdout: &Stream) -> bool {
    let name = words.first().and_then(Word::known);
    match name {
        None => words.is_empty(),
        Some("exec") => false,
        Some(":") => true,
        Some("true") => words.len() == 1,
        Some("cat") => {
            words.len() > 1 && words.iter().skip(1).all(|word| word.known() == Some("/dev/null"))
                || matches!(stdout, Stream::Text(text) if text.is_empty())
        }
        Some(_) => matches!(stdout, Stream::Text(text) if text.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::{copies_a_device, copies_nothing, never_ends};
    use crate::stream::Stream;
    use crate::word::Word;

    fn words(line: &str) -> Vec<Word> {
        line.split(' ').map(|word| Word::Known(word.to_owned())).collect()
    }

    #[test]
    fn what_fills_a_disk() {
        for line in ["yes", "cat /dev/zero", "nohup cat /dev/urandom", "seq inf"] {
            assert!(never_ends(&words(line)), "{line}");
        }
        assert!(!never_ends(&words("cat a")));
        for line in ["dd if=/dev/zero of=x", "dd if=/dev/zero of=x bs=1G count=500", "cp /dev/zero x"] {
            assert!(copies_a_device(&words(line)), "{line}");
        }
        for line in ["dd if=/dev/zero of=x bs=1M count=10", "dd if=/dev/zero of=x bs=1G count=2", "cp a b"] {
            assert!(!copies_a_device(&words(line)), "{line}");
        }
    }

    #[test]
    fn what_empties_a_file() {
        let nothing = Stream::Text(String::new());
        for line in ["cp /dev/null x", "cp -f /dev/null x", "install -m 644 /dev/null x", "dd if=/dev/null of=x"] {
            assert_eq!(copies_nothing(&words(line), &Stream::Unconnected), !line.contains("-m 644"), "{line}");
        }
        assert!(copies_nothing(&words("tee x"), &nothing));
        for line in ["tee -a x", "cp a b", "cat x"] {
            assert!(!copies_nothing(&words(line), &nothing), "{line}");
        }
    }
}
