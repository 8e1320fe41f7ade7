//! Messages with descriptors between the supervisor and the stage, over a socket that keeps them apart.

use std::io;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message.
const LONGEST: usize = 32 << 10;
/// How many descriptors come with one message.
const MOST_DESCRIPTORS: usize = 5;

/// Two ends of a channel.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a message.
pub fn send(channel: impl AsFd, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    loop {
        match rustix::net::sendmsg(&channel, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives a message. `None` if the other end is gone.
pub fn receive<T: DeserializeOwned>(channel: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut text = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut was_reset = false;
    let received = loop {
        match rustix::net::recvmsg(&channel, &mut [IoSliceMut::new(&mut text)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        {
            Ok(received) => break received,
            Err(rustix::io::Errno::INTR) => {}
            // The other end went without reading everything. The kernel says so once, in front of what it sent before.
            Err(rustix::io::Errno::CONNRESET) if !was_reset => was_reset = true,
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let message = serde_json::from_slice(text.get(..received.bytes).unwrap_or_default())?;
    Ok(Some((message, descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_an_end_that_did_not_listen_are_heard() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, &"unread", &[]).unwrap();
        send(&theirs, &"why it ended", &[]).unwrap();
        drop(theirs);
        let heard = receive::<String>(&ours).unwrap();
        assert_eq!(heard.map(|(text, _)| text).as_deref(), Some("why it ended"));
        assert!(receive::<String>(&ours).unwrap().is_none());
    }
}
