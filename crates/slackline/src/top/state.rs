//! What `slackline top` knows, and what somebody asked to see of it.

use client::control::{Overview, Stream};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use units::{Bytes, Duration, Rate};

/// How many answers are looked back on.
pub const PAST: usize = 240;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To go on.
    On,
    /// To end.
    End,
}

/// What streams are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order in which they were opened.
    Opened,
    /// The name of the volume.
    Volume,
    /// What was asked for.
    Asked,
    /// What was got sample.
    Got,
    /// Late requests.
    Late,
    /// How long until it is full.
    Left,
}

impl Order {
    /// In the order of their columns.
    pub const ALL: [Self; 6] =
        [Self::Opened, Self::Volume, Self::Asked, Self::Got, Self::Late, Self::Left];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Opened => "stream",
            Self::Volume => "volume",
            Self::Asked => "asked",
            Self::Got => "got",
            Self::Late => "late",
            Self::Left => "full in",
        }
    }
}

/// What one stream did from one answer to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSample {
    /// The mean rate.
    pub got: Rate,
    /// Requests that were late.
    pub late: u64,
}

/// What one disk did from one answer to the next, and its slack at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSample {
    /// Under contract.
    pub contract: Rate,
    /// As best effort.
    pub best_effort: Rate,
    /// Static slack of the admitted contracts.
    pub slack: Duration,
}

/// See the module.
pub struct State {
    /// The last answer.
    pub overview: Overview,
    /// Why there is none after it.
    pub lost: Option<String>,
    /// By stream, the oldest first.
    pub streams: BTreeMap<u64, VecDeque<StreamSample>>,
    /// By disk, the oldest first.
    pub disks: Vec<VecDeque<DiskSample>>,
    /// What streams are sorted by.
    pub order: Order,
    /// The largest first.
    pub is_turned: bool,
    /// Nothing new is shown.
    pub is_paused: bool,
    /// The stream that was chosen.
    pub chosen: Option<u64>,
    /// It is looked into.
    pub is_open: bool,
}

impl State {
    /// At first this was answered.
    pub fn new(overview: Overview) -> Self {
        let mut state = Self {
            disks: vec![VecDeque::new(); overview.status.disks.len()],
            overview,
            lost: None,
            streams: BTreeMap::new(),
            order: Order::Opened,
            is_turned: false,
            is_paused: false,
            chosen: None,
            is_open: false,
        };
        state.choose_one();
        state
    }

    /// This was answered next.
    pub fn take(&mut self, next: Overview) {
        self.lost = None;
        if self.is_paused {
            return;
        }
        let (before, now) = (&self.overview.status, &next.status);
        let passed = now.up_ns.saturating_sub(before.up_ns);
        if passed.is_zero() || before.disks.len() != now.disks.len() {
            // Another daemon: nothing of before is of it.
            *self = Self { order: self.order, is_turned: self.is_turned, ..Self::new(next) };
            return;
        }
        let rate = |is: Bytes, was: Bytes| Rate::of(is.saturating_sub(was), passed);
        for (past, (was, is)) in self.disks.iter_mut().zip(before.disks.iter().zip(&now.disks)) {
            let sample = DiskSample {
                contract: rate(is.real_time.bytes, was.real_time.bytes),
                best_effort: rate(is.best_effort.bytes, was.best_effort.bytes),
                slack: is.slack_ns,
            };
            keep(past, sample);
        }
        let was: BTreeMap<u64, &Stream> =
            before.streams.iter().map(|stream| (stream.id, stream)).collect();
        for stream in &now.streams {
            let Some(was) = was.get(&stream.id) else { continue };
            let sample = StreamSample {
                got: rate(stream.moved_bytes, was.moved_bytes),
                late: stream.late_requests.saturating_sub(was.late_requests),
            };
            keep(self.streams.entry(stream.id).or_default(), sample);
        }
        self.streams.retain(|id, _| now.streams.iter().any(|stream| stream.id == *id));
        self.overview = next;
        self.choose_one();
    }

