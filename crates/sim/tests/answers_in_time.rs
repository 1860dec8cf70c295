//! A volume under contract is answered in time, counted from the program's call, whoever has
//! the memory; and what others get of it is by class and by user.
#![allow(clippy::print_stdout)] // the figures are part of the result

use crate::common::*;
use crate::programs::*;
use node::{Error, Mode, Op, Policy, Priority, Reply, Service, Span, VolumeStatus};
use sim::{Context, Greedy, Keeps, Metadata, Player, Program, Random, Timing, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration};

const SIZE: Bytes = Bytes::mib(8);

/// Volumes that are written: `p` for a contract, `g` for the others.
fn pool(memory: Bytes, disks: usize, timing: impl Fn(usize) -> Option<u64>, seed: u64) -> World {
    pool_keeping(memory, (disks, Bytes::GIB), timing, seed)
}

/// The same, with disks that keep what their type says.
fn pool_keeping<K: Keeps>(
    memory: Bytes,
    (disks, capacity): (usize, Bytes),
    timing: impl Fn(usize) -> Option<u64>,
    seed: u64,
) -> World<K> {
    let config = node::Config { memory, ..config(Policy::SLACK) };
    let mut world =
        world_keeping(config, disks, capacity, |model, profile, index| match timing(index) {
            None => drive(model, profile, index),
            Some(100) => Timing::Percent(Box::new(profile.clone()), 100),
            Some(_) => {
                Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
            }
        });
    for name in ["p", "g"] {
        create(&mut world, name, SIZE);
        fill(&mut world, name, 9, SIZE);
    }
    world
}

fn serve<K: Keeps>(world: &mut World<K>, contract: InTime) -> Result<Reply, Error> {
    let InTime { len, within, every } = contract;
    let service = Service::Latency { len, within, every };
    world.call(Op::VolumeService { name: "p".into(), service })
}

fn volume<K: Keeps>(world: &World<K>) -> VolumeStatus {
    world.node.volume("p").expect("it was made")
}

const ORDINARY: InTime = InTime {
    len: Bytes::kib(4),
    within: Duration::from_millis(300),
    every: Duration::from_millis(300),
};

/// A keeper beside greedy connections that have all the memory, as it was tried on a daemon:
/// what it saw, and what its volume says.
fn beside_greedy(memory: Bytes, connections: u64, each: u64, contract: InTime) -> (Seen, u64) {
    let mut world = pool(memory, 1, |_| None, 1);
    assert_eq!(serve(&mut world, contract), Ok(Reply::Done));
    for number in 0..connections {
        world.add(Adversary::new(1000, "g", SIZE, each, 50 + number));
    }
    // All is taken before the keeper comes.
    world.run_for(Duration::from_secs(2));
    let free = |world: &World| world.node.status(world.now()).memory.free;
    let manner = Manner { writes: 30, odd: 30, ..Manner::PLAIN };
    let keeper = Keeper::new("p", SIZE, contract, manner, 7);
    let seen = keeper.seen();
    world.add(keeper);
    let mut least = Bytes::MAX;
    for _ in 0..60 {
        world.run_for(Duration::from_secs(1));
        least = least.min(free(&world));
    }
    println!("{seen:?}, {:?}, free at the least {least}", volume(&world).account);
    agrees(&world, &seen.borrow());
    let seen = seen.borrow().clone();
    (seen, least / Bytes::MIB)
}

/// The volume's account is what its program saw.
fn agrees<K: Keeps>(world: &World<K>, seen: &Seen) {
    let account = volume(world).account;
    assert_eq!(seen.errors, [], "the keeper is answered");
    assert_eq!((account.late_requests, account.late_max), (seen.late, seen.late_max));
    assert_eq!((account.requests, account.latency_max), (seen.answers, seen.longest));
}

#[test]
fn six_greedy_connections_and_little_memory_make_no_answer_late() {
    let (seen, free) = beside_greedy(Bytes::mib(32), 6, 8, ORDINARY);
    assert!(seen.answers > 40 && free <= 10, "{} answers, {free} MiB free", seen.answers);
    assert_eq!(seen.late, 0, "by {}", seen.late_max);
}

