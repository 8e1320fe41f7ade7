//! The toolbox: takes a call from its arrival to its result.
//!
//! [`Toolbox::dispatch`] compares the input with the tool's schema, asks the gate, runs the tool with the permit, and returns a result that is
//! bounded and redacted. Nothing else starts a tool: a handler gets a [`Run`], and only the dispatcher makes one, out of a permit.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use callgate::describe::{Descriptor, Registry};
use callgate::gate::{CheckOptions, GateBuilder};
use callgate::permit::{Permit, RunError};
use callgate::{Call, Gate, Origin, Refusal, RefusalKind, Tool};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::exec::{Choice, Sessions};
use crate::human::Human;
use crate::result::{ErrorKind, ToolError, ToolResult};
use crate::run::{Check, Handler, Run, Settings, Shared};
use crate::schema::{self, SchemaError};
use crate::spec::ToolSpec;
use crate::timeline::{CallEvents, Timeline, TimelineEvent};
use crate::tools;

/// The largest input, as JSON text.
const MAXIMUM_INPUT: usize = 16 * 1024 * 1024;
/// How many calls of a batch run at once.
const TOGETHER: usize = 16;

/// A call as a model makes it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The id that the model gave it.
    #[serde(alias = "id")]
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The input.
    #[serde(default)]
    pub args: Value,
    /// The input as the text that the model wrote, in place of `args`.
    #[serde(default)]
    pub raw_arguments: Option<String>,
}

impl ToolCall {
    /// A call.
    pub fn new(call_id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        ToolCall { call_id: call_id.into(), name: name.into(), args, raw_arguments: None }
    }

    /// The input, or what is wrong with the text.
    fn input(&self) -> Result<Value, ToolError> {
        let Some(raw) = &self.raw_arguments else {
            return Ok(if self.args.is_null() { json!({}) } else { self.args.clone() });
        };
        let data = || json!({"raw_arguments_len": raw.len(), "raw_arguments_sha256": sha256(raw)});
        let wrong = |why: String| ToolError::validation(format!("the arguments are not valid: {why}")).data(data());
        if raw.len() > MAXIMUM_INPUT {
            return Err(wrong(format!("they are longer than {MAXIMUM_INPUT} bytes")));
        }
        let value = callgate::json::read(raw.as_bytes()).map_err(|error| wrong(error.to_string()))?;
        if value.is_object() { Ok(value) } else { Err(wrong("they must be a JSON object".to_owned())) }
    }
}

fn sha256(text: &str) -> String {
    callgate_model::digest::sha256_hex(text.as_bytes())
}

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// There is one of that name.
    #[error("tool `{0}` is already registered; use `replace` to override it")]
    Exists(String),
    /// Its schema cannot be checked.
    #[error("tool `{0}`: {1}")]
    Schema(String, SchemaError),
    /// Its name cannot be used.
    #[error("`{0}` is not a tool name: use letters, digits, `_`, `-` and `.`, at most 64 of them")]
    Name(String),
}

/// Configures a [`Toolbox`].
#[must_use]
pub struct ToolboxBuilder {
    gate: GateBuilder,
    registry: Registry,
    tools: HashMap<String, Registered>,
    order: Vec<String>,
    settings: Settings,
    run: String,
}

