//! Writes that are answered before they are on their disk: who reads finds them, who syncs waits for
//! them and is told of those that failed, and whoever opens or removes the volume comes after them.

use crate::driver::*;
use node::{DeviceError, DiskIndex, Error, Mode, Op, Priority, Reply, Ticket, Who, WriteRange};
use units::{Bytes, Direction, Duration, Instant};

const V: &str = "v";
const KIB4: Bytes = Bytes::kib(4);
const DISK: DiskIndex = DiskIndex(0);

fn behind(offset: Bytes, len: Bytes) -> WriteRange {
    WriteRange { behind: true, ..WriteRange::new(offset, len) }
}

/// Begins a write that may be answered before it is on its disk.
fn begin(driver: &mut Driver, volume: &str, seed: u64, offset: Bytes, len: Bytes) -> Ticket {
    let range = behind(offset, len);
    let span = driver.room(range.room());
    driver.fill(span, seed, &range);
    driver.begin(write(volume, range, span))
}

/// The same, where it is answered at once.
fn ahead(driver: &mut Driver, seed: u64, offset: Bytes, len: Bytes) {
    let ticket = begin(driver, V, seed, offset, len);
    assert_eq!(driver.answer(ticket), Some(Ok(Reply::Done)), "answered at once");
}

fn sync(driver: &mut Driver, told: u64) -> Result<Reply, Error> {
    driver.ask(Op::SyncVolume { volume: V.into(), told: Some(told) })
}

fn written(driver: &Driver) -> usize {
    let writes = driver.journal.iter().filter_map(|done| done.action.transfer());
    writes.filter(|(_, direction)| *direction == Direction::Write).count()
}

/// An idle disk and a volume of 8 MiB with bytes in its first half.
fn volume() -> Driver {
    let mut driver = Setup::new(1).open();
    driver.recorded(V, Bytes::mib(8), Bytes::mib(4), 1);
    driver
}

#[test]
fn a_write_is_answered_before_it_is_on_its_disk_and_read_before_that() {
    let mut driver = volume();
    let before = written(&driver);
    ahead(&mut driver, 2, Bytes::kib(64), Bytes::kib(64));
    ahead(&mut driver, 3, Bytes::mib(5), Bytes::kib(64));
    assert_eq!(written(&driver), before, "no time has passed");
    let got = driver.read(V, Bytes::kib(60), Bytes::kib(72)).unwrap();
    let mut want = pattern(1, Bytes::kib(60), Bytes::kib(72));
    want[4 << 10..68 << 10].copy_from_slice(&pattern(2, Bytes::kib(64), Bytes::kib(64)));
    assert!(got == want);
    let got = driver.read(V, Bytes::mib(5), Bytes::kib(64)).unwrap();
    assert!(got == pattern(3, Bytes::mib(5), Bytes::kib(64)), "where nothing was");
    // The other way is as it was.
    let ticket = driver.begin_write(V, 4, Bytes::ZERO, KIB4);
    assert!(!driver.is_answered(ticket));
    assert_eq!(driver.wait(ticket), Ok(Reply::Done));
}

#[test]
fn what_is_to_be_written_is_no_hole() {
    let mut driver = volume();
    ahead(&mut driver, 2, Bytes::mib(5), Bytes::kib(64));
    let id = driver.node.volume_id(V).unwrap();
    let range = Bytes::mib(5)..Bytes::mib(5) + Bytes::kib(128);
    let runs = driver.node.written(&Who::root(), (V, id), range).unwrap();
    assert_eq!(runs, [(Bytes::kib(64), true), (Bytes::kib(64), false)]);
}

/// On a disk that takes longer for them than a commit; the power is cut when the sync is answered.
#[test]
fn a_sync_waits_for_the_last_of_them() {
    for op in [Op::SyncVolume { volume: V.into(), told: Some(0) }, Op::Sync] {
        let mut driver = volume();
        let place = driver.place(V, Bytes::ZERO);
        driver.slow_at(DISK, place..place + Bytes::mib(4), ms(300));
        for block in 0..4 {
            ahead(&mut driver, 2, Bytes::kib(256) * block, KIB4);
        }
        driver.done(op);
        let mut driver = driver.after_a_power_cut();
        for at in (0..4).map(|block| Bytes::kib(256) * block) {
            assert!(driver.read(V, at, KIB4).unwrap() == pattern(2, at, KIB4), "{at}");
        }
    }
}

