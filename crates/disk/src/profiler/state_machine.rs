//! The state machine: what was asked last, and the procedure that waits for the answer.

use super::desk::Desk;
use super::findings::Findings;
use super::question::{Options, Progress, Question, Step, Timing};
use super::{journal, procedure, session};
use crate::Error;
use crate::error::ensure;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use units::{Bytes, SECTOR};

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
