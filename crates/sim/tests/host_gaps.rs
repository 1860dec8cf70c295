//! What a host takes between the commands of a disk, through a whole node: measured, charged
//! to every contract, and admitted again when it grows; and what it takes from an answer of the
//! pool until the program has it.

use crate::common::*;
use disk::{Kind, Line, LinearProfile, Profile};
use node::{
    Config, DiskSetup, DiskStatus, Error, Node, Op, Placement, Policy, Reply, Service, StreamId,
};
use sim::{Context, Greedy, Player, Program, Random, SimDisk, Timing, World};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::{Bytes, Duration, Instant, Rate};

const SIZE: Bytes = Bytes::mib(64);
const CAPACITY: Bytes = Bytes::GIB;

/// The host latency of a pool on it.
const HEARD_LATE: Duration = Duration::from_millis(4);

/// A disk on which a block of 256 KiB takes 10 ms, wherever it lies.
fn profile() -> Profile {
    let line = Line { fixed: Duration::from_millis(2), rate: Rate::per_second(32 << 20) };
    Profile {
        source: "a disk that was made up for a test".into(),
        confidence: "certain".into(),
        capacity: CAPACITY,
        flush: Duration::from_millis(5),
        bus: None,
        kind: Kind::Linear(LinearProfile {
            read: line,
            write: line,
            depth: 1,
            latency: Duration::ZERO,
            spread: None,
        }),
    }
}

/// A pool on one such disk, whose commands all take their bound, on a host that takes what
/// `gap` says after each; `charged` is what the pool counts on at first.
fn hosted(charged: Duration, gap: impl FnMut() -> Duration + 'static) -> World {
    let profile = profile();
    let timing = Timing::Percent(Box::new(profile.clone()), 100);
    let mut disks = vec![SimDisk::new(CAPACITY, timing)];
    sim::format(&mut disks, "test", &profile, 1).unwrap();
    let store = sim::open(&mut disks).unwrap();
    let host_latency = HEARD_LATE;
    let config = Config { host_latency, memory: Bytes::mib(256), ..config(Policy::SLACK) };
    let setup = DiskSetup { gap: charged, ..DiskSetup::new(profile) };
    let node = Node::new(config, vec![setup], store).unwrap();
    let mut world = World::new(node, disks, config.memory);
    world.gap = Some(Box::new(gap));
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    world
}

/// Readers in blocks of 256 KiB every 250 ms, as many as are taken and no more than `most`.
fn readers(world: &mut World, most: usize) -> usize {
    let contract = contract(1 << 20, Bytes::kib(256), Bytes::ZERO);
    for at in 0..most {
        let player = Player::new("v", 1, contract, contract.block, SIZE);
        let tally = player.tally();
        world.add(player);
        match tally.borrow().error.clone() {
            None => {}
            Some(Error::Refused(_)) => return at,
            Some(error) => panic!("{error}"),
        }
    }
    most
}

fn disk(world: &World) -> DiskStatus {
    world.node.status(world.now()).disks.remove(0)
}

/// A host that takes up to half a millisecond: half of the times a little, else all of it.
fn now_and_then() -> impl FnMut() -> Duration {
    let mut random = Random::new(7);
    move || Duration::from_micros(if random.chance(50) { 500 } else { random.between(20, 100) })
}

/// The disk is promised nearly whole: what the host takes between commands is then missing,
/// unless each contract is charged for it.
#[test]
fn contracts_are_kept_on_a_host_with_gaps_that_are_charged_and_broken_where_they_are_not() {
    const GAP: Duration = Duration::from_millis(3);
    let run = |charged| {
        // All of it each time, so that nothing is left over by chance.
        let mut world = hosted(charged, || GAP);
        let taken = readers(&mut world, 40);
        world.add(Greedy::new("v", SIZE, Bytes::kib(64), 4, 1));
        world.run_for(Duration::from_secs(10));
        (taken, disk(&world).account.late_requests, disk(&world).gaps)
    };
    let (without, late, gaps) = run(Duration::ZERO);
    assert!(late > 20, "{late} of {without} readers were late; {gaps:?}");
    let (with, late, gaps) = run(GAP);
    assert_eq!(late, 0, "{gaps:?}");
    assert!(with >= 14 && with < without, "{with} readers instead of {without}");
    // What was measured is what was.
    assert!(gaps.sample > 100, "{gaps:?}");
    assert_eq!((gaps.stated, gaps.quantile, gaps.beyond), (GAP, GAP, 0), "{gaps:?}");
}