/// A write that waits for another may wait for long, and whoever would wait for it as well: it is
/// answered when it is on its disk.
#[test]
fn a_write_that_waits_for_another_is_not_answered_ahead() {
    let mut driver = volume();
    let range = WriteRange::new(Bytes::ZERO, KIB4);
    let span = driver.room(KIB4);
    driver.begin(write_as(V, range, span, node::Priority::Background));
    let ticket = begin(&mut driver, V, 2, Bytes::ZERO, KIB4);
    assert!(!driver.is_answered(ticket));
    assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    for priority in [node::Priority::Background, node::Priority::Interactive] {
        let span = driver.room(KIB4);
        let ticket = driver.begin(write_as(V, behind(Bytes::MIB, KIB4), span, priority));
        assert!(!driver.is_answered(ticket), "only what is of normal priority");
        assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    }
}

/// A program that is promised answers in time would wait for what is behind.
#[test]
fn nothing_is_answered_ahead_beside_a_contract_of_another() {
    let mut driver = volume();
    let service = in_time(KIB4, ms(400), Duration::from_secs(1));
    let Ok(Reply::Handle { handle }) = driver.ask(Op::HandleOpen { volume: V.into(), service })
    else {
        panic!("no handle")
    };
    let ticket = begin(&mut driver, V, 2, Bytes::ZERO, KIB4);
    assert!(!driver.is_answered(ticket));
    assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    driver.done(Op::HandleClose { handle });
    ahead(&mut driver, 2, Bytes::ZERO, KIB4);
}

#[test]
fn a_sync_waits_for_what_was_answered_before_it_and_for_nothing_else() {
    let mut driver = volume();
    driver.volume("other", Bytes::mib(8));
    for block in 0..4 {
        ahead(&mut driver, 2, Bytes::kib(64) * (block * 3), Bytes::kib(64));
    }
    let sync = driver.begin(Op::SyncVolume { volume: V.into(), told: Some(0) });
    assert!(!driver.is_answered(sync));
    // Both volumes are written on and on: always some of it is behind.
    let mut at = Bytes::ZERO;
    while !driver.is_answered(sync) {
        assert!(at < Bytes::mib(4), "it waits for what came later");
        for volume in [V, "other"] {
            begin(&mut driver, volume, 5, Bytes::mib(2) + at, KIB4);
        }
        at += KIB4 * 2;
        driver.run(ms(4));
    }
    assert_eq!(driver.answer(sync), Some(Ok(Reply::Done)));
    let so_far = written(&driver);
    driver.run(Duration::from_secs(1));
    assert!(written(&driver) > so_far + 2, "some was behind");
    let mut driver = driver.after_a_power_cut();
    for block in 0..4 {
        let at = Bytes::kib(64) * (block * 3);
        let got = driver.read(V, at, Bytes::kib(64)).unwrap();
        assert!(got == pattern(2, at, Bytes::kib(64)), "{block}");
    }
}

/// Everybody who uses the volume is told once; who comes later is told where nobody was, also where what
/// somebody was to hear was lost with his connection.
#[test]
fn who_syncs_is_told_of_what_failed() {
    let mut driver = volume();
    let place = driver.place(V, Bytes::mib(1));
    driver.break_at(DISK, place..place + Bytes::kib(64), Some(Direction::Write));
    ahead(&mut driver, 2, Bytes::mib(1), Bytes::kib(64));
    ahead(&mut driver, 2, Bytes::mib(2), Bytes::kib(64));
    driver.run(Duration::from_secs(5));
    assert_eq!(driver.node.failures_told(V), 0, "who comes now is told of it");
    driver.done(Op::Sync);
    let told = sync(&mut driver, 0);
    let Err(Error::WriteBehind { name, failures: 1, disk: DISK, .. }) = told else {
        panic!("{told:?}")
    };
    assert_eq!(name, V);
    assert_eq!(driver.node.failures_told(V), 0, "he may not have heard it");
    driver.node.failures_were_told(&Who::root(), V, 1);
    assert_eq!(sync(&mut driver, 1), Ok(Reply::Done), "once");
    assert!(sync(&mut driver, 0).is_err(), "another, who was there");
    assert_eq!(driver.node.failures_told(V), 1, "who comes now need not know");
    let got = driver.read(V, Bytes::mib(2), Bytes::kib(64)).unwrap();
    assert!(got == pattern(2, Bytes::mib(2), Bytes::kib(64)), "it binds nobody else");
}

