//! Which writes of an extent are under way, in which order, and what they have written.
//!
//! A write claims the blocks that it writes. Claims of one extent that overlap are served
//! one after the other, in the order in which they came, so that the last one to come is
//! the one that stays. A claim that has ended well is told to the store at once: from then
//! on its blocks are read, and the next commit covers them, where they do not lie behind the
//! end. One that has failed leaves the blocks as the store knows them, and binds nobody else.
//!
//! An extent that is written with holes needs room in the metadata. Where there is none,
//! best effort claims all that lies between the watermark and its own blocks as well, and
//! fills what was never written with zeros first; and a stream's blocks, which come from
//! the watermark on, are told to the store as soon as none before them is missing.
//!
//! Invariants: no two claims that overlap are under way at a time; an extent has a tracker
//! exactly while it has claims; a tracker gives its place for holes back when it goes.

use crate::api::{Changes, CommandId, StreamId, Writer};
use crate::limits::BLOCK_MIN;
use crate::memory::cache::Cache;
use crate::memory::kept::Kept;
use crate::volumes::ends::Ends;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use queue::ByKey;
use store::{Blocks, EXTENT, Numbered, Store, VolumeId};
use units::Bytes;

/// One extent of a volume.
pub(crate) type Extent = (VolumeId, u64);

/// One write of a range of an extent, from when it came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim(u64);

#[derive(Clone, Debug, Default)]
pub(crate) struct Writes {
    extents: ByKey<Tracker, Extent>,
    /// Extents that are being copied: whether something was written to them since.
    watched: BTreeMap<Extent, bool>,
    next: u64,
    changed: Numbered<VolumeId, Changes>,
    /// Volumes of which blocks were written behind the end, where nobody reads them; by whom, where all of
    /// them are of one who has a number.
    ahead: BTreeMap<VolumeId, Option<Writer>>,
    /// What counts them.
    changes: u64,
    /// What is kept in memory of volumes: a change of their bytes makes it void.
    pub kept: Kept,
    /// What is cached of them: the same.
    pub cache: Cache,
    /// Where they end, and behind which of them zeros lie.
    pub ends: Ends,
}

/// What a claim is of.
#[derive(Clone, Debug)]
struct Claimed {
    claim: Claim,
    /// In bytes of the extent.
    range: Range<Bytes>,
    writer: Option<Writer>,
}

#[derive(Clone, Debug, Default)]
struct Tracker {
    /// In the order in which they came. One is under way when none before it overlaps it.
    claims: Vec<Claimed>,
    /// The extent may have holes: there is room in the metadata for them.
    may_have_holes: bool,
    /// Written, but behind a hole that the extent may not have.
    done: Blocks,
}

impl Tracker {
    /// The claims that came before `claim` and overlap it.
    fn before(&self, claim: Claim) -> impl Iterator<Item = Claim> {
        let at = self.claims.iter().position(|other| other.claim == claim);
        let (earlier, rest) = self.claims.split_at(at.expect("a claim of this extent"));
        let range = &rest[0].range;
        let earlier = earlier.iter().filter(move |other| overlap(&other.range, range));
        earlier.map(|other| other.claim)
    }
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All of it is on the disk.
    Written,
    /// Some of it may be on the disk.
    Failed,
}

impl Writes {
    /// Of a pool that was just opened.
    pub(crate) fn on(store: &Store) -> Self {
        Self { ends: Ends::found(store), ..Self::default() }
    }

    /// From now on it is remembered whether the extent is written to.
    pub(crate) fn watch(&mut self, extent: Extent) {
        self.watched.insert(extent, false);
    }

    /// Whether a watched extent was written to since.
    pub(crate) fn was_written(&self, extent: Extent) -> bool {
        self.watched.get(&extent).copied().unwrap_or(true)
    }

    pub(crate) fn watch_no_more(&mut self, extent: Extent) {
        self.watched.remove(&extent);
    }

