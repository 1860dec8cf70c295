//! The profiler in real time: carries out what it asks, and takes the times.
//!
//! Invariants: the target is opened for writing only where [`ProfileOptions`] say
//! so, and a block device then exclusively, so that none that is mounted or
//! otherwise held is written to; every answer is in the journal before the next
//! question is asked, so that a stop at any moment loses one answer.

use crate::aligned::Aligned;
use crate::claim;
use crate::device::{self, DeviceSpec};
use crate::error::PoolError;
use crate::lock::Mutex;
use crate::sys;
use disk::profiler::{
    COMMAND_MAX, Effort, Findings, Options, Profiler, Progress, Question, Step, Timing,
};
use disk::{Drive, Emulated, Model};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use units::{Bytes, Command, Direction, Duration, Instant, SECTOR};

/// Sleep leaves so much of a wait to be spun through; timers are late by less.
const SPIN: Duration = Duration::from_micros(200);
/// A command that takes longer has stalled: its time says nothing of the device's
/// ways, and counts as a failure.
const STALL: Duration = Duration::from_secs(4);

/// How to profile.
#[derive(Clone, Debug)]
pub struct ProfileOptions {
    /// How thorough.
    pub effort: Effort,
    /// Whether the target may be written to, which destroys what is there.
    pub write: bool,
    /// Where the answers are kept, to go on after a stop.
    pub journal: PathBuf,
}

/// How a measurement ended.
#[derive(Debug)]
pub enum Profiled {
    /// Complete.
    Done(Box<Findings>),
    /// Told to stop; the journal has everything so far.
    Stopped(Progress),
}

/// Why a target cannot be profiled.
#[derive(Debug)]
pub enum ProfileError {
    /// What a pool cannot be made of, either.
    Device(PoolError),
    /// The block device is mounted, or another program has it.
    Held(PathBuf),
    /// Writing was asked for and the target may only be read.
    ReadOnly(PathBuf),
    /// A file with parts that were never written.
    Holes(PathBuf),
    /// The profiler will not measure it.
    Profiler(PathBuf, disk::Error),
    /// The journal cannot be read or written.
    Journal(PathBuf, io::Error),
}

