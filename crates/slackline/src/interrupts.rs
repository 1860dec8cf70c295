//! Interrupts of commands that end in order.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set by an interrupt. A second one ends the process at once.
pub fn interruption() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal only sets the flag that arms the second.
        let armed =
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
        let registered = armed.and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)));
        if let Err(error) = registered {
            eprintln!("slackline: warning: an interrupt will end this at once: {error}");
        }
    }
    flag
}
