//! Lists that are in memory while a policy is compiled and in a file afterwards.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::Stored;
use super::flat::Flat;
use super::image::{Image, ImageReader, ImageWriter, PAGE, PageRange};
use crate::rules::matching::Span;

/// A list of values. Pages of a list in a file are read when they are first needed.
#[derive(Debug, Clone)]
pub(crate) struct StoredList<T>(Storage<T>);

#[derive(Debug, Clone)]
enum Storage<T> {
    Memory(Vec<T>),
    File(InFile<T>),
}

#[derive(Debug, Clone)]
struct InFile<T> {
    image: Arc<Image>,
    section: PageRange,
    pages: Box<[Page<T>]>,
}

/// A page, once it was read.
#[derive(Debug, Clone)]
struct Page<T> {
    bytes: OnceLock<Box<[u8]>>,
    /// All values of the page, once several of them were needed together.
    values: OnceLock<Box<[T]>>,
}

impl<T> Default for StoredList<T> {
    fn default() -> Self {
        Self(Storage::Memory(Vec::new()))
    }
}

impl<T> From<Vec<T>> for StoredList<T> {
    fn from(list: Vec<T>) -> Self {
        Self(Storage::Memory(list))
    }
}

const fn per_page<T: Flat>() -> usize {
    PAGE / T::SIZE
}

impl<T: Flat> StoredList<T> {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Storage::Memory(list) => list.len(),
            Storage::File(file) => file.section.length as usize,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at an index.
    pub(crate) fn get(&self, number: usize) -> Option<T> {
        match &self.0 {
            Storage::Memory(list) => list.get(number).copied(),
            Storage::File(file) if number < file.section.length as usize => file.value(number),
            Storage::File(_) => None,
        }
    }

    /// All values of a range, copied only if they span several pages.
    pub(crate) fn slice(&self, span: Span) -> Cow<'_, [T]> {
        let (start, end) = span.bounds();
        match &self.0 {
            Storage::Memory(list) => Cow::Borrowed(list.get(start..end).unwrap_or_default()),
            Storage::File(_) if span.is_empty() => Cow::Borrowed(&[]),
            Storage::File(file) => {
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

    /// The number of values at the front that meet a condition; the list must be partitioned by it.
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

    /// Appends values and returns their range. Only lists in memory can grow.
    pub(crate) fn append(&mut self, values: impl IntoIterator<Item = T>) -> Span {
        let start = self.len();
        if let Storage::Memory(list) = &mut self.0 {
            list.extend(values);
        }
        Span::new(start, self.len())
    }
}

impl<T: Flat> Stored for StoredList<T> {
    fn store(&self, writer: &mut ImageWriter) {
        let mut page = Vec::with_capacity(PAGE);
        writer.section(writer.next_page(), self.len());
        for value in self.iter() {
            if page.len().saturating_add(T::SIZE) > PAGE {
                writer.page(std::mem::take(&mut page));
            }
            value.put(&mut page);
        }
        if !page.is_empty() {
            writer.page(page);
        }
    }

    fn open(reader: &mut ImageReader) -> Self {
        let section = reader.section();
        let count = (section.length as usize).div_ceil(per_page::<T>());
        let pages = (0..count).map(|_| Page { bytes: OnceLock::new(), values: OnceLock::new() }).collect();
        Self(Storage::File(InFile { image: Arc::clone(&reader.image), section, pages }))
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
