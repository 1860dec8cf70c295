//! Contracts on files with every number at the places where arithmetic breaks: opened or
//! refused, and nobody panics. Any program can send such numbers, for any file it can read.

use disk::{Kind, Line, LinearProfile, Model, Profile};
use files::{Device, FileMap, MapError, Next, Options, Piece};
use node::{Contract, DiskIndex, Error, StreamId};
use units::{Bytes, Duration, Instant, Lba, Outside, Rate};

/// Nothing, what is usual, the limits, and powers of two up to the last number.
const NUMBERS: [u64; 15] = [
    0,
    1,
    4_096,
    1 << 20,
    1 << 26,
    1 << 31,
    1 << 32,
    1 << 50,
    (1 << 50) + 1,
    1 << 53,
    1 << 60,
    (1 << 60) + 1,
    1 << 62,
    1 << 63,
    u64::MAX,
];

fn pairs() -> impl Iterator<Item = (u64, u64)> {
    NUMBERS.into_iter().flat_map(|a| NUMBERS.into_iter().map(move |b| (a, b)))
}

fn hard_disk() -> Profile {
    Profile::of(&Model::named("seagate-st318437lw").unwrap())
}

/// A device on which nothing costs anything, as a file in memory seems to be.
fn free_of_charge() -> Profile {
    let line = Line { fixed: Duration::ZERO, rate: Rate::OUTSIDE_MAX };
    let linear =
        LinearProfile { read: line, write: line, depth: 4, latency: Duration::ZERO, spread: None };
    let (source, confidence) = ("test".into(), "none".into());
    let (capacity, flush) = (Bytes::GIB * 16, Duration::ZERO);
    Profile { source, confidence, capacity, flush, kind: Kind::Linear(linear), bus: None }
}

fn options() -> Options {
    Options {
        share_ppm: 900_000,
        others: Duration::from_millis(40),
        host_latency: Duration::from_millis(2),
        gap: Duration::ZERO,
        ride_out: Duration::from_secs(1),
        memory: Bytes::mib(256),
    }
}

/// 16 MiB in one run.
fn map(profile: &Profile) -> FileMap {
    let length = Bytes::mib(16);
    let piece = Piece { at: Bytes::ZERO, len: length, lba: Lba::new(1 << 20) };
    FileMap::new(vec![piece], length, profile.capacity()).unwrap()
}

fn now() -> Instant {
    Instant::EPOCH + Duration::from_secs(1)
}

fn open(device: &mut Device, id: u64, contract: &Contract, start: u64) -> Result<Bytes, Error> {
    let map = map(device.profile());
    device.open(now(), StreamId(id), "f".into(), contract, Bytes::new(start), map)
}

/// Whatever is open is served: reads end, programs hear.
fn serve(device: &mut Device, mut at: Instant) {
    for _ in 0..20 {
        while device.poll_output().is_some() {}
        match device.next(at) {
            Next::Read { key, len, .. } => device.finished(at, key, Ok(len)),
            Next::Wait { until: Some(until) } => at = at.max(until),
            Next::Wait { until: None } => break,
        }
    }
}

/// Item 4 of the story: after one such request every file of the device was lost to
/// everybody, until the daemon was started again by hand.
#[test]
fn a_contract_for_a_rate_of_minus_one_is_refused() {
    for profile in [hard_disk(), free_of_charge()] {
        let mut device = Device::new(DiskIndex(0), profile, options());
        let contract = |rate| Contract { rate, block: Bytes::kib(64), burst: Bytes::ZERO };
        let refused = open(&mut device, 1, &contract(Rate::per_second(u64::MAX)), 0);
        assert!(matches!(refused, Err(Error::Invalid { what: "rate", .. })), "{refused:?}");
        let refused = open(&mut device, 1, &contract(Rate::OUTSIDE_MAX), 0);
        let Err(Error::NoMemory { asked, free }) = refused else { panic!("{refused:?}") };
        assert!(asked > Bytes::GIB * 1_000 && free == options().memory, "{asked} of {free}");
        assert!(open(&mut device, 1, &contract(Rate::per_second(100_000)), 0).is_ok());
    }
}

