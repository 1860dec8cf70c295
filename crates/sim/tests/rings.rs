//! Rings in simulated time: a camera that records ten times around one is never late and never
//! full, nearly all of the ring is held, and the power may go at any event.

use crate::common::*;
use node::{Access, Contract, Error, Mode, Op, Placement, Policy, Reply, Span, StreamId};
use sim::{Context, Everything, Keeps, Metadata, Program, Random, SimDisk, Timing, World};
use std::cell::RefCell;
use std::rc::Rc;
use store::{EXTENT, Store};
use units::{Bytes, Duration, Instant};

const PAGE: Bytes = Bytes::kib(4);

/// What a camera has seen.
#[derive(Debug, Default)]
struct Seen {
    /// Written, and told durable.
    position: Bytes,
    durable: Bytes,
    /// The least that the ring held since it was full, in bytes.
    held_min: Option<Bytes>,
    /// Of its stream, as it was seen last.
    underruns: u64,
    late: u64,
    error: Option<Error>,
    closed: bool,
}

/// Records to the ring as fast as its contract lets it, until so much is recorded; each 4 KiB
/// begins with its offset.
struct Camera {
    contract: Contract,
    size: Bytes,
    upto: Bytes,
    stream: Option<StreamId>,
    room: Option<Span>,
    seen: Rc<RefCell<Seen>>,
}

const OPEN: u64 = 0;
const ROOM: u64 = 1;
const GIVE: u64 = 2;
const DURABLE: u64 = 3;
const CLOSE: u64 = 4;

impl Camera {
    fn next<K: Keeps>(&mut self, context: &mut Context<'_, K>) {
        let stream = self.stream.expect("it is open");
        let left = self.upto.saturating_sub(self.seen.borrow().position);
        if left.is_zero() {
            return context.ask(CLOSE, Op::StreamClose { stream });
        }
        let len_max = left.min(self.contract.block);
        context.ask(ROOM, Op::StreamRoom { stream, len_max });
    }

    fn listen<K: Keeps>(&self, context: &mut Context<'_, K>) {
        let (stream, beyond) = (self.stream.expect("it is open"), self.seen.borrow().durable);
        context.ask(DURABLE, Op::StreamDurable { stream, beyond });
    }

    fn look<K: Keeps>(&self, context: &Context<'_, K>) {
        let ring = context.node.volume("ring").expect("it is there");
        let (mut seen, start) = (self.seen.borrow_mut(), ring.start.expect("a ring"));
        let stream = self.stream.and_then(|stream| context.node.stream(stream));
        let account = stream.expect("it is open").account;
        (seen.underruns, seen.late) = (account.underruns, account.late_requests);
        if start > Bytes::ZERO {
            let held = ring.length.saturating_sub(start).min(self.size);
            seen.held_min = Some(seen.held_min.map_or(held, |least| least.min(held)));
        }
    }
}

impl<K: Keeps> Program<K> for Camera {
    fn start(&mut self, context: &mut Context<'_, K>) {
        // It goes on at the block that the ring ends in.
        let length = context.node.volume("ring").expect("it is there").length;
        let start = length.round_down(self.contract.block);
        (self.stream, self.room) = (None, None);
        *self.seen.borrow_mut() = Seen { position: start, durable: start, ..Seen::default() };
        let (volume, contract) = ("ring".into(), self.contract);
        context.ask(OPEN, Op::StreamOpen { volume, mode: Mode::Write, contract, start });
    }