/// Whoever needs the volume at rest comes when it is. Nothing is answered ahead of who waits, nor beside
/// a stream or a contract.
#[test]
fn who_opens_or_removes_the_volume_waits() {
    let ops = [
        open(V, Mode::Read, usual(), Bytes::ZERO),
        open(V, Mode::Write, usual(), Bytes::ZERO),
        open_window(V, Mode::Read, usual(), 7),
        service(V, in_time(KIB4, ms(400), Duration::from_secs(1))),
        resize(V, Bytes::mib(4)),
        Op::Staged(Box::new(resize(V, Bytes::mib(4)))),
        rename("w", V, true),
        delete(V),
    ];
    for op in ops {
        let mut driver = volume();
        driver.volume("w", Bytes::mib(1));
        ahead(&mut driver, 2, Bytes::kib(256), Bytes::MIB);
        let before = written(&driver);
        let said = format!("{op:?}");
        let ticket = driver.begin(op);
        assert!(!driver.is_answered(ticket), "{said}");
        let answer = driver.wait(ticket);
        assert!(answer.is_ok(), "{said}: {answer:?}");
        assert!(written(&driver) > before, "{said}");
        if said.contains("Open") || said.contains("Service") {
            let ticket = begin(&mut driver, V, 2, Bytes::kib(256), KIB4);
            assert_ne!(driver.answer(ticket), Some(Ok(Reply::Done)), "{said}");
        }
    }
    let mut driver = volume();
    ahead(&mut driver, 2, Bytes::kib(256), Bytes::MIB);
    let removed = driver.begin(resize(V, Bytes::mib(4)));
    let wanted = begin(&mut driver, V, 2, Bytes::kib(128), KIB4);
    assert!(!driver.is_answered(wanted), "somebody waits");
    assert_eq!(driver.wait(removed), Ok(Reply::Done));
    assert_eq!(driver.wait(wanted), Ok(Reply::Done));
    ahead(&mut driver, 2, Bytes::kib(128), KIB4);
}

/// One user alone has half of what may be behind; beside another, both have less.
#[test]
fn how_much_is_behind_has_a_bound_for_each_user_and_in_all() {
    let answered = |driver: &mut Driver, uid: u32, from: u64, gap: u64| {
        driver.who = Who { is_superuser: true, ..Who::user(uid, 0, []) };
        let place = |block: u64| KIB4 * (from + gap * block);
        let tickets = (0..100).map(|block| begin(driver, V, 2, place(block), KIB4));
        let tickets: Vec<Ticket> = tickets.collect();
        tickets.into_iter().filter(|ticket| driver.answer(*ticket).is_some()).count()
    };
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(256)).open();
    driver.recorded(V, Bytes::mib(32), Bytes::mib(32), 1);
    assert_eq!(answered(&mut driver, 1, 0, 2), 4, "runs");
    assert_eq!(answered(&mut driver, 2, 1200, 2), 2);
    driver.run(Duration::from_secs(60));
    assert_eq!(answered(&mut driver, 2, 0, 1), 16, "neighbours");
    assert_eq!(answered(&mut driver, 1, 1200, 1), 8);
    driver.run(Duration::from_secs(60));
    assert_eq!(answered(&mut driver, 2, 0, 2), 4, "all of it is free again");
    // Who finds no room is answered when there is some, not when his own write has ended.
    let before = written(&driver);
    let last = begin(&mut driver, V, 2, Bytes::mib(30), KIB4);
    driver.run(ms(1));
    assert!(!driver.is_answered(last));
    assert_eq!(driver.wait(last), Ok(Reply::Done));
    assert!(written(&driver) - before < 100, "it was not the last one to be written");
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(32)).open();
    driver.recorded(V, Bytes::mib(32), Bytes::mib(8), 1);
    let long = (0..8).map(|block| begin(&mut driver, V, 2, Bytes::MIB * block, Bytes::MIB));
    let long: Vec<Ticket> = long.collect();
    let ahead = long.into_iter().filter(|ticket| driver.answer(*ticket).is_some()).count();
    assert_eq!(ahead, 1, "an eighth of 23 MiB, of which one user has half");
}

