//! A connection's socket, watched by the threads that serve the connection: a byte that comes
//! wakes the thread that watches, whoever reads it then.
//!
//! Invariants: one set of threads watches it at a time; what is read or written is read or written
//! once and in order, however often it goes from one to the other; who waits for the socket is
//! woken when it has gone. A socket that the others cannot watch is closed, and who waits hears of
//! it. The outgoing direction is watched only from when it is full until there was room for a while: a
//! program that takes an answer wakes nobody who has nothing more for it.
//!
//! No wake-up is lost: who has to wait looks at the socket and leaves his waker, both under the
//! lock of his side. Going takes both locks. Who waited before is woken after it, and looks anew.
//! Who looks after it looks at the new registration, for which the system reports at once what is
//! ready already. Nothing that came in between is missed by that.

use crate::lock::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio::task::coop;

/// A connection of either kind.
pub enum Link {
    /// On this machine.
    Unix(UnixStream),
    /// From wherever.
    Tcp(TcpStream),
}

/// The direction from which bytes come.
struct Input {
    watched: AsyncFd<Arc<OwnedFd>>,
    /// Its other end is on this machine.
    is_local: bool,
    /// Somebody has seen that there is something to read, of which who watches need not know.
    is_seen: bool,
}

/// The direction to which bytes go. Its end is told when this is dropped.
struct Output {
    socket: Arc<OwnedFd>,
    /// Its other end is on this machine.
    is_local: bool,
    /// Who watches it.
    threads: Handle,
    /// Since it was full last: the socket, watched by another descriptor, for the system has one
    /// registration for each.
    full: Option<AsyncFd<OwnedFd>>,
    /// Writes since then that found room.
    found_room: u32,
}

/// A program that takes what it is sent leaves room so often in a row: then the socket need not be watched.
const ROOM_MIN: u32 = 16;

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
    fn new(half: Option<H>) -> Mutex<Self> {
        Mutex::new(Self { half, waiting: None })
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

/// Both directions of a connection that ordinary threads watch so far: those that call.
pub fn split(connection: impl Into<Link>) -> (Reading, Writing) {
    let (input, output) = match connection.into().watched() {
        Ok((input, output)) => (Some(input), Some(output)),
        Err(_) => (None, None), // it is closed
    };
    let (reading, writing) = (Side::new(input), Side::new(output));
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
        let (input, mut output) = halves.expect("both were there");
        let _in = threads.enter();
        if let Ok(input) = Input::of(input.watched.into_inner(), input.is_local) {
            (output.threads, output.full) = (threads.clone(), None);
            (reading.half, writing.half) = (Some(input), Some(output));
        }
        self.is_timely.store(is_timely, Ordering::Relaxed);
        let waiting = [reading.waiting.take(), writing.waiting.take()];
        drop((reading, writing));
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// The kernel holds a whole transfer on its way to a program on this machine.
    pub fn hold_answers(&self) {
        let mut writing = self.writing.lock();
        if let Some(half) = writing.half.as_mut().filter(|half| half.is_local) {
            crate::reception::hold_answers(&half.socket);
        }
    }

    /// Whether the program at the other end has closed it ([`is_abandoned`]).
    pub fn is_abandoned(&self) -> bool {
        let of = |half: &Input| (Arc::clone(half.watched.get_ref()), half.is_local);
        match self.reading.lock().half.as_ref().map(of) {
            Some((socket, is_local)) => is_abandoned(&*socket, is_local),
            None => true,
        }
    }

    /// Whether there is something to read, even if it is the end: looks again as long as `goes_on`. Who
    /// reads then need not wait for the threads that watch. False where what was seen before is not read
    /// yet: whoever reads waits for something else.
    pub fn has_input(&self, mut goes_on: impl FnMut() -> bool) -> bool {
        let unread = |half: &Input| (!half.is_seen).then(|| Arc::clone(half.watched.get_ref()));
        let Some(socket) = self.reading.lock().half.as_ref().and_then(unread) else { return false };
        let looks = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let has_input = loop {
            match rustix::net::recv(&socket, &mut [0], looks) {
                Err(Errno::AGAIN) if goes_on() => {}
                looked => break looked != Err(Errno::AGAIN),
            }
        };
        if let Some(half) = &mut self.reading.lock().half {
            half.is_seen = has_input;
        }
        has_input
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
    /// Its directions, watched by the threads that call.
    fn watched(self) -> io::Result<(Input, Output)> {
        let is_local = matches!(self, Self::Unix(_));
        let socket: OwnedFd = match self {
            Self::Unix(connection) => connection.into_std()?.into(),
            Self::Tcp(connection) => connection.into_std()?.into(),
        };
        let (socket, threads) = (Arc::new(socket), Handle::current());
        let input = Input::of(Arc::clone(&socket), is_local)?;
        Ok((input, Output { socket, is_local, threads, full: None, found_room: 0 }))
    }
}

/// Whether the program at the other end of a socket has closed it. One on this machine that only sends
/// nothing more has not: it may wait for its answers. Of one elsewhere nobody can tell these two apart,
/// and it has.
///
/// Asked before each write, however long that has waited: who has gone without an answer may have
/// written anew since, by another connection, and what he has left in a socket would come over that.
/// How long it lay there nobody knows, since the daemon may have stood still. It is one call of the
/// system, of half a microsecond.
pub fn is_abandoned(socket: impl AsFd, is_local: bool) -> bool {
    let end = if is_local { PollFlags::empty() } else { PollFlags::RDHUP };
    let mut looks = [PollFd::new(&socket, end)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut looks, Some(&now)).is_ok_and(|found| found > 0)
        && looks[0].revents().intersects(PollFlags::HUP | end)
}

/// Watches one direction of a socket by the threads that one is in.
#[expect(
    deprecated,
    reason = "what watches also owns the descriptor, or a part of it, as is required"
)]
fn watch<S: AsFd + AsRawFd>(socket: S, direction: Interest) -> io::Result<AsyncFd<S>> {
    AsyncFd::with_interest(socket, direction)
}

