//! Serves requests as commands, one at a time.
//!
//! Invariants: one command is out at a time; of the requests inside at most one is
//! `current`, the one that was served last and is not done; what is left of a
//! request is always the tail of its access.

use super::mechanics::{Mechanics, Motion, Part, expected};
use alloc::collections::BTreeMap;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// How many other requests are looked at for one that fits into a wait.
const FILLS_MAX: usize = 32;
/// A wait shorter than this is not worth a timer.
const WAIT_MIN: Duration = Duration::from_micros(20);

/// How a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// The largest piece of the transfer, a whole number of sectors; best the
    /// smallest at which the disk still streams. None: one command.
    pub chunk: Option<Bytes>,
    /// Others may go between its commands.
    pub preemptible: bool,
    /// Wait out the turn before the seek. None: seek at once.
    pub just_in_time: Option<JustInTime>,
    /// Seeks over more cylinders go in equal parts of at most so many; half of the
    /// stroke keeps a seek near two thirds of the longest. None: in one.
    pub sub_seek: Option<u64>,
    /// Split and position only where the turn that follows pays for it.
    pub only_masked: bool,
    /// Force the last chunk of a write onto the medium.
    pub force_last: bool,
    /// Serve a small request in the wait before this one where that is expected to
    /// delay nothing. An expectation is no bound: not for requests under contract.
    pub fills: bool,
    /// After this read, take up to so much of what follows it in the wait before the
    /// next request; expected to delay nothing, likewise.
    pub ahead: Bytes,
}

/// How near to the last moment a seek begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JustInTime {
    /// So long before its sector the heads should arrive: seeks vary.
    pub margin: Duration,
    /// The same where no seek is needed any more.
    pub margin_on_track: Duration,
    /// Bring the heads to their goal by a seek of its own, and read then: two short
    /// commands in the place of a long one.
    pub positions: bool,
}

impl Manner {
    /// One command, never interrupted.
    pub const WHOLE: Self = Self {
        chunk: None,
        preemptible: false,
        just_in_time: None,
        sub_seek: None,
        only_masked: true,
        force_last: false,
        fills: false,
        ahead: Bytes::ZERO,
    };

    /// Chunks alone: what can be done on any disk.
    ///
    /// # Panics
    /// Where `chunk` is no whole number of sectors above zero.
    pub fn chunks(chunk: Bytes) -> Self {
        assert!(!chunk.is_zero() && chunk.is_multiple_of(SECTOR), "a chunk of {chunk:?}");
        Self { chunk: Some(chunk), preemptible: true, force_last: true, ..Self::WHOLE }
    }
}

/// What a planner has done, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Account {
    /// Commands given out.
    pub commands: u64,
    /// Requests that had begun and made way.
    pub preemptions: u64,
    /// Bound on the time that brings them back.
    pub seek_back: Duration,
    /// Times that a request did not make way because that could not be paid.
    pub refused: u64,
    /// Requests served in a wait of another.
    pub filled: u64,
    /// Read ahead in waits.
    pub ahead: Bytes,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Give the disk this.
    Start(Piece),
    /// Nothing before `until`, unless a request comes.
    Wait {
        /// When to ask again.
        until: Instant,
    },
    /// Nothing until a request comes.
    Idle,
}

/// A command and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The request.
    pub key: u64,
    /// What the disk shall do.
    pub command: Command,
    /// Which part of the request it is.
    pub part: Part,
}

/// What has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A command; its request goes on.
    Command,
    /// The last command of this request.
    Request {
        /// The request.
        key: u64,
    },
    /// A read behind this request, for whoever wants it.
    Ahead {
        /// The request, which is done.
        key: u64,
        /// What was read.
        access: Access,
    },
}

/// A request inside, for status and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The request.
    pub key: u64,
    /// Lower goes first.
    pub rank: Instant,
    /// What is left of it.
    pub left: Access,
    /// A command was given out for it.
    pub begun: bool,
    /// It made way, and its heads are elsewhere.
    pub preempted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    key: u64,
    left: Access,
    manner: Manner,
    begun: bool,
    preempted: bool,
}

