//! A data connection as its users need it: frames out, and a thread that takes
//! the frames that come in.

use crate::{Error, Result};
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use units::Duration;
use wire::frame::{Decoder, HEAD_LEN, Head};
use wire::{Code, Problem};

/// Connects to the data socket, says hello and waits for the welcome.
pub fn attach(socket: &Path, hello: Head, body: &[u8]) -> Result<(UnixStream, Head)> {
    let mut connection = connect(socket)?;
    // A daemon that has no place for the connection says so before it hears anything.
    let sent = send(&mut connection, hello, body);
    match (receive_head(&mut connection), sent) {
        (Ok((welcome @ Head::Welcome { .. }, _)), _) => Ok((connection, welcome)),
        (Ok((head, len)), _) => Err(unexpected(&mut connection, head, len)),
        (Err(_), Err(error)) => Err(error.into()),
        (Err(error), Ok(())) => Err(error),
    }
}

/// Connects to the data socket.
pub fn connect(socket: &Path) -> Result<UnixStream> {
    UnixStream::connect(socket).map_err(|cause| Error::no_daemon(socket, cause))
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
pub fn send(connection: &mut UnixStream, head: Head, body: &[u8]) -> io::Result<()> {
    let head = head.encode(body.len());
    let mut sent = 0;
    while sent < HEAD_LEN {
        let slices = [IoSlice::new(&head[sent..]), IoSlice::new(body)];
        match connection.write_vectored(&slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => sent += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    connection.write_all(&body[sent - HEAD_LEN..])
}

/// The next head and the length of its body, which is still to be read.
pub fn receive_head(connection: &mut UnixStream) -> Result<(Head, usize)> {
    let mut bytes = [0; HEAD_LEN];
    connection.read_exact(&mut bytes)?;
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
