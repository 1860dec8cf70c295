//! What all sockets do with a connection that comes: take it, and tell those for whom
//! there is no place.

use crate::door::{Door, Full, Guest, Kind, Place};
use crate::limits::SOCKET_HOLDS;
use crate::quotas::{Peer, Quotas};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, sockopt};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use wire::{Code, Problem};

/// When taking a connection fails, it is tried again after this time.
const AGAIN: Duration = Duration::from_millis(100);

/// Takes data connections until `stopping`, each served in a task of its own; one for which
/// there is no place is refused. Waits for no program.
pub async fn take<S>(
    listener: UnixListener,
    door: Arc<Door>,
    quotas: Arc<Quotas>,
    mut stopping: watch::Receiver<bool>,
    serve: impl Fn(UnixStream, Peer, Place) -> S,
    refuse: impl Fn(&UnixStream, &Problem),
) where
    S: Future<Output = ()> + Send + 'static,
{
    let accepting = async {
        loop {
            let connection = accept(&listener, &door).await;
            let peer = Peer::of(&connection);
            match door
                .enter(Kind::Data, Guest::User(peer.uid), quotas.is_administrator(&peer))
                .await
            {
                Ok(place) => drop(tokio::spawn(serve(connection, peer, place))),
                Err(why) => refuse(&connection, &full(why, &quotas.name(&peer))),
            }
        }
    };
    tokio::select! {
        () = accepting => unreachable!("accepting never ends"),
        _ = stopping.wait_for(|&stopping| stopping) => {}
    }
}

/// What connections come from.
pub trait Listener: AsFd {
    /// One of them.
    type Connection;
    /// The next.
    fn next(&self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

impl Listener for UnixListener {
    type Connection = UnixStream;
    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

impl Listener for TcpListener {
    type Connection = TcpStream;
    async fn next(&self) -> io::Result<TcpStream> {
        Ok(self.accept().await?.0)
    }
}

/// The next connection. Out of descriptors or memory, one that waits leaves, and it is
/// tried again.
pub async fn accept<L: Listener>(listener: &L, door: &Door) -> L::Connection {
    let mut is_said = false;
    loop {
        match listener.next().await {
            Ok(connection) => return connection,
            // Linux takes a descriptor before it looks whether anybody is there.
            Err(_) if !somebody_waits(listener) => tokio::time::sleep(AGAIN).await,
            Err(error) => {
                if !std::mem::replace(&mut is_said, true) {
                    tracing::error!(%error, "cannot take a connection: {error}; trying again");
                }
                door.one_leaves();
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Whether a connection waits to be taken.
fn somebody_waits(listener: &impl Listener) -> bool {
    let mut asked = [PollFd::new(listener, PollFlags::IN)];
    // Where it cannot be asked, somebody may.
    poll(&mut asked, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

/// Lets the kernel hold a whole transfer on its way to the program at the other end.
pub fn hold_answers(connection: impl AsFd) {
    let len = SOCKET_HOLDS.as_usize();
    // As root more than the system lets everybody have; what it does not, it cuts to that.
    if sockopt::set_socket_send_buffer_size_force(&connection, len).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(connection, len);
    }
}

/// Says something to a program whose connection is not served, in as many bytes as the
/// socket takes at once: a new one takes all of it.
pub fn say(connection: &UnixStream, bytes: &[u8]) {
    // Past the runtime, which does not know of a new socket yet whether it can be written to.
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = rustix::net::send(connection, bytes, flags); // who has gone need not hear it
}

/// Why there is no place for a connection of this user, for a person.
pub fn full(why: Full, user: &str) -> Problem {
    match why {
        Full::User(has) => Problem::new(
            Code::Quota,
            format!("user {user} has {has} connections at work, as many as one may have"),
            "close some of them, or put more requests on each",
        ),
        Full::House(has) => Problem::new(
            Code::Busy,
            format!("all {has} connections that the daemon can have are at work"),
            "try again when some have ended; `slackline quota` shows who has what",
        ),
        Full::GaveWay => Problem::new(
            Code::Busy,
            "the connection waited, and gave way to another one",
            "connect again",
        ),
        Full::Stopping => crate::problem::of(&node::Error::ShuttingDown),
    }
}
