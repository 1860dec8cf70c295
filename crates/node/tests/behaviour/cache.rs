//! What best effort has read is there for whoever reads it again, and what comes next is read ahead.

use crate::driver::*;
use node::{DiskAction, Error, Mode, Op, Priority, Reply, Span, Who};
use units::{Bytes, Duration, Rate};

const PIECE: Bytes = Bytes::kib(64);

/// A pool that caches, and a film.
fn cached() -> Driver {
    let mut driver = Setup::new(1).open();
    driver.node.cache_reads();
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    driver
}

/// Reads from the disk since `from`.
fn reads(driver: &Driver, from: usize) -> usize {
    let read = |done: &&Done| matches!(done.action, DiskAction::Read { .. });
    driver.since(from).iter().filter(read).count()
}

fn check(driver: &mut Driver, seed: u64, offset: Bytes, len: Bytes) {
    assert!(driver.read("film", offset, len).unwrap() == pattern(seed, offset, len), "{offset}");
}

#[test]
fn what_was_read_is_had_again_without_the_disk_in_whole_or_in_part() {
    let mut driver = cached();
    let from = driver.journal.len();
    check(&mut driver, 1, Bytes::mib(4), PIECE);
    assert_eq!(reads(&driver, from), 1);
    let before = driver.now;
    check(&mut driver, 1, Bytes::mib(4), PIECE);
    check(&mut driver, 1, Bytes::mib(4) + Bytes::kib(20), Bytes::kib(4));
    assert_eq!((reads(&driver, from), driver.now), (1, before), "at once");
    let memory = driver.node.status(driver.now).memory;
    assert_eq!(memory.from_memory, PIECE + Bytes::kib(4));
    assert_eq!((memory.kept, memory.best_effort), (PIECE, Bytes::ZERO));
    let volume = driver.node.status(driver.now).volumes[0].from_memory;
    assert_eq!(volume, PIECE + Bytes::kib(4));
    // What is only partly there is read as a whole.
    check(&mut driver, 1, Bytes::mib(4) + Bytes::kib(32), PIECE);
    assert_eq!(reads(&driver, from), 2);
}

#[test]
fn nothing_is_cached_where_it_is_not_switched_on_or_the_disk_is_quick() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    let from = driver.journal.len();
    (0..2).for_each(|_| check(&mut driver, 1, Bytes::mib(4), PIECE));
    assert_eq!(reads(&driver, from), 2);
    let quick = profile(Bytes::mib(256), Duration::from_micros(5), Duration::from_micros(5));
    let mut driver = driver.after_a_power_cut_on(quick);
    driver.node.cache_reads();
    let from = driver.journal.len();
    (0..2).for_each(|_| check(&mut driver, 1, Bytes::mib(4), PIECE));
    assert_eq!(reads(&driver, from), 2);
}

/// Whatever is written there, however it is written: the new bytes are read from when the write is
/// answered on, and what was read while it was under way is not cached.
#[test]
fn a_write_makes_void_what_is_cached_and_what_is_on_its_way() {
    let mut driver = cached();
    let at = Bytes::mib(4);
    check(&mut driver, 1, at, PIECE);
    driver.write("film", 2, at + Bytes::kib(16), Bytes::kib(4));
    let from = driver.journal.len();
    let bytes = driver.read("film", at, PIECE).unwrap();
    assert_eq!(reads(&driver, from), 1);
    let [before, behind] = [Bytes::kib(16), Bytes::kib(44)];
    assert!(bytes[..16 << 10] == pattern(1, at, before));
    assert!(bytes[16 << 10..20 << 10] == pattern(2, at + before, Bytes::kib(4)));
    assert!(bytes[20 << 10..] == pattern(1, at + Bytes::kib(20), behind));
    // A read that was asked for before a write of the same bytes, and ends after it was claimed.
    driver.disks[0].holds = true;
    let read = driver.begin(read("film", at, PIECE));
    let write = driver.begin_write("film", 3, at, PIECE);
    driver.disks[0].holds = false;
    let Ok(Reply::Data { bytes: span, .. }) = driver.wait(read) else { panic!("no data") };
    driver.done(Op::Release { span });
    assert_eq!(driver.wait(write), Ok(Reply::Done));
    check(&mut driver, 3, at, PIECE);
    // Now it is, and a volume that was cut and grown again is zeros there.
    let from = driver.journal.len();
    check(&mut driver, 3, at, PIECE);
    assert_eq!(reads(&driver, from), 0);
    let (name, size) = ("film".into(), Bytes::mib(2));
    driver.done(Op::VolumeResize { name, size, may_cut: true });
    driver.done(resize("film", Bytes::mib(16)));
    assert!(driver.read("film", at, PIECE).unwrap().iter().all(|&byte| byte == 0));
}

