//! An open pool: the node, its disks' threads, and the way in for programs.

#[cfg(test)]
mod visits;

use crate::backend::aside::Aside;
use crate::backend::emulated::Emulated;
use crate::backend::here::{Here, InMemory};
use crate::backend::uring::Uring;
use crate::backend::{Backend, Surroundings};
use crate::calibrate::TIMED;
use crate::core::Core;
use crate::device::{Device, DeviceSpec};
use crate::disk_file::DiskFile;
use crate::error::PoolError;
use crate::first_gap::first_gap;
use crate::lock::Mutex;
use crate::on_disk::assert_may_wait;
use crate::sys::{self, Event};
use crate::{Answer, Chunk, ChunkMut, HostLateness, Pages, Pieces, Reply, SharedWindow};
use crate::{arena::Arena, drives, metadata, thread};
use disk::Profile;
use node::{
    Config, CountedBy, DiskIndex, DiskSetup, Error, HandleId, Holding, KeptOut, Node, Op, Opening,
    Operation, Ownership, Policy, Promise, Status, StreamId, StreamStatus, Terms, VolumeId,
    VolumeStatus, Who, Wish, WriteRange, calls,
};
use queue::HostTime;
use std::fs::File;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use store::{KeptPolicy, Opened, Report, Store};
use units::{Bytes, Duration, Instant};

/// Puts something between a disk's thread and its device: a test that lets
/// commands fail, or an observer. Called on the disk's thread.
pub type Wrap = Arc<dyn Fn(DiskIndex, Box<dyn Backend>) -> Box<dyn Backend> + Send + Sync>;

/// Finds the policy that a pool keeps, or says why there is none.
pub type FindPolicy = fn(&KeptPolicy) -> Result<Policy, String>;

/// How a pool is opened.
#[derive(Clone)]
pub struct Options {
    /// What the node is told.
    pub config: Config,
    /// Ask for real-time priority for the disks' threads.
    pub realtime: bool,
    /// What the arena is made of.
    pub pages: Pages,
    /// What stands between the threads and the devices, if anything.
    pub wrap: Option<Wrap>,
    /// Devices may be parts of one drive, though contracts on them may then be late.
    pub shared_drive: bool,
    /// Streams have from memory what others of their volume have just read or written
    /// (docs/caching.md).
    pub share_reads: bool,
    /// What best effort has read is cached in free memory, and read ahead (docs/caching.md).
    pub cache_reads: bool,
    /// Who has so much of what is cached where another user has 1.
    pub cache_shares: Vec<(u32, NonZeroU32)>,
    /// Finds the policy that was chosen for the pool, which then takes the place of that of
    /// `config`. None: whatever was chosen, it is that of `config`.
    pub find_policy: Option<FindPolicy>,
    /// What the host is taken to need between two commands of a disk until that is measured;
    /// none: what it needs to wake a thread when the pool is opened.
    pub gap: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        let config = Config {
            policy: Policy::SLACK,
            admission: true,
            memory: Bytes::mib(256),
            host_latency: Duration::from_millis(2),
            commit_interval: Duration::from_secs(1),
            remeasure: true,
        };
        Self {
            config,
            realtime: true,
            pages: Pages::default(),
            wrap: None,
            shared_drive: false,
            share_reads: true,
            cache_reads: true,
            cache_shares: Vec::new(),
            find_policy: None,
            gap: None,
        }
    }
}

/// What never changes while a pool is open.
#[derive(Clone, Debug)]
pub struct Description {
    /// The pool's name.
    pub name: String,
    /// Its identity, in hexadecimal.
    pub id: String,
    /// What each disk was opened as, in the pool's order.
    pub devices: Vec<DeviceSpec>,
    /// What each disk costs, in the pool's order.
    pub profiles: Vec<Profile>,
    /// How the node was set up.
    pub config: Config,
}

/// An open pool. Dropping it stops it at once, as a kill would: what was durable
/// stays, what was not is lost. [`Pool::shutdown`] is the orderly end.
pub struct Pool {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
    lateness: Vec<Arc<Mutex<HostLateness>>>,
    description: Description,
    warnings: Vec<String>,
    /// Of each disk.
    files: Vec<DiskFile>,
}

/// One disk on its way into a pool.
struct Seat {
    device: Device,
    profile: Profile,
}

