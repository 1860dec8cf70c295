//! The orders of the control page, tried: both ends, as they are, over words that give a
//! reader every value that the memory model permits, not only those that the machine at
//! hand would.
//!
//! Loom runs each scene in every interleaving of its threads, up to so many preemptions,
//! and with every value that each load may have. A scene fails where a byte is touched
//! by both sides without an order between them, where a side sleeps for ever, or where it
//! says so. The scenes prove themselves: each order in the two ends (a release, an
//! acquire, a fence) is weakened in turn, and some scene has to fail for it.
//!
//! `SLACKLINE_PREEMPTIONS` is how many preemptions are tried, 3 by default.
#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

use crate::memory::{Memory, Rights};
use crate::page::{self, Kind, Mode, Piece};
use crate::{Client, Daemon, Look};
use loom::cell::Cell as Byte;
use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::Location;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use units::Bytes;

/// A place in the sources where an order is asked for.
type Place = &'static Location<'static>;

thread_local! {
    /// Places that have asked for more than `Relaxed`. Loom's threads share one of ours.
    static PLACES: RefCell<BTreeSet<Place>> = const { RefCell::new(BTreeSet::new()) };
    /// The page that was made last, for the other end to adopt.
    static LAST: RefCell<Option<Arc<Vec<Word>>>> = const { RefCell::new(None) };
}

/// The order that a place gets: the one that it asks for, or the next weaker one.
#[track_caller]
fn order(asked: Ordering) -> Ordering {
    let place = Location::caller();
    if asked != Ordering::Relaxed {
        PLACES.with_borrow_mut(|places| places.insert(place));
    }
    match asked {
        _ if !is_weakened(place) => asked,
        Ordering::SeqCst => Ordering::AcqRel,
        _ => Ordering::Relaxed,
    }
}

/// Whether this is the place that `SLACKLINE_WEAKENED` names.
fn is_weakened(place: Place) -> bool {
    static WEAKENED: OnceLock<Option<String>> = OnceLock::new();
    let weakened = WEAKENED.get_or_init(|| std::env::var("SLACKLINE_WEAKENED").ok());
    weakened.as_ref().is_some_and(|weakened| *weakened == place.to_string())
}

/// One word of a control page.
pub(crate) struct Word(AtomicU64);

impl Word {
    #[track_caller]
    pub(crate) fn load(&self, asked: Ordering) -> u64 {
        self.0.load(order(asked))
    }

    #[track_caller]
    pub(crate) fn store(&self, value: u64, asked: Ordering) {
        self.0.store(value, order(asked));
    }

    #[track_caller]
    pub(crate) fn fetch_add(&self, value: u64, asked: Ordering) -> u64 {
        self.0.fetch_add(value, order(asked))
    }
}

#[track_caller]
pub(crate) fn fence(asked: Ordering) {
    loom::sync::atomic::fence(order(asked));
}

/// In place of the [`Memory`] of a control page.
pub(crate) struct Control(Arc<Vec<Word>>);

impl Control {
    pub(crate) fn create(_: &str, _: usize, _: Rights) -> io::Result<Self> {
        let len = (page::AT_RING + SLOTS_MAX as usize * page::SLOT) / 8;
        let words = Arc::new((0..len).map(|_| Word(AtomicU64::new(0))).collect::<Vec<_>>());
        LAST.set(Some(Arc::clone(&words)));
        Ok(Self(words))
    }

    pub(crate) fn adopt(_: OwnedFd, _: Rights) -> io::Result<Self> {
        Ok(Self(LAST.take().expect("a page was made")))
    }

    pub(crate) fn populate(&self, _: usize, _: usize, _: Rights) {}

    pub(crate) fn words(&self) -> &[Word] {
        &self.0
    }

    /// As long as the shortest page: a scene has fewer slots, and uses no others.
    pub(crate) fn len(&self) -> usize {
        page::len_for(page::RING_MIN)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        static NULL: OnceLock<File> = OnceLock::new();
        NULL.get_or_init(|| File::open("/dev/null").expect("it is always there")).as_fd()
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Control")
    }
}

/// Most slots of a ring in a scene.
const SLOTS_MAX: u64 = 4;

/// What one side hears on the socket.
#[derive(Default)]
struct Bell(Mutex<u64>, Condvar);

impl Bell {
    fn ring(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_one();
    }

    /// Sleeps until it rings, which is then forgotten.
    fn wait(&self) {
        let mut rung = self.0.lock().unwrap();
        while *rung == 0 {
            rung = self.1.wait(rung).unwrap();
        }
        *rung -= 1;
    }
}

