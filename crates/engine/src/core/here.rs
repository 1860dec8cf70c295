//! Which threads carry out commands that they have begun themselves ([`carry_out`](super::carry_out)):
//! not those that keep time for others, nor one that delivers what follows from such a command.

use crate::on_disk::keeps_time;
use std::cell::Cell;
use units::Bytes;

/// So much is moved at a time by who asks, on all disks together: a hundred microseconds.
const MOVED_MAX: Bytes = Bytes::kib(512);

thread_local! {
    /// Whether this thread carries out commands, or delivers what follows from them.
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
shuttle::thread_local! {
    /// The same in a scene, whose threads are one of ours.
    static SCENE: Cell<bool> = Cell::new(false);
}

fn with<T>(look: impl FnOnce(&Cell<bool>) -> T) -> T {
    #[cfg(test)]
    if super::schedules::inside() {
        return SCENE.with(look);
    }
    IS_HERE.with(look)
}

/// How much this thread may move of what it has begun. Threads that keep time for others move
/// nothing: what they have to do next may be promised to somebody.
pub(super) fn may() -> Bytes {
    if with(Cell::get) || keeps_time() { Bytes::ZERO } else { MOVED_MAX }
}

/// As long as this lives this thread carries out no more.
pub(super) struct Within;

impl Within {
    pub(super) fn enter() -> Self {
        with(|is| is.set(true));
        Self
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        with(|is| is.set(false));
    }
}
