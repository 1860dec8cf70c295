//! What a disk's own business costs it, and shares of its time.

use crate::api::{Config, Policy};
use crate::limits;
use disk::Profile;
use sched::{Admission, CycleRule, Task};
use units::{Bytes, Direction, Duration, Lba};

/// What a disk's own business costs it.
pub(crate) struct Costs {
    /// Deadlines are advanced by this.
    pub advance: Duration,
    /// Best-effort transfers are cut to this, which costs that.
    pub piece: Bytes,
    pub best_effort: Duration,
    /// One read takes long enough that what best effort reads is cached.
    pub is_slow: bool,
    /// One piece of metadata, and a flush.
    pub write: Duration,
    pub flush: Duration,
    /// What the host takes after each of them.
    gap: Duration,
}

impl Costs {
    pub(crate) fn new(config: &Config, profile: &Profile, capacity: Bytes, gap: Duration) -> Self {
        let whole = Lba::new(0)..Lba::containing(capacity);
        let worst = |len, direction| profile.worst(whole.clone(), len, direction);
        let cost = |piece| worst(piece, Direction::Read).max(worst(piece, Direction::Write));
        let mut piece = limits::BEST_EFFORT_MAX;
        while piece > limits::BEST_EFFORT_PIECE_MIN && cost(piece) > limits::BEST_EFFORT_COST {
            piece = piece / 2;
        }
        Self {
            advance: config.host_latency + profile.latency(),
            piece,
            best_effort: cost(piece),
            is_slow: worst(limits::BLOCK_MIN, Direction::Read) > limits::CACHED_FROM,
            write: log_write(profile, capacity, limits::METADATA_PIECE),
            flush: profile.flush().max(Duration::from_nanos(1)),
            gap,
        }
    }

    /// The shortest interval at which a commit, each of its three steps in a
    /// third of it, leaves most of the disk to others.
    pub(crate) fn commit_interval(&self) -> Duration {
        (self.advance + self.best_effort + self.write + self.flush * 2 + self.gap * 4) * 4
    }

    /// The same for the policy of the pool, on a disk that holds `depth` commands at once.
    pub(crate) fn commit_interval_under(&self, policy: Policy, depth: u32) -> Duration {
        match policy.admission {
            Admission::Cycles(rule) => self.commit_interval().max(self.in_cycles(rule, depth)),
            Admission::Exact | Admission::Sweeps(_) | Admission::Nothing => self.commit_interval(),
        }
    }

    /// The shortest at which the log's contracts fit into the cycle of such a policy.
    fn in_cycles(&self, rule: CycleRule, depth: u32) -> Duration {
        let longest = self.write.max(self.flush).max(self.best_effort) + self.gap;
        let registers = rule.least(self.best_effort + self.gap) * u64::from(rule.registers);
        let log = self.write + self.flush + self.gap * 2;
        let cycle = log + longest * u64::from(depth) + registers;
        (self.advance + cycle * u64::from(rule.cycles)) * 3
    }

    /// The contracts of the metadata log: flush, write. A commit is a flush, a
    /// write and a flush, one after the other, within one interval; each step gets
    /// a third of it. Where `cost` is that of one of several writes, each has such a contract.
    pub(crate) fn log(&self, config: &Config, cost: Duration) -> [Task; 2] {
        let interval = config.commit_interval;
        let deadline = (interval / 3).saturating_sub(self.advance);
        [Task::new(interval / 2, deadline, self.flush), Task::new(interval, deadline, cost)]
    }

    /// The same for the least that the log has.
    pub(crate) fn metadata(&self, config: &Config) -> [Task; 2] {
        self.log(config, self.write)
    }
}

/// The longest piece of best effort, up to `piece`, that costs no more than `reserve`, or the
/// shortest that there is; and what it costs.
pub(crate) fn piece_within(
    profile: &Profile,
    capacity: Bytes,
    piece: Bytes,
    reserve: Duration,
) -> (Bytes, Duration) {
    let whole = Lba::new(0)..Lba::containing(capacity);
    let cost = |piece| {
        let worst = |direction| profile.worst(whole.clone(), piece, direction);
        worst(Direction::Read).max(worst(Direction::Write))
    };
    let mut piece = piece;
    while piece > limits::BEST_EFFORT_PIECE_MIN && cost(piece) > reserve {
        piece = piece / 2;
    }
    (piece, cost(piece))
}

/// What one write of the log costs a disk at the most.
pub(crate) fn log_write(profile: &Profile, capacity: Bytes, piece: Bytes) -> Duration {
    let whole = Lba::new(0)..Lba::containing(capacity);
    profile.worst(whole, piece, Direction::Write).max(Duration::from_nanos(1))
}

/// `part` of `whole` in parts per million, rounded up.
pub(crate) fn ppm(part: Duration, whole: Duration) -> u64 {
    let ppm = u128::from(part.as_nanos()) * 1_000_000;
    let ppm = ppm.div_ceil(u128::from(whole.as_nanos().max(1)));
    u64::try_from(ppm).unwrap_or(u64::MAX)
}
