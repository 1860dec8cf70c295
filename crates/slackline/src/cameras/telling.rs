//! Where all of it is told: lines on standard output, or on a terminal a table with lines above it.
//!
//! Invariants: whoever reads slowly, or not at all, holds up nobody; what he misses is counted and
//! told; an output that fails ends no recording.

use super::events::Event;
use super::limits::{DRAW, UNTOLD_MAX};
use super::shown::Snapshot;
use crate::output;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// See the module.
pub struct Telling {
    json: bool,
    is_terminal: bool,
    /// To the thread that writes.
    texts: SyncSender<String>,
    thread: JoinHandle<()>,
    /// Events that wait for it, as text.
    waiting: String,
    /// Events that found no room there.
    missed: u64,
    /// Lines of the table that stands on the terminal.
    lines: usize,
    drawn: Option<Instant>,
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
        let thread = thread.spawn(move || write(&told))?;
        let (waiting, drawn) = (String::new(), None);
        Ok(Self { json, is_terminal, texts, thread, waiting, missed: 0, lines: 0, drawn })
    }

    /// Tells these events, and how all cameras are `now`, where that is shown. Never waits.
    pub fn tell(&mut self, events: &[Event], now: impl FnOnce() -> Snapshot) {
        for event in events {
            let text = self.text(event);
            match self.waiting.len() + text.len() > UNTOLD_MAX {
                true => self.missed += 1,
                false => self.waiting += &text,
            }
        }
        let due = self.is_terminal && self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW);
        if self.waiting.is_empty() && self.missed == 0 && !due {
            return;
        }
        let mut text = self.waiting.clone();
        if self.missed > 0 {
            let what = format!("{} events were not told: nobody read them", self.missed);
            text += &self.text(&Event::of_all("untold", what).with("events", self.missed));
        }
        let mut lines = 0;
        if self.is_terminal {
            let (table, above) = (table(&now()), self.lines);
            lines = table.lines().count();
            let back = if above > 0 { format!("\x1b[{above}A\x1b[J") } else { String::new() };
            text = back + &text + &table;
        }
        // Where nobody has taken the last one, or the thread is gone, it waits.
        if self.texts.try_send(text).is_ok() {
            (self.lines, self.missed, self.drawn) = (lines, 0, Some(Instant::now()));
            self.waiting.clear();
        }
    }

    /// The last of it, for which there is time up to `until`.
    pub fn end(mut self, events: &[Event], now: impl Fn() -> Snapshot, until: Instant) {
        const LOOK: Duration = Duration::from_millis(10);
        self.drawn = None;
        self.tell(events, &now);
        while !self.waiting.is_empty() && Instant::now() < until {
            std::thread::sleep(LOOK);
            self.tell(&[], &now);
        }
        drop(self.texts);
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    fn text(&self, event: &Event) -> String {
        if self.json { event.json() } else { event.words() }
    }
}

/// Writes what it is given, to the end.
fn write(texts: &Receiver<String>) {
    let mut failed = false;
    for text in texts {
        let written = output::print(text.as_bytes());
        if let Err(failure) = &written
            && !failed
        {
            eprintln!("slackline: warning: {}; the cameras go on", failure.what);
        }
        failed = written.is_err();
    }
}

/// The table, no wider and no longer than the terminal: what is longer would not be overwritten.
fn table(snapshot: &Snapshot) -> String {
    let (wide, high) = ratatui::crossterm::terminal::size().unwrap_or((80, 24));
    let cut = |line: &str| line.chars().take(usize::from(wide.max(2)) - 1).collect::<String>();
    let text = snapshot.text();
    let lines = text.lines().take(usize::from(high.max(3)) - 2).map(cut);
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What does not fit is counted, and the count is told with what did, once.
    #[test]
    fn what_nobody_reads_is_counted() {
        let (texts, told) = sync_channel(1);
        let thread = std::thread::spawn(|| {});
        let (waiting, drawn) = (String::new(), None);
        let (json, is_terminal, missed, lines) = (true, false, 0, 0);
        let mut telling =
            Telling { json, is_terminal, texts, thread, waiting, missed, lines, drawn };
        let all = || unreachable!("no table is shown");
        let event = |text: &str| [Event::new("gate", "down", text)];
        telling.tell(&event("first"), all);
        let long = "x".repeat(UNTOLD_MAX / 4);
        for _ in 0..5 {
            telling.tell(&event(&long), all);
        }
        let read =
            || told.try_recv().map(|text| text.lines().map(String::from).collect::<Vec<_>>());
        assert_eq!(read().unwrap().len(), 1);
        telling.tell(&[], all);
        let rest = read().unwrap();
        assert_eq!(rest.len(), 4);
        let last: serde_json::Value = serde_json::from_str(&rest[3]).unwrap();
        assert_eq!((&last["event"], &last["events"]), (&"untold".into(), &2.into()));
        assert!(last["camera"].is_null());
        telling.tell(&[], all);
        assert!(read().is_err(), "once");
    }
}
