//! What a pool does by itself: data in suspect extents is moved, disks are measured again, and
//! a profile is used only where every contract fits with it.

use crate::driver::*;
use disk::Kind;
use node::{
    DeviceError, DiskAction, DiskIndex, Error, Mode, Op, Outcome, Placement, Priority, Reply,
    Unmoved,
};
use units::{Bytes, Direction, Duration, Instant, Rate};

/// A volume of 4 MiB, of which all but the last half MiB is recorded; where each of its extents
/// lies.
fn film() -> (Driver, Vec<Bytes>) {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::kib(3_584), 1);
    let places = places(&mut driver);
    (driver, places)
}

/// Where the extents of "film" lie on the disk.
fn places(driver: &mut Driver) -> Vec<Bytes> {
    (0..4).map(|mib| driver.place("film", Bytes::mib(mib))).collect()
}

/// The disk fails once on this, so that it is suspect.
fn suspect(driver: &mut Driver, offset: Bytes, len: Bytes) {
    let place = places(driver)[(offset / Bytes::MIB) as usize] + offset % Bytes::MIB;
    driver.break_at(DISK, place..place + len, None);
    let told = driver.ask(read("film", offset, len));
    assert!(matches!(told, Err(Error::Device { .. })), "{told:?}");
}

fn moves(driver: &Driver) -> node::MoveStatus {
    driver.node.status(driver.now).disks[0].moves.clone()
}

fn check_bytes(driver: &mut Driver, seed_of_third: u64) {
    for mib in 0..4 {
        let at = Bytes::mib(mib);
        let got = driver.read("film", at, Bytes::MIB).unwrap();
        let len = if mib == 3 { Bytes::kib(512) } else { Bytes::MIB };
        let seed = if mib == 2 { seed_of_third } else { 1 };
        let mut want = pattern(seed, at, len);
        want.resize(1 << 20, 0);
        assert!(got == want, "{mib}");
    }
}

/// An extent on which the disk failed once is moved, with all its bytes, and after a power cut
/// it is where it was moved to. Its old place is nobody's.
#[test]
fn data_in_a_suspect_extent_is_moved_and_stays_moved() {
    let (mut driver, before) = film();
    suspect(&mut driver, Bytes::mib(3), Bytes::kib(4));
    driver.disks[0].troubles.clear();
    assert_eq!(moves(&driver).moving, Some(before[3] / Bytes::MIB));
    assert_eq!(moves(&driver).occupied, 1);
    let from = driver.journal.len();
    driver.run(Duration::from_secs(10));
    let told = moves(&driver);
    assert_eq!((told.moved, told.moving, told.occupied, told.stuck), (1, None, 0, vec![]));
    let copied = |way| {
        driver
            .since(from)
            .iter()
            .filter_map(|done| match &done.action {
                DiskAction::WriteBytes { .. } => None,
                action => action.transfer().filter(|(_, direction)| *direction == way),
            })
            .map(|(range, _)| range.end - range.start)
            .sum::<Bytes>()
    };
    let half = Bytes::kib(512);
    assert_eq!(
        (copied(Direction::Read), copied(Direction::Write)),
        (half, half),
        "what was written"
    );
    assert_eq!(driver.node.status(driver.now).memory.best_effort, Bytes::ZERO);
    let after = places(&mut driver);
    assert_eq!(after[..3], before[..3]);
    assert!(after[3] != before[3]);
    check_bytes(&mut driver, 1);
    let mut driver = driver.after_a_power_cut();
    assert_eq!(places(&mut driver), after);
    check_bytes(&mut driver, 1);
    let suspects = driver.node.status(driver.now).disks[0].observed.suspects.clone();
    assert_eq!(suspects.len(), 1, "it is remembered");
    assert_eq!(suspects[0].offset(), before[3]);
}

