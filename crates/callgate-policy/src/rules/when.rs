//! Conditions: expressions in CEL over the call, its input, its origin and its effects.
//!
//! Expressions cannot loop, but `all`, `exists`, `map` and `filter` walk lists, also within each other. So their number is
//! limited, and so is the size of the input they are given.

use super::matching::{Pool, Text};
use super::stored::List;
use crate::JudgeRequest;

/// A longer expression is refused.
const MAXIMUM_LENGTH: usize = 2048;
/// Deeper parentheses are refused.
const MAXIMUM_DEPTH: usize = 32;

/// All conditions of a policy.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    sources: List<Text>,
    #[cfg(feature = "conditions")]
    compiled: std::sync::OnceLock<Box<[std::sync::OnceLock<Option<engine::Program>>]>>,
}

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionMistake {
    pub message: String,
    pub help: String,
}

/// What an expression came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "conditions"), allow(dead_code))]
pub(crate) enum Held {
    No,
    Yes,
    /// It could not be evaluated: a missing key, a wrong type, too much input.
    Failed,
}

impl Conditions {
    /// Conditions with these sources, which were checked.
    pub(crate) fn new(sources: List<Text>) -> Self {
        Self { sources, ..Self::default() }
    }

    /// All sources.
    pub(crate) fn sources(&self) -> &List<Text> {
        &self.sources
    }

    /// Checks an expression and keeps it.
    pub(crate) fn add(&mut self, source: &str, text: Text) -> Result<u32, ConditionMistake> {
        check_size(source)?;
        check_syntax(source)?;
        self.sources.append([text]);
        Ok(u32::try_from(self.sources.len().saturating_sub(1)).unwrap_or(u32::MAX))
    }
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
            message: "this expression is too long or too deeply nested".to_owned(),
            help: format!("keep it below {MAXIMUM_LENGTH} bytes and {MAXIMUM_DEPTH} levels"),
        });
    }
    if walks(source) > 2 {
        return Err(ConditionMistake {
            message: "this expression walks too many lists".to_owned(),
            help: "use at most two of all, exists, exists_one, map and filter".to_owned(),
        });
    }
    Ok(())
}

/// How many lists an expression walks.
fn walks(source: &str) -> usize {
    [".all", ".exists", ".map", ".filter"].iter().map(|word| source.matches(word).count()).sum()
}

#[cfg(not(feature = "conditions"))]
fn check_syntax(_source: &str) -> Result<(), ConditionMistake> {
    Err(ConditionMistake {
        message: "this build of callgate has no conditions".to_owned(),
        help: "enable the feature `conditions`, or remove the rule".to_owned(),
    })
}

#[cfg(feature = "conditions")]
fn check_syntax(source: &str) -> Result<(), ConditionMistake> {
    engine::compile(source).map(|_| ()).map_err(|why| ConditionMistake {
        message: format!("this expression cannot be read: {why}"),
        help: "conditions are written in CEL: input.to.endsWith(\"@example.com\")".to_owned(),
    })
}

#[cfg(not(feature = "conditions"))]
impl Conditions {
    /// Never reached: no condition can be added.
    pub(crate) fn holds(&self, _number: u32, _pool: &Pool, _request: &JudgeRequest<'_>) -> Held {
        Held::Failed
    }
}

#[cfg(feature = "conditions")]
impl Conditions {
    /// Evaluates the condition of this number.
    pub(crate) fn holds(&self, number: u32, pool: &Pool, request: &JudgeRequest<'_>) -> Held {
        use std::sync::OnceLock;
        let compiled = self.compiled.get_or_init(|| (0..self.sources.len()).map(|_| OnceLock::new()).collect());
        let (Some(slot), Some(source)) = (compiled.get(number as usize), self.sources.get(number as usize)) else {
            return Held::Failed;
        };
        let source = pool.get(source);
        match slot.get_or_init(|| engine::compile(source).ok()) {
            Some(program) => engine::evaluate(program, request, walks(source)),
            None => Held::Failed,
        }
    }
}

#[cfg(feature = "conditions")]
mod engine {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use callgate_model::effect::Target;
    use cel::{Context, Value};
    use serde_json::{Value as Json, json};

    use super::{Held, JudgeRequest};
    use callgate_model::description::PlacedEffect;

    pub(super) type Program = cel::Program;

    /// How many values an expression that walks this many lists may be given.
    fn allowance(walks: usize) -> usize {
        match walks {
            0 => 200_000,
            1 => 50_000,
            _ => 1_000,
        }
    }

    pub(super) fn compile(source: &str) -> Result<Program, String> {
        match catch_unwind(AssertUnwindSafe(|| Program::compile(source))) {
            Ok(Ok(program)) => {
                let references = program.references();
                let known = ["call", "input", "origin", "effects"];
                let bound = bound_names(source);
                let unknown = |name: &&str| !known.contains(name) && !bound.contains(name);
                match references.variables().into_iter().find(unknown) {
                    Some(name) => Err(format!("unknown name `{name}`; there are {}", known.join(", "))),
                    None => Ok(program),
                }
            }
            Ok(Err(errors)) => Err(errors.errors.first().map_or_else(String::new, |error| {
                format!("{} (at character {})", error.msg.lines().next().unwrap_or_default(), error.pos.1)
            })),
            Err(_) => Err("the expression is not understood".to_owned()),
        }
    }

    /// The names that `all(x, …)` and its like bring along.
    fn bound_names(source: &str) -> Vec<&str> {
        source
            .split('(')
            .skip(1)
            .filter_map(|inside| Some(inside.split_once(',')?.0.trim()))
            .filter(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_'))
            .collect()
    }

    pub(super) fn evaluate(program: &Program, request: &JudgeRequest<'_>, walks: usize) -> Held {
        let mut left = allowance(walks);
        if !count(&request.call.input, &mut left) {
            return Held::Failed;
        }
        let effects: Vec<Json> = request.description.parts.iter().flat_map(|part| &part.effects).map(show).collect();
        if effects.len() > left {
            return Held::Failed;
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
            program.execute(&context).ok()
        }));
        match result {
            Ok(Some(Value::Bool(true))) => Held::Yes,
            Ok(Some(Value::Bool(false))) => Held::No,
            _ => Held::Failed,
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
