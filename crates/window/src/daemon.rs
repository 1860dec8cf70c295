//! The daemon's end of a window.
//!
//! Invariants: every number that decides anything is kept here, and what lies in the
//! control page of these is only ever written. Of the program's words, `moved` counts
//! only where it neither falls nor passes what was told; the two others only as "it is
//! another number than the last time". So whatever lies in the page, nothing here can
//! panic, and what the program is done with is never more than it was told.

use crate::memory::Rights;
use crate::page::{self, Control, Kind, Mode, Piece, fence};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use units::Bytes;

/// The program says what cannot be. Its stream alone ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lie {
    /// How far it says that it has come.
    pub moved: u64,
    /// How far it had come before.
    pub before: u64,
    /// How far it can have come.
    pub told: u64,
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { moved, before, told } = self;
        write!(
            f,
            "the program says that it moved {moved} bytes of its window, after {before} of {told}"
        )
    }
}
impl std::error::Error for Lie {}

/// What the program was told and is not done with.
#[derive(Debug)]
struct Told {
    /// The count of bytes behind it.
    end: u64,
    /// The length of it that is a gap: all or nothing.
    gap: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Daemon {
    control: Control,
    capacity: u64,
    published: u64,
    /// Bytes of all pieces that count.
    told: u64,
    /// Bytes of them that the program is done with.
    moved: u64,
    with_program: VecDeque<Told>,
    bell_at: u64,
    /// The last wait that was noted, and the last that was answered with news.
    wait_noted: u64,
    wait_answered: u64,
    durable_answered: u64,
}

/// How much further a program has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Further {
    /// Bytes in all.
    pub bytes: Bytes,
    /// Of these, bytes that were gaps.
    pub gaps: Bytes,
}

impl Daemon {
    /// The control page of a new window, whose ring has `capacity` slots (see
    /// [`ring_for`](crate::ring_for)).
    ///
    /// # Errors
    /// As [`Memory::create`](crate::Memory::create).
    pub fn create(mode: Mode, capacity: u64) -> io::Result<Self> {
        assert!(capacity.is_power_of_two() && capacity <= page::RING_MAX, "a ring of {capacity}");
        let len = page::len_for(capacity);
        let control = Control::create("slackline-control", len, Rights::Write)?;
        control.populate(0, len, Rights::Write);
        Ok(Self::begin(control, mode, capacity))
    }

    /// A new window in the memory of this one, for a test that makes millions. No program may
    /// have the old one.
    #[doc(hidden)]
    #[must_use]
    pub fn again(self, mode: Mode) -> Self {
        (0..page::len_for(self.capacity)).step_by(8).for_each(|at| self.write(at, 0));
        Self::begin(self.control, mode, self.capacity)
    }

    /// The beginning of a window in a page of zeros.
    fn begin(control: Control, mode: Mode, capacity: u64) -> Self {
        let this = Self {
            control,
            capacity,
            published: 0,
            told: 0,
            moved: 0,
            with_program: VecDeque::new(),
            bell_at: 0,
            wait_noted: 0,
            wait_answered: 0,
            durable_answered: 0,
        };
        this.write(page::AT_LAYOUT, page::LAYOUT);
        this.write(page::AT_MODE, mode as u64);
        this.write(page::AT_CAPACITY, capacity);
        this.write(page::AT_MAGIC, page::MAGIC);
        this
    }