/// What is written while an extent is being copied is not lost: it is copied again.
#[test]
fn what_is_written_during_a_move_is_not_lost() {
    let (mut driver, before) = film();
    suspect(&mut driver, Bytes::mib(2), Bytes::kib(4));
    driver.disks[0].troubles.clear();
    let target = |done: &crate::driver::Done| match done.action {
        DiskAction::Write { offset, .. } => Some(offset),
        _ => None,
    };
    let from = driver.journal.len();
    while driver.since(from).iter().filter(|done| target(done).is_some()).count() < 3 {
        driver.step(units::Instant::MAX);
    }
    let write = driver.begin_write("film", 7, Bytes::mib(2), Bytes::MIB);
    assert_eq!(driver.wait(write), Ok(Reply::Done));
    driver.run(Duration::from_secs(1));
    let told = moves(&driver);
    assert_eq!((told.moved, told.stuck.len()), (0, 1), "{told:?}");
    assert_eq!(told.stuck[0].why, Unmoved::Written);
    assert_eq!(
        (told.stuck[0].volume.as_str(), told.stuck[0].extent),
        ("film", before[2] / Bytes::MIB)
    );
    driver.run(Duration::from_secs(10));
    assert_eq!((moves(&driver).moved, moves(&driver).stuck), (1, vec![]));
    check_bytes(&mut driver, 7);
    check_bytes(&mut driver.after_a_power_cut(), 7);
    // A write under way puts the beginning off.
    let (mut driver, _) = film();
    let space = driver.node.status(driver.now).disks[0].free;
    driver.disks[0].holds = true;
    let write = driver.begin_write("film", 7, Bytes::mib(2), Bytes::MIB);
    let place =
        driver.disks[0].flights.values().next().unwrap().command.action.transfer().unwrap().0;
    driver.break_at(DISK, place, None);
    driver.disks[0].holds = false;
    assert!(driver.wait(write).is_err());
    driver.disks[0].troubles.clear();
    driver.run(Duration::from_secs(10));
    assert_eq!(moves(&driver).moved, 1, "a write that fails makes an extent suspect, too");
    driver.done(delete("film"));
    assert!(driver.node.status(driver.now).disks[0].free + Bytes::MIB >= space);
}

/// The file system of a disk's file was full for a while, and the places that could not be written then
/// were taken for bad ones for ever.
#[test]
fn a_host_without_room_makes_no_place_suspect() {
    let (mut driver, before) = film();
    let (no_space, place) = (DeviceError(28), before[2]);
    driver.break_at(DISK, place..place + Bytes::MIB, None);
    driver.disks[0].troubles[0].error = Some(no_space.0);
    let write = driver.begin_write("film", 7, Bytes::mib(2), Bytes::MIB);
    assert!(driver.wait(write).is_err());
    driver.run(Duration::from_secs(10));
    let disk = |driver: &Driver| driver.node.status(driver.now).disks[0].clone();
    let full = disk(&driver);
    assert!(full.host_errors > 0 && full.host_errors == full.account.errors, "{full:?}");
    assert_eq!((full.observed.suspects, full.moves.moved), (vec![], 0));
    // There is room again.
    driver.disks[0].troubles.clear();
    let write = driver.begin_write("film", 7, Bytes::mib(2), Bytes::MIB);
    driver.wait(write).unwrap();
    driver.run(Duration::from_secs(10));
    assert_eq!((disk(&driver).observed.suspects, moves(&driver).moved), (vec![], 0));
    check_bytes(&mut driver, 7);
}

/// An extent that was copied elsewhere is not switched to while a read of its old place waits:
/// another volume may be written there next.
#[test]
fn an_extent_is_not_moved_away_under_a_read_that_waits() {
    let (mut driver, _) = film();
    suspect(&mut driver, Bytes::mib(2), Bytes::kib(4));
    driver.disks[0].troubles.clear();
    // Whatever is read there is asked for again as soon as it was answered.
    let mut waiting: Vec<node::Ticket> = Vec::new();
    let upto = driver.now + Duration::from_secs(1);
    loop {
        for ticket in std::mem::take(&mut waiting) {
            match driver.answer(ticket) {
                Some(answer) => {
                    let Ok(Reply::Data { bytes: span, .. }) = answer else { panic!("{answer:?}") };
                    driver.done(Op::Release { span });
                }
                None => waiting.push(ticket),
            }
        }
        if waiting.is_empty() {
            let again = read_as("film", Bytes::mib(2), Bytes::MIB, Priority::Background);
            waiting.push(driver.begin(again));
        }
        if !driver.step(upto) {
            break;
        }
    }
    let told = moves(&driver);
    assert_eq!((told.moved, told.stuck.len()), (0, 1), "{told:?}");
    assert_eq!(told.stuck[0].why, Unmoved::Read);
    driver.run(Duration::from_secs(10));
    assert_eq!((moves(&driver).moved, moves(&driver).stuck), (1, vec![]));
}

