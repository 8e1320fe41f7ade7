use serde_json::Value;

use super::*;
use crate::read::Entries;

fn exported(format: Format) -> (u64, String) {
    let (_base, settings) = crate::read::tests::session();
    let mut out = Vec::new();
    let count = export(Entries::open(&settings.directory).unwrap(), format, &mut out).unwrap();
    (count, String::from_utf8(out).unwrap())
}

#[test]
fn json_is_the_log_itself() {
    let (count, text) = exported(Format::Json);
    assert_eq!(text.lines().count() as u64, count);
    assert!(text.lines().all(|line| crate::line::Link::parse(line.as_bytes()).is_some()));
}

#[test]
fn every_ocsf_event_has_what_its_class_requires() {
    let (count, text) = exported(Format::Ocsf);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len() as u64, count);
    for event in &events {
        let number = |name: &str| event[name].as_u64().unwrap_or_else(|| panic!("{name}: {event}"));
        assert_eq!(number("type_uid"), number("class_uid") * 100 + number("activity_id"));
        assert_eq!(number("category_uid"), number("class_uid") / 1000);
        assert!(number("severity_id") <= 6 && number("time") > 1_700_000_000_000);
        assert_eq!(event["metadata"]["product"]["name"], "callgate");
        match number("class_uid") {
            6003 => assert!(event["api"]["operation"].is_string()),
            2004 => assert!(event["finding_info"]["title"].is_string() && event["finding_info"]["uid"].is_string()),
            other => panic!("{other}"),
        }
    }
    assert!(events.iter().any(|event| event["class_uid"] == 2004 && event["severity_id"].as_u64() >= Some(4)));
}

#[test]
fn open_telemetry_requests_have_records_with_attributes() {
    let (count, text) = exported(Format::OpenTelemetry);
    let request: Value = serde_json::from_str(&text).unwrap();
    let records = request["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap();
    assert_eq!(records.len() as u64, count);
    for record in records {
        assert!(record["timeUnixNano"].as_str().unwrap().len() == 19);
        assert!(record["eventName"].as_str().unwrap().starts_with("callgate."));
        for attribute in record["attributes"].as_array().unwrap() {
            let value = attribute["value"].as_object().unwrap();
            assert!(attribute["key"].is_string() && value.len() <= 1, "{attribute}");
        }
    }
}

#[test]
fn csv_has_as_many_cells_in_every_row() {
    let (count, text) = exported(Format::Csv);
    assert!(text.starts_with("seq,time,kind,"));
    assert_eq!(text.matches("\r\n").count() as u64, count + 1);
}
