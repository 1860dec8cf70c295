//! What each call of the two ends says and does, one after the other, without a second
//! thread: the ends' words for what is there, what is over and what cannot be.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use units::Bytes;
use window::{Client, Daemon, Further, Kind, Memory, Mode, Piece, Rights, ring_for};

const SLOTS: u64 = 64;
const DATA: usize = 65_536;
/// Words of the control page, by their numbers.
const CAPACITY: usize = 3;
const BELL: usize = 11;
const RING: usize = 24;

fn fd(memory: impl AsFd) -> OwnedFd {
    memory.as_fd().try_clone_to_owned().unwrap()
}

/// Both ends of a new window, its data, and its page for whoever writes garbage.
fn window(mode: Mode) -> (Daemon, Client, Memory, Memory) {
    let rights = if mode == Mode::Read { Rights::Read } else { Rights::Write };
    let daemon = Daemon::create(mode, SLOTS).unwrap();
    let data = Memory::create("data", DATA, rights).unwrap();
    let page = Memory::adopt(fd(daemon.fd()), Rights::Write).unwrap();
    let client = Client::open(fd(daemon.fd()), fd(data.fd()), Bytes::new(1000)).unwrap();
    (daemon, client, data, page)
}

fn piece(kind: Kind, place: u64, offset: u64, len: u64) -> Piece {
    let [place, offset, len] = [place, offset, len].map(Bytes::new);
    Piece { kind, place, offset, len }
}

#[test]
fn what_is_there_is_taken_and_moved_past() {
    let (mut daemon, mut client, data, _) = window(Mode::Read);
    assert_eq!((client.mode(), client.offset(), client.left()), (Mode::Read, Bytes::new(1000), 0));
    assert!(!client.has_more());
    assert_eq!(client.take().unwrap(), None);
    let told = [
        piece(Kind::Data, 4096, 1000, 3000),
        piece(Kind::Gap, 0, 4000, 500),
        piece(Kind::End, 0, 4500, 0),
    ];
    for piece in told {
        assert!(!daemon.publish(piece), "nobody waits");
    }
    assert_eq!(daemon.left(), Bytes::new(3500));
    assert!(client.has_more());
    assert_eq!(client.take().unwrap(), Some(told[0]));
    assert!(!client.has_more(), "a gap is no bytes");
    assert_eq!((client.left(), client.bytes(10).len(), client.bytes(9999).len()), (3000, 10, 3000));
    assert_eq!(client.bytes(1).as_ptr() as usize % 4096, data.base() as usize % 4096);
    let _ = client.advance(1200);
    assert_eq!((client.offset().get(), client.moved().get(), client.left()), (2200, 1200, 1800));
    assert_eq!(daemon.further().unwrap(), Further { bytes: Bytes::new(1200), gaps: Bytes::ZERO });
    assert_eq!((daemon.moved().get(), daemon.left().get()), (1200, 2300));
    let _ = client.advance(1800);
    assert_eq!(client.take().unwrap(), Some(told[1]));
    assert_eq!((client.offset().get(), client.moved().get(), client.left()), (4500, 3500, 0));
    assert!(!client.has_more(), "an end is no bytes");
    assert_eq!(client.take().unwrap(), Some(told[2]));
    assert_eq!(client.left(), 0);
    let further = Further { bytes: Bytes::new(2300), gaps: Bytes::new(500) };
    assert_eq!(daemon.further().unwrap(), further);
    assert_eq!(daemon.further().unwrap(), Further::default());
    assert_eq!(daemon.left(), Bytes::ZERO);
}

#[test]
fn a_bell_is_rung_once_for_each_mark_that_is_passed() {
    let (mut daemon, mut client, _, _) = window(Mode::Read);
    assert!(!daemon.ring_at_next(), "nothing was told");
    let _ = daemon.publish(piece(Kind::Data, 0, 1000, 100));
    let _ = daemon.publish(piece(Kind::Data, 100, 1100, 100));
    client.take().unwrap();
    assert!(!daemon.ring_at_next());
    assert!(!client.advance(99));
    assert!(client.advance(1), "the end of the first piece");
    assert!(!client.passes_bell(), "once");
    assert!(daemon.ring_at_next(), "of which nobody has taken note");
    assert_eq!(daemon.further().unwrap().bytes, Bytes::new(100));
    assert!(!daemon.ring_at_next());
    assert!(!daemon.ring_at(Bytes::new(150)), "an earlier mark than the last leaves that");
    client.take().unwrap();
    assert!(!client.advance(99), "not at 150");
    assert!(client.advance(1));
    assert!(daemon.ring_at(Bytes::new(200)), "it is there");
}