/// An extent that is being written to when it becomes suspect is not copied before that write
/// has ended: the copy would have the old bytes.
#[test]
fn an_extent_is_not_copied_while_it_is_written_to() {
    let (mut driver, before) = film();
    let bad = before[2] + Bytes::kib(512);
    driver.break_at(DISK, bad..bad + Bytes::kib(4), Some(Direction::Read));
    driver.disks[0].holds = true;
    let failing = driver.begin(read("film", Bytes::mib(2) + Bytes::kib(512), Bytes::kib(4)));
    let write = driver.begin_write("film", 7, Bytes::mib(2), Bytes::MIB);
    let command = *driver.disks[0].flights.keys().next().expect("the read is at the disk");
    driver.disks[0].holds = false;
    while driver.disks[0].flights.contains_key(&command) {
        assert!(driver.step(units::Instant::MAX));
    }
    assert!(matches!(driver.answer(failing), Some(Err(Error::Device { .. }))));
    driver.disks[0].troubles.clear();
    assert!(!driver.is_answered(write), "it is on its way");
    let told = moves(&driver);
    assert_eq!((told.moving, told.stuck.len()), (None, 1), "{told:?}");
    assert_eq!(told.stuck[0].why, Unmoved::Written);
    assert_eq!(driver.wait(write), Ok(Reply::Done));
    driver.run(Duration::from_secs(10));
    assert_eq!((moves(&driver).moved, moves(&driver).stuck), (1, vec![]));
    check_bytes(&mut driver, 7);
    check_bytes(&mut driver.after_a_power_cut(), 7);
}

/// A hard disk that is five times slower in its inner half.
fn hard_disk(zones: &[(Bytes, u64)]) -> disk::Profile {
    let seek = disk::SeekCurve::new(vec![(1, ms(1)), (1_000, ms(4))]).expect("a curve");
    let zones = zones.iter().map(|&(from, mib)| disk::ZoneProfile {
        start: units::Lba::containing(from),
        cylinders: 100,
        rate: units::Rate::per_second(mib << 20),
    });
    let kind = disk::HardDiskProfile {
        overhead: ms(1),
        rotation: ms(4),
        seek,
        write_settle: Duration::ZERO,
        switch: Duration::ZERO,
        long_reads: None,
        long_writes: None,
        queue: 1,
        zones: zones.collect(),
    };
    disk::Profile { kind: Kind::HardDisk(kind), ..profile(Bytes::mib(256), FIXED, FLUSH) }
}

/// While an extent is being copied to a slower part of the disk, a contract of its volume is
/// admitted for both places: it goes on by the new one.
#[test]
fn a_contract_is_admitted_for_where_an_extent_is_being_moved_to() {
    let mut setup = Setup::new(1);
    setup.profiles = vec![hard_disk(&[(Bytes::ZERO, 100), (Bytes::mib(128), 20)])];
    let mut driver = setup.open();
    driver.recorded("film", Bytes::mib(4), Bytes::kib(3_584), 1);
    let outer = Placement { zone: node::Zone::Outer, ..Placement::default() };
    let mut size = Bytes::mib(128);
    while driver.ask(create("rest", size, outer.clone())).is_err() {
        size -= Bytes::MIB;
        assert!(!size.is_zero(), "there is some");
    }
    let slow = contract(units::Rate::per_second(1 << 18), BLOCK, Bytes::ZERO);
    let terms = |driver: &Driver| {
        let wish = node::Wish::Stream(Mode::Read, slow);
        driver.node.terms("film", &wish).expect("it could be").shares[0].1
    };
    let before = terms(&driver);
    let share = |driver: &Driver, stream| driver.node.stream(stream).unwrap().shares[0].1;
    let early = driver.reader("film", slow);
    assert_eq!(share(&driver, early), before);
    suspect(&mut driver, Bytes::mib(3), Bytes::kib(4));
    driver.disks[0].troubles.clear();
    assert!(moves(&driver).moving.is_some());
    let during = terms(&driver);
    assert!(during > before, "{during} {before}");
    assert_eq!(share(&driver, early), during, "who was there before, too");
    let late = driver.reader("film", slow);
    assert_eq!(share(&driver, late), during);
    driver.run(Duration::from_secs(20));
    assert_eq!(moves(&driver).moved, 1);
    assert!(places(&mut driver)[3] >= Bytes::mib(128), "in the slower half");
    assert_eq!([early, late].map(|stream| share(&driver, stream)), [during; 2]);
}

/// A zone that is shorter than a large read is not measured, the others are.
#[test]
fn a_part_that_is_shorter_than_a_read_is_not_measured() {
    let mut setup = Setup::new(1);
    let third = Bytes::mib(128) + Bytes::kib(512);
    setup.profiles = vec![hard_disk(&[(Bytes::ZERO, 100), (Bytes::mib(128), 50), (third, 20)])];
    let mut driver = setup.open();
    driver.done(Op::Reprofile { disk: DISK });
    driver.run(Duration::from_secs(20));
    let told = measured(&driver);
    assert_eq!((&told.outcome, told.parts.len()), (&Outcome::Holds, 2), "{told}");
    assert_eq!((told.parts[0].to, told.parts[1].from), (Bytes::mib(128), third));
}

