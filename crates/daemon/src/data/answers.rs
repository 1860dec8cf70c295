//! The way of an answer from where the pool tells it to its program.
//!
//! The pool tells it mostly on a disk's thread, which leaves it in the connection's outbox and wakes a
//! task. That sends what has come together by then at once: at depth a program is woken, and the
//! socket called, once for several answers.
//!
//! A program that has one request at a time waits for each answer. Where nothing is under contract the
//! thread that is told of a short one sends it itself, if the socket takes it at that moment: that
//! takes about as long as to wake the task, and the answer is there a change of threads earlier.
//! Where anything is, disks' threads write to no socket.
//!
//! Invariants: answers go in the order in which the pool told them; a request has its place until its
//! answer is in the socket, or its program does not take it.

use super::account::Place;
use super::frames::{Now, Outgoing, Over};
use crate::lock::Mutex;
use crate::pool::{Ask, Chunk, Handed};
use crate::timely::Lane;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::watch;

/// What a disk's thread sends itself at the most: no more is copied there.
const AT_ONCE_MAX: usize = 16 << 10;

/// What is sent together: no answer waits for more than this before it.
const TOGETHER_MAX: usize = 64 << 10;
const TOGETHER_COUNT_MAX: usize = 32;

/// What the answers of one connection share.
pub struct Way {
    pub ask: Ask,
    pub output: Outgoing,
    /// Which threads serve it: what answers under contract take from the pool to here is measured.
    pub lane: Lane,
    /// Set when the program does not take its answers.
    pub gone: watch::Sender<bool>,
    outbox: Mutex<Outbox>,
}

/// Answers that wait to be sent.
#[derive(Default)]
struct Outbox {
    waiting: VecDeque<Answered>,
    /// A task sends them.
    is_served: bool,
}

/// An answer, handed out then, and the place of its request.
struct Answered {
    _place: Place,
    head: Vec<u8>,
    body: Body,
    handed: Handed,
}

/// The bytes of an answer.
pub enum Body {
    None,
    /// This part of what was read.
    Read(Box<dyn Chunk>, Range<usize>),
}

impl Body {
    fn read(self) -> Option<Box<dyn Chunk>> {
        match self {
            Self::None => None,
            Self::Read(chunk, _) => Some(chunk),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Read(chunk, part) => &chunk.bytes()[part.clone()],
        }
    }
}

impl Way {
    pub fn new(ask: Ask, output: Outgoing, lane: Lane) -> Arc<Self> {
        let (gone, outbox) = (watch::Sender::new(false), Mutex::default());
        Arc::new(Self { ask, output, lane, gone, outbox })
    }

    /// Sends an answer, which the pool has handed out then and whose request has this place until
    /// it is sent.
    pub fn give(self: &Arc<Self>, place: Place, head: &[u8], body: Body, handed: Handed) {
        let is_quick = place.is_alone()
            && body.bytes().len() <= AT_ONCE_MAX
            && !handed.is_promised()
            && !self.ask.0.promises_anything();
        match if is_quick { self.output.send_now(head, body.bytes()) } else { Now::Not } {
            Now::Sent => self.lane.answered(false),
            Now::Begun => {
                self.leave(Answered { _place: place, head: Vec::new(), body: Body::None, handed })
            }
            Now::Not => self.leave(Answered { _place: place, head: head.to_vec(), body, handed }),
        }
    }

    /// Leaves an answer to the task that sends them.
    fn leave(self: &Arc<Self>, answered: Answered) {
        let mut outbox = self.outbox.lock();
        outbox.waiting.push_back(answered);
        let is_served = std::mem::replace(&mut outbox.is_served, true);
        drop(outbox);
        if !is_served {
            let way = Arc::clone(self);
            self.lane.spawn(async move {
                while let Some(answers) = way.next() {
                    if way.send_answers(&answers).await.is_err() {
                        way.gone.send_replace(true);
                    }
                    let chunks = answers.into_iter().filter_map(|answered| answered.body.read());
                    way.ask.0.take_back(&mut { chunks });
                }
            });
        }
    }

