//! The shells that an agent keeps from call to call, as far as a session remembers their states.
//!
//! What is believed of a shell must be certain: where anything is missing, damaged or out of order, the shell is one in which
//! anything may have changed.

use callgate::call::Call;
use callgate::redact::Redactor;
use callgate_agents::{Event, Incoming};
use callgate_shell::ShellState;

use super::session::{Line, Session, ShellLine, identity};

/// A shell in which a call would run.
pub struct KeptShell {
    id: String,
    call: String,
    permission: bool,
    known: usize,
    /// Its state before the call.
    pub state: ShellState,
    /// This very call was judged before, and what it leaves is remembered.
    judged_before: bool,
    directory: Option<String>,
}

/// What the lines of a session say of one shell.
#[derive(Default)]
struct View<'a> {
    state: ShellState,
    known: usize,
    last: Option<&'a ShellLine>,
    before_last: ShellState,
}

impl<'a> View<'a> {
    fn of(shell: &str, lines: &'a [Line]) -> Self {
        let mut view = View::default();
        for line in lines {
            match line {
                Line::Shell(line) if line.shell == shell => {
                    view.before_last = view.state.clone();
                    view.state = if line.known == view.known || line.state == view.state {
                        line.state.clone()
                    } else {
                        ShellState::lost("calls ran in it side by side")
                    };
                    view.known = view.known.saturating_add(1);
                    view.last = Some(line);
                }
                Line::Ran(call) if view.last.is_some_and(|line| line.call == *call) => {
                    view.state = view.state.after_running();
                }
                Line::Torn => view.state = ShellState::lost("what was remembered of it is damaged"),
                _ => {}
            }
        }
        view
    }
}

impl KeptShell {
    /// The shell in which a call would run, if it is one that lives on.
    pub fn of(incoming: &Incoming, session: &Session, call: &Call) -> Option<Self> {
        let id = incoming.shell.clone()?;
        let mut view = View::of(&id, &session.lines);
        if view.known == 0 && !id.is_empty() {
            // an agent may have given an id to a shell that was asked for without one
            view = View { known: 0, last: None, ..View::of("", &session.lines) };
        }
        let (call_identity, permission) = (identity(incoming, call), matches!(incoming.event, Event::Permission(_)));
        // some agents tell of a call twice: when it is about to run, and when they would ask
        let judged_before = permission && view.last.is_some_and(|line| line.call == call_identity && !line.permission);
        let state = match judged_before {
            _ if !session.is_complete => ShellState::lost("more happened in this session than is remembered"),
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

    /// What is to be remembered of the shell after a call that was let pass.
    pub fn after(self, state: Option<&ShellState>, redactor: &Redactor) -> Option<ShellLine> {
        let state = self.left_in(state).after_running();
        self.line(state, redactor)
    }

    /// The same after a call that the agent's user may still refuse.
    pub fn perhaps_after(self, state: Option<&ShellState>, redactor: &Redactor) -> Option<ShellLine> {
        let state = self.state.clone().possibly(self.left_in(state), self.directory.as_deref());
        self.line(state, redactor)
    }

    fn left_in(&self, state: Option<&ShellState>) -> ShellState {
        state.cloned().unwrap_or_else(|| ShellState::lost("what was typed into it is not followed"))
    }

    fn line(self, mut state: ShellState, redactor: &Redactor) -> Option<ShellLine> {
        state.forget_values(|text| redactor.text(text) != text);
        let nothing_new = self.known == 0 && state.is_fresh(self.directory.as_deref()) || state == self.state;
        if self.judged_before || nothing_new {
            return None;
        }
        Some(ShellLine { shell: self.id, call: self.call, permission: self.permission, known: self.known, state })
    }
}

/// Notes that a call did run, if that changes what is believed of its shell.
pub fn ran(incoming: &Incoming, session: &Session, call: &Call) -> std::io::Result<()> {
    let Some(shell) = &incoming.shell else { return Ok(()) };
    let view = View::of(shell, &session.lines);
    let identity = identity(incoming, call);
    let waits = view.last.is_some_and(|line| line.call == identity) && view.state.clone().after_running() != view.state;
    if waits { session.note_ran(identity) } else { Ok(()) }
}
