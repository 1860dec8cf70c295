//! Frames from and to a socket.

use crate::ends::Out;
use crate::limits::{ANSWER_TAKEN_WITHIN, FRAME_WITHIN, GOODBYE_WITHIN, within};
use crate::lock::{AsyncMutex, Mutex};
use crate::made_room::MadeRoom;
use crate::pace::{self, Pace};
use crate::pool::{Handed, Room};
use crate::timely::socket::{Reading, Writing};
use bytes::Buf;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::thread::{self, ThreadId};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};
use units::Duration;
use wire::Problem;
use wire::frame::{HEAD_LEN, Head, text_body};

/// How a connection ends.
#[derive(Debug)]
pub enum Over {
    /// The program asked for it.
    ByRequest,
    /// The program has gone, or hears nothing more.
    Gone,
    /// The program has not taken an answer in time.
    NotTaken,
    /// The program is told why, then the connection ends.
    Failed(Box<Problem>),
    /// The program was silent for longer than this.
    Silent(Duration),
    /// The daemon wants it.
    Stopped(crate::sessions::Stop),
}

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// So much is gathered before it is sent: a socket takes more.
const GATHERED_MAX: usize = 64 << 10;
/// A longer body is sent from where it lies: to copy it would take as long as a call of the system.
const GATHERED_BODY_MAX: usize = 16 << 10;

/// Small frames are read many at a time; bodies go to their place directly.
const HEADS_BUFFER: usize = 4096;

/// The first head on a connection, and its body. Nothing behind it is read.
pub async fn first(connection: &mut UnixStream) -> Result<(Head, Vec<u8>), Over> {
    let mut head = [0; HEAD_LEN];
    connection.read_exact(&mut head).await?;
    let (head, len) = Head::decode(&head).map_err(|error| broken(error.to_string()))?;
    let mut body = vec![0; len];
    connection.read_exact(&mut body).await?;
    Ok((head, body))
}

/// Tells a program whose connection is not served why.
pub fn refuse(connection: &UnixStream, problem: &Problem) {
    let text = text_of(problem);
    let body = text_body(&text);
    let head = Head::Failed { tag: 0, code: problem.code }.encode(body.len());
    crate::reception::say(connection, &[&head[..], body].concat());
}

/// The frames that come from a program.
pub struct Incoming {
    half: BufReader<Reading>,
    /// The part of a head that has come,
    head: [u8; HEAD_LEN],
    have: usize,
    /// and until when the rest must.
    until: Instant,
}

/// A program did not go on with a frame in time.
fn stopped() -> Over {
    let within = FRAME_WITHIN.as_secs();
    broken(format!("a frame stopped in the middle for {within} s"))
}

impl Incoming {
    pub fn new(half: Reading) -> Self {
        let half = BufReader::with_capacity(HEADS_BUFFER, half);
        Self { half, head: [0; HEAD_LEN], have: 0, until: Instant::now() }
    }

    /// The next head and the length of its body. Until it begins, a program may take its
    /// time. Dropped while it waits, it loses nothing.
    pub async fn head(&mut self) -> Result<(Head, usize), Over> {
        if self.have == 0 {
            // No clock is read for a head that is there.
            if let Some(head) = self.half.fill_buf().await?.first_chunk() {
                let head = Head::decode(head);
                self.half.consume(HEAD_LEN);
                return head.map_err(|error| broken(error.to_string()));
            }
            self.until = Instant::now() + FRAME_WITHIN;
        }
        while self.have < HEAD_LEN {
            let rest = &mut self.head[self.have..];
            match timeout_at(self.until, self.half.read(rest)).await.map_err(|_| stopped())?? {
                0 => return Err(Over::Gone),
                read => self.have += read,
            }
        }
        self.have = 0;
        Head::decode(&self.head).map_err(|error| broken(error.to_string()))
    }

    /// Whether another head is there already.
    pub fn has_head(&self) -> bool {
        self.has(HEAD_LEN)
    }

    /// Whether so many bytes are.
    pub fn has(&self, len: usize) -> bool {
        self.half.buffer().len() >= len
    }

    /// Fills the first `len` bytes of `room`.
    pub async fn fill(&mut self, room: &mut dyn Room, skip: usize, len: usize) -> Result<(), Over> {
        let into = &mut room.bytes_mut()[skip..][..len];
        Ok(pace::fill(&mut self.half, into).await.ok_or_else(stopped)??)
    }

    /// Reads the rest of a body for which there is no place.
    pub async fn discard(&mut self, len: usize) -> Result<(), Over> {
        Ok(pace::discard(&mut self.half, len).await.ok_or_else(stopped)??)
    }
}

