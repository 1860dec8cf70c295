//! The machine of figure 14: one laptop disk, little memory, eight greedy programs and
//! what is measured beside them.

use crate::experiments::whole::Pool;
use crate::experiments::whole::programs::{Greedy, Rwrt, Shared};
use disk::Model;
use node::{Mode, Policy};
use sim::{Metadata, World};
use std::collections::BTreeMap;
use store::EXTENT;
use units::{Bytes, Duration, Instant};

/// What the paper's machine had for applications.
const MEMORY: Bytes = Bytes::mib(92);
pub(super) const GREEDY: usize = 8;
/// Of a greedy program's file.
const GREEDY_FILE: Bytes = Bytes::mib(175);
/// When contracts are asked for and work begins.
pub(super) const BEGIN: Instant = Instant::from_nanos(100_000_000);
/// When greedy programs begin.
const GREEDY_BEGIN: Instant = Instant::from_nanos(1_000_000_000);

/// What one run is made of.
pub(super) struct Scene {
    /// Which way the greedy programs go.
    pub greedy: Mode,
    /// Files that hold so much, by name; those of zero are empty and as large as the
    /// others are at most.
    pub files: Vec<(&'static str, Bytes)>,
    /// What is measured.
    pub measured: Vec<Rwrt>,
    /// When it ends at the latest.
    pub end: Instant,
}

/// What came of it.
pub(super) struct Played {
    pub measured: Vec<Shared>,
    pub greedy: Vec<Shared>,
    /// Streams' windows that were not ready, and requests after their deadline.
    pub underruns: u64,
    pub late: u64,
    pub time: Duration,
}

/// The node over its disk, with files in it: how large each is, and whether it is full.
pub(super) fn world(files: &BTreeMap<String, (Bytes, bool)>, policy: Policy) -> World<Metadata> {
    let model = Model::named("hitachi-travelstar").expect("a model that comes with the program");
    let commit_interval = Duration::from_secs(5);
    Pool { model, policy, memory: MEMORY, commit_interval, files }.world()
}

/// The ABISS elevator as the paper measured it (section 5.1): 200 requests under contract have
/// a place in it. The kernel's own 128 places beside them are not printed.
pub(super) fn elevator() -> Policy {
    let with = |policy: Policy, name, number| policy.with(name, number).expect("a setting of it");
    with(with(policies::ABISS, "guaranteed-contract", "200"), "slots", "328")
}

/// Plays a scene under this policy to the end of what is measured.
pub(super) fn play(scene: Scene, policy: Policy) -> Played {
    let largest = scene.files.iter().map(|file| file.1).max().unwrap_or_default();
    let largest = largest.max(Bytes::mib(256));
    let mut files: BTreeMap<String, (Bytes, bool)> = BTreeMap::new();
    for (name, size) in scene.files {
        let is_full = !size.is_zero();
        let size = if is_full { size.round_up(EXTENT) } else { largest };
        files.insert(name.into(), (size, is_full));
    }
    let names: Vec<String> = (0..GREEDY).map(|number| format!("greedy-{number}")).collect();
    files.extend(names.iter().map(|name| (name.clone(), (GREEDY_FILE, true))));
    let mut world = world(&files, policy);
    let mut greedy = Vec::new();
    for name in &names {
        let program = Greedy::new(name, GREEDY_FILE, scene.greedy, GREEDY_BEGIN);
        greedy.push(program.seen());
        world.add(program);
    }
    let mut measured = Vec::new();
    for program in scene.measured {
        measured.push(program.seen());
        world.add(program);
    }
    let mut late = 0;
    let has_ended = |seen: &Shared| seen.borrow().ended.is_some() || seen.borrow().error.is_some();
    while world.now() < scene.end && !measured.iter().all(has_ended) {
        world.run_for(Duration::from_secs(1));
        let status = world.node.status(world.now());
        late = status.disks.iter().map(|disk| disk.account.late_requests).sum();
    }
    let underruns = measured.iter().map(|seen| seen.borrow().underruns).sum();
    Played { measured, greedy, underruns, late, time: world.now() - GREEDY_BEGIN }
}
