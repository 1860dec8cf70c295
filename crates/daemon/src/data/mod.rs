//! The data socket: one connection, one stream or one volume.
//!
//! The first frame ties the connection. A reader or a writer serves one request
//! at a time; best effort up to `OUTSTANDING_MAX`, bounded in bytes as well. No
//! answer waits in a queue of this process: a connection that is not read from
//! stops being served.
//!
//! Invariants: however a connection ends, its stream is closed, and a writer's
//! accepted bytes are synced by that. A greeting, a frame that has begun and an answer
//! that is to be taken have an end each (`limits`).

pub(crate) mod account;
pub(crate) mod batch;
mod best_effort;
mod busy_poll;
mod file;
pub(crate) mod frames;
mod give;
mod handle;
mod listening;
mod reader;
mod window;
mod writer;

use crate::door::{Door, Full, Place};
use crate::files::Files;
use crate::gathers::Gathers;
use crate::limits::HELLO_WITHIN;
use crate::pool::{Ask, Entry};
use crate::quotas::{Peer, Quotas};
use crate::reception;
use crate::sessions::{AttachError, Opened, Sessions, Stop};
use crate::shared::Shared;
use crate::timely::{Timely, socket};
use frames::{Incoming, Outgoing, Over, broken};
use listening::Listening;
use node::{Mode, StreamId};
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use units::{Bytes, Duration};
use wire::frame::{Head, VERSION};
use wire::{Code, Problem};

/// What data connections share.
#[derive(Clone)]
pub struct House {
    /// The pool.
    pub entry: Entry,
    /// The streams that are open.
    pub sessions: Arc<Sessions>,
    /// Who may hold how much.
    pub quotas: Arc<Quotas>,
    /// The files under contract.
    pub files: Arc<Files>,
    /// A stream's program may be silent for so long; zero: for ever.
    pub keep_alive: Duration,
    /// The threads that serve what is under contract.
    pub(crate) timely: Timely,
    /// Large reads in one reply.
    pub(crate) gathers: Arc<Gathers>,
}

/// Takes data connections until `stopping`, each in a task of its own. Waits for no
/// program.
pub async fn listen(
    listener: UnixListener,
    house: House,
    door: Arc<Door>,
    stopping: watch::Receiver<bool>,
) {
    let quotas = Arc::clone(&house.quotas);
    let serve = move |connection, peer, place: Place| {
        let house = house.clone();
        async move { serve(connection, peer, &place, house).await }
    };
    reception::take(listener, door, quotas, stopping, serve, frames::refuse).await;
}

/// What a connection said first.
struct Greeting {
    hello: Head,
    body: Vec<u8>,
    connection: UnixStream,
}

/// Waits for the greeting. None where it does not come, or its place is given away.
async fn greeting(mut connection: UnixStream, place: &Place) -> Option<Greeting> {
    let first = tokio::time::timeout(HELLO_WITHIN, frames::first(&mut connection));
    let (hello, body) = tokio::select! {
        first = first => first.ok()?.ok()?,
        () = place.left() => {
            frames::refuse(&connection, &reception::full(Full::GaveWay, ""));
            return None;
        }
    };
    if !place.at_work() {
        frames::refuse(&connection, &reception::full(Full::GaveWay, ""));
        return None;
    }
    Some(Greeting { hello, body, connection })
}

