//! Sends the events of one call to the sinks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use callgate_model::call::{Origin, Tool};
use callgate_model::clock::Timestamp;

use super::{Event, EventError, EventKind, EventSink, new_call_id};

/// Emits the events of one call under one id.
pub(crate) struct Recorder {
    id: String,
    tool: Tool,
    origin: Origin,
    sinks: Arc<[Arc<dyn EventSink>]>,
}

impl Recorder {
    pub(crate) fn new(tool: &Tool, origin: &Origin, sinks: &Arc<[Arc<dyn EventSink>]>) -> Self {
        Recorder { id: new_call_id(), tool: tool.clone(), origin: origin.clone(), sinks: Arc::clone(sinks) }
    }

    /// The same call in another process: its events go on under the id that they had.
    pub(crate) fn continuing(id: String, tool: &Tool, origin: &Origin, sinks: &Arc<[Arc<dyn EventSink>]>) -> Self {
        Recorder { id, ..Recorder::new(tool, origin, sinks) }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether there are sinks. Without any, redacted views need not be built.
    pub(crate) fn is_heard(&self) -> bool {
        !self.sinks.is_empty()
    }

    /// Emits an event. Every sink must record it.
    pub(crate) fn emit(&self, kind: EventKind) -> Result<(), EventError> {
        if !self.is_heard() {
            return Ok(());
        }
        let (tool, origin) = (self.tool.clone(), self.origin.clone());
        let event = Event { call: self.id.clone(), time: Timestamp::now(), tool, origin, kind };
        // all sinks receive it, even if one fails
        let mut result = Ok(());
        for sink in self.sinks.iter() {
            let taken = catch_unwind(AssertUnwindSafe(|| sink.emit(&event)))
                .unwrap_or_else(|_| Err(EventError("the event sink panicked".to_owned())));
            result = result.and(taken);
        }
        result
    }

    /// Emits an event after the call was refused or has finished. Errors are ignored, because there is nothing left to stop.
    pub(crate) fn emit_late(&self, kind: EventKind) {
        let _ = self.emit(kind);
    }
}
