//! One camera, as its two threads and whoever looks at it share it.
//!
//! One thread has the command ([`super::feed`]), one the daemon ([`super::keeper`]). Invariants:
//! nobody waits for anything but the lock while holding it; a loss has a beginning, an end and a
//! number of bytes.

use super::buffer::{Buffer, Resumed};
use super::events::{Event, span, utc};
use super::file::Spec;
use super::group::Group;
use super::hearing::{Hearing, Unplayable};
use super::limits::{LINES, LINES_NOTED, LOSS_OVER, LOSSES, LOST_LATELY, STUCK, UNPLAYABLE_MAX};
use super::rate::{Meter, Terms};
use super::shown::{Loss, Seen, Told};
use crate::moment::age;
use client::control::{Contract, Stream, Volume};
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};
use units::{Bytes, Rate};

/// Whether its command gives bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feed {
    /// It is not started before its volume was opened once, unless there is no daemon, or none that
    /// answers.
    Waits,
    /// It was started, and has given nothing yet.
    Starts,
    /// It gives bytes.
    Up,
    /// It has ended, and will be started again.
    Ended,
}

/// Whether the daemon takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// It was not asked yet.
    Waits,
    /// Under contract.
    Open,
    /// No, and the state has this name, for this reason.
    No(&'static str, String),
}

/// The state of a camera for which there is no daemon.
pub const AWAY: &str = "no daemon";

impl Store {
    /// There is no daemon.
    fn is_away(&self) -> bool {
        matches!(self, Self::No(state, _) if *state == AWAY)
    }
}

/// What comes next for the daemon.
pub enum Next {
    /// A piece; it is held until it is durable.
    Piece(Arc<Vec<u8>>),
    /// Nothing for now.
    Nothing,
    /// Nothing any more.
    Over,
}

/// See the module.
pub struct Camera {
    /// What the file says of it.
    pub spec: Spec,
    inner: Mutex<Inner>,
    news: Condvar,
    events: Sender<Event>,
    began: Instant,
    /// What runs for it.
    pub group: Group,
}

struct Inner {
    buffer: Buffer,
    meter: Meter,
    terms: Terms,
    feed: (Feed, SystemTime),
    /// Since when it gives nothing any more, however often it was started since, and why.
    down: Option<(SystemTime, String)>,
    store: (Store, SystemTime),
    /// It was opened once.
    opened: bool,
    /// No more bytes will come.
    over: bool,
    contract: Option<Contract>,
    stream: Option<u64>,
    /// How often these two were changed from here.
    changes: u64,
    /// A change is asked for, and not answered.
    asks: bool,
    /// The contract is one that somebody else gave it.
    is_others: bool,
    room: Room,
    length: Bytes,
    /// When the daemon took something last, or nothing was there for it.
    taken: Instant,
    starts: u64,
    /// The last lines of the command since its start.
    said: VecDeque<String>,
    hearing: Hearing,
    /// What it gives since its start, and players do not know.
    unplayable: Vec<Unplayable>,
    lost: u64,
    losing: Option<(SystemTime, Instant, u64)>,
    /// Each with when it ended.
    losses: VecDeque<(Instant, Loss)>,
}

/// What room its volume has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    /// Bytes.
    pub size: Bytes,
    /// It never ends.
    pub is_ring: bool,
    /// What was recorded so long ago is given up.
    pub keep: Option<units::Duration>,
    /// Of a ring: so much of its size it has given up ahead of whoever records to it.
    pub ahead: Bytes,
}

impl Room {
    /// Of a volume that is there.
    pub fn of(spec: &Spec, volume: &Volume) -> Self {
        let (size, ring) = (volume.size_bytes, volume.ring.as_ref());
        let grows = spec.grow_to.filter(|_| ring.is_none());
        let size = grows.map_or(size, |limit| limit.max(size));
        let keep = ring.and_then(|ring| ring.keep_ns);
        let ahead = ring.and_then(|ring| ring.ahead_bytes).unwrap_or_default();
        Self { size, is_ring: ring.is_some(), keep, ahead }
    }

