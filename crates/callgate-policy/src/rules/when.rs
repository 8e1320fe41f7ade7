//! Conditions: expressions in CEL over the call, its input, its origin and its effects.
//!
//! `all`, `exists`, `map` and `filter` loop over lists and can be nested. Their number is limited, and so is the size of the
//! input.

use super::matching::Pool;
use super::stored::CompiledTexts;
use crate::JudgeRequest;

/// A longer expression is refused.
const MAXIMUM_LENGTH: usize = 2048;
/// Deeper parentheses are refused.
const MAXIMUM_DEPTH: usize = 32;

/// All conditions of a policy.
pub(crate) type Conditions = CompiledTexts<Option<engine::Program>>;

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionMistake {
    pub message: String,
    pub help: String,
}

/// Checks an expression.
pub(crate) fn check(source: &str) -> Result<(), ConditionMistake> {
    check_size(source)?;
    engine::compile(source)
        .map(|_| ())
        .map_err(|why| ConditionMistake { message: format!("invalid condition: {why}"), help: engine::HELP.to_owned() })
}

/// Whether the condition of this number holds; `None` if it cannot be evaluated: a missing key, a wrong type, too much input.
pub(crate) fn holds(conditions: &Conditions, number: usize, pool: &Pool, request: &JudgeRequest<'_>) -> Option<bool> {
    let program = conditions.get(number, pool, |source| engine::compile(source).ok())?;
    engine::evaluate(program.as_ref()?, request)
}

fn check_size(source: &str) -> Result<(), ConditionMistake> {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' | b'?' | b'!' => depth = depth.saturating_add(1),
            b')' | b']' | b'}' | b':' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if source.len() > MAXIMUM_LENGTH || deepest > MAXIMUM_DEPTH {
        return Err(ConditionMistake {
            message: "expression is too long or too deeply nested".to_owned(),
            help: format!("keep it below {MAXIMUM_LENGTH} bytes and {MAXIMUM_DEPTH} levels"),
        });
    }
    if loops(source) > 2 {
        return Err(ConditionMistake {
            message: "expression loops over too many lists".to_owned(),
            help: "use at most two of all, exists, exists_one, map and filter".to_owned(),
        });
    }
    Ok(())
}

/// How many lists an expression loops over.
fn loops(source: &str) -> usize {
    [".all", ".exists", ".map", ".filter"].iter().map(|word| source.matches(word).count()).sum()
}

#[cfg(not(feature = "conditions"))]
mod engine {
    use crate::JudgeRequest;

    /// No condition can be compiled, so there is none to evaluate.
    #[derive(Debug)]
    pub(crate) enum Program {}

    pub(super) const HELP: &str = "enable the feature `conditions`, or remove the rule";

    pub(super) fn compile(_source: &str) -> Result<Program, String> {
        Err("this build of callgate does not support conditions".to_owned())
    }

    pub(super) fn evaluate(program: &Program, _request: &JudgeRequest<'_>) -> Option<bool> {
        match *program {}
    }
}

#[cfg(feature = "conditions")]
mod engine {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use callgate_model::effect::Target;
    use cel::{Context, Value};
    use serde_json::{Value as Json, json};

    use super::{JudgeRequest, loops};
    use callgate_model::description::PlacedEffect;

    /// A compiled expression and how many lists it loops over.
    #[derive(Debug)]
    pub(crate) struct Program {
        expression: cel::Program,
        loops: usize,
    }

    pub(super) const HELP: &str = "write a CEL expression, such as `input.to.endsWith(\"@example.com\")`";

    /// How many values an expression that loops over this many lists may be given.
    fn allowance(loops: usize) -> usize {
        match loops {
            0 => 200_000,
            1 => 50_000,
            _ => 1_000,
        }
    }

    pub(super) fn compile(source: &str) -> Result<Program, String> {
        match catch_unwind(AssertUnwindSafe(|| cel::Program::compile(source))) {
            Ok(Ok(expression)) => {
                let references = expression.references();
                let known = ["call", "input", "origin", "effects"];
                let bound = bound_names(source);
                let unknown = |name: &&str| !known.contains(name) && !bound.contains(name);
                match references.variables().into_iter().find(unknown) {
                    Some(name) => Err(format!("unknown name `{name}`; expected one of {}", known.join(", "))),
                    None => Ok(Program { loops: loops(source), expression }),
                }
            }
            Ok(Err(errors)) => Err(errors.errors.first().map_or_else(String::new, |error| {
                format!("{} (at character {})", error.msg.lines().next().unwrap_or_default(), error.pos.1)
            })),
            Err(_) => Err("the parser failed".to_owned()),
        }
    }

    /// The names that macros such as `all(x, …)` define.
    fn bound_names(source: &str) -> Vec<&str> {
        source
            .split('(')
            .skip(1)
            .filter_map(|inside| Some(inside.split_once(',')?.0.trim()))
            .filter(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_'))
            .collect()
    }

    pub(super) fn evaluate(program: &Program, request: &JudgeRequest<'_>) -> Option<bool> {
        let mut left = allowance(program.loops);
        if !count(&request.call.input, &mut left) {
            return None;
        }
        let effects: Vec<Json> = request.description.parts.iter().flat_map(|part| &part.effects).map(show).collect();
        if effects.len() > left {
            return None;
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut context = Context::default();
            let call = json!({
                "tool": request.call.tool.name,
                "server": request.call.tool.server,
                "category": request.description.category,
                "tags": request.claims.tags,
            });
            context.add_variable("call", cel::to_value(&call).ok()?).ok()?;
            context.add_variable("input", cel::to_value(&request.call.input).ok()?).ok()?;
            context.add_variable("origin", cel::to_value(&request.call.origin).ok()?).ok()?;
            context.add_variable("effects", cel::to_value(&effects).ok()?).ok()?;
            program.expression.execute(&context).ok()
        }));
        match result {
            Ok(Some(Value::Bool(holds))) => Some(holds),
            _ => None,
        }
    }

    /// Counts values until the allowance is spent.
    fn count(value: &Json, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else {
            return false;
        };
        *left = rest;
        match value {
            Json::Array(items) => items.iter().all(|item| count(item, left)),
            Json::Object(entries) => entries.values().all(|item| count(item, left)),
            _ => true,
        }
    }

    fn show(placed: &PlacedEffect) -> Json {
        let effect = &placed.effect;
        let mut shown = json!({ "action": effect.action, "marks": effect.marks });
        let (key, value) = match &effect.target {
            Target::Path(_) => ("path", json!(placed.place.as_ref().map(|place| place.resolved.to_string_lossy()))),
            Target::Program(program) => ("program", json!(program.name)),
            Target::Host(host) => ("host", json!(host.name)),
            Target::Text(text) => ("text", json!(text)),
        };
        if let Some(object) = shown.as_object_mut() {
            object.insert(key.to_owned(), value);
        }
        shown
    }
}
