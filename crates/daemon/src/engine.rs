//! The engine's pool as the daemon's.

use crate::pool::{
    Bell, Callback, Chunk, Description, HostLateness, OpenedWindow, Pieces, Pool, Reply, Room,
};
use engine::{ChunkMut, Told};
use node::{
    Capacity, CountedBy, Error, HandleId, Holding, HostTime, Op, Opening, Ownership, Policy,
    Priority, Promise, Status, StreamId, StreamStatus, Terms, VolumeId, VolumeStatus, Who, Wish,
    WriteRange,
};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use units::{Bytes, Duration, Instant};
use wire::control::Lateness;

impl Chunk for engine::Chunk {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn promise(&self) -> Option<Promise> {
        self.promise()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Pieces for Arc<engine::Pieces> {
    fn ask(&self) {
        engine::Pieces::ask(self);
    }
    fn take(&self) -> Option<Result<Told, Error>> {
        engine::Pieces::take(self)
    }
}

impl Room for ChunkMut {
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
    fn promise(&self) -> Option<Promise> {
        self.promise()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn boxed(reply: engine::Reply) -> Reply {
    let bytes = |chunk| Box::new(chunk) as Box<dyn Chunk>;
    reply.map(bytes, |room| Box::new(room) as Box<dyn Room>, |window| window)
}

impl Pool for engine::Pool {
    fn submit(&self, who: Who, op: Op, callback: Callback) {
        self.submit_as(who, op, move |result: Result<engine::Reply, Error>| {
            callback(result.map(boxed))
        });
    }

    fn submit_since(&self, who: Who, arrived: Instant, op: Op, callback: Callback) {
        let done = move |result: Result<engine::Reply, Error>| callback(result.map(boxed));
        self.submit_since(who, arrived, op, done);
    }

    fn together(&self, ask: &mut dyn FnMut()) {
        self.together(ask);
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
        let room = room.into_any().downcast::<ChunkMut>().expect("the room came from this pool");
        let done = move |result: Result<(), Error>| callback(result.map(|()| Reply::Done));
        self.write_as(who, arrived, priority, &volume, range, *room, done);
    }

    fn open_window(&self, who: Who, opening: Opening, opened: OpenedWindow) -> bool {
        self.open_window(who, opening, opened).is_ok()
    }

    fn pieces(&self, who: Who, stream: StreamId, bell: Bell) -> Option<Box<dyn Pieces>> {
        Some(Box::new(self.pieces(who, stream, bell)))
    }

    fn advance(
        &self,
        who: Who,
        _stream: StreamId,
        (chunk, len): (Box<dyn Chunk>, Bytes),
        callback: Callback,
        (next, taken): (Bytes, Callback),
    ) {
        let chunk = chunk.into_any().downcast::<engine::Chunk>().expect("it came from this pool");
        let done = move |result: Result<(), Error>| callback(result.map(|()| Reply::Done));
        let taken = move |result: Result<engine::Reply, Error>| taken(result.map(boxed));
        self.advance_and_take(who, (*chunk, len), done, next, taken);
    }

    fn now(&self) -> Instant {
        self.now()
    }

    fn status(&self) -> Status {
        self.status()
    }

    fn volume(&self, name: &str) -> Option<VolumeStatus> {
        self.volume(name)
    }

    fn written(
        &self,
        who: &Who,
        volume: (&str, VolumeId),
        range: Range<Bytes>,
    ) -> Result<Vec<(Bytes, bool)>, Error> {
        self.written(who, volume, range)
    }

    fn volume_id(&self, name: &str) -> Option<VolumeId> {
        self.volume_id(name)
    }

    fn holding(&self, whose: CountedBy) -> Holding {
        self.holding(whose)
    }

    fn stream(&self, id: StreamId) -> Option<StreamStatus> {
        self.stream(id)
    }

    fn terms(&self, volume: &str, wish: &Wish) -> Option<Terms> {
        self.terms(volume, wish)
    }

    fn run_for(&self, placement: &node::Placement, size: units::Bytes) -> units::Bytes {
        self.run_for(placement, size)
    }

    fn known(&self, name: String) -> String {
        self.volume_id(&name).map_or(name, VolumeId::as_name)
    }

    fn entries(&self, who: &Who, directory: &str, after: &str, most: usize) -> Vec<node::Entry> {
        self.entries(who, directory, after, most)
    }

    fn recorded(&self, name: &str) -> Option<node::Recorded> {
        self.recorded(name)
    }

    fn capacity(&self) -> Capacity {
        self.capacity()
    }

    fn directory(&self, who: &Who, name: &str) -> Option<node::Directory> {
        self.directory(who, name)
    }

    fn names(&self) -> Vec<(String, Ownership)> {
        self.names()
    }

    fn operations(&self, volume: &str, handle: Option<HandleId>) -> u64 {
        self.operations(volume, handle)
    }

    fn failures_told(&self, volume: &str) -> u64 {
        self.failures_told(volume)
    }

    fn failures_were_told(&self, who: &Who, volume: &str, failures: u64) {
        self.failures_were_told(who, volume, failures);
    }

    fn policy(&self) -> Policy {
        self.policy()
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only()
    }

    fn description(&self) -> Description {
        let own = self.description();
        Description {
            name: own.name.clone(),
            id: own.id.clone(),
            devices: own.devices.iter().map(ToString::to_string).collect(),
        }
    }

    fn host_lateness(&self) -> HostLateness {
        let own = self.host_lateness();
        HostLateness { wakeups: lateness(&own.timers), completions: lateness(&own.completions) }
    }

    fn delivered(&self, now: Instant, took: Duration) {
        self.delivered(now, took);
    }

    fn carried(&self, promise: &Promise, took: Duration) {
        self.carried(promise, took);
    }

    fn deliveries(&self) -> HostTime {
        self.deliveries()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings().to_vec()
    }

    fn damage(&self) -> Vec<Option<String>> {
        self.damage().into_iter().map(|damage| damage.map(str::to_owned)).collect()
    }
}

fn lateness(distribution: &engine::Distribution) -> Lateness {
    Lateness {
        count: distribution.count(),
        p50_ns: distribution.quantile(500_000),
        p999_ns: distribution.quantile(999_000),
        max_ns: distribution.max(),
    }
}