/// A reader that was begun while a write of the same bytes was under way has whatever the disk has;
/// that is not cached.
#[test]
fn what_is_read_beside_a_write_is_not_cached() {
    let mut driver = cached();
    driver.disks[0].holds = true;
    let write = driver.begin_write("film", 2, Bytes::mib(4), PIECE);
    let read = driver.begin(read("film", Bytes::mib(4), PIECE));
    driver.disks[0].holds = false;
    let Ok(Reply::Data { bytes: span, .. }) = driver.wait(read) else { panic!("no data") };
    driver.done(Op::Release { span });
    driver.wait(write).unwrap();
    let from = driver.journal.len();
    check(&mut driver, 2, Bytes::mib(4), PIECE);
    assert_eq!(reads(&driver, from), 1);
}

#[test]
fn what_one_program_has_in_its_hands_another_reads_from_the_disk() {
    let mut driver = cached();
    check(&mut driver, 1, Bytes::mib(4), PIECE);
    let from = driver.journal.len();
    let Ok(Reply::Data { bytes: one, .. }) = driver.ask(read("film", Bytes::mib(4), Bytes::kib(8)))
    else {
        panic!("no data")
    };
    let asked = driver.ask(read("film", Bytes::mib(4) + Bytes::kib(8), Bytes::kib(8)));
    let Ok(Reply::Data { bytes: two, .. }) = asked else { panic!("no data") };
    assert_eq!(reads(&driver, from), 0, "not the same bytes");
    check(&mut driver, 1, Bytes::mib(4) + Bytes::kib(4), Bytes::kib(8));
    assert_eq!(reads(&driver, from), 1);
    // It is void while they have it: they keep what they have, and nobody else gets it.
    driver.write("film", 2, Bytes::mib(4), PIECE);
    assert!(driver.bytes(one) == pattern(1, Bytes::mib(4), Bytes::kib(8)));
    [one, two].into_iter().for_each(|span| driver.done(Op::Release { span }));
    driver.run(Duration::from_secs(1));
    let cached = driver.node.status(driver.now).memory.kept;
    check(&mut driver, 2, Bytes::mib(4), PIECE);
    let memory = driver.node.status(driver.now).memory;
    assert_eq!(memory.best_effort, Bytes::ZERO);
    assert_eq!(memory.kept - cached, PIECE, "nothing lies there that nobody finds");
    driver.done(delete("film"));
    driver.run(Duration::from_secs(1));
    assert_eq!(driver.node.status(driver.now).memory.kept, Bytes::ZERO);
}

/// What is cached is nobody's memory: each window that opens without it opens with it.
#[test]
fn windows_and_best_effort_have_as_much_memory_as_without() {
    let windows = |is_cached: bool| {
        let mut driver = cached();
        if is_cached {
            for piece in 0..240 {
                check(&mut driver, 1, PIECE * piece, PIECE);
            }
            let kept = driver.node.status(driver.now).memory.kept;
            assert!(kept >= Bytes::mib(6), "{kept}");
        }
        let contract = contract(Rate::per_second(20_000), Bytes::kib(256), Bytes::ZERO);
        let mut streams = 0;
        while let Ok(Reply::Stream { .. }) =
            driver.ask(open("film", Mode::Read, contract, Bytes::ZERO))
        {
            streams += 1;
        }
        let mut rooms = 0;
        while let Some(Ok(Reply::Room { .. })) = driver.at_once_or_none(room(Bytes::kib(64))) {
            rooms += 1;
        }
        let memory = driver.node.status(driver.now).memory;
        (streams, rooms, memory.windows, memory.best_effort)
    };
    let without = windows(false);
    assert!(without.0 > 10 && without.1 > 2, "{without:?}");
    assert_eq!(windows(true), without);
}

