//! What the drive models do and what profiles say, to the nanosecond, as a digest of many
//! commands: whoever makes them quicker must not change them. A digest changes with what a
//! model means, and then this test has to be told; it prints the new ones.

use crate::common::Random;
use disk::{Bus, Drive, Emulated, Head, Model, Profile};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Fowler, Noll and Vo's hash, 64 bits.
struct Digest(u64);

impl Digest {
    fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Anything anywhere, runs, re-reads and neighbours, with pauses and without.
fn next(random: &mut Random, last: &Access, sectors: u64) -> (Access, Duration) {
    let len = [8, 8, 16, 128, 360, 512, 2048][random.below(7) as usize];
    let lba = match random.below(6) {
        0 | 1 => random.below(sectors - len),
        2 | 3 => last.end().get(),
        4 => last.lba.get(),
        _ => (last.lba.get() + random.below(20_000)).saturating_sub(10_000),
    };
    let direction = if random.below(3) == 0 { Direction::Write } else { Direction::Read };
    let lba = Lba::new(lba.min(sectors - len));
    let pause = [0, 0, 300_000, 30_000_000][random.below(4) as usize];
    let access = Access { lba, len: SECTOR * len, direction };
    (access, Duration::from_nanos(random.below(pause + 1)))
}

fn digest(model: &Model) -> u64 {
    let (mut digest, mut random) = (Digest(0xcbf2_9ce4_8422_2325), Random(11));
    let profile = Profile::of(model);
    let sectors = model.capacity() / SECTOR;
    let mut last = Access { lba: Lba::new(0), len: SECTOR * 8, direction: Direction::Read };
    for way in 0..4 {
        let model = model.clone().with_write_back(way == 1);
        let mut drive = Emulated::new(&model);
        let (mut head, mut bus) = (Head::at(Lba::new(0)), Bus::new());
        let mut now = Instant::EPOCH;
        for _ in 0..5_000 {
            let (access, pause) = next(&mut random, &last, sectors);
            now += pause;
            let command = match way {
                2 => Command::Forced(access),
                _ => Command::Transfer(access),
            };
            digest.add(profile.bound(last.end().min(Lba::new(sectors)), &command).as_nanos());
            digest.add(head.bound(&profile, &command).as_nanos());
            let time = match (way, drive.hard_disk_mut()) {
                (3, Some(disk)) => {
                    bus.reserve(now, Duration::from_micros(random.below(9_000)));
                    disk.serve_sharing(&mut bus, now, &command)
                }
                _ => drive.serve(now, &command),
            };
            head.completed(&profile, &access, time);
            digest.add(time.as_nanos());
            (now, last) = (now + time, access);
        }
    }
    for _ in 0..2_000 {
        let (access, _) = next(&mut random, &last, sectors);
        let end = access.end().get() + random.below(sectors - access.end().get() + 1);
        let worst = profile.worst(access.lba..Lba::new(end), access.len, access.direction);
        digest.add(worst.as_nanos());
        if let Some(sweep) = profile.sweep(access.lba..Lba::new(end), access.len, access.direction)
        {
            for part in [sweep.stroke, sweep.cylinders, sweep.span, sweep.request.as_nanos()] {
                digest.add(part);
            }
        }
        last = access;
    }
    let all = Lba::new(0)..Lba::new(sectors);
    digest.add(profile.worst(all, Bytes::MIB, Direction::Read).as_nanos());
    digest.0
}

const EXPECTED: &[(&str, u64)] = &[
    ("laptop-4200", 15_568_030_705_991_308_178),
    ("quantum-atlas-ii", 12_993_353_551_506_603_787),
    ("seagate-cheetah", 3_184_722_141_741_987_497),
    ("atlas-iii", 14_699_571_259_932_065_122),
    ("seagate-st318437lw", 7_447_344_914_709_820_051),
    ("wd400bb", 11_222_289_190_328_886_972),
    ("hitachi-travelstar", 11_708_878_984_186_137_747),
    ("hdd-7200-20tb", 11_983_561_295_813_605_311),
    ("ssd-sata", 10_791_097_130_211_099_028),
    ("ssd-nvme", 6_516_991_124_988_439_593),
];

#[test]
fn no_drive_and_no_profile_has_changed() {
    let found: Vec<(&str, u64)> = Model::names()
        .map(|name| (name, digest(&Model::named(name).expect("a model that comes with us"))))
        .collect();
    assert_eq!(found, EXPECTED, "{found:#?}");
}
