//! Programs: started by the [helper](crate::helper), free or contained as the permit says.

mod child;
mod sessions;
mod tail;

use callgate::Plan;
use callgate::fence::Fence;
use callgate::permit::Sandbox;
use callgate_sandbox::{Backend, Denied, Enforced, choose};
use serde_json::{Value, json};

pub(crate) use child::{Program, run_to_end};
pub(crate) use sessions::{SessionOutput, Sessions};

use crate::result::{ErrorKind, ToolError};

/// How a permitted program runs.
#[derive(Default)]
pub(crate) struct Choice {
    contained: Option<(Result<Backend, Denied>, Enforced)>,
}

impl Choice {
    /// Chooses the way to contain it, before the start is logged. The choice is final.
    pub fn of(plan: &Plan) -> Self {
        let contained = plan.fence().map(|fence| {
            let chosen = choose(&fence.required, None);
            let enforced = Enforced(chosen.as_ref().ok().copied());
            (chosen, enforced)
        });
        Choice { contained }
    }

    /// What holds it, for the log.
    pub fn sandbox(&self) -> Option<&dyn Sandbox> {
        self.contained.as_ref().map(|(_, enforced)| enforced as &dyn Sandbox)
    }

    /// The backend; `None` if it runs free.
    pub fn backend(&self) -> Result<Option<Backend>, ToolError> {
        match &self.contained {
            None => Ok(None),
            Some((Ok(backend), _)) => Ok(Some(*backend)),
            Some((Err(denied), _)) => Err(ToolError::new(ErrorKind::SandboxDenied, denied.to_string())),
        }
    }
}

/// What a result says about the sandbox.
pub(crate) fn sandbox_data(requested: Option<&str>, fence: Option<&Fence>, backend: Option<Backend>) -> Value {
    json!({
        "requested": requested.unwrap_or("inherit"),
        "effective": if fence.is_some() { "restricted" } else { "none" },
        "adapter": backend,
        "active": backend.is_some(),
    })
}

/// `max_output_tokens` in bytes.
pub(crate) fn output_bytes(tokens: Option<u64>) -> usize {
    let bytes = tokens.map_or(65_536, |tokens| tokens.saturating_mul(4).clamp(1_024, 262_144));
    usize::try_from(bytes).unwrap_or(65_536)
}
