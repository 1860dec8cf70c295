//! Accounts are by the clock of the programs: what an answer takes from the pool to its program
//! is in `late` and `longest`, of services and of streams.

use crate::common::*;
use crate::programs::{InTime, Keeper, Manner};
use node::{Config, Mode, Op, Policy, Region, Reply, Service, ServiceAccount, StreamAccount};
use sim::{Context, Greedy, Player, Program, Random, World};
use units::{Bytes, Duration, Instant, Rate};

const SIZE: Bytes = Bytes::mib(8);
/// What windows are made for the host to take.
const HOST: Duration = Duration::from_millis(20);

/// A pool with volumes `p` and `g`, whose answers take what `delivery` says to their programs.
fn pool(delivery: impl FnMut() -> Duration + 'static) -> World {
    let config = Config { host_latency: HOST, ..config(Policy::SLACK) };
    let mut world = world(config, 1, Bytes::GIB, drive);
    for name in ["p", "g"] {
        create(&mut world, name, SIZE);
        fill(&mut world, name, 9, SIZE);
    }
    world.delivery = Some(Box::new(delivery));
    world
}

fn serve(world: &mut World, service: Service) {
    let op = Op::VolumeService { name: "p".into(), service };
    assert_eq!(world.call(op), Ok(Reply::Done));
}

fn account(world: &World) -> ServiceAccount {
    world.node.volume("p").expect("it was made").account
}

/// Reads and writes in a contract of 200 ms beside greedy programs; carrying takes up to 195 ms,
/// of which nothing is counted. The volume's account is what the program saw.
#[test]
fn a_services_account_is_what_its_program_saw_with_what_carrying_takes() {
    for (writes, odd) in [(0, 0), (100, 0), (50, 30)] {
        let mut random = Random::new(3);
        let mut world = pool(move || Duration::from_millis(random.between(0, 195)));
        let every = Duration::from_millis(200);
        let contract = InTime { len: Bytes::kib(16), within: every, every };
        serve(&mut world, Service::Latency { len: contract.len, within: every, every });
        world.add(Greedy::new("g", SIZE, Bytes::kib(64), 8, 1));
        let keeper = Keeper::new("p", SIZE, contract, Manner { writes, odd, ..Manner::PLAIN }, 7);
        let seen = keeper.seen();
        world.add(keeper);
        world.run_for(Duration::from_secs(60));
        let (seen, account) = (seen.borrow(), account(&world));
        assert_eq!(seen.errors, []);
        assert!(seen.late > 3 && seen.answers > 50, "for a test: {seen:?}");
        assert_eq!((account.late_requests, account.late_max), (seen.late, seen.late_max));
        assert_eq!(account.latency_max, seen.longest);
        assert_eq!(late(&world), 0, "no disk was late");
        // A write whose room was long on its way comes late to the pool.
        assert!(account.late_carried > 0 && account.late_carried <= seen.late, "{account:?}");
        assert!(writes > 0 || account.late_carried == seen.late, "{account:?} of {seen:?}");
        // One may be on its way.
        assert!(account.requests - seen.answers <= 1, "{account:?}");
    }
}

/// One read of 4 KiB in its turn.
struct One;

impl Program for One {
    fn start(&mut self, context: &mut Context<'_>) {
        let (volume, offset) = ("p".into(), Bytes::ZERO);
        context.ask(0, Op::Read { volume, offset, len: Bytes::kib(4), priority: None });
    }
    fn answer(&mut self, _: &mut Context<'_>, _: u64, result: Result<Reply, node::Error>) {
        assert!(matches!(result, Ok(Reply::Data { .. })), "{result:?}");
    }
}

/// At a rate an operation is due when its budget is, a period after it let the operation in.
#[test]
fn of_a_rate_the_account_goes_on_until_the_program_has_its_answer() {
    let period = Duration::from_millis(500);
    let took = |takes| {
        let mut world = pool(move || takes);
        let rate = Rate::per_second(8 << 10);
        serve(&mut world, Service::Rate { rate, block: Bytes::kib(4), period });
        world.add(One);
        world.run_for(Duration::from_secs(5));
        account(&world)
    };
    let at_once = took(Duration::ZERO);
    assert_eq!((at_once.requests, at_once.late_requests), (1, 0));
    let soon = took(Duration::from_millis(100));
    assert_eq!((soon.requests, soon.late_requests), (1, 0));
    assert_eq!(soon.latency_max, at_once.latency_max + Duration::from_millis(100));
    let long = took(period);
    assert_eq!((long.requests, long.late_requests), (1, 1));
    assert_eq!(long.latency_max, at_once.latency_max + period);
    assert!(!long.late_max.is_zero() && long.late_max <= at_once.latency_max, "{long:?}");
}

