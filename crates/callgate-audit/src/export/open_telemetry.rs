//! Log records of OpenTelemetry in the JSON form of OTLP 1: `ExportLogsServiceRequest` of opentelemetry-proto, with names in lowerCamelCase,
//! numbers of 64 bits as text and enumerations as numbers. Records belong to no trace, so `traceId` and `spanId` are left out.

use serde_json::{Value, json};

use super::summary;
use crate::entry::{EntryBody, LogEntry};

/// A request with these records.
pub(super) fn request(records: Vec<Value>) -> Value {
    json!({"resourceLogs": [{
        "resource": {"attributes": [text("service.name", "callgate"), text("service.version", env!("CARGO_PKG_VERSION"))]},
        "scopeLogs": [{"scope": {"name": "callgate.audit", "version": env!("CARGO_PKG_VERSION")}, "logRecords": records}],
    }]})
}

pub(super) fn record(entry: &LogEntry) -> Value {
    let record = &entry.record;
    let (number, severity) = match &record.body {
        EntryBody::SecurityViolation(_) | EntryBody::RanWithoutVerdict(_) | EntryBody::DeliveryFailed(_) => {
            (17, "ERROR")
        }
        EntryBody::Refused(_) | EntryBody::Recovered(_) => (13, "WARN"),
        _ => (9, "INFO"),
    };
    let mut attributes = vec![
        json!({"key": "callgate.seq", "value": {"intValue": entry.seq.to_string()}}),
        text("callgate.prev", &entry.prev.to_string()),
    ];
    let named = [
        ("callgate.call", record.call.as_deref()),
        ("session.id", record.session.as_deref()),
        ("gen_ai.agent.name", record.agent.as_deref()),
        ("gen_ai.tool.name", record.body.tool()),
    ];
    attributes.extend(named.into_iter().filter_map(|(name, value)| Some(text(name, value?))));
    if let Ok(Value::Object(fields)) = serde_json::to_value(&record.body) {
        let fields = fields.into_iter().filter(|(name, _)| name != "kind" && name != "tool");
        attributes.extend(fields.map(|(name, value)| json!({"key": format!("callgate.{name}"), "value": any(&value)})));
    }
    let nanoseconds = entry.time.microseconds().saturating_mul(1000);
    json!({
        "timeUnixNano": nanoseconds.to_string(),
        "observedTimeUnixNano": nanoseconds.to_string(),
        "severityNumber": number,
        "severityText": severity,
        "eventName": format!("callgate.{}", record.body.kind()),
        "body": {"stringValue": summary(entry)},
        "attributes": attributes,
    })
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// A JSON value as OTLP's `AnyValue`.
fn any(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => json!({"intValue": whole.to_string()}),
            // also for integers beyond 64 signed bits
            None => json!({"doubleValue": number.as_f64()}),
        },
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(items) => json!({"arrayValue": {"values": items.iter().map(any).collect::<Vec<_>>()}}),
        Value::Object(fields) => {
            let values: Vec<Value> =
                fields.iter().map(|(key, value)| json!({"key": key, "value": any(value)})).collect();
            json!({"kvlistValue": {"values": values}})
        }
    }
}