/// Who reads on and on finds the next bytes there; they are read at most once.
#[test]
fn what_comes_next_is_read_ahead_and_nothing_is_read_twice() {
    let mut driver = cached();
    let from = driver.journal.len();
    let mut waits = 0;
    for piece in 0..128 {
        let before = driver.now;
        check(&mut driver, 1, PIECE * piece, PIECE);
        waits += u32::from(driver.now > before);
        // As long as its program works on it.
        driver.run(Duration::from_millis(20));
    }
    assert!(waits <= 4, "{waits}");
    let len = |done: &Done| match &done.action {
        DiskAction::Read { span, .. } => span.len,
        _ => Bytes::ZERO,
    };
    let read: Bytes = driver.since(from).iter().map(len).sum();
    assert!(read <= PIECE * 128 + Bytes::mib(3) / 2, "{read}");
    // Behind the end of the volume there is nothing.
    for piece in 128..256 {
        check(&mut driver, 1, PIECE * piece, PIECE);
    }
    let all: Bytes = driver.since(from).iter().map(len).sum();
    assert_eq!(all, Bytes::mib(16));
}

/// Who asks for what is on its way waits for that; where the disk fails on it, he reads himself.
#[test]
fn who_comes_to_what_is_on_its_way_waits_for_it() {
    let mut driver = cached();
    for piece in 0..2 {
        check(&mut driver, 1, PIECE * piece, PIECE);
    }
    driver.disks[0].holds = true;
    let third = driver.begin(read("film", PIECE * 2, PIECE));
    let fourth = driver.begin(read("film", PIECE * 3, PIECE));
    driver.disks[0].holds = false;
    let from = driver.journal.len();
    for (ticket, piece) in [(third, 2), (fourth, 3)] {
        let Ok(Reply::Data { bytes: span, offset }) = driver.wait(ticket) else {
            panic!("no data")
        };
        assert_eq!(offset, PIECE * piece);
        assert!(driver.bytes(span) == pattern(1, offset, PIECE));
        driver.done(Op::Release { span });
    }
    let of_fourth = driver.since(from).iter().filter(|done| match &done.action {
        DiskAction::Read { span, .. } => span.len == PIECE,
        _ => false,
    });
    assert!(of_fourth.count() <= 1, "the third's alone");
    // Nobody who deletes the volume is told that it is in use by what is read ahead.
    let mut driver = driver_that_reads_ahead();
    driver.done(delete("film"));
    driver.run(Duration::from_secs(1));
    let memory = driver.node.status(driver.now).memory;
    assert_eq!((memory.kept, memory.best_effort), (Bytes::ZERO, Bytes::ZERO));
    // Nor does a shutdown wait for it, or an error of it reach anybody.
    let mut driver = driver_that_reads_ahead();
    assert_eq!(driver.ask(Op::Shutdown), Ok(Reply::Done));
    let mut driver = cached();
    let bad = driver.place("film", Bytes::mib(1));
    driver.break_at(DISK, bad..bad + Bytes::kib(4), None);
    for piece in 0..16 {
        check(&mut driver, 1, PIECE * piece, PIECE);
    }
    let failed = driver.read("film", Bytes::mib(1), PIECE);
    assert!(matches!(failed, Err(Error::Device { .. })));
}

/// It has begun to read ahead, and the disk holds that.
fn driver_that_reads_ahead() -> Driver {
    let mut driver = cached();
    for piece in 0..5 {
        check(&mut driver, 1, PIECE * piece, PIECE);
    }
    assert!(!driver.disks[0].flights.is_empty(), "it reads ahead");
    driver
}

