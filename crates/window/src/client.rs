//! The program's end of a window.
//!
//! The program has a *playout point*, where it reads or fills next, and may set it anywhere
//! among the bytes that it was told of and that are held ([`Client::held`]). What the daemon
//! hears of (`moved`) is the *line*: everything before it may be used again, in whole
//! pieces. The line is behind the playout point by as much as the program wants to keep, and
//! it never goes back.
//!
//! Invariants: the bytes of a piece belong to the program from when it hears of the piece
//! until the line is past the piece: the daemon tells of no byte that a disk may still
//! write, and moves nothing that the program was not done with. A piece that does not
//! lie in the data, or does not follow the one before it, is not taken ([`Garbled`]).
//! `line <= offset` or the program has gone back; both lie in `known` or at its end.
#![allow(unsafe_code)]

use crate::memory::{Memory, Rights, Ring};
use crate::page::{self, Control, Kind, Mode, Piece, Word, fence};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
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
    /// The first part of the data once more, twice, one behind the other.
    ring: Option<Ring>,
    /// So much of the data is known to this process.
    populated: usize,
    control: Arc<Control>,
    mode: Mode,
    capacity: u64,
    /// The rest of the piece at hand: where it lies, how long it is.
    place: usize,
    left: usize,
    /// The playout point: the volume offset of the next byte.
    offset: u64,
    /// Pieces that the program has heard of and that are held, in the volume's order.
    known: VecDeque<Piece>,
    /// How many of these were taken: the one at hand is the last of them.
    taken: usize,
    /// Behind the last of them.
    filled: u64,
    /// The number of the next piece to hear of, and how many there are as far as is known.
    next: u64,
    published: u64,
    /// The volume offset before which the daemon may use memory again, and how many bytes
    /// the program was done with there since the window was made.
    line: u64,
    moved: u64,
    /// How many bytes behind the playout point are kept.
    keep: u64,
    /// The furthest playout point before the program last went back, and the bytes of gaps
    /// before that.
    reached: u64,
    gaps: u64,
    /// The last bell that was seen, and the last that was rung.
    bell_at: u64,
    rung: u64,
    waits: u32,
}

