//! Where the heads may be, as far as completions tell.
//!
//! A command that the cache served leaves the arm where it was. From outside only
//! its time shows that: what took longer than the electronics and the bus was on
//! the platters, and the heads are where it ended; what did not may have been
//! either. So this keeps every place where the heads may be, and a bound from here
//! is the largest over all of them.
//!
//! Invariant: while the drive keeps to its profile, the heads are within one of the
//! places, or `places` is empty and they may be anywhere.

use crate::Profile;
use core::ops::Range;
use units::{Access, Command, Duration, Lba};

/// More places than this are not worth telling apart from "anywhere".
const PLACES_MAX: usize = 4;

/// Where the heads of one disk may be.
#[derive(Clone, Debug, Default)]
pub struct Head {
    places: [Option<Range<Lba>>; PLACES_MAX],
}

impl Head {
    /// Heads that may be anywhere, as at the start.
    pub fn anywhere() -> Self {
        Self::default()
    }

    /// Heads at `lba`.
    pub fn at(lba: Lba) -> Self {
        let mut head = Self::default();
        head.places[0] = Some(lba..lba);
        head
    }

    /// Learns from a seek that the drive was told to make.
    pub fn moved(&mut self, to: Lba) {
        *self = Self::at(to);
    }

    /// Learns from a transfer that took `time`.
    pub fn completed(&mut self, profile: &Profile, access: &Access, time: Duration) {
        if time > profile.quickest(access) {
            *self = Self::at(access.end());
            return;
        }
        if self.places[0].is_none() {
            return; // anywhere it was, anywhere it is
        }
        let (first, end) = (access.lba, access.end());
        let known = self.places.iter_mut().flatten();
        let mut touching = known.filter(|place| first <= place.end && place.start <= end);
        if let Some(place) = touching.next() {
            *place = place.start.min(end)..place.end.max(end);
            return;
        }
        match self.places.iter_mut().find(|place| place.is_none()) {
            Some(free) => *free = Some(end..end),
            None => *self = Self::anywhere(),
        }
    }

    /// Upper bound on the time of `command`, wherever the heads are now. Panics when
    /// the command lies outside the disk.
    pub fn bound(&self, profile: &Profile, command: &Command) -> Duration {
        let from = |lba| profile.bound(lba, command);
        let of = |place: &Range<Lba>| match place.is_empty() {
            true => from(place.start), // mostly one place is known
            false => from(place.start).max(from(place.end)),
        };
        if let Some(bound) = self.places.iter().flatten().map(of).max() {
            return bound;
        }
        match command {
            Command::Flush => profile.flush(),
            Command::Seek(_) => {
                let last = Lba::new(Lba::containing(profile.capacity()).get() - 1);
                from(Lba::default()).max(from(last))
            }
            Command::Transfer(access) | Command::Forced(access) => {
                profile.worst(access.lba..access.end(), access.len, access.direction)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use units::{Bytes, Direction};

    fn read(lba: u64) -> Access {
        Access { lba: Lba::new(lba), len: Bytes::kib(4), direction: Direction::Read }
    }

    #[test]
    fn a_slow_command_tells_where_the_heads_are_and_a_quick_one_only_where_they_may_be() {
        let profile = Profile::of(&Model::named("seagate-st318437lw").unwrap());
        let (near, far) = (Command::Transfer(read(30_000_000)), Command::Transfer(read(1_000)));
        let (slow, quick) = (Duration::from_millis(9), Duration::from_micros(330));
        let mut head = Head::anywhere();
        assert!(head.bound(&profile, &near) > head.bound(&profile, &far) / 2);
        head.completed(&profile, &read(30_000_008), slow);
        let known = head.bound(&profile, &near);
        assert_eq!(known, profile.bound(Lba::new(30_000_016), &near));
        head.completed(&profile, &read(1_008), quick);
        assert_eq!(head.bound(&profile, &near), profile.bound(Lba::new(1_016), &near));
        assert_eq!(head.bound(&profile, &far), profile.bound(Lba::new(30_000_016), &far));
        for place in 1..6 {
            head.completed(&profile, &read(place * 5_000_000), quick);
        }
        assert!(head.places[0].is_none(), "too many places are anywhere");
        head.completed(&profile, &read(30_000_008), slow);
        assert_eq!(head.bound(&profile, &near), known);
    }
}
