//! Values with a fixed size in bytes, so that the value at an index is found without reading the ones before it.

/// A value with a fixed size.
pub(crate) trait Flat: Copy {
    /// The size in bytes.
    const SIZE: usize;

    /// Appends exactly [`Flat::SIZE`] bytes.
    fn put(&self, to: &mut Vec<u8>);

    /// Reads a value from the front; `None` if the bytes are invalid.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! flat_number {
    ($($number:ty),*) => {$(
        impl Flat for $number {
            const SIZE: usize = size_of::<$number>();

            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*bytes))
            }
        }
    )*};
}
flat_number!(u8, u16, u32, u64, u128);

impl Flat for bool {
    const SIZE: usize = 1;

    fn put(&self, to: &mut Vec<u8>) {
        u8::from(*self).put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Flat + Default> Flat for Option<T> {
    const SIZE: usize = 1 + T::SIZE;

    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.unwrap_or_default().put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let is_some = bool::take(from)?;
        let value = T::take(from)?;
        Some(is_some.then_some(value))
    }
}

/// Defines a struct that is stored as its fields, one after the other.
macro_rules! flat_struct {
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

        impl $crate::rules::stored::Flat for $name {
            const SIZE: usize = 0 $(+ <$kind as $crate::rules::stored::Flat>::SIZE)*;

            fn put(&self, to: &mut Vec<u8>) {
                $(<$kind as $crate::rules::stored::Flat>::put(&self.$field, to);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: <$kind as $crate::rules::stored::Flat>::take(from)?),* })
            }
        }
    };
}
pub(crate) use flat_struct;

/// Stores an enum as a number for its variant, the fields of that variant, and zeros up to the size of the largest one.
macro_rules! flat_enum {
    ($name:ident { $($number:literal: $variant:ident $({ $($field:tt: $binding:ident: $kind:ty),* })?),* $(,)? }) => {
        impl $crate::rules::stored::Flat for $name {
            const SIZE: usize = 1 + $crate::rules::stored::largest(&[
                $(0 $($(+ <$kind as $crate::rules::stored::Flat>::SIZE)*)?),*
            ]);

            fn put(&self, to: &mut Vec<u8>) {
                let end = to.len().saturating_add(Self::SIZE);
                match self {
                    $(Self::$variant { $($($field: $binding),*)? } => {
                        to.push($number);
                        $($($crate::rules::stored::Flat::put($binding, to);)*)?
                    })*
                }
                to.resize(end, 0);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let (value, rest) = from.split_at_checked(Self::SIZE)?;
                *from = rest;
                let (number, mut _fields) = value.split_first()?;
                Some(match number {
                    $($number => Self::$variant {
                        $($($field: <$kind as $crate::rules::stored::Flat>::take(&mut _fields)?),*)?
                    },)*
                    _ => return None,
                })
            }
        }
    };
}
pub(crate) use flat_enum;

/// The largest of several sizes.
pub(crate) const fn largest(sizes: &[usize]) -> usize {
    match sizes {
        [] => 0,
        [size, rest @ ..] => {
            let other = largest(rest);
            if *size > other { *size } else { other }
        }
    }
}
