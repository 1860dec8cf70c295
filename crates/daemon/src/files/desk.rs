//! One device with files under contract, at work: its threads read what its state
//! machine says, in the kernel's real-time class, into memory of the windows.
//!
//! Invariants: the lock is never held over a read, a callback or the close of a file; a
//! buffer is either with the thread that fills it, or in `blocks` and never written to again
//! while anybody has it.

use super::given::Held;
use crate::convert;
use crate::lock::{Condvar, Mutex, MutexGuard};
use crate::pool::{Callback, Chunk, Reply};
use disk::Profile;
use engine::{BlockDevice, Buffer, IoClass};
use files::{Device, FileMap, Next, Options, Output, Piece};
use node::{Contract, DiskIndex, Error, HostTime, Op, StreamId, StreamStatus, Who};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use units::{Bytes, Duration, Instant, Lba};
use wire::control as api;

/// See the module.
pub struct Desk {
    pub index: DiskIndex,
    pub device: BlockDevice,
    pub notes: Vec<String>,
    /// Of the device, by its profile.
    pub capacity: Bytes,
    state: Mutex<State>,
    news: Condvar,
}

struct State {
    device: Device,
    open: HashMap<StreamId, Open>,
    calls: HashMap<u64, (StreamId, Callback)>,
    next_ticket: u64,
    stopping: bool,
    /// Files that were found on it, and are to have a contract.
    found: usize,
    /// When there was a stream or such a file, as far as somebody looked.
    used: Instant,
}

/// A device on which a file was found: it stays while this is held.
pub struct Stays(Arc<Desk>);

impl Deref for Stays {
    type Target = Arc<Desk>;
    fn deref(&self) -> &Arc<Desk> {
        &self.0
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        let mut state = self.0.state();
        (state.found, state.used) = (state.found.saturating_sub(1), engine::now());
    }
}

/// A file under contract.
struct Open {
    file: Arc<Held>,
    /// Where its file system begins on the device.
    start: Bytes,
    /// What is in memory, by number.
    blocks: BTreeMap<u64, Arc<Buffer>>,
    spare: Vec<Buffer>,
}

/// A file that is to get a contract.
pub struct Opening {
    pub stream: StreamId,
    pub name: String,
    pub file: Held,
    pub map: FileMap,
    pub start: Bytes,
}

/// A file that is longer than it was.
struct Grown {
    file: Arc<Held>,
    /// Where its file system begins on the device.
    start: Bytes,
    length: Bytes,
}

/// Bytes of a block.
struct Part {
    buffer: Arc<Buffer>,
    from: usize,
    len: usize,
    /// When the device's state decided on the answer that this is.
    handed: Instant,
}

