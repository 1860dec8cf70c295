//! Contracts on ordinary files: which devices they lie on, and how a program's file
//! becomes a stream beside the pool's.
//!
//! A program opens its file and hands the descriptor over: what it may not read, it
//! cannot hand over. From then on its stream is one like any other ([`Together`]): listed,
//! changed, closed and carried in the same way. Invariant: file streams have numbers from
//! [`FIRST_STREAM`] on, their devices from [`FIRST_DEVICE`] on, so that nothing of the
//! pool is ever taken for theirs.

mod desk;
mod given;
mod settings;
mod together;

pub use given::{Given, Hand};
pub use settings::{DeviceSettings, Settings};
pub use together::Together;

use crate::limits::FILE_WITHIN;
use crate::lock::Mutex;
use crate::problem;
use desk::{Desk, Opening, Stays};
use disk::Profile;
use engine::{BlockDevice, HostFile, IoClass};
use files::{FileMap, Measuring, Options, Piece};
use given::{Hands, Held};
use node::{Contract, DiskIndex, Op, StreamId, StreamStatus, Who};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Bytes, Direction, Duration, Instant, Lba};
use wire::control as api;
use wire::{Code, Problem};

/// The number of the first stream on a file; a pool's count from 1 and do not get there.
pub const FIRST_STREAM: u64 = 1_000_000_000_000;
/// The number of the first device with files under contract.
pub const FIRST_DEVICE: u16 = 0x8000;
/// The longest request of others that is counted with where nothing else is said,
const OTHERS_LONGEST: Bytes = Bytes::kib(512);
/// and so many of them.
const OTHERS_MANY: u64 = 4;

/// So often what answers took is looked at though none are carried: it counts for ten minutes and
/// more.
const FORGET_EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// A device without a file under contract is forgotten after so long, with what happened on it: it has
/// threads, and may be gone itself. One that comes again is measured again.
const DEVICE_KEPT: Duration = Duration::from_secs(3_600);

/// All devices with files under contract.
pub struct Files {
    settings: Settings,
    host_latency: Duration,
    desks: Mutex<Desks>,
    /// Of each device, by name: held while it is looked at and measured.
    finding: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    hands: Arc<Hands>,
    next_stream: AtomicU64,
    carried: Mutex<Carried>,
}

#[derive(Default)]
struct Desks {
    all: Vec<Arc<Desk>>,
    /// How many there have been.
    next: u16,
    /// The daemon stops: none is started any more.
    stopped: bool,
}

impl Desks {
    /// A number that none of them has: each has another one than those before, for as long as that goes.
    fn number(&mut self) -> Option<DiskIndex> {
        let last = u16::MAX - FIRST_DEVICE;
        (0..=last).find_map(|_| {
            let index = DiskIndex(FIRST_DEVICE + self.next.min(last));
            self.next = if self.next >= last { 0 } else { self.next + 1 };
            self.all.iter().all(|desk| desk.index != index).then_some(index)
        })
    }
}

/// How long answers under contract take to their programs. The threads that carry them are the
/// same for the pool's answers and for those of files, and so is what they take.
#[derive(Default)]
struct Carried {
    measuring: Measuring,
    /// What every device is to count.
    wanted: Duration,
}

/// A file that was looked at and may be given a contract.
pub struct Found {
    desk: Stays,
    file: Held,
    map: FileMap,
}

/// A contract on a file.
pub struct Taken {
    /// The number of the stream.
    pub stream: StreamId,
    /// Memory of its window.
    pub window: Bytes,
    /// Where the file was.
    pub name: String,
    /// How long it was.
    pub length: Bytes,
    /// What can disturb the promise, in words.
    pub notes: Vec<String>,
}

fn bad(what: impl Into<String>, next_step: impl Into<String>) -> Box<Problem> {
    Box::new(Problem::new(Code::BadFile, what, next_step))
}

impl Files {
    /// None yet.
    pub fn new(settings: &Settings, host_latency: Duration) -> Arc<Self> {
        Arc::new(Self {
            settings: settings.clone(),
            host_latency,
            desks: Mutex::default(),
            finding: Mutex::default(),
            hands: Arc::default(),
            next_stream: AtomicU64::new(FIRST_STREAM),
            carried: Mutex::default(),
        })
    }

