//! Readers and writers under contract for programs that run on tokio.
//!
//! ```no_run
//! use client::Client;
//! use client::aio::{AsyncReader, AsyncWriter};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! # use client::control::Contract;
//! # use client::units::{Bytes, Rate};
//!
//! # async fn record_and_play(contract: Contract) -> Result<(), Box<dyn std::error::Error>> {
//! // Opening asks the daemon and waits for the answer: not on the runtime's threads.
//! let open = move || {
//!     let client = Client::connect(client::default_socket())?;
//!     client.writer("video", contract, Bytes::ZERO)
//! };
//! let mut out = AsyncWriter::new(tokio::task::spawn_blocking(open).await??)?;
//! out.write_all(b"on its way").await?;
//! out.close().await?; // it is on the medium
//! let open = move || {
//!     let client = Client::connect(client::default_socket())?;
//!     client.reader("video", contract, Bytes::ZERO)
//! };
//! let mut video = AsyncReader::new(tokio::task::spawn_blocking(open).await??)?;
//! let mut back = Vec::new();
//! video.read_to_end(&mut back).await?;
//! # Ok(()) }
//! ```
//!
//! Invariant: nothing here waits on the thread that it is called on, but for the last word
//! of a daemon that has ended a stream, which it says at once. A call that finds
//! nothing to do has said to the daemon that the program waits, and has emptied the
//! socket, so that the next word of the daemon wakes the task.

use crate::{Code, Error, Peek, Piece, Problem, Reader, Result, Writer};
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;
use units::Bytes;

/// The socket of a stream, where its news comes. Nothing is read or written by this end.
type News = UnixStream;

/// A [`Reader`] whose calls are awaited.
#[derive(Debug)]
pub struct AsyncReader {
    reader: Reader,
    news: News,
}

/// A [`Writer`] whose calls are awaited. Dropping it closes the stream, synced, without
/// waiting for that.
#[derive(Debug)]
pub struct AsyncWriter {
    writer: Writer,
    news: News,
    /// A sync was asked for, and not answered yet.
    syncing: Option<u64>,
    /// A seek was asked for, and not answered yet.
    seeking: bool,
    /// The daemon was asked to close the stream.
    closing: bool,
}

/// The daemon's word on a stream's socket, beside the stream.
fn news(stream: impl AsFd, is_shared: bool) -> Result<News> {
    if !is_shared {
        let what = "the window is not shared, so that calls may wait for its bytes";
        let next = "use the stream as it is, by tokio's spawn_blocking";
        return Err(Error::Problem(Box::new(Problem::new(Code::Invalid, what, next))));
    }
    let socket = net::UnixStream::from(stream.as_fd().try_clone_to_owned()?);
    // The stream's own calls poll where they have to wait.
    socket.set_nonblocking(true)?;
    Ok(UnixStream::from_std(socket)?)
}

/// Tries until there is something, and is woken to try again by news.
fn poll_until<T>(
    news: &News,
    context: &mut Context<'_>,
    mut attempt: impl FnMut() -> Result<Option<T>>,
) -> Poll<Result<T>> {
    if let Some(done) = attempt()? {
        return Poll::Ready(Ok(done));
    }
    loop {
        ready!(news.poll_read_ready(context))?;
        // It may be of what was seen already: where nothing is found, only what comes after
        // this attempt counts.
        let nothing = || io::Error::from(io::ErrorKind::WouldBlock);
        let tried = news.try_io(Interest::READABLE, || attempt().transpose().ok_or_else(nothing));
        if let Ok(done) = tried {
            return Poll::Ready(done);
        }
    }
}

impl AsyncReader {
    /// A reader on the runtime that this is called on.
    ///
    /// # Errors
    /// Where the stream's window is not shared ([`Reader::is_shared`]).
    ///
    /// # Panics
    /// Outside a runtime of tokio, and on one without input and output.
    pub fn new(reader: Reader) -> Result<Self> {
        let news = news(&reader, reader.is_shared())?;
        Ok(Self { reader, news })
    }