/// The node, under the policy that was chosen for the pool, if that is there and the log's
/// contracts fit under it; else under that of `config`, with a warning.
fn node(
    seats: &[Seat],
    gap: Duration,
    store: Store,
    config: Config,
    find_policy: Option<FindPolicy>,
    warnings: &mut Vec<String>,
) -> Result<Node, PoolError> {
    let setup = |seat: &Seat| DiskSetup { profile: seat.profile.clone(), gap };
    let setups = || seats.iter().map(setup).collect();
    let new = |policy, store| Node::new(Config { policy, ..config }, setups(), store);
    if let Some((kept, find)) = store.policy().cloned().zip(find_policy) {
        let chosen = find(&kept);
        let made = chosen.and_then(|policy| {
            new(policy, store.clone()).map_err(|refused| format!("under it {refused}"))
        });
        match made {
            Ok(node) => return Ok(node),
            Err(why) => warnings.push(format!(
                "the policy `{}` was chosen for this pool, and cannot be followed: {why}; the disks \
                 follow `{}` until another is chosen (`slackline pool set --policy`)",
                kept.name, config.policy
            )),
        }
    }
    new(config.policy, store).map_err(PoolError::Node)
}

impl Pool {
    /// Opens the pool that lies on these devices, in any order: recovers its
    /// metadata and starts a thread for each disk.
    ///
    /// # Errors
    /// Names the device and says what to do.
    pub fn open(specs: &[DeviceSpec], options: Options) -> Result<Self, PoolError> {
        check_options(&options)?;
        let mut warnings = Vec::new();
        let devices = open_all(specs, &mut warnings)?;
        drives::check(specs, options.shared_drive, &mut warnings)?;
        let Opened { store, order } = metadata::open(&devices)?;
        let pool = store.pool().clone();
        let seats = seats(devices, &order, &store)?;
        let profiles: Vec<&Profile> = seats.iter().map(|seat| &seat.profile).collect();
        warnings.extend(crate::buses::warning(&profiles));
        warnings.extend(seats.iter().filter_map(Seat::made_otherwise));

        let Config { memory, .. } = options.config;
        let arena = Arena::new(memory, options.pages, &mut warnings);
        let arena = Arc::new(arena.map_err(|error| PoolError::Memory { asked: memory, error })?);
        let measured = || first_gap(options.realtime, options.config.host_latency);
        let gap = options.gap.unwrap_or_else(measured);
        let mut node =
            node(&seats, gap, store, options.config, options.find_policy, &mut warnings)?;
        if options.share_reads {
            node.share_reads();
        }
        if options.cache_reads {
            node.cache_reads();
        }
        for &(uid, share) in &options.cache_shares {
            node.set_cache_share(uid, share);
        }
        let config = node.config();

        let description = Description {
            name: pool.name,
            id: pool.id.to_string(),
            devices: seats.iter().map(|seat| seat.device.spec.clone()).collect(),
            profiles: seats.iter().map(|seat| seat.profile.clone()).collect(),
            config,
        };
        let events: Result<Vec<_>, _> = seats.iter().map(|_| Event::new().map(Arc::new)).collect();
        let events = events.map_err(PoolError::Threads)?;
        let core = Core::new(node, Arc::clone(&arena), events.clone());
        let lateness = seats.iter().map(|_| Arc::new(Mutex::new(HostLateness::default())));
        let lateness = lateness.collect();
        let files =
            seats.iter().map(|seat| DiskFile::new(&seat.device)).collect::<Result<_, _>>()?;
        let threads = Vec::new();
        let mut pool = Self { core, threads, lateness, description, warnings, files };
        pool.start_threads(seats, arena, events, &options)?;
        pool.core.begin();
        Ok(pool)
    }

    /// Reads all metadata of the pool on these devices and says what is damaged;
    /// writes nothing. Devices are numbered as they are given.
    ///
    /// # Errors
    /// When a device cannot be opened, or is in use.
    pub fn check(specs: &[DeviceSpec]) -> Result<Report, PoolError> {
        let open = |spec| Device::open_to_read(spec);
        let devices = specs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        if devices.is_empty() {
            return Err(PoolError::NoDevices);
        }
        Ok(metadata::check(&devices))
    }