    /// For how many seconds the rest of a volume of which so much is recorded lasts at a rate; of
    /// a ring: how old the oldest byte becomes at the least, where it is given up for its age at the
    /// latest.
    pub fn lasts(self, length: Bytes, rate: Rate) -> u64 {
        let room = self.size.saturating_sub(if self.is_ring { self.ahead } else { length });
        let time = rate.time_for(room).min(self.keep.unwrap_or(units::Duration::MAX));
        time.as_secs()
    }
}

impl Camera {
    /// One that has not begun.
    pub fn new(spec: Spec, events: Sender<Event>) -> Self {
        let now = SystemTime::now();
        let inner = Inner {
            buffer: Buffer::new(spec.buffer),
            meter: Meter::new(spec.window),
            terms: Terms::new(spec.rate, spec.rate_max),
            feed: (Feed::Waits, now),
            down: None,
            store: (Store::Waits, now),
            opened: false,
            over: false,
            contract: None,
            stream: None,
            changes: 0,
            asks: false,
            is_others: false,
            room: Room::default(),
            length: Bytes::ZERO,
            taken: Instant::now(),
            starts: 0,
            said: VecDeque::new(),
            hearing: Hearing::default(),
            unplayable: Vec::new(),
            lost: 0,
            losing: None,
            losses: VecDeque::new(),
        };
        let news = Condvar::new();
        let (inner, began, group) = (Mutex::new(inner), Instant::now(), Group::default());
        Self { spec, inner, news, events, began, group }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no thread panics while it holds a camera")
    }

    fn now(&self) -> units::Duration {
        let ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        units::Duration::from_nanos(ns)
    }

    /// Tells whoever listens.
    pub fn tell(&self, event: Event) {
        // Nobody listens any more where all of it ends.
        let _ = self.events.send(event);
    }

    fn event(&self, kind: &'static str, what: impl Into<String>) -> Event {
        Event::new(&self.spec.name, kind, what)
    }
}

/// For the thread of its command.
impl Camera {
    /// Whether its volume was open for it before.
    pub fn was_opened(&self) -> bool {
        self.inner().opened
    }

    /// Waits until its bytes are wanted, or so long; whether they are: its volume was opened once, or
    /// there is no daemon, and they wait for it as they do when it has gone. So they do for one that
    /// hangs: cameras ask in turn, and the last would hear of it late.
    pub fn wanted_within(&self, time: Duration) -> bool {
        let inner = self.inner();
        let is_wanted = |inner: &Inner| {
            let hangs = inner.store.0 == Store::Waits && self.began.elapsed() >= STUCK;
            inner.opened || inner.store.0.is_away() || hangs
        };
        let waited = self.news.wait_timeout_while(inner, time, |inner| !is_wanted(inner));
        is_wanted(&waited.expect("no thread panics while it holds a camera").0)
    }

    /// Its command was started.
    pub fn started(&self) {
        let mut inner = self.inner();
        inner.feed = (Feed::Starts, SystemTime::now());
        inner.starts += 1;
        inner.said.clear();
        inner.unplayable.clear();
        inner.meter.restart();
    }

    /// Its command gave these bytes, whole packets and no more than a piece.
    pub fn gave(&self, bytes: &[u8]) {
        let now = self.now();
        let mut inner = self.inner();
        if inner.feed.0 == Feed::Starts {
            inner.feed = (Feed::Up, SystemTime::now());
            let what = match inner.down.take() {
                Some((since, _)) => {
                    format!(
                        "gives bytes again, after {}",
                        span(since.elapsed().unwrap_or_default())
                    )
                }
                None => "gives bytes".into(),
            };
            self.tell(self.event("up", what).with("starts", inner.starts));
            // Of one that ends without a byte, its end tells them.
            let Inner { said, hearing, .. } = &mut *inner;
            said.iter().for_each(|line| self.says(line, hearing));
        }
        if inner.buffer.waiting() == 0 {
            inner.taken = Instant::now();
        }
        inner.meter.add(now, bytes.len() as u64);
        let dropped = inner.buffer.push(bytes);
        if dropped > 0 {
            inner.lost += dropped;
            let wall = SystemTime::now();
            match &mut inner.losing {
                Some((_, last, lost)) => (*last, *lost) = (Instant::now(), *lost + dropped),
                none => {
                    *none = Some((wall, Instant::now(), dropped));
                    let what =
                        "its buffer is full: the oldest bytes that wait are lost from now on";
                    self.tell(self.event("losing", what));
                }
            }
        }
        drop(inner);
        self.news.notify_all();
    }