    /// As [`Reader::peek`].
    ///
    /// # Errors
    /// As [`Reader::peek`].
    pub async fn peek(&mut self, len_max: usize) -> Result<Peek<'_>> {
        // A gap and the end are told once, bytes are shown as often as somebody looks.
        let reader = &mut self.reader;
        let mut look = || {
            Ok(reader.try_peek(len_max)?.map(|seen| match seen {
                Peek::Data(_) => None,
                Peek::Gap { offset, len } => Some(Peek::Gap { offset, len }),
                Peek::End => Some(Peek::End),
            }))
        };
        match poll_fn(|context| poll_until(&self.news, context, &mut look)).await? {
            Some(told) => Ok(told),
            None => Ok(self.reader.try_peek(len_max)?.expect("bytes stay until they are passed")),
        }
    }

    /// As [`Reader::advance`].
    ///
    /// # Panics
    /// As [`Reader::advance`].
    pub fn advance(&mut self, len: usize) {
        self.reader.advance(len);
    }

    /// What comes next; bytes go to the front of `buf`, as many as lie in one piece.
    ///
    /// # Errors
    /// As [`Reader::peek`].
    pub async fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        if buf.is_empty() {
            return Ok(Piece::Data(0));
        }
        Ok(match self.peek(buf.len()).await? {
            Peek::Data(seen) => {
                let len = seen.len();
                buf[..len].copy_from_slice(seen);
                self.advance(len);
                Piece::Data(len)
            }
            Peek::Gap { offset, len } => Piece::Gap { offset, len },
            Peek::End => Piece::End,
        })
    }

    /// As [`Reader::read_at`].
    ///
    /// # Errors
    /// As [`Reader::read_at`].
    pub async fn read_at(&mut self, at: Bytes, buf: &mut [u8]) -> Result<Piece> {
        let Self { reader, news } = self;
        poll_fn(|context| poll_until(news, context, || reader.try_read_at(at, buf))).await
    }

    /// As [`Reader::set_playout`].
    ///
    /// # Errors
    /// As [`Reader::set_playout`].
    pub async fn set_playout(&mut self, to: Bytes) -> Result<()> {
        let Self { reader, news } = self;
        let mut attempt = || Ok(reader.try_set_playout(to)?.then_some(()));
        poll_fn(|context| poll_until(news, context, &mut attempt)).await
    }

    /// As [`Reader::keep`], which never waits.
    ///
    /// # Errors
    /// As [`Reader::keep`].
    pub fn keep(&mut self, len: Bytes) -> Result<()> {
        self.reader.keep(len)
    }

    /// What the reader knows without waiting.
    pub fn get_ref(&self) -> &Reader {
        &self.reader
    }

    /// The reader itself, for what waits: to seek, to change the contract, to close.
    pub fn into_inner(self) -> Reader {
        self.reader
    }
}

impl AsyncRead for AsyncReader {
    /// A gap is an error that holds [`Error::Gap`], once; the next read goes on behind it.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { reader, news } = self.get_mut();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let read = ready!(poll_until(news, context, || {
            let len = match reader.try_peek(buf.remaining())? {
                Some(Peek::Data(seen)) => {
                    buf.put_slice(seen);
                    seen.len()
                }
                Some(Peek::Gap { offset, len }) => return Err(Error::Gap { offset, len }),
                Some(Peek::End) => 0,
                None => return Ok(None),
            };
            reader.advance(len);
            Ok(Some(()))
        }));
        Poll::Ready(Ok(read?))
    }
}

impl AsyncWriter {
    /// A writer on the runtime that this is called on. No other thread may wait for its
    /// [`Writer::durability`]: that one would hear what this one waits for.
    ///
    /// # Errors
    /// Where the stream's window is not shared ([`Writer::is_shared`]).
    ///
    /// # Panics
    /// Outside a runtime of tokio, and on one without input and output.
    pub fn new(writer: Writer) -> Result<Self> {
        let news = news(&writer, writer.is_shared())?;
        Ok(Self { writer, news, syncing: None, seeking: false, closing: false })
    }