    /// What is sent together next; none ends the task.
    fn next(&self) -> Option<Vec<Answered>> {
        let mut outbox = self.outbox.lock();
        let mut len = 0;
        let fits = |answered: &&Answered| {
            len += answered.body.bytes().len();
            len <= TOGETHER_MAX
        };
        let count = outbox.waiting.iter().take(TOGETHER_COUNT_MAX).take_while(fits).count().max(1);
        let count = count.min(outbox.waiting.len());
        outbox.is_served = count > 0;
        (count > 0).then(|| outbox.waiting.drain(..count).collect())
    }

    async fn send_answers(&self, answers: &[Answered]) -> Result<(), Over> {
        for answered in answers {
            self.lane.answered(answered.handed.is_promised());
        }
        let parts = answers.iter().flat_map(|it| [&it.head[..], it.body.bytes()]);
        self.output.send_several(&parts.collect::<Vec<_>>()).await?;
        for answered in answers {
            self.ask.delivered(&self.output.excusing(answered.handed));
        }
        Ok(())
    }

    /// Sends an answer that the pool has handed out then.
    pub async fn send(&self, head: &[u8], body: &[u8], handed: Handed) -> Result<(), Over> {
        self.lane.answered(handed.is_promised());
        self.output.send_parts(head, body).await?;
        self.ask.delivered(&self.output.excusing(handed));
        Ok(())
    }

