//! The desk between the procedure and its driver: one question, one answer.
//!
//! Invariant: there is a question or an answer or neither, never both.

use super::question::{Options, Progress, Question, Timing};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use units::{Duration, Instant};

/// Why a stage ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The allowance of commands or of time is spent.
    Spent,
    /// The target answers with errors everywhere.
    Faults,
}

/// More failed commands than this and nothing that follows can be trusted.
const FAILED_MAX: u64 = 200;

pub(super) struct Desk {
    pub question: Option<Question>,
    answer: Option<Vec<Timing>>,
    /// How often the flow of answers was broken; see [`Desk::gap`].
    pub gaps: u64,
    commands: u64,
    commands_max: u64,
    failed: u64,
    time: Duration,
    time_max: Duration,
    last: Option<Instant>,
    pub stage: &'static str,
    pub permille: u32,
}

impl Desk {
    pub fn new(options: &Options) -> Self {
        Self {
            question: None,
            answer: None,
            gaps: 0,
            commands: 0,
            commands_max: options.commands_max,
            failed: 0,
            time: Duration::ZERO,
            time_max: options.time_max,
            last: None,
            stage: "first look",
            permille: 0,
        }
    }

    pub fn take(&mut self, answers: &[Timing]) {
        let question = self.question.take().expect("an answer without a question");
        assert_eq!(question.commands.len(), answers.len(), "a timing for each command");
        self.commands += answers.len() as u64;
        self.failed += answers.iter().filter(|answer| answer.failed).count() as u64;
        let end = answers.iter().map(|answer| answer.finished).max();
        let start = answers.iter().map(|answer| answer.started).min();
        if let Some((start, end)) = start.zip(end) {
            // Idle time counts, a break does not.
            let from = self.last.unwrap_or(start);
            self.time = self.time.saturating_add(end.saturating_since(from));
            self.last = Some(end);
        }
        self.answer = Some(answers.to_vec());
    }

    pub fn gap(&mut self) {
        self.gaps += 1;
        self.last = None;
    }

    /// Thousandths of the allowance that are spent.
    pub fn spent(&self) -> u32 {
        let time = self.time.as_nanos() / (self.time_max.as_nanos() / 1_000).max(1);
        u32::try_from(time).unwrap_or(1_000).min(1_000)
    }

    pub fn progress(&self) -> Progress {
        Progress {
            stage: self.stage,
            // Of what is to be done or of the allowance, which is nearer to its end.
            permille: self.permille.max(self.spent()),
            commands: self.commands,
            failed: self.failed,
        }
    }

    fn stop(&self) -> Option<Stop> {
        if self.failed > FAILED_MAX {
            return Some(Stop::Faults);
        }
        let spent = self.commands >= self.commands_max || self.time >= self.time_max;
        spent.then_some(Stop::Spent)
    }
}

/// A question that waits for its answer.
pub(super) struct Ask {
    desk: Rc<RefCell<Desk>>,
    question: Option<Question>,
}

impl Ask {
    pub fn new(desk: &Rc<RefCell<Desk>>, question: Question) -> Self {
        Self { desk: Rc::clone(desk), question: Some(question) }
    }
}

impl Future for Ask {
    type Output = Result<Vec<Timing>, Stop>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let question = self.question.take();
        let mut desk = self.desk.borrow_mut();
        if let Some(question) = question {
            if let Some(stop) = desk.stop() {
                return Poll::Ready(Err(stop));
            }
            desk.question = Some(question);
            return Poll::Pending;
        }
        match desk.answer.take() {
            Some(answer) => Poll::Ready(Ok(answer)),
            None => Poll::Pending,
        }
    }
}
