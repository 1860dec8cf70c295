//! A checkpoint in parts: made and written a part with each commit, so that nobody waits
//! for all of it.
//!
//! A checkpoint is a list of changes that makes the state from nothing. The list is begun
//! with the oldest volume and goes on with each commit: first with what the commit changed
//! of the volumes that are in the list already, then with more volumes as they are now. So
//! at the end of each commit the list makes what is committed of the volumes that are in it,
//! and when all of them are, it makes the state. Of a volume with many extents a part of the
//! watermarks comes with each commit.
//!
//! The first block, with the header, is written last, together with what the last commit
//! added. Until then what lies in the area is no checkpoint; then it is, at once.
//!
//! Invariants: all bytes behind the first block and before the `rest` were handed out; no
//! extent is in the list twice. (A reader of a list gives back at its end what the
//! list freed. So an extent that was freed behind the beginning of the list and is had again
//! ends the building; it begins anew.)

use crate::api::{BLOCK, DiskIndex, VolumeId};
use crate::change::{Change, Encoder, SCATTERED_SIZE};
use crate::format;
use crate::runs::Freed;
use crate::runs::Run;
use crate::state::State;
use crate::structure::FIRST_PAYLOAD;
use crate::volume::Volume;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use checksum::crc32c;
use units::Bytes;

/// How far the list has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// All volumes before this one are in the list; and of this one its description and the
    /// watermarks of so many extents, if any.
    Volume(VolumeId, Option<u32>),
    /// All volumes, and what is not of one of them.
    All,
}

/// What is thought to be left where more was made than there was to be: the state has grown.
const MORE: u64 = 1 << 16;

/// An extent that was freed since the building began is had again: it has to begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reused;

/// A checkpoint that is being made and written.
#[derive(Clone, Debug)]
pub(crate) struct Building {
    /// The payload in the first block, which is written last.
    first: Vec<u8>,
    /// Payload behind all that was handed out.
    rest: Vec<u8>,
    /// Bytes behind the first block that were handed out, and their checksum.
    body: Bytes,
    body_checksum: u32,
    count: u32,
    reached: Reached,
    /// Freed since it began: by disk and first extent, how many.
    freed: BTreeMap<(DiskIndex, u32), u32>,
    /// What is still to be put into the list takes so many bytes at the most.
    left: u64,
}

/// What of a checkpoint is written with a commit.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Bytes from the start of the checkpoint.
    pub(crate) at: Bytes,
    pub(crate) bytes: Vec<u8>,
    /// With this the checkpoint is whole.
    pub(crate) end: Option<End>,
}

/// The first block, but for the header; what the header says of the payload.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) first: Vec<u8>,
    pub(crate) length: usize,
    pub(crate) checksum: u32,
}

