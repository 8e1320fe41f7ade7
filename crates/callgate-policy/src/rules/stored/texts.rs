//! Texts that are compiled when a call first needs them: regular expressions and conditions.

use std::sync::OnceLock;

use super::{ImageReader, ImageWriter, Stored, StoredList};
use crate::rules::matching::{Pool, Span, Text};

/// A list of texts, each compiled at most once.
#[derive(Debug)]
pub(crate) struct CompiledTexts<T> {
    sources: StoredList<Text>,
    compiled: OnceLock<Box<[OnceLock<T>]>>,
}

impl<T> Default for CompiledTexts<T> {
    fn default() -> Self {
        Self { sources: StoredList::default(), compiled: OnceLock::new() }
    }
}

impl<T> CompiledTexts<T> {
    /// Appends texts that were checked.
    pub(crate) fn append(&mut self, sources: impl IntoIterator<Item = Text>) -> Span {
        self.sources.append(sources)
    }

    /// The compiled form of the text with this number.
    pub(crate) fn get(&self, number: usize, pool: &Pool, compile: impl FnOnce(&str) -> T) -> Option<&T> {
        let compiled = self.compiled.get_or_init(|| (0..self.sources.len()).map(|_| OnceLock::new()).collect());
        let source = self.sources.get(number)?;
        Some(compiled.get(number)?.get_or_init(|| compile(pool.get(source))))
    }
}

impl<T> Stored for CompiledTexts<T> {
    fn store(&self, writer: &mut ImageWriter) {
        self.sources.store(writer);
    }

    fn open(reader: &mut ImageReader) -> Self {
        Self { sources: StoredList::open(reader), compiled: OnceLock::new() }
    }
}
