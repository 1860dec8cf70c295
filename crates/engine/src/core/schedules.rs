//! The threads of a pool, tried in many orders: the core and the disks' threads as they
//! are, over devices and a clock of the test's own, under a scheduler that says who runs
//! next wherever a thread locks, signals or waits.
//!
//! Shuttle draws so many schedules at random, a part of them with few preemptions at the
//! worst places (PCT). A scene fails where anybody waits for ever, where an answer comes
//! twice or not at all, where memory is lent twice or never comes back, and where all
//! threads sleep while a disk has something to start: the first invariant of
//! [`core`](super). The scenes prove themselves on planted faults.
//!
//! `SLACKLINE_SCHEDULES` is how many schedules each scene is tried in, 200 by default.
#![allow(clippy::print_stdout)] // what was found, for whoever asks with --nocapture

use super::{Callback, Core};
use crate::arena::Arena;
use crate::backend::here::Here;
use crate::backend::{Backend, Completion, Stage, regions};
use crate::lock::Mutex;
use crate::sys::Event;
use crate::{HostLateness, Pieces, Reply, SharedWindow, Told, WindowReply, thread};
use node::{
    CommandId, Config, Contract, DiskAction, DiskCommand, DiskIndex, DiskPoll, DiskSetup, Error,
    Mode, Node, Op, Opening, Placement, Policy, StreamId, Who, WriteRange,
};
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::{Condvar, Mutex as Lock};
use shuttle::thread::JoinHandle;
use sim::{SimDisk, Timing};
use std::cell::{Cell, RefCell};
use std::process::Command;
use std::sync::Arc;
use units::{Bytes, Duration, Instant, Rate};

const DISKS: usize = 2;
const MEMORY: Bytes = Bytes::mib(16);
const BLOCK: Bytes = Bytes::kib(64);
const CONTRACT: Contract = Contract { rate: Rate::per_second(100_000), block: BLOCK, burst: BLOCK };
const BEGIN: Instant = Instant::from_nanos(0);
/// How long each command takes: less than any profile says.
const SERVICE: Duration = Duration::from_micros(100);
/// How long the host stops now and then, so that every alarm is late some time, and comes
/// in the midst of whatever goes on.
const STOP: Duration = Duration::from_secs(1);
/// Nothing in a scene takes so long, unless it was forgotten.
const FOR_EVER: Duration = Duration::from_secs(600);

thread_local! {
    /// The world of the schedule that is being tried; all its threads are one of ours.
    static WORLD: RefCell<Option<Arc<World>>> = const { RefCell::new(None) };
    /// The time in the scene; none where there is no scene.
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Signals until one is forgotten, where that is planted.
    static SIGNALS: Cell<u64> = const { Cell::new(0) };
}

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// Every third signal of an event is lost.
    SignalForgotten,
    /// A thread looks whether it was woken, and falls asleep a moment later: what comes in
    /// between is lost, as with an event that only wakes who sleeps already.
    LateSleep,
}

impl Planted {
    const ALL: [Self; 2] = [Self::SignalForgotten, Self::LateSleep];

    /// As `SLACKLINE_PLANTED` says.
    fn get() -> Self {
        let asked = std::env::var("SLACKLINE_PLANTED").unwrap_or_default();
        let named = Self::ALL.into_iter().find(|planted| format!("{planted:?}") == asked);
        named.unwrap_or(Self::Nothing)
    }
}

/// The time in the scene, where this thread belongs to one.
pub(crate) fn now() -> Option<Instant> {
    NOW.get()
}

/// Whether this thread belongs to a scene.
pub(crate) fn inside() -> bool {
    now().is_some()
}

fn time() -> Instant {
    now().expect("a scene has a time")
}

/// Whether this signal is lost.
pub(crate) fn loses_signal() -> bool {
    let planted = inside() && Planted::get() == Planted::SignalForgotten;
    SIGNALS.set(SIGNALS.get() + 1);
    planted && SIGNALS.get().is_multiple_of(3)
}

