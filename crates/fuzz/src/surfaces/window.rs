//! Control pages that the other end scribbles in: the daemon's end beside a program that
//! lies, and the program's end beside a daemon that is none.
//!
//! An input is a list of steps. A step is an opcode and, for those that need one, a number
//! of eight bytes.

use std::cell::Cell;
use units::Bytes;
use window::{Client, Daemon, Kind, Memory, Mode, Piece, Rights};

/// Slots in the ring.
const RING: u64 = 16;
/// Bytes of data.
const DATA: u64 = 64 << 10;

/// Reads steps.
struct Steps<'a>(&'a [u8]);

impl Steps<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }
    fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }
}

/// Writes a word of the page, as the other end can. False at the end of the steps.
fn scribble(page: &Memory, steps: &mut Steps<'_>) -> bool {
    let (Some(at), Some(value)) = (steps.byte(), steps.number()) else { return false };
    // The first words are those that something hangs on; the last byte reaches far.
    let words = page.words();
    let at = if at == u8::MAX { words.len() - 1 } else { usize::from(at) % words.len() };
    words[at].store(value, std::sync::atomic::Ordering::Relaxed);
    true
}

/// A new window, the other end's view of its page, and memory for data. To make memory takes longer
/// than all that is done with it: a thread has it once, and no input finds what one before it left.
struct Ends {
    daemon: Daemon,
    page: Memory,
    data: Memory,
}

thread_local! {
    static ENDS: Cell<Option<Ends>> = const { Cell::new(None) };
}

impl Ends {
    fn made() -> Self {
        let daemon = Daemon::create(Mode::Read, RING).expect("memory");
        let fd = daemon.fd().try_clone_to_owned().expect("a descriptor");
        let page = Memory::adopt(fd, Rights::Write).expect("it can be mapped");
        let data = Memory::create("data", DATA as usize, Rights::Write).expect("memory");
        Self { daemon, page, data }
    }

    /// Asks with them, as if they were new.
    fn with(mode: Mode, ask: impl FnOnce(&mut Self) -> bool) -> bool {
        let Self { daemon, page, data } = ENDS.take().unwrap_or_else(Self::made);
        let mut ends = Self { daemon: daemon.again(mode), page, data };
        let taken = ask(&mut ends);
        ENDS.set(Some(ends));
        taken
    }
}

/// What is known of the daemon's end never contradicts what it has told.
pub fn daemon(input: &[u8]) -> bool {
    let mut steps = Steps(input);
    let mode = if steps.byte().unwrap_or(0) % 2 == 0 { Mode::Read } else { Mode::Write };
    Ends::with(mode, |Ends { daemon, page, .. }| misled_daemon(daemon, page, mode, &mut steps))
}

fn misled_daemon(daemon: &mut Daemon, page: &Memory, mode: Mode, steps: &mut Steps<'_>) -> bool {
    let (mut told, mut moved, mut gaps) = (0u64, 0u64, 0u64);
    while let Some(step) = steps.byte() {
        match step % 9 {
            0 if !daemon.is_full() => {
                let len = Bytes::new(u64::from(steps.byte().unwrap_or(0)) + 1);
                let kind = match (step / 9 % 3, mode) {
                    (0, _) => Kind::Gap,
                    (_, Mode::Read) => Kind::Data,
                    (_, Mode::Write | Mode::Update) => Kind::Room,
                };
                gaps += if kind == Kind::Gap { len.get() } else { 0 };
                let piece = Piece { kind, place: Bytes::ZERO, offset: Bytes::new(told), len };
                let _ = daemon.publish(piece);
                told += len.get();
            }
            1 | 2 => match daemon.further() {
                Ok(further) => {
                    moved += further.bytes.get();
                    assert!(further.gaps <= further.bytes && further.gaps.get() <= gaps);
                }
                Err(lie) => assert!(lie.moved > lie.told || lie.moved < lie.before, "{lie:?}"),
            },
            3 => drop(daemon.ring_at(Bytes::new(steps.number().unwrap_or(0)))),
            4 => drop(daemon.ring_at_next()),
            5 => drop(daemon.begins_to_wait()),
            6 => drop(daemon.durable(Bytes::new(steps.number().unwrap_or(0)))),
            7 => {
                daemon.void();
                told = moved;
            }
            _ if !scribble(page, steps) => break,
            _ => {}
        }
        assert_eq!((daemon.moved().get(), daemon.left().get()), (moved, told - moved));
    }
    true
}

