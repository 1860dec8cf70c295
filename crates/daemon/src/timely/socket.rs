//! A connection's socket, watched by the threads that serve the connection: a byte that comes
//! wakes the thread that watches, whoever reads it then.
//!
//! Invariants: one set of threads watches it at a time; what is read or written is read or written
//! once and in order, however often it goes from one to the other; who waits for the socket is
//! woken when it has gone. A socket that the others cannot watch is closed, and who waits hears of
//! it.
//!
//! No wake-up is lost: who has to wait looks at the socket and leaves his waker, both under the
//! lock of his side. Going takes both locks. Who waited before is woken after it, and looks anew.
//! Who looks after it looks at the new registration, for which the system reports at once what is
//! ready already. Nothing that came in between is missed by that.

use crate::lock::Mutex;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio::runtime::Handle;

/// A connection of either kind.
pub enum Link {
    /// On this machine.
    Unix(UnixStream),
    /// From wherever.
    Tcp(TcpStream),
}

/// The direction from which bytes come.
enum Input {
    Unix(unix::OwnedReadHalf),
    Tcp(tcp::OwnedReadHalf),
}

/// The direction to which bytes go.
enum Output {
    Unix(unix::OwnedWriteHalf),
    Tcp(tcp::OwnedWriteHalf),
}

impl Output {
    /// As who writes by the runtime sees it.
    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        match self {
            Self::Unix(half) => Pin::new(half),
            Self::Tcp(half) => Pin::new(half),
        }
    }
}

/// The socket of one connection.
pub struct Socket {
    // Both are locked in this order.
    reading: Mutex<Side<Input>>,
    writing: Mutex<Side<Output>>,
    /// The timely threads watch it. Changed under both locks.
    is_timely: AtomicBool,
}

/// One direction.
struct Side<H> {
    /// None where it is closed.
    half: Option<H>,
    /// Who found it not ready last. One task at a time uses a side.
    waiting: Option<Waker>,
}

impl<H> Side<H> {
    fn new(half: H) -> Mutex<Self> {
        Mutex::new(Self { half: Some(half), waiting: None })
    }

    /// What `look` finds; a look that has to wait leaves its waker.
    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        look: impl FnOnce(&mut H, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Some(half) = &mut self.half else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let found = look(half, context);
        if found.is_pending() {
            match &mut self.waiting {
                Some(waiting) => waiting.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
        }
        found
    }
}

/// Both directions of a connection that ordinary threads watch so far.
pub fn split(connection: impl Into<Link>) -> (Reading, Writing) {
    let (reading, writing) = connection.into().into_split();
    let (reading, writing) = (Side::new(reading), Side::new(writing));
    let socket = Arc::new(Socket { reading, writing, is_timely: AtomicBool::new(false) });
    (Reading(Arc::clone(&socket)), Writing(socket))
}

impl Socket {
    /// It is watched by `threads` from now on, timely ones or not.
    pub(super) fn go(&self, is_timely: bool, threads: &Handle) {
        if self.is_timely.load(Ordering::Relaxed) == is_timely {
            return;
        }
        let (mut reading, mut writing) = (self.reading.lock(), self.writing.lock());
        if self.is_timely.load(Ordering::Relaxed) == is_timely {
            return; // another was faster
        }
        if reading.half.is_none() || writing.half.is_none() {
            return; // one side is closed, and so will be the other
        }
        let halves = reading.half.take().zip(writing.half.take());
        let (input, output) = halves.expect("both were there");
        if let Ok((input, output)) = watched(input, output, threads) {
            (reading.half, writing.half) = (Some(input), Some(output));
        }
        self.is_timely.store(is_timely, Ordering::Relaxed);
        let waiting = [reading.waiting.take(), writing.waiting.take()];
        drop((reading, writing));
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl From<UnixStream> for Link {
    fn from(connection: UnixStream) -> Self {
        Self::Unix(connection)
    }
}

impl From<TcpStream> for Link {
    fn from(connection: TcpStream) -> Self {
        Self::Tcp(connection)
    }
}

impl Link {
    fn into_split(self) -> (Input, Output) {
        match self {
            Self::Unix(connection) => {
                let (input, output) = connection.into_split();
                (Input::Unix(input), Output::Unix(output))
            }
            Self::Tcp(connection) => {
                let (input, output) = connection.into_split();
                (Input::Tcp(input), Output::Tcp(output))
            }
        }
    }
}

/// The same socket, watched by `threads`; closed where they cannot watch it.
fn watched(input: Input, output: Output, threads: &Handle) -> io::Result<(Input, Output)> {
    let link = match (input, output) {
        (Input::Unix(input), Output::Unix(output)) => {
            let whole = input.reunite(output).map_err(io::Error::other)?.into_std()?;
            let _in = threads.enter();
            Link::Unix(UnixStream::from_std(whole)?)
        }
        (Input::Tcp(input), Output::Tcp(output)) => {
            let whole = input.reunite(output).map_err(io::Error::other)?.into_std()?;
            let _in = threads.enter();
            Link::Tcp(TcpStream::from_std(whole)?)
        }
        _ => unreachable!("both are of one socket"),
    };
    Ok(link.into_split())
}

/// The side from which bytes come.
pub struct Reading(Arc<Socket>);

impl Reading {
    /// The socket that it is a side of.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.0
    }
}

impl AsyncRead for Reading {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = |half: &mut Input, context: &mut Context<'_>| match half {
            Input::Unix(half) => Pin::new(half).poll_read(context, into),
            Input::Tcp(half) => Pin::new(half).poll_read(context, into),
        };
        self.0.reading.lock().poll(context, read)
    }
}

