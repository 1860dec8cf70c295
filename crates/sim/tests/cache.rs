//! What the cache of best effort, and reading ahead, are worth beside films, and that nobody's
//! contract pays for it.

#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

use crate::common::*;
use disk::{Model, Profile};
use node::{Error, Op, Policy, Reply, Who};
use sim::{Context, Metadata, Player, Program, Random, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration};

const RUN: Duration = Duration::from_secs(60);

/// Which bytes a program reads next.
enum Order {
    /// From one end to the other, and again.
    OneAfterTheOther,
    /// Here and there: one of 64 places four times in five.
    HereAndThere(Random),
}

/// Reads pieces of a volume, one at a time.
struct Reader {
    volume: &'static str,
    size: Bytes,
    piece: Bytes,
    at: Bytes,
    order: Order,
    uid: u32,
    read: Rc<RefCell<Bytes>>,
}

impl Reader {
    fn new(volume: &'static str, size: Bytes, piece: Bytes, order: Order, uid: u32) -> Self {
        Self { volume, size, piece, at: Bytes::ZERO, order, uid, read: Rc::default() }
    }

    fn ask(&mut self, context: &mut Context<'_, Metadata>) {
        let pieces = self.size / self.piece;
        self.at = match &mut self.order {
            Order::OneAfterTheOther => (self.at + self.piece) % self.size,
            Order::HereAndThere(random) => {
                let among = if random.chance(80) { 64 } else { pieces };
                self.piece * (random.below(among) * 7_919 % pieces)
            }
        };
        let (volume, offset, len) = (self.volume.into(), self.at, self.piece);
        let who = Who { uid: self.uid, ..Who::root() };
        context.ask_as(who, 0, Op::Read { volume, offset, len, priority: None });
    }
}

impl Program<Metadata> for Reader {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        self.ask(context);
    }
    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        match (tag, result) {
            (0, Ok(Reply::Data { bytes: span, .. })) => {
                *self.read.borrow_mut() += span.len;
                context.ask(1, Op::Release { span });
                self.ask(context);
            }
            (1, Ok(Reply::Done)) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A laptop's disk with films of 1 MiB/s on it, and "data", of 256 MiB.
fn beside(films: u64, is_cached: bool) -> World<Metadata> {
    let model = Model::named("laptop-4200").unwrap().scaled(Bytes::mib(2_048)).unwrap();
    let config = node::Config { memory: Bytes::mib(128), ..config(Policy::SLACK) };
    let mut world: World<Metadata> =
        world_of(config, 1, (&model, Profile::of(&model)), |model, profile, index| {
            drive(model, profile, index)
        });
    if is_cached {
        world.node.cache_reads();
    }
    let size = Bytes::mib(64);
    for film in 0..films {
        let name = format!("film{film}");
        create(&mut world, &name, size);
        fill(&mut world, &name, film, size);
    }
    create(&mut world, "data", Bytes::mib(256));
    fill(&mut world, "data", 99, Bytes::mib(256));
    for film in 0..films {
        let contract = contract(1 << 20, Bytes::kib(512), Bytes::ZERO);
        world.add(Player::new(&format!("film{film}"), film, contract, Bytes::kib(64), size));
    }
    world
}

/// What such a reader gets in a second; nobody is late.
fn gets(films: u64, is_cached: bool, piece: Bytes, order: Order) -> f64 {
    let mut world = beside(films, is_cached);
    let reader = Reader::new("data", Bytes::mib(256), piece, order, 1_000);
    let read = Rc::clone(&reader.read);
    world.add(reader);
    world.run_for(RUN);
    assert_eq!(late(&world), 0, "{films} films");
    let read = *read.borrow();
    read.get() as f64 / RUN.as_secs_f64()
}

/// A program that reads from one end to the other, as `tar` and a player without a contract do,
/// finds the next bytes in memory: beside films it gets several times as much.
#[test]
fn who_reads_on_and_on_gets_more() {
    for (films, piece, percent) in [
        (0, Bytes::kib(64), 95),
        (4, Bytes::kib(64), 200),
        (8, Bytes::kib(64), 200),
        (8, Bytes::kib(256), 110),
    ] {
        let [without, with] =
            [false, true].map(|is_cached| gets(films, is_cached, piece, Order::OneAfterTheOther));
        let ratio = with / without;
        println!("{films} films, {piece}: {without:.0} and {with:.0} B/s: {ratio:.2}");
        assert!(ratio * 100.0 > f64::from(percent), "{films} films: {ratio:.2}");
    }
}

/// A program whose pieces come again gets them from memory.
#[test]
fn who_reads_the_same_again_gets_more() {
    let order = || Order::HereAndThere(Random::new(7));
    let piece = Bytes::kib(64);
    let [without, with] = [false, true].map(|is_cached| gets(4, is_cached, piece, order()));
    let ratio = with / without;
    println!("here and there: {without:.0} and {with:.0} B/s: {ratio:.2}");
    assert!(ratio > 3.0, "{ratio:.2}");
}
