//! What the profiler does not look for, by single commands: buses, writes, flushes, and
//! by many at once: how many a drive holds.

use disk::{CommandQueue, Drive, Emulated, Model};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Places are as far from each other, in sectors, so that no command finds another's cache.
const APART: u64 = 20_000;

/// A drive, and what time it is.
struct Probe {
    drive: Emulated,
    turn: Duration,
    now: Instant,
}

fn access(lba: u64, sectors: u64, direction: Direction) -> Access {
    Access { lba: Lba::new(lba), len: Bytes::new(SECTOR.get() * sectors), direction }
}

impl Probe {
    fn new(model: &Model) -> Self {
        let turn = model.rotation();
        Self { drive: Emulated::new(model), turn, now: Instant::from_nanos(1_234_567_891) }
    }

    /// In ms.
    fn serve(&mut self, command: Command) -> f64 {
        let time = self.drive.serve(self.now, &command);
        self.now += time;
        time.as_millis_f64()
    }

    /// From or to the medium, one sector.
    fn force(&mut self, lba: u64, direction: Direction) -> f64 {
        self.serve(Command::Forced(access(lba, 1, direction)))
    }

    /// This part of a turn passes.
    fn wait(&mut self, part: f64) {
        self.now += Duration::from_nanos((self.turn.as_nanos() as f64 * part) as u64);
    }

    /// The mean over all parts of a turn, of a sector after another was read.
    fn mean(&mut self, from: u64, to: u64, direction: Direction) -> f64 {
        const TRIES: u32 = 2_000;
        let mut sum = 0.0;
        for at in 0..TRIES {
            self.force(from, Direction::Read);
            self.wait(f64::from(at) / f64::from(TRIES));
            sum += self.force(to, direction);
        }
        sum / f64::from(TRIES)
    }

    /// Reads of so many sectors that were read ahead, in ms.
    fn hits(&mut self, sectors: u64) -> Vec<f64> {
        (0..400)
            .map(|at| {
                let lba = at % 20 * APART;
                self.force(lba, Direction::Read);
                self.wait(3.0);
                self.serve(Command::Transfer(access(lba + 1, sectors, Direction::Read)))
            })
            .collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// MB/s over the bus, by what more sectors from the cache take.
pub(super) fn bus(model: &Model) -> f64 {
    const MORE: u64 = 90;
    let mut probe = Probe::new(model);
    let [one, many] = [1, 1 + MORE].map(|sectors| mean(&probe.hits(sectors)));
    SECTOR.get() as f64 * MORE as f64 / ((many - one) * 1_000.0)
}

/// A sector from the cache, in ms: the mean, and from the quickest to the slowest.
pub(super) fn hit(model: &Model) -> [f64; 2] {
    let hits = Probe::new(model).hits(1);
    let [least, most] = [f64::min, f64::max].map(|of| hits.iter().copied().reduce(of));
    [mean(&hits), most.unwrap_or(f64::NAN) - least.unwrap_or(f64::NAN)]
}

/// What a write of a sector costs beside the mean wait for it, on the track where the heads
/// are, in ms.
pub(super) fn write(model: &Model) -> f64 {
    let mut probe = Probe::new(model);
    probe.mean(0, 50, Direction::Write) - probe.turn.as_millis_f64() / 2.0
}

/// By how much a write comes later than a read after the same seek, in ms.
pub(super) fn settle(model: &Model, cylinder: u64) -> f64 {
    let mut probe = Probe::new(model);
    let [read, write] = [Direction::Read, Direction::Write].map(|it| {
        let far = 1_000 * cylinder;
        probe.mean(0, far, it)
    });
    write - read
}

/// A flush where nothing waits to be written, in ms.
pub(super) fn flush(model: &Model) -> f64 {
    Probe::new(model).serve(Command::Flush)
}

/// From the shortest to the longest seek from sector 0 to `to`, in ms: the part of a turn in which
/// the same sector is reached at one time and missed at another.
pub(super) fn spread(model: &Model, to: u64) -> f64 {
    const PARTS: u32 = 250;
    let mut probe = Probe::new(model);
    let turn = probe.turn.as_millis_f64();
    let mut mixed = 0;
    for part in 0..PARTS {
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        for _ in 0..1_000 {
            probe.force(0, Direction::Read);
            probe.wait(f64::from(part) / f64::from(PARTS));
            let time = probe.force(to, Direction::Read);
            (least, most) = (least.min(time), most.max(time));
            if most - least > turn / 2.0 {
                mixed += 1;
                break;
            }
        }
    }
    turn * f64::from(mixed) / f64::from(PARTS)
}

/// Writes that end in the buffer, one after another, before one has to wait: the mean of many
/// tries, since the medium takes the first meanwhile.
pub(super) fn buffered(model: &Model) -> f64 {
    const TRIES: u64 = 40;
    let mut probe = Probe::new(&model.clone().with_write_back(true));
    let mut taken = 0;
    for first in (0..TRIES).map(|at| at * 101) {
        let lba = |at: u64| (at * 37) % 64 * (model.capacity() / SECTOR / 64);
        let mut one =
            |at: u64| probe.serve(Command::Transfer(access(lba(at), 1, Direction::Write)));
        taken += (first..first + 64).take_while(|&at| one(at) < 2.5).count();
        probe.serve(Command::Flush);
        probe.wait(100.0 + first as f64 / TRIES as f64);
    }
    taken as f64 / TRIES as f64
}

/// Commands that a drive holds which orders them itself, of a host that always has one more: the
/// mean time that one takes there over the mean time from one answer to the next.
pub(super) fn held(model: &Model) -> f64 {
    const ANSWERS: u32 = 4_000;
    /// How long a drive lets a command wait for nearer ones.
    const PATIENCE: Duration = Duration::from_secs(1);
    let sectors = model.capacity() / SECTOR;
    let mut drive = CommandQueue::new(model, model.depth(), PATIENCE);
    let (mut now, mut given, mut inside) = (Instant::EPOCH, Vec::new(), Duration::ZERO);
    for _ in 0..ANSWERS {
        loop {
            // Far from each other, and never the same twice.
            let lba = (given.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % sectors;
            let read = Command::Forced(access(lba, 1, Direction::Read));
            if drive.submit_forced(now, given.len() as u64, read).is_err() {
                break;
            }
            given.push(now);
        }
        let Some((tag, end)) = drive.next() else { break };
        drive.complete(end);
        inside += end - given[tag as usize];
        now = end;
    }
    inside.as_millis_f64() / (now - Instant::EPOCH).as_millis_f64()
}
