//! Where all of it is told: lines on standard output, or on a terminal a table with lines above it.
//!
//! Invariants: whoever reads slowly, or not at all, holds up nobody; events that he misses, and those
//! that could not be written, are counted and told; an output that fails ends no recording.

use super::events::Event;
use super::limits::{DRAW, SAME_NEXT, TELL_WITHIN, UNTOLD_MAX};
use super::shown::Snapshot;
use crate::failure::Failure;
use crate::output;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked whether something was taken that is to be told before the end.
const LOOK: Duration = Duration::from_millis(10);

/// Tells of a failure, as far as its output takes it within a bound: a terminal that was stopped takes
/// nothing.
pub fn report(failure: &Failure, json: bool) {
    let failure = failure.clone();
    let thread = std::thread::Builder::new().spawn(move || {
        failure.report(json);
    });
    if let Ok(thread) = thread {
        wait_for(&thread, Instant::now() + TELL_WITHIN);
    }
}

/// Waits until a thread has ended, or until then.
fn wait_for(thread: &JoinHandle<()>, until: Instant) {
    while !thread.is_finished() && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
}

/// See the module.
pub struct Telling {
    json: bool,
    is_terminal: bool,
    /// To the thread that writes.
    texts: SyncSender<Text>,
    thread: JoinHandle<()>,
    /// Events that it could not write.
    unwritten: Arc<AtomicU64>,
    /// Events that wait for it.
    waiting: Text,
    /// Events that found no room there, or were not written.
    missed: u64,
    /// Lines of the table that stands on the terminal.
    lines: usize,
    drawn: Option<Instant>,
    /// What a person was told last to do, and when.
    next: Option<(String, Instant)>,
}

/// What is written at a time, and how many events that tells of.
#[derive(Clone, Debug, Default)]
struct Text {
    text: String,
    events: u64,
}

impl Telling {
    /// Begins.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(json: bool) -> std::io::Result<Self> {
        let is_terminal = !json && std::io::stdout().is_terminal();
        // One that is written, and one that waits.
        let (texts, told) = sync_channel(1);
        let thread = std::thread::Builder::new().name("slackline-tell".into());
        let unwritten = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&unwritten);
        let thread = thread.spawn(move || {
            write(&told, &count, is_terminal, |text| output::print(text.as_bytes()));
        })?;
        Ok(Self::new(json, texts, thread, unwritten))
    }

    fn new(
        json: bool,
        texts: SyncSender<Text>,
        thread: JoinHandle<()>,
        unwritten: Arc<AtomicU64>,
    ) -> Self {
        let is_terminal = !json && std::io::stdout().is_terminal();
        let (waiting, missed, lines, drawn, next) = (Text::default(), 0, 0, None, None);
        Self { json, is_terminal, texts, thread, unwritten, waiting, missed, lines, drawn, next }
    }

    /// Tells these events, and how all cameras are `now`, where that is shown. Never waits.
    pub fn tell(&mut self, events: &[Event], now: impl FnOnce() -> Snapshot) {
        for event in events {
            let text = self.text(event);
            if self.waiting.text.len() + text.len() > UNTOLD_MAX {
                self.missed += 1;
            } else {
                self.waiting.text += &text;
                self.waiting.events += 1;
            }
        }
        self.missed += self.unwritten.swap(0, Ordering::Relaxed);
        let due = self.is_terminal && self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW);
        if self.is_over() && !due {
            return;
        }
        let Text { mut text, mut events } = self.waiting.clone();
        if self.missed > 0 {
            let what = format!("{} events were not told: nobody took them", self.missed);
            text += &self.text(&Event::of_all("untold", what).with("events", self.missed));
            events += self.missed;
        }
        let mut lines = 0;
        if self.is_terminal {
            let (table, above) = (table(&now()), self.lines);
            lines = table.lines().count();
            let back = if above > 0 { format!("\x1b[{above}A\x1b[J") } else { String::new() };
            text = back + &text + &table;
        }
        // Where nobody has taken the last one, or the thread is gone, it waits.
        if self.texts.try_send(Text { text, events }).is_ok() {
            (self.lines, self.missed, self.drawn) = (lines, 0, Some(Instant::now()));
            self.waiting = Text::default();
        }
    }

    /// Nothing waits to be told.
    fn is_over(&self) -> bool {
        self.waiting.events == 0 && self.missed == 0
    }

    /// The last of it, for which there is time up to `until`.
    pub fn end(mut self, events: &[Event], now: impl Fn() -> Snapshot, until: Instant) {
        self.drawn = None;
        self.tell(events, &now);
        while !self.is_over() && !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(LOOK);
            self.tell(&[], &now);
        }
        drop(self.texts);
        wait_for(&self.thread, until);
    }

    fn text(&mut self, event: &Event) -> String {
        if self.json {
            return event.json();
        }
        let said = self.next.as_ref().filter(|(_, at)| at.elapsed() < SAME_NEXT);
        if said.is_some_and(|(said, _)| said == event.next_step()) {
            // Of a daemon that is gone each camera has it.
            return event.words_alone();
        }
        if !event.next_step().is_empty() {
            self.next = Some((event.next_step().into(), Instant::now()));
        }
        event.words()
    }
}

