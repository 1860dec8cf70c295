//! What a ring is asked for, and what it is not: how far ahead of its writer it gives extents up, how
//! short it may be for a contract, and that it is recorded to by one stream, at its end.

use crate::api::{Contract, Error};
use store::{RING_GRAIN, Volume};
use units::{Bytes, Duration};

/// How far ahead of its writer a ring gives up what it holds, where the writer's window is so
/// long and a change is durable within `sync`.
pub(crate) fn ahead(contract: &Contract, window: Bytes, sync: Duration) -> Bytes {
    let passes = contract.rate.bytes_in(sync);
    let all = window.checked_add(contract.block).and_then(|all| all.checked_add(passes));
    let all = all.and_then(|all| all.checked_add(contract.burst)).unwrap_or(Bytes::MAX);
    // No volume is so long, and twice as much is still a number.
    all.min(Bytes::new(u64::MAX / 8))
}

/// How much less than its size a ring holds at the least, when it is full: what it gives up ahead of
/// its writer, in whole parts.
pub(crate) fn given_up(contract: &Contract, window: Bytes, sync: Duration) -> Bytes {
    ahead(contract, window, sync) + RING_GRAIN
}

/// The smallest ring for a writer under this contract, with a window of this length: it gives up no
/// more than half of it ahead of the writer.
pub(crate) fn least(contract: &Contract, window: Bytes, sync: Duration) -> Bytes {
    given_up(contract, window, sync).saturating_mul(2)
}

/// Refuses a contract for the writer of a ring that would have to give up more than half of it with
/// the window for the configured latency of the host. Where the host is later than that now, the window is
/// longer for a while and the ring gives up more of itself; it only has to be long enough for that.
pub(crate) fn check(
    volume: &Volume,
    contract: &Contract,
    (configured, now): (Bytes, Bytes),
    sync: Duration,
) -> Result<(), Error> {
    let least = least(contract, configured, sync);
    let now = ahead(contract, now, sync).saturating_add(RING_GRAIN * 2);
    let (size, least) = (volume.size(), least.max(now));
    if volume.is_ring() && size < least {
        return Err(Error::RingTooSmall { size, least: least.round_up(RING_GRAIN) });
    }
    Ok(())
}

/// A ring is recorded to by one stream, at its end.
pub(crate) fn not_on_a_ring(what: &'static str) -> Error {
    let rule = "not on a ring, which is recorded to at its end alone: open a stream that writes";
    Error::Invalid { what, rule }
}

/// Where the writer of a volume may begin.
pub(crate) fn check_start(volume: &Volume, block: Bytes, start: Bytes) -> Result<(), Error> {
    let end = volume.length();
    if volume.is_ring() && start != end.round_down(block) && start != end.round_up(block) {
        let rule = "of a ring the block that its recorded data ends in: offsets only grow";
        return Err(Error::Invalid { what: "start", rule });
    }
    Ok(())
}

/// A ring is no directory and no link.
pub(crate) fn not_a_file() -> Error {
    Error::Invalid { what: "kind", rule: "an ordinary volume, for a ring" }
}
