//! Handing entries to other systems: JSON, CSV, OCSF and OpenTelemetry logs, one pass, bounded memory.

#[cfg(feature = "opentelemetry")]
mod collector;
mod csv;
mod ocsf;
mod open_telemetry;

use std::io::{self, Write};
use std::str::FromStr;

use crate::error::AuditError;
use crate::read::LogLine;

#[cfg(feature = "opentelemetry")]
pub use collector::{CollectorError, OtlpCollector};

/// What entries are turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// The lines themselves.
    Json,
    /// A table with a header.
    Csv,
    /// Events of the Open Cybersecurity Schema Framework, one a line.
    Ocsf,
    /// OTLP/JSON log requests, one a line, each with up to a thousand records.
    OpenTelemetry,
}

impl FromStr for ExportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(ExportFormat::Json),
            "csv" => Ok(ExportFormat::Csv),
            "ocsf" => Ok(ExportFormat::Ocsf),
            "otel" | "opentelemetry" => Ok(ExportFormat::OpenTelemetry),
            _ => Err(format!("unknown format {text:?}; expected `json`, `csv`, `ocsf` or `otel`")),
        }
    }
}

/// How many records one OpenTelemetry request holds.
const REQUEST: usize = 1_000;

/// Writes entries in a format; returns how many.
pub fn export(
    lines: impl IntoIterator<Item = Result<LogLine, AuditError>>,
    format: ExportFormat,
    to: &mut dyn Write,
) -> Result<u64, AuditError> {
    let written = |result: io::Result<()>| {
        result.map_err(|source| AuditError::Io { action: "write", path: "the export".into(), source })
    };
    let mut count = 0_u64;
    let mut request = Vec::new();
    if format == ExportFormat::Csv {
        written(to.write_all(csv::HEADER.as_bytes()))?;
    }
    for line in lines {
        let line = line?;
        count = count.saturating_add(1);
        match format {
            ExportFormat::Json => written(writeln!(to, "{}", line.line))?,
            ExportFormat::Csv => written(to.write_all(csv::row(&line.entry).as_bytes()))?,
            ExportFormat::Ocsf => written(writeln!(to, "{}", ocsf::event(&line.entry)))?,
            ExportFormat::OpenTelemetry => {
                request.push(open_telemetry::record(&line.entry));
                if request.len() >= REQUEST {
                    written(writeln!(to, "{}", open_telemetry::request(std::mem::take(&mut request))))?;
                }
            }
        }
    }
    if !request.is_empty() {
        written(writeln!(to, "{}", open_telemetry::request(request)))?;
    }
    written(to.flush())?;
    Ok(count)
}

/// Summarizes an entry in one line, for tables and messages.
pub fn summary(entry: &crate::entry::LogEntry) -> String {
    use crate::entry::EntryBody;
    match &entry.record.body {
        EntryBody::ToolAttempt(attempt) => subject(&attempt.input).unwrap_or_else(|| attempt.reason.clone()),
        EntryBody::ApprovalRequested(_) => String::new(),
        EntryBody::Approval(approval) => {
            let outcome = crate::entry::outcome::name(approval.outcome).replace('_', " ");
            let by = approval.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            let cached = if approval.cached { ", reused" } else { "" };
            let took = approval.took_ms.map(|took| format!(", {took} ms")).unwrap_or_default();
            format!("{outcome}{by}{cached}{took}")
        }
        EntryBody::SecurityViolation(violation) => format!("{}: {}", violation.risk_level, violation.reason),
        EntryBody::Refused(refused) => format!("{}: {}", refused.refusal, refused.reason),
        EntryBody::PermitIssued(permit) => format!("good for {} s", permit.expires_in_ms / 1000),
        EntryBody::Started(started) => started.sandbox.clone().unwrap_or_default(),
        EntryBody::Finished(finished) => {
            let exit = finished.exit.map(|exit| format!("exit {exit}"));
            let well = finished.success.map(|success| if success { "succeeded" } else { "failed" }.to_owned());
            let took = finished.duration_ms.map(|took| format!("{took} ms"));
            [exit.or(well), took].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
        EntryBody::RanWithoutVerdict(ran) => ran.reason.clone(),
        EntryBody::SessionStarted(started) => started.source.clone().unwrap_or_default(),
        EntryBody::SessionEnded(ended) => ended.reason.clone().unwrap_or_default(),
        EntryBody::Checkpoint(_) => "signed".to_owned(),
        EntryBody::Tombstone(tombstone) => format!("redacted by {}: {}", tombstone.by, tombstone.reason),
        EntryBody::Redaction(redaction) => format!("entry {} redacted by {}", redaction.entry, redaction.by),
        EntryBody::Segment(segment) => format!("segment {}", segment.segment),
        EntryBody::Recovered(recovered) => format!(
            "{} entries adopted, {} bytes cut, {} entries lost",
            recovered.adopted, recovered.cut_bytes, recovered.lost
        ),
        EntryBody::DeliveryFailed(failed) => {
            format!("checkpoint {} to {}: {}", failed.checkpoint, failed.to, failed.reason)
        }
    }
}

/// The subject of an input: its command, path or URL.
fn subject(input: &serde_json::Value) -> Option<String> {
    ["command", "cmd", "argv", "file_path", "path", "notebook_path", "url", "pattern", "query"].iter().find_map(
        |name| match input.get(name)? {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Array(items) => {
                Some(items.iter().filter_map(|item| item.as_str()).collect::<Vec<_>>().join(" "))
            }
            _ => None,
        },
    )
}

#[cfg(test)]
mod tests;
