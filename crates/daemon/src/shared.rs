//! The windows that programs map, as the daemon holds them.

use crate::lock::Mutex;
use node::Mode;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Bytes;
use window::Memory;

/// A window that a program can map.
#[derive(Debug)]
pub struct Shared {
    /// The bytes.
    pub memory: Arc<Memory>,
    /// The daemon's end of the control page, until a connection takes it.
    pub end: Mutex<Option<window::Daemon>>,
    /// The part of the memory that is locked, or known to be there.
    settled: Mutex<Bytes>,
}

impl Shared {
    /// A window of so many bytes in this memory, in blocks of so many.
    ///
    /// # Errors
    /// When the system has no memory for a control page.
    pub fn new(memory: Arc<Memory>, mode: Mode, window: Bytes, block: Bytes) -> io::Result<Self> {
        let mode = match mode {
            Mode::Read => window::Mode::Read,
            Mode::Write => window::Mode::Write,
            Mode::Update => window::Mode::Update,
        };
        let end = window::Daemon::create(mode, window::ring_for(window, block))?;
        Ok(Self { memory, end: Mutex::new(Some(end)), settled: Mutex::default() })
    }

    /// Brings the first `window` bytes into memory and locks them there, where that is
    /// permitted; says once what to do where it is not. May take a moment.
    pub fn settle(&self, window: Bytes) {
        static SAID: AtomicBool = AtomicBool::new(false);
        let mut settled = self.settled.lock();
        let (from, more) = (settled.as_usize(), window.saturating_sub(*settled));
        if more.is_zero() || window.as_usize() > self.memory.len() {
            return;
        }
        *settled = window;
        if let Err(error) = self.memory.lock(from, more.as_usize()) {
            self.memory.populate(from, more.as_usize(), window::Rights::Write);
            if !SAID.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "shared windows are not locked in memory ({error}), so that memory \
                     pressure can make requests late; raise the limit of locked memory (systemd: \
                     LimitMEMLOCK=infinity, shell: ulimit -l)"
                );
            }
        }
    }
}
