//! A checker of concurrent histories: was everything read that was answered, is
//! everything there that was synced, and did nobody see bytes that were never his?
//!
//! A volume is a row of *cells*, each of which is a register that holds a *stamp*: the
//! number of the write that filled it, or [`ZEROS`]. A cell is what the medium writes
//! whole or not at all: 4 KiB, or a sector of 512 bytes where a power cut may tear
//! blocks. [`fill`] makes the bytes of a cell, which tell their volume, place and stamp;
//! [`stamp_in`] finds the stamp in what was read, or that the bytes are another place's.
//!
//! A driver gives each write a stamp that no other has, logs an [`Event`] for each
//! request, with the ticks of one clock before the request was made and after its answer
//! was there, and asks [`check`]. Ticks need not be times: a counter that all clients
//! advance will do. What to log:
//!
//! | what happened | event |
//! |---|---|
//! | a best-effort write | `Write`; `at_return` is none where it failed or was not answered |
//! | a read that was answered | `Read` with a stamp for each cell; one that failed, nothing |
//! | a read that was served from memory filled earlier | `Read` whose `at_invoke` is when the stream was opened |
//! | bytes recorded by a stream | `Write`, answered when a sync of the stream or its close is |
//! | a sync of everything, or of a range | `SyncAll`, `Sync` |
//! | a volume shrunk or deleted | `Durable` of [`ZEROS`] over all cells behind the new end |
//! | a volume's size: created, resized, deleted, listed | `Durable` and `Read` of a register of its own |
//! | the process was killed or the power cut, and the pool served again | `Crash` |
//!
//! What is checked, cell by cell, is that there is an order of all events that explains
//! every read (Herlihy and Wing 1990: linearizability; the search is Wing and Gong's of
//! 1993, with states that were seen left out as by Lowe 2017):
//!
//! * events are in the order of time where one was answered before the other began;
//! * a read returns the stamp of the last write before it;
//! * a write without an answer may happen at any time before the next crash, or never;
//! * a crash leaves a stamp that the cell held at the last sync before it, or later. The
//!   pool has opened then, and what it found is as durable as what was synced.
//!
//! Nothing is said of a multi-cell write as a whole: each of its cells is by itself.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;

/// The stamp of a cell that was never written, or was cut off and came back.
pub const ZEROS: u64 = 0;
/// The stamp of a cell whose bytes are of several writes, or of none.
pub const TORN: u64 = u64::MAX;
/// The stamp of a cell whose bytes belong to another place or another volume.
pub const FOREIGN: u64 = u64::MAX - 1;

/// States that are looked at for one cell before the search gives up: far more than any
/// history of eight clients has needed.
const STATES_MAX: usize = 1_000_000;

/// What a program asked for, and when it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Who asked; only for the story that is told of a violation.
    pub client: u32,
    /// The tick before it was asked for.
    pub at_invoke: u64,
    /// The tick after it was answered with success; none where it failed or was not
    /// answered, so that nobody knows.
    pub at_return: Option<u64>,
    /// What was asked for.
    pub kind: Kind,
    /// The volume, by a number of the driver's.
    pub volume: u32,
    /// The cells; `u64::MAX` as the end stands for the end of every volume. Nothing for
    /// [`Kind::SyncAll`] and [`Kind::Crash`], which are about all volumes.
    pub cells: Range<u64>,
}

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The cells are filled with this stamp.
    Write {
        /// The number of the write.
        stamp: u64,
    },
    /// As `Write`, and the answer says that it is durable.
    Durable {
        /// The number of the write, or [`ZEROS`].
        stamp: u64,
    },
    /// The cells were read.
    Read {
        /// What was found in each.
        stamps: Vec<u64>,
    },
    /// Everything that was answered in these cells before is durable.
    Sync,
    /// The same, of all volumes.
    SyncAll,
    /// The process died, with or without its disks; `at_invoke` is the tick before that,
    /// `at_return` the one at which the pool was served again.
    Crash,
}

impl Kind {
    fn stamp(&self) -> Option<u64> {
        match self {
            Self::Write { stamp } | Self::Durable { stamp } => Some(*stamp),
            _ => None,
        }
    }
}

/// How much was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Cells that were read.
    pub cells: u64,
    /// Reads of cells.
    pub reads: u64,
    /// Reads that found something else than zeros.
    pub stamped: u64,
    /// Cells whose stories differed.
    pub stories: u64,
}

