//! `callgate audit`: reading the log, checking it, and learning from it.

mod entries;
mod learn;
mod log;
mod shown;

use std::path::PathBuf;

use callgate_audit::Settings;
use clap::{Args, Subcommand};

pub use learn::{DiffArguments, SuggestArguments, diff, suggest};

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
    /// Hand entries to other systems: JSON, CSV, OCSF or OpenTelemetry logs
    Export(entries::ExportArguments),
    /// Check that nothing was changed, removed, inserted, reordered or cut off
    #[command(
        after_help = "Exit codes: 0 intact · 20 a crash left traces · 21 tampered with · 1 the log could not be read"
    )]
    Verify(log::VerifyArguments),
    /// Judge the recorded calls again under another policy and show what would change
    #[command(
        after_help = "Exit codes: 0 nothing changes · 22 something changes (see --fail-on) · 1 something went wrong"
    )]
    Replay(learn::ReplayArguments),
    /// Take an entry out on purpose; a signed tombstone stays in its place
    Redact(log::RedactArguments),
    /// Write a signed checkpoint now and print it
    Checkpoint(log::PlaceArguments),
    /// Move a damaged log aside and begin a new one that names it
    SetAside(log::PlaceArguments),
}

/// Where the log lies.
#[derive(Debug, Args, Clone)]
pub struct LogArguments {
    /// The log's directory [default: what the policy says, else $XDG_STATE_HOME/callgate/audit]
    #[arg(long, value_name = "DIRECTORY")]
    pub log: Option<PathBuf>,
}

impl LogArguments {
    pub(super) fn settings(&self) -> Result<Settings, String> {
        match &self.log {
            Some(directory) => Ok(Settings::at(directory)),
            // A policy that cannot be read might have moved the log: to read another one in its place would mislead.
            None => {
                let here = std::env::current_dir().map_err(|error| error.to_string())?;
                let policy = crate::choice::policy(None, &here).map_err(|trouble| {
                    format!("{trouble}\nwhere the log lies is not known; say it with --log DIRECTORY")
                })?;
                crate::audit_log::settings(&policy.policy).map_err(|trouble| trouble.to_string())
            }
        }
    }

    pub(super) fn directory(&self) -> Result<PathBuf, String> {
        let directory = self.settings()?.directory;
        if directory.is_dir() {
            Ok(directory)
        } else {
            Err(format!("there is no audit log in {}", directory.display()))
        }
    }
}

/// Does what was asked; the number is the exit code.
pub fn run(task: &AuditTask) -> Result<u8, String> {
    match task {
        AuditTask::Tail(arguments) => entries::tail(arguments),
        AuditTask::Query(arguments) => entries::query(arguments),
        AuditTask::Show(arguments) => entries::show(arguments),
        AuditTask::Stats(arguments) => entries::stats(arguments),
        AuditTask::Export(arguments) => entries::export(arguments),
        AuditTask::Verify(arguments) => log::verify(arguments),
        AuditTask::Replay(arguments) => learn::replay(arguments),
        AuditTask::Redact(arguments) => log::redact(arguments),
        AuditTask::Checkpoint(arguments) => log::checkpoint(arguments),
        AuditTask::SetAside(arguments) => log::set_aside(arguments),
    }
}
