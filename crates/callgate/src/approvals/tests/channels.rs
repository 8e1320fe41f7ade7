//! Commands, webhooks and chains: only a clear yes is a yes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::approvals::channel::{AllAgree, CommandApprover, FirstAnswer, MAXIMUM_REPLY, read_reply};

const OPEN: &dyn Fn() -> bool = &|| true;

#[test]
fn a_reply_is_a_clear_answer_or_none() {
    let question = question();
    let id = question.id.to_string();
    let decision = |text: &str| read_reply(text.as_bytes(), &question).map(|answer| answer.decision).ok();
    assert_eq!(decision(r#"{"decision": "approved"}"#), Some(ApprovalDecision::Approved));
    assert_eq!(decision(r#"{"decision":"approved_for_session","by":"x"}"#), Some(ApprovalDecision::ApprovedForSession));
    assert_eq!(decision(r#"{"decision":"denied","reason":"no"}"#), Some(ApprovalDecision::Denied));
    assert_eq!(decision(&format!(r#"{{"decision":"abort","id":"{id}"}}"#)), Some(ApprovalDecision::Abort));
    let absurd = [
        "",
        "yes",
        "true",
        "null",
        "\"approved\"",
        "[\"approved\"]",
        "{}",
        r#"{"decision": true}"#,
        r#"{"decision": "Approved"}"#,
        r#"{"decision": "ask"}"#,
        r#"{"decision": null}"#,
        r#"{"decision": ["approved"]}"#,
        r#"{"decision": "approved"} trailing"#,
        r#"{"decision": "approved", "decision": "denied"}"#,
        r#"{"decision": "approved", "approved": false}"#,
        r#"{"decision": "approved", "reason": 7}"#,
        r#"{"decision": "approved", "id": "0000000000000000"}"#,
        r#"{"decision": "approved_for_session", "proposal": 0}"#,
        r#"{"decision": "approved", "always": 0}"#,
        r#"{"decision": "approved", "always": null}"#,
    ];
    for text in absurd {
        assert_eq!(decision(text), None, "{text}");
    }
    let long = format!("{{\"decision\": \"approved\", \"reason\": \"{}\"}}", "x".repeat(MAXIMUM_REPLY));
    assert_eq!(decision(&long), None);
}

mod command {
    use super::*;

    fn ask(script: &str) -> Result<Answer, AskError> {
        ask_for(script, Duration::from_secs(10))
    }

    fn ask_for(script: &str, time: Duration) -> Result<Answer, AskError> {
        CommandApprover::new("sh", ["-c", script]).ask(&question_for(time), OPEN)
    }

    #[test]
    fn a_command_reads_the_question_and_answers() {
        let answer = ask(r#"grep -q '"tool":"shell_exec"' && echo '{"decision":"approved","reason":"fine"}'"#);
        assert_eq!(answer, Ok(Answer::new(ApprovalDecision::Approved).because("fine")));
    }

    #[test]
    fn a_command_that_fails_says_nothing_or_nonsense_has_not_said_yes() {
        let scripts = [
            "exit 1",
            "true",
            "echo yes",
            "echo '{\"decision\":\"approved\"}'; exit 3",
            "echo '{\"decision\":\"approved\"}'; kill -9 $$",
            "head -c 200000 /dev/zero",
            "cat",
        ];
        for script in scripts {
            assert!(matches!(ask(script), Err(AskError::Unusable(_))), "{script}");
        }
        let missing = CommandApprover::new("/no/such/program", [""; 0]).ask(&question(), OPEN);
        assert!(matches!(missing, Err(AskError::Unavailable(_))));
    }

    #[test]
    fn a_slow_command_is_killed_with_what_it_started() {
        let begin = Instant::now();
        assert_eq!(ask_for("sleep 60 & sleep 60", Duration::from_millis(200)), Err(AskError::TimedOut));
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_command_is_stopped_when_somebody_else_answered() {
        let closed = CommandApprover::new("sleep", ["60"]).ask(&question(), &|| false);
        assert_eq!(closed, Err(AskError::Closed));
    }
}

#[cfg(feature = "webhook")]
mod webhook {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::approvals::channel::{SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookApprover, WebhookError, signature};

    const SECRET: &[u8] = b"a secret of both sides";

    /// Serves one request; the answer and its signature are made from timestamp, id and body of the request.
    fn serve(reply: impl FnOnce(Timestamp, &str, &[u8]) -> String + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/ask", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0_u8; 4096];
            let (head, body) = loop {
                let count = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..count]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length: usize = header(head, "content-length").unwrap().parse().unwrap();
                if body.len() >= length {
                    break (head.to_owned(), body.to_owned());
                }
            };
            let timestamp = Timestamp::from_milliseconds(header(&head, TIMESTAMP_HEADER).unwrap().parse().unwrap());
            let question: Question = serde_json::from_str(&body).unwrap();
            let expected = signature(SECRET, "request", timestamp, question.id.as_str(), body.as_bytes());
            assert_eq!(header(&head, SIGNATURE_HEADER), expected, "the request is signed");
            let response = reply(timestamp, question.id.as_str(), body.as_bytes());
            let _ = stream.write_all(response.as_bytes());
        });
        address
    }

    fn header(head: &str, name: &str) -> Option<String> {
        head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }

    fn response(status: &str, body: &str, signature: Option<&str>) -> String {
        let signature = signature.map(|signature| format!("{SIGNATURE_HEADER}: {signature}\r\n")).unwrap_or_default();
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{signature}Connection: close\r\n\r\n{body}", body.len())
    }

    fn ask(address: &str) -> Result<Answer, AskError> {
        WebhookApprover::new(address, SECRET).unwrap().ask(&question_for(Duration::from_secs(5)), OPEN)
    }

    const YES: &str = r#"{"decision":"approved"}"#;

    #[test]
    fn a_signed_answer_counts() {
        let address = serve(|timestamp, id, _| {
            let signed = signature(SECRET, "answer", timestamp, id, YES.as_bytes());
            response("200 OK", YES, signed.as_deref())
        });
        assert_eq!(ask(&address), Ok(Answer::new(ApprovalDecision::Approved)));
    }

    #[test]
    fn an_answer_that_is_unsigned_forged_replayed_or_turned_round_does_not() {
        type Reply = fn(Timestamp, &str, &[u8]) -> Option<String>;
        let forgeries: [Reply; 6] = [
            |_, _, _| None,
            |_, _, _| Some("v1=".to_owned() + &"0".repeat(64)),
            |at, id, _| signature(b"another secret, as long", "answer", at, id, YES.as_bytes()),
            |at, _, _| signature(SECRET, "answer", at, "0000000000000000", YES.as_bytes()),
            |_, id, _| signature(SECRET, "answer", Timestamp::from_milliseconds(1), id, YES.as_bytes()),
            |at, id, _| signature(SECRET, "request", at, id, YES.as_bytes()),
        ];
        for forgery in forgeries {
            let address = serve(move |at, id, body| response("200 OK", YES, forgery(at, id, body).as_deref()));
            assert!(matches!(ask(&address), Err(AskError::Unusable(_))));
        }
    }

    #[test]
    fn any_status_but_200_is_a_refusal_and_redirects_are_not_followed() {
        for status in ["500 Oops", "404 Not Found", "204 No Content", "302 Found\r\nLocation: /yes"] {
            let address = serve(move |at, id, _| {
                let signed = signature(SECRET, "answer", at, id, YES.as_bytes());
                response(status, YES, signed.as_deref())
            });
            assert!(ask(&address).is_err(), "{status}");
        }
    }

    #[test]
    fn an_answer_that_trickles_in_ends_with_the_question() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").unwrap();
            while stream.write_all(b" ").is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        let approver = WebhookApprover::new(&address, SECRET).unwrap();
        assert_eq!(approver.ask(&question_for(Duration::from_millis(200)), OPEN), Err(AskError::TimedOut));
    }

    #[test]
    fn an_answer_that_is_absurd_is_a_refusal_however_well_it_is_signed() {
        let long = format!("{YES}{}", " ".repeat(MAXIMUM_REPLY));
        for body in
            ["", "yes", "[]", r#"{"decision":"ask"}"#, r#"{"decision":"approved","id":"0000000000000000"}"#, &long]
        {
            let body = body.to_owned();
            let address = serve(move |at, id, _| {
                let signed = signature(SECRET, "answer", at, id, body.as_bytes());
                response("200 OK", &body, signed.as_deref())
            });
            assert!(matches!(ask(&address), Err(AskError::Unusable(_))));
        }
    }

    #[test]
    fn a_service_that_is_not_there_or_hangs_is_a_refusal() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let approver = WebhookApprover::new(&address, SECRET).unwrap();
        assert_eq!(approver.ask(&question_for(Duration::from_millis(150)), OPEN), Err(AskError::TimedOut));
        drop(listener);
        assert!(matches!(ask(&address), Err(AskError::Unavailable(_))));
    }

    #[test]
    fn unencrypted_addresses_are_for_this_machine_only_and_secrets_are_long() {
        let good = ["http://127.0.0.1:8/x", "http://localhost:8", "http://[::1]:8/"];
        let bad = ["http://example.com/", "http://127.0.0.1.example.com", "ftp://127.0.0.1", "approve", "", "https://"];
        for address in good {
            assert!(WebhookApprover::new(address, SECRET).is_ok(), "{address}");
        }
        for address in bad {
            assert_eq!(WebhookApprover::new(address, SECRET).err(), Some(WebhookError::Address), "{address}");
        }
        assert_eq!(WebhookApprover::new(good[0], b"short").err(), Some(WebhookError::Secret));
        let encrypted = WebhookApprover::new("https://approve.example.com/x", SECRET).err();
        assert_eq!(encrypted, (!cfg!(feature = "webhook-tls")).then_some(WebhookError::NoTls));
    }
}

mod chain {
    use super::*;

    type Said = Option<ApprovalDecision>;

    fn channels(says: &[Said]) -> Vec<Arc<dyn Approver>> {
        says.iter().map(|said| -> Arc<dyn Approver> { Always::saying(said.map(Answer::new)) }).collect()
    }

    /// Waits until nobody wants its answer any more.
    struct Slow;

    impl Approver for Slow {
        fn ask(&self, _: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError> {
            while open() {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(AskError::Closed)
        }
    }

    const YES: Said = Some(ApprovalDecision::Approved);
    const SESSION: Said = Some(ApprovalDecision::ApprovedForSession);
    const NO: Said = Some(ApprovalDecision::Denied);

    #[test]
    fn the_first_answer_counts_and_those_who_can_ask_nobody_are_passed_over() {
        let first =
            |says: &[Said]| FirstAnswer::new(channels(says)).ask(&question(), OPEN).map(|answer| answer.decision);
        assert_eq!(first(&[YES]), Ok(ApprovalDecision::Approved));
        assert_eq!(first(&[None, NO]), Ok(ApprovalDecision::Denied));
        assert!(matches!(first(&[None, None]), Err(AskError::Unavailable(_))));
        assert!(matches!(first(&[]), Err(AskError::Unavailable(_))));
        for elsewhere_first in [true, false] {
            let mut both = channels(&[None]);
            both.insert(usize::from(!elsewhere_first), Arc::new(crate::approvals::channel::Elsewhere));
            let open = FirstAnswer::new(both).ask(&question(), OPEN);
            assert_eq!(open, Err(AskError::Closed), "the question stays open for a second terminal");
        }
        let mut slow = channels(&[NO]);
        slow.insert(0, Arc::new(Slow));
        let answer = FirstAnswer::new(slow).ask(&question(), OPEN);
        assert_eq!(answer.map(|answer| answer.decision), Ok(ApprovalDecision::Denied));
    }

    #[test]
    fn all_must_say_yes() {
        let all = |says: &[Said]| AllAgree::new(channels(says)).ask(&question(), OPEN).map(|answer| answer.decision);
        assert_eq!(all(&[YES, YES]), Ok(ApprovalDecision::Approved));
        assert_eq!(all(&[SESSION, SESSION]), Ok(ApprovalDecision::ApprovedForSession));
        assert_eq!(all(&[SESSION, YES]), Ok(ApprovalDecision::Approved), "as long as all of them say");
        assert_eq!(all(&[YES, NO]), Ok(ApprovalDecision::Denied));
        assert!(all(&[YES, None]).is_err());
        assert!(all(&[]).is_err());
    }

    #[test]
    fn an_unusable_answer_in_a_chain_is_a_refusal() {
        struct Nonsense;
        impl Approver for Nonsense {
            fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
                Err(AskError::Unusable("nonsense".into()))
            }
        }
        let mut both: Vec<Arc<dyn Approver>> = vec![Arc::new(Slow), Arc::new(Nonsense)];
        assert!(matches!(FirstAnswer::new(both.clone()).ask(&question(), OPEN), Err(AskError::Unusable(_))));
        both.extend(channels(&[YES]));
        assert!(matches!(AllAgree::new(both).ask(&question(), OPEN), Err(AskError::Unusable(_))));
    }

    #[test]
    fn a_slow_chain_ends_with_the_question() {
        let slow: Vec<Arc<dyn Approver>> = vec![Arc::new(Slow)];
        let question = question_for(Duration::from_millis(80));
        assert_eq!(AllAgree::new(slow.clone()).ask(&question, OPEN), Err(AskError::TimedOut));
        assert_eq!(FirstAnswer::new(slow).ask(&self::question(), &|| false), Err(AskError::Closed));
    }
}
