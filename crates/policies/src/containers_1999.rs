//! Best effort with a contract as the thesis has it (section 6.5.4): the lines of its
//! servers, and the times that their first requests have. For `delta-l-1999` only; the
//! containers that keep what they promise are in `sched`.
//!
//! A server is a task: a slice of time in every period. Its requests are served in the
//! order in which they came. The one that is next belongs to the server's last container
//! where it came before that one is due and its slice has room; else to a new one, which is
//! released when the last one is due, or when the request came, whichever is later (the
//! rule for streams, section 6.3.2). The thesis does not say what becomes of room that is
//! left while nothing waits; here it stays until the container is due.
//!
//! **What is charged.** The thesis gives a request its times when it comes, and again only
//! when another one of its server goes in slack, which is not charged: so the charge is known
//! beforehand, and is no time that was measured. Nor is it the worst case, which "is difficult
//! for the user to determine": the slice is what he "expects to use for n requests". The time
//! that is expected of best effort is `E`, the exact seek and the transfer (section 6.3.2). It
//! is taken here when the request is the first of its line, from where the heads are.
//! One that is expected to take longer than the slice takes all of it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use sched::{Class, Task, TaskId, View, Waiting};
use units::{Duration, Instant};

/// The servers that were asked for something, each with its line.
#[derive(Clone, Debug, Default)]
pub(super) struct Containers(BTreeMap<TaskId, Server>);

#[derive(Clone, Debug, Default)]
struct Server {
    /// The last container that something was charged to: its release, and how much.
    last: Option<(Instant, Duration)>,
    /// Its requests that wait, by arrival: key, and when it came.
    line: BTreeMap<u64, (u64, Instant)>,
}

/// The first request of a server's line.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub key: u64,
    pub arrival: u64,
    /// Of its container.
    pub release: Instant,
    pub deadline: Instant,
    server: TaskId,
    charge: Duration,
}

impl Containers {
    pub(super) fn insert(&mut self, request: &Waiting) {
        if let Class::Server { task, .. } = request.class {
            let line = &mut self.0.entry(task).or_default().line;
            line.insert(request.arrival, (request.key, request.submitted));
        }
    }

    pub(super) fn remove(&mut self, request: &Waiting) {
        if let Class::Server { task, .. } = request.class
            && let Some(server) = self.0.get_mut(&task)
        {
            server.line.remove(&request.arrival);
        }
    }

    pub(super) fn left(&mut self, task: TaskId) {
        self.0.remove(&task);
    }

    /// The first of each line that may run.
    pub(super) fn firsts(&self, view: &View<'_>) -> Vec<First> {
        let first = |(&id, server): (&TaskId, &Server)| server.first(id, view);
        self.0.iter().filter_map(first).collect()
    }

    /// It is started before its turn, in slack. Nothing for a stream's.
    pub(super) fn take(&mut self, first: Option<&First>) {
        if let Some((first, server)) = self.server(first) {
            server.line.remove(&first.arrival);
        }
    }

    /// It is started at its turn, out of its container. Nothing for a stream's.
    pub(super) fn take_charged(&mut self, first: Option<&First>) {
        if let Some((first, server)) = self.server(first) {
            server.line.remove(&first.arrival);
            let same = server.last.filter(|&(release, _)| release == first.release);
            let used = same.map_or(Duration::ZERO, |(_, used)| used);
            server.last = Some((first.release, used.saturating_add(first.charge)));
        }
    }

    fn server<'a>(&mut self, first: Option<&'a First>) -> Option<(&'a First, &mut Server)> {
        first.and_then(|first| Some((first, self.0.get_mut(&first.server)?)))
    }

    pub(super) fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        let relative = |at: Instant| at.as_nanos().wrapping_sub(now.as_nanos());
        for (id, server) in &self.0 {
            state.push(u64::from(id.index()));
            state
                .extend(server.last.iter().flat_map(|&(at, used)| [relative(at), used.as_nanos()]));
            state.push(u64::MAX);
            state.extend(server.line.values().flat_map(|&(key, came)| [key, relative(came)]));
            state.push(u64::MAX);
        }
    }
}

impl Server {
    fn first(&self, id: TaskId, view: &View<'_>) -> Option<First> {
        let queues = view.queues();
        let mut line = self.line.iter();
        let (&arrival, &(key, came)) = line.find(|(_, (key, _))| queues.may_run(*key))?;
        let task = view.tasks().get(id)?;
        let charge = view.predicted(queues.get(key)?).min(task.cost);
        let release = self.release(&task, came, charge);
        let deadline = release.saturating_add(task.deadline);
        Some(First { key, arrival, release, deadline, server: id, charge })
    }

    /// Of the container that a request belongs to which came then.
    fn release(&self, task: &Task, came: Instant, charge: Duration) -> Instant {
        let Some((release, used)) = self.last else { return came };
        let next = release.saturating_add(task.period);
        let has_room = used.saturating_add(charge) <= task.cost;
        if has_room && came < next { release } else { next.max(came) }
    }
}
