//! Makes hidden and misleading characters in texts visible.

use std::fmt::Write as _;

/// The maximum number of characters that [`brief`] shows.
const BRIEF: usize = 240;

/// The longest run of one character that [`unpadded`] shows.
const LONGEST_RUN: usize = 40;

/// Whether a character is invisible or changes how others are displayed.
fn is_misleading(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
            // spaces that look like the ordinary one
            | '\u{00a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// Escapes control, bidirectional and zero-width characters.
///
/// ```
/// assert_eq!(callgate_model::show::visible("a\u{202e}b\n"), "a\\u{202e}b\\n");
/// ```
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            character if is_misleading(character) => {
                // writing to a string does not fail
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            character => shown.push(character),
        }
    }
    shown
}

/// Like [`visible`], but counts long runs of one character, so that padding cannot push text out of sight.
///
/// ```
/// let padded = format!("ls{}; rm -rf ~", " ".repeat(5000));
/// assert_eq!(callgate_model::show::unpadded(&padded), "ls⟨5000 × \" \"⟩; rm -rf ~");
/// ```
pub fn unpadded(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(4096));
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let mut count = 1_usize;
        while characters.next_if_eq(&character).is_some() {
            count = count.saturating_add(1);
        }
        let one = visible(character.encode_utf8(&mut [0; 4]));
        if count > LONGEST_RUN {
            // writing to a string does not fail
            let _ = write!(shown, "⟨{count} × \"{one}\"⟩");
        } else {
            (0..count).for_each(|_| shown.push_str(&one));
        }
    }
    shown
}

/// Like [`visible`], but omits the middle of a long text and says so. Both ends stay, so that padding cannot hide the end.
pub fn brief(text: &str) -> String {
    let count = text.chars().take(BRIEF.saturating_add(1)).count();
    if count <= BRIEF {
        return visible(text);
    }
    let half = BRIEF / 2;
    let front: String = text.chars().take(half).collect();
    let mut back: Vec<char> = text.chars().rev().take(half).collect();
    back.reverse();
    let back: String = back.into_iter().collect();
    let left_out = text.len().saturating_sub(front.len()).saturating_sub(back.len());
    format!("{} […{left_out} bytes…] {}", visible(&front), visible(&back))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_visible() {
        let cases = [
            ("plain é 漢", "plain é 漢"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
            ("a\u{2066}b", "a\\u{2066}b"),
            ("a\0b", "a\\u{0}b"),
            ("tab\tline\n", "tab\\tline\\n"),
            ("a\u{a0}b", "a\\u{a0}b"),
        ];
        for (text, expected) in cases {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        let text = format!("start{}; rm -rf /", " ".repeat(5000));
        let shown = brief(&text);
        assert!(shown.starts_with("start"));
        assert!(shown.ends_with("; rm -rf /"));
        assert!(shown.contains("bytes"));
        assert!(shown.len() < 300);
    }
}