/// What no order of the events explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where.
    pub volume: u32,
    /// Which cell.
    pub cell: u64,
    /// The read that has no explanation, by its place in the history; none where the
    /// search was given up before there was an answer.
    pub read: Option<usize>,
    /// What happened in the cell.
    pub story: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { volume, cell, read, story } = self;
        match read {
            Some(read) => write!(f, "event {read} cannot be explained: ")?,
            None => write!(f, "not decided within {STATES_MAX} states: ")?,
        }
        write!(f, "volume {volume}, cell {cell}")?;
        story.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// Looks for an order of the events that explains every read.
///
/// # Errors
/// The first cell for which there is none.
pub fn check(events: &[Event]) -> Result<Checked, Box<Violation>> {
    let mut checked = Checked::default();
    let mut known = HashSet::new();
    for ((volume, cell), Run { len, touching }) in runs(events) {
        let ops = story(events, &touching, volume, cell);
        checked.cells += len;
        for op in &ops {
            if let What::Read(stamp) = op.what {
                checked.reads += len;
                checked.stamped += if stamp == ZEROS { 0 } else { len };
            }
        }
        if known.contains(&ops) {
            continue; // elsewhere the same happened
        }
        explain(&ops).map_err(|stuck| {
            let read = stuck.map(|op| ops[op].event);
            let told = |op: &Op| tell(events, op);
            Box::new(Violation { volume, cell, read, story: ops.iter().map(told).collect() })
        })?;
        known.insert(ops);
    }
    checked.stories = known.len() as u64;
    Ok(checked)
}

/// Neighbouring cells to which the same happened.
struct Run {
    len: u64,
    /// The events, in the order in which they began.
    touching: Vec<usize>,
}

/// The cells that were read, by volume and the first of each run: no event begins or ends
/// within a run, and each read found the same in all of it.
fn runs(events: &[Event]) -> BTreeMap<(u32, u64), Run> {
    let mut cuts: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for event in events {
        let cuts = cuts.entry(event.volume).or_default();
        cuts.extend([event.cells.start, event.cells.end]);
        if let Kind::Read { stamps } = &event.kind {
            let count = event.cells.end - event.cells.start;
            assert_eq!(stamps.len() as u64, count, "a stamp for each cell");
            assert!(event.at_return.is_some(), "a read without an answer says nothing");
            let pairs = (event.cells.start + 1..).zip(stamps.windows(2));
            cuts.extend(pairs.filter(|(_, pair)| pair[0] != pair[1]).map(|(cell, _)| cell));
        }
    }
    let mut runs: BTreeMap<(u32, u64), Run> = BTreeMap::new();
    for event in events.iter().filter(|event| matches!(event.kind, Kind::Read { .. })) {
        let mut starts = cuts[&event.volume].range(event.cells.clone()).copied().peekable();
        while let Some(start) = starts.next() {
            let end = starts.peek().copied().unwrap_or(event.cells.end);
            let run = || Run { len: end - start, touching: Vec::new() };
            runs.entry((event.volume, start)).or_insert_with(run);
        }
    }
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|&at| events[at].at_invoke);
    for at in order {
        let event = &events[at];
        match event.kind {
            Kind::SyncAll | Kind::Crash => {
                runs.values_mut().for_each(|run| run.touching.push(at));
            }
            _ => {
                let (volume, Range { start, end }) = (event.volume, event.cells.clone());
                let touched = runs.range_mut((volume, start)..(volume, end));
                touched.for_each(|(_, run)| run.touching.push(at));
            }
        }
    }
    runs
}

/// What an event is to one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Write(u64),
    Read(u64),
    Sync,
    /// The operation of this number is durable.
    Settle(usize),
    Crash,
}

/// An event in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Op {
    event: usize,
    at_invoke: u64,
    /// None for one that may happen or not.
    at_return: Option<u64>,
    what: What,
}

/// The events of a cell as operations, without those that explain nothing.
fn story(events: &[Event], touching: &[usize], volume: u32, cell: u64) -> Vec<Op> {
    let read = |at: usize| match &events[at].kind {
        Kind::Read { stamps } => Some(stamps[(cell - events[at].cells.start) as usize]),
        _ => None,
    };
    let seen: HashSet<u64> = touching.iter().filter_map(|&at| read(at)).collect();
    let mut ops = Vec::new();
    for &at in touching {
        let event = &events[at];
        let (at_invoke, at_return) = (event.at_invoke, event.at_return);
        debug_assert!(event.volume == volume || matches!(event.kind, Kind::SyncAll | Kind::Crash));
        let op = |what| Op { event: at, at_invoke, at_return, what };
        match &event.kind {
            Kind::Write { stamp } | Kind::Durable { stamp } => {
                // What may never have happened, and was never seen, did not happen.
                if at_return.is_none() && !seen.contains(stamp) {
                    continue;
                }
                let write = ops.len();
                ops.push(op(What::Write(*stamp)));
                if let (Kind::Durable { .. }, Some(tick)) = (&event.kind, at_return) {
                    let settle = What::Settle(write);
                    ops.push(Op { event: at, at_invoke: tick, at_return, what: settle });
                }
            }
            Kind::Read { .. } => ops.push(op(What::Read(read(at).expect("it is a read")))),
            Kind::Sync | Kind::SyncAll if at_return.is_none() => {}
            Kind::Sync | Kind::SyncAll => ops.push(op(What::Sync)),
            Kind::Crash => {
                assert!(at_return.is_some(), "a pool that is not served again was not checked");
                ops.push(op(What::Crash));
            }
        }
    }
    ops
}

