//! A client of the NBD protocol as small as can be, which can also break it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use wire::nbd::handshake::ALLOCATION;
use wire::nbd::transmission::Request;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const ZEROES: u16 = 6;
pub const STATUS: u16 = 7;
pub const FUA: u16 = 1;
pub const DONT_FRAGMENT: u16 = 4;

/// A connection to an export.
pub struct Nbd {
    pub socket: UnixStream,
    is_structured: bool,
    next: u64,
    /// Which reads are under way, of what.
    reads: HashMap<u64, (u64, u32)>,
    /// Replies of requests that were not waited for yet.
    early: HashMap<u64, Reply>,
}

/// What came of a request: the bytes of a read, or what a status told; or the error's number.
pub type Reply = Result<Vec<u8>, u32>;

fn number<const N: usize>(socket: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A connection after both sides' flags.
pub fn greeted(path: &Path) -> UnixStream {
    let mut socket = UnixStream::connect(path).unwrap();
    let greeting: [u8; 18] = number(&mut socket).unwrap();
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    socket.write_all(&3u32.to_be_bytes()).unwrap();
    socket
}

/// Sends an option, and gives the kind of the last reply to it.
fn option(socket: &mut UnixStream, option: u32, data: &[u8]) -> u32 {
    let len = (data.len() as u32).to_be_bytes();
    let bytes = [&b"IHAVEOPT"[..], &option.to_be_bytes(), &len, data].concat();
    socket.write_all(&bytes).unwrap();
    loop {
        let head: [u8; 20] = number(socket).unwrap();
        let kind = u32::from_be_bytes(head[12..16].try_into().unwrap());
        let len = u32::from_be_bytes(head[16..].try_into().unwrap());
        let mut data = vec![0; len as usize];
        socket.read_exact(&mut data).unwrap();
        if kind == 1 || kind >> 31 == 1 {
            return kind;
        }
    }
}

impl Nbd {
    /// Chooses an export; the kind of the refusal where it is not to be had.
    pub fn open(path: &Path, export: &str, is_structured: bool) -> Result<Self, u32> {
        let mut socket = greeted(path);
        let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
        if is_structured {
            assert_eq!(option(&mut socket, 8, &[]), 1);
            let data = [text(export), 1u32.to_be_bytes().to_vec(), text(ALLOCATION)].concat();
            let kind = option(&mut socket, 10, &data);
            if kind != 1 {
                return Err(kind);
            }
        }
        match option(&mut socket, 7, &[text(export), vec![0, 0]].concat()) {
            1 => {
                let (reads, early) = (HashMap::new(), HashMap::new());
                Ok(Self { socket, is_structured, next: 1, reads, early })
            }
            kind => Err(kind),
        }
    }

    /// Sends a request; [`Nbd::end`] waits for its reply.
    pub fn begin(&mut self, kind: u16, flags: u16, offset: u64, len: u32, bytes: &[u8]) -> u64 {
        let (cookie, request) = self.next_request(kind, flags, offset, len, bytes);
        self.socket.write_all(&request).unwrap();
        cookie
    }

    /// What [`Nbd::begin`] sends.
    pub fn next_request(
        &mut self,
        kind: u16,
        flags: u16,
        offset: u64,
        len: u32,
        bytes: &[u8],
    ) -> (u64, Vec<u8>) {
        let cookie = self.next;
        self.next += 1;
        if matches!(kind, READ | STATUS) {
            self.reads.insert(cookie, (offset, len));
        }
        let head = Request { flags, kind, cookie, offset, len }.encode();
        (cookie, [&head[..], bytes].concat())
    }

    /// Waits for the reply to a request, whatever comes before it.
    pub fn end(&mut self, cookie: u64) -> Reply {
        // Chunks of one reply come between those of others: each is put where it belongs.
        let mut parts: HashMap<u64, Vec<u8>> = HashMap::new();
        loop {
            if let Some(reply) = self.early.remove(&cookie) {
                return reply;
            }
            let magic = u32::from_be_bytes(number(&mut self.socket).unwrap());
            if magic == 0x6744_6698 {
                let error = u32::from_be_bytes(number(&mut self.socket).unwrap());
                let of = u64::from_be_bytes(number(&mut self.socket).unwrap());
                let len = self.reads.remove(&of).map_or(0, |(_, len)| len as usize);
                let mut bytes = vec![0; if error == 0 && !self.is_structured { len } else { 0 }];
                self.socket.read_exact(&mut bytes).unwrap();
                self.early.insert(of, if error == 0 { Ok(bytes) } else { Err(error) });
                continue;
            }
            assert_eq!(magic, 0x668e_33ef, "neither kind of reply");
            let head: [u8; 16] = number(&mut self.socket).unwrap();
            let (is_last, kind) = (head[1] & 1 == 1, u16::from_be_bytes([head[2], head[3]]));
            let of = u64::from_be_bytes(head[4..12].try_into().unwrap());
            let mut chunk = vec![0; u32::from_be_bytes(head[12..].try_into().unwrap()) as usize];
            self.socket.read_exact(&mut chunk).unwrap();
            let long = |at: usize| u64::from_be_bytes(chunk[at..at + 8].try_into().unwrap());
            let (offset, len) = self.reads.get(&of).copied().unwrap_or_default();
            let bytes = parts.entry(of).or_insert_with(|| vec![0xee; len as usize]);
            let mut error = None;
            match kind {
                0 => {}
                1 => {
                    let at = (long(0) - offset) as usize;
                    bytes[at..at + chunk.len() - 8].copy_from_slice(&chunk[8..]);
                }
                2 => {
                    let zeros = u32::from_be_bytes(chunk[8..].try_into().unwrap()) as usize;
                    bytes[(long(0) - offset) as usize..][..zeros].fill(0);
                }
                5 => *bytes = chunk[4..].to_vec(),
                _ => error = Some(u32::from_be_bytes(chunk[..4].try_into().unwrap())),
            }
            if is_last {
                self.reads.remove(&of);
                let bytes = parts.remove(&of).unwrap();
                self.early.insert(of, error.map_or(Ok(bytes), Err));
            }
        }
    }

    fn ask(&mut self, kind: u16, flags: u16, (offset, len): (u64, u32), bytes: &[u8]) -> Reply {
        let cookie = self.begin(kind, flags, offset, len, bytes);
        self.end(cookie)
    }

    pub fn read(&mut self, offset: u64, len: u32) -> Reply {
        self.ask(READ, 0, (offset, len), &[])
    }

    /// In one piece.
    pub fn read_in_one(&mut self, offset: u64, len: u32) -> Reply {
        self.ask(READ, DONT_FRAGMENT, (offset, len), &[])
    }

    pub fn write(&mut self, flags: u16, offset: u64, bytes: &[u8]) -> Result<(), u32> {
        self.ask(WRITE, flags, (offset, bytes.len() as u32), bytes).map(drop)
    }

    pub fn zero(&mut self, offset: u64, len: u32) -> Result<(), u32> {
        self.ask(ZEROES, 0, (offset, len), &[]).map(drop)
    }

    pub fn trim(&mut self, offset: u64, len: u32) -> Result<(), u32> {
        self.ask(TRIM, 0, (offset, len), &[]).map(drop)
    }

    pub fn flush(&mut self) -> Result<(), u32> {
        self.ask(FLUSH, 0, (0, 0), &[]).map(drop)
    }

    /// Runs of bytes: how many, and whether nothing was written there.
    pub fn status(&mut self, offset: u64, len: u32) -> Result<Vec<(u32, bool)>, u32> {
        let told = self.ask(STATUS, 0, (offset, len), &[])?;
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        Ok(told.chunks(8).map(|run| (number(&run[..4]), number(&run[4..]) == 3)).collect())
    }

    /// Whether the server has ended the connection.
    pub fn has_ended(mut self) -> bool {
        let mut rest = Vec::new();
        // A reset, too: what was sent had not been read.
        self.socket.read_to_end(&mut rest).is_err() || rest.is_empty()
    }
}
