//! The laptop disk does what its data sheet says, at full size and scaled down.

use disk::{Drive, HardDisk, Model};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, Rate, SECTOR};

fn laptop() -> Model {
    Model::named("laptop-4200").unwrap()
}

fn read(lba: u64, len: Bytes) -> Command {
    Command::Transfer(Access { lba: Lba::new(lba), len, direction: Direction::Read })
}

/// The mean time of many reads of one sector at random places, less the mean
/// wait of half a turn, the overhead and the sector itself.
fn mean_seek(model: &Model) -> Duration {
    let (mut drive, mut now, mut random) = (HardDisk::new(model), Instant::EPOCH, 1u64);
    let sectors = model.capacity() / SECTOR;
    let count = 20_000;
    for _ in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        now += drive.serve(now, &read((random >> 20) % sectors, SECTOR));
    }
    let mean = Duration::from_nanos(now.as_nanos() / count);
    mean - model.rotation() / 2 - Duration::from_micros(300 + 17)
}

#[test]
fn forty_gigabytes_at_four_thousand_two_hundred_turns() {
    let model = laptop();
    assert_eq!(model.rotation(), Duration::from_nanos(14_285_714));
    assert!(model.capacity() >= "40GB".parse().unwrap());
    assert!(model.capacity() < "40.1GB".parse().unwrap());
}

#[test]
fn the_mean_seek_is_the_published_one_at_every_size() {
    for size in [Bytes::MAX, Bytes::GIB * 4, Bytes::mib(256)] {
        let mean = mean_seek(&laptop().scaled(size).unwrap());
        // Places are uniform over bytes, of which the outer cylinders hold more:
        // a little below the 12 ms over all pairs of tracks.
        let expected = Duration::from_micros(11_300)..Duration::from_micros(12_300);
        assert!(expected.contains(&mean), "{mean} on {size}");
    }
}

#[test]
fn long_transfers_run_at_the_rate_of_their_zone() {
    let model = laptop();
    let inner = model.capacity() / SECTOR - (64 << 11);
    for (lba, media) in [(0, "38MB/s"), (inner, "22MB/s")] {
        let mut drive = HardDisk::new(&model);
        let time = drive.serve(Instant::EPOCH, &read(lba, Bytes::mib(64)));
        let rate = Rate::of(Bytes::mib(64), time);
        let media: Rate = media.parse().unwrap();
        // Each turn of 14.3 ms loses 1.6 or 2.6 ms to a step: 87 % is left.
        assert!(rate < media * 88 / 100 && rate > media * 86 / 100, "{rate} of {media}");
    }
}

#[test]
fn the_next_sector_is_one_turn_away_when_there_is_no_cache() {
    let model = laptop();
    let mut drive = HardDisk::new(&model);
    let now = Instant::EPOCH + drive.serve(Instant::EPOCH, &read(0, SECTOR));
    let next = drive.serve(now, &read(1, SECTOR));
    let turn = model.rotation() + Duration::from_nanos(14_285_714 / 1_060 + 1);
    assert!(next <= turn && next >= model.rotation(), "{next:?}");
    // The same from any turn on: the angle is a function of time alone.
    let mut later = HardDisk::new(&model);
    let start = Instant::EPOCH + model.rotation() * 1_000_003;
    assert_eq!(later.serve(start, &read(0, SECTOR)), now - Instant::EPOCH);
}

#[test]
fn a_write_after_a_seek_settles_longer_and_is_on_the_medium_when_done() {
    let model = laptop();
    let far = model.capacity() / SECTOR / 2;
    let longest = |direction| {
        let access = Access { lba: Lba::new(far), len: SECTOR, direction };
        (0..2_000u64)
            .map(|step| {
                let start = Instant::from_nanos(step * 7_143);
                HardDisk::new(&model).serve(start, &Command::Transfer(access))
            })
            .max()
            .unwrap()
    };
    let more = longest(Direction::Write).saturating_sub(longest(Direction::Read));
    assert!(more > Duration::from_micros(900) && more < Duration::from_micros(1_100), "{more}");
    let flush = HardDisk::new(&model).serve(Instant::EPOCH, &Command::Flush);
    assert_eq!(flush, Duration::from_micros(300));
}

#[test]
fn a_scaled_disk_fits_keeps_its_zones_and_is_never_larger_than_asked() {
    let model = laptop();
    for mib in [12, 13, 17, 64, 100, 255, 1_000, 4_096, 30_000] {
        let small = model.scaled(Bytes::mib(mib)).unwrap();
        assert!(small.capacity() <= Bytes::mib(mib), "{mib}");
        let waste = Bytes::mib(mib) - small.capacity();
        assert!(waste < Bytes::mib(2), "{waste} of {mib} MiB unused");
    }
    let error = model.scaled(Bytes::mib(5)).unwrap_err().to_string();
    assert!(error.contains("give at least 10MiB"), "{error}");
}

#[test]
fn a_model_that_is_no_disk_is_refused_with_what_would_do() {
    let text = include_str!("../../../models/laptop-4200.toml");
    let spoiled = [
        ("rpm = 4200", "rpm = 0", "rpm is 0; give 60..=60000"),
        ("heads = 2", "heads = 0", "heads is 0; give 1 to 256"),
        ("\"hard-disk\"", "\"tape\"", "write kind = \"hard-disk\""),
        ("track_skew = \"1.6ms\"", "track_skew = \"1ms\"", "give at least head_switch"),
        ("cylinder_skew = \"2.6ms\"", "cylinder_skew = \"20ms\"", "give less than a turn"),
        ("[25, \"2.8ms\"]", "[1, \"2.8ms\"]", "seek distances must rise; 1 follows 1"),
        ("sectors_per_track = 980", "sectors_per_track = 0", "zones[2] has"),
        ("overhead = \"0.3ms\"", "overhead = \"soon\"", "no number; write for example 250ms"),
        ("overhead = \"0.3ms\"", "", "missing field `overhead`"),
    ];
    for (good, bad, says) in spoiled {
        assert!(text.contains(good), "{good}");
        let error = Model::parse(&text.replace(good, bad)).unwrap_err().to_string();
        assert!(error.contains(says), "{bad}: {error}");
    }
    let error = Model::named("floppy").unwrap_err().to_string();
    let known: Vec<&str> = Model::names().collect();
    let expected = format!("no disk model is called \"floppy\"; there is {}", known.join(", "));
    assert_eq!(error, expected);
}