    /// Whether its command has given something since it was started.
    pub fn gives(&self) -> bool {
        self.inner().feed.0 == Feed::Up
    }

    /// Its command said this line.
    pub fn said(&self, line: String) {
        let mut inner = self.inner();
        if inner.said.len() == LINES {
            inner.said.pop_front();
        }
        if let Some(found) = Unplayable::of(&line) {
            if inner.hearing.is_new(&found) {
                self.tell(self.event("unplayable", found.what()).next(found.next()));
            }
            let has_room = inner.unplayable.len() < UNPLAYABLE_MAX;
            if has_room && !inner.unplayable.contains(&found) {
                inner.unplayable.push(found);
            }
        }
        if inner.feed.0 == Feed::Up {
            self.says(&line, &mut inner.hearing);
        }
        inner.said.push_back(line);
    }

    /// A command that runs says this: told where it is news.
    fn says(&self, line: &str, hearing: &mut Hearing) {
        if Unplayable::of(line).is_none() && hearing.is_news(line, self.now()) {
            self.tell(self.event("said", format!("its command says: {line}")));
        }
    }

    /// Its command has ended, and is started again after `wait`.
    pub fn down(&self, why: &str, wait: Duration) {
        let mut inner = self.inner();
        let now = SystemTime::now();
        let last = inner.said.back().map(|line| format!(": {line}")).unwrap_or_default();
        let why = format!("{why}{last}");
        inner.feed = (Feed::Ended, now);
        let since = inner.down.as_ref().map_or(now, |down| down.0);
        // Once a minute for a month would be no news.
        let known = inner.down.as_ref().is_some_and(|down| down.1 == why);
        inner.down = Some((since, why.clone()));
        let said: Vec<String> = inner.said.iter().cloned().collect();
        drop(inner);
        if known {
            return;
        }
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let what = format!("down: {why}; again in {:.1} s", wait.as_secs_f64());
        self.tell(self.event("down", what).with("again_in_ms", wait_ms).with("said", said));
    }

    /// No more bytes will come.
    pub fn over(&self) {
        self.inner().over = true;
        self.news.notify_all();
    }
}

/// For the thread of the daemon.
impl Camera {
    /// What comes next, waiting for it at most so long.
    pub fn next(&self, time: Duration) -> Next {
        let waits = |inner: &mut Inner| inner.buffer.waiting() == 0 && !inner.over;
        let waited = self.news.wait_timeout_while(self.inner(), time, waits);
        let mut inner = waited.expect("no thread panics while it holds a camera").0;
        match inner.buffer.take() {
            Some(piece) => Next::Piece(piece),
            None if inner.over => Next::Over,
            None => Next::Nothing,
        }
    }

    /// True where no more bytes will come.
    pub fn is_over(&self) -> bool {
        self.inner().over
    }

    /// The daemon has taken a piece, and everything before this offset is durable; whether
    /// something that was handed over is not.
    pub fn durable(&self, upto: Bytes) -> bool {
        let mut inner = self.inner();
        inner.taken = Instant::now();
        inner.length = inner.length.max(upto);
        inner.buffer.durable(upto.get());
        inner.buffer.held() > 0
    }

    /// Its contract, as the daemon was last seen to have it; none where there is no stream.
    pub fn contract(&self) -> Option<Contract> {
        let inner = self.inner();
        inner.contract.filter(|_| inner.stream.is_some())
    }

    /// The rate to ask for when the volume is opened.
    pub fn rate(&self) -> Rate {
        self.inner().terms.now()
    }

