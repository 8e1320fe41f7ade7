//! Asks a web service: one signed request, one signed answer.
//!
//! Both sides know a secret. The request carries `Callgate-Timestamp` (milliseconds) and `Callgate-Signature`, the
//! HMAC-SHA256 of the direction, the timestamp, the question's id and the body. The answer must carry a signature too, over the
//! same timestamp and id, which prevents forged and replayed answers.

use std::time::Duration;

use callgate_model::digest::hex;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use thiserror::Error;
use ureq::Agent;
use ureq::http::Uri;

use super::{Approver, AskError, MAXIMUM_REPLY, read_reply, time_left};
use crate::approvals::{Answer, Question};
use callgate_model::clock::Timestamp;

/// The header that carries the time of the request, in milliseconds since 1970.
pub const TIMESTAMP_HEADER: &str = "Callgate-Timestamp";
/// The header that carries the signature, as `v1=` and hexadecimal digits.
pub const SIGNATURE_HEADER: &str = "Callgate-Signature";
/// The shortest secret.
const SHORTEST_SECRET: usize = 16;
/// A request may take this long at least, so that a short deadline is a refusal by the deadline and not by a rounding.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// Why a webhook cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WebhookError {
    /// No address that can be asked.
    #[error("a webhook's address is http://… on this machine or https://…")]
    Address,
    /// An `https:` address in a build without TLS.
    #[error("this callgate was built without TLS (feature `webhook-tls`)")]
    NoTls,
    /// No certificates of authorities.
    #[error("the certificates of the webhook's authority cannot be read")]
    Authority,
    /// Too short.
    #[error("a webhook's secret has at least {SHORTEST_SECRET} bytes")]
    Secret,
}

/// Asks a web service by a signed `POST`.
pub struct WebhookApprover {
    address: String,
    secret: Vec<u8>,
    /// Whom an encrypted service is believed by.
    #[cfg(feature = "webhook-tls")]
    tls: ureq::tls::TlsConfig,
}

callgate_model::debug_fields!(WebhookApprover);

impl WebhookApprover {
    /// At an address, with the secret that both sides know. Unencrypted addresses are taken for this machine only: the
    /// answer is signed, but the question is not encrypted.
    pub fn new(address: &str, secret: &[u8]) -> Result<Self, WebhookError> {
        let uri: Uri = address.parse().map_err(|_| WebhookError::Address)?;
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let fits = match uri.scheme_str() {
            Some("http") => here,
            Some("https") => !host.is_empty(),
            _ => false,
        };
        if !fits {
            return Err(WebhookError::Address);
        }
        if uri.scheme_str() == Some("https") && !cfg!(feature = "webhook-tls") {
            return Err(WebhookError::NoTls);
        }
        if secret.len() < SHORTEST_SECRET {
            return Err(WebhookError::Secret);
        }
        Ok(WebhookApprover {
            address: address.to_owned(),
            secret: secret.to_owned(),
            #[cfg(feature = "webhook-tls")]
            tls: ureq::tls::TlsConfig::default(),
        })
    }

    /// Believes the service only by these certificates (PEM), instead of those of the public authorities.
    #[cfg(feature = "webhook-tls")]
    pub fn authority(mut self, certificates: &[u8]) -> Result<Self, WebhookError> {
        let mut authorities = Vec::new();
        for item in ureq::tls::parse_pem(certificates) {
            match item {
                Ok(ureq::tls::PemItem::Certificate(certificate)) => authorities.push(certificate),
                _ => return Err(WebhookError::Authority),
            }
        }
        if authorities.is_empty() {
            return Err(WebhookError::Authority);
        }
        self.tls = ureq::tls::TlsConfig::builder().root_certs(authorities.into()).build();
        Ok(self)
    }
}

/// The signature of a `request` or an `answer`, as the header carries it. For services that answer.
pub fn signature(secret: &[u8], direction: &str, timestamp: Timestamp, id: &str, body: &[u8]) -> Option<String> {
    let code = code(secret, direction, timestamp, id, body)?.finalize().into_bytes();
    Some(format!("v1={}", hex(&code)))
}

fn code(secret: &[u8], direction: &str, timestamp: Timestamp, id: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
    let mut code = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    code.update(format!("{direction}\n{}\n{id}\n", timestamp.milliseconds()).as_bytes());
    code.update(body);
    Some(code)
}

/// Compared in constant time.
fn is_signed(secret: &[u8], timestamp: Timestamp, id: &str, body: &[u8], header: Option<&str>) -> bool {
    let Some(digits) = header.and_then(|header| header.strip_prefix("v1=")) else { return false };
    let Ok(key) = digits.parse::<crate::key::ApprovalKey>() else { return false };
    code(secret, "answer", timestamp, id, body).is_some_and(|code| code.verify_slice(key.as_bytes()).is_ok())
}

impl Approver for WebhookApprover {
    fn ask(&self, question: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        let body = serde_json::to_vec(question).map_err(|error| AskError::Unusable(error.to_string()))?;
        let now = Timestamp::now();
        let signed = signature(&self.secret, "request", now, question.id.as_str(), &body)
            .ok_or_else(|| AskError::Unavailable("the webhook's secret cannot be used".into()))?;
        let settings = Agent::config_builder()
            .timeout_global(Some(time_left(question).max(SHORTEST_WAIT)))
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None);
        #[cfg(feature = "webhook-tls")]
        let settings = settings.tls_config(self.tls.clone());
        let agent: Agent = settings.build().into();
        let sent = agent
            .post(&self.address)
            .header("Content-Type", "application/json")
            .header(TIMESTAMP_HEADER, now.milliseconds().to_string())
            .header(SIGNATURE_HEADER, signed)
            .send(&body[..]);
        let mut response = sent.map_err(failure)?;
        if response.status() != 200 {
            return Err(AskError::Unusable(format!("the webhook said {}", response.status())));
        }
        let header = response.headers().get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let most = u64::try_from(MAXIMUM_REPLY).unwrap_or(u64::MAX).saturating_add(1);
        let reply = response.body_mut().with_config().limit(most).read_to_vec().map_err(failure)?;
        if !is_signed(&self.secret, now, question.id.as_str(), &reply, header.as_deref()) {
            return Err(AskError::Unusable("the webhook's answer is not signed by it".into()));
        }
        read_reply(&reply, question)
    }
}

fn failure(error: ureq::Error) -> AskError {
    match error {
        ureq::Error::Timeout(_) => AskError::TimedOut,
        ureq::Error::Io(_) | ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::TlsRequired => {
            AskError::Unavailable(format!("the webhook: {error}"))
        }
        other => AskError::Unusable(format!("the webhook: {other}")),
    }
}
