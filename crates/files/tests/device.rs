//! Files under contract on a device that others use, in virtual time: nobody is late while
//! reads keep within the profile and others within what they are allowed; what goes beyond
//! is counted, and ridden out where windows were made for it.

use disk::{Model, Profile};
use files::{Device, FileMap, MapError, Next, Options, Output, Piece, Reply};
use node::{Contract, DiskIndex, Error, StreamId};
use std::collections::BTreeMap;
use units::{Bytes, Duration, Instant, Lba, Rate};

const MIB: Bytes = Bytes::MIB;

fn gib(n: u64) -> Bytes {
    Bytes::GIB * n
}

const OTHERS: Duration = Duration::from_millis(40);

fn profile() -> Profile {
    Profile::of(&Model::named("seagate-st318437lw").unwrap())
}

fn options() -> Options {
    Options {
        share_ppm: 900_000,
        others: OTHERS,
        host_latency: Duration::ZERO,
        gap: Duration::ZERO,
        ride_out: Duration::ZERO,
        memory: Bytes::mib(256),
    }
}

fn device(options: Options) -> Device {
    Device::new(DiskIndex(7), profile(), options)
}

/// A file of `mib` MiB in runs of `run` bytes, scattered from `place` on.
fn map(mib: u64, run: Bytes, place: Bytes) -> FileMap {
    let length = Bytes::mib(mib);
    let piece = |number: u64| Piece {
        at: run * number,
        len: run.min(length - run * number),
        lba: Lba::containing(place + (run + Bytes::kib(64)) * ((number * 37) % 101)),
    };
    let pieces = (0..length.div_ceil(run)).map(piece).collect();
    FileMap::new(pieces, length, profile().capacity()).unwrap()
}

fn contract(rate: u64, block: Bytes) -> Contract {
    Contract { rate: Rate::per_second(rate), block, burst: Bytes::ZERO }
}

/// Numbers without a pattern (SplitMix64).
struct Random(u64);
impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// A program that reads one file, as fast as it is let.
struct Program {
    position: Bytes,
    ended: Option<Instant>,
    gaps: Bytes,
    first: Option<Instant>,
}

struct World {
    device: Device,
    now: Instant,
    random: Random,
    /// How long a read may take, in percent of the profile's bound.
    percent: u64,
    /// Others have the device for so long before a read; at random up to that.
    others: Duration,
    /// The host takes so long from the end of a read until it asks for the next.
    gap: Duration,
    /// Nothing is served in this time.
    pause: Option<(Instant, Instant)>,
    programs: BTreeMap<u64, Program>,
    /// The file of each stream as it is: how long, and where it fails.
    truth: BTreeMap<u64, (Bytes, Option<u64>)>,
    costs: BTreeMap<u64, Duration>,
    /// The read that the device has: when it is done, its key and its end.
    flight: Option<(Instant, u64, Result<Bytes, i32>)>,
}

impl World {
    fn new(options: Options, seed: u64) -> Self {
        Self {
            device: device(options),
            now: Instant::EPOCH + Duration::from_secs(1),
            random: Random(seed),
            percent: 100,
            others: Duration::ZERO,
            gap: Duration::ZERO,
            pause: None,
            programs: BTreeMap::new(),
            truth: BTreeMap::new(),
            costs: BTreeMap::new(),
            flight: None,
        }
    }

    fn open(&mut self, id: u64, contract: Contract, map: FileMap) -> Result<Bytes, Error> {
        let (length, cost) = (map.length(), map.worst(&profile(), contract.block));
        let opened =
            self.device.open(self.now, StreamId(id), "f".into(), &contract, Bytes::ZERO, map)?;
        let position = Bytes::ZERO;
        let program = Program { position, ended: None, gaps: Bytes::ZERO, first: None };
        self.programs.insert(id, program);
        self.truth.insert(id, (length, None));
        self.costs.insert(id, cost);
        self.device.read(self.now, StreamId(id), id, Bytes::kib(60));
        Ok(opened)
    }