/// The side to which bytes go. The program finds their end when it is dropped.
pub struct Writing(Arc<Socket>);

impl Writing {
    /// Writes by `write`, when there is room: on this machine alone.
    pub fn poll_by<T>(
        &self,
        context: &mut Context<'_>,
        mut write: impl FnMut(&UnixStream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.0.writing.lock().poll(context, |half, context| {
            let Output::Unix(half) = half else {
                return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
            };
            let whole: &UnixStream = half.as_ref();
            loop {
                ready!(whole.poll_write_ready(context))?;
                match whole.try_io(Interest::WRITABLE, || write(whole)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    written => return Poll::Ready(written),
                }
            }
        })
    }

    fn poll<T>(
        &self,
        context: &mut Context<'_>,
        write: impl FnOnce(
            Pin<&mut (dyn AsyncWrite + Send + Unpin)>,
            &mut Context<'_>,
        ) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.0.writing.lock().poll(context, |half, context| write(half.writer(), context))
    }
}

impl AsyncWrite for Writing {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(context, |half, context| half.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(context, |half, context| half.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true // a socket takes several parts at once
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(context, |half, context| half.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(context, |half, context| half.poll_shutdown(context))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let half = self.0.writing.lock().half.take();
        drop(half); // with its end told, and not under the lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::{Builder, Runtime};

    fn threads() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    /// How often who waits was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Both sides wait, one for bytes and one for room, while the socket goes: nothing is sent or
    /// taken that would wake them otherwise.
    #[tokio::test]
    async fn who_waits_is_woken_when_the_socket_goes() {
        let there = threads();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut input, mut output) = split(ours);
        let socket = Arc::clone(input.socket());
        let [reader, writer] = [(); 2].map(|()| Arc::new(Woken::default()));
        let full = vec![1; 4 << 20];
        {
            let (mut reading, mut writing) = (pin!(input.read_u8()), pin!(output.write_all(&full)));
            let wakers = [&reader, &writer].map(|woken| Waker::from(Arc::clone(woken)));
            let [read, write] = wakers.each_ref().map(Context::from_waker);
            let (mut read, mut write) = (read, write);
            assert!(reading.as_mut().poll(&mut read).is_pending());
            assert!(writing.as_mut().poll(&mut write).is_pending());
            let woken = || [&reader, &writer].map(|woken| woken.0.swap(0, Ordering::SeqCst));
            woken();
            socket.go(true, there.handle());
            assert!(woken().iter().all(|&times| times > 0), "both look anew");
            assert!(reading.as_mut().poll(&mut read).is_pending());
            // Where it is already, it stays.
            socket.go(true, there.handle());
            theirs.write_u8(9).await.unwrap();
            let mut taken = vec![0; full.len()];
            let (byte, written, all) =
                tokio::join!(reading, writing, theirs.read_exact(&mut taken));
            assert_eq!(byte.unwrap(), 9);
            written.and(all.map(drop)).unwrap();
            assert!(taken == full);
        }
        tokio::task::spawn_blocking(|| drop((input, output, there))).await.unwrap();
    }

    /// In each round the socket goes a few times at any moment, while both sides send more than
    /// it holds, in pieces of all lengths. Nothing but the bytes themselves goes on after that: a
    /// wake-up that is lost is not made up for by the next one.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_connection_that_goes_many_times_loses_no_byte_and_no_wake_up() {
        const ROUNDS: usize = 400;
        const LEN: usize = 600 << 10;
        let there = threads();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut input, mut output) = split(ours);
        let (mut from, mut to) = theirs.into_split();
        let bytes: Arc<Vec<u8>> = Arc::new((0..LEN).map(|at| (at * 31 + at / 255) as u8).collect());
        for round in 0..ROUNDS {
            let socket = Arc::clone(input.socket());
            let (others, timely) = (Handle::current(), there.handle().clone());
            let moved = tokio::task::spawn_blocking(move || {
                for one in 0..round % 5 + 1 {
                    let spins = (round * 7_919 + one * 104_729) % 50_000;
                    (0..spins).for_each(|_| std::hint::spin_loop());
                    let is_timely = !socket.is_timely.load(Ordering::Relaxed);
                    socket.go(is_timely, if is_timely { &timely } else { &others });
                }
            });
            let sent = Arc::clone(&bytes);
            let sending = tokio::spawn(async move {
                output.write_all(&sent).await.unwrap();
                output
            });
            let taking = tokio::spawn(async move {
                let mut taken = vec![0; LEN];
                input.read_exact(&mut taken).await.unwrap();
                (input, taken)
            });
            let giving = async {
                let mut at = 0;
                while at < LEN {
                    let len = (at % 9_973 + 1).min(LEN - at);
                    to.write_all(&bytes[at..at + len]).await.unwrap();
                    at += len;
                }
            };
            let mut back = vec![0; LEN];
            let ((), all) = tokio::join!(giving, from.read_exact(&mut back));
            all.unwrap();
            let taken;
            (input, taken) = taking.await.unwrap();
            output = sending.await.unwrap();
            moved.await.unwrap();
            assert!(taken == *bytes && back == *bytes, "in round {round}");
        }
        tokio::task::spawn_blocking(|| drop((input, output, there))).await.unwrap();
    }

