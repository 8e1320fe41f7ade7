//! A webhook behind TLS: a real server (`openssl s_server`) with certificates made for the test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use callgate::approvals::channel::{SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookApprover, WebhookError, signature};
use callgate::approvals::{Answer, ApprovalDecision, ApprovalId, Approver as _, AskError, Question};
use callgate::clock::Timestamp;
use serde_json::json;

const SECRET: &[u8] = b"a secret of both sides";

fn openssl(directory: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).current_dir(directory).output().expect("openssl is installed");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, and a certificate that it gave to `localhost`.
fn certificates() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let authority =
        ["req", "-x509", "-subj", "/CN=authority", "-days", "2", "-keyout", "authority.key", "-out", "authority.pem"];
    openssl(path, &[&authority[..], &key].concat());
    std::fs::write(path.join("extensions"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n").unwrap();
    openssl(
        path,
        &[&["req", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"][..], &key].concat(),
    );
    let signed = ["x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-days", "2"];
    openssl(path, &[&signed[..], &["-CAcreateserial", "-extfile", "extensions", "-out", "server.pem"]].concat());
    directory
}

/// A server that is gone when the test is.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says a signed yes to whoever asks first.
fn serve(directory: &Path) -> (Server, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("openssl")
        .args([
            "s_server",
            "-quiet",
            "-accept",
            &format!("127.0.0.1:{port}"),
            "-cert",
            "server.pem",
            "-key",
            "server.key",
        ])
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut output, mut input) = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
    thread::spawn(move || {
        let mut request = Vec::new();
        let mut buffer = [0_u8; 4096];
        loop {
            let count = output.read(&mut buffer).unwrap();
            if count == 0 {
                return;
            }
            request.extend(buffer.iter().take(count));
            let text = String::from_utf8_lossy(&request).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let header = |name: &str| {
                head.lines().find_map(|line| {
                    let (found, value) = line.split_once(": ")?;
                    found.eq_ignore_ascii_case(name).then(|| value.to_owned())
                })
            };
            if body.len() < header("content-length").unwrap().parse().unwrap() {
                continue;
            }
            let question: Question = serde_json::from_str(body).unwrap();
            let at = Timestamp::from_milliseconds(header(TIMESTAMP_HEADER).unwrap().parse().unwrap());
            let yes = r#"{"decision":"approved"}"#;
            let signed = signature(SECRET, "answer", at, question.id.as_str(), yes.as_bytes()).unwrap();
            let length = yes.len();
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{SIGNATURE_HEADER}: {signed}\r\n\r\n{yes}");
            input.write_all(answer.as_bytes()).unwrap();
            input.flush().unwrap();
        }
    });
    for _ in 0..500 {
        // the first connection that is no TLS is turned away, and the server goes on
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return (Server(server), port);
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("openssl s_server does not listen");
}

fn question() -> Question {
    let now = Timestamp::now();
    serde_json::from_value(json!({
        "id": ApprovalId::random().unwrap(), "tool": "Bash", "key": null, "session": null, "agent": null, "scope": null,
        "directory": null, "request": {"command": "make"}, "effects": [], "risk_level": "low", "rule": null, "place": null,
        "reason": "why", "asked_at": now, "deadline": now.after(Duration::from_secs(20)),
    }))
    .unwrap()
}

#[test]
fn a_service_is_believed_by_the_authority_that_was_given() {
    let directory = certificates();
    let authority = std::fs::read(directory.path().join("authority.pem")).unwrap();
    let (_server, port) = serve(directory.path());
    let approver = WebhookApprover::new(&format!("https://localhost:{port}/ask"), SECRET).unwrap();
    let approver = approver.authority(&authority).unwrap();
    assert_eq!(approver.ask(&question(), &|| true), Ok(Answer::new(ApprovalDecision::Approved)));
}

#[test]
fn a_service_of_another_authority_or_another_name_is_not_believed() {
    let directory = certificates();
    let others = certificates();
    let read = |directory: &tempfile::TempDir| std::fs::read(directory.path().join("authority.pem")).unwrap();
    let (_server, port) = serve(directory.path());
    let at = |host: &str| WebhookApprover::new(&format!("https://{host}:{port}/ask"), SECRET).unwrap();
    let strangers = [
        at("localhost"),
        at("localhost").authority(&read(&others)).unwrap(),
        at("127.0.0.1").authority(&read(&directory)).unwrap(),
    ];
    for stranger in strangers {
        let refused = stranger.ask(&question(), &|| true);
        assert!(matches!(refused, Err(AskError::Unavailable(_) | AskError::Unusable(_))), "{refused:?}");
    }
    let known = at("localhost").authority(&read(&directory)).unwrap();
    assert!(known.ask(&question(), &|| true).is_ok(), "the server was there all the time");
}

#[test]
fn what_is_no_certificate_is_no_authority() {
    for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"] {
        let approver = WebhookApprover::new("https://localhost/", SECRET).unwrap();
        assert_eq!(approver.authority(text.as_bytes()).err(), Some(WebhookError::Authority), "{text}");
    }
}
