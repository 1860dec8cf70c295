//! Memory for best effort: who waits for some gets it or an answer, whoever has it.

use crate::common::*;
use node::{Error, Op, Policy, Reply, Span};
use sim::{Context, Program, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration};

/// Takes rooms until none is left, and one more; keeps them.
#[derive(Default)]
struct Hoard {
    rooms: Vec<Span>,
    refused: Option<Error>,
}

struct Hoarder(Rc<RefCell<Hoard>>);

impl Program for Hoarder {
    fn start(&mut self, context: &mut Context<'_>) {
        context.ask(0, Op::Room { len: Bytes::MIB, target: None });
    }
    fn answer(&mut self, context: &mut Context<'_>, _: u64, result: Result<Reply, Error>) {
        let mut hoard = self.0.borrow_mut();
        match result {
            Ok(Reply::Room { room: span }) => {
                hoard.rooms.push(span);
                context.ask(0, Op::Room { len: Bytes::MIB, target: None });
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => hoard.refused = Some(error),
        }
    }
}

fn filled() -> World {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", Bytes::mib(64));
    fill(&mut world, "v", 1, Bytes::mib(64));
    world
}

fn hoarded() -> (World, Rc<RefCell<Hoard>>) {
    let mut world = filled();
    let hoard = Rc::new(RefCell::new(Hoard::default()));
    world.add(Hoarder(Rc::clone(&hoard)));
    world.run_for(Duration::from_millis(1));
    (world, hoard)
}

/// A program that has all the memory and wants more waited for ever, and so did everybody
/// who came after it (item 11 of the story: a benchmark that never ended).
#[test]
fn who_wants_more_memory_than_there_is_hears_so() {
    let (mut world, hoard) = hoarded();
    let rooms = hoard.borrow().rooms.len() as u64;
    assert_eq!(
        rooms,
        MEMORY / Bytes::MIB / 4 * 3 - 2,
        "all but the contracts' own quarter, what is kept for interactive requests, and the zeros"
    );
    let before = world.now();
    // Somebody else, who waits behind it.
    let read =
        Op::Read { volume: "v".into(), offset: Bytes::ZERO, len: Bytes::MIB, priority: None };
    let refused = world.call(read.clone());
    let Err(Error::NoMemory { asked, free }) = refused else { panic!("{refused:?}") };
    assert!(asked == Bytes::MIB && free < asked, "{asked} of {free}");
    let waited = world.now() - before;
    assert!(waited >= Duration::from_secs(9) && waited <= Duration::from_secs(10), "{waited}");
    world.run_for(Duration::from_millis(1));
    assert!(matches!(hoard.borrow().refused, Some(Error::NoMemory { .. })));
    // It gives one back, and the next is served.
    let span = hoard.borrow_mut().rooms.pop().unwrap();
    assert_eq!(world.call(Op::Release { span }), Ok(Reply::Done));
    assert!(matches!(world.call(read), Ok(Reply::Data { .. })));
}

/// While transfers are under way memory will come back: nobody is refused who only has to
/// wait for a slow disk, however long the line.
#[test]
fn a_long_line_behind_a_slow_disk_is_served_to_its_end() {
    let mut world = filled();
    struct Line(Rc<RefCell<u64>>);
    impl Program for Line {
        fn start(&mut self, context: &mut Context<'_>) {
            for number in 0..2_000 {
                let offset = Bytes::MIB * (number * 37 % 64);
                let (volume, len) = ("v".into(), Bytes::MIB);
                context.ask(0, Op::Read { volume, offset, len, priority: None });
            }
        }
        fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
            if tag == 0 {
                let Ok(Reply::Data { bytes: span, .. }) = result else { panic!("{result:?}") };
                *self.0.borrow_mut() += 1;
                context.ask(1, Op::Release { span });
            }
        }
    }
    let done = Rc::new(RefCell::new(0));
    world.add(Line(Rc::clone(&done)));
    world.run_for(Duration::from_secs(600));
    assert_eq!(*done.borrow(), 2_000);
}