impl ProfileError {
    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Device(_) => "name a file, a block device, or emulated:MODEL:FILE",
            Self::Held(_) => "unmount it, or profile another disk",
            Self::ReadOnly(_) => "leave --write away, or change what the target allows",
            Self::Holes(_) => {
                "fill it first, for example with dd, so that reads reach the disk; never the file of a pool: \
                 what is in it would be lost"
            }
            Self::Profiler(..) => "correct the target, or delete the journal to start anew",
            Self::Journal(..) => "give another place with --journal",
        }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => write!(f, "{error}"),
            Self::Held(path) => {
                write!(f, "{} is mounted or held by another program", path.display())
            }
            Self::ReadOnly(path) => write!(f, "{} may only be read", path.display()),
            Self::Holes(path) => write!(
                f,
                "{} has parts that were never written; reads of them never reach a disk",
                path.display()
            ),
            Self::Profiler(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Journal(path, error) => write!(f, "journal {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ProfileError {}

impl From<PoolError> for ProfileError {
    fn from(error: PoolError) -> Self {
        Self::Device(error)
    }
}

/// Profiles a target. `warn` hears first of all what should be known about the way it
/// is measured, `tell` of progress after every answer; `stop` is looked at before
/// every question.
///
/// The calling thread gets the priority of a disk's thread, where the system allows
/// it: a clock that is read late by milliseconds shows no platters turning.
///
/// # Errors
/// When the target or the journal cannot be used; nothing was changed then.
pub fn profile(
    spec: &DeviceSpec,
    options: &ProfileOptions,
    stop: &AtomicBool,
    warn: &mut dyn FnMut(&str),
    tell: &mut dyn FnMut(Progress),
) -> Result<Profiled, ProfileError> {
    let mut target = Target::open(spec, options.write)?;
    let path = spec.path();
    let wanted = Options {
        write: options.write,
        grain: target.grain,
        ..match options.effort {
            Effort::Quick => Options::quick(),
            Effort::Full => Options::full(),
        }
    };
    let refused = |error| ProfileError::Profiler(path.to_owned(), error);
    let (mut profiler, mut journal) = Journal::open(&options.journal, target.capacity, &wanted)
        .map_err(|error| match error {
            Trouble::Journal(error) => ProfileError::Journal(options.journal.clone(), error),
            Trouble::Profiler(error) => refused(error),
        })?;
    if let Err(error) = crate::thread::keep_time() {
        target.warnings.push(format!(
            "no real-time priority ({error}): on a busy host the times are late, and what turns \
             may not be seen to"
        ));
    }
    target.warnings.iter().for_each(|warning| warn(warning));
    let mut last = sys::now();
    while let Step::Ask(question) = profiler.poll() {
        if stop.load(Ordering::Relaxed) {
            return Ok(Profiled::Stopped(profiler.progress()));
        }
        let answers = target.answer(&question, last);
        last = answers.iter().map(|answer| answer.finished).max().unwrap_or(last);
        journal
            .append(&Profiler::journal_entry(&question, &answers))
            .map_err(|error| ProfileError::Journal(options.journal.clone(), error))?;
        profiler.done(&answers);
        tell(profiler.progress());
    }
    let findings = profiler.findings().expect("the profiler is done").clone();
    Ok(Profiled::Done(Box::new(findings)))
}

/// What is measured.
pub(crate) struct Target {
    medium: Medium,
    /// How much it holds.
    pub capacity: Bytes,
    /// The smallest transfer that it takes.
    grain: Bytes,
    /// What should be known about the way it is measured.
    pub warnings: Vec<String>,
}

enum Medium {
    File { file: File, bytes: Aligned },
    Emulated(Box<Emulated>),
}

impl Target {
    /// Opens a target, for writing only where that is asked for.
    pub fn open(spec: &DeviceSpec, write: bool) -> Result<Self, ProfileError> {
        match spec {
            DeviceSpec::Emulated { model, path } => Self::emulated(model, path),
            DeviceSpec::Real { path } => Self::real(path, write),
        }
    }

    /// A model in real time. The backing file only says how large it is; it is
    /// neither read nor written, and may be missing: then the disk is of full size.
    fn emulated(model: &str, path: &Path) -> Result<Self, ProfileError> {
        let wrong = |error| ProfileError::Profiler(path.to_owned(), error);
        let mut model = Model::named(model).map_err(wrong)?;
        if let Ok(metadata) = std::fs::metadata(path) {
            model = model.scaled(Bytes::new(metadata.len())).map_err(wrong)?;
        }
        Ok(Self {
            capacity: model.capacity(),
            medium: Medium::Emulated(Box::new(Emulated::new(&model))),
            grain: SECTOR,
            warnings: Vec::new(),
        })
    }

    fn real(path: &Path, write: bool) -> Result<Self, ProfileError> {
        let block = device::is_block_device(path)?;
        let mut warnings = Vec::new();
        let file = open_direct(path, block, write, &mut warnings)?;
        if write && block && is_read_only(&file) {
            return Err(ProfileError::ReadOnly(path.to_owned()));
        }
        claim::lock(&file, path)?;
        let size = sys::size(&file).map_err(PoolError::io(path, "ask for its size"))?;
        if !block {
            refuse_holes(&file, path, size)?;
        }
        let mut bytes = Aligned::zeroed(COMMAND_MAX);
        // Something that no device compresses away.
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for byte in bytes.iter_mut() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (random >> 56) as u8;
        }
        // The smallest transfer that is taken, found by trying.
        let grain = [SECTOR, crate::arena::PAGE]
            .into_iter()
            .find(|grain| file.read_at(&mut bytes[..grain.as_usize()], grain.get()).is_ok())
            .unwrap_or(crate::arena::PAGE);
        Ok(Self { medium: Medium::File { file, bytes }, capacity: size, grain, warnings })
    }

    /// Carries a question out; `last` is when the answer before it ended.
    pub fn answer(&mut self, question: &Question, last: Instant) -> Vec<Timing> {
        wait_until(last.saturating_add(question.delay));
        let depth = (question.depth as usize).min(question.commands.len());
        match &mut self.medium {
            Medium::Emulated(drive) => {
                question.commands.iter().map(|command| emulate(drive, command)).collect()
            }
            Medium::File { file, .. } if depth > 1 => at_once(file, &question.commands, depth),
            Medium::File { file, bytes } => {
                question.commands.iter().map(|command| transfer(file, bytes, command)).collect()
            }
        }
    }
}

fn open_direct(
    path: &Path,
    block: bool,
    write: bool,
    warnings: &mut Vec<String>,
) -> Result<File, ProfileError> {
    let open_as =
        |flags: i32| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    let exclusive = if block { libc::O_EXCL } else { 0 };
    let mut open = |flags: i32| match open_as(flags | exclusive) {
        // Reading does no harm to a file system that is mounted from it.
        Err(error) if block && !write && error.raw_os_error() == Some(libc::EBUSY) => {
            warnings.push(format!(
                "{} is mounted or held by another program: it is only read, and what the others \
                 do with it is in the times",
                path.display()
            ));
            open_as(flags)
        }
        opened => opened,
    };
    let opened = match open(libc::O_DIRECT) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let opened = open(0);
            warnings.push(format!(
                "{}: its file system has no direct I/O; what is timed is the system's memory, \
                 not a disk",
                path.display()
            ));
            opened
        }
        opened => opened,
    };
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY | libc::ETXTBSY) => ProfileError::Held(path.to_owned()),
        Some(libc::EROFS) => ProfileError::ReadOnly(path.to_owned()),
        Some(libc::EACCES | libc::EPERM) if write && File::open(path).is_ok() => {
            ProfileError::ReadOnly(path.to_owned())
        }
        _ => PoolError::io(path, "open it")(error).into(),
    })
}

