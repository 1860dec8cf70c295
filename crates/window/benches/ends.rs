//! What a program pays for bytes that are in its window: looking at them in place, and
//! copying them, beside a copy of the same size from the program's own memory.
//!
//! Both ends are on one thread, the daemon's outside what is timed, so that nothing is
//! measured but the program's own calls. Each row is the best of several rounds, since
//! a host that is busy can only make a round longer. `SLACKLINE_QUICK` in the environment:
//! two rounds, which show that it runs and nothing else.
#![allow(clippy::print_stdout)] // this program's whole output is its table

use std::hint::black_box;
use std::time::{Duration, Instant};
use units::Bytes;
use window::{Client, Daemon, Kind, Memory, Mode, Piece, Rights};

const DATA: usize = 4 << 20;
const ROUNDS: usize = 200;

struct Ends {
    daemon: Daemon,
    client: Client,
    offset: u64,
}

impl Ends {
    fn new() -> Self {
        let daemon = Daemon::create(Mode::Read, 1024).unwrap();
        let data = Memory::create("bench", DATA, Rights::Read).unwrap();
        data.populate(0, DATA, Rights::Write);
        let fds = (daemon.fd().try_clone_to_owned(), data.fd().try_clone_to_owned());
        let mut client = Client::open(fds.0.unwrap(), fds.1.unwrap(), Bytes::ZERO).unwrap();
        client.populate(Bytes::new(DATA as u64));
        Self { daemon, client, offset: 0 }
    }

    /// Tells of all of the data, in pieces of `block`.
    fn fill(&mut self, block: usize) {
        self.daemon.further().unwrap();
        for place in (0..DATA).step_by(block) {
            let [place, len] = [place, block].map(|n| Bytes::new(n as u64));
            let piece = Piece { kind: Kind::Data, place, offset: Bytes::new(self.offset), len };
            self.offset += block as u64;
            let _ = self.daemon.publish(piece);
            let _ = self.daemon.ring_at_next();
        }
    }

    /// Uses up all that there is, `step` bytes at a time.
    fn drain(&mut self, step: usize, mut with: impl FnMut(&[u8])) {
        loop {
            if self.client.left() == 0 && self.client.take().unwrap().is_none() {
                return;
            }
            let bytes = self.client.bytes(step);
            let len = bytes.len();
            with(bytes);
            black_box(self.client.advance(len));
        }
    }
}

/// The shortest time of a round, for one of its `count` steps.
fn best(count: usize, mut round: impl FnMut() -> Duration) -> f64 {
    let quick = std::env::var_os("SLACKLINE_QUICK").is_some();
    let best = (0..if quick { 2 } else { ROUNDS }).map(|_| round()).min().unwrap();
    best.as_nanos() as f64 / count as f64
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn main() {
    let mut ends = Ends::new();
    println!("look at bytes in place and move past them (blocks of 64 KiB):");
    for step in [64, 512, 4096, 65_536] {
        let ns = best(DATA / step, || {
            ends.fill(65_536);
            timed(|| ends.drain(step, |bytes| _ = black_box(bytes.as_ptr())))
        });
        println!("  {step:>6} bytes at a time: {ns:.1} ns each");
    }
    let (source, mut target) = (vec![7u8; DATA], vec![0u8; 65_536]);
    let copy = |target: &mut [u8], bytes: &[u8]| {
        target[..bytes.len()].copy_from_slice(bytes);
        black_box(target.as_ptr());
    };
    let memcpy = best(DATA / 65_536, || {
        timed(|| source.chunks(65_536).for_each(|bytes| copy(&mut target, black_box(bytes))))
    });
    let read = best(DATA / 65_536, || {
        ends.fill(65_536);
        timed(|| ends.drain(65_536, |bytes| copy(&mut target, bytes)))
    });
    println!(
        "copy 64 KiB: memcpy {memcpy:.0} ns, out of the window {read:.0} ns, {:.2} times",
        read / memcpy
    );
}
