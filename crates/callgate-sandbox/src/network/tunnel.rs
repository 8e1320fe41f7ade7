//! Passes bytes on between two stream sockets.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::stream::wait;

/// Bytes that are held for each direction: a side that does not read stops the other one.
const BUFFER: usize = 16 * 1024;

/// One direction of a tunnel.
struct Half {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Nothing more comes.
    ended: bool,
    /// The other side knows.
    passed_on: bool,
}

/// Passes bytes on between two sockets that do not block, until both directions have ended, one side breaks, `stop` is readable
/// or hung up, or nothing comes for as long as `idle`. A side that only ends its own direction still hears the other one, and
/// what a side has sent before it went away arrives.
pub fn run(one: BorrowedFd<'_>, other: BorrowedFd<'_>, stop: BorrowedFd<'_>, idle: Duration) -> io::Result<()> {
    let (mut there, mut back) = (Half::new(), Half::new());
    while !(there.passed_on && back.passed_on) {
        let wanted = [wanted(&there, &back), wanted(&back, &there)];
        let ready = wait([(one, wanted[0]), (other, wanted[1])], stop, Some(Instant::now() + idle))?;
        if is_gone(wanted[0], ready[0]) {
            back.give_up();
        }
        if is_gone(wanted[1], ready[1]) {
            there.give_up();
        }
        there.pass(one, other, !ready[0].is_empty());
        back.pass(other, one, !ready[1].is_empty());
    }
    Ok(())
}

/// What a side is waited for, with the half that reads from it and the half that writes to it. A side that has ended its own
/// direction shows only by breaking that it does not listen any more. One that has been told of both ends shows nothing more,
/// but would always be ready.
fn wanted(from: &Half, to: &Half) -> Option<PollFlags> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, !from.ended && from.is_empty());
    flags.set(PollFlags::OUT, !to.is_empty());
    (!flags.is_empty() || from.ended && !to.passed_on).then_some(flags)
}

/// Whether a side that was waited for nothing else has broken.
fn is_gone(wanted: Option<PollFlags>, ready: PollFlags) -> bool {
    wanted.is_some_and(|flags| flags.is_empty()) && ready.intersects(PollFlags::HUP | PollFlags::ERR)
}

impl Half {
    fn new() -> Self {
        Self { buffer: vec![0; BUFFER], start: 0, end: 0, ended: false, passed_on: false }
    }

    fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Nobody is there any more whom this direction could reach.
    fn give_up(&mut self) {
        (self.start, self.end) = (0, 0);
        (self.ended, self.passed_on) = (true, true);
    }

    fn pass(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, readable: bool) {
        if self.is_empty() && !self.ended && readable {
            match rustix::net::recv(from, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => self.ended = true,
                Ok((read, _)) => (self.start, self.end) = (0, read),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // Nothing more comes from a side that broke off; what it has sent before was passed on.
                Err(_) => self.ended = true,
            }
        }
        while !self.is_empty() {
            let rest = self.buffer.get(self.start..self.end).unwrap_or_default();
            match rustix::net::send(to, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => self.start = self.start.saturating_add(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.give_up(),
            }
        }
        if self.ended && !self.passed_on {
            self.passed_on = true;
            // A side that is gone altogether cannot be told.
            let _ = rustix::net::shutdown(to, Shutdown::Write);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn tcp() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    /// Runs a tunnel between two pairs of sockets, whose outer ends `client` and `server` hold.
    fn tunnel<T: Send>(
        outer: (impl AsFd + Send, impl AsFd + Send),
        client: impl FnOnce() -> T + Send,
        server: impl FnOnce() + Send,
    ) -> T {
        let (stop, _running) = rustix::pipe::pipe().unwrap();
        for socket in [outer.0.as_fd(), outer.1.as_fd()] {
            rustix::io::ioctl_fionbio(socket, true).unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Closed at the end, as those of a proxy are.
                let (inside, outside) = outer;
                run(inside.as_fd(), outside.as_fd(), stop.as_fd(), LIMIT)
            });
            scope.spawn(server);
            scope.spawn(client).join().unwrap()
        })
    }

    #[test]
    fn what_a_server_sent_before_it_closed_arrives_at_a_slow_client() {
        let ((mut client, inside), (outside, mut server)) = (tcp(), tcp());
        let sent = vec![7; 5_000_000];
        let received = tunnel(
            (inside, outside),
            move || {
                client.shutdown(std::net::Shutdown::Write).unwrap();
                // The buffers in between are full when the server has closed.
                std::thread::sleep(Duration::from_millis(300));
                let mut received = Vec::new();
                client.read_to_end(&mut received).unwrap();
                received.len()
            },
            {
                let sent = sent.clone();
                move || {
                    server.read_to_end(&mut Vec::new()).unwrap();
                    server.write_all(&sent).unwrap();
                }
            },
        );
        assert_eq!(received, sent.len());
    }

    #[test]
    fn what_a_client_sent_before_it_closed_arrives_at_a_slow_server() {
        let ((mut client, inside), (outside, mut server)) = (UnixStream::pair().unwrap(), tcp());
        let (done, arrived) = std::sync::mpsc::channel();
        tunnel(
            (inside, outside),
            move || {
                client.write_all(&vec![7; 5_000_000]).unwrap();
                drop(client);
            },
            move || {
                server.write_all(b"nobody reads this").unwrap();
                std::thread::sleep(Duration::from_millis(300));
                let mut received = Vec::new();
                server.read_to_end(&mut received).unwrap();
                done.send(received.len()).unwrap();
            },
        );
        assert_eq!(arrived.recv().unwrap(), 5_000_000);
    }

    #[test]
    fn a_client_that_is_gone_ends_the_tunnel_to_a_silent_server() {
        let ((client, inside), (outside, mut server)) = (UnixStream::pair().unwrap(), tcp());
        let start = Instant::now();
        tunnel(
            (inside, outside),
            move || drop(client),
            move || {
                server.read_to_end(&mut Vec::new()).unwrap();
                std::thread::sleep(Duration::from_millis(100));
            },
        );
        assert!(start.elapsed() < LIMIT / 2, "{:?}", start.elapsed());
    }
}
