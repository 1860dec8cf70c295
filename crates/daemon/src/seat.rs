//! The place of an HTTP connection, and who asks on it.
//!
//! On a unix socket both are known from the start. Over TCP a connection is a stranger's until a
//! request shows a token that is good; from then on it has a place of its token's user, and no
//! other user's token is taken on it.
//!
//! Invariant: a connection has one place at a time, and hears of its loss whichever that is.

use crate::door::{Kind, Place};
use crate::lock::Mutex;
use crate::player;
use crate::quotas::Peer;
use crate::reception::full;
use crate::tcp::Gate;
use crate::timely::Lane;
use crate::tokens::not_good;
use axum::http::{HeaderMap, Request, header};
use std::future::pending;
use std::sync::Arc;
use token::Grant;
use tokio::sync::watch;
use wire::Problem;

/// The place of a connection, which can become another one.
pub struct Seat {
    place: Mutex<Arc<Place>>,
    changed: watch::Sender<()>,
}

impl Seat {
    /// At first this one.
    pub fn new(place: Place) -> Arc<Self> {
        let place = Mutex::new(Arc::new(place));
        Arc::new(Self { place, changed: watch::Sender::new(()) })
    }

    /// The place that the connection has now.
    pub fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place.lock())
    }

    fn change(&self, to: Place) {
        let before = std::mem::replace(&mut *self.place.lock(), Arc::new(to));
        drop(before); // not under the lock
        self.changed.send_replace(());
    }

    /// Ends when the connection has to leave.
    pub async fn left(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            let place = self.place();
            tokio::select! {
                () = place.left() => return,
                _ = changed.changed() => {}
            }
        }
    }
}

/// Who asks on a connection.
#[derive(Clone)]
pub enum Caller {
    /// The system says who.
    Known(Peer),
    /// Whoever shows a token.
    Bearer(Arc<Bearer>),
}

impl Caller {
    /// Who asks with this request. A stranger is at work meanwhile; his new place waits.
    ///
    /// # Errors
    /// It shows no token that is good.
    pub async fn peer<B>(&self, request: &Request<B>, seat: &Seat) -> Result<Peer, Box<Problem>> {
        let bearer = match self {
            Self::Known(peer) => return Ok(peer.clone()),
            Self::Bearer(bearer) => bearer,
        };
        let (peer, grant) = match player::shown(request) {
            Some(text) => bearer.gate.by_player(text)?,
            None => bearer.gate.peer(shown(request.headers())?)?,
        };
        bearer.sits(peer, grant, seat).await
    }

    /// Whether nobody between hears what is said.
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Bearer(bearer) if bearer.gate.tls.is_some())
    }

    /// Ends when what let the connection in lets nobody in any more.
    pub async fn over(&self) {
        match self {
            Self::Known(_) => pending().await,
            Self::Bearer(bearer) => bearer.over().await,
        }
    }
}

/// A connection over TCP.
pub struct Bearer {
    gate: Gate,
    lane: Lane,
    /// What was shown last.
    last: watch::Sender<Option<Arc<Grant>>>,
}

impl Bearer {
    /// Of somebody who has shown nothing yet.
    pub fn new(gate: Gate, lane: Lane) -> Self {
        Self { gate, lane, last: watch::Sender::new(None) }
    }

    /// Who has shown this has the place of its user.
    async fn sits(&self, peer: Peer, grant: Arc<Grant>, seat: &Seat) -> Result<Peer, Box<Problem>> {
        let before = self.last.borrow().as_ref().map(|grant| grant.uid);
        match before {
            Some(uid) if uid != peer.uid => {
                return Err(not_good("the connection is another user's: use one for each"));
            }
            Some(_) => {}
            None => {
                // What he shows is good: strangers that come do not drive him out, who waits only for
                // the connection that gives way to him.
                let stranger = seat.place();
                if !stranger.at_work() {
                    return Err(Box::new(full(stranger.why_left(), "")));
                }
                seat.change(self.gate.enter(Kind::Control, &peer).await?);
                self.lane.belongs_to(peer.uid);
            }
        }
        self.last.send_replace(Some(grant));
        Ok(peer)
    }

    async fn over(&self) {
        let mut last = self.last.subscribe();
        loop {
            let grant = last.borrow_and_update().clone();
            let ended = async {
                match grant {
                    Some(grant) => self.gate.tokens.ended(&grant).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = ended => return,
                _ = last.changed() => {}
            }
        }
    }
}

/// The token of a request: `authorization: Bearer TOKEN`, once.
///
/// # Errors
/// There is none, or there are several.
pub fn shown(headers: &HeaderMap) -> Result<&str, Box<Problem>> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return Err(not_good("show one token: `authorization: Bearer TOKEN`"));
    };
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    let token = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let (_, token) =
        token.ok_or_else(|| not_good("show a token: `authorization: Bearer TOKEN`"))?;
    Ok(token.trim_start())
}
