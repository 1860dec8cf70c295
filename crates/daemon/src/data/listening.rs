//! What a stream's program says, and for how long it may say nothing.
//!
//! The rule is [`node::KeepAlive`]'s; here is its clock. While a session answers a request it
//! does not listen, so that only the time counts in which the program owes the next word.

use super::frames::{Incoming, Over};
use crate::pool::Room;
use node::KeepAlive;
use std::future::pending;
use tokio::time::Instant as Clock;
use units::{Duration, Instant};
use wire::frame::Head;

/// The frames of a stream's program.
pub struct Listening {
    input: Incoming,
    alive: KeepAlive,
    limit: Duration,
    /// What the clock of `alive` counts from.
    began: Clock,
    /// What has come while the session had to answer.
    ahead: Option<(Head, usize)>,
}

impl Listening {
    /// A program that may be silent for `limit`; zero: for ever.
    pub fn new(input: Incoming, limit: Duration) -> Self {
        let (alive, began) = (KeepAlive::new(Instant::EPOCH, limit), Clock::now());
        Self { input, alive, limit, began, ahead: None }
    }

    fn now(&self) -> Instant {
        let passed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(passed)
    }

    /// The next head and the length of its body. Dropped while it waits, it loses nothing.
    /// Pauses that are announced are taken here.
    ///
    /// # Errors
    /// [`Over::Silent`] where the program was silent for too long.
    pub async fn head(&mut self) -> Result<(Head, usize), Over> {
        // What was answered meanwhile is the program's to go on with.
        self.heard();
        loop {
            match self.next().await? {
                Some((Head::Pause { span }, _)) => self.pauses(span),
                Some(frame) => {
                    self.heard();
                    return Ok(frame);
                }
                None => return Err(self.silent()),
            }
        }
    }

    /// The next head, or none when the program has been silent for too long. Pauses are the
    /// caller's to [take](Self::pauses), and so is what it [heard](Self::heard) otherwise.
    pub async fn next(&mut self) -> Result<Option<(Head, usize)>, Over> {
        if let Some(frame) = self.ahead.take() {
            return Ok(Some(frame));
        }
        loop {
            let at = |due: Instant| self.began + std::time::Duration::from_nanos(due.as_nanos());
            let due = self.alive.due().map(at);
            let silence = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                head = self.input.head() => return head.map(Some),
                () = silence => {}
            }
            let now = self.now();
            if self.alive.is_silent(now) {
                return Ok(None);
            }
        }
    }

    /// While the session has to answer: why the connection ends, if it does. A word that comes meanwhile is
    /// kept for [`Listening::next`]; behind it the end is not seen. Dropped while it waits, it loses nothing.
    pub async fn ends(&mut self) -> Over {
        if self.ahead.is_none() {
            match self.input.head().await {
                Ok((Head::Close, _)) => return Over::ByRequest,
                Ok(frame) => self.ahead = Some(frame),
                Err(over) => return over,
            }
        }
        pending().await
    }

    /// The program has moved its window, or asked for something.
    pub fn heard(&mut self) {
        self.alive.heard(self.now());
    }

    /// The program says that it pauses.
    pub fn pauses(&mut self, span: Duration) {
        self.alive.pauses(self.now(), span);
    }

    /// Whether the program waits for news.
    pub fn waits(&mut self, waits: bool) {
        self.alive.waits(self.now(), waits);
    }

    /// Why the connection ends.
    pub fn silent(&self) -> Over {
        Over::Silent(self.limit)
    }

    /// As [`Incoming::fill`].
    pub async fn fill(&mut self, room: &mut dyn Room, skip: usize, len: usize) -> Result<(), Over> {
        self.input.fill(room, skip, len).await
    }

    /// As [`Incoming::discard`].
    pub async fn discard(&mut self, len: usize) -> Result<(), Over> {
        self.input.discard(len).await
    }
}
