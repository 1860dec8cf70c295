//! The data protocol: frames on a byte stream.
//!
//! Every frame is a head of 32 bytes and a body of a stated length. All numbers
//! are little-endian:
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0..4 | body | length of the body that follows the head |
//! | 4 | kind | which frame this is |
//! | 5 | - | zero |
//! | 6..8 | code | a protocol version, or a [`Code`] |
//! | 8..16 | tag | chosen by the client, comes back with the answer; or a stream's number |
//! | 16..24 | offset | bytes from the start of the volume |
//! | 24..32 | len | a number of bytes |
//!
//! The head has a fixed length, so that whoever holds the destination of a body
//! (a playout window, a caller's buffer) can receive it there, without a copy.
//!
//! Invariants: a field that a kind does not use is zero, and decoding refuses
//! anything else; a quantity is within the limits of [`units::Outside`]; a body is never
//! longer than its kind allows; what is decoded encodes to the same bytes.

use crate::Code;
use crate::control::Priority;
use std::fmt;
use std::num::NonZeroU64;
use units::{Bytes, Duration, OutOfRange, Outside};

/// The version of this protocol, sent in the first frame of each side.
pub const VERSION: u16 = 6;
/// Length of every head.
pub const HEAD_LEN: usize = 32;
/// Longest body: the longest single transfer of a disk.
pub const BODY_MAX: usize = 1 << 20;
/// Longest name of a volume.
pub const NAME_MAX: usize = 255;
/// Longest JSON body.
pub const JSON_MAX: usize = 16 << 10;
/// Longest text of an error.
pub const TEXT_MAX: usize = 1024;
/// Requests that one best-effort connection may have unanswered.
pub const OUTSTANDING_MAX: usize = 64;
/// `Write` frames that a writer may have unanswered.
pub const WRITES_MAX: usize = 4;

const _: () = assert!(NAME_MAX <= BODY_MAX && JSON_MAX <= BODY_MAX && TEXT_MAX <= BODY_MAX);
const _: () = assert!(BODY_MAX <= u32::MAX as usize);

