//! The threads on which connections under contract are served: few, with real-time priority
//! where the system permits it, beside those that serve everybody else.
//!
//! What is served here is what was promised something: streams, handles with a contract of their
//! own, and connections to volumes under contract, by whichever protocol. A connection moves: to
//! these threads with the first answer under contract, and away from them when many answers in a
//! row were under none ([`Lane::answered`]). Its socket goes with it ([`socket`]).
//!
//! Invariants: at least one processor is left to ordinary threads, where there are several,
//! whatever these programs do; each user has a bounded part of the time of these threads, and all
//! together have one ([`budget`]): whoever has used up his part goes on with ordinary threads
//! until he has some again, and makes no contract of others wait.
//!
//! What is in nobody's part: what comes while a connection is served here and does not read. It
//! wakes one of these threads, no more often than a socket holds pieces, until it reads on.

mod budget;
pub mod socket;

use budget::{Budget, Budgets};
use socket::Socket;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// What these threads are called.
pub const NAME: &str = "slackline-timely";
/// How many there are at the most: they only move bytes and words.
const THREADS_MAX: usize = 2;
/// A connection of which so many answers in a row were under no contract is under none.
const UNPROMISED_MAX: u32 = 64;

thread_local! {
    static IS_TIMELY: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is one of these threads.
pub fn is_here() -> bool {
    IS_TIMELY.get()
}

/// Which threads serve what is under contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// Threads of their own, with real-time priority if that is permitted.
    InRealTime,
    /// Threads of their own, with ordinary priority.
    Apart,
    /// Those that serve everybody: for tests that stop their runtime's clock.
    WithOthers,
}

/// The threads. They end when this is dropped.
pub struct TimelyThreads {
    runtime: Option<Runtime>,
    timely: Timely,
    /// They have real-time priority.
    pub in_real_time: bool,
}

impl TimelyThreads {
    /// Starts them, with real-time priority if that is asked for and permitted.
    ///
    /// # Errors
    /// Where the system gives no threads.
    pub fn start(serving: Serving) -> std::io::Result<Self> {
        if serving == Serving::WithOthers {
            let (here, others) = (Handle::current(), Handle::current());
            let timely = Timely { here, others, is_apart: false, budgets: Arc::default() };
            return Ok(Self { runtime: None, timely, in_real_time: false });
        }
        let realtime = serving == Serving::InRealTime;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // The priority is that of the thread that tries, and ends with it.
        let tried = realtime.then(|| std::thread::spawn(engine::deliver_in_time).join());
        let in_real_time = matches!(tried, Some(Ok(Ok(()))));
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS_MAX.min(processors - 1).max(1))
            .thread_name(NAME)
            .on_thread_start(move || {
                IS_TIMELY.set(true);
                if realtime {
                    // The warning of the disks' threads is of this, too.
                    let _ = engine::deliver_in_time();
                }
            })
            .enable_all()
            .build()?;
        let (here, others) = (runtime.handle().clone(), Handle::current());
        let timely = Timely { here, others, is_apart: true, budgets: Arc::default() };
        Ok(Self { runtime: Some(runtime), timely, in_real_time })
    }

    /// The way to them.
    pub fn handle(&self) -> Timely {
        self.timely.clone()
    }
}

