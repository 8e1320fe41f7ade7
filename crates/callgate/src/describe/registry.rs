//! Maps tools to their descriptors and claims.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use thiserror::Error;

use super::unknown::UnknownTool;
use super::{CallContext, DescribeError, Described, Description, Descriptor, TypedInput, built_in};
use crate::policy::{Annotations, Claims};
use callgate_model::call::{Call, Tool};
use callgate_model::redact::{Redacted, Redactor};
use callgate_model::risk::Risk;

/// The tags that correspond to the hints of an MCP tool.
fn tags_of(annotations: Annotations) -> impl Iterator<Item = &'static str> {
    [
        (annotations.read_only_hint, "read_only"),
        (annotations.destructive_hint, "destructive"),
        (annotations.idempotent_hint, "idempotent"),
        (annotations.open_world_hint, "network"),
    ]
    .into_iter()
    .filter(|(hint, _)| *hint == Some(true))
    .map(|(_, tag)| tag)
}

/// The tool already has a descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("tool `{tool}` is already registered; call `replace` to override its descriptor")]
pub struct AlreadyRegistered {
    /// The tool.
    pub tool: Tool,
}

/// What is registered for one tool.
#[derive(Clone, Default)]
struct Registration {
    descriptor: Option<Arc<dyn Descriptor>>,
    claims: Claims,
}

/// Finds the descriptor of every tool: registered, built-in, or [`UnknownTool`].
///
/// Built-in descriptors apply to the agent's own tools only: `mcp__x__Read` is not `Read`.
///
/// ```
/// use callgate::call::Tool;
/// use callgate::describe::Registry;
/// use callgate::policy::Annotations;
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
    /// Registers the descriptor of a tool. Fails if the tool already has one, registered or built-in: see
    /// [`Registry::replace`].
    pub fn register(
        &mut self,
        tool: impl Into<Tool>,
        descriptor: impl Descriptor + 'static,
    ) -> Result<(), AlreadyRegistered> {
        let tool = tool.into();
        let registered = self.tools.get(&tool).is_some_and(|registration| registration.descriptor.is_some());
        if registered || tool.server.is_none() && built_in::find(&tool.name).is_some() {
            return Err(AlreadyRegistered { tool });
        }
        self.replace(tool, descriptor);
        Ok(())
    }

    /// Registers the descriptor of a tool, replacing any other.
    pub fn replace(&mut self, tool: impl Into<Tool>, descriptor: impl Descriptor + 'static) {
        self.tools.entry(tool.into()).or_default().descriptor = Some(Arc::new(descriptor));
    }

    /// Adds tags to the claims about a tool.
    pub fn claim<S: Into<String>>(&mut self, tool: impl Into<Tool>, tags: impl IntoIterator<Item = S>) {
        let claims = &mut self.tools.entry(tool.into()).or_default().claims;
        for tag in tags {
            let tag = tag.into();
            if !claims.tags.contains(&tag) {
                claims.tags.push(tag);
            }
        }
    }

    /// Adds the claims of an MCP server about its tool.
    pub fn annotate(&mut self, tool: impl Into<Tool>, annotations: Annotations) {
        let tool = tool.into();
        self.claim(tool.clone(), tags_of(annotations));
        self.tools.entry(tool).or_default().claims.annotations = annotations;
    }

    /// The claims about a tool.
    pub fn claims(&self, tool: &Tool) -> &Claims {
        static NONE: LazyLock<Claims> = LazyLock::new(Claims::default);
        self.tools.get(tool).map_or(&NONE, |registration| &registration.claims)
    }

    fn descriptor(&self, tool: &Tool) -> Arc<dyn Descriptor> {
        let registered = self.tools.get(tool).and_then(|registration| registration.descriptor.clone());
        registered
            .or_else(|| tool.server.is_none().then(|| built_in::find(&tool.name)).flatten())
            .unwrap_or_else(|| Arc::new(UnknownTool))
    }

    /// Describes a call. A panic of the descriptor is an error.
    pub fn describe(&self, call: &Call, context: &CallContext) -> Result<Described, DescribeError> {
        let descriptor = self.descriptor(&call.tool);
        guarded(|| descriptor.describe(call, context))?
    }

    /// The input as an approver sees it.
    pub fn for_approval(&self, call: &Call, redactor: &Redactor) -> Result<Redacted, DescribeError> {
        let descriptor = self.descriptor(&call.tool);
        guarded(|| descriptor.for_approval(call, redactor))
    }

    /// The input as events contain it.
    pub fn for_event(&self, call: &Call, redactor: &Redactor) -> Result<Redacted, DescribeError> {
        let descriptor = self.descriptor(&call.tool);
        guarded(|| descriptor.for_event(call, redactor))
    }

    /// The text that a call types into a running program; `None` if the descriptor panics.
    pub fn typed_input(&self, call: &Call) -> Option<TypedInput> {
        guarded(|| self.descriptor(&call.tool).typed_input(call)).ok().flatten()
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
        formatter.debug_struct("Registry").field("tools", &tools).finish()
    }
}
