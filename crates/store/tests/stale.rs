//! Disks of an earlier time are put back beside the others.
//!
//! A pool lives through openings and syncs, and may be cut in the middle of the next one.
//! Then some of its disks are replaced by their own images of an earlier moment. What a
//! crash can leave is opened, always; what lacks an opening, or more than the last commit,
//! is refused, each such disk named with how far behind it is, by a check, too, and nothing
//! is written to any disk.

use crate::common::{Cut, Disk, Random, at, capacities, check, commit, new_pool, open, run_until};
use store::{Blocks, DiskIndex, Found, OpenError, Opening, Placement, Severity, Store};
use units::Bytes;

/// What takes a number on every disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Open,
    /// A commit with changes.
    Sync,
    /// A commit of data that was rewritten in place, of which there is nothing to record.
    Rewrite,
    /// A commit of one disk's profile.
    Profile,
}
use Event::{Open, Profile, Rewrite, Sync};

/// The disks, and how many events they have seen.
#[derive(Clone)]
struct Image {
    disks: Vec<Disk>,
    events: usize,
}

/// A pool that lives, and its disks after each event.
#[derive(Clone)]
struct Life {
    disks: Vec<Disk>,
    store: Store,
    events: Vec<Event>,
    /// The last event is known to have been durable on every disk: it wrote a checkpoint.
    proven: bool,
    images: Vec<Image>,
}

impl Life {
    /// A new pool, opened, with a volume that has data on every disk.
    fn new(disks: usize) -> Self {
        let mut disks = new_pool(1, &vec![Bytes::mib(8); disks]);
        let mut store = open(&mut disks).unwrap().store;
        let size = Bytes::mib(disks.len() as u64);
        store.create("film", size, &Placement::default()).unwrap();
        let (events, images) = (Vec::new(), Vec::new());
        let mut life = Self { disks, store, events, proven: true, images };
        life.write(0);
        assert!(commit(&mut life.store, &mut life.disks));
        life.store.close();
        commit(&mut life.store, &mut life.disks);
        life.keep();
        life
    }
    fn keep(&mut self) {
        self.images.push(Image { disks: self.disks.clone(), events: self.events.len() });
    }
    /// Writes the first block of each of the volume's extents.
    fn write(&mut self, content: u8) {
        let film = self.store.find("film").unwrap().id();
        for extent in 0..self.disks.len() as u64 {
            let place = self.store.locate(film, extent).unwrap();
            self.disks[place.disk.as_usize()].write(at(&place), vec![content; 4096]);
            self.store.note_written(film, extent, &Blocks::first(Bytes::kib(4)));
        }
    }
    /// Stages what the next commit is to be about.
    fn stage(&mut self, event: Event) {
        match event {
            Open => {}
            Sync => {
                let film = self.store.find("film").unwrap();
                let (id, size) = (film.id(), film.size());
                let least = Bytes::mib(self.disks.len() as u64);
                let size = if size == least { least * 2 } else { least };
                self.store.resize(id, size).unwrap();
            }
            Rewrite => self.write(self.events.len() as u8),
            Profile => {
                let text = format!("{}", self.events.len()).into_bytes();
                self.store.set_profile(DiskIndex(0), text).unwrap();
            }
        }
    }
    fn live(&mut self, event: Event) {
        self.stage(event);
        match event {
            Open => self.store = open(&mut self.disks).expect("what nobody touched opens").store,
            _ => assert!(commit(&mut self.store, &mut self.disks)),
        }
        self.events.push(event);
        let newest = |magic| newest(&self.disks[0], magic);
        self.proven = newest(b"SLKCHECK") > newest(b"SLKRECOR");
        assert!(self.proven || event != Open);
        self.keep();
    }
    /// Begins an event and stops after so many writes and flushes. True at its end.
    fn begin(&mut self, event: Event, limit: u64) -> bool {
        self.stage(event);
        if event == Open {
            let mut opening = Opening::new(&capacities(&self.disks));
            return run_until(&mut opening, &mut self.disks, limit);
        }
        self.store.commit().expect("something to commit");
        for _ in 0..limit {
            let Some(io) = self.store.poll() else { return true };
            let result = self.disks[io.disk.as_usize()].do_io(&io.kind);
            self.store.done(io.id, result);
        }
        false
    }
    fn cut(&self, how: Cut, random: &mut Random) -> Vec<Disk> {
        self.disks.iter().map(|disk| disk.cut(how, random)).collect()
    }
    /// True where a disk that saw `seen` events lacks what others prove to be durable.
    fn is_provably_behind(&self, seen: usize) -> bool {
        let missing = &self.events[seen..];
        missing.contains(&Open) || missing.len() > 1 || (missing.len() == 1 && self.proven)
    }
}