    /// The volume is open for writing, at its end.
    pub fn opened(&self, stream: u64, contract: Contract, length: Bytes, room: Room) {
        let mut inner = self.inner();
        let resumed = if inner.opened {
            inner.buffer.resume(length.get())
        } else {
            inner.buffer.start_at(length.get());
            Resumed { again: 0, missing: 0, by_others: 0 }
        };
        (inner.contract, inner.stream) = (Some(contract), Some(stream));
        inner.buffer.widen(self.spec.buffer_for(contract.rate_bytes_per_second));
        (inner.changes, inner.asks) = (inner.changes + 1, false);
        (inner.length, inner.room, inner.taken) = (length, room, Instant::now());
        let since = inner.store.1.elapsed().unwrap_or_default();
        let before = std::mem::replace(&mut inner.store, (Store::Open, SystemTime::now()));
        inner.opened = true;
        if resumed.missing > 0 {
            let (from, to) = (before.1, SystemTime::now());
            inner.lost += resumed.missing;
            let why = "the daemon ended before they were on the medium";
            self.lost(&mut inner, from, to, resumed.missing, why);
        }
        drop(inner);
        let mut what = format!(
            "records into volume {} from {length} on, under contract for {} in blocks of {}",
            self.spec.volume, contract.rate_bytes_per_second, contract.block_bytes
        );
        if let Store::No(state, _) = before.0 {
            what += &format!(", after {} ({state})", span(since));
        }
        if resumed.again > 0 {
            what += &format!("; {} are handed over once more", Bytes::new(resumed.again));
        }
        if resumed.by_others > 0 {
            let by_others = Bytes::new(resumed.by_others);
            what += &format!("; another program has written {by_others} behind it meanwhile");
        }
        self.tell(
            self.event("open", what)
                .with("stream", stream)
                .with("offset_bytes", length.get())
                .with("again_bytes", resumed.again)
                .with("missing_bytes", resumed.missing)
                .with("rate_bytes_per_second", contract.rate_bytes_per_second.get()),
        );
        self.news.notify_all();
    }

    /// So much at the end of what its volume had could not be read, and is zeros from now on.
    pub fn unread(&self, bytes: Bytes) {
        let mut inner = self.inner();
        inner.lost += bytes.get();
        let now = SystemTime::now();
        let why =
            "a disk could not read them, where its volume was gone on with; they are zeros now";
        self.lost(&mut inner, now, now, bytes.get(), why);
    }

    /// All that it gave is on the medium, and nothing more will come.
    pub fn closed(&self) {
        let mut inner = self.inner();
        inner.stream = None;
        let length = inner.length;
        drop(inner);
        let what = format!("ended; volume {} has {length} on the medium", self.spec.volume);
        self.tell(self.event("closed", what).with("durable_bytes", length.get()));
    }

    /// The daemon does not take its bytes; told where it is news.
    pub fn refused(&self, state: &'static str, why: &str, next: &str) {
        let mut inner = self.inner();
        inner.stream = None;
        // The figures of a refusal change with every stream that comes and goes.
        let known = matches!(&inner.store.0, Store::No(before, _) if *before == state);
        let since = if known { inner.store.1 } else { SystemTime::now() };
        inner.store = (Store::No(state, why.into()), since);
        drop(inner);
        self.news.notify_all();
        if !known {
            let kind = match state {
                AWAY => "no_daemon",
                "stream closed" => "stream_closed",
                word => word,
            };
            self.tell(self.event(kind, format!("{state}: {why}")).next(next));
        }
    }

    /// Which rate to ask for in place of what it has.
    pub fn wish(&self) -> Option<(Rate, Option<Rate>)> {
        let now = self.now();
        let mut inner = self.inner();
        let Inner { terms, meter, .. } = &mut *inner;
        let (wish, needs) = (terms.wish(now, meter), terms.lacks(now, meter));
        let measured = meter.rate(now);
        inner.asks = wish.is_some();
        if let Some(needs) = needs {
            inner.terms.refused(now, None);
            let stream = inner.stream;
            drop(inner);
            self.lacks(needs, measured, stream);
        }
        wish.map(|wish| (wish, measured))
    }