/// An event was signalled: whoever waits looks again.
pub(crate) fn signalled() {
    let world = WORLD.with_borrow(Option::clone);
    world.iter().for_each(|world| world.news());
}

/// Where all threads of a scene wait.
struct World {
    core: Arc<Core>,
    state: Lock<State>,
    changed: Condvar,
}

struct State {
    /// Threads that have not ended, and how many of them have looked for news since the
    /// last and found none.
    threads: usize,
    idle: usize,
    generation: u64,
    /// Until when each disk's thread sleeps, where it does.
    asleep: [Option<Option<Instant>>; DISKS],
    /// Whose thread has ended.
    ended: [bool; DISKS],
}

impl World {
    fn news(&self) {
        Self::changed(&self.changed, &mut self.state.lock().unwrap());
    }

    fn changed(condvar: &Condvar, state: &mut State) {
        state.idle = 0;
        state.generation += 1;
        condvar.notify_all();
    }

    /// Waits until `look` finds something. Where nobody finds anything, time goes on.
    fn wait<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            state.idle += 1;
            if state.idle == state.threads {
                self.quiet(&mut state);
            }
            let generation = state.generation;
            if state.idle > 0 {
                while state.generation == generation {
                    state = self.changed.wait(state).unwrap();
                }
            }
        }
    }

    /// All threads wait: the time is that of the first alarm. Without one, whoever still
    /// waits does so for ever, and shuttle says so.
    fn quiet(&self, state: &mut State) {
        self.core.assert_that_sleepers_may_sleep(&state.asleep);
        let alarm = state.asleep.iter().flatten().flatten().min();
        if let Some(&alarm) = alarm {
            assert!(alarm < BEGIN + FOR_EVER, "somebody waits for ever: {:?}", state.asleep);
            NOW.set(NOW.get().max(Some(alarm)));
            Self::changed(&self.changed, state);
        }
    }

    fn ended(&self) {
        let mut state = self.state.lock().unwrap();
        state.threads -= 1;
        Self::changed(&self.changed, &mut state);
    }
}

impl Core {
    /// The first invariant of the module: a disk whose thread sleeps has nothing to start
    /// before the instant that the thread sleeps until.
    fn assert_that_sleepers_may_sleep(&self, asleep: &[Option<Option<Instant>>]) {
        let inner = self.lock();
        if inner.stopping {
            return;
        }
        // Asked of another node, with queues of its own, so that this one does not go on.
        let mut node = inner.node.clone();
        drop(inner);
        for (at, until) in asleep.iter().enumerate() {
            let Some(until) = until else { continue };
            assert!(self.disks[at].lock().inbox_is_empty(), "disk {at} sleeps before its inbox");
            match node.poll_disk(time(), DiskIndex(at as u16)) {
                DiskPoll::Start(command) => panic!("disk {at} sleeps before {command:?}"),
                DiskPoll::Wait { until: alarm } => {
                    let sooner = alarm.is_some_and(|it| until.is_none_or(|until| it < until));
                    assert!(!sooner, "disk {at} sleeps until {until:?}, beyond {alarm:?}");
                }
            }
        }
    }
}

/// A device whose commands end when the scheduler pleases; the memory of some is filled later.
struct Device {
    world: Arc<World>,
    event: Arc<Event>,
    disk: usize,
    busy: Vec<Completion>,
    /// What it has ended, and whose memory is being filled.
    filling: Vec<(CommandId, u64)>,
    next: u64,
}

impl Backend for Device {
    fn start(&mut self, command: DiskCommand) {
        let started = time();
        self.busy.push(Completion::of(command.id, started, started, Ok(())));
    }