fn stream(world: &World) -> StreamAccount {
    world.node.status(world.now()).streams[0].account
}

/// A player at half its rate, so that every block is long there when it is asked for.
fn played(delivery: Duration) -> (StreamAccount, u64) {
    let mut world = pool(move || delivery);
    let block = Bytes::kib(64);
    let player = Player::new("p", 9, contract(400_000, block, Bytes::ZERO), block, SIZE).speed(50);
    let tally = player.tally();
    world.add(player);
    world.run_for(Duration::from_secs(20));
    let operations = tally.borrow().operations;
    (stream(&world), operations)
}

#[test]
fn a_carried_streams_answers_are_late_where_they_take_longer_than_its_window_was_made_for() {
    let (kept, pieces) = played(HOST);
    assert!(pieces > 40);
    assert_eq!((kept.late_requests, kept.underruns), (0, 0), "{kept:?}");
    let over = Duration::from_millis(7);
    let (late, pieces) = played(HOST + over);
    assert_eq!(late.late_max, over);
    assert!(
        late.late_requests + 5 > pieces && late.late_requests <= pieces,
        "{late:?} of {pieces}"
    );
}

/// A reader of a shared window that leaves `keeps` blocks unread for as long as there are more.
struct Sharer {
    keeps: u64,
    stream: Option<node::StreamId>,
    told: u64,
    passed: u64,
    asks: bool,
}

const BLOCK: Bytes = Bytes::kib(64);

impl Sharer {
    fn ask(&mut self, context: &mut Context<'_>) {
        let stream = self.stream.expect("it is open");
        if !self.asks && self.told - self.passed <= self.keeps && BLOCK * self.told < SIZE {
            self.asks = true;
            context.ask(1, Op::WindowNext { stream });
        }
    }
}

impl Program for Sharer {
    fn start(&mut self, context: &mut Context<'_>) {
        let contract = contract(400_000, BLOCK, BLOCK * 2);
        let (volume, mode, start) = ("p".into(), Mode::Read, Bytes::ZERO);
        let region = Region(0);
        context.ask(0, Op::WindowOpen { volume, mode, contract, start, region });
    }
    fn answer(&mut self, context: &mut Context<'_>, _: u64, result: Result<Reply, node::Error>) {
        match result {
            Ok(Reply::Stream { stream, .. }) => self.stream = Some(stream),
            Ok(Reply::Data { .. }) => {
                (self.told, self.asks) = (self.told + 1, false);
                context.alarm_at(context.now + Duration::from_millis(200));
            }
            other => assert_eq!(other, Ok(Reply::Done)),
        }
        self.ask(context);
    }
    fn alarm(&mut self, context: &mut Context<'_>) {
        let stream = self.stream.expect("it is open");
        let keeps = if BLOCK * self.told < SIZE { self.keeps } else { 0 };
        let passes = self.told.saturating_sub(self.passed + keeps);
        if passes > 0 {
            self.passed += passes;
            context.ask(2, Op::WindowMoved { stream, len: BLOCK * passes });
        }
        self.ask(context);
    }
}

/// A program that has others to go on with is not late for a piece that is long on its way.
#[test]
fn a_shared_windows_piece_is_late_for_a_program_that_has_nothing_else() {
    let shared = |keeps, takes| {
        let mut world = pool(move || takes);
        world.add(Sharer { keeps, stream: None, told: 0, passed: 0, asks: false });
        world.run_for(Duration::from_secs(15));
        stream(&world)
    };
    let takes = Duration::from_millis(100);
    let waits = shared(0, takes);
    assert!(waits.late_requests > 20, "{waits:?}");
    assert_eq!(waits.late_max, takes - HOST, "{waits:?}");
    assert_eq!(shared(0, HOST).late_requests, 0);
    // With the first it has nothing yet.
    assert_eq!(shared(2, takes).late_requests, 1);
}

/// An account that has gone meanwhile takes nothing, and nothing else happens.
#[test]
fn what_is_carried_for_a_volume_that_is_gone_is_forgotten() {
    let mut world = pool(|| Duration::from_secs(2));
    let every = Duration::from_millis(500);
    serve(&mut world, Service::Latency { len: Bytes::kib(4), within: every, every });
    world.add(One);
    world.run_for(Duration::from_secs(1));
    assert_eq!(account(&world).requests, 1);
    assert_eq!(
        world.call(Op::VolumeDelete { name: "p".into(), only: None, keep_directory: false }),
        Ok(Reply::Done)
    );
    let before = world.now();
    world.run_for(Duration::from_secs(5));
    assert!(world.now() - before == Duration::from_secs(5) && world.now() > Instant::EPOCH);
    assert!(world.node.volume("p").is_none());
}
