//! Streams whose requests may be late now and then: admitted by what commands mostly cost.
//!
//! Such a stream's request has a command of at most what admission leaves for best effort
//! (`sched/src/analysis/odds.rs` says why that suffices for all others), so that its block is at
//! most an extent. It may take longer than a period to be there: the stream's *response* is the
//! double of the shortest, of some that are tried, with which the odds hold on all of its disks, so
//! that others may still join, and its window holds what is used up meanwhile. The response stays as long as the stream is open.
//!
//! Invariant: what a stream was admitted with, it is admitted with again: `Stream::shares`
//! (crate::streams) gives its shares with its response.

use crate::admission::contract::{Seen, Share, fits, period};
use crate::api::*;
use crate::core::Core;
use crate::limits::ODDS_RESPONSE_MAX;
use alloc::vec::Vec;
use sched::{Odds, Task};
use store::{EXTENT, VolumeId};
use units::{Direction, Duration};

/// How late requests of a stream may be, and how often later than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtOdds {
    pub miss: Chance,
    pub response: Duration,
}

impl Core {
    /// Whether such a stream can be asked for at all.
    pub(crate) fn may_be_at_odds(
        &self,
        volume: VolumeId,
        mode: Mode,
        contract: &Contract,
    ) -> Result<(), Error> {
        let invalid = |what, rule| Err(Error::Invalid { what, rule });
        if !self.config.policy.is(Policy::SLACK) {
            let rule = "only under the policy `slack`: others serve by bounds alone";
            return invalid("miss", rule);
        }
        if contract.block > EXTENT {
            return invalid("block size", "at most 1 MiB where requests may be late");
        }
        let is_known = |share: &Share| {
            let profile = self.seen(share.disk).profile;
            let mut ways = mode.directions().iter();
            ways.all(|&way| profile.spread(contract.block, way).is_some())
        };
        if !self.shares(volume).iter().all(is_known) {
            let rule = "only on disks of which it is known what commands mostly cost: files and \
                        devices without seeks, with no bus to share, timed by `slackline pool create`";
            return invalid("miss", rule);
        }
        Ok(())
    }

    /// The shares of a volume for a stream whose requests may be late so often, with twice the
    /// shortest response that would do now, or the longest that there is.
    pub(crate) fn shares_at(
        &self,
        volume: VolumeId,
        (mode, contract): (Mode, &Contract),
        miss: Chance,
    ) -> (Vec<Share>, AtOdds) {
        let shares = self.shares(volume);
        let longest = shares.iter().map(|share| period(contract, share)).max();
        let period = longest.unwrap_or(ODDS_RESPONSE_MAX);
        let mut response = period;
        loop {
            let odds = AtOdds { miss, response };
            let shares = self.shares_with(volume, Some(odds));
            let next = response + (response / 4).max(period);
            if fits(|disk| self.seen(disk), contract, &shares, mode).is_ok() {
                let odds = AtOdds { response: (response * 2).min(ODDS_RESPONSE_MAX), ..odds };
                return (self.shares_with(volume, Some(odds)), odds);
            }
            if next > ODDS_RESPONSE_MAX {
                return (shares, odds);
            }
            response = next;
        }
    }

    /// The shares of a volume for a stream that was given these.
    pub(crate) fn shares_with(&self, volume: VolumeId, odds: Option<AtOdds>) -> Vec<Share> {
        let mut shares = self.shares(volume);
        if let Some(AtOdds { miss, response }) = odds {
            for share in &mut shares {
                (share.miss, share.response) = (Some(miss), response);
            }
        }
        shares
    }
}

impl Seen<'_> {
    /// What a contract asks of this disk for requests that may be late so often.
    pub(crate) fn task_at_odds(
        &self,
        contract: &Contract,
        share: &Share,
        way: Direction,
        miss: Chance,
    ) -> Result<Task, Refusal> {
        let period = period(contract, share);
        let cost = self.cost(contract.block, share, way).max(Duration::from_nanos(1));
        let known = self.profile.spread(contract.block, way);
        let most = known.map_or(Duration::MAX, |known| known.most.max(cost));
        let possible = self.possible(share.disk, most, share.response, period)?;
        let (mean, deviation) = known.map_or((most, most), |known| {
            (known.mean.max(Duration::from_nanos(1)), known.deviation)
        });
        Ok(Task { cost, command: cost, ..possible }.at_odds(Odds { miss, mean, deviation, most }))
    }
}
