//! Each part of a drive, seen from outside by timing: cache, buffer, bus, bad
//! sectors, queue, pauses.

use crate::common;
use crate::common::Random;
use disk::raw::RawDisk;
use disk::{Bus, CommandQueue, Drive, Emulated, Flash, HardDisk, Model, Profile, Tracks};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

fn named(name: &str) -> Model {
    Model::named(name).unwrap()
}

fn transfer(direction: Direction, lba: u64, sectors: u64) -> Command {
    Command::Transfer(Access { lba: Lba::new(lba), len: SECTOR * sectors, direction })
}

fn read(lba: u64, sectors: u64) -> Command {
    transfer(Direction::Read, lba, sectors)
}

fn write(lba: u64, sectors: u64) -> Command {
    transfer(Direction::Write, lba, sectors)
}

/// A drive and its clock.
struct Bench {
    disk: HardDisk,
    now: Instant,
}

impl Bench {
    fn new(model: &Model) -> Self {
        Self { disk: HardDisk::new(model), now: Instant::EPOCH }
    }
    fn time(&mut self, command: &Command) -> Duration {
        let time = self.disk.serve(self.now, command);
        self.now += time;
        time
    }
    fn rest(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }
}

/// The Barracuda: its cache reads ahead after every read.
fn barracuda() -> Model {
    named("seagate-st318437lw")
}

const HIT: Duration = Duration::from_millis(1);

#[test]
fn the_next_block_comes_from_the_cache_and_one_far_away_from_the_platters() {
    let mut bench = Bench::new(&barracuda());
    assert!(bench.time(&read(1_000_000, 8)) > HIT);
    bench.rest(30);
    for block in 1..20 {
        let time = bench.time(&read(1_000_000 + 8 * block, 8));
        assert!(time < HIT, "block {block}: {time}");
        bench.rest(5);
    }
    assert!(bench.time(&read(20_000_000, 8)) > HIT, "a far read");
    assert!(bench.time(&read(1_000_000, 8)) < HIT, "what was sent is kept");
    let forced = bench.disk.serve_forced(bench.now, &read(1_000_008, 8));
    assert!(forced > HIT, "forced to the medium: {forced}");
}

#[test]
fn as_many_readers_as_segments_are_served_from_the_cache_and_not_one_more() {
    for (readers, all_hit) in [(8u64, true), (9, false)] {
        let mut bench = Bench::new(&barracuda());
        let mut misses = 0;
        for round in 0..4u64 {
            for reader in 0..readers {
                let time = bench.time(&read(reader * 2_000_000 + round * 8, 8));
                misses += u64::from(round > 0 && time > HIT);
                bench.rest(40);
            }
        }
        assert_eq!(misses == 0, all_hit, "{readers} readers, {misses} misses");
    }
}

#[test]
fn reading_ahead_takes_the_time_that_the_platters_take() {
    // Of 512 sectors read ahead in a track of 750, a request right after the first
    // waits for what passes under the heads; later nothing is left to wait for.
    let mut quick = Bench::new(&barracuda());
    quick.time(&read(750 * 2_000, 8));
    let waited = quick.time(&read(750 * 2_000 + 8, 400));
    let mut late = Bench::new(&barracuda());
    late.time(&read(750 * 2_000, 8));
    late.rest(20);
    let at_once = late.time(&read(750 * 2_000 + 8, 400));
    let media = Duration::from_nanos(400 * 8_333_333 / 750);
    assert!(waited + Duration::from_micros(50) > media && waited < media + HIT, "{waited}");
    assert!(at_once < Duration::from_millis(4), "the bus alone: {at_once}");
}

#[test]
fn a_buffered_write_is_quick_and_a_flush_waits_for_it() {
    let model = barracuda().with_write_back(true);
    let mut bench = Bench::new(&model);
    bench.time(&read(100, 8));
    bench.rest(50);
    assert!(bench.time(&write(20_000_000, 8)) < HIT);
    let flush = bench.time(&Command::Flush);
    assert!(flush > Duration::from_millis(4), "a seek and some of a turn: {flush}");
    assert!(bench.time(&Command::Flush) < HIT, "nothing is left to flush");
    let forced = bench.disk.serve_forced(bench.now, &write(100, 8));
    assert!(forced > HIT, "on the medium when it completes: {forced}");
    let mut through = Bench::new(&barracuda());
    assert!(through.time(&write(20_000_000, 8)) > HIT, "models start without write-back");
}

