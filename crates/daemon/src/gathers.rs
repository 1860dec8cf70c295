//! Large reads that have to be answered in one reply: their bytes lie in memory of the daemon's own until
//! their clients have taken them, for as long as an answer may take.
//!
//! Invariants: of all users there are few at a time, of each one; so whoever waits for one waits for no
//! more than one of each other user, and not at all where fewer users than that have any.

use crate::lock::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of these at most so many at a time: no more than 128 MiB of the daemon's memory.
const AT_ONCE: usize = 4;

/// A user, and whether it is by his tokens.
type Who = (u32, bool);

/// See the module.
pub struct Gathers {
    all: Arc<Semaphore>,
    /// Of those who have connections.
    users: Mutex<HashMap<Who, Weak<Semaphore>>>,
}

impl Default for Gathers {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(AT_ONCE)), users: Mutex::default() }
    }
}

/// Those of one user.
pub struct OfUser {
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

impl Gathers {
    /// For a connection of this user's.
    pub fn of(&self, who: Who) -> OfUser {
        let mut users = self.users.lock();
        users.retain(|_, own| own.strong_count() > 0);
        let own = users.get(&who).and_then(Weak::upgrade);
        let own = own.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
        users.insert(who, Arc::downgrade(&own));
        OfUser { own, all: Arc::clone(&self.all) }
    }
}

impl OfUser {
    /// Waits for the turn of one read.
    pub async fn turn(&self) -> [OwnedSemaphorePermit; 2] {
        let open = "they are never closed";
        // His own first: of those who wait for others each is another user.
        let own = Arc::clone(&self.own).acquire_owned().await.expect(open);
        [own, Arc::clone(&self.all).acquire_owned().await.expect(open)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Waker};

    type Turns = [OwnedSemaphorePermit; 2];

    fn now(coming: Pin<&mut (impl Future<Output = Turns> + ?Sized)>) -> Option<Turns> {
        match coming.poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(turns) => Some(turns),
            std::task::Poll::Pending => None,
        }
    }

    /// Before, two clients of one user who took their time had both that there were.
    #[test]
    fn who_does_not_take_his_answers_keeps_those_of_others_from_nobody() {
        let gathers = Gathers::default();
        let slow: Vec<OfUser> = (0..10).map(|_| gathers.of((1, false))).collect();
        let mut had = vec![now(Box::pin(slow[0].turn()).as_mut()).unwrap()];
        let mut waiting: Vec<_> = slow[1..].iter().map(|one| Box::pin(one.turn())).collect();
        assert!(waiting.iter_mut().all(|one| now(one.as_mut()).is_none()));
        let others = [(1, true), (2, false), (3, false)].map(|who| gathers.of(who));
        had.extend(others.iter().filter_map(|one| now(Box::pin(one.turn()).as_mut())));
        assert_eq!(had.len(), AT_ONCE, "none of them waits");
        // Where all are taken, the next one is of another user.
        let last = gathers.of((4, false));
        let mut turn = Box::pin(last.turn());
        assert!(now(turn.as_mut()).is_none());
        drop(had.remove(0));
        assert!(waiting.iter_mut().all(|one| now(one.as_mut()).is_none()));
        assert!(now(turn.as_mut()).is_some());
        drop((turn, had, waiting));
        assert_eq!(gathers.users.lock().len(), 5);
        drop((slow, others));
        let _last = gathers.of((4, false));
        assert_eq!(gathers.users.lock().len(), 1, "who is gone is forgotten");
    }
}
