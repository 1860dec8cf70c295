//! Requests of which the device has ended its part, and the host has not: memory is left to be filled.

use crate::queue::{Ended, Queue};
use units::Instant;

impl<W> Queue<W> {
    /// A command has [`ended`](Queue::ended_within) and was noticed at `noticed`, when others could have the
    /// device; what it was for is there only `now`, since the host had to fill memory. It counts as late
    /// by then.
    pub fn filled(&mut self, ended: &mut Ended<W>, noticed: Instant, now: Instant) {
        let Some(due) = ended.due else { return };
        let late_by = now.saturating_since(due).max(ended.late_by);
        self.account.count_later(ended.late_by, late_by);
        ended.latency = ended.latency.saturating_add(now.saturating_since(noticed));
        ended.late_by = late_by;
    }
}