#[test]
fn a_full_buffer_makes_writes_wait_for_the_platters() {
    let model = barracuda().with_write_back(true);
    let (mut bench, mut random) = (Bench::new(&model), Random(5));
    let times: Vec<_> = (0..40).map(|_| bench.time(&write(random.below(30_000_000), 8))).collect();
    assert!(times[..7].iter().all(|&time| time < HIT), "{times:?}");
    let mean: Duration = times[20..].iter().copied().sum::<Duration>() / 20;
    // Eight at a time, the nearest first: two thirds of what they take as they come.
    assert!(mean > Duration::from_millis(6), "as fast as the arm: {mean}");
}

/// A drive that works its buffer off as the papers say: what is there goes nearest
/// first, and a read waits until all of it is on the medium.
#[test]
fn a_read_waits_for_the_buffer_which_goes_out_nearest_first() {
    let time = |nearest: bool| {
        let model = barracuda().with_write_back(true).with_write_order(nearest, true);
        let mut bench = Bench::new(&model);
        for place in [30, 5, 28, 2, 33, 8] {
            bench.time(&write(place * 1_000_000, 8));
        }
        let read = bench.time(&read(15_000_000, 8));
        assert!(bench.time(&Command::Flush) < HIT, "nothing is left");
        read
    };
    let (nearest, in_order) = (time(true), time(false));
    assert!(nearest > Duration::from_millis(40), "six writes and a read: {nearest}");
    assert!(in_order > nearest + Duration::from_millis(10), "{in_order} and {nearest}");
}

/// A write that is larger than the buffer ends when the rest would fit.
#[test]
fn a_write_that_is_too_large_ends_when_no_more_than_the_buffer_is_left() {
    let model = barracuda().with_write_back(true);
    let mut bench = Bench::new(&model);
    let whole = bench.time(&write(20_000_000, 1_000));
    let rest = bench.time(&Command::Flush);
    let sector = Duration::from_nanos(8_333_333 / 600);
    assert!(whole > sector * 1_000 - sector * 128, "{whole}");
    assert!(rest > sector * 100 && rest < sector * 128 + HIT, "128 sectors are left: {rest}");
}

/// A command that is longer than the buffer, and goes on from one before it, starts later.
#[test]
fn a_long_write_that_goes_on_from_another_starts_later() {
    let time = |sectors: u64, next_part: Duration| {
        let model = barracuda().with_write_back(true).with_next_part(next_part);
        let mut bench = Bench::new(&model);
        let first = bench.time(&write(20_000_000, sectors));
        (first, bench.time(&write(20_000_000 + sectors, sectors)))
    };
    let later = Duration::from_millis(2);
    let ((first, short), (same, long)) = (time(256, Duration::ZERO), time(256, later));
    assert_eq!(first, same, "it goes on from nothing");
    assert!(long >= short + later / 2, "{short} and {long}");
    assert_eq!(time(64, Duration::ZERO), time(64, later), "the buffer holds it");
}

/// On the Atlas-II a write of more than a track takes as long as the next larger one of whole
/// tracks (Clockwise thesis, section 4.3.5); in zone 9 the bus is in nobody's way.
#[test]
fn a_write_of_more_than_a_track_ends_with_a_whole_one() {
    let model = named("quantum-atlas-ii").without_cache();
    let zone = RawDisk::new(&model).zones().nth(9).expect("it has twelve");
    let track = zone.per_track;
    let first = zone.range.start.get() + 40 * track;
    let mut bench = Bench::new(&model);
    bench.time(&read(first, 1));
    let time = |sectors| bench.disk.clone().serve(bench.now, &write(first, sectors));
    for tracks in 2..4 {
        let whole = time(tracks * track);
        for sectors in [(tracks - 1) * track + 1, tracks * track - 50, tracks * track - 1] {
            // The edges of sectors are whole nanoseconds.
            let off = time(sectors).as_nanos().abs_diff(whole.as_nanos());
            assert!(off <= 1, "{sectors} sectors: {off} ns off");
        }
        assert!(time(tracks * track + 1) > whole, "one more begins a track");
    }
    assert!(time(track - 1) < time(track) && time(1) < time(2), "shorter ones end as they are");
}