impl Chunk for Part {
    fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[self.from..][..self.len]
    }
    fn handed(&self) -> Option<Instant> {
        Some(self.handed)
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

/// Callbacks, to be called without the lock.
type Calls = Vec<(Callback, Result<Reply, Error>)>;

fn call(calls: Calls) {
    for (callback, result) in calls {
        callback(result);
    }
}

impl Desk {
    /// A device without streams, and its threads.
    pub fn start(
        index: DiskIndex,
        device: BlockDevice,
        profile: Profile,
        options: Options,
        notes: Vec<String>,
        realtime: bool,
    ) -> io::Result<Arc<Self>> {
        let spawn = |name, serve| std::thread::Builder::new().name(name).spawn(serve).map(drop);
        Self::start_by(index, device, profile, options, notes, realtime, spawn)
    }

    fn start_by(
        index: DiskIndex,
        device: BlockDevice,
        profile: Profile,
        options: Options,
        notes: Vec<String>,
        realtime: bool,
        mut spawn: impl FnMut(String, Box<dyn FnOnce() + Send>) -> io::Result<()>,
    ) -> io::Result<Arc<Self>> {
        // One more than reads at once: where all of these hang, it still looks after the time.
        let (threads, capacity) =
            (profile.depth().clamp(1, files::READS_MAX) + 1, profile.capacity());
        let state = State {
            device: Device::new(index, profile, options),
            open: HashMap::new(),
            calls: HashMap::new(),
            next_ticket: 0,
            stopping: false,
            found: 0,
            used: engine::now(),
        };
        let (state, news) = (Mutex::new(state), Condvar::default());
        let desk = Arc::new(Self { index, device, notes, capacity, state, news });
        for number in 0..threads {
            let own = Arc::clone(&desk);
            let name = format!("files-{}-{number}", desk.device.name);
            if let Err(error) = spawn(name, Box::new(move || own.serve(realtime))) {
                desk.stop(); // nobody else knows of the threads that there are
                return Err(error);
            }
        }
        Ok(desk)
    }

    /// It stays while this is held; none where its threads have been told to end.
    pub fn stays(self: &Arc<Self>) -> Option<Stays> {
        let mut state = self.state();
        state.found += usize::from(!state.stopping);
        (!state.stopping).then(|| Stays(Arc::clone(self)))
    }

    /// Ends its threads where nobody has used it for so long. True where it has done so.
    pub fn leave(&self, now: Instant, after: Duration) -> bool {
        let mut state = self.state();
        if !state.open.is_empty() || state.found > 0 {
            state.used = now;
        }
        let leaves = now >= state.used.saturating_add(after);
        state.stopping |= leaves;
        drop(state);
        if leaves {
            self.news.notify_all();
        }
        leaves
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Where the file system of a file begins, whose device was looked at.
    pub fn start_of(&self, device: &BlockDevice) -> Bytes {
        assert_eq!(device.name, self.device.name, "a file of this device");
        device.start
    }

    /// Gives a contract on a file; gives the memory of its window.
    pub fn open(&self, opening: Opening, contract: &Contract) -> Result<Bytes, Error> {
        let Opening { stream, name, file, map, start } = opening;
        let part = file.device().map_or(Bytes::ZERO, |device| device.start);
        let mut state = self.state();
        if state.stopping {
            return Err(Error::ShuttingDown);
        }
        let window = state.device.open(engine::now(), stream, name, contract, start, map)?;
        let (blocks, spare) = (BTreeMap::new(), Vec::new());
        state.open.insert(stream, Open { file: Arc::new(file), start: part, blocks, spare });
        drop(state);
        self.news.notify_all();
        Ok(window)
    }

    pub fn has(&self, stream: StreamId) -> bool {
        self.state().open.contains_key(&stream)
    }

    pub fn streams(&self) -> Vec<StreamStatus> {
        self.state().device.status()
    }

    /// Begins an operation on one of its streams.
    pub fn submit(self: &Arc<Self>, op: Op, callback: Callback) {
        if let Op::StreamRead { stream, .. } = op
            && let Some(grown) = self.grown(stream)
        {
            // Whoever writes to the file can keep the answer waiting: only its reader waits.
            let desk = Arc::clone(self);
            let thread = std::thread::Builder::new().name("file-grown".into());
            let looked = thread.spawn(move || {
                desk.take_in(stream, &grown);
                desk.begin(&op, callback);
            });
            if let Err(error) = looked {
                tracing::error!(%error, "no thread to look at a file that has grown: {error}");
            }
            return;
        }
        self.begin(&op, callback);
    }

    fn begin(&self, op: &Op, callback: Callback) {
        let now = engine::now();
        // What is closed goes after the lock was given back.
        let mut gone = None;
        let mut state = self.state();
        let mut calls = Calls::new();
        // What was told until now may be about bytes that go with this operation.
        state.hear(now, &mut calls);
        match *op {
            Op::StreamRead { stream, len_max } => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.calls.insert(ticket, (stream, callback));
                state.device.read(now, stream, ticket, len_max);
            }
            Op::StreamAdvance { stream, len } => {
                let done = state.device.advance(now, stream, len).map(|()| Reply::Done);
                state.trim(stream);
                calls.push((callback, done));
            }
            Op::StreamChange { stream, contract } => {
                let changed = state.device.change(now, stream, &contract);
                let answer = changed.map(|window| Reply::Stream { stream, window });
                calls.push((callback, answer));
            }
            Op::StreamClose { stream } => {
                let closed = state.device.close(now, stream).map(|()| Reply::Done);
                gone = state.open.remove(&stream);
                calls.push((callback, closed));
            }
            Op::StreamSeek { .. } => calls.push((callback, Err(not_on_a_file("seek")))),
            _ => calls.push((callback, Err(Error::WrongMode))),
        }
        state.hear(now, &mut calls);
        drop(state);
        self.news.notify_all();
        call(calls);
        drop(gone);
    }

    /// At the end of a file, whether it has grown since.
    fn grown(&self, stream: StreamId) -> Option<Grown> {
        let state = self.state();
        let (position, length) = state.device.place(stream)?;
        let open = state.open.get(&stream).filter(|_| position >= length)?;
        let (file, start) = (Arc::clone(&open.file), open.start);
        drop(state);
        let now_long = file.length().ok()?;
        (now_long > length).then_some(Grown { file, start, length: now_long })
    }

    /// Finds out where the further bytes of a file are. May take as long as its writers
    /// like.
    fn take_in(&self, stream: StreamId, grown: &Grown) {
        // What is only in memory so far is nowhere yet; it is read all the same.
        let extents = grown.file.extents_so_far().unwrap_or_default();
        let pieces = extents.iter().map(|extent| Piece {
            at: extent.at,
            len: extent.len,
            lba: Lba::containing(grown.start + extent.place),
        });
        let map = FileMap::new(pieces.collect(), grown.length, self.capacity);
        if let Ok(map) = map {
            self.state().device.grown(engine::now(), stream, map);
        }
    }

    /// Reads what is to be read until the daemon stops.
    fn serve(&self, realtime: bool) {
        let _fatal = engine::Fatal::new("in a thread of a device");
        // Both were tried, and told where they are not permitted, when the device was found.
        let _ = engine::io_class(IoClass::RealTime);
        match realtime {
            true => drop(engine::keep_time()),
            false => engine::wake_sharply(),
        }
        let mut state = self.state();
        while !state.stopping {
            let (mut calls, now) = (Calls::new(), engine::now());
            let next = state.device.next(now);
            state.hear(now, &mut calls);
            match next {
                Next::Read { key, stream, block, offset, len } => {
                    let open = state.open.get_mut(&stream).expect("an open stream's read");
                    let (file, buffer) = (Arc::clone(&open.file), open.spare.pop());
                    drop(state);
                    self.news.notify_one(); // another thread may have something to do as well
                    call(calls);
                    let mut buffer = buffer.unwrap_or_else(|| Buffer::new(len));
                    let result = file.read(offset, len, &mut buffer);
                    // The last that has it where the stream was closed meanwhile.
                    drop(file);
                    let (mut calls, now) = (Calls::new(), engine::now());
                    state = self.state();
                    let wanted = state.device.is_wanted(key);
                    if let Some(open) = state.open.get_mut(&stream) {
                        match result {
                            Ok(_) if wanted => drop(open.blocks.insert(block, Arc::new(buffer))),
                            _ => open.spare.push(buffer),
                        }
                    }
                    state.device.finished(now, key, result);
                    state.hear(now, &mut calls);
                    state = self.without(state, calls);
                }
                Next::Wait { until } if calls.is_empty() => state = self.sleep(state, until),
                Next::Wait { .. } => state = self.without(state, calls),
            }
        }
    }

    /// Calls back without the lock.
    fn without<'a>(&'a self, state: MutexGuard<'a, State>, calls: Calls) -> MutexGuard<'a, State> {
        if calls.is_empty() {
            return state;
        }
        drop(state);
        call(calls);
        self.state()
    }

    fn sleep<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        match until {
            None => self.news.wait(state),
            Some(until) => {
                let left = until.saturating_since(engine::now()).as_nanos();
                self.news.wait_for(state, std::time::Duration::from_nanos(left))
            }
        }
    }

    /// Ends its streams and its threads.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stopping = true;
        let (mut calls, now) = (Calls::new(), engine::now());
        let all: Vec<StreamId> = state.open.keys().copied().collect();
        let mut gone = Vec::with_capacity(all.len());
        for stream in all {
            state.hear(now, &mut calls);
            let _ = state.device.close(now, stream);
            gone.extend(state.open.remove(&stream));
        }
        state.hear(now, &mut calls);
        drop(state);
        self.news.notify_all();
        call(calls);
        drop(gone);
    }

    /// Answers take so long to their programs; counted where all contracts fit with it.
    pub fn set_delivery(&self, takes: Duration) {
        let (mut state, mut calls) = (self.state(), Calls::new());
        let now = engine::now();
        state.device.set_delivery(now, takes);
        state.hear(now, &mut calls);
        drop(state);
        self.news.notify_all();
        call(calls);
    }

    /// What happened on it, and what was measured where so much is counted for deliveries.
    pub fn told(&self, carried: impl Fn(Duration) -> HostTime, who: &Who) -> api::FileDevice {
        let state = self.state();
        // Whose streams do not fit is told to administrators.
        let refused = |error: Option<&Error>| {
            error.map(|error| match error {
                Error::GapRefused { refusal, .. } | Error::DeliveryRefused { refusal, .. }
                    if !who.is_superuser =>
                {
                    Error::Refused((**refusal).clone()).to_string()
                }
                other => other.to_string(),
            })
        };
        let host_time = |time: HostTime, error: Option<&Error>| api::HostTime {
            refused: refused(error),
            ..convert::host_time(time, None)
        };
        let (gap, delivery) = (state.device.gaps(), state.device.delivery());
        let (device, account) = (&state.device, state.device.account());
        api::FileDevice {
            device: self.device.name.clone(),
            profile: device.profile().source.clone(),
            scheduler: self.device.scheduler.clone(),
            streams: device.streams() as u64,
            utilisation_ppm: device.utilisation_ppm(),
            share_ppm: device.options().share_ppm,
            requests: account.real_time.requests,
            late_requests: account.late_requests,
            late_max_ns: account.late_max,
            disturbed: account.overruns,
            disturbed_max_ns: account.overrun_max,
            predicted_ns: account.predicted_total,
            actual_ns: account.actual_total,
            rate_max_bytes_per_second: device.rate_max(),
            gap: host_time(gap.0, gap.1),
            delivery: host_time(carried(delivery.0), delivery.1),
            notes: self.notes.clone(),
        }
    }
}

