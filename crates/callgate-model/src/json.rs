//! Reads JSON strictly: rejects everything that two readers could read differently.
//!
//! Duplicate keys, invalid UTF-8, lone surrogates, `NaN`, numbers out of range, trailing text, deep nesting and large inputs
//! are errors with a position. A gate that reads the last of two equal keys while the tool reads the first judges another call.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use thiserror::Error;

/// The maximum size of a text in bytes.
pub const MAXIMUM_SIZE: usize = 16 * 1024 * 1024;
/// Arrays and objects must be nested less deeply than this.
pub const MAXIMUM_DEPTH: usize = 128;
/// The maximum number of values in an input.
pub const MAXIMUM_VALUES: usize = 1_000_000;

const DUPLICATE: &str = "duplicate key ";

/// Why a text is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Longer than [`MAXIMUM_SIZE`].
    #[error("the input is too large: {size} bytes (maximum {MAXIMUM_SIZE})")]
    TooLarge {
        /// How long it is.
        size: usize,
    },
    /// Nested deeper than [`MAXIMUM_DEPTH`].
    #[error("the input is nested too deeply (line {line}, column {column}; maximum {MAXIMUM_DEPTH} levels)")]
    TooDeep {
        /// From 1; 0 where there is no text.
        line: usize,
        /// From 1; 0 where there is no text.
        column: usize,
    },
    /// More values than [`MAXIMUM_VALUES`].
    #[error("the input has too many values (maximum {MAXIMUM_VALUES})")]
    TooMany,
    /// An object names a key twice.
    #[error("{message} (line {line}, column {column})")]
    Duplicate {
        /// Which key.
        message: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// Not valid JSON.
    #[error("the input is not valid JSON (line {line}, column {column}): {message}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
}

/// Reads a text that is one JSON value.
///
/// ```
/// use callgate_model::json;
///
/// assert!(json::read(br#"{"path": "a"}"#).is_ok());
/// assert!(json::read(br#"{"path": "a", "path": "b"}"#).is_err());
/// ```
pub fn read(text: &[u8]) -> Result<Value, JsonError> {
    if text.len() > MAXIMUM_SIZE {
        return Err(JsonError::TooLarge { size: text.len() });
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let Strict(value) = Strict::deserialize(&mut deserializer).map_err(error_of)?;
    deserializer.end().map_err(error_of)?;
    measure(&value)?;
    Ok(value)
}

fn error_of(error: serde_json::Error) -> JsonError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    // serde_json appends the position, which the error already has
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(front, _)| front);
    if message.starts_with("recursion limit") {
        JsonError::TooDeep { line, column }
    } else if message.starts_with(DUPLICATE) {
        JsonError::Duplicate { message: message.to_owned(), line, column }
    } else {
        JsonError::Invalid { message: message.to_owned(), line, column }
    }
}

/// Checks a value that did not come from [`read`] against the same limits.
pub fn measure(value: &Value) -> Result<(), JsonError> {
    let mut size = 0_usize;
    let mut values = 0_usize;
    let mut waiting = vec![(value, 1_usize)];
    while let Some((value, depth)) = waiting.pop() {
        values = values.saturating_add(1);
        if values > MAXIMUM_VALUES {
            return Err(JsonError::TooMany);
        }
        let inner = depth.saturating_add(1);
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => size = size.saturating_add(text.len()),
            Value::Array(_) | Value::Object(_) if depth >= MAXIMUM_DEPTH => {
                return Err(JsonError::TooDeep { line: 0, column: 0 });
            }
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, inner))),
            Value::Object(map) => {
                for (key, item) in map {
                    size = size.saturating_add(key.len());
                    waiting.push((item, inner));
                }
            }
        }
        if size > MAXIMUM_SIZE {
            return Err(JsonError::TooLarge { size });
        }
    }
    Ok(())
}

/// Whether a value contains an integer beyond ±(2⁵³ − 1), where different numbers have the same canonical form. Such a value
/// must not become part of a key.
pub fn has_imprecise_numbers(value: &Value) -> bool {
    const LIMIT: u64 = (1 << 53) - 1;
    let imprecise = |number: &Number| match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(signed), _, _) => signed.unsigned_abs() > LIMIT,
        (None, Some(unsigned), _) => unsigned > LIMIT,
        (None, None, Some(float)) => float.fract() == 0.0 && float.abs() > 9_007_199_254_740_991.0,
        (None, None, None) => true,
    };
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Number(number) if imprecise(number) => return true,
            Value::Array(items) => waiting.extend(items),
            Value::Object(map) => waiting.extend(map.values()),
            _ => {}
        }
    }
    false
}

