//! Labels: what a disk says about itself and its pool, and the profile beside it.

use crate::api::{BLOCK, Disk, DiskIndex, EXTENT, Id, Pool};
use crate::format::{label, label_disk};
use crate::geometry::{AreaSize, DISKS_MAX, EXTENTS_MAX, Geometry, LABEL_REGION};
use crate::names::is_name;
use crate::steps::Task;
use crate::structure::{Header, Kind, Owner, Payload, Problem, Stamp, Structure};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use units::Bytes;

/// A disk's profile as it lies beside a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredProfile {
    pub(crate) bytes: Vec<u8>,
    /// 1 when the pool is made; one more each time that it is replaced.
    pub(crate) generation: u64,
}

/// The label of one disk. Written when the pool is made, and again only to
/// repair a damaged copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) pool: Pool,
    pub(crate) index: DiskIndex,
    pub(crate) area: AreaSize,
}

/// Labels are never rewritten with another content in this version.
const STAMP: Stamp = Stamp { generation: 1, parent: 1, sequence: 0, base: 0 };

impl Label {
    /// The disk that carries this label.
    pub(crate) fn disk(&self) -> &Disk {
        &self.pool.disks[self.index.as_usize()]
    }
    pub(crate) fn owner(&self) -> Owner {
        Owner { pool: self.pool.id, disk: self.disk().id }
    }
    fn payload(&self) -> Payload {
        let mut bytes = vec![0; label::LEN];
        label::INDEX.put(&mut bytes, self.index.0.into());
        label::DISKS.put(&mut bytes, self.pool.disks.len() as u64);
        label::NAME_LENGTH.put(&mut bytes, self.pool.name.len() as u64);
        label::NAME.put_bytes(&mut bytes, self.pool.name.as_bytes());
        label::CHECKPOINT_SIZE.put(&mut bytes, self.area.checkpoint.get());
        label::LOG_SIZE.put(&mut bytes, self.area.log.get());
        for disk in &self.pool.disks {
            let mut entry = [0; label_disk::LEN];
            label_disk::ID.put_bytes(&mut entry, &disk.id.0);
            label_disk::CAPACITY.put(&mut entry, disk.capacity.get());
            bytes.extend_from_slice(&entry);
        }
        Payload::new(bytes)
    }
    /// What writes label `copy` of this disk, and its profile of that generation.
    pub(crate) fn tasks(&self, copy: usize, profile: &Payload, generation: u64) -> [Task; 2] {
        let (owner, capacity) = (self.owner(), self.disk().capacity);
        let profile = profile_task(owner, capacity, copy, profile, generation);
        [Task::Write(Geometry::label(capacity, copy), self.block(copy)), profile]
    }
    /// Copy `copy` of this label, as it lies on its disk.
    pub(crate) fn block(&self, copy: usize) -> Vec<u8> {
        let at = Geometry::label(self.disk().capacity, copy);
        Structure::new(Kind::Label, self.owner(), STAMP, at, self.payload()).bytes()
    }
    /// Reads the label at `bytes`, which lie at `at` of some disk.
    pub(crate) fn read(bytes: &[u8], at: Bytes) -> Result<Self, Problem> {
        let header = Header::read(Kind::Label, bytes, at)?;
        if header.size() > BLOCK.as_usize() {
            return Err(Problem::Contradiction("it is larger than its place"));
        }
        let payload = header.payload(bytes)?;
        let label = Self::decode(payload, header.owner.pool).map_err(Problem::Contradiction)?;
        if label.owner() == header.owner { Ok(label) } else { Err(Problem::OfAnother) }
    }
    fn decode(payload: &[u8], pool: Id) -> Result<Self, &'static str> {
        const SHORT: &str = "it ends too early";
        let (fixed, entries) = payload.split_at_checked(label::LEN).ok_or(SHORT)?;
        let count = usize::from(label::DISKS.get_u16(fixed));
        if !(1..=DISKS_MAX).contains(&count) || entries.len() != count * label_disk::LEN {
            return Err("its list of disks has the wrong length");
        }
        let index = DiskIndex(label::INDEX.get_u16(fixed));
        if index.as_usize() >= count {
            return Err("its disk is not in its list of disks");
        }
        let name_length = usize::from(label::NAME_LENGTH.get_u16(fixed));
        let name = label::NAME.bytes(fixed).get(..name_length).ok_or(SHORT)?;
        let name = String::from_utf8(name.into()).ok().filter(|name| is_name(name));
        let disks = entries.chunks_exact(label_disk::LEN).enumerate().map(|(i, entry)| Disk {
            index: DiskIndex::new(i),
            id: Id(label_disk::ID.bytes(entry).try_into().expect("an identity has 16 bytes")),
            capacity: Bytes::new(label_disk::CAPACITY.get(entry)),
        });
        let area = AreaSize {
            checkpoint: Bytes::new(label::CHECKPOINT_SIZE.get(fixed)),
            log: Bytes::new(label::LOG_SIZE.get(fixed)),
        };
        let pool = Pool {
            name: name.ok_or("the pool's name is not allowed")?,
            id: pool,
            disks: disks.collect(),
        };
        check_sizes(&pool, area)?;
        Ok(Self { pool, index, area })
    }
    /// Reads the profile at `bytes`.
    pub(crate) fn read_profile(&self, bytes: &[u8], at: Bytes) -> Result<StoredProfile, Problem> {
        let header = Header::read_own(Kind::Profile, bytes, at, self.owner())?;
        let generation = header.stamp.generation;
        if !(1..GENERATION_MAX).contains(&generation) {
            return Err(Problem::Contradiction("its numbers are impossible"));
        }
        Ok(StoredProfile { bytes: header.payload(bytes)?.into(), generation })
    }
}

