//! `anticipatory`: the 2.6 kernel's `deadline` with batches by time, and a pause after
//! a read in case its reader wants more nearby.
//!
//! Reads go in batches of 500 ms, writes of 125 ms, each in a one-way elevator that
//! goes back for a request less than half as far; a request over its time (125 ms
//! for reads, 250 ms for writes) begins a batch, and a read over its time goes first.
//! After a read for which somebody waited, the disk stays idle for up to [`PAUSE`] if
//! that reader has nothing waiting, usually comes back within that time, and the next
//! request is another's and far away.
//!
//! Promises: everyone is served. Does not: contracts count for nothing, and the disk
//! is idle while others wait. Cost: O(log n) per decision, and those held back by the
//! order of their flow. Source: ABISS, figures of its measurements; Iyer and Druschel
//! 2001; Linux 2.6, `as-iosched.c` and its documentation.

use super::deadline::{Side, writes};
use super::drr::{Source, source};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Class, Outcome};
use sched::{Setting, Settings};
use units::{Duration, Instant};

/// `antic_expire`, a 150th of a second in ticks of a millisecond.
const PAUSE: Duration = Duration::from_millis(6);
/// `read_expire`, `write_expire`.
const EXPIRE: [Duration; 2] = [Duration::from_millis(125), Duration::from_millis(250)];
/// `read_batch_expire`, `write_batch_expire`.
const BATCH: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(125)];
/// As far as the elevator goes back, in sectors.
const BACK_MAX: u64 = 1024 * 1024;
/// So near, in sectors, that it is served without a pause.
const NEAR: u64 = 8192;
/// Readers whose habits are remembered; past this all are forgotten.
const READERS_MAX: usize = 4096;

pub(super) const SETTINGS: &[Setting] = &[
    Setting::time(
        "pause",
        [Duration::ZERO, Duration::from_secs(1), PAUSE],
        "How long the disk waits for a reader's next request.",
    ),
    Setting::time(
        "read-expire",
        [Duration::ZERO, Duration::from_secs(60), EXPIRE[0]],
        "A read that has waited so long goes first.",
    ),
    Setting::time(
        "write-expire",
        [Duration::ZERO, Duration::from_secs(60), EXPIRE[1]],
        "A write that has waited so long begins the next batch of writes.",
    ),
    Setting::time(
        "read-batch",
        [Duration::from_millis(1), Duration::from_secs(10), BATCH[0]],
        "How long reads go before writes that wait.",
    ),
    Setting::time(
        "write-batch",
        [Duration::from_millis(1), Duration::from_secs(10), BATCH[1]],
        "How long writes go before reads that wait.",
    ),
];

#[derive(Clone, Debug, Default)]
pub(super) struct Anticipatory {
    /// Reads, writes.
    sides: [Side; 2],
    writing: bool,
    batch_ends: Instant,
    /// Whose next read is hoped for, and until when.
    hope: Option<(Source, Instant)>,
    readers: BTreeMap<Source, Reader>,
    pause: Duration,
    /// Of reads, of writes.
    expire: [Duration; 2],
    batch: [Duration; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    waiting: u32,
    /// When its last read ended.
    ended: Instant,
    /// How long it usually takes until its next one; new samples count an eighth.
    think: Duration,
}

impl Anticipatory {
    pub(super) fn new(values: &Settings) -> Self {
        let expire = [1, 2].map(|at| values.time(at));
        let batch = [3, 4].map(|at| values.time(at));
        Self { pause: values.time(0), expire, batch, ..Self::default() }
    }

    /// Begins a batch where the old one is over. None where nothing waits.
    fn direct(&mut self, view: &View<'_>) -> Option<Waiting> {
        let oldest = [0, 1].map(|side| self.sides[side].oldest(view.queues()).is_some());
        let (here, there) = (oldest[usize::from(self.writing)], oldest[usize::from(!self.writing)]);
        if !here && !there {
            return None;
        }
        let over = view.now() >= self.batch_ends;
        if !here || (over && there) {
            self.writing = !self.writing;
        }
        let way = usize::from(self.writing);
        let side = &self.sides[way];
        let mut first = None;
        if !here || over {
            self.batch_ends = view.now().saturating_add(self.batch[way]);
            first = side.expired(view, self.expire[way]);
        } else if !self.writing {
            first = side.expired(view, self.expire[way]);
        }
        first.or_else(|| side.places.one_way(view.queues(), view.head(), BACK_MAX)).copied()
    }

    /// True where the disk rather waits for a reader than serve `next`.
    fn pauses(&self, view: &View<'_>, next: &Waiting) -> bool {
        let Some((reader, until)) = self.hope else { return false };
        let known = self.readers.get(&reader).copied().unwrap_or_default();
        view.now() < until
            && !self.writing
            && known.waiting == 0
            && known.think <= self.pause
            && next.place().distance(view.head()) > NEAR
            && self.sides[0].expired(view, self.expire[0]).is_none()
    }

    fn reader(&mut self, request: &Waiting) -> &mut Reader {
        if self.readers.len() > READERS_MAX {
            self.readers.retain(|_, reader| reader.waiting > 0);
        }
        self.readers.entry(source(request)).or_default()
    }
}

impl Policy for Anticipatory {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let writing = self.writing;
        let Some(next) = self.direct(view) else { return Choice::Wait { until: None } };
        if self.pauses(view, &next) {
            return Choice::Wait { until: self.hope.map(|(_, until)| until) };
        }
        if writing != self.writing || !writes(&next) {
            self.hope = None;
        }
        self.dropped(&next);
        Choice::Start(next.key)
    }

    fn submitted(&mut self, request: &Waiting) {
        let way = usize::from(writes(request));
        self.sides[way].insert(request);
        if way == 0 {
            let reader = self.reader(request);
            reader.waiting += 1;
            if reader.ended > Instant::EPOCH {
                let pause = request.submitted.saturating_since(reader.ended);
                reader.think = reader.think - reader.think / 8 + pause / 8;
            }
        }
    }

    fn dropped(&mut self, request: &Waiting) {
        let way = usize::from(writes(request));
        if self.sides[way].remove(request) && way == 0 {
            self.reader(request).waiting -= 1;
        }
    }

    fn finished(&mut self, request: &Waiting, outcome: &Outcome) {
        let waited_for = request.synchronous || matches!(request.class, Class::RealTime(_));
        if !writes(request) && waited_for {
            let ended = outcome.started.saturating_add(outcome.actual);
            self.reader(request).ended = ended;
            self.hope = Some((source(request), ended.saturating_add(self.pause)));
        }
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        for side in &self.sides {
            side.remember(state);
        }
        let hope = self.hope.map_or(Instant::EPOCH, |(_, until)| until);
        let times = [self.batch_ends, hope].map(|time| time.saturating_since(now).as_nanos());
        state.push(u64::from(self.writing));
        state.extend(times);
        state.extend(self.readers.values().map(|reader| reader.think.as_nanos()));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
