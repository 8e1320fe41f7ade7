use serde_json::{Value, json};

use super::*;
use crate::entry::LogEntry;
use crate::read::Entries;

fn exported(format: ExportFormat) -> (u64, String) {
    let (_base, settings) = crate::read::tests::session();
    let mut out = Vec::new();
    let count = export(Entries::open(&settings.directory).unwrap(), format, &mut out).unwrap();
    (count, String::from_utf8(out).unwrap())
}

#[test]
fn json_is_the_log_itself() {
    let (count, text) = exported(ExportFormat::Json);
    assert_eq!(text.lines().count() as u64, count);
    assert!(text.lines().all(|line| crate::line::Link::parse(line.as_bytes()).is_some()));
}

/// An entry of every kind, of some more than one.
pub(super) fn every_kind() -> Vec<LogEntry> {
    let hash = "a".repeat(64);
    let attempt = |decision: &str| {
        json!({"kind": "tool_attempt", "tool": "Bash", "input": {"command": "ls", "count": u64::MAX, "share": 0.5, "none": null},
            "decision": decision, "rule": "r", "reason": "because", "policy": "abc", "classification": {"risk_level": "high"},
            "description": {"parts": [{"effects": []}]}})
    };
    let bodies = [
        attempt("allow"),
        attempt("deny"),
        attempt("ask"),
        json!({"kind": "approval_requested", "tool": "Bash", "approval": "1", "asked": "terminal", "timeout_ms": 1000}),
        json!({"kind": "approval", "tool": "Bash", "approved": true, "outcome": "approved", "cached": false, "by": "ada"}),
        json!({"kind": "approval", "tool": "Bash", "approved": false, "outcome": "denied", "cached": false}),
        json!({"kind": "security_violation", "tool": "Bash", "reason": "a secret", "risk_level": "critical", "rule": "r"}),
        json!({"kind": "refused", "tool": "Bash", "refusal": "denied", "reason": "because"}),
        json!({"kind": "started", "tool": "Bash"}),
        json!({"kind": "finished", "tool": "Bash", "success": true, "duration_ms": 3}),
        json!({"kind": "finished", "tool": "Bash", "exit": 1}),
        json!({"kind": "ran_without_verdict", "tool": "Bash", "input": {"command": "ls"}, "reason": "no attempt"}),
        json!({"kind": "session_started", "source": "startup", "policy": "abc", "writer": "callgate"}),
        json!({"kind": "session_ended", "reason": "exit"}),
        json!({"kind": "checkpoint", "log": "l", "key": hash, "signature": hash}),
        json!({"kind": "tombstone", "log": "l", "original": hash, "reason": "a name", "by": "ada", "key": hash, "signature": hash}),
        json!({"kind": "redaction", "entry": 3, "tombstone": hash, "reason": "a name", "by": "ada"}),
        json!({"kind": "segment", "log": "l", "segment": 1, "key": hash, "writer": "callgate"}),
        json!({"kind": "recovered", "adopted": 1, "cut_bytes": 2, "lost": 0}),
        json!({"kind": "delivery_failed", "checkpoint": 4, "to": "elsewhere", "reason": "no connection"}),
    ];
    let entries = bodies.into_iter().zip(1_u64..).map(|(mut entry, seq)| {
        let kind = entry["kind"].as_str().unwrap().to_owned();
        let shared = json!({"v": 1, "seq": seq, "prev": hash, "time": "2026-11-15T20:00:00.123456Z"});
        entry.as_object_mut().unwrap().extend(shared.as_object().unwrap().clone());
        if entry.get("tool").is_some() || kind.starts_with("session") {
            let origin = json!({"call": "c-1", "session": "s-1", "agent": "claude"});
            entry.as_object_mut().unwrap().extend(origin.as_object().unwrap().clone());
        }
        serde_json::from_value::<LogEntry>(entry).unwrap_or_else(|error| panic!("{kind}: {error}"))
    });
    entries.collect()
}

