//! Compares inputs with schemas.
//!
//! The part of JSON Schema that tools use: `type`, `enum`, `properties`, `required`, `additionalProperties`, `items`, `minimum`,
//! `maximum`, `minLength`, `maxLength`, `minItems`, `maxItems`. A schema with any other keyword is an error when the tool is registered, because a
//! keyword that nobody checks promises something that is not held.

use serde_json::{Map, Value};
use thiserror::Error;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the schema of `{place}` {problem}")]
pub struct SchemaError {
    /// The parameter, or `input` for the whole.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

/// Keywords that describe and check nothing.
const NOTES: [&str; 6] = ["description", "title", "default", "examples", "$schema", "$comment"];
const CHECKED: [&str; 12] = [
    "type",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];
const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
/// How deeply schemas may be nested.
const DEPTH: usize = 32;

/// Whether all of a schema can be checked.
pub fn check(schema: &Value) -> Result<(), SchemaError> {
    check_at(schema, "input", DEPTH)
}

fn check_at(schema: &Value, place: &str, depth: usize) -> Result<(), SchemaError> {
    let wrong = |problem: String| SchemaError { place: place.to_owned(), problem };
    let Some(depth) = depth.checked_sub(1) else { return Err(wrong("is nested too deeply".to_owned())) };
    let fields = schema.as_object().ok_or_else(|| wrong("is not an object".to_owned()))?;
    for (keyword, value) in fields {
        let fits = match keyword.as_str() {
            "type" => types(value).is_some_and(|mut types| types.all(|name| TYPES.contains(&name))),
            "enum" => value.is_array(),
            "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
            "additionalProperties" if value.is_boolean() => true,
            "additionalProperties" | "items" => {
                check_at(value, place, depth)?;
                true
            }
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    check_at(inner, name, depth)?;
                }
                value.is_object()
            }
            "minimum" | "maximum" => value.is_number(),
            known if CHECKED.contains(&known) => value.is_u64(),
            note => NOTES.contains(&note),
        };
        if !fits {
            return Err(wrong(if CHECKED.contains(&keyword.as_str()) {
                format!("has an invalid value for `{keyword}`")
            } else {
                format!("uses `{keyword}`, which callgate does not check; use {}", CHECKED.join(", "))
            }));
        }
    }
    Ok(())
}

/// The names in `type`, which is a text or a list of texts.
fn types(value: &Value) -> Option<Box<dyn Iterator<Item = &str> + '_>> {
    match value {
        Value::String(name) => Some(Box::new(std::iter::once(name.as_str()))),
        Value::Array(names) if names.iter().all(Value::is_string) => {
            Some(Box::new(names.iter().filter_map(Value::as_str)))
        }
        _ => None,
    }
}

/// Compares an input with a checked schema. The error names the argument and what is expected.
pub fn validate(schema: &Value, input: &Value) -> Result<(), String> {
    validate_at(schema, input, "", DEPTH)
}

fn validate_at(schema: &Value, value: &Value, place: &str, depth: usize) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else { return Err(format!("{} is nested too deeply", named(place))) };
    let Some(fields) = schema.as_object() else { return Ok(()) };
    if let Some(types) = fields.get("type") {
        let names: Vec<&str> = self::types(types).into_iter().flatten().collect();
        if !names.iter().any(|name| is_type(value, name)) {
            return Err(format!("{} must be {}", named(place), article(&names)));
        }
    }
    if let Some(Value::Array(allowed)) = fields.get("enum")
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return Err(format!("{} must be one of {}", named(place), allowed.join(", ")));
    }
    let least = |keyword: &str| fields.get(keyword).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        match (least("minimum"), least("maximum")) {
            (Some(minimum), _) if number < minimum => {
                return Err(format!("{} must be at least {minimum}", named(place)));
            }
            (_, Some(maximum)) if number > maximum => {
                return Err(format!("{} must be at most {maximum}", named(place)));
            }
            _ => {}
        }
    }
    let count = |keyword: &str| fields.get(keyword).and_then(Value::as_u64);
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as u64;
        match (count("minLength"), count("maxLength")) {
            (Some(1), _) if length == 0 => return Err(format!("{} must not be empty", named(place))),
            (Some(minimum), _) if length < minimum => {
                return Err(format!("{} must have at least {minimum} characters", named(place)));
            }
            (_, Some(maximum)) if length > maximum => {
                return Err(format!("{} must have at most {maximum} characters", named(place)));
            }
            _ => {}
        }
    }
    if let Some(entries) = value.as_array() {
        let length = entries.len() as u64;
        match (count("minItems"), count("maxItems")) {
            (Some(1), _) if length == 0 => return Err(format!("{} must not be empty", named(place))),
            (Some(minimum), _) if length < minimum => {
                return Err(format!("{} must have at least {minimum} entries", named(place)));
            }
            (_, Some(maximum)) if length > maximum => {
                return Err(format!("{} must have at most {maximum} entries", named(place)));
            }
            _ => {}
        }
        if let Some(items) = fields.get("items") {
            for (number, entry) in entries.iter().enumerate() {
                validate_at(items, entry, &format!("{place}[{number}]"), depth)?;
            }
        }
    }
    if let Some(object) = value.as_object() {
        validate_object(fields, object, place, depth)?;
    }
    Ok(())
}