/// Whether a block device refuses writes: some are opened for them all the same, and
/// only the writes fail.
fn is_read_only(file: &File) -> bool {
    let told = file.metadata().and_then(|metadata| {
        let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"))
    });
    told.is_ok_and(|told| told.trim() == "1")
}

/// A read of what was never written is answered by the file system alone, also where its room is reserved.
fn refuse_holes(file: &File, path: &Path, size: Bytes) -> Result<(), ProfileError> {
    let metadata = file.metadata().map_err(PoolError::io(path, "ask for its size"))?;
    let held = Bytes::new(metadata.blocks() * 512).min(written(file).unwrap_or(Bytes::MAX));
    // A sixteenth for what file systems inline, compress or share.
    if held < size - size / 16 { Err(ProfileError::Holes(path.to_owned())) } else { Ok(()) }
}

/// How many bytes of a file were written; none where its file system does not say.
fn written(file: &File) -> Option<Bytes> {
    let found = sys::extents(file, usize::MAX, true).ok()?;
    let there = found.iter().filter(|found| !found.is_zeros).map(|found| found.extent.len);
    Some(there.fold(Bytes::ZERO, Bytes::saturating_add))
}

fn wait_until(at: Instant) {
    loop {
        let left = at.saturating_since(sys::now());
        if left.is_zero() {
            return;
        }
        match left.saturating_sub(SPIN) {
            Duration::ZERO => std::hint::spin_loop(),
            sleep => std::thread::sleep(std::time::Duration::from_nanos(sleep.as_nanos())),
        }
    }
}

fn emulate(drive: &mut Emulated, command: &Command) -> Timing {
    let started = sys::now();
    wait_until(started + drive.serve(started, command));
    Timing { started, finished: sys::now(), failed: false }
}

fn transfer(file: &File, bytes: &mut Aligned, command: &Command) -> Timing {
    let started = sys::now();
    let result = match command {
        Command::Flush => file.sync_data(),
        // Nothing that a file or a block device can be asked for.
        Command::Seek(_) => Err(std::io::ErrorKind::Unsupported.into()),
        Command::Transfer(access) | Command::Forced(access) => {
            let bytes = &mut bytes[..access.len.as_usize()];
            let offset = access.lba.offset().get();
            match access.direction {
                Direction::Read => file.read_exact_at(bytes, offset),
                Direction::Write if matches!(command, Command::Forced(_)) => {
                    file.write_all_at(bytes, offset).and_then(|()| file.sync_data())
                }
                Direction::Write => file.write_all_at(bytes, offset),
            }
        }
    };
    let finished = sys::now();
    let stalled = finished.saturating_since(started) > STALL;
    Timing { started, finished, failed: result.is_err() || stalled }
}

