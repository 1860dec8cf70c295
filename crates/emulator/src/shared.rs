//! What the threads of an emulated drive share: requests in, answers out at their times.

use crate::clock::{Clock, std_time};
use crate::device::{Answer, Device, Work};
use crate::limits::SPIN;
use crate::order::Wrong;
use crate::reply::Reply;
use crate::{Order, Status};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use units::{Bytes, Direction, Distribution};

/// What the threads share.
pub(crate) struct Shared {
    pub clock: Clock,
    pub state: Mutex<State>,
    pub wake: Condvar,
    pub late: Mutex<Distribution>,
    pub model: String,
    pub capacity: Bytes,
    pub depth: usize,
    pub write_back: bool,
    /// Whether the kernel passes on short writes.
    pub short_transfers: bool,
    pub on_thread: fn(),
}

pub(crate) struct State {
    pub device: Device<Reply>,
    pub last_order: Option<String>,
    /// No new requests come: the drive's thread ends when nothing is left.
    pub over: bool,
}

impl Shared {
    /// A thread that panicked leaves a state that is still whole: answers are missing
    /// at worst, which FUSE fills in.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much the disk holds.
    pub fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// Gets a thread ready to keep time.
    pub fn ready_thread(&self) {
        (self.on_thread)();
        // Timers are not put off to be batched with others; where that is refused the
        // lateness tells.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    }

    /// Memory with these bytes, for a write.
    pub fn copy(&self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.state().device.buffer();
        copy.extend_from_slice(bytes);
        copy
    }

    /// Gives the drive a request that came just now.
    pub fn submit(&self, make: impl FnOnce() -> Work, reply: Reply) {
        let now = self.clock.now();
        let work = make();
        let mut answers = Vec::new();
        let mut state = self.state();
        state.device.advance(now, &mut answers);
        let before = state.device.next_end();
        answers.extend(state.device.submit(now, work, reply));
        let after = state.device.next_end();
        drop(state);
        if after != before {
            self.wake.notify_one();
        }
        self.send(answers);
    }

    /// Whether the kernel lets a program see what was ordered.
    pub fn check(&self, order: &Order) -> Result<(), String> {
        let short = match order {
            Order::Short(direction, _) => *direction == Direction::Write,
            Order::Later(later) => {
                later.kind == Some(Direction::Write) && matches!(later.wrong, Wrong::Short(_))
            }
            _ => false,
        };
        match short && !self.short_transfers {
            true => Err("the kernel would make an error of a short write; start with \
                         --short-transfers"
                .into()),
            false => Ok(()),
        }
    }

    /// Does what the control file was told.
    pub fn order(&self, text: &str) -> Result<(), String> {
        let mut answers = Vec::new();
        let order = text.parse::<Order>();
        let order = order.and_then(|order| self.check(&order).map(|()| order));
        let mut state = self.state();
        let now = self.clock.now();
        state.device.advance(now, &mut answers);
        let done = order.and_then(|order| state.device.order(now, &order, &mut answers));
        state.last_order = Some(match &done {
            Ok(what) => what.clone(),
            Err(why) => format!("refused: {}", why.lines().next().unwrap_or_default()),
        });
        drop(state);
        self.wake.notify_one();
        self.send(answers);
        done.map(|_| ())
    }

    /// Answers, and takes down how late.
    fn send(&self, answers: Vec<Answer<Reply>>) {
        for answer in answers {
            let bytes = answer.reply.send(answer.result);
            let late = self.clock.now().saturating_since(answer.end);
            self.late.lock().unwrap_or_else(PoisonError::into_inner).record(late);
            if let Some(bytes) = bytes {
                self.state().device.give_back(bytes);
            }
        }
    }

    /// The drive's thread.
    pub fn drive(&self) {
        self.ready_thread();
        let mut answers = Vec::new();
        let mut state = self.state();
        loop {
            let now = self.clock.now();
            state.device.advance(now, &mut answers);
            if !answers.is_empty() {
                drop(state);
                self.send(std::mem::take(&mut answers));
                state = self.state();
                continue;
            }
            state = match state.device.next_end() {
                None if state.over => return,
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    state.device.prepare();
                    let left = end.saturating_since(self.clock.now());
                    if left > SPIN {
                        let sleep = std_time(left - SPIN);
                        let woken = self.wake.wait_timeout(state, sleep);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    } else {
                        drop(state);
                        self.clock.spin_until(end);
                        self.state()
                    }
                }
            };
        }
    }

    /// Everything at this moment.
    pub fn status(&self) -> Status {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let state = self.state();
        let device = &state.device;
        Status {
            model: self.model.clone(),
            capacity: self.capacity,
            depth: self.depth,
            write_back: self.write_back,
            served: device.served().clone(),
            late,
            waiting: device.len(),
            unflushed: device.unflushed(),
            troubles: device.troubles(self.clock.now()),
            last_order: state.last_order.clone(),
        }
    }
}
