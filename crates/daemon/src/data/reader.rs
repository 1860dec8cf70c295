//! A reader's connection: one `Next` after the other.

use super::frames::{Outgoing, Over, failed, misplaced};
use super::listening::Listening;
use crate::pool::Ask;
use crate::sessions::Opened;
use node::{Playout, Ready, calls};
use units::Bytes;
use wire::frame::{BODY_MAX, Head};

/// Serves a reader until it closes its stream, or an error ends the connection.
pub async fn serve(
    opened: &Opened,
    input: &mut Listening,
    output: &Outgoing,
    ask: &Ask,
) -> Result<(), Over> {
    let mut position = opened.start;
    loop {
        match input.head().await? {
            (Head::Next { len }, _) => {
                let len = len.clamp(Bytes::new(1), Bytes::new(BODY_MAX as u64));
                position = next(opened, position, len, output, ask).await?;
            }
            (Head::Seek { tag, offset }, _) => {
                position = seek(opened, position, tag, offset, output, ask).await?;
            }
            (Head::Close, _) => return Ok(()),
            (other, _) => return Err(misplaced(other, "a reader")),
        }
    }
}

/// Moves the playout point, where that can be; gives where it is then.
async fn seek(
    opened: &Opened,
    position: Bytes,
    tag: u64,
    to: Bytes,
    output: &Outgoing,
    ask: &Ask,
) -> Result<Bytes, Over> {
    match ask.call(calls::StreamSeek { stream: opened.stream, to }).await {
        Ok(Ready { at, steady, .. }) => {
            let now = ask.0.now();
            let (ready, after) = (at.saturating_since(now), steady.saturating_since(now));
            output.send(Head::Steady { after }, &[]).await?;
            output.send(Head::Sought { first: 0, offset: to, ready }, &[]).await?;
            Ok(to)
        }
        Err(error) => {
            output.fail(tag, &crate::problem::of(&error)).await?;
            Ok(position)
        }
    }
}

/// Sends the next bytes, at most `len_max`; gives the playout point behind them.
async fn next(
    opened: &Opened,
    position: Bytes,
    len_max: Bytes,
    output: &Outgoing,
    ask: &Ask,
) -> Result<Bytes, Over> {
    let stream = opened.stream;
    let (answer, handed) = ask.call_handed(calls::StreamRead { stream, len_max }).await;
    match answer.map_err(failed)? {
        Playout::Data { bytes: chunk, offset } => {
            let len = Bytes::new(chunk.bytes().len() as u64);
            assert!(len <= len_max && offset == position, "the pool gives what comes next");
            // The bytes go from the window to the socket; only then does the window move on.
            output.send(Head::Data { offset }, chunk.bytes()).await?;
            ask.delivered(&output.excusing(handed));
            ask.advance(stream, chunk, len).await.map_err(failed)?;
            Ok(offset + len)
        }
        Playout::Gap { offset, len } => {
            output.send(Head::Gap { offset, len }, &[]).await?;
            Ok(offset + len)
        }
        Playout::End => {
            output.send(Head::End { offset: position }, &[]).await?;
            Ok(position)
        }
    }
}
