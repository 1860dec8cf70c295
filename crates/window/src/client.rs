//! The program's end of a window.
//!
//! Invariants: the bytes of a piece belong to the program from when it takes the piece
//! until it has moved past them: the daemon tells of no byte that a disk may still
//! write, and moves nothing that the program was not done with. A piece that does not
//! lie in the data is not taken ([`Garbled`]).
#![allow(unsafe_code)]

use crate::memory::{Memory, Rights};
use crate::page::{self, Control, Kind, Mode, Piece, Word, fence};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::Bytes;

/// What lies in a control page makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled(pub &'static str);

impl fmt::Display for Garbled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl std::error::Error for Garbled {}

/// See the module.
#[derive(Debug)]
pub struct Client {
    data: Memory,
    control: Arc<Control>,
    mode: Mode,
    capacity: u64,
    /// The rest of the piece at hand: where it lies, how long it is.
    place: usize,
    left: usize,
    /// The volume offset of the next byte.
    offset: u64,
    /// The number of the next piece, and how many there are as far as is known.
    next: u64,
    published: u64,
    /// Bytes done with since the window was made.
    moved: u64,
    /// The last bell that was seen, and the last that was rung.
    bell_at: u64,
    rung: u64,
    waits: u64,
}

impl Client {
    /// The window in these two pieces of memory, at this offset of the volume.
    ///
    /// # Errors
    /// When they cannot be mapped or are no window.
    pub fn open(control: OwnedFd, data: OwnedFd, offset: Bytes) -> io::Result<Self> {
        let none = |what| io::Error::new(io::ErrorKind::InvalidData, Garbled(what));
        let control = Control::adopt(control, Rights::Write)?;
        if control.len() < page::len_for(page::RING_MIN) {
            return Err(none("a control page that is too short"));
        }
        let read = |at| page::word(&control, at).load(Ordering::Relaxed);
        if read(page::AT_MAGIC) != page::MAGIC || read(page::AT_LAYOUT) != page::LAYOUT {
            return Err(none("no control page, or one of another version"));
        }
        let mode = match read(page::AT_MODE) {
            0 => Mode::Read,
            1 => Mode::Write,
            _ => return Err(none("a window that goes neither way")),
        };
        let capacity = read(page::AT_CAPACITY);
        if !capacity.is_power_of_two() || capacity > page::slots_in(control.len()) {
            return Err(none("a ring that is larger than its page"));
        }
        let rights = if mode == Mode::Read { Rights::Read } else { Rights::Write };
        let (data, control) = (Memory::adopt(data, rights)?, Arc::new(control));
        let (place, left, next, published, moved) = (0, 0, 0, 0, 0);
        let (offset, bell_at, rung, waits) = (offset.get(), 0, 0, 0);
        Ok(Self {
            data,
            control,
            mode,
            capacity,
            place,
            left,
            offset,
            next,
            published,
            moved,
            bell_at,
            rung,
            waits,
        })
    }

    /// Makes the first `window` bytes of the data known to this process, so that the
    /// first lap of the window is as quick as all later ones.
    pub fn populate(&self, window: Bytes) {
        let len = usize::try_from(window.get()).unwrap_or(usize::MAX).min(self.data.len());
        let rights = if self.mode == Mode::Read { Rights::Read } else { Rights::Write };
        self.data.populate(0, len, rights);
    }

    /// Which way it goes.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The volume offset of the next byte.
    #[inline]
    pub fn offset(&self) -> Bytes {
        Bytes::new(self.offset)
    }

    /// Bytes that the program is done with since the window was made.
    pub fn moved(&self) -> Bytes {
        Bytes::new(self.moved)
    }

    /// Bytes at hand without asking anybody: the rest of the piece that was taken.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Takes the next piece, where there is one. Bytes and room are then at hand, a gap
    /// is passed, an end is only told of. Panics while something is at hand.
    ///
    /// # Errors
    /// Where the piece makes no sense.
    pub fn take(&mut self) -> Result<Option<Piece>, Garbled> {
        assert_eq!(self.left, 0, "the piece at hand is used up first");
        if self.next == self.published {
            self.published = self.word(page::AT_PUBLISHED).load(Ordering::Acquire);
            if self.next == self.published {
                return Ok(None);
            }
        }
        let piece = self.slot(self.next)?;
        self.next += 1;
        match piece.kind {
            Kind::Data | Kind::Room => {
                self.offset = piece.offset.get();
                self.place = piece.place.as_usize();
                self.left = piece.len.as_usize();
            }
            Kind::Gap => {
                self.offset = piece.offset.get() + piece.len.get();
                self.moved += piece.len.get();
                self.word(page::AT_MOVED).store(self.moved, Ordering::Release);
            }
            Kind::End => {}
        }
        Ok(Some(piece))
    }

    /// Whether the next piece is there, and has bytes or room.
    pub fn has_more(&mut self) -> bool {
        if self.next == self.published {
            self.published = self.word(page::AT_PUBLISHED).load(Ordering::Acquire);
        }
        let kind = |piece: Piece| matches!(piece.kind, Kind::Data | Kind::Room);
        self.next != self.published && self.slot(self.next).is_ok_and(kind)
    }