/// Bytes that the disk cannot read are never made up: the extent stays and is named, and is
/// moved when they are written again. Nor is a copy used that could not be written.
#[test]
fn what_cannot_be_read_stays_and_is_named() {
    let (mut driver, before) = film();
    suspect(&mut driver, Bytes::mib(1) + Bytes::kib(128), Bytes::kib(4));
    driver.run(Duration::from_secs(10));
    let told = moves(&driver);
    assert_eq!((told.moved, told.moving, told.occupied, told.stuck.len()), (0, None, 1, 1));
    let (offset, error) = (Bytes::mib(1) + Bytes::kib(128), DeviceError(5));
    assert_eq!(told.stuck[0].why, Unmoved::Unreadable { offset, error });
    assert_eq!(driver.node.status(driver.now).memory.best_effort, Bytes::ZERO);
    driver.disks[0].troubles.clear();
    driver.run(Duration::from_secs(550));
    assert_eq!(moves(&driver).moved, 0, "it is tried again after ten minutes");
    // The disk does not take the copy.
    driver.break_at(DISK, before[3] + Bytes::MIB..Bytes::mib(200), Some(Direction::Write));
    driver.run(Duration::from_secs(60));
    let told = moves(&driver);
    assert_eq!((told.moved, told.stuck.len()), (0, 1));
    assert_eq!(told.stuck[0].why, Unmoved::Unwritable { error });
    driver.disks[0].troubles.clear();
    driver.run(Duration::from_secs(620));
    assert_eq!(moves(&driver).moved, 1);
    check_bytes(&mut driver, 1);
}

/// A volume that is deleted or cut while its extent is on its way: the move ends, and gives
/// its place and its memory back.
#[test]
fn a_move_ends_with_its_volume() {
    for (holds, cuts) in [(false, false), (true, false), (true, true)] {
        let (mut driver, _) = film();
        driver.done(delete("film"));
        driver.run(Duration::from_secs(5));
        let free = driver.node.status(driver.now).disks[0].free;
        driver.recorded("film", Bytes::mib(4), Bytes::kib(3_584), 1);
        suspect(&mut driver, Bytes::mib(3), Bytes::kib(4));
        driver.disks[0].troubles.clear();
        driver.run(ms(30));
        assert!(moves(&driver).moving.is_some());
        driver.disks[0].holds = holds;
        driver.run(ms(1));
        let op = match cuts {
            true => Op::VolumeResize { name: "film".into(), size: Bytes::mib(2), may_cut: true },
            false => delete("film"),
        };
        let gone = driver.begin(op);
        driver.run(ms(1));
        driver.disks[0].holds = false;
        assert_eq!(driver.wait(gone), Ok(Reply::Done));
        driver.run(Duration::from_secs(10));
        let told = moves(&driver);
        assert_eq!((told.moved, told.moving, told.occupied), (0, None, 0));
        let status = driver.node.status(driver.now);
        assert_eq!(status.memory.best_effort, Bytes::ZERO);
        let has = if cuts { Bytes::mib(2) } else { Bytes::ZERO };
        assert_eq!(status.disks[0].free + has, free);
    }
}

/// A move goes on beside a stream that keeps its contract, and that goes by the new place; with
/// no memory, or no other extent, it waits for some.
#[test]
fn a_move_waits_for_memory_and_for_space() {
    let (mut driver, _) = film();
    let spans = driver.all_rooms();
    let rest = driver.room(Bytes::kib(956));
    let place = driver.disks[0].capacity;
    let stream = driver.reader("film", usual());
    driver.break_at(DISK, Bytes::ZERO..place, None);
    driver.run(ms(70));
    driver.disks[0].troubles.clear();
    let told = moves(&driver);
    assert_eq!((told.moving, told.stuck.len()), (None, 1), "{told:?}");
    assert_eq!(told.stuck[0].why, Unmoved::NoMemory);
    driver.done(Op::Release { span: rest });
    driver.run(Duration::from_secs(5));
    assert_eq!(moves(&driver).moved, 1);
    let account = driver.node.stream(stream).unwrap().account;
    assert_eq!(account.late_requests, 0);
    for span in spans {
        driver.done(Op::Release { span });
    }
    let space = driver.node.status(driver.now).disks[0].free;
    driver.done(create("rest", space, Placement::default()));
    suspect(&mut driver, Bytes::mib(3), Bytes::kib(4));
    driver.run(Duration::from_secs(1));
    let stuck = moves(&driver).stuck;
    assert_eq!(stuck.len(), 1);
    assert_eq!(stuck[0].why, Unmoved::NoSpace);
    assert_eq!(driver.ask(Op::Shutdown), Ok(Reply::Done), "what is stuck keeps nobody");
}

