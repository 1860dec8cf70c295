//! The longest times of the log, by what the pool is set to.

use crate::api::Config;
use crate::limits;
use sched::Admission;
use units::Duration;

/// Writes of the log, one after the other, that a sync waits for at the most: those of the commit that
/// runs when it is asked for, of which three, and of its own.
const WRITES: u64 = 5;

/// By how much the contracts of the log may put its next write off when they grow.
pub(crate) fn put_off_max(config: &Config) -> Duration {
    let part = config.commit_interval / limits::LOG_PUT_OFF;
    match config.policy.admission {
        // In sweeps, what asks for more waits for the cycle behind the one under way; and so does what
        // grows again until then.
        Admission::Sweeps(rule) => part.max(rule.cycle.saturating_mul(2)),
        Admission::Exact | Admission::Cycles(_) | Admission::Nothing => part,
    }
}

/// The longest time from a change to the end of the commit that has it.
pub(crate) fn sync_max(config: &Config) -> Duration {
    let part = config.commit_interval / limits::LOG_PUT_OFF;
    let more = put_off_max(config).saturating_sub(part).saturating_mul(WRITES);
    config.commit_interval.saturating_mul(limits::SYNC_INTERVALS).saturating_add(more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::PolicyKind;
    use units::Bytes;

    /// Within eight intervals, and where sweeps put the log off for two of their cycles of 4 s, so
    /// much longer for each write.
    #[test]
    fn sweeps_put_the_log_off_for_two_cycles() {
        let of = |policy: PolicyKind| {
            let config = Config {
                policy,
                admission: true,
                memory: Bytes::mib(32),
                host_latency: Duration::ZERO,
                commit_interval: Duration::from_secs(3),
                remeasure: false,
            };
            (put_off_max(&config), sync_max(&config))
        };
        let ms = Duration::from_millis;
        assert_eq!(of(PolicyKind::SLACK), (ms(250), ms(24_000)));
        assert_eq!(of(policies::SWEEPS), (ms(8_000), ms(24_000 + (8_000 - 250) * 5)));
    }
}
