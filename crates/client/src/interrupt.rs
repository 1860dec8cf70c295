//! A signal that comes while a call waits: whether the call goes on.
//!
//! Invariant: it is asked on the thread that waits, between what is received as a whole, so that a
//! call which ends for it leaves its connection as it was; where that cannot be, the connection says
//! from then on that it is of no more use.

use crate::{Error, Result};
use std::io;
use std::sync::{Condvar, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

static ASK: OnceLock<fn() -> bool> = OnceLock::new();

/// Who waits for another thread of this process is not woken by a signal, and looks so often.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// From now on `ask` is asked when a signal has come to a thread that waits for the daemon: true
/// ends the call with [`Error::Interrupted`]. Without this, and for every later word but the first,
/// nothing changes: a call that a signal interrupts goes on. For languages whose handlers of signals
/// run when a call asks for that.
pub fn when_interrupted(ask: fn() -> bool) {
    let _ = ASK.set(ask);
}

/// Whether the call that waits here goes on.
pub(crate) fn asked() -> Result<()> {
    match ASK.get() {
        Some(ends) if ends() => Err(Error::Interrupted),
        _ => Ok(()),
    }
}

/// What came of no answer that a signal has ended the wait for, said to those who come later.
pub(crate) fn cut_off() -> Error {
    Error::Broken(io::Error::other("a signal has ended a call that waited for its answer"))
}

/// What is said of an answer that does not come.
pub(crate) fn late() -> Error {
    Error::Broken(io::ErrorKind::TimedOut.into())
}

/// Waits for another thread's news, as for a condition: they may be none. Not beyond `until`.
pub(crate) fn news<'a, T>(
    news: &Condvar,
    guard: MutexGuard<'a, T>,
    until: Option<Instant>,
) -> Result<MutexGuard<'a, T>> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    if left == Some(Duration::ZERO) {
        return Err(late());
    }
    let look = ASK.get().map(|_| LOOK_EVERY);
    let most = left.into_iter().chain(look).min();
    let guard = match most {
        None => news.wait(guard).map_err(drop),
        Some(most) => news.wait_timeout(guard, most).map(|(guard, _)| guard).map_err(drop),
    };
    asked()?;
    Ok(guard.expect("no thread panics while it holds what is waited for"))
}
