//! Against Exim, a real mail server, from Debian's package `exim4-daemon-light`, run by whoever runs the tests with a
//! configuration of its own. They leave nothing running.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use callgate::grant::{Allowlist, ConfirmationGate, Guard, in_scope};
use callgate_example_email::{Email, EmailError, EmailRequest, Server};

/// A mail server: each connection is handed to an Exim of its own, which delivers everything into one mailbox.
struct Mail {
    directory: tempfile::TempDir,
    email: Email,
}

fn exim() -> Option<PathBuf> {
    ["/usr/sbin/exim4", "/usr/sbin/exim"].map(PathBuf::from).into_iter().find(|path| path.exists())
}

fn mail() -> Mail {
    let exim = exim().expect("these tests need the Debian package exim4-daemon-light");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let owner = fs::metadata(path).unwrap();
    // Started by root, Exim becomes a user of its own, which must be able to write here; by anybody else, it stays who it is.
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["spool", "log", "drafts"] {
        fs::create_dir(path.join(name)).unwrap();
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let configuration = path.join("exim.conf");
    fs::write(&configuration, configured(path, (owner.uid(), owner.gid()))).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let stream = OwnedFd::from(connection.unwrap());
            let mut server = Command::new(&exim)
                .arg("-C")
                .arg(&configuration)
                .args(["-bs", "-odf"])
                .stdin(stream.try_clone().unwrap())
                .stdout(stream)
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            server.wait().unwrap();
        }
    });
    let server = Server { host: "127.0.0.1".into(), port };
    let email = Email::new("bot@x.example".parse().unwrap(), server, path.join("drafts"));
    Mail { directory, email }
}

fn configured(directory: &Path, (user, group): (u32, u32)) -> String {
    let directory = directory.display();
    let owner = match user {
        0 => String::new(),
        _ => format!("exim_user = {user}\nexim_group = {group}\ndeliver_drop_privilege = true\n"),
    };
    format!(
        "primary_hostname = mail.example
spool_directory = {directory}/spool
log_file_path = {directory}/log/%slog
host_lookup =
rfc1413_query_timeout = 0s
keep_environment =
tls_advertise_hosts =
{owner}acl_smtp_rcpt = everybody
acl_smtp_data = everybody
begin acl
everybody:
  accept
begin routers
all:
  driver = accept
  transport = mailbox
begin transports
mailbox:
  driver = appendfile
  file = {directory}/mailbox
  envelope_to_add
  mode = 0644
"
    )
}

impl Mail {
    /// Whom letters have reached, sorted.
    fn reached(&self) -> Vec<String> {
        let mailbox = fs::read_to_string(self.directory.path().join("mailbox")).unwrap_or_default();
        let mut reached: Vec<String> =
            mailbox.lines().filter_map(|line| line.strip_prefix("Envelope-to: ")).map(str::to_owned).collect();
        reached.sort();
        reached
    }

    /// Waits for letters: the server says that it took one before it has delivered it.
    fn reached_after(&self, count: usize) -> Vec<String> {
        for _ in 0..200 {
            if self.reached().len() >= count {
                break;
            }
            thread::sleep(std::time::Duration::from_millis(50));
        }
        self.reached()
    }
}

fn letter(to: &[&str]) -> EmailRequest {
    EmailRequest {
        to: to.iter().map(|to| (*to).to_owned()).collect(),
        subject: "Invoice".into(),
        body: "the secret amount".into(),
        ..EmailRequest::default()
    }
}

#[test]
fn a_granted_letter_is_delivered_once() {
    let mail = mail();
    let guard = Guard::new(Allowlist::of(["ada@y.example".into()]), ConfirmationGate::new());
    guard.grants().grant("Ada@Y.example");
    mail.email.email_send(&guard, letter(&["Ada <ada@y.example>"])).unwrap();
    let again = mail.email.email_send(&guard, letter(&["ada@y.example"]));
    assert!(matches!(again, Err(EmailError::Blocked(_))));
    assert_eq!(mail.reached_after(1), ["ada@y.example"]);
}

#[test]
fn a_refused_letter_reaches_nobody_and_its_refusal_says_nothing_of_it() {
    let mail = mail();
    let guard = Guard::new(Allowlist::of(["ada@y.example".into()]), ConfirmationGate::new());
    guard.grants().grant("ada@y.example");
    let hidden = EmailRequest { bcc: vec!["evil@z.example".into()], ..letter(&["ada@y.example"]) };
    let listed = letter(&["ada@y.example, evil@z.example"]);
    for request in [hidden, listed] {
        let refused = mail.email.email_send(&guard, request).unwrap_err();
        assert_eq!(refused.to_string(), "email_send is blocked: target 2 of 2 is not on the allow list");
    }
    assert!(matches!(mail.email.email_send(&guard, letter(&["no address"])), Err(EmailError::Address)));
    assert!(mail.email.email_send(&guard, letter(&[])).is_err());
    assert!(mail.reached().is_empty());
    assert_eq!(guard.grants().outstanding().len(), 1, "what was refused for another reason burnt no grant");
}

#[test]
fn several_recipients_need_a_grant_each() {
    let mail = mail();
    let guard = Guard::new(Allowlist::everything(), ConfirmationGate::new());
    guard.grants().grant("ada@y.example");
    let both = || letter(&["ada@y.example", "bob@y.example"]);
    assert!(mail.email.email_send(&guard, both()).is_err());
    guard.grants().grant("bob@y.example");
    mail.email.email_send(&guard, both()).unwrap();
    assert_eq!(mail.reached_after(2), ["ada@y.example", "bob@y.example"]);
}

#[test]
fn a_task_spends_its_own_grant() {
    let mail = mail();
    let guard = Guard::new(Allowlist::everything(), ConfirmationGate::new());
    guard.grants().grant_in("ada@y.example", "task-a");
    let send = || mail.email.email_send(&guard, letter(&["ada@y.example"]));
    assert!(send().is_err());
    assert!(in_scope("task-b", send).is_err());
    in_scope("task-a", send).unwrap();
    assert_eq!(mail.reached_after(1), ["ada@y.example"]);
}

#[test]
fn a_draft_is_never_gated_and_reaches_nobody() {
    let mail = mail();
    let first = mail.email.email_create_draft(&letter(&["anyone@z.example"])).unwrap();
    let second = mail.email.email_create_draft(&letter(&["anyone@z.example"])).unwrap();
    assert_ne!(first, second);
    assert!(fs::read_to_string(first).unwrap().contains("To: anyone@z.example"));
    assert!(mail.reached().is_empty());
}

#[test]
fn a_server_that_is_not_there_is_an_error_and_the_grant_is_spent() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server { host: "127.0.0.1".into(), port };
    let email = Email::new("bot@x.example".parse().unwrap(), server, std::env::temp_dir());
    let guard = Guard::new(Allowlist::everything(), ConfirmationGate::new());
    guard.grants().grant("ada@y.example");
    assert!(matches!(email.email_send(&guard, letter(&["ada@y.example"])), Err(EmailError::Server(_))));
    assert!(guard.grants().outstanding().is_empty());
}
