//! A program under a rate contract that looks at no bytes: a camera, a player, a
//! person who jumps about.
//!
//! It wants its pieces when they are due, some of them late on purpose. One that it
//! had to wait for puts off all that follow, as a player does that stops for a moment.
//! Where its volume ends it begins anew.

use super::ledger::Shared;
use super::plan::{Pace, StreamPlan};
use crate::workload::movie::Movie;
use crate::world::{Context, Program};
use crate::{Metadata, Random};
use node::{Error, Mode, Op, Reply, StreamId};
use units::{Bytes, Duration, Instant};

const OPEN: u64 = 0;
const MOVE: u64 = 1;
const GIVE: u64 = 2;
const CLOSE: u64 = 3;

/// After this long it tries again what failed.
const AGAIN: Duration = Duration::from_secs(1);

/// See the top of this file.
pub(super) struct Streamer {
    plan: StreamPlan,
    class: usize,
    volume: String,
    opens: Instant,
    closes: Instant,
    random: Random,
    ledger: Shared,
    /// It was let in once: what follows are not new programs.
    was_admitted: bool,
    has_asked: bool,
    stream: Option<StreamId>,
    state: State,
    /// Since when it waits for the first byte.
    since: Instant,
    /// It has its first byte; pieces are due from then on.
    began: Option<Instant>,
    /// Where it is in the volume when it opens it again.
    from: Bytes,
    frames: u64,
    moved: Bytes,
    /// It has moved something since it was opened.
    has_moved: bool,
    /// So long after it is closed it opens again.
    pause: Duration,
    /// Of the piece under way: all of it, what is left, when it was due, and whether a
    /// part of it had to be waited for.
    piece: Bytes,
    left: Bytes,
    due: Instant,
    asked: Instant,
    waited: bool,
    movie: Option<Movie>,
    next_jump: Option<Instant>,
    /// As the node counted last.
    throttled: u64,
    underruns: u64,
    /// The readable part of its volume, to jump in.
    pub(super) length: Bytes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not open, and waits for an alarm to open.
    Away,
    /// Open; waits for an alarm to move the next piece.
    Resting,
    /// Waits for an answer.
    Asking,
    /// It has stopped for good.
    Gone,
}

impl Streamer {
    #[allow(clippy::too_many_arguments)] // a program is just these
    pub(super) fn new(
        plan: &StreamPlan,
        class: usize,
        volume: String,
        length: Bytes,
        opens: Instant,
        closes: Instant,
        seed: u64,
        ledger: Shared,
    ) -> Self {
        Self {
            plan: plan.clone(),
            class,
            volume,
            opens,
            closes,
            random: Random::new(seed),
            ledger,
            was_admitted: false,
            has_asked: false,
            stream: None,
            state: State::Away,
            since: opens,
            began: None,
            from: Bytes::ZERO,
            frames: 0,
            moved: Bytes::ZERO,
            has_moved: false,
            pause: Duration::ZERO,
            piece: Bytes::ZERO,
            left: Bytes::ZERO,
            due: opens,
            asked: opens,
            waited: false,
            movie: None,
            next_jump: None,
            throttled: 0,
            underruns: 0,
            length,
        }
    }

    fn open(&mut self, context: &mut Context<'_, Metadata>) {
        if !self.has_asked {
            self.has_asked = true;
            self.ledger.borrow_mut().classes[self.class].asked += 1;
        }
        self.since = context.now;
        self.state = State::Asking;
        let StreamPlan { mode, contract, .. } = self.plan;
        let start = self.from.round_down(contract.block);
        context.ask(OPEN, Op::StreamOpen { volume: self.volume.clone(), mode, contract, start });
    }

