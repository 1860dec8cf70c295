//! What streams record is found by the time when it came.

use crate::driver::*;
use node::{Access, Moment, Op, Recorded, Who};
use units::{Bytes, Duration, Instant};

const SECOND: i64 = 1_000_000_000;
const NOON: i64 = 1_790_000_000 * SECOND;

fn recorded(driver: &Driver) -> Recorded {
    driver.node.recorded("film").expect("it is there")
}

/// What time it is, where it was `epoch` at the beginning.
fn clock(driver: &Driver, epoch: i64) -> i64 {
    let since = driver.now.saturating_since(Instant::EPOCH).as_nanos();
    epoch + since.cast_signed()
}

/// A film, a pause of a minute, more of it; then the clock is set back by an hour, and it goes on.
/// All of it is found by its time after a power cut.
#[test]
fn what_a_stream_records_is_found_by_its_time_after_a_power_cut() {
    let mut driver = Setup::new(2).open();
    driver.volume("film", Bytes::mib(64));
    driver.node.set_wall_clock(NOON);
    let stream = driver.writer("film", usual());
    let mut told = Vec::new();
    for (number, epoch) in [NOON, NOON, NOON - 3600 * SECOND].into_iter().enumerate() {
        driver.node.set_wall_clock(epoch);
        let begins = clock(&driver, epoch);
        for second in 0..16 {
            driver.run(Duration::from_millis(if second == 0 { 0 } else { 500 }));
            driver.put_all(stream, 1, Bytes::kib(512));
        }
        told.push((Bytes::mib(8 * number as u64), begins, clock(&driver, epoch)));
        driver.done_durable(stream);
        driver.run(Duration::from_secs(60));
    }
    let driver = driver.after_a_power_cut();
    let recorded = recorded(&driver);
    for &(offset, begins, ends) in &told {
        assert!(ends - begins > 5 * SECOND, "it took its time: {begins} {ends}");
        let at = recorded.time_at(offset).expect("it is known");
        assert!((at - begins).abs() < SECOND, "{offset}: {at}, {begins}");
        let middle = recorded.time_at(offset + Bytes::mib(4)).expect("it is known");
        assert!((middle - (begins + ends) / 2).abs() < SECOND, "{offset}: {middle}");
        let Moment::At { offset: found } = recorded.find(middle, Bytes::ZERO) else { panic!() };
        assert!(found.get().abs_diff((offset + Bytes::mib(4)).get()) < 1 << 20, "{found}");
    }
    let pause = recorded.find(told[0].2 + 30 * SECOND, Bytes::ZERO);
    assert!(matches!(pause, Moment::Pause { offset, .. } if offset == Bytes::mib(8)), "{pause:?}");
    let (begins, ends, within) = driver.node.volume("film").unwrap().recorded.expect("known");
    assert!((begins - told[0].1).abs() < SECOND && (ends - told[2].2).abs() < SECOND);
    assert_eq!(within, SECOND / 2);
}

/// To write over what there is moves no time.
#[test]
fn what_is_written_over_keeps_its_time() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(8));
    driver.node.set_wall_clock(NOON);
    for _ in 0..2 {
        let stream = driver.writer("film", usual());
        driver.put_all(stream, 1, Bytes::mib(2));
        driver.close(stream).unwrap();
        let ends = recorded(&driver).ends().expect("known");
        assert!(ends < NOON + 60 * SECOND, "{ends}");
        driver.run(Duration::from_secs(100));
    }
}

/// A copy is as old as what was copied; whoever says so may write the one and read the other.
#[test]
fn a_copy_was_recorded_when_its_source_was() {
    let mut driver = Setup::new(2).open();
    driver.volume("film", Bytes::mib(16));
    driver.volume("copy", Bytes::mib(8));
    driver.node.set_wall_clock(NOON);
    let stream = driver.writer("film", usual());
    for _ in 0..32 {
        driver.run(Duration::from_millis(500));
        driver.put_all(stream, 1, Bytes::kib(512));
    }
    driver.done_durable(stream);
    driver.run(Duration::from_secs(3600));
    driver.done(Op::VolumeExtend { name: "copy".into(), length: Bytes::mib(4) });
    let start = Bytes::mib(6);
    let copied = || Op::VolumeCopied { name: "copy".into(), of: "film".into(), start };
    let access = |name: &str, mode| {
        let access = Access { mode: Some(mode), ..Access::default() };
        Op::VolumeAccess { name: name.into(), access }
    };
    let somebody = Who::user(1_002, 8, []);
    for (of_film, of_copy, is_let) in
        [(0o600, 0o606, false), (0o604, 0o604, false), (0o604, 0o606, true)]
    {
        driver.done(access("film", of_film));
        driver.done(access("copy", of_copy));
        let ticket = driver.begin_as(somebody.clone(), copied());
        assert_eq!(driver.wait(ticket).is_ok(), is_let, "{of_film:o} {of_copy:o}");
        let known = driver.node.recorded("copy").unwrap().known();
        assert_eq!(known, if is_let { Bytes::mib(4) } else { Bytes::ZERO });
    }
    let driver = driver.after_a_power_cut();
    let (film, copy) = (recorded(&driver), driver.node.recorded("copy").unwrap());
    for place in [Bytes::ZERO, Bytes::mib(2), Bytes::mib(4) - Bytes::kib(4)] {
        let (told, truth) = (copy.time_at(place).unwrap(), film.time_at(start + place).unwrap());
        assert!((told - truth).abs() <= SECOND / 500, "{place}: {told} {truth}");
    }
}
