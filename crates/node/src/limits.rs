//! Every bound of a node in one place, with the relations between them.

use units::{Bytes, Duration, Rate};

// The smallest block of a stream is the alignment of everything on a disk; the largest is longer than
// the longest run that volumes rotate by: such a block lies on one disk where the volume does.
pub use playout::{BLOCK_MAX, BLOCK_MIN, BURST_MAX};
const _: () = assert!(BLOCK_MAX.get().is_multiple_of(store::RUN_MAX.get()));
/// A block that nobody named is longer than an extent only where its window takes at most this
/// part of the memory that is free for windows.
pub const WINDOW_DIVISOR: u64 = 8;
/// Streams open at once.
pub const STREAMS_MAX: usize = 10_000;
/// Largest best-effort operation; memory for it is one span.
pub const BEST_EFFORT_MAX: Bytes = Bytes::mib(1);
/// Boxes of commands that have ended that are kept for the next ones: about as many as some disks
/// have at a time.
pub const SPARE_MAX: usize = 128;
/// Operations of one class that may wait for memory; past that the work is
/// handed back.
pub const BEST_EFFORT_WAITING_MAX: usize = 4_096;
/// Best-effort operations wait for memory for as long as some is on its way. Where all of
/// it is in callers' hands and none comes back for so long, they are refused.
pub const MEMORY_WITHIN: Duration = Duration::from_secs(10);
/// A best-effort command, or a reader's block, for which there will be no slack as long as the
/// contracts stay is given up after so long, and its program told: longer than a contract is likely
/// to be held for a moment only.
pub const NO_SLACK_WITHIN: Duration = Duration::from_secs(30);
/// A part of a record, or a writer's block, for which there will be no slack goes after so long.
pub const INSIST_WITHIN: Duration = Duration::from_secs(1);
/// One for which slack could come, and did not, goes after so long.
pub const INSIST_ANYWAY_WITHIN: Duration = Duration::from_secs(5);
/// When one of them has gone, the next one is looked for after so long.
pub const INSIST_AGAIN: Duration = Duration::from_millis(100);
/// Places of as much of a thin volume are taken in one call.
pub const PLACES_MAX: Bytes = Bytes::mib(32);
/// As much of a volume is looked at in one call for what was written of it.
pub const WRITTEN_MAX: Bytes = Bytes::mib(64);
/// Writes of a pool that are answered and not on their disk. Many are better for who writes, and worse for
/// who reads from the same disk one block at a time: he waits for those that are nearer.
pub const BEHIND_MAX: u64 = 32;
/// They lie in so many runs of neighbours, a disk takes some 10 ms for each; but where the first one of a run
/// has ended the rest is not counted.
pub const BEHIND_RUNS_MAX: u64 = 8;
/// They have so many bytes: more would take a slow disk for longer than a turn of best effort.
pub const BEHIND_BYTES_MAX: Bytes = Bytes::mib(4);
/// They have at most this part of the memory of best effort.
pub const BEHIND_DIVISOR: u64 = 8;
/// Callers that may wait for a commit or on one stream.
pub const WAITERS_MAX: usize = 16_384;
/// Best-effort transfers are cut so that one command costs no more than this
/// (where the disk allows it): it is what every contract has to wait for.
pub const BEST_EFFORT_COST: Duration = Duration::from_millis(60);
/// The longest chunk that requests of streams are cut to; the shortest is
/// [`BEST_EFFORT_PIECE_MIN`].
pub const CHUNK_MAX: Bytes = Bytes::mib(8);
/// In which commands requests of streams may be served: whole, and in chunks of these lengths.
pub fn chunks() -> impl Iterator<Item = Option<Bytes>> {
    let lengths = (0..).map(|power| CHUNK_MAX / (1 << power));
    let lengths = lengths.take_while(|&chunk| chunk >= BEST_EFFORT_PIECE_MIN);
    [None].into_iter().chain(lengths.map(Some))
}
/// The most writers that are written together.
pub const GROUP_MAX: u64 = 128;
/// What is written to a thin volume while it is read is expected to lie no farther apart within a
/// block: what two large groups write in a few periods.
pub const THIN_REACH: Bytes = Bytes::GIB;
/// Where nobody names a block, who is so slow is not written together with others: it would take too long
/// until what was recorded is on the disk.
pub const GROUP_PERIOD_MAX: Duration = Duration::from_secs(4);
/// An opening that cannot be decided is tried again so many times in a period, for so many periods.
pub const OPENS_AGAIN: u64 = 8;
/// See [`OPENS_AGAIN`].
pub const OPENS_FOR: u64 = 4;
/// And no longer than this.
pub const OPENS_FOR_MAX: Duration = Duration::from_secs(5);
/// Parts of blocks that go with a group at the most: each has zeros behind it, in up to 16 spans, and a
/// command has at most 1,024.
pub const GROUP_PARTS_MAX: usize = 32;
/// Places that blocks of members have left are looked at so many at a time.
pub const GROUP_LEFT_STEP: usize = 16;
/// Or as many as make so many comparisons with the commands that there are.
pub const GROUP_LEFT_LOOKS: usize = 20_000;
/// Those that are left are looked at again after so long.
pub const GROUP_LEFT_AGAIN: Duration = Duration::from_millis(100);
/// Smallest piece that a best-effort transfer is cut to.
pub const BEST_EFFORT_PIECE_MIN: Bytes = Bytes::kib(64);
/// The log's contract for writes is at least this for each commit, and grows by as much.
pub const METADATA_PIECE: Bytes = Bytes::kib(64);
/// Longest single write of the log: no longer than many a stream's block, so that what others
/// wait for does not grow with it.
pub const METADATA_COMMAND_MAX: Bytes = Bytes::kib(256);
/// Changes of volumes, of extents that move and of suspect extents for which a record has room
/// beside writers: some hundred volumes of 20 runs between two commits. More take longer.
pub const RECORD_CHANGES: Bytes = Bytes::kib(7);
/// One rename of a directory is a change of this length at the most: of some hundred volumes, in
/// one section under the pool's lock.
pub const RENAMED_MAX: Bytes = Bytes::kib(4);
/// Where more changes of volumes than these wait for a commit, who makes another waits for it,
/// too: beside them a record has room for one rename.
pub const STAGED_MAX: Bytes = Bytes::kib(3);
/// So many do not wait for the commit interval.
pub const STAGED_SOON: Bytes = Bytes::kib(2);
/// Extents that best effort may write to for the first time between two commits, and volumes
/// whose lengths it may raise; on a hard disk so many take a second and more. More take longer.
pub const RECORD_EXTENTS: u64 = 256;
/// What writers may take beyond their contracts between two commits, all together: extents for
/// which records have room beside half of what best effort may come to.
pub const EXCESS_MAX: Bytes = Bytes::mib(RECORD_EXTENTS / 2);
/// So many commit intervals may lie between the beginnings of two commits at the most.
pub const COMMITS_APART: u64 = 5;
/// A sync is answered after so many commit intervals at the most (docs/crash-safety.md).
pub const SYNC_INTERVALS: u64 = 8;
/// The contract of the log may put the next write of the log off by this part of a commit
/// interval when it grows.
pub const LOG_PUT_OFF: u64 = 12;
/// The lateness of the host that records of writers are counted for, at least.
pub const RECORD_LATE: Duration = Duration::from_secs(1);
/// Memory that stays for best effort however many windows are open.
pub const BEST_EFFORT_MEMORY_MIN: Bytes = Bytes::mib(4);
/// Of the memory that best effort can have, so much is kept for interactive requests, so
/// that one of them waits for no others' memory: any one operation fits.
pub const INTERACTIVE_MEMORY: Bytes = BEST_EFFORT_MAX;
/// While others wait for memory, one user's best effort gets no more than this part of
/// what best effort can have.
pub const USER_MEMORY_DIVISOR: u64 = 2;
/// Background gets no more than this part of it at a time: it may wait for the disk for ever,
/// and so would all who wait for its memory.
pub const BACKGROUND_MEMORY_DIVISOR: u64 = 2;
/// After memory was given so many times to classes above one that waits, that one has its
/// turn.
pub const MEMORY_TURNS: u64 = 8;
/// Zeros are written in pieces of at most this size.
pub const ZEROS: Bytes = Bytes::kib(64);
/// Spans of regions begin here, behind every arena,
pub const REGIONS_BASE: Bytes = Bytes::new(1 << 48);
/// one region after so many bytes: the largest window is as long.
pub const REGION_STRIDE: Bytes = Bytes::new(1 << 31);
/// A volume is made smaller under a writer where that leaves it room for so long at its rate, behind
/// its window: time for whoever sees to it to make the volume larger again.
pub const SHRINK_LEAVES: Duration = Duration::from_secs(10);
/// The longest time for which deadlines are advanced, and windows made, because the host is
/// late; one that is later keeps no time.
pub const HOST_LATENCY_MAX: Duration = Duration::from_secs(60);
/// The longest time that is counted from when a pool hands out an answer until its program has
/// it: what takes more is a host that was stopped.
pub const DELIVERY_MAX: Duration = queue::limits::GAP_MAX;
/// The longest time between commits that can be asked for: so much may be lost.
pub const COMMIT_INTERVAL_MAX: Duration = Duration::from_secs(3_600);
/// Smallest arena that a node can work with.
pub const MEMORY_MIN: Bytes = Bytes::mib(16);
/// Shortest and longest period of a volume's service under contract.
pub const SERVICE_PERIOD_MIN: Duration = Duration::from_millis(1);
/// See [`SERVICE_PERIOD_MIN`].
pub const SERVICE_PERIOD_MAX: Duration = Duration::from_secs(60);
/// Streams that hear in one call of the node of what all of them have to hear of.
pub const ROUND_STEP: usize = 2;
/// Requests that go on in one call of the node, which waited for the same, and users of whom writes are
/// answered before they are on their disk.
pub const GO_ON_STEP: usize = 8;
/// Volumes, and runs of them, that one call of the node looks at for the owners of suspect places.
pub const OWNERS_STEP: u64 = 512;
/// Volumes or streams that one look for a status shows.
pub const STATUS_STEP: usize = 2;
/// Names of volumes that one look gives.
pub const NAMES_STEP: usize = 32;
/// Requests that a reader may have waiting beyond those that its rate needs: a large
/// window is filled by so many at a time.
pub const EARLY_REQUESTS: u64 = 16;
/// So much of a reader's first block is read by itself first: it adds a few milliseconds to the
/// way of the heads on the slowest of the disks that are modelled,
pub const EARLY_FIRST: Bytes = Bytes::kib(64);
/// of blocks that are so long at least. Others are there nearly as soon.
pub const EARLY_LEAST: Bytes = Bytes::kib(256);
/// The most often that requests of a stream may be late.
pub const MISS_MAX: sched::Chance = sched::Chance::one_in(10);
/// How long a stream whose requests may be late now and then waits for a block, at the most: its
/// window holds what is used up meanwhile.
pub const ODDS_RESPONSE_MAX: Duration = Duration::from_secs(8);
/// A block that is longer is not kept: the thread of a disk copies one at a time, and copies 1 MiB
/// in about a quarter of a millisecond.
pub const KEPT_BLOCK_MAX: Bytes = Bytes::mib(4);
/// A block is kept where its disk may take longer for it than at this rate: else copying it twice
/// takes the disk's thread about as long as it takes the disk to read it again.
pub const KEPT_READ_RATE: Rate = Rate::per_second(512 << 20);
/// So much is copied for readers behind others in each second, by all disks' threads together.
pub const KEPT_COPY_RATE: Rate = Rate::per_second(1 << 30);
/// So far ahead of that rate.
pub const KEPT_COPY_AHEAD: Duration = Duration::from_millis(4);
/// So many blocks are kept at a time for readers that come behind, at the most.
pub const KEPT_BLOCKS_MAX: usize = 4_096;
/// So many of them make way for one that is nearer to its reader, at the most.
pub const KEPT_EVICTIONS: usize = 16;
/// One command serves no more pieces of memory that lie apart.
pub const SPANS_MAX: usize = 64;
/// So many blocks are cached of what best effort reads, at the most.
pub const CACHED_BLOCKS_MAX: usize = 1 << 16;
/// Of the memory in which something may be cached, this part may be lent to programs at a time, or
/// be read into.
pub const CACHE_LENT_DIVISOR: u64 = 8;
/// Of that one user has this part at the most, and so has the background; two operations of any length
/// all the same, where that is not more than all.
pub const CACHE_PART_DIVISOR: u64 = 2;
/// So many blocks go at a time of what is not cached any more.
pub const CACHE_STEP: usize = 32;
/// So many blocks are looked at for one that makes way, at the most.
pub const CACHE_LOOKS: usize = 32;
/// What is read of a disk is cached where it takes longer than this for one read of 4 KiB.
pub const CACHED_FROM: Duration = Duration::from_micros(50);
/// So much is read ahead at a time, at the most, of whoever reads a volume from one end to the other.
pub const READ_AHEAD_MAX: Bytes = BEST_EFFORT_MAX;
/// So many may wait for one piece of it; others ask the disk.
pub const AHEAD_WAITING_MAX: usize = 256;
/// And at most this part of what of the cache may be lent at a time.
pub const AHEAD_DIVISOR: u64 = 2;
/// Of so many at a time on a volume.
pub const READERS_MAX: usize = 16;
/// So many places are looked at for one to be kept.
pub const ROOM_LOOKS: usize = 64;
/// Handles with contracts of their own that may be open at once.
pub const HANDLES_MAX: usize = 1_024;
/// A service that is kept and does not fit is tried again so long after something was given
/// back, and the next one as long after it.
pub const KEPT_OUT_PAUSE: Duration = Duration::from_secs(1);
/// Extents are moved in pieces of this size, each a read and a write in the background.
pub const MOVE_PIECE: Bytes = Bytes::kib(64);
/// An extent that is being written to is tried again after this time,
pub const MOVE_AGAIN: Duration = Duration::from_secs(2);
/// and one that cannot be moved for another reason after this.
pub const MOVE_RETRY: Duration = Duration::from_secs(600);
/// A disk is measured in so many parts at the most,
pub const MEASURE_PARTS: u64 = 16;
/// with so many reads in each, half of them small
pub const MEASURE_READS: u64 = 32;
/// and half of them as long as a piece of best effort.
pub const MEASURE_SMALL: Bytes = Bytes::kib(4);
/// A disk whose profile still does not hold is measured again after this time.
pub const MEASURE_AGAIN: Duration = Duration::from_secs(1_800);
/// A wider profile that does not fit beside what waits now is tried again so long after it, behind the
/// next flush.
pub const WIDEN_AGAIN: Duration = Duration::from_secs(1);
/// Streams that a plan counts to before it says "at least".
pub const PLAN_MAX: u64 = 10_000;

