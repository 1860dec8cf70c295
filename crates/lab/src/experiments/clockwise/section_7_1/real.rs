//! The load on the engine, in real time.

use super::Found;
use super::load::{self, CAPACITY, Load, READ, film_name};
use engine::{CreateOptions, DeviceSpec, Options, Pool};
use node::{Error, Mode, Op, Placement, Playout, Policy, StreamId, calls};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use units::Bytes;

/// A pool on an emulated disk whose volumes are full.
pub struct Filled {
    specs: Vec<DeviceSpec>,
    host_late: units::Duration,
    /// With the disk's file in it.
    _directory: TempDir,
}

impl Filled {
    /// Makes it; takes the time that the emulated disk takes.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn new(load: &Load) -> Result<Self, String> {
        let directory = tempfile::Builder::new().prefix("slackline-").tempdir();
        let directory = directory.map_err(|error| error.to_string())?;
        let model = load.model.name().to_owned();
        let path = directory.path().join("disk");
        let specs = vec![DeviceSpec::Emulated { model, path }];
        let create = CreateOptions { size: Some(CAPACITY), ..CreateOptions::default() };
        Pool::create("section-7.1", &specs, &create).map_err(|error| error.to_string())?;
        let filled = Self { specs, host_late: units::Duration::ZERO, _directory: directory };
        let pool = filled.open(Policy::SLACK)?;
        for (name, size) in load.volumes() {
            make(&pool, &name, size).map_err(|error| error.to_string())?;
        }
        pool.shutdown().map_err(|error| error.to_string())?;
        Ok(filled)
    }

    fn open(&self, policy: Policy) -> Result<Pool, String> {
        let options = Options { config: load::config(policy), ..Options::default() };
        Pool::open(&self.specs, options).map_err(|error| error.to_string())
    }

    /// How late the host was at the worst so far.
    pub fn host_late(&self) -> Duration {
        Duration::from_nanos(self.host_late.as_nanos())
    }

    /// Runs the load with so many films.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn run(&mut self, load: &Load, policy: Policy, films: usize) -> Result<Found, String> {
        let pool = Arc::new(self.open(policy)?);
        let over = AtomicBool::new(false);
        let mean = thread::scope(|scope| {
            for film in 0..films {
                let stream = open_film(&pool, film).map_err(|error| error.to_string())?;
                let (pool, over) = (&pool, &over);
                scope.spawn(move || play(pool, stream, over));
            }
            // Films are at their pace by then.
            thread::sleep(Duration::from_secs(2));
            let mean = thread::scope(|timed| timed.spawn(|| reads(&pool, load)).join());
            over.store(true, Ordering::Relaxed);
            Ok::<f64, String>(mean.expect("reads of what was written"))
        });
        over.store(true, Ordering::Relaxed);
        let late = pool.status().disks[0].account.late_requests;
        self.host_late = self.host_late.max(pool.host_lateness().max());
        let pool = Arc::into_inner(pool).expect("all programs have ended");
        pool.shutdown().map_err(|error| error.to_string())?;
        Ok(Found { mean: mean?, late })
    }
}

fn make(pool: &Pool, name: &str, size: Bytes) -> Result<(), Error> {
    let placement = Placement::default();
    pool.call(calls::VolumeCreate {
        name: name.into(),
        size,
        placement,
        access: Default::default(),
    })?;
    if name.starts_with("rest") {
        return Ok(());
    }
    for at in 0..size / Bytes::MIB {
        let mut room = pool.call(calls::Room { len: Bytes::MIB, target: None })?;
        room.fill(at as u8);
        pool.call_write(name, Bytes::MIB * at, room)?;
    }
    pool.call(calls::Sync {})
}

fn open_film(pool: &Pool, film: usize) -> Result<StreamId, Error> {
    let (volume, contract) = (film_name(film), load::contract());
    let op = calls::StreamOpen { volume, mode: Mode::Read, contract, start: Bytes::ZERO };
    Ok(pool.call(op)?.stream)
}

/// Reads a film at its rate until it is over.
fn play(pool: &Pool, stream: StreamId, over: &AtomicBool) {
    let _ = engine::keep_time(); // its lateness is the host's, and told
    let contract = load::contract();
    let mut began = None;
    for block in 1.. {
        let read = pool.call(calls::StreamRead { stream, len_max: contract.block });
        let Playout::Data { bytes, .. } = read.expect("an admitted film") else { break };
        let len = Bytes::new(bytes.len() as u64);
        drop(bytes);
        let began = *began.get_or_insert_with(Instant::now);
        pool.call(calls::StreamAdvance { stream, len }).expect("it was given these");
        let played = contract.rate.time_for(contract.block * block);
        let due = began + Duration::from_nanos(played.as_nanos());
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
    pool.call(calls::StreamClose { stream }).expect("an open film");
}

/// Asks for every read at its instant; the mean latency in milliseconds.
fn reads(pool: &Pool, load: &Load) -> f64 {
    let _ = engine::keep_time();
    let (ended, all) = mpsc::channel();
    let failed = Arc::new(Mutex::new(None));
    let begin = Instant::now();
    for read in &load.reads {
        let due = begin + read.at;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let (ended, failed) = (ended.clone(), Arc::clone(&failed));
        let op =
            Op::Read { volume: "files".into(), offset: read.offset, len: READ, priority: None };
        pool.submit(op, move |result| {
            if let Err(error) = result {
                *failed.lock().expect("no panic") = Some(error);
            }
            let _ = ended.send(due.elapsed()); // nobody listens once something failed
        });
    }
    drop(ended);
    let total: Duration = all.iter().sum();
    assert!(failed.lock().expect("no panic").is_none(), "a read of what was written failed");
    total.as_secs_f64() * 1e3 / load.reads.len() as f64
}
