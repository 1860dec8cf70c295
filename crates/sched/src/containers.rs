//! Best effort with a contract: servers, their budgets, and the containers that they
//! put requests into (Clockwise thesis, section 6.5.4).
//!
//! A server is a task: budget `Q`, period `P`, deadline `D`. Its requests wait in a
//! line. When there is budget for the first of the line, all budget that is there is
//! released as one *container*, due `D` later; requests enter it in order for as long
//! as they fit. While a request in it waits, others that come may enter it too: it is
//! as if they had been there from its release. Once none waits any more the container
//! is closed. What was not used can be released again at once, in a new container with
//! a later deadline; what was used, `P` after the release.
//!
//! **Why the analysis covers it.** Think of the budget as `Q` grains. Each is released
//! at least `P` after its last release, due `D` later: a task `(1, P, D)`. The grains
//! of a container are released together, those that go unused not at all, which their
//! contract allows. So a server is `Q` independent tasks of one grain each, and their
//! demand is at most that of one task `(Q, P, D)` in every interval. A budget that could
//! be used at any time before its deadline without work waiting (a deferrable server)
//! is none of this: what comes late would be due early. The small-world search finds
//! its miss.
//!
//! **For the slack** the room of an open container is work due at its deadline that may
//! still come; then the budget is released again by its [`Live`] pieces.
//!
//! Early service in slack is not charged: the request leaves the line, and those behind
//! it move forward. A request that costs more than the budget, or is longer than the
//! server's longest command, never enters a container; it is served in slack only.
//!
//! Invariants: the costs of a server's pieces sum up to its budget, also while a container
//! is open, whose budget can be released again a period later; a container is open
//! only while a request in it waits; after [`Servers::fill`] the first of the line
//! finds no budget.

use crate::limits::SERVER_PIECES_MAX;
use crate::queues::Queues;
use crate::request::Times;
use crate::slack::{Due, Live};
use crate::task::Task;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use units::{Duration, Instant};

/// All servers of a schedule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    /// By the index of the task.
    servers: BTreeMap<u32, Server>,
    /// When there is budget for the first of a line, by server.
    agenda: BTreeSet<(u64, u32)>,
    /// The pieces of all budgets, at hand for the computation of the slack.
    pieces: Vec<Live>,
}

#[derive(Clone, Debug)]
struct Server {
    task: Task,
    /// The budget, by the instant from which each piece may be released.
    pieces: Vec<Live>,
    open: Option<Container>,
    /// Requests that may run and are in no container, by arrival.
    line: BTreeMap<u64, Request>,
    /// Since when the first of the line has been the first.
    since: Instant,
    /// Its entry in the agenda.
    wakes: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    key: u64,
    cost: u64,
}

/// Budget that is released and may still be used.
#[derive(Clone, Copy, Debug)]
struct Container {
    times: Times,
    room: u64,
    /// Requests in it that wait.
    waiting: u32,
}

/// Budget of a task that changes: from when on each part can be released.
#[derive(Clone, Debug)]
pub(crate) struct Renewal {
    parts: Vec<(Instant, u64)>,
    now: Instant,
}

impl Renewal {
    /// All of it, whatever it is.
    pub(crate) fn new(first: Instant) -> Self {
        Self { parts: Vec::from([(first, u64::MAX)]), now: first }
    }

    /// When all of it can be.
    pub(crate) fn last(&self) -> Instant {
        self.parts.iter().map(|&(next, _)| next).max().expect("a budget is something")
    }
}

impl Servers {
    pub(crate) fn join(&mut self, index: u32, task: &Task, first: Instant) {
        let known = self.servers.insert(index, Server::new(index, task, first));
        debug_assert!(known.is_none(), "the index of a server is its own");
        self.gather();
    }

    pub(crate) fn leave(&mut self, index: u32) {
        let server = self.servers.remove(&index).expect("a server of this schedule");
        server.wakes.map(|at| self.agenda.remove(&(at, index)));
        self.gather();
    }

    pub(crate) fn knows(&self, index: u32) -> bool {
        self.servers.contains_key(&index)
    }

    /// The budgets in pieces: what may be released from now on.
    pub(crate) fn pieces(&self) -> &[Live] {
        &self.pieces
    }