/// Which disks are put back: bit `i` is disk `i`. Never none, never all of them.
fn subsets(disks: usize) -> impl Iterator<Item = u32> {
    1..(1 << disks) - 1
}

fn replaced(now: &[Disk], by: &[Disk], which: u32) -> Vec<Disk> {
    let one = |i| if which >> i & 1 == 1 { &by[i] } else { &now[i] };
    (0..now.len()).map(|i| one(i).clone()).collect()
}

/// Opening and checking refuse `disks` for those in `which`, and write nothing.
fn assert_refused(disks: &[Disk], which: u32, behind: Option<u64>, case: &str) {
    let mut given = disks.to_vec();
    let error = open(&mut given).err().unwrap_or_else(|| panic!("{case}: it was opened"));
    let writes = |disks: &[Disk]| disks.iter().map(Disk::writes).collect::<Vec<_>>();
    assert_eq!(writes(&given), writes(disks), "{case}: nothing is written");
    let OpenError::Behind { disks: lags } = &error else { panic!("{case}: {error}") };
    let named = lags.iter().fold(0, |bits, lag| bits | 1 << lag.index.0);
    assert_eq!(named, which, "{case}: {error}");
    let report = check(disks);
    for lag in lags {
        assert!(behind.is_none_or(|behind| lag.behind == behind), "{case}: {error}");
        assert_eq!(which >> lag.ahead.0 & 1, 0, "{case}: {error}");
        let text = format!("disk {} of the pool", lag.index.0);
        assert!(error.to_string().contains(&text), "{case}: {error}");
        let mut findings = report.findings.iter();
        let finding = findings.find(|finding| finding.device == Some(lag.device));
        let finding = finding.unwrap_or_else(|| panic!("{case}: {report:?}"));
        assert!(finding.severity == Severity::Error && finding.what.contains(&text), "{case}");
    }
}

/// All sequences of `length` events.
fn sequences(kinds: &[Event], length: u32) -> Vec<Vec<Event>> {
    let all = kinds.len().pow(length);
    let digit = |n: usize, i| kinds[n / kinds.len().pow(i) % kinds.len()];
    (0..all).map(|n| (0..length).map(|i| digit(n, i)).collect()).collect()
}

/// All short lives, on two and three disks, with every set of disks put back to every
/// earlier event.
#[test]
fn disks_that_lack_an_opening_or_more_than_one_commit_are_refused_by_name() {
    let (mut refused, mut alike) = (0, 0);
    for disks in 2..=3 {
        let short = (1..=3).flat_map(|n| sequences(&[Open, Sync, Rewrite, Profile], n));
        for sequence in short.chain((4..=5).flat_map(|n| sequences(&[Open, Sync], n))) {
            let mut life = Life::new(disks);
            sequence.iter().for_each(|&event| life.live(event));
            for image in &life.images {
                for which in subsets(disks) {
                    let case = format!("{sequence:?}, disks {which:b} as of {}", image.events);
                    let mixed = replaced(&life.disks, &image.disks, which);
                    let behind = life.events.len() - image.events;
                    if life.is_provably_behind(image.events) {
                        assert_refused(&mixed, which, Some(behind as u64), &case);
                        refused += 1;
                    } else {
                        open(&mut mixed.clone()).unwrap_or_else(|e| panic!("{case}: {e}"));
                        alike += 1;
                    }
                }
                let mut all = image.disks.clone();
                assert!(open(&mut all).is_ok(), "a whole old pool cannot be told from a pool");
            }
        }
    }
    assert!(refused > 2_500 && alike > 1_000, "{refused} {alike}");
}