/// The same of readers whose blocks lie in four places each, with a gap after each of these.
#[test]
fn gaps_between_the_parts_of_a_block_are_charged_like_others() {
    const GAP: Duration = Duration::from_millis(8);
    const FILMS: u64 = 15;
    const FILM: Bytes = Bytes::mib(24);
    let film = |number: u64| format!("film{number}");
    let run = |charged| {
        let mut world = hosted(charged, || GAP);
        let placement = Placement { thin: true, ..Placement::default() };
        (0..FILMS).for_each(|number| create_in(&mut world, &film(number), FILM, placement.clone()));
        for at in 0..FILM / Bytes::MIB {
            for number in 0..FILMS {
                write(&mut world, &film(number), number, (Bytes::mib(at), Bytes::MIB));
            }
        }
        assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
        let asked = contract(2 << 20, Bytes::mib(4), Bytes::ZERO);
        let player = |number| Player::new(&film(number), number, asked, Bytes::kib(64), FILM);
        let players = play_while_admitted(&mut world, FILMS, Duration::ZERO, player);
        world.add(Greedy::new("v", SIZE, Bytes::kib(64), 4, 1));
        world.run_for(Duration::from_secs(12));
        (players.len(), disk(&world).account.late_requests)
    };
    // 136 ms of 2 s each, and with the gaps 168.
    let (without, late) = run(Duration::ZERO);
    assert!(without == 14 && late > 10, "{late} of {without} readers were late");
    assert_eq!(run(GAP), (11, 0));
}

/// A pool that counted on no gaps finds them, admits with them what is open, and promises no
/// more from then on than it keeps.
#[test]
fn a_pool_that_finds_gaps_charges_what_is_open_and_what_comes_for_them() {
    let mut world = hosted(Duration::ZERO, now_and_then());
    let first = readers(&mut world, 20);
    assert_eq!(first, 20, "they leave room for the gaps");
    world.run_for(Duration::from_secs(40));
    let found = disk(&world);
    assert_eq!(found.gap_refused, None);
    assert!(found.gaps.stated >= Duration::from_micros(500), "{:?}", found.gaps);
    assert!(found.gaps.stated < Duration::from_micros(700), "{:?}", found.gaps);
    assert_eq!(found.account.late_requests, 0);
    let more = readers(&mut world, 20);
    assert!(more < 4, "{more} readers beside {first}");
    world.run_for(Duration::from_secs(15));
    assert_eq!(disk(&world).account.late_requests, 0, "{:?}", disk(&world).gaps);
}

/// Where what is open does not fit with the gap that was found, nothing changes, those that do
/// not fit are named, and the gap is charged when they have gone.
#[test]
fn a_gap_that_does_not_fit_names_who_is_in_the_way_and_is_charged_when_they_have_gone() {
    let mut world = hosted(Duration::ZERO, || Duration::from_micros(900));
    let taken = readers(&mut world, 40);
    world.run_for(Duration::from_secs(40));
    let found = disk(&world);
    assert_eq!(found.gaps.stated, Duration::ZERO);
    let Some(Error::GapRefused { streams, gap, .. }) = found.gap_refused.as_deref() else {
        panic!("{:?}", found.gap_refused)
    };
    assert!(!streams.is_empty() && streams.len() < taken, "{streams:?}");
    assert!(*gap >= Duration::from_micros(900), "{gap}");
    let said = found.gap_refused.as_ref().unwrap().to_string();
    assert!(said.contains(&format!("stream {}", streams[0].0)), "{said}");
    assert!(said.contains("close these"), "{said}");
    let (streams, gap) = (streams.clone(), *gap);
    for stream in streams {
        close(&mut world, stream);
    }
    assert_eq!(disk(&world).gap_refused, None);
    assert_eq!(disk(&world).gaps.stated, gap);
}