    fn opened(&mut self, context: &mut Context<'_, Metadata>, result: Result<Reply, Error>) {
        let mut ledger = self.ledger.borrow_mut();
        let class = &mut ledger.classes[self.class];
        match result {
            Ok(Reply::Stream { stream, window }) => {
                class.window = class.window.max(window);
                class.admitted += u64::from(!self.was_admitted);
                self.was_admitted = true;
                ledger.opened(stream, self.class);
                drop(ledger);
                self.stream = Some(stream);
                (self.throttled, self.underruns, self.began) = (0, 0, None);
                (self.has_moved, self.pause) = (false, Duration::ZERO);
                self.next_piece(context);
            }
            Ok(other) => unreachable!("opening was answered with {other:?}"),
            // What it follows has recorded less: a place that there is.
            Err(Error::BeyondEnd { size }) => {
                (self.length, self.from) = (size, Bytes::ZERO);
                let pause = if size.is_zero() { AGAIN } else { Duration::from_millis(1) };
                drop(ledger);
                self.come_back(context, pause);
            }
            Err(
                error @ (Error::Refused(_)
                | Error::LogRefused { .. }
                | Error::GroupRefused { .. }
                | Error::NoMemory { .. }
                | Error::Invalid { .. }),
            ) if !self.was_admitted => {
                class.refusal.get_or_insert(error);
                self.state = State::Gone;
            }
            Err(error) => {
                ledger.failed(self.class, error);
                drop(ledger);
                self.come_back(context, AGAIN);
            }
        }
    }

    /// Opens again after `pause`.
    fn come_back(&mut self, context: &mut Context<'_, Metadata>, pause: Duration) {
        self.state = State::Away;
        if context.now + pause < self.closes {
            context.alarm_at(context.now + pause);
        } else {
            self.state = State::Gone;
        }
    }

    fn close(&mut self, context: &mut Context<'_, Metadata>) {
        self.state = State::Asking;
        let stream = self.stream.expect("it is open");
        context.ask(CLOSE, Op::StreamClose { stream });
    }

    /// What it asked for failed, or there was nothing: it opens again. Where it has come no farther than
    /// that since it was opened, it would fail at the same instant again.
    fn close_failed(&mut self, context: &mut Context<'_, Metadata>, error: Option<Error>) {
        if !self.has_moved {
            self.pause = AGAIN;
            if let Some(error) = error {
                self.ledger.borrow_mut().failed(self.class, error);
            }
        }
        self.close(context);
    }

    /// Rests until the next piece is due, or stops, or jumps.
    fn next_piece(&mut self, context: &mut Context<'_, Metadata>) {
        if context.now >= self.closes {
            return self.close(context);
        }
        self.piece = self.size();
        self.left = self.piece;
        self.waited = false;
        match self.began {
            // The first is due as soon as it can be had.
            None => {
                self.due = context.now;
                self.move_on(context);
            }
            Some(began) => {
                let due = began + self.elapsed() + self.random.span(self.plan.jitter);
                // A jump ends the wait for what would have come.
                if let Some(jump) = self.next_jump
                    && jump <= due
                {
                    self.due = jump.max(context.now);
                } else {
                    self.due = due.max(context.now);
                }
                self.state = State::Resting;
                context.alarm_at(self.due);
            }
        }
    }

    /// How much the next piece is.
    fn size(&mut self) -> Bytes {
        let Pace::Frames(kind) = self.plan.pace else { return self.plan.contract.block };
        loop {
            if let Some(frame) = self.movie.as_mut().and_then(Iterator::next) {
                return frame.size.max(Bytes::new(1));
            }
            // The next movie.
            self.movie = Some(Movie::new(kind, self.random.bits()));
        }
    }

    /// How long after the begin the next piece is due.
    fn elapsed(&self) -> Duration {
        let time = match self.plan.pace {
            Pace::Constant => self.plan.contract.rate.time_for(self.moved),
            Pace::Frames(kind) => {
                let ns = u128::from(self.frames) * 1_000_000_000 / u128::from(kind.pace.max(1));
                Duration::from_nanos(ns as u64)
            }
        };
        time * 100 / self.plan.speed_percent.max(1)
    }

    /// Asks for what is left of the piece.
    fn move_on(&mut self, context: &mut Context<'_, Metadata>) {
        self.state = State::Asking;
        self.asked = context.now;
        let stream = self.stream.expect("it is open");
        let len_max = self.left;
        context.ask(
            MOVE,
            match self.plan.mode {
                Mode::Read => Op::StreamRead { stream, len_max },
                Mode::Write | Mode::Update => Op::StreamRoom { stream, len_max },
            },
        );
    }

    /// A part of the piece is in hand.
    fn moved(&mut self, context: &mut Context<'_, Metadata>, len: Bytes) {
        if self.began.is_some() && context.now > self.asked {
            self.blame(context);
        }
        let stream = self.stream.expect("it is open");
        context.ask(
            GIVE,
            match self.plan.mode {
                Mode::Read => Op::StreamAdvance { stream, len },
                Mode::Write | Mode::Update => Op::StreamWrite { stream, len },
            },
        );
        self.left = self.left.saturating_sub(len);
        self.moved += len;
        self.from += len;
        self.has_moved = true;
    }