    /// All bytes of a volume may be others from now on.
    pub(crate) fn note_change(&mut self, volume: VolumeId) {
        self.note_change_of(volume, &(Bytes::ZERO..Bytes::new(u64::MAX)));
    }

    /// What a volume has recorded here is cut off, by a writer who wants to know of others' changes.
    pub(crate) fn note_cut(&mut self, volume: VolumeId, cut: Range<Bytes>, writer: Option<Writer>) {
        match writer {
            Some(_) => self.note_change_by(volume, &cut, writer),
            None => self.note_change(volume),
        }
    }

    /// The same of a range of an extent, which this writer makes.
    fn note_change_in(
        &mut self,
        (volume, index): Extent,
        range: &Range<Bytes>,
        writer: Option<Writer>,
    ) {
        let at = EXTENT * index;
        self.note_change_by(volume, &(at + range.start..at + range.end), writer);
    }

    /// The same of a range, or a ring does not hold it any more.
    pub(crate) fn note_change_of(&mut self, volume: VolumeId, range: &Range<Bytes>) {
        self.note_change_by(volume, range, None);
    }

    /// What is recorded of a volume reaches up to here at least. What of whole blocks was written behind
    /// the end before is read from now on.
    pub(crate) fn raise(&mut self, store: &mut Store, volume: VolumeId, upto: Bytes) {
        let before = store.volume(volume).map_or(Bytes::ZERO, |volume| volume.length());
        let shown = before.round_up(BLOCK_MIN)..upto.round_up(BLOCK_MIN);
        if store.is_ahead(volume, &shown) {
            let writer = self.ahead.get(&volume).copied().flatten();
            self.changes += 1;
            self.changed.or_default(volume).note(self.changes, writer);
            // What is kept for streams is read before the end alone.
            self.cache.change(volume, &shown);
        }
        store.note_length(volume, upto);
        if !store.is_ahead(volume, &(Bytes::ZERO..Bytes::new(u64::MAX))) {
            self.ahead.remove(&volume);
        }
    }

    fn note_change_by(&mut self, volume: VolumeId, range: &Range<Bytes>, writer: Option<Writer>) {
        self.changes += 1;
        self.changed.or_default(volume).note(self.changes, writer);
        self.kept.change(volume, range);
        self.cache.change(volume, range);
    }

    /// As [`Kept::expect`], where no write of the range is under way.
    pub(crate) fn expect(
        &mut self,
        volume: VolumeId,
        what: (StreamId, u64, CommandId),
        range: Range<Bytes>,
        goes_on: impl Fn(u64, CommandId) -> bool,
    ) {
        if !self.has_claims(volume, &range) {
            self.kept.expect(volume, what, range, goes_on);
        }
    }

    /// As [`Cache::expect`], where no write of the range is under way.
    pub(crate) fn expect_to_cache(
        &mut self,
        volume: VolumeId,
        operation: u64,
        range: &Range<Bytes>,
        is_ahead: bool,
    ) {
        if !self.has_claims(volume, range) {
            self.cache.expect(volume, operation, range, is_ahead);
        }
    }

    /// A write of some of the range is under way, or waits for another.
    fn has_claims(&self, volume: VolumeId, range: &Range<Bytes>) -> bool {
        let is_claimed = |(extent, part): (u64, Range<Bytes>)| {
            let claims = self.extents.get((volume, extent)).map(|tracker| &tracker.claims);
            claims.is_some_and(|claims| claims.iter().any(|other| overlap(&other.range, &part)))
        };
        extents(range).any(is_claimed)
    }

    /// The number that the next claim will have.
    pub(crate) fn next_claim(&self) -> Claim {
        Claim(self.next)
    }

    /// Writes of some of this range that have not ended, in the order in which they came.
    pub(crate) fn claims_in(
        &self,
        extent: Extent,
        range: &Range<Bytes>,
    ) -> impl Iterator<Item = Claim> {
        let claims = self.extents.get(extent).map(|tracker| tracker.claims.iter());
        let theirs = claims.into_iter().flatten();
        theirs.filter(move |other| overlap(&other.range, range)).map(|other| other.claim)
    }