    fn answer(&mut self, context: &mut Context<'_, K>, tag: u64, result: Result<Reply, Error>) {
        match (tag, result) {
            (OPEN, Ok(Reply::Stream { stream, .. })) => {
                self.stream = Some(stream);
                self.listen(context);
                self.next(context);
            }
            (ROOM, Ok(Reply::Room { room: span })) => {
                let position = self.seen.borrow().position;
                if let Some(bytes) = context.bytes(&span) {
                    for (page, at) in bytes.chunks_mut(PAGE.as_usize()).zip(position.get() / 4096..)
                    {
                        page[..8].copy_from_slice(&(at + 1).to_le_bytes());
                    }
                }
                self.room = Some(span);
                let stream = self.stream.expect("it is open");
                context.ask(GIVE, Op::StreamWrite { stream, len: span.len });
            }
            (GIVE, Ok(_)) => {
                self.seen.borrow_mut().position += self.room.take().expect("it was given").len;
                self.look(context);
                self.next(context);
            }
            (DURABLE, Ok(Reply::Durable { upto })) => {
                self.seen.borrow_mut().durable = upto;
                self.listen(context);
            }
            (CLOSE, Ok(_)) => self.seen.borrow_mut().closed = true,
            (DURABLE, Err(Error::NoSuchStream { .. })) => {}
            (_, Err(error)) => drop(self.seen.borrow_mut().error.get_or_insert(error)),
            (tag, Ok(other)) => panic!("{tag}: {other:?}"),
        }
    }
}

fn with_ring<K: Keeps>(world: &mut World<K>, size: Bytes) {
    let (placement, access) = (Placement::default(), Access::default());
    let op = Op::RingCreate { name: "ring".into(), size, placement, access, keep: None };
    assert!(matches!(world.call(op), Ok(Reply::Made { .. })));
}

fn camera(contract: Contract, size: Bytes, turns: u64) -> (Camera, Rc<RefCell<Seen>>) {
    let seen = Rc::<RefCell<Seen>>::default();
    let upto = size * turns;
    let camera = Camera { contract, size, upto, stream: None, room: None, seen: seen.clone() };
    (camera, seen)
}

/// At least 98 % are held of a ring that is fifty times as long as what is given up ahead.
#[test]
fn a_camera_goes_ten_times_around_a_ring_and_nearly_all_of_it_is_held() {
    let size = Bytes::GIB * 5;
    let mut config = config(Policy::SLACK);
    config.commit_interval = Duration::from_secs(1);
    let timing = |_: &disk::Model, profile: &disk::Profile, _| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(7))
    };
    let mut world: World<Metadata> = world_keeping(config, 1, Bytes::GIB * 8, timing);
    with_ring(&mut world, size);
    let contract = contract(8 << 20, Bytes::mib(4), Bytes::ZERO);
    let (camera, seen) = camera(contract, size, 11);
    let turn = contract.rate.time_for(size);
    world.add(camera);
    world.run_for(turn * 2);
    let (early, used) = (world.node.log().record_longest, world.node.space().used);
    assert!(seen.borrow().position > size, "it is in its second turn");
    world.run_for(turn * 9 + Duration::from_secs(60));
    let seen = seen.borrow();
    assert!(seen.error.is_none() && seen.closed, "{seen:?}");
    assert_eq!((seen.position, seen.underruns, seen.late), (size * 11, 0, 0));
    let held = seen.held_min.expect("it went around");
    let percent = held.get() * 1000 / size.get();
    assert!(percent >= 980, "{percent} of 1000 are held at the least");
    // As long as after one turn, and no longer.
    assert_eq!((world.node.log().record_longest, world.node.space().used), (early, used));
    assert!(early <= Bytes::kib(8), "a record and its copy are {early}");
    assert_eq!(late(&world), 0);
}