/// What a frame says, apart from its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Client, first: carry the bytes of this stream.
    HelloStream {
        /// The client's [`VERSION`].
        version: u16,
        /// The number that opening the stream gave.
        stream: u64,
    },
    /// Client, first: best effort on the volume that the body names.
    HelloVolume {
        /// The client's [`VERSION`].
        version: u16,
        /// What the handle states; none: as the volume's service says.
        priority: Option<Priority>,
        /// Whose writes its writes are, see [`FileAsk::writer`](crate::control::FileAsk::writer); in
        /// `offset`, zero where nobody's.
        writer: Option<NonZeroU64>,
    },
    /// Client, first: as [`Head::HelloVolume`], under a contract of this connection's own, which
    /// ends with it: an operation of at most `len` bytes is answered `within` a time, if it
    /// comes `every` so long after the one before it on the same disk, or later. Answer:
    /// [`Head::Welcome`], or [`Head::Failed`] where admission or a quota refuses it.
    HelloInTime {
        /// The client's [`VERSION`].
        version: u16,
        /// The longest operation: a multiple of 4 KiB, at most [`BODY_MAX`].
        len: Bytes,
        /// In nanoseconds, in `offset`.
        within: Duration,
        /// In nanoseconds, in `tag`.
        every: Duration,
    },
    /// Client, first: a contract on a file. The body is a
    /// [`FileOpen`](crate::control::FileOpen) in JSON. Answer: [`Head::Give`] and, when the file is
    /// given, [`Head::FileOpened`]; or [`Head::Refused`]. Then the connection ends; the stream's
    /// bytes travel as every stream's.
    HelloFile {
        /// The client's [`VERSION`].
        version: u16,
    },
    /// Client, to [`Head::Give`], with the descriptor of a file that it has opened for reading, and no
    /// other.
    Given,
    /// Client, first: this stream's window is shared memory. [`Head::Welcome`] then comes
    /// with two descriptors: the control page, and the data.
    HelloWindow {
        /// The client's [`VERSION`].
        version: u16,
        /// The number that opening the stream gave.
        stream: u64,
    },
    /// Shared window: look at the control page. Sent when the mark that the daemon has
    /// set is passed, when the program begins to wait, and to have a part of a block
    /// noticed; more often is refused.
    Bell,
    /// Reader: go on at another place. What was told before and is still under way is
    /// void. Answer: [`Head::Sought`], or [`Head::Failed`] with this tag, which changes
    /// nothing.
    Seek {
        /// Comes back with a failure; not zero.
        tag: u64,
        /// Where to.
        offset: Bytes,
    },
    /// A stream's program will not be heard for so long: it is not taken for one that hangs.
    /// Has no answer. What it does next ends the pause.
    Pause {
        /// At most a day counts.
        span: Duration,
    },
    /// Reader: the next bytes at the playout point, at most `len` of them.
    /// Answer: [`Head::Data`], [`Head::Gap`] or [`Head::End`].
    Next {
        /// At least 1; more than [`BODY_MAX`] means [`BODY_MAX`].
        len: Bytes,
    },
    /// Writer: the body comes next in the volume. Answer: [`Head::Accepted`];
    /// at most [`WRITES_MAX`] may be unanswered. Where less than the body was
    /// accepted, [`Head::Failed`] with the reason goes before the answer, and
    /// nothing more is accepted until a `Sync` is answered.
    Write,
    /// Writer: put everything on the medium. Answer: [`Head::Synced`].
    Sync,
    /// Close the stream; a writer is synced first. Answer: [`Head::Closed`].
    Close,
    /// Best effort: read. Answer: [`Head::ReadDone`]. Offset and length are
    /// multiples of 4 KiB.
    ReadAt {
        /// Comes back with the answer; not zero.
        tag: u64,
        /// Where.
        offset: Bytes,
        /// How much, at most [`BODY_MAX`].
        len: Bytes,
    },
    /// Best effort: write the body, any bytes; with what comes before it in its first
    /// 4 KiB it has at most [`BODY_MAX`]. Answer: [`Head::WriteDone`], and from then on
    /// whoever reads finds it. Writes of the same bytes take effect in the order in which
    /// the daemon took them.
    WriteAt {
        /// Comes back with the answer; not zero.
        tag: u64,
        /// Where.
        offset: Bytes,
    },
    /// Best effort: make durable what was answered with [`Head::WriteDone`], on whichever
    /// connection. Fails where a write of this connection has failed since its last sync.
    /// Answer: [`Head::SyncDone`].
    SyncAll {
        /// Comes back with the answer; not zero.
        tag: u64,
    },
    /// Daemon, first: the connection is tied.
    Welcome {
        /// The daemon's [`VERSION`].
        version: u16,
        /// The playout point of the stream; zero for best effort.
        offset: Bytes,
        /// The size of the volume.
        len: Bytes,
    },
    /// Shared window, to a program that waits: look at the control page.
    News,
    /// Before the `Sought` of a reader: from when on its contract holds in full at the new
    /// place. Until then it has its burst once, when that is there.
    Steady {
        /// From now on; in nanoseconds in `len`.
        after: Duration,
    },
    /// The answer to `Seek`.
    Sought {
        /// Shared windows: the number of the first piece that counts. Zero otherwise.
        first: u64,
        /// The playout point.
        offset: Bytes,
        /// Until the first bytes are there, at the most; in nanoseconds in `len`.
        ready: Duration,
    },
    /// The client may hand over the file of its [`Head::HelloFile`] now: before, and otherwise, the
    /// daemon takes no descriptors.
    Give,
    /// The contract on a file is taken. The body is a
    /// [`FileOpened`](crate::control::FileOpened) in JSON.
    FileOpened {
        /// The number of the stream.
        stream: u64,
    },
    /// The contract on a file is not taken. The body is a [`Problem`](crate::Problem) in
    /// JSON.
    Refused {
        /// What went wrong.
        code: Code,
    },
    /// The body is at `offset`; the playout point is behind it.
    Data {
        /// Where the body starts.
        offset: Bytes,
    },
    /// The volume's recorded data ends here.
    End {
        /// The playout point.
        offset: Bytes,
    },
    /// The disk failed on these bytes; the playout point is behind them.
    Gap {
        /// Where the gap starts.
        offset: Bytes,
        /// How long it is.
        len: Bytes,
    },
    /// A `Write` is in the window; it is not yet on the medium.
    Accepted {
        /// The volume offset behind the last accepted byte.
        upto: Bytes,
    },
    /// Unasked: more of a writer's bytes are on the medium.
    Durable {
        /// Everything before this volume offset survives a crash.
        upto: Bytes,
    },
    /// The answer to `Sync`.
    Synced {
        /// Everything before this volume offset survives a crash.
        upto: Bytes,
    },
    /// The answer to `Close`, and the daemon's last frame.
    Closed {
        /// Writers: everything before this volume offset survives a crash.
        upto: Bytes,
    },
    /// The bytes that `ReadAt` asked for.
    ReadDone {
        /// Of the request.
        tag: u64,
    },
    /// `WriteAt` is on the disk, durable after the next sync.
    WriteDone {
        /// Of the request.
        tag: u64,
    },
    /// `SyncAll` is done.
    SyncDone {
        /// Of the request.
        tag: u64,
    },
    /// What was asked cannot be done. The body says why in one line and, after
    /// a line break, what to do.
    Failed {
        /// Of the request; zero where it concerns the connection or its stream.
        tag: u64,
        /// What went wrong.
        code: Code,
    },
}

