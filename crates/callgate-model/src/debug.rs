//! `Debug` for types that cannot derive it, or must not.

/// Implements `Debug` for a type that holds secrets, long texts or functions: its name and the fields that are named.
///
/// ```
/// struct Login<F> {
///     user: String,
///     password: String,
///     ask: F,
/// }
/// callgate_model::debug_fields!(<F> Login, user);
///
/// let login = Login { user: "ada".to_owned(), password: "hunter2".to_owned(), ask: || () };
/// assert_eq!(format!("{login:?}"), r#"Login { user: "ada", .. }"#);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! debug_fields {
    ($(<$parameter:ident $(: $bound:path)?>)? $name:ident $(, $field:ident)*) => {
        impl $(<$parameter $(: $bound)?>)? ::std::fmt::Debug for $name $(<$parameter>)? {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter
                    .debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}