    fn submit(&mut self) {
        shuttle::thread::yield_now();
    }

    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        let planted = Planted::get();
        if planted == Planted::LateSleep && !self.event.wait(Some(Duration::ZERO)) {
            shuttle::thread::yield_now();
            self.event.wait(Some(Duration::ZERO));
        }
        let Self { world, event, disk, busy, filling, next } = self;
        world.wait(|state| {
            let woken = event.wait(Some(Duration::ZERO));
            let is_left_for_later = woken && shuttle::rand::thread_rng().gen_bool(0.5);
            let at = match busy.len() + filling.len() {
                0 => 0,
                any => shuttle::rand::thread_rng().gen_range(0..any),
            };
            if at < busy.len() && !is_left_for_later {
                let mut ended = busy.swap_remove(at);
                // A host that stopped is no slow disk, whose extents would be moved.
                ended.started = time();
                ended.finished = ended.started + SERVICE;
                ended.noticed = ended.finished;
                let stops = shuttle::rand::thread_rng().gen_bool(0.1);
                NOW.set(Some(ended.finished + if stops { STOP } else { Duration::ZERO }));
                if shuttle::rand::thread_rng().gen_bool(0.3) {
                    ended.stage = Stage::Device(*next);
                    filling.push((ended.id, *next));
                    *next += 1;
                }
                done.push(ended);
            } else if !filling.is_empty() && !is_left_for_later {
                let (id, number) = filling.swap_remove(at - busy.len());
                let (stage, now) = (Stage::Memory(number), time());
                done.push(Completion { stage, ..Completion::of(id, now, now, Ok(())) });
            }
            let goes_on = woken || !done.is_empty() || until.is_some_and(|at| at <= time());
            state.asleep[*disk] = (!goes_on).then_some(until);
            goes_on.then_some(())
        });
    }

    fn in_flight(&self) -> usize {
        self.busy.len() + self.filling.len()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let is_idle = self.in_flight() == 0 || std::thread::panicking();
        assert!(is_idle, "a thread has left commands behind that use memory: {:?}", self.busy);
    }
}

/// Commands that other threads carry out, now and then; others run meanwhile.
struct Elsewhere(usize);

impl Here for Elsewhere {
    fn takes(&self, action: &DiskAction) -> Option<Bytes> {
        let may = regions(action).next().is_none()
            && matches!(action, DiskAction::Read { .. } | DiskAction::Write { .. });
        (may && shuttle::rand::thread_rng().gen_bool(0.7)).then_some(BLOCK)
    }

    fn run(&self, commands: &[DiskCommand]) -> Vec<Completion> {
        let run = |command: &DiskCommand| {
            shuttle::thread::yield_now();
            let started = time();
            let finished = started + SERVICE;
            NOW.set(Some(finished));
            shuttle::thread::yield_now();
            let world = WORLD.with_borrow(Option::clone).unwrap();
            drop(world.core.disks[self.0].lock()); // panics where this thread has it
            assert!(
                !world.state.lock().unwrap().ended[self.0],
                "the disk is given back, and written to"
            );
            Completion::of(command.id, started, finished, Ok(()))
        };
        commands.iter().map(run).collect()
    }
}

/// A pool of two disks, with a volume of 4 MiB on each and one over both, at work.
struct Scene {
    world: Arc<World>,
    disks: Vec<JoinHandle<()>>,
    programs: usize,
}

/// What a program has in a scene.
struct Program(Arc<World>);

fn profile() -> disk::Profile {
    disk::Profile::of(&disk::Model::named("laptop-4200").unwrap())
}

