//! `update_plan`: tells those who follow what the agent is about to do.

use serde_json::{Value, json};

use crate::result::{ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

pub(super) fn spec() -> ToolSpec {
    let step = object(
        json!({
            "step": {"type": "string", "minLength": 1, "description": "What is done"},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
        }),
        &["step", "status"],
    );
    let properties = json!({
        "plan": {"type": "array", "items": step, "minItems": 1, "description": "All steps, in their order"},
        "explanation": {"type": "string", "description": "Why the plan changed"},
    });
    ToolSpec::new("update_plan", "Say which steps you plan, do and have done", object(properties, &["plan"]))
        .claims(false, Idempotency::Safe)
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let input = &run.plan().call().input;
    let plan = input.get("plan").cloned().unwrap_or_default();
    let explanation = input.get("explanation").cloned().unwrap_or_default();
    let steps = plan.as_array().into_iter().flatten();
    let doing = steps.filter(|step| step.get("status").and_then(Value::as_str) == Some("in_progress")).count();
    if doing > 1 {
        let data = json!({"in_progress_total": doing});
        return Err(ToolError::validation("at most one step can be in_progress").data(data));
    }
    run.emit("plan_updated", json!({"call_id": run.call_id(), "plan": plan, "explanation": explanation}));
    Ok(ToolResult::text("plan updated\n").data(json!({"plan": plan, "explanation": explanation})))
}