/// Why bytes are no frame. The connection cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// No frame has this kind.
    Kind(u8),
    /// A field that this kind does not use is not zero, or a code is unknown.
    Field(u8),
    /// An offset, a length or a time that nothing can have.
    Range {
        /// The frame's kind.
        kind: u8,
        /// What it said, and the most that is taken.
        refused: OutOfRange,
    },
    /// A body longer than its kind allows.
    Body {
        /// The frame's kind.
        kind: u8,
        /// What it announced.
        len: u32,
        /// What is allowed.
        max: u32,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "no frame has kind {kind}"),
            Self::Field(kind) => write!(f, "a frame of kind {kind} with a field it has no use for"),
            Self::Range { kind, refused } => write!(f, "a frame of kind {kind}: {refused}"),
            Self::Body { kind, len, max } => {
                write!(f, "a frame of kind {kind} with a body of {len} bytes, {max} are allowed")
            }
        }
    }
}
impl std::error::Error for FrameError {}

/// The fields of a head as they lie in the bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Raw {
    kind: u8,
    code: u16,
    tag: u64,
    offset: u64,
    len: u64,
}

/// One row of the protocol: number, name, and the longest body.
pub struct Kind {
    /// The number in the head.
    pub number: u8,
    /// The name of the frame.
    pub name: &'static str,
    /// The longest body, in bytes.
    pub body_max: usize,
}

const fn kind(number: u8, name: &'static str, body_max: usize) -> Kind {
    Kind { number, name, body_max }
}

/// Every frame there is. Clients send kinds below 64, the daemon those above.
pub const KINDS: &[Kind] = &[
    kind(1, "HelloStream", 0),
    kind(2, "HelloVolume", NAME_MAX),
    kind(3, "Next", 0),
    kind(4, "Write", BODY_MAX),
    kind(5, "Sync", 0),
    kind(6, "Close", 0),
    kind(7, "ReadAt", 0),
    kind(8, "WriteAt", BODY_MAX),
    kind(9, "SyncAll", 0),
    kind(10, "HelloWindow", 0),
    kind(11, "Bell", 0),
    kind(12, "Seek", 0),
    kind(13, "Pause", 0),
    kind(20, "HelloInTime", NAME_MAX),
    kind(32, "HelloFile", JSON_MAX),
    kind(33, "Given", 0),
    kind(65, "Welcome", 0),
    kind(66, "Data", BODY_MAX),
    kind(67, "End", 0),
    kind(68, "Gap", 0),
    kind(69, "Accepted", 0),
    kind(70, "Durable", 0),
    kind(71, "Synced", 0),
    kind(72, "Closed", 0),
    kind(73, "ReadDone", BODY_MAX),
    kind(74, "WriteDone", 0),
    kind(75, "SyncDone", 0),
    kind(76, "Failed", TEXT_MAX),
    kind(77, "News", 0),
    kind(78, "Sought", 0),
    kind(79, "Steady", 0),
    kind(96, "FileOpened", JSON_MAX),
    kind(97, "Refused", JSON_MAX),
    kind(98, "Give", 0),
];