    fn desks(&self) -> Vec<Arc<Desk>> {
        self.desks.lock().all.clone()
    }

    /// A hand for a descriptor of this user, if there is one.
    pub fn hand(&self, uid: u32) -> Option<Hand> {
        self.hands.free(uid)
    }

    /// Looks at a file that a program has opened, and at its device: the first time with a
    /// measurement of some seconds, unless the configuration has a profile.
    ///
    /// # Errors
    /// Where no contract can be given on it, or the file system has not answered within
    /// [`FILE_WITHIN`]; then a thread waits for that answer, and nobody else does.
    pub async fn find(self: &Arc<Self>, given: Given) -> Result<Found, Box<Problem>> {
        let (told, coming) = tokio::sync::oneshot::channel();
        let files = Arc::clone(self);
        given.look(move |given, hand| {
            // Who has stopped waiting need not hear it.
            let _ = told.send(files.look(given, hand));
        });
        match tokio::time::timeout(FILE_WITHIN, coming).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => Err(bad("the file could not be looked at", "see the daemon's messages")),
            Err(_) => {
                let within = FILE_WITHIN.as_secs();
                let what = format!("its file system has not answered for {within} s");
                Err(bad(what, "see what keeps its device busy, and try again"))
            }
        }
    }

    /// The same, on this thread.
    fn look(&self, given: OwnedFd, hand: &Hand) -> Result<Found, Box<Problem>> {
        if !self.settings.enabled {
            let next = "set `enabled = true` in the section [files] of its configuration";
            return Err(bad("this daemon gives no contracts on files", next));
        }
        let refused = |error: engine::FileError| bad(error.to_string(), error.next_step());
        let file = Held::new(HostFile::take(given).map_err(refused)?, hand);
        let place = file.path().display().to_string();
        let system = |error: std::io::Error| {
            bad(format!("{place}: its device: {error}"), "see the daemon's messages")
        };
        let device = file.device().map_err(system)?;
        let desk = self
            .desk(&file, &device)
            .map_err(|error| bad(format!("{place} is on {}: {}", device.name, error.0), error.1))?;
        let extents = file.extents().map_err(refused)?;
        let length = file.length().map_err(system)?;
        let map = map(&extents, length, desk.start_of(&device), &desk);
        Ok(Found { map: map?, desk, file })
    }

    fn desk(&self, file: &HostFile, device: &BlockDevice) -> Result<Stays, (String, String)> {
        let turns = {
            let mut finding = self.finding.lock();
            Arc::clone(finding.entry(device.name.clone()).or_default())
        };
        let found = {
            let _one = turns.lock();
            self.found_or_new(file, device)
        };
        let mut finding = self.finding.lock();
        if Arc::strong_count(&turns) == 2 {
            finding.remove(&device.name); // nobody else waits
        }
        found
    }

    fn found_or_new(
        &self,
        file: &HostFile,
        device: &BlockDevice,
    ) -> Result<Stays, (String, String)> {
        // Another disk may have come under the same name.
        let is_same =
            |desk: &Arc<Desk>| desk.device.name == device.name && desk.device.size == device.size;
        let mut same = self.desks().into_iter().filter(is_same);
        if let Some(stays) = same.find_map(|desk| desk.stays()) {
            return Ok(stays);
        }
        let drives = file.drives();
        let beside = taken(&drives, &self.settings.pool_drives);
        if let Some((drive, disk)) = beside
            && !self.settings.shared_drive
        {
            let what = format!(
                "it lies on the drive {drive}, as the pool's disk {} does, which is promised all \
                 of its time",
                disk.display()
            );
            let next = "put it on another drive, or into a volume with `slackline record`; or \
                        serve with --shared-drive where contracts on both may be late";
            return Err((what, next.to_owned()));
        }
        let own = self.settings.device.iter().find(|own| own.is(device));
        let profile = match own.and_then(|own| own.profile.as_deref()) {
            Some(path) => {
                let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
                let parsed =
                    read.and_then(|text| Profile::parse(&text).map_err(|error| error.to_string()));
                let next =
                    "give what `slackline disk profile` wrote, in the section [[files.device]]";
                parsed.map_err(|error| (format!("{}: {error}", path.display()), next.to_owned()))?
            }
            None => device.measure(file).map_err(|error| {
                (format!("cannot measure it: {error}"), "see the daemon's messages".to_owned())
            })?,
        };
        let mut notes = notes(device, &profile, own.is_some_and(|own| own.profile.is_some()));
        if let Some((drive, disk)) = beside {
            notes.push(format!(
                "the pool's disk {} lies on the same drive, {drive}: what its contracts take is \
                 not counted here, so that both may be late",
                disk.display()
            ));
        }
        for note in &notes {
            tracing::info!(device = %device.name, "files on {}: {note}", device.name);
        }
        let others = own.and_then(|own| own.others).unwrap_or_else(|| others(device, &profile));
        let share = own.and_then(|own| own.share).or(self.settings.share);
        let options = Options {
            share_ppm: share.map_or(settings::SHARE_PPM, |share| share.0),
            others,
            host_latency: self.host_latency,
            gap: engine::first_gap(self.settings.realtime, self.host_latency).min(files::GAP_MAX),
            ride_out: self.settings.ride_out.unwrap_or(settings::RIDE_OUT),
            memory: self.settings.memory.unwrap_or(settings::MEMORY),
        };
        options.check().map_err(|error| (error.to_string(), "correct [files]".to_owned()))?;
        self.start(device.clone(), profile, options, notes)
    }

    fn start(
        &self,
        device: BlockDevice,
        profile: Profile,
        options: Options,
        notes: Vec<String>,
    ) -> Result<Stays, (String, String)> {
        let next = "see the daemon's messages";
        // Every answer of every stream looks here: nothing that takes its time goes before this.
        let mut desks = self.desks.lock();
        if desks.stopped {
            return Err(("the daemon stops".to_owned(), "start it again".to_owned()));
        }
        let many = || ("there are too many devices".to_owned(), next.to_owned());
        let index = desks.number().ok_or_else(many)?;
        let realtime = self.settings.realtime;
        let desk = Desk::start(index, device, profile, options, notes, realtime)
            .map_err(|error| (error.to_string(), next.to_owned()))?;
        let carried = self.carried.lock().wanted;
        desk.set_delivery(carried);
        let stays = desk.stays().expect("nobody else knows it yet");
        desks.all.push(desk);
        Ok(stays)
    }

    /// Parts with the devices that have had no file under contract for long.
    fn part(&self, now: Instant) {
        self.desks.lock().all.retain(|desk| !desk.leave(now, DEVICE_KEPT));
    }

    /// Gives a contract on a file that was looked at; admission decides.
    pub fn open(
        &self,
        found: Found,
        contract: &Contract,
        start: Bytes,
    ) -> Result<Taken, Box<Problem>> {
        let Found { desk, file, map } = found;
        let (name, length) = (report::plain(&file.path().display().to_string()), map.length());
        let stream = StreamId(self.next_stream.fetch_add(1, Ordering::Relaxed));
        let opening = Opening { stream, name: name.clone(), file, map, start };
        let window = desk.open(opening, contract).map_err(|error| {
            let mut problem = Box::new(problem::of(&error));
            problem.detail = named(&problem.detail, &desk);
            problem.next_step = named(&problem.next_step, &desk);
            problem
        })?;
        Ok(Taken { stream, window, name, length, notes: desk.notes.clone() })
    }

    /// The device that a stream's file is on.
    fn desk_of(&self, stream: StreamId) -> Option<Arc<Desk>> {
        if stream.0 < FIRST_STREAM {
            return None;
        }
        self.desks().into_iter().find(|desk| desk.has(stream))
    }

    /// The streams, as a pool's.
    fn streams(&self) -> Vec<StreamStatus> {
        self.desks().iter().flat_map(|desk| desk.streams()).collect()
    }

    /// What a device is called.
    fn name(&self, index: DiskIndex) -> Option<String> {
        let desks = self.desks();
        let desk = desks.iter().find(|desk| desk.index == index)?;
        Some(format!("device {}", desk.device.name))
    }

    /// Forgets what answers took long ago, for ever, also while none are carried; and devices that
    /// nobody uses.
    pub async fn forget_in_time(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(FORGET_EVERY).await;
            let now = engine::now();
            self.forget(now);
            self.part(now);
        }
    }

    /// Ends every stream and every thread.
    fn shut_down(&self) {
        self.desks.lock().stopped = true;
        self.desks().iter().for_each(|desk| desk.stop());
    }

    /// An answer under contract took so long from here to its program.
    fn delivered(&self, now: Instant, took: Duration) {
        self.carry(|measuring, counted| measuring.record(now, took, counted));
    }

    /// It is `now`: what was measured of answers long ago does not count any more.
    fn forget(&self, now: Instant) {
        self.carry(|measuring, counted| measuring.pass(now, counted));
    }

    fn carry(&self, measure: impl FnOnce(&mut Measuring, Duration)) {
        let wanted = {
            let Carried { measuring, wanted } = &mut *self.carried.lock();
            measure(measuring, *wanted);
            measuring.take_wanted().inspect(|takes| *wanted = *takes)
        };
        if let Some(takes) = wanted {
            self.desks().iter().for_each(|desk| desk.set_delivery(takes));
        }
    }

    /// All devices, with what happened on them, as `who` is shown them.
    pub fn told(&self, who: &Who) -> api::FileDevices {
        let carried = |counted| self.carried.lock().measuring.seen(counted);
        let told = |desk: &Arc<Desk>| {
            let mut told = desk.told(carried, who);
            for time in [&mut told.gap, &mut told.delivery] {
                time.refused = time.refused.take().map(|text| named(&text, desk));
            }
            told
        };
        api::FileDevices { devices: self.desks().iter().map(told).collect() }
    }

    /// The operation is about a stream on a file, whose device this is.
    fn desk_for(&self, op: &Op) -> Option<Arc<Desk>> {
        match op {
            Op::StreamRead { stream, .. }
            | Op::StreamAdvance { stream, .. }
            | Op::StreamChange { stream, .. }
            | Op::StreamSeek { stream, .. }
            | Op::StreamRoom { stream, .. }
            | Op::StreamWrite { stream, .. }
            | Op::StreamDurable { stream, .. }
            | Op::StreamSync { stream }
            | Op::StreamClose { stream } => self.desk_of(*stream),
            _ => None,
        }
    }
}