const _: () = {
    assert!(BLOCK_MIN.get() == store::BLOCK.get());
    assert!(BLOCK_MAX.get() >= BLOCK_MIN.get());
    assert!(BEST_EFFORT_MAX.get() + INTERACTIVE_MEMORY.get() <= BEST_EFFORT_MEMORY_MIN.get());
    assert!(BEST_EFFORT_MAX.get() <= INTERACTIVE_MEMORY.get());
    assert!(BEST_EFFORT_PIECE_MIN.get() <= BEST_EFFORT_MAX.get());
    assert!(ZEROS.get() <= BEST_EFFORT_PIECE_MIN.get());
    assert!(MEASURE_SMALL.get() >= BLOCK_MIN.get());
    assert!(MEASURE_SMALL.get() < BEST_EFFORT_PIECE_MIN.get());
    assert!(MOVE_PIECE.get() <= BEST_EFFORT_PIECE_MIN.get());
    assert!(store::EXTENT.get().is_multiple_of(MOVE_PIECE.get()));
    assert!(METADATA_PIECE.get() >= BLOCK_MIN.get());
    assert!(STAGED_SOON.get() < STAGED_MAX.get());
    assert!(STAGED_MAX.get() + RENAMED_MAX.get() <= RECORD_CHANGES.get());
    assert!(METADATA_COMMAND_MAX.get().is_multiple_of(METADATA_PIECE.get()));
    // What the store hands out at once is whole pieces of the log's.
    assert!(store::IO_MAX.get().is_multiple_of(METADATA_COMMAND_MAX.get()));
    assert!(BEST_EFFORT_MEMORY_MIN.get() + ZEROS.get() + BLOCK_MIN.get() < MEMORY_MIN.get());
    // Beside what is for contracts alone there is room for every operation, one at a time.
    assert!(
        BEST_EFFORT_MAX.get() + INTERACTIVE_MEMORY.get() + ZEROS.get() + BLOCK_MIN.get()
            <= MEMORY_MIN.get() / 4 * 3
    );
    assert!(REGION_STRIDE.get().is_multiple_of(BLOCK_MAX.get()));
    assert!(REGION_STRIDE.get() >= BURST_MAX.get() * 2);
    assert!(REGIONS_BASE.get().is_multiple_of(BLOCK_MAX.get()));
    // The last region ends within what an offset can say.
    assert!(u64::MAX - REGIONS_BASE.get() >= REGION_STRIDE.get() * (u32::MAX as u64 + 1) - 1);
};
/// Rings that give up what is old are looked through so often.
pub const OLD_LOOK: Duration = Duration::from_secs(10);
/// A clock that was set forward by more than this, against the one that only counts, may be wrong.
pub const CLOCK_JUMP: Duration = Duration::from_secs(300);
/// So may one by which the pool recorded nothing for so long before [`CLOCK_STANDS`].
pub const CLOCK_AHEAD: Duration = Duration::from_secs(6 * 3_600);
/// A clock that may be wrong is believed when it has stood for so long.
pub const CLOCK_STANDS: Duration = Duration::from_secs(3_600);
/// So many of them give up something at a look, and the others at the next: a record of the log is to
/// have room for these changes beside those of writers.
pub const OLD_RINGS: u32 = 32;
/// Long flushes widen a profile by themselves only as far as commits stay within so many of
/// the intervals of the start: a longer interval stays for good.
pub const WIDEN_INTERVAL_MAX: u64 = 2;
