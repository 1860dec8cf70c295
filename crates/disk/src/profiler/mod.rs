//! The profiler: finds out what a disk is by timing it from the outside.
//!
//! A pure state machine. It asks for commands ([`Profiler::poll`]), is told when
//! each started and finished ([`Profiler::done`]), and ends with [`Findings`]. It
//! knows no clock, does no I/O and draws its random places from a fixed seed, so
//! that the same answers always lead to the same questions. On that rests the
//! journal: the answers so far, as text, bring a new profiler to the same place.
//!
//! The procedure itself reads from top to bottom in `procedure.rs`; it is an
//! `async` function that waits for answers, and the compiler makes the state
//! machine of it.
//!
//! Techniques are those of Worthington, Ganger, Patt and Wilkes, "On-line
//! extraction of SCSI disk drive parameters" (1995: least time between completions,
//! cache probing), Schindler and Ganger, "Automated disk drive characterization"
//! (1999), Talagala et al., "Microbenchmark-based extraction of local and global
//! disk characteristics" (1999), and semi-preemptible I/O (Dimitrijevic et al.
//! 2003) section 3.4. They differ in that no command is used but read and write:
//! track boundaries are found from the *angle* at which a sector ends, which takes
//! a jump by the skew there.
//!
//! Invariants: reads only, unless [`Options::write`]; no more commands than
//! [`Options::commands_max`]; one late answer never decides anything alone.

mod beside;
mod cache;
mod chunks;
mod desk;
mod findings;
mod flat;
mod geometry;
mod held;
mod journal;
mod procedure;
mod profile;
mod rotation;
mod seeks;
mod session;
mod statistics;
mod turn;
mod two_phase;

pub use beside::{Beside, Round, Sharing, SharingSeen, Together};
pub use findings::{
    Cache, Chunk, Findings, Flat, FlatCost, Held, Measured, Mechanics, SeekPoint, Steady,
    Throughput, WriteBuffer, ZoneFound,
};
pub use two_phase::TwoPhase;

use crate::Error;
use crate::error::ensure;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use desk::Desk;
use units::{Bytes, Command, Duration, Instant, SECTOR};

/// How thorough to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few minutes on a disk of today.
    Quick,
    /// Every zone to the track; up to an hour.
    Full,
}

/// What the profiler may do, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How thorough to be.
    pub effort: Effort,
    /// Whether it may write. What it writes replaces what was there.
    pub write: bool,
    /// The smallest transfer that the target takes; places are multiples of it.
    pub grain: Bytes,
    /// The most commands to ask for; the findings so far count when it is reached.
    pub commands_max: u64,
    /// The most time to take, counted by the answers' own timestamps.
    pub time_max: Duration,
}

impl Options {
    /// A few minutes, reading only.
    pub fn quick() -> Self {
        Self {
            effort: Effort::Quick,
            write: false,
            grain: SECTOR,
            commands_max: 60_000,
            time_max: Duration::from_secs(8 * 60),
        }
    }
    /// Everything, reading only.
    pub fn full() -> Self {
        Self {
            effort: Effort::Full,
            commands_max: 1_000_000,
            time_max: Duration::from_secs(4 * 3_600),
            ..Self::quick()
        }
    }
}

/// The longest command that is asked for.
pub const COMMAND_MAX: Bytes = Bytes::mib(8);

/// Commands to submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// How long to wait, from the `finished` of the last answer, before the start.
    /// To start later is harmless if `started` says so.
    pub delay: Duration,
    /// The commands, in order.
    pub commands: Vec<Command>,
    /// How many of them to keep in flight at once; at least 1.
    pub depth: u32,
}

/// What happened to one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Taken just before the command went out.
    pub started: Instant,
    /// Taken as soon as its completion was seen.
    pub finished: Instant,
    /// True when the device answered with an error.
    pub failed: bool,
}

impl Timing {
    /// How long it took.
    pub fn taken(&self) -> Duration {
        self.finished.saturating_since(self.started)
    }
}