    /// It needs more than the file lets it ask for.
    fn lacks(&self, needs: Rate, measured: Option<Rate>, stream: Option<u64>) {
        let (gave, over, most) =
            (measured.unwrap_or(Rate::ZERO), self.spec.window, self.spec.rate_max);
        let what = format!(
            "gave {gave} over {over}, and needs a contract for {needs}; it has one for {most}, and the \
             file's `rate_max` lets it ask for no more: what its buffer cannot take is lost"
        );
        let needed = needs.to_string().replace(' ', "");
        let now = stream.map_or_else(String::new, |stream| {
            let stream = report::stream_on(&self.spec.volume, stream);
            format!("; until then: `slackline stream set {stream} --rate {needed}`")
        });
        let next = format!(
            "make `rate_max` in the file {needed} at least, or let the camera give less, and start this \
             again{now}"
        );
        let event = self.event("rate_refused", what).next(next);
        self.tell(
            event
                .with("wish_bytes_per_second", needs.get())
                .with("rate_max_bytes_per_second", most.get()),
        );
    }

    /// Its ring keeps what is recorded for so long now, as the file says.
    pub fn keeps(&self, was: Option<units::Duration>, now: units::Duration) {
        let was = was.map_or_else(|| "as long as there is room".into(), age);
        let what = format!(
            "its ring kept what is recorded {was}; it keeps it {} now, as the file says",
            age(now)
        );
        self.tell(self.event("keep", what).with("keep_seconds", now.as_secs()));
    }

    /// The contract has this rate now.
    pub fn granted(&self, rate: Rate, measured: Option<Rate>) {
        let mut inner = self.inner();
        let before = inner.terms.now();
        inner.terms.granted(rate);
        inner.buffer.widen(self.spec.buffer_for(rate));
        (inner.changes, inner.asks, inner.is_others) = (inner.changes + 1, false, false);
        if let Some(contract) = &mut inner.contract {
            contract.rate_bytes_per_second = rate;
        }
        drop(inner);
        let gave = measured.unwrap_or(Rate::ZERO);
        let over = self.spec.window;
        let most = if rate == self.spec.rate_max && rate > before {
            ", the most that the file's `rate_max` lets it ask for"
        } else {
            ""
        };
        let what =
            format!("gave {gave} over {over}: its contract is for {rate} now, not {before}{most}");
        let event = self.event("rate", what).with("rate_bytes_per_second", rate.get());
        self.tell(event.with("measured_bytes_per_second", gave.get()));
    }

    /// It was refused, and so much fits: what to ask for at once in its place.
    pub fn rate_refused(
        &self,
        wish: Rate,
        measured: Option<Rate>,
        fits: Option<Rate>,
        why: &str,
        next: &str,
    ) -> Option<Rate> {
        let now = self.now();
        let mut inner = self.inner();
        inner.asks = false;
        let again = inner.terms.refused(now, fits);
        drop(inner);
        let gave = measured.unwrap_or(Rate::ZERO);
        let what = format!(
            "gave {gave} over {}, and a contract for {wish}{} is refused: {why}",
            self.spec.window,
            if wish == self.spec.rate_max { ", its `rate_max`," } else { "" }
        );
        let event =
            self.event("rate_refused", what).next(next).with("wish_bytes_per_second", wish.get());
        self.tell(match fits {
            Some(fits) => event.with("fits_bytes_per_second", fits.get()),
            None => event,
        });
        again
    }

    /// What it has does not fit any more: from the file's rate again. Whether that is another.
    pub fn reset_rate(&self) -> bool {
        let mut inner = self.inner();
        let before = inner.terms.now();
        inner.terms.reset();
        inner.is_others = false;
        before != inner.terms.now()
    }
}

/// For whoever looks at it.
impl Camera {
    /// Ends a loss that has no more bytes, and sees whether the daemon hangs.
    pub fn look(&self) {
        let mut inner = self.inner();
        if let Some((from, last, lost)) = inner.losing
            && (last.elapsed() >= LOSS_OVER || inner.over)
        {
            inner.losing = None;
            let to = SystemTime::now() - last.elapsed();
            self.lost(&mut inner, from, to, lost, "its buffer was full");
        }
        let hangs = inner.store.0 == Store::Open
            && inner.buffer.waiting() > 0
            && inner.taken.elapsed() >= STUCK;
        if hangs {
            let why = format!("the daemon has taken nothing for {}", span(inner.taken.elapsed()));
            inner.store = (Store::No("stuck", why.clone()), SystemTime::now());
            drop(inner);
            let next = "look at the daemon: `slackline status`";
            self.tell(self.event("stuck", format!("stuck: {why}")).next(next));
        }
    }

