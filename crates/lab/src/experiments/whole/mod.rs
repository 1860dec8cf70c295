//! The whole production node on one emulated disk with files in it, in simulated time: for
//! papers whose kernel was measured with programs.

pub(crate) mod cyclic;
pub(crate) mod pager;
pub(crate) mod programs;

use disk::{HardDisk, Model, Profile};
use node::{Config, DiskSetup, Node, Placement, Policy};
use sim::{Metadata, SimDisk, Timing, World};
use std::collections::BTreeMap;
use store::{Blocks, EXTENT};
use units::{Bytes, Duration};

/// What a node is made of.
pub(crate) struct Pool<'a> {
    pub model: Model,
    pub policy: Policy,
    pub memory: Bytes,
    /// Between two commits of the metadata log. Under a policy that admits by cycles none is
    /// longer than a third of it.
    pub commit_interval: Duration,
    /// By name: how large each file is, and whether it is full.
    pub files: &'a BTreeMap<String, (Bytes, bool)>,
}

impl Pool<'_> {
    /// The node over its disk. Under a policy that keeps no contract they are taken as they
    /// come.
    pub fn world(self) -> World<Metadata> {
        let Self { model, policy, memory, commit_interval, files } = self;
        let profile = Profile::of(&model);
        let timing = Timing::Drive(Box::new(HardDisk::new(&model)));
        let mut disks = vec![SimDisk::metadata_only(profile.capacity(), timing)];
        sim::format(&mut disks, "lab", &profile, 1).expect("a disk that is large enough");
        let mut store = sim::open(&mut disks).expect("it was formatted");
        for (name, &(size, is_full)) in files {
            let id = store.create(name, size, &Placement::default()).expect("a file that fits");
            if is_full {
                (0..size.div_ceil(EXTENT))
                    .for_each(|extent| store.note_written(id, extent, &Blocks::first(EXTENT)));
                store.note_length(id, size);
            }
        }
        sim::commit(&mut disks, &mut store).expect("a disk without faults");
        let config = Config {
            policy,
            admission: policy.keeps_contracts(),
            memory,
            host_latency: Duration::ZERO,
            commit_interval,
            remeasure: true,
        };
        let node = Node::new(config, vec![DiskSetup::new(profile)], store);
        World::new(node.expect("a disk and memory"), disks, memory)
    }
}
