//! The machine of figures 5 to 7: the whole production node on the paper's SCSI disk, under
//! both parts of the paper's scheduler, and under ours.

use crate::experiments::whole::Pool;
use disk::Model;
use node::Policy;
use sim::{Metadata, World};
use std::collections::BTreeMap;
use units::{Bytes, Duration, Instant};

/// Printed: of every stream, with figures 5, 6 and 7.
pub(super) const CYCLE: Duration = Duration::from_secs(4);
/// Printed: of each file (figure 5).
pub(super) const FILE: Bytes = Bytes::new(700_000_000);
/// Chosen: when work begins, and with it a cycle of the policy: contracts are there, and what
/// the log wrote for them is done.
pub(super) const BEGIN: Instant = Instant::from_nanos(10_000_000_000);
/// Chosen.
const MEMORY: Bytes = Bytes::mib(512);
/// Chosen: nobody writes, so that there is nothing to commit, and no contract of the log is as
/// short as those of the streams.
const COMMITS: Duration = Duration::from_secs(3_600);

/// A scheduler, and what a stream has to ask of it.
#[derive(Clone, Copy)]
pub(super) struct Under {
    pub name: &'static str,
    pub policy: Policy,
    /// Of the stream's contract, so that cycles are of 4 s.
    pub period: Duration,
    pub is_papers: bool,
}

pub(super) const TIME_CYCLE: &str = "time-cycle";

/// The paper's: the kernel's meta-scheduler with its slack register (section III.A), and the
/// user-level one (section III.B), under which a request waits for the cycle under way, so that
/// contracts are of two. Then ours.
pub(super) fn schedulers() -> [Under; 3] {
    let period = CYCLE;
    let in_cycles = |policy: Policy| policy.with("cycle", "4s").expect("a setting of it");
    [
        Under { name: "ucsb", policy: in_cycles(policies::UCSB), period, is_papers: true },
        Under {
            name: TIME_CYCLE,
            policy: in_cycles(policies::TIME_CYCLE),
            period: period * 2,
            is_papers: true,
        },
        Under { name: "slack", policy: Policy::SLACK, period, is_papers: false },
    ]
}

pub(super) fn model() -> Model {
    Model::named("seagate-st318437lw").expect("a built-in model")
}

/// The node with so many files, `film-0` and on, each full.
pub(super) fn world(policy: Policy, files: u64) -> World<Metadata> {
    let names = (0..files).map(|number| (film(number), (FILE, true)));
    let files: BTreeMap<String, (Bytes, bool)> = names.collect();
    let (model, memory, commit_interval) = (model(), MEMORY, COMMITS);
    Pool { model, policy, memory, commit_interval, files: &files }.world()
}

pub(super) fn film(number: u64) -> String {
    format!("film-{number}")
}

/// Requests under contract that were late.
pub(super) fn late(world: &World<Metadata>) -> u64 {
    world.node.status(world.now()).disks.iter().map(|disk| disk.account.late_requests).sum()
}
