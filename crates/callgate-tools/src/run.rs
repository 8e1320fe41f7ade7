//! A running call: what a tool gets when it may run, and what all runs of a toolbox share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use callgate::{Gate, Origin, Plan};
use callgate_sandbox::Backend;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::exec::{Choice, Program, Sessions};
use crate::human::Human;
use crate::result::{ErrorKind, ToolError, ToolResult};
use crate::timeline::Timeline;

/// Runs a tool of one's own. A function is a handler too.
pub trait Handler: Send + Sync {
    /// Does what the call asks for. `run` is the proof that it may.
    fn run(&self, run: &Run<'_>) -> Result<ToolResult, ToolError>;

    /// Whether all it does is start programs through this crate, which contains them where the permit says so. A call that must be contained is
    /// refused for every other tool.
    #[doc(hidden)]
    fn starts_programs(&self) -> bool {
        false
    }
}

impl<F: Fn(&Run<'_>) -> Result<ToolResult, ToolError> + Send + Sync> Handler for F {
    fn run(&self, run: &Run<'_>) -> Result<ToolResult, ToolError> {
        self(run)
    }
}

/// What a running call may know and use.
pub struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) toolbox: &'a Shared,
    pub(crate) call: &'a str,
    pub(crate) choice: &'a Choice,
}

impl Run<'_> {
    /// The call as it was judged. Use its resolved paths, not those of the input.
    pub fn plan(&self) -> &Plan {
        self.plan
    }

    /// The id that the model gave the call.
    pub fn call_id(&self) -> &str {
        self.call
    }

    /// The input as a type. It fits the schema.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        T::deserialize(&self.plan.call().input).map_err(|error| ToolError::validation(error.to_string()))
    }

    /// A path of the input as it was judged: absolute and without symlinks.
    pub fn path(&self, named: &str) -> Result<PathBuf, ToolError> {
        let directory = self.plan.directory().and_then(Path::to_str);
        let named_path = callgate_model::lexical::fold(Path::new(&callgate_model::lexical::absolute(directory, named)));
        let judged = self.plan.places().find(|place| place.named == named_path || place.resolved == named_path);
        let missing =
            || ToolError::new(ErrorKind::Permission, format!("`{named}` was not judged, so it is not opened"));
        judged.map(|place| place.resolved.clone()).ok_or_else(missing)
    }

    /// A program of this call: contained where the permit says so.
    pub(crate) fn program(
        &self,
        words: Vec<String>,
        directory: PathBuf,
        environment: Vec<(String, String)>,
        time: Option<Duration>,
    ) -> Result<Program, ToolError> {
        let fence = self.plan.fence().map(|fence| {
            let mut fence = fence.clone();
            fence.limits.time = [fence.limits.time, time].into_iter().flatten().min();
            Box::new(fence)
        });
        let shown = self.toolbox.gate.redactor().text(&callgate_model::quote::shell_words(&words));
        Ok(Program {
            words,
            directory,
            environment,
            backend: self.backend()?,
            fence,
            helper: self.settings().helper.clone(),
            call: self.call.to_owned(),
            shown,
        })
    }

    /// How a program is contained; `None` if it runs free.
    pub(crate) fn backend(&self) -> Result<Option<Backend>, ToolError> {
        self.choice.backend()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.toolbox.settings
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.toolbox
    }

    /// Tells those who follow the timeline.
    pub(crate) fn emit(&self, kind: &'static str, payload: Value) {
        let payload = self.toolbox.gate.redactor().owned(payload);
        self.toolbox.timeline.emit(kind, payload.as_value().clone());
    }
}

/// What tools need to know beside the call.
pub(crate) struct Settings {
    pub workspace: PathBuf,
    pub origin: Origin,
    /// The session of calls whose origin names none: what is remembered for it ends with this toolbox.
    pub session: Option<String>,
    pub environment: Vec<(String, String)>,
    pub default_timeout: Duration,
    pub maximum_file: u64,
    pub human: Option<Arc<dyn Human>>,
    pub human_timeout: Option<Duration>,
    pub helper: Option<PathBuf>,
}

/// Looks at an input before the gate does.
pub(crate) type Check = fn(&Value, &Shared) -> Result<(), ToolError>;

/// What all runs share.
pub(crate) struct Shared {
    pub gate: Gate,
    pub timeline: Arc<Timeline>,
    pub settings: Settings,
    pub sessions: Sessions,
}
