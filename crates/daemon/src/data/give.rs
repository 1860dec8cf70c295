//! The one place where a program hands over a descriptor: that of a file that is to have a contract.
//!
//! To let go of the last descriptor of a file can take as long as whoever sent it likes (a TCP connection
//! with `SO_LINGER`, a file system of his own): by a read that has no room for it, or by the close of the
//! socket in which it still lies. So the daemon's sockets take none (`SO_PASSRIGHTS`, Linux 6.16). A
//! connection that says `HelloFile` takes some from `Give` on, while its user has a hand free for it, until
//! one has come. Only a message with exactly one is read. A connection in which anything else lies is
//! closed by a thread that nobody else needs, and the hand is full until then: that bounds them.
//!
//! An older system cannot be told to take none. There what comes where nobody asked for it is let go of by
//! the thread that finds it.

use crate::files::{Given, Hand};
use crate::limits::HELLO_WITHIN;
use crate::reception;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;
use wire::frame::{HEAD_LEN, Head};

/// A connection in which descriptors may lie; closed apart when dropped.
struct Open(Option<(UnixStream, Hand)>);

/// Asks for the descriptor. None where the program has not given exactly that, in time: its
/// connection ends.
pub async fn ask(connection: UnixStream, hand: Hand) -> Option<(UnixStream, Given)> {
    let mut open = Open(Some((connection, hand)));
    let (connection, _) = open.0.as_ref()?;
    let _ = engine::take_descriptors(connection.as_fd(), true);
    reception::say(connection, &Head::Give.encode(0));
    let came = timeout(HELLO_WITHIN, async {
        loop {
            connection.readable().await?;
            match connection.try_io(Interest::READABLE, || receive(connection)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                came => return came,
            }
        }
    });
    let came = came.await;
    let _ = engine::take_descriptors(connection.as_fd(), false);
    // Nothing lies in it, and no descriptor comes any more: it may be closed anywhere.
    let is_empty = rustix::io::ioctl_fionread(connection).is_ok_and(|bytes| bytes == 0);
    match came {
        Ok(Ok(Some(descriptor))) if is_empty => {
            let (connection, hand) = open.0.take()?;
            Some((connection, Given::new(descriptor, hand)))
        }
        // Known apart from the connection, whose hand is full until both are closed.
        Ok(Ok(Some(descriptor))) => {
            let (connection, hand) = open.0.take()?;
            let connection = connection.into_std().ok();
            Given::new(descriptor, hand).look(move |descriptor, _| drop((descriptor, connection)));
            None
        }
        _ => None,
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some((connection, hand)) = self.0.take() {
            let _ = engine::take_descriptors(connection.as_fd(), false);
            // Not the runtime's any more, which would close it on its own threads.
            if let Ok(connection) = connection.into_std() {
                drop(Given::new(connection.into(), hand));
            }
        }
    }
}

/// The descriptor that comes with `Given`; none where something else has come, which is left there.
fn receive(connection: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut head = [0; HEAD_LEN];
    // Copies: the system has them, too, so that to let go of these takes no time. Room for two, to see
    // that there is more than one.
    let (read, copies, is_cut) = look(connection, &mut head, RecvFlags::PEEK)?;
    let is_given = Head::decode(&head).is_ok_and(|(head, len)| head == Head::Given && len == 0);
    if read < HEAD_LEN || !is_given || copies.len() != 1 || is_cut {
        return Ok(None);
    }
    drop(copies);
    let (_, mut given, _) = look(connection, &mut head, RecvFlags::empty())?;
    Ok(given.pop())
}

/// Some bytes, the descriptors that came with them, and whether there were more.
fn look(
    connection: &UnixStream,
    into: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, Vec<OwnedFd>, bool)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(into)];
    let flags = flags | RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(connection, into, &mut ancillary, flags)?;
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let is_cut = received.flags.contains(ReturnFlags::CTRUNC);
    Ok((received.bytes, rights.flatten().collect(), is_cut))
}
