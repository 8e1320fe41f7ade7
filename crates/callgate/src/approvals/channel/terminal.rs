//! Asks the person at the terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize};

use super::prompt::{Look, countdown, prompt};
use super::{Approver, AskError, time_left};
use crate::approvals::{Answer, ApprovalDecision, Proposal, Question};
use callgate_model::show::visible;

/// How often it is looked whether the question is settled elsewhere.
const LOOK: Duration = Duration::from_millis(200);
/// How often an answer that is none is asked for again.
const ATTEMPTS: usize = 5;
/// The longest line that is taken for an answer.
const LONGEST_LINE: usize = 4096;

/// Where the person sits.
pub trait Terminal {
    /// Shows a text.
    fn show(&mut self, text: &str) -> Result<(), AskError>;
    /// A line that was typed; `None` if there was none in that time.
    fn line(&mut self, at_most: Duration) -> Result<Option<String>, AskError>;
    /// How it shows text.
    fn look(&self) -> Look {
        Look::default()
    }
}

type LocateRule = dyn Fn(&Proposal) -> Result<String, String> + Send + Sync;

/// Asks on the controlling terminal, not on standard input, which belongs to the agent.
#[derive(Clone, Default)]
pub struct TerminalApprover {
    always: Option<Arc<LocateRule>>,
}

callgate_model::debug_fields!(TerminalApprover);

impl TerminalApprover {
    /// Offers once, session and no.
    pub fn new() -> Self {
        TerminalApprover::default()
    }

    /// Offers "always" too. The function says where the rule would be written, or why no rule can help. Here nothing is written: that is
    /// for whoever asked, once the yes is recorded ([`Approvals::always`](crate::approvals::Approvals::always)).
    #[must_use]
    pub fn always(mut self, place: impl Fn(&Proposal) -> Result<String, String> + Send + Sync + 'static) -> Self {
        self.always = Some(Arc::new(place));
        self
    }

    /// Asks on some terminal.
    pub fn ask_on(
        &self,
        terminal: &mut dyn Terminal,
        question: &Question,
        open: &dyn Fn() -> bool,
    ) -> Result<Answer, AskError> {
        let look = terminal.look();
        terminal.show(&prompt(question, self.always.is_some(), look))?;
        for _ in 0..ATTEMPTS {
            let mut left = countdown(time_left(question), look);
            terminal.show(&format!("{left}\n> "))?;
            let line = loop {
                if let Some(line) = terminal.line(LOOK.min(time_left(question)))? {
                    break line;
                }
                if !open() {
                    terminal.show("\n(answered elsewhere)\n")?;
                    return Err(AskError::Closed);
                }
                if time_left(question).is_zero() {
                    terminal.show("\n(too late: refused)\n")?;
                    return Err(AskError::TimedOut);
                }
                let now = countdown(time_left(question), look);
                if look.moves && now != left {
                    // The line above, and back to what is being typed.
                    terminal.show(&format!("\u{1b}7\u{1b}[1A\r{now}\u{1b}[K\u{1b}8"))?;
                    left = now;
                }
            };
            match self.understand(&line, question) {
                Ok(answer) => return Ok(answer),
                Err(why) => terminal.show(&format!("{why}\n"))?,
            }
        }
        Err(AskError::Unusable("no valid answer was typed".into()))
    }

    /// Parses a typed line, or says why it is not an answer.
    fn understand(&self, line: &str, question: &Question) -> Result<Answer, String> {
        let line = line.trim();
        let (choice, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let choice = choice.to_ascii_lowercase();
        let reason = Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty());
        let answer = |decision| Answer { reason: reason.clone(), by: Some("terminal".into()), ..Answer::new(decision) };
        let proposal = |number: &str| {
            let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            index.and_then(|index| question.proposals.get(index).map(|proposal| (index, proposal)))
        };
        match choice.as_str() {
            "y" | "yes" => Ok(answer(ApprovalDecision::Approved)),
            "s" | "session" if question.can_be_remembered() => Ok(answer(ApprovalDecision::ApprovedForSession)),
            "n" | "no" => Ok(answer(ApprovalDecision::Denied)),
            "q" | "quit" => Ok(answer(ApprovalDecision::Abort)),
            other => {
                let unclear = match (&question.no_proposal, other.starts_with(['a', 's'])) {
                    (Some(why), true) => format!("no rule can allow this call: {}", visible(why)),
                    _ => "type one of the letters above".to_owned(),
                };
                if let Some((index, _)) = other.strip_prefix('s').and_then(proposal)
                    && question.session.is_some()
                {
                    let decision = ApprovalDecision::ApprovedForSession;
                    return Ok(Answer { proposal: Some(index), ..answer(decision) });
                }
                let (Some(always), Some((index, proposal))) =
                    (&self.always, other.strip_prefix('a').and_then(proposal))
                else {
                    return Err(unclear);
                };
                let place = always(proposal).map_err(|why| format!("no rule was written: {}", visible(&why)))?;
                let mut answer = Answer { always: Some(index), ..answer(ApprovalDecision::Approved) };
                answer.reason.get_or_insert(format!("always, by a rule in {place}"));
                Ok(answer)
            }
        }
    }
}

impl Approver for TerminalApprover {
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        self.ask_on(&mut ControllingTerminal::open()?, question, open)
    }
}

/// `/dev/tty`, read without waiting for ever.
struct ControllingTerminal {
    file: File,
    typed: Vec<u8>,
}

/// The terminal of the person who runs this process. What was typed there before is discarded.
pub fn controlling_terminal() -> Result<impl Terminal, AskError> {
    ControllingTerminal::open()
}

impl ControllingTerminal {
    fn open() -> Result<Self, AskError> {
        let unavailable = |why: String| AskError::Unavailable(why);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .map_err(|error| unavailable(format!("no terminal: {error}")))?;
        let foreground = tcgetpgrp(&file).map_err(|error| unavailable(format!("cannot use the terminal: {error}")))?;
        if foreground != rustix::process::getpgrp() {
            return Err(unavailable("this process is not in the foreground of its terminal".into()));
        }
        // Discard what was typed before the question appeared.
        tcflush(&file, QueueSelector::IFlush).map_err(|error| unavailable(error.to_string()))?;
        Ok(ControllingTerminal { file, typed: Vec::new() })
    }
}

impl Terminal for ControllingTerminal {
    fn look(&self) -> Look {
        let set = |name: &str| std::env::var(name).unwrap_or_default();
        let moves = !matches!(set("TERM").as_str(), "" | "dumb");
        let columns = tcgetwinsize(&self.file).ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Look { columns, colours: moves && set("NO_COLOR").is_empty(), moves }
    }

    fn show(&mut self, text: &str) -> Result<(), AskError> {
        let shown = self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush());
        shown.map_err(|error| AskError::Unavailable(format!("the terminal is gone: {error}")))
    }

    fn line(&mut self, at_most: Duration) -> Result<Option<String>, AskError> {
        let gone = |error: std::io::Error| AskError::Unavailable(format!("the terminal is gone: {error}"));
        let wait = Timespec::try_from(at_most).map_err(|error| AskError::Unusable(error.to_string()))?;
        let mut ready = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut ready, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(gone(error.into())),
        }
        let mut buffer = [0_u8; 1024];
        let count = self.file.read(&mut buffer).map_err(gone)?;
        if count == 0 {
            return Err(AskError::Unavailable("the terminal was closed".into()));
        }
        self.typed.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if self.typed.len() > LONGEST_LINE {
            return Err(AskError::Unusable("the line is too long".into()));
        }
        let Some(end) = self.typed.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.typed.drain(..=end).collect();
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}