/// A stated priority as a number; zero where none is.
const fn number_of(priority: Option<Priority>) -> u64 {
    match priority {
        None => 0,
        Some(Priority::Interactive) => 1,
        Some(Priority::Normal) => 2,
        Some(Priority::Background) => 3,
    }
}

/// The other way round; none where the number is unknown.
const fn priority_of(number: u64) -> Option<Option<Priority>> {
    match number {
        0 => Some(None),
        1 => Some(Some(Priority::Interactive)),
        2 => Some(Some(Priority::Normal)),
        3 => Some(Some(Priority::Background)),
        _ => None,
    }
}

impl Head {
    fn raw(self) -> Raw {
        let raw = Raw::default();
        match self {
            Self::HelloStream { version, stream } => {
                Raw { kind: 1, code: version, tag: stream, ..raw }
            }
            Self::HelloVolume { version, priority, writer } => {
                let offset = writer.map_or(0, NonZeroU64::get);
                Raw { kind: 2, code: version, tag: number_of(priority), offset, ..raw }
            }
            Self::HelloWindow { version, stream } => {
                Raw { kind: 10, code: version, tag: stream, ..raw }
            }
            Self::HelloInTime { version, len, within, every } => Raw {
                kind: 20,
                code: version,
                tag: every.as_nanos(),
                offset: within.as_nanos(),
                len: len.get(),
            },
            Self::Bell => Raw { kind: 11, ..raw },
            Self::Seek { tag, offset } => Raw { kind: 12, tag, offset: offset.get(), ..raw },
            Self::Pause { span } => Raw { kind: 13, len: span.as_nanos(), ..raw },
            Self::Steady { after } => Raw { kind: 79, len: after.as_nanos(), ..raw },
            Self::News => Raw { kind: 77, ..raw },
            Self::Sought { first, offset, ready } => {
                let len = ready.as_nanos();
                Raw { kind: 78, tag: first, offset: offset.get(), len, ..raw }
            }
            Self::HelloFile { version } => Raw { kind: 32, code: version, ..raw },
            Self::Given => Raw { kind: 33, ..raw },
            Self::Give => Raw { kind: 98, ..raw },
            Self::FileOpened { stream } => Raw { kind: 96, tag: stream, ..raw },
            Self::Refused { code } => Raw { kind: 97, code: code as u16, ..raw },
            Self::Next { len } => Raw { kind: 3, len: len.get(), ..raw },
            Self::Write => Raw { kind: 4, ..raw },
            Self::Sync => Raw { kind: 5, ..raw },
            Self::Close => Raw { kind: 6, ..raw },
            Self::ReadAt { tag, offset, len } => {
                Raw { kind: 7, tag, offset: offset.get(), len: len.get(), ..raw }
            }
            Self::WriteAt { tag, offset } => Raw { kind: 8, tag, offset: offset.get(), ..raw },
            Self::SyncAll { tag } => Raw { kind: 9, tag, ..raw },
            Self::Welcome { version, offset, len } => {
                Raw { kind: 65, code: version, offset: offset.get(), len: len.get(), ..raw }
            }
            Self::Data { offset } => Raw { kind: 66, offset: offset.get(), ..raw },
            Self::End { offset } => Raw { kind: 67, offset: offset.get(), ..raw },
            Self::Gap { offset, len } => {
                Raw { kind: 68, offset: offset.get(), len: len.get(), ..raw }
            }
            Self::Accepted { upto } => Raw { kind: 69, offset: upto.get(), ..raw },
            Self::Durable { upto } => Raw { kind: 70, offset: upto.get(), ..raw },
            Self::Synced { upto } => Raw { kind: 71, offset: upto.get(), ..raw },
            Self::Closed { upto } => Raw { kind: 72, offset: upto.get(), ..raw },
            Self::ReadDone { tag } => Raw { kind: 73, tag, ..raw },
            Self::WriteDone { tag } => Raw { kind: 74, tag, ..raw },
            Self::SyncDone { tag } => Raw { kind: 75, tag, ..raw },
            Self::Failed { tag, code } => Raw { kind: 76, tag, code: code as u16, ..raw },
        }
    }