    /// The profiles of the disks of the pool on these devices, in the pool's order.
    /// Writes nothing, also where opening the pool would mend something.
    ///
    /// # Errors
    /// As [`Pool::open`].
    pub fn profiles(specs: &[DeviceSpec]) -> Result<Vec<disk::Profile>, PoolError> {
        let (seats, _) = look(specs)?;
        Ok(seats.into_iter().map(|seat| seat.profile).collect())
    }

    /// The services of volumes that would not fit, were the pool on these devices served in
    /// this way now: with the profiles that its disks carry, and by no other contract. Writes
    /// nothing.
    ///
    /// # Errors
    /// As [`Pool::open`].
    pub fn kept_out(
        specs: &[DeviceSpec],
        config: Config,
        find_policy: Option<FindPolicy>,
    ) -> Result<Vec<(String, KeptOut)>, PoolError> {
        let (seats, store) = look(specs)?;
        let gap = first_gap(true, config.host_latency);
        let node = node(&seats, gap, store, config, find_policy, &mut Vec::new())?;
        Ok(node.kept_out().collect())
    }

    /// Starts a thread for each disk, and waits until each has its device or
    /// one of them has failed; that stops the others, since `self` is dropped.
    fn start_threads(
        &mut self,
        seats: Vec<Seat>,
        arena: Arc<Arena>,
        events: Vec<Arc<Event>>,
        options: &Options,
    ) -> Result<(), PoolError> {
        let (ready, all) = mpsc::channel();
        for (at, (seat, event)) in seats.into_iter().zip(events).enumerate() {
            let lateness = Arc::clone(&self.lateness[at]);
            let around =
                Surroundings { arena: Arc::clone(&arena), event, lateness: Arc::clone(&lateness) };
            let (core, ready) = (Arc::clone(&self.core), ready.clone());
            let (realtime, wrap) = (options.realtime, options.wrap.clone());
            let disk = DiskIndex(u16::try_from(at).expect("fewer disks than that"));
            let body = move || {
                let mut warnings = Vec::new();
                thread::prepare(realtime, &mut warnings);
                match seat.backend(around, &mut warnings) {
                    Err(error) => drop(ready.send(Err(error))),
                    Ok((backend, here)) => {
                        let backend = match (wrap, here) {
                            // Whatever stands before the device sees all of its commands.
                            (Some(wrap), _) => wrap(disk, backend),
                            (None, Some(here)) => {
                                core.set_here(disk, here);
                                backend
                            }
                            (None, None) => backend,
                        };
                        drop(ready.send(Ok(warnings)));
                        drop(ready);
                        thread::serve(&core, disk, backend, &lateness);
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("slackline-disk{at}"));
            self.threads.push(thread.spawn(body).map_err(PoolError::Threads)?);
        }
        drop(ready);
        for warnings in all {
            for warning in warnings? {
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
            }
        }
        Ok(())
    }

    /// Begins an operation of this program, which has the disks and so may do everything;
    /// `done` is called with its end, once, on a thread of the pool or on this one.
    ///
    /// That may be a disk's thread, at real-time priority, which looks at no other end of a
    /// command meanwhile. So `done` hands over, and does nothing else: it sends into a channel,
    /// wakes a task, sets a word, submits what comes next. It must not wait for the pool (which
    /// panics), nor for a lock that others hold over more than some instructions; it copies and
    /// clears no memory, and writes to no socket or file ([`on_a_disks_thread`] is for checks of
    /// that). What it takes is measured as a part of the gap between commands and charged.
    ///
    /// A stream's memory is asked for one piece at a time: while a [`Chunk`] or
    /// [`ChunkMut`] of a stream lives, operations that would move its window are
    /// refused, and a close waits for it.
    ///
    /// # Panics
    /// On [`Op::Write`] and [`Op::Release`]: see [`Pool::write`] and the drop of
    /// the handles; and on [`Op::WindowOpen`]: see [`Pool::open_window`].
    ///
    /// [`Chunk`]: crate::Chunk
    /// [`on_a_disks_thread`]: crate::on_a_disks_thread
    pub fn submit<O: Operation>(
        &self,
        op: O,
        done: impl FnOnce(Result<Answer<O>, Error>) + Send + 'static,
    ) {
        self.submit_as(Who::root(), op, done);
    }

    /// As [`Pool::submit`], on behalf of somebody who may do what the pool's volumes let
    /// him.
    ///
    /// # Panics
    /// As [`Pool::submit`] does.
    pub fn submit_as<O: Operation>(
        &self,
        who: Who,
        op: O,
        done: impl FnOnce(Result<Answer<O>, Error>) + Send + 'static,
    ) {
        self.core.submit((who, None), op.into(), Box::new(|ended| done(ended.map(O::answer))));
    }

    /// What `ask` submits on this thread may be begun together, when it returns: reads, writes and
    /// memory of best effort, in their order. Callbacks are called then. Whoever waits for an answer
    /// in `ask` does so by [`Pool::call`], which begins what came before. A callback that is called
    /// meanwhile is in the midst of it, too: what it writes is begun when `ask` returns.
    pub fn together(&self, ask: impl FnOnce()) {
        self.core.together(ask);
    }

    /// As [`Pool::submit_as`], of a program that asked at `arrived` by the clock of
    /// [`Pool::now`]: what a volume's contract promises counts from then.
    ///
    /// # Panics
    /// As [`Pool::submit`] does.
    pub fn submit_since<O: Operation>(
        &self,
        who: Who,
        arrived: Instant,
        op: O,
        done: impl FnOnce(Result<Answer<O>, Error>) + Send + 'static,
    ) {
        let done = Box::new(|ended: Result<Reply, Error>| done(ended.map(O::answer)));
        self.core.submit((who, Some(arrived)), op.into(), done);
    }

    /// Begins to open a stream under contract whose window is in memory that its program
    /// can map. Then [`Op::WindowNext`], `WindowMoved`, `WindowWaits`
    /// and `StreamSeek` are for it, with [`Told`](crate::Told) and [`Reply::Ready`]. The memory
    /// is the stream's until [`Op::StreamClose`] is answered.
    ///
    /// # Errors
    /// When the system has no such memory: nothing was asked of the pool then, and `done`
    /// is not called.
    pub fn open_window(
        &self,
        who: Who,
        opening: Opening,
        done: impl FnOnce(Result<SharedWindow, Error>) + Send + 'static,
    ) -> std::io::Result<()> {
        let shared = |reply: Reply| calls::WindowNext::answer(reply).shared();
        self.core.open_window(who, opening, Box::new(move |ended| done(ended.map(shared))))
    }

    /// Gives back what a reader was given, and moves its playout point on by `len`: what
    /// dropping the handle and [`Op::StreamAdvance`] do, with one look at the pool.
    ///
    /// # Panics
    /// When `chunk` is no stream's memory, or another pool's.
    pub fn advance(
        &self,
        who: Who,
        chunk: Chunk,
        len: Bytes,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let done = |ended: Result<Reply, Error>| done(ended.map(calls::StreamAdvance::answer));
        self.core.advance(who, (chunk, len), Box::new(done), None);
    }

    /// The same, and with the same look takes at most `len_max` of what comes next, where that is
    /// in memory: `taken` is called with what [`Op::StreamRead`] would answer, or dropped.
    ///
    /// # Panics
    /// As [`Pool::advance`].
    pub fn advance_and_take(
        &self,
        who: Who,
        (chunk, len): (Chunk, Bytes),
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
        len_max: Bytes,
        taken: impl FnOnce(Result<Reply, Error>) + Send + 'static,
    ) {
        let done = |ended: Result<Reply, Error>| done(ended.map(calls::StreamAdvance::answer));
        self.core.advance(who, (chunk, len), Box::new(done), Some((len_max, Box::new(taken))));
    }

    /// The pieces of a reader's shared window, as [`Op::WindowNext`] would tell them one by
    /// one: after the first [`Pieces::ask`] each is told when it is in memory, without an ask.
    /// `bell` is called when there may be something to take, on a thread of the pool or on
    /// this one; it must be short and must not wait for the pool.
    pub fn pieces(
        &self,
        who: Who,
        stream: StreamId,
        bell: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Pieces> {
        Pieces::new(Arc::clone(&self.core), who, stream, Box::new(bell))
    }

    /// Begins a best-effort write of all of `room`, which came from [`Op::Room`], at a
    /// multiple of 4 KiB.
    ///
    /// # Panics
    /// When `room` is a stream's memory or another pool's.
    pub fn write(
        &self,
        volume: &str,
        offset: Bytes,
        room: ChunkMut,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let range = WriteRange::new(offset, Bytes::new(room.len() as u64));
        self.write_as(Who::root(), self.now(), None, volume, range, room, done);
    }

    /// As [`Pool::write`], on behalf of somebody whose program asked at `arrived`, of a handle
    /// that states a priority, and of any bytes: they lie in `room` from [`WriteRange::skip`] on.
    ///
    /// # Panics
    /// When `room` is a stream's memory or another pool's.
    #[allow(clippy::too_many_arguments)] // the operation's own
    pub fn write_as(
        &self,
        who: Who,
        arrived: Instant,
        priority: Option<node::Priority>,
        volume: &str,
        range: WriteRange,
        room: ChunkMut,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let asker = (who, Some(arrived));
        let done = |ended: Result<Reply, Error>| done(ended.map(calls::Write::answer));
        self.core.write(asker, volume.to_owned(), range, priority, room, Box::new(done));
    }

    /// Does an operation and waits for its end.
    ///
    /// # Errors
    /// Those of the operation.
    ///
    /// # Panics
    /// In a callback, where nobody may wait for the pool.
    pub fn call<O: Operation>(&self, op: O) -> Result<Answer<O>, Error> {
        self.wait_for(|done| self.core.submit((Who::root(), None), op.into(), done)).map(O::answer)
    }

    /// Writes as [`Pool::write`] does, and waits for the end.
    ///
    /// # Errors
    /// Those of [`Op::Write`].
    ///
    /// # Panics
    /// As [`Pool::write`] and [`Pool::call`] do.
    pub fn call_write(&self, volume: &str, offset: Bytes, room: ChunkMut) -> Result<(), Error> {
        let range = WriteRange::new(offset, Bytes::new(room.len() as u64));
        let asker = (Who::root(), None);
        self.wait_for(|done| self.core.write(asker, volume.to_owned(), range, None, room, done))
            .map(calls::Write::answer)
    }

    fn wait_for(&self, begin: impl FnOnce(crate::callers::Callback)) -> Result<Reply, Error> {
        assert_may_wait();
        let (sender, answer) = mpsc::sync_channel(1);
        begin(Box::new(move |result| {
            // Nobody waits any more only when this thread is unwinding.
            let _ = sender.send(result);
        }));
        // In the midst of a go: what is waited for is not put off.
        self.core.begin_put_off();
        answer.recv().unwrap_or(Err(Error::ShuttingDown))
    }

    /// Everything that can be seen of the node. Gathered in steps, between which the pool
    /// goes on: a stream that closes meanwhile may be missing.
    pub fn status(&self) -> Status {
        self.core.status()
    }

    /// One volume, as [`Pool::status`] shows it; `None` where no volume has this name.
    pub fn volume(&self, name: &str) -> Option<VolumeStatus> {
        self.core.volume(name)
    }

    /// What was written of a range of a volume ([`Node::written`]).
    ///
    /// # Errors
    /// As there.
    pub fn written(
        &self,
        who: &Who,
        volume: (&str, VolumeId),
        range: Range<Bytes>,
    ) -> Result<Vec<(Bytes, bool)>, Error> {
        self.core.written(who, volume, range)
    }

    /// The volume of this name, to know it again ([`Node::volume_id`]).
    pub fn volume_id(&self, name: &str) -> Option<VolumeId> {
        self.core.volume_id(name)
    }

    /// What the volumes of a user or of a group are together.
    pub fn holding(&self, whose: CountedBy) -> Holding {
        self.core.holding(whose)
    }

    /// One open stream, as [`Pool::status`] shows it; `None` where it is not open.
    pub fn stream(&self, id: StreamId) -> Option<StreamStatus> {
        self.core.stream(id)
    }

    /// What a contract would take on a volume, whether it would be admitted or not; `None`
    /// where there is no such volume, or where even idle disks could not keep it.
    pub fn terms(&self, volume: &str, wish: &Wish) -> Option<Terms> {
        self.core.terms(volume, wish)
    }

    /// As [`node::Node::run_for`].
    pub fn run_for(&self, placement: &node::Placement, size: Bytes) -> Bytes {
        self.core.run_for(placement, size)
    }

    /// What lies directly under a directory ([`Node::entries`]).
    pub fn entries(
        &self,
        who: &Who,
        directory: &str,
        after: &str,
        most: usize,
    ) -> Vec<node::Entry> {
        self.core.entries(who, directory, after, most)
    }

    /// When the bytes of a volume were recorded ([`Node::recorded`]).
    pub fn recorded(&self, name: &str) -> Option<node::Recorded> {
        self.core.recorded(name)
    }

    /// The room for volumes on all disks ([`Node::capacity`]).
    pub fn capacity(&self) -> node::Capacity {
        self.core.capacity()
    }

    /// A directory that no volume stands for ([`Node::directory`]).
    pub fn directory(&self, who: &Who, name: &str) -> Option<node::Directory> {
        self.core.directory(who, name)
    }

    /// Names and owners of all volumes, the oldest first.
    pub fn names(&self) -> Vec<(String, Ownership)> {
        self.core.names()
    }

    /// As [`Node::operations`].
    pub fn operations(&self, volume: &str, handle: Option<HandleId>) -> u64 {
        self.core.operations(volume, handle)
    }

    /// As [`Node::failures_told`].
    pub fn failures_told(&self, volume: &str) -> u64 {
        self.core.failures_told(volume)
    }

    /// As [`Node::failures_were_told`].
    pub fn failures_were_told(&self, who: &Who, volume: &str, failures: u64) {
        self.core.failures_were_told(who, volume, failures);
    }

    /// The policy that the disks follow.
    pub fn policy(&self) -> Policy {
        self.core.policy()
    }

    /// True once a metadata write has failed.
    pub fn is_read_only(&self) -> bool {
        self.core.is_read_only()
    }

    /// The clock that all instants of this pool are read from.
    pub fn now(&self) -> Instant {
        sys::now()
    }

    /// How late the host was since the pool was opened.
    pub fn host_lateness(&self) -> HostLateness {
        let mut all = HostLateness::default();
        self.lateness.iter().for_each(|one| all.merge(&one.lock()));
        all
    }

    /// An answer under contract took so long from when the pool handed it out until its program
    /// had it, which is `now`. What answers take is counted with every contract. Takes the pool's lock only where
    /// another time is to be counted than is.
    pub fn delivered(&self, now: Instant, took: Duration) {
        self.core.delivered(now, took);
    }

    /// An answer of which so much was owed took so long from when the pool handed it out until its
    /// program had it: the accounts that are shown are those of the programs. Without this they
    /// end where the pool hands answers out.
    pub fn carried(&self, promise: &Promise, took: Duration) {
        self.core.carried(promise, took);
    }

    /// What was measured of deliveries, and what is counted for them.
    pub fn deliveries(&self) -> HostTime {
        self.core.deliveries()
    }

    /// What never changes while the pool is open.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// What the system did not permit, and what to do about it; each said once.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What somebody else has done to the file of each disk since the pool was opened, where he has.
    pub fn damage(&self) -> Vec<Option<&str>> {
        self.files.iter().map(DiskFile::damage).collect()
    }

    /// The orderly end: new work is refused, every writer is synced, the
    /// metadata is committed, the disks are released.
    ///
    /// # Errors
    /// Those of [`Op::Shutdown`]. The disks are released in any case.
    pub fn shutdown(self) -> Result<(), Error> {
        self.call(Op::Shutdown).map(drop)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.core.stop();
        let this = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // The last owner may be a callback, on a disk's thread.
            if thread.thread().id() != this {
                // A panic there has ended the process.
                let _ = thread.join();
            }
        }
        self.core.end_chores();
    }
}

/// What drives a disk, and what carries out commands on other threads than the disk's.
type Seated = (Box<dyn Backend>, Option<Arc<dyn Here>>);

impl Seat {
    /// The backend of this disk, made on the thread that will use it; and what carries out commands
    /// on other threads, where the disk takes others beside one that is held up there.
    /// What is to be said where the disk is not served as what the pool was made on: contracts
    /// are admitted by its profile, and another thing carries its commands out.
    fn made_otherwise(&self) -> Option<String> {
        let made_on = match (self.profile.model(), &self.device.spec) {
            (Some(made_on), DeviceSpec::Emulated { model, .. }) if made_on == model => return None,
            (Some(made_on), _) => format!("of the disk model {made_on}"),
            (None, DeviceSpec::Emulated { .. }) if self.profile.source.starts_with(TIMED) => {
                "of a file or device".into()
            }
            (None, _) => return None,
        };
        let spec = &self.device.spec;
        let path = spec.path().display();
        let next = match self.profile.model() {
            Some(model) => {
                format!("where the pool was made on that, serve emulated:{model}:{path}")
            }
            None => format!("serve {path} itself"),
        };
        Some(format!(
            "{spec} has the profile {made_on}, by which contracts are admitted, and may take other \
             times: {next}"
        ))
    }

    fn backend(
        self,
        around: Surroundings,
        warnings: &mut Vec<String>,
    ) -> Result<Seated, PoolError> {
        let Device { spec, file, model, .. } = self.device;
        let file: Arc<File> = Arc::new(file);
        if let Some(model) = model {
            let queue = self.profile.queue();
            let disk = Emulated::new(&model, queue, file, around.clone());
            return Ok((Box::new(Aside::new(disk, around)), None));
        }
        let depth = self.profile.depth().max(self.profile.queue());
        // The threads that serve everybody are two: both may be held up in a command.
        let here = InMemory::of(&file, &around.arena).filter(|_| self.profile.depth() > 2);
        let here = here.map(|here| Arc::new(here) as Arc<dyn Here>);
        match Uring::new(file, depth, around.clone(), warnings) {
            Ok(ring) => Ok((Box::new(Aside::new(ring, around)), here)),
            Err(error) => Err(PoolError::Uring { path: spec.path().to_owned(), error }),
        }
    }
}

/// Opens and locks devices that exist.
pub(crate) fn open_all(
    specs: &[DeviceSpec],
    warnings: &mut Vec<String>,
) -> Result<Vec<Device>, PoolError> {
    if specs.is_empty() {
        return Err(PoolError::NoDevices);
    }
    specs.iter().map(|spec| Device::open(spec, warnings)).collect()
}

fn check_options(options: &Options) -> Result<(), PoolError> {
    let Config { memory, commit_interval, host_latency, .. } = options.config;
    if memory < node::limits::MEMORY_MIN || !memory.is_multiple_of(Bytes::MIB) {
        let rule = "whole MiB, at least 16 MiB";
        return Err(PoolError::Option { name: "memory", rule });
    }
    if commit_interval < Duration::from_millis(1) {
        return Err(PoolError::Option { name: "commit interval", rule: "at least 1 ms" });
    }
    if commit_interval > node::limits::COMMIT_INTERVAL_MAX {
        return Err(PoolError::Option { name: "commit interval", rule: "at most an hour" });
    }
    if options.gap.is_some_and(|gap| gap > queue::limits::GAP_MAX) {
        return Err(PoolError::Option { name: "gap", rule: "at most 10 ms" });
    }
    if host_latency > node::limits::HOST_LATENCY_MAX {
        return Err(PoolError::Option { name: "host latency", rule: "at most a minute" });
    }
    Ok(())
}

/// The disks of a pool and what it holds; writes nothing.
fn look(specs: &[DeviceSpec]) -> Result<(Vec<Seat>, store::Store), PoolError> {
    let open = |spec| Device::open_to_read(spec);
    let devices = specs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    if devices.is_empty() {
        return Err(PoolError::NoDevices);
    }
    let Opened { store, order } = metadata::look(&devices)?;
    Ok((seats(devices, &order, &store)?, store))
}

/// Puts devices into the pool's order, each with the profile from its label.
fn seats(
    devices: Vec<Device>,
    order: &[DiskIndex],
    store: &store::Store,
) -> Result<Vec<Seat>, PoolError> {
    let mut seats = Vec::with_capacity(devices.len());
    for (device, &index) in devices.into_iter().zip(order) {
        let path = device.spec.path();
        let text = String::from_utf8_lossy(store.profile(index));
        let profile = Profile::parse(&text)
            .map_err(|error| PoolError::Profile { path: path.to_owned(), error })?;
        seats.push((index, Seat { device, profile }));
    }
    seats.sort_by_key(|&(index, _)| index);
    Ok(seats.into_iter().map(|(_, seat)| seat).collect())
}