#[test]
fn forty_connections_of_another_user_make_no_answer_late() {
    let (seen, free) = beside_greedy(Bytes::mib(236), 40, 12, ORDINARY);
    assert!(seen.answers > 40 && free <= 68, "{} answers, {free} MiB free", seen.answers);
    assert_eq!(seen.late, 0, "by {}", seen.late_max);
}

/// The canary: what is longer than the contract says has no memory of its own. It waits, and
/// the account says what the program saw, not what the schedule did.
#[test]
fn an_answer_that_waits_for_memory_is_counted_as_late_as_its_program_sees_it() {
    let mut world = pool(Bytes::mib(16), 1, |_| None, 1);
    assert_eq!(serve(&mut world, ORDINARY), Ok(Reply::Done));
    let hoard = Adversary::new(1000, "g", SIZE, 40, 3).keeping(100);
    world.add(hoard);
    world.run_for(Duration::from_secs(1));
    let began = world.now();
    let (volume_name, len) = ("p".into(), Bytes::kib(256));
    let read = Op::Read { volume: volume_name, offset: Bytes::ZERO, len, priority: None };
    let Ok(Reply::Data { .. }) = world.call(read) else { panic!("no data") };
    // 64 commands, the last of which has its turn 63 periods later.
    let (waited, account) = (world.now() - began, volume(&world).account);
    assert_eq!((account.requests, account.latency_max), (1, waited));
    let due = ORDINARY.every * 63 + ORDINARY.within;
    assert_eq!(account.late_max, waited.saturating_sub(due));
}

/// What was given for a contract is said, and refused with figures; it comes back with the
/// contract's end.
#[test]
fn memory_for_a_contract_is_set_aside_or_it_is_refused() {
    let mut world = pool(Bytes::mib(32), 2, |_| None, 1);
    let memory = |world: &World| world.node.status(world.now()).memory;
    let before = memory(&world);
    assert_eq!(serve(&mut world, ORDINARY), Ok(Reply::Done));
    // On each disk: one that is served, one that is carried; 4 KiB that begin within 4 KiB.
    let told = volume(&world);
    assert_eq!((told.operations, told.memory), (4, Bytes::kib(32)));
    assert_eq!(memory(&world).services, Bytes::kib(32));
    let rate = Service::Rate {
        rate: units::Rate::per_second(200_000),
        block: Bytes::kib(64),
        period: Duration::from_secs(50),
    };
    let refused = world.call(Op::VolumeService { name: "g".into(), service: rate });
    // 100 kB/s on each disk for 50 s in 64 KiB: 77 of 68 KiB, and one more.
    let (asked, free) = (Bytes::kib(68) * 78 * 2, Bytes::mib(8) - Bytes::kib(32));
    assert_eq!(refused, Err(Error::NoServiceMemory { asked, free }));
    assert_eq!(memory(&world).services, Bytes::kib(32), "nothing has changed");
    let contract = contract(400_000, Bytes::kib(64), Bytes::ZERO);
    let player = Player::new("p", 9, contract, Bytes::kib(64), SIZE);
    world.add(player);
    world.run_for(Duration::from_secs(1));
    let service = Service::default();
    assert_eq!(world.call(Op::VolumeService { name: "p".into(), service }), Ok(Reply::Done));
    assert_eq!(memory(&world).services, Bytes::ZERO);
    world.run_for(Duration::from_secs(60));
    assert_eq!(memory(&world).free, before.free, "all of it is back");
    let op = Op::VolumeDelete { name: "p".into(), only: None, keep_directory: false };
    assert_eq!(serve(&mut world, ORDINARY), Ok(Reply::Done));
    assert_eq!(world.call(op), Ok(Reply::Done));
    assert_eq!(memory(&world).services, Bytes::ZERO, "the contract went with its volume");
}