fn slower(fixed: Duration) -> Op {
    let profile = Box::new(profile(Bytes::mib(256), fixed, FLUSH));
    Op::ProfileSet { disk: DISK, profile }
}

/// Another profile is what admission goes by from then on, and after the pool is opened again;
/// where a contract that is open would not fit, nothing changes, and it is named.
#[test]
fn a_profile_is_used_where_all_contracts_fit_with_it_and_not_at_all_where_not() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    let streams = [0, 1, 2].map(|_| driver.reader("film", usual()));
    driver.done(service("film", in_time(BLOCK, ms(150), ms(200))));
    let before = driver.node.status(driver.now);
    // At 14 ms a block takes 14.625; the reserve is a MiB, of 20 ms, as the pool began, and longer
    // than the volume's in the way. Three: 20 + 3 * 14.625 is more than 62.5.
    let told = driver.at_once(slower(ms(14)));
    let Err(Error::ProfileRefused { streams: named, volumes, refusal }) = told else {
        panic!("{told:?}")
    };
    assert!(!named.is_empty() && named.iter().all(|stream| streams.contains(stream)));
    assert!(volumes.len() <= 1 && refusal.disk == DISK);
    let after = driver.node.status(driver.now);
    assert_eq!(before, after, "nothing has changed");
    // At 13 ms it fits: 20 + 3 * 13.625 = 60.9.
    driver.done(slower(ms(13)));
    let status = driver.node.status(driver.now);
    let ppm = |millis: u64, micros: u64| millis * 1_000_000 / micros;
    assert_eq!(status.streams[0].shares, [(DISK, ppm(13_625, 62_500))]);
    assert_eq!(status.volumes[0].shares, [(DISK, ppm(13_625, 200_000))]);
    let log = ppm(5_000, 1_000_000) + 13_625_000u64.div_ceil(2_000);
    let all = ppm(13_625, 62_500) * 3 + ppm(13_625, 200_000) + log;
    assert!(status.disks[0].utilisation_ppm.abs_diff(all) <= 4);
    for _ in 0..8 {
        driver.next(streams[0], BLOCK);
    }
    // Cheaper again; and then one of another depth, for the next start.
    driver.done(slower(ms(10)));
    assert_eq!(driver.node.status(driver.now).streams[0].shares, [(DISK, 170_000)]);
    let mut deep = profile(Bytes::mib(256), FIXED, FLUSH);
    let Kind::Linear(line) = &mut deep.kind else { unreachable!() };
    line.depth = 8;
    driver.done(Op::ProfileSet { disk: DISK, profile: Box::new(deep) });
    let disk = &driver.node.status(driver.now).disks[0];
    assert!(disk.profile_for_next_start);
    driver.done(slower(ms(10)));
    assert!(!driver.node.status(driver.now).disks[0].profile_for_next_start);
    let small = Box::new(profile(Bytes::mib(128), FIXED, FLUSH));
    let told = driver.at_once(Op::ProfileSet { disk: DISK, profile: small });
    assert!(matches!(told, Err(Error::Invalid { what: "profile", .. })), "{told:?}");
    let (disk, profile) = (DiskIndex(1), Box::new(profile(Bytes::mib(256), FIXED, FLUSH)));
    let told = driver.at_once(Op::ProfileSet { disk, profile });
    assert_eq!(told, Err(Error::NoSuchDisk { disk, disks: 1 }));
}

/// A profile that was measured says nothing of a bus: its disk stays on the one that it shares.
/// One that describes the bus otherwise than the other disks do is refused.
#[test]
fn a_disk_stays_on_its_bus_under_another_profile() {
    use disk::{BusPlan, BusShare};
    let share = |name: &str, disks| {
        BusShare::new(BusPlan::new(name, Rate::per_second(1_000_000_000), disks)).unwrap()
    };
    let mut setup = Setup::new(2);
    setup.profiles.iter_mut().for_each(|profile| profile.bus = Some(share("shelf", 2)));
    let mut driver = setup.open();
    let bus = |driver: &Driver| driver.node.status(driver.now).disks[0].bus.clone();
    driver.done(slower(ms(3)));
    assert_eq!(bus(&driver), Some(share("shelf", 2)));
    let mut other = profile(Bytes::mib(256), ms(3), FLUSH);
    other.bus = Some(share("shelf", 3));
    let told = driver.at_once(Op::ProfileSet { disk: DISK, profile: Box::new(other) });
    assert!(matches!(told, Err(Error::Invalid { what: "profile", .. })), "{told:?}");
    assert_eq!(bus(&driver), Some(share("shelf", 2)), "as it was");
}