fn not_on_a_file(what: &'static str) -> Error {
    Error::Invalid { what, rule: "a stream on a file goes forward only: open another one" }
}

impl State {
    /// What programs shall hear, with the bytes that it is about.
    fn hear(&mut self, now: Instant, calls: &mut Calls) {
        while let Some(Output { ticket, result }) = self.device.poll_output() {
            let (stream, callback) = self.calls.remove(&ticket).expect("each ask ends once");
            let answer = result.and_then(|reply| match reply {
                files::Reply::Data { block, offset, len } => {
                    self.part(now, (stream, block), offset, len)
                }
                files::Reply::Gap { offset, len } => Ok(Reply::Gap { offset, len }),
                files::Reply::End => Ok(Reply::End),
            });
            calls.push((callback, answer));
        }
    }

    /// Bytes of a block of a stream, where both are still there.
    fn part(
        &self,
        now: Instant,
        (stream, block): (StreamId, u64),
        offset: Bytes,
        len: Bytes,
    ) -> Result<Reply, Error> {
        let gone = || Error::NoSuchStream { stream };
        let buffer = self.open.get(&stream).and_then(|open| open.blocks.get(&block));
        let buffer = Arc::clone(buffer.ok_or_else(gone)?);
        let block_len = self.device.block_of(stream).ok_or_else(gone)?;
        let from = (offset - block_len * block).as_usize();
        let part = Part { buffer, from, len: len.as_usize(), handed: now };
        Ok(Reply::Data { bytes: Box::new(part), offset })
    }

