//! Volumes as block devices: the NBD protocol on a socket of its own.
//!
//! Each volume is an export of its name. Behind the name may stand `@ro` for an export that
//! cannot be written, and `@interactive`, `@normal` or `@background` for a priority: names of
//! volumes have no `@`. A volume's contract holds for its exports as for every other program:
//! each request is an operation of its own. The permissions of the volume decide, by the user
//! who has connected.
//!
//! Invariants: a reply to a write is sent when whoever reads the volume finds the bytes; one to
//! a flush, or to a request with FUA, when what was answered before it is durable, on whichever
//! connection it was written. What is under way has the bounds of every best-effort connection
//! (`data::account`).

mod exports;
mod requests;

use crate::data::House;
use crate::data::account::Account;
use crate::data::frames::{Outgoing, Over};
use crate::door::{Door, Place};
use crate::limits::{FRAME_WITHIN, GOODBYE_WITHIN, HELLO_WITHIN};
use crate::quotas::Peer;
use crate::sessions::Stop;
use crate::timely::socket::{self, Reading};
use crate::{data, reception};
use exports::{Export, Offer};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;
use wire::nbd::handshake::{Chosen, Handshake, Next, OPTION_HEAD_LEN, OptionHead, greeting};

/// Requests are small: many are read at a time. Their bytes go to their place directly.
const HEADS_BUFFER: usize = 4096;
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
        async move { serve(connection, peer, &place, house).await }
    };
    // The protocol has no words for it before the negotiation: the connection ends.
    reception::take(listener, door, quotas, stopping, serve, |_, _| {}).await;
}

type Input = BufReader<Reading>;

/// Serves one connection to its end.
async fn serve(connection: UnixStream, peer: Peer, place: &Place, house: House) {
    let ask = house.entry.by(house.quotas.who(&peer));
    let (input, output) = socket::split(connection);
    let mut input = BufReader::with_capacity(HEADS_BUFFER, input);
    let output = Outgoing::new(output);
    let offer = Offer { ask: &ask };
    let chosen = tokio::select! {
        chosen = negotiate(&mut input, &output, &offer) => chosen,
        () = place.left() => return,
    };
    let Ok(Some(chosen)) = chosen else { return };
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
    lane.takes(input.get_ref());
    let output = (output, lane.clone());
    let device = requests::Device::new((volume, id), priority, chosen, ask, output);
    let served = async move { transmit(device, input, account, &mut stop).await };
    lane.serve(served).await;
}

/// Serves requests until the client or the daemon ends it.
async fn transmit(
    device: requests::Device,
    mut input: Input,
    account: Account,
    stop: &mut watch::Receiver<Stop>,
) {
    let mut is_gone = device.is_gone();
    let over = tokio::select! {
        over = requests::take(&device, &mut input, &account) => over,
        _ = is_gone.wait_for(|&gone| gone) => Over::Gone,
        why = data::stopped(stop) => Over::Stopped(why),
    };
    match over {
        // The daemon stops: a program that takes no answers is not waited for.
        Over::Stopped(_) => drop(timeout(GOODBYE_WITHIN, account.quiet()).await),
        _ => account.quiet().await,
    }
}

/// The negotiation; none where the client asked for the end, or broke the protocol.
async fn negotiate(
    input: &mut Input,
    output: &Outgoing,
    offer: &Offer<'_>,
) -> Result<Option<Chosen>, Over> {
    output.send_parts(&greeting(), &[]).await?;
    let Ok(flags) = timeout(HELLO_WITHIN, input.read_u32()).await else { return Ok(None) };
    let Ok(mut handshake) = Handshake::new(flags?) else { return Ok(None) };
    let mut out = Vec::new();
    for _ in 0..OPTIONS_MAX {
        let Ok(option) = timeout(FRAME_WITHIN, option(input)).await else { return Ok(None) };
        let Some((option, data)) = option? else { return Ok(None) };
        let next = handshake.option(option, &data, offer, &mut out);
        output.send_parts(&out, &[]).await?;
        out.clear();
        match next {
            Next::Option => {}
            Next::Transmit(chosen) => return Ok(Some(chosen)),
            Next::End => return Ok(None),
        }
    }
    Ok(None)
}

/// The next option with its data; none where it is none.
async fn option(input: &mut Input) -> Result<Option<(u32, Vec<u8>)>, Over> {
    let mut head = [0; OPTION_HEAD_LEN];
    input.read_exact(&mut head).await?;
    let Ok(OptionHead { option, len }) = OptionHead::decode(&head) else { return Ok(None) };
    let mut data = vec![0; len as usize];
    input.read_exact(&mut data).await?;
    Ok(Some((option, data)))
}
