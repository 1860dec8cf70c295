//! A best-effort connection with a contract of its own.
//!
//! Invariant: the contract ends when its [`Open`] is dropped, however the connection ends; what
//! a user's quota counts of it is asked of the pool.

use crate::pool::Ask;
use crate::problem;
use crate::quotas::{Asked, Peer, Quotas};
use crate::sessions::{Sessions, Stop};
use crate::view;
use node::{Act, HandleId, Op, Service, Wish, calls};
use std::sync::Arc;
use tokio::sync::watch;
use wire::Problem;

/// A contract that is in force.
pub struct Open {
    ask: Ask,
    handle: HandleId,
    quotas: Arc<Quotas>,
    sessions: Arc<Sessions>,
    /// Tells the connection when to end.
    pub stop: watch::Receiver<Stop>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let close = Op::HandleClose { handle: self.handle };
        self.ask.0.submit(self.ask.1.clone(), close, Box::new(drop));
        self.quotas.forget_handle(self.handle);
        self.sessions.forget_handle(self.handle);
    }
}

/// Takes the contract for a connection of this peer's; what is asked by it is asked by the
/// second of what is given.
pub async fn open(
    peer: &Peer,
    ask: &Ask,
    quotas: &Arc<Quotas>,
    sessions: &Arc<Sessions>,
    volume: &str,
    service: Service,
) -> Result<(Open, Ask), Box<Problem>> {
    let mut turn = Some(quotas.turn(peer).await);
    // First: else a quota's refusal would tell him of a volume that he may not know of.
    let permitted = view::volume(ask.0.volume(volume), &ask.1, volume, &[Act::Read, Act::Write]);
    permitted.map_err(|error| Box::new(problem::of(&error)))?;
    let exceeded =
        |asked: &Asked| quotas.exceeded(peer, &*ask.0, sessions, asked).map_or(Ok(()), Err);
    if let Some(terms) = ask.0.terms(volume, &Wish::Service(service)) {
        exceeded(&Asked::Handle(terms))?;
    }
    let told = crate::convert::service_told(service);
    let opened = ask.call(calls::HandleOpen { volume: volume.to_owned(), service });
    let opened = quotas.decided(&mut turn, peer, opened).await;
    let refused = |error| {
        let streams_are_open = !ask.0.status().streams.is_empty();
        Box::new(problem::of_service(&error, &told, streams_are_open))
    };
    let handle = opened.map_err(refused)?;
    quotas.note_handle(handle, peer);
    let stop = sessions.add_handle(handle);
    let (quotas_of_it, sessions_of_it) = (Arc::clone(quotas), Arc::clone(sessions));
    let open =
        Open { ask: ask.clone(), handle, quotas: quotas_of_it, sessions: sessions_of_it, stop };
    // The volume may have changed since its terms were looked at.
    exceeded(&Asked::Nothing)?;
    let mut by = ask.clone();
    by.1.handle = Some(handle);
    Ok((open, by))
}