/// Until then nobody gets a contract who would be late with the rest, however small it is; with less
/// in the way, he does. What the disk had promised by then is all that can be late.
#[test]
fn beside_a_gap_that_does_not_fit_no_contract_is_given_until_it_does() {
    let mut world = hosted(Duration::ZERO, || Duration::from_micros(900));
    create(&mut world, "w", SIZE);
    fill(&mut world, "w", 1, SIZE);
    readers(&mut world, 40);
    let (rate, period) = (Rate::per_second(200), Duration::from_secs(20));
    let small = Service::Rate { rate, block: Bytes::kib(4), period };
    let serve = |service| Op::VolumeService { name: "w".into(), service };
    assert_eq!(world.call(serve(small)), Ok(Reply::Done), "there is room for it");
    assert_eq!(world.call(serve(Service::default())), Ok(Reply::Done));
    world.run_for(Duration::from_secs(40));
    let found = disk(&world);
    let Some(Error::GapRefused { streams, gap, .. }) = found.gap_refused.as_deref() else {
        panic!("{:?}", found.gap_refused)
    };
    let refused = world.call(serve(small)).unwrap_err();
    let Error::BeyondHost { host, .. } = &refused else { panic!("{refused}") };
    assert_eq!((host.measured.gap, host.charged.gap), (*gap, Duration::ZERO));
    assert_eq!((host.streams, host.volumes), (streams.len(), 0));
    let said = refused.to_string();
    assert!(said.contains("between commands on disk 0, of which 0 ns is charged"), "{said}");
    assert_eq!(disk(&world).utilisation_ppm, found.utilisation_ppm);
    for stream in streams.clone() {
        close(&mut world, stream);
    }
    assert_eq!(disk(&world).gap_refused, None);
    assert_eq!(world.call(serve(small)), Ok(Reply::Done));
}

/// A refusal of the past is not shown for ever: a host that is calm again asks for nothing.
#[test]
fn a_gap_that_was_refused_is_forgotten_when_the_host_is_calm_again() {
    let gap = Rc::new(Cell::new(Duration::from_micros(900)));
    let now = Rc::clone(&gap);
    let mut world = hosted(Duration::ZERO, move || now.get());
    // The tightest contract that fits, so that it does not with gaps.
    let tightest = (20..200).map(Duration::from_millis).find(|&within| {
        let service = Service::Latency { len: Bytes::kib(256), within, every: within };
        world.call(Op::VolumeService { name: "v".into(), service }).is_ok()
    });
    assert!(tightest.is_some());
    world.add(Greedy::new("v", SIZE, Bytes::kib(64), 4, 1));
    world.run_for(Duration::from_secs(40));
    assert!(disk(&world).gap_refused.is_some(), "{:?}", disk(&world).gaps);
    gap.set(Duration::ZERO);
    world.run_for(Duration::from_secs(200));
    assert_eq!(disk(&world).gap_refused, None, "{:?}", disk(&world).gaps);
}

/// Reads 64 KiB of a volume at a time, so many times, with another one waiting; then asks for
/// nothing any more.
struct Reads {
    left: u64,
}

impl Reads {
    fn read(&mut self, context: &mut Context<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let (volume, offset, len) = ("v".into(), Bytes::mib(self.left % 64), Bytes::kib(64));
            context.ask(0, Op::Read { volume, offset, len, priority: None });
        }
    }
}

impl Program for Reads {
    fn start(&mut self, context: &mut Context<'_>) {
        (0..2).for_each(|_| self.read(context));
    }
    fn answer(&mut self, context: &mut Context<'_>, _: u64, result: Result<Reply, Error>) {
        match result {
            Ok(Reply::Data { bytes: span, .. }) => context.ask(1, Op::Release { span }),
            other => {
                assert_eq!(other, Ok(Reply::Done));
                self.read(context);
            }
        }
    }
}