/// What the profiler wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Carry these out, then call [`Profiler::done`].
    Ask(Question),
    /// The findings are complete.
    Done,
}

/// How far the profiler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being measured.
    pub stage: &'static str,
    /// The part done, in thousandths; an estimate that never falls.
    pub permille: u32,
    /// Commands asked for so far.
    pub commands: u64,
    /// Commands that failed.
    pub failed: u64,
}

/// A measurement in progress.
pub struct Profiler {
    desk: Rc<RefCell<Desk>>,
    procedure: Pin<Box<dyn Future<Output = Findings>>>,
    findings: Option<Findings>,
    capacity: Bytes,
    options: Options,
}

impl Profiler {
    /// A profiler for a target that holds `capacity`.
    ///
    /// # Errors
    /// When the target is too small to learn anything from.
    pub fn new(capacity: Bytes, options: Options) -> Result<Self, Error> {
        let grain = options.grain;
        ensure!(
            !grain.is_zero() && grain.is_multiple_of(SECTOR) && grain <= Bytes::kib(64),
            "the smallest transfer is {grain}; give a whole number of sectors up to 64 KiB"
        );
        ensure!(
            capacity >= Bytes::mib(8),
            "the target holds {capacity}; give at least 8 MiB, or nothing can be told apart"
        );
        let capacity = capacity.round_down(grain);
        let desk = Rc::new(RefCell::new(Desk::new(&options)));
        let session = session::Session::new(Rc::clone(&desk), capacity, &options);
        Ok(Self {
            desk,
            procedure: Box::pin(procedure::run(session)),
            findings: None,
            capacity,
            options,
        })
    }

    /// A profiler that goes on where the one that wrote `journal` was stopped, and
    /// how many bytes of the journal it used: cut off what follows them, append
    /// [`Profiler::JOURNAL_RESUMED`], and go on.
    ///
    /// # Errors
    /// When the journal is of another target or of other options.
    pub fn resume(
        capacity: Bytes,
        options: Options,
        journal: &str,
    ) -> Result<(Self, usize), Error> {
        let mut profiler = Self::new(capacity, options)?;
        let used = journal::replay(&mut profiler, journal)?;
        Ok((profiler, used))
    }

    /// What marks a break in a journal.
    pub const JOURNAL_RESUMED: &'static str = journal::RESUMED;

    /// The first line of a journal of this profiler.
    pub fn journal_header(&self) -> String {
        journal::header(self.capacity, &self.options)
    }

    /// What a journal says of an answer; append it after each [`Profiler::done`].
    pub fn journal_entry(question: &Question, answers: &[Timing]) -> String {
        journal::entry(question, answers)
    }

    /// What to do next. Repeated calls without an answer between them give the
    /// same step.
    pub fn poll(&mut self) -> Step {
        if self.findings.is_some() {
            return Step::Done;
        }
        if let Some(question) = &self.desk.borrow().question {
            return Step::Ask(question.clone());
        }
        let mut context = Context::from_waker(Waker::noop());
        match self.procedure.as_mut().poll(&mut context) {
            Poll::Ready(findings) => {
                self.findings = Some(findings);
                Step::Done
            }
            Poll::Pending => {
                let desk = self.desk.borrow();
                Step::Ask(desk.question.clone().expect("a procedure only waits for answers"))
            }
        }
    }

    /// Takes the answer to the question of the last [`Profiler::poll`]: a timing
    /// for each of its commands, in their order. Panics when none was asked, or
    /// when their number differs.
    pub fn done(&mut self, answers: &[Timing]) {
        self.desk.borrow_mut().take(answers);
    }

    /// The next answers come after a break: what was known of the disk's phase is
    /// stale, and the clock may have started anew.
    pub fn resumed(&mut self) {
        self.desk.borrow_mut().gap();
    }

    /// How far the profiler is.
    pub fn progress(&self) -> Progress {
        self.desk.borrow().progress()
    }

    /// What was found, once [`Step::Done`].
    pub fn findings(&self) -> Option<&Findings> {
        self.findings.as_ref()
    }
}