    /// As [`Writer::room`].
    ///
    /// # Errors
    /// As [`Writer::room`].
    pub async fn room(&mut self, len_max: usize) -> Result<&mut [u8]> {
        let Self { writer, news, .. } = self;
        let mut look = || Ok(writer.try_room(len_max)?.map(|_| ()));
        poll_fn(|context| poll_until(news, context, &mut look)).await?;
        Ok(writer.try_room(len_max)?.expect("room stays until it is filled"))
    }

    /// As [`Writer::filled`].
    ///
    /// # Panics
    /// As [`Writer::filled`].
    pub fn filled(&mut self, len: usize) {
        self.writer.filled(len);
    }

    /// As [`Writer::sync`].
    ///
    /// # Errors
    /// As [`Writer::sync`].
    pub async fn sync(&mut self) -> Result<Bytes> {
        // The answer to one that nobody waits for any more tells of less.
        if let Some(asked) = self.syncing {
            self.synced(asked).await?;
        }
        let asked = self.writer.begin_sync()?;
        self.syncing = Some(asked);
        self.synced(asked).await
    }

    /// As [`Writer::seek`]. Where this is not awaited to its end, the next call of it awaits the
    /// end of that one first; no other call is to come between.
    ///
    /// # Errors
    /// As [`Writer::seek`].
    pub async fn seek(&mut self, to: Bytes) -> Result<()> {
        if self.seeking {
            // Wherever that has gone, it goes on from there.
            let _ = self.sought().await;
        }
        self.writer.begin_seek(to)?;
        self.seeking = true;
        self.sought().await
    }

    async fn sought(&mut self) -> Result<()> {
        let Self { writer, news, .. } = self;
        let sought = poll_fn(|cx| poll_until(news, cx, || writer.try_sought())).await;
        self.seeking = false;
        sought
    }

    async fn synced(&mut self, asked: u64) -> Result<Bytes> {
        let Self { writer, news, .. } = self;
        let synced = poll_fn(|cx| poll_until(news, cx, || writer.try_synced(asked))).await;
        self.syncing = None;
        synced
    }

    /// As [`Writer::close`].
    ///
    /// # Errors
    /// As [`Writer::close`].
    pub async fn close(mut self) -> Result<Bytes> {
        poll_fn(|context| self.poll_closed(context)).await
    }

    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes>> {
        if !self.closing {
            self.writer.begin_close()?;
            self.closing = true;
        }
        poll_until(&self.news, context, || self.writer.try_closed())
    }

    /// What the writer knows without waiting.
    pub fn get_ref(&self) -> &Writer {
        &self.writer
    }

    /// The writer itself, for what waits: to change the contract, for example. A sync that nobody waits
    /// for any more is waited for here: its answer would be taken for that of the writer's next one.
    pub fn into_inner(mut self) -> Writer {
        if let Some(asked) = self.syncing {
            self.writer.end_sync(asked);
        }
        self.writer
    }
}

impl AsyncWrite for AsyncWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { writer, news, .. } = self.get_mut();
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let written = ready!(poll_until(news, context, || {
            let Some(room) = writer.try_room(bytes.len())? else { return Ok(None) };
            let len = room.len();
            room.copy_from_slice(&bytes[..len]);
            writer.filled(len);
            Ok(Some(len))
        }));
        Poll::Ready(Ok(written?))
    }

    /// Has the daemon notice what was written; not durable yet.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(io::Write::flush(&mut self.get_mut().writer))
    }

    /// As [`Writer::close`]: what was written is on the medium.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = ready!(self.get_mut().poll_closed(context));
        Poll::Ready(Ok(closed.map(drop)?))
    }
}
