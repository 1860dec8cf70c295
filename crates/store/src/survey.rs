//! Reading all metadata of the given devices, without writing anything.
//!
//! Opening and checking both begin here: first the labels, which say which
//! device is which disk; then, disk by disk, the logs and the checkpoints. What
//! is found is kept as facts, whole or with the problem; judging them is done
//! elsewhere. Memory is bounded: one disk's logs, the largest checkpoint and each
//! record once.

use crate::api::{BLOCK, DiskIndex, Io, IoError, IoId};
use crate::error::OpenError;
use crate::facts::Facts;
use crate::geometry::{Area, DISKS_MAX, Geometry};
use crate::label::LABEL_SIZE;
use crate::reads::{Range, Reads};
use alloc::vec::Vec;
use units::Bytes;

/// What the reads on their way are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Labels,
    /// The second label, at the place that the first one names.
    LabelsAgain,
    /// Logs and checkpoint headers of the disk with this number.
    Logs(usize),
    /// Whole checkpoint of the disk with this number.
    Checkpoint(usize, Area),
    Finished,
}

/// The survey as a state machine over [`Io`].
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    facts: Facts,
    stage: Stage,
    pub(crate) reads: Reads,
}

impl Survey {
    pub(crate) fn new(capacities: &[Bytes]) -> Self {
        let mut survey =
            Self { facts: Facts::new(capacities), stage: Stage::Labels, reads: Reads::default() };
        if !(1..=DISKS_MAX).contains(&capacities.len()) {
            survey.facts.identity.push(OpenError::DiskCount { disks: capacities.len() });
            survey.stage = Stage::Finished;
            return survey;
        }
        for (i, &capacity) in capacities.iter().enumerate() {
            for copy in [0, 1] {
                survey.want_label(DiskIndex::new(i), capacity, Geometry::label(capacity, copy));
            }
        }
        survey.advance();
        survey
    }
    pub(crate) fn poll(&mut self) -> Option<Io> {
        self.reads.poll()
    }
    pub(crate) fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>) {
        self.reads.done(id, result);
        self.advance();
    }
    /// What was found, once all is read.
    pub(crate) fn facts(&self) -> Option<&Facts> {
        (self.stage == Stage::Finished).then_some(&self.facts)
    }
    pub(crate) fn into_facts(self) -> Facts {
        assert!(self.stage == Stage::Finished, "metadata is still being read");
        self.facts
    }
    fn want_label(&mut self, device: DiskIndex, capacity: Bytes, at: Bytes) {
        let len = LABEL_SIZE.min(capacity.saturating_sub(at).round_down(BLOCK));
        self.reads.want(device, at, len);
    }
    /// Goes on to the stages whose reads are finished.
    fn advance(&mut self) {
        while self.reads.is_finished() && self.stage != Stage::Finished {
            let ranges = self.reads.take();
            self.stage = match self.stage {
                Stage::Labels => self.labels(ranges),
                Stage::LabelsAgain => self.labels_again(ranges),
                Stage::Logs(disk) => self.logs(disk, ranges),
                Stage::Checkpoint(disk, area) => self.checkpoint(disk, area, ranges),
                Stage::Finished => Stage::Finished,
            };
        }
    }
    fn labels(&mut self, ranges: Vec<Range>) -> Stage {
        for (i, range) in ranges.into_iter().enumerate() {
            self.facts.devices[i / 2].keep_label(i % 2, &range);
        }
        for i in 0..self.facts.devices.len() {
            let device = &self.facts.devices[i];
            let Ok(label) = &device.labels[0] else { continue };
            let at = Geometry::label(label.disk().capacity, 1);
            if at != Geometry::label(device.capacity, 1) && at < device.capacity {
                self.want_label(DiskIndex::new(i), device.capacity, at);
            }
        }
        Stage::LabelsAgain
    }
    fn labels_again(&mut self, ranges: Vec<Range>) -> Stage {
        for range in ranges {
            self.facts.devices[range.device.as_usize()].keep_label(1, &range);
        }
        for device in &mut self.facts.devices {
            device.compare_labels();
        }
        self.facts.identify();
        self.want_logs(0)
    }
    /// Asks for the logs of the next disk that is there.
    fn want_logs(&mut self, disk: usize) -> Stage {
        let here = |disk: &usize| self.facts.members[*disk].is_some();
        let Some(disk) = (disk..self.facts.members.len()).find(here) else {
            return Stage::Finished;
        };
        let (device, geometry) = self.facts.member(disk);
        for area in Area::BOTH {
            self.reads.want(device, geometry.checkpoint(area), BLOCK);
            self.reads.want(device, geometry.log(area), geometry.log_size());
        }
        Stage::Logs(disk)
    }
    fn logs(&mut self, disk: usize, ranges: Vec<Range>) -> Stage {
        for (area, ranges) in Area::BOTH.into_iter().zip(ranges.chunks_exact(2)) {
            self.facts.keep_header(disk, area, &ranges[0]);
            self.facts.keep_log(disk, area, &ranges[1]);
        }
        self.want_checkpoint(disk, Area::A)
    }
    fn want_checkpoint(&mut self, disk: usize, area: Area) -> Stage {
        let (device, geometry) = self.facts.member(disk);
        if let Some((_, size)) = self.facts.area(device, area).attempted {
            self.reads.want(device, geometry.checkpoint(area), size);
        }
        Stage::Checkpoint(disk, area)
    }
    fn checkpoint(&mut self, disk: usize, area: Area, ranges: Vec<Range>) -> Stage {
        for range in ranges {
            self.facts.keep_checkpoint(disk, area, range);
        }
        match area {
            Area::A => self.want_checkpoint(disk, Area::B),
            Area::B => self.want_logs(disk + 1),
        }
    }
}
