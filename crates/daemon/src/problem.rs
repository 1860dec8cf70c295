//! A pool's errors as problems: the code for a program, and for a person one
//! line that says what and one that says what to do next.

use node::{DeviceError, DiskIndex, Error, Refusal};
use report::{counted, percent, quoted};
use store::{Fits, StoreError, VOLUME_NAME_MAX};
use units::{Bytes, Duration, Rate};
use wire::control::Service;
use wire::{Code, Problem};

/// The problem that this error of the pool is.
pub fn of(error: &Error) -> Problem {
    if let Some((detail, next)) = error.told() {
        let code = match error {
            Error::BeyondShare { .. } | Error::BeyondMemory { .. } => Code::Quota,
            _ => Code::Refused,
        };
        let passes = matches!(error, Error::BeyondHost { .. });
        return Problem { passes, ..Problem::new(code, detail, next) };
    }
    match error {
        Error::Refused(refusal) => refused(refusal),
        Error::GroupRefused { members, commit_interval, refusal } => Problem::new(
            Code::Refused,
            format!(
                "the blocks of {members} writers in one command would leave the metadata log, which \
                 commits every {commit_interval}, too little time: {}",
                refused(refusal).detail
            ),
            "let the daemon commit less often (`slackline serve --commit-interval 6s`), or close a \
             stream",
        ),
        Error::LogRefused { record, refusal } => Problem::new(
            Code::Refused,
            format!(
                "with this writer the metadata log may have to write {record} on each disk in a \
                 commit, and its own contract does not fit so long: {}",
                refused(refusal).detail
            ),
            "close a stream, or let the daemon commit less often (`--commit-interval`)",
        ),
        // The first two are shown in the status, and nobody asks for them; the others were told above.
        Error::GapRefused { .. }
        | Error::DeliveryRefused { .. }
        | Error::ProfileRefused { .. }
        | Error::PolicyRefused { .. }
        | Error::BeyondHost { .. }
        | Error::BeyondShare { .. }
        | Error::BeyondMemory { .. } => {
            Problem::new(Code::Refused, error.to_string(), "close some streams")
        }
        Error::KeepsNothing { policy } => Problem::new(
            Code::Refused,
            format!("the pool's policy `{policy}` keeps no contracts, and contracts are admitted"),
            "let it follow one that keeps them (`slackline pool set --policy slack`), or start \
             the daemon with `--no-admission`, where nothing is promised",
        ),
        Error::NoSuchVolume { name } => Problem::new(
            Code::NoSuchVolume,
            format!("there is no volume \"{name}\""),
            format!(
                "list those that you may see with `slackline volume list`, or make it: `slackline \
                 volume create {} --size SIZE`",
                quoted(name)
            ),
        ),
        Error::NotEmpty { name } => Problem::new(
            Code::NotEmpty,
            format!("the directory \"{name}\" is not empty"),
            "remove what lies under it first",
        ),
        Error::OtherVolume { name } => Problem::new(
            Code::OtherVolume,
            format!("the volume that was meant is not called \"{name}\" any more"),
            "look at what has this name, and ask again",
        ),
        Error::NotPermitted { name, act } => Problem::new(
            match act {
                node::Act::Read | node::Act::Write => Code::NotPermitted,
                node::Act::Own => Code::Forbidden,
            },
            format!("volume \"{name}\" does not let you {act}"),
            "ask its owner or root; `slackline volume chmod` and `chown` change who may",
        ),
        Error::OnlyRoot { what } => Problem::new(
            Code::Forbidden,
            format!("{what} is not permitted to you"),
            "ask root, or the user that runs the daemon",
        ),
        Error::WouldCut { name, recorded, size } => Problem::new(
            Code::WouldCut,
            format!(
                "volume \"{name}\" has {recorded} recorded ({} bytes), of which {} would be left",
                recorded.get(),
                size
            ),
            "say that the rest may be lost (`--yes`), or ask for at least what is recorded",
        ),
        Error::UnderContract { name } => Problem::new(
            Code::Invalid,
            format!("volume \"{name}\" is under contract, and is not made smaller"),
            format!(
                "take its contract away (`slackline volume set {} --priority normal`; one of a \
                 connection ends with that), then ask again",
                quoted(name)
            ),
        ),
        Error::VolumeExists { name } => Problem::new(
            Code::VolumeExists,
            format!("there is a volume \"{name}\" already"),
            format!(
                "choose another name, or remove it with `slackline volume delete {}`",
                quoted(name)
            ),
        ),
        Error::VolumeBusy { name, streams } => Problem::new(
            Code::VolumeBusy,
            format!("volume \"{name}\" has {}", counted(*streams, "open stream")),
            "close them first; `slackline stream list` shows them",
        ),
        Error::NoSuchStream { stream } => Problem::new(
            Code::NoSuchStream,
            format!("there is no stream {}; it may have been closed", stream.0),
            "list the streams with `slackline stream list`",
        ),
        Error::NoSuchDisk { disk, disks } => Problem::new(
            Code::NoSuchDisk,
            format!(
                "there is no disk {}; the pool has {}",
                disk.0,
                counted(u64::from(*disks), "disk")
            ),
            "disks count from 0; `slackline pool status` shows them",
        ),
        Error::WrongMode => Problem::new(
            Code::WrongMode,
            "the stream was opened in the other direction",
            "open a stream of its own for each direction",
        ),
        Error::Invalid { what: "profile", rule } => of_profile(rule),
        Error::Invalid { what, rule } => Problem::new(
            Code::Invalid,
            format!("{what}: {rule}"),
            "correct the value and ask again",
        ),
        Error::ShuttingDown => Problem::new(
            Code::ShuttingDown,
            "the daemon is stopping and takes no new work",
            "start it again and repeat the request",
        ),
        Error::PoolFull { .. }
        | Error::VolumeFull { .. }
        | Error::BeyondEnd { .. }
        | Error::GivenUp { .. }
        | Error::RingTooSmall { .. }
        | Error::NoMemory { .. }
        | Error::NoServiceMemory { .. }
        | Error::Busy { .. } => of_space(error),
        Error::Device { .. } | Error::WriteBehind { .. } | Error::ReadOnly { .. } => {
            of_device(error)
        }
        Error::Store(error) => of_store(error),
    }
}