/// One bad minute, and then nobody asks the disk for anything: nothing measures that the host is
/// calm again. What does not fit with that minute may not be refused for hours.
#[test]
fn a_gap_that_nothing_confirms_on_an_idle_disk_is_forgotten() {
    let mut world = hosted(Duration::ZERO, || Duration::from_micros(900));
    create(&mut world, "w", SIZE);
    let tightest = (20..200).map(Duration::from_millis).find(|&within| {
        let service = Service::Latency { len: Bytes::kib(256), within, every: within };
        world.call(Op::VolumeService { name: "v".into(), service }).is_ok()
    });
    assert!(tightest.is_some());
    world.add(Reads { left: 2_000 });
    world.run_for(Duration::from_secs(60));
    let every = Duration::from_secs(20);
    let service = Service::Latency { len: Bytes::kib(4), within: every, every };
    let serve = || Op::VolumeService { name: "w".into(), service };
    let refused = world.call(serve()).unwrap_err();
    assert!(matches!(refused, Error::BeyondHost { .. }), "{refused}");
    world.run_for(Duration::from_secs(1_200));
    assert_eq!(disk(&world).gap_refused, None, "{:?}", disk(&world).gaps);
    assert_eq!(world.call(serve()), Ok(Reply::Done));
}

/// A film in blocks of 1 MiB beside answers in time, which is served in chunks of 512 KiB for them:
/// with the gap that is found these are too long, and it is charged in shorter ones.
#[test]
fn a_gap_that_fits_in_shorter_chunks_is_charged_in_those() {
    let mut world = hosted(Duration::ZERO, || Duration::from_micros(900));
    create(&mut world, "w", SIZE);
    fill(&mut world, "w", 2, SIZE);
    let (within, every) = (Duration::from_micros(29_000), Duration::from_secs(1));
    let service = Service::Latency { len: Bytes::kib(4), within, every };
    assert_eq!(world.call(Op::VolumeService { name: "w".into(), service }), Ok(Reply::Done));
    let contract = contract(1 << 20, Bytes::MIB, Bytes::ZERO);
    world.add(Player::new("v", 1, contract, Bytes::kib(256), SIZE));
    assert_eq!(disk(&world).chunk, Some(Bytes::kib(512)));
    world.add(Greedy::new("v", SIZE, Bytes::kib(64), 4, 1));
    world.run_for(Duration::from_secs(40));
    let found = disk(&world);
    assert_eq!(found.gap_refused, None);
    assert!(found.gaps.stated >= Duration::from_micros(900), "{:?}", found.gaps);
    assert_eq!(found.chunk, Some(Bytes::kib(256)));
    assert_eq!(found.account.late_requests, 0);
}

fn close(world: &mut World, stream: StreamId) {
    assert!(matches!(world.call(Op::StreamClose { stream }), Ok(Reply::Done)));
}

/// The first value is what the log is admitted with, too: it commits less often where the
/// host takes much.
#[test]
fn the_log_leaves_room_for_the_gaps_of_a_slow_host() {
    let store = || {
        let timing = Timing::Fixed(Duration::from_millis(1));
        let mut disks = vec![SimDisk::new(CAPACITY, timing)];
        sim::format(&mut disks, "test", &profile(), 1).unwrap();
        sim::open(&mut disks).unwrap()
    };
    let config = Config { commit_interval: Duration::from_millis(1), ..config(Policy::SLACK) };
    let interval = |gap| {
        let setup = DiskSetup { gap, ..DiskSetup::new(profile()) };
        let node = Node::new(config, vec![setup], store()).expect("the log fits");
        node.sync_time_max(None).expect("of the pool")
    };
    let (quick, slow) = (interval(Duration::ZERO), interval(Duration::from_millis(10)));
    assert!(slow > quick, "{slow} and {quick}");
}

/// Asked for 4 KiB a while ago.
struct HeardLate {
    volume: String,
    late: Duration,
}

impl Program for HeardLate {
    fn start(&mut self, context: &mut Context<'_>) {
        let (volume, offset, len) = (self.volume.clone(), Bytes::ZERO, Bytes::kib(4));
        let read = Op::Read { volume, offset, len, priority: None };
        context.ask_since(context.now - self.late, node::Who::root(), 0, read);
    }
    fn answer(&mut self, context: &mut Context<'_>, _: u64, result: Result<Reply, Error>) {
        if let Reply::Data { bytes: span, .. } = result.expect("it is read") {
            context.ask(1, Op::Release { span });
        }
    }
}

