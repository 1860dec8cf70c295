//! Many programs beside each other on the mount, while the daemon below it is killed again and again: what
//! `fsync` has answered is there, whatever the others did at that moment.

use super::*;
use client::Durable;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::sync::atomic::AtomicBool;

const PROGRAMS: u64 = 12;
const KILLS: u64 = 4;

/// What a program knows of one of its names.
#[derive(Debug, Default)]
struct Known {
    /// The version that `fsync` has answered; none where the name is known to be gone.
    synced: Option<u64>,
    /// What may be there since: it was asked for, and no `fsync` has answered.
    maybe: Vec<Option<u64>>,
}

impl Known {
    /// Does what leads to this version: it may be there from now on, and is when all of it is answered.
    fn change(&mut self, to: Option<u64>, change: impl FnOnce() -> io::Result<()>) {
        self.maybe.push(to);
        if change().is_ok() {
            *self = Self { synced: to, maybe: Vec::new() };
        }
    }

    fn allows(&self, found: Option<u64>) -> bool {
        self.synced == found || self.maybe.contains(&found)
    }
}

/// The bytes of a version: of any length, so that a part of it is not taken for all.
fn version(program: u64, number: u64) -> Vec<u8> {
    let len = 1 + (number * 7919 + program * 104_729) % 70_000;
    let head = format!("{program} {number} {len}\n").into_bytes();
    let tail = (0..len).map(|at| (at * 31 + number * 17 + program) as u8);
    head.into_iter().chain(tail).collect()
}

/// The version that a file has, whole.
fn found(path: &Path, program: u64) -> Option<u64> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        read => read.unwrap(),
    };
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap();
    let words: Vec<u64> =
        String::from_utf8_lossy(line).split(' ').filter_map(|word| word.parse().ok()).collect();
    let number = *words.get(1).unwrap_or_else(|| panic!("{path:?} begins with {line:?}"));
    assert!(bytes == version(program, number), "{path:?}: {words:?}, {} bytes", bytes.len());
    Some(number)
}

struct Program {
    number: u64,
    /// What all programs share, with a directory of each within.
    dir: PathBuf,
    names: [Known; 3],
    versions: u64,
    /// Lines of its log that `fsync` has answered.
    lines: u64,
}

impl Program {
    fn new(number: u64, all: &Path) -> Self {
        let dir = all.join(number.to_string());
        fs::create_dir(&dir).unwrap();
        File::open(all).unwrap().sync_all().unwrap();
        Self { number, dir, names: Default::default(), versions: 0, lines: 0 }
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    /// As programs write a file that is there whole or not at all.
    fn put(&self, version: &[u8], name: usize) -> io::Result<()> {
        let new = self.dir.join("new");
        let mut file = File::create(&new)?;
        file.write_all(version)?;
        file.sync_all()?;
        fs::rename(new, self.dir.join(name.to_string()))?;
        self.sync_dir()
    }

    fn step(&mut self, round: u64) {
        let name = (round % 3) as usize;
        let mut known = std::mem::take(&mut self.names[name]);
        match (round * 5 + self.number) % 7 {
            0 => known.change(None, || {
                match fs::remove_file(self.dir.join(name.to_string())) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    removed => removed?,
                }
                self.sync_dir()
            }),
            1 | 2 => {
                let line = self.lines + 1;
                let append = || {
                    let path = self.dir.join("log");
                    let mut log = OpenOptions::new().append(true).create(true).open(path)?;
                    log.write_all(format!("{line}\n").as_bytes())?;
                    log.sync_all()?;
                    self.sync_dir()
                };
                self.lines += u64::from(append().is_ok());
            }
            _ => {
                self.versions += 1;
                let bytes = version(self.number, self.versions);
                known.change(Some(self.versions), || self.put(&bytes, name));
            }
        }
        self.names[name] = known;
    }

    fn check(&self) {
        for (name, known) in self.names.iter().enumerate() {
            let found = found(&self.dir.join(name.to_string()), self.number);
            assert!(known.allows(found), "{} {name}: {found:?} is there, {known:?}", self.number);
        }
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        let mut lines: Vec<u64> = log.lines().map(|line| line.parse().unwrap()).collect();
        // One whose `fsync` has failed was written once more.
        lines.dedup();
        let all = lines.iter().copied().eq(1..=lines.len() as u64);
        assert!(
            all && lines.len() as u64 >= self.lines,
            "{} of {}: {lines:?}",
            self.number,
            self.lines
        );
    }
}

