//! Volumes as block devices: the NBD protocol on a socket of its own.
//!
//! Each volume is an export of its name. Behind the name may stand `@ro` for an export that
//! cannot be written, and `@interactive`, `@normal` or `@background` for a priority: names of
//! volumes have no `@`. A volume's contract holds for its exports as for every other program:
//! each request is an operation of its own. The permissions of the volume decide, by the user
//! who has connected. Over TCP a token behind the volume's name says who that is ([`bearer`]).
//!
//! Invariants: a reply to a write is sent when whoever reads the volume finds the bytes, which may be
//! before they are on its disk; one to a request with FUA when what it has written is durable; one to a flush
//! when what was answered before it is, on whichever connection it was written, or with an error where some of
//! that could not be written. What is under way has the bounds of every best-effort connection
//! (`data::account`).

mod bearer;
mod exports;
mod requests;

use crate::data::House;
use crate::data::account::Account;
use crate::data::frames::{Outgoing, Over};
use crate::door::{Door, Kind, Place};
use crate::ends::{In, Out};
use crate::limits::{FRAME_WITHIN, GOODBYE_WITHIN, HELLO_WITHIN};
use crate::pool::Ask;
use crate::quotas::Peer;
use crate::sessions::Stop;
use crate::tcp::Gate;
use crate::timely::socket::{self, Link, Socket};
use crate::{data, reception};
use exports::{Export, Offer};
use std::future::pending;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;
use wire::nbd::handshake::{
    Chosen, Exports, Handshake, Next, OPTION_HEAD_LEN, OptionHead, greeting,
};

/// Requests are small: many are read at a time, with the bytes of short writes, of 4 KiB as many as are
/// served together. Those of others go to their place directly.
const HEADS_BUFFER: usize = 40 << 10;
/// Options of one client: whoever sends more asks for nothing.
const OPTIONS_MAX: usize = 64;

/// Takes connections until `stopping`, each in a task of its own. Waits for no program.
pub async fn listen(
    listener: UnixListener,
    house: House,
    door: Arc<Door>,
    stopping: watch::Receiver<bool>,
) {
    let quotas = Arc::clone(&house.quotas);
    let serve = move |connection, peer, place: Place| {
        let house = house.clone();
        async move { serve(connection, peer, place, house).await }
    };
    // The protocol has no words for it before the negotiation: the connection ends.
    reception::take(listener, door, quotas, stopping, serve, |_, _| {}).await;
}

/// The same over TCP.
pub async fn listen_tcp(
    listener: TcpListener,
    house: House,
    gate: Gate,
    mut stopping: watch::Receiver<bool>,
) {
    let accepting = async {
        loop {
            let (connection, place) = gate.next(&listener, Kind::Data).await;
            tokio::spawn(bearer::serve(connection, place, house.clone(), gate.clone()));
        }
    };
    tokio::select! {
        () = accepting => unreachable!("accepting never ends"),
        _ = stopping.wait_for(|&stopping| stopping) => {}
    }
}

type Input = BufReader<In>;

/// Both sides of a connection, and its socket.
struct Ends {
    input: Input,
    output: Outgoing,
    socket: Arc<Socket>,
}

impl Ends {
    fn new(input: In, output: Out, socket: Arc<Socket>) -> Self {
        let input = BufReader::with_capacity(HEADS_BUFFER, input);
        Self { input, output: Outgoing::to(output), socket }
    }

    /// As they are.
    fn plain(connection: impl Into<Link>) -> Self {
        let (input, output) = socket::split(connection);
        let socket = Arc::clone(input.socket());
        Self::new(In::Plain(input), Out::Plain(output), socket)
    }
}

/// Serves one connection to its end.
async fn serve(connection: UnixStream, peer: Peer, place: Place, house: House) {
    let ask = house.entry.by(house.quotas.who(&peer));
    let mut ends = Ends::plain(connection);
    let offer = Offer { ask: &ask, scope: None };
    let negotiated = async {
        let handshake = greet(&mut ends.input, &ends.output).await?;
        negotiate(&mut ends, handshake, &offer, &place).await
    };
    let chosen = tokio::select! {
        chosen = negotiated => chosen,
        () = place.left() => return,
    };
    let Ok(chosen) = chosen else { return };
    serve_chosen(chosen, peer, ask, (ends, place), &house, pending()).await;
}