/// What is wrong with the ring on these disks, after a cut.
fn judge(store: &Store, disks: &[SimDisk], durable: Bytes, ahead: Bytes) -> Result<u64, String> {
    let ring = store.find("ring").ok_or("it is lost")?;
    let (start, end) = (ring.start(), ring.length());
    if end < durable {
        return Err(format!("{durable} told durable, {end} there"));
    }
    // No more is given up than what is written next needs.
    if ring.end() > end + ahead && start > Bytes::ZERO {
        return Err(format!("{start} to {end} of {} are held", ring.size()));
    }
    let mut pages = 0;
    let mut at = start;
    while at + PAGE <= end {
        let place = store.locate(ring.id(), at / EXTENT).ok_or("it is not held")?;
        let mut page = [0; 8];
        let mut whole = vec![0; PAGE.as_usize()];
        disks[place.disk.as_usize()].read(place.offset.unwrap() + at % EXTENT, &mut whole);
        page.copy_from_slice(&whole[..8]);
        let is = u64::from_le_bytes(page);
        if is != at.get() / 4096 + 1 {
            return Err(format!("at {at} lies page {is}, less one"));
        }
        (pages, at) = (pages + 1, at + Bytes::kib(64));
    }
    Ok(pages)
}

/// Goes around a ring so often, with a cut at about one of `every` events looked at, and one that is
/// lived through in each turn.
fn cut_up(seed: u64, turns: u64, every: u64) -> (u64, u64, Vec<String>) {
    let (size, ahead) = (Bytes::mib(64), Bytes::mib(48));
    let mut config = config(Policy::SLACK);
    config.commit_interval = Duration::from_millis(500);
    let timing = |_: &disk::Model, profile: &disk::Profile, index| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
    };
    let mut world: World<Everything> = world(config, 2, Bytes::mib(64), timing);
    with_ring(&mut world, size);
    let contract = contract(2 << 20, Bytes::kib(512), Bytes::ZERO);
    let (camera, seen) = camera(contract, size, turns);
    world.add(camera);
    let findings = Rc::new(RefCell::new((0, 0, Vec::new())));
    let (found, told) = (findings.clone(), seen.clone());
    let mut dice = Random::new(seed ^ 0xd1ce);
    world.watch = Some(Box::new(move |disks| {
        if dice.below(every) != 0 {
            return;
        }
        let mut disks: Vec<SimDisk> =
            disks.iter().map(|disk| disk.clone().cut(&mut dice)).collect();
        let store = sim::open(&mut disks).expect("it opens after every cut");
        let (cuts, pages, wrong) = &mut *found.borrow_mut();
        *cuts += 1;
        match judge(&store, &disks, told.borrow().durable, ahead) {
            Ok(good) => *pages += good,
            Err(problem) => wrong.push(format!("seed {seed}: {problem}")),
        }
    }));
    let profile = disk::Profile::of(&model(Bytes::mib(64)));
    let turn = contract.rate.time_for(size);
    let mut random = Random::new(seed);
    let mut lived = 0;
    while !seen.borrow().closed {
        world.run_for(random.span(turn) + turn / 2);
        assert_eq!(seen.borrow().error, None, "seed {seed}");
        if seen.borrow().closed {
            break;
        }
        lived += 1;
        assert!(lived < turns * 4, "it does not come to an end");
        let at: Instant = world.now() + Duration::from_secs(1);
        let open = |disks: &mut [SimDisk]| {
            let store = sim::open(disks).map_err(|error| error.to_string())?;
            let setups = disks.iter().map(|_| node::DiskSetup::new(profile.clone())).collect();
            node::Node::new(config, setups, store).map_err(|error| error.to_string())
        };
        world.cut_and_return(at, &mut random, open).expect("the pool opens after a cut");
    }
    assert_eq!(late(&world), 0);
    drop(world);
    Rc::into_inner(findings).expect("the world is gone").into_inner()
}

/// `SLACKLINE_HISTORIES`: how many rings.
#[test]
fn a_ring_that_is_cut_at_any_event_holds_what_was_told_and_not_given_up() {
    let histories = std::env::var("SLACKLINE_HISTORIES").ok().and_then(|n| n.parse().ok());
    for seed in 0..histories.unwrap_or(1) {
        let (cuts, pages, wrong) = cut_up(seed, 10, 20);
        assert!(wrong.is_empty(), "{} of {cuts} cuts: {:?}", wrong.len(), &wrong[0]);
        assert!(cuts > 50 && pages > cuts * 200, "{cuts} cuts, {pages} pages");
    }
}
