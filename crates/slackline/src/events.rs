//! `slackline events`: what happened, one line for each.

use crate::Common;
use crate::failure::Failure;
use client::control::{Event, EventKind, Events};
use report::span;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};
use units::Duration;

/// How often the daemon is asked for more.
const EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// Tell what happened: streams that came and went, contracts that were not kept, disks that
/// fail or take longer than their profiles say
///
/// The daemon keeps the last 1,000 events since it was started. Root sees all of them, another
/// user those of volumes that he may see. With `--json` each is a line of JSON.
#[derive(clap::Args)]
pub struct Args {
    /// Go on, and tell what happens from now on, too
    #[arg(long, short)]
    follow: bool,
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let client = common.client()?;
    let (mut run, mut after) = (None, 0);
    loop {
        let mut told: Events = client.events(after)?;
        if run.is_some_and(|run| run != told.run) {
            // Another daemon: its numbers begin again.
            told = client.events(0)?;
        }
        (run, after) = (Some(told.run), told.last);
        let mut out = std::io::stdout().lock();
        for event in &told.events {
            let line = if common.json { json(event) } else { line(event) };
            if writeln!(out, "{line}").is_err() {
                return Ok(()); // nobody reads any more
            }
        }
        if out.flush().is_err() || !args.follow {
            return Ok(());
        }
        drop(out);
        std::thread::sleep(EVERY);
    }
}

fn json(event: &Event) -> String {
    serde_json::to_string(event).expect("messages are JSON")
}

fn line(event: &Event) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ago = (now.as_millis() as u64).saturating_sub(event.at_ms);
    let mark = match event.kind {
        EventKind::Found => "found",
        EventKind::Cleared => "cleared",
        EventKind::StreamOpened => "opened",
        EventKind::StreamClosed => "closed",
    };
    let ago = span(Duration::from_millis(ago));
    let next = event.next_step.as_ref().map_or(String::new(), |it| format!("\n    next: {it}"));
    format!("{ago:>10} ago  {mark:<7}  {}{next}", event.what)
}
