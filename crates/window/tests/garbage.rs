//! A program that writes what it likes into its control page, between the daemon's
//! calls and during them: the daemon's end never panics, never takes the program to be
//! done with more than it was told, and says of what cannot be that it is a lie.
//!
//! `SLACKLINE_PAGES` is how many pages of garbage; a million and a bit by default.
#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::Bytes;
use window::{Client, Daemon, Kind, Look, Memory, Mode, Piece, Rights};

const SLOTS: u64 = 64;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn pages() -> u64 {
    let asked = std::env::var("SLACKLINE_PAGES").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(1_100_000)
}

/// A word of the kinds that are worth a try: near what is right, near the ends, or any.
fn word(random: &mut Random, near: u64) -> u64 {
    match random.below(6) {
        0 => near.wrapping_add(random.below(100)).wrapping_sub(50),
        1 => random.below(3),
        2 => u64::MAX - random.below(3),
        3 => 1 << random.below(64),
        _ => random.next(),
    }
}

/// One call of the daemon's, checked; what the daemon knows by itself is `told` and
/// `moved`. True where the program was found to lie.
fn step(end: &mut Daemon, random: &mut Random, told: &mut u64, moved: &mut u64) -> bool {
    match random.below(8) {
        0..=2 if !end.is_full() => {
            let kind = [Kind::Data, Kind::Gap][random.below(2) as usize];
            let len = Bytes::new(1 + random.below(1000));
            let _ = end.publish(Piece { kind, place: Bytes::ZERO, offset: Bytes::ZERO, len });
            *told += len.get();
        }
        3 => drop(end.begins_to_wait()),
        4 => drop(end.ring_at(Bytes::new(*moved + random.below(1000)))),
        5 => drop(end.durable(Bytes::new(random.next()))),
        6 if random.below(100) == 0 => {
            end.void();
            *told = *moved;
        }
        _ => match end.further() {
            Ok(further) => {
                *moved += further.bytes.get();
                assert!(*moved <= *told, "{moved} of {told}");
                assert!(further.gaps <= further.bytes);
            }
            Err(lie) => {
                assert!(lie.moved < *moved || lie.moved > *told, "{lie}");
                return true;
            }
        },
    }
    assert_eq!((end.moved().get(), end.left().get()), (*moved, *told - *moved));
    false
}

#[test]
fn garbage_between_calls_harms_nobody() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut lies, mut truths, mut page_count) = (0u64, 0u64, 0);
    while page_count < pages() {
        let mut end = Daemon::create(Mode::Read, SLOTS).unwrap();
        let page = Memory::adopt(end.fd().try_clone_to_owned().unwrap(), Rights::Write).unwrap();
        let words = page.words();
        let (mut told, mut moved) = (0, 0);
        // Most windows end at the first lie, as the daemon ends them; some go on.
        let deaf = random.below(4) == 0;
        for _ in 0..10_000 {
            page_count += 1;
            // The words that the program may write, and some of those that it may not.
            words[16].store(word(&mut random, told), Ordering::Relaxed);
            words[17].store(word(&mut random, 1), Ordering::Relaxed);
            words[18].store(word(&mut random, 1), Ordering::Relaxed);
            for _ in 0..8 {
                let at = random.below(words.len() as u64) as usize;
                if at != 16 {
                    words[at].store(random.next(), Ordering::Relaxed);
                }
            }
            if random.below(4) > 0 {
                words[16].store(moved + random.below(told - moved + 1), Ordering::Relaxed);
            }
            let before = moved;
            let lied = step(&mut end, &mut random, &mut told, &mut moved);
            (lies, truths) = (lies + u64::from(lied), truths + u64::from(moved > before));
            if lied && !deaf {
                break;
            }
        }
    }
    assert!(lies > 1000 && truths > 1000, "{lies} lies, {truths} truths: garbage of one kind");
    println!("{page_count} pages of garbage, {lies} lies found, {truths} moves believed");
}

