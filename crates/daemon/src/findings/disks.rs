//! What is found of a disk, and of what the host takes of its time.

use super::making::{SOON_FULL, broken, look};
use crate::problem::MAKE_ROOM;
use report::{counted, span};
use store::EXTENT;
use units::{Duration, Rate};
use wire::control::{Disk, Finding, HostTime, Mode, OddsBroken, Status, Stream, Verdict, Volume};

/// A disk of which less than one part in so many is free is nearly full: the next volume will not fit.
const NEARLY_FULL: u64 = 50;

pub(super) fn of_disk(disk: &Disk, found: &mut Vec<Finding>) {
    let (number, device) = (disk.disk, &disk.device);
    if let Some(damage) = &disk.damage {
        let what = format!("disk {number} ({device}): {damage}");
        let next = "copy what is whole to another place before you stop the daemon (`slackline export`); \
                    nothing but the daemon may touch the file of a disk";
        found.push(broken(format!("disk/{number}/file"), what, next));
    }
    if let Some(age) = disk.hangs_for() {
        let bound = disk.oldest_command.as_ref().map_or(Duration::ZERO, |oldest| oldest.bound_ns);
        let what = format!(
            "disk {number} ({device}) hangs: it has had a command for {}, which takes {bound} at the most by its \
             profile",
            span(age)
        );
        found.push(broken(format!("disk/{number}/hangs"), what, LOOK_AFTER));
    }
    if disk.host_errors > 0 {
        let failed = counted(disk.host_errors, "command");
        let what =
            format!("disk {number} ({device}): its host had no room or no memory for {failed}");
        let next = format!(
            "{MAKE_ROOM}; who wrote was told what failed; this counts since the daemon's start"
        );
        found.push(broken(format!("disk/{number}/room"), what, next));
    }
    if let errors @ 1.. = disk.errors.saturating_sub(disk.host_errors) {
        let what = format!("disk {number} ({device}) failed {}", counted(errors, "command"));
        let next = "copy what matters to another disk; `slackline pool status` lists the places, \
                    and the kernel's log says more";
        found.push(broken(format!("disk/{number}/errors"), what, next));
    }
    if disk.profile.verdict != Verdict::Fresh {
        let what = format!(
            "disk {number}: its profile is {}; contracts on it may be late",
            disk.profile.detail
        );
        let next = format!(
            "the daemon measures it again by itself when nothing else wants the disk; at once: \
             `slackline pool reprofile --disk {number}`"
        );
        found.push(look(format!("disk/{number}/profile"), what, next));
    }
    if let Some(reason) = disk.odds.as_ref().and_then(|odds| odds.broken) {
        let reason = match reason {
            OddsBroken::Late => "more requests are late than was said",
            OddsBroken::Costs => "its commands cost more than was measured",
        };
        let what = format!("the odds on disk {number} do not hold: {reason}");
        found.push(broken(
            format!("disk/{number}/odds"),
            what,
            "close streams that were opened with --miss, or give them other odds",
        ));
    }
    let gap = format!("the gap between two commands on disk {number}");
    found.extend(of_host(format!("disk/{number}/gap"), &gap, &disk.gap));
}

/// What a disk has nobody can take back from it: a stop would wait for it, too.
const LOOK_AFTER: &str = "see whether it is still there: the kernel's log (`journalctl -k`) says what became of its \
                          path, `dmsetup info` whether a mapped device is suspended; of a file on a network or FUSE \
                          file system, look whether its server answers; what waits for the disk goes on when it \
                          answers or fails";

/// Whether some disk hangs that this volume lies on: then nothing can be said of who uses it.
pub(super) fn is_on_one_that_hangs(volume: &Volume, status: &Status) -> bool {
    let hangs = |disk: &Disk| disk.hangs_for().is_some() && lies_on(volume, disk);
    status.disks.iter().any(hangs)
}