/// Once the pool was closed, the last commit is known to be everywhere.
#[test]
fn behind_a_closed_pool_not_even_one_commit_may_be_missing() {
    for (disks, event) in [(2, Sync), (3, Sync), (2, Rewrite), (3, Rewrite), (2, Profile)] {
        let mut life = Life::new(disks);
        let before = life.disks.clone();
        life.live(event);
        for which in subsets(disks) {
            let mixed = replaced(&life.disks, &before, which);
            assert!(open(&mut mixed.clone()).is_ok(), "as a crash leaves it");
        }
        assert!(!life.store.close() && life.store.dirty(), "an empty record is wanted");
        assert!(commit(&mut life.store, &mut life.disks));
        assert!(life.store.close() && !life.store.dirty(), "one is enough");
        for which in subsets(disks) {
            let mixed = replaced(&life.disks, &before, which);
            assert_refused(&mixed, which, Some(2), &format!("{event:?}, disks {which:b}"));
        }
    }
}

/// Disks of three different times: the newest tells, whichever it is.
#[test]
fn of_disks_of_different_times_all_but_the_newest_are_named() {
    let mut life = Life::new(3);
    [Sync, Open, Sync, Sync, Rewrite, Open, Sync].into_iter().for_each(|event| life.live(event));
    for (a, b, c) in [(0, 3, 6), (6, 0, 3), (3, 6, 0), (7, 1, 1), (1, 1, 7), (2, 7, 4)] {
        let of = [a, b, c];
        let mixed: Vec<Disk> = (0..3).map(|i| life.images[of[i]].disks[i].clone()).collect();
        let newest = *of.iter().max().unwrap();
        let which = (0..3).filter(|&i| of[i] < newest).fold(0, |bits, i| bits | 1 << i);
        assert_refused(&mixed, which, None, &format!("{of:?}"));
    }
}

/// The next event is cut at every write and flush. As it is, the pool opens; with a disk
/// put back, it is refused as before, and by one commit sooner where the other disks have
/// something of the event that was cut: they got on only because every disk had the rest.
#[test]
fn wherever_the_power_is_cut_the_crash_is_opened_and_the_older_disk_refused() {
    let mut random = Random::new(11);
    let (mut opened, mut refused) = (0, 0);
    // The log of so small a pool has room for seven records.
    let lives = [
        vec![],
        vec![Sync],
        vec![Open],
        vec![Sync, Sync],
        vec![Open, Sync],
        vec![Rewrite, Open],
        vec![Open, Sync, Sync, Sync, Rewrite, Sync],
        vec![Open, Sync, Sync, Sync, Rewrite, Sync, Sync],
        vec![Open, Sync, Sync, Sync, Sync, Profile, Sync, Rewrite],
    ];
    for disks in 1..=3 {
        for (sequence, next) in lives.iter().flat_map(|l| [Open, Sync, Rewrite].map(|e| (l, e))) {
            let mut life = Life::new(disks);
            sequence.iter().for_each(|&event| life.live(event));
            for limit in 0.. {
                let mut begun = life.clone();
                let ended = begun.begin(next, limit);
                for how in [Cut::Dropped, Cut::Applied, Cut::Any, Cut::Torn] {
                    let case = format!("{sequence:?}, then {next:?}, {how:?} at {limit}");
                    let now = begun.cut(how, &mut random);
                    open(&mut now.clone()).unwrap_or_else(|e| panic!("{case}: {e}"));
                    opened += 1;
                    for image in &life.images[..life.images.len() - 1] {
                        for which in subsets(disks) {
                            let case = format!("{case}, disks {which:b} as of {}", image.events);
                            let others = |i: &usize| which >> i & 1 == 0;
                            let got_on = (0..disks)
                                .filter(others)
                                .any(|i| begun_of(&now[i]) > begun_of(&life.disks[i]));
                            let mixed = replaced(&now, &image.disks, which);
                            if got_on || life.is_provably_behind(image.events) {
                                assert_refused(&mixed, which, None, &case);
                                refused += 1;
                            }
                        }
                    }
                }
                if ended {
                    break;
                }
            }
        }
    }
    assert!(opened > 2_000 && refused > 10_000, "{opened} {refused}");
}

