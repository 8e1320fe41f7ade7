//! Values of a fixed size in bytes, so that the one of a given number is found without reading those before it.

/// A value of a fixed size.
pub(crate) trait Flat: Copy {
    /// How many bytes it takes.
    const SIZE: usize;

    /// Appends exactly [`Flat::SIZE`] bytes.
    fn put(&self, to: &mut Vec<u8>);

    /// Takes the value from the front; `None` if the bytes are not those of one.
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

/// Says how a struct is laid out: its fields, one after the other.
macro_rules! flat_struct {
    ($name:ident { $($field:ident: $kind:ty),* $(,)? }) => {
        impl $crate::rules::stored::Flat for $name {
            const SIZE: usize = 0 $(+ <$kind as $crate::rules::stored::Flat>::SIZE)*;

            fn put(&self, to: &mut Vec<u8>) {
                // Every field is named, so that a new one is not forgotten here.
                let Self { $($field),* } = self;
                $(<$kind as $crate::rules::stored::Flat>::put($field, to);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: <$kind as $crate::rules::stored::Flat>::take(from)?),* })
            }
        }
    };
}
pub(crate) use flat_struct;
