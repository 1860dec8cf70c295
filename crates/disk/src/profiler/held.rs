//! What a disk with an arm gains by several commands at a time, which it orders itself.

use super::desk::Stop;
use super::findings::Held;
use super::flat::saturating;
use super::session::{Session, span};

/// Commands in flight that are tried. Whoever comes next waits for as many.
const DEPTHS: [u32; 4] = [1, 2, 4, 8];
/// A disk that gains less than this by several commands is given one at a time.
const GAIN_LEAST_PERCENT: i64 = 10;
/// Small reads in a burst.
const BURST: usize = 64;

impl Session {
    /// How many commands the disk should have at a time.
    pub async fn find_held(&mut self) -> Result<Held, Stop> {
        self.stage("commands at a time", 980);
        let rounds = if self.full() { 9 } else { 3 };
        let costs = self.costs_by_depth(&DEPTHS, (BURST, rounds)).await?;
        let depths = costs.iter().map(|&(depth, cost)| (depth, span(cost))).collect();
        Ok(Held { queue: enough(&costs), depths })
    }
}

/// The fewest commands at a time with which a disk is about as fast as it becomes, by what one
/// takes with so many; 1 where it gains little.
fn enough(costs: &[(u32, i64)]) -> u32 {
    let alone = costs[0].1;
    let best = costs.iter().map(|(_, cost)| *cost).min().expect("depths are tried");
    if best * (100 + GAIN_LEAST_PERCENT) > alone * 100 { 1 } else { saturating(costs) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_disk_that_gains_little_has_one_command_at_a_time() {
        let of = |costs: [i64; 4]| enough(&DEPTHS.into_iter().zip(costs).collect::<Vec<_>>());
        assert_eq!(of([10_000, 10_000, 10_000, 10_000]), 1);
        assert_eq!(of([10_000, 9_900, 9_300, 9_100]), 1, "nine percent");
        assert_eq!(of([10_000, 9_900, 9_300, 9_000]), 4);
        assert_eq!(of([10_000, 8_000, 6_500, 5_000]), 8);
        assert_eq!(of([10_000, 5_200, 5_000, 5_000]), 2);
    }
}
