//! Compiled policies in files, so that a process that judges one call does not compile thousands of rules.

mod flat;
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "pages of a stored policy are read when a call needs them"
)]
mod image;
mod list;
mod texts;

use std::array::from_fn;

pub(crate) use flat::{Flat, flat_enum, flat_struct, largest};
pub(crate) use image::{Image, ImageReader, ImageWriter, PageRange};
pub(crate) use list::StoredList;
pub(crate) use texts::CompiledTexts;

use super::matching::Span;

/// A part of a compiled policy that is written to a file and opened from it. Both visit the parts in the same order.
pub(crate) trait Stored: Sized {
    /// Adds the part's pages and sections to a file.
    fn store(&self, writer: &mut ImageWriter);

    /// Opens the part without reading its pages.
    fn open(reader: &mut ImageReader) -> Self;
}

/// A span is kept in the head of the file, as a section without pages.
impl Stored for Span {
    fn store(&self, writer: &mut ImageWriter) {
        let (start, end) = self.bounds();
        writer.section(start, end);
    }

    fn open(reader: &mut ImageReader) -> Self {
        let PageRange { first, length } = reader.section();
        Span::new(first as usize, length as usize)
    }
}

impl<const N: usize> Stored for [Span; N] {
    fn store(&self, writer: &mut ImageWriter) {
        self.iter().for_each(|span| span.store(writer));
    }

    fn open(reader: &mut ImageReader) -> Self {
        from_fn(|_| Span::open(reader))
    }
}

/// Defines a struct that is stored as its fields, one after the other.
macro_rules! stored_struct {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $kind:ty),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $kind),*
        }

        impl $crate::rules::stored::Stored for $name {
            fn store(&self, writer: &mut $crate::rules::stored::ImageWriter) {
                $($crate::rules::stored::Stored::store(&self.$field, writer);)*
            }

            fn open(reader: &mut $crate::rules::stored::ImageReader) -> Self {
                Self { $($field: $crate::rules::stored::Stored::open(reader)),* }
            }
        }
    };
}
pub(crate) use stored_struct;