    fn hear(&mut self) -> bool {
        let mut heard = false;
        while let Some(Output { ticket, result }) = self.device.poll_output() {
            heard = true;
            let id = StreamId(ticket);
            let program = self.programs.get_mut(&ticket).unwrap();
            if result == Err(Error::NoSuchStream { stream: id }) {
                continue; // it was closed
            }
            match result.unwrap() {
                Reply::Data { offset, len, block } => {
                    assert_eq!(offset, program.position, "what comes next");
                    assert!(self.device.window_start(id).unwrap() <= block);
                    program.first.get_or_insert(self.now);
                    program.position += len;
                    self.device.advance(self.now, id, len).unwrap();
                }
                Reply::Gap { offset, len } => {
                    assert_eq!(offset, program.position);
                    program.position += len;
                    program.gaps += len;
                }
                Reply::End => {
                    program.ended = Some(self.now);
                    continue;
                }
            }
            self.device.read(self.now, id, ticket, Bytes::kib(60));
        }
        heard
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.hear();
            if let Some((_, key, result)) = self.flight.take_if(|flight| flight.0 <= self.now) {
                self.device.finished(self.now, key, result);
                self.now += self.gap;
                continue;
            }
            match self.device.next(self.now) {
                Next::Wait { .. } if self.hear() => {} // its timers had something to say
                Next::Wait { until } => {
                    let done = self.flight.map(|flight| flight.0);
                    let until = until.into_iter().chain(done).chain([end]).min().unwrap();
                    assert!(until > self.now, "waits for what is past");
                    self.now = until;
                }
                Next::Read { key, stream, offset, len, block } => {
                    let (length, bad) = self.truth[&stream.0];
                    let got = length.saturating_sub(offset).min(len);
                    let result = if bad == Some(block) { Err(5) } else { Ok(got) };
                    self.flight = Some((self.served(stream), key, result));
                }
            }
        }
    }

    /// When a read that begins now is done.
    fn served(&mut self, stream: StreamId) -> Instant {
        let cost = self.costs[&stream.0];
        let mut done = self.now + (cost * (1 + self.random.below(self.percent)) / 100).min(cost);
        if !self.others.is_zero() {
            done += Duration::from_nanos(self.random.below(self.others.as_nanos()));
        }
        if let Some((_, to)) = self.pause.take_if(|(from, _)| self.now >= *from) {
            done = done.max(to);
        }
        done
    }

    fn underruns(&self) -> u64 {
        self.device.status().iter().map(|stream| stream.account.underruns).sum()
    }
}

