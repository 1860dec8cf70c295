//! Requests of one connection that came together are served together: they reach the pool in one
//! go ([`Pool::together`]), and the answers that are there then go to the program in one
//! ([`Outgoing::gather`]).
//!
//! Invariants: a request waits for at most [`REQUESTS_MAX`] others, and for no bytes that have not
//! come; none is left while the connection waits for anything. A request has its place in the
//! account until its answer is in the socket.

use super::account::{Account, Place};
use super::busy_poll::BusyPoll;
use super::frames::{Outgoing, Over};
use crate::lock::Mutex;
use crate::pool::Pool;
use crate::timely::{Lane, Served};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::sync::watch;
use tokio::task::{coop, yield_now};

/// So many are served together: a program that has more under way looks at some answers while others
/// are served. (With 32 of 32, the program and the daemon would wait for each other in turns.)
const REQUESTS_MAX: usize = 8;

/// So many bytes that are moved count as much as half of what else a request takes.
const BYTES_IN_ONE: u64 = 32 << 10;

/// What was read and is not begun.
pub struct Batch {
    pool: Arc<dyn Pool>,
    lane: Lane,
    output: Arc<Outgoing>,
    /// Set where the program does not take its answers, or cannot have one.
    gone: watch::Sender<bool>,
    requests: Mutex<Vec<Served>>,
    /// The places of those whose answers may have been gathered; none while nothing is.
    answered: Arc<Mutex<Option<Vec<Place>>>>,
    pauses: BusyPoll,
    /// What the requests move that were taken since others had their turn.
    moved: AtomicU64,
}

/// The end of a request, also by a panic.
struct End {
    gone: watch::Sender<bool>,
    is_answered: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.is_answered {
            self.gone.send_replace(true);
        }
    }
}

impl Batch {
    /// Of a connection that has read nothing.
    pub fn new(
        pool: Arc<dyn Pool>,
        lane: Lane,
        output: Arc<Outgoing>,
        gone: watch::Sender<bool>,
    ) -> Self {
        let (requests, answered, pauses) = (Mutex::default(), Arc::default(), BusyPoll::default());
        Self { pool, lane, output, gone, requests, answered, pauses, moved: AtomicU64::new(0) }
    }

    /// A request has come, whatever becomes of it.
    pub fn came(&self) {
        self.pauses.came();
    }

    /// Serves a request beside the others of its connection, which has its place until it has
    /// ended: when [`Batch::serve`] is called, or the connection waits.
    pub fn push(
        &self,
        place: Place,
        served: impl Future<Output = Result<(), Over>> + Send + 'static,
    ) {
        self.moved.fetch_add(place.bytes().get(), Ordering::Relaxed);
        let (served, answered) = (self.noting(served), Arc::clone(&self.answered));
        let served = Box::pin(async move {
            served.await;
            let left = match &mut *answered.lock() {
                Some(places) => {
                    places.push(place);
                    None
                }
                None => Some(place),
            };
            drop(left); // not under the lock
        });
        if !self.lane.is_with_others() {
            self.serve(); // in their order
            return self.lane.begin_one(served);
        }
        let mut requests = self.requests.lock();
        requests.push(served);
        if requests.len() >= REQUESTS_MAX {
            drop(requests);
            self.serve();
        }
    }

    /// Takes requests until that ends, and serves what it leaves whenever it waits. `account`: of what
    /// the connection has under way.
    pub async fn serving<T>(&self, account: &Account, taking: impl Future<Output = T>) -> T {
        let mut taking = pin!(taking);
        loop {
            let taken = poll_fn(|context| {
                loop {
                    let taken = taking.as_mut().poll(context);
                    self.serve();
                    if let Poll::Ready(over) = taken {
                        return Poll::Ready(Some(over));
                    }
                    // Others have their turn first: that is no wait for a request.
                    if !coop::has_budget_remaining() {
                        return Poll::Pending;
                    }
                    if !account.is_quiet() || !self.pauses.comes(&self.lane) {
                        return Poll::Pending;
                    }
                    if self.pauses.lets_others() {
                        return Poll::Ready(None);
                    }
                }
            });
            match taken.await {
                Some(over) => return over,
                None => yield_now().await,
            }
        }
    }

    /// A request was taken, and pays for what it does in [`Batch::serve`] without the runtime's budget:
    /// other tasks have their turn after some tens of short ones, or a few MiB, whatever came at once.
    pub async fn taken(&self) {
        let moved = self.moved.swap(0, Ordering::Relaxed);
        for _ in 0..2 + moved / BYTES_IN_ONE {
            coop::consume_budget().await;
        }
    }

    /// As [`Batch::serve`], where there is one request, and no other one was there when it was read.
    pub fn serve_alone(&self) {
        if self.requests.lock().len() == 1 {
            self.serve();
        }
    }

    /// Serves what was read. What needs to wait for nothing has ended when this returns: a task
    /// for it could wake another thread, which takes longer.
    pub fn serve(&self) {
        let mut requests = std::mem::take(&mut *self.requests.lock());
        match requests.len() {
            0 => return,
            1 => return requests.into_iter().for_each(|one| self.lane.begin_unless_ready(one)),
            _ => {}
        }
        *self.answered.lock() = Some(Vec::new());
        self.output.gather();
        // The first look asks the pool for all; the second finds the answers that are there. Without the
        // runtime's budget, which would call them unready: `taken` pays for them.
        for _ in 0..2 {
            let polled = coop::unconstrained(poll_fn(|_| {
                // Whoever looks again asks anew to be woken.
                let mut looks = Context::from_waker(Waker::noop());
                let mut look =
                    || requests.retain_mut(|it| it.as_mut().poll(&mut looks).is_pending());
                self.pool.together(&mut look);
                Poll::Ready(())
            }));
            let _ = pin!(polled).poll(&mut Context::from_waker(Waker::noop()));
        }
        self.output.stop_gathering();
        let (output, places) = (Arc::clone(&self.output), self.answered.lock().take());
        let sent = self.noting(async move { output.send_gathered().await });
        self.lane.begin_unless_ready(Box::pin(async move {
            sent.await;
            drop(places);
        }));
        requests.into_iter().for_each(|rest| self.lane.begin_one(rest));
    }

    /// Notes where the program does not take its answer, or none comes: then it must not wait for it.
    fn noting(
        &self,
        served: impl Future<Output = Result<(), Over>> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let gone = self.gone.clone();
        async move {
            let mut end = End { gone, is_answered: false };
            end.is_answered = served.await.is_ok();
        }
    }
}
