//! What the daemon has of the cameras now, whoever changed it beside this supervisor.
//!
//! Invariants: one question for all cameras at a time; whoever wants the answer waits for it for a
//! bounded time, also where the daemon hangs, and has what was known before then.

use super::camera::Camera;
use super::limits::{FOLLOW, FOLLOWED_WITHIN};
use client::Client;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// See the module.
#[derive(Default)]
pub struct Follower {
    looks: Mutex<Looks>,
    news: Condvar,
}

#[derive(Default)]
struct Looks {
    /// How many were wanted.
    wanted: u64,
    /// Up to which of these the cameras know the answer.
    done: u64,
}

impl Follower {
    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().expect("no thread panics while it holds this")
    }

    /// Looks again and again, until the process ends.
    pub fn run(&self, cameras: &[Arc<Camera>], client: &Client) -> ! {
        loop {
            let nobody_asks = |looks: &mut Looks| looks.wanted == looks.done;
            let waited = self.news.wait_timeout_while(self.looks(), FOLLOW, nobody_asks);
            let wanted = waited.expect("no thread panics while it holds this").0.wanted;
            look(cameras, client);
            self.looks().done = wanted;
            self.news.notify_all();
        }
    }

    /// The cameras know what the daemon has now, if it says so in time.
    pub fn look(&self) {
        let mut looks = self.looks();
        looks.wanted += 1;
        let mine = looks.wanted;
        self.news.notify_all();
        let is_due = |looks: &mut Looks| looks.done < mine;
        let waited = self.news.wait_timeout_while(looks, FOLLOWED_WITHIN, is_due);
        drop(waited.expect("no thread panics while it holds this"));
    }
}

fn look(cameras: &[Arc<Camera>], client: &Client) {
    let marks: Vec<u64> = cameras.iter().map(|camera| camera.changes()).collect();
    // Where there is no daemon its keeper says so.
    let Ok(status) = client.status() else { return };
    for (camera, mark) in cameras.iter().zip(marks) {
        camera.follows(mark, &status.streams, &status.volumes);
    }
}
