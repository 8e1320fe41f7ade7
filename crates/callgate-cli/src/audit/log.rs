//! `callgate audit verify`, `redact`, `checkpoint` and `set-aside`.

use std::path::PathBuf;

use callgate::show::visible;
use callgate_audit::Log;
use callgate_audit::verify::{Status, VerifyOptions, VerifyReport, verify_with};
use clap::Args;

use super::shown::{Progress, json, line};
use super::{CRASH_TRACES, LogArguments, TAMPERED, text};

/// The arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// Compare with the checkpoints in this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub checkpoints: Vec<PathBuf>,
    /// The key file [default: next to the log]
    #[arg(long, value_name = "FILE", conflicts_with = "public_key")]
    pub key: Option<PathBuf>,
    /// Verify with a public key only, up to the last checkpoint
    #[arg(long, value_name = "HEX")]
    pub public_key: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `redact`.
#[derive(Debug, Args)]
pub struct RedactArguments {
    /// The number of the entry
    pub entry: u64,
    /// The reason
    #[arg(long)]
    pub reason: String,
    /// Who redacts it [default: $USER]
    #[arg(long)]
    pub by: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `callgate audit verify`
pub fn verify(log: &LogArguments, arguments: &VerifyArguments) -> Result<u8, String> {
    let settings = log.existing()?;
    let mut options = VerifyOptions::of(&settings);
    if !arguments.public_key.is_empty() {
        options.key = None;
        options.public_keys = arguments.public_key.iter().map(|key| key.to_ascii_lowercase()).collect();
    }
    if let Some(key) = &arguments.key {
        options.key = Some(key.clone());
    }
    for file in &arguments.checkpoints {
        options = options.with_checkpoints(file).map_err(text)?;
    }
    let total = std::fs::read_dir(&settings.directory)
        .map_err(text)?
        .filter_map(|file| file.ok()?.metadata().ok())
        .fold(0_u64, |total, metadata| total.saturating_add(metadata.len()));
    let progress = Progress::new("checking", total);
    let report = verify_with(&options, &mut |done| progress.at(done)).map_err(text)?;
    drop(progress);
    if arguments.json {
        json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(match report.status {
        Status::Intact => 0,
        Status::CrashTraces => CRASH_TRACES,
        Status::Tampered => TAMPERED,
    })
}

fn print(report: &VerifyReport) -> Result<(), String> {
    line(match report.status {
        Status::Intact => "intact: every entry is present and unchanged",
        Status::CrashTraces => "a crash left traces; no sign of tampering",
        Status::Tampered => "TAMPERED: the log was changed",
    })?;
    line(&format!(
        "{} entries in {} segments, {} signed checkpoints, {} redacted entries",
        report.entries, report.segments, report.checkpoints, report.tombstones
    ))?;
    if report.outside_checkpoints > 0 {
        line(&format!("{} external checkpoints match", report.outside_checkpoints))?;
    }
    if !report.head_checked {
        let last = report.last_checkpoint.map_or("nothing".to_owned(), |last| format!("everything up to entry {last}"));
        line(&format!("without the secret key, the checkpoints prove only: {last}"))?;
    }
    for finding in &report.findings {
        line(&format!("  {}: {}", finding.place, visible(&finding.what)))?;
    }
    let more = report.found.saturating_sub(report.findings.len() as u64);
    if more > 0 {
        line(&format!("  and {more} more"))?;
    }
    Ok(())
}

/// `callgate audit redact`
pub fn redact(log: &LogArguments, arguments: &RedactArguments) -> Result<u8, String> {
    let by = arguments.by.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "unknown".to_owned());
    let log = Log::open(log.existing()?).map_err(text)?;
    log.redact(arguments.entry, &by, &arguments.reason).map_err(text)?;
    if arguments.json {
        return json(&serde_json::json!({ "entry": arguments.entry, "redacted": true, "by": by }));
    }
    line(&format!("entry {} is redacted; a signed tombstone replaces it", arguments.entry))?;
    Ok(0)
}

/// `callgate audit checkpoint`
pub fn checkpoint(log: &LogArguments) -> Result<u8, String> {
    let log = Log::open(log.existing()?).map_err(text)?;
    let checkpoint = log.checkpoint().map_err(text)?;
    line(&serde_json::to_string(&checkpoint).map_err(text)?)?;
    Ok(0)
}

/// `callgate audit set-aside`
pub fn set_aside(log: &LogArguments) -> Result<u8, String> {
    let (_, aside) = Log::set_aside(log.existing()?).map_err(text)?;
    line(&format!("moved the old log to {}; began a new one", aside.display()))?;
    Ok(0)
}
