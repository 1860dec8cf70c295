//! How reads and writes of a volume that no stream carries are served.
#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use units::{Bytes, Duration, Rate};

/// Who goes first among those without a contract (UCSB QoS scheduler, table III).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Somebody waits for the answer: before the others.
    Interactive,
    /// As everybody.
    #[default]
    Normal,
    /// Only when nothing else wants the disk.
    Background,
}

/// How reads and writes of a volume that no stream carries are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// In the slack of the contracts; nothing is promised.
    BestEffort(Priority),
    /// In the slack, and at least `rate` whatever the others do, in operations of
    /// at least `block` bytes anywhere on the volume; what was not asked for in one
    /// `period` is lost. Each disk of the volume gives its part of the rate.
    Rate { rate: Rate, block: Bytes, period: Duration },
    /// Each operation of at most `len` bytes is answered `within` this time, if it
    /// comes at least `every` so long after the one before it on the same disk. A
    /// longer one, or one across a whole MiB, counts as several.
    Latency { len: Bytes, within: Duration, every: Duration },
}

impl Default for Service {
    fn default() -> Self {
        Self::BestEffort(Priority::Normal)
    }
}