#[test]
fn a_power_cut_loses_what_was_only_in_the_buffer() {
    let model = barracuda().with_write_back(true);
    let mut bench = Bench::new(&model);
    for block in 0..5 {
        bench.time(&write(block * 5_000_000, 8));
    }
    let lost = bench.disk.clone().lose_power(bench.now);
    assert!((3..=5).contains(&lost), "{lost}");
    bench.time(&Command::Flush);
    assert_eq!(bench.disk.lose_power(bench.now), 0, "flushed");
}

#[test]
fn bad_sectors_cost_turns_or_a_way_to_the_spare() {
    let model = named("laptop-4200");
    let turn = model.rotation();
    let time = |spoil: Option<Option<u64>>| {
        let mut disk = HardDisk::new(&model);
        if let Some(retries) = spoil {
            disk.spoil(Lba::new(500), retries);
        }
        disk.serve(Instant::EPOCH, &read(400, 200))
    };
    let good = time(None);
    assert_eq!(time(Some(Some(1))), good + turn, "one more turn");
    assert_eq!(time(Some(Some(3))), good + turn * 3);
    let remapped = time(Some(None));
    assert!(remapped > good + turn && remapped < good + turn * 8, "{remapped}");
    let mut disk = HardDisk::new(&model);
    disk.spoil(Lba::new(700), Some(1));
    assert_eq!(disk.serve(Instant::EPOCH, &read(400, 200)), good, "it was not touched");
}

#[test]
fn a_file_names_its_bad_sectors_or_scatters_them() {
    let text = include_str!("../../../models/laptop-4200.toml");
    let spoiled = format!("{text}\n[bad]\nretried = [500]\nretries = 2\nscattered_remapped = 20\n");
    let model = Model::parse(&spoiled).unwrap();
    let (mut bad, mut good) = (HardDisk::new(&model), HardDisk::new(&named("laptop-4200")));
    let (with, without) =
        [&mut bad, &mut good].map(|disk| disk.serve(Instant::EPOCH, &read(400, 200))).into();
    assert_eq!(with, without + model.rotation() * 2);
    let outside = format!("{text}\n[bad]\nretried = [99000000]\n");
    let error = Model::parse(&outside).unwrap_err().to_string();
    assert!(error.contains("bad sector 99000000 of a disk that ends at"), "{error}");
}

#[test]
fn a_queue_in_rotational_order_does_more_and_forgets_nobody() {
    let model = barracuda().without_cache();
    let patience = Duration::from_secs(1);
    let run = |depth: usize| {
        let mut queue = CommandQueue::new(&model, depth, patience);
        let (mut random, mut tag, mut seen) = (Random(9), 0u64, vec![false; 3_000]);
        let mut given = vec![Instant::EPOCH; seen.len()];
        let (mut now, mut oldest) = (Instant::EPOCH, Duration::ZERO);
        loop {
            while (tag as usize) < seen.len()
                && queue.submit(now, tag, read(random.below(35_000_000), 8)).is_ok()
            {
                given[tag as usize] = now;
                tag += 1;
            }
            let Some(next) = queue.next_completion() else { break };
            let (done, end) = queue.complete(next).expect("complete by then");
            assert!(end == next && !std::mem::replace(&mut seen[done as usize], true));
            oldest = oldest.max(end - given[done as usize]);
            now = next;
        }
        assert!(seen.iter().all(|&seen| seen));
        (now, oldest)
    };
    let ((one, _), (deep, oldest)) = (run(1), run(32));
    assert!(deep - Instant::EPOCH < (one - Instant::EPOCH) * 6 / 10, "{deep} of {one}");
    assert!(oldest < patience * 2, "somebody waited {oldest}");
}

#[test]
fn a_flush_in_a_queue_keeps_its_place() {
    for name in ["seagate-st318437lw", "ssd-nvme"] {
        let mut queue = CommandQueue::new(&named(name), 8, Duration::from_secs(1));
        queue.submit(Instant::EPOCH, 0, write(9_000_000, 8)).unwrap();
        queue.submit(Instant::EPOCH, 1, write(30_000_000, 8)).unwrap();
        queue.submit(Instant::EPOCH, 2, Command::Flush).unwrap();
        queue.submit(Instant::EPOCH, 3, read(9_000_008, 8)).unwrap();
        let mut order = Vec::new();
        while let Some(next) = queue.next_completion() {
            order.push(queue.complete(next).unwrap().0);
        }
        assert_eq!(order[2..], [2, 3], "{name}: {order:?}");
    }
}