/// The node of every scene as it begins.
fn node() -> Node {
    let mut disks = vec![SimDisk::new(Bytes::GIB, Timing::Fixed(SERVICE)); DISKS];
    sim::format(&mut disks, "pool", &profile(), 7).unwrap();
    let mut store = sim::open(&mut disks).unwrap();
    for (name, disks) in [("v0", &[0][..]), ("v1", &[1]), ("both", &[])] {
        let disks = disks.iter().copied().map(DiskIndex).collect();
        let placement = Placement { disks, ..Placement::default() };
        let volume = store.create(name, Bytes::mib(4), &placement).unwrap();
        (0..4).for_each(|extent| {
            store.note_written(volume, extent, &store::Blocks::first(Bytes::MIB))
        });
        store.note_length(volume, Bytes::mib(4));
    }
    sim::commit(&mut disks, &mut store).unwrap();
    let config = Config {
        policy: Policy::SLACK,
        admission: true,
        memory: MEMORY,
        host_latency: Duration::ZERO,
        commit_interval: Duration::from_secs(2),
        remeasure: false,
    };
    let setups = (0..DISKS).map(|_| DiskSetup::new(profile())).collect();
    Node::new(config, setups, store).unwrap()
}

impl Scene {
    fn new() -> Self {
        thread_local! {
            static BEGINNING: Node = node();
        }
        WORLD.set(None);
        NOW.set(Some(BEGIN));
        let node = BEGINNING.with(Clone::clone);
        // Not kept: a lock remembers the schedule that it was made in.
        let arena = Arena::untouched(MEMORY).unwrap();
        let events: Vec<_> = (0..DISKS).map(|_| Arc::new(Event::new().unwrap())).collect();
        let core = Core::new(node, Arc::new(arena), events.clone());
        (0..DISKS)
            .for_each(|disk| core.set_here(DiskIndex(disk as u16), Arc::new(Elsewhere(disk))));
        // This thread is the first.
        let state = State {
            threads: 1,
            idle: 0,
            generation: 0,
            asleep: [None; DISKS],
            ended: [false; DISKS],
        };
        let (state, changed) = (Lock::new(state), Condvar::new());
        let world = Arc::new(World { core, state, changed });
        WORLD.set(Some(Arc::clone(&world)));
        let mut scene = Self { world, disks: Vec::new(), programs: 0 };
        for (disk, event) in events.into_iter().enumerate() {
            let world = Arc::clone(&scene.world);
            let thread = scene.spawn(move || {
                let lateness = Mutex::new(HostLateness::default());
                let core = Arc::clone(&world.core);
                let (busy, filling, next) = (Vec::new(), Vec::new(), 0);
                let device = Box::new(Device { world, event, disk, busy, filling, next });
                thread::serve(&core, DiskIndex(disk as u16), device, &lateness);
                WORLD.with_borrow(|world| {
                    world.as_ref().unwrap().state.lock().unwrap().ended[disk] = true;
                });
            });
            scene.disks.push(thread);
        }
        scene
    }

    fn spawn(&self, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        let world = Arc::clone(&self.world);
        world.state.lock().unwrap().threads += 1;
        shuttle::thread::spawn(move || {
            body();
            world.ended();
        })
    }

    fn program(&mut self, body: impl FnOnce(&Program) + Send + 'static) {
        let program = Program(Arc::clone(&self.world));
        self.programs += 1;
        self.spawn(move || body(&program));
    }

    /// Waits for the programs, who have left nothing behind; then stops the pool.
    fn end(self) {
        let others = self.programs;
        self.world.wait(|state| (state.threads == 1 + DISKS).then_some(()));
        assert!(others > 0, "a scene has programs");
        let inner = self.world.core.lock();
        let memory = inner.node.status(time()).memory;
        let used = memory.windows + memory.regions + memory.best_effort;
        assert_eq!(used, Bytes::ZERO, "memory that the node does not have back: {memory:?}");
        assert!(self.world.core.arena.is_nothing_lent(), "memory that was not given back");
        assert_eq!(inner.callers.count(), 0, "callers without an answer");
        assert_eq!(self.world.core.arena.regions().count(), 0, "regions that are kept");
        drop(inner);
        self.stop();
    }

