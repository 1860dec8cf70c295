//! Space that volumes have ahead of those who write them: who has reserved it gives it back, but
//! nothing of it that somebody has asked for since.
//!
//! It is kept for one life of the daemon. Invariants: what is known of a volume changes only in the
//! turn in which its size does; a volume of which nothing is known has been asked for as large as
//! it is.

use crate::lock::Mutex;
use node::VolumeId;
use std::collections::HashMap;
use units::Bytes;

/// Where more is known than of so many, those are forgotten that are not there any more.
const KNOWN_MAX: usize = 1024;

/// Of volumes with space ahead, up to where somebody has asked for it.
#[derive(Debug, Default)]
pub struct Ahead(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: HashMap<VolumeId, Asked>,
    /// How many there were when last some were forgotten.
    left: usize,
}

/// How much of a volume somebody has asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    upto: Bytes,
    /// In this life of the daemon; what is behind it may have been asked for in another one.
    is_all: bool,
}

impl Known {
    /// Something is to be known of one more.
    fn make_room(&mut self, is_there: impl Fn(VolumeId) -> bool) {
        if self.of.len() >= KNOWN_MAX.max(2 * self.left) {
            self.of.retain(|&volume, _| is_there(volume));
            self.left = self.of.len();
        }
    }
}

impl Ahead {
    /// Somebody asks for `size` of a volume that has `has`, and gets so much at the least.
    pub fn asked(
        &self,
        volume: VolumeId,
        (has, size): (Bytes, Bytes),
        is_there: impl Fn(VolumeId) -> bool,
    ) {
        let mut all = self.0.lock();
        all.make_room(is_there);
        let asked = all.of.entry(volume).or_insert(Asked { upto: Bytes::ZERO, is_all: false });
        asked.upto = asked.upto.max(size.min(has));
    }

    /// A volume that has `has` grows to more than the `size` that is asked for.
    pub fn grows(
        &self,
        volume: VolumeId,
        (has, size): (Bytes, Bytes),
        is_there: impl Fn(VolumeId) -> bool,
    ) {
        let mut all = self.0.lock();
        all.make_room(is_there);
        let asked = all.of.entry(volume).or_insert(Asked { upto: has, is_all: true });
        if !asked.is_all {
            *asked = Asked { upto: has, is_all: true };
        }
        asked.upto = asked.upto.max(size);
    }

    /// To what a volume may be made smaller for which `size` is enough, by one who has made it `from`
    /// large and gives back what is ahead; none where it stays as it is.
    pub fn given_back(
        &self,
        volume: VolumeId,
        has: Bytes,
        (size, from): (Bytes, Bytes),
    ) -> Option<Bytes> {
        let asked = self.0.lock().of.get(&volume).copied();
        let asked = asked.unwrap_or(Asked { upto: Bytes::ZERO, is_all: false });
        // Where the daemon was started again since, what another one has asked for before has made it
        // larger than `from`.
        let is_known = asked.is_all || has == from;
        Some(size.max(asked.upto)).filter(|&size| is_known && size < has)
    }

    /// A volume gets just the size that is asked for, or goes.
    pub fn forget(&self, volume: VolumeId) {
        self.0.lock().of.remove(&volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_has_asked_for_is_not_given_back() {
        let ahead = Ahead::default();
        let (v, mib) = (VolumeId(7), Bytes::mib);
        let back = |has, size, from| ahead.given_back(v, mib(has), (mib(size), mib(from)));
        // Another life of the daemon made it grow.
        assert_eq!((back(16, 12, 16), back(17, 12, 16)), (Some(mib(12)), None));
        ahead.grows(v, (mib(3), mib(12)), |_| true);
        assert_eq!(back(16, 12, 16), Some(mib(12)));
        assert_eq!(back(16, 1, 16), Some(mib(12)), "others may have asked for that");
        ahead.asked(v, (mib(16), mib(14)), |_| true);
        assert_eq!(back(16, 12, 16), Some(mib(14)));
        ahead.asked(v, (mib(16), mib(13)), |_| true);
        assert_eq!((back(16, 12, 16), back(14, 12, 16)), (Some(mib(14)), None));
        ahead.forget(v);
        ahead.asked(v, (mib(16), mib(14)), |_| true);
        assert_eq!(back(16, 12, 20), None, "all of it was asked for");
        assert_eq!(back(16, 12, 16), Some(mib(14)), "before and behind a start of the daemon");
        ahead.grows(v, (mib(16), mib(17)), |_| true);
        assert_eq!(back(20, 12, 20), Some(mib(17)), "what was there may be anybody's");
        // Volumes that are gone are forgotten when many are known.
        (0..KNOWN_MAX as u64).for_each(|n| ahead.grows(VolumeId(n), (mib(1), mib(1)), |_| true));
        ahead.grows(VolumeId(1 << 40), (mib(1), mib(1)), |volume| volume == VolumeId(3));
        assert_eq!(ahead.0.lock().of.len(), 2);
    }
}
