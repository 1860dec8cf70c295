//! The connection of a stream whose window its program has mapped.
//!
//! The bytes are in the window; over the socket come bells and a few requests, and go
//! news to a program that waits, and answers. One task serves it all, one thing after
//! the other.
//!
//! Invariants: what the program writes into its memory is believed only as far as
//! [`window::Daemon`] finds it possible, and otherwise ends this stream alone; there is
//! at most one ask for a piece and one for durability with the pool; a program that
//! does not read its socket, or sleeps, stops its own task and nothing else; bells
//! without a reason are counted and end the stream. What a writer has filled before its
//! end, however that came, is taken. What it fills is looked at every [`LOOK_AT_WRITER`], however
//! long its blocks are: the pool notes then when the bytes came.

use super::frames::{Outgoing, Over, broken, failed, misplaced};
use super::listening::Listening;
use crate::limits::LOOK_AT_WRITER;
use crate::pool::{Ask, Came, Coming, Handed, Pieces};
use crate::sessions::Opened;
use engine::{Told, WindowReply};
use node::{Error, Mode, Operation, Ready, calls};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant as Clock;
use units::{Bytes, Instant};
use window::{Kind, Piece};
use wire::frame::Head;

/// Bells that may find nothing new, beyond one for each that did: a bell can come late.
const IDLE_BELLS_MAX: u64 = 1000;

/// One stream.
pub struct Session<'a> {
    opened: &'a Opened,
    ask: &'a Ask,
    output: &'a Outgoing,
    end: window::Daemon,
    /// A reader's pieces, where the pool tells them by itself, and the bell for them.
    pieces: Option<Box<dyn Pieces>>,
    bell: Arc<Notify>,
    /// The next piece, where it has to be asked for, and how far a writer's bytes are durable.
    piece: Option<Coming<calls::WindowNext>>,
    durable: Option<Coming<calls::StreamDurable>>,
    /// Since when this session was free to publish what the pool handed out.
    free: Handed,
    /// The ring had no slot for what was told since.
    full: bool,
    /// Writers: where the next room begins, and beyond what durability is asked for.
    offset: Bytes,
    beyond: Bytes,
    /// Writers: when the window is looked at, if no bell comes before.
    look_at: Option<Clock>,
    /// Pieces that were asked for before this seek are void.
    seeks: u64,
    /// The program waits for a piece and has had no answer.
    waits: bool,
    /// There was no next piece. It is asked for again when the program waits.
    paused: bool,
    /// More idle bells than others.
    idle_bells: u64,
    /// The program has said what cannot be.
    lied: bool,
    /// The stream is being closed: nothing more will be durable before that.
    closing: bool,
}

/// Whether the session goes on.
#[derive(PartialEq, Eq)]
enum Goes {
    On,
    Closed,
}

impl<'a> Session<'a> {
    /// A session with the daemon's end of its window.
    pub fn new(
        opened: &'a Opened,
        mut end: window::Daemon,
        ask: &'a Ask,
        output: &'a Outgoing,
    ) -> Self {
        let _ = end.durable(opened.start); // nobody waits yet
        let bell = Arc::new(Notify::new());
        let rings = Arc::clone(&bell);
        let pieces = match opened.mode {
            Mode::Read => {
                ask.0.pieces(ask.1.clone(), opened.stream, Box::new(move || rings.notify_one()))
            }
            // Room is filled with zeros before it is told, one after the other.
            Mode::Write | Mode::Update => None,
        };
        Self {
            opened,
            ask,
            output,
            end,
            pieces,
            bell,
            piece: None,
            durable: None,
            free: Handed::now(),
            full: false,
            offset: opened.start,
            beyond: opened.start,
            look_at: opened.mode.writes().then(|| Clock::now() + LOOK_AT_WRITER),
            seeks: 0,
            waits: false,
            paused: false,
            idle_bells: 0,
            lied: false,
            closing: false,
        }
    }

