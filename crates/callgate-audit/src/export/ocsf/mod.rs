//! Events of the Open Cybersecurity Schema Framework, version 1.9.0: API Activity (6003), and Detection Finding (2004) for
//! violations, both with the profile `security_control`. The agent stands in `ai_agent` (profile `ai_operation`), and in
//! `actor`, where its name is also given as `app_name` for readers of earlier versions.

use callgate::policy::Decision;
use serde_json::{Map, Value, json};

use super::summary;
use crate::entry::{EntryBody, LogEntry, SecurityViolation};

/// The version of the schema that events follow.
const VERSION: &str = "1.9.0";
/// As far down nulls are looked for.
const MAXIMUM_DEPTH: usize = 8;

/// A value of an enumeration: its number, and its caption in the schema.
type Named = (u8, &'static str);

/// Other, with the source's own word for it.
const OTHER: u8 = 99;

pub(super) fn event(entry: &LogEntry) -> Value {
    let mut fields = match &entry.record.body {
        EntryBody::SecurityViolation(violation) => finding(entry, violation),
        _ => activity(entry),
    };
    let severity = severity(entry);
    let (action, disposition) = control(&entry.record.body);
    for (name, (number, caption)) in [("severity", severity), ("action", action), ("disposition", disposition)] {
        fields.insert(format!("{name}_id"), json!(number));
        fields.insert(name.to_owned(), json!(caption));
    }
    fields.insert("time".into(), json!(entry.time.milliseconds()));
    fields.insert("message".into(), json!(summary(entry)));
    fields.insert("unmapped".into(), json!({"entry": entry.record, "prev": entry.prev}));
    let mut event = Value::Object(fields);
    remove_nulls(&mut event, 0);
    event
}

/// An API Activity for every entry but a violation.
fn activity(entry: &LogEntry) -> Map<String, Value> {
    let mut fields = class((6, "Application Activity"), (6003, "API Activity"), (OTHER, entry.record.body.kind()));
    let agent = agent(entry);
    let profiles: &[&str] = if agent.is_null() { &["security_control"] } else { &["ai_operation", "security_control"] };
    let (status, name) = status(&entry.record.body);
    let own = [
        ("metadata", metadata(entry, profiles)),
        ("actor", actor(entry)),
        ("ai_agent", agent),
        ("api", api(entry)),
        ("src_endpoint", json!({"name": "localhost"})),
        ("status_id", json!(status)),
        ("status", json!(name)),
        ("policy", policy(&entry.record.body)),
        // a tool that ran without a verdict needs attention
        (
            "is_alert",
            if matches!(entry.record.body, EntryBody::RanWithoutVerdict(_)) { json!(true) } else { Value::Null },
        ),
    ];
    fields.extend(own.map(|(name, value)| (name.to_owned(), value)));
    fields
}

fn finding(entry: &LogEntry, violation: &SecurityViolation) -> Map<String, Value> {
    let mut fields = class((2, "Findings"), (2004, "Detection Finding"), (1, "Create"));
    let (risk, risk_name) = match violation.risk_level.as_str() {
        "critical" => (4, "Critical"),
        "high" => (3, "High"),
        "medium" => (2, "Medium"),
        "low" => (1, "Low"),
        _ => (0, "Info"),
    };
    let uid = entry.record.call.clone().unwrap_or_else(|| entry.seq.to_string());
    let own = [
        ("metadata", metadata(entry, &["security_control"])),
        ("finding_info", json!({"title": violation.reason, "uid": uid, "created_time": entry.time.milliseconds()})),
        ("evidences", json!([{"actor": actor(entry), "ai_agent": agent(entry), "api": api(entry)}])),
        ("policy", violation.rule.as_ref().map_or(Value::Null, |rule| json!({"name": rule}))),
        ("risk_level_id", json!(risk)),
        ("risk_level", json!(risk_name)),
        ("is_alert", json!(true)),
        // the triage state of a finding
        ("status_id", json!(1)),
        ("status", json!("New")),
    ];
    fields.extend(own.map(|(name, value)| (name.to_owned(), value)));
    fields
}

fn class(category: Named, (class, class_name): (u32, &str), (activity, name): (u8, &str)) -> Map<String, Value> {
    let type_uid = class.saturating_mul(100).saturating_add(u32::from(activity));
    let fields = [
        ("category_uid", json!(category.0)),
        ("category_name", json!(category.1)),
        ("class_uid", json!(class)),
        ("class_name", json!(class_name)),
        ("activity_id", json!(activity)),
        ("activity_name", json!(name)),
        ("type_uid", json!(type_uid)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

fn metadata(entry: &LogEntry, profiles: &[&str]) -> Value {
    json!({
        "version": VERSION,
        "product": {"name": "callgate", "vendor_name": "callgate", "version": env!("CARGO_PKG_VERSION")},
        // numbers begin anew with every log
        "uid": format!("{}-{}", entry.seq, entry.prev),
        "original_event_uid": entry.seq.to_string(),
        "sequence": entry.seq,
        "event_code": entry.record.body.kind(),
        "correlation_uid": entry.record.call,
        "log_name": "audit",
        "log_version": entry.v.to_string(),
        "profiles": profiles,
    })
}

/// An actor is required, and the log itself is one where no agent is named.
fn actor(entry: &LogEntry) -> Value {
    let name = entry.record.agent.as_deref().unwrap_or("callgate");
    json!({
        "application": {"name": name},
        "app_name": name,
        "session": entry.record.session.as_ref().map(|session| json!({"uid": session})),
    })
}

fn agent(entry: &LogEntry) -> Value {
    let record = &entry.record;
    record
        .agent
        .as_ref()
        .map_or(Value::Null, |agent| json!({"uid": agent, "name": agent, "instance_uid": record.session}))
}

fn api(entry: &LogEntry) -> Value {
    let record = &entry.record;
    json!({
        "operation": record.body.tool().unwrap_or(record.body.kind()),
        "request": record.call.as_ref().map(|call| json!({"uid": call})),
    })
}

/// The rule that decided and the version of its policy.
fn policy(body: &EntryBody) -> Value {
    match body {
        EntryBody::ToolAttempt(attempt) if attempt.rule.is_some() || attempt.policy.is_some() => {
            json!({"name": attempt.rule, "version": attempt.policy, "uid": attempt.policy})
        }
        EntryBody::SessionStarted(started) => {
            started.policy.as_ref().map_or(Value::Null, |policy| json!({"version": policy, "uid": policy}))
        }
        _ => Value::Null,
    }
}

/// The action of the gate (`action_id`) and its result (`disposition_id`).
fn control(body: &EntryBody) -> (Named, Named) {
    const ALLOWED: Named = (1, "Allowed");
    const DENIED: Named = (2, "Denied");
    const UNKNOWN: Named = (0, "Unknown");
    const OBSERVED: Named = (3, "Observed");
    const BLOCKED: Named = (2, "Blocked");
    match body {
        EntryBody::ToolAttempt(attempt) => match attempt.decision {
            Decision::Allow | Decision::Contain => (ALLOWED, (1, "Allowed")),
            Decision::Deny => (DENIED, BLOCKED),
            // an approver decides
            Decision::Ask => (UNKNOWN, (14, "Delayed")),
        },
        EntryBody::ApprovalRequested(_) => (UNKNOWN, (14, "Delayed")),
        EntryBody::Approval(approval) if approval.approved => (ALLOWED, (8, "Approved")),
        EntryBody::Approval(_) => (DENIED, (25, "Rejected")),
        EntryBody::SecurityViolation(_) | EntryBody::Refused(_) => (DENIED, BLOCKED),
        EntryBody::PermitIssued(_) | EntryBody::Started(_) => (ALLOWED, (1, "Allowed")),
        EntryBody::RanWithoutVerdict(_) => (OBSERVED, (15, "Detected")),
        _ => (OBSERVED, (17, "Logged")),
    }
}

/// How it ended, as far as the entry knows.
fn status(body: &EntryBody) -> Named {
    let known = match body {
        EntryBody::ToolAttempt(attempt) => match attempt.decision {
            Decision::Allow | Decision::Contain => Some(true),
            Decision::Deny => Some(false),
            Decision::Ask => None,
        },
        EntryBody::Approval(approval) => Some(approval.approved),
        EntryBody::Refused(_) | EntryBody::SecurityViolation(_) | EntryBody::DeliveryFailed(_) => Some(false),
        EntryBody::Started(_) | EntryBody::SessionStarted(_) | EntryBody::SessionEnded(_) => Some(true),
        EntryBody::Finished(finished) => finished.success.or(finished.exit.map(|exit| exit == 0)),
        _ => None,
    };
    match known {
        Some(true) => (1, "Success"),
        Some(false) => (2, "Failure"),
        None => (0, "Unknown"),
    }
}

fn severity(entry: &LogEntry) -> Named {
    let level = match &entry.record.body {
        EntryBody::SecurityViolation(violation) => Some(violation.risk_level.as_str()),
        EntryBody::ToolAttempt(attempt) => {
            attempt.classification.as_ref().and_then(|classification| classification.get("risk_level")?.as_str())
        }
        EntryBody::RanWithoutVerdict(_) => Some("high"),
        _ => None,
    };
    match level {
        Some("critical") => (5, "Critical"),
        Some("high") => (4, "High"),
        Some("medium") => (3, "Medium"),
        Some("low") => (2, "Low"),
        _ => (1, "Informational"),
    }
}

/// Removes unknown fields, down to the depth that events of this crate have.
fn remove_nulls(value: &mut Value, depth: usize) {
    let deeper = depth.saturating_add(1);
    match value {
        Value::Object(fields) if depth < MAXIMUM_DEPTH => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(|value| remove_nulls(value, deeper));
        }
        Value::Array(items) if depth < MAXIMUM_DEPTH => items.iter_mut().for_each(|item| remove_nulls(item, deeper)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
