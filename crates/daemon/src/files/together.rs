//! The pool and the files as one: what is about a stream on a file goes to its device,
//! all else to the pool.

use super::{FIRST_DEVICE, FIRST_STREAM, Files};
use crate::certificate::Kept;
use crate::pool::{
    Bell, Callback, Chunk, Description, HostLateness, OpenedWindow, Pieces, Pool, Room,
};
use crate::tokens;
use node::{
    Capacity, CountedBy, DiskIndex, Error, HandleId, Holding, HostTime, Op, Opening, Ownership,
    Policy, Priority, Promise, Status, StreamId, StreamStatus, Terms, VolumeId, VolumeStatus, Who,
    Wish, WriteRange,
};
use std::ops::Range;
use std::sync::Arc;
use units::{Bytes, Duration, Instant};

/// See the module.
pub struct Together {
    /// The pool.
    pub pool: Arc<dyn Pool>,
    /// The files.
    pub files: Arc<Files>,
    /// The threads that carry answers under contract have real-time priority.
    pub in_real_time: bool,
    /// What the host does not grant the daemon, beside what it does not grant the pool.
    pub warnings: Vec<String>,
    /// What TLS is served with.
    pub certificate: Option<Arc<Kept>>,
}

impl Pool for Together {
    fn submit(&self, who: Who, op: Op, callback: Callback) {
        if let Some(desk) = self.files.desk_for(&op) {
            return desk.submit(op, callback);
        }
        if matches!(op, Op::Shutdown) && who.is_superuser {
            self.files.shut_down();
        }
        self.pool.submit(who, op, callback);
    }

    fn submit_since(&self, who: Who, arrived: Instant, op: Op, callback: Callback) {
        assert!(self.files.desk_for(&op).is_none(), "a file's streams do not wait for answers");
        self.pool.submit_since(who, arrived, op, callback);
    }

    fn together(&self, ask: &mut dyn FnMut()) {
        self.pool.together(ask);
    }

    fn open_window(&self, who: Who, opening: Opening, opened: OpenedWindow) -> bool {
        self.pool.open_window(who, opening, opened)
    }

    fn pieces(&self, who: Who, stream: StreamId, bell: Bell) -> Option<Box<dyn Pieces>> {
        self.pool.pieces(who, stream, bell)
    }

    fn advance(
        &self,
        who: Who,
        stream: StreamId,
        (chunk, len): (Box<dyn Chunk>, Bytes),
        callback: Callback,
        take: (Bytes, Callback),
    ) {
        if stream.0 < FIRST_STREAM {
            return self.pool.advance(who, stream, (chunk, len), callback, take);
        }
        drop(chunk);
        self.submit(who, Op::StreamAdvance { stream, len }, callback);
    }

    fn now(&self) -> Instant {
        self.pool.now()
    }

    fn write(
        &self,
        who: Who,
        arrived: Instant,
        volume: String,
        priority: Option<Priority>,
        range: WriteRange,
        room: Box<dyn Room>,
        callback: Callback,
    ) {
        self.pool.write(who, arrived, volume, priority, range, room, callback);
    }

    fn status(&self) -> Status {
        let mut status = self.pool.status();
        let first = status.streams.iter().map(|stream| stream.stream.0).max();
        assert!(first.is_none_or(|last| last < FIRST_STREAM), "a pool's streams count from 1");
        status.streams.extend(self.files.streams());
        status
    }

    fn volume(&self, name: &str) -> Option<VolumeStatus> {
        self.pool.volume(name)
    }

    fn written(
        &self,
        who: &Who,
        volume: (&str, VolumeId),
        range: Range<Bytes>,
    ) -> Result<Vec<(Bytes, bool)>, Error> {
        self.pool.written(who, volume, range)
    }

    fn volume_id(&self, name: &str) -> Option<VolumeId> {
        self.pool.volume_id(name)
    }

    fn holding(&self, whose: CountedBy) -> Holding {
        self.pool.holding(whose)
    }

    fn stream(&self, id: StreamId) -> Option<StreamStatus> {
        match id.0 {
            FIRST_STREAM.. => self.files.streams().into_iter().find(|one| one.stream == id),
            _ => self.pool.stream(id),
        }
    }

    fn terms(&self, volume: &str, wish: &Wish) -> Option<Terms> {
        self.pool.terms(volume, wish)
    }

    fn run_for(&self, placement: &node::Placement, size: units::Bytes) -> units::Bytes {
        self.pool.run_for(placement, size)
    }

    fn known(&self, name: String) -> String {
        self.pool.known(name)
    }

    fn entries(&self, who: &Who, directory: &str, after: &str, most: usize) -> Vec<node::Entry> {
        self.pool.entries(who, directory, after, most)
    }

    fn recorded(&self, name: &str) -> Option<node::Recorded> {
        self.pool.recorded(name)
    }

    fn capacity(&self) -> Capacity {
        self.pool.capacity()
    }

    fn directory(&self, who: &Who, name: &str) -> Option<node::Directory> {
        self.pool.directory(who, name)
    }

    fn names(&self) -> Vec<(String, Ownership)> {
        self.pool.names()
    }

    fn operations(&self, volume: &str, handle: Option<HandleId>) -> u64 {
        self.pool.operations(volume, handle)
    }

    fn failures_told(&self, volume: &str) -> u64 {
        self.pool.failures_told(volume)
    }

    fn failures_were_told(&self, who: &Who, volume: &str, failures: u64) {
        self.pool.failures_were_told(who, volume, failures);
    }

    fn policy(&self) -> Policy {
        self.pool.policy()
    }

    fn is_read_only(&self) -> bool {
        self.pool.is_read_only()
    }

    fn description(&self) -> Description {
        self.pool.description()
    }

    fn disk_name(&self, disk: DiskIndex) -> String {
        match disk.0 {
            FIRST_DEVICE.. => self.files.name(disk).unwrap_or_else(|| "a device".into()),
            _ => self.pool.disk_name(disk),
        }
    }

    fn host_lateness(&self) -> HostLateness {
        self.pool.host_lateness()
    }

    fn delivered(&self, now: Instant, took: Duration) {
        self.pool.delivered(now, took);
        self.files.delivered(now, took);
    }

    fn carried(&self, promise: &Promise, took: Duration) {
        self.pool.carried(promise, took);
    }

    fn deliveries(&self) -> HostTime {
        self.pool.deliveries()
    }

    fn delivers_in_real_time(&self) -> bool {
        self.in_real_time
    }

    fn damage(&self) -> Vec<Option<String>> {
        self.pool.damage()
    }

    fn warnings(&self) -> Vec<String> {
        let expires = self.certificate.as_ref().and_then(|kept| kept.warning(tokens::now()));
        let own = self.warnings.iter().cloned().chain(expires);
        self.pool.warnings().into_iter().chain(own).collect()
    }
}