/// A pool that is shut down has written what it has answered.
#[test]
fn what_was_answered_is_written_before_the_node_ends() {
    let mut driver = volume();
    for block in 0..30 {
        let ticket =
            begin(&mut driver, V, 2, Bytes::kib(20) * block + Bytes::new(7), Bytes::kib(20));
        assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    }
    driver.run(Duration::from_secs(2));
    let within = |block: u64| (Bytes::kib(24) * block + Bytes::new(7), Bytes::kib(19));
    for (at, len) in (30..34).map(within) {
        ahead(&mut driver, 2, at, len);
    }
    let read = driver.begin(read(V, Bytes::ZERO, Bytes::kib(64)));
    let sync = driver.begin(Op::SyncVolume { volume: V.into(), told: Some(0) });
    let held = driver.begin(delete(V));
    driver.done(Op::Shutdown);
    assert!(matches!(driver.answer(read), Some(Ok(_) | Err(Error::ShuttingDown))));
    assert_eq!(driver.answer(sync), Some(Ok(Reply::Done)));
    assert_eq!(driver.answer(held), Some(Err(Error::ShuttingDown)));
    let mut driver = driver.after_a_power_cut();
    let got = driver.read(V, Bytes::ZERO, Bytes::MIB).unwrap();
    let mut want = pattern(1, Bytes::ZERO, Bytes::MIB);
    for (at, len) in [(Bytes::new(7), Bytes::kib(600))].into_iter().chain((30..34).map(within)) {
        want[at.as_usize()..][..len.as_usize()].copy_from_slice(&pattern(2, at, len));
    }
    assert!(got == want);
}

/// Random writes and reads of few blocks, most of them under way at once: each read finds what was
/// answered before it, and after a power cut there is what was synced.
#[test]
fn reads_find_what_was_answered_and_a_power_cut_leaves_what_was_synced() {
    let len = Bytes::kib(256);
    for seed in 0..40_u64 {
        let mut number = seed * 2 + 1;
        let mut below = |n: u64| {
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (number >> 33) % n
        };
        let mut driver = volume();
        let mut state = pattern(1, Bytes::ZERO, len);
        let mut content = 10;
        for _ in 0..3 {
            for _ in 0..60 {
                let at = below(len.get() - 1);
                let most = (len.get() - at).min(30_000);
                let size = 1 + below(most);
                let (at, size) = (Bytes::new(at), Bytes::new(size));
                match below(4) {
                    0 => {
                        let from = at.round_down(KIB4);
                        let size = size.round_up(KIB4).min(len - from);
                        let got = driver.read(V, from, size).unwrap();
                        let want = &state[from.as_usize()..][..size.as_usize()];
                        assert!(got == want, "seed {seed}");
                    }
                    1 => driver.run(Duration::from_millis(below(60))),
                    _ => {
                        content += 1;
                        let ticket = begin(&mut driver, V, content, at, size);
                        if driver.answer(ticket).is_none() {
                            assert_eq!(driver.wait(ticket), Ok(Reply::Done));
                        }
                        let bytes = pattern(content, at, size);
                        state[at.as_usize()..][..size.as_usize()].copy_from_slice(&bytes);
                    }
                }
            }
            assert_eq!(sync(&mut driver, 0), Ok(Reply::Done));
            driver = driver.after_a_power_cut();
            let got = driver.read(V, Bytes::ZERO, len).unwrap();
            assert!(got == state, "seed {seed}");
        }
    }
}

/// A stream that was held reads what was written before it was asked for.
#[test]
fn a_stream_reads_what_was_answered_before_it_was_opened() {
    let mut driver = volume();
    ahead(&mut driver, 2, Bytes::ZERO, Bytes::MIB);
    let (stream, _) = driver.stream(open(V, Mode::Read, usual(), Bytes::ZERO));
    let Ok(Reply::Data { bytes: span, .. }) = driver.ask(Op::StreamRead { stream, len_max: BLOCK })
    else {
        panic!("no data")
    };
    assert!(driver.bytes(span) == pattern(2, Bytes::ZERO, BLOCK));
}