/// Serves one data connection to its end.
async fn serve(connection: UnixStream, peer: Peer, place: &Place, house: House) {
    let Some(Greeting { hello, body, connection }) = greeting(connection, place).await else {
        return; // said nothing, or nothing that can be understood
    };
    if let Head::HelloFile { version: VERSION } = hello {
        return file::open(&body, connection, peer, house).await;
    }
    let lane = house.timely.lane(peer.uid, is_under_contract(&hello, &body, &house));
    let (input, output) = socket::split(connection);
    lane.takes(input.socket());
    let (input, output) = (Incoming::new(input), Outgoing::new(output));
    let (Head::HelloStream { version, .. }
    | Head::HelloWindow { version, .. }
    | Head::HelloVolume { version, .. }
    | Head::HelloInTime { version, .. }
    | Head::HelloFile { version }) = hello
    else {
        let what = "the first frame must be HelloStream, HelloWindow, HelloVolume, HelloInTime or \
                    HelloFile";
        return output.fail_last(&protocol(what)).await;
    };
    if version != VERSION {
        let what =
            format!("the daemon speaks version {VERSION} of the data protocol, not {version}");
        let problem = Problem::new(Code::Version, what, "use a client of the daemon's version");
        return output.fail_last(&problem).await;
    }
    let House { entry, sessions, quotas, keep_alive, .. } = house;
    let ask = entry.by(quotas.who(&peer));
    match hello {
        Head::HelloStream { stream, .. } | Head::HelloWindow { stream, .. } => {
            let maps = matches!(hello, Head::HelloWindow { .. });
            let stream = StreamId(stream);
            if let Err(problem) = quotas.owns_stream(&peer, &sessions, stream) {
                return output.fail_last(&problem).await;
            }
            let input = Listening::new(input, keep_alive);
            lane.serve(serve_stream(stream, maps, input, output, ask, sessions)).await;
        }
        Head::HelloVolume { .. } | Head::HelloInTime { .. } => {
            let Ok(volume) = String::from_utf8(body) else {
                return output.fail_last(&protocol("the volume's name is not UTF-8")).await;
            };
            let place = match quotas.connect(&peer) {
                Ok(place) => place,
                Err(problem) => return output.fail_last(&problem).await,
            };
            let stop = sessions.stop_signal();
            match hello {
                Head::HelloVolume { priority, writer, .. } => {
                    let priority = place.granted(priority.map(crate::convert::priority));
                    let writer = writer.map(|number| node::Writer(number.get()));
                    let connection =
                        best_effort::Connection { place, input, output, ask, writer, stop };
                    let served = best_effort::serve(volume, priority, connection, lane.clone());
                    lane.serve(served).await;
                }
                Head::HelloInTime { len, within, every, .. } => {
                    let service = node::Service::Latency { len, within, every };
                    match handle::open(&peer, &ask, &quotas, &sessions, &volume, service).await {
                        // Its contract ends when nothing of it is under way any more.
                        Ok((open, ask)) => {
                            let stop = open.stop.clone();
                            let connection = best_effort::Connection {
                                place,
                                input,
                                output,
                                ask,
                                writer: None,
                                stop,
                            };
                            let served = best_effort::serve(volume, None, connection, lane.clone());
                            lane.serve(served).await;
                        }
                        Err(problem) => output.fail_last(&problem).await,
                    }
                }
                _ => unreachable!("one of the two"),
            }
        }
        _ => unreachable!("looked at above"),
    }
}

/// Whether what a connection begins with is under contract.
fn is_under_contract(hello: &Head, body: &[u8], house: &House) -> bool {
    match hello {
        Head::HelloStream { .. } | Head::HelloWindow { .. } | Head::HelloInTime { .. } => true,
        Head::HelloVolume { .. } => {
            let volume = std::str::from_utf8(body);
            volume.is_ok_and(|volume| house.entry.0.operations(volume, None) > 0)
        }
        _ => false,
    }
}

/// Breaking the protocol, as a problem.
fn protocol(what: impl Into<String>) -> Problem {
    Problem::new(Code::Protocol, what, "see the data protocol in docs/api")
}

async fn serve_stream(
    stream: StreamId,
    maps: bool,
    mut input: Listening,
    output: Outgoing,
    ask: Ask,
    sessions: Arc<Sessions>,
) {
    let mut attached = match sessions.attach(stream) {
        Ok(attached) => attached,
        Err(AttachError::NoSuchStream) => {
            let problem = crate::problem::of(&node::Error::NoSuchStream { stream });
            return output.fail_last(&problem).await;
        }
        Err(AttachError::Attached) => {
            let what = format!("another connection carries stream {}", stream.0);
            let problem = Problem::new(Code::Attached, what, "open a stream of your own");
            return output.fail_last(&problem).await;
        }
    };
    let (opened, mut stop) = (attached.take_opened(), attached.stop.clone());
    let size = volume_size(&ask, &opened.volume);
    let welcome = Head::Welcome { version: VERSION, offset: opened.start, len: size };
    let over = match (&opened.shared, maps) {
        (Some(shared), true) => {
            serve_window(&opened, shared, welcome, &mut input, &output, &ask, &mut stop).await
        }
        (None, false) => {
            serve_carried(&opened, welcome, &mut input, &output, &ask, &mut stop).await
        }
        (Some(_), false) => broken("the stream's window is shared: HelloWindow"),
        (None, true) => broken("the stream's window is not shared: HelloStream"),
    };
    // The window's memory goes with the stream, not with the last word to its program.
    drop(opened);
    match attached.finish().await {
        Ok(durable) => say_goodbye(over, durable, &output).await,
        Err(error) => output.fail_last(&crate::problem::of(&error)).await,
    }
}