    /// What of an extent is being written, or will be.
    pub(crate) fn claimed(&self, extent: Extent) -> Blocks {
        let claims = self.extents.get(extent).map(|tracker| tracker.claims.iter());
        let all = claims.into_iter().flatten().map(|other| Blocks::of(&other.range));
        all.fold(Blocks::NONE, |all, blocks| all.union(&blocks))
    }

    /// When bytes of the volume may have changed.
    pub(crate) fn changes_of(&self, volume: VolumeId) -> Changes {
        self.changed.get(&volume).copied().unwrap_or_default()
    }

    /// The volume is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.changed.remove(&volume);
        self.ahead.remove(&volume);
        self.kept.forget(volume);
        self.cache.forget(volume);
        self.ends.forget(volume);
    }

    /// What programs have had of a volume from memory since the pool was opened.
    pub(crate) fn served(&self, volume: VolumeId) -> Bytes {
        self.kept.served(volume) + self.cache.served(volume)
    }

    /// The same of all volumes.
    pub(crate) fn served_in_all(&self) -> Bytes {
        self.kept.served_in_all() + self.cache.served_in_all()
    }

    /// No write of the extent is under way.
    pub(crate) fn is_quiet(&self, extent: Extent) -> bool {
        self.extents.get(extent).is_none()
    }

    /// A stream is about to write `range`, whole blocks of an extent. It never overlaps
    /// what is under way, and comes from the watermark on.
    pub(crate) fn claim_next(&mut self, extent: Extent, range: Range<Bytes>) -> Claim {
        let claim = self.push(extent, range, None);
        assert!(self.may_start(extent, claim), "a stream has the volume's writes to itself");
        claim
    }

    /// The same for `range` of a volume, which may reach over several extents: each has a
    /// claim, and their numbers follow one another. Gives the first.
    pub(crate) fn claim_run(&mut self, volume: VolumeId, range: &Range<Bytes>) -> Claim {
        let mut claims =
            extents(range).map(|(extent, part)| self.claim_next((volume, extent), part));
        let first = claims.next().expect("a write of something");
        claims.for_each(drop);
        first
    }

    /// The claims of [`Writes::claim_run`] have ended.
    pub(crate) fn end_run(
        &mut self,
        store: &mut Store,
        volume: VolumeId,
        range: &Range<Bytes>,
        first: Claim,
        end: End,
    ) {
        for (claim, (extent, _)) in (first.0..).map(Claim).zip(extents(range)) {
            let free = self.end(store, (volume, extent), claim, end);
            assert!(free.is_empty(), "a stream has the volume's writes to itself");
        }
    }

    /// Best effort wants to write `range`, whole blocks of an extent. It is to be asked
    /// whether it [may start](Self::may_start), and with which [range](Self::range): where
    /// the extent may not have holes, what was never written before it comes with it.
    pub(crate) fn claim(
        &mut self,
        store: &mut Store,
        extent: Extent,
        range: Range<Bytes>,
        writer: Option<Writer>,
    ) -> Claim {
        let tracker = self.extents.or_default(extent);
        if !tracker.may_have_holes && store.reserve_scattered() {
            tracker.may_have_holes = true;
            let done = core::mem::take(&mut tracker.done);
            self.tell(store, extent, &done, None);
        }
        let from = match self.extents[extent].may_have_holes {
            true => range.start,
            false => range.start.min(written(store, extent).watermark()),
        };
        self.push(extent, from..range.end, writer)
    }

    /// The same of blocks that were written before, so that they leave no hole.
    pub(crate) fn claim_written(&mut self, extent: Extent, range: Range<Bytes>) -> Claim {
        self.push(extent, range, None)
    }

    fn push(&mut self, extent: Extent, range: Range<Bytes>, writer: Option<Writer>) -> Claim {
        if let Some(written) = self.watched.get_mut(&extent) {
            *written = true;
        }
        self.note_change_in(extent, &range, writer);
        let claim = Claim(self.next);
        self.next += 1;
        self.extents.or_default(extent).claims.push(Claimed { claim, range, writer });
        claim
    }

    /// What is claimed: more than was asked for where the extent may not have holes.
    pub(crate) fn range(&self, extent: Extent, claim: Claim) -> Range<Bytes> {
        let mut claims = self.extents[extent].claims.iter();
        let found = claims.find(|other| other.claim == claim);
        found.expect("a claim of this extent").range.clone()
    }

    /// True where no write that came before has any of the claim's blocks.
    pub(crate) fn may_start(&self, extent: Extent, claim: Claim) -> bool {
        self.extents[extent].before(claim).next().is_none()
    }

    /// Those that `claim` waits for.
    pub(crate) fn before(&self, extent: Extent, claim: Claim) -> Vec<Claim> {
        self.extents[extent].before(claim).collect()
    }

    /// A claim has ended: gives those that may start now because of it, in their order.
    pub(crate) fn end(
        &mut self,
        store: &mut Store,
        extent: Extent,
        claim: Claim,
        end: End,
    ) -> Vec<Claim> {
        let tracker = self.extents.get_mut(extent).expect("a claim of this extent");
        let at = tracker.claims.iter().position(|other| other.claim == claim);
        let at = at.expect("a claim of this extent");
        let Claimed { range, writer, .. } = tracker.claims.remove(at);
        // Also where it failed: some of it may be on the disk.
        self.note_change_in(extent, &range, writer);
        let tracker = self.extents.get_mut(extent).expect("just seen");
        if end == End::Written {
            tracker.done = tracker.done.union(&Blocks::of(&range));
            let known = written(store, extent);
            let visible = match tracker.may_have_holes {
                true => tracker.done,
                false => known.union(&Blocks::first(known.union(&tracker.done).watermark())),
            };
            let told = tracker.done.intersection(&visible);
            tracker.done = tracker.done.without(&visible);
            // What others have written before may be seen from now on only.
            let is_own = told.without(&Blocks::of(&range)).is_empty();
            self.tell(store, extent, &told, writer.filter(|_| is_own));
        }
        let tracker = self.extents.get_mut(extent).expect("just seen");
        let later = tracker.claims[at..].iter().filter(|other| overlap(&other.range, &range));
        let free = later.map(|later| later.claim);
        let free = free.filter(|&later| tracker.before(later).next().is_none()).collect();
        if tracker.claims.is_empty() {
            if tracker.may_have_holes {
                store.release_scattered();
            }
            self.extents.remove(extent);
        }
        free
    }

    /// From now on these blocks are read, or from when the end is [raised](Self::raise) over them; before
    /// they were zeros, where they were not written.
    fn tell(&mut self, store: &mut Store, extent: Extent, blocks: &Blocks, writer: Option<Writer>) {
        if !blocks.is_empty() {
            self.note_change_in(extent, &blocks.span(), writer);
            store.note_written(extent.0, extent.1, blocks);
            let (at, span) = (EXTENT * extent.1, blocks.span());
            if store.is_ahead(extent.0, &(at + span.start..at + span.end)) {
                let by = self.ahead.entry(extent.0).or_insert(writer);
                *by = by.filter(|_| *by == writer);
            }
        }
    }
}

/// The extents that a range of a volume reaches over, with what of each.
pub(crate) fn extents(range: &Range<Bytes>) -> impl Iterator<Item = (u64, Range<Bytes>)> {
    let Range { start, end } = *range;
    (start / EXTENT..end.div_ceil(EXTENT)).map(move |extent| {
        let at = EXTENT * extent;
        (extent, start.saturating_sub(at)..(end - at).min(EXTENT))
    })
}

pub(crate) fn overlap(a: &Range<Bytes>, b: &Range<Bytes>) -> bool {
    a.start < b.end && b.start < a.end
}

fn written(store: &Store, (volume, index): Extent) -> Blocks {
    store.locate(volume, index).expect("an extent that is written to stays").written
}