/// The frames that go to a program; each is sent whole before the next.
///
/// A send that is dropped half-way leaves a torn frame behind, so every later send fails: nothing may
/// follow it; so does each behind one that was not taken in time. One that is dropped before its first
/// byte leaves nothing behind.
pub struct Outgoing {
    sending: AsyncMutex<Sending>,
    gathered: Mutex<Gathered>,
    room: MadeRoom,
}

/// Short answers that go before the next message, whichever that is.
#[derive(Default)]
struct Gathered {
    /// Which thread gathers what it answers, and will send it.
    by: Option<ThreadId>,
    bytes: Vec<u8>,
}

struct Sending {
    half: Out,
    /// What was gathered, and goes before the next message.
    before: Vec<u8>,
    /// Not in the middle of a frame.
    whole: bool,
}

impl Outgoing {
    pub fn new(half: Writing) -> Self {
        Self::to(Out::Plain(half))
    }

    /// Encrypted, or not.
    pub fn to(half: Out) -> Self {
        let sending = AsyncMutex::new(Sending { half, before: Vec::new(), whole: true });
        Self { sending, gathered: Mutex::default(), room: MadeRoom::default() }
    }

    /// Sends an answer under no contract, or gathers it.
    pub async fn answer_with(&self, head: Head, body: &[u8]) -> Result<(), Over> {
        self.answer(&head.encode(body.len()), body).await
    }

    /// Sends one frame.
    pub async fn send(&self, head: Head, body: &[u8]) -> Result<(), Over> {
        self.send_parts(&head.encode(body.len()), body).await
    }

    /// An answer that is in the socket: the time in which the program had to make room there, for
    /// this or for what was sent before, is its own.
    pub fn excusing(&self, handed: Handed) -> Handed {
        handed.excusing(&self.room)
    }

    /// Sends one message of any protocol, in two parts. Its time begins when it is its turn.
    pub async fn send_parts(&self, head: &[u8], body: &[u8]) -> Result<(), Over> {
        let mut sending = self.sending.lock().await;
        if !sending.whole {
            return Err(Over::Gone);
        }
        let Sending { half, before, whole } = &mut *sending;
        // It stays there until something of it is sent.
        before.append(&mut self.gathered.lock().bytes);
        let sent =
            self.send_all(half, whole, Buf::chain(&before[..], Buf::chain(head, body))).await;
        before.clear();
        *whole = sent.is_ok();
        sent
    }

    /// Sends all of it, or clears `whole` with its first byte.
    async fn send_all(
        &self,
        half: &mut Out,
        whole: &mut bool,
        mut frame: impl Buf,
    ) -> Result<(), Over> {
        if !frame.has_remaining() {
            return Ok(());
        }
        let mut pace = Pace::new(ANSWER_TAKEN_WITHIN);
        while frame.has_remaining() {
            let writing = poll_fn(|context| {
                let write = |context: &mut Context<'_>| {
                    let written = ready!(pin!(half.write_buf(&mut frame)).poll(context));
                    *whole = false;
                    Poll::Ready(written)
                };
                self.room.watch(context, write)
            });
            match pace.next(writing).await.ok_or(Over::NotTaken)?? {
                0 => return Err(Over::Gone),
                written => pace.moved(written),
            }
        }
        // What is encrypted is not in the socket before.
        let flushing =
            poll_fn(|context| self.room.watch(context, |context| pin!(half.flush()).poll(context)));
        Ok(pace.next(flushing).await.ok_or(Over::NotTaken)??)
    }

    /// From now on this thread's short answers are gathered: it calls
    /// [`Outgoing::stop_gathering`] soon, and sees to it that they are sent.
    pub fn gather(&self) {
        self.gathered.lock().by = Some(thread::current().id());
    }

    /// From now on nothing is gathered.
    pub fn stop_gathering(&self) {
        self.gathered.lock().by = None;
    }

    /// Sends what was gathered.
    pub async fn send_gathered(&self) -> Result<(), Over> {
        self.send_parts(&[], &[]).await
    }

    /// Sends an answer under no contract, or gathers it.
    pub async fn answer(&self, head: &[u8], body: &[u8]) -> Result<(), Over> {
        match self.gathered(head, body) {
            None => self.send_parts(head, body).await,
            Some(..GATHERED_MAX) => Ok(()),
            Some(_) => self.send_parts(&[], &[]).await,
        }
    }

    /// Gathers an answer where that is done: how much there is then.
    fn gathered(&self, head: &[u8], body: &[u8]) -> Option<usize> {
        let mut gathered = self.gathered.lock();
        let is_full = gathered.bytes.len() >= GATHERED_MAX;
        let is_others = gathered.by != Some(thread::current().id());
        if is_others || is_full || body.len() > GATHERED_BODY_MAX {
            return None;
        }
        gathered.bytes.extend_from_slice(head);
        gathered.bytes.extend_from_slice(body);
        Some(gathered.bytes.len())
    }

    /// Sends a frame without a body, and descriptors with it.
    pub async fn send_with(&self, head: Head, fds: &[BorrowedFd<'_>]) -> Result<(), Over> {
        let bytes = head.encode(0);
        let mut sending = self.sending.lock().await;
        if !sending.whole {
            return Err(Over::Gone);
        }
        let Sending { half: Out::Plain(half), whole, .. } = &mut *sending else {
            return Err(Over::Gone); // descriptors go nowhere but to this machine
        };
        let send = |socket: BorrowedFd<'_>| send_fds(socket, &bytes, fds);
        let all = async {
            let first = poll_fn(|context| {
                let sent = ready!(half.poll_by(context, send));
                *whole = false;
                Poll::Ready(sent)
            });
            let sent = first.await?;
            half.write_all(&bytes[sent..]).await
        };
        let sent = within(ANSWER_TAKEN_WITHIN, all).await;
        let sent = sent.ok_or(Over::NotTaken).and_then(|sent| Ok(sent?));
        sending.whole = sent.is_ok();
        sent
    }

    /// Tells a program that nothing more comes, where that can be told; it may have gone.
    pub async fn end(&self) {
        let ending = async {
            let _ = self.send_gathered().await;
            self.sending.lock().await.half.shutdown().await
        };
        let _ = timeout(GOODBYE_WITHIN, ending).await;
    }

    /// Sends a frame to a program that may have gone, or does not read.
    pub async fn send_last(&self, head: Head) {
        let _ = tokio::time::timeout(GOODBYE_WITHIN, self.send(head, &[])).await;
    }

    /// Tells a program what went wrong.
    pub async fn fail(&self, tag: u64, problem: &Problem) -> Result<(), Over> {
        self.send(Head::Failed { tag, code: problem.code }, text_body(&text_of(problem))).await
    }

    /// Tells a program, which may have gone or not read, what went wrong.
    pub async fn fail_last(&self, problem: &Problem) {
        let _ = tokio::time::timeout(GOODBYE_WITHIN, self.fail(0, problem)).await;
    }
}

