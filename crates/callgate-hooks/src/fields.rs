//! The fields of a payload: lenient about those that are not used, strict about the types of those that are.

use std::path::PathBuf;

use callgate::json;
use serde_json::{Map, Value};

use crate::PayloadError;

/// An object whose fields are taken out one by one, so that large ones are never copied.
#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a whole payload.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, PayloadError> {
        Fields::of(json::read(payload)?)
    }

    /// The fields of a value that has been read.
    pub(crate) fn of(value: Value) -> Result<Self, PayloadError> {
        match value {
            Value::Object(map) => Ok(Fields(map)),
            _ => Err(PayloadError::NotAnObject),
        }
    }

    pub(crate) fn empty() -> Self {
        Fields(Map::new())
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    /// What a field holds, whatever it is.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    pub(crate) fn optional_text(&mut self, field: &'static str) -> Result<Option<String>, PayloadError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(PayloadError::WrongType { field, expected: "text" }),
        }
    }

    /// Text that is not empty.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<String, PayloadError> {
        match self.optional_text(field)? {
            None => Err(PayloadError::Missing { field }),
            Some(text) if text.is_empty() => {
                Err(PayloadError::WrongType { field, expected: "text with something in it" })
            }
            Some(text) => Ok(text),
        }
    }

    /// Requires text in a field and leaves it there.
    pub(crate) fn must_have_text(&self, field: &'static str) -> Result<(), PayloadError> {
        match self.0.get(field) {
            Some(Value::String(text)) if !text.is_empty() => Ok(()),
            Some(Value::String(_)) => Err(PayloadError::WrongType { field, expected: "text with something in it" }),
            None | Some(Value::Null) => Err(PayloadError::Missing { field }),
            Some(_) => Err(PayloadError::WrongType { field, expected: "text" }),
        }
    }

    pub(crate) fn optional_object(&mut self, field: &'static str) -> Result<Option<Fields>, PayloadError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Fields(map))),
            Some(_) => Err(PayloadError::WrongType { field, expected: "an object" }),
        }
    }

    pub(crate) fn object(&mut self, field: &'static str) -> Result<Fields, PayloadError> {
        self.optional_object(field)?.ok_or(PayloadError::Missing { field })
    }

    /// An absolute path; an empty one is as good as none.
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
}

/// A path that does not depend on where the hook runs.
pub(crate) fn absolute(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    (path.is_absolute() && !text.contains('\0')).then_some(path)
}
