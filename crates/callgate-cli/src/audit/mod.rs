//! `callgate audit`: reading the log, checking it, and learning from it.

mod entries;
mod learn;
mod log;
mod shown;

use std::path::PathBuf;

use callgate_audit::LogSettings;
use clap::{Args, Subcommand};

pub use learn::{DiffArguments, SuggestArguments, asked, becomes_possible, diff, suggest};
pub use shown::cut;

/// Exit code of `verify` for a log that a crash left traces in.
pub const CRASH_TRACES: u8 = 20;
/// Exit code of `verify` for a log that was tampered with.
pub const TAMPERED: u8 = 21;
/// Exit code of `replay` and `policy diff` if something would change.
pub const CHANGES: u8 = 22;

/// The tasks of `callgate audit`.
#[derive(Debug, Subcommand)]
pub enum AuditTask {
    /// Show the last entries
    Tail(entries::TailArguments),
    /// Find entries by time, session, tool, effect, decision, rule, path or host
    Query(entries::QueryArguments),
    /// Show everything about one call, in order
    Show(entries::ShowArguments),
    /// Prompts per day, approval rate, time to answer, rules that never fired, what is asked most
    Stats(entries::StatsArguments),
    /// Export entries as JSON, CSV, OCSF or OpenTelemetry logs
    Export(entries::ExportArguments),
    /// Check that no entry was changed, removed, inserted, reordered or truncated
    #[command(
        after_help = "Exit codes: 0 intact · 20 a crash left traces · 21 tampered with · 2 the log could not be read"
    )]
    Verify(log::VerifyArguments),
    /// Judge the recorded calls again under another policy and show what would change
    #[command(
        after_help = "Exit codes: 0 nothing changes · 22 something changes (see --fail-on) · 2 something went wrong"
    )]
    Replay(learn::ReplayArguments),
    /// Redact an entry; a signed tombstone replaces it
    Redact(log::RedactArguments),
    /// Write a signed checkpoint now and print it, as JSON
    Checkpoint {
        /// Print JSON; it is always JSON
        #[arg(long)]
        json: bool,
    },
    /// Move a damaged log aside and begin a new one that names it
    SetAside,
}

/// Where the log is.
#[derive(Debug, Args, Clone)]
pub struct LogArguments {
    /// The log directory [default: as the policy says, else $XDG_STATE_HOME/callgate/audit]
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub log: Option<PathBuf>,
}

impl LogArguments {
    fn settings(&self) -> Result<LogSettings, String> {
        if let Some(directory) = &self.log {
            return Ok(LogSettings::at(directory));
        }
        // An unreadable policy might have moved the log: reading another log instead would mislead.
        let here = std::env::current_dir().map_err(text)?;
        let policy = crate::choice::policy(None, &here)
            .map_err(|trouble| format!("{trouble}\ncannot determine the log directory; pass --log DIRECTORY"))?;
        crate::audit_log::settings(&policy.policy).map_err(text)
    }

    /// The settings of a log that exists.
    fn existing(&self) -> Result<LogSettings, String> {
        let settings = self.settings()?;
        let missing = || format!("there is no audit log in {}", settings.directory.display());
        if settings.directory.is_dir() { Ok(settings) } else { Err(missing()) }
    }

    /// Whether nothing was recorded yet in the usual place; says so. A log that was named has to exist, and so has one whose key is
    /// there: somebody has removed it.
    fn is_empty(&self) -> Result<bool, String> {
        let settings = self.settings()?;
        let empty = self.log.is_none() && !settings.directory.is_dir() && !settings.key.exists();
        if empty {
            let place = settings.directory.display();
            anstream::eprintln!("the audit log is empty: no call was recorded yet in {place}");
        }
        Ok(empty)
    }

    /// The directory of a log that exists.
    pub fn directory(&self) -> Result<PathBuf, String> {
        Ok(self.existing()?.directory)
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// `callgate audit`: a task and where the log is.
#[derive(Debug, Args)]
pub struct AuditArguments {
    /// What to do
    #[command(subcommand)]
    pub task: AuditTask,
    /// Where the log is
    #[command(flatten)]
    pub log: LogArguments,
}

/// Runs a task and returns the exit code.
pub fn run(AuditArguments { task, log }: &AuditArguments) -> Result<u8, String> {
    let reads =
        !matches!(task, AuditTask::Show(_) | AuditTask::Redact(_) | AuditTask::Checkpoint { .. } | AuditTask::SetAside);
    if reads && log.is_empty()? {
        return Ok(0);
    }
    match task {
        AuditTask::Tail(arguments) => entries::tail(log, arguments),
        AuditTask::Query(arguments) => entries::query(log, arguments),
        AuditTask::Show(arguments) => entries::show(log, arguments),
        AuditTask::Stats(arguments) => entries::stats(log, arguments),
        AuditTask::Export(arguments) => entries::export(log, arguments),
        AuditTask::Verify(arguments) => log::verify(log, arguments),
        AuditTask::Replay(arguments) => learn::replay(log, arguments),
        AuditTask::Redact(arguments) => log::redact(log, arguments),
        AuditTask::Checkpoint { .. } => log::checkpoint(log),
        AuditTask::SetAside => log::set_aside(log),
    }
}