/// The highest sequence number in such a header of the disk that is whole.
fn newest(disk: &Disk, magic: &[u8; 8]) -> u64 {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let headers = disk.used_blocks().filter_map(|block| {
        let mut header: [u8; 96] = disk.block(block * 4096)[..96].try_into().unwrap();
        let checksum = u32::from_le_bytes(header[12..16].try_into().unwrap());
        header[12..16].fill(0);
        let whole = header.starts_with(magic) && checksum::crc32c(&header) == checksum;
        whole.then(|| number(&header[64..72]))
    });
    headers.max().unwrap_or(0)
}

/// The number of the last event of which the disk has anything.
fn begun_of(disk: &Disk) -> u64 {
    newest(disk, b"SLKCHECK").max(newest(disk, b"SLKRECOR"))
}

/// Long random lives: openings that are cut again and again, at different points on
/// different disks, processes that die with their writes in the disks' caches. Every crash
/// is opened; every image that lacks a whole opening, or two commits, is refused.
#[test]
fn no_row_of_crashes_is_refused_and_every_older_disk_is() {
    let histories = std::env::var("SLACKLINE_HISTORIES").map_or(30, |n| n.parse().unwrap());
    let (mut cuts, mut refused) = (0, 0);
    for seed in 0..histories {
        let mut random = Random::new(seed);
        let disks = 1 + random.index(3);
        let mut life = Life::new(disks);
        for step in 0..40 {
            let event = [Open, Sync, Sync, Sync, Rewrite, Profile][random.index(6)];
            if random.once_in(2) {
                life.live(event);
            } else {
                // Cut short, and then openings are, until one comes through.
                let mut next = event;
                loop {
                    let ended = life.begin(next, random.below(2 + 9 * disks as u64));
                    let how = [Cut::Dropped, Cut::Applied, Cut::Any, Cut::Torn][random.index(4)];
                    if !random.once_in(3) {
                        life.disks = life.cut(how, &mut random); // else only the process died
                    }
                    cuts += 1;
                    let mut now = life.cut(Cut::Any, &mut random);
                    open(&mut now).unwrap_or_else(|e| panic!("{seed}, step {step}: {e}"));
                    next = Open;
                    if ended || random.once_in(4) {
                        break;
                    }
                }
                // Whether the event that was cut came through is not known: its images count
                // as those of the opening.
                life.live(Open);
            }
            let image = &life.images[random.index(life.images.len())];
            for which in subsets(disks) {
                if life.is_provably_behind(image.events) {
                    let mixed = replaced(&life.disks, &image.disks, which);
                    let case = format!("{seed}, step {step}, {which:b} as of {}", image.events);
                    assert_refused(&mixed, which, None, &case);
                    refused += 1;
                }
            }
        }
    }
    assert!(cuts > 20 * histories && refused > 20 * histories, "{cuts} {refused}");
}

/// A disk whose beginning was zeros was called a copy of an earlier time. One with a part of its metadata
/// may be one: an image that was taken while a checkpoint was being written.
#[test]
fn a_disk_that_was_written_over_is_not_told_as_an_older_copy_alone() {
    let mut life = Life::new(2);
    let mut damaged = 0;
    for event in [Sync, Open, Sync, Sync, Rewrite, Open, Sync] {
        life.live(event);
        let end = life.disks[1].capacity;
        let erased = |until: u64| {
            let mut disks = life.disks.clone();
            (0..until).step_by(4096).for_each(|at| disks[1].write(at, vec![0; 4096]));
            let error = open(&mut disks).err()?;
            let OpenError::Behind { disks } = &error else { panic!("{event:?}: {error}") };
            let text = error.to_string();
            assert!(disks.len() == 1 && disks[0].index == DiskIndex(1), "{event:?}: {text}");
            Some((disks[0].found, text))
        };
        // All but the last label.
        let (found, text) = erased(end - (64 << 10)).expect("it has nothing");
        assert_eq!(found, Found::Nothing);
        assert!(text.contains("nothing else of the pool's metadata"), "{event:?}: {text}");
        assert!(!text.contains("copy of an earlier time"), "{event:?}: {text}");
        // One area of its log is at the end: that may be enough.
        if let Some((found, text)) = erased(end / 2) {
            assert_eq!(found, Found::Damaged);
            assert!(text.contains("a part of its metadata is not whole"), "{event:?}: {text}");
            let both = "it is a copy of an earlier time, or somebody has written over a part of it";
            assert!(text.contains(both), "{event:?}: {text}");
            damaged += 1;
        }
    }
    assert!(damaged > 0);
}