/// Whether a value is what a field takes, by the field's name in OTLP's JSON: opentelemetry-proto 1 (`logs.proto`, `common.proto`,
/// `resource.proto`) with lowerCamelCase names. What is not listed is no field.
fn fits(message: &str, field: &str, value: &Value) -> bool {
    let all = |message: &str| value.as_array().is_some_and(|items| items.iter().all(|item| is_message(message, item)));
    match (message, field) {
        ("request", "resourceLogs") => all("resourceLogs"),
        ("resourceLogs", "resource") => is_message("resource", value),
        ("resourceLogs", "scopeLogs") => all("scopeLogs"),
        ("scopeLogs", "scope") => is_message("scope", value),
        ("scopeLogs", "logRecords") => all("logRecord"),
        ("resource" | "logRecord", "attributes") => {
            let keys: Vec<&Value> = value.as_array().unwrap().iter().map(|attribute| &attribute["key"]).collect();
            all("keyValue") && keys.iter().enumerate().all(|(place, key)| !keys[..place].contains(key))
        }
        ("scope", "name" | "version") | ("keyValue", "key") | ("logRecord", "severityText" | "eventName") => {
            value.as_str().is_some_and(|text| !text.is_empty())
        }
        // numbers of 64 bits are texts
        ("logRecord", "timeUnixNano" | "observedTimeUnixNano") => {
            value.as_str().is_some_and(|text| text.len() == 19 && text.parse::<u64>().is_ok())
        }
        // TRACE is 1 to 4, DEBUG 5 to 8, INFO 9 to 12, WARN 13 to 16, ERROR 17 to 20, FATAL 21 to 24
        ("logRecord", "severityNumber") => value.as_u64().is_some_and(|number| (1..=24).contains(&number)),
        ("logRecord", "body") | ("keyValue", "value") => {
            value.as_object().is_some_and(|fields| fields.len() <= 1) && is_message("anyValue", value)
        }
        ("anyValue", "stringValue") => value.is_string(),
        ("anyValue", "boolValue") => value.is_boolean(),
        ("anyValue", "intValue") => value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
        ("anyValue", "doubleValue") => value.is_number(),
        ("anyValue", "arrayValue") => {
            value["values"].as_array().unwrap().iter().all(|item| fits("keyValue", "value", item))
        }
        ("anyValue", "kvlistValue") => {
            value["values"].as_array().unwrap().iter().all(|item| is_message("keyValue", item))
        }
        _ => false,
    }
}

fn is_message(message: &str, value: &Value) -> bool {
    let fields = value.as_object().unwrap_or_else(|| panic!("{message}: {value}"));
    fields.iter().all(|(name, value)| fits(message, name, value) || panic!("{message}.{name}: {value}"))
}

#[test]
fn every_kind_of_entry_becomes_a_record_of_open_telemetry() {
    let records: Vec<Value> = every_kind().iter().map(open_telemetry::record).collect();
    for record in &records {
        let severity = record["severityText"].as_str().unwrap();
        let number = record["severityNumber"].as_u64().unwrap();
        assert!(matches!((severity, number), ("INFO", 9) | ("WARN", 13) | ("ERROR", 17)), "{severity} {number}");
        assert!(record["eventName"].as_str().unwrap().starts_with("callgate."));
    }
    assert!(is_message("request", &open_telemetry::request(records)));
}

#[test]
fn a_request_of_open_telemetry_has_all_records() {
    let (count, text) = exported(ExportFormat::OpenTelemetry);
    let request: Value = serde_json::from_str(&text).unwrap();
    assert!(is_message("request", &request));
    assert_eq!(request["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().len() as u64, count);
}

#[test]
fn csv_has_as_many_cells_in_every_row() {
    let (count, text) = exported(ExportFormat::Csv);
    assert!(text.starts_with("seq,time,kind,"));
    assert_eq!(text.matches("\r\n").count() as u64, count + 1);
}
