//! A writer whose window is mapped.
//!
//! Invariants: what was filled is the daemon's, and is taken even if this program ends
//! in the next moment; while there is room no call makes a system call, but for one bell
//! a block; an error is told by the first call that can know of it.

#[cfg(feature = "tokio")]
use crate::line::Heard;
use crate::line::Line;
use crate::{Error, Result, connection};
use std::path::Path;
use std::sync::Arc;
use units::{Bytes, Duration};
use window::Watch;
use wire::frame::Head;

/// See the module.
#[derive(Debug)]
pub struct SharedWriter {
    pub window: window::Client,
    watch: Watch,
    pub line: Arc<Line>,
    /// The daemon knows that this program waits.
    armed: bool,
    /// How far the daemon was told to look.
    noticed: Bytes,
    /// Syncs that were asked for.
    syncs: u64,
}

impl SharedWriter {
    /// The writer of a stream whose window is shared; the inner error says why it cannot
    /// be mapped here.
    pub fn attach(
        socket: &Path,
        stream: u64,
        window: Bytes,
    ) -> Result<std::result::Result<Self, std::io::Error>> {
        let attached = Line::attach(socket, stream)?;
        let mapped = window::Client::open(attached.control, attached.data, attached.start);
        Ok(mapped.map(|mut mapped| {
            mapped.populate(window);
            let (watch, line) = (mapped.watch(), Arc::new(attached.line));
            let (armed, noticed, syncs) = (false, Bytes::ZERO, 0);
            Self { window: mapped, watch, line, armed, noticed, syncs }
        }))
    }

    pub fn accepted(&self) -> Bytes {
        self.window.offset()
    }

    pub fn durable(&self) -> Bytes {
        self.watch.durable().max(self.line.durable())
    }

    pub fn durability(&self) -> SharedDurability {
        SharedDurability { watch: self.watch.clone(), line: Arc::clone(&self.line) }
    }

    #[inline]
    pub fn room(&mut self, len_max: usize) -> Result<&mut [u8]> {
        if self.window.left() == 0 || self.window.is_over() {
            self.next()?;
        }
        Ok(self.window.bytes_mut(len_max))
    }

    #[inline]
    pub fn try_room(&mut self, len_max: usize) -> Result<Option<&mut [u8]>> {
        if (self.window.left() == 0 || self.window.is_over()) && !self.try_next()? {
            return Ok(None);
        }
        Ok(Some(self.window.bytes_mut(len_max)))
    }

    #[inline]
    pub fn filled(&mut self, len: usize) {
        let rings = self.window.advance(len);
        self.rings(rings);
    }

    /// Rings the bell, where the program has come to the mark.
    #[inline]
    pub fn rings(&mut self, rings: bool) {
        if rings {
            self.noticed = self.window.moved();
            self.line.ring();
        }
    }