/// What a look at some place of a window finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look<'a> {
    /// Bytes, at least one.
    Data(&'a [u8]),
    /// The disk failed on the bytes up to here.
    Gap {
        /// The volume offset behind them.
        end: Bytes,
    },
    /// The program was not told of this byte yet.
    NotYet,
    /// Its memory may have been used again, or belongs to the room of a writer.
    Gone,
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
            2 => Mode::Update,
            _ => return Err(none("a window that goes neither way")),
        };
        let capacity = read(page::AT_CAPACITY);
        if !capacity.is_power_of_two() || capacity > page::slots_in(control.len()) {
            return Err(none("a ring that is larger than its page"));
        }
        let rights = if mode == Mode::Read { Rights::Read } else { Rights::Write };
        let (data, control) = (Memory::adopt(data, rights)?, Arc::new(control));
        let offset = offset.get();
        Ok(Self {
            data,
            ring: None,
            populated: 0,
            control,
            mode,
            capacity,
            place: 0,
            left: 0,
            offset,
            known: VecDeque::new(),
            taken: 0,
            filled: offset,
            next: 0,
            published: 0,
            line: offset,
            moved: 0,
            keep: 0,
            reached: offset,
            gaps: 0,
            bell_at: 0,
            rung: 0,
            waits: 0,
        })
    }

    /// Makes the first `window` bytes of the data known to this process, so that the
    /// first lap of the window is as quick as all later ones; and maps them twice, one
    /// behind the other, so that what lies across their end lies in one piece all the same.
    /// Where the system has no addresses for that, everything works as before.
    pub fn populate(&mut self, window: Bytes) {
        let len = usize::try_from(window.get()).unwrap_or(usize::MAX).min(self.data.len());
        let rights = if self.mode == Mode::Read { Rights::Read } else { Rights::Write };
        (self.ring, self.populated) = (self.data.ring(len, rights).ok(), len);
        match &self.ring {
            Some(ring) => ring.populate(rights),
            None => self.data.populate(0, len, rights),
        }
    }

    /// The window is so long from now on: what it has more is made known to this process, too.
    pub fn widen(&mut self, window: Bytes) {
        let len = usize::try_from(window.get()).unwrap_or(usize::MAX).min(self.data.len());
        if len > self.populated {
            let rights = if self.mode == Mode::Read { Rights::Read } else { Rights::Write };
            self.data.populate(self.populated, len - self.populated, rights);
            self.populated = len;
        }
    }

    /// Which way it goes.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The playout point: the volume offset of the next byte.
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

    /// Takes the next piece, where there is one: the rest of it, where the playout point
    /// was set into it. Bytes and room are then at hand, a gap is passed, an end is only
    /// told of. Panics while something is at hand.
    ///
    /// # Errors
    /// Where the piece makes no sense.
    pub fn take(&mut self) -> Result<Option<Piece>, Garbled> {
        assert_eq!(self.left, 0, "the piece at hand is used up first");
        if self.taken == self.known.len() {
            let Some(piece) = self.hear()? else { return Ok(None) };
            if piece.kind == Kind::End {
                return Ok(Some(piece));
            }
        }
        let mut piece = self.known[self.taken];
        self.taken += 1;
        let passed = Bytes::new(self.offset - piece.offset.get());
        (piece.offset, piece.len) = (piece.offset + passed, piece.len - passed);
        if piece.kind == Kind::Gap {
            self.pass(self.offset + piece.len.get());
            self.follow();
        } else {
            piece.place += passed;
            (self.place, self.left) = (piece.place.as_usize(), piece.len.as_usize());
        }
        Ok(Some(piece))
    }

    /// Whether the next piece is there, and has bytes or room.
    pub fn has_more(&mut self) -> bool {
        let kind = |piece: Piece| matches!(piece.kind, Kind::Data | Kind::Room);
        if let Some(&next) = self.known.get(self.taken) {
            return kind(next);
        }
        self.look();
        self.next != self.published && self.slot(self.next).is_ok_and(kind)
    }

    /// Hears of all pieces that there are. True where one of them was the end: it is told
    /// once more when the program gets there and waits.
    ///
    /// # Errors
    /// Where a piece makes no sense.
    pub fn hear_all(&mut self) -> Result<bool, Garbled> {
        let mut ended = false;
        while let Some(piece) = self.hear()? {
            ended = piece.kind == Kind::End;
        }
        Ok(ended)
    }

    /// Hears of the next piece, where there is one.
    fn hear(&mut self) -> Result<Option<Piece>, Garbled> {
        self.look();
        if self.next == self.published {
            return Ok(None);
        }
        self.forget();
        let piece = self.slot(self.next)?;
        let slots = self.published.wrapping_sub(self.next).max(self.known.len() as u64 + 1);
        if slots > self.capacity {
            return Err(Garbled("more pieces than there are slots"));
        }
        self.next += 1;
        if piece.kind != Kind::End {
            self.filled += piece.len.get();
            self.known.push_back(piece);
        }
        Ok(Some(piece))
    }

    /// Looks how many pieces there are, where all that are known of were heard of.
    fn look(&mut self) {
        if self.next == self.published {
            self.published = self.word(page::AT_PUBLISHED).load(Ordering::Acquire);
        }
    }

    /// Whether the program has heard of all pieces that there are.
    pub fn has_heard_all(&mut self) -> bool {
        self.look();
        self.next == self.published
    }

    /// How many pieces the program has heard of since the window was made.
    pub fn heard(&self) -> u64 {
        self.next
    }

    /// Pieces before the line are not held any more.
    fn forget(&mut self) {
        while let Some(first) = self.known.front()
            && (first.offset + first.len).get() <= self.line
            && self.taken > 0
        {
            self.known.pop_front();
            self.taken -= 1;
        }
    }

    /// The volume offsets of what is held: bytes, gaps or room. From the beginning of the
    /// piece that the line is in, which the daemon does not use again before the line has
    /// passed all of it, to the end of what was told, as far as the program has heard.
    pub fn held(&self) -> Range<Bytes> {
        let mut held = self.known.iter().map(|piece| (piece.offset, piece.offset + piece.len));
        let first = held.find(|(_, end)| end.get() > self.line);
        first.map_or(Bytes::new(self.line), |(start, _)| start)..Bytes::new(self.filled)
    }

    /// From now on so many bytes behind the playout point are held, as far as they are now.
    /// What may be touched ahead of it is less by as much. True: the bell is to be rung.
    #[must_use = "the daemon may sleep"]
    pub fn keep(&mut self, len: Bytes) -> bool {
        self.keep = len.get();
        self.follow_and_ring()
    }

    /// The line follows the playout point. True: the bell is to be rung.
    fn follow_and_ring(&mut self) -> bool {
        self.follow() && self.moved >= self.bell_at && self.passes_bell()
    }

    /// The line follows the playout point; whether it has moved.
    #[inline]
    fn follow(&mut self) -> bool {
        let to = self.offset.saturating_sub(self.keep);
        if to <= self.line {
            return false;
        }
        self.moved += to - self.line;
        self.line = to;
        self.word(page::AT_MOVED).store(self.moved, Ordering::Release);
        true
    }

    /// The playout point goes on to `to`, over all that lies between.
    fn pass(&mut self, to: u64) {
        self.reached = self.reached.max(self.offset);
        for piece in self.known.iter().filter(|piece| piece.kind == Kind::Gap) {
            let (start, end) = (piece.offset.get(), (piece.offset + piece.len).get());
            self.gaps += end.min(to).saturating_sub(start.max(self.reached));
        }
        self.offset = to;
    }

    /// Bytes of gaps that the playout point has passed, once each.
    pub fn gaps(&self) -> Bytes {
        Bytes::new(self.gaps)
    }

    /// Sets the playout point to any place that is [held](Client::held), or to the end of
    /// that; true where the bell is to be rung. None, and nothing has changed, where it is
    /// another place.
    ///
    /// # Errors
    /// Where a piece makes no sense.
    pub fn set_playout(&mut self, to: Bytes) -> Result<Option<bool>, Garbled> {
        self.hear_all()?;
        self.forget();
        let held = self.held();
        if to < held.start || to > held.end {
            return Ok(None);
        }
        self.taken = self.known.partition_point(|piece| piece.offset + piece.len <= to);
        self.left = 0;
        self.pass(to.get());
        Ok(Some(self.follow_and_ring()))
    }

    /// What lies at a place of the volume, at most `len_max` bytes of it, wherever the
    /// playout point is: as much as lies in one piece of memory.
    ///
    /// # Errors
    /// Where a piece makes no sense.
    pub fn look_at(&mut self, at: Bytes, len_max: usize) -> Result<Look<'_>, Garbled> {
        self.hear_all()?;
        let held = self.held();
        if at < held.start || self.mode == Mode::Write {
            return Ok(Look::Gone);
        }
        let index = self.known.partition_point(|piece| piece.offset + piece.len <= at);
        let Some(piece) = self.known.get(index) else { return Ok(Look::NotYet) };
        if piece.kind == Kind::Gap {
            return Ok(Look::Gap { end: piece.offset + piece.len });
        }
        let (start, len) = self.run(index, at - piece.offset, len_max);
        // SAFETY: as in `bytes`: all of the run lies in pieces that are held, of a mapping
        // that nobody writes to but through `self`, exclusively; so does moving the line.
        Ok(Look::Data(unsafe { std::slice::from_raw_parts(start, len) }))
    }

    /// Where the bytes from `within` a piece on lie, and how many lie there in a row, over
    /// as many pieces as do.
    fn run(&self, index: usize, within: Bytes, len_max: usize) -> (*mut u8, usize) {
        let first = self.known[index];
        let start = self.address(first.place, first.len).wrapping_add(within.as_usize());
        let mut len = (first.len - within).as_usize();
        let (mut end, mut turned) = (first.place + first.len, false);
        let in_ring = self.in_ring(first.place, first.len);
        for piece in self.known.range(index + 1..) {
            let same = piece.kind == first.kind && self.in_ring(piece.place, piece.len) == in_ring;
            if len >= len_max || !same {
                break;
            }
            let wraps = in_ring && !turned && piece.place.is_zero() && self.ends_ring(end);
            turned |= wraps;
            let next = piece.place + piece.len;
            if !(wraps || piece.place == end) || (turned && next > first.place) {
                break;
            }
            end = next;
            len += piece.len.as_usize();
        }
        (start, len.min(len_max))
    }

    /// Whether all of a piece lies in the ring.
    fn in_ring(&self, place: Bytes, len: Bytes) -> bool {
        self.ring.as_ref().is_some_and(|ring| (place + len).as_usize() <= ring.len())
    }

    fn ends_ring(&self, at: Bytes) -> bool {
        self.ring.as_ref().is_some_and(|ring| at.as_usize() == ring.len())
    }

    /// The address of a piece: in the ring, where all of it lies there.
    fn address(&self, place: Bytes, len: Bytes) -> *mut u8 {
        let base = match &self.ring {
            Some(ring) if self.in_ring(place, len) => ring.base(),
            _ => self.data.base(),
        };
        base.wrapping_add(place.as_usize())
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
        let ahead = self.filled.saturating_sub(self.line);
        let counts = offset.checked_add(len).is_some()
            && self.moved.checked_add(ahead).and_then(|told| told.checked_add(len.get())).is_some();
        if !fits || !counts || (len.is_zero() && kind != Kind::End) {
            return Err(Garbled("a piece outside its window"));
        }
        if offset.get() != self.filled && kind != Kind::End {
            return Err(Garbled("a piece that does not follow the one before it"));
        }
        Ok(Piece { kind, place, offset, len })
    }

    /// The bytes at hand, at most `len_max`.
    #[inline]
    pub fn bytes(&self, len_max: usize) -> &[u8] {
        let len = self.left.min(len_max);
        // SAFETY: `hear` has checked that the piece lies in the data, which lives as long
        // as `self` and cannot shrink. The daemon, which this process trusts as it trusts
        // the kernel, lets nothing write there before the line has moved past it, for
        // which `self` is borrowed exclusively. A reader's mapping cannot be written to,
        // and a writer's only through `bytes_mut`, which borrows `self` exclusively.
        unsafe { std::slice::from_raw_parts(self.hand(), len) }
    }

    /// The bytes at hand and those behind them, at most `len_max`: as many as are there and
    /// lie in a row, over as many pieces as do. None where nothing is at hand.
    ///
    /// # Errors
    /// Where a piece makes no sense.
    pub fn bytes_in_a_row(&mut self, len_max: usize) -> Result<&[u8], Garbled> {
        let (start, len) = self.row(len_max)?;
        // SAFETY: as in `bytes`: the row lies in pieces that were told and are not moved past.
        Ok(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The room at hand, at most `len_max`; it holds whatever it held before. Panics on
    /// a reader's window.
    #[inline]
    pub fn bytes_mut(&mut self, len_max: usize) -> &mut [u8] {
        assert_ne!(self.mode, Mode::Read, "a reader's window is not written to");
        let len = self.left.min(len_max);
        // SAFETY: as in `bytes`; the mapping of a writer's data may be written to, and
        // `self` is borrowed exclusively. A device may read these bytes only once the
        // program has moved past them.
        unsafe { std::slice::from_raw_parts_mut(self.hand(), len) }
    }

    /// The room at hand and behind it, as [`Client::bytes_in_a_row`].
    ///
    /// # Errors
    /// Where a piece makes no sense.
    pub fn room_in_a_row(&mut self, len_max: usize) -> Result<&mut [u8], Garbled> {
        assert_ne!(self.mode, Mode::Read, "a reader's window is not written to");
        let (start, len) = self.row(len_max)?;
        // SAFETY: as in `bytes_mut`; the row is less than a turn, so that no byte of it is
        // there twice.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Memory of a writer's for the byte at a place that is [held](Client::held) and not before
    /// the playout point, and behind it, at most `len_max` in a row; none for other places. Of
    /// a window that goes both ways, it holds what the volume holds, and what is kept behind
    /// the playout point may be changed as well.
    ///
    /// # Errors
    /// Where a piece makes no sense.
    pub fn room_at(&mut self, at: Bytes, len_max: usize) -> Result<Option<&mut [u8]>, Garbled> {
        assert_ne!(self.mode, Mode::Read, "a reader's window is not written to");
        self.hear_all()?;
        let first = if self.mode == Mode::Update { self.line } else { self.offset };
        if at.get() < first || at.get() >= self.filled {
            return Ok(None);
        }
        let index = self.known.partition_point(|piece| piece.offset + piece.len <= at);
        let (start, len) = self.run(index, at - self.known[index].offset, len_max);
        // SAFETY: as in `room_in_a_row`: the program has not moved past any of it.
        Ok(Some(unsafe { std::slice::from_raw_parts_mut(start, len) }))
    }

    fn row(&mut self, len_max: usize) -> Result<(*mut u8, usize), Garbled> {
        if self.left >= len_max || self.left == 0 {
            return Ok((self.hand(), self.left.min(len_max)));
        }
        self.hear_all()?;
        let piece = self.known[self.taken - 1];
        let within = piece.len - Bytes::new(self.left as u64);
        Ok(self.run(self.taken - 1, within, len_max))
    }

    /// Where the rest of the piece at hand lies.
    #[inline]
    fn hand(&self) -> *mut u8 {
        let base = match &self.ring {
            Some(ring) if self.place + self.left <= ring.len() => ring.base(),
            _ => self.data.base(),
        };
        base.wrapping_add(self.place)
    }

    /// Is done with `len` bytes: of those at hand, or also of those that the program has
    /// heard of behind them, up to a gap; true where the bell is to be rung. Panics where
    /// less is there.
    #[inline]
    #[must_use = "the daemon may sleep"]
    pub fn advance(&mut self, len: usize) -> bool {
        if len > self.left {
            self.advance_beyond(len);
        } else {
            self.place += len;
            self.left -= len;
            self.offset += len as u64;
        }
        // The mark never falls: before the last that was seen, no look is needed.
        self.follow_and_ring()
    }

    /// Goes on into the pieces behind the one at hand.
    fn advance_beyond(&mut self, len: usize) {
        let hand = self.taken.saturating_sub(1);
        let kind = self.known.get(hand).map(|piece| piece.kind);
        let same = self.known.range(hand..).take_while(|piece| Some(piece.kind) == kind);
        let there: u64 = same.skip(1).map(|piece| piece.len.get()).sum();
        assert!(self.left > 0 && len as u64 <= self.left as u64 + there, "more than is there");
        self.offset += len as u64;
        let at = self.known.partition_point(|piece| (piece.offset + piece.len).get() < self.offset);
        let piece = self.known[at];
        let passed = self.offset - piece.offset.get();
        self.taken = at + 1;
        self.place = piece.place.as_usize() + passed as usize;
        self.left = piece.len.as_usize() - passed as usize;
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
        self.waits = self.waits.wrapping_add(1).max(1);
        let wait = page::wait(self.waits, self.next);
        self.word(page::AT_WAITING).store(wait, Ordering::Relaxed);
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
        self.known.clear();
        self.taken = 0;
        self.next = first;
        self.published = first;
        (self.offset, self.line, self.filled) = (offset.get(), offset.get(), offset.get());
        self.reached = offset.get();
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
