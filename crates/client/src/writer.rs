//! A writer under contract.

use crate::carried_writer::{CarriedDurability, CarriedWriter};
use crate::growing::Growing;
use crate::shared_writer::{SharedDurability, SharedWriter};
use crate::{Client, Error, Result};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use units::{Bytes, Duration};
use wire::control::{Contract, Stream};

/// A volume that is written under contract. Dropping it closes the stream, synced,
/// without waiting for that.
///
/// The bytes go into the stream's window, which is mapped: [`Writer::room`] shows where,
/// [`Writer::filled`] hands them over, and [`Write::write`] copies. Neither makes a system
/// call while there is room, but for one a block of the contract. What was handed over is
/// written even if this program ends in the next moment; it is on the medium when
/// [`Writer::sync`] or [`Writer::durable`] says so. Where the daemon cannot share the
/// window, the bytes are carried over the socket, and an error may come with a later call.
#[derive(Debug)]
pub struct Writer {
    carrier: Carrier,
    client: Client,
    stream: u64,
    contract: Contract,
    growing: Option<Box<Growing>>,
}

#[derive(Debug)]
enum Carrier {
    Shared(SharedWriter),
    Carried(CarriedWriter),
}

impl Writer {
    pub(crate) fn shared(
        writer: SharedWriter,
        client: Client,
        stream: u64,
        contract: Contract,
    ) -> Self {
        Self { carrier: Carrier::Shared(writer), client, stream, contract, growing: None }
    }

    pub(crate) fn carried(
        writer: CarriedWriter,
        client: Client,
        stream: u64,
        contract: Contract,
    ) -> Self {
        Self { carrier: Carrier::Carried(writer), client, stream, contract, growing: None }
    }

    /// The number of the stream.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// Whether the window is mapped, rather than carried over the socket.
    pub fn is_shared(&self) -> bool {
        matches!(self.carrier, Carrier::Shared(_))
    }

    /// The volume offset behind the last byte that the daemon has accepted.
    pub fn accepted(&self) -> Bytes {
        match &self.carrier {
            Carrier::Shared(writer) => writer.accepted(),
            Carrier::Carried(writer) => writer.accepted(),
        }
    }

    /// Everything before this volume offset survives a crash. Does not wait.
    pub fn durable(&self) -> Bytes {
        match &self.carrier {
            Carrier::Shared(writer) => writer.durable(),
            Carrier::Carried(writer) => writer.durable(),
        }
    }

    /// For another thread, to follow how far the bytes are durable.
    pub fn durability(&self) -> Durability {
        Durability(match &self.carrier {
            Carrier::Shared(writer) => Follows::Shared(writer.durability()),
            Carrier::Carried(writer) => Follows::Carried(writer.durability()),
        })
    }

    /// Memory for the next bytes, at most `len_max` (at least 1): as much as lies in one
    /// piece, which may be less. It holds whatever it held before. Waits where the caller
    /// is faster than its contract.
    ///
    /// # Errors
    /// When there is no space, or the stream has ended.
    #[inline]
    pub fn room(&mut self, len_max: usize) -> Result<&mut [u8]> {
        self.grow_ahead(self.accepted());
        let room = match &mut self.carrier {
            Carrier::Shared(writer) => writer.room(len_max),
            Carrier::Carried(writer) => writer.room(len_max),
        };
        room.map_err(|error| explain(&mut self.growing, error))
    }

    /// As [`Writer::room`], and none where that would have to wait: then the descriptor
    /// ([`AsFd`]) can be read from when it is worth to look again. A writer whose window
    /// is not shared always has room of its own, and waits for more.
    ///
    /// # Errors
    /// As [`Writer::room`].
    #[inline]
    pub fn try_room(&mut self, len_max: usize) -> Result<Option<&mut [u8]>> {
        self.grow_ahead(self.accepted());
        let room = match &mut self.carrier {
            Carrier::Shared(writer) => writer.try_room(len_max),
            Carrier::Carried(writer) => writer.room(len_max).map(Some),
        };
        room.map_err(|error| explain(&mut self.growing, error))
    }