    fn from_raw(raw: Raw) -> Result<Self, FrameError> {
        let Raw { kind, code, tag, .. } = raw;
        let out = |refused| FrameError::Range { kind, refused };
        let offset = Bytes::from_outside(raw.offset).map_err(out)?;
        let len = Bytes::from_outside(raw.len).map_err(out)?;
        let head = match kind {
            1 => Self::HelloStream { version: code, stream: tag },
            2 => {
                let priority = priority_of(tag).ok_or(FrameError::Field(kind))?;
                let writer = NonZeroU64::new(raw.offset);
                Self::HelloVolume { version: code, priority, writer }
            }
            10 => Self::HelloWindow { version: code, stream: tag },
            20 => {
                let within = Duration::from_outside(raw.offset).map_err(out)?;
                let every = Duration::from_outside(tag).map_err(out)?;
                Self::HelloInTime { version: code, len, within, every }
            }
            11 => Self::Bell,
            12 => Self::Seek { tag, offset },
            13 => Self::Pause { span: Duration::from_outside(raw.len).map_err(out)? },
            79 => Self::Steady { after: Duration::from_outside(raw.len).map_err(out)? },
            77 => Self::News,
            78 => {
                let ready = Duration::from_outside(raw.len).map_err(out)?;
                Self::Sought { first: tag, offset, ready }
            }
            32 => Self::HelloFile { version: code },
            33 => Self::Given,
            98 => Self::Give,
            96 => Self::FileOpened { stream: tag },
            97 => Self::Refused { code: Code::from_number(code).ok_or(FrameError::Field(kind))? },
            3 => Self::Next { len },
            4 => Self::Write,
            5 => Self::Sync,
            6 => Self::Close,
            7 => Self::ReadAt { tag, offset, len },
            8 => Self::WriteAt { tag, offset },
            9 => Self::SyncAll { tag },
            65 => Self::Welcome { version: code, offset, len },
            66 => Self::Data { offset },
            67 => Self::End { offset },
            68 => Self::Gap { offset, len },
            69 => Self::Accepted { upto: offset },
            70 => Self::Durable { upto: offset },
            71 => Self::Synced { upto: offset },
            72 => Self::Closed { upto: offset },
            73 => Self::ReadDone { tag },
            74 => Self::WriteDone { tag },
            75 => Self::SyncDone { tag },
            76 => {
                let code = Code::from_number(code).ok_or(FrameError::Field(kind))?;
                Self::Failed { tag, code }
            }
            unknown => return Err(FrameError::Kind(unknown)),
        };
        // Encoding gives zero for what the kind does not use: a difference is such a field.
        if head.raw() == raw { Ok(head) } else { Err(FrameError::Field(kind)) }
    }

    /// This head, which the other side will take: a client asks before it sends what its
    /// program said.
    ///
    /// # Errors
    /// [`FrameError::Range`].
    pub fn checked(self) -> Result<Self, FrameError> {
        Self::from_raw(self.raw())
    }

    /// The longest body that may follow, in bytes.
    pub fn body_max(self) -> usize {
        let number = self.raw().kind;
        KINDS.iter().find(|kind| kind.number == number).expect("every kind has its row").body_max
    }