impl Input {
    /// Watched by the threads that one is in.
    fn of(socket: Arc<OwnedFd>, is_local: bool) -> io::Result<Self> {
        Ok(Self { watched: watch(socket, Interest::READABLE)?, is_local, is_seen: false })
    }

    /// Reads, where there is something.
    fn read(&self, into: &mut ReadBuf<'_>) -> Result<usize, Errno> {
        let (socket, room) = (self.watched.get_ref(), into.initialize_unfilled());
        rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut *room, RecvFlags::DONTWAIT))
            .map(|(read, _)| read)
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.is_seen)
            && let Ok(read) = self.read(into)
        {
            into.advance(read);
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut guard = ready!(self.watched.poll_read_ready(context))?;
            match self.read(into) {
                Ok(read) => {
                    if 0 < read && read < into.remaining() {
                        guard.clear_ready(); // there was no more
                    }
                    into.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl Output {
    /// Writes by `write`, when there is room.
    fn poll_by<T>(
        &mut self,
        context: &mut Context<'_>,
        mut write: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        // Whoever finds room each time lets others have their turn, too. Where the socket is watched, asking
        // for room does that.
        let turn = match self.full {
            Some(_) => None,
            None => Some(ready!(coop::poll_proceed(context))),
        };
        let is_full = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let written = loop {
            let guard = match &self.full {
                Some(full) => Some(ready!(full.poll_write_ready(context))?),
                None => None,
            };
            match write(self.socket.as_fd()) {
                Err(error) if is_full(&error) => self.found_room = 0,
                written => break written,
            }
            match guard {
                Some(mut guard) => guard.clear_ready(),
                None => {
                    let _in = self.threads.enter();
                    self.full = Some(watch(self.socket.try_clone()?, Interest::WRITABLE)?);
                }
            }
        };
        self.found_room += 1;
        if self.found_room >= ROOM_MIN {
            self.full = None;
            self.found_room = 0;
        }
        if let Some(turn) = turn {
            turn.made_progress();
        }
        Poll::Ready(written)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Write); // it may have gone
    }
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
        self.0.reading.lock().poll(context, |half, context| half.poll_read(context, into))
    }
}

/// The side to which bytes go. The program finds their end when it is dropped.
pub struct Writing(Arc<Socket>);

impl Writing {
    /// Writes by `write`, which does not wait, when there is room: on this machine alone.
    pub fn poll_by<T>(
        &self,
        context: &mut Context<'_>,
        write: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.0.writing.lock().poll(context, |half, context| match half.is_local {
            true => half.poll_by(context, write),
            false => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        })
    }
}

impl AsyncWrite for Writing {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = |socket: BorrowedFd<'_>| {
            // The socket does not wait, and the process ignores the signal of one that has gone.
            Ok(rustix::io::retry_on_intr(|| rustix::io::writev(socket, parts))?)
        };
        self.0.writing.lock().poll(context, |half, context| half.poll_by(context, write))
    }

    fn is_write_vectored(&self) -> bool {
        true // a socket takes several parts at once
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(())) // what was written is in the socket
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.writing.lock().poll(context, |half, _| {
            Poll::Ready(Ok(rustix::net::shutdown(&half.socket, Shutdown::Write)?))
        })
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
    use std::io::Write as _;
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

    /// A write of who has gone would come over what he has written since by another connection.
    #[tokio::test]
    async fn who_has_gone_is_told_from_who_sends_nothing_more() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (input, _output) = split(ours);
        assert!(!input.socket().is_abandoned());
        theirs.write_all(b"the last of it").await.unwrap();
        theirs.shutdown().await.unwrap();
        assert!(!input.socket().is_abandoned(), "he may wait for the answer");
        drop(theirs);
        assert!(input.socket().is_abandoned(), "also with bytes that are not read");
    }

    /// Over TCP nothing says that the other end takes no answers any more: who sends no more has gone.
    #[tokio::test]
    async fn who_has_gone_over_tcp_is_found() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (ours, _) = listener.accept().await.unwrap();
        let (input, _output) = split(ours);
        assert!(!input.socket().is_abandoned());
        drop(theirs);
        while !input.socket().is_abandoned() {
            tokio::task::yield_now().await; // the end is on its way
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

    /// What was seen is read at once, though the threads that watch cannot have told of it: the one there
    /// is has had no turn since.
    #[tokio::test]
    async fn what_was_seen_is_read_before_the_threads_that_watch_know_of_it() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (mut input, _output) = split(UnixStream::from_std(ours).unwrap());
        let socket = Arc::clone(input.socket());
        let mut context = Context::from_waker(Waker::noop());
        let mut looks = 0;
        let has_input = socket.has_input(|| {
            looks += 1;
            looks < 3
        });
        assert!(!has_input && looks == 3, "as long as it is told to");
        assert!(pin!(input.read_u8()).poll(&mut context).is_pending());
        (&theirs).write_all(&[9, 8]).unwrap();
        assert!(pin!(input.read_u8()).poll(&mut context).is_pending(), "nobody has looked");
        assert!(socket.has_input(|| false));
        assert!(!socket.has_input(|| false), "it was not read");
        let Poll::Ready(Ok(9)) = pin!(input.read_u8()).poll(&mut context) else { panic!("seen") };
        // The end is seen as well, and what was seen in vain does no harm.
        assert_eq!(input.read_u8().await.unwrap(), 8);
        drop(theirs);
        assert!(socket.has_input(|| false));
        assert!(input.read_u8().await.is_err());
    }

    /// The outgoing direction is watched from when it is full until there was room for a while.
    #[tokio::test]
    async fn a_socket_with_room_is_not_watched_for_more() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (_input, mut output) = split(ours);
        let is_watched = |output: &Writing| {
            output.0.writing.lock().half.as_ref().is_some_and(|half| half.full.is_some())
        };
        output.write_all(&[1; 100]).await.unwrap();
        assert!(!is_watched(&output));
        let (full, mut taken) = (vec![1; 4 << 20], vec![0; (4 << 20) + 100]);
        let (written, all) = tokio::join!(output.write_all(&full), theirs.read_exact(&mut taken));
        written.and(all.map(drop)).unwrap();
        assert!(is_watched(&output));
        for _ in 0..ROOM_MIN {
            output.write_all(&[1]).await.unwrap();
        }
        assert!(!is_watched(&output));
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
