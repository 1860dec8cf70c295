//! The same load through a pool on the same device.

use super::device::Device;
use super::load::{
    GREEDY, GREEDY_EXTENT, GREEDY_READS, PLACES, Program, Seen, place, run, scattered,
};
use disk::Profile;
use engine::{CreateOptions, DeviceSpec, Options, Pool};
use node::{Config, Contract, Error, Mode, Placement, Playout, Policy, Service, StreamId, calls};
use std::time::Duration;
use units::{Bytes, Rate};

/// How often admission is asked again that could not say when a stream might begin.
const ASKED_AGAIN: usize = 20;

/// A pool whose volumes hold what the programs read.
pub struct Filled {
    specs: Vec<DeviceSpec>,
}

/// What the pool's own account says beside what the programs saw.
pub struct Accounts {
    pub seen: Seen,
    /// Requests that were done after their deadline, and by how much at the most.
    pub late_requests: u64,
    pub late_max: units::Duration,
    /// Times that a program within its contract found its window empty.
    pub underruns: u64,
    pub host_late_max: units::Duration,
}

/// What came of a load.
pub enum Outcome {
    Ran(Box<Accounts>),
    /// Admission refused one of the programs.
    Refused,
}

impl Filled {
    /// Makes a pool on the device with volumes for these programs, in the same places
    /// as the kernel's programs read, and fills them.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn new(
        device: &Device,
        profile: Profile,
        programs: &[Program],
        time: Duration,
        progress: &dyn Fn(usize, usize),
    ) -> Result<Self, String> {
        let specs = vec![DeviceSpec::Real { path: device.path().into() }];
        let create = CreateOptions { profile: Some(profile), force: true, ..Default::default() };
        Pool::create("peers", &specs, &create).map_err(|error| error.to_string())?;
        let filled = Self { specs };
        let pool = filled.open(true)?;
        let apart = device.place(1);
        let mut by_place: Vec<(String, Bytes)> =
            (0..PLACES).map(|place| (format!("empty-{place}"), Bytes::ZERO)).collect();
        for (number, program) in programs.iter().enumerate() {
            by_place[place(number, false) as usize] = (volume(number), program.extent(time));
        }
        for number in 0..GREEDY {
            by_place[place(number, true) as usize] = (greedy_volume(number), GREEDY_EXTENT);
        }
        let total = by_place.len();
        for (at, (name, size)) in by_place.into_iter().enumerate() {
            if !size.is_zero() {
                make(&pool, &name, size).map_err(|error| error.to_string())?;
                fill(&pool, &name, size).map_err(|error| error.to_string())?;
            }
            // The rest of the place stays free: nothing is written there.
            if at + 2 < total {
                let rest = apart - size - Bytes::mib(8);
                make(&pool, &format!("rest-{at}"), rest).map_err(|error| error.to_string())?;
            }
            progress(at, total);
        }
        pool.shutdown().map_err(|error| error.to_string())?;
        Ok(filled)
    }

    fn open(&self, admission: bool) -> Result<Pool, String> {
        let config = Config {
            policy: Policy::SLACK,
            admission,
            host_latency: units::Duration::from_millis(8),
            ..Options::default().config
        };
        let options = Options { config, ..Options::default() };
        Pool::open(&self.specs, options).map_err(|error| error.to_string())
    }

    /// Runs the load for `time`.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn load(
        &self,
        programs: &[Program],
        admission: bool,
        time: Duration,
    ) -> Result<Outcome, String> {
        let pool = self.open(admission)?;
        let mut streams = Vec::new();
        for (number, program) in programs.iter().enumerate() {
            match accept_in_time(&pool, number, *program) {
                Ok(stream) => streams.push(stream),
                Err(Error::Refused(_)) => {
                    pool.shutdown().map_err(|error| error.to_string())?;
                    return Ok(Outcome::Refused);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        let pool_ref = &pool;
        let reader = |number: usize, program: Program| {
            let _ = engine::keep_time(); // as the kernel's programs do
            let mut reader =
                Reader { pool: pool_ref, number, program, stream: streams[number], time };
            reader.begin();
            move |block| reader.read(block)
        };
        let greedy = |number: usize| {
            let volume = greedy_volume(number);
            let blocks = GREEDY_EXTENT / GREEDY_READS;
            move |request: u64| {
                let offset = GREEDY_READS * scattered(request, blocks);
                point(pool_ref, &volume, offset, GREEDY_READS);
            }
        };
        let seen = run(programs, time, reader, greedy);
        let status = pool.status();
        let host_late_max = pool.host_lateness().max();
        for stream in streams.into_iter().flatten() {
            pool.call(calls::StreamClose { stream }).map_err(|error| error.to_string())?;
        }
        pool.shutdown().map_err(|error| error.to_string())?;
        let disk = &status.disks[0];
        Ok(Outcome::Ran(Box::new(Accounts {
            seen,
            late_requests: disk.account.late_requests,
            late_max: disk.account.late_max,
            underruns: status.streams.iter().map(|stream| stream.account.underruns).sum(),
            host_late_max,
        })))
    }
}

fn volume(number: usize) -> String {
    format!("program-{number}")
}

fn greedy_volume(number: usize) -> String {
    format!("greedy-{number}")
}

fn make(pool: &Pool, name: &str, size: Bytes) -> Result<(), Error> {
    let placement = Placement::default();
    pool.call(calls::VolumeCreate {
        name: name.into(),
        size,
        placement,
        access: Default::default(),
    })
    .map(drop)
}

/// Writes a volume from its begin to its end.
fn fill(pool: &Pool, name: &str, size: Bytes) -> Result<(), Error> {
    for at in 0..size / Bytes::MIB {
        let mut room = pool.call(calls::Room { len: Bytes::MIB, target: None })?;
        room.fill(at as u8);
        pool.call_write(name, Bytes::MIB * at, room)?;
    }
    pool.call(calls::Sync {})
}

/// What a stream's window is brought in: as much as a contract allows, but for slow ones
/// no more than lasts a few seconds.
fn brought(rate: Rate) -> Bytes {
    let most = rate.bytes_in(units::Duration::from_secs(4)).max(Bytes::kib(64));
    Bytes::MIB.min(Bytes::new(1 << most.get().ilog2()))
}

/// Asks again where nothing but a disk that is behind for a moment speaks against it:
/// the machine may have held its emulator up.
fn accept_in_time(pool: &Pool, number: usize, program: Program) -> Result<Option<StreamId>, Error> {
    let mut accepted = accept(pool, number, program);
    for _ in 0..ASKED_AGAIN {
        let Err(Error::Refused(refusal)) = &accepted else { break };
        if refusal.deadline.is_some() || refusal.utilisation_ppm >= 1_000_000 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        accepted = accept(pool, number, program);
    }
    accepted
}

/// Gives a program its contract: streams have a handle then.
fn accept(pool: &Pool, number: usize, program: Program) -> Result<Option<StreamId>, Error> {
    let nanos = |time: Duration| units::Duration::from_nanos(time.as_nanos() as u64);
    match program {
        Program::Stream { rate, block } => {
            let (volume, block) = (volume(number), brought(rate).max(block));
            let contract = Contract { rate, block, burst: Bytes::ZERO };
            let op = calls::StreamOpen { volume, mode: Mode::Read, contract, start: Bytes::ZERO };
            Ok(Some(pool.call(op)?.stream))
        }
        Program::Points { block, every } => {
            let service =
                Service::Latency { len: block, within: nanos(every), every: nanos(every) };
            pool.call(calls::VolumeService { name: volume(number), service }).map(|()| None)
        }
    }
}

/// A best-effort read, or one of a volume with a contract.
fn point(pool: &Pool, volume: &str, offset: Bytes, len: Bytes) {
    let read = calls::Read { volume: volume.into(), offset, len, priority: None };
    drop(pool.call(read).expect("a read of written bytes"));
}

/// One program's way to its blocks.
struct Reader<'a> {
    pool: &'a Pool,
    number: usize,
    program: Program,
    stream: Option<StreamId>,
    time: Duration,
}

impl Reader<'_> {
    /// Waits until the window is full: only then playout may begin.
    fn begin(&mut self) {
        if let Some(stream) = self.stream {
            let len_max = self.program.block();
            let first = self.pool.call(calls::StreamRead { stream, len_max }).expect("it has data");
            drop(first);
            let len = Bytes::ZERO;
            self.pool.call(calls::StreamAdvance { stream, len }).expect("nothing is moved");
        }
    }

    fn read(&mut self, block: u64) {
        let len = self.program.block();
        let Some(stream) = self.stream else {
            let blocks = self.program.extent(self.time) / len;
            return point(self.pool, &volume(self.number), len * scattered(block, blocks), len);
        };
        let mut left = len;
        while !left.is_zero() {
            let len = match self.pool.call(calls::StreamRead { stream, len_max: left }) {
                Ok(Playout::Data { bytes, .. }) => Bytes::new(bytes.len() as u64),
                other => panic!("the film goes on: {other:?}"),
            };
            self.pool.call(calls::StreamAdvance { stream, len }).expect("it was given these");
            left -= len;
        }
    }
}