/// Whole volumes are read in the background, once: what others have read stays.
#[test]
fn background_reads_are_read_ahead_and_leave_nothing_else() {
    let mut driver = cached();
    let far = |number: u64| PIECE * (number * 97 % 256);
    for number in 0..16 {
        let asked = read_as("film", far(number), PIECE, Priority::Background);
        let Ok(Reply::Data { bytes: span, .. }) = driver.ask(asked) else { panic!("no data") };
        driver.done(Op::Release { span });
    }
    assert_eq!(driver.node.status(driver.now).memory.kept, Bytes::ZERO);
}

/// A user who reads all of a volume does not drive out what another one reads again and again, as
/// long as that one has less.
#[test]
fn users_have_equal_shares() {
    let mut driver = cached();
    let small = |driver: &mut Driver| {
        for piece in 0..16 {
            check(driver, 1, PIECE * (2 * piece), PIECE);
        }
    };
    small(&mut driver);
    let greedy = Who { uid: 1000, ..Who::root() };
    for number in 0..512 {
        let asked = read("film", Bytes::mib(4) + PIECE * (number * 37 % 192), PIECE);
        let ticket = driver.begin_as(greedy.clone(), asked);
        let Ok(Reply::Data { bytes: span, .. }) = driver.wait(ticket) else { panic!("no data") };
        driver.done(Op::Release { span });
    }
    let from = driver.journal.len();
    small(&mut driver);
    assert_eq!(reads(&driver, from), 0);
}

/// Two who read more than there is room for, one with a share of 3: what stays of each are his last
/// reads, three times as many of his as of the other's.
#[test]
fn users_have_what_is_cached_by_the_ratio_of_their_shares() {
    let last_of = |driver: &mut Driver, user: u64| {
        let mut stay = 0_u64;
        for number in (0..192).rev() {
            let from = driver.journal.len();
            as_user(driver, 1_000 + user as u32, apart(user, number), PIECE);
            if reads(driver, from) > 0 {
                break;
            }
            stay += 1;
        }
        stay
    };
    for share in [1_u32, 3] {
        let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(16)).open();
        driver.node.cache_reads();
        driver.node.set_cache_share(1_000, share.try_into().unwrap());
        driver.recorded("film", Bytes::mib(32), Bytes::mib(32), 1);
        for number in 0..192 {
            for user in [0, 1] {
                as_user(&mut driver, 1_000 + user as u32, apart(user, number), PIECE);
            }
        }
        let [first, second] = [0, 1].map(|user| last_of(&mut driver, user));
        let all = first + second;
        assert!(all > 100, "{first} and {second}");
        assert!(
            first.abs_diff(all * u64::from(share) / u64::from(share + 1)) < 6,
            "{share}: {first} and {second}"
        );
    }
}

/// The place of a user's read with this number: nobody is taken to read on and on.
fn apart(user: u64, number: u64) -> Bytes {
    Bytes::mib(16 * user) + PIECE * (number * 37 % 192)
}

/// A read that was asked for while a write of the same bytes was claimed has whatever the disk has,
/// and nobody else gets that later, as if it were new.
#[test]
fn what_is_read_before_a_claimed_write_is_done_is_not_cached() {
    let mut driver = cached();
    driver.disks[0].holds = true;
    let other = driver.begin(read("film", Bytes::mib(12), PIECE));
    let write = driver.begin_write("film", 2, Bytes::mib(4), PIECE);
    let before = read_as("film", Bytes::mib(4), PIECE, Priority::Interactive);
    let before = driver.begin(before);
    driver.disks[0].holds = false;
    for ticket in [other, before] {
        let Ok(Reply::Data { bytes: span, .. }) = driver.wait(ticket) else { panic!("no data") };
        driver.done(Op::Release { span });
    }
    assert!(!driver.is_answered(write));
    let kept = driver.node.status(driver.now).memory.kept;
    assert_eq!(kept, PIECE, "the other's alone");
    driver.wait(write).unwrap();
    check(&mut driver, 2, Bytes::mib(4), PIECE);
}