/// A name that no policy has.
pub fn of_policy(error: policies::UnknownPolicy) -> Problem {
    let next = "choose one of these; docs/policies.md says what each promises";
    Problem::new(Code::Invalid, error.to_string(), next)
}

/// A setting that the policy does not have, or a value that it does not take.
pub fn of_setting(error: node::WrongSetting) -> Problem {
    let next = "`slackline pool settings` lists the settings with their limits, and so does \
                docs/policies.md";
    Problem::new(Code::Invalid, error.to_string(), next)
}

/// A text that cannot be read as a profile.
pub fn of_profile(error: impl std::fmt::Display) -> Problem {
    let next = "give what `slackline disk profile` wrote, or correct it";
    Problem::new(Code::Invalid, format!("the profile: {error}"), next)
}

/// The problem that this error is where a volume asked for a service, while streams were open or
/// none was.
pub fn of_service(error: &Error, service: &Service, streams_are_open: bool) -> Problem {
    let problem = of(error);
    let Error::Refused(refusal) = error else { return problem };
    if refusal.undecided {
        return problem;
    }
    let (less, close) = match service {
        Service::Latency { .. } => {
            let time = match refusal.within.map(exactly) {
                Some(within) => {
                    format!("{within} would fit: ask for `--within {within}`")
                }
                None => "ask for more time (`--within`)".into(),
            };
            let fewer = "for fewer operations (`--every`) or smaller ones (`--block`)";
            (format!("{time}, {fewer}"), ", or close a stream whose blocks are large")
        }
        Service::Rate { .. } => {
            let rate = match refusal.rate_max {
                Rate::ZERO => "ask for a lower rate".into(),
                rate => format!(
                    "the largest rate that fits so is {rate}: ask for `--best-effort-rate {}B/s`",
                    rate.get()
                ),
            };
            let larger = "in larger operations (`--block`) or over a longer time (`--period`)";
            (format!("{rate}, {larger}"), ", or close a stream")
        }
        Service::BestEffort { .. } => return problem,
    };
    let close = if streams_are_open { close } else { "" };
    Problem { next_step: format!("{less}{close}: `slackline plan` tells more"), ..problem }
}

