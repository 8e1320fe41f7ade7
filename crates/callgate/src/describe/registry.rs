//! Which descriptor describes which tool, and what is claimed of it.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::unknown::UnknownTool;
use super::{Context, DescribeError, Description, Descriptor, built_in};
use crate::call::{Call, Tool};
use crate::policy::Claims;
use crate::redact::{Redacted, Redactor};
use crate::risk::Risk;

/// The hints that an MCP server gives about a tool. Claims, nothing more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    pub destructive_hint: Option<bool>,
    /// Calling it twice is as good as once.
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond the server.
    pub open_world_hint: Option<bool>,
}

impl Annotations {
    /// The tags that say the same.
    pub fn tags(&self) -> Vec<String> {
        let pairs = [
            (self.read_only_hint, "read_only"),
            (self.destructive_hint, "destructive"),
            (self.idempotent_hint, "idempotent"),
            (self.open_world_hint, "network"),
        ];
        pairs
            .into_iter()
            .filter(|(hint, _)| *hint == Some(true))
            .map(|(_, tag)| tag.to_owned())
            .collect()
    }
}

/// What is registered of one tool.
#[derive(Clone, Default)]
struct Registration {
    descriptor: Option<Arc<dyn Descriptor>>,
    claims: Claims,
}

/// Knows the descriptor of every tool: those registered here, those built in, and for all others that nothing is known.
///
/// A descriptor that is built in serves the agent's own tools only: `mcp__x__Read` is not `Read`.
///
/// ```
/// use callgate::call::Tool;
/// use callgate::describe::{Annotations, Registry};
///
/// let mut registry = Registry::default();
/// registry.claim(Tool::of_server("mail", "search"), ["network"]);
/// registry.annotate(Tool::of_server("mail", "search"), Annotations { read_only_hint: Some(true), ..Annotations::default() });
/// let claims = registry.claims(&Tool::of_server("mail", "search"));
/// assert_eq!(claims.tags, ["network", "read_only"]);
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    tools: HashMap<Tool, Registration>,
}

impl Registry {
    /// Registers how a tool is understood. Takes the place of what is built in.
    pub fn register(&mut self, tool: impl Into<Tool>, descriptor: impl Descriptor + 'static) {
        self.tools.entry(tool.into()).or_default().descriptor = Some(Arc::new(descriptor));
    }

    /// Adds tags that are claimed of a tool.
    pub fn claim<S: Into<String>>(
        &mut self,
        tool: impl Into<Tool>,
        tags: impl IntoIterator<Item = S>,
    ) {
        let claims = &mut self.tools.entry(tool.into()).or_default().claims;
        for tag in tags {
            let tag = tag.into();
            if !claims.tags.contains(&tag) {
                claims.tags.push(tag);
            }
        }
    }

    /// Adds what an MCP server claims of its tool.
    pub fn annotate(&mut self, tool: impl Into<Tool>, annotations: Annotations) {
        self.claim(tool, annotations.tags());
    }

    /// What is claimed of a tool.
    pub fn claims(&self, tool: &Tool) -> &Claims {
        static NONE: Claims = Claims { tags: Vec::new() };
        self.tools
            .get(tool)
            .map_or(&NONE, |registration| &registration.claims)
    }

    fn descriptor(&self, tool: &Tool) -> &dyn Descriptor {
        let registered = self
            .tools
            .get(tool)
            .and_then(|registration| registration.descriptor.as_deref());
        registered
            .or_else(|| {
                tool.server
                    .is_none()
                    .then(|| built_in::find(&tool.name))
                    .flatten()
            })
            .unwrap_or(&UnknownTool)
    }

    /// Describes a call. A descriptor that panics has failed.
    pub fn describe(&self, call: &Call, context: &Context) -> Result<Description, DescribeError> {
        let descriptor = self.descriptor(&call.tool);
        guarded(|| descriptor.describe(call, context))?
    }

    /// What an approver sees of a call.
    pub fn for_approval(
        &self,
        call: &Call,
        redactor: &Redactor,
    ) -> Result<Redacted, DescribeError> {
        let descriptor = self.descriptor(&call.tool);
        guarded(|| descriptor.for_approval(call, redactor))
    }

    /// What events hold of a call.
    pub fn for_event(&self, call: &Call, redactor: &Redactor) -> Result<Redacted, DescribeError> {
        let descriptor = self.descriptor(&call.tool);
        guarded(|| descriptor.for_event(call, redactor))
    }

    /// How risky a call is.
    pub fn risk(&self, call: &Call, description: &Description) -> Result<Risk, DescribeError> {
        let descriptor = self.descriptor(&call.tool);
        guarded(|| descriptor.risk(call, description))
    }
}

fn guarded<T>(body: impl FnOnce() -> T) -> Result<T, DescribeError> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|_| DescribeError::Panicked)
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tools: Vec<String> = self.tools.keys().map(Tool::to_string).collect();
        tools.sort_unstable();
        formatter
            .debug_struct("Registry")
            .field("tools", &tools)
            .finish()
    }
}
