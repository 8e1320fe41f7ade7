//! Every kind of entry against what the schema says of its class.

use serde_json::Value;

use super::*;
use crate::export::tests::every_kind;

/// An attribute of a class or object of OCSF 1.9.0, as the compiled schema of that release says, as far as the export uses it:
/// its name, whether it is required, and what it takes.
type Attribute = (&'static str, bool, Takes);

enum Takes {
    Text,
    Number,
    Flag,
    /// One of these values, with their captions; the caption stands in the attribute of that name, if it is there.
    One(&'static str, &'static [(u64, &'static str)]),
    Object(&'static Object),
    Objects(&'static Object),
    Texts,
    /// Whatever the source has.
    Anything,
}

/// An object: its attributes, and of which at least one must be there.
struct Object {
    attributes: &'static [Attribute],
    at_least_one: &'static [&'static str],
}

use Takes::{Anything, Flag, Number, One, Text, Texts};

const SEVERITY: Takes = One(
    "severity",
    &[
        (0, "Unknown"),
        (1, "Informational"),
        (2, "Low"),
        (3, "Medium"),
        (4, "High"),
        (5, "Critical"),
        (6, "Fatal"),
        (99, ""),
    ],
);
const ACTION: Takes =
    One("action", &[(0, "Unknown"), (1, "Allowed"), (2, "Denied"), (3, "Observed"), (4, "Modified"), (99, "")]);
const DISPOSITION: Takes = One(
    "disposition",
    &[
        (0, "Unknown"),
        (1, "Allowed"),
        (2, "Blocked"),
        (3, "Quarantined"),
        (4, "Isolated"),
        (5, "Deleted"),
        (6, "Dropped"),
        (7, "Custom Action"),
        (8, "Approved"),
        (9, "Restored"),
        (10, "Exonerated"),
        (11, "Corrected"),
        (12, "Partially Corrected"),
        (13, "Uncorrected"),
        (14, "Delayed"),
        (15, "Detected"),
        (16, "No Action"),
        (17, "Logged"),
        (18, "Tagged"),
        (19, "Alert"),
        (20, "Count"),
        (21, "Reset"),
        (22, "Captcha"),
        (23, "Challenge"),
        (24, "Access Revoked"),
        (25, "Rejected"),
        (26, "Unauthorized"),
        (27, "Error"),
        (99, ""),
    ],
);
const RISK: Takes =
    One("risk_level", &[(0, "Info"), (1, "Low"), (2, "Medium"), (3, "High"), (4, "Critical"), (99, "")]);

const PRODUCT: Object = Object {
    attributes: &[("name", false, Text), ("vendor_name", false, Text), ("version", false, Text)],
    at_least_one: &["name", "uid"],
};
const METADATA: Object = Object {
    attributes: &[
        ("version", true, Text),
        ("product", true, Takes::Object(&PRODUCT)),
        ("uid", false, Text),
        ("original_event_uid", false, Text),
        ("sequence", false, Number),
        ("event_code", false, Text),
        ("correlation_uid", false, Text),
        ("log_name", false, Text),
        ("log_version", false, Text),
        ("profiles", false, Texts),
    ],
    at_least_one: &[],
};
const SESSION: Object = Object { attributes: &[("uid", false, Text)], at_least_one: &[] };
const APPLICATION: Object =
    Object { attributes: &[("name", false, Text), ("uid", false, Text)], at_least_one: &["uid", "name"] };
const ACTOR: Object = Object {
    attributes: &[
        ("application", false, Takes::Object(&APPLICATION)),
        ("app_name", false, Text),
        ("session", false, Takes::Object(&SESSION)),
    ],
    at_least_one: &["process", "user", "invoked_by", "session", "app_name", "app_uid"],
};
const AI_AGENT: Object = Object {
    attributes: &[("uid", true, Text), ("name", false, Text), ("instance_uid", false, Text)],
    at_least_one: &[],
};
const REQUEST: Object = Object { attributes: &[("uid", true, Text)], at_least_one: &[] };
const API: Object =
    Object { attributes: &[("operation", true, Text), ("request", false, Takes::Object(&REQUEST))], at_least_one: &[] };
const ENDPOINT: Object = Object {
    attributes: &[("name", false, Text)],
    at_least_one: &["ip", "uid", "name", "hostname", "svc_name", "instance_uid", "interface_uid", "interface_name"],
};
const POLICY: Object = Object {
    attributes: &[("name", false, Text), ("uid", false, Text), ("version", false, Text)],
    at_least_one: &["name", "uid"],
};
const FINDING_INFO: Object = Object {
    attributes: &[("uid", true, Text), ("title", false, Text), ("created_time", false, Number)],
    at_least_one: &[],
};
const EVIDENCE: Object = Object {
    attributes: &[
        ("actor", false, Takes::Object(&ACTOR)),
        ("ai_agent", false, Takes::Object(&AI_AGENT)),
        ("api", false, Takes::Object(&API)),
    ],
    at_least_one: &["actor", "api"],
};

/// What every class has, with the profile `security_control`.
const BASE: &[Attribute] = &[
    ("activity_name", false, Text),
    ("category_name", false, Text),
    ("class_name", false, Text),
    ("type_uid", true, Number),
    ("severity_id", true, SEVERITY),
    ("severity", false, Text),
    ("time", true, Number),
    ("message", false, Text),
    ("metadata", true, Takes::Object(&METADATA)),
    ("status", false, Text),
    ("unmapped", false, Anything),
    ("action_id", false, ACTION),
    ("action", false, Text),
    ("disposition_id", false, DISPOSITION),
    ("disposition", false, Text),
    ("is_alert", false, Flag),
    ("policy", false, Takes::Object(&POLICY)),
    ("risk_level_id", false, RISK),
    ("risk_level", false, Text),
];
const API_ACTIVITY: &[Attribute] = &[
    ("category_uid", true, One("category_name", &[(6, "Application Activity")])),
    ("class_uid", true, One("class_name", &[(6003, "API Activity")])),
    (
        "activity_id",
        true,
        One("activity_name", &[(0, "Unknown"), (1, "Create"), (2, "Read"), (3, "Update"), (4, "Delete"), (99, "")]),
    ),
    ("status_id", false, One("status", &[(0, "Unknown"), (1, "Success"), (2, "Failure"), (99, "")])),
    ("actor", true, Takes::Object(&ACTOR)),
    ("api", true, Takes::Object(&API)),
    ("src_endpoint", true, Takes::Object(&ENDPOINT)),
    ("ai_agent", false, Takes::Object(&AI_AGENT)),
];
const DETECTION_FINDING: &[Attribute] = &[
    ("category_uid", true, One("category_name", &[(2, "Findings")])),
    ("class_uid", true, One("class_name", &[(2004, "Detection Finding")])),
    (
        "activity_id",
        true,
        One("activity_name", &[(0, "Unknown"), (1, "Create"), (2, "Update"), (3, "Close"), (99, "")]),
    ),
    (
        "status_id",
        false,
        One(
            "status",
            &[
                (0, "Unknown"),
                (1, "New"),
                (2, "In Progress"),
                (3, "Suppressed"),
                (4, "Resolved"),
                (5, "Archived"),
                (6, "Deleted"),
                (99, ""),
            ],
        ),
    ),
    ("finding_info", true, Takes::Object(&FINDING_INFO)),
    ("evidences", false, Takes::Objects(&EVIDENCE)),
];

/// What is wrong with an object.
fn wrong(at: &str, value: &Value, attributes: &[&[Attribute]], at_least_one: &[&str]) -> Vec<String> {
    let Some(fields) = value.as_object() else { return vec![format!("{at} is no object")] };
    let all = || attributes.iter().flat_map(|list| list.iter());
    let mut found: Vec<String> = all()
        .filter(|(name, required, _)| *required && !fields.contains_key(*name))
        .map(|(name, ..)| format!("{at}.{name} is required"))
        .collect();
    if !at_least_one.is_empty() && !at_least_one.iter().any(|name| fields.contains_key(*name)) {
        found.push(format!("{at} needs one of {at_least_one:?}"));
    }
    for (name, value) in fields {
        let Some((_, _, takes)) = all().find(|(known, ..)| known == name) else {
            found.push(format!("{at}.{name} is no attribute"));
            continue;
        };
        let place = format!("{at}.{name}");
        let fits = match takes {
            Text => value.is_string(),
            Number => value.is_u64(),
            Flag => value.is_boolean(),
            Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Anything => true,
            One(sibling, values) => {
                let caption = value.as_u64().and_then(|value| values.iter().find(|(number, _)| *number == value));
                caption.is_some_and(|(number, caption)| match fields.get(*sibling).and_then(Value::as_str) {
                    // the source's own word
                    Some(said) if *number == 99 => !said.is_empty(),
                    Some(said) => said == *caption,
                    None => *number != 99,
                })
            }
            Takes::Object(object) => {
                found.extend(wrong(&place, value, &[object.attributes], object.at_least_one));
                true
            }
            Takes::Objects(object) => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                found.extend(
                    items.iter().flat_map(|item| wrong(&place, item, &[object.attributes], object.at_least_one)),
                );
                !items.is_empty()
            }
        };
        if !fits {
            found.push(format!("{place} does not take {value}"));
        }
    }
    found
}

fn wrong_event(event: &Value) -> Vec<String> {
    let class = match event["class_uid"].as_u64() {
        Some(6003) => API_ACTIVITY,
        Some(2004) => DETECTION_FINDING,
        other => return vec![format!("class {other:?}")],
    };
    let mut found = wrong("event", event, &[BASE, class], &[]);
    let number = |name: &str| event[name].as_u64().unwrap_or_default();
    if number("type_uid") != number("class_uid") * 100 + number("activity_id") {
        found.push("type_uid is class_uid * 100 + activity_id".to_owned());
    }
    let profiles = event["metadata"]["profiles"].as_array().cloned().unwrap_or_default();
    for (profile, attribute) in [("security_control", "action_id"), ("ai_operation", "ai_agent")] {
        if event.get(attribute).is_some() != profiles.contains(&json!(profile)) {
            found.push(format!("{attribute} comes with {profile}"));
        }
    }
    found
}

#[test]
fn every_kind_of_entry_becomes_an_event_that_its_class_allows() {
    for entry in every_kind() {
        let event = event(&entry);
        assert_eq!(wrong_event(&event), Vec::<String>::new(), "{event:#}");
        assert_eq!(event["metadata"]["version"], "1.9.0");
    }
}

#[test]
fn what_the_schema_does_not_allow_is_seen() {
    let entries = every_kind();
    let sound = event(&entries[0]);
    let changed = |pointer: &str, value: Value| {
        let mut event = sound.clone();
        *event.pointer_mut(pointer).unwrap() = value;
        wrong_event(&event)
    };
    for (pointer, value) in [
        ("/severity_id", json!(7)),
        ("/severity", json!("Serious")),
        ("/type_uid", json!(600_301)),
        ("/api", json!({})),
        ("/src_endpoint", json!({"port": 1})),
        ("/metadata/product", json!({})),
        ("/metadata/profiles", json!([])),
        ("/activity_name", json!("")),
        ("/disposition_id", json!(28)),
        ("/time", json!("2026-11-15")),
    ] {
        assert!(!changed(pointer, value).is_empty(), "{pointer}");
    }
}

#[test]
fn decisions_answers_and_lost_verdicts_are_told_apart() {
    let events: Vec<Value> = every_kind().iter().map(event).collect();
    let of = |kind: &str| -> Vec<(u64, u64, u64)> {
        let number = |event: &Value, name: &str| event[name].as_u64().unwrap();
        let found = events.iter().filter(|event| event["metadata"]["event_code"] == kind);
        found
            .map(|event| (number(event, "action_id"), number(event, "disposition_id"), number(event, "status_id")))
            .collect()
    };
    assert_eq!(of("tool_attempt"), [(1, 1, 1), (2, 2, 2), (0, 14, 0)], "allowed, denied, asked about");
    assert_eq!(of("approval"), [(1, 8, 1), (2, 25, 2)], "yes, no");
    assert_eq!(of("ran_without_verdict"), [(3, 15, 0)]);
    assert_eq!(of("security_violation"), [(2, 2, 1)], "blocked, and new to whoever looks at findings");
    assert_eq!(of("finished"), [(3, 17, 1), (3, 17, 2)]);
}
