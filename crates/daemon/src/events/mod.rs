//! What happens to streams, contracts and disks, one thing after the other: to whoever asks, and
//! to a command.
//!
//! An event is a difference between two looks at everything, about a second apart: streams that
//! came and went, and findings ([`findings`](crate::findings)) that came, got worse and went.
//!
//! Invariants: what is kept and what waits for the command is bounded, and what is left out is
//! counted and said; an event is about one volume, whatever has its name later.

mod hook;

use crate::limits::{EVENTS_KEPT, EVENTS_OF_STREAMS_MIN, EVENTS_PER_LOOK};
use crate::lock::Mutex;
pub use hook::{Hook, cannot_be_run};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::control::{self as api, Event, EventKind, Mode, Overview, Weight};

/// A finding whose figures get worse all the time is told so often at the most.
const AGAIN: Duration = Duration::from_secs(60);

/// The last events.
pub struct Events {
    kept: Mutex<Kept>,
    hook: Option<Hook>,
}

/// Which volume an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The number of it, which no other one gets.
    pub volume: u64,
    /// Whose it was then.
    pub owner: u32,
}

impl About {
    /// Whether somebody is told who is shown these volumes: of one that is gone, whose it was, by the
    /// system's word (`uid`; none where a token says who he is, and not that he may see all).
    pub fn is_told(
        &self,
        shown: &HashSet<u64>,
        uid: Option<u32>,
        is_there: impl Fn(u64) -> bool,
    ) -> bool {
        shown.contains(&self.volume) || (uid == Some(self.owner) && !is_there(self.volume))
    }
}

#[derive(Default)]
struct Kept {
    last: u64,
    events: VecDeque<(Event, Option<About>)>,
    /// So many of them are of streams that came and went.
    of_streams: usize,
}

impl Kept {
    fn add(&mut self, event: Event, about: Option<About>) {
        self.of_streams += usize::from(is_of_streams(&event));
        self.events.push_back((event, about));
        if self.events.len() <= EVENTS_KEPT {
            return;
        }
        let streams_go = self.of_streams > EVENTS_OF_STREAMS_MIN;
        let goes = |(event, _): &(Event, _)| is_of_streams(event) == streams_go;
        let first =
            self.events.iter().position(goes).expect("there are more than the others may be");
        self.events.remove(first);
        self.of_streams -= usize::from(streams_go);
    }
}

/// A stream came or went.
const fn is_of_streams(event: &Event) -> bool {
    matches!(event.kind, EventKind::StreamOpened | EventKind::StreamClosed)
}

impl Events {
    /// Each is also told to the hook.
    pub fn new(hook: Option<Hook>) -> Arc<Self> {
        Arc::new(Self { kept: Mutex::default(), hook })
    }

    /// Takes note of what is otherwise than at the last look.
    pub fn look(&self, seen: &mut Seen, overview: &Overview) {
        self.add(seen.changes(Instant::now(), overview));
    }

    /// The number of the last event, and those that are kept with larger ones than this.
    pub fn after(&self, number: u64) -> (u64, Vec<(Event, Option<About>)>) {
        let kept = self.kept.lock();
        let after = |(event, _): &&(Event, _)| event.number > number;
        (kept.last, kept.events.iter().filter(after).cloned().collect())
    }

    fn add(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        let mut kept = self.kept.lock();
        for Change { kind, key, volume, about, what, next_step } in changes {
            kept.last += 1;
            let event = Event { number: kept.last, at_ms, kind, key, volume, what, next_step };
            log(&event);
            if let Some(hook) = &self.hook {
                hook.tell(&event);
            }
            kept.add(event, about);
        }
    }
}

/// Streams that come and go are for those who ask for more than usual.
fn log(event: &Event) {
    let Event { key, what, .. } = event;
    let (volume, next) = (event.volume.as_deref(), event.next_step.as_deref());
    match event.kind {
        EventKind::StreamOpened => tracing::debug!(event = "stream_opened", key, volume, "{what}"),
        EventKind::StreamClosed => tracing::debug!(event = "stream_closed", key, volume, "{what}"),
        EventKind::Found => tracing::warn!(event = "found", key, volume, next, "{what}"),
        EventKind::Cleared => tracing::info!(event = "cleared", key, volume, "{what}"),
    }
}

/// What a look finds changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    kind: EventKind,
    key: String,
    volume: Option<String>,
    about: Option<About>,
    what: String,
    next_step: Option<String>,
}