/// Random histories of one pool with the cache and one without: whoever asks for memory, for a window,
/// a contract or an operation, is answered alike, at once, whatever is cached; and what is read is
/// the same. `SLACKLINE_CACHES`: how many.
#[test]
fn whoever_asks_for_memory_has_it_at_once_whatever_is_cached() {
    let histories = std::env::var("SLACKLINE_CACHES");
    let histories = histories.map_or(100, |number| number.parse().expect("a number"));
    let (mut opened, mut refused, mut from_memory) = (0, 0, Bytes::ZERO);
    // Made once for several: what is cached of the one before is there, what was asked for is not.
    let mut both = Vec::new();
    for number in 0..histories {
        let mut seed = number * 2 + 1;
        let mut below = |n: u64| {
            seed = u64::wrapping_mul(seed, 6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        if number % 50 == 0 {
            let pools = [false, true].map(|is_cached| {
                let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(16)).open();
                driver.recorded("film", Bytes::mib(8), Bytes::mib(8), 1);
                if is_cached {
                    driver.node.cache_reads();
                }
                driver
            });
            both = pools.into();
        }
        // Of each side what is open, and what is held.
        let mut open_streams: [Vec<_>; 2] = Default::default();
        let mut rooms: [Vec<_>; 2] = Default::default();
        let mut at = 0;
        for _ in 0..40 {
            let (what, where_, len) = (below(10), below(128), 1 + below(4));
            let block = Bytes::kib(256) * (1 << below(4));
            let which = below(8) as usize;
            at = if below(3) == 0 { where_ } else { (at + len) % 120 };
            let told = [0, 1].map(|side| {
                let driver = &mut both[side];
                let told = match what {
                    0..5 => {
                        let got = driver.read("film", PIECE * at, PIECE * len);
                        format!(
                            "{:?}",
                            got.map(|bytes| bytes == pattern(1, PIECE * at, PIECE * len))
                        )
                    }
                    5 | 6 => {
                        let contract = contract(Rate::per_second(10_000), block, Bytes::ZERO);
                        let asked = driver.ask(open("film", Mode::Read, contract, Bytes::ZERO));
                        if let Ok(Reply::Stream { stream, .. }) = asked {
                            open_streams[side].push(stream);
                        }
                        format!(
                            "{:?}",
                            asked.map(|_| ()).map_err(|error| std::mem::discriminant(&error))
                        )
                    }
                    7 => {
                        let asked = driver.ask(room(PIECE * (1 + where_ % 16)));
                        if let Ok(Reply::Room { room: span }) = asked {
                            rooms[side].push(span);
                        }
                        format!("{}", asked.is_ok())
                    }
                    8 if which < open_streams[side].len() => {
                        let stream = open_streams[side].swap_remove(which);
                        format!("{:?}", driver.close(stream))
                    }
                    9 if which < rooms[side].len() => {
                        let span = rooms[side].swap_remove(which);
                        driver.done(Op::Release { span });
                        String::new()
                    }
                    _ => String::new(),
                };
                // What is read ahead has the disk meanwhile.
                driver.run(Duration::from_millis(200));
                told
            });
            // A read of what is cached needs no memory.
            let had_none = what < 5 && told[0].contains("NoMemory") && told[1] == "Ok(true)";
            assert!(told[0] == told[1] || had_none, "history {number}: {told:?}");
            opened += u64::from(what == 5 && told[0].starts_with("Ok"));
            refused += u64::from(what == 5 && told[0].starts_with("Err"));
        }
        for (driver, (streams, rooms)) in both.iter_mut().zip(open_streams.into_iter().zip(rooms)) {
            for stream in streams {
                driver.close(stream).unwrap();
            }
            for span in rooms {
                driver.done(Op::Release { span });
            }
        }
        if number % 50 == 49 || number + 1 == histories {
            from_memory += both[1].node.status(both[1].now).memory.from_memory;
        }
    }
    let told = format!("{opened} opened, {refused} refused, {from_memory} from memory");
    assert!(opened > histories && refused > histories / 10, "{told}");
    assert!(from_memory > PIECE * histories, "{told}");
}

/// What a contract promises holds for what comes from memory, too: it is counted, and takes none of
/// the contract's turns.
#[test]
fn answers_from_memory_are_under_contract() {
    let mut driver = cached();
    let long = Duration::from_secs(1);
    driver.done(service("film", in_time(PIECE, long, long)));
    let account = |driver: &Driver| driver.node.status(driver.now).volumes[0].account;
    check(&mut driver, 1, Bytes::mib(4), PIECE);
    assert_eq!(account(&driver).requests, 1);
    for _ in 0..9 {
        let Ok(Reply::Data { bytes: span, .. }) =
            driver.at_once(read("film", Bytes::mib(4), PIECE))
        else {
            panic!("not from memory")
        };
        driver.done(Op::Release { span });
    }
    let told = account(&driver);
    assert_eq!((told.requests, told.late_requests, told.late_max), (10, 0, Duration::ZERO));
    // The turn behind the first one is the next of the disk's.
    driver.run(long);
    check(&mut driver, 1, Bytes::mib(8), PIECE);
    assert!(account(&driver).latency_max < Duration::from_millis(200), "{told:?}");
}

/// Who waits for what is read ahead of a volume has that volume's bytes, or none: not those of another
/// one that has its name by then. He was not asked whether he may read that.
#[test]
fn who_waits_for_what_is_read_ahead_never_has_another_volumes_bytes() {
    for delete_it in [false, true] {
        let mut driver = cached();
        driver.recorded("secret", Bytes::mib(16), Bytes::mib(16), 9);
        for piece in 0..4 {
            check(&mut driver, 1, PIECE * piece, PIECE);
        }
        driver.disks[0].holds = true;
        let fifth = driver.at_once(read("film", PIECE * 4, PIECE));
        let Ok(Reply::Data { bytes: span, .. }) = fifth else { panic!("{fifth:?}") };
        driver.done(Op::Release { span });
        let waits = driver.begin(read("film", PIECE * 8, PIECE));
        assert!(!driver.is_answered(waits));
        let changed = match delete_it {
            true => vec![driver.begin(delete("film"))],
            false => [("film", "old"), ("secret", "film")]
                .map(|(name, to)| driver.begin(rename(name, to, false)))
                .to_vec(),
        };
        driver.disks[0].holds = false;
        match driver.wait(waits) {
            Err(Error::NoSuchVolume { name }) => assert_eq!(name, "film"),
            told => panic!("{told:?}"),
        }
        for ticket in changed {
            assert_eq!(driver.wait(ticket), Ok(Reply::Done));
        }
    }
}

/// The same for who waits for memory.
#[test]
fn who_waits_for_memory_never_has_another_volumes_bytes() {
    let mut driver = cached();
    driver.recorded("secret", Bytes::mib(4), Bytes::mib(4), 9);
    let mut rooms = driver.all_rooms();
    let waits = driver.begin(read("film", Bytes::mib(1), Bytes::MIB));
    assert!(!driver.is_answered(waits));
    for (name, to) in [("film", "old"), ("secret", "film")] {
        driver.done(rename(name, to, false));
    }
    driver.done(Op::Release { span: rooms.remove(0) });
    let told = driver.wait(waits);
    assert!(matches!(told, Err(Error::NoSuchVolume { .. })), "{told:?}");
}

fn as_user(driver: &mut Driver, uid: u32, offset: Bytes, len: Bytes) {
    let who = Who { uid, ..Who::root() };
    let ticket = driver.begin_as(who, read("film", offset, len));
    let Ok(Reply::Data { bytes: span, .. }) = driver.wait(ticket) else { panic!("no data") };
    driver.done(Op::Release { span });
}

/// Long blocks of one user make way for his own: what lies between his short ones and is another's
/// stays, where it was used since.
#[test]
fn a_long_block_does_not_drive_out_what_another_user_reads_again() {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(16)).open();
    driver.node.cache_reads();
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    let page = Bytes::kib(4);
    // Far enough apart that nobody is taken to read on and on.
    let place = |number: u64| page * (number * 97 % 1_024);
    let hot = |driver: &mut Driver| {
        (0..32).for_each(|number| as_user(driver, 1_001, place(number), page));
    };
    for number in 0..32 {
        as_user(&mut driver, 1_001, place(number), page);
        as_user(&mut driver, 1_000, Bytes::mib(4) + place(number), page);
    }
    let from = driver.journal.len();
    for turn in 0..64 {
        as_user(&mut driver, 1_000, Bytes::mib(4 + turn * 5 % 12), Bytes::MIB);
        hot(&mut driver);
    }
    let is_short =
        |done: &&Done| done.action.transfer().is_some_and(|(it, _)| it.end - it.start == page);
    assert_eq!(driver.since(from).iter().filter(is_short).count(), 0);
}

