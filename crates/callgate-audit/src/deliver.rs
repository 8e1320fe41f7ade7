//! Sending checkpoints elsewhere, so that a log rewritten with a stolen key is still noticed.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::checkpoint::SignedCheckpoint;

/// A place that checkpoints are sent to.
pub trait Delivery: Send + Sync + fmt::Debug {
    /// How it is called in messages; without secrets.
    fn name(&self) -> String;
    /// Sends one checkpoint. The text of an error is written to the log.
    fn deliver(&self, checkpoint: &SignedCheckpoint) -> Result<(), String>;
    /// Whether delivery is fast enough to wait for it.
    fn is_quick(&self) -> bool {
        false
    }
}

/// Appends checkpoints to a file, one JSON object a line: on another disk, a mounted share, an append-only file.
#[derive(Debug, Clone)]
pub struct ToFile(pub PathBuf);

impl Delivery for ToFile {
    fn name(&self) -> String {
        format!("file {}", self.0.display())
    }

    fn deliver(&self, checkpoint: &SignedCheckpoint) -> Result<(), String> {
        let mut line = serde_json::to_vec(checkpoint).map_err(|error| error.to_string())?;
        line.push(b'\n');
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.0)
            .and_then(|mut file| file.write_all(&line))
            .map_err(|error| error.to_string())
    }

    fn is_quick(&self) -> bool {
        true
    }
}

/// Passes each checkpoint to a program on standard input, without a shell.
#[derive(Debug, Clone)]
pub struct ToCommand {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
}

impl Delivery for ToCommand {
    fn name(&self) -> String {
        format!("command {}", self.words.first().map_or("", String::as_str))
    }

    fn deliver(&self, checkpoint: &SignedCheckpoint) -> Result<(), String> {
        let (program, arguments) = self.words.split_first().ok_or("missing program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        if let Some(mut input) = child.stdin.take() {
            let mut line = serde_json::to_vec(checkpoint).map_err(|error| error.to_string())?;
            line.push(b'\n');
            // A program that does not read is judged by its exit code. A checkpoint fits into the pipe.
            let _ = input.write_all(&line);
        }
        let start = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("the program ended with {status}")),
                Ok(None) if start.elapsed() > self.timeout => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err("the program timed out".to_owned());
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// Posts each checkpoint as JSON to a URL. Anything but a 2xx answer is a failure. `https:` needs a build with TLS (feature
/// `webhook-tls`).
#[derive(Clone)]
pub struct ToWebhook {
    /// The URL. It may hold a token, so it is never shown; only its host is.
    pub url: String,
    /// How long it may take.
    pub timeout: Duration,
}

impl fmt::Debug for ToWebhook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

impl Delivery for ToWebhook {
    fn name(&self) -> String {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        format!("webhook {}", authority.rsplit('@').next().unwrap_or_default())
    }

    fn deliver(&self, checkpoint: &SignedCheckpoint) -> Result<(), String> {
        let body = serde_json::to_vec(checkpoint).map_err(|error| error.to_string())?;
        let agent: ureq::Agent =
            ureq::Agent::config_builder().timeout_global(Some(self.timeout)).max_redirects(0).build().into();
        let answer = agent
            .post(&self.url)
            .header("content-type", "application/json")
            .send(body.as_slice())
            // the error's own text may hold the URL
            .map_err(|error| match error {
                ureq::Error::StatusCode(code) => format!("the webhook answered {code}"),
                ureq::Error::Timeout(_) => "timed out".to_owned(),
                _ => "the request failed".to_owned(),
            })?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("the webhook answered {}", answer.status())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hash;
    use crate::key::AuditKey;
    use callgate_model::clock::Timestamp;

    fn checkpoint() -> SignedCheckpoint {
        SignedCheckpoint::sign(&AuditKey::from_secret(&[3; 32]), "log", 7, Hash::of(b"x"), Timestamp::now_precise())
            .unwrap()
    }

    #[test]
    fn a_command_is_judged_by_its_exit_code_and_its_time() {
        let command = |words: &[&str]| ToCommand {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            timeout: Duration::from_millis(300),
        };
        assert_eq!(command(&["true"]).deliver(&checkpoint()), Ok(()));
        assert!(command(&["false"]).deliver(&checkpoint()).unwrap_err().contains("exit status: 1"));
        assert_eq!(command(&["sleep", "20"]).deliver(&checkpoint()).unwrap_err(), "the program timed out");
        assert!(command(&["/no/such/program"]).deliver(&checkpoint()).is_err());
        assert!(command(&[]).deliver(&checkpoint()).is_err());
    }

    #[test]
    fn a_webhook_receives_the_checkpoint_and_its_url_is_never_shown() {
        use std::io::{BufRead, BufReader, Read};
        use std::net::TcpListener;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            ["200 OK", "500 Broken"].map(|status| {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(&stream);
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(rest) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = rest.trim().parse().unwrap();
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                (&stream).write_all(answer.as_bytes()).unwrap();
                body
            })
        });
        let hook = ToWebhook { url: format!("http://{address}/hook?token=secret"), timeout: Duration::from_secs(10) };
        let sent = checkpoint();
        assert_eq!(hook.deliver(&sent), Ok(()));
        let error = hook.deliver(&sent).unwrap_err();
        let [received, _] = server.join().unwrap();
        let received: SignedCheckpoint = serde_json::from_slice(&received).unwrap();
        assert!(received == SignedCheckpoint { time: received.time, ..sent } && received.holds());
        for shown in [error, hook.name(), format!("{hook:?}")] {
            assert!(!shown.contains("secret"), "{shown}");
        }
    }
}