impl Building {
    /// A list with nothing in it; what comes into it will take `left` bytes at the most.
    pub(crate) fn new(left: u64) -> Self {
        Self {
            first: vec![0; format::changes::LEN],
            rest: Vec::new(),
            body: Bytes::ZERO,
            body_checksum: 0,
            count: 0,
            reached: Reached::Volume(VolumeId(0), None),
            freed: BTreeMap::new(),
            left,
        }
    }
    /// True where the list has something of the volume: its changes belong behind it.
    pub(crate) fn has(&self, volume: VolumeId) -> bool {
        match self.reached {
            Reached::Volume(next, of_it) => volume < next || volume == next && of_it.is_some(),
            Reached::All => true,
        }
    }
    /// True where the list has what is not of one volume.
    pub(crate) fn describes_pool(&self) -> bool {
        self.reached == Reached::All
    }
    /// Bytes that are still to be written at the most, but for what later commits change.
    pub(crate) fn to_write(&self) -> u64 {
        self.left + self.rest.len() as u64
    }
    /// Bytes of the structure, as far as it was made.
    pub(crate) fn size(&self) -> Bytes {
        let rest = Bytes::new(self.rest.len() as u64);
        (BLOCK + self.body + rest).round_up(BLOCK)
    }
    /// A commit has freed these extents.
    pub(crate) fn note_freed(&mut self, freed: &Freed) {
        self.freed.extend(freed.iter().map(|(disk, run)| ((*disk, run.start), run.count)));
    }
    /// Whether a commit may have these extents.
    pub(crate) fn note_taken(&self, disk: DiskIndex, run: Run) -> Result<(), Reused> {
        let end = run.start.saturating_add(run.count);
        let before = self.freed.range((disk, 0)..(disk, end)).next_back();
        let overlaps = |(&(_, start), &count): (&(DiskIndex, u32), &u32)| start + count > run.start;
        if before.is_some_and(overlaps) { Err(Reused) } else { Ok(()) }
    }
    /// Puts changes at the end of the list.
    pub(crate) fn append(&mut self, encoder: Encoder) {
        let (bytes, count) = encoder.into_changes();
        self.count += count;
        let (first, rest) = bytes.split_at(bytes.len().min(FIRST_PAYLOAD - self.first.len()));
        self.first.extend_from_slice(first);
        self.rest.extend_from_slice(rest);
    }
    /// Puts more of the state into the list: what takes `budget` bytes at the most, or one
    /// volume's description. Looks at no more extents than half as many.
    pub(crate) fn make(&mut self, state: &State, budget: u64) -> Result<(), Reused> {
        let until = self.left.saturating_sub(budget);
        while self.left > until {
            let Reached::Volume(next, of_it) = self.reached else { break };
            let mut encoder = Encoder::new(state.next_volume);
            let took = match state.volumes.range(next..).next() {
                None => {
                    state.describe_pool(&mut encoder);
                    self.reached = Reached::All;
                    self.left
                }
                Some((id, volume)) if id > next || of_it.is_none() => {
                    self.check(volume)?;
                    State::describe(volume, &mut encoder);
                    self.reached = Reached::Volume(id, Some(0));
                    volume.described_max()
                }
                Some((id, volume)) => {
                    let from = of_it.unwrap_or(0);
                    let extents = volume.written.len() as u32;
                    let most = u32::try_from((self.left - until) / 2).unwrap_or(u32::MAX).max(1);
                    let to = extents.min(from.saturating_add(most));
                    State::describe_extents(volume, from..to, &mut encoder);
                    let ended = to == extents;
                    self.reached = match ended {
                        true => Reached::Volume(VolumeId(id.0 + 1), None),
                        false => Reached::Volume(id, Some(to)),
                    };
                    let scattered = volume.scattered.range(from..to.max(from)).count() as u64;
                    u64::from(to.saturating_sub(from)) * 2 + scattered * SCATTERED_SIZE
                }
            };
            self.left = self.left.saturating_sub(took);
            self.append(encoder);
            if self.left == 0 && self.reached != Reached::All {
                self.left = MORE; // the state has grown since it began
                break;
            }
        }
        Ok(())
    }
    fn check(&self, volume: &Volume) -> Result<(), Reused> {
        let slots = volume.placement.disks.iter().zip(&volume.slots);
        let mut runs = slots.flat_map(|(&disk, slot)| slot.placed().map(move |run| (disk, run)));
        runs.try_for_each(|(disk, run)| self.note_taken(disk, run))
    }
    /// What is to be written now: whole blocks of what was made, of `budget` bytes at the
    /// most; all that is left, where it is no more and the list makes the whole state.
    pub(crate) fn part(&mut self, next_volume: VolumeId, budget: u64) -> Part {
        let at = BLOCK + self.body;
        let block = BLOCK.as_usize();
        let most = usize::try_from(budget).unwrap_or(usize::MAX).max(block);
        if self.reached != Reached::All || self.rest.len().next_multiple_of(block) > most {
            let len = self.rest.len().min(most) / block * block;
            let bytes: Vec<u8> = self.rest.drain(..len).collect();
            self.count_body(&bytes);
            return Part { at, bytes, end: None };
        }
        let mut bytes = core::mem::take(&mut self.rest);
        let length = self.first.len() + self.body.as_usize() + bytes.len();
        bytes.resize(bytes.len().next_multiple_of(block), 0);
        self.count_body(&bytes);
        let mut first = core::mem::take(&mut self.first);
        format::changes::NEXT_VOLUME.put(&mut first, next_volume.0);
        format::changes::COUNT.put(&mut first, self.count.into());
        first.resize(FIRST_PAYLOAD, 0);
        let checksum = checksum::joined(crc32c(&first), self.body_checksum, self.body);
        Part { at, bytes, end: Some(End { first, length, checksum }) }
    }
    fn count_body(&mut self, bytes: &[u8]) {
        let len = Bytes::new(bytes.len() as u64);
        self.body_checksum = checksum::joined(self.body_checksum, crc32c(bytes), len);
        self.body += len;
    }
}

/// The extents that a change gives to a volume, by disk; none where nobody knows any more,
/// because the same commit has deleted or cut the volume.
pub(crate) fn taken<'a>(
    change: &'a Change,
    volume: impl Fn(VolumeId) -> Option<&'a Volume>,
) -> Option<Vec<(DiskIndex, Run)>> {
    Some(match change {
        Change::Grow { volume: id, runs, .. } => {
            let pairs = volume(*id)?.placement.disks.iter().zip(runs);
            let placed = |run: &&Run| run.has_place();
            pairs
                .flat_map(|(&disk, runs)| runs.iter().filter(placed).map(move |&run| (disk, run)))
                .collect()
        }
        Change::Placed { volume: id, index, run } => {
            let (disk, _) = volume(*id)?.place(*index)?;
            Vec::from([(disk, *run)])
        }
        Change::Move { volume: id, index, extent } => {
            let (disk, _) = volume(*id)?.place(*index)?;
            Vec::from([(disk, Run { start: *extent, count: 1 })])
        }
        _ => Vec::new(),
    })
}
