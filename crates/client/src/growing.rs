//! A volume that is made larger ahead of its writer, up to a limit.
//!
//! The daemon grows a volume for whoever asks, within quotas and the room of the pool, also while it
//! is recorded to. So a writer asks in time: while there is still room for seconds of its
//! contract. Somebody may make the volume smaller meanwhile; the daemon leaves a writer room for ten
//! seconds then, and the writer looks more often than that. Where the daemon refuses, recording goes
//! on; the writer asks again as it goes, since somebody may have made room, and tells the refusal where
//! the volume is full.

use crate::naming::Durable;
use crate::{Client, Code, Error};
use units::{Bytes, Duration, Rate};
use wire::control::{Contract, Stream, Volume};

/// How much more a volume gets at a time: what this many seconds of the contract bring.
const STEP_SECONDS: u64 = 60;
/// So much at the least.
const STEP_MIN: Bytes = Bytes::mib(64);
/// It gets it while there is still room for so many seconds: an answer of the daemon can wait for
/// a commit, and the daemon's for other programs.
const AHEAD_SECONDS: u64 = 20;
/// It looks how large the volume is whenever it has written what so many seconds bring.
const LOOK_SECONDS: u64 = 5;
/// Where it is refused, it is asked for again behind this part of what is left.
const AGAIN: u64 = 8;
/// Less than this is not asked for, nor sooner than behind this.
const LEAST: Bytes = Bytes::mib(1);

#[derive(Debug)]
pub(crate) struct Growing {
    stream: u64,
    volume: String,
    size: Bytes,
    limit: Bytes,
    /// Where less than this is left, more is asked for.
    ahead: Bytes,
    step: Bytes,
    /// Nothing is asked for before the writer is here.
    again: Bytes,
    /// When the writer is here, it looks how large the volume is; the next time so far behind that.
    look: Bytes,
    look_step: Bytes,
    refused: Option<Error>,
}

impl Growing {
    /// The volume that `stream` writes, and that grows up to `limit`.
    pub(crate) fn new(stream: &Stream, volume: &Volume, limit: Bytes) -> Self {
        let mut this = Self {
            stream: stream.id,
            // Another one may come to have its name.
            volume: volume.by_number(),
            size: volume.size_bytes,
            limit,
            ahead: Bytes::ZERO,
            step: Bytes::ZERO,
            again: Bytes::ZERO,
            look: Bytes::ZERO,
            look_step: Bytes::ZERO,
            refused: None,
        };
        this.follow(&stream.contract, stream.window_bytes);
        this
    }

    /// Its contract is another one now, whoever changed it: what it has room for lasts as long.
    pub(crate) fn follow(&mut self, contract: &Contract, window: Bytes) {
        let (rate, block) = (contract.rate_bytes_per_second, contract.block_bytes);
        let window = window.max(contract.burst_bytes);
        self.ahead = in_seconds(rate, AHEAD_SECONDS).saturating_add(window).saturating_add(block);
        self.step = in_seconds(rate, STEP_SECONDS).max(STEP_MIN);
        self.look_step = in_seconds(rate, LOOK_SECONDS).max(Bytes::new(1));
    }

    /// Whether a writer that goes on at `position` has to ask for more.
    #[inline]
    pub(crate) fn is_due(&self, position: Bytes) -> bool {
        position >= self.look || self.lacks(position)
    }

    #[inline]
    fn lacks(&self, position: Bytes) -> bool {
        self.size < self.limit
            && position >= self.again
            && position.saturating_add(self.ahead) > self.size
    }

    /// Asks for more, and for less of it where the pool has no more. A refusal is kept until the
    /// volume is full.
    pub(crate) fn grow(&mut self, client: &Client, position: Bytes) {
        if position >= self.look {
            self.look = position.saturating_add(self.look_step);
            if let Ok(volume) = client.volume(&self.volume) {
                self.size = volume.size_bytes;
            }
            if let Ok(stream) = client.stream(self.stream) {
                self.follow(&stream.contract, stream.window_bytes);
            }
        }
        let needed = position.saturating_add(self.ahead).saturating_sub(self.size);
        let mut more = needed.saturating_add(self.step);
        while self.lacks(position) {
            let size = self.size.saturating_add(more).min(self.limit);
            match client.grow_volume(&self.volume, size, Bytes::ZERO, Durable::WithNextSync) {
                Ok(volume) => {
                    self.size = volume.size_bytes.max(size);
                    self.refused = None;
                    return;
                }
                Err(error) => {
                    let is_full = error.code() == Some(Code::PoolFull);
                    self.refused = Some(error);
                    more = more / 2;
                    if !is_full || more < LEAST {
                        let left = self.size.saturating_sub(position);
                        self.again = position.saturating_add((left / AGAIN).max(LEAST));
                    }
                }
            }
        }
    }

    /// Why the volume is full: where it could not be grown, the reason of that.
    pub(crate) fn explain(&mut self, error: Error) -> Error {
        match self.refused.take_if(|_| error.code() == Some(Code::VolumeFull)) {
            Some(refused) => refused,
            None => error,
        }
    }
}

fn in_seconds(rate: Rate, seconds: u64) -> Bytes {
    rate.bytes_in(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A contract that became four times as large had a quarter of the time for the daemon's answer.
    #[test]
    fn what_is_asked_for_ahead_lasts_as_long_under_another_contract() {
        let contract = |megabytes: u64| Contract {
            rate_bytes_per_second: Rate::per_second(megabytes * 1_000_000),
            block_bytes: Bytes::MIB,
            burst_bytes: Bytes::MIB,
        };
        let mut growing = Growing {
            stream: 1,
            volume: "/1".into(),
            size: Bytes::new(100_000_000),
            limit: Bytes::GIB,
            ahead: Bytes::ZERO,
            step: Bytes::ZERO,
            again: Bytes::ZERO,
            look: Bytes::MAX,
            look_step: Bytes::ZERO,
            refused: None,
        };
        let at = Bytes::new(50_000_000);
        growing.follow(&contract(1), Bytes::mib(4));
        assert!(!growing.is_due(at), "50 MB are 50 s");
        growing.follow(&contract(4), Bytes::mib(4));
        assert!(growing.is_due(at), "50 MB are 12 s");
        assert_eq!(
            (growing.step, growing.look_step),
            (Bytes::new(240_000_000), Bytes::new(20_000_000))
        );
    }
}
