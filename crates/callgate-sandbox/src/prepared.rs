//! A stage that is started before anybody knows what it will run: it makes its namespaces while the call is still judged.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::bubblewrap::Wrapper;
use crate::channel;
use crate::denied::Denied;
use crate::order::{Backend, Report, STAGE};

/// A stage that waits for its order. It ends when this is dropped.
///
/// It is started by the thread that later runs the call: when that thread ends, the kernel ends the stage.
#[derive(Debug)]
pub struct Prepared {
    backend: Backend,
    process: Child,
    channel: Option<OwnedFd>,
    /// What the stage has said about itself.
    said: Option<Result<(), Denied>>,
}

impl Prepared {
    /// Starts a stage for the backend that most calls use, or for the one that the caller wants. `None` if it has to be started
    /// later: bubblewrap needs to know everything first, and an error comes again when the call is run.
    pub fn start(wanted: Option<Backend>) -> Option<Self> {
        let backend = wanted.unwrap_or_default();
        if backend == Backend::Bubblewrap { None } else { Self::spawn(backend, None).ok() }
    }

    /// Starts a stage, by itself or by a wrapper. The stage is this very program, started with [`STAGE`] as its only word.
    pub(crate) fn spawn(backend: Backend, wrapper: Option<&Wrapper>) -> io::Result<Self> {
        let (ours, theirs) = channel::pair()?;
        channel::send(&ours, &backend, &[])?;
        let mut command = match wrapper {
            Some(wrapper) => wrapper.command()?,
            None => {
                // Without a directory of its own, which the stage chooses itself, it is started without a copy of this process.
                let mut command = Command::new("/proc/self/exe");
                command.arg(STAGE).env_clear().stdout(Stdio::null()).stderr(Stdio::null());
                command
            }
        };
        let process = command.stdin(Stdio::from(theirs)).spawn()?;
        Ok(Prepared { backend, process, channel: Some(ours), said: None })
    }

    /// The way in which it will contain a call.
    pub(crate) fn backend(&self) -> Backend {
        self.backend
    }

    /// Waits until the stage has made its namespaces, or has said why it cannot.
    pub(crate) fn works(&mut self) -> Result<(), Denied> {
        if self.said.is_none() {
            let report = self.channel.as_ref().map(channel::receive::<Report>);
            self.said = Some(match report {
                Some(Ok(Some((Report::Prepared, _)))) => Ok(()),
                Some(Ok(Some((Report::Failed { step, error, .. }, _)))) => {
                    Err(Denied::new(format!("cannot {step}: {error}")))
                }
                _ => Err(Denied::new("the sandbox ended while it was set up")),
            });
        }
        self.said.clone().unwrap_or(Ok(()))
    }

    /// The channel, until it is hung up.
    pub(crate) fn channel(&self) -> Option<&OwnedFd> {
        self.channel.as_ref()
    }

    /// Ends the channel, also for threads that still have it.
    pub(crate) fn hang_up(&mut self) {
        if let Some(channel) = self.channel.take() {
            // the other end may be gone
            let _ = rustix::net::shutdown(&channel, rustix::net::Shutdown::Both);
        }
    }

    /// Waits until everything has ended.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.hang_up();
        // it has ended, or ends now
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