    /// What may still come into open containers.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = Due> {
        let open = self.servers.values().filter_map(|server| server.open);
        open.filter(|open| open.room > 0)
            .map(|open| Due { deadline: open.times.deadline.as_nanos(), cost: open.room })
    }

    /// When a request that waits for budget may find some.
    pub(crate) fn next_fill(&self) -> Option<Instant> {
        self.agenda.first().map(|&(at, _)| Instant::from_nanos(at))
    }

    /// True where requests of `cost` enter containers of this server, if it is one still.
    pub(crate) fn serves(&self, index: u32, cost: Duration) -> bool {
        let task = self.servers.get(&index).map(|server| server.task);
        task.is_some_and(|task| cost <= task.cost && cost <= task.command)
    }

    /// A request waits for budget. None enters before [`Servers::fill`].
    pub(crate) fn push(
        &mut self,
        index: u32,
        now: Instant,
        arrival: u64,
        key: u64,
        cost: Duration,
    ) {
        if !self.serves(index, cost) {
            return; // In slack only.
        }
        let Some(server) = self.servers.get_mut(&index) else { return };
        server.line.insert(arrival, Request { key, cost: cost.as_nanos() });
        if server.first().is_some_and(|(first, _)| first == arrival) {
            server.since = now;
        }
    }

    /// A request that waited is started, or dropped, and nothing is released for it.
    /// `times` are its own.
    pub(crate) fn took(&mut self, index: u32, now: Instant, arrival: u64, times: Times) {
        let Some(server) = self.servers.get_mut(&index) else { return }; // It has left.
        let was_first = server.first().is_some_and(|(first, _)| first == arrival);
        if server.line.remove(&arrival).is_none()
            && let Some(open) = server.open.as_mut().filter(|open| open.times == times)
        {
            open.waiting -= 1;
            if open.waiting == 0 {
                server.close(now);
            }
        }
        if was_first {
            server.since = now;
        }
    }

    /// Gives back what a request had of an open container; it is dropped.
    pub(crate) fn refund(&mut self, index: u32, times: Times, cost: Duration) {
        let Some(server) = self.servers.get_mut(&index) else { return };
        if let Some(open) = server.open.as_mut().filter(|open| open.times == times) {
            open.room += cost.as_nanos();
        }
    }

    /// Lets requests of one server into containers, as far as there is budget by `now`.
    /// Their keys are appended to `entered`.
    pub(crate) fn fill(
        &mut self,
        index: u32,
        now: Instant,
        queues: &mut Queues,
        entered: &mut Vec<u64>,
    ) {
        let Some(server) = self.servers.get_mut(&index) else { return };
        let wakes = server.fill(now, queues, entered);
        if wakes != server.wakes {
            server.wakes.map(|at| self.agenda.remove(&(at, index)));
            wakes.map(|at| self.agenda.insert((at, index)));
            server.wakes = wakes;
        }
        self.gather();
    }

    /// The same for all servers whose time has come.
    pub(crate) fn fill_due(&mut self, now: Instant, queues: &mut Queues, entered: &mut Vec<u64>) {
        while let Some(&(at, index)) = self.agenda.first()
            && at <= now.as_nanos()
        {
            self.fill(index, now, queues, entered);
        }
    }

    /// What a server that changes keeps of its budget; each part can be released again from
    /// what `sooner` makes of its instant.
    pub(crate) fn renewal(
        &mut self,
        index: u32,
        now: Instant,
        sooner: impl Fn(Instant) -> Instant,
    ) -> Renewal {
        let server = self.servers.get_mut(&index).expect("a server of this schedule");
        server.close(now);
        let part = |piece: &Live| (sooner(Instant::from_nanos(piece.release_next)), piece.cost);
        Renewal { parts: server.pieces.iter().map(part).collect(), now }
    }

    /// A server in the place of another task.
    pub(crate) fn renew(&mut self, index: u32, task: &Task, renewal: Renewal) {
        let mut server = Server::new(index, task, renewal.now);
        server.pieces.clear();
        let mut left = task.cost.as_nanos();
        for (next, cost) in renewal.parts {
            let cost = cost.min(left);
            left -= cost;
            if cost > 0 {
                server.put(next.as_nanos(), cost);
            }
        }
        if left > 0 {
            server.put(renewal.now.as_nanos(), left);
        }
        self.servers.insert(index, server);
        self.gather();
    }

    /// When some of the budget is there.
    pub(crate) fn next_release(&self, index: u32) -> Instant {
        Instant::from_nanos(self.servers[&index].pieces[0].release_next)
    }

    /// Nothing of a server that has just joined or changed is released before `until`.
    pub(crate) fn hold(&mut self, index: u32, until: Instant) {
        let server = self.servers.get_mut(&index).expect("a server of this schedule");
        for piece in core::mem::take(&mut server.pieces) {
            server.put(piece.release_next.max(until.as_nanos()), piece.cost);
        }
        self.gather();
    }

    fn gather(&mut self) {
        self.pieces.clear();
        self.pieces.extend(self.servers.values().flat_map(|server| &server.pieces));
    }

    /// Appends what later answers depend on, relative to `now`.
    pub(crate) fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        let now = now.as_nanos();
        for server in self.servers.values() {
            let waits = !server.line.is_empty();
            for piece in &server.pieces {
                // Where a request waits for it, its time counts even when it is past.
                let next = piece.release_next.wrapping_sub(now);
                let past = piece.release_next < now && !waits;
                state.extend([piece.cost, if past { 0 } else { next }]);
            }
            state.push(u64::MAX);
            if let Some(open) = server.open {
                state.extend([open.times.deadline.as_nanos().wrapping_sub(now), open.room]);
            }
            state.push(u64::MAX);
            state.extend(server.line.values().map(|request| request.cost));
            state.push(u64::MAX);
        }
    }
}

