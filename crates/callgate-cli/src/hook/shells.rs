//! The states of shells that an agent keeps from call to call.
//!
//! A remembered state must be certain. If anything is missing, damaged or out of order, the shell is one in which anything may have
//! changed.

use callgate::call::Call;
use callgate::redact::Redactor;
use callgate_hooks::{HookDetails, HookRequest};
use callgate_shell::ShellState;
use serde::{Deserialize, Serialize};

use super::session::{SHELLS, Session, identity};

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A permitted call, or one left to the agent's user, leaves a shell in this state.
    Left(Box<Left>),
    /// The call with this identity ran.
    Ran(String),
    /// A line that cannot be read.
    #[serde(skip)]
    Torn,
}

/// The state in which a call leaves a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    shell: String,
    /// The identity of the call.
    call: String,
    /// Whether the event was a permission request rather than the start of a call.
    permission: bool,
    /// How many lines of this shell existed when the call was judged. Calls judged at the same time do not see each other.
    known: usize,
    state: ShellState,
}

/// The lines of a session; `None` if some may be missing.
fn lines(session: &Session) -> Option<Vec<Line>> {
    let text = session.whole(SHELLS)?;
    // a line may have been cut off by a kill
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap_or(Line::Torn)).collect())
}

fn note(session: &Session, line: &Line) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    session.note(SHELLS, &text)
}

/// A shell in which a call would run.
pub struct KeptShell {
    id: String,
    call: String,
    permission: bool,
    known: usize,
    /// Its state before the call.
    pub state: ShellState,
    /// Whether this call was judged before and its state recorded.
    judged_before: bool,
    directory: Option<String>,
}

/// One shell according to the lines of a session.
#[derive(Default)]
struct View<'a> {
    state: ShellState,
    known: usize,
    last: Option<&'a Left>,
    before_last: ShellState,
}

impl<'a> View<'a> {
    fn of(shell: &str, lines: &'a [Line]) -> Self {
        let mut view = View::default();
        for line in lines {
            match line {
                Line::Left(line) if line.shell == shell => {
                    view.before_last = view.state.clone();
                    view.state = if line.known == view.known || line.state == view.state {
                        line.state.clone()
                    } else {
                        ShellState::lost("calls ran in it at the same time")
                    };
                    view.known = view.known.saturating_add(1);
                    view.last = Some(line);
                }
                Line::Ran(call) if view.last.is_some_and(|line| line.call == *call) => {
                    view.state = view.state.after_running();
                }
                Line::Torn => view.state = ShellState::lost("its recorded state is damaged"),
                _ => {}
            }
        }
        view
    }
}

impl KeptShell {
    /// The shell that a call runs in, if the agent keeps it.
    pub fn of(incoming: &HookRequest, session: &Session, call: &Call) -> Option<Self> {
        let id = incoming.shell.clone()?;
        let lines = lines(session);
        let known = lines.as_deref().unwrap_or_default();
        let mut view = View::of(&id, known);
        if view.known == 0 && !id.is_empty() {
            // an agent may have given an id to a shell that was asked for without one
            view = View { known: 0, last: None, ..View::of("", known) };
        }
        let (call_identity, permission) =
            (identity(incoming, call), matches!(incoming.details, HookDetails::Permission(_)));
        // some agents tell of a call twice: when it is about to run, and when they would ask
        let judged_before = permission && view.last.is_some_and(|line| line.call == call_identity && !line.permission);
        let state = match judged_before {
            _ if lines.is_none() => ShellState::lost("this session has more calls than were recorded"),
            true => view.before_last,
            false => view.state,
        };
        let directory = call.origin.directory.as_ref().or(session.workspace.as_ref());
        Some(KeptShell {
            id,
            call: call_identity,
            permission,
            known: view.known,
            // an agent that says where its shell is knows best
            state: if incoming.directory_moves { state.anywhere() } else { state },
            judged_before,
            directory: directory.and_then(|directory| directory.to_str()).map(str::to_owned),
        })
    }

    /// Records the shell after a permitted call.
    pub fn after(self, session: &Session, state: Option<&ShellState>, redactor: &Redactor) -> std::io::Result<()> {
        let state = left_in(state).after_running();
        self.remember(session, state, redactor)
    }

    /// Records the shell after a call that the agent's user may still refuse.
    pub fn perhaps_after(
        self,
        session: &Session,
        state: Option<&ShellState>,
        redactor: &Redactor,
    ) -> std::io::Result<()> {
        let state = self.state.clone().possibly(left_in(state), self.directory.as_deref());
        self.remember(session, state, redactor)
    }

    fn remember(self, session: &Session, mut state: ShellState, redactor: &Redactor) -> std::io::Result<()> {
        state.forget_values(|text| redactor.text(text) != text);
        let nothing_new = self.known == 0 && state.is_fresh(self.directory.as_deref()) || state == self.state;
        if self.judged_before || nothing_new {
            return Ok(());
        }
        let KeptShell { id, call, permission, known, .. } = self;
        note(session, &Line::Left(Box::new(Left { shell: id, call, permission, known, state })))
    }
}

/// The state after the call. A call that callgate does not follow, such as typing into the shell, may leave any state.
fn left_in(state: Option<&ShellState>) -> ShellState {
    state.cloned().unwrap_or_else(|| ShellState::lost("callgate does not follow what was typed into it"))
}

/// Records that a call ran, if that changes the known state of its shell.
pub fn ran(incoming: &HookRequest, session: &Session, call: &Call) -> std::io::Result<()> {
    let Some(shell) = &incoming.shell else { return Ok(()) };
    let lines = lines(session).unwrap_or_default();
    let view = View::of(shell, &lines);
    let identity = identity(incoming, call);
    let waits = view.last.is_some_and(|line| line.call == identity) && view.state.clone().after_running() != view.state;
    if waits { note(session, &Line::Ran(identity)) } else { Ok(()) }
}