/// The text of a failure.
fn text_of(Problem { detail, next_step, .. }: &Problem) -> String {
    format!("{detail}\n{next_step}")
}

/// Sends the beginning of a frame, with descriptors.
fn send_fds(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = control.push(SendAncillaryMessage::ScmRights(fds));
    assert!(fits, "a frame carries two descriptors at the most");
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    Ok(rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?)
}

/// The problem that an error of the pool is, as the end of the connection.
pub fn failed(error: node::Error) -> Over {
    Over::Failed(Box::new(crate::problem::of(&error)))
}

/// A frame that does not belong on this connection.
pub fn misplaced(head: Head, on: &str) -> Over {
    broken(format!("{head:?} has no meaning on a connection for {on}"))
}

/// The protocol was broken, in this way.
pub fn broken(what: impl Into<String>) -> Over {
    Over::Failed(Box::new(super::protocol(what)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Wake, Waker};
    use tokio::io::AsyncReadExt;

    /// An answer behind one that its program does not take waits for the program, not for the
    /// daemon.
    #[tokio::test]
    async fn what_waits_for_a_program_to_make_room_is_its_own_time() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (_input, output) = crate::timely::socket::split(ours);
        let output = Outgoing::new(output);
        let long = vec![7; 4 << 20];
        let mut first = pin!(output.send_parts(&long, &[]));
        let mut second = pin!(output.send_parts(&[1], &[2]));
        poll_fn(|context| {
            // The first has the socket, and finds it full; the second waits for it.
            assert!(first.as_mut().poll(context).is_pending());
            assert!(second.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        let handed = engine::now();
        let mut taken = vec![0; long.len() + 2];
        let (first, second, _) = tokio::join!(first, second, theirs.read_exact(&mut taken));
        first.and(second).unwrap();
        assert!(!output.room.since(handed).is_zero());
        // With room there is nothing to wait for.
        let handed = engine::now();
        output.send_parts(&[3], &[]).await.unwrap();
        assert_eq!(output.room.since(handed), Duration::ZERO);
    }

    /// What is gathered goes in its order, and before whatever comes next; nothing is kept that nobody
    /// sends.
    #[tokio::test]
    async fn answers_are_gathered_until_somebody_sends_them() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (_input, output) = crate::timely::socket::split(ours);
        let output = Outgoing::new(output);
        let mut came = [0; 64];
        output.answer(&[1], &[2]).await.unwrap();
        assert_eq!(theirs.read(&mut came).await.unwrap(), 2, "nobody gathers");
        output.gather();
        output.answer(&[3], &[4]).await.unwrap();
        output.answer(&[5], &[]).await.unwrap();
        assert!(theirs.try_read(&mut came).is_err(), "gathered");
        output.send_parts(&[6], &[7]).await.unwrap();
        assert_eq!(theirs.read(&mut came).await.unwrap(), 5);
        assert_eq!(came[..5], [3, 4, 5, 6, 7]);
        output.answer(&[8], &[]).await.unwrap();
        output.stop_gathering();
        output.send_gathered().await.unwrap();
        assert_eq!(theirs.read(&mut came).await.unwrap(), 1);
        output.answer(&[9], &[]).await.unwrap();
        assert_eq!(theirs.read(&mut came).await.unwrap(), 1, "nobody gathers any more");
        output.send_gathered().await.unwrap();
        assert!(theirs.try_read(&mut came).is_err(), "there is nothing to send");

        // What is much is not kept, and what is long is not copied.
        output.gather();
        for body in [vec![1; GATHERED_BODY_MAX], vec![2; GATHERED_BODY_MAX + 1]] {
            let long = body.len() > GATHERED_BODY_MAX;
            let count = if long { 1 } else { GATHERED_MAX / GATHERED_BODY_MAX };
            for _ in 0..count {
                assert!(theirs.try_read(&mut came).is_err(), "gathered");
                output.answer(&[], &body).await.unwrap();
            }
            let mut all = vec![0; count * body.len()];
            theirs.read_exact(&mut all).await.unwrap();
            assert!(all.chunks(body.len()).all(|it| it == body));
        }
    }

    /// A send that is dropped before anything of it is in the socket leaves nothing torn behind: what
    /// comes next goes, and what was gathered before it.
    #[tokio::test]
    async fn a_send_that_is_dropped_before_it_began_keeps_nothing_from_being_sent() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let full = vec![7; 1 << 20];
        ours.writable().await.unwrap();
        let mut filled = 0;
        while let Ok(written) = ours.try_write(&full) {
            filled += written;
        }
        let mut taken = vec![0; filled];
        let (_input, output) = crate::timely::socket::split(ours);
        let output = Outgoing::new(output);
        output.gather();
        output.answer(&[1], &[2]).await.unwrap();
        output.stop_gathering();
        {
            let mut dropped = pin!(output.send_parts(&[3], &[]));
            let looked = poll_fn(|context| Poll::Ready(dropped.as_mut().poll(context))).await;
            assert!(looked.is_pending(), "the socket is full");
        }
        theirs.read_exact(&mut taken).await.unwrap();
        output.send_parts(&[4], &[]).await.unwrap();
        let mut came = [0; 8];
        assert_eq!(theirs.read(&mut came).await.unwrap(), 3);
        assert_eq!(came[..3], [1, 2, 4]);
        // In the middle of a frame nothing follows.
        {
            let mut torn = pin!(output.send_parts(&full, &full));
            let looked = poll_fn(|context| Poll::Ready(torn.as_mut().poll(context))).await;
            assert!(looked.is_pending(), "more than the socket has room for");
        }
        assert!(output.send_parts(&[5], &[]).await.is_err());
    }

    /// A waker that says that it was called.
    #[derive(Default)]
    struct Called(AtomicBool);

    impl Wake for Called {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// The thread that sends stands still before it finds the socket full, and again when there
    /// is room: both are the daemon's, and what lies between is the program's.
    #[tokio::test]
    async fn what_the_daemon_takes_beside_a_full_socket_is_its_own_time() {
        let stands_still = || {
            let began = engine::now();
            std::thread::sleep(std::time::Duration::from_millis(30));
            engine::now().saturating_since(began)
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_input, output) = crate::timely::socket::split(ours);
        let output = Outgoing::new(output);
        let long = vec![7; 4 << 20];
        let mut sending = pin!(output.send_parts(&long, &[]));
        let called = Arc::new(Called::default());
        let waker = Waker::from(Arc::clone(&called));
        let mut context = Context::from_waker(&waker);

        let handed = engine::now();
        let before = stands_still();
        assert!(sending.as_mut().poll(&mut context).is_pending());
        let mut taken = vec![0; 1 << 20];
        while !called.0.load(Ordering::SeqCst) {
            let _ = theirs.try_read(&mut taken);
            // The system is looked at.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let full = output.room.since(handed);
        let after = stands_still();
        assert_eq!(output.room.since(handed), full, "there is room since");
        assert!(sending.as_mut().poll(&mut context).is_pending(), "so long a message");
        let whole = engine::now().saturating_since(handed);
        assert!(!full.is_zero() && full + before + after <= whole, "{full} of {whole}");
        assert!(
            output.room.since(handed) + before + after <= engine::now().saturating_since(handed)
        );
    }
}
