//! The door: whatever a number says, it is answered, and nothing overflows behind it.

use crate::driver::*;
use disk::Profile;
use node::{
    Chance, CommandId, Contract, DiskIndex, Error, Mode, Op, Opening, Placement, Region, Reply,
    Span, StreamId, WriteRange, limits,
};
use units::{Bytes, Duration, Rate};

fn invalid(told: &Result<Reply, Error>, what: &str) {
    assert!(
        matches!(told, Err(Error::Invalid { what: other, .. }) if **other == *what),
        "{told:?}"
    );
}

/// Every number of every operation, at the end of what can be written.
#[test]
fn numbers_that_no_machine_comes_near_are_refused_at_once() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    let (most, size) = (Bytes::MAX, Bytes::new((1 << 60) + 1));
    invalid(&driver.at_once(create("big", size, Placement::default())), "size");
    invalid(&driver.at_once(resize("film", most)), "size");
    invalid(&driver.at_once(open("film", Mode::Read, usual(), most)), "start");
    let (volume, mode, region) = ("film".into(), Mode::Read, Region(1));
    let contract = usual();
    let window = Op::WindowOpen { volume, mode, contract, start: most, region };
    invalid(&driver.at_once(window), "start");
    let opening = |start, miss| {
        let (volume, mode, contract) = ("film".into(), Mode::Read, usual());
        let opening = Opening { volume, mode, contract, start, early: false, miss };
        Op::Open { opening: Box::new(opening), region: None }
    };
    invalid(&driver.at_once(opening(most, None)), "start");
    let told = driver.at_once(opening(Bytes::ZERO, Some(Chance::one_in(9))));
    assert_eq!(told, Err(Error::Invalid { what: "miss", rule: "at most 0.1" }));
    let contracts: [(Contract, &str); 4] = [
        (Contract { rate: Rate::per_second(u64::MAX), ..usual() }, "rate"),
        (Contract { rate: Rate::ZERO, ..usual() }, "rate"),
        (Contract { block: Bytes::kib(65), ..usual() }, "block size"),
        (Contract { burst: most, ..usual() }, "burst"),
    ];
    let stream = driver.reader("film", usual());
    for (contract, what) in contracts {
        invalid(&driver.at_once(open("film", Mode::Read, contract, Bytes::ZERO)), what);
        invalid(&driver.at_once(Op::StreamChange { stream, contract }), what);
    }
    invalid(&driver.at_once(Op::StreamSeek { stream, to: most }), "offset");
    invalid(&driver.at_once(Op::StreamDurable { stream, beyond: most }), "offset");
    let (volume, rate) = ("film".into(), Rate::per_second(u64::MAX));
    invalid(&driver.at_once(Op::Block { volume, mode: Mode::Read, rate }), "rate");
    // 1 PiB/s is a rate, which no disk has; more is none.
    let rated = |rate| service("film", at_rate(Rate::per_second(rate), BLOCK, ms(100)));
    assert!(is_refused(&driver.at_once(rated(1 << 50))));
    invalid(&driver.at_once(rated((1 << 50) + 1)), "rate");
    let absurd =
        Profile { flush: Duration::from_secs(7_200), ..profile(Bytes::mib(256), FIXED, FLUSH) };
    let op = Op::ProfileSet { disk: DISK, profile: Box::new(absurd) };
    invalid(&driver.at_once(op), "profile");
    let none = Error::NoSuchDisk { disk: DiskIndex(1), disks: 1 };
    assert_eq!(driver.at_once(Op::Reprofile { disk: DiskIndex(1) }), Err(none));
    // Held against the volume's end, where a sum would leave 64 bits.
    let end = Bytes::MAX.round_down(Bytes::kib(4));
    let beyond = Err(Error::BeyondEnd { size: Bytes::mib(4) });
    assert_eq!(driver.at_once(read("film", end, Bytes::MIB)), beyond);
    assert_eq!(driver.at_once(room_for("film", Bytes::MAX, Bytes::kib(4))), beyond);
    let span = driver.room(Bytes::kib(4));
    assert_eq!(driver.at_once(write("film", WriteRange::new(most, most), span)), beyond);
    // Compared, never counted with.
    let Ok(Reply::Data { .. }) = driver.ask(Op::StreamRead { stream, len_max: most }) else {
        panic!("a block of it")
    };
    invalid(&driver.at_once(Op::StreamAdvance { stream, len: most }), "advance");
    driver.done(Op::HostLatency { latency: Duration::from_secs(u64::MAX / 2_000_000_000) });
    let status = driver.node.stream(stream).unwrap();
    // A minute at 1 MiB/s is 960 blocks; it has what there is memory for, which is less.
    assert!(status.window <= BLOCK * 963);
    let stream = StreamId(u64::MAX);
    assert_eq!(driver.at_once(Op::StreamClose { stream }), Err(Error::NoSuchStream { stream }));
}