    /// Serves a request beside the others of its connection.
    pub fn serve<F, S>(self: &Arc<Self>, place: Place, serve: S)
    where
        S: FnOnce(Arc<Self>) -> F,
        F: Future<Output = Result<(), Over>> + Send + 'static,
    {
        place.serve(&self.lane, self.gone.clone(), serve(Arc::clone(self)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SocketMode;
    use crate::data::account::Account;
    use crate::pool::{Callback, Description, HostLateness, Pool, Room};
    use crate::quotas::Peer;
    use crate::timely::{Serving, TimelyThreads, socket};
    use node::{Error, Op, Priority, Recorded, Status, Terms, VolumeId, Who, Wish, WriteRange};
    use std::future::poll_fn;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Poll;
    use units::{Bytes, Instant};

    /// A pool that says whether anything is under contract, and nothing else.
    struct Promising(AtomicBool);

    impl Pool for Promising {
        fn promises_anything(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
        fn submit(&self, _: Who, _: Op, _: Callback) {
            unreachable!()
        }
        fn submit_since(&self, _: Who, _: Instant, _: Op, _: Callback) {
            unreachable!()
        }
        fn write(
            &self,
            _: Who,
            _: Instant,
            _: String,
            _: Option<Priority>,
            _: WriteRange,
            _: Box<dyn Room>,
            _: Callback,
        ) {
            unreachable!()
        }
        fn status(&self) -> Status {
            unreachable!()
        }
        fn written(
            &self,
            _: &Who,
            _: (&str, VolumeId),
            _: Range<Bytes>,
        ) -> Result<Vec<(Bytes, bool)>, Error> {
            unreachable!()
        }
        fn volume_id(&self, _: &str) -> Option<VolumeId> {
            None
        }
        fn terms(&self, _: &str, _: &Wish) -> Option<Terms> {
            None
        }
        fn recorded(&self, _: &str) -> Option<Recorded> {
            None
        }
        fn description(&self) -> Description {
            unreachable!()
        }
        fn host_lateness(&self) -> HostLateness {
            unreachable!()
        }
        fn warnings(&self) -> Vec<String> {
            Vec::new()
        }
    }

    struct Bytes7(Vec<u8>);

    impl Chunk for Bytes7 {
        fn bytes(&self) -> &[u8] {
            &self.0
        }
        fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
            self
        }
    }

    /// What a pool has read.
    fn read(len: usize) -> Body {
        Body::Read(Box::new(Bytes7(vec![7; len + 10])), 5..5 + len)
    }

    /// One connection, whose tasks run when the test lets them: there is no other thread.
    struct Connection {
        pool: Arc<Promising>,
        way: Arc<Way>,
        account: Arc<Account>,
        program: UnixStream,
    }

    impl Connection {
        fn new() -> Self {
            let (ours, program) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            program.set_nonblocking(true).unwrap();
            let ours = tokio::net::UnixStream::from_std(ours).unwrap();
            let (_, output) = socket::split(ours);
            let pool = Arc::new(Promising(AtomicBool::new(false)));
            let threads = TimelyThreads::start(Serving::WithOthers).unwrap();
            let lane = threads.handle().lane(1, false);
            let ask = Ask(Arc::clone(&pool) as Arc<dyn Pool>, Who::root());
            let way = Way::new(ask, Outgoing::new(output), lane);
            let quotas = crate::serve::ServeOptions::from(SocketMode(0o600)).quotas;
            let peer = Peer { uid: 1, gid: 1, groups: [1].into(), scope: None };
            let account = Account::new(quotas.connect(&peer).ok().unwrap());
            Self { pool, way, account: Arc::new(account), program }
        }

        async fn give(&self, head: &[u8], body: Body) {
            let place = self.account.place("", Bytes::kib(4), || 0).await;
            self.way.give(place, head, body, Handed::now());
        }

        /// What is in the socket.
        fn came(&mut self) -> Vec<u8> {
            let mut came = Vec::new();
            let error = self.program.read_to_end(&mut came).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
            came
        }

        /// The same, until everything is there.
        async fn came_later(&mut self) -> Vec<u8> {
            let mut came = Vec::new();
            let account = Arc::clone(&self.account);
            let mut quiet = std::pin::pin!(account.quiet());
            while poll_fn(|context| Poll::Ready(quiet.as_mut().poll(context).is_pending())).await {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                came.extend(self.came());
            }
            came.extend(self.came());
            came
        }
    }

    #[tokio::test]
    async fn a_short_answer_is_sent_at_once_where_nothing_is_promised() {
        let mut connection = Connection::new();
        connection.give(&[1, 2], read(AT_ONCE_MAX)).await;
        let came = connection.came();
        assert_eq!((&came[..2], came.len()), (&[1, 2][..], AT_ONCE_MAX + 2));
        assert!(came[2..].iter().all(|&byte| byte == 7));
        connection.give(&[3], Body::None).await;
        assert_eq!(connection.came(), [3]);
        // What is longer, and of several, and everything where somebody is promised something, tasks
        // send.
        connection.give(&[4], read(AT_ONCE_MAX + 1)).await;
        connection.give(&[5], Body::None).await;
        assert!(connection.came().is_empty());
        assert_eq!(connection.came_later().await.len(), AT_ONCE_MAX + 3);
        let other = connection.account.place("", Bytes::kib(4), || 0).await;
        connection.give(&[6], Body::None).await;
        assert!(connection.came().is_empty());
        drop(other);
        assert_eq!(connection.came_later().await, [6]);
        connection.pool.0.store(true, Ordering::Relaxed);
        connection.give(&[7], Body::None).await;
        assert!(connection.came().is_empty());
        assert_eq!(connection.came_later().await, [7]);
    }

    /// A socket that takes a part, or nothing: the rest comes when there is room, in order.
    #[tokio::test]
    async fn a_full_socket_tears_no_answer() {
        let mut connection = Connection::new();
        let (mut wanted, mut came, count) = (Vec::new(), Vec::new(), 200);
        for number in 0..count {
            // At first each is alone, until the socket is full.
            let most = if number < 50 { 1 } else { 3 } * AT_ONCE_MAX;
            let len = 1 + number * 9_973 % most;
            wanted.push(len);
            connection.give(&[number as u8], read(len)).await;
            // As many as may be under way.
            if number % 50 == 49 {
                came.extend(connection.came_later().await);
            }
        }
        let (mut at, mut heads) = (0, Vec::new());
        while at < came.len() {
            heads.push(came[at]);
            let len = wanted[usize::from(came[at])];
            assert!(came[at + 1..][..len].iter().all(|&byte| byte == 7));
            at += 1 + len;
        }
        assert_eq!(heads, (0..count as u8).collect::<Vec<_>>());
    }
}
