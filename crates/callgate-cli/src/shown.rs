//! How effects, words and decisions are shown to people and programs.

use callgate::describe::{Part, PlacedEffect};
use callgate::path::Zone;
use callgate::policy::Decision;
use callgate::redact::Redactor;
use callgate::show::visible;
use callgate_shell::effect::{Action, CodeOrigin, Effect, Mark, Names, Target};
use callgate_shell::word::Word;
use serde_json::{Value, json};

/// The decision as one word, as in policy files.
pub fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Contain => "contain",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

/// The action as one word, as in policy files.
pub fn action(action: Action) -> &'static str {
    match action {
        Action::List => "list",
        Action::Read => "read",
        Action::Write => "write",
        Action::Delete => "delete",
        Action::Run => "run",
        Action::Connect => "connect",
        Action::Send => "send",
        Action::Privilege => "privilege",
        Action::Opaque => "opaque",
    }
}

/// What an effect is about, in words; hidden characters made visible.
pub fn target(effect: &Effect, redactor: &Redactor) -> String {
    let text = match &effect.target {
        Target::Path(path) => {
            let below = if path.tree { " and everything below" } else { "" };
            match &path.names {
                Names::Exact(name) => format!("{name}{below}"),
                Names::Glob(pattern) => format!("{pattern}{below} (pattern)"),
                Names::Below(directory) => format!("something below {directory}"),
                Names::Unknown(why) => format!("an unknown path ({why})"),
            }
        }
        Target::Program(program) => match program.origin {
            CodeOrigin::Known | CodeOrigin::Unknown | CodeOrigin::Defined | CodeOrigin::File => program.name.clone(),
            CodeOrigin::Project => format!("what the project says ({})", program.name),
            CodeOrigin::Inline => format!("code in the command ({})", program.name),
            CodeOrigin::Fetched => format!("code from elsewhere ({})", program.name),
        },
        Target::Host(host) => host.shown.clone(),
        Target::Text(text) => text.clone(),
    };
    visible(&redactor.text(&text))
}

/// What is special about an effect, in brackets.
pub fn remarks(placed: &PlacedEffect) -> String {
    let mut remarks: Vec<&str> = placed.effect.marks.iter().filter_map(|mark| mark_in_words(*mark)).collect();
    match placed.place.as_ref().map(|place| (&place.zone, place.traversal)) {
        Some((_, true)) => remarks.push("leaves the project"),
        Some((Zone::Outside, false)) => remarks.push("outside"),
        _ => {}
    }
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) }
}

fn mark_in_words(mark: Mark) -> Option<&'static str> {
    match mark {
        Mark::Destructive => Some("cannot be undone"),
        Mark::Elsewhere => Some("elsewhere"),
        Mark::Credentials => Some("secrets"),
        Mark::Environment => Some("environment"),
        Mark::Shared => Some("where everybody writes"),
        Mark::Redirection | Mark::ProjectCode | Mark::OwnFiles => None,
    }
}

/// The words of a command as they will run; what is not known in angle brackets.
pub fn words(part: &Part) -> String {
    let shown: Vec<String> = part
        .words
        .iter()
        .map(|word| match word {
            Word::Known(text) => quoted(text),
            Word::Glob(pattern) => pattern.clone(),
            Word::Below { directory, .. } => format!("⟨below {directory}⟩"),
            Word::Partly { prefix, why, .. } => format!("{prefix}⟨{why}⟩"),
            Word::Unknown { why, .. } => format!("⟨{why}⟩"),
        })
        .collect();
    visible(&shown.join(" "))
}

fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./:=@%+,~".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// JSON on one line, for readers that take more than a newline for the end of one.
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
    let mut shown = json!({ "action": action(placed.effect.action), "target": target(&placed.effect, redactor) });
    if let Value::Object(fields) = &mut shown {
        if !placed.effect.marks.is_empty() {
            fields.insert("marks".to_owned(), json!(placed.effect.marks));
        }
        if !placed.effect.because.is_empty() {
            fields.insert("because".to_owned(), json!(redactor.text(&placed.effect.because)));
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
