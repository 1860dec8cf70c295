//! What is remembered of how long things took: counts by size, in bounded memory.

use units::{Bytes, Duration};

/// Buckets in each doubling: percentiles are right to a thirty-second part.
const PARTS_BITS: u32 = 5;
const PARTS: usize = 1 << PARTS_BITS;

/// Latencies of one kind of request.
#[derive(Clone, Debug)]
pub struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
    longest: Duration,
    /// Bytes that these requests moved.
    pub bytes: Bytes,
}

impl Default for Latencies {
    fn default() -> Self {
        let buckets = vec![0; (64 - PARTS_BITS as usize + 1) * PARTS];
        Self { buckets, count: 0, sum_ns: 0, longest: Duration::ZERO, bytes: Bytes::ZERO }
    }
}

impl Latencies {
    /// One request of `len` bytes took `latency`.
    pub fn add(&mut self, latency: Duration, len: Bytes) {
        self.buckets[bucket(latency.as_nanos())] += 1;
        self.count += 1;
        self.sum_ns += u128::from(latency.as_nanos());
        self.longest = self.longest.max(latency);
        self.bytes += len;
    }

    /// Adds those of another disk or run.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, more)| *sum += more);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.longest = self.longest.max(other.longest);
        self.bytes += other.bytes;
    }

    /// How many took no longer than each time, for every time at which that grows: times
    /// to within 3 % above.
    pub fn distribution(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let mut seen = 0;
        let filled = self.buckets.iter().enumerate().filter(|&(_, &count)| count > 0);
        filled.map(move |(at, &count)| {
            seen += count;
            (Duration::from_nanos(upper_edge(at)).min(self.longest), seen)
        })
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; zero for none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.sum_ns / u128::from(self.count.max(1))) as u64)
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The time that `per_mille` of a thousand did not exceed, to within 3 % above;
    /// zero for none.
    pub fn percentile(&self, per_mille: u64) -> Duration {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1_000);
        let mut seen = 0;
        for (at, &count) in self.buckets.iter().enumerate() {
            seen += u128::from(count);
            if count > 0 && seen >= rank {
                return Duration::from_nanos(upper_edge(at)).min(self.longest);
            }
        }
        self.longest
    }
}

/// The bucket of a time: those below `PARTS` nanoseconds have one each.
fn bucket(ns: u64) -> usize {
    let octave = ns.max(1).ilog2().saturating_sub(PARTS_BITS) as usize;
    octave * PARTS + (ns >> octave) as usize
}

fn upper_edge(bucket: usize) -> u64 {
    let octave = (bucket / PARTS).saturating_sub(1) as u32;
    let part = (bucket - octave as usize * PARTS) as u128;
    u64::try_from(((part + 1) << octave) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_within_its_bucket_and_a_thirty_second_part_of_its_edge() {
        for shift in 0..64 {
            for ns in [1u64 << shift, (1u64 << shift) | (1 << (shift / 2)), u64::MAX >> shift] {
                let edge = upper_edge(bucket(ns));
                assert!(edge >= ns && edge - ns <= ns / 32 + 1, "{ns} {edge}");
                let below = bucket(ns).checked_sub(1).map_or(0, upper_edge);
                assert!(ns == 0 || below < ns, "{ns} is in the bucket below");
            }
        }
        assert!(bucket(u64::MAX) < Latencies::default().buckets.len());
    }

    #[test]
    fn percentiles_and_the_mean_are_those_of_what_was_added() {
        let mut latencies = Latencies::default();
        for ms in 1..=1_000 {
            latencies.add(Duration::from_millis(ms), Bytes::kib(8));
        }
        for per_mille in [10, 500, 990, 999] {
            let (found, exact) =
                (latencies.percentile(per_mille), Duration::from_millis(per_mille));
            assert!(found >= exact && found <= exact + exact / 32, "{found} for {exact}");
        }
        assert_eq!(latencies.percentile(1_000), Duration::from_millis(1_000));
        assert_eq!(latencies.mean(), Duration::from_micros(500_500));
        let mut twice = latencies.clone();
        twice.merge(&latencies);
        assert_eq!((twice.count(), twice.mean()), (2_000, latencies.mean()));
        assert_eq!(twice.percentile(900), latencies.percentile(900));
        assert_eq!(twice.distribution().last(), Some((Duration::from_secs(1), 2_000)));
        assert!(twice.distribution().is_sorted());
        assert_eq!((latencies.count(), latencies.bytes), (1_000, Bytes::kib(8_000)));
    }
}