    /// The daemon takes its bytes again.
    pub fn unstuck(&self) {
        let mut inner = self.inner();
        if matches!(inner.store.0, Store::No("stuck", _)) {
            inner.store = (Store::Open, SystemTime::now());
            drop(inner);
            self.tell(self.event("unstuck", "the daemon takes its bytes again"));
        }
    }

    fn lost(&self, inner: &mut Inner, from: SystemTime, to: SystemTime, bytes: u64, why: &str) {
        let loss = Loss { from: utc(from), to: utc(to), bytes, why: why.into() };
        let what =
            format!("lost {} between {} and {}: {why}", Bytes::new(bytes), loss.from, loss.to);
        let event = self.event("lost", what).with("bytes", bytes);
        self.tell(event.with("from", &*loss.from).with("to", &*loss.to));
        if inner.losses.len() == LOSSES {
            inner.losses.pop_front();
        }
        inner.losses.push_back((Instant::now(), loss));
    }

    /// How often its contract was changed from here.
    pub fn changes(&self) -> u64 {
        self.inner().changes
    }

    /// What the daemon has of it, as was asked when so many `changes` had been made: others change
    /// its contract, and its volume.
    pub fn follows(&self, changes: u64, streams: &[Stream], volumes: &[Volume]) {
        let mut inner = self.inner();
        let Some(id) = inner.stream.filter(|_| inner.changes == changes && !inner.asks) else {
            return;
        };
        if let Some(volume) = volumes.iter().find(|volume| volume.name == self.spec.volume) {
            let room = Room::of(&self.spec, volume);
            // Of a ring to which nobody records just now it is not known.
            let ahead = if room.ahead.is_zero() { inner.room.ahead } else { room.ahead };
            inner.room = Room { ahead, ..room };
        }
        let is_own = |one: &&Stream| one.id == id && one.volume == self.spec.volume;
        let Some(stream) = streams.iter().find(is_own) else { return };
        inner.contract = Some(stream.contract);
        let (before, rate) = (inner.terms.now(), stream.contract.rate_bytes_per_second);
        if rate == before {
            return;
        }
        inner.terms.set(rate);
        inner.buffer.widen(self.spec.buffer_for(rate));
        inner.is_others = true;
        drop(inner);
        let what =
            format!("somebody else changed its contract: it is for {rate} now, not {before}");
        self.tell(self.event("rate", what).with("rate_bytes_per_second", rate.get()));
    }

    /// Bytes that are here and nowhere else.
    pub fn unsaved(&self) -> u64 {
        let inner = self.inner();
        inner.buffer.held() + inner.buffer.waiting()
    }

    /// Its name, and why the daemon has not taken what is unsaved.
    pub fn why_unsaved(&self) -> String {
        let inner = self.inner();
        let why = match &inner.store.0 {
            Store::No(_, why) => why,
            Store::Waits | Store::Open => "there was no more time",
        };
        format!("{}: {why}", self.spec.name)
    }