/// A value without duplicate keys.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StrictVisitor.deserialize(deserializer).map(Strict)
    }
}

#[derive(Clone, Copy)]
struct StrictVisitor;

impl<'de> DeserializeSeed<'de> for StrictVisitor {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                let shown: String = key.escape_debug().take(60).collect();
                return Err(A::Error::custom(format!("{DUPLICATE}\"{shown}\"")));
            }
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(text: &[u8]) -> String {
        read(text).expect_err("this text must be refused").to_string()
    }

    #[test]
    fn what_is_valid_is_read_as_it_stands() {
        let text = br#" {"a": [1, -2, 2.5, null, true, "\u00e9\ud83d\ude00"], "b": {}} "#;
        assert_eq!(read(text), Ok(json!({"a": [1, -2, 2.5, null, true, "é😀"], "b": {}})));
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        let cases: &[(&[u8], &str)] = &[
            (br#"{"a":1,"a":2}"#, "duplicate key \"a\""),
            (br#"{"x":{"a":1,"b":2,"a":1}}"#, "duplicate key \"a\""),
            (br#"{"a":1,"\u0061":2}"#, "duplicate key \"a\""),
            (br#"{"a":NaN}"#, "not valid JSON"),
            (br#"{"a":Infinity}"#, "not valid JSON"),
            (br#"{"a":-Infinity}"#, "not valid JSON"),
            (br#"{"a":1e999}"#, "not valid JSON"),
            (br#"{"a":01}"#, "not valid JSON"),
            (br#"{"a":"\ud800"}"#, "not valid JSON"),
            (br#"{"a":"\udc00\ud800"}"#, "not valid JSON"),
            (b"{\"a\":\"\xff\"}", "not valid JSON"),
            (b"{\"a\":\"\xed\xa0\x80\"}", "not valid JSON"),
            (b"{\"a\":\"line\nbreak\"}", "not valid JSON"),
            (br#"{"a":1} {"#, "not valid JSON"),
            (br#"{"a":1}x"#, "not valid JSON"),
            (br#"{"a":1,}"#, "not valid JSON"),
            (br#"{'a':1}"#, "not valid JSON"),
            (b"", "not valid JSON"),
            (b"\xef\xbb\xbf{}", "not valid JSON"),
        ];
        for (text, expected) in cases {
            let message = error(text);
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("(line "), "{message}");
        }
    }

    #[test]
    fn errors_say_where() {
        let JsonError::Duplicate { line, .. } = read(b"{\"a\": 1,\n\n \"a\": 2}").expect_err("duplicate") else {
            panic!("not a duplicate");
        };
        assert_eq!(line, 3);
    }

    #[test]
    fn depth_and_size_have_limits() {
        let nested = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
        assert!(read(&nested(MAXIMUM_DEPTH - 1)).is_ok());
        assert!(matches!(read(&nested(MAXIMUM_DEPTH)), Err(JsonError::TooDeep { .. })));
        assert!(matches!(read(&nested(5_000_000)), Err(JsonError::TooDeep { .. })));
        let huge = vec![b' '; MAXIMUM_SIZE + 1];
        assert!(matches!(read(&huge), Err(JsonError::TooLarge { .. })));
        let many = format!("[{}0]", "0,".repeat(MAXIMUM_VALUES));
        assert_eq!(read(many.as_bytes()), Err(JsonError::TooMany));
    }

    #[test]
    fn values_built_in_code_are_held_to_the_same_limits() {
        let mut deep = json!(1);
        for _ in 0..MAXIMUM_DEPTH {
            deep = Value::Array(vec![deep]);
        }
        assert!(matches!(measure(&deep), Err(JsonError::TooDeep { .. })));
        assert!(measure(&json!({"a": [1, {"b": 2}]})).is_ok());
    }

    #[test]
    fn numbers_that_have_no_exact_canonical_form_are_flagged() {
        let cases: &[(&str, bool)] = &[
            ("9007199254740991", false),
            ("9007199254740992", true),
            ("-9007199254740991", false),
            ("-9007199254740992", true),
            ("18446744073709551615", true),
            ("123456789012345678901234567890", true),
            ("0.1", false),
            ("1e10", false),
            ("1e300", true),
        ];
        for (text, flagged) in cases {
            let value = read(format!("{{\"a\":[{text}]}}").as_bytes()).expect(text);
            assert_eq!(has_imprecise_numbers(&value), *flagged, "{text}");
        }
    }
}
