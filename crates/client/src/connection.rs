//! A data connection as its users need it: frames out, and a thread that takes
//! the frames that come in.

use crate::patience::answer_within;
use crate::{Error, Result, interrupt};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendmsg,
};
use std::io::{self, IoSlice, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use units::Duration;
use wire::frame::{Decoder, HEAD_LEN, Head};
use wire::{Code, Problem};

/// Connects to the data socket, says hello and waits for the welcome. What is said on it from then on
/// is waited for without end, where nobody [says otherwise](answered).
pub fn attach(socket: &Path, hello: Head, body: &[u8]) -> Result<(UnixStream, Head)> {
    let mut connection = connect(socket)?;
    // A daemon that has no place for the connection says so before it hears anything.
    let sent = send(&connection, hello, body);
    match (receive_head(&mut connection), sent) {
        (Ok((welcome @ Head::Welcome { .. }, _)), _) => {
            wait_without_end(&connection)?;
            Ok((connection, welcome))
        }
        (Ok((head, len)), _) => Err(unexpected(&mut connection, head, len)),
        (Err(_), Err(error)) => Err(error.into()),
        (Err(error), Ok(())) => Err(error),
    }
}

/// Connects to a socket of the daemon. One that hangs is waited for as long as for any answer
/// ([`answer_within`]), here and by each read and write of the connection.
pub fn connect(socket: &Path) -> Result<UnixStream> {
    connect_within(socket, answer_within())
}

fn connect_within(socket: &Path, within: std::time::Duration) -> Result<UnixStream> {
    let connected = || -> rustix::io::Result<UnixStream> {
        let flags = SocketFlags::CLOEXEC;
        let connection =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        for way in [Timeout::Send, Timeout::Recv] {
            sockopt::set_socket_timeout(&connection, way, Some(within))?;
        }
        let address = SocketAddrUnix::new(socket)?;
        rustix::io::retry_on_intr(|| rustix::net::connect(&connection, &address))?;
        Ok(connection.into())
    };
    connected().map_err(|cause| match cause {
        // It takes no connections from those who wait for it.
        Errno::AGAIN => Error::Broken(io::ErrorKind::TimedOut.into()),
        cause => Error::no_daemon(socket, cause.into()),
    })
}

/// What is read and written from now on is waited for as long as for any answer.
pub fn wait_for_answers(connection: &UnixStream) -> io::Result<()> {
    let within = Some(answer_within());
    connection.set_read_timeout(within)?;
    connection.set_write_timeout(within)
}

/// What is read and written from now on is waited for without end.
pub fn wait_without_end(connection: &UnixStream) -> io::Result<()> {
    connection.set_read_timeout(None)?;
    connection.set_write_timeout(None)
}

/// A head that says what a program asked, unless it asked for what nothing can have: the
/// daemon would take that for no frame, and end the connection.
///
/// # Errors
/// [`Error::Problem`], with the figures.
pub fn asked(head: Head) -> Result<Head> {
    head.checked().map_err(|error| {
        let problem = Problem::new(Code::Invalid, error.to_string(), "ask for what can be");
        Error::Problem(Box::new(problem))
    })
}

/// A pause of so long, of which a day counts at the most.
pub fn pause(span: Duration) -> Head {
    Head::Pause { span: span.min(Duration::from_secs(24 * 3600)) }
}

/// Sends one frame, head and body in one go where the kernel takes them.
pub fn send(connection: &UnixStream, head: Head, body: &[u8]) -> io::Result<()> {
    send_all(connection, &head.encode(body.len()), body)
}

/// Sends these bytes, and those behind them. A daemon that is gone is an error, and no signal, which would
/// end a program that does not ignore it.
pub fn send_all(connection: &UnixStream, mut first: &[u8], mut behind: &[u8]) -> io::Result<()> {
    while !(first.is_empty() && behind.is_empty()) {
        let parts = [IoSlice::new(first), IoSlice::new(behind)];
        let mut nothing = SendAncillaryBuffer::default();
        match sendmsg(connection, &parts, &mut nothing, SendFlags::NOSIGNAL) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(sent) => {
                let of_first = sent.min(first.len());
                (first, behind) = (&first[of_first..], &behind[sent - of_first..]);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Does what waits for an answer: each part of it, and of what goes before it, has to come within
/// [`answer_within`]. The connection ends where none comes, or a signal ends the wait: what comes on it
/// later may be that answer.
pub fn answered<C: AsConnection, T>(
    of: &mut C,
    ask: impl FnOnce(&mut C) -> Result<T>,
) -> Result<T> {
    wait_for_answers(of.connection())?;
    let answer = ask(of);
    match &answer {
        Err(error) if error.ends_the_wait() => {
            // An error means that the daemon has gone already.
            let _ = of.connection().shutdown(Shutdown::Both);
        }
        _ => wait_without_end(of.connection())?,
    }
    answer
}

/// What has a connection of its own.
pub trait AsConnection {
    fn connection(&self) -> &UnixStream;
}

/// Reads one part of a frame whole. Before its first byte a signal may end that, if there has been none
/// of the frame.
fn fill(connection: &mut UnixStream, into: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < into.len() {
        match connection.read(&mut into[done..]) {
            Ok(0) => return Err(Error::Broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                if done == 0 {
                    interrupt::asked()?;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// All that comes until the connection ends or what has come is the whole, `most` bytes at the most.
pub fn receive_all(
    connection: &mut UnixStream,
    most: usize,
    is_whole: impl Fn(&[u8]) -> bool,
) -> (Vec<u8>, Result<()>) {
    let mut all = Vec::new();
    let mut part = vec![0; 64 << 10];
    while all.len() < most && !is_whole(&all) {
        let room = part.len().min(most - all.len());
        match connection.read(&mut part[..room]) {
            Ok(0) => break,
            Ok(read) => all.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                if let Err(ended) = interrupt::asked() {
                    return (all, Err(ended));
                }
            }
            Err(error) => return (all, Err(error.into())),
        }
    }
    (all, Ok(()))
}

/// The next head and the length of its body, which is still to be read.
pub fn receive_head(connection: &mut UnixStream) -> Result<(Head, usize)> {
    let mut bytes = [0; HEAD_LEN];
    fill(connection, &mut bytes)?;
    Head::decode(&bytes).map_err(|error| Error::Garbled(error.to_string()))
}

/// The error that a frame is which does not answer what was asked.
pub fn unexpected(connection: &mut UnixStream, head: Head, len: usize) -> Error {
    let mut body = vec![0; len];
    if let Err(error) = connection.read_exact(&mut body) {
        return error.into();
    }
    error_in(head, &body)
}

/// The same, where the body is at hand.
pub fn error_in(head: Head, body: &[u8]) -> Error {
    match head {
        Head::Failed { code, .. } => Error::from_frame(code, body),
        other => Error::Garbled(format!("{other:?} answers nothing that was asked")),
    }
}

/// Takes every frame that comes until the connection ends; `take` may end it.
/// Gives the reason, none where the stream ended between two frames.
pub fn take_all(
    connection: &mut UnixStream,
    mut take: impl FnMut(Head, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut decoder = Decoder::new();
    loop {
        let read = match connection.read(decoder.want()) {
            Ok(0) if decoder.is_between_frames() => return Ok(()),
            Ok(0) => return Err(Error::Broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        match decoder.filled(read) {
            Ok(None) => {}
            Ok(Some((head, body))) => take(head, body)?,
            Err(error) => return Err(Error::Garbled(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    /// A daemon that was stopped kept the mount's threads for as long as it was stopped.
    #[test]
    fn a_daemon_that_hangs_is_waited_for_with_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("socket");
        let hangs: OwnedFd =
            rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&hangs, &SocketAddrUnix::new(&at).unwrap()).unwrap();
        rustix::net::listen(&hangs, 0).unwrap();
        let soon = std::time::Duration::from_millis(20);
        let mut taken = connect_within(&at, soon).unwrap();
        let Err(Error::Broken(error)) = receive_head(&mut taken) else { panic!("it hangs") };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        // There is no room for another one.
        let Err(Error::Broken(error)) = connect_within(&at, soon) else { panic!("it hangs") };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