    /// The control page, for the program.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        self.end.fd()
    }

    /// Serves the stream until its program closes it, or an error ends the connection.
    pub async fn run(&mut self, input: &mut Listening) -> Result<(), Over> {
        loop {
            self.publish_what_was_told().await?;
            self.ask_for_more();
            input.waits(self.waits);
            let goes = tokio::select! {
                head = input.next() => self.frame(head?, input).await?,
                () = self.bell.notified() => Goes::On,
                (piece, handed) = arrival(&mut self.piece) => {
                    self.told(piece.map(WindowReply::told), handed).await?;
                    Goes::On
                }
                (durable, _) = arrival(&mut self.durable) => self.durable(durable).await?,
                () = time(self.look_at) => self.look(input).await?,
            };
            if goes == Goes::Closed {
                return Ok(());
            }
        }
    }

    /// The end of the session: takes what a writer has filled, and says that nothing
    /// more comes.
    pub async fn settle(mut self) {
        if self.opened.mode.writes() && !self.lied {
            // What stands in its way is told at the close.
            let _ = self.take_note().await;
        }
        self.end.over();
    }

    /// Asks the pool for what this session wants to hear of and has not asked for.
    fn ask_for_more(&mut self) {
        let stream = self.opened.stream;
        let wants_more = !self.paused && !self.end.is_full();
        if let (Some(pieces), true) = (&self.pieces, wants_more) {
            pieces.ask();
        } else if self.piece.is_none() && wants_more {
            self.piece = Some(self.ask.begin(calls::WindowNext { stream }));
        }
        if self.durable.is_none() && self.opened.mode.writes() && !self.closing {
            let beyond = self.beyond;
            self.durable = Some(self.ask.begin(calls::StreamDurable { stream, beyond }));
        }
    }

    /// Publishes what the pool has told by itself, as far as the ring has slots.
    async fn publish_what_was_told(&mut self) -> Result<(), Over> {
        if self.full && !self.end.is_full() {
            // What found no slot has waited for the program.
            (self.full, self.free) = (false, Handed::now());
        }
        while !self.end.is_full()
            && let Some(told) = self.pieces.as_ref().and_then(|pieces| pieces.take())
        {
            let handed = Handed::of_piece(&told);
            self.told(told, handed).await?;
        }
        self.full = self.end.is_full();
        Ok(())
    }

    /// A frame has come, or none for as long as a program may be silent.
    async fn frame(
        &mut self,
        frame: Option<(Head, usize)>,
        input: &mut Listening,
    ) -> Result<Goes, Over> {
        match frame {
            // Small steps ring no bell.
            None if self.take_note().await? => input.heard(),
            None => return Err(input.silent()),
            Some((Head::Pause { span }, _)) => {
                self.take_note().await?;
                input.pauses(span);
            }
            Some((head, _)) => {
                // While it is answered the program waits, and owes no word.
                let is_bell = matches!(head, Head::Bell);
                let goes = self.heard(head).await?;
                if !is_bell {
                    // The next piece has waited for what the program asked for itself.
                    self.free = Handed::now();
                }
                input.heard();
                return Ok(goes);
            }
        }
        Ok(Goes::On)
    }

    async fn heard(&mut self, head: Head) -> Result<Goes, Over> {
        let writes = self.opened.mode.writes();
        match head {
            Head::Bell => self.bell().await?,
            Head::Seek { tag, offset } => self.seek(tag, offset).await?,
            Head::Sync if writes => self.sync().await?,
            Head::Close => return Ok(Goes::Closed),
            other => return Err(misplaced(other, "a shared window")),
        }
        Ok(Goes::On)
    }

    /// The program wants a look at the control page.
    async fn bell(&mut self) -> Result<(), Over> {
        // In this order: what the program is done with, it said before it began to wait.
        let began = self.end.begins_to_wait();
        let moved = self.take_note().await?;
        if moved || (began && !self.waits) {
            self.idle_bells = self.idle_bells.saturating_sub(1);
        } else {
            self.idle_bells += 1;
            if self.idle_bells > IDLE_BELLS_MAX {
                return Err(self.lie("the program rings the bell without a reason"));
            }
        }
        if !began {
            return Ok(());
        }
        let published = self.end.published();
        self.publish_what_was_told().await?;
        if self.end.published() > published {
            return Ok(()); // it waits for nothing any more, or says so again
        }
        if !self.waits {
            self.waits = true;
            self.paused = false;
            let stream = self.opened.stream;
            self.ask.call(calls::WindowWaits { stream }).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Tells the pool how far the program has come, and the program when to ring next;
    /// true where it has come further.
    async fn take_note(&mut self) -> Result<bool, Over> {
        self.look_at = self.look_at.map(|_| Clock::now() + LOOK_AT_WRITER);
        let mut any = false;
        loop {
            let further = match self.end.further() {
                Ok(further) => further.bytes,
                Err(lie) => return Err(self.lie(lie)),
            };
            if !further.is_zero() {
                any = true;
                let op = calls::WindowMoved { stream: self.opened.stream, len: further };
                self.ask.call(op).await.map_err(failed)?;
            }
            if !self.end.ring_at_next() {
                return Ok(any);
            }
        }
    }

    /// Takes what a writer has filled of a block that is not full.
    async fn look(&mut self, input: &mut Listening) -> Result<Goes, Over> {
        if self.take_note().await? {
            // The bell for it may be on its way.
            self.idle_bells = self.idle_bells.saturating_sub(1);
            input.heard();
        }
        Ok(Goes::On)
    }

    fn lie(&mut self, what: impl std::fmt::Display) -> Over {
        self.lied = true;
        broken(what.to_string())
    }

    /// The pool's next piece, or that there is none.
    async fn told(&mut self, told: Result<Told, Error>, handed: Handed) -> Result<(), Over> {
        match told {
            Ok(Told { seeks, .. }) if seeks < self.seeks => {}
            // The end that the program is told of is the end when it got there.
            Ok(Told { piece: Piece { kind: Kind::End, .. }, .. }) if !self.waits => {
                self.paused = true;
            }
            Ok(Told { piece, .. }) => {
                self.paused = piece.kind == Kind::End;
                self.publish(piece, handed).await?;
            }
            Err(error @ (Error::NoSuchStream { .. } | Error::ShuttingDown)) => {
                return Err(failed(error));
            }
            Err(error) if self.opened.mode == Mode::Read => return Err(failed(error)),
            // No room now; there may be some later.
            Err(error) => {
                self.paused = true;
                if std::mem::take(&mut self.waits) {
                    self.output.fail(0, &crate::problem::of(&error)).await?;
                }
            }
        }
        Ok(())
    }

    async fn publish(&mut self, mut piece: Piece, handed: Handed) -> Result<(), Over> {
        if self.opened.mode.writes() {
            piece.offset = self.offset;
            self.offset += piece.len;
        }
        let news = self.end.publish(piece);
        let handed = handed.or_later(self.free);
        let passed = self.end.ring_at_next();
        // Who waits for the next one says so anew, and then there are news for it.
        self.waits = false;
        if news {
            self.output.send(Head::News, &[]).await?;
        }
        // Gaps and the end are under no contract.
        if handed.is_promised() {
            self.ask.delivered(&self.output.excusing(handed));
        }
        if passed {
            self.take_note().await?;
        }
        Ok(())
    }

    /// More of a writer's bytes are on the medium.
    async fn durable(&mut self, durable: Result<Bytes, Error>) -> Result<Goes, Over> {
        match durable {
            Ok(upto) => self.durable_upto(upto).await?,
            // Closed: who closed it has the last word.
            Err(Error::NoSuchStream { .. }) => self.closing = true,
            Err(error) => return Err(failed(error)),
        }
        Ok(Goes::On)
    }

    async fn durable_upto(&mut self, upto: Bytes) -> Result<(), Over> {
        if upto > self.beyond {
            self.beyond = upto;
            if self.end.durable(upto) {
                self.output.send(Head::News, &[]).await?;
            }
        }
        Ok(())
    }

    /// A writer goes on at `to`: from now on durable offsets are of that place.
    async fn durable_from(&mut self, to: Bytes) -> Result<(), Over> {
        // What was asked for was answered with an offset of the old place, or with this one.
        if let Some(of_before) = self.durable.take() {
            let _ = of_before.end().await;
        }
        (self.offset, self.beyond) = (to, to);
        if self.end.durable(to) {
            self.output.send(Head::News, &[]).await?;
        }
        Ok(())
    }

    async fn sync(&mut self) -> Result<(), Over> {
        self.take_note().await?;
        let op = calls::StreamSync { stream: self.opened.stream };
        let upto = self.ask.call(op).await.map_err(failed)?;
        self.durable_upto(upto).await?;
        self.output.send(Head::Synced { upto }, &[]).await
    }

    async fn seek(&mut self, tag: u64, to: Bytes) -> Result<(), Over> {
        self.take_note().await?;
        match self.ask.call(calls::StreamSeek { stream: self.opened.stream, to }).await {
            Ok(Ready { at, steady, seeks }) => {
                self.seeks = seeks;
                (self.paused, self.waits) = (false, false);
                if self.opened.mode.writes() {
                    self.durable_from(to).await?;
                }
                let first = self.end.void();
                let now = self.now();
                let (ready, after) = (at.saturating_since(now), steady.saturating_since(now));
                if self.opened.mode == Mode::Read {
                    self.output.send(Head::Steady { after }, &[]).await?;
                }
                self.output.send(Head::Sought { first, offset: to, ready }, &[]).await
            }
            Err(error @ (Error::NoSuchStream { .. } | Error::ShuttingDown)) => Err(failed(error)),
            Err(error) => self.output.fail(tag, &crate::problem::of(&error)).await,
        }
    }

    fn now(&self) -> Instant {
        self.ask.0.now()
    }
}

/// Waits until then; for ever, where no time is said.
async fn time(at: Option<Clock>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What was asked for, when it comes; never, where nothing was.
async fn arrival<O: Operation>(coming: &mut Option<Coming<O>>) -> Came<O> {
    let Some(receiver) = coming else { return std::future::pending().await };
    let answer = receiver.handed().await;
    *coming = None;
    answer
}