/// The pool hears late what is asked for, and late that a command has ended: 8 programs that all ask at once
/// after a pause have their answers in the shortest time that was promised to as many.
#[test]
fn that_a_host_is_late_to_hear_of_a_call_and_of_its_end_is_counted_each_time() {
    const LATE: Duration = Duration::from_millis(6);
    const PROGRAMS: usize = 8;
    let line = Line { fixed: Duration::from_millis(1), rate: Rate::per_second(4 << 30) };
    let kind =
        LinearProfile { read: line, write: line, depth: 1, latency: Duration::ZERO, spread: None };
    let profile =
        Profile { flush: Duration::from_micros(100), kind: Kind::Linear(kind), ..profile() };
    let timing = Timing::Percent(Box::new(profile.clone()), 100);
    let mut disks = vec![SimDisk::new(CAPACITY, timing)];
    sim::format(&mut disks, "test", &profile, 1).unwrap();
    let store = sim::open(&mut disks).unwrap();
    let config = Config { host_latency: LATE, ..config(Policy::SLACK) };
    let node = Node::new(config, vec![DiskSetup::new(profile)], store).unwrap();
    let mut world = World::new(node, disks, config.memory);
    let name = |number: usize| format!("v{number}");
    for number in 0..PROGRAMS {
        create(&mut world, &name(number), Bytes::MIB);
        fill(&mut world, &name(number), 1, Bytes::MIB);
    }
    let every = Duration::from_secs(1);
    let all_at = |world: &mut World, within| {
        (0..PROGRAMS).all(|number| {
            let service = Service::Latency { len: Bytes::kib(4), within, every };
            world.call(Op::VolumeService { name: name(number), service }).is_ok()
        })
    };
    let within = (10..60).map(Duration::from_millis).find(|&within| all_at(&mut world, within));
    let within = within.expect("60 ms are enough");
    assert!(within < Duration::from_millis(30), "no more than that: {within}");
    world.run_for(Duration::from_secs(2));
    world.told_after = Some(LATE);
    (0..PROGRAMS).for_each(|number| world.add(HeardLate { volume: name(number), late: LATE }));
    world.run_for(Duration::from_secs(2));
    for number in 0..PROGRAMS {
        let account = world.node.volume(&name(number)).unwrap().account;
        assert_eq!((account.requests, account.late_requests), (1, 0), "{within}: {account:?}");
    }
}

/// Asks for 4 KiB each time that its contract allows it, and notes how long it waited for each
/// answer, which takes `delivery` from the pool to it. The pool hears of it late.
struct Asker {
    delivery: Duration,
    asked: Instant,
    left: u64,
    waited: Rc<RefCell<Vec<Duration>>>,
}

/// How soon, and how often.
const WITHIN: Duration = Duration::from_millis(60);

impl Asker {
    fn ask(&mut self, context: &mut Context<'_>) {
        self.asked = context.now - HEARD_LATE;
        let (volume, offset) = ("v".into(), Bytes::mib(self.left % 64));
        let read = Op::Read { volume, offset, len: Bytes::kib(4), priority: None };
        context.ask_since(self.asked, node::Who::root(), 0, read);
    }
}

impl Program for Asker {
    fn start(&mut self, context: &mut Context<'_>) {
        self.ask(context);
    }
    fn answer(&mut self, context: &mut Context<'_>, _: u64, result: Result<Reply, Error>) {
        match result {
            Ok(Reply::Data { bytes: span, .. }) => {
                let waited = context.now.saturating_since(self.asked) + self.delivery;
                self.waited.borrow_mut().push(waited);
                context.ask(1, Op::Release { span });
                self.left -= 1;
                if self.left > 0 {
                    context.alarm_at(self.asked + WITHIN.max(waited) + HEARD_LATE);
                }
            }
            other => assert_eq!(other, Ok(Reply::Done)),
        }
    }
    fn alarm(&mut self, context: &mut Context<'_>) {
        self.ask(context);
    }
}