    /// Hands over the first `len` bytes of the room that was shown.
    ///
    /// # Panics
    /// Where more is handed over than there was room for.
    #[inline]
    pub fn filled(&mut self, len: usize) {
        match &mut self.carrier {
            Carrier::Shared(writer) => writer.filled(len),
            Carrier::Carried(writer) => writer.filled(len),
        }
    }

    /// Puts everything written so far on the medium; gives the volume offset up
    /// to which everything is there. A failed write that the caller does not
    /// know of yet is reported here; the next sync goes through, and writing may
    /// go on from [`Writer::accepted`].
    ///
    /// # Errors
    /// When not everything came there.
    pub fn sync(&mut self) -> Result<Bytes> {
        match &mut self.carrier {
            Carrier::Shared(writer) => writer.sync(),
            Carrier::Carried(writer) => writer.sync(),
        }
    }

    /// Asks for a sync and does not wait for it: [`Writer::durable`] rises when it has ended.
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    pub fn sync_soon(&mut self) -> Result<()> {
        match &mut self.carrier {
            Carrier::Shared(writer) => writer.begin_sync(),
            Carrier::Carried(writer) => writer.begin_sync(),
        }
        .map(drop)
    }

    /// Whether the stream goes on. Does not wait: for a program that has nothing to write for a
    /// while, or whose window has room, and is to know soon where the daemon has ended.
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    pub fn check(&self) -> Result<()> {
        match &self.carrier {
            Carrier::Shared(writer) => writer.check(),
            Carrier::Carried(writer) => writer.check(),
        }
    }

    /// Goes on at another offset of the volume, under the same contract, when everything
    /// written so far is on the medium: this waits for that, as [`Writer::sync`] does. From
    /// then on [`Writer::accepted`] and [`Writer::durable`] are of the new place: everything
    /// that was written from there on, up to that offset, survives a crash, and so does all
    /// that was written before. What follows the last byte in its 4 KiB is zeros, as after
    /// [`Writer::close`].
    ///
    /// # Errors
    /// Where the offset is no multiple of the contract's block, or has bytes before it in its
    /// MiB of the volume that were never written: the writer stays where it is, and has
    /// synced. When not everything came to the medium.
    pub fn seek(&mut self, to: Bytes) -> Result<()> {
        self.grow_ahead(to);
        match &mut self.carrier {
            Carrier::Shared(writer) => writer.seek(to),
            Carrier::Carried(writer) => writer.seek(to),
        }
    }

    /// Says that this program will write nothing for at most so long; as
    /// [`Reader::pause`](crate::Reader::pause).
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    pub fn pause(&mut self, span: Duration) -> Result<()> {
        match &mut self.carrier {
            Carrier::Shared(writer) => writer.pause(span),
            Carrier::Carried(writer) => writer.pause(span),
        }
    }

    /// The contract that holds.
    pub fn contract(&self) -> Contract {
        self.contract
    }

    /// Asks for another rate or burst, in the same blocks.
    ///
    /// # Errors
    /// Where admission refuses; the contract stays.
    pub fn set_contract(&mut self, contract: Contract) -> Result<()> {
        let stream = self.client.stream_change(self.stream, contract)?;
        self.contract = contract;
        if let Some(growing) = &mut self.growing {
            growing.follow(&stream.contract, stream.window_bytes);
        }
        if let Carrier::Shared(writer) = &mut self.carrier {
            writer.window.widen(stream.window_bytes);
        }
        Ok(())
    }

    /// Makes the volume larger ahead of this writer, up to `limit`, as it comes near the end: by what
    /// a minute of its contract brings, while there is room for 20 s still. A call of the daemon
    /// then is part of [`Writer::room`], [`Writer::try_room`], [`Writer::seek`] or a write, also of one
    /// that is awaited. Where the
    /// daemon refuses, recording goes on to the end, and the refusal is told there. What is not
    /// needed stays with the volume: [`Client::volume_resize`] takes it back. A ring never needs it.
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    pub fn grow_to(&mut self, limit: Bytes) -> Result<()> {
        let stream = self.stats()?;
        let volume = self.client.volume(&stream.volume)?;
        let growing = || Box::new(Growing::new(&stream, &volume, limit));
        self.growing = volume.ring.is_none().then(growing);
        Ok(())
    }