#[test]
fn garbage_during_calls_harms_nobody() {
    let mut end = Daemon::create(Mode::Read, SLOTS).unwrap();
    let page = Memory::adopt(end.fd().try_clone_to_owned().unwrap(), Rights::Write).unwrap();
    let (stop, sweeps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (over, done) = (Arc::clone(&stop), Arc::clone(&sweeps));
    let scribbler = std::thread::spawn(move || {
        let mut random = Random(99);
        while !over.load(Ordering::Relaxed) {
            for word in page.words() {
                word.store(random.next() >> random.below(64), Ordering::Relaxed);
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut random = Random(77);
    let (mut told, mut moved, mut lies, mut steps) = (0, 0, 0u64, 0);
    // On a busy machine the scribbler may begin when all pages are done: some sweeps of
    // its own belong to it.
    while steps < pages() || sweeps.load(Ordering::Relaxed) < 100 {
        steps += 1;
        lies += u64::from(step(&mut end, &mut random, &mut told, &mut moved));
    }
    stop.store(true, Ordering::Relaxed);
    scribbler.join().unwrap();
    println!("{sweeps:?} sweeps over all words meanwhile, {lies} lies found in {steps} steps");
    assert!(lies > 0);
}

#[test]
fn a_program_does_not_leave_its_window_for_garbage_either() {
    let mut random = Random(0xfeed_f00d);
    let end = Daemon::create(Mode::Read, SLOTS).unwrap();
    let page = Memory::adopt(end.fd().try_clone_to_owned().unwrap(), Rights::Write).unwrap();
    let data = Memory::create("data", 8192, Rights::Read).unwrap();
    let fds = || (end.fd().try_clone_to_owned().unwrap(), data.fd().try_clone_to_owned().unwrap());
    let (control, memory) = fds();
    let mut window = Client::open(control, memory, Bytes::ZERO).unwrap();
    window.populate(Bytes::new(4096));
    let words = page.words();
    let (mut taken, mut refused, mut looked, mut set) = (0u64, 0u64, 0u64, 0u64);
    for _ in 0..pages() {
        let next = window.heard();
        if window.moved().get() > 1 << 60 {
            // A gap of that length was believed; the next window begins anew.
            let (control, memory) = fds();
            window = Client::open(control, memory, Bytes::ZERO).unwrap();
            window.populate(Bytes::new(4096));
        }
        for word in &words[8..] {
            word.store(random.next() >> random.below(64), Ordering::Relaxed);
            if random.below(8) == 0 {
                break;
            }
        }
        // Slots that are nearly right, most often as many as there can be.
        let there = random.below(4) * random.below(SLOTS / 2);
        let mut follows = window.held().end.get();
        for number in 0..there.min(SLOTS) {
            let at = 24 + ((next + number) % SLOTS * 4) as usize;
            for n in 0..4 {
                words[at + n].store(random.below(5) * random.below(3000), Ordering::Relaxed);
            }
            words[at].store(1 + random.below(5), Ordering::Relaxed);
            if random.below(50) > 0 {
                words[at + 2].store(follows, Ordering::Relaxed);
                follows += words[at + 3].load(Ordering::Relaxed);
            }
        }
        words[8].store(next + there, Ordering::Relaxed);
        // At any place, over several pieces, forwards and back.
        let held = window.held();
        let look = held.start + Bytes::new(random.below((held.end - held.start).get() + 1));
        if let Ok(Look::Data(bytes)) = window.look_at(look, 9000) {
            looked += 1;
            assert!(bytes.len() <= 9000 && bytes.iter().all(|&byte| byte == 0));
        }
        if let Ok(row) = window.bytes_in_a_row(9000) {
            assert!(row.iter().all(|&byte| byte == 0));
        }
        if random.below(8) == 0 {
            let _ = window.keep(Bytes::new(random.below(3) * random.below(9000)));
            let held = window.held();
            let to = held.start.get() + random.below((held.end - held.start).get() + 1);
            set += u64::from(matches!(window.set_playout(Bytes::new(to)), Ok(Some(_))));
        }
        if window.left() > 0 {
            let _ = window.advance(window.left());
        }
        match window.take() {
            Ok(Some(_)) => {
                taken += 1;
                let sum: u64 = window.bytes(usize::MAX).iter().map(|&byte| u64::from(byte)).sum();
                assert_eq!(sum, 0);
                let left = window.left();
                let _ = window.advance(left);
            }
            Ok(None) => window.sought(random.next() >> 2, Bytes::ZERO),
            Err(_) => {
                refused += 1;
                window.sought(random.next() >> 2, Bytes::ZERO);
            }
        }
    }
    println!("{taken} pieces taken, {refused} refused");
    println!("{looked} looks elsewhere, {set} playout points set");
    assert!(taken > 1000 && refused > 1000 && looked > 1000 && set > 1000);
    for word in &words[..4] {
        let right = word.swap(random.next(), Ordering::Relaxed);
        let (control, memory) = fds();
        assert!(Client::open(control, memory, Bytes::ZERO).is_err());
        word.store(right, Ordering::Relaxed);
    }
}
