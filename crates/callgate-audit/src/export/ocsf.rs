//! Events of the Open Cybersecurity Schema Framework, version 1.3: API Activity (6003), and Detection Finding (2004) for
//! violations.

use callgate::policy::Decision;
use serde_json::{Map, Value, json};

use super::summary;
use crate::entry::{Body, Entry};

/// As far down nulls are looked for.
const MAXIMUM_DEPTH: usize = 8;

pub(super) fn event(entry: &Entry) -> Value {
    let record = &entry.record;
    let violation = match &record.body {
        Body::SecurityViolation(violation) => Some(violation),
        _ => None,
    };
    let (category, category_name, class, class_name) = match violation {
        Some(_) => (2, "Findings", 2004, "Detection Finding"),
        None => (6, "Application Activity", 6003, "API Activity"),
    };
    let (activity, activity_name) = if violation.is_some() { (1, "Create") } else { (99, record.body.kind()) };
    let (severity_id, severity) = severity(entry);
    let allowed = match &record.body {
        Body::ToolAttempt(attempt) => match attempt.decision {
            Decision::Allow | Decision::Contain => Some(true),
            Decision::Deny => Some(false),
            Decision::Ask => None,
        },
        Body::Approval(approval) => Some(approval.approved),
        Body::SecurityViolation(_) | Body::Refused(_) => Some(false),
        Body::Started(_) | Body::RanWithoutVerdict(_) => Some(true),
        _ => None,
    };
    let mut event = json!({
        "category_uid": category,
        "category_name": category_name,
        "class_uid": class,
        "class_name": class_name,
        "activity_id": activity,
        "activity_name": activity_name,
        "type_uid": class * 100 + activity,
        "severity_id": severity_id,
        "severity": severity,
        "time": entry.time.milliseconds(),
        "message": summary(entry),
        "metadata": {
            "version": "1.3.0",
            "product": {"name": "callgate", "vendor_name": "callgate", "version": env!("CARGO_PKG_VERSION")},
            "uid": format!("{}", entry.seq),
            "sequence": entry.seq,
            "correlation_uid": record.call,
            "log_name": "audit",
            "profiles": ["security_control"],
        },
        "unmapped": {"entry": record, "prev": entry.prev},
    });
    let actor = json!({
        // an actor is required, and the log itself is one where no agent is named
        "app_name": record.agent.as_deref().unwrap_or("callgate"),
        "session": record.session.as_ref().map(|session| json!({"uid": session})),
    });
    let api = json!({"operation": record.body.tool().unwrap_or(record.body.kind())});
    let mut more = Map::new();
    match violation {
        None => {
            more.insert("actor".into(), actor);
            more.insert("api".into(), api);
            more.insert("src_endpoint".into(), json!({"name": "localhost"}));
        }
        Some(violation) => {
            let uid = record.call.clone().unwrap_or_else(|| entry.seq.to_string());
            more.insert("finding_info".into(), json!({"title": violation.reason, "uid": uid}));
            more.insert("evidences".into(), json!([{"actor": actor, "api": api}]));
            more.insert("risk_level".into(), json!(severity));
            more.insert("risk_level_id".into(), json!(severity_id.saturating_sub(1)));
            more.insert("is_alert".into(), json!(true));
        }
    }
    match allowed {
        Some(true) => more.extend([
            ("action_id".to_owned(), json!(1)),
            ("disposition_id".to_owned(), json!(1)),
            ("status_id".to_owned(), json!(1)),
        ]),
        Some(false) => more.extend([
            ("action_id".to_owned(), json!(2)),
            ("disposition_id".to_owned(), json!(2)),
            ("status_id".to_owned(), json!(2)),
        ]),
        None => more.extend([("action_id".to_owned(), json!(0)), ("status_id".to_owned(), json!(0))]),
    }
    if violation.is_some() {
        // of a finding this says how far somebody has got with it: nobody has looked yet
        more.insert("status_id".into(), json!(1));
    }
    if let Some(fields) = event.as_object_mut() {
        fields.extend(more);
    }
    remove_nulls(&mut event, 0);
    event
}

/// What is not known is left out. Inputs may be nested as deeply as the log takes them, and no deeper.
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

fn severity(entry: &Entry) -> (u8, &'static str) {
    let level = match &entry.record.body {
        Body::SecurityViolation(violation) => Some(violation.risk_level.as_str()),
        Body::ToolAttempt(attempt) => {
            attempt.classification.as_ref().and_then(|classification| classification.get("risk_level")?.as_str())
        }
        Body::RanWithoutVerdict(_) => Some("high"),
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
