//! Operations of volumes under contract that are under way beside their users' parts: those
//! for which the pool has memory set aside, and no more.

use crate::lock::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// How many of each volume are under way.
#[derive(Default)]
pub struct Guaranteed(Mutex<HashMap<String, u64>>);

/// One of them, until it is dropped.
pub struct Operation {
    all: Arc<Guaranteed>,
    volume: String,
}

impl Guaranteed {
    /// One more of a volume of which so many may be; none where there are.
    pub fn begin(self: &Arc<Self>, volume: &str, most: u64) -> Option<Operation> {
        let mut all = self.0.lock();
        let has = all.get(volume).copied().unwrap_or_default();
        if has >= most {
            return None;
        }
        all.insert(volume.to_owned(), has + 1);
        Some(Operation { all: Arc::clone(self), volume: volume.to_owned() })
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        let has = all.get_mut(&self.volume).expect("this one is counted");
        *has -= 1;
        if *has == 0 {
            all.remove(&self.volume);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_volume_so_many_and_no_more() {
        let all = Arc::new(Guaranteed::default());
        assert!(all.begin("v", 0).is_none(), "nothing is set aside");
        let first = all.begin("v", 2);
        let second = all.begin("v", 2);
        assert!(first.is_some() && second.is_some() && all.begin("v", 2).is_none());
        assert!(all.begin("w", 1).is_some(), "another volume");
        drop(first);
        assert!(all.begin("v", 2).is_some());
        drop(second);
        assert!(all.0.lock().is_empty(), "all have ended");
    }
}