/// Beyond this no generation comes in the life of a pool.
const GENERATION_MAX: u64 = 1 << 62;

/// What writes copy `copy` of a disk's profile.
pub(crate) fn profile_task(
    owner: Owner,
    capacity: Bytes,
    copy: usize,
    profile: &Payload,
    generation: u64,
) -> Task {
    let at = Geometry::profile(capacity, copy);
    let stamp = Stamp { generation, parent: generation, ..STAMP };
    Task::Write(at, Structure::new(Kind::Profile, owner, stamp, at, profile.clone()).bytes())
}

/// Sizes that nothing later needs to doubt.
fn check_sizes(pool: &Pool, area: AreaSize) -> Result<(), &'static str> {
    let extents = pool.disks.iter().map(|disk| disk.capacity / EXTENT);
    let total = extents.fold(0u64, u64::saturating_add);
    if !area.is_possible() || total >= EXTENTS_MAX {
        return Err("a size in it is impossible");
    }
    let fits = |disk: &Disk| Geometry::new(disk.capacity, area).is_some();
    if pool.disks.iter().all(fits) { Ok(()) } else { Err("a disk in it is too small") }
}

/// Bytes that a profile takes on the disk at the most.
const PROFILE_SIZE: Bytes = Bytes::kib(36);

/// Bytes that a label and a profile take.
pub(crate) const LABEL_SIZE: Bytes = Bytes::kib(40);

const _: () = assert!(label::LEN + DISKS_MAX * label_disk::LEN <= 4096 - 96);
const _: () = assert!(BLOCK.get() + PROFILE_SIZE.get() == LABEL_SIZE.get());
const _: () = assert!(LABEL_SIZE.get() <= LABEL_REGION.get());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::PROFILE_MAX;
    use crate::structure::size_of_structure;

    #[test]
    fn the_largest_label_and_profile_fit_their_places() {
        assert_eq!(size_of_structure(PROFILE_MAX.as_usize()), PROFILE_SIZE.as_usize());
        let largest = label::LEN + DISKS_MAX * label_disk::LEN;
        assert_eq!(size_of_structure(largest), BLOCK.as_usize());
    }
}