impl Server {
    fn new(index: u32, task: &Task, first: Instant) -> Self {
        let pieces = Vec::from([Live::new(task, index, first)]);
        let line = BTreeMap::new();
        Self { task: *task, pieces, open: None, line, since: first, wakes: None }
    }

    fn first(&self) -> Option<(u64, Request)> {
        self.line.first_key_value().map(|(&arrival, &request)| (arrival, request))
    }

    /// Returns when to try again for the first of the line.
    fn fill(&mut self, now: Instant, queues: &mut Queues, entered: &mut Vec<u64>) -> Option<u64> {
        while let Some((arrival, Request { key, cost })) = self.first() {
            if self.open.is_some_and(|open| open.room < cost) {
                self.close(now);
            }
            if self.open.is_none() {
                let wakes = self.available(cost);
                if wakes > now.as_nanos() {
                    return Some(wakes);
                }
                self.open(wakes.max(self.since.as_nanos()));
            }
            let open = self.open.as_mut().expect("it was opened");
            open.room -= cost;
            open.waiting += 1;
            queues.enter(key, open.times);
            entered.push(key);
            self.line.remove(&arrival);
            self.since = now;
        }
        None
    }

    /// From when on there is budget for `cost`.
    fn available(&self, cost: u64) -> u64 {
        let mut sum = 0;
        let enough = self.pieces.iter().find(|piece| {
            sum += piece.cost;
            sum >= cost
        });
        enough.expect("no more than the budget is asked for").release_next
    }

    /// Releases all budget that is there at `release`.
    fn open(&mut self, release: u64) {
        let later = self.pieces.partition_point(|piece| piece.release_next <= release);
        let room = self.pieces.drain(..later).map(|piece| piece.cost).sum();
        let release = Instant::from_nanos(release);
        self.put((release + self.task.period).as_nanos(), room);
        let times = Times { release, deadline: release + self.task.deadline };
        self.open = Some(Container { times, room, waiting: 0 });
    }

    /// What the container was not used for can be released again from `now` on.
    fn close(&mut self, now: Instant) {
        let Some(Container { times, room, .. }) = self.open.take() else { return };
        if room == 0 {
            return;
        }
        let again = (times.release + self.task.period).as_nanos();
        let at = self.pieces.partition_point(|piece| piece.release_next < again);
        let used = self.pieces[at].cost - room;
        self.pieces[at].set_cost(used);
        if used == 0 {
            self.pieces.remove(at);
        }
        self.put(now.as_nanos(), room);
    }

    /// Budget that can be released from `next` on.
    fn put(&mut self, next: u64, cost: u64) {
        let at = self.pieces.partition_point(|piece| piece.release_next < next);
        match self.pieces.get_mut(at).filter(|piece| piece.release_next == next) {
            Some(piece) => piece.set_cost(piece.cost + cost),
            None => {
                let mut piece = Live::new(&self.task, 0, Instant::from_nanos(next));
                piece.set_cost(cost);
                self.pieces.insert(at, piece);
            }
        }
        if self.pieces.len() > SERVER_PIECES_MAX {
            // The two that are nearest to each other, at the later time of both.
            let gap = |at: &usize| self.pieces[at + 1].release_next - self.pieces[*at].release_next;
            let at = (0..self.pieces.len() - 1).min_by_key(gap).expect("there are several");
            let earlier = self.pieces.remove(at);
            let later = &mut self.pieces[at];
            later.set_cost(later.cost + earlier.cost);
        }
    }
}
