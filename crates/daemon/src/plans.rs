//! What-ifs of programs, planned one at a time.
//!
//! A plan may take some seconds of a processor, and the runtime has only so many threads for all that
//! takes long. Invariants: plans have one of them in all, users one after the other; none goes on
//! without end, or for somebody who has gone.

use crate::asker::Asker;
use crate::limits::PLAN_WORK_MAX;
use crate::lock::Turns;
use crate::pool::Ask;
use crate::quotas::Peer;
use crate::{planning, problem};
use node::{PlanWork, calls};
use wire::control as api;
use wire::{Code, Problem};

/// See the module.
#[derive(Default)]
pub struct Plans(Turns<(u32, bool)>);

impl Plans {
    /// What would become of the list, for this peer.
    ///
    /// # Errors
    /// Where an entry makes no sense, and where the list is too long to be planned.
    pub async fn plan(
        &self,
        peer: &Peer,
        ask: &Ask,
        request: api::PlanRequest,
        asker: Asker,
    ) -> Result<api::Plan, Box<Problem>> {
        let turn = self.0.turn((peer.uid, peer.scope.is_some())).await;
        if !asker.is_there() {
            return Err(Box::new(too_much()));
        }
        let planner = ask.call(calls::Plan {}).await.map_err(|error| problem::of(&error))?;
        // Beside the others, and without the pool's lock; the next one has his turn when it has ended.
        let planned = tokio::task::spawn_blocking(move || {
            let goes_on = || asker.is_there();
            let work = PlanWork::within(PLAN_WORK_MAX, &goes_on);
            let planned = planning::plan_within(&planner, &request, &work);
            drop(turn);
            planned.map_err(|problem| if work.is_over() { Box::new(too_much()) } else { problem })
        });
        planned.await.unwrap_or_else(|_| Err(Box::new(problem::fault())))
    }
}

/// What is said of a list that takes too long.
fn too_much() -> Problem {
    Problem::new(
        Code::TooLarge,
        "the list is too much to compare: it has too many kinds of streams, or too many streams",
        "plan a part of it, or without `alternatives` (`--no-alternatives`); or beside the daemon, \
         for disks of the same kind: `slackline plan --profile`",
    )
}
