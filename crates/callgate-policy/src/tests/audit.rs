use super::super::{AuditSettings, Locations, Severity, SyncMode};
use super::*;
use std::time::Duration;

fn settings(text: &str) -> AuditSettings {
    Policy::from_yaml(text, "test.yaml").unwrap_or_else(|error| panic!("{error}")).audit_settings().clone()
}

fn findings(text: &str) -> Vec<String> {
    let policy = Policy::from_yaml(text, "test.yaml").unwrap().with_home("/home/ada");
    let findings = policy.lint(&root_around);
    let serious = findings.iter().filter(|finding| finding.severity == Severity::Error);
    serious.map(|finding| format!("{} {}", finding.code, finding.mistake.position.line)).collect()
}

#[test]
fn the_section_says_where_the_log_lies_and_how_it_is_kept() {
    let text = "audit:\n  directory: ~/logs/callgate\n  key: /etc/callgate/audit.key\n  sync: interval 500ms\n  \
                segment_bytes: 1000000\n  segment_age: 1day\n  checkpoint_entries: 10\n  checkpoint_age: 5m\n  compress: false\n  \
                checkpoints:\n    file: /mnt/elsewhere/checkpoints.jsonl\n    command: [logger, -t, callgate]\n    \
                webhook: [https://log.example/hook]\n";
    let expected = AuditSettings {
        directory: Some("~/logs/callgate".into()),
        key: Some("/etc/callgate/audit.key".into()),
        sync: Some(SyncMode::Interval(Duration::from_millis(500))),
        segment_bytes: Some(1_000_000),
        segment_age: Some(Duration::from_secs(24 * 60 * 60)),
        checkpoint_entries: Some(10),
        checkpoint_age: Some(Duration::from_secs(300)),
        compress: Some(false),
        checkpoint_files: vec!["/mnt/elsewhere/checkpoints.jsonl".into()],
        checkpoint_command: ["logger", "-t", "callgate"].map(str::to_owned).to_vec(),
        checkpoint_webhooks: vec!["https://log.example/hook".into()],
    };
    assert_eq!(settings(text), expected);
    assert_eq!(settings("extends: standard\n"), AuditSettings::default());
    let stored: AuditSettings = serde_json::from_value(serde_json::to_value(&expected).unwrap()).unwrap();
    assert_eq!(stored, expected, "as the cache keeps it");
}

#[test]
fn mistakes_are_shown_by_place() {
    for (text, message) in [
        ("audit: {sinc: always}", "did you mean `sync`?"),
        ("audit: off", "expected a mapping for `audit`"),
        ("audit: {enabled: false}", "unknown key `enabled`"),
        ("audit: {sync: never}", "write `always`, `interval`, `interval 500ms` or `os`"),
        ("audit: {directory: logs}", "write an absolute path"),
        ("audit: {directory: ./logs}", "write an absolute path"),
        ("audit: {directory: ~/../logs}", "write an absolute path"),
        ("audit: {directory: /}", "write an absolute path"),
        ("audit: {key: audit.key}", "write an absolute path"),
        ("audit: {segment_bytes: 10}", "the minimum is 65536"),
        ("audit: {segment_bytes: lots}", "expected a whole number"),
        ("audit: {segment_age: soon}", "invalid duration `soon`"),
        ("audit: {segment_age: 1s}", "the minimum is 1m"),
        ("audit: {checkpoint_entries: 0}", "the minimum is 1"),
        ("audit: {compress: maybe}", "true or false"),
        ("audit: {checkpoints: {file: here}}", "write an absolute path"),
        ("audit: {checkpoints: {command: []}}", "missing program"),
        ("audit: {checkpoints: {webhook: ftp://x}}", "write a URL that starts with https://"),
        ("audit: {checkpoints: {email: x}}", "unknown key `email`"),
    ] {
        let error = Policy::from_yaml(text, "test.yaml").map(|_| ()).expect_err(text).to_string();
        assert!(error.contains(message) && error.contains("test.yaml:1:"), "{text}: {error}");
    }
}

#[test]
fn the_owner_of_the_machine_comes_first_and_a_project_has_no_say() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("project")).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(path(name), text).unwrap();
        path(name)
    };
    let section = |place: &str, file: &str| {
        format!("extends: standard\naudit: {{directory: /{place}/log, checkpoints: {{file: {file}}}}}\n")
    };
    let store = super::super::TrustStore::new(path("trusted"));
    let project = write("project/callgate.yaml", &section("project", "/project/sent"));
    let mut locations = Locations {
        working: None,
        directory: Some(path("project")),
        workspace: Some(path("project")),
        managed: None,
        user: None,
        trusted: Some(store),
    };
    let audit = |locations: &Locations| Policy::layered(locations).unwrap().audit_settings().clone();
    assert_eq!(audit(&locations), AuditSettings::default());
    let trusting = locations.trusted.as_ref().unwrap();
    trusting.trust(&project).unwrap();
    assert_eq!(audit(&locations), AuditSettings::default(), "not even where a person has trusted it");
    let lint = Policy::layered(&locations).unwrap().lint(&root_around);
    assert!(lint.iter().any(|finding| finding.code == "unheard-audit"), "{lint:?}");

    locations.user = Some(write("user.yaml", &section("user", "/user/sent")));
    assert_eq!(audit(&locations).directory.as_deref(), Some("/user/log"));
    locations.managed =
        Some(write("managed.yaml", "audit: {directory: /managed/log, checkpoints: {file: /managed/sent}}\n"));
    let both = audit(&locations);
    assert_eq!(both.directory.as_deref(), Some("/managed/log"));
    assert_eq!(both.checkpoint_files, ["/managed/sent", "/user/sent"], "nobody takes a place away");
}

#[test]
fn a_log_inside_the_boundary_is_an_error() {
    let here = std::env::current_dir().unwrap();
    let with = |roots: &str, audit: &str| format!("boundary:\n  roots: [{roots}]\naudit:\n  {audit}\n");
    let inside = format!("directory: {}/logs", here.display());
    for (text, expected) in [
        (with("\".\"", "directory: /var/log/callgate"), vec![]),
        (with("\".\"", &inside), vec!["log-in-boundary 4"]),
        (with("\"/srv/**\"", "directory: /srv/logs/callgate"), vec!["log-in-boundary 4"]),
        (with("\"/srv\"", "directory: /srv_logs/callgate"), vec![]),
        (with("\"/srv\", \"!/srv/logs\"", "directory: /srv/logs/callgate"), vec![]),
        (with("\"~/work\"", "key: ~/work/audit.key"), vec!["log-in-boundary 4"]),
        (with("\"@temporary\"", "directory: /tmp/callgate"), vec!["log-in-boundary 4"]),
        (with("\"/opt\"", "sync: os"), vec![]),
    ] {
        assert_eq!(findings(&text), expected, "{text}");
    }
}

#[test]
fn a_boundary_around_the_usual_place_of_the_log_is_an_error() {
    let Some(usual) = AuditSettings::default_directory() else { return };
    let root = usual.ancestors().nth(2).unwrap().display();
    assert_eq!(findings(&format!("boundary:\n  roots: [\".\", \"{root}\"]\n")), ["log-in-boundary 2"]);
    let moved = format!("boundary:\n  roots: [\"{root}\"]\naudit: {{directory: /nowhere/else}}\n");
    assert!(findings(&moved).is_empty());
}