    /// All of it at this instant.
    pub fn seen(&self) -> Seen {
        let now = self.now();
        let mut inner = self.inner();
        let measured = inner.meter.rate(now);
        let inner = &*inner;
        let (state, since, why) = match (&inner.store.0, &inner.down, &inner.feed.0) {
            (Store::No(state, why), ..) => (*state, inner.store.1, Some(why.clone())),
            (_, Some((since, why)), _) => ("down", *since, Some(why.clone())),
            (Store::Open, None, Feed::Up) => ("recording", inner.feed.1.max(inner.store.1), None),
            _ => ("starting", inner.feed.1, None),
        };
        let rate = measured.filter(|rate| !rate.is_zero());
        let rate = rate.unwrap_or(inner.terms.now());
        let lasts = inner.opened.then(|| inner.room.lasts(inner.length, rate));
        let (seconds_left, seconds_kept) = match inner.room.is_ring {
            true => (None, lasts),
            false => (lasts, None),
        };
        Seen {
            name: self.spec.name.clone(),
            volume: self.spec.volume.clone(),
            state: state.into(),
            since: utc(since),
            for_seconds: since.elapsed().unwrap_or_default().as_secs(),
            why,
            down_since: inner.down.as_ref().map(|(since, _)| utc(*since)),
            asked_bytes_per_second: self.spec.rate.get(),
            contract_bytes_per_second: inner
                .contract
                .filter(|_| inner.stream.is_some())
                .map(|contract| contract.rate_bytes_per_second.get()),
            measured_bytes_per_second: measured.map(Rate::get),
            stream: inner.stream,
            durable_bytes: inner.length.get(),
            size_bytes: inner.room.size.get(),
            seconds_left,
            seconds_kept,
            keep_seconds: inner.room.keep.map(|keep| keep.as_secs()),
            notes: self.notes(inner, measured),
            given_bytes: inner.meter.total(),
            buffer_bytes: inner.buffer.held() + inner.buffer.waiting(),
            buffer_max_bytes: inner.buffer.max(),
            starts: inner.starts,
            lost_bytes: inner.lost,
            losses: inner.losses.iter().map(|(_, loss)| loss.clone()).collect(),
            losing_since: inner.losing.map(|(since, ..)| utc(since)),
            lost_lately: inner
                .losses
                .back()
                .filter(|(ended, _)| ended.elapsed() < LOST_LATELY)
                .map(|(_, loss)| loss.clone()),
            unplayable: inner
                .unplayable
                .iter()
                .map(|found| Told { what: found.what(), next_step: found.next() })
                .collect(),
        }
    }

    /// Where what it has differs from what its file says, in words.
    fn notes(&self, inner: &Inner, measured: Option<Rate>) -> Vec<String> {
        let (spec, room, mut notes) = (&self.spec, inner.room, Vec::new());
        let contract = inner.contract.filter(|_| inner.stream.is_some());
        if let Some(rate) = contract.map(|contract| contract.rate_bytes_per_second)
            && rate != spec.rate
        {
            let who = match inner.is_others {
                true => "somebody else gave it that",
                false => "it was seen to need that",
            };
            notes.push(format!(
                "its contract is for {rate}, and the file's `rate` is {}: {who}",
                spec.rate
            ));
        }
        if let Some(gave) = measured.filter(|&gave| gave > spec.rate_max)
            && contract.is_some_and(|contract| gave > contract.rate_bytes_per_second)
        {
            let most = spec.rate_max;
            notes.push(format!(
                "it gives {gave}, and the file's `rate_max` lets it ask for a contract of {most} at the \
                 most: make that larger in the file"
            ));
        }
        if room.is_ring && room.keep != spec.keep {
            let words = |keep: Option<units::Duration>| {
                keep.map_or_else(|| "all that there is room for".into(), age)
            };
            let file = match spec.keep {
                Some(keep) => {
                    format!("the file's `keep` is {}, and holds from the next start on", age(keep))
                }
                None => "the file has no `keep`".into(),
            };
            notes.push(format!("its ring keeps {}; {file}", words(room.keep)));
        }
        let all = Room { keep: None, ..room }.lasts(Bytes::ZERO, spec.rate);
        if let Some(keep) = spec.keep.filter(|keep| room.is_ring && all < keep.as_secs()) {
            notes.push(format!(
                "its `keep` is {}, and at its `rate` its ring has room for {}",
                age(keep),
                super::shown::days(all)
            ));
        }
        if spec.is_size_by_keep && room.is_ring && room.size > spec.size {
            notes.push(format!(
                "its ring has {}: what `rate` comes to in `keep` is {}, and its contract needs more",
                room.size, spec.size
            ));
        }
        for found in &inner.unplayable {
            notes.push(format!("{}: {}", found.what(), found.next()));
        }
        if inner.feed.0 == Feed::Up {
            let lines = inner.said.iter().filter(|line| Unplayable::of(line).is_none());
            let lines: Vec<_> = lines.rev().take(LINES_NOTED).collect();
            notes.extend(lines.iter().rev().map(|line| format!("its command says: {line}")));
        }
        notes
    }
}
