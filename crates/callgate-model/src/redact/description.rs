//! Redacts descriptions of calls.
//!
//! A word alone often does not show that it is a secret: `hunter2` is one only after `--password`. So the words of a command
//! are redacted together, and words that disappear are then redacted everywhere.

use crate::word::Word;

use super::{MINIMUM_SECRET, Redacted, Redactor};
use crate::description::Description;

/// The maximum number of words to check one by one. If there are more and one is secret, all are hidden.
const MAXIMUM_WORDS: usize = 512;

impl Redactor {
    /// Redacts a description, including secrets that only its words together reveal.
    pub fn description(&self, description: &Description) -> Redacted {
        // the types have no keys that JSON could not hold
        let value = serde_json::to_value(description).unwrap_or_default();
        let shown = self.owned(value);
        match self.of_words(description) {
            Some(words) => words.owned(shown.0),
            None => shown,
        }
    }

    /// A redactor for the secrets that only the words of a call together reveal; `None` if there are none.
    pub fn of_words(&self, description: &Description) -> Option<Redactor> {
        let secrets: Vec<&str> = description.parts.iter().flat_map(|part| self.secret_words(&part.words)).collect();
        (!secrets.is_empty()).then(|| Redactor::knowing(secrets))
    }

    /// The words that are secret together, and the values behind `name=` in them.
    fn secret_words<'a>(&self, words: &'a [Word]) -> Vec<&'a str> {
        let texts: Vec<&str> = words.iter().filter_map(text).collect();
        let vanished = self.vanished(&texts);
        if vanished.is_empty() {
            return Vec::new();
        }
        let shown = self.text(&texts.join(" "));
        vanished
            .into_iter()
            .flat_map(|word| {
                // the part behind `name=`, or behind a flag that it is glued to, is the secret itself
                let behind_name = word.split_once(['=', ':']).map(|(_, value)| value);
                let behind_flag = glued(word, &shown);
                let parts = [behind_name, behind_flag].into_iter().flatten();
                parts.filter(|value| value.len() >= MINIMUM_SECRET).chain([word])
            })
            .collect()
    }

    /// The words that disappear when all are redacted as one text: parts of a header that was split at spaces, the value
    /// after a flag.
    pub(super) fn vanished<'a>(&self, words: &[&'a str]) -> Vec<&'a str> {
        let Some(shown) = self.changed(&words.join(" ")) else { return Vec::new() };
        let too_many = words.len() > MAXIMUM_WORDS;
        let gone = |word: &&str| word.len() >= MINIMUM_SECRET && (too_many || !shown.contains(word));
        words.iter().copied().filter(gone).collect()
    }
}

/// The redacted end of a word whose beginning is still in the redacted text: `secret` for `-psecret`, shown as `-p[redacted: …`.
fn glued<'a>(word: &'a str, shown: &str) -> Option<&'a str> {
    const LONGEST_FLAG: usize = 40;
    let ends = word.char_indices().map(|(end, _)| end).skip(1).take(LONGEST_FLAG);
    let kept =
        ends.filter_map(|end| word.get(..end)).filter(|start| shown.contains(&format!("{start}[redacted: "))).last()?;
    word.get(kept.len()..)
}

fn text(word: &Word) -> Option<&str> {
    match word {
        Word::Known(text) | Word::Glob(text) => Some(text),
        Word::Partly { prefix, .. } => Some(prefix),
        Word::Below { directory, .. } => Some(directory),
        Word::Unknown { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::effect::{Action, Coverage, Effect, Target};

    use super::*;
    use crate::description::{Part, PlacedEffect};

    #[test]
    fn a_secret_that_only_its_neighbours_give_away_is_gone_from_words_and_effects() {
        for command in [
            ["mysql", "-u", "root", "-phunter2secret"].as_slice(),
            &["tool", "--password", "hunter2secret"],
            &["sshpass", "-p", "hunter2secret", "ssh", "host"],
            &["curl", "-u", "ada:hunter2secret", "https://example.com"],
            &["env", "TOKEN=hunter2secret"],
        ] {
            let effect = Effect {
                action: Action::Opaque,
                target: Target::Text(format!("not understood: {}", command.join(" "))),
                marks: vec![],
                because: "hunter2secret".into(),
            };
            let part = Part {
                words: command.iter().map(|word| Word::Known((*word).to_owned())).collect(),
                effects: vec![PlacedEffect { effect, place: None }],
                ..Part::default()
            };
            let description = Description { category: "shell".into(), parts: vec![part], coverage: Coverage::Partial };
            let shown = Redactor::default().description(&description).to_string();
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(shown.contains(command[0]), "{shown}");
        }
    }
}