fn lies_on(volume: &Volume, disk: &Disk) -> bool {
    let disks = &volume.placement.disks;
    disks.is_empty() || disks.contains(&disk.disk)
}

/// A disk that has no room left, or will soon have none. One that was given to rings is full by
/// intent: they never need more.
pub(crate) fn of_room(disk: &Disk, status: &Status) -> Option<Finding> {
    let (capacity, free) = (disk.capacity_bytes, disk.free_bytes);
    let number = usize::from(disk.disk);
    // A thin ring takes what is free, as other thin volumes do.
    let is_ring = |volume: &&Volume| volume.ring.is_some() && !volume.placement.thin;
    let of_rings = status.volumes.iter().filter(is_ring);
    let of_rings = of_rings.filter_map(|ring| ring.extents.get(number)).sum::<u64>();
    let is_for_rings = EXTENT.saturating_mul(of_rings) > capacity / 2;
    let taken = taken(disk, status);
    let left = (!taken.is_zero()).then(|| taken.time_for(free));
    let is_low = free < capacity / NEARLY_FULL && !(is_for_rings && taken.is_zero());
    let when = match left.filter(|left| *left < SOON_FULL && !free.is_zero()) {
        Some(left) => format!(
            "full in {} if what is recorded there takes more room, at the rates of its contracts",
            span(left)
        ),
        None if is_low && free < EXTENT => "full".into(),
        None if is_low => "nearly full".into(),
        None => return None,
    };
    let what =
        format!("disk {} ({}) is {when}: {free} of {capacity} are free", number, disk.device);
    let next = "delete volumes that nobody needs, or make them smaller (`slackline volume list` shows \
                their sizes; `volume delete`, `volume resize`); record to rings that have their room from the \
                beginning, which are never full (`--ring`); or make a pool of more disks";
    Some(look(format!("disk/{number}/full"), what, next))
}

/// At which rate open writers take what is free on the disk.
fn taken(disk: &Disk, status: &Status) -> Rate {
    let of = |stream: &Stream| {
        let volume = status.volumes.iter().find(|one| one.name == stream.volume)?;
        let disks = &volume.placement.disks;
        let over = if disks.is_empty() { status.disks.len() } else { disks.len() };
        let rate = stream.contract.rate_bytes_per_second.get() / (over as u64).max(1);
        (lies_on(volume, disk) && takes_room(stream, volume)).then_some(rate)
    };
    Rate::per_second(status.streams.iter().filter_map(of).fold(0, u64::saturating_add))
}

/// True of what writes a thin volume that has not all of its space, or one that its program makes larger.
fn takes_room(stream: &Stream, volume: &Volume) -> bool {
    let has = EXTENT.saturating_mul(volume.extents.iter().sum());
    stream.mode == Mode::Write
        && match (volume.placement.thin, &volume.ring) {
            (true, _) => has < volume.size_bytes,
            (false, Some(_)) => false,
            (false, None) => stream.grows_to_bytes > volume.size_bytes,
        }
}