    /// The system has no way to watch it: nobody waits for ever, and the program finds the end.
    #[tokio::test]
    async fn a_socket_that_nobody_can_watch_is_closed_and_who_waits_hears_of_it() {
        let gone = threads();
        let handle = gone.handle().clone();
        tokio::task::spawn_blocking(|| drop(gone)).await.unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut input, mut output) = split(ours);
        let socket = Arc::clone(input.socket());
        let woken = Arc::new(Woken::default());
        {
            let waker = Waker::from(Arc::clone(&woken));
            let mut reading = pin!(input.read_u8());
            assert!(reading.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            socket.go(true, &handle);
            assert_eq!(woken.0.load(Ordering::SeqCst), 1);
            assert!(reading.await.is_err());
        }
        assert!(output.write_u8(1).await.is_err());
        assert!(poll_fn(|context| output.poll_by(context, |_| Ok(()))).await.is_err());
        assert_eq!(theirs.read(&mut [0]).await.unwrap(), 0, "the end");
    }

    /// As with every half of a socket: a program that waits for the end of the answers finds it.
    #[tokio::test]
    async fn the_program_finds_the_end_when_nothing_more_is_written() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (input, output) = split(ours);
        drop(output);
        assert_eq!(theirs.read(&mut [0]).await.unwrap(), 0);
        drop(input);
    }
}