/// A text that names the device as people do.
fn named(text: &str, desk: &Desk) -> String {
    let number = desk.index.0;
    text.replace(&format!("disk {number}"), &format!("device {}", desk.device.name))
}

/// Where a file lies on its whole device.
fn map(
    extents: &[engine::Extent],
    length: Bytes,
    start: Bytes,
    desk: &Desk,
) -> Result<FileMap, Box<Problem>> {
    let piece = |extent: &engine::Extent| Piece {
        at: extent.at,
        len: extent.len,
        lba: Lba::containing(start + extent.place),
    };
    let pieces = extents.iter().map(piece).collect();
    FileMap::new(pieces, length, desk.capacity).map_err(|error| {
        let next = format!("give the profile of {} in [[files.device]]", desk.device.name);
        bad(error.to_string(), next)
    })
}

/// The drive of a file that the pool has, and the pool's disk on it, if there is one.
fn taken<'a>(drives: &[String], pool: &'a [(String, PathBuf)]) -> Option<(&'a str, &'a Path)> {
    let (drive, disk) = pool.iter().find(|(drive, _)| drives.contains(drive))?;
    Some((drive, disk))
}

/// What others may have in a device when a read under contract comes, where nobody says:
/// as many long requests as the kernel has in it at a time, up to a few.
fn others(device: &BlockDevice, profile: &Profile) -> Duration {
    let end = Lba::containing(profile.capacity());
    let len = OTHERS_LONGEST.min(device.longest);
    let cost = profile.worst(Lba::default()..end, len, Direction::Read);
    cost * device.depth.clamp(1, OTHERS_MANY)
}

