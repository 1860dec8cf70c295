//! The control socket: takes connections, and carries HTTP on each.
//!
//! Invariants: accepting waits for no program; head and body of a request, the answer's
//! being taken and the time between two requests have an end each (`limits`); a
//! connection without a request under way gives way to others (`door`).

use crate::api;
use crate::door::{Door, Full, Kind, Place};
use crate::limits::{ANSWER_TAKEN_WITHIN, CONTROL_HEAD_MAX, CONTROL_HEAD_WITHIN};
use crate::lock::Mutex;
use crate::made_room::MadeRoom;
use crate::pool::{Ask, Handed};
use crate::quotas::{Peer, Quotas};
use crate::reception::{accept, full, say};
use crate::timely::{self, Lane, Timely};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, Sleep, sleep_until};
use wire::Problem;
use wire::control::PROBLEM_TYPE;

/// Takes control connections until `stopping`, each in a task of its own.
pub async fn serve(
    listener: UnixListener,
    router: Router,
    (door, quotas, timely): (Arc<Door>, Arc<Quotas>, Timely),
    mut stopping: watch::Receiver<bool>,
) {
    let is_stopping = stopping.clone();
    let accepting = async {
        loop {
            let connection = accept(&listener, &door).await;
            let peer = Peer::of(&connection);
            match door.enter(Kind::Control, peer.uid, quotas.is_administrator(&peer)).await {
                Ok(place) => {
                    // Until it is asked for something under contract.
                    let lane = timely.lane(peer.uid, false);
                    let carriage = Carriage {
                        lane: lane.clone(),
                        sending: Arc::default(),
                        room: MadeRoom::default(),
                    };
                    let caller = (peer, carriage);
                    let carried =
                        carry(connection, place, router.clone(), caller, is_stopping.clone());
                    lane.spawn(carried);
                }
                Err(why) => refuse(&connection, &full(why, &quotas.name(&peer))),
            }
        }
    };
    tokio::select! {
        () = accepting => unreachable!("accepting never ends"),
        _ = stopping.wait_for(|&stopping| stopping) => {}
    }
}

/// Says why there is no place.
fn refuse(connection: &UnixStream, problem: &Problem) {
    let body = serde_json::to_string(problem).expect("messages are JSON");
    let answer = format!(
        "HTTP/1.1 {} Refused\r\ncontent-type: {PROBLEM_TYPE}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        problem.status,
        body.len()
    );
    say(connection, answer.as_bytes());
}

/// Carries one connection to its end.
async fn carry(
    connection: UnixStream,
    place: Place,
    router: Router,
    (peer, carriage): (Peer, Carriage),
    mut stopping: watch::Receiver<bool>,
) {
    let place = Arc::new(place);
    let answered = Arc::new(AtomicBool::new(false));
    let io = Taken::new(connection, Arc::clone(&place), Arc::clone(&answered), carriage.clone());
    let service = {
        let place = Arc::clone(&place);
        service_fn(move |request| {
            let caller = (peer.clone(), carriage.clone());
            let answer = answer(request, Arc::clone(&place), router.clone(), caller);
            let answered = Arc::clone(&answered);
            async move {
                let answer = answer.await;
                answered.store(true, Ordering::Relaxed);
                answer
            }
        })
    };
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(CONTROL_HEAD_WITHIN)
            .max_buf_size(CONTROL_HEAD_MAX)
            .serve_connection(TokioIo::new(io), service)
    );
    // However it ends is its program's affair.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.left() => return,
        _ = stopping.wait_for(|&stopping| stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! { _ = connection => {}, () = place.left() => {} }
}

/// Answers one request, when it is the user's turn.
async fn answer(
    mut request: hyper::Request<Incoming>,
    place: Arc<Place>,
    router: Router,
    (peer, carriage): (Peer, Carriage),
) -> Result<Response, Infallible> {
    carriage.lane.unpromise();
    if timely::is_here() {
        // The head was read there. What is asked is done by the threads that serve everybody.
        tokio::task::yield_now().await;
    }
    if !place.at_work() {
        return Ok(api::Failure::from(full(Full::GaveWay, "")).into_response());
    }
    let turn = Turn::new(place.requests().acquire_owned().await.expect("never closed"));
    request.extensions_mut().insert(turn.clone());
    request.extensions_mut().insert(carriage);
    request.extensions_mut().insert(ConnectInfo(peer));
    let answer = TowerToHyperService::new(router).call(request).await;
    turn.end();
    answer
}

/// A request's turn among those of its user: to be ended early by what takes in many bytes, which
/// are counted as such.
#[derive(Clone)]
pub struct Turn(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Turn {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(Mutex::new(Some(permit))))
    }

    /// Others have theirs from now on.
    pub fn end(&self) {
        drop(self.0.lock().take());
    }
}

/// How the bytes of an answer go to the program.
#[derive(Clone)]
pub struct Carriage {
    /// Which threads serve the connection.
    pub lane: Lane,
    /// What of the pool's is on its way into the socket.
    sending: Arc<Mutex<Vec<(Ask, Handed)>>>,
    /// When the program had to make room there.
    room: MadeRoom,
}

impl Carriage {
    /// These bytes of an answer, which the pool handed out then, go into the socket next.
    pub fn sends(&self, ask: &Ask, handed: Handed) {
        self.lane.answered(handed.is_promised());
        self.sending.lock().push((ask.clone(), handed));
    }

    /// All are in the socket.
    fn sent(&self) {
        let answers = std::mem::take(&mut *self.sending.lock());
        for (ask, handed) in answers {
            ask.delivered(&handed.excusing(&self.room));
        }
    }
}

/// A connection whose program takes its answers: each within [`ANSWER_TAKEN_WITHIN`], or
/// writing fails. With the last byte of an answer it waits for the next request.
struct Taken {
    connection: UnixStream,
    place: Arc<Place>,
    /// There is an answer, which has not been written as a whole.
    answered: Arc<AtomicBool>,
    carriage: Carriage,
    /// When the answer must be taken, from when it first was not.
    until: Option<Pin<Box<Sleep>>>,
}

impl Taken {
    fn new(
        connection: UnixStream,
        place: Arc<Place>,
        answered: Arc<AtomicBool>,
        carriage: Carriage,
    ) -> Self {
        Self { connection, place, answered, carriage, until: None }
    }

    /// What becomes of a write that has to wait.
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let begin = || Box::pin(sleep_until(Instant::now() + ANSWER_TAKEN_WITHIN));
        ready!(self.until.get_or_insert_with(begin).as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Taken {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buf)
    }
}

impl AsyncWrite for Taken {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { connection, carriage, .. } = &mut *self;
        let written = carriage.room.watch(cx, |cx| Pin::new(connection).poll_write(cx, buf));
        if written.is_pending() { self.wait(cx) } else { written }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { connection, carriage, .. } = &mut *self;
        let write = |cx: &mut Context<'_>| Pin::new(connection).poll_write_vectored(cx, bufs);
        let written = carriage.room.watch(cx, write);
        if written.is_pending() { self.wait(cx) } else { written }
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Asked for when nothing is left to be written.
        self.until = None;
        self.carriage.sent();
        if self.answered.swap(false, Ordering::Relaxed) {
            self.place.waits_again();
        }
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
