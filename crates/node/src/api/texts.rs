//! What an [`Error`] says to a person: what is wrong, with its figures, and
//! what to do next.

use crate::api::{DeviceError, DiskIndex, Error, HostCharge, Measured, Outcome, Refusal, Unmoved};
use alloc::format;
use alloc::string::String;
use core::fmt;
use store::{StoreError, VOLUME_NAME_MAX};

/// What is short, without what else might be asked for.
struct Shortage<'a>(&'a Refusal);

impl fmt::Display for Shortage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusal = self.0;
        let percent = refusal.utilisation_ppm.div_ceil(100);
        let (whole, part) = (percent / 100, percent % 100);
        let disk = refusal.disk.0;
        match refusal.deadline {
            None => write!(f, "disk {disk} would be {whole}.{part:02} % utilised")?,
            Some((deadline, excess)) => {
                write!(
                    f,
                    "on disk {disk}, at the deadline {deadline} after a common start, demand exceeds \
                     supply by {excess}"
                )?;
                // One that would fit is no reason, and reads as one where it is not said.
                let fits = if percent < 10_000 { ", which would fit" } else { "" };
                write!(f, " (its utilisation would be {whole}.{part:02} %{fits})")?;
            }
        }
        if let Some(bus) = &refusal.bus {
            write!(f, "; the disk {bus}, which is counted")?;
        }
        Ok(())
    }
}

/// An error of which nobody asked what rate would fit.
struct WithoutRate<'a>(&'a Error);

impl fmt::Display for WithoutRate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::Refused(refusal) => write!(f, "{}", Shortage(refusal)),
            error => write!(f, "{error}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Shortage(self))?;
        if self.undecided {
            write!(f, "; it could not be decided beside what waits now: try again")
        } else if self.rate_max.is_zero() {
            write!(f, "; no rate in these blocks would be admitted")?;
            longer_blocks(f, self)
        } else {
            write!(
                f,
                "; the largest rate in these blocks that would be admitted is {} ({} B/s)",
                self.rate_max,
                self.rate_max.get()
            )?;
            longer_blocks(f, self)
        }
    }
}

/// What longer blocks would take, where that is more.
fn longer_blocks(f: &mut fmt::Formatter<'_>, refusal: &Refusal) -> fmt::Result {
    match refusal.longer {
        Some((block, rate)) => write!(f, ", in blocks of {block} {rate}"),
        None => Ok(()),
    }
}

/// What was measured of the host, and what is charged of it.
struct HostText<'a> {
    disk: DiskIndex,
    host: &'a HostCharge,
}

impl fmt::Display for HostText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostCharge { measured, charged, .. } = self.host;
        let (gap, delivery) = (measured.gap > charged.gap, measured.delivery > charged.delivery);
        let disk = self.disk.0;
        if gap {
            let (measured, charged) = (measured.gap, charged.gap);
            write!(f, "the host takes {measured} between commands on disk {disk}")?;
            write!(f, ", of which {charged} is charged")?;
        }
        if gap && delivery {
            f.write_str(", and ")?;
        }
        if delivery {
            let (measured, charged) = (measured.delivery, charged.delivery);
            write!(f, "answers from disk {disk} take {measured} from the pool to their programs")?;
            write!(f, ", of which {charged} is charged")?;
        }
        Ok(())
    }
}

/// How many contracts do not fit with what was measured.
struct InTheWay<'a>(&'a HostCharge);

impl fmt::Display for InTheWay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let HostCharge { streams, volumes, .. } = *self.0;
        match (streams, volumes) {
            (0, 0) => f.write_str("contracts"),
            (streams, 0) => write!(f, "{streams} stream{}", plural(streams)),
            (0, volumes) => write!(f, "the services of {volumes} volume{}", plural(volumes)),
            (streams, volumes) => write!(
                f,
                "{streams} stream{} and the services of {volumes} volume{}",
                plural(streams),
                plural(volumes)
            ),
        }
    }
}