/// Others have all memory and give nothing of it back: a contract needs none of it, for reads
/// and writes whose bytes are long on their way, for writes that begin and end within 4 KiB,
/// and for what is called too soon and counts as coming later.
#[test]
fn a_contract_needs_no_memory_of_others() {
    // Answered at once, so that it is back before the next but one comes.
    let long = ORDINARY.every * 13 / 10;
    let plain = Manner { keeps: long, ..Manner::PLAIN };
    let odd = Manner { writes: 100, odd: 100, ..plain };
    for (manner, least) in [
        (plain, 300),
        (Manner { writes: 50, ..plain }, 300),
        (odd, 80),
        (Manner { bursts: 20, ..plain }, 300),
    ] {
        let mut world = pool(Bytes::mib(16), 1, |_| None, 1);
        assert_eq!(serve(&mut world, ORDINARY), Ok(Reply::Done));
        let hoard = Given::default();
        let ops = (0..10).map(|tag| (tag, room(Bytes::MIB, None)));
        let ops = ops.chain([(10, room(Bytes::kib(956), None))]);
        let ops = ops.chain([(11, room(Bytes::MIB, Some(Priority::Interactive)))]).collect();
        world.add(Asker { uid: 1000, ops, given: Rc::clone(&hoard) });
        assert_eq!(hoard.borrow().len(), 12, "to the last byte");
        let keeper = Keeper::new("p", SIZE, ORDINARY, manner, 7);
        let seen = keeper.seen();
        world.add(keeper);
        world.run_for(Duration::from_secs(120));
        println!("{seen:?}");
        agrees(&world, &seen.borrow());
        assert_eq!(seen.borrow().late, 0, "by {}: {manner:?}", seen.borrow().late_max);
        assert!(seen.borrow().answers > least, "{seen:?}");
    }
}

/// Who always calls more than its contract says has a line of its own that moves: it is not
/// refused with those who wait for memory that never comes back.
#[test]
fn what_waits_for_its_contracts_memory_is_not_refused_with_the_others() {
    let (mut world, _hoard) = hoarded(1000, 0);
    let rest = Given::default();
    let ops = vec![(0, room(Bytes::kib(956), None))];
    world.add(Asker { uid: 1000, ops, given: Rc::clone(&rest) });
    assert_eq!(serve(&mut world, ORDINARY), Ok(Reply::Done));
    let greedy = Greedy::new("p", SIZE, Bytes::kib(4), 64, 3);
    let tally = greedy.tally();
    world.add(greedy);
    let len = Bytes::MIB;
    let read = Op::Read { volume: "g".into(), offset: Bytes::ZERO, len, priority: None };
    assert!(matches!(world.call(read), Err(Error::NoMemory { .. })));
    world.run_for(Duration::from_secs(30));
    let tally = tally.borrow();
    assert!(tally.error.is_none() && tally.operations > 500, "{tally:?}");
}

