//! What is owed of an answer under contract when it is handed out: the clock of the contract runs
//! on until the program has it, and only the driver sees that.
//!
//! An account counts each answer when it is handed out. A driver that takes time to carry answers
//! to their programs says so for each ([`Carried::add`]), gathers that by account, and tells the
//! node when it likes ([`Node::carried`](crate::Node::carried)): accounts are then by the whole
//! clock. One that does not say anything has its programs' accounts end where it gets the answers.

use super::holder::Holder;
use super::status::{ServiceAccount, StreamAccount};
use super::words::StreamId;
use units::{Duration, Instant};

/// The account that an answer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountOf(pub(crate) UnderContract);

/// Under whose contract an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnderContract {
    /// A volume's service, or that of a handle on it.
    Service(Holder),
    Stream(StreamId),
}

/// An answer under contract: when its clock began, and by when its program is to have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    pub(crate) whose: UnderContract,
    pub(crate) from: Instant,
    pub(crate) due: Instant,
    /// When the node gave the answer out: until then its account has counted it.
    pub(crate) handed: Instant,
    /// It was late by then, and is counted as that.
    pub(crate) was_late: bool,
    /// The block of a stream that it is a part of: a stream's account counts blocks.
    pub(crate) block: Option<u64>,
}

impl Promise {
    /// The account that it is in.
    pub fn account(&self) -> AccountOf {
        AccountOf(self.whose)
    }

    /// When the node gave the answer out. What it takes from then on is the driver's.
    pub fn handed(&self) -> Instant {
        self.handed
    }

    /// By when its program is to have it.
    pub fn due(&self) -> Instant {
        self.due
    }
}

/// What the way to their programs has made of the answers of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Carried {
    /// Answers that were in time when they were handed out, and late at their programs; of one
    /// block of a stream, once.
    late: u64,
    late_block: Option<u64>,
    late_max: Duration,
    latency_max: Duration,
    took_max: Duration,
}

impl Carried {
    /// An answer took so long from when the node gave it out until its program had it.
    pub fn add(&mut self, promise: &Promise, took: Duration) {
        let at = promise.handed.saturating_add(took);
        let late_by = at.saturating_since(promise.due);
        if !late_by.is_zero() && !promise.was_late {
            let is_same = promise.block.is_some() && promise.block == self.late_block;
            self.late += u64::from(!is_same);
            self.late_block = promise.block;
        }
        self.late_max = self.late_max.max(late_by);
        self.latency_max = self.latency_max.max(at.saturating_since(promise.from));
        self.took_max = self.took_max.max(took);
    }
}

impl ServiceAccount {
    pub(crate) fn carry(&mut self, carried: &Carried) {
        self.late_requests += carried.late;
        self.late_max = self.late_max.max(carried.late_max);
        self.latency_max = self.latency_max.max(carried.latency_max);
        self.late_carried += carried.late;
        self.carried_max = self.carried_max.max(carried.took_max);
    }
}

/// The same for a stream's account.
pub(crate) fn carry(account: &mut StreamAccount, carried: &Carried) {
    account.late_requests += carried.late;
    account.late_max = account.late_max.max(carried.late_max);
    account.latency_max = account.latency_max.max(carried.latency_max);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Late when it was handed out is late once, though by more at its program.
    #[test]
    fn an_answer_that_was_late_before_it_was_carried_is_counted_once() {
        let at = |ms| Instant::EPOCH + Duration::from_millis(ms);
        let whose = UnderContract::Stream(StreamId(1));
        let in_time = Promise {
            whose,
            from: at(10),
            due: at(50),
            handed: at(40),
            was_late: false,
            block: None,
        };
        let mut carried = Carried::default();
        carried.add(&in_time, Duration::from_millis(10));
        assert_eq!((carried.late, carried.late_max), (0, Duration::ZERO));
        carried.add(&in_time, Duration::from_millis(12));
        // One of its commands was late on its disk, which its account knows.
        carried.add(&Promise { was_late: true, ..in_time }, Duration::from_millis(13));
        assert_eq!((carried.late, carried.late_max), (1, Duration::from_millis(3)));
        assert_eq!(carried.latency_max, Duration::from_millis(43));
    }

    #[test]
    fn a_block_that_comes_late_in_many_answers_is_one_late_request() {
        let at = |ms| Instant::EPOCH + Duration::from_millis(ms);
        let whose = UnderContract::Stream(StreamId(1));
        let (from, due, handed) = (at(10), at(50), at(40));
        let mut carried = Carried::default();
        for block in [7, 7, 7, 8] {
            let block = Some(block);
            let promise = Promise { whose, from, due, handed, was_late: false, block };
            carried.add(&promise, Duration::from_millis(20));
        }
        assert_eq!(carried.late, 2);
    }
}
