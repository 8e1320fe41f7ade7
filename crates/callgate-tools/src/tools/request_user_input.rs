//! `request_user_input`: several questions in one call.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ask_human::ask;
use crate::human::HumanQuestion;
use crate::result::{ErrorKind, ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

pub(super) fn spec() -> ToolSpec {
    let text = |about: &str| json!({"type": "string", "description": about});
    let option = object(json!({"label": text("The answer"), "description": text("What it means")}), &["label"]);
    let question = object(
        json!({
            "id": text("A name for the answer"),
            "header": text("A few words above the question"),
            "question": text("What to ask"),
            "options": {"type": "array", "items": option, "description": "Answers to choose from"},
        }),
        &["id", "header", "question"],
    );
    let properties = json!({"questions": {"type": "array", "items": question, "minItems": 1}});
    ToolSpec::new(
        "request_user_input",
        "Ask the person you work for several questions",
        object(properties, &["questions"]),
    )
    .claims(false, Idempotency::Safe)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    questions: Vec<Question>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Question {
    id: String,
    header: String,
    question: String,
    #[serde(default)]
    options: Vec<Choice>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Choice {
    label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { questions } = run.arguments()?;
    let mut ids = HashSet::new();
    for question in &questions {
        let wrong = |why: &str| Err(ToolError::validation(why).data(json!({"question_id": question.id})));
        let mut labels = HashSet::new();
        if !ids.insert(&question.id) {
            return wrong("two questions have the same id");
        }
        for option in &question.options {
            if option.label.trim().is_empty() {
                return wrong("an option has no label");
            }
            if !labels.insert(option.label.trim()) {
                return wrong("two options have the same label");
            }
        }
    }
    run.emit("human_request", json!({"call_id": run.call_id(), "tool": "request_user_input", "questions": questions}));
    let mut answers = Vec::new();
    for question in &questions {
        let asked = HumanQuestion {
            id: format!("{}:{}", run.call_id(), question.id),
            question: question.question.clone(),
            choices: question.options.iter().map(|option| option.label.clone()).collect(),
            context: Some(json!({"header": question.header, "question_id": question.id, "options": question.options})),
            timeout: run.settings().human_timeout,
        };
        let answer = ask(run, &asked).map_err(|error| match error.kind {
            ErrorKind::HumanRequired => error.data(json!({"questions_total": questions.len()})),
            _ => error.data(json!({"question_id": question.id})),
        })?;
        run.emit("human_response", json!({"call_id": run.call_id(), "question_id": question.id, "answer": answer}));
        answers.push(json!({"id": question.id, "answer": answer}));
    }
    let data = json!({"answers": answers});
    Ok(ToolResult::text(data.to_string()).data(data))
}
