//! Describes calls of unknown tools by what their arguments look like.

use serde_json::Value;

use super::collect::Collector;
use super::parameters::{self, Caution, texts};
use super::{CallContext, DescribeError, Described, Description, Descriptor, shell};
use callgate_model::call::Call;
use callgate_model::redact::{Redacted, Redactor};

/// Describes a tool without descriptor: it may do anything, and certainly what its arguments suggest.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownTool;

impl Descriptor for UnknownTool {
    fn category(&self) -> &str {
        "unknown"
    }

    fn describe(&self, call: &Call, context: &CallContext) -> Result<Described, DescribeError> {
        let mut collector = Collector::new(context);
        collector.opaque("unknown tool: callgate has no description of it");
        let mut commands = Vec::new();
        match &call.input {
            Value::Object(fields) => {
                for (name, value) in fields {
                    parameters::unknown(&mut collector, name, value, Caution::UnknownTool, &mut commands);
                }
            }
            other => parameters::unknown(&mut collector, "", other, Caution::UnknownTool, &mut commands),
        }
        let mut parts = Vec::new();
        for command in commands.into_iter().take(16) {
            match command {
                Value::String(source) => parts.extend(shell::source(source, &collector)),
                other => match texts(other) {
                    Ok(words) => parts.extend(shell::words(&words, &collector)),
                    Err(_) => collector.opaque("a command that is not text"),
                },
            }
        }
        parts.insert(0, collector.into_part());
        Ok(Description::of_parts(self.category(), parts).into())
    }

    fn for_approval(&self, call: &Call, redactor: &Redactor) -> Redacted {
        redactor.anything(&call.input)
    }
}