/// By rank, then by arrival.
type Place = (Instant, u64);

/// Where a disk may go on after a read that is done.
#[derive(Clone, Copy, Debug)]
struct Tail {
    key: u64,
    chunk: Bytes,
    next: Lba,
    left: Bytes,
}

/// How the heads get to a sector.
#[derive(Clone, Copy, Debug)]
struct Route {
    /// When to begin.
    start: Instant,
    /// When the sector comes by at last.
    pass: Instant,
    /// The heads are there a margin before.
    safe: bool,
    /// The seek to begin with; none where the transfer seeks by itself.
    seek: Option<Lba>,
}

/// The planner of one disk; pure.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    jobs: BTreeMap<Place, Job>,
    arrivals: u64,
    current: Option<Place>,
    out: Option<(Option<Place>, Piece)>,
    /// Where the heads are, as far as commands tell.
    head: Option<Lba>,
    /// The last command was a transfer that ended at `head`, this way.
    streams: Option<Direction>,
    tail: Option<Tail>,
    account: Account,
}

impl Planner {
    /// No requests; the heads are anywhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// No requests; the heads are at `head`.
    pub fn at(head: Lba) -> Self {
        Self { head: Some(head), ..Self::default() }
    }

    /// Takes a request. Among those inside the one with the least `rank` goes first
    /// (its deadline, for earliest deadline first), of equal ones the oldest.
    ///
    /// # Panics
    /// For a transfer of nothing.
    pub fn submit(&mut self, key: u64, rank: Instant, access: Access, manner: Manner) {
        assert!(!access.len.is_zero(), "a transfer of nothing");
        let job = Job { key, left: access, manner, begun: false, preempted: false };
        self.jobs.insert((rank, self.arrivals), job);
        self.arrivals += 1;
    }

    /// What the disk shall do at `now`. Ask when it is free: after a request came, a
    /// command ended, or a wait is over. `allowance` is what may be spent on a seek
    /// back: what the schedule can still lose. What [`Chunking`](super::Chunking)
    /// admitted has paid for its seeks back, and counts on every interruption: there
    /// it is [`Duration::MAX`].
    ///
    /// # Panics
    /// Where a command is out.
    pub fn next(&mut self, now: Instant, mechanics: &dyn Mechanics, allowance: Duration) -> Step {
        assert!(self.out.is_none(), "the disk has a command");
        let Some(place) = self.choose(mechanics, allowance) else { return Step::Idle };
        let job = self.jobs[&place];
        let chunk = job.chunk();
        if self.streams == Some(chunk.direction) && self.head == Some(chunk.lba) {
            return self.start(place, job.command(), Part::Streamed);
        }
        let Some(motion) = mechanics.motion() else {
            return self.start(place, job.command(), Part::First);
        };
        let Some(head) = self.head else {
            // From anywhere.
            return match job.manner.just_in_time {
                Some(it) if it.positions => self.start(place, Command::Seek(chunk.lba), Part::Seek),
                _ => self.start(place, job.command(), Part::First),
            };
        };
        let route = route(now, head, &job, motion);
        if route.start.saturating_since(now) >= WAIT_MIN {
            return self.spend(now, head, &job, &route, place, motion);
        }
        match route.seek {
            Some(to) => self.start(place, Command::Seek(to), Part::Seek),
            None => self.start(place, job.command(), Part::First),
        }
    }

    /// The command that was given out has ended.
    ///
    /// # Panics
    /// Where none was.
    pub fn finished(&mut self) -> Ended {
        let (place, piece) = self.out.take().expect("a command is out");
        self.head = piece.command.end().or(self.head);
        self.streams = piece.command.access().map(|access| access.direction);
        let Some(access) = piece.command.access() else { return Ended::Command };
        let Some(place) = place else {
            return Ended::Ahead { key: piece.key, access: *access };
        };
        let job = self.jobs.get_mut(&place).expect("its request is inside");
        job.left.lba = access.end();
        job.left.len = job.left.len.saturating_sub(access.len);
        if !job.left.len.is_zero() {
            return Ended::Command;
        }
        let job = self.jobs.remove(&place).expect("its request is inside");
        self.current = self.current.filter(|&current| current != place);
        self.tail = job.tail();
        Ended::Request { key: job.key }
    }