fn validate_object(
    schema: &Map<String, Value>,
    object: &Map<String, Value>,
    place: &str,
    depth: usize,
) -> Result<(), String> {
    let inner = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            return Err(format!("missing argument `{}`", inner(name)));
        }
    }
    for (name, value) in object {
        match (properties.and_then(|properties| properties.get(name)), schema.get("additionalProperties")) {
            (Some(known), _) => validate_at(known, value, &inner(name), depth)?,
            (None, Some(Value::Bool(false))) => {
                let known: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                return Err(format!("unknown argument `{}`; expected one of {}", inner(name), known.join(", ")));
            }
            (None, Some(others)) if others.is_object() => validate_at(others, value, &inner(name), depth)?,
            (None, _) => {}
        }
    }
    Ok(())
}

fn named(place: &str) -> String {
    if place.is_empty() { "the input".to_owned() } else { format!("argument `{place}`") }
}

fn article(names: &[&str]) -> String {
    let with: Vec<String> = names
        .iter()
        .map(|name| match *name {
            "null" => "null".to_owned(),
            "object" | "array" | "integer" => format!("an {name}"),
            _ => format!("a {name}"),
        })
        .collect();
    with.join(" or ")
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "words": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
                "limit": {"type": "integer", "minimum": 1},
                "mode": {"type": "string", "enum": ["slice", "block"]},
                "text": {"type": "string", "minLength": 1},
            },
            "required": ["words"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn errors_name_the_argument_and_what_is_expected() {
        check(&schema()).unwrap();
        let cases = [
            (json!([]), "the input must be an object"),
            (json!({}), "missing argument `words`"),
            (json!({"words": []}), "argument `words` must not be empty"),
            (json!({"words": ["a", 1]}), "argument `words[1]` must be a string"),
            (json!({"words": "a"}), "argument `words` must be an array"),
            (json!({"words": ["a"], "env": {"A": 1}}), "argument `env.A` must be a string"),
            (json!({"words": ["a"], "limit": 0}), "argument `limit` must be at least 1"),
            (json!({"words": ["a"], "limit": 1.5}), "argument `limit` must be an integer"),
            (json!({"words": ["a"], "limit": true}), "argument `limit` must be an integer"),
            (json!({"words": ["a"], "mode": "all"}), "argument `mode` must be one of \"slice\", \"block\""),
            (json!({"words": ["a"], "text": ""}), "argument `text` must not be empty"),
        ];
        for (input, error) in cases {
            assert_eq!(validate(&schema(), &input), Err(error.to_owned()), "{input}");
        }
        let error = validate(&schema(), &json!({"words": ["a"], "wrods": 1})).unwrap_err();
        assert!(error.starts_with("unknown argument `wrods`; expected one of "), "{error}");
        assert_eq!(validate(&schema(), &json!({"words": ["a"], "env": {"A": "b"}, "limit": 3})), Ok(()));
    }

    #[test]
    fn a_schema_that_cannot_be_checked_is_an_error() {
        let error = check(&json!({"type": "object", "properties": {"a": {"pattern": "x"}}})).unwrap_err();
        assert!(error.to_string().starts_with("the schema of `a` uses `pattern`, which callgate does not check"));
        assert!(check(&json!({"type": "text"})).is_err());
        assert!(check(&json!({"items": {"oneOf": []}})).is_err());
        let mut deep = json!({"type": "string"});
        for _ in 0..DEPTH {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(check(&deep).is_err());
    }
}