#[test]
fn who_waits_is_sent_news_once_for_each_wait() {
    let (mut daemon, mut client, _, _) = window(Mode::Read);
    assert!(!daemon.begins_to_wait());
    assert!(client.begin_to_wait());
    assert!(daemon.begins_to_wait());
    assert!(!daemon.begins_to_wait(), "said once");
    assert!(daemon.publish(piece(Kind::Data, 0, 1000, 1)));
    assert!(!daemon.publish(piece(Kind::Data, 1, 1001, 1)), "sent once");
    assert!(!client.begin_to_wait(), "there is a piece");
    assert!(!daemon.publish(piece(Kind::Data, 2, 1002, 1)), "nobody waits");
    for _ in 0..3 {
        client.take().unwrap();
        let _ = client.advance(1);
    }
    assert!(client.begin_to_wait());
    assert!(daemon.publish(piece(Kind::Data, 3, 1003, 1)), "another wait");
    assert!(!daemon.begins_to_wait(), "which was answered already");
}

#[test]
fn durable_bytes_are_told_to_whoever_waits_for_them() {
    let (mut daemon, client, _, _) = window(Mode::Write);
    let (watch, other) = (client.watch(), client.watch());
    assert!(!daemon.durable(Bytes::new(10)), "nobody waits");
    assert_eq!(watch.durable(), Bytes::new(10));
    assert!(!watch.begin_to_wait(Bytes::new(9)), "more is durable");
    assert!(watch.begin_to_wait(Bytes::new(10)));
    assert!(daemon.durable(Bytes::new(20)));
    assert!(!daemon.durable(Bytes::new(30)), "sent once");
    assert!(other.begin_to_wait(Bytes::new(30)));
    assert!(daemon.durable(Bytes::new(31)), "another one waits");
    assert_eq!(other.durable(), Bytes::new(31));
}

#[test]
fn over_is_over() {
    let (daemon, client, _, _) = window(Mode::Read);
    assert!(!client.is_over());
    daemon.over();
    assert!(client.is_over());
}

#[test]
fn a_ring_is_full_when_all_slots_are_with_the_program() {
    let (mut daemon, mut client, _, _) = window(Mode::Read);
    for number in 0..SLOTS {
        assert!(!daemon.is_full());
        let _ = daemon.publish(piece(Kind::Data, number, 1000 + number, 1));
    }
    assert!(daemon.is_full());
    client.take().unwrap();
    let _ = client.advance(1);
    assert!(daemon.is_full(), "nobody has taken note");
    daemon.further().unwrap();
    assert!(!daemon.is_full());
    assert_eq!(daemon.void(), SLOTS);
    assert_eq!((daemon.left(), daemon.is_full()), (Bytes::ZERO, false));
}

/// A gap counts whole or in the parts that a lying program says it has moved past.
#[test]
fn gaps_are_counted_in_parts() {
    let (mut daemon, _, _, page) = window(Mode::Read);
    let _ = daemon.publish(piece(Kind::Data, 0, 1000, 100));
    let _ = daemon.publish(piece(Kind::Gap, 0, 1100, 100));
    let _ = daemon.publish(piece(Kind::Data, 0, 1200, 100));
    let mut moved_to = |moved: u64| {
        page.words()[16].store(moved, Ordering::Relaxed);
        daemon.further().map(|further| (further.bytes.get(), further.gaps.get()))
    };
    assert_eq!(moved_to(50), Ok((50, 0)));
    assert_eq!(moved_to(130), Ok((80, 30)));
    assert_eq!(moved_to(250), Ok((120, 70)));
    for lie in [249, 301] {
        let told = moved_to(lie).unwrap_err();
        assert_eq!((told.moved, told.before, told.told), (lie, 250, 300));
    }
    assert_eq!(moved_to(300), Ok((50, 0)));
}