/// Where the host takes longer than is charged, and charging more was refused.
pub(super) fn of_host(key: String, what: &str, time: &HostTime) -> Option<Finding> {
    let refused = time.refused.as_ref()?;
    let what = format!("{what} takes longer than contracts are charged for: {refused}");
    Some(look(key, what, "end one of these contracts, or take load off this machine"))
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::{overview_of, sound};
    use serde_json::{Value, json};
    use wire::control::Weight;

    /// A pool without room was called sound, and the next camera was refused.
    #[test]
    fn a_disk_without_room_is_told_with_what_to_do() {
        const GIB: u64 = 1 << 30;
        let mut status = sound();
        status["disks"][0]["capacity_bytes"] = json!(100 * GIB);
        let found = |status: &Value| overview_of(status).findings;
        let mut at = |free: u64| {
            status["disks"][0]["free_bytes"] = json!(free);
            found(&status)
        };
        assert_eq!(at(2 * GIB), []);
        let [one] = &at(2 * GIB - 1)[..] else { panic!("it is nearly full") };
        assert_eq!((&*one.key, one.weight), ("disk/0/full", Weight::Look));
        assert!(
            one.what.contains("disk 0 (/dev/sdb) is nearly full: 2.00 GiB of 100 GiB"),
            "{one:?}"
        );
        assert!(one.next_step.contains("volume delete"), "{one:?}");
        assert!(at(4096)[0].what.contains("(/dev/sdb) is full: 4 KiB of"), "{:?}", at(4096));

        // What is written takes 1 MB/s of 3 GB where it reserved nothing.
        assert_eq!(at(3_000_000_000), []);
        status["volumes"][0]["placement"]["thin"] = json!(true);
        let [one] = &found(&status)[..] else { panic!("it is full soon: {:?}", found(&status)) };
        assert!(one.what.contains("is full in 50 min 0 s if what is recorded"), "{one:?}");
        status["volumes"][0]["placement"]["thin"] = json!(false);

        // Rings have all that they need.
        status["disks"][0]["free_bytes"] = json!(0);
        status["volumes"][0]["ring"] = json!({ "start_bytes": 0, "held_bytes": 1 });
        assert_eq!(found(&status).len(), 1, "the ring is not what fills it");
        status["volumes"][0]["extents"] = json!([60 * 1_024]);
        assert_eq!(found(&status), []);
        // But for a thin one, which takes what is free as it is written.
        status["volumes"][0]["placement"]["thin"] = json!(true);
        assert_eq!(found(&status).len(), 1);
    }

    /// A path was gone, and the status said that all contracts are kept and that nothing comes from a camera.
    #[test]
    fn a_disk_that_does_not_come_back_is_told_and_not_the_camera_that_waits_for_it() {
        const SECOND: u64 = 1_000_000_000;
        let mut status = sound();
        status["time_ns"] = json!(1_800_000_000 * SECOND);
        let stream = &mut status["streams"][0];
        (stream["open_ns"], stream["moved_bytes"]) = (json!(900 * SECOND), json!(0));
        let told = |status: &Value| {
            let all = overview_of(status);
            (all.verdict, all.findings.into_iter().map(|one| one.key).collect::<Vec<_>>())
        };
        let silent = ("1 to look at".to_owned(), vec!["stream/3/silent".to_owned()]);
        assert_eq!(told(&status), silent);
        let with = |age: u64, bound: u64| {
            let mut status = status.clone();
            status["disks"][0]["oldest_command"] = json!({ "age_ns": age, "bound_ns": bound });
            status
        };
        // Not before five seconds, and not before ten times as long as it may take.
        assert_eq!(told(&with(5 * SECOND - 1, 1)), silent);
        assert_eq!(told(&with(29 * SECOND, 3 * SECOND)), silent);
        let hangs = ("1 thing is broken".to_owned(), vec!["disk/0/hangs".to_owned()]);
        assert_eq!(told(&with(5 * SECOND, SECOND / 2)), hangs);
        assert_eq!(told(&with(30 * SECOND, 3 * SECOND)), hangs);
        let [one] = &overview_of(&with(90 * SECOND, 12_000_000)).findings[..] else {
            panic!("one")
        };
        assert_eq!(one.weight, Weight::Broken);
        let what = "disk 0 (/dev/sdb) hangs: it has had a command for 1 min 30 s, which takes 12 ms at the most";
        assert!(one.what.starts_with(what), "{one:?}");
        assert!(
            one.next_step.contains("journalctl -k") && one.next_step.contains("FUSE"),
            "{one:?}"
        );
        // Of a volume that lies elsewhere it is the camera all the same.
        let mut other = with(90 * SECOND, 12_000_000);
        other["volumes"][0]["placement"] = json!({ "disks": [1] });
        assert_eq!(told(&other).1, ["disk/0/hangs", "stream/3/silent"]);
    }
}