    /// What was done so far.
    pub fn account(&self) -> Account {
        self.account
    }

    /// The requests inside, in the order of their ranks.
    pub fn standing(&self) -> impl Iterator<Item = Standing> + '_ {
        self.jobs.iter().map(|(&(rank, _), job)| Standing {
            key: job.key,
            rank,
            left: job.left,
            begun: job.begun,
            preempted: job.preempted,
        })
    }

    /// The request that was served last, where it is not done.
    pub fn current(&self) -> Option<u64> {
        self.current.map(|place| self.jobs[&place].key)
    }

    /// The request to go on with: the current one, unless another is before it, it
    /// may be interrupted, and that can be paid.
    fn choose(&mut self, mechanics: &dyn Mechanics, allowance: Duration) -> Option<Place> {
        let (&best, first) = self.jobs.first_key_value()?;
        let Some(current) = self.current.filter(|&current| current != best) else {
            self.current = Some(best);
            return Some(best);
        };
        let job = self.jobs[&current];
        if !job.begun || job.preempted {
            // Its heads are not there yet, or not any more: nothing is lost.
            self.current = Some(best);
            return Some(best);
        }
        if !job.manner.preemptible {
            return Some(current);
        }
        let seek_back = mechanics.resume(first.left.end(), job.left.lba);
        if seek_back > allowance {
            self.account.refused += 1;
            return Some(current);
        }
        self.account.preemptions += 1;
        self.account.seek_back += seek_back;
        self.jobs.get_mut(&current).expect("it is inside").preempted = true;
        self.current = Some(best);
        Some(best)
    }

    fn start(&mut self, place: Place, command: Command, part: Part) -> Step {
        let job = self.jobs.get_mut(&place).expect("a request that is inside");
        (job.begun, job.preempted) = (true, false);
        let piece = Piece { key: job.key, command, part };
        self.out = Some((Some(place), piece));
        self.account.commands += 1;
        self.tail = None;
        Step::Start(piece)
    }

    /// Makes use of the time before a route begins, where that delays nothing.
    fn spend(
        &mut self,
        now: Instant,
        head: Lba,
        job: &Job,
        route: &Route,
        waiting: Place,
        motion: &dyn Motion,
    ) -> Step {
        let fits = |command: &Command, part| {
            let end = now + expected(now, head, command, part, motion);
            let from = command.end().unwrap_or(head);
            let then = self::route(end, from, job, motion);
            end <= route.start && then.safe && then.pass <= route.pass
        };
        let others = self.jobs.iter().filter(|&(&place, other)| {
            place != waiting && !other.begun && other.chunk().len == other.left.len
        });
        let fill = others
            .take(if job.manner.fills { FILLS_MAX } else { 0 })
            .find(|(_, other)| fits(&other.command(), Part::First))
            .map(|(&place, _)| place);
        if let Some(place) = fill {
            self.account.filled += 1;
            return self.start(place, self.jobs[&place].command(), Part::First);
        }
        self.tail = self.tail.and_then(|tail| tail.before(motion.end()));
        let tail = self.tail.filter(|tail| fits(&tail.command(), Part::Streamed));
        if let Some(tail) = tail {
            return self.start_ahead(tail);
        }
        Step::Wait { until: route.start }
    }

    fn start_ahead(&mut self, tail: Tail) -> Step {
        let piece = Piece { key: tail.key, command: tail.command(), part: Part::Ahead };
        let access = tail.access();
        let (next, left) = (access.end(), tail.left.saturating_sub(access.len));
        self.tail = (!left.is_zero()).then_some(Tail { next, left, ..tail });
        self.out = Some((None, piece));
        self.account.commands += 1;
        self.account.ahead += access.len;
        Step::Start(piece)
    }
}

