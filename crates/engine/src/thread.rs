//! A disk's thread: takes what has ended to the node, starts what it gets, sleeps.
//!
//! Invariant: a panic here ends the process. Half a decision cannot be taken
//! back, programs would wait for ever, and a pool survives the end of its process
//! at any moment.

use crate::core::Core;
use crate::lock::{Fatal, Mutex};
use crate::on_disk::{
    PRIORITY, PRIORITY_DELIVERY, this_thread_delivers_in_time, this_thread_is_a_disks,
};
use crate::sys;
use crate::{Backend, HostLateness};
use node::DiskIndex;
use std::sync::Arc;

/// The share of a disk's thread where real-time priority is not permitted.
const NICE: i32 = -10;

/// Makes this thread fit for a disk, as far as the system permits; says in
/// `warnings` what it did not.
pub(crate) fn prepare(realtime: bool, warnings: &mut Vec<String>) {
    this_thread_is_a_disks();
    sys::sharpen_timers();
    if !realtime {
        return;
    }
    let Err(error) = sys::become_real_time(PRIORITY) else { return };
    let nicer = sys::become_nicer(NICE).is_ok();
    warnings.push(format!(
        "no real-time priority for the threads that keep time ({error}), so that other programs can make \
         requests late{}; give CAP_SYS_NICE or raise the limit (systemd: LimitRTPRIO={PRIORITY}, \
         shell: ulimit -r)",
        if nicer { "; they run at a higher share instead" } else { "" }
    ));
}

/// Gives this thread sharp timers, for one that keeps time without real-time priority.
pub fn wake_sharply() {
    sys::sharpen_timers();
}

/// Gives this thread the priority of a disk's thread, and sharp timers, for a program
/// that keeps time beside a pool.
///
/// # Errors
/// Where the system gives no real-time priority; the timers are sharp all the same.
pub fn keep_time() -> std::io::Result<()> {
    sys::sharpen_timers();
    sys::become_real_time(PRIORITY)
}

/// Gives this thread the priority of those that carry answers under contract to their
/// programs: above ordinary threads, below the disks'. Threads that it starts are ordinary ones.
///
/// # Errors
/// Where the system gives no real-time priority; it has a larger share, where that is permitted.
pub fn deliver_in_time() -> std::io::Result<()> {
    this_thread_delivers_in_time();
    sys::sharpen_timers();
    sys::become_real_time_alone(PRIORITY_DELIVERY).inspect_err(|_| {
        let _ = sys::become_nicer(NICE); // where it is not permitted either, the caller warns
    })
}

/// A class of the kernel's for reads and writes (`ioprio_set(2)`), at its highest level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoClass {
    /// Before all others, always.
    RealTime = 1,
    /// As everybody.
    BestEffort = 2,
    /// After all others.
    Idle = 3,
}

/// Gives this thread's own reads and writes a class of the kernel's, for a program that
/// does without a pool. A scheduler of the kernel's may look at it or not.
///
/// # Errors
/// Where the system does not permit it (`CAP_SYS_ADMIN` or `CAP_SYS_NICE`).
pub fn io_class(class: IoClass) -> std::io::Result<()> {
    sys::set_io_class(class as i32)
}

/// Serves a disk until the pool stops and nothing is in flight.
pub(crate) fn serve(
    core: &Arc<Core>,
    disk: DiskIndex,
    mut backend: Box<dyn Backend>,
    lateness: &Mutex<HostLateness>,
) {
    let _fatal = Fatal::new("in a disk's thread");
    let (mut done, mut commands) = (Vec::new(), Vec::new());
    loop {
        let turn = core.turn(disk, &mut done, &mut commands);
        let started = !commands.is_empty();
        commands.drain(..).for_each(|command| backend.start(command));
        core.unmap(turn.garbage);
        match turn.ended {
            Some(ended) => {
                if started {
                    // The device works while the pool is told.
                    backend.submit();
                }
                let timers_alone = ended.is_empty();
                let late = lateness.lock().take_worst();
                core.deliver_together(core.tell(ended, late));
                if timers_alone {
                    // There may be more of them at once: the device is looked at in between.
                    backend.wait(Some(sys::now()), &mut done);
                }
            }
            None if turn.stopping && backend.in_flight() == 0 => return,
            None => backend.wait(turn.until, &mut done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only where the system gives real-time priority. In threads of their own: others run
    /// tests afterwards.
    #[test]
    fn a_thread_that_carries_answers_is_real_time_and_those_that_it_starts_are_not() {
        let carries = || {
            if deliver_in_time().is_ok() {
                assert!(sys::is_real_time());
                assert!(!std::thread::spawn(sys::is_real_time).join().unwrap());
            }
        };
        std::thread::spawn(carries).join().unwrap();
    }
}
