//! How many requests wait for the same thing, by user.
//!
//! Invariant: a user has no more of them than there is room for others. So one alone has half of all,
//! two have a third each, and so on: whoever comes finds room, however much those before him ask for.

use crate::api::Error;
use alloc::collections::BTreeMap;

/// The count of those who wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiters {
    all: usize,
    /// Of those who have any.
    users: BTreeMap<u32, usize>,
}

impl Waiters {
    /// One more of this user's waits, of `most` in all.
    ///
    /// # Errors
    /// [`Error::Busy`] where he has as many as he may.
    pub(crate) fn come(&mut self, uid: u32, most: usize) -> Result<(), Error> {
        let own = self.users.get(&uid).copied().unwrap_or_default();
        if own >= most.saturating_sub(self.all) {
            return Err(Error::Busy { waiting: self.all as u64 });
        }
        self.all += 1;
        self.users.insert(uid, own + 1);
        Ok(())
    }

    /// One of his waits no longer.
    pub(crate) fn go(&mut self, uid: u32) {
        let own = self.users.get_mut(&uid).expect("he was counted");
        *own -= 1;
        if *own == 0 {
            self.users.remove(&uid);
        }
        self.all -= 1;
    }

    /// Nobody waits any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, one bound was for all: who filled it had everybody refused.
    #[test]
    fn whoever_comes_finds_room_however_many_have_as_many_as_they_may() {
        const MOST: usize = 1000;
        let mut waiters = Waiters::default();
        let mut fill = |uid| (0..).take_while(|_| waiters.come(uid, MOST).is_ok()).count();
        let had: alloc::vec::Vec<usize> = (0..6).map(&mut fill).collect();
        assert_eq!(had, [500, 250, 125, 63, 31, 16]);
        assert_eq!(fill(0), 0);
        for (uid, had) in (0..).zip(had) {
            (0..had).for_each(|_| waiters.go(uid));
        }
        assert!(waiters.users.is_empty() && waiters.all == 0);
    }
}
