//! The control socket, and HTTP over TCP: takes connections, and carries HTTP on each.
//!
//! Invariants: accepting waits for no program; head and body of a request, the answer's
//! being taken and the time between two requests have an end each (`limits`); a
//! connection without a request under way, or with one that waits for its turn, gives way to others
//! (`door`). What was begun is done to its end with its turn and all else that it has of its user's,
//! whether or not its client waits for it: else who asks and hangs up would have as much under way as
//! he likes. An answer has the turn until it is in the socket: else who asks and does not read would
//! have as much of the daemon's memory as he likes.

use crate::api;
use crate::asker::Waits;
use crate::door::{self, Door, Guest, Kind};
use crate::ends::Whole;
use crate::limits::{ANSWER_TAKEN_WITHIN, CONTROL_HEAD_MAX, CONTROL_HEAD_WITHIN, LAST_WORD_WITHIN};
use crate::lock::Mutex;
use crate::made_room::MadeRoom;
use crate::other_end::OtherEnd;
use crate::page;
use crate::player;
use crate::pool::{Ask, Handed};
use crate::quotas::{Peer, Quotas};
use crate::reception::{accept, full, hold_answers, say};
use crate::seat::{Bearer, Caller, Seat};
use crate::tcp::Gate;
use crate::timely::{self, Lane, Timely};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
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
            match door
                .enter(Kind::Control, Guest::User(peer.uid), quotas.is_administrator(&peer))
                .await
            {
                Ok(place) => {
                    // Until it is asked for something under contract.
                    let (lane, whole) = (timely.lane(peer.uid, false), Whole::Unix(connection));
                    let (seat, carriage) = (Seat::new(place), Carriage::new(lane.clone(), &whole));
                    let caller = (Caller::Known(peer), carriage);
                    let (router, stopping) = (router.clone(), is_stopping.clone());
                    lane.spawn(carry(whole, seat, router, caller, stopping));
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

/// The same over TCP: the router holds each request to the token that is shown with it.
pub async fn serve_tcp(
    listener: TcpListener,
    router: Router,
    gate: Gate,
    mut stopping: watch::Receiver<bool>,
) {
    let is_stopping = stopping.clone();
    let accepting = async {
        loop {
            let (connection, place) = gate.next(&listener, Kind::Control).await;
            let (router, gate, stopping) = (router.clone(), gate.clone(), is_stopping.clone());
            tokio::spawn(async move {
                let (seat, lane) = (Seat::new(place), gate.timely.lane_of_a_stranger());
                let whole = match &gate.tls {
                    None => Some(Whole::Tcp(connection)),
                    Some(tls) => tokio::select! {
                        stream = tls.accept(connection) => {
                            stream.map(|stream| Whole::Secret(Box::new(stream)))
                        }
                        () = seat.left() => None,
                    },
                };
                let Some(whole) = whole else { return };
                let carriage = Carriage::new(lane.clone(), &whole);
                let bearer = Arc::new(Bearer::new(gate, lane.clone()));
                let caller = (Caller::Bearer(bearer), carriage);
                lane.spawn(carry(whole, seat, router, caller, stopping));
            });
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
    connection: Whole,
    seat: Arc<Seat>,
    router: Router,
    (caller, carriage): (Caller, Carriage),
    mut stopping: watch::Receiver<bool>,
) {
    let answered = Arc::new(Answered::default());
    let io = Taken::new(connection, Arc::clone(&seat), Arc::clone(&answered), carriage.clone());
    let over = caller.clone();
    let service = {
        let seat = Arc::clone(&seat);
        service_fn(move |request| {
            let caller = (caller.clone(), carriage.clone());
            let answer = answer(request, Arc::clone(&seat), router.clone(), caller);
            let answered = Arc::clone(&answered);
            async move {
                let answer = answer.await;
                Ok::<_, Infallible>(Answer::of(answer, answered))
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
        biased; // whoever is to leave because the daemon stops leaves in order
        _ = stopping.wait_for(|&stopping| stopping) => {}
        _ = connection.as_mut() => return,
        () = seat.left() => return,
        () = over.over() => return,
    }
    connection.as_mut().graceful_shutdown();
    // One that watches has been answered long ago, and is told that this was all.
    let left = async {
        seat.left().await;
        tokio::time::sleep(LAST_WORD_WITHIN).await;
    };
    tokio::select! { _ = connection => {}, () = left => {} }
}

/// Answers one request, when it is the user's turn.
async fn answer(
    mut request: hyper::Request<Incoming>,
    seat: Arc<Seat>,
    router: Router,
    (caller, carriage): (Caller, Carriage),
) -> Response {
    carriage.lane.unpromise();
    if timely::is_here() {
        // The head was read there. What is asked is done by the threads that serve everybody.
        tokio::task::yield_now().await;
    }
    let asked = match page::part(request.method(), request.uri().path(), &caller) {
        Some(part) => Err(part),
        None => match caller.peer(&request, &seat).await {
            Ok(peer) => Ok((peer, in_turn(&seat).await)),
            Err(problem) => Err(not_let_in(problem)),
        },
    };
    // Up to here it waited, and its place may have been needed.
    let is_at_work = seat.place().at_work();
    let (peer, turn) = match asked {
        _ if !is_at_work => return gave_way(&seat),
        Ok((_, None)) => return gave_way(&seat),
        Ok((peer, Some(turn))) => (peer, turn),
        Err(answer) => return answer,
    };
    let (lane, waits) = (carriage.lane.clone(), Waits::default());
    request.extensions_mut().insert(turn.clone());
    request.extensions_mut().insert(waits.asker());
    request.extensions_mut().insert(player::Secret(caller.is_secret()));
    request.extensions_mut().insert(carriage);
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut answer = served(request, router, turn).await;
    drop(waits);
    if lane.is_promised() && !timely::is_here() {
        // Its body is carried by the threads that serve what is under contract.
        tokio::task::yield_now().await;
    }
    // What the daemon says of itself is so now; a cache would have to guess for how long.
    let kept = answer.headers_mut().entry(header::CACHE_CONTROL);
    kept.or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Waits for the user's turn; none where the place is given away before.
async fn in_turn(seat: &Seat) -> Option<Turn> {
    let place = seat.place();
    tokio::select! {
        biased; // mostly there is one
        turn = place.turn() => Some(Turn::new(turn)),
        () = seat.left() => None,
    }
}

/// What is said on a connection whose place is another's now.
fn gave_way(seat: &Seat) -> Response {
    api::Failure::from(full(seat.place().why_left(), "")).into_response()
}

/// Does what is asked, to its end and with its turn, though the client may be gone by then, and this
/// with him. What needs to wait for nothing is done here; for all else there is a task. The answer
/// has the turn with it.
async fn served(request: hyper::Request<Incoming>, router: Router, turn: Turn) -> Response {
    let answer = TowerToHyperService::new(router).call(request);
    let mut served = Box::pin(async move {
        let Ok(mut answer) = answer.await;
        answer.extensions_mut().insert(turn);
        answer
    });
    // Whoever looks again asks anew to be woken.
    match poll_fn(|cx| Poll::Ready(served.as_mut().poll(cx))).await {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            let ended = tokio::spawn(served).await;
            ended.unwrap_or_else(|_| api::Failure::from(crate::problem::fault()).into_response())
        }
    }
}

/// The turn of a connection's last answer, from when the last of that was given to be written until it
/// is in the socket. There is one at a time: hyper takes no request from what was sent in advance before
/// the answer to the last one is flushed.
#[derive(Default)]
struct Answered(Mutex<Option<Turn>>);

impl Answered {
    /// All that was answered is in the socket. True where that was the end of an answer.
    fn sent(&self) -> bool {
        let turn = self.0.lock().take();
        turn.is_some() // dropped behind the lock
    }
}

/// An answer is given to be written as a whole, or never will be.
struct Ended {
    answered: Arc<Answered>,
    /// What it keeps of its user's until it is in the socket.
    turn: Turn,
}

impl Drop for Ended {
    fn drop(&mut self) {
        *self.answered.0.lock() = Some(std::mem::take(&mut self.turn));
    }
}

/// The body of an answer. Its connection waits for its program when the last of it is written: until
/// then it gives way to nobody. Who is sent events has an answer without an end, and gives way as one
/// who waits: he comes again.
struct Answer {
    body: Body,
    ended: Option<Ended>,
}

impl Answer {
    fn of(mut answer: Response, answered: Arc<Answered>) -> hyper::Response<Self> {
        // None has what is said without a turn.
        let turn = answer.extensions_mut().remove().unwrap_or_default();
        let kind = answer.headers().get(header::CONTENT_TYPE);
        let watches = kind.is_some_and(|kind| kind == "text/event-stream");
        let ended = Some(Ended { answered, turn }).filter(|_| !watches);
        answer.map(|body| Self { body, ended })
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.ended = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What is said to who shows no token that is good. He comes again with a new connection, which
/// takes its turn among those of strangers.
fn not_let_in(problem: Box<Problem>) -> Response {
    let mut answer = api::Failure::from(problem).into_response();
    let headers = answer.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// A request's turn among those of its user, and its answer's: to be ended early by what takes in or
/// gives many bytes, and by what is sent for as long as somebody watches; both are counted as such.
#[derive(Clone, Default)]
pub struct Turn(Arc<Mutex<Option<door::Turn>>>);

impl Turn {
    fn new(turn: door::Turn) -> Self {
        Self(Arc::new(Mutex::new(Some(turn))))
    }

    /// Others have theirs from now on.
    pub fn end(&self) {
        drop(self.0.lock().take());
    }
}

/// How the bytes of an answer go to the program, where it is there.
#[derive(Clone)]
pub struct Carriage {
    /// Which threads serve the connection.
    pub lane: Lane,
    /// Whether it is.
    pub other_end: Arc<OtherEnd>,
    /// What of the pool's is on its way into the socket.
    sending: Arc<Mutex<Vec<(Ask, Handed)>>>,
    /// Some of it was, so that the socket is to hold more.
    has_bodies: Arc<AtomicBool>,
    /// When the program had to make room there.
    room: MadeRoom,
}

impl Carriage {
    fn new(lane: Lane, connection: &Whole) -> Self {
        let other_end = Arc::new(OtherEnd::of(connection));
        let (sending, has_bodies) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        Self { lane, other_end, sending, has_bodies, room: MadeRoom::default() }
    }

    /// These bytes of an answer, which the pool handed out then, go into the socket next.
    pub fn sends(&self, ask: &Ask, handed: Handed) {
        self.lane.answered(handed.is_promised());
        self.has_bodies.store(true, Ordering::Relaxed);
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
    connection: Whole,
    seat: Arc<Seat>,
    /// The answer that was given to be written.
    answered: Arc<Answered>,
    carriage: Carriage,
    /// The socket holds a whole transfer.
    holds: bool,
    /// When the answer must be taken, from when it first was not.
    until: Option<Pin<Box<Sleep>>>,
}

impl Taken {
    fn new(
        connection: Whole,
        seat: Arc<Seat>,
        answered: Arc<Answered>,
        carriage: Carriage,
    ) -> Self {
        Self { connection, seat, answered, carriage, holds: false, until: None }
    }

    /// With the first bytes of the pool's, a socket of this machine is made to hold more of them.
    fn hold(&mut self) {
        if !self.holds && self.carriage.has_bodies.load(Ordering::Relaxed) {
            self.holds = true;
            if let Whole::Unix(connection) = &self.connection {
                hold_answers(connection);
            }
        }
    }

    /// What becomes of a write that has to wait.
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let begin = || Box::pin(sleep_until(Instant::now() + ANSWER_TAKEN_WITHIN));
        ready!(self.until.get_or_insert_with(begin).as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.carriage.other_end.ends();
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
        self.hold();
        let Self { connection, carriage, .. } = &mut *self;
        let written = carriage.room.watch(cx, |cx| Pin::new(connection).poll_write(cx, buf));
        if written.is_pending() { self.wait(cx) } else { written }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.hold();
        let Self { connection, carriage, .. } = &mut *self;
        let write = |cx: &mut Context<'_>| Pin::new(connection).poll_write_vectored(cx, bufs);
        let written = carriage.room.watch(cx, write);
        if written.is_pending() { self.wait(cx) } else { written }
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Asked for when nothing is left to be written but what was encrypted.
        let Self { connection, carriage, .. } = &mut *self;
        let flushed = carriage.room.watch(cx, |cx| Pin::new(connection).poll_flush(cx));
        if flushed.is_pending() {
            return self.wait(cx);
        }
        self.until = None;
        self.carriage.sent();
        if self.answered.sent() {
            self.seat.place().waits_again();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.carriage.other_end.ends();
        // Over TLS the end is said too, and who does not read it keeps nobody waiting.
        let ended = Pin::new(&mut self.connection).poll_shutdown(cx);
        if ended.is_pending() { self.wait(cx) } else { ended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::Full;
    use crate::limits::{
        CONNECTIONS_BY_TOKEN_DIVISOR, CONNECTIONS_FOR_ADMINISTRATORS, CONNECTIONS_MAX,
        CONNECTIONS_MIN, CONTROL_REQUESTS_PER_USER,
    };
    use crate::quotas::{self, Rules};
    use crate::timely::{Serving, TimelyThreads};
    use crate::tokens::Tokens;
    use axum::body::HttpBody;
    use axum::routing::get;
    use std::sync::atomic::AtomicUsize;
    use std::task::Waker;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Two frames, and no word of how many there are.
    struct Two(u8);

    impl HttpBody for Two {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0 += 1;
            Poll::Ready((self.0 < 3).then(|| Ok(Frame::data(Bytes::from_static(b"some")))))
        }
    }

    /// Before, the first bytes that were in the socket had it wait for its program, which gave the
    /// place of a long answer to whoever came.
    #[test]
    fn a_connection_is_at_work_until_the_last_of_an_answer_is_written_or_it_never_ends() {
        let answered = |kind: &'static str| {
            let said = Arc::new(Answered::default());
            let answer = ([(header::CONTENT_TYPE, kind)], Body::new(Two(0))).into_response();
            (Answer::of(answer, Arc::clone(&said)).into_body(), said)
        };
        let mut looks = Context::from_waker(Waker::noop());
        let (mut body, said) = answered("application/octet-stream");
        for _ in 0..2 {
            assert!(!said.sent());
            assert!(matches!(Pin::new(&mut body).poll_frame(&mut looks), Poll::Ready(Some(_))));
        }
        assert!(!said.sent());
        assert!(matches!(Pin::new(&mut body).poll_frame(&mut looks), Poll::Ready(None)));
        assert!(said.sent());
        let (body, said) = answered("application/octet-stream");
        drop(body);
        assert!(said.sent(), "nobody takes it");
        let (_body, said) = answered("text/event-stream");
        assert!(said.sent(), "it has no end");
    }

    /// A door, and what is behind it: `/little`, and `/much`, more than a socket holds. Counts what was
    /// answered.
    struct House {
        gate: Gate,
        router: Router,
        answered: Arc<AtomicUsize>,
        stopping: watch::Sender<bool>,
        directory: tempfile::TempDir,
    }

    impl House {
        fn of(connections: usize) -> Self {
            let directory = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
            let whole = quotas::Whole { memory: units::Bytes::MIB, space: units::Bytes::MIB };
            let gate = Gate {
                tokens: Tokens::new(Some(directory.path().join("state"))),
                quotas: Quotas::new(&Rules::default(), whole, vec![]),
                door: Door::new(connections),
                timely: TimelyThreads::start(Serving::WithOthers).unwrap().handle(),
                tls: None,
            };
            let answered = Arc::new(AtomicUsize::new(0));
            let gives = |len: usize| {
                let answered = Arc::clone(&answered);
                get(async move || {
                    answered.fetch_add(1, Ordering::Relaxed);
                    vec![7_u8; len]
                })
            };
            let router = Router::new().route("/little", gives(1)).route("/much", gives(4 << 20));
            Self { gate, router, answered, stopping: watch::Sender::new(false), directory }
        }

        fn answered(&self) -> usize {
            self.answered.load(Ordering::Relaxed)
        }

        async fn place(&self, guest: Guest) -> Result<door::Place, Full> {
            self.gate.door.enter(Kind::Control, guest, false).await
        }

        /// A connection that has asked.
        async fn asked(&self, guest: Guest, said: &str) -> UnixStream {
            let (mut own, theirs) = UnixStream::pair().unwrap();
            let seat = Seat::new(self.place(guest).await.unwrap());
            let lane = self.gate.timely.lane_of_a_stranger();
            let caller = match guest {
                Guest::User(uid) => Caller::Known(user(uid)),
                _ => Caller::Bearer(Arc::new(Bearer::new(self.gate.clone(), lane.clone()))),
            };
            let theirs = Whole::Unix(theirs);
            let caller = (caller, Carriage::new(lane, &theirs));
            let (router, stopping) = (self.router.clone(), self.stopping.subscribe());
            tokio::spawn(carry(theirs, seat, router, caller, stopping));
            own.write_all(said.as_bytes()).await.unwrap();
            own
        }

        /// All turns of somebody, and a place that he waits in.
        async fn all_turns(&self, guest: Guest) -> (door::Place, Vec<door::Turn>) {
            let (place, mut turns) = (self.place(guest).await.unwrap(), Vec::new());
            assert!(place.at_work());
            for _ in 0..CONTROL_REQUESTS_PER_USER {
                turns.push(place.turn().await);
            }
            (place, turns)
        }

        /// A user has asked all of `asked` and has no turn left: of those that wait for one the first
        /// gives way, and is told so; the others are answered when there are turns again.
        async fn first_gives_way(
            &self,
            comes: impl Future<Output = ()>,
            mut asked: Vec<UnixStream>,
            (place, turns): (door::Place, Vec<door::Turn>),
        ) {
            settles().await;
            comes.await;
            let mut said = String::new();
            asked.remove(0).read_to_string(&mut said).await.unwrap();
            assert!(said.starts_with("HTTP/1.1 503") && said.contains("gave way"), "{said}");
            drop((place, turns));
            for mut one in asked {
                let mut said = [0; 12];
                one.read_exact(&mut said).await.unwrap();
                assert_eq!(&said, b"HTTP/1.1 200");
            }
        }
    }

    fn user(uid: u32) -> Peer {
        Peer { uid, gid: uid, groups: Arc::new([uid]), scope: None }
    }

    fn asks(path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
    }

    /// Until whatever can be done is done, and nothing more comes.
    async fn settles() {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Before, an answer had no turn from when it was made, and who read none had one in memory on each
    /// of two thousand connections.
    #[tokio::test]
    async fn who_takes_no_answers_has_as_many_of_them_as_turns_and_keeps_nobody_else_waiting() {
        let house = House::of(CONNECTIONS_MAX);
        let mut unread = Vec::new();
        for _ in 0..CONTROL_REQUESTS_PER_USER + 10 {
            unread.push(house.asked(Guest::User(1), &asks("/much")).await);
        }
        until(|| house.answered() >= CONTROL_REQUESTS_PER_USER).await;
        settles().await;
        assert_eq!(house.answered(), CONTROL_REQUESTS_PER_USER);
        let mut other = house.asked(Guest::User(2), &asks("/little")).await;
        other.read_exact(&mut [0; 12]).await.unwrap();
        // Who takes one, or hangs up, is given the next.
        unread[0].read_exact(&mut vec![0; 4 << 20]).await.unwrap();
        let mut rest = vec![0; 1000];
        let _ = unread[0].read(&mut rest).await.unwrap();
        until(|| house.answered() == CONTROL_REQUESTS_PER_USER + 2).await;
        drop(unread.remove(1));
        until(|| house.answered() == CONTROL_REQUESTS_PER_USER + 3).await;
        settles().await;
        assert_eq!(house.answered(), CONTROL_REQUESTS_PER_USER + 3);
    }

    /// The heads of answers without a body would stand in the daemon's memory, as many as were asked for
    /// within half a minute.
    #[tokio::test]
    async fn of_what_is_asked_in_advance_nothing_is_begun_before_the_answer_before_is_in_the_socket()
     {
        const ASKED: usize = 5_000;
        let house = House::of(CONNECTIONS_MAX);
        let all = asks("/little").replace("GET", "HEAD").repeat(ASKED);
        let mut client = house.asked(Guest::User(1), &all).await;
        settles().await;
        assert!(house.answered() < ASKED / 2, "{} answers that nobody takes", house.answered());
        let (mut text, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        let answers = |text: &[u8]| text.windows(12).filter(|it| it == b"HTTP/1.1 200").count();
        while answers(&text) < ASKED {
            let read = client.read(&mut piece).await.unwrap();
            assert!(read > 0);
            text.extend(&piece[..read]);
        }
    }

    /// Before, who asked on all his connections had them all at work, and two such users had all that
    /// there were.
    #[tokio::test]
    async fn a_connection_that_waits_for_its_turn_gives_way() {
        let house = House::of(CONNECTIONS_MIN);
        let busy = house.all_turns(Guest::User(1)).await;
        let mut asked = Vec::new();
        for _ in 0..20 {
            asked.push(house.asked(Guest::User(1), &asks("/little")).await);
        }
        let mut others = Vec::new();
        for _ in asked.len() + 1..CONNECTIONS_MIN - CONNECTIONS_FOR_ADMINISTRATORS {
            let place = house.place(Guest::User(2)).await.unwrap();
            assert!(place.at_work());
            others.push(place);
        }
        let comes = async { drop(house.place(Guest::User(3)).await.expect("a place")) };
        house.first_gives_way(comes, asked, busy).await;
    }

    #[tokio::test]
    async fn a_connection_by_token_that_waits_for_its_turn_gives_way() {
        let house = House::of(CONNECTIONS_MIN);
        let (token, _) = house.gate.tokens.make(&user(7), vec![]).unwrap();
        let shown = format!("\r\nauthorization: Bearer {}\r\n\r\n", token.reveal());
        let said = asks("/little").replace("\r\n\r\n", &shown);
        let busy = house.all_turns(Guest::Bearer(7)).await;
        let mut asked = Vec::new();
        for _ in 1..CONNECTIONS_MIN / CONNECTIONS_BY_TOKEN_DIVISOR {
            asked.push(house.asked(Guest::Stranger, &said).await);
            settles().await; // strangers are few
        }
        let comes = async { drop(house.place(Guest::Bearer(7)).await.expect("a place")) };
        house.first_gives_way(comes, asked, busy).await;
        drop(house.directory);
    }
}
