//! A data connection of which nobody knows yet what it is for.
//!
//! Its first frame may bring a descriptor, so others may lie in the socket. To let go of the last
//! descriptor of a file can take as long as whoever sent it likes (a connection that lingers): by a read
//! that has no room for it, or by the close of a socket in which it still lies. So descriptors that come
//! are taken, and closed on threads apart, together with their connection; and from the end of the
//! greeting on the system takes no more of them (Linux 6.16; the other sockets take none at all). An
//! older system cannot be told that: what comes later is closed where it is found.

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::UnixStream;

/// What is wrong with descriptors for which there is no use.
pub const UNASKED: &str = "descriptors come with the first frame alone";

/// The most descriptors of one message.
const RIGHTS_MAX: usize = 253;
/// Connections that nobody has a place for and that are closed apart at a time, at the most.
const APART_MAX: usize = 64;

static APART: AtomicUsize = AtomicUsize::new(0);

/// See the module. `P` is the connection's place, which it has until it is closed.
pub struct Strange<P: Send + Sync + 'static>(Option<(UnixStream, Option<Arc<P>>)>);

impl<P: Send + Sync + 'static> Strange<P> {
    pub fn new(connection: UnixStream, place: Option<Arc<P>>) -> Self {
        Self(Some((connection, place)))
    }

    pub fn connection(&self) -> &UnixStream {
        &self.0.as_ref().expect("it is there until it is known or dropped").0
    }

    /// It is known: nothing of it is closed here any more.
    pub fn known(mut self) -> UnixStream {
        self.0.take().expect("known once").0
    }

    /// The greeting is over: no descriptor comes from now on. Says whether none lies behind it.
    pub fn greeted(&self) -> io::Result<bool> {
        let socket = self.connection().as_fd();
        // An old system cannot be told so.
        if engine::take_no_descriptors(socket).is_err() || !is_something_in(self.connection()) {
            return Ok(true);
        }
        engine::peek_from(socket, Some(0))?;
        loop {
            let mut bytes = [0; 16 << 10];
            match receive_by(self.connection(), &mut bytes, RecvFlags::PEEK) {
                Ok((0, _)) => break,
                // These are copies: the system has the descriptors, too.
                Ok((_, rights)) if !rights.is_empty() => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        engine::peek_from(socket, None)?;
        Ok(true)
    }
}

impl<P: Send + Sync + 'static> Drop for Strange<P> {
    fn drop(&mut self) {
        let Some((connection, place)) = self.0.take() else { return };
        let _ = engine::take_no_descriptors(connection.as_fd());
        if !is_something_in(&connection) {
            return;
        }
        // Those with a place are no more than there are places.
        let counts = place.is_none();
        if counts && APART.fetch_add(1, Ordering::Relaxed) >= APART_MAX {
            APART.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        // Not the runtime's any more, which would close it on its own threads.
        let Ok(connection) = connection.into_std() else { return };
        in_a_thread(move || {
            drop(connection);
            drop(place);
            if counts {
                APART.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }
}

/// Closes descriptors where nobody waits for that.
pub fn close_apart(descriptors: Vec<OwnedFd>) {
    if !descriptors.is_empty() {
        in_a_thread(move || drop(descriptors));
    }
}

fn is_something_in(connection: &UnixStream) -> bool {
    rustix::io::ioctl_fionread(connection).map_or(true, |bytes| bytes > 0)
}

/// Some bytes, and all descriptors that came with them.
pub fn receive(connection: &UnixStream, into: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    receive_by(connection, into, RecvFlags::empty())
}

fn receive_by(
    connection: &UnixStream,
    into: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RIGHTS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(into)];
    let flags = flags | RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(connection, into, &mut ancillary, flags)?;
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok((received.bytes, rights.flatten().collect()))
}

/// Where the system has no thread for it, it is done here: nothing better can be done then.
fn in_a_thread(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name("closes".into()).spawn(work) {
        tracing::error!(%error, "no thread to close a connection: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
    use std::io::{IoSlice, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::channel;

    /// The last descriptor of a connection that takes an hour to close, and the other end of it.
    fn lingers() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        let hour = std::time::Duration::from_secs(3_600);
        sockopt::set_socket_linger(&one, Some(hour)).unwrap();
        one.set_nonblocking(true).unwrap();
        while one.write(&[0; 1 << 16]).is_ok() {}
        (one, other)
    }

    fn send(to: &std::os::unix::net::UnixStream, what: impl AsFd) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [what.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(to, &[IoSlice::new(b"x")], &mut control, SendFlags::empty())?;
        Ok(())
    }

    fn pair() -> (UnixStream, std::os::unix::net::UnixStream) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (UnixStream::from_std(ours).unwrap(), theirs)
    }

    /// An hour would pass before either returns, if it were done here.
    #[tokio::test]
    async fn what_takes_long_to_close_is_closed_apart() {
        let (ours, theirs) = pair();
        let (sent, mut other) = lingers();
        send(&theirs, &sent).unwrap();
        drop(sent);
        let (gone, is_gone) = channel();
        struct Says(std::sync::mpsc::Sender<()>);
        impl Drop for Says {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        drop(Strange::new(ours, Some(Arc::new(Says(gone)))));
        assert!(is_gone.try_recv().is_err(), "its place is taken until it is closed");
        // It ends when the other end has taken all.
        other.set_nonblocking(false).unwrap();
        let mut all = Vec::new();
        let _ = other.read_to_end(&mut all);
        is_gone.recv().unwrap();

        let (ours, theirs) = pair();
        let (sent, other) = lingers();
        send(&theirs, &sent).unwrap();
        drop(sent);
        let is_new = engine::take_no_descriptors(theirs.as_fd()).is_ok();
        assert_eq!(Strange::<()>::new(ours, None).greeted().unwrap(), !is_new);
        drop(other);
    }

    #[tokio::test]
    async fn what_lies_behind_a_greeting_is_looked_through_and_left() {
        let (ours, mut theirs) = pair();
        let is_new = engine::take_no_descriptors(theirs.as_fd()).is_ok();
        theirs.write_all(&[7; 50_000]).unwrap();
        let strange = Strange::<()>::new(ours, None);
        assert!(strange.greeted().unwrap());
        let mut ours = strange.known();
        assert_eq!(send(&theirs, &theirs).is_err(), is_new, "none is taken any more");
        theirs.write_all(&[8; 10]).unwrap();
        let mut came = vec![0; 50_010];
        tokio::io::AsyncReadExt::read_exact(&mut ours, &mut came).await.unwrap();
        assert!(came[..50_000].iter().all(|&byte| byte == 7));
        let skip = usize::from(!is_new);
        assert!(came[50_000 + skip..].iter().all(|&byte| byte == 8));

        let (ours, mut theirs) = pair();
        theirs.write_all(&[7; 50_000]).unwrap();
        send(&theirs, &theirs).unwrap();
        theirs.write_all(&[8; 10]).unwrap();
        assert_eq!(Strange::<()>::new(ours, None).greeted().unwrap(), !is_new);
    }
}
