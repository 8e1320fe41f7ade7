//! `ask_human`: puts a question to a person.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::human::HumanQuestion;
use crate::result::{ErrorKind, ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{ToolSpec, object};

pub(super) fn spec() -> ToolSpec {
    let properties = json!({
        "question": {"type": "string", "minLength": 1, "description": "What to ask"},
        "choices": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from"},
        "context": {"type": "object", "description": "What the person should know"},
    });
    ToolSpec::new("ask_human", "Ask the person you work for", object(properties, &["question"]))
}

#[derive(Debug, Deserialize)]
struct Arguments {
    question: String,
    #[serde(default)]
    choices: Vec<String>,
    #[serde(default)]
    context: Option<Value>,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { question, choices, context } = run.arguments()?;
    let request = json!({"call_id": run.call_id(), "question": question, "choices": choices, "context": context});
    run.emit("human_request", request);
    let asked = HumanQuestion {
        id: run.call_id().to_owned(),
        question: question.clone(),
        choices,
        context,
        timeout: run.settings().human_timeout,
    };
    let answer = ask(run, &asked).map_err(|error| match error.kind {
        ErrorKind::HumanRequired => error.data(json!({"question": question})),
        _ => error,
    })?;
    run.emit("human_response", json!({"call_id": run.call_id(), "answer": answer}));
    Ok(ToolResult::text(&answer).data(json!({"answer": answer})))
}

/// Asks whoever answers for this toolbox.
pub(super) fn ask(run: &Run<'_>, question: &HumanQuestion) -> Result<String, ToolError> {
    let nobody = || ToolError::new(ErrorKind::HumanRequired, "no person can be asked in this run");
    let human = run.settings().human.as_ref().ok_or_else(nobody)?;
    let answer = human.ask(question)?;
    if question.choices.is_empty() || question.choices.contains(&answer) {
        return Ok(answer);
    }
    Err(ToolError::validation(format!("the answer is none of the choices: {}", question.choices.join(", "))))
}