#[test]
fn two_disks_on_one_bus_wait_for_each_other_only_to_send() {
    let model = named("seagate-cheetah").without_cache();
    let time = |shared: bool| {
        let (mut bus, mut total) = (Bus::new(), Duration::ZERO);
        let mut disks = [1, 2].map(|seed| HardDisk::new(&model.clone().with_seed(seed)));
        for disk in &mut disks {
            let begin = Instant::from_nanos(1_000_000_000);
            let mut own = Bus::new();
            let bus = if shared { &mut bus } else { &mut own };
            total = total.max(disk.serve_sharing(bus, begin, &read(0, 2_048)));
        }
        total
    };
    let (alone, together) = (time(false), time(true));
    assert!(together > alone, "{together} of {alone}");
    assert!(together < alone + Duration::from_millis(6), "{together} of {alone}");
}

/// The bus is logged by the model that the times come from: whoever looks at it sees the same
/// times, all the data of a request, and nothing before the command is decoded.
#[test]
fn what_the_bus_carries_is_seen_without_changing_a_time() {
    for (name, sector) in [("quantum-atlas-ii", 51_000), ("seagate-cheetah", 12_800)] {
        let mut seen = RawDisk::new(&named(name).without_cache());
        let (mut timed, mut random) = (seen.clone(), Random(1));
        for _ in 0..2_000 {
            let len = SECTOR * (1 + random.below(2_048));
            let lba = Lba::new(random.below(1_000_000));
            let access = Access { lba, len, direction: random.direction() };
            let pause = Duration::from_nanos(random.below(25_000_000));
            let bus = seen.on_bus(&access, pause);
            assert_eq!(bus.time, timed.time(&access, pause));
            let carried: Duration = bus.bursts.iter().map(|burst| burst.end - burst.start).sum();
            assert_eq!(carried.as_nanos(), len / SECTOR * sector, "{access:?}");
            assert!(bus.bursts.windows(2).all(|pair| pair[0].end < pair[1].start));
            let (first, last) = (&bus.bursts[0], bus.bursts.last().unwrap());
            match access.direction {
                Direction::Read => assert!(first.start > bus.decoded && last.end == bus.time),
                Direction::Write => assert!(first.start == bus.decoded && last.end <= bus.time),
            }
        }
    }
}

#[test]
fn a_read_goes_over_in_bursts_of_so_many_sectors_as_soon_as_they_come_in() {
    for (name, sector) in [("quantum-atlas-ii", 51_000), ("seagate-cheetah", 12_800)] {
        let model = named(name).without_cache();
        let mut drives =
            [0, 1, 340].map(|sectors| HardDisk::new(&model.clone().with_read_bursts(sectors)));
        let (mut now, mut random) = (Instant::EPOCH, Random(1));
        for _ in 0..2_000 {
            let sectors = 1 + random.below(4_096);
            let command = read(random.below(1_000_000), sectors);
            let mut buses = [Bus::new(), Bus::new(), Bus::new()];
            let mut times = [Duration::ZERO; 3];
            for (at, drive) in drives.iter_mut().enumerate() {
                times[at] = drive.serve_sharing(&mut buses[at], now, &command);
            }
            let [_, at_once, long] = times;
            assert!(at_once <= long, "{command:?}: one sector at a time {at_once}, 340 {long}");
            let lengths: Vec<u64> = buses[2]
                .bursts()
                .map(|burst| (burst.end - burst.start).as_nanos() / sector)
                .collect();
            let (last, whole) = lengths.split_last().unwrap();
            assert!(whole.iter().all(|&length| length == 340), "{lengths:?}");
            assert_eq!(whole.len() as u64 * 340 + last, sectors);
            now +=
                times.into_iter().max().unwrap() + Duration::from_nanos(random.below(25_000_000));
        }
    }
}

#[test]
fn flash_pauses_once_for_each_so_much_written_and_keeps_its_curve() {
    let model = named("ssd-sata");
    let (profile, mut flash) = (Profile::of(&model), Flash::new(&model));
    let (mut now, mut pauses, mut written) = (Instant::EPOCH, 0, Bytes::ZERO);
    let command = write(0, 2_048);
    for _ in 0..4_096 {
        let time = flash.serve(now, &command);
        assert!(time <= profile.bound(Lba::new(0), &command) + profile.latency());
        pauses += u32::from(time > Duration::from_millis(10));
        written += Bytes::MIB;
        now += time;
    }
    assert_eq!(pauses, 16, "4 GiB at one pause for each 256 MiB");
    let sustained = profile.bound(Lba::new(0), &command) * 4_096;
    assert!(now - Instant::EPOCH <= sustained + profile.latency() * 4_096);
}

