//! What the parts of a request take that follow one another: nothing else is served between them.
//!
//! The heads come to the first one from anywhere. They come to each other part from where an
//! earlier one left them, if it was served from the platters: not farther than all parts lie
//! apart. Parts that the disk had in its cache leave them where they were. That holds for reads;
//! what was written may be in the cache, and move the heads when the disk likes.

use crate::predictions::worst;
use core::ops::Range;
use disk::Profile;
use disk::online::Observations;
use units::{Command, Direction, Duration, Lba, SECTOR};

/// From the first to the last sector of commands that are all reads; none where one is something else.
pub(crate) fn reads_between<'a>(commands: impl Iterator<Item = &'a Command>) -> Option<Range<Lba>> {
    let mut all: Option<Range<Lba>> = None;
    for command in commands {
        let access = command.access().filter(|access| access.direction == Direction::Read)?;
        let own = access.lba..access.end();
        all = Some(match all {
            None => own,
            Some(all) => all.start.min(own.start)..all.end.max(own.end),
        });
    }
    all
}

/// Bound on a part behind the first: of reads, the way that all parts lie in.
pub(crate) fn follows(profile: &Profile, way: Option<&Range<Lba>>, command: &Command) -> Duration {
    let Some(access) = command.access() else { return profile.flush() };
    let anywhere = worst(profile, access);
    let Some(way) = way else { return anywhere };
    let reach = SECTOR * way.start.distance(way.end);
    profile.follows(way.clone(), access.len, reach, access.direction).min(anywhere)
}

/// What the parts that follow on `first` take at the most, with the gap before each of them, and what
/// the one before it is in the device's pipeline beside its cost. Where
/// others use the device too, nobody knows where the heads are between them.
pub(crate) fn following<'a>(
    (profile, is_alone): (&Profile, bool),
    seen: &Observations,
    (patience, gap): (Duration, Duration),
    (first, parts): (Option<&'a Command>, impl Iterator<Item = &'a Command> + Clone),
) -> Duration {
    let all = || first.into_iter().chain(parts.clone());
    let way = is_alone.then(all).and_then(reads_between);
    let of = |command: &Command| {
        let plain = follows(profile, way.as_ref(), command);
        seen.expected(command, plain).min(plain.max(patience))
    };
    parts.map(|command| of(command) + gap + profile.latency()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use disk::Model;
    use units::{Access, Bytes};

    /// Bound on a request in these parts, wherever the heads are.
    fn bound_of(profile: &Profile, parts: &[Command]) -> Duration {
        let way = reads_between(parts.iter());
        let part = |(number, part)| follows(profile, way.as_ref().filter(|_| number > 0), part);
        parts.iter().enumerate().map(part).sum()
    }

    /// On every model, wherever the heads are and whichever of the parts the disk has in its cache: what
    /// the others take is bounded, and the bound is not much more than they may take.
    #[test]
    fn parts_take_no_more_than_their_bound_whichever_the_disk_has_in_its_cache() {
        let mut random = 3u64;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % limit
        };
        for name in Model::names() {
            let profile = Profile::of(&Model::named(name).unwrap());
            let mib = profile.capacity() / Bytes::MIB;
            let mut nearest = 0;
            for _ in 0..3_000 {
                let way = (1 << below(12)).min(mib / 2) + 16;
                let from = below(mib - way);
                let parts: Vec<Command> = (0..2 + below(6))
                    .map(|_| {
                        let len = Bytes::kib(4) * (1 + below(1024));
                        let lba = Lba::containing(Bytes::mib(from + below(way - 4)));
                        Command::Transfer(Access { lba, len, direction: Direction::Read })
                    })
                    .collect();
                let mut at = Lba::containing(Bytes::mib(below(mib)));
                let mut takes = Duration::ZERO;
                let cached = if below(2) == 0 { 0 } else { below(1 << parts.len()) };
                for (number, part) in parts.iter().enumerate() {
                    if cached & 1 << number == 0 {
                        takes += profile.bound(at, part);
                        at = part.access().unwrap().end();
                    }
                }
                let bound = bound_of(&profile, &parts);
                assert!(takes <= bound, "{name}: {takes} of {bound}, {at:?} {cached:b} {parts:?}");
                nearest = nearest.max(takes.as_nanos() * 100 / bound.as_nanos());
            }
            assert!(nearest >= 85, "{name}: {nearest} % at the most");
        }
    }

    /// What was written may be in the cache, and what needs no heads is as long as it ever may be.
    #[test]
    fn only_reads_are_near_each_other() {
        let profile = Profile::of(&Model::named("hdd-7200-20tb").unwrap());
        let part = |mib, direction| {
            let lba = Lba::containing(Bytes::mib(mib));
            Command::Transfer(Access { lba, len: Bytes::MIB, direction })
        };
        let all = |direction| [part(10, direction), part(20, direction)];
        let (read, write) = (Direction::Read, Direction::Write);
        let alone = |direction, mib| bound_of(&profile, &[part(mib, direction)]);
        assert_eq!(bound_of(&profile, &all(write)), alone(write, 10) + alone(write, 20));
        let apart = alone(read, 10) + alone(read, 20);
        assert!(bound_of(&profile, &all(read)) + Duration::from_millis(15) < apart);
        let mixed = [part(10, read), part(20, write)];
        assert_eq!(bound_of(&profile, &mixed), alone(read, 10) + alone(write, 20));
        let flush = [part(10, read), Command::Flush];
        assert_eq!(bound_of(&profile, &flush), alone(read, 10) + profile.flush());
        assert_eq!(bound_of(&profile, &[]), Duration::ZERO);
    }
}