/// Whatever the page says, the program's end gives no byte outside the data.
pub fn program(input: &[u8]) -> bool {
    let mut steps = Steps(input);
    let mode = if steps.byte().unwrap_or(0) % 2 == 0 { Mode::Read } else { Mode::Write };
    let offset = Bytes::new(u64::from(steps.byte().unwrap_or(0)) << 12);
    Ends::with(mode, |ends| misled_program(ends, mode, offset, &mut steps))
}

fn misled_program(ends: &mut Ends, mode: Mode, offset: Bytes, steps: &mut Steps<'_>) -> bool {
    let Ends { daemon, page, data } = ends;
    for _ in 0..steps.byte().unwrap_or(0) % 4 {
        scribble(page, steps);
    }
    let control = page.fd().try_clone_to_owned().expect("a descriptor");
    let bytes = data.fd().try_clone_to_owned().expect("a descriptor");
    let Ok(mut client) = Client::open(control, bytes, offset) else { return false };
    let mut published = 0u64;
    while let Some(step) = steps.byte() {
        match step % 8 {
            0 if !daemon.is_full() => {
                let len = Bytes::new(u64::from(steps.byte().unwrap_or(0)) + 1);
                let kind = if mode == Mode::Read { Kind::Data } else { Kind::Room };
                let place = Bytes::new(published % (DATA - 256));
                let piece = Piece { kind, place, offset: Bytes::new(published), len };
                let _ = daemon.publish(piece);
                published += len.get();
            }
            1 | 2 if client.left() == 0 && client.take().is_err() => break,
            3 => {
                let bytes = client.bytes(usize::MAX);
                let ends = [bytes.first(), bytes.last()];
                std::hint::black_box(ends);
                assert!(bytes.len() as u64 <= DATA);
                if client.mode() == Mode::Write {
                    client
                        .bytes_mut(usize::MAX)
                        .iter_mut()
                        .step_by(4096)
                        .for_each(|byte| *byte = 1);
                }
            }
            4 => {
                let len = usize::from(steps.byte().unwrap_or(0)).min(client.left());
                let _ = client.advance(len);
            }
            5 => {
                client.has_more();
                let _ = client.begin_to_wait();
                client.is_over();
            }
            6 => {
                let (Some(first), Some(to)) = (steps.byte(), steps.number()) else { break };
                client.sought(first.into(), Bytes::new(to));
            }
            7 if !scribble(page, steps) => break,
            _ => {}
        }
    }
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let scribbled = |at: u8, value: u64| [&[8, at][..], &value.to_le_bytes()].concat();
    let mut seeds = vec![
        vec![0, 0, 99, 0, 7, 1, 3, 4, 200, 1, 3, 4, 255],
        vec![1, 0, 0, 18, 9, 18, 255, 4, 5, 1, 7, 1],
        vec![0, 0, 0, 0, 64, 2, 3, 4, 9, 3, 4, 90, 2, 5],
    ];
    for at in (0..64).step_by(4) {
        seeds.push([&[0, 0, 50, 9, 7][..], &scribbled(at, 40), &[1, 4, 5]].concat());
        seeds
            .push([&[1, 0, 0, 0, 50, 7][..], &scribbled(at, 9)[1..], &[1, 3, 4, 9, 2, 3]].concat());
    }
    seeds
}