#[test]
fn a_deep_queue_of_flash_reaches_its_published_rate() {
    let (model, reads) = (named("ssd-nvme"), 100_000u64);
    let mut queue = CommandQueue::new(&model, 256, Duration::from_secs(1));
    let (mut random, mut given, mut done) = (Random(1), 0, 0);
    let mut now = Instant::EPOCH;
    while done < reads {
        while given < reads && queue.submit(now, given, read(random.below(1 << 30), 8)).is_ok() {
            given += 1;
        }
        now = queue.next_completion().unwrap();
        queue.complete(now).unwrap();
        done += 1;
    }
    let rate = reads * 1_000_000_000 / now.as_nanos();
    assert!((950_000..1_050_000).contains(&rate), "{rate} reads a second of 4 KB");
}

#[test]
fn every_address_lies_on_one_track_and_tracks_follow_each_other() {
    for name in Model::names().filter(|name| named(name).is_hard_disk()) {
        let model = named(name);
        let tracks = Tracks::of(&model).unwrap();
        let (end, mut random) = (model.capacity() / SECTOR, Random(3));
        for _ in 0..20_000 {
            let lba = random.below(end);
            let track = tracks.track(Lba::new(lba));
            assert!(track.contains(&Lba::new(lba)), "{name}: {lba} in {track:?}");
            if track.end.get() < end {
                assert_eq!(tracks.track(track.end).start, track.end, "{name}: after {track:?}");
            }
        }
    }
    assert!(Tracks::of(&named("ssd-sata")).is_err());
}

#[test]
fn every_model_serves_all_of_itself_scaled_or_not_and_repeats_to_the_nanosecond() {
    for name in Model::names() {
        let full = named(name);
        let small = full.scaled(Bytes::GIB * 3).unwrap();
        assert!(small.capacity() <= Bytes::GIB * 3 && small.capacity() > Bytes::GIB * 2, "{name}");
        for model in [full, small] {
            let run = || {
                let (mut drive, mut random) = (Emulated::new(&model), Random(2));
                let (end, mut now) = (model.capacity() / SECTOR, Instant::EPOCH);
                for _ in 0..2_000 {
                    let sectors = 1 + random.below(2_048);
                    let lba = random.below(end - sectors + 1);
                    let way = if random.below(2) == 0 { Direction::Read } else { Direction::Write };
                    now += drive.serve(now, &transfer(way, lba, sectors));
                }
                now + drive.serve(now, &read(end - 1, 1))
            };
            assert_eq!(run(), run(), "{name}");
        }
    }
}

#[test]
fn the_published_capacities_are_met() {
    let sizes = [
        ("quantum-atlas-ii", "4.2GB", "4.6GB"),
        ("seagate-cheetah", "4.5GB", "4.56GB"),
        ("atlas-iii", "9.1GB", "9.12GB"),
        ("seagate-st318437lw", "18.3GB", "18.5GB"),
        ("wd400bb", "40GB", "40.1GB"),
        ("hitachi-travelstar", "40GB", "40.1GB"),
        ("hdd-7200-20tb", "20TB", "20.1TB"),
        ("ssd-sata", "1TB", "1.1TB"),
    ];
    for (name, least, most) in sizes {
        let capacity = named(name).capacity();
        let (least, most): (Bytes, Bytes) = (least.parse().unwrap(), most.parse().unwrap());
        assert!((least..most).contains(&capacity), "{name}: {capacity:?}");
    }
}

/// Rates that are printed or published for long transfers at both ends of a disk.
#[test]
fn long_transfers_run_at_the_published_rates() {
    let rates =
        [("seagate-st318437lw", "41.7MB/s", "24.3MB/s"), ("hdd-7200-20tb", "285MB/s", "132MB/s")];
    for (name, outer, inner) in rates {
        let model = named(name).without_cache();
        let last = model.capacity() / SECTOR - (32 << 11);
        for (lba, rate) in [(0, outer), (last, inner)] {
            let mut bench = Bench::new(&model);
            bench.time(&read(lba, 1));
            let time = bench.time(&read(lba, 32 << 11));
            let rate: units::Rate = rate.parse().unwrap();
            let found = units::Rate::of(Bytes::mib(32), time - model.rotation() / 2);
            let off = found.get() as f64 / rate.get() as f64 - 1.0;
            assert!(off.abs() < 0.03, "{name}: {found} of {rate}");
        }
    }
}