    /// The memory of the control page, for the program.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.control.fd()
    }

    /// Whether the ring has no slot for another piece until the program moves on.
    pub fn is_full(&self) -> bool {
        self.with_program.len() as u64 >= self.capacity
    }

    /// Bytes that the program was told of and is not known to be done with.
    pub fn left(&self) -> Bytes {
        Bytes::new(self.told - self.moved)
    }

    /// Bytes that the program is known to be done with since the window was made.
    pub fn moved(&self) -> Bytes {
        Bytes::new(self.moved)
    }

    /// Tells the program of a piece; true where it waits for news of that. Panics where
    /// the ring is full.
    #[must_use = "the program may sleep"]
    pub fn publish(&mut self, piece: Piece) -> bool {
        assert!(!self.is_full(), "a piece for a full ring");
        let Piece { kind, place, offset, len } = piece;
        assert!((kind == Kind::End) == len.is_zero(), "an end has no length, all else has one");
        let at = page::slot(self.published, self.capacity);
        for (n, value) in
            [kind as u64, place.get(), offset.get(), len.get()].into_iter().enumerate()
        {
            self.write(at + n * 8, value);
        }
        self.published += 1;
        self.told += len.get();
        let gap = if kind == Kind::Gap { len.get() } else { 0 };
        self.with_program.push_back(Told { end: self.told, gap });
        page::word(&self.control, page::AT_PUBLISHED).store(self.published, Ordering::Release);
        fence(Ordering::SeqCst);
        self.wants_news()
    }

    /// Whether the program waits and has not been sent news for it. It may have taken the piece
    /// that was just published already, and wait for the next one: news of this one do not answer
    /// that wait, and its bell is still to come.
    fn wants_news(&mut self) -> bool {
        let waiting = self.read(page::AT_WAITING);
        let wants = waiting != 0 && waiting != self.wait_answered;
        if wants && !page::waits_beyond(waiting, self.published) {
            self.wait_answered = waiting;
            self.wait_noted = waiting;
        }
        wants
    }

    /// How much further the program has come since this was last asked.
    ///
    /// # Errors
    /// Where it says what cannot be. Nothing has changed then.
    pub fn further(&mut self) -> Result<Further, Lie> {
        let moved = page::word(&self.control, page::AT_MOVED).load(Ordering::Acquire);
        if moved < self.moved || moved > self.told {
            return Err(Lie { moved, before: self.moved, told: self.told });
        }
        let mut gaps = 0;
        let bytes = moved - self.moved;
        while let Some(first) = self.with_program.front_mut() {
            // What is left of a gap, of which `moved` covers nothing, a part or all.
            let start = first.end - first.gap;
            let covered = moved.min(first.end).saturating_sub(start);
            gaps += covered;
            first.gap -= covered;
            if first.end > moved {
                break;
            }
            self.with_program.pop_front();
        }
        self.moved = moved;
        Ok(Further { bytes: Bytes::new(bytes), gaps: Bytes::new(gaps) })
    }

    /// Wants to hear when the program has moved `at` bytes since the window was made;
    /// true where it has already, and may not ring for it. An earlier mark than the
    /// last leaves that.
    #[must_use = "the program may have passed the mark already"]
    pub fn ring_at(&mut self, at: Bytes) -> bool {
        self.bell_at = self.bell_at.max(at.get());
        self.write(page::AT_BELL, self.bell_at);
        fence(Ordering::SeqCst);
        self.read(page::AT_MOVED) >= self.bell_at
    }

    /// As [`Daemon::ring_at`], for the end of the first piece that the program is not
    /// done with: one bell for each.
    #[must_use = "the program may have passed the mark already"]
    pub fn ring_at_next(&mut self) -> bool {
        let ahead = self.with_program.iter().map(|told| told.end).find(|&end| end > self.moved);
        ahead.is_some_and(|end| self.ring_at(Bytes::new(end)))
    }

    /// Pieces that were told since the window was made.
    pub fn published(&self) -> u64 {
        self.published
    }

    /// Whether the program waits for the next piece, having said so since this was
    /// last asked.
    pub fn begins_to_wait(&mut self) -> bool {
        let waiting = self.read(page::AT_WAITING);
        let new = waiting != 0 && waiting != self.wait_noted && waiting != self.wait_answered;
        self.wait_noted = waiting;
        new
    }

    /// Says how far a writer's bytes are on the medium; true where the program waits
    /// for news of that.
    #[must_use = "the program may sleep"]
    pub fn durable(&mut self, upto: Bytes) -> bool {
        page::word(&self.control, page::AT_DURABLE).store(upto.get(), Ordering::Release);
        fence(Ordering::SeqCst);
        let waiting = self.read(page::AT_DURABLE_WAITING);
        let wants = waiting != 0 && waiting != self.durable_answered;
        self.durable_answered = waiting;
        wants
    }

    /// Says that nothing more comes, and that the reason is on the socket.
    pub fn over(&self) {
        page::word(&self.control, page::AT_OVER).store(1, Ordering::Release);
    }

    /// What the program was told and is not done with counts no more: the number of
    /// the first piece that does.
    pub fn void(&mut self) -> u64 {
        self.told = self.moved;
        self.with_program.clear();
        self.published
    }

    fn write(&self, at: usize, value: u64) {
        page::word(&self.control, at).store(value, Ordering::Relaxed);
    }

    fn read(&self, at: usize) -> u64 {
        page::word(&self.control, at).load(Ordering::Relaxed)
    }
}