    /// The piece in a slot, checked.
    fn slot(&self, number: u64) -> Result<Piece, Garbled> {
        let at = page::slot(number, self.capacity);
        let read = |n: usize| self.word(at + n * 8).load(Ordering::Relaxed);
        let kind = Kind::from_number(read(0)).ok_or(Garbled("a piece of no kind"))?;
        let [place, offset, len] = [read(1), read(2), read(3)].map(Bytes::new);
        let fits = match kind {
            Kind::Data | Kind::Room => {
                let wanted = if self.mode == Mode::Read { Kind::Data } else { Kind::Room };
                let end = place.checked_add(len);
                kind == wanted && end.is_some_and(|end| end.get() <= self.data.len() as u64)
            }
            Kind::Gap => true,
            Kind::End => len.is_zero(),
        };
        let counts =
            offset.checked_add(len).is_some() && self.moved.checked_add(len.get()).is_some();
        if !fits || !counts || (len.is_zero() && kind != Kind::End) {
            return Err(Garbled("a piece outside its window"));
        }
        Ok(Piece { kind, place, offset, len })
    }

    /// The bytes at hand, at most `len_max`.
    #[inline]
    pub fn bytes(&self, len_max: usize) -> &[u8] {
        let len = self.left.min(len_max);
        // SAFETY: `take` has checked that the piece lies in the data, which lives as long
        // as `self` and cannot shrink. The daemon, which this process trusts as it trusts
        // the kernel, lets nothing write there before the program has moved past it, for
        // which `self` is borrowed exclusively. A reader's mapping cannot be written to,
        // and a writer's only through `bytes_mut`, which borrows `self` exclusively.
        unsafe { std::slice::from_raw_parts(self.data.base().wrapping_add(self.place), len) }
    }

    /// The room at hand, at most `len_max`; it holds whatever it held before. Panics on
    /// a reader's window.
    #[inline]
    pub fn bytes_mut(&mut self, len_max: usize) -> &mut [u8] {
        assert_eq!(self.mode, Mode::Write, "a reader's window is not written to");
        let len = self.left.min(len_max);
        // SAFETY: as in `bytes`; the mapping of a writer's data may be written to, and
        // `self` is borrowed exclusively. A device may read these bytes only once the
        // program has moved past them.
        unsafe { std::slice::from_raw_parts_mut(self.data.base().wrapping_add(self.place), len) }
    }

    /// Is done with `len` bytes of those at hand; true where the bell is to be rung.
    /// Panics where less is at hand.
    #[inline]
    #[must_use = "the daemon may sleep"]
    pub fn advance(&mut self, len: usize) -> bool {
        assert!(len <= self.left, "more than is at hand");
        self.place += len;
        self.left -= len;
        self.offset += len as u64;
        self.moved += len as u64;
        self.word(page::AT_MOVED).store(self.moved, Ordering::Release);
        // The mark never falls: before the last that was seen, no look is needed.
        self.moved >= self.bell_at && self.passes_bell()
    }

    /// Whether the mark that the daemon wants to hear of is passed, and was not told.
    #[must_use = "the daemon may sleep"]
    pub fn passes_bell(&mut self) -> bool {
        fence(Ordering::SeqCst);
        self.bell_at = self.word(page::AT_BELL).load(Ordering::Relaxed);
        let rings = self.moved >= self.bell_at && self.rung != self.bell_at;
        if rings {
            self.rung = self.bell_at;
        }
        rings
    }

    /// Says that the program waits for the next piece; false where there is one by now.
    /// True: news will come, and the bell is to be rung.
    #[must_use = "there may be a piece already"]
    pub fn begin_to_wait(&mut self) -> bool {
        self.waits += 1;
        self.word(page::AT_WAITING).store(self.waits, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Whatever is there, `take` gets it in order.
        let waits = self.word(page::AT_PUBLISHED).load(Ordering::Relaxed) == self.next;
        if !waits {
            self.word(page::AT_WAITING).store(0, Ordering::Relaxed);
        }
        waits
    }

    /// The playout point was moved to `offset`: the next piece is the one of this number,
    /// and what was at hand is not.
    pub fn sought(&mut self, first: u64, offset: Bytes) {
        self.left = 0;
        self.next = first;
        self.published = first;
        self.offset = offset.get();
    }

    /// Whether the daemon has said that nothing more comes.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.word(page::AT_OVER).load(Ordering::Acquire) != 0
    }

    /// For other threads.
    pub fn watch(&self) -> Watch {
        Watch { control: Arc::clone(&self.control) }
    }

    #[inline]
    fn word(&self, at: usize) -> &Word {
        page::word(&self.control, at)
    }
}

/// What any thread of the program may look at: how far a writer's bytes are durable.
#[derive(Clone, Debug)]
pub struct Watch {
    control: Arc<Control>,
}

impl Watch {
    /// Everything before this volume offset survives a crash.
    pub fn durable(&self) -> Bytes {
        Bytes::new(page::word(&self.control, page::AT_DURABLE).load(Ordering::Acquire))
    }

    /// Says that this thread waits until more than `beyond` is durable; false where it
    /// is by now. True: news will come.
    #[must_use = "it may be durable already"]
    pub fn begin_to_wait(&self, beyond: Bytes) -> bool {
        // Numbers from 1; the word starts at zero, which nobody reaches again.
        page::word(&self.control, page::AT_DURABLE_WAITING).fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.durable() <= beyond
    }
}