#[test]
fn the_document_lists_every_model_with_its_source() {
    let mut table = String::from(
        "| model | holds | turns | where its numbers come from |\n|---|---|---|---|\n",
    );
    for name in Model::names() {
        let model = named(name);
        let turns = match model.rotation().as_nanos() {
            0 => "-".to_string(),
            ns => format!("{} a minute", (60_000_000_000 + ns / 2) / ns),
        };
        let size = model.capacity().get() as f64 / 1e9;
        table += &format!("| {name} | {size:.1} GB | {turns} | {} |\n", model.source());
        assert!(!model.source().is_empty());
    }
    common::hold_document("models", &table);
}

/// What the papers print of the ST318437LW: about 10 ms on average over all pairs of
/// places, about 20 ms at most, a variation of a millisecond.
#[test]
fn the_barracuda_seeks_as_printed() {
    let model = barracuda();
    let (last, mut random, mut total) = (model.cylinders() - 1, Random(4), Duration::ZERO);
    for _ in 0..100_000 {
        let (from, to) = (random.below(last + 1), random.below(last + 1));
        total += if from == to { Duration::ZERO } else { model.seek(from.abs_diff(to))[1] };
    }
    let overhead = Duration::from_micros(400);
    let mean = total / 100_000 + overhead;
    assert!(mean > Duration::from_micros(9_500) && mean < Duration::from_micros(10_500), "{mean}");
    let [least, mean, most] = model.seek(last);
    assert!(mean + overhead > Duration::from_micros(19_500), "{mean}");
    assert!(mean + overhead < Duration::from_micros(20_500), "{mean}");
    assert_eq!(most - least, Duration::from_millis(1));
}

/// The same commands on a drive in trouble and on one that is well.
#[test]
fn a_drive_in_trouble_stands_still_is_slow_in_places_and_forgets_what_it_was_told() {
    let second = Instant::from_nanos(1_000_000_000);
    for name in ["seagate-st318437lw", "ssd-nvme"] {
        let queue = || CommandQueue::new(&named(name), 4, Duration::from_secs(9));
        let end = |queue: &mut CommandQueue, command| {
            queue.submit(second, 7, command).unwrap();
            queue.next().expect("it is under way")
        };
        let (_, good) = end(&mut queue(), read(1_000, 8));

        let mut slow = queue();
        slow.slow(Lba::new(900)..Lba::new(1_001), 3);
        slow.slow(Lba::new(1_008)..Lba::new(2_000), 99);
        assert_eq!(end(&mut slow, read(1_000, 8)).1 - second, (good - second) * 3, "{name}");
        let mut healed = slow.clone();
        healed = {
            healed.slow_nowhere();
            healed
        };
        assert_eq!(healed.next(), slow.next(), "{name}: what is under way stays slow");

        let mut stalled = queue();
        end(&mut stalled, read(1_000, 8));
        let span = Duration::from_millis(300);
        stalled.stall(second, span);
        assert_eq!(stalled.next(), Some((7, good + span)), "{name}: under way");
        let mut idle = queue();
        idle.stall(second, span);
        assert!(end(&mut idle, read(1_000, 8)).1 > second + span, "{name}: not begun before");

        let mut dark = queue();
        end(&mut dark, read(1_000, 8));
        assert_eq!(dark.lose_power(second, span).collect::<Vec<_>>(), [7], "{name}");
        assert!(dark.is_empty() && dark.next().is_none(), "{name}");
        assert!(end(&mut dark, read(1_000, 8)).1 > second + span, "{name}: after the power");
    }
}

/// A forced write in a queue is on the platters when it ends; another is in the buffer.
#[test]
fn a_forced_command_in_a_queue_goes_past_the_buffer() {
    let model = barracuda().with_write_back(true);
    let time = |forced: bool| {
        let mut queue = CommandQueue::new(&model, 4, Duration::from_secs(1));
        match forced {
            true => queue.submit_forced(Instant::EPOCH, 1, write(9_000_000, 8)).unwrap(),
            false => queue.submit(Instant::EPOCH, 1, write(9_000_000, 8)).unwrap(),
        }
        queue.next_completion().unwrap() - Instant::EPOCH
    };
    assert!(time(false) < Duration::from_millis(1), "{}", time(false));
    assert!(time(true) > Duration::from_millis(4), "{}", time(true));
}