/// A time in tenths of a millisecond, of which no digit is lost.
fn exactly(time: Duration) -> String {
    let tenths = time.as_nanos() / 100_000;
    match tenths % 10 {
        0 => format!("{}ms", tenths / 10),
        rest => format!("{}.{rest}ms", tenths / 10),
    }
}

/// What the store refuses in its own words, which end in what to do.
fn of_store(error: &StoreError) -> Problem {
    let code = match error {
        StoreError::ReadOnly { .. } => Code::ReadOnly,
        StoreError::VolumeExists { .. } => Code::VolumeExists,
        StoreError::NoSuchVolume { .. } => Code::NoSuchVolume,
        StoreError::NoSuchDisk { .. } => Code::NoSuchDisk,
        StoreError::NoSpace { .. } | StoreError::MetadataFull { .. } | StoreError::NumbersSpent => {
            Code::PoolFull
        }
        StoreError::BadName { name } if name.len() > VOLUME_NAME_MAX => Code::NameTooLong,
        StoreError::BadName { .. }
        | StoreError::RingTooSmall { .. }
        | StoreError::RingResized
        | StoreError::RingCopied
        | StoreError::NoRing
        | StoreError::BadKeep
        | StoreError::BadRun { .. }
        | StoreError::DiskTwice { .. }
        | StoreError::TooLarge { .. }
        | StoreError::ProfileTooLarge { .. } => Code::Invalid,
    };
    let text = error.to_string();
    let (detail, next_step) = text.rsplit_once("; ").unwrap_or((&text, "correct it and ask again"));
    Problem::new(code, detail, next_step)
}

/// A disk has no room for its part of a volume.
fn no_room(
    disk: DiskIndex,
    (asked, free, freeing): (Bytes, Bytes, Bytes),
    fits: Option<&Fits>,
) -> Problem {
    let disk = disk.0;
    // Two figures of three digits may look the same.
    let lacks = asked.saturating_sub(free);
    let mut what = format!(
        "disk {disk} has {free} free, and {asked} of the volume would lie there: {lacks} more than it has"
    );
    if !freeing.is_zero() {
        what += &format!("; {freeing} come free with the next commit");
    }
    if free.saturating_add(freeing) >= asked {
        // Nobody has to do anything.
        let next = "try again in a second";
        return Problem { passes: true, ..Problem::new(Code::PoolFull, what, next) };
    }
    let mut next = Vec::new();
    if let Some(fits) = fits {
        let disks: Vec<String> = fits.disks.iter().map(|disk| disk.0.to_string()).collect();
        let disks = disks.join(",");
        let create = format!(
            "`slackline volume create NAME --size SIZE --disks {disks}`, with `--ring` for a ring"
        );
        if fits.is_enough {
            next.push(format!("make it on disks that have room for it: {create}"));
        } else if fits.there > fits.most {
            next.push(format!("ask for {} at the most, on other disks: {create}", fits.there));
        }
        if !fits.most.is_zero() && !fits.is_enough {
            let more = if next.is_empty() { "make it" } else { "or on these disks" };
            next.push(format!("{more} {} in all at the most", fits.most));
        } else if !fits.most.is_zero() {
            next.push(format!("or {} at the most on these disks", fits.most));
        }
    }
    let rest = format!("delete or shrink a volume on disk {disk}");
    next.push(if next.is_empty() { rest } else { format!("or {rest}") });
    Problem::new(Code::PoolFull, what, next.join("; "))
}

