//! What there is room for in the metadata of a pool, and whether a change fits.
//!
//! A checkpoint has one place, so a state whose checkpoint might not fit is never entered. What the
//! volumes take of it is kept as a sum: each change of a volume counts by what that volume took before
//! and takes after it ([`Store::change`]). Nothing here looks at all volumes, but for the opening of a
//! pool.
//!
//! Invariant: the sum is what the volumes take, whenever a change has ended ([`Store::is_counted`]).

use crate::api::{BLOCK, CountedBy, DiskIndex, EXTENT, Holding, RUN_MAX, Times, VolumeId};
use crate::change::{SCATTERED_SIZE, run_size, times_size, volume_size_max};
use crate::described::Taken;
use crate::error::StoreError;
use crate::format;
use crate::holdings::{self, Holdings};
use crate::names::REMOVED_NAME_MAX;
use crate::state::State;
use crate::store::{Scattered, Store};
use crate::volume::Volume;
use units::Bytes;

impl Store {
    /// Reserves room in the metadata for one more extent with holes. False where there is
    /// none: then an extent must be written without holes.
    pub fn reserve_scattered(&mut self) -> bool {
        let Scattered { room, reserved } = &mut self.scattered;
        let fits = self.taken.scattered + *reserved < *room;
        *reserved += u64::from(fits);
        fits
    }
    /// Gives back what [`Store::reserve_scattered`] reserved: writes that could leave holes
    /// in the extent have ended.
    ///
    /// # Panics
    /// Where nothing is reserved.
    pub fn release_scattered(&mut self) {
        let reserved = self.scattered.reserved.checked_sub(1);
        self.scattered.reserved = reserved.expect("it was reserved");
    }
    /// Takes what the volumes take from a look at each: for a pool that is opened, which may have a
    /// million of them.
    pub(crate) fn count_all(&mut self) {
        self.walks += 1;
        self.taken = self.state.taken();
        self.holdings = Holdings::of(self.state.volumes.values());
        self.count_room();
    }
    /// How often all volumes were looked at for what they take, since the pool was opened.
    #[doc(hidden)]
    pub fn walks(&self) -> u64 {
        self.walks
    }
    /// What the volumes of a user or of a group are together.
    pub fn holding(&self, whose: CountedBy) -> Holding {
        self.holdings.get(whose)
    }
    /// Whether what is kept of the sizes of volumes is what they are. Cost: one look at each volume.
    #[doc(hidden)]
    pub fn is_counted(&self) -> bool {
        let holdings = Holdings::of(self.state.volumes.values());
        self.taken == self.state.taken() && self.holdings == holdings
    }
    /// Changes the state of one volume, or of none; what it takes is counted.
    pub(crate) fn change<T>(
        &mut self,
        id: Option<VolumeId>,
        how: impl FnOnce(&mut State) -> Result<T, &'static str>,
    ) -> T {
        let look = |state: &State| {
            let volume = id.and_then(|id| state.volumes.get(&id));
            let taken = volume.map_or_else(Taken::default, Volume::taken_of_checkpoint);
            (taken, volume.map(holdings::part_of))
        };
        let (taken, part) = look(&self.state);
        let done = how(&mut self.state).expect("a change that was checked applies");
        let (taken_now, part_now) = look(&self.state);
        self.taken = self.taken.changed(taken, taken_now);
        self.holdings.changed(part, part_now);
        self.count_room();
        done
    }
    /// Bytes that a checkpoint takes at the most, but for extents with holes.
    pub(crate) fn described(&self) -> u64 {
        self.state.taken_beside() + self.taken.counted
    }
    /// The same, without what is kept for longer names.
    fn described_bare(&self) -> u64 {
        self.state.taken_beside() + self.taken.bare
    }
    /// What extents with holes take, also those that there may be soon.
    fn scattered_size(&self) -> u64 {
        (self.taken.scattered + self.scattered.reserved) * SCATTERED_SIZE
    }
    /// Room for extents with holes: what a checkpoint has left, and half of it at the most,
    /// so that scattered writes alone cannot keep volumes from being made.
    pub(crate) fn count_room(&mut self) {
        let all = self.log.checkpoint_size().get();
        let free = all.saturating_sub(BLOCK.get() + self.described() + self.places_size());
        self.scattered.room = free.min(all / 2) / SCATTERED_SIZE;
    }
    /// Bytes that are left in a checkpoint when so many more are taken.
    pub(crate) fn room_for(&self, more: u64) -> u64 {
        let taken = self.described() + self.scattered_size() + self.places_size() + more;
        self.log.checkpoint_size().get().saturating_sub(BLOCK.get() + taken)
    }
    /// Refuses `more` bytes of metadata, of volumes that are there, that might not fit. In a pool that an
    /// earlier program has filled with names, which it counted as they are, these are.
    pub(crate) fn check_metadata(&self, more: u64) -> Result<(), StoreError> {
        let counted = self.described();
        match self.check_needed(counted) {
            Ok(()) => self.check_needed(counted + more),
            Err(_) => self.check_needed(self.described_bare() + more),
        }
    }
    /// Refuses `more` bytes that might not fit, with names as they count ([`REMOVED_NAME_MAX`]).
    ///
    /// [`REMOVED_NAME_MAX`]: crate::REMOVED_NAME_MAX
    pub(crate) fn check_counted(&self, more: u64) -> Result<(), StoreError> {
        self.check_needed(self.described() + more)
    }
    /// Refuses a checkpoint that takes so many bytes, and what is counted beside it.
    fn check_needed(&self, described: u64) -> Result<(), StoreError> {
        let needed = described + self.scattered_size() + self.places_size();
        let needed = Bytes::new(needed).round_up(BLOCK);
        let room = self.log.checkpoint_size();
        let full = StoreError::MetadataFull { needed, room, most: None };
        if needed > room { Err(full) } else { Ok(()) }
    }
    /// Refuses names that might not fit, of volumes that are there. They become longer by `counted`
    /// bytes as names count ([`REMOVED_NAME_MAX`]), and by `bare` as they are: of that a pool which an
    /// earlier program has filled may have too little room.
    ///
    /// [`REMOVED_NAME_MAX`]: crate::REMOVED_NAME_MAX
    pub(crate) fn check_names(&self, counted: i64, bare: i64) -> Result<(), StoreError> {
        if let Ok(more @ 1..) = u64::try_from(counted) {
            return self.check_counted(more);
        }
        match u64::try_from(bare) {
            Ok(more @ 1..) => self.check_needed(self.described_bare() + more),
            _ => Ok(()),
        }
    }
    /// How many more volumes there is room for, each with a name of up to [`REMOVED_NAME_MAX`] bytes,
    /// an owner, times, and an extent: room in the metadata, and one free extent for each on the first
    /// disk, where the first one of a volume lies for which nothing else is said.
    ///
    /// [`REMOVED_NAME_MAX`]: crate::REMOVED_NAME_MAX
    pub fn volumes_room(&self) -> u64 {
        let described = volume_size_max(REMOVED_NAME_MAX, self.pool().disks.len(), 1, 1)
            + format::owner::LEN as u64
            + run_size(RUN_MAX)
            + times_size(Some(Times::default()));
        (self.room_for(0) / described).min(self.space_on(DiskIndex(0)).free / EXTENT)
    }
}
