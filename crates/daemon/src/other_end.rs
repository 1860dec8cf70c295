//! Whether the program at the other end of an HTTP connection is there: asked by what does its
//! requests, which goes on when the connection has ended ([`control`](crate::control)).
//!
//! Invariant: who ends the connection looks first. What it does itself to the socket then is not
//! taken for what the program has done.

use crate::ends::Whole;
use crate::lock::Mutex;
use crate::timely::socket;
use std::os::fd::{AsFd, OwnedFd};

/// One connection's. By a descriptor of its own, since the other one's owner reads and writes by it
/// meanwhile.
pub struct OtherEnd(Mutex<Seen>);

enum Seen {
    Open {
        /// None where the system had no descriptor for it: then who is gone is noticed when the
        /// connection ends.
        socket: Option<OwnedFd>,
        is_local: bool,
    },
    /// The daemon has ended it. One that the program had only half closed until then may still wait at its
    /// other end, and what it has asked for is done, as everything that was begun.
    Ended { was_abandoned: bool },
}

impl OtherEnd {
    /// Of a connection that is open here.
    pub fn of(connection: &Whole) -> Self {
        let socket = connection.as_fd().try_clone_to_owned().ok();
        Self(Mutex::new(Seen::Open { socket, is_local: connection.is_local() }))
    }

    /// Whether the program has closed the connection ([`socket::is_abandoned`]).
    pub fn is_abandoned(&self) -> bool {
        self.0.lock().is_abandoned()
    }

    /// The connection is about to be ended here.
    pub fn ends(&self) {
        let mut seen = self.0.lock();
        let was_abandoned = seen.is_abandoned();
        let before = std::mem::replace(&mut *seen, Seen::Ended { was_abandoned });
        drop(seen);
        drop(before); // its descriptor is closed, and not under the lock
    }
}

impl Seen {
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Open { socket, is_local } => {
                socket.as_ref().is_some_and(|socket| socket::is_abandoned(socket, *is_local))
            }
            Self::Ended { was_abandoned } => *was_abandoned,
        }
    }
}