#[test]
fn files_are_opened_changed_and_read_with_any_numbers() {
    for profile in [hard_disk(), free_of_charge()] {
        let mut device = Device::new(DiskIndex(0), profile, options());
        let (mut id, mut opened) = (0, 0);
        for ((rate, burst), block) in
            pairs().flat_map(|pair| NUMBERS.into_iter().map(move |block| (pair, block)))
        {
            let contract = Contract {
                rate: Rate::per_second(rate),
                block: Bytes::new(block),
                burst: Bytes::new(burst),
            };
            for start in NUMBERS {
                id += 1;
                if open(&mut device, id, &contract, start).is_err() {
                    continue;
                }
                opened += 1;
                device.read(now(), StreamId(id), 1, Bytes::new(burst));
                serve(&mut device, now());
                let _ = device.advance(now(), StreamId(id), Bytes::new(start));
                let _ =
                    device.change(now(), StreamId(id), &Contract { burst: Bytes::MIB, ..contract });
                let _ = device.rate_max();
                device.close(now(), StreamId(id)).unwrap();
            }
        }
        assert!(opened > 50, "{opened}");

        let modest =
            Contract { rate: Rate::per_second(100_000), block: Bytes::kib(64), burst: Bytes::ZERO };
        id += 1;
        open(&mut device, id, &modest, 0).unwrap();
        for (rate, burst) in pairs() {
            let (rate, burst) = (Rate::per_second(rate), Bytes::new(burst));
            let _ = device.change(now(), StreamId(id), &Contract { rate, burst, ..modest });
            device.read(now(), StreamId(id), 1, burst);
            serve(&mut device, now());
            let _ = device.advance(now(), StreamId(id), burst);
        }
    }
}

/// What an administrator may write into the configuration.
#[test]
fn options_that_are_not_refused_can_be_kept() {
    let mut taken = 0;
    for (one, other) in pairs() {
        let [others, ride_out] = [one, other].map(Duration::from_nanos);
        for given in [
            Options { others, ride_out, ..options() },
            Options { others, host_latency: ride_out, ..options() },
            Options { share_ppm: one, memory: Bytes::new(other), ..options() },
        ] {
            if given.check().is_err() {
                continue;
            }
            taken += 1;
            let mut device = Device::new(DiskIndex(0), hard_disk(), given);
            let contract = Contract {
                rate: Rate::per_second(100_000),
                block: Bytes::kib(64),
                burst: Bytes::ZERO,
            };
            let _ = device.rate_max();
            if open(&mut device, 1, &contract, 0).is_ok() {
                device.read(now(), StreamId(1), 1, Bytes::MIB);
                serve(&mut device, now());
            }
        }
    }
    assert!(taken > 30, "{taken}");
}

/// A sparse file may say that it is 8 EiB long; what the kernel says of where it lies is
/// held to the device.
#[test]
fn a_file_of_any_length_anywhere_is_mapped_or_refused() {
    let capacity = hard_disk().capacity();
    let mut mapped = 0;
    for ((at, len), place) in
        pairs().flat_map(|pair| NUMBERS.into_iter().map(move |place| (pair, place)))
    {
        let piece = Piece { at: Bytes::new(at), len: Bytes::new(len), lba: Lba::new(place) };
        for length in NUMBERS.map(Bytes::new) {
            let map = FileMap::new(vec![piece], length, capacity);
            mapped += u64::from(map.is_ok());
            let Ok(map) = map else { continue };
            assert!(length <= Bytes::OUTSIDE_MAX);
            let mut device = Device::new(DiskIndex(0), hard_disk(), options());
            let contract = Contract {
                rate: Rate::per_second(100_000),
                block: Bytes::kib(64),
                burst: Bytes::ZERO,
            };
            if device.open(now(), StreamId(1), "f".into(), &contract, Bytes::ZERO, map).is_ok() {
                device.read(now(), StreamId(1), 1, Bytes::MIB);
                serve(&mut device, now());
            }
        }
    }
    assert!(mapped > 50, "{mapped}");
    let long = FileMap::new(Vec::new(), Bytes::new(u64::MAX >> 1), capacity);
    assert_eq!(long, Err(MapError::TooLong(Bytes::new(u64::MAX >> 1))));
}
