//! A disk's profile as the sweeps over a part of it cost: where `sched` and `disk`,
//! which do not know each other, meet.

use alloc::vec::Vec;
use core::ops::Range;
use disk::Profile;
use sched::SweepCosts;
use units::{Bytes, Direction, Lba};

/// What sweeps over transfers of `len` in `range` cost; None on a disk where the place
/// does not matter, which then has nothing to gain from them.
///
/// # Panics
/// Where the range lies outside the disk or does not hold `len`.
pub fn sweep_costs(
    profile: &Profile,
    range: Range<Lba>,
    len: Bytes,
    direction: Direction,
) -> Option<SweepCosts> {
    let sweep = profile.sweep(range, len, direction)?;
    let seek: Vec<_> = sweep.seek.points().to_vec();
    Some(SweepCosts {
        seek,
        stroke: sweep.stroke,
        cylinders: sweep.cylinders,
        span: sweep.span,
        request: sweep.request,
    })
}
