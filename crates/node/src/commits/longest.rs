//! How long a sync may take, and what the log has to write: told to whoever asks.

use crate::api::*;
use crate::commits::times::sync_max;
use crate::node::Node;
use units::Duration;

impl Node {
    /// The longest time from a call of [`Op::Sync`], or of a change of a volume, to its
    /// answer; with a stream, of [`Op::StreamSync`] and [`Op::StreamClose`] on it. `None` where
    /// no such stream is open for writing; and where what it fills lies in a group's old place, or waits
    /// for the slack alone: that has no turn.
    ///
    /// It holds while the disks keep to their profiles and admission is on, and while between
    /// two commits no more happens than a record has room for ([`LogStatus::record_max`]);
    /// docs/crash-safety.md has the formula. While no stream is open commits begin at once,
    /// and it takes less. Writes that were answered before they were on their disk come first, and have
    /// no contract: what these take is not in it.
    pub fn sync_time_max(&self, stream: Option<StreamId>) -> Option<Duration> {
        let commits = sync_max(&self.core.config);
        let Some(id) = stream else { return Some(commits) };
        let stream = self.streams.get(id).filter(|stream| stream.mode.writes())?;
        if stream.has_no_turn(&self.core) {
            return None;
        }
        // All blocks of the window may have to be written first, a period apart, at the worst
        // on one disk; then the one that is filled in part; each is there a period later.
        // A member's wait for their group's next request, too; and a part for as many as it takes until
        // those of all members have gone.
        let of_group = stream.group.map(|group| group.period);
        let of_tasks = stream.tasks.iter().map(|joined| joined.task.period).max();
        let period = of_tasks.or(of_group)?;
        let more = 3 + stream.group.map_or(0, |id| self.core.groups.rounds_of_parts(&id));
        Some(commits.saturating_add(period.saturating_mul(stream.window.len() + more)))
    }

    /// What the metadata log has to write.
    pub fn log(&self) -> LogStatus {
        let log = &self.core.commits.log;
        LogStatus {
            contract: log.size,
            extents: log.extents,
            record_max: log.record(),
            record_longest: self.core.store.record_longest(),
        }
    }
}
