//! The last day, in steps: in memory, and in two files that take turns.
//!
//! A line of JSON is appended for each step, behind a line break, so that a line which a crash cut
//! off takes no other with it. A file with a day's lines takes the place of the one
//! before it, so that both together are bounded. What was kept is read at the start; what is no
//! step is left out. Nothing depends on it: where it cannot be written, that is
//! said once, and memory has it until the daemon ends.
//!
//! Invariant: what is told of a step is made once and shared by all who take it, however many ask.

use crate::lock::Mutex;
use bytes::Bytes;
use node::DiskStatus;
use std::collections::VecDeque;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wire::control::{DiskStep, History, HistoryStep};

/// How long a step is.
pub const STEP: Duration = Duration::from_secs(20);
/// How many are kept: a day.
const STEPS: usize = 86_400 / 20;
/// The file that is written, and the one before it.
const FILES: [&str; 2] = ["history.json", "history.before.json"];

/// See the module.
pub struct Kept {
    state: Option<PathBuf>,
    inner: Mutex<Inner>,
}

struct Inner {
    steps: VecDeque<HistoryStep>,
    /// All of them as JSON, once somebody has asked since the last one came.
    told: Option<Bytes>,
    /// Lines of the file that is written.
    lines: usize,
    has_failed: bool,
}

impl Kept {
    /// What was kept in this directory, which need not be there.
    pub fn new(state: Option<PathBuf>) -> Self {
        let [now, before] = FILES.map(|file| read(state.as_deref(), file));
        let lines = now.len();
        let mut steps = VecDeque::from(before);
        steps.extend(now);
        steps.drain(..steps.len().saturating_sub(STEPS));
        Self { state, inner: Mutex::new(Inner { steps, told: None, lines, has_failed: false }) }
    }

    /// One more step.
    pub fn add(&self, step: HistoryStep) {
        let line = format!("\n{}", serde_json::to_string(&step).expect("messages are JSON"));
        let turns = {
            let mut inner = self.inner.lock();
            inner.steps.push_back(step);
            inner.told = None;
            let more = inner.steps.len().saturating_sub(STEPS);
            inner.steps.drain(..more);
            inner.lines += 1;
            let turns = inner.lines > STEPS;
            if turns {
                inner.lines = 1;
            }
            turns
        };
        // Not under the lock: a file may take long.
        let Some(state) = &self.state else { return };
        if let Err(error) = append(state, &line, turns)
            && !std::mem::replace(&mut self.inner.lock().has_failed, true)
        {
            let path = state.join(FILES[0]);
            tracing::warn!(
                "what the page shows of the last day is not kept: {}: {error}",
                path.display()
            );
        }
    }

    /// All of it, as the JSON of a [`History`].
    pub fn told(&self) -> Bytes {
        let mut inner = self.inner.lock();
        let Inner { steps, told, .. } = &mut *inner;
        let made = || {
            let steps = steps.iter().cloned().collect();
            let history = History { step_seconds: STEP.as_secs(), steps };
            serde_json::to_vec(&history).expect("messages are JSON").into()
        };
        told.get_or_insert_with(made).clone()
    }
}

fn read(state: Option<&Path>, file: &str) -> Vec<HistoryStep> {
    let text = state.and_then(|state| std::fs::read_to_string(state.join(file)).ok());
    let lines = text.as_deref().unwrap_or_default().lines();
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn append(state: &Path, line: &str, turns: bool) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let [now, before] = FILES.map(|file| state.join(file));
    if turns {
        std::fs::rename(&now, before)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(now)?;
    file.write_all(line.as_bytes())
}

/// What the disks did from one status to the next.
pub fn step(before: &[DiskStatus], now: &[DiskStatus]) -> HistoryStep {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let of_disk = |(before, now): (&DiskStatus, &DiskStatus)| {
        let (was, is) = (&before.account, &now.account);
        let moved =
            |is: node::Traffic, was: node::Traffic| is.bytes.get().saturating_sub(was.bytes.get());
        DiskStep {
            promised_ppm: now.utilisation_ppm,
            contract_bytes: moved(is.real_time, was.real_time),
            best_effort_bytes: moved(is.best_effort, was.best_effort),
            late_requests: is.late_requests.saturating_sub(was.late_requests),
        }
    };
    HistoryStep {
        at_seconds: since.map_or(0, |since| since.as_secs()),
        disks: before.iter().zip(now).map(of_disk).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_seconds: u64) -> HistoryStep {
        let step = DiskStep { promised_ppm: at_seconds, ..DiskStep::default() };
        HistoryStep { at_seconds, disks: vec![step] }
    }

    fn steps(kept: &Kept) -> Vec<HistoryStep> {
        serde_json::from_slice::<History>(&kept.told()).unwrap().steps
    }

    /// Thousands of answers that nobody takes are one in memory.
    #[test]
    fn what_is_told_of_a_step_is_made_once() {
        let kept = Kept::new(None);
        kept.add(at(1));
        let (one, other) = (kept.told(), kept.told());
        assert_eq!(one.as_ptr(), other.as_ptr());
        kept.add(at(2));
        assert_eq!(steps(&kept), [at(1), at(2)]);
    }

    /// The first and the last step; those between them must be there, each once.
    fn seen(kept: &Kept) -> (u64, u64) {
        let steps = steps(kept);
        let (first, last) = (steps[0].at_seconds, steps[steps.len() - 1].at_seconds);
        assert_eq!(steps.len() as u64, last - first + 1, "from {first} to {last}");
        for (n, step) in (first..).zip(steps) {
            assert_eq!(step, at(n));
        }
        (first, last)
    }

    #[test]
    fn the_last_day_is_there_after_a_start_and_no_more_than_two_days_lie_in_files() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let state = dir.path().join("pool");
        let last = 3 * STEPS as u64 + 7;
        let kept = Kept::new(Some(state.clone()));
        assert!(steps(&kept).is_empty());
        (1..=last).for_each(|n| kept.add(at(n)));
        assert_eq!(seen(&kept), (last - STEPS as u64 + 1, last));
        // A crash in the middle of a line.
        append(&state, "\n{\"at_seconds\":9", false).unwrap();
        let again = Kept::new(Some(state.clone()));
        assert_eq!(seen(&again), (last - STEPS as u64 + 1, last));
        again.add(at(last + 1));
        let again = Kept::new(Some(state.clone()));
        assert_eq!(seen(&again), (last - STEPS as u64 + 2, last + 1));
        let lines = |file: &str| std::fs::read_to_string(state.join(file)).unwrap().lines().count();
        // With the one that was cut off, and the empty one that each begins with.
        assert_eq!(FILES.map(lines), [10, STEPS + 1]);
    }

    #[test]
    fn where_nothing_can_be_written_memory_has_it() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "in the way").unwrap();
        let kept = Kept::new(Some(file));
        kept.add(at(1));
        kept.add(at(2));
        assert_eq!(steps(&kept), [at(1), at(2)]);
        assert!(kept.inner.lock().has_failed);
    }
}
