//! What the planner would do with one request if nothing came in between, and how
//! long others would wait for it.

use super::mechanics::{Mechanics, expected};
use super::planner::{Manner, Piece, Planner, Step};
use crate::waiting::{expected_waiting_of, longest_waiting_of};
use alloc::vec::Vec;
use units::{Access, Command, Duration, Instant, Lba};

/// The commands of one request with their expected times.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Plan {
    /// In order.
    pub commands: Vec<(Command, Duration)>,
    /// For how long the disk is free in between.
    pub idle: Duration,
}

impl Plan {
    /// What would be done with `access` if the heads were at `head` at `now`. None
    /// where the motion of the disk is not known.
    pub fn foresee(
        now: Instant,
        head: Lba,
        access: Access,
        manner: Manner,
        mechanics: &dyn Mechanics,
    ) -> Option<Self> {
        let motion = mechanics.motion()?;
        let mut planner = Planner::at(head);
        planner.submit(0, Instant::MAX, access, manner);
        let (mut plan, mut now, mut head) = (Self::default(), now, head);
        loop {
            match planner.next(now, mechanics, Duration::ZERO) {
                Step::Idle => return Some(plan),
                Step::Wait { until } => {
                    plan.idle += until - now;
                    now = until;
                }
                Step::Start(Piece { command, part, .. }) => {
                    let time = expected(now, head, &command, part, motion);
                    plan.commands.push((command, time));
                    now += time;
                    head = command.end().unwrap_or(head);
                    planner.finished();
                }
            }
        }
    }

    /// From the first command to the end.
    pub fn time(&self) -> Duration {
        self.commands.iter().map(|&(_, time)| time).sum::<Duration>() + self.idle
    }

    /// How long a request of higher rank waits on average (equation 2).
    pub fn expected_waiting(&self) -> Duration {
        expected_waiting_of(&self.times(), self.idle)
    }

    /// How long it waits at most.
    pub fn longest_waiting(&self) -> Duration {
        longest_waiting_of(&self.times())
    }

    fn times(&self) -> Vec<Duration> {
        self.commands.iter().map(|&(_, time)| time).collect()
    }
}