/// Where the search is: which operations have happened, and what the cell may hold.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// A bit for each operation that has happened, or never will.
    happened: Vec<u64>,
    /// The write whose stamp the cell holds; none for zeros from the beginning.
    current: Option<usize>,
    /// What it held at the last sync and since: what a crash may leave, oldest first.
    held: Vec<Option<usize>>,
}

impl State {
    fn start(ops: usize) -> Self {
        Self { happened: vec![0; ops.div_ceil(64)], current: None, held: vec![None] }
    }

    fn has(&self, op: usize) -> bool {
        self.happened[op / 64] >> (op % 64) & 1 == 1
    }

    fn mark(&mut self, op: usize) {
        self.happened[op / 64] |= 1 << (op % 64);
    }

    fn left<'a>(&'a self, ops: &'a [Op]) -> impl Iterator<Item = (usize, &'a Op)> {
        ops.iter().enumerate().filter(|&(at, _)| !self.has(at))
    }

    /// The stamp that a read finds now.
    fn stamp(&self, ops: &[Op]) -> u64 {
        match self.current.map(|write| ops[write].what) {
            Some(What::Write(stamp)) => stamp,
            _ => ZEROS,
        }
    }

    /// What may happen next: what began before anything that is left had been answered.
    fn next(&self, ops: &[Op]) -> Vec<usize> {
        let first = self.left(ops).filter_map(|(_, op)| op.at_return).min();
        let Some(first) = first else { return Vec::new() };
        let begun = |&(_, op): &(usize, &Op)| op.at_invoke <= first;
        let next = self.left(ops).filter(begun).filter(|(_, op)| match op.what {
            // Whoever asked before it cannot be answered after it.
            What::Crash => !self
                .left(ops)
                .any(|(_, other)| other.at_return.is_some() && other.at_invoke < op.at_invoke),
            What::Settle(write) => self.has(write),
            _ => true,
        });
        next.map(|(at, _)| at).collect()
    }

    /// Lets everything happen that leaves all possibilities open: reads that find what the
    /// cell holds, and syncs, of which an early one demands least.
    fn absorb(&mut self, ops: &[Op]) {
        loop {
            let mut moved = false;
            for at in self.next(ops) {
                match ops[at].what {
                    What::Read(stamp) if stamp == self.stamp(ops) => {}
                    What::Sync => self.held = vec![self.current],
                    What::Settle(write) => self.settle(write),
                    _ => continue,
                }
                self.mark(at);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    /// Nothing from before this write comes back.
    fn settle(&mut self, write: usize) {
        if let Some(place) = self.held.iter().position(|&held| held == Some(write)) {
            self.held.drain(..place);
        }
    }

    /// Where things can go from here, the likeliest last.
    fn branches(&self, ops: &[Op]) -> Vec<Self> {
        let mut next = self.next(ops);
        next.sort_by_key(|&at| std::cmp::Reverse(ops[at].at_return.unwrap_or(u64::MAX)));
        let mut branches = Vec::new();
        for at in next {
            match ops[at].what {
                What::Write(_) => {
                    let mut branch = self.clone();
                    branch.mark(at);
                    branch.current = Some(at);
                    branch.held.push(Some(at));
                    branches.push(branch);
                }
                What::Crash => {
                    for &survivor in &self.held {
                        branches.push(self.crashed(ops, at, survivor));
                    }
                }
                What::Read(_) | What::Sync | What::Settle(_) => {}
            }
        }
        branches
    }

    fn crashed(&self, ops: &[Op], crash: usize, survivor: Option<usize>) -> Self {
        let mut after = self.clone();
        after.mark(crash);
        (after.current, after.held) = (survivor, vec![survivor]);
        for (at, op) in self.left(ops) {
            if op.at_return.is_none() && op.at_invoke < ops[crash].at_return.unwrap_or(u64::MAX) {
                after.mark(at); // it never will
            }
        }
        after
    }
}

/// Finds an order in which all happened that has an answer.
///
/// # Errors
/// The read at which the best order got stuck; none where the search was given up.
fn explain(ops: &[Op]) -> Result<(), Option<usize>> {
    let mut stack = vec![State::start(ops.len())];
    let mut seen = HashSet::new();
    let mut furthest = (0, None);
    while let Some(mut state) = stack.pop() {
        state.absorb(ops);
        let answered = state.left(ops).filter(|(_, op)| op.at_return.is_some());
        let Some((stuck, _)) = answered.min_by_key(|(_, op)| op.at_return) else { return Ok(()) };
        let count = state.happened.iter().map(|word| word.count_ones()).sum::<u32>();
        // What cannot be placed is a read, or waits for one.
        let is_read = |&(_, op): &(usize, &Op)| matches!(op.what, What::Read(_));
        let read = state.left(ops).filter(is_read).min_by_key(|(_, op)| op.at_return);
        let stuck = read.map_or(stuck, |(at, _)| at);
        if count >= furthest.0 {
            furthest = (count, Some(stuck));
        }
        if seen.len() == STATES_MAX {
            return Err(None);
        }
        if !seen.contains(&state) {
            stack.extend(state.branches(ops));
            seen.insert(state);
        }
    }
    Err(furthest.1)
}

/// An operation in words.
fn tell(events: &[Event], op: &Op) -> String {
    let event = &events[op.event];
    let what = match op.what {
        What::Write(stamp) => format!("writes {}", name(stamp)),
        What::Read(stamp) => format!("reads {}", name(stamp)),
        What::Sync => "syncs".into(),
        What::Settle(_) => format!("is durable: {}", name(event.kind.stamp().unwrap_or(ZEROS))),
        What::Crash => "crash".into(),
    };
    let until = op.at_return.map_or("no answer".into(), |tick| tick.to_string());
    format!("event {}, {}..{until}: client {} {what}", op.event, op.at_invoke, event.client)
}

fn name(stamp: u64) -> String {
    match stamp {
        ZEROS => "zeros".into(),
        TORN => "torn bytes".into(),
        FOREIGN => "another place's bytes".into(),
        stamp => stamp.to_string(),
    }
}

/// What stands in a cell, again and again: which volume, which cell, which write, and a
/// sum of the three, so that a mixture is known for one.
const WORDS: usize = 4;
const UNIT: usize = WORDS * 8;

fn words(volume: u32, cell: u64, stamp: u64, unit: u64) -> [u64; WORDS] {
    let sum = (u64::from(volume) << 32 ^ cell)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(stamp.wrapping_mul(0xbf58_476d_1ce4_e5b9))
        .rotate_left(31)
        ^ unit;
    [u64::from(volume), cell, stamp, sum]
}

/// Makes the bytes of a cell that say which it is and who wrote it.
///
/// # Panics
/// When the cell is not a multiple of 32 bytes, or the stamp is [`ZEROS`], [`TORN`] or
/// [`FOREIGN`].
pub fn fill(bytes: &mut [u8], volume: u32, cell: u64, stamp: u64) {
    assert!(bytes.len().is_multiple_of(UNIT), "whole units");
    assert!(![ZEROS, TORN, FOREIGN].contains(&stamp), "the number of a write");
    for (unit, place) in (0..).zip(bytes.chunks_exact_mut(UNIT)) {
        for (word, into) in words(volume, cell, stamp, unit).iter().zip(place.chunks_exact_mut(8)) {
            into.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// The stamp that the bytes of a cell have: [`ZEROS`], that of the write that filled all
/// of it, [`FOREIGN`] where they were filled for another place, else [`TORN`].
pub fn stamp_in(bytes: &[u8], volume: u32, cell: u64) -> u64 {
    // Many bytes at once: most cells of most reads are zeros.
    if bytes.chunks(64).all(|some| some.iter().fold(0, |all, &byte| all | byte) == 0) {
        return ZEROS;
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (its_volume, its_cell, stamp) = (word(0), word(8), word(16));
    let Ok(its_volume) = u32::try_from(its_volume) else { return TORN };
    let whole = (0..).zip(bytes.chunks_exact(UNIT)).all(|(unit, place)| {
        let words = words(its_volume, its_cell, stamp, unit);
        words.iter().zip(place.chunks_exact(8)).all(|(word, found)| word.to_le_bytes() == *found)
    });
    match whole {
        false => TORN,
        true if (its_volume, its_cell) != (volume, cell) => FOREIGN,
        true => stamp,
    }
}

#[cfg(test)]
mod tests;