impl Drop for TimelyThreads {
    fn drop(&mut self) {
        // What still hangs on a connection has been told; it is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The way to the threads, and to those that serve everybody else.
#[derive(Clone)]
pub struct Timely {
    here: Handle,
    others: Handle,
    /// They are others' threads, too.
    is_apart: bool,
    budgets: Arc<Budgets>,
}

impl Timely {
    /// Where a user's connection is served: by these threads as long as it `is_promised`
    /// something and its user has time left on them.
    pub fn lane(&self, uid: u32, is_promised: bool) -> Lane {
        let unpromised = AtomicU32::new(if is_promised { 0 } else { UNPROMISED_MAX });
        let lane = self.lane_with(unpromised);
        lane.belongs_to(uid);
        lane
    }

    /// Where the connection of somebody is served of whom nobody knows yet who he is: not by
    /// these threads.
    pub fn lane_of_a_stranger(&self) -> Lane {
        self.lane_with(AtomicU32::new(UNPROMISED_MAX))
    }

    fn lane_with(&self, unpromised: AtomicU32) -> Lane {
        let (budget, socket) = (OnceLock::new(), OnceLock::new());
        let standing = Standing { unpromised, budget, socket };
        Lane { timely: self.clone(), standing: Arc::new(standing) }
    }
}

/// Where one connection is served.
#[derive(Clone)]
pub struct Lane {
    timely: Timely,
    standing: Arc<Standing>,
}

/// Whether it may be by these threads.
struct Standing {
    /// Answers in a row that were under no contract.
    unpromised: AtomicU32,
    /// Its user's; none while nobody knows who he is.
    budget: OnceLock<Arc<Budget>>,
    /// What is watched by the threads that serve the connection; closed with the connection.
    socket: OnceLock<Weak<Socket>>,
}

impl Standing {
    fn is_promised(&self) -> bool {
        self.unpromised.load(Ordering::Relaxed) < UNPROMISED_MAX
    }

    fn may_stay(&self) -> bool {
        let may = |budget: &Arc<Budget>| budget.may_stay(engine::now());
        self.is_promised() && self.budget.get().is_some_and(may)
    }

    fn may_come(&self) -> bool {
        let may = |budget: &Arc<Budget>| budget.may_come(engine::now());
        self.is_promised() && self.budget.get().is_some_and(may)
    }
}

impl Lane {
    /// It is this user's, whose part of the time it has from now on. A connection has one user.
    pub fn belongs_to(&self, uid: u32) {
        self.standing.budget.get_or_init(|| self.timely.budgets.of(engine::now(), uid));
    }

    /// It is under contract from now on, until its answers say otherwise.
    pub fn promise(&self) {
        self.standing.unpromised.store(0, Ordering::Relaxed);
    }

    /// It is under no contract any more.
    pub fn unpromise(&self) {
        self.standing.unpromised.store(UNPROMISED_MAX, Ordering::Relaxed);
    }

    /// Whether it is under contract.
    pub fn is_promised(&self) -> bool {
        self.standing.is_promised()
    }

    /// An answer was under contract, or not.
    pub fn answered(&self, is_promised: bool) {
        match is_promised {
            true => self.promise(),
            false => {
                // No more than it takes: it does not go round.
                let more = |count: u32| (count < UNPROMISED_MAX).then_some(count + 1);
                let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
                let _ = self.standing.unpromised.fetch_update(set, fetch, more);
            }
        }
    }

    /// The connection's socket is watched from now on by the threads that [serve](Self::serve) it.
    pub fn takes(&self, socket: &Arc<Socket>) {
        let taken = self.standing.socket.set(Arc::downgrade(socket));
        assert!(taken.is_ok(), "a connection has one socket");
    }

    /// The connection's socket, where it has one of its own and that is open.
    pub fn socket(&self) -> Option<Arc<Socket>> {
        self.standing.socket.get().and_then(Weak::upgrade)
    }

    /// Whether the program at the other end of that socket has closed it, or it is closed here.
    pub fn is_abandoned(&self) -> bool {
        self.socket().is_none_or(|socket| socket.is_abandoned())
    }

    /// Serves the connection, and waits for its end.
    pub async fn serve(&self, served: impl Future<Output = ()> + Send + 'static) {
        let (ends, ended) = oneshot::channel::<()>();
        let socket = self.standing.socket.get().cloned().unwrap_or_default();
        let served = async move {
            served.await;
            drop(ends);
        };
        self.begin(Box::pin(served), socket);
        // A panic there has said why; at the end of the process nothing is left to do.
        let _ = ended.await;
    }

    /// Serves something of the connection by the threads that it may be served by, and moves
    /// with that.
    pub fn spawn(&self, served: impl Future<Output = ()> + Send + 'static) {
        self.begin(Box::pin(served), Weak::new());
    }

    /// The same.
    pub fn begin_one(&self, served: Served) {
        self.begin(served, Weak::new());
    }

    /// The same, for what may have nothing to wait for: then it is done by the thread that calls,
    /// where that is one of those that serve everybody.
    pub fn begin_unless_ready(&self, mut served: Served) {
        // Whoever looks again asks anew to be woken.
        let mut looks = Context::from_waker(Waker::noop());
        if self.is_with_others() && served.as_mut().poll(&mut looks).is_ready() {
            return;
        }
        self.begin_one(served);
    }

    /// Whether this thread is one of those that serve everybody, and the connection is theirs.
    pub fn is_with_others(&self) -> bool {
        !self.timely.is_apart || (!is_here() && !self.standing.may_come())
    }

    /// The same, and `socket` moves with it.
    fn begin(&self, served: Served, socket: Weak<Socket>) {
        if !self.timely.is_apart {
            self.timely.others.spawn(served);
            return;
        }
        let is_here = if is_here() { self.standing.may_stay() } else { self.standing.may_come() };
        Stint { served: Some(served), lane: self.clone(), socket, is_here }.begin();
    }
}

/// Something of a connection that is served.
pub type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is served, as long as it stays where it is.
struct Stint {
    served: Option<Served>,
    lane: Lane,
    /// Of who serves the connection as a whole: it alone reads. Else none.
    socket: Weak<Socket>,
    is_here: bool,
}

impl Stint {
    fn begin(self) {
        self.threads().clone().spawn(self);
    }

    fn threads(&self) -> &Handle {
        let Timely { here, others, .. } = &self.lane.timely;
        if self.is_here { here } else { others }
    }

    /// The rest of it, where it is to go on with the other threads.
    fn goes(&mut self) -> Option<Self> {
        let standing = &self.lane.standing;
        let goes = if self.is_here { !standing.may_stay() } else { standing.may_come() };
        let served = if goes { self.served.take() } else { None };
        let (lane, socket, is_here) = (self.lane.clone(), self.socket.clone(), !self.is_here);
        served.map(|served| Self { served: Some(served), lane, socket, is_here })
    }
}

impl Future for Stint {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(rest) = self.goes() {
            rest.begin();
            return Poll::Ready(());
        }
        let began = self.is_here.then(engine::thread_time);
        if let Some(socket) = self.socket.upgrade() {
            socket.go(self.is_here, self.threads());
        }
        let Self { served, lane, .. } = &mut *self;
        let Some(running) = served else { return Poll::Ready(()) };
        // What it starts besides, and what it waits for, is not for these threads: they serve
        // what was promised something, and nobody else's work.
        let others = lane.timely.others.enter();
        let polled = running.as_mut().poll(context);
        drop(others);
        if let (Some(began), Some(budget)) = (began, lane.standing.budget.get()) {
            let took = engine::thread_time().saturating_sub(began);
            budget.spend(engine::now(), took);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// What a connection under contract starts besides is nobody's promise, and could take these
    /// threads' processors from all contracts.
    #[tokio::test]
    async fn what_is_started_there_runs_with_ordinary_threads() {
        let threads = TimelyThreads::start(Serving::Apart).unwrap();
        let (said, heard) = oneshot::channel();
        let served = async move {
            let itself = is_here();
            let spawned = tokio::spawn(async { is_here() }).await.unwrap();
            let blocking = tokio::task::spawn_blocking(is_here).await.unwrap();
            let _ = said.send((itself, spawned, blocking));
        };
        threads.handle().lane(1, true).serve(served).await;
        assert_eq!(heard.await, Ok((true, false, false)));
    }

    /// A control request is behind an answer under contract on the same connection.
    #[tokio::test]
    async fn who_is_promised_nothing_any_more_leaves_with_the_next_turn() {
        let threads = TimelyThreads::start(Serving::Apart).unwrap();
        let lane = threads.handle().lane(1, true);
        let (said, heard) = oneshot::channel();
        let leaving = lane.clone();
        let served = async move {
            let before = is_here();
            leaving.unpromise();
            tokio::task::yield_now().await;
            let _ = said.send((before, is_here()));
        };
        lane.serve(served).await;
        assert_eq!(heard.await, Ok((true, false)));
    }
    /// Bytes that come, to a connection whose user has used up his part, are nobody's part.
    #[tokio::test]
    async fn what_comes_to_a_connection_that_has_left_wakes_none_of_these_threads() {
        const ROUNDS: u32 = 400;
        /// More than the runtime lets a task do in one turn: 128.
        const TURN_MAX: u32 = 200;
        let threads = TimelyThreads::start(Serving::Apart).unwrap();
        let (ours, mut theirs) = tokio::net::UnixStream::pair().unwrap();
        let (mut input, mut output) = socket::split(ours);
        let lane = threads.handle().lane(1, true);
        lane.takes(input.socket());
        let budget = Arc::clone(lane.standing.budget.get().unwrap());
        let served = async move {
            // Until the program has gone: each byte is answered with where it was read.
            while input.read_u8().await.is_ok() {
                output.write_u8(is_here().into()).await.unwrap();
            }
        };
        let program = async move {
            let mut say = async || {
                theirs.write_u8(7).await.unwrap();
                theirs.read_u8().await.unwrap()
            };
            let woken = || {
                let metrics = threads.runtime.as_ref().unwrap().metrics();
                (0..metrics.num_workers()).map(|one| metrics.worker_park_count(one)).sum::<u64>()
            };
            assert_eq!(say().await, 1, "under contract");
            let before = woken();
            for _ in 0..ROUNDS {
                say().await;
            }
            // How many depends on who is faster: what is there already needs no wake-up.
            assert!(woken() > before, "what comes to one that is here wakes them");
            budget.spend(engine::now(), units::Duration::from_secs(3_600));
            // A turn that has begun goes on, and takes as many bytes as come while it runs.
            let mut last = 0;
            while say().await == 1 {
                last += 1;
                assert!(last < TURN_MAX, "his part is used up");
            }
            let before = woken();
            for _ in 0..ROUNDS {
                assert_eq!(say().await, 0);
            }
            let more = woken() - before;
            assert!(more <= u64::from(ROUNDS) / 8, "woken {more} times by {ROUNDS} bytes");
        };
        tokio::join!(lane.serve(served), program);
    }
}
