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

/// So long behind a terminal that is closed comes what its session says.
const BESIDE: std::time::Duration = std::time::Duration::from_millis(200);

/// Set by an interrupt. A second one ends the process at once.
pub fn interruption() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal only sets the flag that arms the second.
        let armed = signal_hook::flag::register_conditional_shutdown(
            signal,
            INTERRUPTED,
            Arc::clone(&flag),
        );
        let registered = armed.and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)));
        if let Err(error) = registered {
            eprintln!("slackline: warning: an interrupt will end this at once: {error}");
        }
    }
    if !ignores_hangup() {
        // A terminal sends several, and its session what says the same: they are no second interrupt.
        let (hung_up, ended) = (Signals::new([SIGHUP]), Arc::clone(&flag));
        let listen = |mut signals: Signals| {
            move || {
                let _first = signals.forever().next();
                std::thread::sleep(BESIDE);
                ended.store(true, Ordering::Relaxed);
            }
        };
        if let Ok(signals) = hung_up {
            let _ =
                std::thread::Builder::new().name("slackline-hangup".into()).spawn(listen(signals));
        }
    }
    flag
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
