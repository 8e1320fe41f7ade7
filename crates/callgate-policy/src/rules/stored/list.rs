//! Lists that lie in memory while a policy is compiled, and in a file afterwards.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::flat::Flat;
use super::image::{Image, PAGE, Section, Writer};
use crate::rules::matching::Span;

/// A list of values. One that lies in a file is read a page at a time, when something in it is first needed.
#[derive(Debug, Clone)]
pub(crate) struct List<T>(Place<T>);

#[derive(Debug, Clone)]
enum Place<T> {
    Memory(Vec<T>),
    File(InFile<T>),
}

#[derive(Debug, Clone)]
struct InFile<T> {
    image: Arc<Image>,
    section: Section,
    pages: Box<[Page<T>]>,
}

/// A page, once it was needed.
#[derive(Debug, Clone)]
struct Page<T> {
    bytes: OnceLock<Box<[u8]>>,
    /// All values in it, once several of them were needed together.
    values: OnceLock<Box<[T]>>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Place::Memory(Vec::new()))
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(list: Vec<T>) -> Self {
        Self(Place::Memory(list))
    }
}

const fn per_page<T: Flat>() -> usize {
    PAGE / T::SIZE
}

impl<T: Flat> List<T> {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Place::Memory(list) => list.len(),
            Place::File(file) => file.section.length as usize,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of this number.
    pub(crate) fn get(&self, number: usize) -> Option<T> {
        match &self.0 {
            Place::Memory(list) => list.get(number).copied(),
            Place::File(file) if number < file.section.length as usize => file.value(number),
            Place::File(_) => None,
        }
    }

    /// All values of a range, copied only if they do not lie together.
    pub(crate) fn slice(&self, span: Span) -> Cow<'_, [T]> {
        let (start, end) = span.bounds();
        match &self.0 {
            Place::Memory(list) => Cow::Borrowed(list.get(start..end).unwrap_or_default()),
            Place::File(_) if span.is_empty() => Cow::Borrowed(&[]),
            Place::File(file) => {
                let (page, offset) = (start / per_page::<T>(), start % per_page::<T>());
                let together = page == end.saturating_sub(1) / per_page::<T>();
                let here = || file.values(page)?.get(offset..offset.saturating_add(end.saturating_sub(start)));
                match together {
                    true => Cow::Borrowed(here().unwrap_or_default()),
                    false => Cow::Owned((start..end).map_while(|number| self.get(number)).collect()),
                }
            }
        }
    }

    /// All values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        (0..self.len()).map_while(|number| self.get(number))
    }

    /// How many values at the front fulfil a condition; those that do must come first.
    pub(crate) fn partition_point(&self, holds: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle) {
                Some(value) if holds(&value) => low = middle.saturating_add(1),
                Some(_) => high = middle,
                None => return low,
            }
        }
        low
    }

    /// Appends values and says where they are. Only lists in memory grow: policies are stored when they are complete.
    pub(crate) fn append(&mut self, values: impl IntoIterator<Item = T>) -> Span {
        let start = self.len();
        if let Place::Memory(list) = &mut self.0 {
            list.extend(values);
        }
        Span::new(start, self.len())
    }

    /// Writes the list.
    pub(crate) fn store(&self, writer: &mut Writer) -> Section {
        let mut page = Vec::with_capacity(PAGE);
        let first = writer.next_page();
        for value in self.iter() {
            if page.len().saturating_add(T::SIZE) > PAGE {
                writer.page(std::mem::take(&mut page));
            }
            value.put(&mut page);
        }
        if !page.is_empty() {
            writer.page(page);
        }
        Section { first, length: u32::try_from(self.len()).unwrap_or(u32::MAX) }
    }

    /// The list that lies in a section of a file.
    pub(crate) fn open(image: &Arc<Image>, section: Section) -> Self {
        let count = (section.length as usize).div_ceil(per_page::<T>());
        let pages = (0..count).map(|_| Page { bytes: OnceLock::new(), values: OnceLock::new() }).collect();
        Self(Place::File(InFile { image: Arc::clone(image), section, pages }))
    }
}

impl<T: Flat> InFile<T> {
    /// The bytes of a page, as many as it should have.
    fn bytes(&self, number: usize) -> Option<&[u8]> {
        let page = self.pages.get(number)?;
        Some(page.bytes.get_or_init(|| {
            let bytes = self.image.page(self.section.first as usize, number);
            let expected = (self.section.length as usize).saturating_sub(number.saturating_mul(per_page::<T>()));
            if bytes.len() != expected.min(per_page::<T>()).saturating_mul(T::SIZE) {
                self.image.damaged();
            }
            bytes.into_boxed_slice()
        }))
    }

    fn value(&self, number: usize) -> Option<T> {
        let start = (number % per_page::<T>()).saturating_mul(T::SIZE);
        let mut bytes = self.bytes(number / per_page::<T>())?.get(start..start.saturating_add(T::SIZE))?;
        let value = T::take(&mut bytes);
        if value.is_none() {
            self.image.damaged();
        }
        value
    }

    fn values(&self, number: usize) -> Option<&[T]> {
        let page = self.pages.get(number)?;
        let bytes = self.bytes(number)?;
        Some(page.values.get_or_init(|| {
            let values: Vec<T> = bytes.chunks_exact(T::SIZE).map_while(|mut value| T::take(&mut value)).collect();
            if values.len() != bytes.len() / T::SIZE {
                self.image.damaged();
            }
            values.into_boxed_slice()
        }))
    }
}
