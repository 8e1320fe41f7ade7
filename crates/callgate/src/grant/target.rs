//! Whom an action reaches: a recipient, a host, a path, written in one normal form.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What an action reaches, in normal form.
///
/// Two spellings are the same target exactly if their normal forms are equal. The normal form is made in this order:
///
/// 1. white space at both ends is removed (Unicode `White_Space`);
/// 2. upper and lower case are folded (Unicode full case folding, so `Straße` and `STRASSE` meet);
/// 3. the result is composed (Unicode NFC, so `é` and `e` + accent meet).
///
/// What begins with `/` is a path and stays as it is: `/p/README` and `/p/readme` are two files.
///
/// Compatibility forms are **not** unified (no NFKC) and look-alikes stay apart: `ｅ` (full width), `е` (Cyrillic) and `e`
/// are three letters, and a zero-width character makes another target. When in doubt, targets differ.
///
/// ```
/// use callgate::grant::GrantTarget;
///
/// assert_eq!(GrantTarget::new(" A@X.com "), GrantTarget::new("a@x.com"));
/// assert_eq!(GrantTarget::from(42), GrantTarget::new("42"));
/// assert_ne!(GrantTarget::new("pаypal@x.com"), GrantTarget::new("paypal@x.com")); // a Cyrillic а
/// ```
///
/// There is no target that means "any": that is [`GrantReach::Any`], which no text can express.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantTarget(#[serde(deserialize_with = "normal")] Arc<str>);

fn normal<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(|text| GrantTarget::new(&text).0)
}

impl GrantTarget {
    /// The target that a text names.
    pub fn new(text: &str) -> Self {
        GrantTarget(normal_form(text).into())
    }

    /// Its normal form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Trimmed, case-folded, composed; a path as it is.
fn normal_form(text: &str) -> Cow<'_, str> {
    if text.starts_with('/') {
        return Cow::Borrowed(text);
    }
    let text = text.trim();
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    folded(text)
}

#[cfg(feature = "grants")]
fn folded(text: &str) -> Cow<'_, str> {
    use unicode_normalization::UnicodeNormalization;

    // Decomposed first, so that folding meets the same letters whatever form they came in.
    let decomposed: String = text.nfd().collect();
    Cow::Owned(unicase::UniCase::unicode(decomposed).to_folded_case().nfc().collect())
}

/// Without Unicode's tables, two spellings of a text that is not ASCII are two targets.
#[cfg(not(feature = "grants"))]
fn folded(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

impl fmt::Debug for GrantTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl From<&GrantTarget> for GrantTarget {
    fn from(target: &GrantTarget) -> Self {
        target.clone()
    }
}

macro_rules! from_text {
    ($($kind:ty),*) => {$(
        impl From<$kind> for GrantTarget {
            fn from(value: $kind) -> Self {
                GrantTarget::new(&value.to_string())
            }
        }
    )*};
}
from_text!(&str, String, &String, i32, i64, u32, u64);

/// Which targets a grant reaches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantReach {
    /// This one.
    GrantTarget(GrantTarget),
    /// Whichever is asked for. A variant of its own: a caller who passes `*` or `any` as a target has named a target called `*` or `any`.
    Any,
}

impl fmt::Display for GrantReach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrantReach::GrantTarget(target) => formatter.write_str(&callgate_model::show::visible(target.as_str())),
            GrantReach::Any => formatter.write_str("(any target)"),
        }
    }
}

/// A task that a grant can be bound to. Compared exactly: it is an identifier, not a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scope(Arc<str>);

impl Scope {
    /// The scope of that name.
    pub fn new(name: &str) -> Self {
        Scope(name.into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Scope {
    fn from(name: &str) -> Self {
        Scope::new(name)
    }
}

impl From<String> for Scope {
    fn from(name: String) -> Self {
        Scope(name.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_target_meet() {
        let cases = [
            ("a@x.com", "A@X.com"),
            ("a@x.com", "\t a@x.com\n"),
            ("a@x.com", "\u{a0}a@x.com\u{3000}"),
            ("STRASSE", "straße"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("CAF\u{c9}", "cafe\u{301}"),
            ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
            ("\u{1e9e}", "ss"),
            ("\u{212b}", "\u{e5}"),
        ];
        for (one, other) in cases {
            assert_eq!(GrantTarget::new(one), GrantTarget::new(other), "{one} {other}");
        }
    }

    #[test]
    fn look_alikes_stay_apart() {
        let cases = [
            ("paypal", "p\u{430}ypal"),
            ("admin", "ａｄｍｉｎ"),
            ("a@x.com", "a@x.com\u{200b}"),
            ("a@x.com", "a @x.com"),
            ("file", "\u{fb01}le\u{0}"),
            ("i", "\u{131}"),
            ("a@x.com", "a@x.com, evil@y.com"),
            ("/p/README", "/p/readme"),
            ("/p/a", "/p/a "),
            ("/p/caf\u{e9}", "/p/cafe\u{301}"),
        ];
        for (one, other) in cases {
            assert_ne!(GrantTarget::new(one), GrantTarget::new(other), "{one} {other}");
        }
    }

    #[test]
    fn a_stored_target_is_normalised_when_it_is_read() {
        let target: GrantTarget = serde_json::from_str("\" A@X.com\"").unwrap();
        assert_eq!(target, GrantTarget::new("a@x.com"));
    }

    proptest::proptest! {
        #[test]
        fn the_normal_form_is_its_own_normal_form(text in "\\PC{0,20}|[ -~]{0,20}") {
            let once = GrantTarget::new(&text);
            proptest::prop_assert_eq!(GrantTarget::new(once.as_str()), once);
        }
    }
}
