//! Frames from and to a socket.

use crate::limits::GOODBYE_WITHIN;
use crate::pool::Room;
use bytes::Buf;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use wire::Problem;
use wire::frame::{HEAD_LEN, Head, text_body};

/// How a connection ends.
#[derive(Debug)]
pub enum Over {
    /// The program asked for it.
    ByRequest,
    /// The program has gone.
    Gone,
    /// The program is told why, then the connection ends.
    Failed(Problem),
    /// The daemon wants it.
    Stopped(crate::sessions::Stop),
}

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Small frames are read many at a time; bodies go to their place directly.
const HEADS_BUFFER: usize = 4096;

/// The first head on a connection, the length of its body, and the descriptor that came
/// with it, if one did.
pub async fn first(connection: &UnixStream) -> Result<(Head, usize, Option<OwnedFd>), Over> {
    let (mut bytes, mut have, mut given) = ([0; HEAD_LEN], 0, None);
    while have < HEAD_LEN {
        connection.readable().await?;
        let rest = &mut bytes[have..];
        let received = connection.try_io(Interest::READABLE, || receive(connection, rest));
        match received {
            Ok((0, _)) => return Err(Over::Gone),
            Ok((read, descriptor)) => {
                have += read;
                given = descriptor.or(given);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    let (head, body) =
        Head::decode(&bytes).map_err(|error| Over::Failed(super::protocol(error.to_string())))?;
    Ok((head, body, given))
}

/// Some bytes, and the first of the descriptors that came with them; others are closed.
fn receive(connection: &UnixStream, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [io::IoSliceMut::new(into)];
    let received = recvmsg(connection, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let given = rights.flatten().collect::<Vec<_>>().into_iter().next();
    Ok((received.bytes, given))
}

/// The frames that come from a program.
pub struct Incoming {
    half: BufReader<OwnedReadHalf>,
    /// The part of a head that has come.
    head: [u8; HEAD_LEN],
    have: usize,
}

impl Incoming {
    pub fn new(half: OwnedReadHalf) -> Self {
        let half = BufReader::with_capacity(HEADS_BUFFER, half);
        Self { half, head: [0; HEAD_LEN], have: 0 }
    }

    /// The next head and the length of its body. Dropped while it waits, it loses
    /// nothing.
    pub async fn head(&mut self) -> Result<(Head, usize), Over> {
        while self.have < HEAD_LEN {
            match self.half.read(&mut self.head[self.have..]).await? {
                0 => return Err(Over::Gone),
                read => self.have += read,
            }
        }
        self.have = 0;
        Head::decode(&self.head).map_err(|error| Over::Failed(super::protocol(error.to_string())))
    }

    /// The body of the last head, where it is short.
    pub async fn body(&mut self, len: usize) -> Result<Vec<u8>, Over> {
        let mut body = vec![0; len];
        self.half.read_exact(&mut body).await?;
        Ok(body)
    }

    /// Fills the first `len` bytes of `room`.
    pub async fn fill(&mut self, room: &mut dyn Room, skip: usize, len: usize) -> Result<(), Over> {
        self.half.read_exact(&mut room.bytes_mut()[skip..][..len]).await?;
        Ok(())
    }

    /// Reads the rest of a body for which there is no place.
    pub async fn discard(&mut self, len: usize) -> Result<(), Over> {
        let mut rest = (&mut self.half).take(len as u64);
        let read = tokio::io::copy_buf(&mut rest, &mut tokio::io::sink()).await?;
        if read == len as u64 { Ok(()) } else { Err(Over::Gone) }
    }
}

/// The frames that go to a program; each is sent whole before the next.
///
/// A send that is dropped or timed out half-way leaves a torn frame behind, so
/// every later send fails: nothing may follow it.
pub struct Outgoing(Mutex<Sending>);

struct Sending {
    half: OwnedWriteHalf,
    /// Not in the middle of a frame.
    whole: bool,
}

impl Outgoing {
    pub fn new(half: OwnedWriteHalf) -> Self {
        Self(Mutex::new(Sending { half, whole: true }))
    }

    /// Sends one frame.
    pub async fn send(&self, head: Head, body: &[u8]) -> Result<(), Over> {
        let bytes = head.encode(body.len());
        let mut frame = Buf::chain(&bytes[..], body);
        let mut sending = self.0.lock().await;
        if !sending.whole {
            return Err(Over::Gone);
        }
        sending.whole = false;
        sending.half.write_all_buf(&mut frame).await?;
        sending.whole = true;
        Ok(())
    }

    /// Sends a frame without a body, and descriptors with it.
    pub async fn send_with(&self, head: Head, fds: &[BorrowedFd<'_>]) -> Result<(), Over> {
        let bytes = head.encode(0);
        let mut sending = self.0.lock().await;
        if !sending.whole {
            return Err(Over::Gone);
        }
        sending.whole = false;
        let sent = sending.half.as_ref();
        let sent = sent.async_io(Interest::WRITABLE, || send_fds(sent, &bytes, fds)).await?;
        sending.half.write_all(&bytes[sent..]).await?;
        sending.whole = true;
        Ok(())
    }

    /// Sends a frame to a program that may have gone, or does not read.
    pub async fn send_last(&self, head: Head) {
        let _ = tokio::time::timeout(GOODBYE_WITHIN, self.send(head, &[])).await;
    }

    /// Tells a program what went wrong.
    pub async fn fail(&self, tag: u64, problem: &Problem) -> Result<(), Over> {
        let Problem { code, detail, next_step, .. } = problem;
        let head = Head::Failed { tag, code: *code };
        self.send(head, text_body(&format!("{detail}\n{next_step}"))).await
    }

    /// Tells a program, which may have gone or not read, what went wrong.
    pub async fn fail_last(&self, problem: &Problem) {
        let _ = tokio::time::timeout(GOODBYE_WITHIN, self.fail(0, problem)).await;
    }
}

/// Sends the beginning of a frame, with descriptors.
fn send_fds(socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = control.push(SendAncillaryMessage::ScmRights(fds));
    assert!(fits, "a frame carries two descriptors at the most");
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    Ok(rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?)
}

/// The problem that an error of the pool is, as the end of the connection.
pub fn failed(error: node::Error) -> Over {
    Over::Failed(crate::problem::of(&error))
}

/// A frame that does not belong on this connection.
pub fn misplaced(head: Head, on: &str) -> Over {
    Over::Failed(super::protocol(format!("{head:?} has no meaning on a connection for {on}")))
}