impl ToolboxBuilder {
    /// Sets who makes the calls: agent, session, scope.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.settings.origin = origin;
        self
    }

    /// Sets variables that programs get beside those of this process.
    pub fn environment<K: Into<String>, V: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.settings.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Sets how long a program may run if the call does not say. Default: one minute.
    pub fn default_timeout(mut self, timeout: Duration) -> Self {
        self.settings.default_timeout = timeout;
        self
    }

    /// Sets how much of a file is read if the call does not say. Default: 256 KiB.
    pub fn maximum_file(mut self, bytes: u64) -> Self {
        self.settings.maximum_file = bytes;
        self
    }

    /// Sets who answers questions of the tools `ask_human` and `request_user_input`, and how long they may take.
    pub fn human(mut self, human: impl Human + 'static, timeout: Option<Duration>) -> Self {
        self.settings.human = Some(Arc::new(human));
        self.settings.human_timeout = timeout;
        self
    }

    /// Sets the `callgate` program that starts other programs. Default: this program, which then has to call
    /// [`helper::enter`](crate::helper::enter) first of all.
    pub fn helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.settings.helper = Some(program.into());
        self
    }

    /// Sets the id of the agent's run, for the timeline.
    pub fn run_id(mut self, run: impl Into<String>) -> Self {
        self.run = run.into();
        self
    }

    /// Adds descriptors and claims of tools to those that the gate knows.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Adds a tool with the descriptor by which the gate understands its calls. With [`UnknownTool`](callgate::describe::UnknownTool) each of them is asked about. Fails if there is a
    /// tool of that name, or if its schema cannot be checked.
    pub fn register(
        self,
        spec: ToolSpec,
        handler: impl Handler + 'static,
        descriptor: impl Descriptor + 'static,
    ) -> Result<Self, RegisterError> {
        if self.tools.contains_key(&spec.name) {
            return Err(RegisterError::Exists(spec.name));
        }
        self.replace(spec, handler, descriptor)
    }

    /// Adds a tool, in place of one of the same name.
    pub fn replace(
        mut self,
        spec: ToolSpec,
        handler: impl Handler + 'static,
        descriptor: impl Descriptor + 'static,
    ) -> Result<Self, RegisterError> {
        let letters = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if spec.name.is_empty() || spec.name.len() > 64 || !spec.name.chars().all(letters) {
            return Err(RegisterError::Name(spec.name));
        }
        schema::check(&spec.parameters).map_err(|error| RegisterError::Schema(spec.name.clone(), error))?;
        self.registry.replace(Tool::own(&spec.name), descriptor);
        if !self.tools.contains_key(&spec.name) {
            self.order.push(spec.name.clone());
        }
        self.tools.insert(spec.name.clone(), Registered { spec, handler: Arc::new(handler), check: None });
        Ok(self)
    }

    /// Builds the toolbox.
    pub fn build(self) -> Toolbox {
        let shared = Shared {
            gate: self.gate.registry(self.registry).build(),
            timeline: Arc::new(Timeline::new(self.run)),
            settings: self.settings,
            sessions: Sessions::default(),
        };
        Toolbox { shared, tools: self.tools, order: self.order }
    }
}

struct Registered {
    spec: ToolSpec,
    handler: Arc<dyn Handler>,
    check: Option<Check>,
}

/// Tools behind a gate.
///
/// ```
/// use callgate::{Gate, Policy};
/// use callgate_tools::{ToolCall, Toolbox};
/// use serde_json::json;
///
/// let workspace = std::env::current_dir()?.canonicalize()?;
/// let gate = Gate::builder().policy(Policy::bundled("standard")?);
/// let toolbox = Toolbox::builder(gate, &workspace).build();
/// let result = toolbox.dispatch(ToolCall::new("1", "list_dir", json!({"dir_path": ".", "depth": 1})));
/// assert!(result.ok, "{}", result.stderr);
/// let refused = toolbox.dispatch(ToolCall::new("2", "file_read", json!({"path": "/etc/shadow"})));
/// assert_eq!(refused.error_kind.map(|kind| kind.as_str()), Some("permission"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Toolbox {
    shared: Shared,
    tools: HashMap<String, Registered>,
    order: Vec<String>,
}

/// A call that may run.
struct Admitted<'a> {
    call: String,
    tool: String,
    permit: Permit,
    handler: &'a dyn Handler,
}

impl Toolbox {
    /// Configures a toolbox with the built-in tools for a workspace. The gate's registry is that of the toolbox.
    pub fn builder(gate: GateBuilder, workspace: impl Into<PathBuf>) -> ToolboxBuilder {
        let mut builder = Toolbox::empty(gate, workspace);
        for (spec, handler, check) in tools::built_in() {
            builder.order.push(spec.name.clone());
            builder.tools.insert(spec.name.clone(), Registered { spec, handler, check });
        }
        builder
    }

