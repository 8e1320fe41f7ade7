//! Sending entries to an OpenTelemetry collector: OTLP/JSON over HTTP (feature `opentelemetry`).

use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use ureq::Agent;

use super::{REQUEST, open_telemetry};
use crate::error::AuditError;
use crate::read::LogLine;

/// How often a request is tried that the collector asks to be sent again.
const TRIES: u32 = 4;
/// The longest answer that is looked at.
const MAXIMUM_ANSWER: u64 = 64 * 1024;

/// Why entries did not reach the collector.
#[derive(Debug, Error)]
pub enum CollectorError {
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] AuditError),
    /// The collector could not be reached, or gave no answer in time.
    #[error("the collector cannot be reached: {0}")]
    Unreachable(&'static str),
    /// The collector answered with something else than success.
    #[error("the collector answered {0}")]
    Refused(u16),
    /// The collector took only some of the records.
    #[error("the collector rejected {rejected} records: {message}")]
    Partial {
        /// How many it did not take.
        rejected: u64,
        /// Why, in its own words.
        message: String,
    },
}

/// A collector that takes logs over HTTP.
///
/// ```no_run
/// use callgate_audit::export::OtlpCollector;
/// use callgate_audit::{LogSettings, read::Entries};
///
/// let entries = Entries::open(&LogSettings::of_user()?.directory)?;
/// OtlpCollector::new("http://localhost:4318/v1/logs").send(entries)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct OtlpCollector {
    /// It may hold a token, so it is never shown.
    endpoint: String,
    headers: Vec<(String, String)>,
    agent: Agent,
}

callgate_model::debug_fields!(OtlpCollector);

impl OtlpCollector {
    /// The collector at a URL, usually `http://localhost:4318/v1/logs`. `https:` needs a build with TLS (`webhook-tls`).
    pub fn new(endpoint: impl Into<String>) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(10)))
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        OtlpCollector { endpoint: endpoint.into(), headers: Vec::new(), agent: config.into() }
    }

    /// With a header in every request, such as `authorization`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends entries, a thousand in a request; returns how many.
    pub fn send(&self, lines: impl IntoIterator<Item = Result<LogLine, AuditError>>) -> Result<u64, CollectorError> {
        let mut waiting = Vec::new();
        let mut count = 0_u64;
        for line in lines {
            waiting.push(open_telemetry::record(&line?.entry));
            count = count.saturating_add(1);
            if waiting.len() >= REQUEST {
                self.post(&open_telemetry::request(std::mem::take(&mut waiting)))?;
            }
        }
        if !waiting.is_empty() {
            self.post(&open_telemetry::request(waiting))?;
        }
        Ok(count)
    }

    fn post(&self, request: &Value) -> Result<(), CollectorError> {
        let body = request.to_string();
        let mut pause = Duration::from_millis(100);
        for last in (0..TRIES).rev().map(|left| left == 0) {
            match self.try_once(body.as_bytes()) {
                // those that OTLP says to send again
                Err(CollectorError::Refused(429 | 502 | 503 | 504) | CollectorError::Unreachable(_)) if !last => {
                    std::thread::sleep(pause);
                    pause = pause.saturating_mul(3);
                }
                other => return other,
            }
        }
        Ok(())
    }

    fn try_once(&self, body: &[u8]) -> Result<(), CollectorError> {
        let mut request = self.agent.post(&self.endpoint).header("content-type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        // the error's own text may hold the URL
        let mut answer = request.send(body).map_err(|error| match error {
            ureq::Error::Timeout(_) => CollectorError::Unreachable("timed out"),
            ureq::Error::ConnectionFailed | ureq::Error::HostNotFound | ureq::Error::Io(_) => {
                CollectorError::Unreachable("no connection")
            }
            _ => CollectorError::Unreachable("the request failed"),
        })?;
        if !answer.status().is_success() {
            return Err(CollectorError::Refused(answer.status().as_u16()));
        }
        let text = answer.body_mut().with_config().limit(MAXIMUM_ANSWER).read_to_string().unwrap_or_default();
        let partial =
            serde_json::from_str::<Value>(&text).ok().and_then(|answer| answer.get("partialSuccess").cloned());
        let rejected = partial.as_ref().and_then(|partial| number(partial.get("rejectedLogRecords")?)).unwrap_or(0);
        if rejected == 0 {
            return Ok(());
        }
        let message = partial.as_ref().and_then(|partial| partial.get("errorMessage")?.as_str()).unwrap_or_default();
        Err(CollectorError::Partial { rejected, message: message.chars().take(500).collect() })
    }
}

/// A 64-bit number of OTLP's JSON: a text, or a number.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::read::Entries;

    /// A collector that gives these answers, one a request, and hands out what it received.
    fn receiver(
        answers: &'static [(&'static str, &'static str)],
    ) -> (String, std::thread::JoinHandle<Vec<(String, Value)>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/v1/logs?token=hidden", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let mut received = Vec::new();
            for (status, body) in answers {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(&stream);
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    let line = line.to_ascii_lowercase();
                    if let Some(rest) = line.strip_prefix("content-length:") {
                        length = rest.trim().parse().unwrap();
                    }
                    head.push_str(&line);
                }
                let mut bytes = vec![0; length];
                reader.read_exact(&mut bytes).unwrap();
                received.push((head, serde_json::from_slice(&bytes).unwrap()));
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
                (&stream).write_all(answer.as_bytes()).unwrap();
            }
            received
        });
        (endpoint, server)
    }

    fn send(endpoint: &str) -> Result<u64, CollectorError> {
        let (_base, settings) = crate::read::tests::session();
        let collector = OtlpCollector::new(endpoint).header("authorization", "Bearer x");
        collector.send(Entries::open(&settings.directory).unwrap())
    }

    #[test]
    fn entries_reach_a_collector_in_its_own_form_and_are_sent_again_when_it_is_busy() {
        let (endpoint, server) = receiver(&[("503 Busy", ""), ("200 OK", "{}")]);
        let count = send(&endpoint).unwrap();
        let received = server.join().unwrap();
        assert_eq!(received[0].1, received[1].1);
        let (head, request) = &received[1];
        assert!(head.starts_with("post /v1/logs") && head.contains("content-type: application/json"), "{head}");
        assert!(head.contains("authorization: bearer x"));
        let records = request["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap();
        assert_eq!(records.len() as u64, count);
    }

    #[test]
    fn what_a_collector_does_not_take_is_told() {
        const PARTIAL: &str = r#"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}"#;
        let (endpoint, server) = receiver(&[("200 OK", PARTIAL), ("400 Bad", "")]);
        let error = send(&endpoint).unwrap_err();
        assert!(matches!(&error, CollectorError::Partial { rejected: 2, message } if message == "too old"), "{error}");
        assert!(matches!(send(&endpoint), Err(CollectorError::Refused(400))));
        server.join().unwrap();
    }

    #[test]
    fn a_url_is_never_shown() {
        let error = send("http://127.0.0.1:1/v1/logs?token=hidden").unwrap_err();
        assert!(matches!(error, CollectorError::Unreachable(_)));
        let collector = OtlpCollector::new("http://127.0.0.1:1/v1/logs?token=hidden");
        assert!(!format!("{error} {error:?} {collector:?}").contains("hidden"));
    }
}