    /// The daemon did not answer.
    pub fn lost(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// What a stream got sample: the mean of its last ten answers.
    pub fn got(&self, id: u64) -> Option<Rate> {
        let past = self.streams.get(&id)?;
        let last: Vec<u64> = past.iter().rev().take(10).map(|one| one.got.get()).collect();
        let count = last.len() as u64;
        let sum = last.iter().fold(0, |sum: u64, got| sum.saturating_add(*got));
        sum.checked_div(count).map(Rate::per_second)
    }

    /// The streams as they were asked to be sorted.
    pub fn sorted(&self) -> Vec<&Stream> {
        let status = &self.overview.status;
        let mut sorted: Vec<&Stream> = status.streams.iter().collect();
        match self.order {
            Order::Opened => {}
            Order::Volume => sorted.sort_by(|one, other| one.volume.cmp(&other.volume)),
            Order::Asked => {
                sorted.sort_by_key(|one| Reverse(one.contract.rate_bytes_per_second));
            }
            Order::Got => sorted.sort_by_key(|one| Reverse(self.got(one.id))),
            Order::Late => sorted.sort_by_key(|one| Reverse(one.late_requests)),
            Order::Left => {
                let left = |one: &Stream| one.left(status.full_at(&one.volume));
                sorted.sort_by_key(|one| left(one).unwrap_or(Duration::MAX));
            }
        }
        if self.is_turned {
            sorted.reverse();
        }
        sorted
    }

    /// A key was pressed.
    pub fn key(&mut self, key: KeyEvent) -> Next {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return Next::End,
            KeyCode::Char('q') => return Next::End,
            KeyCode::Esc if !self.is_open => return Next::End,
            KeyCode::Esc => self.is_open = false,
            KeyCode::Enter => self.is_open = !self.is_open && self.chosen.is_some(),
            KeyCode::Char('s') => {
                let at = Order::ALL.iter().position(|one| *one == self.order).unwrap_or_default();
                self.order = Order::ALL[(at + 1) % Order::ALL.len()];
            }
            KeyCode::Char('r') => self.is_turned = !self.is_turned,
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Up | KeyCode::Char('k') => self.step(|at, _| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.step(|at, last| (at + 1).min(last)),
            KeyCode::Home => self.step(|_, _| 0),
            KeyCode::End => self.step(|_, last| last),
            _ => {}
        }
        Next::On
    }

    /// The stream that was chosen, and its line.
    pub fn chosen(&self) -> Option<(usize, &Stream)> {
        let sorted = self.sorted();
        let at = sorted.iter().position(|stream| Some(stream.id) == self.chosen)?;
        Some((at, sorted[at]))
    }

    fn step(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let sorted = self.sorted();
        let Some(last) = sorted.len().checked_sub(1) else { return };
        let at = self.chosen().map_or(0, |(at, _)| at);
        self.chosen = sorted.get(to(at, last)).map(|stream| stream.id);
    }

    /// One stream is chosen as long as there is one.
    fn choose_one(&mut self) {
        if self.chosen().is_none() {
            self.is_open = false;
            // Of nobody's choice: the first one that is shown.
            self.chosen = self.sorted().first().map(|stream| stream.id);
        }
    }
}

fn keep<T>(past: &mut VecDeque<T>, one: T) {
    past.push_back(one);
    if past.len() > PAST {
        past.pop_front();
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A pool with a disk and these streams, each of a volume's name, a rate, bytes moved, and late
    /// requests, so many seconds after the start.
    pub fn overview(seconds: u64, streams: &[(&str, u64, u64, u64)]) -> Overview {
        let lateness = json!({ "count": 0, "p50_ns": 0, "p999_ns": 0, "max_ns": 0 });
        let streams: Vec<Value> = streams
            .iter()
            .enumerate()
            .map(|(id, (volume, rate, moved, late))| {
                json!({
                    "id": id, "volume": volume, "mode": "write", "user": "u", "attached": true,
                    "contract": {
                        "rate_bytes_per_second": rate, "block_bytes": 262_144,
                        "burst_bytes": 262_144,
                    },
                    "window_bytes": 0, "position_bytes": moved, "moved_bytes": moved,
                    "durable_bytes": 0, "requests": 9, "late_requests": late, "late_max_ns": 0,
                    "underruns": 0, "throttled": 0, "gap_bytes": 0, "latency_max_ns": 0,
                    "open_ns": 1,
                })
            })
            .collect();
        let moved = json!({ "requests": seconds, "bytes": seconds * 5_000_000 });
        let disk = json!({
            "disk": 0, "device": "/dev/disk/by-id/ata-a-very-long-name", "capacity_bytes": 0,
            "free_bytes": 0, "utilisation_ppm": 250_000, "slack_ns": 40_000_000,
            "waiting_real_time": 0, "waiting_best_effort": 0, "real_time": moved,
            "best_effort": { "requests": 0, "bytes": 0 }, "overruns": 0, "overrun_max_ns": 0,
            "predicted_ns": 0, "actual_ns": 0, "late_requests": 0, "late_max_ns": 0, "errors": 0,
            "profile": {
                "verdict": "fresh", "detail": "", "commands": 0, "overruns": 0, "ratio_ppm": 0,
                "drift_ppm": 0, "suspects": 0, "suspect_extents": [], "occupied": 0, "moved": 0,
                "stuck": [], "for_next_start": false,
            },
        });
        let status = json!({
            "pool": "tape", "version": "0", "policy": "slack", "up_ns": seconds * 1_000_000_000,
            "read_only": false, "host_wakeups": lateness, "host_completions": lateness,
            "warnings": [], "disks": [disk], "volumes": [], "streams": streams,
            "memory": {
                "total_bytes": 0, "window_bytes": 0, "best_effort_bytes": 0, "free_bytes": 0,
            },
        });
        let findings = json!([
            { "key": "stream-late", "weight": "broken", "what": "stream 1 on beta: 3 of 9 requests late", "next_step": "look" },
        ]);
        let policy = json!({
            "policy": "slack", "summary": "", "admission": "nothing", "promised": true,
            "settings": [], "kept": false,
        });
        let whole = json!({
            "sound": false, "verdict": "1 thing is broken", "findings": findings, "policy": policy, "status": status,
        });
        serde_json::from_value(whole).unwrap()
    }

    fn press(state: &mut State, code: KeyCode) -> Next {
        state.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn names(state: &State) -> Vec<&str> {
        state.sorted().iter().map(|stream| &*stream.volume).collect()
    }

    #[test]
    fn streams_are_sorted_by_what_was_asked_for_and_the_chosen_one_stays_chosen() {
        let at = |seconds, beta| {
            overview(seconds, &[("zeta", 3, 0, 0), ("beta", 9, beta, 2), ("kappa", 5, 0, 1)])
        };
        let mut state = State::new(at(1, 0));
        state.take(at(2, 700));
        assert_eq!(state.got(1), Some(Rate::per_second(700)));
        assert_eq!(state.got(0), Some(Rate::per_second(0)));
        assert_eq!(names(&state), ["zeta", "beta", "kappa"]);
        press(&mut state, KeyCode::End);
        assert_eq!(state.chosen().map(|(at, one)| (at, &*one.volume)), Some((2, "kappa")));
        for (order, wanted) in [
            (Order::Volume, ["beta", "kappa", "zeta"]),
            (Order::Asked, ["beta", "kappa", "zeta"]),
            (Order::Got, ["beta", "zeta", "kappa"]),
            (Order::Late, ["beta", "kappa", "zeta"]),
        ] {
            press(&mut state, KeyCode::Char('s'));
            assert_eq!((state.order, names(&state)), (order, wanted.to_vec()));
            assert_eq!(state.chosen().map(|(_, one)| &*one.volume), Some("kappa"));
        }
        press(&mut state, KeyCode::Char('r'));
        assert_eq!(names(&state), ["zeta", "kappa", "beta"]);
        press(&mut state, KeyCode::Home);
        press(&mut state, KeyCode::Enter);
        assert!(state.is_open);
        // All were closed: there is none to look into.
        state.take(overview(3, &[]));
        assert_eq!((state.is_open, state.chosen), (false, None));
        press(&mut state, KeyCode::Down);
        press(&mut state, KeyCode::Enter);
        assert!(!state.is_open);
        assert_eq!(press(&mut state, KeyCode::Esc), Next::End);
    }

    #[test]
    fn what_a_pause_hides_is_not_lost_and_another_daemon_has_no_past() {
        let at = |seconds, moved| overview(seconds, &[("a", 1_000, moved, 0)]);
        let mut state = State::new(at(10, 0));
        press(&mut state, KeyCode::Char('p'));
        state.take(at(11, 1_000));
        assert_eq!(state.got(0), None);
        press(&mut state, KeyCode::Char('p'));
        state.take(at(12, 3_000));
        assert_eq!(state.got(0), Some(Rate::per_second(1_500)));
        assert_eq!(state.disks[0].back().unwrap().contract, Rate::per_second(5_000_000));
        state.lost("gone".into());
        state.take(at(1, 0));
        assert_eq!((state.lost.clone(), state.got(0)), (None, None));
        (2..2 + 2 * PAST as u64).for_each(|seconds| state.take(at(seconds, seconds)));
        assert_eq!((state.disks[0].len(), state.streams[&0].len()), (PAST, PAST));
    }
}