#[test]
fn what_many_programs_have_synced_outlives_kills_of_the_daemon() {
    let Some(mut mounted) = Mounted::new() else { return };
    let all = mounted.path("all");
    fs::create_dir(&all).unwrap();
    let is_over = AtomicBool::new(false);
    let mut programs: Vec<Program> =
        (0..PROGRAMS).map(|number| Program::new(number, &all)).collect();
    std::thread::scope(|scope| {
        for program in &mut programs {
            let is_over = &is_over;
            scope.spawn(move || {
                let rounds = (0..).take_while(|_| !is_over.load(Ordering::Relaxed));
                rounds.for_each(|round| program.step(round));
            });
        }
        for kill in 0..KILLS {
            std::thread::sleep(Duration::from_millis(700 + kill * 130));
            mounted.kill_daemon();
        }
        std::thread::sleep(Duration::from_millis(500));
        is_over.store(true, Ordering::Relaxed);
    });
    programs.iter().for_each(Program::check);
    let (versions, lines) = programs
        .iter()
        .fold((0, 0), |(versions, lines), it| (versions + it.versions, lines + it.lines));
    assert!(versions > PROGRAMS && lines > 0, "{versions} versions, {lines} lines");
    // And once more with nobody at work, by another mount than the one that has its cache.
    mounted.kill_daemon();
    let other = mounted.second();
    for program in &mut programs {
        program.dir = other.join("all").join(program.number.to_string());
        program.check();
    }
}

/// Somebody who syncs one directory and hears of a loss does not hear it for the others. (All directories had
/// one mark: whoever synced the second had his name removed, durably, and saw it again.)
#[test]
fn each_directory_tells_of_the_names_that_it_has_lost() {
    let Some(mut mounted) = Mounted::new() else { return };
    // The pool commits by itself each second, and what that has kept of a try is not lost.
    let mut tries = 0..5;
    assert!(
        tries.any(|number| three_directories_lose_names(&mut mounted, number)),
        "each time kept"
    );
}

/// Whether all three directories of this try have lost a name. Each tells of it if it has, and once.
fn three_directories_lose_names(mounted: &mut Mounted, number: u32) -> bool {
    let [a, b, c] = ["a", "b", "c"].map(|dir| format!("{dir}{number}"));
    for dir in [&a, &b] {
        fs::create_dir(mounted.path(dir)).unwrap();
        ["x", "y"].iter().for_each(|name| fs::write(mounted.path(dir).join(name), "1").unwrap());
    }
    // No volume stands for this one before it has lost a name.
    for name in ["x", "y"] {
        let empty = VolumeCreate::new(format!("{c}/{name}"), Bytes::ZERO);
        mounted.client().create_volume(&empty, Durable::WithNextSync).unwrap();
    }
    let sync = |mounted: &Mounted, dir: &str| File::open(mounted.path(dir)).unwrap().sync_all();
    let names = |mounted: &Mounted, dir: &str| {
        let entries = fs::read_dir(mounted.path(dir)).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
    };
    sync(mounted, ".").unwrap();
    [&a, &b, &c].iter().for_each(|dir| fs::remove_file(mounted.path(dir).join("x")).unwrap());
    fs::rename(mounted.path(&a).join("y"), mounted.path(&b).join("z")).unwrap();
    mounted.kill_daemon();
    let kept: [(&str, &[&str]); 3] = [(&a, &[]), (&b, &["y", "z"]), (&c, &["y"])];
    let lost = kept.map(|(dir, kept)| {
        let is_lost = names(mounted, dir) != kept.iter().map(OsString::from).collect();
        let told = sync(mounted, dir).err().and_then(|error| error.raw_os_error());
        assert_eq!(told, is_lost.then_some(5), "{dir}: {:?}", names(mounted, dir));
        sync(mounted, dir).unwrap();
        is_lost
    });
    sync(mounted, ".").unwrap();
    lost == [true; 3]
}