/// What contracts leave no slack for waits on, and who waits for it is told: it is not lost.
#[test]
fn what_was_answered_outlives_a_time_without_slack() {
    let len = Bytes::kib(64);
    let mut driver = volume();
    driver.volume("other", Bytes::mib(8));
    driver.done(service("other", in_time(len, ms(100), ms(150))));
    let place = driver.place(V, Bytes::ZERO);
    driver.slow_at(DISK, place..place + Bytes::MIB, ms(300));
    // Until it is known to be slow.
    let slow = (0..48).find_map(|_| {
        (1..4).for_each(|at| drop(driver.read(V, Bytes::mib(at), len).unwrap()));
        let ticket = driver.begin(read(V, Bytes::ZERO, len));
        driver.run(Duration::from_secs(1));
        (!driver.is_answered(ticket)).then_some(ticket)
    });
    assert!(driver.wait(slow.expect("slow reads are noticed")).is_err());
    ahead(&mut driver, 3, Bytes::ZERO, len);
    let waits = [
        Op::SyncVolume { volume: V.into(), told: Some(0) },
        Op::Sync,
        open(V, Mode::Read, usual(), Bytes::ZERO),
        read(V, Bytes::ZERO, len),
    ];
    let waits = waits.map(|op| driver.begin(op));
    driver.run(Duration::from_secs(70));
    for ticket in waits {
        let error = Error::Device { disk: DISK, error: DeviceError::NO_SLACK };
        assert_eq!(driver.answer(ticket), Some(Err(error)));
    }
    driver.done(service("other", node::Service::default()));
    assert_eq!(sync(&mut driver, 0), Ok(Reply::Done));
    let got = driver.read(V, Bytes::ZERO, len).unwrap();
    assert!(got == pattern(3, Bytes::ZERO, len));
}

/// A pool whose last writes could not be written says so when it is shut down.
#[test]
fn a_failure_that_nobody_was_told_of_is_told_at_the_end() {
    let mut driver = volume();
    let place = driver.place(V, Bytes::mib(1));
    driver.break_at(DISK, place..place + Bytes::kib(64), Some(Direction::Write));
    ahead(&mut driver, 2, Bytes::mib(1), Bytes::kib(64));
    let ended = driver.ask(Op::Shutdown);
    assert!(matches!(ended, Err(Error::WriteBehind { failures: 1, .. })), "{ended:?}");
}

/// Whom a reader's sync has told of a failure, a writer who comes later is told of all the same.
#[test]
fn a_reader_is_told_for_himself_only() {
    let mut driver = volume();
    let access = node::Access { mode: Some(0o604), ..node::Access::default() };
    driver.done(Op::VolumeAccess { name: V.into(), access });
    let place = driver.place(V, Bytes::mib(1));
    driver.break_at(DISK, place..place + Bytes::kib(64), Some(Direction::Write));
    ahead(&mut driver, 2, Bytes::mib(1), Bytes::kib(64));
    driver.run(Duration::from_secs(5));
    let reader = Who::user(7, 7, []);
    let sync_volume = Op::SyncVolume { volume: V.into(), told: Some(0) };
    let asked = driver.begin_as(reader.clone(), sync_volume);
    assert!(matches!(driver.wait(asked), Err(Error::WriteBehind { .. })));
    driver.node.failures_were_told(&reader, V, 1);
    assert_eq!(driver.node.failures_told(V), 0);
    assert!(sync(&mut driver, 0).is_err());
    driver.node.failures_were_told(&Who::root(), V, 1);
    assert_eq!(driver.node.failures_told(V), 1);
}

/// The recorded length covers what was answered.
#[test]
fn the_length_covers_what_was_answered() {
    let mut driver = volume();
    ahead(&mut driver, 2, Bytes::mib(5), Bytes::kib(64));
    let length = Bytes::mib(5) + Bytes::kib(64);
    assert_eq!(driver.node.volume(V).unwrap().length, length);
    driver.run(Duration::from_secs(5));
    assert_eq!(driver.node.volume(V).unwrap().length, length);
}

