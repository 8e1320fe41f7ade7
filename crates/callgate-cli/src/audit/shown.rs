//! How entries are shown to people: a table whose cells cannot hide or mislead.

use std::io::{self, IsTerminal, Write};

use callgate::show::visible;
use callgate_audit::entry::{EntryBody, LogEntry};
use callgate_audit::export::summary;

/// Writes a line; `false` if nobody reads any more.
pub fn line(text: &str) -> Result<bool, String> {
    match writeln!(io::stdout().lock(), "{text}") {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("cannot print: {error}")),
    }
}

/// Prints a value as JSON; the exit code is 0.
pub fn json(value: &impl serde::Serialize) -> Result<u8, String> {
    line(&serde_json::to_string_pretty(value).map_err(super::text)?)?;
    Ok(0)
}

/// The heading of the table.
pub const HEADING: &str = "    entry  time (UTC)           kind                 tool             what";

/// One row of it.
pub fn row(entry: &LogEntry) -> String {
    let time = entry.time.to_string();
    let time = time.get(..19).unwrap_or_default().replace('T', " ");
    let record = &entry.record;
    let kind = match &record.body {
        EntryBody::ToolAttempt(attempt) => {
            let rule = attempt.rule.as_deref().unwrap_or("default");
            return format!(
                "{:>9}  {time}  {:<20} {:<16} {}  ({})",
                entry.seq,
                format!("attempt, {}", attempt.decision.as_str()),
                cut(record.body.tool().unwrap_or_default(), 16),
                cut(&summary(entry), 100),
                visible(rule)
            );
        }
        body => body.kind().replace('_', " "),
    };
    let tool = cut(record.body.tool().unwrap_or_default(), 16);
    format!("{:>9}  {time}  {kind:<20} {tool:<16} {}", entry.seq, cut(&summary(entry), 100))
}

/// A text on one line, hidden characters made visible, and cut with a mark where it is too long.
pub fn cut(text: &str, longest: usize) -> String {
    let text = visible(text);
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A progress bar on standard error, if that is a terminal.
pub struct Progress {
    what: &'static str,
    total: u64,
    shown: bool,
}

impl Progress {
    pub fn new(what: &'static str, total: u64) -> Self {
        Progress { what, total: total.max(1), shown: io::stderr().is_terminal() }
    }

    pub fn at(&self, done: u64) {
        if self.shown {
            let share = (u128::from(done.min(self.total)) * 30 / u128::from(self.total)) as usize;
            let bar: String = (0..30).map(|place| if place < share { '█' } else { '░' }).collect();
            let _ = write!(io::stderr(), "\r{} {bar} {done} of {} ", self.what, self.total);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            // the line is wiped: what counts is printed after it
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
