//! A node that is told to end does not do first what programs without a contract have
//! waiting: that would take as long as they like. What was answered stays.

use crate::common::{config, create, drive, fill, model, start, world};
use disk::Profile;
use node::{Error, Op, Policy, Reply, WriteRange};
use sim::{Context, Program, Random, SimDisk, World, pattern_matches};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration};

const SIZE: Bytes = Bytes::mib(24);
const PIECE: Bytes = Bytes::kib(4);
/// Each; on this disk one takes some milliseconds, all of them most of a minute.
const MANY: u64 = 2_000;

/// What became of each request, by its number: reads first, then writes.
type Ends = Rc<RefCell<Vec<Option<Result<Reply, Error>>>>>;

/// Asks for everything at once.
struct Crowd(Ends);

impl Program for Crowd {
    fn start(&mut self, context: &mut Context<'_>) {
        for number in 0..MANY {
            let op =
                Op::Read { volume: "v".into(), offset: place(number), len: PIECE, priority: None };
            context.ask(number, op);
            context.ask(2 * MANY + number, Op::Room { len: PIECE, target: None });
        }
    }

    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        match (tag.checked_sub(2 * MANY), result) {
            (Some(number), Ok(Reply::Room { room: span })) => {
                sim::pattern(2, place(number), context.arena.bytes(&span));
                let range = WriteRange::new(place(number), PIECE);
                let op = Op::Write { volume: "v".into(), range, span, priority: None };
                context.ask(MANY + number, op);
            }
            (Some(number), result) => self.0.borrow_mut()[(MANY + number) as usize] = Some(result),
            (None, result) => self.0.borrow_mut()[tag as usize] = Some(result),
        }
    }
}

/// Far from each other, several in each block's neighbourhood, some twice.
fn place(number: u64) -> Bytes {
    PIECE * ((number * 2_741) % (SIZE / PIECE))
}

#[test]
fn what_no_disk_has_begun_is_handed_back_and_what_was_answered_is_there() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    let ends: Ends = Rc::new(RefCell::new(vec![None; 2 * MANY as usize]));
    world.add(Crowd(Rc::clone(&ends)));
    world.run_for(Duration::from_secs(2));
    let told = world.now();
    assert_eq!(world.call(Op::Shutdown), Ok(Reply::Done));
    let took = world.now() - told;
    assert!(took < Duration::from_secs(1), "{took}");
    let ends = ends.borrow();
    let of = |end: &Option<Result<Reply, Error>>| end.clone().expect("all are answered");
    let done = ends.iter().filter(|end| of(end).is_ok()).count();
    let handed_back = ends.iter().filter(|end| of(end) == Err(Error::ShuttingDown)).count();
    assert_eq!(done + handed_back, ends.len());
    assert!(done > 20 && handed_back > 1_000, "{done} were done");
    let written = |number: &u64| of(&ends[(MANY + number) as usize]).is_ok();
    let written: Vec<u64> = (0..MANY).filter(written).collect();
    assert!(!written.is_empty());
    let mut world = restarted(world);
    for number in written {
        let op = Op::Read { volume: "v".into(), offset: place(number), len: PIECE, priority: None };
        let Ok(Reply::Data { bytes: span, .. }) = world.call(op) else {
            panic!("a read gives data")
        };
        assert!(pattern_matches(2, place(number), world.bytes(span)), "write {number}");
        assert_eq!(world.call(Op::Release { span }), Ok(Reply::Done));
    }
}

/// The pool after a power cut at the end, and a start.
fn restarted(world: World) -> World {
    let disks: Vec<SimDisk> = world.cut(&mut Random::new(5));
    let profile = Profile::of(&model(disks[0].capacity()));
    start(config(Policy::SLACK), disks, &profile)
}
