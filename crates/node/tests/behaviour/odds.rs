//! Streams whose requests may be late now and then: admitted by what commands mostly cost.

use crate::driver::*;
use disk::{Cost, Kind, Spread};
use node::{Chance, Error, Mode, Op, Opening, Reply};
use units::Bytes;

/// A disk on which reads and writes mostly take 2 ms, of the 11 that they may.
fn mostly_quick() -> Setup {
    let mut setup = Setup::new(1);
    let Kind::Linear(linear) = &mut setup.profiles[0].kind else { panic!("as it was made") };
    let cost = Cost { size: Bytes::MIB, mean: ms(2), deviation: ms(1), most: ms(40) };
    linear.spread = Some(Spread { read: vec![cost], write: vec![cost] });
    setup
}

fn may_be_late() -> Op {
    let (volume, mode, contract) = ("film".into(), Mode::Read, usual());
    let (start, early, miss) = (Bytes::ZERO, false, Some(Chance::one_in(20)));
    let opening = Opening { volume, mode, contract, start, early, miss };
    Op::Open { opening: Box::new(opening), region: None }
}

/// By bounds four are admitted. Of those that may be late more are, which is said of each; where it
/// is not known what commands mostly cost, none is.
#[test]
fn more_are_admitted_that_may_be_late_where_it_is_known_what_commands_mostly_cost() {
    for (setup, is_known) in [(mostly_quick(), true), (Setup::new(1), false)] {
        let mut driver = setup.open();
        driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
        if !is_known {
            let told = driver.ask(may_be_late());
            assert!(matches!(told, Err(Error::Invalid { what: "miss", .. })), "{told:?}");
            continue;
        }
        for number in 0..8 {
            let told = driver.ask(may_be_late());
            let Ok(Reply::Stream { stream, .. }) = told else { panic!("{number}: {told:?}") };
            let status = driver.node.stream(stream).unwrap();
            assert_eq!(status.miss, Some(Chance::one_in(20)));
        }
    }
}