#[test]
fn a_piece_that_does_not_lie_in_its_window_is_not_taken() {
    let (d, end) = (DATA as u64, u64::MAX);
    for (mode, kind, place, offset, len, fits) in [
        (Mode::Read, Kind::Data, d - 10, 0, 10, true),
        (Mode::Read, Kind::Data, d - 10, 0, 11, false),
        (Mode::Read, Kind::Data, end, 0, 2, false),
        (Mode::Read, Kind::Data, 0, end, 1, false),
        (Mode::Read, Kind::Data, 0, 0, 0, false),
        (Mode::Read, Kind::Room, 0, 0, 1, false),
        (Mode::Write, Kind::Room, 0, 0, d, true),
        (Mode::Write, Kind::Room, 0, 0, d + 1, false),
        (Mode::Write, Kind::Data, 0, 0, 1, false),
        (Mode::Read, Kind::Gap, end, 0, end - 7, true),
        (Mode::Read, Kind::Gap, 0, 0, end - 6, false),
        (Mode::Read, Kind::Gap, 0, 0, 0, false),
        (Mode::Read, Kind::End, 0, 7, 0, true),
        (Mode::Read, Kind::End, 0, 7, 1, false),
    ] {
        let (mut daemon, mut client, _, page) = window(mode);
        // Seven bytes are moved past first: they count, too.
        let first = if mode == Mode::Read { Kind::Data } else { Kind::Room };
        let _ = daemon.publish(piece(first, 0, 1000, 7));
        let _ = daemon.publish(piece(first, 7, 1007, 1));
        client.take().unwrap();
        let _ = client.advance(7);
        for (n, value) in [kind as u64, place, offset, len].into_iter().enumerate() {
            page.words()[RING + 4 + n].store(value, Ordering::Relaxed);
        }
        let what = format!("{mode:?} {kind:?} {place} {offset} {len}");
        assert_eq!(client.has_more(), fits && len > 0 && kind != Kind::Gap, "{what}");
        assert_eq!(client.take().is_ok(), fits, "{what}");
    }
}

#[test]
fn what_is_no_page_is_not_opened() {
    let data = || fd(Memory::create("data", DATA, Rights::Write).unwrap().fd());
    // Pages of every length around those that hold a ring, with a ring of that many slots.
    let (magic, layout) = (window::page::MAGIC, window::page::LAYOUT);
    for (len, capacity, opens) in [
        (2240, 64, false),
        (4096, 64, true),
        (4096, 63, false),
        (4096, 128, false),
        (4288, 128, true),
        (8192, 128, true),
        (8192, 256, false),
        (8192, 0, false),
    ] {
        for mode in 0..3 {
            let page = Memory::create("page", len, Rights::Write).unwrap();
            for (at, value) in [magic, layout, mode, capacity].into_iter().enumerate() {
                page.words()[at].store(value, Ordering::Relaxed);
            }
            let opened = Client::open(fd(page.fd()), data(), Bytes::ZERO);
            assert_eq!(opened.is_ok(), opens && mode < 2, "{len} {capacity} {mode}");
        }
    }
    for (shared, mode) in [(Rights::Read, 1), (Rights::Write, 0)] {
        let daemon = Daemon::create(Mode::Write, ring_for(Bytes::MIB, Bytes::kib(4))).unwrap();
        let page = Memory::adopt(fd(daemon.fd()), Rights::Write).unwrap();
        assert_eq!(page.words()[CAPACITY].load(Ordering::Relaxed), 512);
        page.words()[2].store(mode, Ordering::Relaxed);
        let data = Memory::create("data", DATA, shared).unwrap();
        let opened = Client::open(fd(daemon.fd()), fd(data.fd()), Bytes::ZERO);
        assert_eq!(opened.is_ok(), mode == 0, "only a writer's data may be changed");
    }
}

#[test]
fn a_window_is_known_to_its_program_before_the_first_lap() {
    for mode in [Mode::Read, Mode::Write] {
        let (_, client, data, _) = window(mode);
        let blocks = || rustix::fs::fstat(data.fd()).unwrap().st_blocks;
        assert_eq!(blocks(), 0);
        client.populate(Bytes::new(8192));
        assert_eq!(blocks(), 16, "{mode:?}");
        client.populate(Bytes::MIB);
        assert_eq!(blocks(), DATA as i64 / 512, "no more than there is");
    }
}

#[test]
fn a_mark_never_falls_in_the_page_either() {
    let (mut daemon, _, _, page) = window(Mode::Read);
    for (asked, is) in [(100, 100), (50, 100), (101, 101)] {
        let _ = daemon.ring_at(Bytes::new(asked));
        assert_eq!(page.words()[BELL].load(Ordering::Relaxed), is);
    }
}

#[test]
#[should_panic(expected = "full ring")]
fn a_piece_for_a_full_ring_is_an_error_of_the_programmer() {
    let (mut daemon, _, _, _) = window(Mode::Read);
    (0..=SLOTS).for_each(|number| _ = daemon.publish(piece(Kind::Data, 0, number, 1)));
}

#[test]
fn rings_are_powers_of_two_within_bounds() {
    for capacity in [63, 1 << 17] {
        assert!(std::panic::catch_unwind(|| Daemon::create(Mode::Read, capacity)).is_err());
    }
    assert!(Daemon::create(Mode::Read, 1 << 16).is_ok());
}
