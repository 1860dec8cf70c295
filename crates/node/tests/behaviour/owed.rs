//! By when the answers of streams are owed to their programs.

use crate::driver::*;
use node::Op;
use units::Bytes;

/// A block that came long ago is in time as long as its answer takes no longer than windows are made
/// for the host to take: it is not owed since its deadline, nor a moment after it was asked for.
#[test]
fn what_lies_there_is_owed_within_the_time_of_the_host() {
    let late = ms(20);
    let mut driver = Setup::new(1).with(|config| config.host_latency = late).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    let stream = driver.reader("film", usual());
    driver.run(ms(2_000));
    for _ in 0..2 {
        let ticket = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
        assert!(driver.answer(ticket).is_some(), "it lies there");
        let promise = driver.promises[&ticket];
        assert_eq!((promise.handed(), promise.due()), (driver.now, driver.now + late));
        driver.done(Op::StreamAdvance { stream, len: BLOCK });
        driver.run(ms(70));
    }
}