/// Who keeps what he was lent has his part at most: others are served from memory beside him.
#[test]
fn who_keeps_what_he_was_lent_leaves_the_cache_to_others() {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(128)).open();
    driver.node.cache_reads();
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    as_user(&mut driver, 1_001, Bytes::mib(15), PIECE);
    let who = Who { uid: 1_000, ..Who::root() };
    let kept: Vec<Span> = (0..12)
        .map(|number| {
            let asked = read("film", Bytes::mib(number * 5 % 12), Bytes::MIB);
            let ticket = driver.begin_as(who.clone(), asked);
            let Ok(Reply::Data { bytes: span, .. }) = driver.wait(ticket) else {
                panic!("no data")
            };
            span
        })
        .collect();
    let from = driver.journal.len();
    as_user(&mut driver, 1_001, Bytes::mib(15), PIECE);
    assert_eq!(reads(&driver, from), 0, "from memory");
    kept.into_iter().for_each(|span| driver.done(Op::Release { span }));
    assert_eq!(driver.node.status(driver.now).memory.best_effort, Bytes::ZERO);
}

/// However many blocks a write makes void, none of them is found any more, and all of them go.
#[test]
fn a_long_write_makes_all_void_that_it_covers() {
    let mut driver = cached();
    let page = Bytes::kib(4);
    for number in 0..256 {
        check(&mut driver, 1, Bytes::mib(4) + page * (number * 97 % 256), page);
    }
    check(&mut driver, 1, Bytes::mib(8), PIECE);
    driver.write("film", 2, Bytes::mib(4), Bytes::MIB);
    for number in 0..256 {
        check(&mut driver, 2, Bytes::mib(4) + page * (number * 97 % 256), page);
    }
    driver.done(delete("film"));
    driver.volume("other", Bytes::mib(1));
    // The pool does something now and then, and each time some of it goes.
    for _ in 0..64 {
        driver.write("other", 3, Bytes::ZERO, page);
    }
    assert_eq!(driver.node.status(driver.now).memory.kept, Bytes::ZERO);
}

/// A read of two disks: what is written on the one while the other still reads is not cached as it
/// was before.
#[test]
fn what_is_written_while_it_is_being_read_is_not_cached_as_it_was() {
    let mut driver = Setup::new(2).open();
    driver.node.cache_reads();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    let from = Bytes::MIB - PIECE;
    driver.disks[1].holds = true;
    let reading = driver.begin(read("film", from, PIECE * 2));
    driver.run(ms(50));
    driver.write("film", 2, from, PIECE);
    assert!(!driver.is_answered(reading));
    driver.disks[1].holds = false;
    let Ok(Reply::Data { bytes: span, .. }) = driver.wait(reading) else { panic!("it is read") };
    driver.done(Op::Release { span });
    check(&mut driver, 2, from, PIECE);
    check(&mut driver, 1, Bytes::MIB, PIECE);
}