/// Errors for want of space or memory.
fn of_space(error: &Error) -> Problem {
    match error {
        Error::PoolFull { disk, asked, free, freeing, fits } => {
            no_room(*disk, (*asked, *free, *freeing), fits.as_deref())
        }
        Error::VolumeFull { size } => Problem::new(
            Code::VolumeFull,
            format!("the write does not fit: the volume ends at {size}"),
            "grow the volume with `slackline volume resize`; what was accepted before is kept",
        ),
        Error::BeyondEnd { size } => Problem::new(
            Code::BeyondEnd,
            format!("the access lies behind the end, which is at {size}"),
            "`slackline volume show` tells the size of the volume, and what of it is recorded",
        ),
        Error::GivenUp { start } => Problem::new(
            Code::GivenUp,
            format!("the ring has given these bytes up: what it holds begins at {}", start.get()),
            "read from there on; `slackline volume show` tells what a ring holds",
        ),
        Error::RingTooSmall { size, least } => Problem::new(
            Code::Invalid,
            format!(
                "for this contract a ring of {size} is too small: more than half of it would be \
                 given up ahead of the writer"
            ),
            format!("record to a ring of {least} at least, or ask for a smaller rate or blocks"),
        ),
        Error::NoMemory { asked, free } => Problem::new(
            Code::NoMemory,
            format!("the window needs {asked} of memory, {free} is free"),
            "close a stream, ask for smaller blocks or a smaller burst, or give the daemon more \
             with `slackline serve --memory`",
        ),
        Error::NoServiceMemory { asked, free } => Problem::new(
            Code::NoMemory,
            format!(
                "the service needs {asked} of memory set aside for its operations, {free} is free: all \
                 services together have a quarter of the memory at most"
            ),
            "ask for smaller operations (`block`) or, with a rate, a shorter `period`, end the service of \
             another volume, or give the daemon more with `slackline serve --memory`",
        ),
        Error::Busy { waiting } => Problem::new(
            Code::Busy,
            format!("{} waiting already", counted_are(*waiting, "request")),
            "wait for some to end, then try again",
        ),
        other => unreachable!("{other:?} is no error of space"),
    }
}

/// What to do where the host of a disk has no room for its file, or no memory.
pub(crate) const MAKE_ROOM: &str = "where the file system of the disk's file is full (`df`), or a quota or \
                                    a limit is reached, make room; if the machine is short of memory, \
                                    free some";

/// Errors of a disk.
fn of_device(error: &Error) -> Problem {
    match error {
        Error::Device { error: DeviceError::NO_SLACK, .. } => Problem::new(
            Code::Device,
            error.to_string(),
            "`slackline stream list` and `slackline volume list` show who has contracts",
        ),
        Error::Device { disk, error } => Problem::new(
            if error.is_of_medium() { Code::Medium } else { Code::Device },
            format!("disk {} failed: {}", disk.0, device(*error)),
            match error.is_of_host() {
                true => MAKE_ROOM,
                false => {
                    "look at the kernel's log; `slackline pool status` counts the errors of each disk"
                }
            },
        ),
        Error::WriteBehind { name, failures, disk, error } => Problem::new(
            Code::Device,
            format!(
                "{failures} write(s) of volume '{name}' failed on disk {} after they were answered: {}; \
                 what was written since the last sync may be lost",
                disk.0,
                device(*error)
            ),
            match error.is_of_host() {
                true => format!("{MAKE_ROOM}; then write it again"),
                false => "write it again, and look at the kernel's log".into(),
            },
        ),
        Error::ReadOnly { disk, error } => Problem::new(
            Code::ReadOnly,
            format!(
                "metadata could not be written to disk {}: {}; the pool is read-only",
                disk.0,
                device(*error)
            ),
            match error.is_of_host() {
                true => format!("{MAKE_ROOM}; then start the daemon again"),
                false => "stop the daemon, repair the disk, and run `slackline pool check`".into(),
            },
        ),
        other => unreachable!("{other:?} is no error of a disk"),
    }
}

