//! The fields of a payload: unused fields are ignored, used fields must have the right type.

use std::path::PathBuf;

use callgate::json;
use serde_json::{Map, Value};

use crate::PayloadError;

/// An object whose fields are taken out one by one, so that large ones are never copied.
#[derive(Debug, Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a whole payload.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, PayloadError> {
        Fields::of(json::read(payload)?)
    }

    /// Wraps a parsed value.
    pub(crate) fn of(value: Value) -> Result<Self, PayloadError> {
        match value {
            Value::Object(map) => Ok(Fields(map)),
            _ => Err(PayloadError::NotAnObject),
        }
    }

    /// Wraps a single field that was taken out before.
    pub(crate) fn single(field: &str, value: Option<Value>) -> Self {
        Fields(value.map(|value| (field.to_owned(), value)).into_iter().collect())
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    /// Takes a field of any type.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    pub(crate) fn optional_text(&mut self, field: &'static str) -> Result<Option<String>, PayloadError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(PayloadError::WrongType { field, expected: "a string" }),
        }
    }

    /// Takes a text that must not be empty.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<String, PayloadError> {
        match self.optional_text(field)? {
            None => Err(PayloadError::Missing { field }),
            Some(text) if text.is_empty() => Err(PayloadError::WrongType { field, expected: "a non-empty string" }),
            Some(text) => Ok(text),
        }
    }

    /// Requires a non-empty text in a field and leaves it there.
    pub(crate) fn must_have_text(&mut self, field: &'static str) -> Result<(), PayloadError> {
        let text = self.text(field)?;
        self.0.insert(field.to_owned(), text.into());
        Ok(())
    }

    pub(crate) fn optional_object(&mut self, field: &'static str) -> Result<Option<Fields>, PayloadError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Fields(map))),
            Some(_) => Err(PayloadError::WrongType { field, expected: "an object" }),
        }
    }

    /// Takes an object, or an object in the form of a JSON text.
    pub(crate) fn object_or_json(&mut self, field: &'static str) -> Result<Value, PayloadError> {
        let value = match self.take(field) {
            Some(Value::String(text)) => json::read(text.as_bytes())?,
            Some(value) => value,
            None => return Err(PayloadError::Missing { field }),
        };
        if value.is_object() { Ok(value) } else { Err(PayloadError::WrongType { field, expected: "an object" }) }
    }

    pub(crate) fn object(&mut self, field: &'static str) -> Result<Fields, PayloadError> {
        self.optional_object(field)?.ok_or(PayloadError::Missing { field })
    }

    /// Takes an absolute path. An empty text counts as missing.
    pub(crate) fn optional_directory(&mut self, field: &'static str) -> Result<Option<PathBuf>, PayloadError> {
        match self.optional_text(field)? {
            None => Ok(None),
            Some(text) if text.is_empty() => Ok(None),
            Some(text) => absolute(&text)
                .map(Some)
                .ok_or(PayloadError::WrongType { field, expected: "the absolute path of a directory" }),
        }
    }

    pub(crate) fn directory(&mut self, field: &'static str) -> Result<PathBuf, PayloadError> {
        self.optional_directory(field)?.ok_or(PayloadError::Missing { field })
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Takes all remaining fields.
    pub(crate) fn take_rest(&mut self) -> Value {
        std::mem::take(self).into_value()
    }
}

/// Parses an absolute path.
pub(crate) fn absolute(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    (path.is_absolute() && !text.contains('\0')).then_some(path)
}