/// Streams of every kind, as many as are admitted; each read as slow as the profile lets
/// it be, or quicker. Others take their part before some of them, as far as admission has
/// left it: once in a while, which is what the reserve is for.
#[test]
fn nobody_who_was_admitted_is_late_while_the_device_does_as_its_profile_says() {
    let mut admitted_in_all = 0;
    for seed in 0..40 {
        let mut world = World::new(options(), seed);
        world.percent = if seed % 2 == 0 { 1_000 } else { 100 };
        for id in 1..12 {
            let block = Bytes::kib(64) * (1 << world.random.below(5));
            let rate = 200_000 + world.random.below(3_000_000);
            let run = if world.random.below(3) == 0 { Bytes::kib(512) } else { Bytes::mib(8) };
            let file = map(200, run, gib(world.random.below(15)));
            match world.open(id, contract(rate, block), file) {
                Ok(_) => admitted_in_all += 1,
                Err(Error::Refused(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
            world.run(Duration::from_millis(200));
        }
        world.run(Duration::from_secs(20));
        let account = world.device.account();
        assert_eq!((account.late_requests, world.underruns()), (0, 0), "seed {seed}: {account:?}");
        assert_eq!(account.overruns, 0);
        assert!(account.real_time.requests > 50, "{account:?}");
    }
    assert!(admitted_in_all > 120, "{admitted_in_all}");
}

/// The device is another's for 1.5 s: without windows made for it, programs see it; with
/// two seconds' worth, they do not. Both times it is counted.
#[test]
fn what_others_do_beyond_their_part_is_counted_and_ridden_out() {
    for (ride_out, seen) in [(Duration::ZERO, true), (Duration::from_secs(2), false)] {
        let mut world = World::new(Options { ride_out, ..options() }, 3);
        for id in 1..4 {
            let file = map(64, Bytes::mib(8), gib(id));
            world.open(id, contract(1_000_000, Bytes::kib(256)), file).unwrap();
        }
        world.run(Duration::from_secs(5));
        assert_eq!((world.underruns(), world.device.account().overruns), (0, 0));
        world.pause = Some((world.now, world.now + Duration::from_millis(1_500)));
        world.run(Duration::from_secs(10));
        let account = world.device.account();
        assert_eq!(account.overruns, 1, "{account:?}");
        assert!(account.overrun_max > Duration::from_millis(600), "{account:?}");
        assert_eq!(account.late_requests > 0, seen, "{account:?}");
        assert_eq!(world.underruns() > 0, seen, "{} with {ride_out}", world.underruns());
    }
}

/// What has waited for as long as the window lasts is a declared gap, also where its read is
/// with the device for ever; when the device is back, so is the file.
#[test]
fn a_device_that_hangs_holds_nobody_for_ever() {
    let mut world = World::new(options(), 3);
    let file = map(64, Bytes::mib(8), gib(1));
    world.open(1, contract(1_000_000, Bytes::kib(256)), file).unwrap();
    world.run(Duration::from_secs(5));
    let window = world.device.status()[0].window;
    world.pause = Some((world.now, world.now + Duration::from_secs(30)));
    // What is in the window is played, then as much time goes by.
    let patience = Rate::per_second(1_000_000).time_for(window) * 2 + Duration::from_millis(100);
    world.run(patience);
    assert_eq!(world.programs[&1].gaps, Bytes::kib(256));
    world.run(Duration::from_secs(60) - patience);
    let gaps = world.programs[&1].gaps;
    assert!(gaps > Bytes::mib(2) && gaps < Bytes::mib(32), "{gaps}");
    world.run(Duration::from_secs(20));
    assert_eq!(world.programs[&1].gaps, gaps, "the device is back");
}

/// What comes of a read that was given up is nobody's: not the end of the file, if that has
/// grown meanwhile, and not a block to be kept.
#[test]
fn a_read_that_was_given_up_says_nothing_any_more() {
    let mut world = World::new(options(), 3);
    let length = Bytes::kib(1_700);
    let pieces = vec![Piece { at: Bytes::ZERO, len: length, lba: Lba::containing(gib(1)) }];
    let short = FileMap::new(pieces, length, profile().capacity()).unwrap();
    world.open(1, contract(1_000_000, Bytes::kib(256)), short).unwrap();
    let last = Bytes::kib(1_700 - 6 * 256);
    // The last block, which is not whole, hangs.
    let mut hangs = None;
    for _ in 0..300 {
        if let Next::Read { key, block, .. } = world.device.next(world.now) {
            match block {
                6 => {
                    assert!(world.device.is_wanted(key));
                    hangs = Some(key);
                }
                _ => world.device.finished(world.now, key, Ok(Bytes::kib(256))),
            }
        }
        while world.hear() {}
        world.now += Duration::from_millis(100);
    }
    let key = hangs.expect("the last block is read");
    assert_eq!(world.programs[&1].gaps, last);
    assert!(!world.device.is_wanted(key));
    world.device.grown(world.now, StreamId(1), map(4, Bytes::mib(4), gib(1)));
    world.device.finished(world.now, key, Ok(last));
    let (_, length) = world.device.place(StreamId(1)).unwrap();
    assert_eq!(length, Bytes::mib(4), "it was not cut");
}

/// A program that takes all it may is given a faster contract, and a larger burst, when the
/// window can follow: until then it goes at the old rate.
#[test]
fn a_faster_contract_is_granted_when_the_window_can_follow() {
    for (rate, burst) in [(250_000, Bytes::mib(8)), (2_000_000, Bytes::ZERO), (2_000_000, MIB)] {
        let mut world = World::new(options(), 3);
        world.percent = 1_000;
        let block = Bytes::kib(256);
        world.open(1, contract(250_000, block), map(64, Bytes::mib(8), gib(1))).unwrap();
        world.run(Duration::from_millis(9_500));
        let more = Contract { burst, ..contract(rate, block) };
        let before = world.programs[&1].position;
        world.device.change(world.now, StreamId(1), &more).unwrap();
        world.run(Duration::from_millis(500));
        let moved = world.programs[&1].position - before;
        assert!(moved < Bytes::new(250_000), "{moved} in half a second, at {rate} with {burst}");
        world.run(Duration::from_secs(20));
        assert_eq!(world.underruns(), 0, "at {rate} with {burst}");
        let position = world.programs[&1].position;
        assert!(position > Rate::per_second(rate).bytes_in(Duration::from_secs(15)), "{position}");
    }
}

#[test]
fn a_program_gets_its_rate_and_no_more_than_its_burst_beyond_it() {
    let mut world = World::new(options(), 4);
    let file = map(64, Bytes::mib(8), gib(2));
    world.open(1, contract(1_000_000, Bytes::kib(256)), file).unwrap();
    world.run(Duration::from_secs(22));
    let program = &world.programs[&1];
    let time = world.now - program.first.unwrap();
    let most = Rate::per_second(1_000_000).bytes_in(time) + Bytes::kib(256);
    assert!(program.position <= most, "{} in {time}", program.position);
    assert!(program.position + Bytes::kib(600) > most, "{} in {time}", program.position);
}

/// A file that ends within a block, has holes, fails in one block, is cut while it is
/// read, and grows.
#[test]
fn the_end_of_a_file_holes_and_errors_are_told() {
    let mut world = World::new(options(), 5);
    let rate = contract(300_000, Bytes::kib(64));
    let odd = Bytes::new(3 * 65_536 + 1_234);
    let pieces = vec![
        Piece { at: Bytes::ZERO, len: Bytes::kib(4), lba: Lba::new(8_000) },
        Piece { at: Bytes::kib(192), len: Bytes::kib(4), lba: Lba::new(80_000) },
    ];
    let holes = FileMap::new(pieces, odd, profile().capacity()).unwrap();
    world.open(1, rate, holes).unwrap();
    world.open(2, rate, map(2, Bytes::mib(1), gib(1))).unwrap();
    world.truth.insert(2, (Bytes::mib(2), Some(3)));
    world.open(3, rate, map(8, Bytes::mib(1), gib(1))).unwrap();
    world.truth.insert(3, (Bytes::kib(1000), None));
    world.run(Duration::from_secs(10));
    assert_eq!(world.programs[&1].position, odd);
    assert_eq!(world.programs[&2].position, Bytes::mib(2));
    assert_eq!(world.programs[&2].gaps, Bytes::kib(64));
    assert_eq!(world.programs[&3].position, Bytes::kib(1000), "it was cut");
    assert!(world.programs.values().all(|program| program.ended.is_some()));
    // It grows: the last block is read again, for what it has more.
    world.truth.insert(3, (Bytes::mib(3), None));
    world.device.grown(world.now, StreamId(3), map(3, Bytes::mib(1), gib(1)));
    world.device.read(world.now, StreamId(3), 3, Bytes::kib(60));
    world.run(Duration::from_secs(10));
    assert_eq!(world.programs[&3].position, Bytes::mib(3));
    world.device.close(world.now, StreamId(3)).unwrap();
    assert!(matches!(world.device.close(world.now, StreamId(3)), Err(Error::NoSuchStream { .. })));
}

#[test]
fn a_refusal_names_a_rate_that_fits_and_changes_nothing() {
    let mut world = World::new(Options { share_ppm: 500_000, ..options() }, 6);
    let block = Bytes::kib(512);
    let file = || map(64, Bytes::mib(8), gib(3));
    world.open(1, contract(2_000_000, block), file()).unwrap();
    let error = world.open(2, contract(60_000_000, block), file()).unwrap_err();
    let Error::Refused(refusal) = error else { panic!("{error:?}") };
    assert_eq!(refusal.disk, DiskIndex(7));
    let most = refusal.rate_max.get();
    assert!(most > 1_000_000, "{most}");
    let above = world.open(2, contract(most + most / 50, block), file());
    assert!(matches!(above, Err(Error::Refused(_))), "{above:?}");
    world.open(2, contract(most, block), file()).unwrap();
    assert!(world.device.utilisation_ppm() <= 500_000);
    // Nothing is left, not for a change either; less is.
    let before = world.device.utilisation_ppm();
    let more = world.device.change(world.now, StreamId(1), &contract(3_000_000, block));
    assert!(matches!(more, Err(Error::Refused(_))), "{more:?}");
    assert_eq!(world.device.utilisation_ppm(), before);
    world.device.change(world.now, StreamId(1), &contract(1_000_000, block)).unwrap();
    assert!(world.device.utilisation_ppm() < before);
    world.run(Duration::from_secs(20));
    assert_eq!((world.device.account().late_requests, world.underruns()), (0, 0));
}

#[test]
fn windows_have_a_bound_and_a_file_in_pieces_costs_more() {
    let small = Options { memory: Bytes::mib(1), ..options() };
    let mut world = World::new(small, 7);
    let file = map(64, Bytes::mib(8), gib(3));
    let error = world.open(1, contract(1_000_000, Bytes::mib(1)), file).unwrap_err();
    assert!(matches!(error, Error::NoMemory { .. }), "{error:?}");
    let whole = map(64, Bytes::mib(8), gib(3)).worst(&profile(), Bytes::mib(1));
    let pieces = map(64, Bytes::kib(128), gib(3)).worst(&profile(), Bytes::mib(1));
    assert!(pieces > whole * 4, "{pieces} and {whole}");
}

/// As many films as are admitted, each read at its worst, on a host that takes 3 ms after each.
fn full(gap: Duration) -> World {
    let options = Options { gap, others: Duration::ZERO, share_ppm: 1_000_000, ..options() };
    let mut world = World::new(options, 8);
    (world.percent, world.gap) = (1_000_000, Duration::from_millis(3));
    for id in 1.. {
        let file = map(2_000, Bytes::mib(8), gib(1));
        match world.open(id, contract(100_000, Bytes::kib(64)), file) {
            Ok(_) => {}
            Err(Error::Refused(_)) => {
                // The first one has what is left.
                let more = |rate| contract(rate, Bytes::kib(64));
                let refused = world.device.change(world.now, StreamId(1), &more(9_000_000));
                let Err(Error::Refused(refusal)) = refused else { panic!("{refused:?}") };
                let all = more(refusal.rate_max.get());
                world.device.change(world.now, StreamId(1), &all).unwrap();
                return world;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    unreachable!("no device takes all")
}

#[test]
fn contracts_are_kept_on_a_host_with_gaps_that_are_charged_and_broken_where_they_are_not() {
    let mut uncharged = full(Duration::ZERO);
    uncharged.run(Duration::from_secs(10));
    assert!(uncharged.device.account().late_requests > 10, "{:?}", uncharged.device.account());
    let mut charged = full(Duration::from_millis(3));
    assert!(charged.device.streams() < uncharged.device.streams());
    charged.run(Duration::from_secs(60));
    let account = charged.device.account();
    assert_eq!((account.late_requests, charged.underruns()), (0, 0), "{account:?}");
    assert!(account.real_time.requests > 1_000, "{account:?}");
}

#[test]
fn a_gap_that_is_measured_is_charged_once_those_have_gone_who_do_not_fit_with_it() {
    let mut world = full(Duration::ZERO);
    world.run(Duration::from_secs(60));
    let (gap, refused) = world.device.gaps();
    assert_eq!(gap.stated, Duration::ZERO);
    assert!(
        (Duration::from_millis(3)..Duration::from_millis(4)).contains(&gap.quantile),
        "{gap:?}"
    );
    let Some(Error::GapRefused { disk: DiskIndex(7), streams, .. }) = refused else {
        panic!("{refused:?}")
    };
    let last = world.device.streams() as u64;
    assert_eq!(streams.last(), Some(&StreamId(last)), "the last to come do not fit");
    for stream in streams.clone() {
        world.device.close(world.now, stream).unwrap();
    }
    // What came too late until then is in the way until it is served.
    world.run(Duration::from_secs(120));
    let (gap, refused) = world.device.gaps();
    assert!(gap.stated >= gap.quantile && refused.is_none(), "{gap:?} {refused:?}");
    let late = world.device.account().late_requests;
    world.run(Duration::from_secs(60));
    assert_eq!(world.device.account().late_requests, late);
}

/// The host is bad for a while, and then no program reads any more: no end of a read says that it
/// is calm again.
#[test]
fn a_gap_that_nothing_confirms_on_an_idle_device_is_forgotten() {
    let mut world = full(Duration::ZERO);
    world.run(Duration::from_secs(60));
    assert!(world.device.gaps().1.is_some(), "{:?}", world.device.gaps());
    let bad = world.now;
    loop {
        match world.device.next(world.now) {
            Next::Read { key, len, .. } => world.device.finished(world.now, key, Ok(len)),
            Next::Wait { until: None } => break,
            Next::Wait { until: Some(at) } => {
                assert!(at > world.now, "waits for what is past");
                world.now = at;
            }
        }
    }
    let (gap, refused) = world.device.gaps();
    assert!(refused.is_none(), "{refused:?}");
    assert_eq!((gap.stated, gap.sample), (Duration::ZERO, 0));
    assert!(world.now - bad <= Duration::from_secs(1_200), "{}", world.now - bad);
}

/// Deadlines are as much earlier as answers take to their programs, or those are named with whom
/// that does not fit.
#[test]
fn what_answers_take_to_their_programs_is_counted_where_all_fit_with_it() {
    let mut world = full(Duration::from_millis(3));
    let takes = Duration::from_millis(8);
    world.device.set_delivery(world.now, takes);
    let (counted, refused) = world.device.delivery();
    let Some(Error::DeliveryRefused { streams, takes: asked, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((counted, *asked), (Duration::ZERO, takes));
    assert!(!streams.is_empty());
    for stream in streams.clone() {
        world.device.close(world.now, stream).unwrap();
    }
    world.run(Duration::from_secs(2));
    assert_eq!(world.device.delivery(), (takes, None));
    world.run(Duration::from_secs(30));
    let account = world.device.account();
    assert_eq!((account.late_requests, world.underruns()), (0, 0), "{account:?}");
    // Less is counted at once; more than makes sense never.
    world.device.set_delivery(world.now, Duration::ZERO);
    assert_eq!(world.device.delivery(), (Duration::ZERO, None));
    world.device.set_delivery(world.now, Duration::from_secs(1));
    assert!(world.device.delivery().0 <= Duration::from_millis(10));
}

/// Each time all contracts are admitted anew, under the lock that answers need: who closes many
/// does not buy as many of these.
#[test]
fn what_did_not_fit_is_tried_again_once_a_second_however_many_close() {
    let mut world = full(Duration::from_millis(3));
    let (takes, last) = (Duration::from_millis(8), world.device.streams() as u64);
    world.device.set_delivery(world.now, takes);
    assert!(world.device.delivery().1.is_some());
    world.device.close(world.now, StreamId(last)).unwrap();
    assert_eq!(world.device.delivery(), (takes, None), "at once");
    world.device.set_delivery(world.now, Duration::ZERO);
    let file = map(2_000, Bytes::mib(8), gib(1));
    world.open(last, contract(100_000, Bytes::kib(64)), file).unwrap();
    world.device.set_delivery(world.now, takes);
    world.device.close(world.now, StreamId(last)).unwrap();
    assert!(world.device.delivery().1.is_some(), "tried a moment ago");
    world.run(Duration::from_secs(2));
    assert_eq!(world.device.delivery(), (takes, None));
}

/// What was measured is what the host takes: nobody new is promised what it does not leave, though
/// those who are promised more already go on.
#[test]
fn while_a_delivery_does_not_fit_no_contract_is_given_that_does_not_fit_with_it() {
    let mut world = full(Duration::from_millis(3));
    let (last, takes) = (StreamId(world.device.streams() as u64), Duration::from_millis(8));
    let at = |rate| contract(rate, Bytes::kib(64));
    let is_refused =
        |result: Result<Bytes, Error>| matches!(result, Err(Error::DeliveryRefused { .. }));
    world.device.set_delivery(world.now, takes);
    world.device.change(world.now, last, &at(1_000)).expect("less is granted");
    assert!(is_refused(world.device.change(world.now, last, &at(100_000))));
    world.device.set_delivery(world.now, Duration::ZERO);
    world.device.change(world.now, last, &at(100_000)).unwrap();

    // It is tried at once when the first one has closed, and not when the second one has.
    let file = map(2_000, Bytes::mib(8), gib(1));
    world.device.set_delivery(world.now, takes);
    world.device.close(world.now, last).unwrap();
    world.device.set_delivery(world.now, Duration::ZERO);
    world.open(last.0, at(100_000), file.clone()).unwrap();
    world.device.set_delivery(world.now, takes);
    world.device.close(world.now, last).unwrap();
    assert!(is_refused(world.open(last.0, at(100_000), file.clone())));
    world.device.set_delivery(world.now, Duration::ZERO);
    world.open(last.0, at(100_000), file).unwrap();
}

#[test]
fn pieces_that_are_no_file_of_the_device_are_refused() {
    let piece = |at, lba| Piece { at: Bytes::kib(at), len: Bytes::kib(8), lba: Lba::new(lba) };
    let capacity = profile().capacity();
    let new = |pieces| FileMap::new(pieces, Bytes::mib(1), capacity);
    assert_eq!(new(vec![piece(0, 0), piece(4, 90)]), Err(MapError::Overlap(Bytes::kib(4))));
    let beyond = new(vec![piece(0, 1 << 40)]);
    assert!(matches!(beyond, Err(MapError::Beyond { .. })), "{beyond:?}");
    let long = new(vec![piece(0, u64::MAX >> 12)]);
    assert!(matches!(long, Err(MapError::TooLong(_))), "{long:?}");
    // Neighbours on both sides are one run.
    assert_eq!(new(vec![piece(8, 16), piece(0, 0)]).unwrap().runs(), 1);
}