/// Keeps `depth` commands in flight, each from a thread of its own.
fn at_once(file: &File, commands: &[Command], depth: usize) -> Vec<Timing> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(vec![None; commands.len()]);
    std::thread::scope(|scope| {
        for _ in 0..depth {
            scope.spawn(|| {
                let mut bytes = Aligned::zeroed(Bytes::mib(1));
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(command) = commands.get(index) else { break };
                    let timing = transfer(file, &mut bytes, command);
                    answers.lock()[index] = Some(timing);
                }
            });
        }
    });
    let answers = std::mem::take(&mut *answers.lock());
    answers.into_iter().map(|answer| answer.expect("every command was taken")).collect()
}

/// The answers so far, on a disk.
struct Journal {
    file: File,
}

enum Trouble {
    Journal(io::Error),
    Profiler(disk::Error),
}

impl Journal {
    /// Opens a journal and the profiler that goes on from it; a new one where there
    /// is none.
    fn open(path: &Path, capacity: Bytes, options: &Options) -> Result<(Profiler, Self), Trouble> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Trouble::Journal(error)),
        };
        let (profiler, used) = if text.is_empty() {
            (Profiler::new(capacity, options.clone()).map_err(Trouble::Profiler)?, 0)
        } else {
            Profiler::resume(capacity, options.clone(), &text).map_err(Trouble::Profiler)?
        };
        let open = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            file.set_len(used as u64)?;
            file.seek(SeekFrom::End(0))?;
            let first = if used == 0 {
                profiler.journal_header()
            } else {
                Profiler::JOURNAL_RESUMED.to_owned()
            };
            file.write_all(first.as_bytes())?;
            Ok(Self { file })
        };
        let journal = open().map_err(Trouble::Journal)?;
        Ok((profiler, journal))
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;
    use units::{Access, Lba};

    fn scratch() -> TempDir {
        tempfile::Builder::new().prefix("slackline-").tempdir().unwrap()
    }

    fn options(journal: &Path) -> ProfileOptions {
        ProfileOptions { effort: Effort::Quick, write: false, journal: journal.to_owned() }
    }

    #[test]
    fn a_sparse_file_and_a_small_one_are_refused_in_clear_words() {
        let dir = scratch();
        let (path, journal) = (dir.path().join("disk"), dir.path().join("journal"));
        File::create(&path).unwrap().set_len(64 << 20).unwrap();
        let spec = DeviceSpec::Real { path: path.clone() };
        let run = |spec: &DeviceSpec| {
            let never = AtomicBool::new(false);
            profile(spec, &options(&journal), &never, &mut |_| (), &mut |_| ())
                .unwrap_err()
                .to_string()
        };
        assert!(run(&spec).contains("never written"), "{}", run(&spec));
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        assert!(run(&spec).contains("give at least 8 MiB"), "{}", run(&spec));
        let missing = DeviceSpec::Real { path: dir.path().join("missing") };
        assert!(run(&missing).contains("cannot open it"), "{}", run(&missing));
        assert!(!journal.exists(), "nothing is left behind");
    }

    /// What a file has reserved reads as zeros, which no disk is asked for, until it is written: the profile
    /// was that of the file system.
    #[test]
    fn a_file_that_was_reserved_and_not_written_is_refused() {
        let dir = scratch();
        let (path, journal) = (dir.path().join("disk"), dir.path().join("journal"));
        let file = File::create(&path).unwrap();
        let mib = |mib: u64| Bytes::mib(mib);
        let is_reserved = sys::reserve(&file, mib(32)).is_ok();
        if !is_reserved || written(&file).is_none() {
            return skips::not_run("needs a file system that reserves and says what was written");
        }
        assert!(file.metadata().unwrap().blocks() * 512 >= mib(32).get(), "it has its room");
        let spec = DeviceSpec::Real { path: path.clone() };
        let refused = || {
            let stop = AtomicBool::new(true);
            let ended = profile(&spec, &options(&journal), &stop, &mut |_| (), &mut |_| ());
            matches!(ended, Err(ProfileError::Holes(_)))
        };
        assert!(refused());
        assert!(!journal.exists(), "nothing is left behind");
        // A sixteenth may be missing.
        file.write_all_at(&vec![7; mib(29).as_usize()], 0).unwrap();
        assert!(refused(), "written: {:?}", written(&file));
        file.write_all_at(&vec![7; mib(1).as_usize()], mib(31).get()).unwrap();
        assert!(!refused(), "written: {:?}", written(&file));
    }

    /// Stopped after some answers, as by a signal, and started again.
    #[test]
    fn a_stopped_measurement_goes_on() {
        let dir = scratch();
        let (path, journal) = (dir.path().join("disk"), dir.path().join("journal"));
        std::fs::write(&path, vec![7; 16 << 20]).unwrap();
        let spec = DeviceSpec::Real { path: path.clone() };
        let mut seen = 0;
        for _ in 0..2 {
            let stop = AtomicBool::new(false);
            let before = seen;
            let ended = profile(&spec, &options(&journal), &stop, &mut |_| (), &mut |progress| {
                seen = progress.commands;
                stop.store(seen >= before + 40, Ordering::Relaxed);
            });
            assert!(matches!(ended, Ok(Profiled::Stopped(_))), "{ended:?}");
            assert!(seen >= before + 40, "{before} and then {seen}");
        }
        let text = std::fs::read_to_string(&journal).unwrap();
        assert_eq!(text.matches("resumed").count(), 1, "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; 16 << 20], "only read");
    }

    fn read(len: Bytes) -> Question {
        let access = Access { lba: Lba::new(0), len, direction: Direction::Read };
        let commands = vec![Command::Transfer(access)];
        Question { delay: Duration::ZERO, commands, depth: 1 }
    }

    /// Of several at once none is as long.
    #[test]
    fn the_longest_command_that_is_asked_for_is_carried_out() {
        let dir = scratch();
        let path = dir.path().join("disk");
        std::fs::write(&path, vec![7; 16 << 20]).unwrap();
        let mut target = Target::open(&DeviceSpec::Real { path }, false).unwrap();
        let answers = target.answer(&read(COMMAND_MAX), sys::now());
        assert!(matches!(answers[..], [Timing { failed: false, .. }]), "{answers:?}");
        assert!(answers[0].started <= answers[0].finished);
    }

    /// It has no backing file, and is of full size.
    #[test]
    fn an_emulated_disk_takes_the_time_of_its_model() {
        let spec: DeviceSpec = "emulated:laptop-4200:/nowhere/at/all".parse().unwrap();
        let mut target = Target::open(&spec, false).unwrap();
        let model = Model::named("laptop-4200").unwrap();
        assert_eq!(target.capacity, model.capacity());
        let [Timing { started, finished, failed: false }] =
            target.answer(&read(Bytes::MIB), sys::now())[..]
        else {
            panic!("one answer")
        };
        // No such drive reads 200 MB in a second.
        assert!(finished - started >= Duration::from_millis(5), "{}", finished - started);
    }

    /// Of what is no block device nobody says so; of those that there are the system does.
    #[test]
    fn a_device_is_read_only_where_the_system_says_so() {
        let dir = scratch();
        assert!(!is_read_only(&File::create(dir.path().join("disk")).unwrap()));
        for device in std::fs::read_dir("/sys/class/block").into_iter().flatten().flatten() {
            let said = std::fs::read_to_string(device.path().join("ro")).unwrap_or_default();
            if let Ok(file) = File::open(Path::new("/dev").join(device.file_name())) {
                assert_eq!(is_read_only(&file), said.trim() == "1", "{device:?}");
            }
        }
    }

    /// It may be anything that somebody named by mistake.
    #[test]
    fn a_journal_that_cannot_be_read_is_left_as_it_is() {
        let dir = scratch();
        let (path, journal) = (dir.path().join("disk"), dir.path().join("journal"));
        std::fs::write(&path, vec![7; 16 << 20]).unwrap();
        std::fs::write(&journal, [0xff; 100]).unwrap();
        let spec = DeviceSpec::Real { path };
        let stop = AtomicBool::new(true);
        let ended = profile(&spec, &options(&journal), &stop, &mut |_| (), &mut |_| ());
        assert!(matches!(ended, Err(ProfileError::Journal(..))), "{ended:?}");
        assert_eq!(std::fs::read(&journal).unwrap(), [0xff; 100]);
    }
}