/// What a reader has asked for ahead of its turns has them, too, when its blocks have come to take less.
#[test]
fn blocks_that_were_asked_for_early_have_turns_on_a_quicker_disk() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    driver.done(slower(ms(12)));
    driver.disks[0].holds = true;
    driver.reader("film", contract(RATE, BLOCK, BLOCK * 8));
    let without_turn = |driver: &mut Driver| {
        let queue = driver.node.disk_queue(DISK);
        let keys: Vec<u64> = queue.commands().map(|(key, ..)| key).collect();
        keys.into_iter().filter(|&key| queue.due(key) == Some(Instant::MAX)).count()
    };
    assert_eq!(without_turn(&mut driver), 0);
    // Durable when the disk goes on.
    let set = driver.begin(slower(FIXED));
    let early = without_turn(&mut driver);
    assert!(early > 4, "{early}");
    // The first had been released: the turn after it is the second's.
    driver.run(RATE.time_for(BLOCK));
    for turns in 1..8 {
        driver.run(RATE.time_for(BLOCK));
        assert_eq!(without_turn(&mut driver), early - turns);
    }
    driver.disks[0].holds = false;
    assert_eq!(driver.wait(set), Ok(Reply::Done));
}

/// Pieces of best effort that cost more than the slack that is always left for them are cut
/// smaller. (Where there is more, one command does several.)
#[test]
fn best_effort_is_cut_to_the_slack_that_is_left_for_it() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    let longest = |driver: &mut Driver| {
        // The disk has something else to do, so that they wait.
        driver.disks[0].holds = true;
        let first = driver.begin(read("film", Bytes::mib(2), Bytes::kib(4)));
        let ticket = driver.begin(read("film", Bytes::ZERO, Bytes::MIB));
        let queue = driver.node.disk_queue(DISK);
        let all = queue.commands().filter_map(|(.., command)| Some(command?.access()?.len));
        let longest = all.max().unwrap();
        driver.disks[0].holds = false;
        for ticket in [first, ticket] {
            let Ok(Reply::Data { bytes: span, .. }) = driver.wait(ticket) else { panic!() };
            driver.done(Op::Release { span });
        }
        longest
    };
    assert_eq!(longest(&mut driver), Bytes::MIB);
    // A MiB takes 25 ms, a half 20, which is what was left.
    driver.done(slower(ms(15)));
    assert_eq!(longest(&mut driver), Bytes::kib(512));
    // A disk that is so slow that 60 ms are not enough for a MiB is cut from the start.
    let mut setup = Setup::new(1);
    setup.profiles = vec![profile(Bytes::mib(256), ms(53), FLUSH)];
    let mut driver = setup.open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    assert_eq!(longest(&mut driver), Bytes::kib(512));
}

fn measured(driver: &Driver) -> node::Measured {
    driver.node.status(driver.now).disks[0].measured.clone().expect("measured")
}

/// A disk that keeps to its profile: every read is in its bound, and nothing changes. It is
/// read in all its parts, in two sizes.
#[test]
fn a_disk_that_holds_is_measured_and_nothing_changes() {
    let mut driver = Setup::new(1).open();
    driver.done(Op::Reprofile { disk: DISK });
    assert_eq!(measured(&driver).outcome, Outcome::Running { done: 0, planned: 16 * 32 });
    driver.done(Op::Reprofile { disk: DISK });
    driver.run(Duration::from_secs(20));
    let told = measured(&driver);
    assert_eq!((told.outcome, told.reads, told.over), (Outcome::Holds, 512, 0));
    assert_eq!((told.large, told.parts.len()), (Bytes::MIB, 16));
    let (small, large) = (cost(Bytes::kib(4)), cost(Bytes::MIB));
    for (at, part) in (0..).zip(&told.parts) {
        assert_eq!((part.from, part.to), (Bytes::mib(16) * at, Bytes::mib(16) * (at + 1)));
        assert_eq!((part.small, part.large), (small, large));
        let rate = part.rate.expect("the large ones took longer");
        assert!(rate.get().abs_diff(SPEED.get()) < 200, "{rate:?}");
    }
    let reads: Vec<_> = driver
        .journal
        .iter()
        .filter(|done| matches!(done.action, DiskAction::Read { .. }))
        .map(|done| done.action.transfer().unwrap().0)
        .collect();
    let mut different: Vec<Bytes> = reads.iter().map(|range| range.start).collect();
    different.sort();
    different.dedup();
    let long = reads.iter().filter(|range| range.end - range.start == Bytes::MIB).count();
    assert_eq!(
        (reads.len(), long),
        (512, 256),
        "in each part as often in one size as in the other"
    );
    assert!(different.len() > 500, "at places that no cache has");
    assert_eq!(driver.node.status(driver.now).memory.best_effort, Bytes::ZERO);
    driver.done(Op::Reprofile { disk: DISK });
    driver.run(ms(15));
    let before = driver.journal.len();
    assert_eq!(driver.ask(Op::Shutdown), Ok(Reply::Done), "it does not keep anybody");
    let reads = driver.since(before).iter();
    let reads = reads.filter(|done| matches!(done.action, DiskAction::Read { .. })).count();
    assert!(reads <= 1, "the one that was under way: {reads}");
}

