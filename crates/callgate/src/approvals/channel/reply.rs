//! An answer that came as JSON from outside. Anything but a clear answer is none.

use serde_json::Value;

use super::AskError;
use crate::approvals::{Answer, Question};
use callgate_model::json;

/// The longest answer that is read.
pub const MAXIMUM_REPLY: usize = 64 * 1024;

/// Reads an answer: `{"decision": "approved" | "approved_for_session" | "denied" | "abort"}`, optionally with `reason`,
/// `by`, `proposal` (a number) and `id` (which must be the question's). Nothing else: no other field, no other value, no text around it.
pub fn read_reply(text: &[u8], question: &Question) -> Result<Answer, AskError> {
    let unusable = |why: String| AskError::Unusable(why);
    if text.len() > MAXIMUM_REPLY {
        return Err(unusable(format!("longer than {MAXIMUM_REPLY} bytes")));
    }
    let mut value = json::read(text).map_err(|error| unusable(error.to_string()))?;
    let Value::Object(fields) = &mut value else {
        return Err(unusable("not a JSON object".into()));
    };
    if let Some(id) = fields.remove("id")
        && id != question.id.as_str()
    {
        return Err(unusable("it is for another question".into()));
    }
    if fields.contains_key("always") {
        return Err(unusable("`always` is not allowed".into()));
    }
    let answer: Answer = serde_json::from_value(value).map_err(|error| unusable(error.to_string()))?;
    match answer.proposal {
        Some(index) if index >= question.proposals.len() => Err(unusable("unknown proposal".into())),
        _ => Ok(answer),
    }
}