/// A configuration says what is wrong with it before anything is made.
#[test]
fn a_configuration_is_held_to_its_limits() {
    let bad = |change: fn(&mut node::Config), what: &str| {
        let told = Setup::new(1).with(change).try_open();
        let Err(Error::Invalid { what: other, .. }) = told else { panic!("{what} is taken") };
        assert_eq!(other, what);
    };
    let second = Duration::from_secs;
    assert_eq!(limits::HOST_LATENCY_MAX, second(60));
    bad(|config| config.host_latency = Duration::from_secs(61), "host latency");
    bad(|config| config.commit_interval = Duration::from_secs(3_601), "commit interval");
    bad(|config| config.memory = Bytes::new(u64::MAX), "memory");
    let good = Setup::new(1).with(|config| {
        config.host_latency = Duration::from_secs(1);
        config.commit_interval = Duration::from_secs(3_600);
    });
    assert!(good.try_open().is_ok());
    // A disk on which a commit takes most of any interval.
    let mut slow = Setup::new(1);
    slow.profiles[0].flush = second(100);
    assert!(slow.try_open().is_ok(), "commits are made seldom there");
}

/// Names and places that come as numbers.
#[test]
fn commands_regions_and_ranges_say_what_they_are_of() {
    for disk in [0, 1, 65_535] {
        let id = CommandId(77 << 16 | u64::from(disk));
        assert_eq!(id.disk(), DiskIndex(disk));
    }
    let span = |offset: Bytes| Span { offset, len: Bytes::kib(4) };
    assert_eq!(Region::of(&span(limits::REGIONS_BASE - Bytes::kib(4))), None);
    for number in [0, 1, 9, u32::MAX] {
        let region = Region(number);
        assert_eq!(Region::of(&span(region.offset())), Some((region, Bytes::ZERO)));
        let last = limits::REGION_STRIDE - Bytes::kib(4);
        assert_eq!(Region::of(&span(region.offset() + last)), Some((region, last)));
    }
    let range = |offset, len| WriteRange::new(Bytes::new(offset), Bytes::new(len));
    for (offset, len, skip, room) in [
        (0, 1, 0, 4_096),
        (4_095, 1, 4_095, 4_096),
        (4_095, 2, 4_095, 8_192),
        (8_192, 4_096, 0, 4_096),
    ] {
        let range = range(offset, len);
        assert_eq!((range.skip(), range.room()), (Bytes::new(skip), Bytes::new(room)));
    }
}

/// Every error says to people what is wrong, with its figures.
#[test]
fn errors_are_said_with_their_figures() {
    let refusal = node::Refusal {
        disk: DiskIndex(3),
        utilisation_ppm: 1_234_501,
        deadline: Some((ms(40), ms(7))),
        rate_max: Rate::per_second(1_000),
        longer: None,
        within: None,
        bus: None,
        undecided: false,
        parts: 1,
    };
    let said = Error::Refused(refusal.clone()).to_string();
    for part in ["disk 3", "123.46 %", "40 ms", "7 ms", "1000 B/s"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let none = node::Refusal { rate_max: Rate::ZERO, ..refusal.clone() };
    assert!(none.to_string().contains("no rate in these blocks"));
    let (streams, volumes) = (vec![StreamId(4)], vec![String::from("film")]);
    let refusal = Box::new(refusal);
    let said = Error::ProfileRefused { streams, volumes, refusal: refusal.clone() }.to_string();
    assert!(said.contains("stream 4, the service of volume film"), "{said}");
    let (streams, volumes) = (vec![], vec![]);
    let said = Error::ProfileRefused { streams, volumes, refusal }.to_string();
    assert!(said.contains("the metadata log would not fit"), "{said}");
    let busy = |streams| Error::VolumeBusy { name: "film".into(), streams }.to_string();
    assert!(busy(0).contains("being read or written") && busy(3).contains("by 3 stream"));
    let said = Error::NoSuchDisk { disk: DiskIndex(5), disks: 3 }.to_string();
    assert!(said.contains("no disk 5") && said.contains("0 to 2"), "{said}");
}
