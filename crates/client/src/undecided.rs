//! Openings that the daemon could not decide at that moment: they are tried again.
//!
//! A disk that has much to do at one moment cannot always say when one more contract could begin.
//! A moment later it can, though nobody has given anything back, and who opens a file expects
//! that it waits. Invariants: only an answer that says so is tried again, and no more than
//! [`TRIES`] times; each pause is twice as long as the one before it, since what is asked costs
//! the daemon time.

use crate::Result;
use std::time::Duration;

/// Calls in all: the last one ends within about a second.
const TRIES: u32 = 6;
/// Before the second call.
const PAUSE: Duration = Duration::from_millis(30);

/// Makes a call, and again where the daemon says that it may succeed then.
pub(crate) fn patiently<T>(call: impl FnMut() -> Result<T>) -> Result<T> {
    patiently_with(std::thread::sleep, call)
}

fn patiently_with<T>(pause: impl Fn(Duration), mut call: impl FnMut() -> Result<T>) -> Result<T> {
    for before in 0..TRIES - 1 {
        match call() {
            Err(error) if error.may_be_tried_again() => pause(PAUSE * 2_u32.pow(before)),
            ended => return ended,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Error};
    use std::cell::{Cell, RefCell};
    use units::Rate;

    fn refused(undecided: bool) -> Error {
        let mut problem = wire::Problem::new(Code::Refused, "no", "try again");
        problem.refusal = Some(wire::Refusal {
            disk: 0,
            utilisation_ppm: 0,
            deadline_ns: None,
            excess_ns: None,
            rate_max_bytes_per_second: Rate::ZERO,
            longer: None,
            within_ns: None,
            bus: None,
            undecided,
        });
        Error::Problem(Box::new(problem))
    }

    #[test]
    fn what_is_undecided_is_asked_again_and_what_is_refused_is_not() {
        let (asked, pauses) = (Cell::new(0), RefCell::new(Vec::new()));
        let ask = |answer: &dyn Fn(u32) -> Result<u32>| {
            asked.set(0);
            patiently_with(
                |time| pauses.borrow_mut().push(time.as_millis()),
                || {
                    asked.set(asked.get() + 1);
                    answer(asked.get())
                },
            )
        };
        let third = ask(&|time| if time < 3 { Err(refused(true)) } else { Ok(time) });
        assert_eq!((third.unwrap(), asked.get()), (3, 3));
        assert_eq!(pauses.take(), [30, 60]);
        assert!(!ask(&|_| Err(refused(false))).unwrap_err().may_be_tried_again());
        assert_eq!((asked.get(), pauses.take()), (1, vec![]));
        assert!(ask(&|_| Err(refused(true))).unwrap_err().may_be_tried_again());
        assert_eq!(asked.get(), TRIES, "it has an end");
        assert_eq!(pauses.take().iter().sum::<u128>(), 30 * 31);
    }
}
