//! A JSON Schema for editors, made from the same table that reads the files.

use serde_json::{Map, Value, json};

use super::keys::{self, Key, KeyType};

/// The schema of a policy file.
pub fn schema() -> Value {
    let mut schema = section(keys::FILE);
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        object.insert("title".to_owned(), json!("callgate policy"));
        object.insert("$defs".to_owned(), json!({ "rule": rule() }));
    }
    schema
}

fn section(keys: &[Key]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let mut shape = of(key.shape);
            if let Some(object) = shape.as_object_mut() {
                object.insert("description".to_owned(), json!(key.description));
            }
            (key.name.to_owned(), shape)
        })
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn rule() -> Value {
    let mut rule = section(keys::RULE);
    if let Some(object) = rule.as_object_mut() {
        object.insert("required".to_owned(), json!(["action"]));
    }
    rule
}

fn of(shape: KeyType) -> Value {
    let list = |items: Value| json!({ "oneOf": [items.clone(), { "type": "array", "items": items, "minItems": 1 }] });
    match shape {
        KeyType::Text => json!({ "type": "string" }),
        KeyType::Texts => {
            json!({ "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
        }
        KeyType::Flag => json!({ "type": "boolean" }),
        KeyType::Number => json!({ "type": "integer", "minimum": 0 }),
        KeyType::OneOf(words) => json!({ "enum": words }),
        KeyType::ManyOf(words) if words == keys::MARKS => {
            let both: Vec<String> = words.iter().flat_map(|word| [(*word).to_owned(), format!("!{word}")]).collect();
            list(json!({ "enum": both }))
        }
        KeyType::ManyOf(words) => list(json!({ "enum": words })),
        KeyType::Section(keys) => section(keys),
        KeyType::NamedLists => json!({ "type": "object", "additionalProperties": of(KeyType::Texts) }),
        KeyType::Named(keys) => json!({ "type": "object", "additionalProperties": section(keys) }),
        KeyType::Rules => json!({ "type": "array", "items": { "$ref": "#/$defs/rule" } }),
        KeyType::Tools => {
            let server = json!({
                "type": "object",
                "properties": { "server": { "type": "string" } },
                "required": ["server"],
                "additionalProperties": false,
            });
            list(json!({ "anyOf": [{ "type": "string" }, server] }))
        }
        KeyType::Examples => {
            let example = json!({ "anyOf": [{ "type": "string" }, section(keys::EXAMPLE)] });
            json!({ "oneOf": [example, { "type": "array", "items": example }] })
        }
        KeyType::Anything => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_schema() {
        let schema = schema();
        for key in keys::FILE {
            assert!(schema["properties"][key.name]["description"].is_string(), "{}", key.name);
        }
        for key in keys::RULE {
            assert!(schema["$defs"]["rule"]["properties"][key.name].is_object(), "{}", key.name);
        }
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["$defs"]["rule"]["required"], json!(["action"]));
    }
}