/// What both sides have beside the page: a byte of the data, and the socket.
#[derive(Default)]
struct Shared {
    byte: Byte<u64>,
    bell: Bell,
    news: Bell,
}

impl Shared {
    fn fill(&self, value: u64) {
        self.byte.set(value);
    }

    fn check(&self, value: u64) {
        assert_eq!(self.byte.get(), value, "a byte of another piece");
    }
}

fn window(mode: Mode, slots: u64) -> (Daemon, Client, Arc<Shared>) {
    let daemon = Daemon::create(mode, slots).unwrap();
    let data = Memory::create("data", 4096, Rights::Write).unwrap();
    let [control, data] = [daemon.fd(), data.fd()].map(|fd| fd.try_clone_to_owned().unwrap());
    let client = Client::open(control, data, Bytes::ZERO).unwrap();
    (daemon, client, Arc::default())
}

/// A piece of so many bytes, all of which are one to loom.
fn piece(kind: Kind, offset: u64, len: u64) -> Piece {
    let [offset, len] = [offset, len].map(Bytes::new);
    Piece { kind, place: Bytes::ZERO, offset, len }
}

/// Waits as the daemon does, at the bell, until there is a slot.
fn wait_for_slot(daemon: &mut Daemon, shared: &Shared) {
    while daemon.is_full() {
        if !daemon.ring_at_next() {
            shared.bell.wait();
        }
        daemon.further().expect("the truth");
    }
}

/// The same, until the program has moved so many bytes.
fn wait_until_moved(daemon: &mut Daemon, shared: &Shared, bytes: u64) {
    while daemon.moved().get() < bytes {
        if !daemon.ring_at(Bytes::new(bytes)) {
            shared.bell.wait();
        }
        daemon.further().expect("the truth");
    }
}

/// Takes the next piece, as a program does: where there is none it says so once, and then waits for
/// news until there is one, however many of them were of other things.
fn take(client: &mut Client, shared: &Shared) -> Piece {
    let mut is_said = false;
    loop {
        if let Some(piece) = client.take().unwrap() {
            return piece;
        }
        if !is_said {
            is_said = client.begin_to_wait();
        } else {
            shared.news.wait();
        }
    }
}

/// One piece after the other at one place, with a gap between them where there shall be
/// one, the program moving on byte by byte: nobody touches the place of the other, nobody
/// sleeps for ever.
fn bytes(slots: u64, pieces: &'static [(Kind, u64)]) {
    let (mut daemon, mut client, shared) = window(Mode::Read, slots);
    let here = Arc::clone(&shared);
    let disk = thread::spawn(move || {
        let mut offset = 0;
        for &(kind, len) in pieces {
            wait_for_slot(&mut daemon, &here);
            if kind == Kind::Data {
                wait_until_moved(&mut daemon, &here, offset);
                here.fill(offset);
            }
            if daemon.publish(piece(kind, offset, len)) {
                here.news.ring();
            }
            offset += len;
        }
    });
    let mut offset = 0;
    for &(kind, len) in pieces {
        assert_eq!(take(&mut client, &shared), piece(kind, offset, len));
        if kind == Kind::Gap && client.passes_bell() {
            shared.bell.ring();
        }
        while client.left() > 0 {
            shared.check(offset);
            if client.advance(1) {
                shared.bell.ring();
            }
        }
        offset += len;
    }
    disk.join().unwrap();
}

/// A program that looks ahead of its playout point, out of order, and then sets it behind
/// all of that at once: nobody touches the place of the other meanwhile.
fn ahead() {
    let (mut daemon, mut client, shared) = window(Mode::Read, 2);
    let here = Arc::clone(&shared);
    let disk = thread::spawn(move || {
        here.fill(3);
        for offset in [0, 1] {
            if daemon.publish(piece(Kind::Data, offset, 1)) {
                here.news.ring();
            }
        }
        wait_until_moved(&mut daemon, &here, 2);
        here.fill(4);
    });
    while !matches!(client.look_at(Bytes::new(1), 1).unwrap(), Look::Data(_)) {
        if client.begin_to_wait() {
            shared.news.wait();
        }
    }
    shared.check(3);
    if client.set_playout(Bytes::new(2)).unwrap().expect("it is held") {
        shared.bell.ring();
    }
    disk.join().unwrap();
}