/// What the last look saw.
#[derive(Default)]
pub struct Seen {
    streams: BTreeMap<u64, On>,
    findings: BTreeMap<String, Told>,
}

/// The volume of a stream; none of a file.
struct On {
    volume: String,
    about: Option<About>,
}

/// The volumes by name.
struct Volumes<'a>(HashMap<&'a str, About>);

impl<'a> Volumes<'a> {
    fn of(overview: &'a Overview) -> Self {
        let about =
            |one: &'a api::Volume| (&*one.name, About { volume: one.number, owner: one.owner.uid });
        Self(overview.status.volumes.iter().map(about).collect())
    }

    fn about(&self, name: &str) -> Option<About> {
        self.0.get(name).copied()
    }
}

struct Told {
    volume: Option<String>,
    about: Option<About>,
    what: String,
    at: Instant,
}

impl Seen {
    /// What is otherwise than at the last look. At most [`EVENTS_PER_LOOK`]: of more, how many.
    fn changes(&mut self, now: Instant, overview: &Overview) -> Vec<Change> {
        // First what needs a person: whoever opens many streams hides nothing of it.
        let mut changes = self.of_findings(now, overview);
        let mut streams = self.of_streams(overview);
        let more = streams.len().saturating_sub(EVENTS_PER_LOOK - changes.len());
        streams.truncate(streams.len() - more);
        changes.extend(streams);
        if more > 0 {
            changes.push(Change {
                kind: EventKind::Found,
                key: "events".into(),
                volume: None,
                about: None,
                what: format!("{more} more things happened at once, and are not told one by one"),
                next_step: Some("`slackline status` shows what is so now".into()),
            });
        }
        changes
    }

    fn of_streams(&mut self, overview: &Overview) -> Vec<Change> {
        let volumes = Volumes::of(overview);
        let open = |stream: &api::Stream| {
            let about = volumes.about(&stream.volume);
            (stream.id, On { volume: stream.volume.clone(), about })
        };
        let now: BTreeMap<u64, _> = overview.status.streams.iter().map(open).collect();
        let change = |id: &u64, on: &On, kind, what| {
            let (key, volume) = (format!("stream/{id}"), Some(on.volume.clone()));
            Change { kind, key, volume, about: on.about, what, next_step: None }
        };
        let mut changes = Vec::new();
        for (id, on) in self.streams.iter().filter(|(id, _)| !now.contains_key(id)) {
            let what = format!("stream {id} on {} has ended", on.volume);
            changes.push(change(id, on, EventKind::StreamClosed, what));
        }
        for stream in &overview.status.streams {
            if self.streams.contains_key(&stream.id) {
                continue;
            }
            let does = match stream.mode {
                Mode::Read => "reads",
                Mode::Write => "writes",
                Mode::Update => "reads and writes",
            };
            let rate = stream.contract.rate_bytes_per_second;
            let what = format!("stream {} {does} {} at {rate}", stream.id, stream.volume);
            changes.push(change(&stream.id, &now[&stream.id], EventKind::StreamOpened, what));
        }
        self.streams = now;
        changes
    }

    /// At most [`EVENTS_PER_LOOK`]; the others are as they were, and told at the next look.
    fn of_findings(&mut self, now: Instant, overview: &Overview) -> Vec<Change> {
        let mut changes = Vec::new();
        let is_found: HashSet<&str> = overview.findings.iter().map(|one| &*one.key).collect();
        let gone: Vec<String> =
            self.findings.keys().filter(|key| !is_found.contains(&***key)).cloned().collect();
        for key in gone.into_iter().take(EVENTS_PER_LOOK) {
            let Told { volume, about, what, .. } =
                self.findings.remove(&key).expect("one of the keys");
            let is_full = key.ends_with("/soon_full")
                && volume.as_deref().is_some_and(|name| is_full(&overview.status, name));
            let what = match volume.as_deref().filter(|_| is_full) {
                Some(name) => format!("volume {name} is full, and nobody writes it any more"),
                None => format!("not so any more: {what}"),
            };
            let (kind, next_step) = (EventKind::Cleared, None);
            changes.push(Change { kind, key, volume, about, what, next_step });
        }
        let volumes = Volumes::of(overview);
        for found in &overview.findings {
            if changes.len() == EVENTS_PER_LOOK {
                break;
            }
            let known = self.findings.get(&found.key);
            let is_due = known.is_none_or(|told| {
                found.weight == Weight::Broken
                    && told.what != found.what
                    && now.saturating_duration_since(told.at) >= AGAIN
            });
            if !is_due {
                continue;
            }
            let (key, what) = (found.key.clone(), found.what.clone());
            let about = found.volume.as_deref().and_then(|name| volumes.about(name));
            let volume = found.volume.clone();
            let told = Told { volume: volume.clone(), about, what: what.clone(), at: now };
            self.findings.insert(key.clone(), told);
            changes.push(Change {
                kind: EventKind::Found,
                key,
                volume,
                about,
                what,
                next_step: Some(found.next_step.clone()),
            });
        }
        changes
    }
}

