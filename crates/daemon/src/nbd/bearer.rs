//! Block devices over TCP: TLS first, and then a token behind the name of the volume.
//!
//! NBD has no place for a secret but the name of an export, which is said behind TLS:
//! `VOLUME@TOKEN`, with the other words before or behind. It is in no message and in no reply.
//!
//! Invariants: before TLS nothing is answered but how to begin it, and nothing that came before it
//! counts after it; a stranger has [`STRANGER_WITHIN`] for all of that; a connection ends when its
//! token is over or revoked.

use super::exports::Offer;
use super::{Ends, greet, negotiate, option, serve_chosen};
use crate::data::House;
use crate::data::frames::Over;
use crate::door::{Kind, Place};
use crate::ends::{self, Both};
use crate::limits::STRANGER_WITHIN;
use crate::lock::Mutex;
use crate::pool::Ask;
use crate::quotas::Peer;
use crate::tcp::Gate;
use crate::timely::socket;
use crate::tls::Tls;
use std::sync::Arc;
use token::{Grant, PREFIX};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::nbd::handshake::{self, Chosen, Exports, Handshake, Next};

/// Serves one connection to its end.
pub async fn serve(connection: TcpStream, stranger: Place, house: House, gate: Gate) {
    let offer = Shown { house: &house, gate: &gate, last: Mutex::default() };
    let come = async {
        let (mut ends, handshake) = match &gate.tls {
            Some(tls) => begin_tls(connection, tls).await?,
            None => {
                let mut ends = Ends::plain(connection);
                let handshake = greet(&mut ends.input, &ends.output).await?;
                (ends, handshake)
            }
        };
        let chosen = negotiate(&mut ends, handshake, &offer, &stranger).await?;
        Ok::<_, Over>((ends, chosen))
    };
    let come = tokio::select! {
        come = timeout(STRANGER_WITHIN, come) => come,
        () = stranger.left() => return,
    };
    let Ok(Ok((ends, chosen))) = come else { return };
    let shown = offer.last.lock().take();
    let Some(Found { name, peer, grant, ask }) = shown else { return };
    if name != chosen.name {
        return; // what is chosen was looked at last
    }
    let Ok(place) = gate.enter(Kind::Data, &peer).await else { return };
    drop(stranger);
    let chosen = Chosen { name: chosen.export.called.clone(), ..chosen };
    let tokens = Arc::clone(&gate.tokens);
    let over = async move { tokens.ended(&grant).await };
    serve_chosen(chosen, peer, ask, (ends, place), &house, over).await;
}

/// The greeting and the options up to TLS, and its handshake.
async fn begin_tls(connection: TcpStream, tls: &Tls) -> Result<(Ends, Handshake), Over> {
    let (input, output) = socket::split(connection);
    let socket = Arc::clone(input.socket());
    let mut both = Both(input, output);
    // Each is read to its end and not beyond: what is sent unencrypted behind it is no option
    // that would be taken for an encrypted one.
    both.write_all(&handshake::greeting()).await?;
    let flags = tokio::io::AsyncReadExt::read_u32(&mut both).await?;
    let mut handshake = Handshake::new(flags).map_err(|_| Over::Gone)?.with_tls_required();
    let mut out = Vec::new();
    for _ in 0..super::OPTIONS_MAX {
        let (option, data) = option(&mut both).await?;
        let next = handshake.option(option, &data, &Nothing, &mut out);
        both.write_all(&out).await?;
        out.clear();
        match next {
            Next::Option => {}
            Next::StartTls => {
                let stream = tls.accept(both).await.ok_or(Over::Gone)?;
                let (input, output) = ends::split(stream);
                return Ok((Ends::new(input, output, socket), handshake.is_behind_tls()));
            }
            Next::Transmit(_) | Next::End => return Err(Over::Gone),
        }
    }
    Err(Over::Gone)
}

/// What there is before TLS.
struct Nothing;

impl Exports for Nothing {
    fn names(&self) -> Result<Vec<String>, String> {
        Err("begin TLS first".into())
    }
    fn find(&self, _: &str) -> Result<handshake::Export, String> {
        Err("begin TLS first".into())
    }
}

/// What is offered to who shows a token.
struct Shown<'a> {
    house: &'a House,
    gate: &'a Gate,
    /// Whoever showed the last one that was good.
    last: Mutex<Option<Found>>,
}

struct Found {
    /// The whole name, with the token in it.
    name: String,
    peer: Peer,
    grant: Arc<Grant>,
    ask: Ask,
}

impl Exports for Shown<'_> {
    fn names(&self) -> Result<Vec<String>, String> {
        Err("over TCP nobody is told which volumes there are; name one, and a token behind it: \
             VOLUME@TOKEN"
            .into())
    }

    fn find(&self, name: &str) -> Result<handshake::Export, String> {
        *self.last.lock() = None;
        let is_token = |word: &&str| word.starts_with(PREFIX);
        let Some(token) = name.split('@').find(is_token) else {
            return Err("show a token behind the volume's name: VOLUME@TOKEN".into());
        };
        let said =
            |problem: Box<wire::Problem>| format!("{}; {}", problem.detail, problem.next_step);
        let (peer, grant) = self.gate.peer(token).map_err(said)?;
        let rest: Vec<&str> = name.split('@').filter(|word| !is_token(word)).collect();
        let ask = self.house.entry.by(self.house.quotas.who(&peer));
        let export = Offer { ask: &ask, scope: Some(&grant) }.find(&rest.join("@"))?;
        *self.last.lock() = Some(Found { name: name.to_owned(), peer, grant, ask });
        Ok(export)
    }
}