    /// As much as there is room for, without waiting for more than the first byte of it.
    pub fn write(&mut self, buf: &[u8]) -> Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        self.room(1)?;
        let mut done = 0;
        loop {
            let room = self.window.bytes_mut(buf.len() - done);
            let len = room.len();
            room.copy_from_slice(&buf[done..done + len]);
            self.filled(len);
            done += len;
            if done == buf.len() || self.window.left() == 0 && !self.take()? {
                return Ok(done);
            }
        }
    }

    /// Has the daemon notice a part of a block.
    pub fn flush(&mut self) -> Result<()> {
        if self.window.is_over() {
            return Err(self.line.why_over());
        }
        if self.window.moved() > self.noticed {
            self.noticed = self.window.moved();
            self.line.send(Head::Bell)?;
        }
        Ok(())
    }

    pub fn sync(&mut self) -> Result<Bytes> {
        let asked = self.begin_sync()?;
        let durable = self.line.answer(|heard| (heard.syncs >= asked).then_some(heard.durable))?;
        Ok(durable.max(self.durable()))
    }

    /// Asks for a sync; gives how many answers there are when it is answered.
    pub fn begin_sync(&mut self) -> Result<u64> {
        // One that was not waited for any more; the next try says whether it holds.
        self.line.look(|heard| heard.failed = None)?;
        self.noticed = self.window.moved();
        self.line.send(Head::Sync)?;
        self.syncs += 1;
        Ok(self.syncs)
    }

    /// Whether the stream goes on, without waiting.
    pub fn check(&self) -> Result<()> {
        if self.window.is_over() {
            return Err(self.line.why_over());
        }
        self.line.try_wait(|_| None::<()>).map(drop)
    }

    /// Waits for the answer to a sync that was asked for. What it was, the next one says.
    #[cfg(feature = "tokio")]
    pub fn end_sync(&self, asked: u64) {
        let _ = self.line.answer(|heard| (heard.syncs >= asked).then_some(()));
    }

    /// What the sync that was asked for has come to, where it was answered.
    #[cfg(feature = "tokio")]
    pub fn try_synced(&self, asked: u64) -> Result<Option<Bytes>> {
        let durable = self.line.try_wait(|heard| (heard.syncs >= asked).then_some(heard.durable));
        Ok(durable?.map(|durable| durable.max(self.durable())))
    }

    /// Goes on at another place, when all that was filled is on the medium.
    pub fn seek(&mut self, to: Bytes) -> Result<()> {
        self.noticed = self.window.moved();
        let (first, offset, _) = self.line.seek(to)?;
        self.window.sought(first, offset);
        self.armed = false;
        Ok(())
    }

    pub fn pause(&self, span: Duration) -> Result<()> {
        self.line.send(connection::pause(span))
    }

    /// Asks to go on at another place.
    #[cfg(feature = "tokio")]
    pub fn begin_seek(&mut self, to: Bytes) -> Result<()> {
        self.noticed = self.window.moved();
        self.line.begin_seek(to)
    }

    /// The end of the seek that was asked for, where it was answered.
    #[cfg(feature = "tokio")]
    pub fn try_sought(&mut self) -> Result<Option<()>> {
        let Some(sought) = self.line.try_wait(Heard::sought)? else { return Ok(None) };
        let (first, offset, _) = sought?;
        self.window.sought(first, offset);
        self.armed = false;
        Ok(Some(()))
    }

    pub fn close(self) -> Result<Bytes> {
        self.begin_close()?;
        self.line.answer(|heard| heard.closed.then_some(heard.durable))
    }

    /// Asks for the stream to be closed.
    pub fn begin_close(&self) -> Result<()> {
        self.line.send(Head::Close)
    }

    /// What closing the stream has come to, where it is closed.
    #[cfg(feature = "tokio")]
    pub fn try_closed(&self) -> Result<Option<Bytes>> {
        self.line.try_wait(|heard| heard.closed.then_some(heard.durable))
    }

    /// Waits until the program hears of more room.
    #[cold]
    pub fn more(&mut self) -> Result<()> {
        let filled = self.window.held().end;
        loop {
            if self.window.is_over() {
                return Err(self.line.why_over());
            }
            self.window.hear_all().map_err(|garbled| Error::Garbled(garbled.to_string()))?;
            if self.window.held().end > filled {
                self.armed = false;
                return Ok(());
            }
            if !self.arm() {
                continue;
            }
            let before = self.line.look(|heard| heard.frames)?;
            if !self.window.has_heard_all() {
                continue;
            }
            self.hear(before)?;
        }
    }

    /// Waits for the frame behind the first `before`, or for the word that something failed.
    fn hear(&mut self, before: u64) -> Result<()> {
        let heard = self.line.wait(|heard| {
            let failed = heard.failed.take();
            failed.map(Err).or((heard.frames > before).then_some(Ok(())))
        })?;
        self.armed &= heard.is_ok();
        heard
    }

    /// Takes the next room, where there is some.
    fn take(&mut self) -> Result<bool> {
        let piece = self.window.take().map_err(|garbled| Error::Garbled(garbled.to_string()))?;
        if piece.is_some() {
            self.armed = false;
        }
        Ok(piece.is_some())
    }

    /// Waits for room.
    #[cold]
    fn next(&mut self) -> Result<()> {
        loop {
            if self.window.is_over() {
                return Err(self.line.why_over());
            }
            if self.window.left() > 0 || self.take()? {
                return Ok(());
            }
            if !self.arm() {
                continue;
            }
            let before = self.line.look(|heard| heard.frames)?;
            if self.take()? {
                return Ok(());
            }
            self.hear(before)?;
        }
    }

    /// Whether there is room, or there will be news of it on the socket.
    #[cold]
    fn try_next(&mut self) -> Result<bool> {
        loop {
            if self.window.is_over() {
                return Err(self.line.why_over());
            }
            if self.window.left() > 0 || self.take()? {
                return Ok(true);
            }
            if let Some(failed) = self.line.look(|heard| heard.failed.take())? {
                self.armed = false;
                return Err(failed);
            }
            if self.take()? {
                return Ok(true);
            }
            if self.arm() {
                return Ok(false);
            }
        }
    }

    /// Tells the daemon that this program waits; false where room has come meanwhile.
    fn arm(&mut self) -> bool {
        if !self.armed {
            if !self.window.begin_to_wait() {
                return false;
            }
            self.armed = true;
            self.noticed = self.window.moved();
            self.line.ring();
        }
        true
    }
}

impl Drop for SharedWriter {
    fn drop(&mut self) {
        self.line.shut();
    }
}

/// Follows how far the bytes of a writer are durable, on any thread.
#[derive(Clone, Debug)]
pub struct SharedDurability {
    watch: Watch,
    line: Arc<Line>,
}

impl SharedDurability {
    pub fn wait(&self, beyond: Bytes) -> Option<Bytes> {
        // Said anew each time: news of less than this may have answered the last.
        let told = self.line.wait(|heard| {
            let waits = self.watch.begin_to_wait(beyond);
            let durable = self.watch.durable().max(heard.durable);
            (!waits || durable > beyond).then_some(durable)
        });
        let durable = told.unwrap_or_else(|_| self.watch.durable().max(self.line.durable()));
        Some(durable).filter(|&durable| durable > beyond)
    }
}