/// All of a volume that is no ring is recorded.
fn is_full(status: &api::Status, name: &str) -> bool {
    let full_at = status.full_at(name);
    let mut volumes = status.volumes.iter();
    volumes.any(|one| one.name == name && Some(one.length_bytes) == full_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{overview_of, sound};
    use serde_json::json;

    fn told(changes: &[Change]) -> Vec<(EventKind, &str)> {
        changes.iter().map(|one| (one.kind, &*one.key)).collect()
    }

    /// A stream comes, is slowed, is late again and again, and goes with all that was found of it.
    #[test]
    fn what_changes_between_two_looks_is_told_once() {
        use EventKind::{Cleared, Found, StreamClosed, StreamOpened};
        let (mut seen, start) = (Seen::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut status = sound();
        let opened = seen.changes(start, &overview_of(&status));
        assert_eq!(told(&opened), [(StreamOpened, "stream/3")]);
        assert_eq!(opened[0].what, "stream 3 writes cam1 at 1 MB/s");
        assert_eq!(opened[0].volume.as_deref(), Some("cam1"));
        assert_eq!(seen.changes(after(1), &overview_of(&status)), []);

        status["streams"][0]["throttled"] = json!(2);
        let slowed = seen.changes(after(2), &overview_of(&status));
        assert_eq!(told(&slowed), [(Found, "stream/3/slowed")]);
        assert!(slowed[0].next_step.as_ref().unwrap().contains("stream set cam1 "));
        // That it goes on is nothing new.
        status["streams"][0]["throttled"] = json!(3);
        assert_eq!(seen.changes(after(70), &overview_of(&status)), []);

        status["streams"][0]["late_requests"] = json!(1);
        let late = seen.changes(after(71), &overview_of(&status));
        assert_eq!(told(&late), [(Found, "stream/3/late")]);
        // What is broken and gets worse is told again, but not each second.
        status["streams"][0]["late_requests"] = json!(2);
        assert_eq!(seen.changes(after(72), &overview_of(&status)), []);
        let late = seen.changes(after(131), &overview_of(&status));
        assert_eq!(told(&late), [(Found, "stream/3/late")]);
        assert!(late[0].what.contains("2 of 9"), "{}", late[0].what);

        status["streams"] = json!([]);
        let gone = seen.changes(after(132), &overview_of(&status));
        let wanted =
            [(Cleared, "stream/3/late"), (Cleared, "stream/3/slowed"), (StreamClosed, "stream/3")];
        assert_eq!(told(&gone), wanted);
    }

    /// Before, an event was told to whoever was shown a volume of its name: who made one of the name of a
    /// volume of others that had gone was told what had happened to that.
    #[test]
    fn an_event_is_about_the_volume_that_there_was_whatever_has_its_name() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        let mut status = sound();
        (status["volumes"][0]["number"], status["volumes"][0]["owner"]["uid"]) =
            (json!(5), json!(1));
        status["streams"][0]["throttled"] = json!(2);
        let mut changes = seen.changes(start, &overview_of(&status));
        (status["volumes"][0]["number"], status["volumes"][0]["owner"]["uid"]) =
            (json!(6), json!(2));
        status["streams"] = json!([]);
        changes.extend(seen.changes(start, &overview_of(&status)));
        let of_stream = |one: &&Change| one.key.starts_with("stream/3");
        let about: Vec<_> = changes.iter().filter(of_stream).map(|one| one.about).collect();
        assert_eq!(about, [Some(About { volume: 5, owner: 1 }); 4]);
        let (old, sees) = (about[0].unwrap(), |volume| HashSet::from([volume]));
        assert!(!old.is_told(&sees(6), Some(2), |volume| volume == 6), "another of the name");
        assert!(old.is_told(&sees(6), Some(1), |volume| volume == 6), "it was his");
        assert!(!old.is_told(&sees(6), None, |volume| volume == 6), "a token has no past");
        assert!(old.is_told(&sees(5), Some(3), |_| true), "he sees it");
        assert!(!old.is_told(&sees(6), Some(1), |_| true), "it is another's now");
    }

    /// That somebody stops before a volume is full is good news; that it became full is not.
    #[test]
    fn what_becomes_full_is_not_told_as_if_it_were_not_so_any_more() {
        for (recorded, says) in [
            (100_000_000_000_u64, "volume cam1 is full, and nobody writes it any more"),
            (99_999_999_999, "not so any more: volume cam1 is full in 10 s"),
        ] {
            let (mut seen, mut status) = (Seen::default(), sound());
            status["streams"][0]["position_bytes"] = json!(99_990_000_000_u64);
            let soon = seen.changes(Instant::now(), &overview_of(&status));
            assert!(told(&soon).contains(&(EventKind::Found, "stream/3/soon_full")), "{soon:?}");
            status["streams"] = json!([]);
            status["volumes"][0]["length_bytes"] = json!(recorded);
            let gone = seen.changes(Instant::now(), &overview_of(&status));
            assert!(gone[0].what.starts_with(says), "{gone:?}");
        }
    }

    #[test]
    fn thousands_that_come_at_once_are_counted_and_all_are_known_then() {
        let mut status = sound();
        let stream = status["streams"][0].clone();
        let many = (0..5_000).map(|id| {
            let mut one = stream.clone();
            one["id"] = json!(id);
            one
        });
        status["streams"] = many.collect();
        status["warnings"] = json!(["no memory is locked"]);
        let mut seen = Seen::default();
        let changes = seen.changes(Instant::now(), &overview_of(&status));
        assert_eq!(changes.len(), EVENTS_PER_LOOK + 1);
        let what = &changes.last().unwrap().what;
        assert!(what.starts_with(&format!("{} more", 5_001 - EVENTS_PER_LOOK)), "{what}");
        assert!(changes[0].what.contains("no memory"), "what needs a person comes first");
        assert_eq!(seen.changes(Instant::now(), &overview_of(&status)), []);
    }

    fn change(kind: EventKind, key: usize) -> Change {
        let (key, what) = (key.to_string(), String::new());
        Change { kind, key, volume: None, about: None, what, next_step: None }
    }

    #[test]
    fn so_many_are_kept_and_their_numbers_go_on() {
        let events = Events::new(None);
        for n in 1..=EVENTS_KEPT + 5 {
            events.add(vec![change(EventKind::Found, n)]);
        }
        let kept = events.kept.lock();
        assert_eq!((kept.last, kept.events.len()), (EVENTS_KEPT as u64 + 5, EVENTS_KEPT));
        assert_eq!((kept.events[0].0.number, &*kept.events[0].0.key), (6, "6"));
    }

    /// Before, ten seconds of streams that were opened and closed took all else from who asked then.
    #[test]
    fn streams_that_come_and_go_hide_nothing_that_was_found() {
        use EventKind::{Cleared, Found, StreamClosed, StreamOpened};
        let events = Events::new(None);
        let of = |kinds: [EventKind; 2]| {
            let (_, all) = events.after(0);
            assert!(all.is_sorted_by_key(|(event, _)| event.number) && all.len() <= EVENTS_KEPT);
            all.iter().filter(|(event, _)| kinds.contains(&event.kind)).count()
        };
        let (found, streams) = ([Found, Cleared], [StreamOpened, StreamClosed]);
        events.add(vec![change(Found, 1), change(Cleared, 1)]);
        for n in 0..2 * EVENTS_KEPT {
            events.add(vec![change(streams[n % 2], n)]);
        }
        assert_eq!((of(found), of(streams)), (2, EVENTS_KEPT - 2));
        // Who asks after each look is told of them, however much was found.
        for n in 0..2 * EVENTS_KEPT {
            events.add(vec![change(Found, n)]);
        }
        let few = EVENTS_OF_STREAMS_MIN;
        assert_eq!((of(found), of(streams)), (EVENTS_KEPT - few, few));
        events.add(vec![change(StreamOpened, 7)]);
        assert_eq!((of(found), of(streams)), (EVENTS_KEPT - few, few));
        let (last, after) = events.after(0);
        assert_eq!(after.last().map(|(event, _)| event.number), Some(last));
    }
}