/// Loads at random, with all memory in the hands of others: answers, and the most that was
/// late.
fn load(seed: u64) -> (u64, Bytes) {
    let mut random = Random::new(seed);
    let disks = random.between(1, 2);
    let timing = *random.pick(&[None, Some(100), Some(50)]);
    let memory = Bytes::mib(*random.pick(&[16, 16, 24, 48]));
    // Whether answers come in time does not depend on bytes. Without them, and with a log as
    // short as that of a small disk, a load takes a tenth of the time.
    let size = (disks as usize, Bytes::mib(64));
    let mut world: World<Metadata> = pool_keeping(memory, size, |_| timing, seed);
    let every = Duration::from_millis(random.between(150, 500));
    let contract = InTime {
        len: Bytes::kib(*random.pick(&[4, 16, 64, 512, 1020])),
        within: every * random.between(60, 100) / 100,
        every,
    };
    match serve(&mut world, contract) {
        Err(Error::Refused(_)) => return (0, Bytes::ZERO),
        other => assert_eq!(other, Ok(Reply::Done), "seed {seed}"),
    }
    let (writes, odd) = (*random.pick(&[0, 50, 100]), *random.pick(&[0, 50]));
    // What is called at once beyond the contract waits for the program's own memory, so that
    // the time that it takes to send a body would be that of others of its calls as well.
    // And of long writes there is no room for many that do not overlap.
    let is_short = contract.len <= Bytes::kib(64);
    let may_burst = writes == 0 || writes == 100 && odd == 0 && is_short;
    let bursts = if may_burst { *random.pick(&[0, 10]) } else { 0 };
    let keeps = if writes > 0 && bursts > 0 { 0 } else { random.below(100) };
    // Back before the next but one of its operations comes.
    let manner = Manner { writes, odd, bursts, keeps: every * keeps / 100, lag: Duration::ZERO };
    for uid in 0..random.between(1, 4) {
        let requests = random.between(10, 60);
        let priority =
            *random.pick(&[None, Some(Priority::Interactive), Some(Priority::Background)]);
        let rooms = random.below(101);
        let adversary = Adversary::new(1000 + uid as u32, "g", SIZE, requests, random.bits());
        let holds = Duration::from_millis(*random.pick(&[1_500, 60_000]));
        world.add(adversary.stating(priority).keeping(rooms).holding(holds));
    }
    if random.chance(50) {
        let rate = random.between(50_000, 400_000);
        let stream = self::contract(rate, Bytes::kib(64), Bytes::ZERO);
        world.add(Player::new("g", 9, stream, Bytes::kib(64), SIZE));
    }
    world.run_for(random.span(Duration::from_secs(1)));
    let keeper = Keeper::new("p", SIZE, contract, manner, random.bits()).on_disks(disks);
    let seen = keeper.seen();
    world.add(keeper);
    let mut least = Bytes::MAX;
    for _ in 0..10 {
        world.run_for(Duration::from_secs(1));
        let status = world.node.status(world.now());
        least = least.min(status.memory.free.saturating_sub(memory / 4));
    }
    let seen = seen.borrow();
    assert_eq!(seen.late, 0, "seed {seed}: {contract:?} {manner:?} {seen:?}");
    agrees(&world, &seen);
    assert_eq!(late(&world), 0, "seed {seed}");
    (seen.answers, least)
}

/// So many loads; more where SLACKLINE_LOADS says.
#[test]
fn no_answer_is_late_whoever_has_the_memory() {
    let many = std::env::var("SLACKLINE_LOADS").ok().and_then(|text| text.parse().ok());
    let many: u64 = many.unwrap_or(600);
    let (mut answers, mut exhausted) = (0, 0);
    for seed in 0..many {
        let (answered, least) = load(seed);
        answers += answered;
        exhausted += u64::from(answered > 0 && least < Bytes::mib(2));
    }
    println!("{answers} answers in {many} loads, {exhausted} with all memory taken");
    assert!(answers > 10 * many && exhausted > many / 3, "{answers}, {exhausted}: for a test");
}

/// Where the host was late in telling the node of a call, more than deadlines are advanced
/// for, the deadline still counts from the call.
#[test]
fn what_comes_late_to_the_node_is_due_from_its_call_on() {
    let mut world = pool(Bytes::mib(64), 1, |_| Some(100), 1);
    let (within, every) = (Duration::from_millis(400), Duration::from_millis(450));
    let contract = InTime { len: Bytes::kib(64), within, every };
    assert_eq!(serve(&mut world, contract), Ok(Reply::Done));
    for number in 0..3 {
        world.add(Greedy::new("g", SIZE, Bytes::kib(256), 8, number));
    }
    world.add(Player::new(
        "g",
        9,
        self::contract(600_000, Bytes::kib(512), Bytes::ZERO),
        Bytes::kib(64),
        SIZE,
    ));
    let manner = Manner { lag: Duration::from_millis(200), ..Manner::PLAIN };
    let keeper = Keeper::new("p", SIZE, contract, manner, 7);
    let seen = keeper.seen();
    world.add(keeper);
    world.run_for(Duration::from_secs(200));
    println!("{seen:?}");
    agrees(&world, &seen.borrow());
    assert!(seen.borrow().answers > 300);
    assert_eq!((seen.borrow().late, late(&world)), (0, 0), "by {}", seen.borrow().late_max);
}

/// Its waits, of a reader with one 4 KiB after the other that states a priority, beside one
/// user who takes all the memory he is given.
fn waits(priority: Priority, memory: Bytes, requests: u64) -> (Duration, Duration) {
    let mut world = pool(memory, 1, |_| None, 1);
    world.add(Adversary::new(1000, "g", SIZE, requests, 5).keeping(20));
    world.run_for(Duration::from_secs(2));
    let reader = Greedy::new("p", SIZE, Bytes::kib(4), 1, 3).stating(priority);
    let tally = reader.tally();
    world.add(reader);
    world.run_for(Duration::from_secs(60));
    let tally = tally.borrow();
    assert!(tally.error.is_none() && tally.operations > 20, "{tally:?}");
    (Duration::from_nanos(tally.wait_total.as_nanos() / tally.operations), tally.wait_max)
}