/// Writers of both volumes of a rename do not keep it waiting.
#[test]
fn a_rename_over_another_volume_comes_beside_writers_of_both() {
    let mut driver = volume();
    driver.recorded("w", Bytes::mib(8), Bytes::mib(4), 1);
    ahead(&mut driver, 2, Bytes::ZERO, KIB4);
    let ticket = driver.begin(rename("w", V, true));
    for block in 0..50 {
        if driver.is_answered(ticket) {
            break;
        }
        let from = ["w", V][block as usize % 2];
        begin(&mut driver, from, 3, KIB4 * (3 * block + 3), KIB4);
        driver.run(ms(5));
    }
    let answer = driver.answer(ticket);
    let is_busy = matches!(answer, Some(Err(Error::VolumeBusy { .. })));
    assert!(is_busy || answer == Some(Ok(Reply::Done)), "{answer:?}");
}

/// More than are asked again at once: the others are, too, before any time passes.
#[test]
fn all_who_waited_go_on_at_the_same_time() {
    let mut driver = volume();
    ahead(&mut driver, 2, Bytes::ZERO, KIB4);
    let ops = (0..30).map(|_| Op::Staged(Box::new(resize(V, Bytes::mib(8)))));
    let tickets: Vec<Ticket> = ops.map(|op| driver.begin(op)).collect();
    assert!(tickets.iter().all(|&ticket| !driver.is_answered(ticket)));
    let mut tickets = tickets.into_iter();
    assert_eq!(driver.wait(tickets.next().unwrap()), Ok(Reply::Done));
    let then = driver.now;
    for ticket in tickets {
        assert!(
            driver.node.next_timer().is_some_and(|due| due <= then) || driver.is_answered(ticket)
        );
        assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    }
    assert_eq!(driver.now, then);
}

/// Two programs read at interactive priority, and always have something asked of the disk: they go before what
/// was answered ahead, for as long as nobody waits for that. Who syncs waits for it: so it is served as theirs,
/// its edges first and then the write itself, and he is answered within the time that is stated.
#[test]
fn a_sync_beside_interactive_readers_is_answered_in_time() {
    let films = ["one", "two"];
    for op in [Op::SyncVolume { volume: V.into(), told: Some(0) }, Op::Sync] {
        for (offset, len) in [(Bytes::kib(64), KIB4), (Bytes::kib(64) + Bytes::new(100), KIB4)] {
            let quick = Setup::new(1).with(|config| config.commit_interval = ms(500));
            let mut driver = quick.open();
            driver.recorded(V, Bytes::mib(8), Bytes::mib(4), 1);
            films.iter().for_each(|film| driver.recorded(film, Bytes::mib(48), Bytes::mib(48), 1));
            let (mut reads, mut next) = (Vec::new(), 0u64);
            let mut go_on = |driver: &mut Driver| {
                reads.retain(|&ticket| match driver.answer(ticket) {
                    Some(Ok(Reply::Data { bytes: span, .. })) => {
                        driver.done(Op::Release { span });
                        false
                    }
                    Some(other) => panic!("{other:?}"),
                    None => true,
                });
                while reads.len() < 4 {
                    let (film, at) = (films[next as usize % 2], Bytes::kib(512) * (next / 2 % 96));
                    next += 1;
                    let op = read_as(film, at, Bytes::kib(256), Priority::Interactive);
                    reads.push(driver.begin(op));
                }
            };
            go_on(&mut driver);
            ahead(&mut driver, 2, offset, len);
            let (asked, most) = (driver.now, driver.node.sync_time_max(None).unwrap());
            let ticket = driver.begin(op.clone());
            while !driver.is_answered(ticket) {
                assert!(driver.now - asked <= most, "{op:?}: more than {most:?}");
                assert!(driver.step(Instant::MAX));
                go_on(&mut driver);
            }
            assert_eq!(driver.answer(ticket), Some(Ok(Reply::Done)));
            let mut driver = driver.after_a_power_cut();
            let from = offset.round_down(KIB4);
            let got = driver.read(V, from, KIB4 * 2).unwrap();
            let at = (offset - from).as_usize();
            assert!(got[at..at + len.as_usize()] == pattern(2, offset, len));
        }
    }
}
