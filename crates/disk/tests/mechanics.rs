//! What a model tells of arm and platters is what the drive then does.

use crate::common::Random;
use disk::{Drive, HardDisk, Mechanics, Model, Profile};
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn access(lba: Lba, sectors: u64, direction: Direction) -> Access {
    Access { lba, len: SECTOR * sectors, direction }
}

fn hard_disks() -> impl Iterator<Item = Model> {
    let named = |name| Model::named(name).unwrap();
    Model::names().map(named).filter(Model::is_hard_disk)
}

/// A seek varies around its mean within the model's spread; a read of the track where
/// the heads are comes to the nanosecond, but for what the electronics vary.
#[test]
fn a_seek_and_the_read_after_it_take_what_was_foretold() {
    for model in hard_disks() {
        let mechanics = Mechanics::of(&model).unwrap();
        let profile = Profile::of(&model);
        let (mut drive, mut random) = (HardDisk::new(&model), Random(1));
        let sectors = model.capacity() / SECTOR;
        let (mut now, mut from) = (Instant::EPOCH, Lba::new(0));
        for _ in 0..2_000 {
            let to = Lba::new(random.below(sectors - 8));
            let seek = Command::Seek(to);
            let time = drive.serve(now, &seek);
            assert!(time <= profile.bound(from, &seek), "{} {time}", model.name());
            assert!(time <= mechanics.reach(from, to));
            let distance = mechanics.cylinder(from).abs_diff(mechanics.cylinder(to));
            let foretold = mechanics.overhead(&seek) + mechanics.seek(from, to);
            let [least, mean, most] = model.seek(distance);
            let spread = (most - mean).max(mean - least) + us(700);
            let off = time.saturating_sub(foretold).max(foretold.saturating_sub(time));
            assert!(off <= spread, "{}: {time}, foretold {foretold}", model.name());
            now += time;

            let one = access(to, 1, Direction::Read);
            let reach = mechanics.overhead(&Command::Transfer(one)) + mechanics.seek(to, to);
            let begin = now + reach;
            let wait = mechanics.rotation(begin, to);
            let foretold = begin + wait + mechanics.transfer(&one) - now;
            let time = drive.serve_forced(now, &Command::Transfer(one));
            // The electronics are counted at their slowest: who is earlier may find the
            // sector a turn earlier. Then the bus.
            let turn = if wait + us(1_500) > model.rotation() { model.rotation() } else { us(0) };
            assert!(time <= foretold + us(200) + model.rotation() / 20, "{}", model.name());
            assert!(time + us(1_500) + turn >= foretold, "{}: {time} {foretold}", model.name());
            (now, from) = (now + time, one.end());
        }
    }
}

#[test]
fn a_place_on_the_way_lies_on_its_cylinder() {
    for model in hard_disks() {
        let mechanics = Mechanics::of(&model).unwrap();
        for part in 0..500 {
            let cylinder = (model.cylinders() - 1) * part / 499;
            let found = mechanics.cylinder(mechanics.on_cylinder(cylinder));
            // Some disks have up to 50 cylinders in a row without an address.
            assert!(found.abs_diff(cylinder) <= 64, "{}: {cylinder} {found}", model.name());
        }
    }
}

fn barracuda() -> Model {
    Model::named("seagate-st318437lw").unwrap().with_write_back(true)
}

#[test]
fn a_forced_write_leaves_nothing_that_a_power_cut_could_take() {
    let mut drive = HardDisk::new(&barracuda());
    let write = |lba| access(Lba::new(lba), 50, Direction::Write);
    let mut now = Instant::EPOCH;
    for lba in [20_000_000, 5_000_000] {
        now += drive.serve(now, &Command::Transfer(write(lba)));
    }
    assert!(drive.clone().lose_power(now) > 0, "the buffer holds some");
    now += drive.serve(now, &Command::Forced(write(5_000_050)));
    assert_eq!(drive.lose_power(now), 0);
}

#[test]
fn a_seek_neither_loses_nor_writes_what_waits_in_the_buffer() {
    let mut drive = HardDisk::new(&barracuda());
    let mut now = Instant::EPOCH;
    for lba in [20_000_000, 5_000_000, 30_000_000] {
        let write = access(Lba::new(lba), 50, Direction::Write);
        now += drive.serve(now, &Command::Transfer(write));
    }
    let before = drive.clone().lose_power(now);
    let time = drive.serve(now, &Command::Seek(Lba::new(1)));
    assert!(time > us(5_000), "it waits for what is being written: {time}");
    assert!(drive.lose_power(now) <= before);
    assert!(before > 0);
}

/// A drive begins with what it has: one that is fed in chunks that stream, without a pause, is
/// done about when one is that was given all at once, and not by the feeding later.
#[test]
fn a_buffer_that_is_fed_without_a_pause_is_written_out_meanwhile() {
    let time = |chunk: u64| {
        let (mut drive, mut now) = (HardDisk::new(&barracuda()), Instant::EPOCH);
        for index in 0..1_000 / chunk {
            let lba = Lba::new(30_000_000 + index * chunk);
            now += drive.serve(now, &Command::Transfer(access(lba, chunk, Direction::Write)));
        }
        let fed = now - Instant::EPOCH;
        (fed, fed + drive.serve(now, &Command::Flush))
    };
    let ((_, whole), (fed, chunks)) = (time(1_000), time(50));
    assert!(fed > us(20_000), "{fed}");
    assert!(chunks < whole + us(10_000), "{chunks}, all at once {whole}");
}
