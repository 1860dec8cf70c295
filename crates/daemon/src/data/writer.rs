//! A writer's connection: bytes in, and word of how far they are durable out.
//!
//! Invariants: `Durable` is sent only for what the pool has put on the medium,
//! and never goes back. What a program has sent is taken, also where it has gone and no answer
//! reaches it: the connection ends where its bytes do.

use super::frames::{Outgoing, Over, failed, misplaced};
use super::listening::Listening;
use crate::pool::Ask;
use crate::sessions::Opened;
use node::{Error, calls};
use tokio::sync::watch;
use units::{Bytes, Duration};
use wire::frame::Head;

/// Serves a writer until it closes its stream, or an error ends the connection.
pub async fn serve(
    opened: &Opened,
    input: &mut Listening,
    output: &Outgoing,
    ask: &Ask,
) -> Result<(), Over> {
    // Where the writer went last: durable offsets are of that place.
    let (sought, seeks) = watch::channel(opened.start);
    tokio::select! {
        over = take_bytes(opened, input, output, ask, &sought) => over,
        over = tell_durable(opened, output, ask, seeks) => Err(over),
    }
}

async fn take_bytes(
    opened: &Opened,
    input: &mut Listening,
    output: &Outgoing,
    ask: &Ask,
    sought: &watch::Sender<Bytes>,
) -> Result<(), Over> {
    let stream = opened.stream;
    let mut upto = opened.start;
    // What stopped the last write. Those that were sent behind it, before the
    // program could know, must not go through: they would be in the wrong place.
    let mut stopped: Option<Error> = None;
    loop {
        match input.head().await? {
            (Head::Write, len) => {
                if stopped.is_none() {
                    let (accepted, error) = write(opened, len, input, ask).await?;
                    (upto, stopped) = (upto + accepted, error);
                } else {
                    input.discard(len).await?;
                }
                // The reason goes first: with `Accepted` the write is answered.
                if let Some(error) = &stopped {
                    heard(output.fail(0, &crate::problem::of(error)).await)?;
                }
                heard(output.send(Head::Accepted { upto }, &[]).await)?;
            }
            (Head::Sync, _) => {
                stopped = None;
                let upto = ask.call(calls::StreamSync { stream }).await.map_err(failed)?;
                heard(output.send(Head::Synced { upto }, &[]).await)?;
            }
            (Head::Seek { tag, offset: to }, _) => {
                match ask.call(calls::StreamSeek { stream, to }).await {
                    Ok(_) => {
                        (upto, stopped) = (to, None);
                        sought.send_replace(to);
                        let ready = Duration::ZERO;
                        let sought = Head::Sought { first: 0, offset: to, ready };
                        heard(output.send(sought, &[]).await)?;
                    }
                    Err(error) => heard(output.fail(tag, &crate::problem::of(&error)).await)?,
                }
            }
            (Head::Close, _) => return Ok(()),
            (other, _) => return Err(misplaced(other, "a writer")),
        }
    }
}

/// A program that has gone hears no answer, and what it sent before is taken all the same.
fn heard(sent: Result<(), Over>) -> Result<(), Over> {
    match sent {
        Err(Over::Gone) => Ok(()),
        sent => sent,
    }
}

/// Takes one body of `len` bytes into the window: how much of it went there,
/// and what stopped the rest. The rest is read all the same, so that the program
/// can go on with what it likes to do next.
async fn write(
    opened: &Opened,
    len: usize,
    input: &mut Listening,
    ask: &Ask,
) -> Result<(Bytes, Option<Error>), Over> {
    let stream = opened.stream;
    let mut done = 0;
    while done < len {
        let len_max = Bytes::new((len - done) as u64);
        let (room, handed) = ask.call_handed(calls::StreamRoom { stream, len_max }).await;
        let mut room = match room {
            Ok(room) => {
                // From here on the program's bytes are read into it.
                ask.delivered(&handed);
                room
            }
            Err(error) => {
                input.discard(len - done).await?;
                return Ok((Bytes::new(done as u64), Some(error)));
            }
        };
        let piece = room.bytes_mut().len().min(len - done);
        assert!(piece > 0, "the pool gives room when there is some");
        input.fill(room.as_mut(), 0, piece).await?;
        drop(room);
        let piece_len = Bytes::new(piece as u64);
        ask.call(calls::StreamWrite { stream, len: piece_len }).await.map_err(failed)?;
        done += piece;
    }
    Ok((Bytes::new(done as u64), None))
}

/// Sends every advance of the durable offset until the connection must end.
async fn tell_durable(
    opened: &Opened,
    output: &Outgoing,
    ask: &Ask,
    mut sought: watch::Receiver<Bytes>,
) -> Over {
    let stream = opened.stream;
    let mut beyond = opened.start;
    loop {
        let durable = tokio::select! {
            biased;
            // What was asked for at the old place is not told any more.
            Ok(()) = sought.changed() => {
                beyond = *sought.borrow_and_update();
                continue;
            }
            durable = ask.call(calls::StreamDurable { stream, beyond }) => durable,
        };
        match durable {
            // The writer has gone elsewhere, which is about to be heard here.
            Ok(upto) if upto <= beyond => {
                let _ = sought.changed().await;
                beyond = *sought.borrow_and_update();
            }
            Ok(upto) => {
                beyond = upto;
                if let Err(over) = heard(output.send(Head::Durable { upto }, &[]).await) {
                    return over;
                }
            }
            // Closed: who closed it has the last word.
            Err(Error::NoSuchStream { .. }) => std::future::pending().await,
            Err(error) => return failed(error),
        }
    }
}
