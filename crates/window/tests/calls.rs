//! What each call of the two ends says and does, one after the other, without a second
//! thread: the ends' words for what is there, what is over and what cannot be.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use units::Bytes;
use window::{Client, Daemon, Further, Kind, Look, Memory, Mode, Piece, Rights, ring_for};

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
        (Mode::Read, Kind::Gap, end, 0, end - 1007, true),
        (Mode::Read, Kind::Gap, 0, 0, end - 1006, false),
        (Mode::Read, Kind::Gap, 0, 0, 0, false),
        (Mode::Read, Kind::End, 0, 0, 0, true),
        (Mode::Read, Kind::End, 0, 0, 1, false),
        (Mode::Read, Kind::Data, 0, 1, 1, false),
        (Mode::Read, Kind::End, 0, 1, 0, true),
    ] {
        let (mut daemon, mut client, _, page) = window(mode);
        // Seven bytes are moved past first: they count, too.
        let first = if mode == Mode::Read { Kind::Data } else { Kind::Room };
        let _ = daemon.publish(piece(first, 0, 1000, 7));
        let _ = daemon.publish(piece(first, 7, 1007, 1));
        client.take().unwrap();
        let _ = client.advance(7);
        // Where it has to go on, or as far behind that.
        let offset = offset.saturating_add(1007);
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
        for mode in 0..4 {
            let page = Memory::create("page", len, Rights::Write).unwrap();
            for (at, value) in [magic, layout, mode, capacity].into_iter().enumerate() {
                page.words()[at].store(value, Ordering::Relaxed);
            }
            let opened = Client::open(fd(page.fd()), data(), Bytes::ZERO);
            assert_eq!(opened.is_ok(), opens && mode < 3, "{len} {capacity} {mode}");
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
        let (_, mut client, data, _) = window(mode);
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

const BLOCK: u64 = 4096;

fn at(offset: u64) -> Bytes {
    Bytes::new(1000 + offset)
}

/// Publishes the block of this number, in its place among so many, filled with its number.
fn publish_block(daemon: &mut Daemon, data: &Memory, number: u64, blocks: u64) {
    let place = number % blocks * BLOCK;
    let words = &data.words()[(place / 8) as usize..][..(BLOCK / 8) as usize];
    words.iter().for_each(|word| word.store(number + 1, Ordering::Relaxed));
    let _ = daemon.publish(piece(Kind::Data, place, 1000 + number * BLOCK, BLOCK));
}

fn word_at(bytes: &[u8], index: usize) -> u64 {
    u64::from_ne_bytes(bytes[index * 8..][..8].try_into().unwrap())
}

/// Bytes are given at any place of the window, in any order, and the daemon hears nothing;
/// the playout point goes on over several pieces with one word, and back as far as the piece
/// in which it lies. A program that keeps more has more to go back to.
#[test]
fn the_playout_point_is_set_anywhere_in_what_is_held() {
    let (mut daemon, _, _, _) = window(Mode::Read);
    let memory = Memory::create("data", DATA, Rights::Write).unwrap();
    let mut client = Client::open(fd(daemon.fd()), fd(memory.fd()), at(0)).unwrap();
    for number in 0..6 {
        publish_block(&mut daemon, &memory, number, 16);
    }
    for number in [5, 0, 3, 1, 4, 2u64] {
        let look = client.look_at(at(number * BLOCK + 8), 16).unwrap();
        let Look::Data(bytes) = look else { panic!("{look:?}") };
        assert_eq!((bytes.len(), word_at(bytes, 0)), (16, number + 1));
    }
    assert_eq!(client.look_at(at(6 * BLOCK), 1).unwrap(), Look::NotYet);
    assert_eq!(client.look_at(Bytes::new(999), 1).unwrap(), Look::Gone);
    assert_eq!(daemon.further().unwrap(), Further::default(), "nothing was moved");

    let _ = client.set_playout(at(2 * BLOCK + 104)).unwrap().expect("it is held");
    assert_eq!(client.held(), at(2 * BLOCK)..at(6 * BLOCK));
    assert_eq!(daemon.further().unwrap().bytes, Bytes::new(2 * BLOCK + 104));
    assert_eq!(client.take().unwrap().unwrap().len, Bytes::new(BLOCK - 104));
    assert_eq!(word_at(client.bytes(8), 0), 3);
    // Back: to the beginning of the block, and no further. The daemon hears nothing.
    assert_eq!(client.set_playout(at(2 * BLOCK)).unwrap(), Some(false));
    assert_eq!(client.set_playout(at(2 * BLOCK - 1)).unwrap(), None);
    assert_eq!(client.look_at(at(2 * BLOCK - 1), 1).unwrap(), Look::Gone);
    assert_eq!(client.offset(), at(2 * BLOCK), "nothing has changed");
    client.take().unwrap().unwrap();
    let _ = client.advance(90);
    assert_eq!(daemon.further().unwrap().bytes, Bytes::ZERO, "read again");
    let _ = client.advance(20);
    assert_eq!(daemon.further().unwrap().bytes, Bytes::new(6));

    // What is kept is not moved past.
    let _ = client.keep(Bytes::new(2 * BLOCK));
    let _ = client.set_playout(at(6 * BLOCK)).unwrap().expect("the end of what is there");
    assert_eq!(daemon.further().unwrap().bytes, Bytes::new(2 * BLOCK - 110));
    assert_eq!(client.held(), at(4 * BLOCK)..at(6 * BLOCK));
    assert_eq!(client.take().unwrap(), None);
    assert!(client.set_playout(at(6 * BLOCK + 1)).unwrap().is_none());
    assert!(client.set_playout(at(4 * BLOCK)).unwrap().is_some());
    assert!(client.set_playout(at(4 * BLOCK - 1)).unwrap().is_none());
    // Kept no longer, the line follows as soon as the playout point does.
    let _ = client.keep(Bytes::ZERO);
    assert_eq!(daemon.further().unwrap().bytes, Bytes::ZERO);
    let _ = client.set_playout(at(6 * BLOCK)).unwrap().unwrap();
    assert_eq!(daemon.further().unwrap().bytes, Bytes::new(2 * BLOCK));
}

/// A gap that is passed counts once, also where the program goes back before it.
#[test]
fn a_gap_is_passed_by_setting_the_playout_point_and_counts_once() {
    let (mut daemon, mut client, _, _) = window(Mode::Read);
    let _ = daemon.publish(piece(Kind::Data, 0, 1000, 100));
    let _ = daemon.publish(piece(Kind::Gap, 0, 1100, 50));
    let _ = daemon.publish(piece(Kind::Data, 100, 1150, 100));
    assert_eq!(client.look_at(Bytes::new(1120), 9).unwrap(), Look::Gap { end: Bytes::new(1150) });
    let _ = client.keep(Bytes::new(1000));
    let _ = client.set_playout(Bytes::new(1120)).unwrap().unwrap();
    assert_eq!(client.gaps(), Bytes::new(20));
    let rest = client.take().unwrap().unwrap();
    assert_eq!((rest.kind, rest.offset.get(), rest.len.get()), (Kind::Gap, 1120, 30));
    assert_eq!(client.gaps(), Bytes::new(50));
    for to in [1000, 1200, 1010, 1250] {
        let _ = client.set_playout(Bytes::new(to)).unwrap().unwrap();
    }
    assert_eq!(client.gaps(), Bytes::new(50));
}

/// Blocks that follow each other around the end of the ring lie in a row in the program's
/// addresses; where their places are no neighbours the row ends, and nothing is shown that
/// is not the bytes of its place.
#[test]
fn what_lies_across_the_end_of_the_ring_lies_in_a_row() {
    let (mut daemon, _, _, _) = window(Mode::Read);
    let memory = Memory::create("data", DATA, Rights::Write).unwrap();
    let open = |daemon: &Daemon| Client::open(fd(daemon.fd()), fd(memory.fd()), at(0)).unwrap();
    let mut client = open(&daemon);
    client.populate(Bytes::new(5 * BLOCK));
    let mut told = 0;
    for round in 0..40 {
        while told < round + 5 {
            publish_block(&mut daemon, &memory, told, 5);
            told += 1;
        }
        if client.left() == 0 {
            client.take().unwrap().unwrap();
        }
        let row = client.bytes_in_a_row(usize::MAX).unwrap();
        assert_eq!(row.len() as u64, 5 * BLOCK, "all of it");
        for ahead in 0..5 {
            assert_eq!(word_at(row, ahead as usize * 512), round + ahead + 1);
        }
        let _ = client.advance(BLOCK as usize);
        daemon.further().unwrap();
    }
    // One more place behind the ring: the window was made larger.
    let (mut daemon, _, _, _) = window(Mode::Read);
    let mut client = open(&daemon);
    client.populate(Bytes::new(2 * BLOCK));
    for (number, place) in [1, 0, 2, 3].into_iter().enumerate() {
        let words = &memory.words()[place * 512..][..512];
        words.iter().for_each(|word| word.store(number as u64 + 1, Ordering::Relaxed));
        let (place, offset) = (place as u64 * BLOCK, 1000 + number as u64 * BLOCK);
        let _ = daemon.publish(piece(Kind::Data, place, offset, BLOCK));
    }
    client.take().unwrap();
    let row = client.bytes_in_a_row(usize::MAX).unwrap();
    assert_eq!((row.len() as u64, word_at(row, 0), word_at(row, 512)), (2 * BLOCK, 1, 2));
    let _ = client.set_playout(at(2 * BLOCK)).unwrap();
    client.take().unwrap();
    let row = client.bytes_in_a_row(usize::MAX).unwrap();
    assert_eq!((row.len() as u64, word_at(row, 0), word_at(row, 512)), (2 * BLOCK, 3, 4));
}

/// A writer fills its room in any order, over the end of the ring, and hands it over once.
#[test]
fn room_is_filled_in_any_order_before_it_is_handed_over() {
    let (mut daemon, mut client, data, _) = window(Mode::Write);
    client.populate(Bytes::new(3 * BLOCK));
    for number in 0..2 {
        let place = number * BLOCK;
        let _ = daemon.publish(piece(Kind::Room, place, 1000 + number * BLOCK, BLOCK));
    }
    client.take().unwrap();
    let _ = client.advance(BLOCK as usize);
    daemon.further().unwrap();
    for (number, place) in [(2, 2), (3, 0)] {
        let offset = 1000 + number * BLOCK;
        let _ = daemon.publish(piece(Kind::Room, place * BLOCK, offset, BLOCK));
    }
    client.take().unwrap();
    assert_eq!(client.room_in_a_row(usize::MAX).unwrap().len() as u64, 3 * BLOCK);
    client.room_at(at(4 * BLOCK - 8), 8).unwrap().expect("room").fill(7);
    client.room_at(at(3 * BLOCK - 4), 8).unwrap().expect("room").fill(9);
    assert!(client.room_at(at(BLOCK - 1), 1).unwrap().is_none(), "handed over");
    assert!(client.room_at(at(4 * BLOCK), 1).unwrap().is_none(), "no room yet");
    assert_eq!(daemon.further().unwrap(), Further::default());
    let _ = client.advance(3 * BLOCK as usize);
    assert_eq!(daemon.further().unwrap().bytes, Bytes::new(3 * BLOCK));
    let word = |at: u64| data.words()[at as usize / 8].load(Ordering::Relaxed).to_ne_bytes();
    assert_eq!((word(BLOCK - 8), word(3 * BLOCK - 8)), ([7; 8], [0, 0, 0, 0, 9, 9, 9, 9]));
    assert_eq!(word(0), [9, 9, 9, 9, 0, 0, 0, 0]);
}