/// A writer: the daemon looks at what was filled when it sees that the program moved on.
fn room() {
    let (mut daemon, mut client, shared) = window(Mode::Write, 1);
    let here = Arc::clone(&shared);
    let disk = thread::spawn(move || {
        for number in 0..2 {
            if daemon.publish(piece(Kind::Room, number, 1)) {
                here.news.ring();
            }
            wait_for_slot(&mut daemon, &here);
            here.check(number + 7);
        }
    });
    for number in 0..2 {
        assert_eq!(take(&mut client, &shared).offset.get(), number);
        shared.fill(number + 7);
        if client.advance(1) {
            shared.bell.ring();
        }
    }
    disk.join().unwrap();
}

/// A program that only looks whether there is more, and takes it then.
fn more() {
    let (mut daemon, mut client, shared) = window(Mode::Read, 1);
    let here = Arc::clone(&shared);
    let disk = thread::spawn(move || {
        here.fill(1);
        let _ = daemon.publish(piece(Kind::Data, 0, 1));
    });
    if client.has_more() {
        assert_eq!(client.take().unwrap(), Some(piece(Kind::Data, 0, 1)));
        shared.check(1);
    }
    disk.join().unwrap();
}

/// Who sees that it is over sees all that was told and done before.
fn over() {
    let (mut daemon, mut client, shared) = window(Mode::Read, 1);
    let here = Arc::clone(&shared);
    let disk = thread::spawn(move || {
        here.fill(1);
        let _ = daemon.publish(piece(Kind::Data, 0, 1));
        here.fill(2);
        daemon.over();
    });
    if client.is_over() {
        shared.check(2);
        assert!(client.take().unwrap().is_some());
    }
    disk.join().unwrap();
}

/// Who waits for bytes to be durable hears of them, and what the daemon did before it
/// said so is done.
fn durable() {
    let (mut daemon, client, shared) = window(Mode::Write, 1);
    let (here, watch) = (Arc::clone(&shared), client.watch());
    let disk = thread::spawn(move || {
        here.fill(1);
        for upto in [1, 2] {
            if daemon.durable(Bytes::new(upto)) {
                here.news.ring();
            }
        }
    });
    for beyond in [0, 1].map(Bytes::new) {
        while watch.begin_to_wait(beyond) {
            shared.news.wait();
        }
        assert!(watch.durable() > beyond);
        shared.check(1);
    }
    disk.join().unwrap();
}

const SCENES: [(&str, fn()); 8] = [
    ("ahead", ahead),
    ("bytes", || bytes(1, &[(Kind::Data, 1); 2])),
    ("bytes and slots to spare", || bytes(2, &[(Kind::Data, 1); 3])),
    ("a gap between bytes", || bytes(4, &[(Kind::Data, 2), (Kind::Gap, 1), (Kind::Data, 1)])),
    ("room", room),
    ("more", more),
    ("over", over),
    ("durable", durable),
];

/// Plays a scene in all its orders; says how many there were.
fn play(scene: fn()) -> u64 {
    let asked = std::env::var("SLACKLINE_PREEMPTIONS").ok().and_then(|text| text.parse().ok());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(asked.unwrap_or(3));
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = std::sync::Arc::clone(&count);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    count.load(Ordering::Relaxed)
}

/// What the scenes say in a process of their own, where they fail with this place weakened:
/// one that sleeps for ever takes its process with it.
fn failure(weakened: Place) -> Option<String> {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "--nocapture", "orders::both_ends_keep_their_promises_in_every_order"]);
    again.env("SLACKLINE_WEAKENED", weakened.to_string()).env("SLACKLINE_PREEMPTIONS", "2");
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let how = said.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
    (!output.status.success()).then(|| how.unwrap_or_default().to_owned())
}

#[test]
fn both_ends_keep_their_promises_in_every_order() {
    for (name, scene) in SCENES {
        println!("{name}: {} executions", play(scene));
    }
}

/// The scenes prove themselves, and the ends ask for no order that they could do without.
#[test]
fn whichever_order_is_weakened_a_scene_fails() {
    SCENES.iter().for_each(|(_, scene)| _ = play(*scene));
    let places = PLACES.take();
    assert!(places.len() >= 14, "both ends are looked at: {places:?}");
    let mut unneeded = Vec::new();
    for place in places {
        match failure(place) {
            Some(how) => println!("{place}: {how}"),
            None => unneeded.push(place),
        }
    }
    assert!(unneeded.is_empty(), "no scene needs these orders: {unneeded:#?}");
}
