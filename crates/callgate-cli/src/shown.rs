//! Answers for programs.

use callgate_model::description::PlacedEffect;
use callgate_model::redact::Redactor;
use callgate_model::wording;
use serde_json::{Value, json};

/// JSON on one line, also for readers that take more than a newline for the end of a line.
pub fn one_line(value: &Value) -> String {
    let mut line = String::new();
    for character in value.to_string().chars() {
        match character {
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{7f}' => line.push_str(&format!("\\u{:04x}", u32::from(character))),
            other => line.push(other),
        }
    }
    line
}

/// An effect for programs.
pub fn effect_as_json(placed: &PlacedEffect, redactor: &Redactor) -> Value {
    let effect = &placed.effect;
    let mut shown = json!({ "action": effect.action.as_str(), "target": wording::target(effect, redactor) });
    if let Value::Object(fields) = &mut shown {
        if !effect.marks.is_empty() {
            fields.insert("marks".to_owned(), json!(effect.marks));
        }
        if !effect.because.is_empty() {
            fields.insert("because".to_owned(), json!(redactor.text(&effect.because)));
        }
        if let Some(place) = &placed.place {
            fields.insert("resolved".to_owned(), json!(place.resolved.to_string_lossy()));
            fields.insert("zone".to_owned(), json!(place.zone));
            if place.traversal {
                fields.insert("traversal".to_owned(), json!(true));
            }
        }
    }
    shown
}