impl Job {
    /// What the next transfer moves.
    fn chunk(&self) -> Access {
        let len = self.manner.chunk.map_or(self.left.len, |chunk| chunk.min(self.left.len));
        Access { len, ..self.left }
    }

    fn command(&self) -> Command {
        let chunk = self.chunk();
        let last = chunk.len == self.left.len;
        if last && self.manner.force_last && chunk.direction == Direction::Write {
            Command::Forced(chunk)
        } else {
            Command::Transfer(chunk)
        }
    }

    /// What may be read behind it, now that it is done.
    fn tail(&self) -> Option<Tail> {
        let manner = &self.manner;
        let wanted = self.left.direction == Direction::Read && !manner.ahead.is_zero();
        let chunk = manner.chunk.unwrap_or(manner.ahead);
        let (key, next, left) = (self.key, self.left.lba, manner.ahead);
        wanted.then_some(Tail { key, chunk, next, left })
    }
}

impl Tail {
    /// As much of it as lies before this place; nothing where nothing does.
    fn before(self, end: Lba) -> Option<Self> {
        let sectors = if self.next < end { self.next.distance(end) } else { 0 };
        let left = self.left.min(SECTOR * sectors.min(self.left.div_ceil(SECTOR)));
        (!left.is_zero()).then_some(Self { left, ..self })
    }

    fn access(&self) -> Access {
        Access { lba: self.next, len: self.chunk.min(self.left), direction: Direction::Read }
    }

    fn command(&self) -> Command {
        Command::Transfer(self.access())
    }
}

/// The way to the next chunk of a job that begins at `now` or when it is time.
fn route(now: Instant, head: Lba, job: &Job, motion: &dyn Motion) -> Route {
    let (manner, command) = (&job.manner, job.command());
    let to = job.left.lba;
    let distance = motion.distance(head, to);
    let parts = manner.sub_seek.map_or(1, |most| distance.div_ceil(most.max(1)).max(1));
    let direct = leg(now, head, &command, 1, false, motion);
    let pass = direct + motion.rotation(direct, to);
    let still = head == to || motion.seek(head, to).is_zero();
    let positions = manner.just_in_time.is_some_and(|it| it.positions) && !still;
    let margin = manner
        .just_in_time
        .map_or(Duration::ZERO, |it| if still { it.margin_on_track } else { it.margin });
    let tries = [(parts, positions), (parts, false), (1, positions), (1, false)];
    let masked = |arrival: Instant| arrival + margin <= pass;
    let (parts, positions, arrival) = tries
        .into_iter()
        .map(|(parts, positions)| {
            (parts, positions, leg(now, head, &command, parts, positions, motion))
        })
        .find(|&(parts, positions, arrival)| {
            !manner.only_masked || masked(arrival) || (parts == 1 && !positions)
        })
        .expect("the last is always taken");
    let pass = arrival + motion.rotation(arrival, to);
    let wait = match manner.just_in_time {
        Some(_) => (pass - arrival).saturating_sub(margin),
        None => Duration::ZERO,
    };
    let seek =
        if parts > 1 { Some(motion.between(head, to, 1, parts)) } else { positions.then_some(to) };
    Route { start: now + wait, pass, safe: arrival + margin <= pass, seek }
}

/// When the heads could begin with a transfer after going there in `parts`, the last
/// of them `positions` or with the transfer.
fn leg(
    now: Instant,
    head: Lba,
    command: &Command,
    parts: u64,
    positions: bool,
    motion: &dyn Motion,
) -> Instant {
    let to = command.lba().expect("a transfer begins somewhere");
    let (mut time, mut from) = (Duration::ZERO, head);
    for part in 1..=parts {
        let next = if part == parts { to } else { motion.between(head, to, part, parts) };
        time += motion.seek(from, next);
        if part < parts || positions {
            time += motion.overhead(&Command::Seek(next));
        }
        from = next;
    }
    now + time + motion.overhead(command)
}