/// A disk that takes longer than its bounds has a profile with wider ones, which is used where
/// it fits; where it does not it waits for a stream to close.
#[test]
fn a_disk_that_is_slower_has_wider_bounds_where_they_fit() {
    let slow = |driver: &mut Driver, extra: Duration| {
        driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), extra);
        driver.done(Op::Reprofile { disk: DISK });
    };
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    // A block each 31.25 ms: 10.625 and the reserve of 20 fit into them.
    let fast = contract(RATE * 2, BLOCK, Bytes::ZERO);
    let stream = driver.reader("film", fast);
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    slow(&mut driver, ms(4));
    driver.run(Duration::from_secs(30));
    let told = measured(&driver);
    assert_eq!((&told.outcome, told.over, told.excess), (&Outcome::Used, told.reads, ms(4)));
    // A quarter on top of 4 ms, in what every read waits for: 5 ms less for it.
    let told = driver.ask(open("film", Mode::Read, fast, Bytes::ZERO));
    let Err(Error::Refused(refusal)) = told else { panic!("{told:?}") };
    let period = Duration::from_micros(31_250);
    assert_eq!(refusal.deadline, Some((period - ms(5), cost(BLOCK) + ms(25) - period)));
    driver.run(Duration::from_secs(5));
    driver.done(Op::Reprofile { disk: DISK });
    driver.run(Duration::from_secs(30));
    assert_eq!(measured(&driver).outcome, Outcome::Holds, "the wider ones hold");
    // Only what each read waits for has become longer, not what it takes from others.
    let stream = driver.reader("film", usual());
    assert_eq!(driver.node.stream(stream).unwrap().shares, [(DISK, 170_000)]);
    // Four streams fill the disk, 20 + 4 * 10.625 in 62.5: no wider profile fits until one has
    // gone.
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    let streams = [0, 1, 2, 3].map(|_| driver.reader("film", usual()));
    slow(&mut driver, ms(4));
    driver.run(Duration::from_secs(30));
    let told = measured(&driver);
    assert!(matches!(told.outcome, Outcome::Refused(_)), "{told}");
    assert_eq!(driver.close(streams[0]), Ok(Reply::Done));
    driver.run(ms(1));
    assert_eq!(measured(&driver).outcome, Outcome::Used);
}

/// Where it is asked for, a disk whose profile does not hold is measured by itself, not again
/// for half an hour; and flushes that take longer widen their bound, as far as commits do not
/// become too rare.
#[test]
fn a_profile_that_does_not_hold_is_measured_and_widened_by_itself() {
    let mut driver = Setup::new(1).with(|config| config.remeasure = true).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    driver.run(Duration::from_secs(5));
    assert_eq!(driver.node.status(driver.now).disks[0].measured, None);
    driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), ms(3));
    for _ in 0..40 {
        driver.read("film", Bytes::ZERO, BLOCK).unwrap();
    }
    driver.run(Duration::from_secs(60));
    let told = measured(&driver);
    assert_eq!(told.outcome, Outcome::Used, "{told}");
    // Flushes: 5 ms are 25.
    let before = driver.node.status(driver.now).disks[0].utilisation_ppm;
    driver.disks[0].flush_takes = Some(ms(25));
    for number in 0..4 {
        driver.volume(&format!("v{number}"), Bytes::MIB);
        driver.run(Duration::from_secs(3));
    }
    let after = driver.node.status(driver.now).disks[0].utilisation_ppm;
    // A quarter more than 25 ms, in the place of 5, once a second.
    assert!((after - before).abs_diff(26_250) <= 2, "{before} {after}");
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), ms(3));
    for _ in 0..60 {
        driver.read("film", Bytes::ZERO, BLOCK).unwrap();
    }
    driver.run(Duration::from_secs(60));
    assert_eq!(driver.node.status(driver.now).disks[0].measured, None, "nobody wants it");
}