    /// Stops the pool, whatever is under way.
    fn stop(self) {
        self.world.core.stop();
        self.world.ended();
        self.disks.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

impl Program {
    /// Begins something and waits for its end.
    fn wait_for(&self, begin: impl FnOnce(&Arc<Core>, Callback)) -> Result<Reply, Error> {
        let answer = Arc::new(Lock::new(None));
        let (theirs, world) = (Arc::clone(&answer), Arc::clone(&self.0));
        let callback = Box::new(move |result| {
            *theirs.lock().unwrap() = Some(result);
            world.news();
        });
        begin(&self.0.core, callback);
        self.0.wait(|_| answer.lock().unwrap().take())
    }

    fn call(&self, op: Op) -> Result<Reply, Error> {
        self.wait_for(|core, callback| core.submit((Who::root(), None), op, callback))
    }

    /// Writes 64 KiB of a volume, syncs, and reads them.
    fn write_and_read(&self, volume: &str) -> Result<(), Error> {
        let (volume, offset, len) = (String::from(volume), Bytes::ZERO, Bytes::kib(64));
        let Reply::Room { room } = self.call(Op::Room { len, target: None })? else {
            panic!("no room")
        };
        let name = volume.clone();
        self.wait_for(|core, callback| {
            core.write(
                (Who::root(), None),
                name,
                WriteRange::new(offset, len),
                None,
                room,
                callback,
            )
        })?;
        self.call(Op::Sync)?;
        let read = Op::Read { volume, offset, len, priority: None };
        let Reply::Data { bytes: chunk, .. } = self.call(read)? else { panic!("no data") };
        assert_eq!(chunk.len(), len.as_usize());
        Ok(())
    }

    /// Reads four times, each begun by the callback of the one before, which gives its
    /// memory back first.
    fn read_on_and_on(&self, volume: &str) -> Result<(), Error> {
        self.wait_for(|core, callback| read_on(core, String::from(volume), 4, callback)).map(drop)
    }

    /// Reads in one go, and gives the memory back in another; what was asked for before a stop, and
    /// after it, is answered.
    fn read_together(&self, volume: &str) -> Vec<Result<(), Error>> {
        let answers = Arc::new(Lock::new(Vec::new()));
        let core = &self.0.core;
        core.together(|| {
            for piece in 0..4 {
                let (volume, offset, len) = (volume.into(), BLOCK * piece, BLOCK);
                let (theirs, world) = (Arc::clone(&answers), Arc::clone(&self.0));
                let read = Op::Read { volume, offset, len, priority: None };
                let callback = Box::new(move |result| {
                    theirs.lock().unwrap().push(result);
                    world.news();
                });
                core.submit((Who::root(), None), read, callback);
            }
        });
        let all = self.0.wait(|_| {
            let mut answers = answers.lock().unwrap();
            (answers.len() == 4).then(|| std::mem::take(&mut *answers))
        });
        let mut ends = Vec::new();
        core.together(|| ends.extend(all.into_iter().map(|answer| answer.map(drop))));
        ends
    }

    fn open(&self, volume: &str, mode: Mode) -> Result<StreamId, Error> {
        let (volume, start) = (volume.into(), Bytes::ZERO);
        let opened = self.call(Op::StreamOpen { volume, mode, contract: CONTRACT, start })?;
        let Reply::Stream { stream, .. } = opened else { panic!("{opened:?} is no stream") };
        Ok(stream)
    }

    /// Records a block, syncs and closes.
    fn record(&self, volume: &str) -> Result<(), Error> {
        let stream = self.open(volume, Mode::Write)?;
        let room = self.call(Op::StreamRoom { stream, len_max: BLOCK })?;
        let Reply::Room { room } = room else { panic!("{room:?} is no room") };
        let len = Bytes::new(room.len() as u64);
        drop(room);
        self.call(Op::StreamWrite { stream, len })?;
        self.call(Op::StreamSync { stream })?;
        self.call(Op::StreamClose { stream }).map(drop)
    }

    /// Reads a piece and closes while it is looked at: the close waits for that.
    fn play(&self, volume: &str) -> Result<(), Error> {
        let stream = self.open(volume, Mode::Read)?;
        let piece = self.call(Op::StreamRead { stream, len_max: BLOCK })?;
        let Reply::Data { bytes: chunk, .. } = piece else { panic!("{piece:?} is no data") };
        let mut chunk = Some(chunk);
        self.wait_for(|core, callback| {
            core.submit((Who::root(), None), Op::StreamClose { stream }, callback);
            let is_open = core.status().streams.iter().any(|status| status.stream == stream);
            assert!(is_open, "memory of a stream that is closed");
            chunk.take();
        })?;
        Ok(())
    }

    /// Plays from a shared window, faster than the contract says: what the program may have
    /// then comes by itself, at alarms.
    fn play_in_window(&self, volume: &str) -> Result<(), Error> {
        let open = opening(volume, Mode::Read, Bytes::mib(1) - BLOCK * 4);
        let opened =
            self.wait_for(|core, callback| core.open_window(Who::root(), open, callback).unwrap())?;
        let Reply::Window(WindowReply::Shared(SharedWindow { stream, .. })) = opened else {
            panic!("{opened:?} is no window")
        };
        let (core, world) = (Arc::clone(&self.0.core), Arc::clone(&self.0));
        let bell = Box::new(move || world.news());
        let pieces = Pieces::new(core, Who::root(), stream, bell);
        for _ in 0..8 {
            pieces.ask();
            let Told { piece, .. } = self.0.wait(|_| pieces.take())?;
            self.call(Op::WindowMoved { stream, len: piece.len })?;
        }
        self.call(Op::StreamClose { stream }).map(drop)
    }

    /// Begins to fill a shared window, and closes it while it is filled.
    fn leave_window(&self, volume: &str) -> Result<(), Error> {
        let open = opening(volume, Mode::Read, Bytes::ZERO);
        let opened =
            self.wait_for(|core, callback| core.open_window(Who::root(), open, callback).unwrap())?;
        let Reply::Window(WindowReply::Shared(SharedWindow { stream, .. })) = opened else {
            panic!("{opened:?} is no window")
        };
        self.call(Op::StreamClose { stream }).map(drop)
    }

    /// Records two pieces through a shared window, and closes.
    fn record_in_window(&self, volume: &str) -> Result<(), Error> {
        let open = opening(volume, Mode::Write, Bytes::ZERO);
        let opened =
            self.wait_for(|core, callback| core.open_window(Who::root(), open, callback).unwrap())?;
        let Reply::Window(WindowReply::Shared(SharedWindow { stream, .. })) = opened else {
            panic!("{opened:?} is no window")
        };
        for _ in 0..2 {
            let room = self.call(Op::WindowNext { stream })?;
            let Reply::Window(WindowReply::Told(Told { piece, .. })) = room else {
                panic!("{room:?} is no piece")
            };
            self.call(Op::WindowMoved { stream, len: piece.len })?;
        }
        self.call(Op::StreamClose { stream }).map(drop)
    }
}

fn read_on(core: &Arc<Core>, volume: String, left: u64, end: Callback) {
    let (len, of, again) = (Bytes::kib(64), volume.clone(), Arc::clone(core));
    let offset = len * left;
    let next = Box::new(move |read: Result<Reply, Error>| match read {
        Ok(Reply::Data { bytes: chunk, .. }) if left > 1 => {
            drop(chunk);
            read_on(&again, of, left - 1, end);
        }
        last => end(last),
    });
    let read = Op::Read { volume, offset, len, priority: None };
    core.submit((Who::root(), None), read, next);
}

/// While the host has requests late, no new contract is taken: nobody is told more.
fn went_well(result: Result<(), Error>) {
    assert!(matches!(result, Ok(()) | Err(Error::Refused(_))), "{result:?}");
}

/// A scene, by the name that it has in what the tests say.
const SCENES: [(&str, fn()); 7] = [
    ("best effort on two disks", || {
        let mut scene = Scene::new();
        scene.program(|program| program.write_and_read("v0").unwrap());
        scene.program(|program| program.write_and_read("v1").unwrap());
        scene.end();
    }),
    ("reads that callbacks begin", || {
        let mut scene = Scene::new();
        scene.program(|program| program.read_on_and_on("both").unwrap());
        scene.program(|program| program.read_on_and_on("v0").unwrap());
        scene.program(|program| program.write_and_read("v0").unwrap());
        scene.end();
    }),
    ("what is asked for in one go", || {
        let mut scene = Scene::new();
        for volume in ["both", "v0"] {
            scene.program(move |program| {
                program.read_together(volume).into_iter().for_each(Result::unwrap);
            });
        }
        scene.program(|program| program.write_and_read("v0").unwrap());
        scene.end();
    }),
    ("streams beside best effort", || {
        let mut scene = Scene::new();
        scene.program(|program| went_well(program.record("v0")));
        scene.program(|program| went_well(program.play("v1")));
        scene.program(|program| program.write_and_read("v1").unwrap());
        scene.end();
    }),
    ("windows beside best effort", || {
        let mut scene = Scene::new();
        scene.program(|program| went_well(program.record_in_window("both")));
        scene.program(|program| went_well(program.leave_window("v0")));
        scene.program(|program| program.write_and_read("v1").unwrap());
        scene.end();
    }),
    ("a window ahead of its time", || {
        let mut scene = Scene::new();
        scene.program(|program| went_well(program.play_in_window("both")));
        scene.program(|program| program.write_and_read("v0").unwrap());
        scene.program(|program| program.write_and_read("v1").unwrap());
        scene.end();
    }),
    ("a stop at any moment", || {
        let mut scene = Scene::new();
        let stopped = |result| {
            if result != Err(Error::ShuttingDown) {
                went_well(result)
            }
        };
        scene.program(move |program| stopped(program.write_and_read("v0")));
        scene.program(move |program| stopped(program.play("v1")));
        scene.program(move |program| stopped(program.read_on_and_on("both")));
        scene.program(move |program| {
            program.read_together("v0").into_iter().for_each(stopped);
        });
        scene.stop();
    }),
];

/// Tries a scene in so many schedules.
fn play(scene: fn()) {
    let asked = std::env::var("SLACKLINE_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let schedules = asked.unwrap_or(200);
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.failure_persistence = shuttle::FailurePersistence::Print;
    let random = RandomScheduler::new_from_seed(1, schedules);
    shuttle::Runner::new(random, config.clone()).run(scene);
    let few_preemptions = PctScheduler::new_from_seed(2, 3, schedules);
    shuttle::Runner::new(few_preemptions, config).run(scene);
    WORLD.set(None);
    NOW.set(None);
}

#[test]
fn threads_wait_for_nothing_that_has_come_and_lose_nothing_that_was_lent() {
    for (name, scene) in SCENES {
        play(scene);
        println!("{name}: done");
    }
}

/// A scene that fails takes its process with it.
#[test]
fn a_planted_fault_is_found() {
    for planted in Planted::ALL {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let test = "threads_wait_for_nothing_that_has_come_and_lose_nothing_that_was_lent";
        again.args(["--exact", "--nocapture", &format!("core::schedules::{test}")]);
        let output = again.env("SLACKLINE_PLANTED", format!("{planted:?}")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let how = said.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
        println!("{planted:?}: {}", how.unwrap_or_default());
        assert!(!output.status.success(), "{planted:?} is not found");
    }
}

/// A stream with a shared window.
fn opening(volume: &str, mode: Mode, start: Bytes) -> Opening {
    Opening { volume: volume.into(), mode, contract: CONTRACT, start, early: false, miss: None }
}