fn refused(refusal: &Refusal) -> Problem {
    let disk = refusal.disk.0;
    let mut detail = match bound(refusal) {
        Some(bound) => format!("disk {disk} cannot keep this contract: {bound}"),
        None => format!(
            "disk {disk} could not decide now whether it keeps this contract, beside what waits \
             at this moment"
        ),
    };
    if let Some(bus) = &refusal.bus {
        detail.push_str(&format!("; the disk {bus}, which is counted"));
    }
    if refusal.parts > 1 {
        let parts = refusal.parts;
        detail
            .push_str(&format!("; a block lies in up to {parts} runs there, each of them counted"));
    }
    let rate = refusal.rate_max;
    let mut next_step = if refusal.undecided {
        "try again soon, or when less waits".into()
    } else if rate.is_zero() {
        format!(
            "no rate fits in these blocks; use {} (`slackline plan` compares them: longer ones \
             take less of the disk, but what is due sooner, the metadata log included, waits for all \
             of one), close a stream on disk {disk}, or place the volume on another disk",
            refusal.longer.map_or_else(|| "others".into(), in_blocks),
        )
    } else {
        format!(
            "the largest rate that fits in these blocks is {rate}: ask for `--rate {}B/s`{}, or \
             close a stream",
            rate.get(),
            refusal.longer.map(|it| format!(", use {}", in_blocks(it))).unwrap_or_default(),
        )
    };
    if refusal.parts > 1 && !refusal.undecided {
        next_step.push_str(
            ", or use a volume of longer runs (`slackline volume create --run`), or smaller blocks",
        );
    }
    let mut problem = Problem::new(Code::Refused, detail, next_step);
    problem.refusal = Some(wire::Refusal {
        disk,
        utilisation_ppm: refusal.utilisation_ppm,
        deadline_ns: refusal.deadline.map(|(deadline, _)| deadline),
        excess_ns: refusal.deadline.map(|(_, excess)| excess),
        rate_max_bytes_per_second: rate,
        bus: refusal.bus.as_deref().map(crate::bus::told).map(Box::new),
        longer: refusal.longer.map(|(block, rate)| wire::control::LongerBlocks {
            block_bytes: block,
            rate_bytes_per_second: rate,
        }),
        within_ns: refusal.within,
        undecided: refusal.undecided,
    });
    problem
}

/// Which bound the contract exceeds; none where nothing was found to be too much. A utilisation that
/// would fit is no reason, and is named as such: beside a refusal it reads as one.
fn bound(refusal: &Refusal) -> Option<String> {
    let ppm = refusal.utilisation_ppm;
    let utilisation = match ppm {
        // Nobody reads a percentage of eight digits.
        10_000_000.. => format!("it would need {} times the disk's time", ppm / 1_000_000),
        _ => format!("its utilisation would be {}", percent(ppm)),
    };
    let is_beyond = ppm >= 1_000_000;
    let beyond = if is_beyond { format!("{utilisation}, and ") } else { String::new() };
    Some(match refusal.deadline {
        None if refusal.undecided => return None,
        None if is_beyond => utilisation,
        None => format!("{utilisation}, which is more than contracts may take of it"),
        Some((deadline, _)) if deadline.is_zero() => {
            format!("{beyond}a block would be due before the disk can have answered")
        }
        Some((deadline, excess)) => {
            let late = format!(
                "{beyond}by the deadline {deadline} after a common start it would be asked for \
                 {excess} more time than there is"
            );
            match is_beyond {
                true => late,
                false => format!("{late} (its utilisation, {}, would fit)", percent(ppm)),
            }
        }
    })
}

/// Blocks that do better than those that were asked for, and what fits in them.
fn in_blocks((block, rate): (Bytes, Rate)) -> String {
    let block = block.to_string();
    format!("blocks of {block} (`--block {}`), in which {rate} fits", block.replace(' ', ""))
}

fn counted_are(n: u64, what: &str) -> String {
    format!("{} {}", counted(n, what), if n == 1 { "is" } else { "are" })
}