    /// Takes back the blocks that have left a stream's window, as far as nobody has them.
    fn trim(&mut self, stream: StreamId) {
        let (Some(first), Some(open)) =
            (self.device.window_start(stream), self.open.get_mut(&stream))
        else {
            return;
        };
        let kept = open.blocks.split_off(&first);
        for (_, buffer) in std::mem::replace(&mut open.blocks, kept) {
            open.spare.extend(Arc::try_unwrap(buffer));
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::files::given::Hands;
    use engine::HostFile;
    use std::sync::mpsc;
    use units::Rate;

    const STREAM: StreamId = StreamId(7);
    const BLOCK: Bytes = Bytes::kib(64);

    pub fn profile() -> Profile {
        let text = "kind = 'linear'\nsource = 'stated by the tests'\nconfidence = 'none'\n\
                    capacity = '1GiB'\nflush = '2ms'\n[linear]\ndepth = 1\nlatency = '1ms'\n\
                    read = { fixed = '200us', rate = '100MB/s' }\n\
                    write = { fixed = '2ms', rate = '100MB/s' }\n";
        Profile::parse(text).unwrap()
    }

    pub fn options() -> Options {
        Options {
            share_ppm: 900_000,
            others: Duration::from_millis(1),
            host_latency: Duration::ZERO,
            gap: Duration::ZERO,
            ride_out: Duration::ZERO,
            memory: Bytes::mib(16),
        }
    }

    pub fn device_called(name: &str) -> BlockDevice {
        BlockDevice {
            name: name.into(),
            start: Bytes::ZERO,
            size: Bytes::GIB,
            scheduler: String::new(),
            depth: 1,
            longest: Bytes::MIB,
        }
    }

    /// Threads of a desk that could not be started are in no list: nobody else would end them.
    #[test]
    fn a_desk_that_gets_no_thread_leaves_none() {
        let mut threads = Vec::new();
        let spawn = |name: String, serve: Box<dyn FnOnce() + Send>| {
            if !threads.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            threads.push(std::thread::Builder::new().name(name).spawn(serve).unwrap());
            Ok(())
        };
        let (device, notes) = (device_called("of-the-tests"), Vec::new());
        let desk = Desk::start_by(DiskIndex(0), device, profile(), options(), notes, false, spawn);
        assert!(desk.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
        assert_eq!(threads.len(), 1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    /// A desk without threads, with one stream whose window is full and whose answer is due;
    /// None where no contract can be given on files of the temporary folder.
    fn due(callback: Callback) -> Option<Desk> {
        let place =
            tempfile::Builder::new().prefix("slackline-").tempfile().unwrap().into_temp_path();
        std::fs::write(&place, [1; 4096]).unwrap();
        let given = std::fs::File::open(&place).unwrap();
        place.close().unwrap();
        let hand = Arc::new(Hands::default()).free(0).unwrap();
        let file = Held::new(HostFile::take(given.into()).ok()?, &hand);
        let (profile, options) = (profile(), options());
        let piece = Piece { at: Bytes::ZERO, len: Bytes::mib(64), lba: Lba::default() };
        let map = FileMap::new(vec![piece], piece.len, profile.capacity()).unwrap();
        let mut device = Device::new(DiskIndex(0), profile, options);
        // Long ago: what was asked for then is due by now.
        let then = Instant::EPOCH + engine::now().saturating_since(Instant::EPOCH) / 2;
        let contract =
            Contract { rate: Rate::per_second(1_000_000), block: BLOCK, burst: Bytes::ZERO };
        // Windows are made for it: where less is counted, no block is missing.
        device.set_delivery(then, Duration::from_millis(1));
        device.open(then, STREAM, "f".into(), &contract, Bytes::ZERO, map).unwrap();
        device.read(then, STREAM, 0, Bytes::kib(4));
        let mut blocks = BTreeMap::new();
        while let Next::Read { key, block, len, .. } = device.next(then) {
            blocks.insert(block, Arc::new(Buffer::new(len)));
            device.finished(then, key, Ok(len));
        }
        assert_eq!(device.poll_output(), None, "it is not due then");
        let open = Open { file: Arc::new(file), start: Bytes::ZERO, blocks, spare: Vec::new() };
        let state = State {
            device,
            open: HashMap::from([(STREAM, open)]),
            calls: HashMap::from([(0, (STREAM, callback))]),
            next_ticket: 1,
            stopping: false,
            found: 0,
            used: engine::now(),
        };
        Some(Desk {
            index: DiskIndex(0),
            device: device_called("of-the-tests"),
            notes: Vec::new(),
            capacity: Bytes::GIB,
            state: Mutex::new(state),
            news: Condvar::default(),
        })
    }

    fn told() -> (Callback, mpsc::Receiver<Result<Reply, Error>>) {
        let (told, heard) = mpsc::channel();
        (Box::new(move |answer| drop(told.send(answer))), heard)
    }

    /// Where deliveries are counted anew, a stream may find its answer due: it is told then, and
    /// the program that closes at that moment does not take the bytes from under it.
    #[test]
    fn an_answer_that_is_due_when_deliveries_are_counted_anew_is_told_at_once() {
        let (callback, heard) = told();
        let Some(desk) = due(callback) else { return };
        desk.set_delivery(Duration::ZERO);
        assert!(matches!(heard.try_recv(), Ok(Ok(Reply::Data { .. }))));
        let (callback, closed) = told();
        desk.begin(&Op::StreamClose { stream: STREAM }, callback);
        assert!(matches!(closed.try_recv(), Ok(Ok(Reply::Done))));
    }

    /// Whatever has answers waiting untold: a close, or the end of the daemon, tells them first.
    #[test]
    fn what_is_not_told_yet_is_told_before_a_stream_goes() {
        for stops in [false, true] {
            let (callback, heard) = told();
            let Some(desk) = due(callback) else { return };
            desk.state().device.set_delivery(engine::now(), Duration::ZERO);
            let (callback, _closed) = told();
            match stops {
                true => desk.stop(),
                false => desk.begin(&Op::StreamClose { stream: STREAM }, callback),
            }
            assert!(matches!(heard.try_recv(), Ok(Ok(Reply::Data { .. }))), "stops: {stops}");
        }
    }

    /// The last close of a large file that was removed takes long on a busy disk. Before, it was
    /// under the desk's lock, where all contracts on the device waited for it, and on a thread of
    /// the runtime.
    #[test]
    fn a_file_is_closed_apart_and_without_the_lock() {
        for stops in [false, true] {
            let Some(desk) = due(Box::new(drop)) else { return };
            let desk = Arc::new(desk);
            let (closed, is_closed) = mpsc::channel();
            let looks = Arc::clone(&desk);
            let last = Box::new(move || {
                // To take the lock twice on one thread would be the end of this test.
                closed.send((looks.has(STREAM), std::thread::current().id())).unwrap();
            });
            let file = Arc::clone(&desk.state().open[&STREAM].file);
            *file.closed.lock() = Some(last);
            drop(file);
            match stops {
                true => desk.stop(),
                false => desk.begin(&Op::StreamClose { stream: STREAM }, Box::new(drop)),
            }
            let (is_there, on) = is_closed.recv().unwrap();
            assert!(!is_there && on != std::thread::current().id(), "stops: {stops}");
        }
    }

    /// A desk that refuses a file has it no longer than one that closes it.
    #[test]
    fn a_file_that_is_refused_is_closed_apart() {
        let Some(desk) = due(Box::new(drop)) else { return };
        let Open { file, start, .. } = desk.state().open.remove(&STREAM).unwrap();
        let (closed, is_closed) = mpsc::channel();
        let last = Box::new(move || closed.send(std::thread::current().id()).unwrap());
        *file.closed.lock() = Some(last);
        let file = Arc::into_inner(file).unwrap();
        desk.state().stopping = true;
        let map = FileMap::new(Vec::new(), Bytes::ZERO, desk.capacity).unwrap();
        let opening = Opening { stream: STREAM, name: "f".into(), file, map, start };
        let contract =
            Contract { rate: Rate::per_second(1_000_000), block: BLOCK, burst: Bytes::ZERO };
        assert_eq!(desk.open(opening, &contract), Err(Error::ShuttingDown));
        assert_ne!(is_closed.recv().unwrap(), std::thread::current().id());
    }
}
