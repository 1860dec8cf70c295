//! What the daemon does on TCP: nothing, until it is told to.
//!
//! Whoever connects is a stranger until he has shown a token that is good. Strangers are few, and
//! the one that has waited longest gives way to the next (`door`); each has a bounded time for
//! what comes before. After it a connection is its token's user's, and has his quotas and his part
//! of the threads under contract; its place is among those of his that came by token.
//!
//! Invariants: nothing is said without TLS but on a loopback address, and there only where the
//! daemon was told so; no token is written to a message.

use crate::door::{Door, Full, Guest, Kind, Place};
use crate::quotas::{Peer, Quotas};
use crate::reception::{accept, full};
use crate::timely::Timely;
use crate::tls::{Certificate, Tls, TlsError};
use crate::tokens::Tokens;
use rustix::net::sockopt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use token::Grant;
use tokio::net::{TcpListener, TcpStream};
use wire::Problem;

/// A peer that says nothing is asked whether it is there after this time, so often, and so many
/// times: one that has vanished gives its place back after two minutes.
const ALIVE_AFTER: Duration = Duration::from_secs(60);
const ALIVE_EVERY: Duration = Duration::from_secs(15);
const ALIVE_TIMES: u32 = 4;
/// One that does not acknowledge what was sent to it is given up after the same time: while
/// something is on its way it is not asked.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(120);
const _: () = assert!(
    ACKNOWLEDGED_WITHIN.as_secs()
        == ALIVE_AFTER.as_secs() + ALIVE_EVERY.as_secs() * ALIVE_TIMES as u64
);

/// Where to listen on TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listen {
    /// For HTTP: an address or a name, and a port.
    pub http: Option<String>,
    /// For NBD.
    pub nbd: Option<String>,
    /// The certificate.
    pub certificate: Option<Certificate>,
    /// Without TLS, which only goes on loopback addresses.
    pub is_plain: bool,
}

/// What is listened to.
pub struct TcpListeners {
    /// HTTP.
    pub http: Option<TcpListener>,
    /// NBD.
    pub nbd: Option<TcpListener>,
    /// None where everything is plain.
    pub tls: Option<Tls>,
}

impl Listen {
    /// Whether there is anything to listen to.
    pub fn is_nothing(&self) -> bool {
        self.http.is_none() && self.nbd.is_none()
    }

    /// Listens, and says where. Must run inside the runtime.
    ///
    /// # Errors
    /// An address cannot be had, or there is no certificate.
    pub fn start(&self, state: Option<&Path>) -> Result<TcpListeners, TlsError> {
        let http = self.http.as_deref().map(|at| self.bind(at, "--listen")).transpose()?;
        let nbd = self.nbd.as_deref().map(|at| self.bind(at, "--nbd-listen")).transpose()?;
        if self.is_nothing() || self.is_plain {
            return Ok(TcpListeners { http, nbd, tls: None }.told());
        }
        let certificate = self.certificate.clone().unwrap_or(Certificate::Own);
        let tls = Tls::new(&certificate, state, self.names())?;
        Ok(TcpListeners { http, nbd, tls: Some(tls) }.told())
    }

    fn bind(&self, at: &str, flag: &str) -> Result<TcpListener, TlsError> {
        let failed = |what: &dyn std::fmt::Display| TlsError {
            what: format!("{flag} {at}: {what}"),
            next_step: "give an address of this machine and a free port, as 192.0.2.7:10809",
            of_settings: false,
        };
        // What no address can be is told apart from a name that is not known for now.
        let unread = |error: std::io::Error| TlsError {
            of_settings: error.kind() == std::io::ErrorKind::InvalidInput,
            ..failed(&error)
        };
        let addresses: Vec<SocketAddr> = at.to_socket_addrs().map_err(unread)?.collect();
        let is_far = |address: &&SocketAddr| !address.ip().is_loopback();
        if let Some(far) = addresses.iter().find(is_far).filter(|_| self.is_plain) {
            let what = format!("{flag} {at}: {} can be reached from other machines", far.ip());
            let next_step = "leave out --plain-tcp, or listen on 127.0.0.1 or ::1";
            return Err(TlsError { what, next_step, of_settings: true });
        }
        let bound = std::net::TcpListener::bind(&*addresses).map_err(|error| failed(&error))?;
        bound.set_nonblocking(true).map_err(|error| failed(&error))?;
        TcpListener::from_std(bound).map_err(|error| failed(&error))
    }