impl Error {
    /// What is wrong, and what to do next, each by itself. None where only the whole text says it.
    pub fn told(&self) -> Option<(String, String)> {
        use crate::jobs::profiles::listed;
        let nobody = |streams: &[_], volumes: &[_]| streams.is_empty() && volumes.is_empty();
        let (what, next) = match self {
            Error::ProfileRefused { refusal, .. } if refusal.undecided => (
                "with that profile or bus some of what waits now would be late; nothing was changed"
                    .into(),
                "set it again".into(),
            ),
            Error::ProfileRefused { streams, volumes, refusal } => (
                format!(
                    "with that profile or bus {} would not fit any more: {}; nothing was changed",
                    listed(streams, volumes),
                    Shortage(refusal)
                ),
                match nobody(streams, volumes) {
                    true => {
                        "close streams until it does (`slackline stream list` shows them), and set \
                         it again"
                    }
                    false => "close these, or give them less, and set it again",
                }
                .into(),
            ),
            Error::BeyondHost { disk, host, refusal } => (
                format!(
                    "{}, because {} that are open on it do not fit with more; no contract is given \
                     or widened that does not fit with what was measured either: {}",
                    HostText { disk: *disk, host },
                    InTheWay(host),
                    Shortage(refusal)
                ),
                "ask for less, close some of those that are open or give them less (administrators \
                 see which in the status), or let the host do less beside"
                    .into(),
            ),
            Error::BeyondShare { disk, ppm, most, .. } => (
                format!(
                    "the volume's contracts would take {ppm} millionths of disk {}'s time, and may \
                     take {most}",
                    disk.0
                ),
                "close some of them first".into(),
            ),
            Error::BeyondMemory { memory, most, .. } => (
                format!(
                    "the volume's contracts would take {memory} of memory, and may take {most}"
                ),
                "close some of them first".into(),
            ),
            Error::PolicyRefused { policy, streams, volumes, refusal: Some(refusal) } => (
                format!(
                    "under the policy `{policy}` {} would not fit: {}; nothing was changed",
                    listed(streams, volumes),
                    Shortage(refusal)
                ),
                match nobody(streams, volumes) {
                    true => {
                        "start the daemon with that policy, so that it commits less often, and set \
                         it again"
                    }
                    false => "close these, or give them less, and set it again",
                }
                .into(),
            ),
            Error::PolicyRefused { policy, streams, volumes, refusal: None } => {
                let (what, next) = match nobody(streams, volumes) {
                    true => (
                        format!("some of what waits now would be late under the policy `{policy}`"),
                        "set it again when less waits",
                    ),
                    false if policy.keeps_contracts() => (
                        format!(
                            "under the policy `{policy}` blocks come after another time, for which \
                             the windows of {} were not made",
                            listed(streams, volumes)
                        ),
                        "close these, and set it again",
                    ),
                    false => (
                        format!(
                            "the policy `{policy}` keeps no contracts, and there are those of {}",
                            listed(streams, volumes)
                        ),
                        "close these, and set it again",
                    ),
                };
                (format!("{what}; nothing was changed"), next.into())
            }
            _ => return None,
        };
        Some((what, next))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::ProfileRefused { .. }
            | Error::PolicyRefused { .. }
            | Error::BeyondShare { .. }
            | Error::BeyondMemory { .. } => {
                let (what, next) = self.told().expect("of these");
                write!(f, "{what}: {next}")
            }
            Error::BeyondHost { .. } => {
                let (what, next) = self.told().expect("of these");
                write!(f, "contract refused: {what}; {next}")
            }
            Error::Refused(refusal) => write!(f, "contract refused: {refusal}"),
            Error::GroupRefused { members, commit_interval, refusal } => write!(
                f,
                "contract refused: {members} blocks in one command leave the metadata log too little \
                 time, which commits every {commit_interval}: {}; commit less often",
                Shortage(refusal)
            ),
            Error::LogRefused { record, refusal } => write!(
                f,
                "contract refused: with this writer a record of the metadata log may have {} on \
                 each disk, and the log's own contract does not fit so long: {}; close a stream, \
                 or commit less often",
                disk::exact_size(*record),
                Shortage(refusal)
            ),
            Error::GapRefused { disk, gap, undecided: true, .. } => write!(
                f,
                "the host takes {gap} between commands on disk {}, with which some of what waits \
                 now would be late; it is tried again",
                disk.0
            ),
            Error::GapRefused { disk, gap, streams, volumes, refusal, .. } => write!(
                f,
                "the host takes {gap} between commands on disk {}, with which {} would not fit any \
                 more: {}; less is counted on, so that requests may be late: {}, or let the host \
                 do less beside",
                disk.0,
                crate::jobs::profiles::listed(streams, volumes),
                Shortage(refusal),
                match streams.is_empty() && volumes.is_empty() {
                    true => "start the daemon with a longer `--commit-interval`",
                    false => "close these, or give them less",
                }
            ),
            Error::DeliveryRefused { takes, refusal, .. } if refusal.undecided => write!(
                f,
                "answers take {takes} from the pool to their programs, with which some of what \
                 waits now would be late; it is tried again"
            ),
            Error::DeliveryRefused { takes, streams, volumes, refusal } => write!(
                f,
                "answers take {takes} from the pool to their programs, with which {} would not \
                 fit any more: {}; less is counted on, so that answers may be late: {}, or let \
                 the host do less beside",
                crate::jobs::profiles::listed(streams, volumes),
                Shortage(refusal),
                match streams.is_empty() && volumes.is_empty() {
                    true => "start the daemon with a longer `--commit-interval`",
                    false => "close these, or give them less",
                }
            ),
            Error::NoSuchVolume { name } => {
                write!(f, "no volume is named '{name}'; `slackline volume list` shows them")
            }
            Error::VolumeExists { name } => {
                write!(f, "a volume named '{name}' exists; choose another name or delete it first")
            }
            Error::NotEmpty { name } => {
                write!(f, "directory '{name}' is not empty; remove what lies under it first")
            }
            Error::OtherVolume { name } => {
                write!(f, "the volume that was meant is not called '{name}' any more; look again")
            }
            Error::NotPermitted { name, act } => write!(
                f,
                "volume '{name}' does not let you {act}; ask its owner or root (`slackline volume \
                 chmod` and `chown` change who may)"
            ),
            Error::OnlyRoot { what } => {
                write!(f, "{what} is not permitted to you; ask root, or whoever runs the daemon")
            }
            Error::WouldCut { name, recorded, size } => write!(
                f,
                "volume '{name}' has {} recorded and would be cut to {}; say that this may be \
                 lost, or ask for at least what is recorded",
                disk::exact_size(*recorded),
                disk::exact_size(*size)
            ),
            Error::UnderContract { name } => write!(
                f,
                "volume '{name}' is under contract, and is not made smaller; take its contract away first"
            ),
            Error::VolumeBusy { name, streams: 0 } => {
                write!(f, "volume '{name}' is being read or written; try again when that has ended")
            }
            Error::VolumeBusy { name, streams } => write!(
                f,
                "volume '{name}' is in use by {streams} stream(s); close them first (`slackline stream list`)"
            ),
            Error::NoSuchStream { stream } => {
                write!(f, "no stream {} is open; it was closed or never opened", stream.0)
            }
            Error::NoSuchDisk { disk, disks } => {
                write!(
                    f,
                    "no disk {} in this pool; it has disks 0 to {}",
                    disk.0,
                    disks.saturating_sub(1)
                )
            }
            Error::Invalid { what, rule } => write!(f, "{what} is not valid: {rule}"),
            Error::PoolFull { disk, asked, free, .. } => write!(
                f,
                "disk {} has no room: {asked} asked, {free} free there; delete or shrink a volume, or choose other disks",
                disk.0
            ),
            Error::VolumeFull { size } => write!(
                f,
                "the write does not fit: the volume ends at {size}; grow it with `slackline volume resize`"
            ),
            Error::BeyondEnd { size } => {
                write!(f, "beyond the end: the volume's size is {size}; read within it")
            }
            Error::GivenUp { start } => write!(
                f,
                "given up: what the ring holds begins at {}; read from there on",
                start.get()
            ),
            Error::RingTooSmall { size, least } => write!(
                f,
                "for this contract a ring of {size} is too small; record to one of {least} at least, or ask for a smaller rate"
            ),
            Error::NoMemory { asked, free } => write!(
                f,
                "no memory: {asked} asked, {free} free; use smaller blocks or bursts, close a stream, give back what is held, or give the pool more memory"
            ),
            Error::NoServiceMemory { asked, free } => write!(
                f,
                "no memory: a service has {asked} set aside, of a quarter of the pool's for all, and {free} is free; use smaller operations, end the service of another volume, or give the pool more memory"
            ),
            Error::Busy { waiting } => {
                write!(
                    f,
                    "too much is waiting ({waiting} operations); try again when some have ended"
                )
            }
            Error::KeepsNothing { policy } => write!(
                f,
                "the pool's policy `{policy}` keeps no contracts: let it follow one that does (`slackline pool set --policy slack`), or serve with `--no-admission`, where nothing is promised"
            ),
            Error::WrongMode => {
                write!(
                    f,
                    "the stream was opened in the other direction; open one of the right mode"
                )
            }
            Error::Device { disk, error } if *error == DeviceError::NO_SLACK => write!(
                f,
                "disk {} takes so long in this place that the contracts that are open never leave \
                 time for it: close some, or give them less, and try again",
                disk.0
            ),
            Error::Device { disk, error } => write!(
                f,
                "disk {} failed (errno {}); the bytes concerned are lost or unwritten: check the device and `slackline pool check`",
                disk.0, error.0
            ),
            Error::WriteBehind { name, failures, disk, error } => write!(
                f,
                "{failures} write(s) of volume '{name}' failed on disk {} (errno {}) after they were \
                 answered: what was written since it was synced last may be lost; write it again, \
                 and check the device",
                disk.0, error.0
            ),
            Error::Store(error) => write!(f, "{error}"),
            Error::ShuttingDown => {
                write!(f, "the pool is being shut down; try again after it is served again")
            }
            Error::ReadOnly { disk, error } => write!(
                f,
                "the pool is read-only since metadata could not be written on disk {} (errno {}); repair the disk and restart",
                disk.0, error.0
            ),
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reads, over, excess, .. } = self;
        match &self.outcome {
            Outcome::Running { done, planned } => {
                return write!(
                    f,
                    "{done} of {planned} reads done, while nothing else wants the disk"
                );
            }
            Outcome::Holds => write!(f, "all {reads} reads kept within their bounds")?,
            _ => write!(
                f,
                "{over} of {reads} reads took longer than their bound, by {excess} at the most"
            )?,
        }
        match &self.outcome {
            Outcome::Used => f.write_str("; a profile with wider bounds is used and stored"),
            Outcome::Refused(error) => write!(
                f,
                "; a profile with wider bounds is not used: {} (it is tried again when a stream \
                 has closed)",
                WithoutRate(error)
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Unmoved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { offset, error } => write!(
                f,
                "the disk cannot read it (errno {}, at {} in the volume); write these bytes \
                 again from elsewhere, or delete the volume",
                error.0,
                disk::exact_size(*offset)
            ),
            Self::Unwritable { error } => {
                write!(
                    f,
                    "the disk failed to write the copy (errno {}); look after the disk",
                    error.0
                )
            }
            Self::Written => f.write_str("it is being written to, or a write of it failed"),
            Self::Read => f.write_str("reads of it wait for the disk"),
            Self::NoSpace => {
                f.write_str("no other extent is free there; delete or shrink a volume on this disk")
            }
            Self::NoMemory => f.write_str("all memory is in use"),
            Self::Refused(error) => write!(
                f,
                "an open contract on the volume would not fit in the new place: {}",
                WithoutRate(error)
            ),
            Self::Store(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for Error {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::ReadOnly { disk, error } => {
                Self::ReadOnly { disk, error: DeviceError(error.0) }
            }
            // One that is too long stays what it is: programs on files are told so.
            StoreError::BadName { name } if name.len() <= VOLUME_NAME_MAX => Self::Invalid {
                what: "volume name",
                rule: "1 to 255 bytes, no control characters, no empty part between slashes, and no part . or ..",
            },
            StoreError::BadRun { .. } => {
                Self::Invalid { what: "run", rule: "a power of two from 1 MiB to 16 MiB" }
            }
            StoreError::VolumeExists { name } => Self::VolumeExists { name },
            StoreError::NoSuchDisk { disk, disks } => {
                Self::NoSuchDisk { disk, disks: disks as u16 }
            }
            StoreError::NoSpace { disk, asked, free, freeing, fits, .. } => {
                Self::PoolFull { disk, asked, free, freeing, fits }
            }
            other => Self::Store(other),
        }
    }
}
