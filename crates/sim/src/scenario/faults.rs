//! What goes wrong, at its time.

use super::plan::{FaultKind, FaultPlan};
use crate::{Fault, Metadata, World};
use units::{Duration, Instant};

/// A fault begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub at: Duration,
    pub begins: bool,
    pub fault: usize,
}

/// All turns in the order of their times.
pub(super) fn turns(faults: &[FaultPlan]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = (0..)
        .zip(faults)
        .flat_map(|(fault, plan)| {
            let end = plan.at.saturating_add(plan.lasts);
            let ends = Turn { at: end, begins: false, fault };
            // The power comes back as part of the cut itself.
            let ends = (plan.kind != FaultKind::PowerCut).then_some(ends);
            [Some(Turn { at: plan.at, begins: true, fault }), ends]
        })
        .flatten()
        .collect();
    turns.sort_unstable();
    turns
}

/// What a fault is to a simulated disk; none for a power cut.
fn on_disk(plan: &FaultPlan, seed: u64) -> Option<Fault> {
    Some(match plan.kind {
        FaultKind::Slow { from, to, percent } => Fault::Slow { from, to, percent },
        FaultKind::Stall => {
            let from = Instant::EPOCH + plan.at;
            Fault::Stall { from, to: from + plan.lasts }
        }
        FaultKind::BadSectors { from, to } => Fault::ReadError { from, to },
        FaultKind::Errors { ppm } => Fault::Errors { ppm, seed },
        FaultKind::WriteErrors => Fault::WriteError { after: 0 },
        FaultKind::LyingFlush => Fault::LyingFlush,
        FaultKind::PowerCut => return None,
    })
}

/// Begins or ends a fault of one disk.
pub(super) fn turn(world: &mut World<Metadata>, faults: &[FaultPlan], turn: Turn, seed: u64) {
    let plan = &faults[turn.fault];
    let Some(fault) = on_disk(plan, seed.wrapping_add(turn.fault as u64)) else { return };
    let disk = &mut world.disks[usize::from(plan.disk)];
    if turn.begins {
        disk.faults.push(fault);
    } else {
        disk.faults.retain(|other| *other != fault);
    }
}