fn device(error: DeviceError) -> String {
    std::io::Error::from_raw_os_error(error.0.saturating_abs()).to_string()
}

/// What is said where a task of ours has ended by a fault.
pub(crate) fn fault() -> Problem {
    Problem::new(Code::Internal, "the request ended in a fault", "see the daemon's messages")
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{BusPlan, BusShare};
    use node::{DiskIndex, Host, HostCharge};

    #[test]
    fn a_refusal_says_all_its_figures_in_words() {
        let problem = of(&Error::Refused(Refusal {
            disk: DiskIndex(0),
            utilisation_ppm: 1_023_456,
            deadline: Some((Duration::from_millis(507), Duration::from_millis(7))),
            rate_max: Rate::per_second(817_432),
            longer: None,
            within: None,
            bus: None,
            undecided: false,
            parts: 1,
        }));
        assert_eq!(
            problem.detail,
            "disk 0 cannot keep this contract: its utilisation would be 102.34 %, and by the \
             deadline 507 ms after a common start it would be asked for 7 ms more time than there is"
        );
        assert_eq!(
            problem.next_step,
            "the largest rate that fits in these blocks is 817 kB/s: ask for `--rate 817432B/s`, \
             or close a stream"
        );
        assert_eq!(problem.refusal.unwrap().excess_ns, Some(Duration::from_millis(7)));
    }

    /// "Utilisation 24 %" beside a refusal reads as a contradiction: what refuses is the deadline.
    #[test]
    fn a_refusal_names_the_bound_that_refuses() {
        let detail = |utilisation_ppm, deadline: Option<(u64, u64)>| {
            let ms = Duration::from_millis;
            of(&Error::Refused(Refusal {
                disk: DiskIndex(0),
                utilisation_ppm,
                deadline: deadline.map(|(deadline, excess)| (ms(deadline), ms(excess))),
                rate_max: Rate::ZERO,
                longer: None,
                within: None,
                bus: None,
                undecided: false,
                parts: 1,
            }))
            .detail
        };
        for (utilisation_ppm, deadline, said) in [
            (
                240_800,
                Some((30, 2)),
                "by the deadline 30 ms after a common start it would be asked for 2 ms more time \
                 than there is (its utilisation, 24.08 %, would fit)",
            ),
            (240_800, Some((0, 2)), "a block would be due before the disk can have answered"),
            (
                960_000,
                None,
                "its utilisation would be 96.00 %, which is more than contracts may take of it",
            ),
            (1_200_000, None, "its utilisation would be 120.00 %"),
        ] {
            let all = format!("disk 0 cannot keep this contract: {said}");
            assert_eq!(detail(utilisation_ppm, deadline), all);
        }
    }

    /// Who was told to delete a volume had just done so.
    #[test]
    fn room_that_comes_with_the_next_commit_is_waited_for() {
        let full = |free, freeing| {
            let (disk, free, freeing) = (DiskIndex(0), Bytes::mib(free), Bytes::mib(freeing));
            of(&Error::PoolFull { disk, asked: Bytes::mib(10), free, freeing, fits: None })
        };
        let soon = full(4, 6);
        assert!(soon.passes && soon.next_step == "try again in a second", "{}", soon.next_step);
        let never = full(4, 5);
        assert!(!never.passes && never.next_step.contains("delete"), "{}", never.next_step);
    }

    /// A host that is late for a while passes by itself; a disk that has not the time does not.
    #[test]
    fn what_passes_by_itself_is_said_to() {
        let host = |us| Host { gap: Duration::from_micros(us), delivery: Duration::ZERO };
        let refusal = Refusal {
            disk: DiskIndex(0),
            utilisation_ppm: 240_800,
            deadline: Some((Duration::from_millis(30), Duration::from_millis(2))),
            rate_max: Rate::ZERO,
            longer: None,
            within: None,
            bus: None,
            undecided: false,
            parts: 1,
        };
        // A service is not advised to close a stream where none is open.
        let rate = Service::Rate {
            rate_bytes_per_second: Rate::per_second(1),
            block_bytes: Bytes::kib(64),
            period_ns: Duration::from_secs(1),
        };
        let next = |streams| of_service(&Error::Refused(refusal.clone()), &rate, streams).next_step;
        assert!(next(true).contains("(`--period`), or close a stream: `slackline plan`"));
        assert!(next(false).contains("(`--period`): `slackline plan`"), "{}", next(false));
        let time = Duration::from_millis(30);
        let latency =
            Service::Latency { len_bytes: Bytes::kib(4), within_ns: time, every_ns: time };
        let told = Refusal { within: Some(Duration::from_micros(41_300)), ..refusal.clone() };
        let told = of_service(&Error::Refused(told), &latency, false).next_step;
        assert!(
            told.starts_with("41.3ms would fit: ask for `--within 41.3ms`, for fewer"),
            "{told}"
        );
        let (measured, charged) = (host(5_900), host(1_970));
        let charge = HostCharge { measured, charged, streams: 1, volumes: 0 };
        let beyond = Error::BeyondHost {
            disk: DiskIndex(0),
            host: Box::new(charge),
            refusal: Box::new(refusal.clone()),
        };
        let problem = of(&beyond);
        assert!(
            problem.passes && problem.detail.starts_with("the host takes 5.90 ms "),
            "{problem:?}"
        );
        assert!(!of(&Error::Refused(refusal)).passes);
    }

    /// Longer blocks are named where they help, with what they would take; and nobody is told of
    /// a utilisation of millions of percent.
    #[test]
    fn a_refusal_names_longer_blocks_only_where_they_take_more() {
        let refusal = |longer| Refusal {
            disk: DiskIndex(0),
            utilisation_ppm: 221_307_728_900,
            deadline: None,
            rate_max: Rate::per_second(817_432),
            longer,
            within: None,
            bus: None,
            undecided: false,
            parts: 1,
        };
        let problem = of(&Error::Refused(refusal(None)));
        assert!(problem.detail.ends_with("it would need 221307 times the disk's time"));
        assert!(!problem.next_step.contains("blocks of"), "{}", problem.next_step);
        let longer = (Bytes::mib(4), Rate::per_second(2_000_000));
        let problem = of(&Error::Refused(refusal(Some(longer))));
        assert_eq!(
            problem.next_step,
            "the largest rate that fits in these blocks is 817 kB/s: ask for `--rate 817432B/s`, use \
             blocks of 4 MiB (`--block 4MiB`), in which 2 MB/s fits, or close a stream"
        );
        let longer = problem.refusal.unwrap().longer.unwrap();
        assert_eq!(
            (longer.block_bytes.get(), longer.rate_bytes_per_second.get()),
            (4 << 20, 2_000_000)
        );
    }

    /// Who is refused because three disks share a bus should look for another bus, not for
    /// another disk.
    #[test]
    fn a_refusal_names_the_bus_that_the_disk_shares() {
        let bus = BusPlan::new("scsi0", Rate::per_second(20_000_000), 3);
        let problem = of(&Error::Refused(Refusal {
            disk: DiskIndex(2),
            utilisation_ppm: 1_000_000,
            deadline: None,
            rate_max: Rate::ZERO,
            longer: None,
            within: None,
            bus: Some(Box::new(BusShare::new(bus).unwrap())),
            undecided: false,
            parts: 1,
        }));
        assert!(
            problem.detail.ends_with(
                "; the disk shares the bus scsi0 (20 MB/s) with 2 others; a command waits up to \
                 105 ms for it, which is counted"
            ),
            "{}",
            problem.detail
        );
        let bus = problem.refusal.unwrap().bus.unwrap();
        assert_eq!((bus.name.as_str(), bus.disks), ("scsi0", 3));
        assert_eq!(bus.wait_max_ns, Duration::from_nanos(104_857_600));
    }

    #[test]
    fn no_error_of_a_pool_ends_as_a_fault_of_slackline() {
        let (disk, error) = (DiskIndex(1), DeviceError(5));
        let (asked, free, size) = (Bytes::GIB, Bytes::MIB, Bytes::GIB);
        let name = || String::from("v");
        let errors = [
            Error::KeepsNothing { policy: node::Policy::EDF.into() },
            Error::PolicyRefused {
                policy: node::Policy::EDF.into(),
                streams: vec![node::StreamId(1)],
                volumes: Vec::new(),
                refusal: None,
            },
            Error::LogRefused {
                record: size,
                refusal: Box::new(Refusal {
                    disk,
                    utilisation_ppm: 990_000,
                    deadline: None,
                    rate_max: Rate::ZERO,
                    longer: None,
                    within: None,
                    bus: None,
                    undecided: false,
                    parts: 1,
                }),
            },
            Error::NoSuchVolume { name: name() },
            Error::NotEmpty { name: name() },
            Error::OtherVolume { name: name() },
            Error::NotPermitted { name: name(), act: node::Act::Write },
            Error::OnlyRoot { what: "it" },
            Error::WouldCut { name: name(), recorded: asked, size: free },
            Error::UnderContract { name: name() },
            Error::VolumeExists { name: name() },
            Error::VolumeBusy { name: name(), streams: 1 },
            Error::NoSuchStream { stream: node::StreamId(3) },
            Error::NoSuchDisk { disk, disks: 1 },
            Error::Invalid { what: "block", rule: "a power of two from 4 KiB to 32 MiB" },
            Error::PoolFull { disk, asked, free, freeing: free, fits: None },
            Error::VolumeFull { size },
            Error::BeyondEnd { size },
            Error::GivenUp { start: size },
            Error::RingTooSmall { size, least: asked },
            Error::NoMemory { asked, free },
            Error::NoServiceMemory { asked, free },
            Error::Busy { waiting: 64 },
            Error::WrongMode,
            Error::Device { disk, error },
            Error::WriteBehind { name: name(), failures: 2, disk, error },
            Error::ShuttingDown,
            Error::ReadOnly { disk, error },
            Error::Store(StoreError::BadName { name: "a/b".into() }),
            Error::Store(StoreError::DiskTwice { disk }),
            Error::Store(StoreError::MetadataFull { needed: asked, room: free, most: None }),
        ];
        for error in &errors {
            let problem = of(error);
            assert_ne!(problem.code, Code::Internal, "{error:?}");
            for line in [&problem.detail, &problem.next_step] {
                assert!(!line.is_empty() && !line.contains('\n'), "{error:?}: {line}");
            }
        }
        // A service has no window, and no burst.
        let service = of(&Error::NoServiceMemory { asked, free });
        let words = format!("{}; {}", service.detail, service.next_step);
        assert!(!words.contains("window") && !words.contains("burst"), "{words}");
        let fits = |disks: &[u16], there, is_enough| {
            let disks = disks.iter().map(|&disk| DiskIndex(disk)).collect();
            let fits = Some(Box::new(Fits { most: Bytes::mib(9), disks, there, is_enough }));
            of(&Error::PoolFull { disk, asked, free, freeing: Bytes::ZERO, fits }).next_step
        };
        let there = fits(&[1, 3], Bytes::mib(40), true);
        assert!(
            there.contains(
                "--disks 1,3`, with `--ring` for a ring; or 9 MiB at the most on these disks; or del"
            ),
            "{there}"
        );
        let larger = fits(&[2], Bytes::mib(20), false);
        assert!(larger.contains("ask for 20 MiB at the most, on other disks"), "{larger}");
        let grown = fits(&[], Bytes::ZERO, false);
        assert!(grown.starts_with("make it 9 MiB in all at the most; or delete"), "{grown}");
        let failed = errors.iter().find(|error| matches!(error, Error::Device { .. }));
        let failed = of(failed.expect("it is among them"));
        assert!(failed.detail.contains("Input/output error"), "the errno in words");
    }
}
