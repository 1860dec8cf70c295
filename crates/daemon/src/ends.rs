//! The two sides of a connection, encrypted or not, as those who read and write see them.
//!
//! Invariant: with the last byte that is flushed everything is in the socket: what is encrypted
//! lies in memory of the daemon's own until then.

use crate::lock::Mutex;
use crate::timely::socket::{Reading, Writing};
use crate::tls::TlsStream;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// Both sides of a socket as one, under what is encrypted.
pub struct Both(pub Reading, pub Writing);

/// From where bytes come.
pub enum In {
    /// As they are.
    Plain(Reading),
    /// Encrypted.
    Secret(Half),
}

/// Where bytes go.
pub enum Out {
    /// As they are.
    Plain(Writing),
    /// Encrypted.
    Secret(Half),
}

/// Both sides of what is encrypted.
pub fn split(stream: TlsStream<Both>) -> (In, Out) {
    let both = Arc::new(Mutex::new(stream));
    (In::Secret(Half(Arc::clone(&both))), Out::Secret(Half(both)))
}

/// One side of what is encrypted. The two share it under a lock of the daemon's own: threads under
/// contract take it, and whoever holds it then has their priority. (That of `tokio::io::split` has
/// no such inheritance.)
pub struct Half(Arc<Mutex<TlsStream<Both>>>);

impl AsyncRead for Half {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(context, into)
    }
}

impl AsyncWrite for Half {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_shutdown(context)
    }
}

/// A connection that stays with the threads that took it.
pub enum Whole {
    /// On this machine.
    Unix(UnixStream),
    /// From this machine over TCP, as it is.
    Tcp(TcpStream),
    /// Encrypted.
    Secret(Box<TlsStream<TcpStream>>),
}

impl Whole {
    /// Its other end is on this machine, and no TCP lies between.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

impl AsFd for Whole {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(connection) => connection.as_fd(),
            Self::Tcp(connection) => connection.as_fd(),
            Self::Secret(connection) => connection.get_ref().0.as_fd(),
        }
    }
}

/// Reads by whichever it is.
trait Reads {
    fn reader(&mut self) -> Pin<&mut (dyn AsyncRead + Send + Unpin)>;
}

/// Writes by whichever it is.
trait Writes {
    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)>;
    fn takes_several(&self) -> bool;
}

impl Reads for Both {
    fn reader(&mut self) -> Pin<&mut (dyn AsyncRead + Send + Unpin)> {
        Pin::new(&mut self.0)
    }
}

impl Writes for Both {
    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        Pin::new(&mut self.1)
    }

    fn takes_several(&self) -> bool {
        self.1.is_write_vectored()
    }
}

impl Reads for In {
    fn reader(&mut self) -> Pin<&mut (dyn AsyncRead + Send + Unpin)> {
        match self {
            Self::Plain(input) => Pin::new(input),
            Self::Secret(input) => Pin::new(input),
        }
    }
}

impl Writes for Out {
    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        match self {
            Self::Plain(output) => Pin::new(output),
            Self::Secret(output) => Pin::new(output),
        }
    }

    fn takes_several(&self) -> bool {
        match self {
            Self::Plain(output) => output.is_write_vectored(),
            Self::Secret(output) => output.is_write_vectored(),
        }
    }
}

impl Reads for Whole {
    fn reader(&mut self) -> Pin<&mut (dyn AsyncRead + Send + Unpin)> {
        match self {
            Self::Unix(connection) => Pin::new(connection),
            Self::Tcp(connection) => Pin::new(connection),
            Self::Secret(connection) => Pin::new(connection),
        }
    }
}

impl Writes for Whole {
    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        match self {
            Self::Unix(connection) => Pin::new(connection),
            Self::Tcp(connection) => Pin::new(connection),
            Self::Secret(connection) => Pin::new(connection),
        }
    }

    fn takes_several(&self) -> bool {
        match self {
            Self::Unix(connection) => connection.is_write_vectored(),
            Self::Tcp(connection) => connection.is_write_vectored(),
            Self::Secret(connection) => connection.is_write_vectored(),
        }
    }
}

macro_rules! reads {
    ($($what:ty),*) => {$(
        impl AsyncRead for $what {
            fn poll_read(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                into: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.reader().poll_read(context, into)
            }
        }
    )*};
}

macro_rules! writes {
    ($($what:ty),*) => {$(
        impl AsyncWrite for $what {
            fn poll_write(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.writer().poll_write(context, bytes)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                parts: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.writer().poll_write_vectored(context, parts)
            }

            fn is_write_vectored(&self) -> bool {
                self.takes_several()
            }

            fn poll_flush(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                self.writer().poll_flush(context)
            }

            fn poll_shutdown(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                self.writer().poll_shutdown(context)
            }
        }
    )*};
}

reads!(Both, In, Whole);
writes!(Both, Out, Whole);