    #[inline]
    fn grow_ahead(&mut self, position: Bytes) {
        let Some(growing) = &mut self.growing else { return };
        if growing.is_due(position) {
            growing.grow(&self.client, position);
        }
    }

    /// What the daemon knows of this stream: its window, what was late, and why.
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    pub fn stats(&self) -> Result<Stream> {
        self.client.stream(self.stream)
    }

    /// Closes the stream, synced; gives the volume offset up to which everything
    /// is on the medium. A failed write that the caller does not know of yet is
    /// reported here, and the stream is closed all the same.
    ///
    /// # Errors
    /// When not everything came to the medium.
    pub fn close(self) -> Result<Bytes> {
        match self.carrier {
            Carrier::Shared(writer) => writer.close(),
            Carrier::Carried(writer) => writer.close(),
        }
    }
}

/// Why there is no more room.
fn explain(growing: &mut Option<Box<Growing>>, error: Error) -> Error {
    match growing {
        Some(growing) => growing.explain(error),
        None => error,
    }
}

/// The same without waiting, for a window that is mapped.
#[cfg(feature = "tokio")]
impl Writer {
    fn mapped(&mut self) -> &mut SharedWriter {
        match &mut self.carrier {
            Carrier::Shared(writer) => writer,
            Carrier::Carried(_) => unreachable!("only a shared window is used without waiting"),
        }
    }

    pub(crate) fn begin_sync(&mut self) -> Result<u64> {
        self.mapped().begin_sync()
    }

    /// Waits until it was answered, or nothing more comes.
    pub(crate) fn end_sync(&mut self, asked: u64) {
        self.mapped().end_sync(asked);
    }

    pub(crate) fn try_synced(&mut self, asked: u64) -> Result<Option<Bytes>> {
        self.mapped().try_synced(asked)
    }

    pub(crate) fn begin_seek(&mut self, to: Bytes) -> Result<()> {
        self.mapped().begin_seek(to)
    }

    pub(crate) fn try_sought(&mut self) -> Result<Option<()>> {
        self.mapped().try_sought()
    }

    pub(crate) fn begin_close(&mut self) -> Result<()> {
        self.mapped().begin_close()
    }

    pub(crate) fn try_closed(&mut self) -> Result<Option<Bytes>> {
        self.mapped().try_closed()
    }
}

impl Write for Writer {
    /// As much as there is room for. Waits for room where the caller is faster than its
    /// contract and the window is full.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.grow_ahead(self.accepted());
        let written = match &mut self.carrier {
            Carrier::Shared(writer) => writer.write(buf),
            Carrier::Carried(writer) => writer.write(buf),
        };
        Ok(written.map_err(|error| explain(&mut self.growing, error))?)
    }

    /// Returns when the daemon has accepted everything; not yet durable.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.carrier {
            Carrier::Shared(writer) => writer.flush()?,
            Carrier::Carried(writer) => writer.flush()?,
        }
        Ok(())
    }
}

impl AsFd for Writer {
    /// For `poll(2)`, after [`Writer::try_room`] gave nothing. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.carrier {
            Carrier::Shared(writer) => writer.line.as_fd(),
            Carrier::Carried(writer) => writer.as_fd(),
        }
    }
}

/// Follows how far a writer's bytes are durable.
#[derive(Clone, Debug)]
pub struct Durability(Follows);

#[derive(Clone, Debug)]
enum Follows {
    Shared(SharedDurability),
    Carried(CarriedDurability),
}

impl Durability {
    /// Waits until more than `beyond` is durable; gives how far. None when the
    /// writer has ended and nothing more will be.
    pub fn wait(&self, beyond: Bytes) -> Option<Bytes> {
        match &self.0 {
            Follows::Shared(follows) => follows.wait(beyond),
            Follows::Carried(follows) => follows.wait(beyond),
        }
    }
}