    /// What a certificate of the daemon's own is for.
    fn names(&self) -> Vec<String> {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".into(), "::1".into()];
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let hosts = [&self.http, &self.nbd].into_iter().flatten();
        let hosts = hosts.filter_map(|at| at.rsplit_once(':')).map(|(host, _)| host);
        let hosts = hosts.map(|host| host.trim_matches(['[', ']']));
        for name in hosts.chain([own.trim()]) {
            // "All addresses" is nobody's name.
            if !name.is_empty() && !["0.0.0.0", "::"].contains(&name) {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl TcpListeners {
    fn told(self) -> Self {
        let how = if self.tls.is_some() { "over TLS" } else { "WITHOUT encryption" };
        for (what, listener) in [("HTTP", &self.http), ("NBD", &self.nbd)] {
            if let Some(at) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
                tracing::info!(socket = %at, "serving {what} {how} at {at}");
            }
        }
        if let Some(Tls { fingerprint, trusted, .. }) = &self.tls {
            let trusted = trusted.display();
            tracing::info!("the certificate to trust is {trusted}, SHA-256 {fingerprint}");
        }
        self
    }
}

/// What strangers come in by.
#[derive(Clone)]
pub struct Gate {
    /// What lets them in.
    pub tokens: Arc<Tokens>,
    /// Who is an administrator, and what users are called.
    pub quotas: Arc<Quotas>,
    /// Who is in.
    pub door: Arc<Door>,
    /// The threads that serve what is under contract.
    pub timely: Timely,
    /// None where everything is plain.
    pub tls: Option<Tls>,
}

impl Gate {
    /// The next stranger, with his place.
    pub async fn next(&self, listener: &TcpListener, kind: Kind) -> (TcpStream, Place) {
        loop {
            let connection = accept(listener, &self.door).await;
            // Where it cannot be set, the connection is slower, or is found dead later.
            let _ = connection.set_nodelay(true);
            let _ = sockopt::set_socket_keepalive(&connection, true);
            let _ = sockopt::set_tcp_keepidle(&connection, ALIVE_AFTER);
            let _ = sockopt::set_tcp_keepintvl(&connection, ALIVE_EVERY);
            let _ = sockopt::set_tcp_keepcnt(&connection, ALIVE_TIMES);
            let within = ACKNOWLEDGED_WITHIN.as_millis() as u32;
            let _ = sockopt::set_tcp_user_timeout(&connection, within);
            match self.door.enter(kind, Guest::Stranger, false).await {
                Ok(place) => return (connection, place),
                // There is nothing that can be said before TLS.
                Err(Full::Stopping) => std::future::pending().await,
                Err(_) => {}
            }
        }
    }

    /// Who shows this text, and what he may.
    ///
    /// # Errors
    /// It is no token that is good.
    pub fn peer(&self, text: &str) -> Result<(Peer, Arc<Grant>), Box<Problem>> {
        let (grant, maker) = self.tokens.check(text)?;
        Ok((Peer::bearing(Arc::clone(&grant), maker.as_ref()), grant))
    }

    /// The same of what a player shows.
    ///
    /// # Errors
    /// It was not made of a token that is good.
    pub fn by_player(&self, text: &str) -> Result<(Peer, Arc<Grant>), Box<Problem>> {
        let (grant, maker) = self.tokens.check_player(text)?;
        Ok((Peer::bearing(Arc::clone(&grant), maker.as_ref()), grant))
    }

    /// A place for who is no stranger any more.
    ///
    /// # Errors
    /// His user has as many by token as he may, or the house is full.
    pub async fn enter(&self, kind: Kind, peer: &Peer) -> Result<Place, Box<Problem>> {
        // The last places are for those who come to this machine to help, whoever made the token.
        let entered = self.door.enter(kind, Guest::Bearer(peer.uid), false).await;
        entered.map_err(|why| Box::new(full(why, &self.quotas.name(peer))))
    }
}