/// Serves a stream whose bytes travel over the socket.
async fn serve_carried(
    opened: &Opened,
    welcome: Head,
    input: &mut Listening,
    output: &Outgoing,
    ask: &Ask,
    stop: &mut watch::Receiver<Stop>,
) -> Over {
    let session = async {
        output.send(welcome, &[]).await?;
        match opened.mode {
            Mode::Read => reader::serve(opened, input, output, ask).await,
            // One that reads and writes is not opened where it would have to be carried.
            Mode::Write | Mode::Update => writer::serve(opened, input, output, ask).await,
        }
    };
    tokio::select! {
        over = session => over.err().unwrap_or(Over::ByRequest),
        why = stopped(stop) => Over::Stopped(why),
    }
}

/// Serves a stream whose window the program maps.
async fn serve_window(
    opened: &Opened,
    shared: &Shared,
    welcome: Head,
    input: &mut Listening,
    output: &Outgoing,
    ask: &Ask,
    stop: &mut watch::Receiver<Stop>,
) -> Over {
    let end = shared.end.lock().take();
    let end = end.expect("one connection attaches to a stream");
    let mut session = window::Session::new(opened, end, ask, output);
    let served = async {
        let fds = [session.control_fd(), shared.memory.fd()];
        output.send_with(welcome, &fds).await?;
        session.run(input).await
    };
    let over = tokio::select! {
        over = served => over.err().unwrap_or(Over::ByRequest),
        why = stopped(stop) => Over::Stopped(why),
    };
    session.settle().await;
    over
}

/// Ends when the connection is told to.
pub(crate) async fn stopped(stop: &mut watch::Receiver<Stop>) -> Stop {
    let why = stop.wait_for(|&why| why != Stop::No).await.map(|why| *why);
    why.unwrap_or(Stop::Closed)
}

/// The last frames to a program whose stream has ended.
async fn say_goodbye(over: Over, durable: Option<Bytes>, output: &Outgoing) {
    let problem = match over {
        Over::ByRequest => {
            let upto = durable.unwrap_or(Bytes::ZERO);
            return output.send_last(Head::Closed { upto }).await;
        }
        Over::Gone | Over::NotTaken => return,
        Over::Failed(problem) => *problem,
        Over::Stopped(why) => stop_problem(why),
        Over::Silent(limit) => silent(limit),
    };
    if let Some(upto) = durable {
        output.send_last(Head::Durable { upto }).await;
    }
    output.fail_last(&problem).await;
}

/// What a connection that is told to end tells its program.
fn stop_problem(why: Stop) -> Problem {
    match why {
        Stop::ShuttingDown => crate::problem::of(&node::Error::ShuttingDown),
        Stop::HandleEnded => Problem::new(
            Code::Refused,
            "the contract of this handle was ended by the volume's owner, by its user, or by root",
            "open the volume again, without it, or ask them for it",
        ),
        Stop::Closed | Stop::No => Problem::new(
            Code::NoSuchStream,
            "the stream was closed by another program's request",
            "open a new one",
        ),
    }
}

/// What a program is told that was silent for too long.
fn silent(limit: Duration) -> Problem {
    Problem::new(
        Code::Silent,
        format!(
            "the stream was closed, because its program was silent for {limit}: it neither moved \
             its window nor asked for anything, nor had it said that it pauses"
        ),
        "open a new stream; say so before a longer pause (`pause`), or let the daemon wait longer \
         (`slackline serve --keep-alive`)",
    )
}

/// Where the space of a volume ends, a ring's as far as it is now; zero where it does not exist.
fn volume_size(ask: &Ask, name: &str) -> Bytes {
    ask.0.volume(name).map_or(Bytes::ZERO, |volume| volume.end())
}
