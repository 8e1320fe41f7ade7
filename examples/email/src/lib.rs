//! A connector that really sends mail: how allow list, grants and the harmless companion compose.
//!
//! `email_create_draft` writes a file that nobody receives and is never gated. `email_send` needs every recipient on the
//! allow list and a grant for each of them, which is spent before the mail server is spoken to.
//!
//! ```
//! use callgate::grant::{Allowlist, ConfirmationGate, Guard};
//! use callgate_example_email::{Email, EmailRequest, Server};
//!
//! let server = Server { host: "127.0.0.1".into(), port: 2525 };
//! let email = Email::new("bot@x.com".parse().unwrap(), server, std::env::temp_dir());
//! let guard = Guard::new(Allowlist::of(["ada@x.com".into()]), ConfirmationGate::new());
//! let request = EmailRequest { to: vec!["Ada <ada@x.com>".into()], subject: "Hello".into(), body: "…".into(), ..Default::default() };
//!
//! let refused = email.email_send(&guard, request).unwrap_err();
//! assert_eq!(refused.to_string(), "email_send is blocked: no outstanding grant covers it in this scope");
//! ```

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use callgate::grant::{ActionBlocked, GrantTarget, Grants, Guard, GuardedAction, Spent};
use lettre::message::{Mailbox, Mailboxes};
use lettre::{Message, SmtpTransport, Transport as _};
use thiserror::Error;

/// How long the mail server may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where mail is handed in.
#[derive(Debug, Clone)]
pub struct Server {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A letter, and to whom.
#[derive(Debug, Clone, Default)]
pub struct EmailRequest {
    /// Recipients. A text may hold several, separated by commas: each counts.
    pub to: Vec<String>,
    /// Copies.
    pub cc: Vec<String>,
    /// Copies that the others do not see. They are recipients like all others.
    pub bcc: Vec<String>,
    /// The subject.
    pub subject: String,
    /// The text.
    pub body: String,
}

impl EmailRequest {
    fn mailboxes(&self) -> Result<[Vec<Mailbox>; 3], EmailError> {
        let read = |texts: &[String]| -> Result<Vec<Mailbox>, EmailError> {
            let lists = texts.iter().map(|text| text.parse::<Mailboxes>().map_err(|_| EmailError::Address));
            Ok(lists.collect::<Result<Vec<Mailboxes>, _>>()?.into_iter().flatten().collect())
        };
        Ok([read(&self.to)?, read(&self.cc)?, read(&self.bcc)?])
    }
}

/// `email_send` was not permitted: the connector's own kind of [`ActionBlocked`], to be told apart from those of others.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct EmailSendBlocked(#[from] pub ActionBlocked);

/// Why nothing was sent or drafted. No message holds what the letter says, nor to whom.
#[derive(Debug, Error)]
pub enum EmailError {
    /// It was not permitted.
    #[error(transparent)]
    Blocked(#[from] EmailSendBlocked),
    /// A recipient is no address.
    #[error("a recipient is no mail address")]
    Address,
    /// The letter cannot be put together.
    #[error("the letter cannot be put together: {0}")]
    Letter(#[from] lettre::error::Error),
    /// The draft cannot be written.
    #[error("the draft cannot be written: {0}")]
    Draft(#[from] io::Error),
    /// The mail server did not take it. The grant is spent: whether it was delivered is not known.
    #[error("the mail server did not take it: {0}")]
    Server(#[from] lettre::transport::smtp::Error),
}

impl From<ActionBlocked> for EmailError {
    fn from(blocked: ActionBlocked) -> Self {
        EmailError::Blocked(blocked.into())
    }
}

/// Drafts and sends.
#[derive(Debug, Clone)]
pub struct Email {
    sender: Mailbox,
    server: Server,
    drafts: PathBuf,
}

impl Email {
    /// Sends as `sender` through a server, drafts into a directory.
    pub fn new(sender: Mailbox, server: Server, drafts: PathBuf) -> Self {
        Email { sender, server, drafts }
    }

    /// Writes a draft. Harmless, so never gated.
    pub fn email_create_draft(&self, request: &EmailRequest) -> Result<PathBuf, EmailError> {
        self.preview(request)
    }

    /// Sends, if both keys turn.
    pub fn email_send<G: Grants>(&self, guard: &Guard<G>, request: EmailRequest) -> Result<(), EmailError> {
        guard.perform(self, request)
    }

    fn letter(&self, request: &EmailRequest) -> Result<Message, EmailError> {
        let [to, cc, bcc] = request.mailboxes()?;
        let mut letter = Message::builder().from(self.sender.clone()).subject(&request.subject);
        letter = to.into_iter().fold(letter, |letter, mailbox| letter.to(mailbox));
        letter = cc.into_iter().fold(letter, |letter, mailbox| letter.cc(mailbox));
        letter = bcc.into_iter().fold(letter, |letter, mailbox| letter.bcc(mailbox));
        Ok(letter.body(request.body.clone())?)
    }
}

impl GuardedAction for Email {
    type Request = EmailRequest;
    type Preview = PathBuf;
    type Outcome = ();
    type Error = EmailError;

    fn name(&self) -> &str {
        "email_send"
    }

    /// Every address, wherever it stands. The letter is put together first: one that cannot be sent burns no grant.
    fn targets(&self, request: &EmailRequest) -> Result<Vec<GrantTarget>, EmailError> {
        self.letter(request)?;
        Ok(request.mailboxes()?.into_iter().flatten().map(|mailbox| GrantTarget::new(mailbox.email.as_ref())).collect())
    }

    fn preview(&self, request: &EmailRequest) -> Result<PathBuf, EmailError> {
        let letter = self.letter(request)?.formatted();
        let name = |number: u32| self.drafts.join(format!("draft-{number}.eml"));
        for number in 1..u32::MAX {
            match fs::OpenOptions::new().write(true).create_new(true).open(name(number)) {
                Ok(mut file) => {
                    io::Write::write_all(&mut file, &letter)?;
                    return Ok(name(number));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists).into())
    }

    fn perform(&self, request: EmailRequest, _spent: Spent) -> Result<(), EmailError> {
        let letter = self.letter(&request)?;
        // Unencrypted, as to a mail server on the same machine. A connector for elsewhere takes `SmtpTransport::relay`.
        let transport =
            SmtpTransport::builder_dangerous(&self.server.host).port(self.server.port).timeout(Some(PATIENCE)).build();
        transport.send(&letter)?;
        Ok(())
    }
}