/// Serves the export that a client has chosen, until that or `over` ends it.
async fn serve_chosen(
    chosen: Chosen,
    peer: Peer,
    ask: Ask,
    (ends, place): (Ends, Place),
    house: &House,
    over: impl Future<Output = ()> + Send + 'static,
) {
    let offer = Offer { ask: &ask, scope: peer.scope.as_deref() };
    let Some(export) = Export::parse(&chosen.export.called, &offer) else { return };
    // From here on this very volume, whatever it is called.
    let volume = ask.0.known(export.volume);
    let Some(id) = ask.0.volume_id(&volume) else { return };
    if !place.at_work() {
        return;
    }
    // Who has too many connections learns it from the end of this one: there is no reply here.
    let Ok(quota) = house.quotas.connect(&peer) else { return };
    let priority = quota.granted(export.priority);
    let account = Account::new(quota);
    let mut stop = house.sessions.stop_signal();
    let lane = house.timely.lane(peer.uid, ask.guaranteed(&volume, priority) > 0);
    let Ends { input, output, socket } = ends;
    lane.takes(&socket);
    socket.hold_answers();
    let gathers = house.gathers.of((peer.uid, peer.scope.is_some()));
    let output = (Arc::new(output), lane.clone(), gathers);
    let device = requests::Device::new((volume, id), priority, chosen, ask, output);
    let served = async move { transmit(device, input, account, &mut stop, over).await };
    lane.serve(served).await;
}

/// Serves requests until the client or the daemon ends it.
async fn transmit(
    device: requests::Device,
    mut input: Input,
    account: Account,
    stop: &mut watch::Receiver<Stop>,
    over: impl Future<Output = ()>,
) {
    let mut is_gone = device.is_gone();
    let over = tokio::select! {
        over = requests::take(&device, &mut input, &account) => over,
        _ = is_gone.wait_for(|&gone| gone) => Over::Gone,
        why = data::stopped(stop) => Over::Stopped(why),
        // Nothing more is taken; what was is answered.
        () = over => Over::ByRequest,
    };
    match over {
        // The daemon stops: a program that takes no answers is not waited for.
        Over::Stopped(_) => drop(timeout(GOODBYE_WITHIN, account.quiet()).await),
        _ => account.quiet().await,
    }
    device.end().await;
}

/// The greeting of both sides.
async fn greet(input: &mut (impl AsyncRead + Unpin), output: &Outgoing) -> Result<Handshake, Over> {
    output.send_parts(&greeting(), &[]).await?;
    let Ok(flags) = timeout(HELLO_WITHIN, input.read_u32()).await else { return Err(Over::Gone) };
    Handshake::new(flags?).map_err(|_| Over::Gone)
}

/// The negotiation; an error where the client asked for the end, or broke the protocol.
async fn negotiate(
    ends: &mut Ends,
    mut handshake: Handshake,
    exports: &(dyn Exports + Sync),
    place: &Place,
) -> Result<Chosen, Over> {
    let mut out = Vec::new();
    for _ in 0..OPTIONS_MAX {
        let (option, data) = option(&mut ends.input).await?;
        // To look for volumes is work as that of a control request: of one user's not more at once.
        let turn = place.turn().await;
        let next = handshake.option(option, &data, exports, &mut out);
        drop(turn);
        ends.output.send_parts(&out, &[]).await?;
        out.clear();
        match next {
            Next::Option => {}
            Next::Transmit(chosen) => return Ok(chosen),
            // It is begun where it is required, and there it is there already.
            Next::StartTls | Next::End => return Err(Over::Gone),
        }
    }
    Err(Over::Gone)
}

/// The next option with its data.
async fn option(input: &mut (impl AsyncRead + Unpin)) -> Result<(u32, Vec<u8>), Over> {
    let option = async {
        let mut head = [0; OPTION_HEAD_LEN];
        input.read_exact(&mut head).await?;
        let head = OptionHead::decode(&head).map_err(|_| Over::Gone)?;
        let mut data = vec![0; head.len as usize];
        input.read_exact(&mut data).await?;
        Ok((head.option, data))
    };
    timeout(FRAME_WITHIN, option).await.unwrap_or(Err(Over::Gone))
}
