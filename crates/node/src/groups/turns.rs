//! When groups write: in the turns of their tasks, and only where a member has something.

use crate::api::StreamId;
use crate::core::Core;
use crate::groups::group::GroupId;
use units::Instant;

impl Core {
    /// A member has something for its group's next request.
    pub(crate) fn ask_group(&mut self, now: Instant, id: GroupId, stream: StreamId) {
        let Some(group) = self.groups.all.get_mut(&id) else { return };
        if !group.waiting.contains(&stream) {
            group.waiting.push(stream);
        }
        self.time_group(now, id);
    }

    /// Notes when a group writes next: in its turn, but as much ahead as the timer may be late, since a
    /// request that comes late would put all that follow off.
    pub(crate) fn time_group(&mut self, now: Instant, id: GroupId) {
        let Some(group) = self.groups.all.get(&id) else { return };
        let turn = self.next_release(&group.task).saturating_sub(self.late).max(now);
        let due = (!group.waiting.is_empty()).then_some(turn);
        let group = self.groups.all.get_mut(&id).expect("just found");
        if group.due != due {
            group.due = due;
            self.wake_timers();
        }
    }
}