/// An interactive request finds the memory that is kept for such: it waits for its disk, and
/// that is for one piece of somebody else's.
#[test]
fn an_interactive_request_beside_exhausted_memory_waits_for_its_disk_alone() {
    let free = waits(Priority::Interactive, Bytes::mib(256), 60);
    let exhausted = waits(Priority::Interactive, Bytes::mib(32), 60);
    let normal = waits(Priority::Normal, Bytes::mib(32), 60);
    println!("interactive, mean and most: {free:?} with memory free, {exhausted:?} without;");
    println!("normal: {normal:?} without");
    assert!(exhausted.0 <= free.0 * 5 / 4 && exhausted.1 <= free.1 * 3 / 2);
    assert!(normal.0 > exhausted.0 * 3, "memory was short: {normal:?}");
}

/// What a program was answered, in its order.
type Given = Rc<RefCell<Vec<(u64, Span)>>>;

/// Asks for rooms, or reads, all at once, as somebody; keeps what it gets.
struct Asker {
    uid: u32,
    ops: Vec<(u64, Op)>,
    given: Given,
}

impl Program for Asker {
    fn start(&mut self, context: &mut Context<'_>) {
        for (tag, op) in self.ops.drain(..) {
            context.ask_as(user(self.uid), tag, op);
        }
    }
    fn answer(&mut self, _: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        match result {
            Ok(Reply::Room { room: span } | Reply::Data { bytes: span, .. }) => {
                self.given.borrow_mut().push((tag, span));
            }
            other => panic!("{other:?}"),
        }
    }
}

fn room(len: Bytes, priority: Option<Priority>) -> Op {
    let target = node::Target { volume: "g".into(), offset: Bytes::ZERO, priority };
    Op::Room { len, target: Some(target) }
}

/// A pool of which a user has all the memory that he can have, in MiB, and waits for so much
/// more.
fn hoarded(uid: u32, more: u64) -> (World, Given) {
    let mut world = pool(Bytes::mib(16), 1, |_| None, 1);
    let given = Given::default();
    let ops = (0..10 + more).map(|tag| (tag, room(Bytes::MIB, None))).collect();
    world.add(Asker { uid, ops, given: Rc::clone(&given) });
    assert_eq!(given.borrow().len(), 10, "all but what is kept, and the zeros");
    (world, given)
}

fn give_back(world: &mut World, given: &Given, many: usize) {
    for _ in 0..many {
        let (_, span) = given.borrow_mut().remove(0);
        assert_eq!(world.call(Op::Release { span }), Ok(Reply::Done));
        world.run_for(Duration::from_nanos(1));
    }
}

/// One who is alone has all of it. When others come they go first, until he has no more than
/// his part: the two that he waits for himself come after them.
#[test]
fn a_user_with_more_than_his_part_comes_after_the_others_who_wait() {
    let (mut world, hoard) = hoarded(1000, 2);
    let (second, third) = (Given::default(), Given::default());
    for (uid, given, first) in [(1001, &second, 100), (1002, &third, 200)] {
        let ops = (0..2).map(|tag| (first + tag, room(Bytes::MIB, None))).collect();
        world.add(Asker { uid, ops, given: Rc::clone(given) });
    }
    give_back(&mut world, &hoard, 1);
    assert_eq!((second.borrow().len(), third.borrow().len(), hoard.borrow().len()), (1, 0, 9));
    give_back(&mut world, &hoard, 1);
    assert_eq!((second.borrow().len(), third.borrow().len()), (1, 1), "users take turns");
    give_back(&mut world, &hoard, 2);
    assert_eq!((second.borrow().len(), third.borrow().len(), hoard.borrow().len()), (2, 2, 6));
    // Nobody else waits now: what he gives back is his again.
    give_back(&mut world, &hoard, 2);
    assert_eq!(hoard.borrow().len(), 6);
}

