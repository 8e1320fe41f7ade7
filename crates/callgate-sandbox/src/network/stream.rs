//! Waiting for descriptors with a deadline and until the call ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// The stack of a thread that serves one connection.
pub(super) const STACK: usize = 256 * 1024;

/// Waits until one of `descriptors` is ready, and returns what they are ready for. One that is waited for nothing is left out;
/// with empty flags it is only waited for until it breaks. Fails with `TimedOut` at `deadline` and with `ConnectionAborted` as
/// soon as `stop` is readable or hung up.
pub(super) fn wait<const N: usize>(
    descriptors: [(BorrowedFd<'_>, Option<PollFlags>); N],
    stop: BorrowedFd<'_>,
    deadline: Option<Instant>,
) -> io::Result<[PollFlags; N]> {
    loop {
        let limit = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let limit = limit.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let mut polled: Vec<PollFd<'_>> = descriptors
            .iter()
            .filter_map(|(descriptor, flags)| Some(PollFd::from_borrowed_fd(*descriptor, (*flags)?)))
            .collect();
        polled.push(PollFd::from_borrowed_fd(stop, PollFlags::IN));
        match poll(&mut polled, limit.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if polled.pop().is_some_and(|stop| !stop.revents().is_empty()) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let mut ready = polled.iter().map(PollFd::revents);
        return Ok(descriptors.map(|(_, flags)| flags.and_then(|_| ready.next()).unwrap_or(PollFlags::empty())));
    }
}

/// A stream socket with a deadline for everything that is read and written.
#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
    stop: Arc<OwnedFd>,
    deadline: Instant,
}

impl Stream {
    pub(super) fn new(socket: OwnedFd, stop: Arc<OwnedFd>, limit: Duration) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { socket, stop, deadline: Instant::now() + limit })
    }

    /// Another socket with the same end and the same time.
    pub(super) fn beside(&self, socket: OwnedFd) -> Self {
        Self { socket, stop: Arc::clone(&self.stop), deadline: self.deadline }
    }

    /// Starts the time again.
    pub(super) fn extend(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn stop(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Reads what is there, at least one byte. 0 is the end.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((read, _)) => return Ok(read),
                Err(Errno::AGAIN) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            wait([(self.socket(), Some(PollFlags::IN))], self.stop(), Some(self.deadline))?;
        }
    }

    /// Reads until `buffer` is full.
    pub(super) fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read(buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => buffer = buffer.get_mut(read..).unwrap_or_default(),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`.
    pub(super) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    wait([(self.socket(), Some(PollFlags::OUT))], self.stop(), Some(self.deadline))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// A limit to how many things go on at once.
#[derive(Debug, Clone)]
pub(super) struct Places {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    pub(super) fn take(&self) -> Option<Place> {
        let more = |taken: usize| (taken < self.most).then_some(taken.saturating_add(1));
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Place(Arc::clone(&self.taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Accepts connections from `listener` until `stop`, each in a thread. `full` is sent to connections for which there is no
/// place.
pub(super) fn serve_connections(
    listener: &OwnedFd,
    stop: BorrowedFd<'_>,
    places: &Places,
    full: &[u8],
    limit: Duration,
    serve: impl Fn(Stream) + Clone + Send + 'static,
) -> io::Result<()> {
    rustix::io::ioctl_fionbio(listener, true)?;
    let stop = Arc::new(stop.try_clone_to_owned()?);
    loop {
        match wait([(listener.as_fd(), Some(PollFlags::IN))], stop.as_fd(), None) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => return Ok(()),
            Err(error) => return Err(error),
        }
        let socket = match rustix::net::accept_with(listener, rustix::net::SocketFlags::CLOEXEC) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => continue,
            // Out of descriptors or memory: others may end soon.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let Some(place) = places.take() else {
            let _ = rustix::net::send(&socket, full, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            continue;
        };
        let Ok(stream) = Stream::new(socket, Arc::clone(&stop), limit) else {
            continue;
        };
        let serve = serve.clone();
        // Without a thread the connection is closed, which the client notices.
        let _ = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            serve(stream);
            drop(place);
        });
    }
}
