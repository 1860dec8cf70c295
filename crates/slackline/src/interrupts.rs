//! Interrupts of commands that end in order: SIGINT, SIGTERM, and a terminal that is closed, unless the
//! command was told to go on then.

use daemon::serve::ignores_hangup;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an interrupted process ends with.
const INTERRUPTED: i32 = 130;

/// The signals that end a command.
pub fn all() -> Vec<i32> {
    let hangup = (!ignores_hangup()).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hangup).collect()
}

/// Set by an interrupt. A second one ends the process at once. That a terminal is closed is never a second
/// one: the terminal may send it several times, and its session sends SIGTERM beside it.
pub fn interruption() -> Arc<AtomicBool> {
    let (flag, armed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in all() {
        let arms = if signal == SIGHUP { Ok(()) } else { arm(signal, &armed) };
        let sets = |()| signal_hook::flag::register(signal, Arc::clone(&flag));
        if let Err(error) = arms.and_then(sets) {
            eprintln!("slackline: warning: an interrupt will end this at once: {error}");
        }
    }
    flag
}

/// Lets the second one of such signals end the process.
fn arm(signal: i32, armed: &Arc<AtomicBool>) -> std::io::Result<()> {
    use signal_hook::flag::{register, register_conditional_shutdown};
    // In this order: the first signal only sets the flag that arms the second.
    register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(armed))?;
    register(signal, Arc::clone(armed)).map(drop)
}

/// The same of a process that has to do something before a second one ends it: `last` does that, and
/// then calls what it is given.
///
/// # Errors
/// The system gives no thread or signals.
pub fn interruption_with(
    last: impl FnOnce(fn() -> !) + Send + 'static,
) -> std::io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let (mut signals, ended) = (Signals::new(all())?, Arc::clone(&flag));
    let listen = move || {
        let mut signals = signals.forever();
        let first = signals.next();
        ended.store(true, Ordering::Relaxed);
        // A terminal that is closed sends several, and its session what says the same.
        let mut others = signals.filter(|signal| *signal != SIGHUP);
        let _second = if first == Some(SIGHUP) { others.nth(1) } else { others.next() };
        last(|| std::process::exit(INTERRUPTED));
    };
    std::thread::Builder::new().name("slackline-signals".into()).spawn(listen)?;
    Ok(flag)
}
