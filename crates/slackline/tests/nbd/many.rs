//! Many programs on one volume, whose cells share blocks of 4 KiB: each reads what it has written, and
//! what was answered before anybody's flush was is there when the power has been cut.

use super::client::{FUA, Nbd};
use super::power::{cut, forgetful_pool, serve};
use super::support::{Scratch, wait_until};
use super::{Random, make, socket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

/// Of one program; the next ones are of the next programs.
const CELL: u64 = 1000;
const CELLS: u64 = 600;

/// What became of a cell: each of its contents has a number.
#[derive(Default)]
struct Cell {
    begun: AtomicU64,
    answered: AtomicU64,
    synced: AtomicU64,
}

fn byte(cell: u64, content: u64, at: u64) -> u8 {
    let bits = (cell << 40 ^ content << 12 ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if content == 0 { 0 } else { (bits >> 56) as u8 }
}

fn bytes(cell: u64, content: u64) -> Vec<u8> {
    (0..CELL).map(|at| byte(cell, content, at)).collect()
}

/// A program, until the disk is gone.
fn run(nbd: &mut Nbd, number: u64, programs: u64, cells: &[Cell], seed: u64) -> Result<(), u32> {
    let mut random = Random(seed);
    loop {
        let at = number + programs * random.below(CELLS / programs);
        let cell = &cells[at as usize];
        // So seldom that between two flushes there is much that only they have to wait for.
        match random.below(60) {
            0 => {
                let answered = |cell: &Cell| cell.answered.load(Ordering::SeqCst);
                let before: Vec<u64> = cells.iter().map(answered).collect();
                nbd.flush()?;
                for (cell, content) in cells.iter().zip(before) {
                    cell.synced.fetch_max(content, Ordering::SeqCst);
                }
            }
            1..15 => {
                let content = cell.answered.load(Ordering::SeqCst);
                assert!(nbd.read(at * CELL, CELL as u32)? == bytes(at, content), "cell {at}");
            }
            what => {
                let content = cell.begun.fetch_add(1, Ordering::SeqCst) + 1;
                let flags = if what == 15 { FUA } else { 0 };
                nbd.write(flags, at * CELL, &bytes(at, content))?;
                cell.answered.store(content, Ordering::SeqCst);
                if flags == FUA {
                    cell.synced.fetch_max(content, Ordering::SeqCst);
                }
            }
        }
    }
}

/// So many programs, and so many cuts.
pub fn what_any_flush_covers_outlives_cuts(programs: u64, cuts: u64) {
    let dir = Scratch::new();
    let disk = forgetful_pool(&dir);
    let mut daemon = Some(serve(&dir, &disk));
    make(&dir, "v", "1MiB");
    let cells: Vec<Cell> = (0..CELLS).map(|_| Cell::default()).collect();
    let (mut random, mut all_synced) = (Random(programs), 0);
    for number in 0..cuts {
        let (wrong, is_gone) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        thread::scope(|scope| {
            for program in 0..programs {
                let is_structured = program.is_multiple_of(2);
                let mut nbd = Nbd::open(&socket(&dir), "v", is_structured).unwrap();
                let (cells, wrong, is_gone) = (&cells, &wrong, &is_gone);
                scope.spawn(move || {
                    let seed = number * 1000 + program;
                    let until_gone = || run(&mut nbd, program, programs, cells, seed);
                    // The client panics where its connection ends.
                    let ended = catch_unwind(AssertUnwindSafe(until_gone));
                    if !is_gone.load(Ordering::SeqCst) {
                        let why = match ended {
                            Ok(ended) => format!("{ended:?}"),
                            Err(why) => format!("{:?}", why.downcast_ref::<String>()),
                        };
                        wrong.lock().unwrap().push(why);
                    }
                });
            }
            let synced =
                || cells.iter().map(|cell| cell.synced.load(Ordering::SeqCst)).sum::<u64>();
            let is_enough = || synced() > all_synced + 100 || !wrong.lock().unwrap().is_empty();
            // Whatever comes of it, the daemon ends, and the programs with it.
            let waited = catch_unwind(AssertUnwindSafe(|| wait_until(is_enough)));
            sleep(Duration::from_millis(random.below(300)));
            is_gone.store(true, Ordering::SeqCst);
            cut(&disk, daemon.take().expect("it serves"), &mut random);
            waited.expect("something was synced");
        });
        assert!(wrong.into_inner().unwrap().is_empty(), "before the cut");
        daemon = Some(serve(&dir, &disk));
        let mut nbd = Nbd::open(&socket(&dir), "v", true).unwrap();
        for (at, cell) in (0..).zip(&cells) {
            let read = nbd.read(at * CELL, CELL as u32).unwrap();
            let begun = cell.begun.load(Ordering::SeqCst);
            let contents = cell.synced.load(Ordering::SeqCst)..=begun;
            let mut places = (0..).zip(&read);
            let is_one = |(place, &found): (u64, &u8)| {
                contents.clone().any(|content| byte(at, content, place) == found)
            };
            assert!(places.all(is_one), "cut {number}: cell {at}, contents {contents:?}");
            // What is there now is what the next life begins with.
            nbd.write(0, at * CELL, &bytes(at, begun + 1)).unwrap();
            cell.begun.store(begun + 1, Ordering::SeqCst);
            cell.answered.store(begun + 1, Ordering::SeqCst);
        }
        nbd.flush().unwrap();
        cells.iter().for_each(|cell| {
            cell.synced.store(cell.answered.load(Ordering::SeqCst), Ordering::SeqCst);
        });
        all_synced = cells.iter().map(|cell| cell.synced.load(Ordering::SeqCst)).sum::<u64>();
    }
}
