//! `slackline top`: what `slackline status` says, live.
//!
//! What is known and what is asked for stand in `state`, what is seen in `screen`; this file has the
//! terminal and the clock. Invariants: the terminal is as it was before, however this ends: with a
//! key, a signal, an error or a panic; a daemon that does not answer keeps nobody from ending it.

mod screen;
mod state;

use crate::Common;
use crate::failure::Failure;
use client::Client;
use client::control::Overview;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use state::{Next, State};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Where this is set, a build for tests panics with the screen on the terminal.
#[cfg(debug_assertions)]
const PANICS: &str = "SLACKLINE_TOP_PANICS";

/// How long a key or a signal can wait to be seen.
const LOOK: Duration = Duration::from_millis(100);

/// Watch streams and disks live, sorted, with what they did in the last minutes
///
/// Keys: up and down choose a stream, Enter looks into it, s sorts by the next column, r turns the
/// order round, p pauses, q ends.
#[derive(clap::Args)]
pub struct Args {
    /// How often to ask the daemon
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    every: units::Duration,
}

fn every(text: &str) -> Result<units::Duration, String> {
    let every: units::Duration = text.parse().map_err(|error| format!("{error}"))?;
    let (least, most) = (units::Duration::from_millis(100), units::Duration::from_secs(3_600));
    match (least..=most).contains(&every) {
        true => Ok(every),
        false => Err(format!("must be from {least} to {most}")),
    }
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    if common.json || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "this is shown on a terminal",
            "`slackline status` tells the same once, with --json for programs",
        ));
    }
    let client = common.client()?;
    let mut state = State::new(client.overview()?);
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(no_terminal)?;
    }
    // From here on a panic restores the terminal before it is told.
    let mut terminal = ratatui::try_init().map_err(no_terminal)?;
    let every = Duration::from_nanos(args.every.as_nanos());
    let shown = watch(&ask(client, every), &mut state, &mut terminal, &ended);
    ratatui::restore();
    shown.map_err(no_terminal)
}

fn no_terminal(error: std::io::Error) -> Failure {
    Failure::new(format!("the terminal: {error}"), "`slackline status` needs none")
}

/// Asks the daemon that often, on a thread of its own: an answer may take long.
fn ask(client: Client, every: Duration) -> Receiver<client::Result<Overview>> {
    let (tell, told) = sync_channel(1);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(every);
            if tell.send(client.overview()).is_err() {
                return; // nobody looks any more
            }
        }
    });
    told
}

/// Shows what is new until somebody ends it.
fn watch(
    told: &Receiver<client::Result<Overview>>,
    state: &mut State,
    terminal: &mut ratatui::DefaultTerminal,
    ended: &AtomicBool,
) -> std::io::Result<()> {
    while !ended.load(Ordering::Relaxed) {
        terminal.draw(|frame| screen::draw(frame, state))?;
        #[cfg(debug_assertions)]
        assert!(std::env::var_os(PANICS).is_none(), "asked for");
        if event::poll(LOOK)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && state.key(key) == Next::End
        {
            return Ok(());
        }
        match told.try_recv() {
            Ok(Ok(overview)) => state.take(overview),
            Ok(Err(error)) => state.lost(error.to_string()),
            Err(_) => {} // not yet
        }
    }
    Ok(())
}