    /// It had to wait: the node has counted why.
    fn blame(&mut self, context: &mut Context<'_, Metadata>) {
        let stream = self.stream.expect("it is open");
        let Some(status) = context.node.stream(stream) else { return };
        let mut ledger = self.ledger.borrow_mut();
        if status.account.underruns > self.underruns && !self.waited {
            ledger.underrun(context.now, stream, context.now - self.asked);
            self.waited = true;
        } else if status.account.throttled > self.throttled && !self.waited {
            ledger.throttled(context.now, self.class);
            self.waited = true;
        }
        (self.underruns, self.throttled) = (status.account.underruns, status.account.throttled);
    }

    /// A part has been given back.
    fn given(&mut self, context: &mut Context<'_, Metadata>) {
        if !self.left.is_zero() {
            return self.move_on(context);
        }
        self.frames += 1;
        let wait = context.now - self.due;
        let mut ledger = self.ledger.borrow_mut();
        match self.began {
            None => {
                ledger.began(context.now, self.class, context.now - self.since);
                drop(ledger);
                let began = context.now;
                // The piece that it has plays from now on.
                (self.began, self.moved, self.frames) = (Some(began), self.piece, 1);
                let mean = self.plan.jumps;
                self.next_jump = mean.map(|mean| began + self.random.exponential(mean));
            }
            Some(began) => {
                ledger.seen(context.now, self.class, wait, self.piece);
                drop(ledger);
                self.began = Some(began + wait);
            }
        }
        self.next_piece(context);
    }

    fn jump(&mut self, context: &mut Context<'_, Metadata>) {
        let blocks = self.length / self.plan.contract.block;
        self.from = self.plan.contract.block * self.random.below(blocks.max(1));
        self.close(context);
    }

    fn closed(&mut self, context: &mut Context<'_, Metadata>) {
        let stream = self.stream.take().expect("it was open");
        self.ledger.borrow_mut().closed(stream);
        self.come_back(context, self.pause);
    }
}

impl Program<Metadata> for Streamer {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        context.alarm_at(self.opens.max(context.now));
    }

    fn returned(&mut self, context: &mut Context<'_, Metadata>) {
        if self.state != State::Gone {
            (self.state, self.stream) = (State::Away, None);
            context.alarm_at(self.opens.max(context.now));
        }
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        match self.state {
            State::Away => self.open(context),
            State::Resting if self.next_jump.is_some_and(|at| at <= context.now) => {
                self.next_jump = None;
                self.jump(context);
            }
            State::Resting => self.move_on(context),
            State::Asking | State::Gone => {}
        }
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        match (tag, result) {
            (OPEN, result) => self.opened(context, result),
            (MOVE, Ok(Reply::Data { bytes: span, .. } | Reply::Room { room: span })) => {
                self.moved(context, span.len);
            }
            (MOVE, Ok(Reply::Gap { len, .. })) => {
                self.blame(context);
                self.ledger.borrow_mut().classes[self.class].gaps += len;
                self.from += len;
                self.has_moved = true;
                let gap = len.min(self.left);
                (self.left, self.moved) = (self.left.saturating_sub(gap), self.moved + gap);
                self.given(context);
            }
            // The volume ends: from its begin again.
            (MOVE, Ok(Reply::End) | Err(Error::VolumeFull { .. })) if !self.from.is_zero() => {
                self.from = Bytes::ZERO;
                self.close(context);
            }
            (GIVE, Ok(_)) => self.given(context),
            (CLOSE, Ok(_)) if context.now >= self.closes => {
                self.state = State::Gone;
                let stream = self.stream.take().expect("it was open");
                self.ledger.borrow_mut().closed(stream);
            }
            (CLOSE, Ok(_)) => self.closed(context),
            (CLOSE, Err(error)) => {
                self.ledger.borrow_mut().failed(self.class, error);
                // What could not be written stays behind.
                self.from = (self.from + Bytes::MIB).round_up(Bytes::MIB);
                self.stream = None;
                self.come_back(context, AGAIN);
            }
            (MOVE, Ok(Reply::End)) => self.close_failed(context, None),
            (_, Err(error)) => self.close_failed(context, Some(error)),
            (tag, Ok(other)) => unreachable!("{tag} was answered with {other:?}"),
        }
    }
}
