//! A listener that has a bounded number of connections open; further ones wait
//! in the kernel's listen queue.

use crate::quotas::Peer;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// See the module.
pub struct Limited {
    listener: UnixListener,
    places: Arc<Semaphore>,
}

impl Limited {
    /// At most `max` connections at once.
    pub fn new(listener: UnixListener, max: usize) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(max)) }
    }
}

impl Listener for Limited {
    type Io = Counted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Counted, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("never closed");
        let (connection, address) = Listener::accept(&mut self.listener).await;
        (Counted { connection, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that gives its place back when dropped.
pub struct Counted {
    connection: UnixStream,
    _place: OwnedSemaphorePermit,
}

impl Connected<IncomingStream<'_, Limited>> for Peer {
    fn connect_info(incoming: IncomingStream<'_, Limited>) -> Self {
        Self::of(&incoming.io().connection)
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