/// Classes are served in their order; after eight of a higher one, one of a lower.
#[test]
fn classes_are_served_in_their_order_and_none_waits_for_ever() {
    let (mut world, hoard) = hoarded(1000, 0);
    let given = Given::default();
    let of = |first: u64, priority, many: u64| {
        (first..first + many).map(move |tag| (tag, room(Bytes::MIB, Some(priority))))
    };
    let ops = of(300, Priority::Background, 2).chain(of(200, Priority::Normal, 2));
    // The first of these has what is kept for interactive requests.
    let ops = ops.chain(of(100, Priority::Interactive, 12)).collect();
    world.add(Asker { uid: 1001, ops, given: Rc::clone(&given) });
    let mut order: Vec<u64> = Vec::new();
    let mut spans = hoard.borrow().clone();
    for _ in 0..15 {
        let (_, span) = spans.remove(0);
        assert_eq!(world.call(Op::Release { span }), Ok(Reply::Done));
        world.run_for(Duration::from_nanos(1));
        // What is given is given back, the kept memory last.
        let mut came = given.borrow_mut();
        order.extend(came.iter().map(|&(tag, _)| tag));
        let (kept, common): (Vec<_>, Vec<_>) = came.drain(..).partition(|&(tag, _)| tag == 100);
        spans.extend(common);
        spans.extend(kept);
    }
    println!("{order:?}");
    // The first has the kept memory; after eight, the one that has waited longest.
    let classes = [&[100, 101, 102, 103, 104, 105, 106, 107, 108, 300][..], &[109, 110, 111]];
    let last = [200, 201, 301];
    assert_eq!(order, [classes.concat(), last.to_vec()].concat());
}

/// Background holds a part of the memory: what it has may not come back while others want
/// the disk, and they must be able to.
#[test]
fn background_does_not_take_all_memory() {
    let mut world = pool(Bytes::mib(16), 1, |_| None, 1);
    let given = Given::default();
    let background = Some(Priority::Background);
    let ops = (0..12).map(|tag| (tag, room(Bytes::MIB, background))).collect();
    world.add(Asker { uid: 1000, ops, given: Rc::clone(&given) });
    assert_eq!(given.borrow().len(), 6, "a half, and the piece that goes over it");
    let normal = Given::default();
    world.add(Asker {
        uid: 1000,
        ops: vec![(0, room(Bytes::MIB, None))],
        given: Rc::clone(&normal),
    });
    assert_eq!(normal.borrow().len(), 1, "there is some for others at once");
}

/// A handle in the background leaves the contract, and its memory, to the others.
#[test]
fn memory_of_a_contract_is_not_for_handles_that_leave_it() {
    let mut world = pool(Bytes::mib(16), 1, |_| None, 1);
    assert_eq!(serve(&mut world, ORDINARY), Ok(Reply::Done));
    // To the last byte.
    let ops = (0..10).map(|tag| (tag, room(Bytes::MIB, None)));
    let ops = ops.chain([(10, room(Bytes::kib(956), None))]).collect();
    let hoard = Given::default();
    world.add(Asker { uid: 1000, ops, given: Rc::clone(&hoard) });
    assert_eq!(hoard.borrow().len(), 11);
    let (volume, len) = (String::from("p"), Bytes::kib(4));
    let read = |priority| Op::Read { volume: volume.clone(), offset: Bytes::ZERO, len, priority };
    let given = Given::default();
    let ops = vec![(0, read(Some(Priority::Background))), (1, read(None))];
    world.add(Asker { uid: 1001, ops, given: Rc::clone(&given) });
    world.run_for(Duration::from_secs(5));
    let tags: Vec<u64> = given.borrow().iter().map(|&(tag, _)| tag).collect();
    assert_eq!(tags, [1]);
    let mode = Mode::Read;
    let contract = contract(100_000, Bytes::kib(64), Bytes::ZERO);
    let open = Op::StreamOpen { volume: "g".into(), mode, contract, start: Bytes::ZERO };
    assert!(world.call(open).is_ok(), "streams have theirs");
}
