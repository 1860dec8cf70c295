//! Busy polling: for a moment after an answer the thread looks at the socket again and again instead of
//! sleeping, where the program has asked at once after each of the answers before. To sleep and to be woken
//! takes several times what a read of 4 KiB from memory does.
//!
//! Invariants: it looks for [`LOOKS_FOR`] at the most, and a look in vain is the last one until
//! [`EARNED`] requests in a row have come [`SOON`] again; one connection of the whole daemon looks at a
//! time, and none while others ask as well, so that there is a thread for them; no thread that
//! keeps time for others does, nor any on a machine of one processor; after [`IN_A_ROW`] requests
//! the runtime has its turn.

use crate::lock::Mutex;
use crate::timely::{Lane, is_here};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Duration, Instant};

/// A program on this machine has had its answer, and asks again, in less.
const LOOKS_FOR: Duration = Duration::from_micros(50);
/// It would have been found by a look, if one counts what waking it and this thread took.
const SOON: Duration = Duration::from_micros(200);
/// A program that asks sooner has not waited for the answer, and has more to ask: those that come while this
/// thread sleeps are served together.
const AT_ONCE: Duration = Duration::from_micros(10);
/// In vain goes at most one look in so many requests.
const EARNED: u32 = 8;

/// Looks in a row, until the runtime has its turn.
const IN_A_ROW: u32 = 8;

/// Requests of all connections.
static REQUESTS: AtomicU64 = AtomicU64::new(0);
/// Somebody looks.
static LOOKING: AtomicBool = AtomicBool::new(false);

/// What is known of one connection's pauses.
#[derive(Default)]
pub struct BusyPoll(Mutex<Pauses>);

#[derive(Default)]
struct Pauses {
    /// Since when its next request is waited for.
    waits_since: Option<Instant>,
    /// Requests that came soon, one after the other.
    soon: u32,
    /// Looks since the runtime had its turn.
    looks: u32,
    /// Of all connections' requests, when its last one came.
    of_all: u64,
}

impl Pauses {
    /// A request has come. One that was not waited for is asked beside others.
    fn came(&mut self, now: Instant, of_all: &AtomicU64) {
        let of_all = of_all.fetch_add(1, Ordering::Relaxed);
        let is_alone = of_all == self.of_all;
        self.of_all = of_all + 1;
        let Some(since) = self.waits_since.take() else {
            self.soon = 0;
            return;
        };
        let is_soon = (AT_ONCE..=SOON).contains(&now.saturating_since(since));
        self.soon = if is_soon && is_alone { (self.soon + 1).min(EARNED) } else { 0 };
    }

    /// The next request is waited for; true where it is worth a look.
    fn waits(&mut self, now: Instant) -> bool {
        self.waits_since.get_or_insert(now);
        self.soon == EARNED
    }
}

impl BusyPoll {
    /// A request has come.
    pub fn came(&self) {
        self.0.lock().came(engine::now(), &REQUESTS);
    }

    /// Nothing of the connection is under way. Whether its next request is there, or comes while
    /// this looks: then it can be read at once.
    pub fn comes(&self, lane: &Lane) -> bool {
        let now = engine::now();
        if !self.0.lock().waits(now) || is_here() || is_alone_on_its_processor() {
            return false;
        }
        let Some(socket) = lane.socket() else { return false };
        if LOOKING.swap(true, Ordering::Acquire) {
            return false;
        }
        let until = now + LOOKS_FOR;
        let comes = socket.has_input(|| {
            std::hint::spin_loop();
            engine::now() < until
        });
        LOOKING.store(false, Ordering::Release);
        let mut pauses = self.0.lock();
        match comes {
            true => pauses.looks += 1,
            false => (pauses.soon, pauses.looks) = (0, 0),
        }
        comes
    }

    /// Whether the runtime has its turn now.
    pub fn lets_others(&self) -> bool {
        let mut pauses = self.0.lock();
        let lets = pauses.looks >= IN_A_ROW;
        if lets {
            pauses.looks = 0;
        }
        lets
    }
}

/// Whether the program could not run while a thread looks.
fn is_alone_on_its_processor() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| std::thread::available_parallelism().is_ok_and(|it| it.get() == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection at a time that goes on.
    struct Program<'a> {
        pauses: Pauses,
        now: Instant,
        of_all: &'a AtomicU64,
    }

    impl<'a> Program<'a> {
        fn new(of_all: &'a AtomicU64) -> Self {
            Self { pauses: Pauses::default(), now: Instant::EPOCH, of_all }
        }

        /// It is answered, and asks after `pause`; whether it was worth to look for that.
        fn asks_after(&mut self, pause: Duration) -> bool {
            let looks = self.pauses.waits(self.now);
            self.now += pause;
            self.asks_more();
            looks
        }

        fn asks_more(&mut self) {
            self.pauses.came(self.now, self.of_all);
        }
    }

    const TYPICAL: Duration = Duration::from_micros(60);

    #[test]
    fn it_looks_for_a_program_that_has_asked_soon_often_enough_and_for_no_other() {
        let of_all = AtomicU64::new(0);
        let mut one = Program::new(&of_all);
        for pause in [SOON + Duration::from_micros(1), AT_ONCE - Duration::from_micros(1)] {
            assert!(!(0..3 * EARNED).any(|_| one.asks_after(pause)), "{pause:?}");
        }
        for _ in 0..EARNED {
            assert!(!one.asks_after(TYPICAL), "not often enough");
        }
        assert!((0..100).all(|_| one.asks_after(TYPICAL)));
        // One long pause, and all is to be earned again.
        assert!(one.asks_after(Duration::from_secs(1)));
        assert!(!(0..EARNED).any(|_| one.asks_after(TYPICAL)));
        assert!(one.asks_after(TYPICAL));
    }

    #[test]
    fn it_does_not_look_for_a_program_that_asks_several_things_at_a_time() {
        let of_all = AtomicU64::new(0);
        let mut one = Program::new(&of_all);
        for _ in 0..3 * EARNED {
            assert!(!one.asks_after(TYPICAL));
            one.asks_more();
        }
    }

    #[test]
    fn it_does_not_look_while_others_ask_as_well() {
        let of_all = AtomicU64::new(0);
        let (mut one, mut other) = (Program::new(&of_all), Program::new(&of_all));
        for _ in 0..3 * EARNED {
            assert!(!one.asks_after(TYPICAL) && !other.asks_after(TYPICAL));
        }
        for _ in 0..=EARNED {
            one.asks_after(TYPICAL);
        }
        assert!(one.asks_after(TYPICAL), "alone");
    }

    #[test]
    fn the_runtime_has_its_turn_after_some_looks() {
        let busy = BusyPoll::default();
        for _ in 0..3 {
            for _ in 1..IN_A_ROW {
                busy.0.lock().looks += 1;
                assert!(!busy.lets_others());
            }
            busy.0.lock().looks += 1;
            assert!(busy.lets_others());
        }
    }
}