/// What programs see of a contract of 60 ms where an answer takes 8 ms from the pool to them, of
/// which the pool counts `counted`.
fn waited(counted: Duration) -> Vec<Duration> {
    let delivery = Duration::from_millis(8);
    let mut world = hosted(Duration::ZERO, || Duration::ZERO);
    let service = Service::Latency { len: Bytes::kib(4), within: WITHIN, every: WITHIN };
    assert_eq!(world.call(Op::VolumeService { name: "v".into(), service }), Ok(Reply::Done));
    assert_eq!(world.call(Op::Delivery { takes: counted }), Ok(Reply::Done));
    create(&mut world, "g", SIZE);
    fill(&mut world, "g", 2, SIZE);
    world.add(Greedy::new("g", SIZE, Bytes::kib(64), 8, 1));
    let waited = Rc::new(RefCell::new(Vec::new()));
    let own = Rc::clone(&waited);
    world.add(Asker { delivery, asked: world.now(), left: 200, waited: own });
    world.run_for(Duration::from_secs(20));
    let account = world.node.volume("v").unwrap().account;
    assert_eq!(account.late_requests, 0, "by the pool's clock none is: {account:?}");
    waited.take()
}

/// The contract is the program's: what it takes to carry an answer to it is in the advance.
#[test]
fn answers_are_in_time_at_their_programs_where_deliveries_are_counted_and_late_where_not() {
    let late = |waited: &[Duration]| waited.iter().filter(|&&one| one > WITHIN).count();
    let uncounted = waited(Duration::ZERO);
    assert_eq!(uncounted.len(), 200);
    assert!(late(&uncounted) > 20, "{} of 200, {:?}", late(&uncounted), uncounted.iter().max());
    let counted = waited(Duration::from_millis(8));
    assert_eq!((counted.len(), late(&counted)), (200, 0), "{:?}", counted.iter().max());
}

/// Streams and services that do not fit with what deliveries take are named, nothing changes, and
/// it is counted when they have gone; what is taken back is counted at once.
#[test]
fn deliveries_that_do_not_fit_name_who_is_in_the_way_and_count_when_they_have_gone() {
    let mut world = hosted(Duration::ZERO, || Duration::ZERO);
    let stream = {
        let contract = contract(1 << 20, Bytes::kib(256), Bytes::ZERO);
        let (volume, mode) = ("v".into(), node::Mode::Read);
        let op = Op::StreamOpen { volume, mode, contract, start: Bytes::ZERO };
        let Ok(Reply::Stream { stream, .. }) = world.call(op) else { panic!("it fits") };
        stream
    };
    // The tightest that fits.
    let tightest = (20..200).map(Duration::from_millis).find(|&within| {
        let every = Duration::from_secs(1);
        let service = Service::Latency { len: Bytes::kib(256), within, every };
        world.call(Op::VolumeService { name: "v".into(), service }).is_ok()
    });
    assert!(tightest.is_some());
    let before = disk(&world);
    let takes = Duration::from_millis(9);
    let refused = world.call(Op::Delivery { takes }).unwrap_err();
    let Error::DeliveryRefused { volumes, .. } = &refused else { panic!("{refused}") };
    assert_eq!(volumes, &["v"]);
    let said = refused.to_string();
    assert!(said.contains("9 ms") && said.contains("the service of volume v"), "{said}");
    let status = world.node.status(world.now());
    assert_eq!(status.delivery, Duration::ZERO);
    assert_eq!(status.delivery_refused.as_deref(), Some(&refused));
    assert_eq!(
        (disk(&world).slack, disk(&world).utilisation_ppm),
        (before.slack, before.utilisation_ppm)
    );
    let none = Service::default();
    assert_eq!(world.call(Op::VolumeService { name: "v".into(), service: none }), Ok(Reply::Done));
    close(&mut world, stream);
    let status = world.node.status(world.now());
    assert_eq!((status.delivery, status.delivery_refused), (takes, None));
    assert_eq!(world.call(Op::Delivery { takes: Duration::ZERO }), Ok(Reply::Done));
    assert_eq!(world.node.delivery(), Duration::ZERO);
}
