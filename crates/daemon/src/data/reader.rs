//! A reader's connection: one `Next` after the other.
//!
//! When the program has bytes, the pool's lock is taken once: to give them back and, in the same visit, to
//! take what is in memory behind them. That is there for the next `Next`, which takes no lock.

use super::frames::{Outgoing, Over, failed, misplaced};
use super::listening::Listening;
use crate::pool::{Ask, Came, Handed};
use crate::sessions::Opened;
use node::{Playout, Ready, StreamId, calls};
use units::Bytes;
use wire::frame::{BODY_MAX, Head};

/// Serves a reader until it closes its stream, or an error ends the connection.
pub async fn serve(
    opened: &Opened,
    input: &mut Listening,
    output: &Outgoing,
    ask: &Ask,
) -> Result<(), Over> {
    let position = opened.start;
    let mut reader = Reader { stream: opened.stream, output, ask, position, taken: None };
    loop {
        match input.head().await? {
            (Head::Next { len }, _) => {
                let len = len.clamp(Bytes::new(1), Bytes::new(BODY_MAX as u64));
                reader.next(len, input).await?;
            }
            (Head::Seek { tag, offset }, _) => reader.seek(tag, offset).await?,
            (Head::Close, _) => return Ok(()),
            (other, _) => return Err(misplaced(other, "a reader")),
        }
    }
}

struct Reader<'a> {
    stream: StreamId,
    output: &'a Outgoing,
    ask: &'a Ask,
    /// Its playout point.
    position: Bytes,
    /// What comes there, which nobody has asked for yet.
    taken: Option<Came<calls::StreamRead>>,
}

impl Reader<'_> {
    /// Moves the playout point, where that can be.
    async fn seek(&mut self, tag: u64, to: Bytes) -> Result<(), Over> {
        if let Some((Ok(Playout::Data { bytes: chunk, .. }), _)) = self.taken.take() {
            // Given back unread: where the jump is refused, the stream goes on with it.
            let unread = (chunk, Bytes::ZERO);
            self.ask.advance(self.stream, unread, Bytes::ZERO).await.map_err(failed)?;
        }
        match self.ask.call(calls::StreamSeek { stream: self.stream, to }).await {
            Ok(Ready { at, steady, .. }) => {
                let now = self.ask.0.now();
                let (ready, after) = (at.saturating_since(now), steady.saturating_since(now));
                self.output.send(Head::Steady { after }, &[]).await?;
                self.output.send(Head::Sought { first: 0, offset: to, ready }, &[]).await?;
                self.position = to;
                Ok(())
            }
            Err(error) => self.output.fail(tag, &crate::problem::of(&error)).await,
        }
    }

    /// Sends the next bytes, at most `len_max`.
    async fn next(&mut self, len_max: Bytes, input: &mut Listening) -> Result<(), Over> {
        let (answer, handed) = self.read(len_max, input).await?;
        match answer.map_err(failed)? {
            Playout::Data { bytes: chunk, offset } => {
                assert!(offset == self.position, "the pool gives what comes next");
                // It may have been taken for somebody who asks for less now.
                let len = Bytes::new(chunk.bytes().len() as u64).min(len_max);
                // The bytes go from the window to the socket; only then does the window move on.
                let bytes = &chunk.bytes()[..len.as_usize()];
                self.output.send(Head::Data { offset }, bytes).await?;
                self.ask.delivered(&self.output.excusing(handed));
                let taken = self.ask.advance(self.stream, (chunk, len), len_max).await;
                self.taken = taken.map_err(failed)?;
                self.position = offset + len;
            }
            Playout::Gap { offset, len } => {
                self.output.send(Head::Gap { offset, len }, &[]).await?;
                self.position = offset + len;
            }
            Playout::End => self.output.send(Head::End { offset: self.position }, &[]).await?,
        }
        Ok(())
    }

    /// What comes next: what was taken already, or what the pool answers. Whoever goes while it is waited
    /// for keeps no contract.
    async fn read(
        &mut self,
        len_max: Bytes,
        input: &mut Listening,
    ) -> Result<Came<calls::StreamRead>, Over> {
        if let Some((answer, handed)) = self.taken.take() {
            // The time in which nobody asked for it is not the daemon's.
            return Ok((answer, handed.or_later(Handed::now())));
        }
        let mut coming = self.ask.begin(calls::StreamRead { stream: self.stream, len_max });
        tokio::select! {
            biased;
            came = coming.handed() => Ok(came),
            over = input.ends() => Err(over),
        }
    }
}