/// What can disturb a promise on this device, in words.
fn notes(device: &BlockDevice, profile: &Profile, given: bool) -> Vec<String> {
    let name = &device.name;
    let mut notes = vec![format!(
        "programs without a contract use {name} as well: a read under contract waits for what {name} is \
         doing for them; `slackline files` counts the reads that waited longer than contracts allow for"
    )];
    if !matches!(device.scheduler.as_str(), "mq-deadline" | "bfq") {
        let scheduler = if device.scheduler.is_empty() { "none" } else { &device.scheduler };
        notes.push(format!(
            "the kernel's scheduler of {name} is {scheduler}, which knows no classes, so that a read under \
             contract waits for all requests that came before it; \
             `echo mq-deadline > /sys/block/{name}/queue/scheduler` has it served before them"
        ));
    }
    let permitted = std::thread::spawn(|| engine::io_class(IoClass::RealTime)).join();
    if let Ok(Err(error)) = permitted {
        notes.push(format!(
            "the daemon has no real-time I/O class ({error}), so that its reads wait as everybody's; \
             run it as root, or give it CAP_SYS_NICE"
        ));
    }
    if !given {
        notes.push(format!(
            "the profile of {name} was measured within seconds while others used it ({}); measure it with \
             `slackline disk profile -o FILE`, and name the file under [[files.device]]",
            profile.source
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each device has threads: a daemon that has seen many has those of the ones that are used.
    #[test]
    fn a_device_that_nobody_uses_any_more_is_parted_with() {
        use super::desk::tests::{device_called, options, profile};
        let files = Files::new(&Settings::default(), Duration::ZERO);
        let start = |name: &str| {
            let started = files.start(device_called(name), profile(), options(), Vec::new());
            started.expect("there are threads")
        };
        let names = || {
            let named = |desk: &Arc<Desk>| (desk.index.0 - FIRST_DEVICE, desk.device.name.clone());
            files.desks().iter().map(named).collect::<Vec<_>>()
        };
        let (gone, used) = (Arc::downgrade(&start("sdb")), start("sdc"));
        let later = |hours: u64| engine::now() + DEVICE_KEPT * hours;
        files.part(engine::now());
        assert_eq!(names().len(), 2, "it may be used again at once");
        files.part(later(1));
        assert_eq!(names(), [(1, "sdc".into())]);
        assert_eq!(files.name(DiskIndex(FIRST_DEVICE)), None);
        assert_eq!(files.name(used.index).as_deref(), Some("device sdc"));
        // Its threads have ended, or this waits for ever.
        while gone.strong_count() > 0 {
            std::thread::yield_now();
        }
        // Other ones have other numbers, as long as that goes.
        drop(start("sdd"));
        assert_eq!(names(), [(1, "sdc".into()), (2, "sdd".into())]);
        files.desks.lock().next = u16::MAX - FIRST_DEVICE;
        let last = start("sde");
        drop((start("sdf"), start("sdg")));
        assert_eq!(last.index.0, u16::MAX);
        assert_eq!(names()[3..], [(0, "sdf".into()), (3, "sdg".into())]);
        // One of which a file was looked at stays until that is over.
        drop(last);
        files.part(later(3));
        assert_eq!(names(), [(1, "sdc".into())]);
        files.shut_down();
        assert!(files.start(device_called("sdh"), profile(), options(), Vec::new()).is_err());
    }

    /// A file on a partition beside the pool's: contracts on both would each be promised
    /// time that the other one has.
    #[test]
    fn a_drive_that_the_pool_has_is_taken() {
        let pool = [("sdb", "/dev/sdb2"), ("sdc", "/dev/sdc")]
            .map(|(drive, disk)| (drive.to_owned(), PathBuf::from(disk)));
        let drives = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let named = |names: &[&str]| {
            let drives: Vec<String> = drives(names);
            taken(&drives, &pool).map(|(drive, disk)| (drive.to_owned(), disk.to_owned()))
        };
        assert_eq!(named(&["sda", "sdb"]), Some(("sdb".into(), "/dev/sdb2".into())));
        assert_eq!(named(&["sda"]), None);
        assert_eq!(named(&[]), None, "what is not known shares nothing");
    }
}