    /// Configures a toolbox without tools.
    pub fn empty(gate: GateBuilder, workspace: impl Into<PathBuf>) -> ToolboxBuilder {
        ToolboxBuilder {
            registry: Registry::default(),
            tools: HashMap::new(),
            order: Vec::new(),
            gate: gate.git_hardening(callgate::git::GitHardening::WhenNeeded),
            settings: Settings {
                workspace: workspace.into(),
                origin: Origin::default(),
                session: callgate::approvals::ApprovalId::random().map(|id| format!("tools-{id}")),
                environment: Vec::new(),
                default_timeout: Duration::from_secs(60),
                maximum_file: 256 * 1024,
                human: None,
                human_timeout: None,
                helper: None,
            },
            run: "run".to_owned(),
        }
    }

    /// The tools, in the order in which they were registered.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.order.iter().filter_map(|name| self.tools.get(name)).map(|tool| &tool.spec)
    }

    /// One tool.
    pub fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.get(name).map(|tool| &tool.spec)
    }

    /// The events of all calls from now on.
    pub fn events(&self) -> Receiver<TimelineEvent> {
        self.shared.timeline.subscribe()
    }

    /// Calls a function with every event from now on, in their order and before the call goes on, until it returns `false`.
    pub fn on_event(&self, listener: impl FnMut(&TimelineEvent) -> bool + Send + 'static) {
        self.shared.timeline.listen(Box::new(listener));
    }

    /// The gate in front of the tools.
    pub fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// Judges a call and runs it if it may. Blocks while somebody is asked and while it runs.
    pub fn dispatch(&self, call: ToolCall) -> ToolResult {
        match self.admit(call) {
            Ok(admitted) => self.execute(admitted),
            Err(refused) => *refused,
        }
    }

    /// Judges calls one after the other, and runs those that may run together. The results are in the order of the calls.
    pub fn dispatch_all(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let mut results: Vec<Option<ToolResult>> = Vec::new();
        let mut waiting = Vec::new();
        for (number, call) in calls.into_iter().enumerate() {
            match self.admit(call) {
                Ok(admitted) => {
                    results.push(None);
                    waiting.push((number, admitted));
                }
                Err(refused) => results.push(Some(*refused)),
            }
        }
        while !waiting.is_empty() {
            let next: Vec<_> = waiting.drain(..waiting.len().min(TOGETHER)).collect();
            let ended: Vec<(usize, ToolResult)> = std::thread::scope(|scope| {
                let running: Vec<_> = next
                    .into_iter()
                    .map(|(number, admitted)| (number, scope.spawn(|| self.execute(admitted))))
                    .collect();
                let unknown = || ToolError::new(ErrorKind::Unknown, "the tool failed").into();
                running.into_iter().map(|(number, run)| (number, run.join().unwrap_or_else(|_| unknown()))).collect()
            });
            for (number, result) in ended {
                if let Some(place) = results.get_mut(number) {
                    *place = Some(result);
                }
            }
        }
        results.into_iter().flatten().collect()
    }

    /// From the call to a permit, or to the result of a call that does not run.
    fn admit(&self, call: ToolCall) -> Result<Admitted<'_>, Box<ToolResult>> {
        let ToolCall { call_id, name, .. } = &call;
        let events = Arc::new(CallEvents::new(Arc::clone(&self.shared.timeline), call_id.clone()));
        let options = CheckOptions::default().events(events);
        let input = call.input();
        let judged = self.judged(name, input.as_ref().cloned().unwrap_or_else(|_| json!({})));
        let refused = |error: ToolError| {
            // the log has it as well
            let kind = match error.kind {
                ErrorKind::NotFound => RefusalKind::NotFound,
                _ => RefusalKind::Validation,
            };
            let refusal = Refusal::new(kind, self.shared.gate.redactor().text(&error.message));
            let _ = self.shared.gate.refuse_with(&judged, refusal, &options);
            Box::new(self.finished(call_id, name, error.into()))
        };
        let input = input.map_err(refused)?;
        let Some(tool) = self.tools.get(name) else {
            let known: Vec<&str> = self.order.iter().map(String::as_str).collect();
            let message = format!("there is no tool `{name}`; there are {}", known.join(", "));
            return Err(refused(ToolError::new(ErrorKind::NotFound, message).data(json!({"tool": name}))));
        };
        if let Err(why) = schema::validate(&tool.spec.parameters, &input) {
            return Err(refused(ToolError::validation(why)));
        }
        if let Some(check) = tool.check {
            check(&input, &self.shared).map_err(refused)?;
        }
        match self.shared.gate.check_with(judged.clone(), options.clone()).verdict {
            Ok(permit) => Ok(Admitted { call: call.call_id, tool: call.name, permit, handler: tool.handler.as_ref() }),
            Err(refusal) => {
                let data = json!({"tool": name, "reason": refusal.reason, "rule": refusal.rule});
                Err(Box::new(self.finished(call_id, name, ToolError::from(refusal).data(data).into())))
            }
        }
    }

    /// The call as the gate sees it.
    fn judged(&self, name: &str, input: Value) -> Call {
        let settings = &self.shared.settings;
        let mut origin = settings.origin.clone();
        origin.directory.get_or_insert_with(|| settings.workspace.clone());
        origin.workspace.get_or_insert_with(|| settings.workspace.clone());
        origin.shell.get_or_insert_with(|| "sh".to_owned());
        if origin.session.is_none() {
            origin.session.clone_from(&settings.session);
        }
        Call { tool: Tool::own(name), input, origin }
    }

    /// Runs a call that may run.
    fn execute(&self, admitted: Admitted<'_>) -> ToolResult {
        let Admitted { call, tool, permit, handler } = admitted;
        let started = Instant::now();
        let choice = if handler.starts_programs() { Choice::of(permit.plan()) } else { Choice::default() };
        let result = permit.run_with(choice.sandbox(), |plan, report| {
            let run = Run { plan, toolbox: &self.shared, call: &call, choice: &choice };
            let ended = catch_unwind(AssertUnwindSafe(|| handler.run(&run)));
            let unknown = || Err(ToolError::new(ErrorKind::Unknown, "the tool failed unexpectedly"));
            let mut result = ended.unwrap_or_else(|_| unknown()).unwrap_or_else(ToolResult::from);
            result.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            report.exit = result.exit_code.map(i64::from);
            report.error = result.error_kind.map(|kind| kind.as_str().to_owned());
            report.held_back = std::mem::take(&mut result.held_back);
            report.result(result.stdout.as_bytes());
            if result.ok { Ok(result) } else { Err(Box::new(result)) }
        });
        let result = match result {
            Ok(result) => result,
            Err(RunError::Failed(result)) => *result,
            Err(RunError::Refused(refusal)) => ToolError::from(refusal).into(),
            Err(_) => ToolError::new(ErrorKind::Unknown, "the tool could not be started").into(),
        };
        self.finished(&call, &tool, result)
    }

    /// Redacts a result and tells those who follow.
    fn finished(&self, call: &str, tool: &str, mut result: ToolResult) -> ToolResult {
        let redactor = self.shared.gate.redactor();
        for text in [&mut result.stdout, &mut result.stderr] {
            if let std::borrow::Cow::Owned(shown) = redactor.known_values(text) {
                *text = shown;
            }
        }
        if let Some(data) = &mut result.data {
            known_values(data, redactor);
        }
        self.shared.timeline.emit("tool_call_finished", json!({"call_id": call, "tool": tool, "result": result}));
        result
    }
}

/// Replaces known secrets in all texts of a value.
fn known_values(value: &mut Value, redactor: &callgate::redact::Redactor) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(shown) = redactor.known_values(text) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| known_values(item, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|field| known_values(field, redactor)),
        _ => {}
    }
}