/// A profile by which some requests cost less and others more: who needs less gives it back before the
/// others ask for it, whatever the order in which they came.
#[test]
fn a_profile_that_is_cheaper_for_some_has_room_for_what_is_dearer_for_others() {
    let split = |read: u64, write: u64, latency: u64| {
        let mut profile = profile(Bytes::mib(256), ms(40), FLUSH);
        let Kind::Linear(line) = &mut profile.kind else { panic!("a line") };
        (line.read.fixed, line.write.fixed, line.latency) = (ms(read), ms(write), ms(latency));
        profile
    };
    for latency in [0, 2] {
        let mut setup = Setup::new(1);
        setup.profiles = vec![split(40, 40, latency)];
        let mut driver = setup.open();
        driver.recorded("film", Bytes::MIB, Bytes::MIB, 1);
        let len = Bytes::kib(256);
        for number in 0..4 {
            let name = format!("v{number}");
            driver.volume(&name, Bytes::MIB);
            driver.writer(&name, contract(Rate::per_second(512 << 10), len, Bytes::ZERO));
        }
        for _ in 0..4 {
            driver.reader("film", contract(Rate::per_second(640 << 10), len, Bytes::ZERO));
        }
        driver.run(Duration::from_secs(5));
        driver.done(Op::ProfileSet { disk: DISK, profile: Box::new(split(4, 75, 0)) });
    }
}

/// A disk whose profile does not hold is measured, and again after half an hour: not all the time.
#[test]
fn a_disk_is_measured_again_now_and_then() {
    let mut driver = Setup::new(1).with(|config| config.remeasure = true).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    // A contract that leaves no room for wider bounds: the profile stays as it is.
    driver.reader("film", contract(RATE * 2, BLOCK, Bytes::ZERO));
    driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), ms(30));
    let small = |driver: &Driver, from| {
        let read = |done: &&Done| {
            done.action
                .transfer()
                .is_some_and(|(range, _)| range.end - range.start == Bytes::kib(4))
        };
        driver.since(from).iter().filter(read).count()
    };
    let reads = |driver: &mut Driver| {
        for _ in 0..40 {
            driver.read("film", Bytes::ZERO, BLOCK).unwrap();
        }
    };
    reads(&mut driver);
    driver.run(Duration::from_secs(120));
    assert!(matches!(measured(&driver).outcome, Outcome::Refused(_)));
    let before = driver.journal.len();
    reads(&mut driver);
    driver.run(Duration::from_secs(600));
    assert_eq!(small(&driver, before), 0);
    driver.run(Duration::from_secs(1_200));
    reads(&mut driver);
    driver.run(Duration::from_secs(60));
    assert!(small(&driver, before) > 0);
}

/// A pool that is shut down while one of its disks is measured waits for no read that the disk has
/// not begun.
#[test]
fn a_measurement_ends_with_the_pool() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    driver.run(Duration::from_secs(5));
    driver.disks[0].holds = true;
    driver.begin(read("film", Bytes::ZERO, BLOCK));
    driver.done(Op::Reprofile { disk: DISK });
    let before = driver.journal.len();
    let end = driver.begin(Op::Shutdown);
    driver.disks[0].holds = false;
    assert_eq!(driver.wait(end), Ok(Reply::Done));
    let reads = driver.since(before).iter().filter_map(|done| done.action.transfer());
    assert_eq!(reads.filter(|(_, way)| *way == Direction::Read).count(), 1);
}

/// What a measurement says of a disk: that its bounds held, in parts of it that are few however many
/// zones it has; and no rate where bytes take no time.
#[test]
fn a_measurement_is_told_in_a_few_parts_and_in_words() {
    let zones: Vec<(Bytes, u64)> = (0..40).map(|zone| (Bytes::mib(zone * 6), 90 - zone)).collect();
    let mut setup = Setup::new(1);
    setup.profiles = vec![hard_disk(&zones)];
    let mut driver = setup.open();
    driver.done(Op::Reprofile { disk: DISK });
    driver.run(Duration::from_secs(120));
    let told = measured(&driver);
    assert!((8..=16).contains(&told.parts.len()), "{}", told.parts.len());
    assert_eq!(told.outcome, Outcome::Holds);
    assert_eq!(told.to_string(), format!("all {} reads kept within their bounds", told.reads));
    let mut setup = Setup::new(1);
    let Kind::Linear(line) = &mut setup.profiles[0].kind else { panic!("a line") };
    line.read.rate = Rate::per_second(1 << 50);
    let mut driver = setup.open();
    driver.done(Op::Reprofile { disk: DISK });
    driver.run(Duration::from_secs(120));
    assert!(measured(&driver).parts.iter().all(|part| part.rate.is_none()));
}