    /// The bytes of the head of a frame whose body has `body` bytes; panics
    /// where the body is longer than [`Head::body_max`].
    #[track_caller]
    pub fn encode(self, body: usize) -> [u8; HEAD_LEN] {
        assert!(body <= self.body_max(), "{self:?} with a body of {body} bytes");
        let raw = self.raw();
        let mut bytes = [0; HEAD_LEN];
        bytes[0..4].copy_from_slice(&(body as u32).to_le_bytes());
        bytes[4] = raw.kind;
        bytes[6..8].copy_from_slice(&raw.code.to_le_bytes());
        bytes[8..16].copy_from_slice(&raw.tag.to_le_bytes());
        bytes[16..24].copy_from_slice(&raw.offset.to_le_bytes());
        bytes[24..32].copy_from_slice(&raw.len.to_le_bytes());
        bytes
    }

    /// The head in these bytes and the length of the body behind it.
    pub fn decode(bytes: &[u8; HEAD_LEN]) -> Result<(Self, usize), FrameError> {
        let word = |at: usize| {
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes are eight bytes"))
        };
        let body = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let kind = bytes[4];
        let code = u16::from_le_bytes([bytes[6], bytes[7]]);
        let head =
            Self::from_raw(Raw { kind, code, tag: word(8), offset: word(16), len: word(24) })?;
        if bytes[5] != 0 {
            return Err(FrameError::Field(kind));
        }
        let max = head.body_max();
        if body as usize > max {
            return Err(FrameError::Body { kind, len: body, max: max as u32 });
        }
        Ok((head, body as usize))
    }
}

/// Takes frames out of a byte stream that comes in pieces of any size.
///
/// The driver fills [`Decoder::want`] from its socket and says how much it got;
/// bytes land in the frame's own body at once. Holds one frame at the most.
#[derive(Default)]
pub struct Decoder {
    head: [u8; HEAD_LEN],
    /// Bytes of the head, or of the body once `body` is known.
    have: usize,
    body: Option<(Head, Vec<u8>)>,
    spare: Vec<u8>,
}

impl Decoder {
    /// Waits for the first byte of a frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the next bytes go; never empty.
    pub fn want(&mut self) -> &mut [u8] {
        match &mut self.body {
            Some((_, body)) => &mut body[self.have..],
            None => &mut self.head[self.have..],
        }
    }

    /// Says that the first `n` bytes of [`Decoder::want`] are filled; gives the
    /// frame that they complete. After an error the stream has no meaning.
    #[track_caller]
    pub fn filled(&mut self, n: usize) -> Result<Option<(Head, Vec<u8>)>, FrameError> {
        assert!(n <= self.want().len(), "more bytes than were wanted");
        self.have += n;
        if !self.want().is_empty() {
            return Ok(None);
        }
        self.have = 0;
        if let Some(frame) = self.body.take() {
            return Ok(Some(frame));
        }
        let (head, len) = Head::decode(&self.head)?;
        let mut body = std::mem::take(&mut self.spare);
        body.resize(len, 0);
        if len == 0 {
            return Ok(Some((head, body)));
        }
        self.body = Some((head, body));
        Ok(None)
    }

    /// True between frames: a stream that ends here has lost nothing.
    pub fn is_between_frames(&self) -> bool {
        self.have == 0 && self.body.is_none()
    }

    /// Takes a body back, to spare the next frame an allocation.
    pub fn recycle(&mut self, body: Vec<u8>) {
        self.spare = body;
    }
}

/// A text as the body of [`Head::Failed`]: cut, where it must be, between
/// characters.
pub fn text_body(text: &str) -> &[u8] {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

/// The protocol's frames as a table, for the documentation.
pub fn table() -> String {
    let mut table = String::from("| kind | frame | from | longest body |\n|---|---|---|---|\n");
    for kind in KINDS {
        let from = if kind.number < 64 { "client" } else { "daemon" };
        let row = format!("| {} | `{}` | {from} | {} |\n", kind.number, kind.name, kind.body_max);
        table.push_str(&row);
    }
    table
}