/// Writes what it is given, to the end, and counts the events of what it could not write. That is
/// told once on standard error, where that takes it.
fn write(
    texts: &Receiver<Text>,
    unwritten: &AtomicU64,
    is_terminal: bool,
    mut print: impl FnMut(&str) -> Result<(), Failure>,
) {
    let mut failed = false;
    for Text { text, events } in texts {
        // A part of a line may stand there.
        let text = if failed && !is_terminal { format!("\n{text}") } else { text };
        let written = print(&text);
        if let Err(failure) = &written {
            unwritten.fetch_add(events, Ordering::Relaxed);
            if !failed {
                let what = &failure.what;
                let _ = writeln!(io::stderr(), "slackline: warning: {what}; the cameras go on");
            }
        }
        failed = written.is_err();
    }
}

/// The table, no wider and no longer than the terminal: what is longer would not be overwritten.
fn table(snapshot: &Snapshot) -> String {
    let size =
        ratatui::crossterm::terminal::size().ok().filter(|&(wide, high)| wide > 0 && high > 0);
    let (wide, high) = size.unwrap_or((80, 24));
    let cut = |line: &str| line.chars().take(usize::from(wide.max(2)) - 1).collect::<String>();
    let text = snapshot.text();
    let lines = text.lines().take(usize::from(high.max(3)) - 2).map(cut);
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn telling(unwritten: &Arc<AtomicU64>) -> (Telling, Receiver<Text>) {
        let (texts, told) = sync_channel(1);
        let (thread, unwritten) = (std::thread::spawn(|| {}), Arc::clone(unwritten));
        (Telling::new(true, texts, thread, unwritten), told)
    }

    fn tell(telling: &mut Telling, texts: &[&str]) {
        let events: Vec<_> = texts.iter().map(|text| Event::new("gate", "down", *text)).collect();
        telling.tell(&events, || unreachable!("no table is shown"));
    }

    fn lines(text: &Text) -> Vec<Value> {
        text.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What does not fit is counted, and the count is told with what did, once.
    #[test]
    fn what_nobody_reads_is_counted() {
        let (mut telling, told) = telling(&Arc::default());
        tell(&mut telling, &["first"]);
        let long = "x".repeat(UNTOLD_MAX / 4);
        tell(&mut telling, &[&*long; 5]);
        assert_eq!(lines(&told.try_recv().unwrap()).len(), 1);
        tell(&mut telling, &[]);
        let rest = lines(&told.try_recv().unwrap());
        assert_eq!(rest.len(), 4);
        assert_eq!((&rest[3]["event"], &rest[3]["events"]), (&"untold".into(), &2.into()));
        assert!(rest[3]["camera"].is_null());
        tell(&mut telling, &[]);
        assert!(told.try_recv().is_err(), "once");
    }

    /// A daemon that is gone was told with two lines by each of ten cameras.
    #[test]
    fn what_to_do_is_told_to_a_person_once() {
        let (mut telling, told) = telling(&Arc::default());
        telling.json = false;
        let gone = |name: &str, next: &str| Event::new(name, "no_daemon", "no daemon").next(next);
        let events = [gone("a", "start it"), gone("b", "start it"), gone("c", "look at it")];
        telling.tell(&events, || unreachable!("no table is shown"));
        let text = told.try_recv().unwrap().text;
        let next: Vec<_> = text.lines().filter(|line| line.starts_with("  next: ")).collect();
        assert_eq!(
            (next, text.lines().count()),
            (vec!["  next: start it", "  next: look at it"], 5)
        );
    }

    /// What an output does not take is counted as well, and what comes then begins a line.
    #[test]
    fn what_is_not_written_is_counted() {
        let unwritten = Arc::default();
        let (mut telling, told) = telling(&unwritten);
        let mut out = String::new();
        for (texts, fails) in [(&["a", "b"][..], true), (&["c"], true), (&[], false)] {
            tell(&mut telling, texts);
            let (one, rest) = sync_channel(1);
            one.send(told.try_recv().unwrap()).unwrap();
            drop(one);
            write(&rest, &unwritten, false, |text| {
                out = text.into();
                if fails { Err(Failure::new("full", "")) } else { Ok(()) }
            });
        }
        let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!((&last["event"], &last["events"]), (&"untold".into(), &3.into()), "{out}");
    }

    #[test]
    fn a_line_that_follows_a_torn_one_begins_anew() {
        let (one, texts) = sync_channel(2);
        for text in ["first\n", "second\n"] {
            one.send(Text { text: text.into(), events: 1 }).unwrap();
        }
        drop(one);
        let (mut out, unwritten) = (String::new(), AtomicU64::new(0));
        write(&texts, &unwritten, false, |text| {
            let fails = out.is_empty();
            out += if fails { "fir" } else { text };
            if fails { Err(Failure::new("full", "")) } else { Ok(()) }
        });
        assert_eq!((&*out, unwritten.into_inner()), ("fir\nsecond\n", 1));
    }
}
