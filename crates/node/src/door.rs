//! The door: what an operation or a configuration may say at all.
//!
//! What a number means for a volume, a stream or a disk is looked at where it is used.
//! Here it is only held to limits that no machine comes near, so that what is made of it
//! later, under the pool's lock, cannot leave 64 bits. Whoever adds an operation says here
//! what it has of numbers: there is no other way in.

use crate::api::*;
use crate::limits;
use units::{Bytes, Duration, Outside};

fn bytes(what: &'static str, amount: Bytes) -> Result<(), Error> {
    amount.checked().map(drop).map_err(|_| Error::Invalid { what, rule: "at most 1 EiB" })
}

/// Holds every number of an operation to its limit.
pub(crate) fn check(op: &Op) -> Result<(), Error> {
    match op {
        Op::VolumeCreate { size, .. }
        | Op::RingCreate { size, .. }
        | Op::VolumeResize { size, .. }
        | Op::VolumeResizeWithin { size, .. } => bytes("size", *size),
        Op::VolumeExtend { length, .. } | Op::VolumeTruncate { length, .. } => bytes("length", *length),
        Op::Staged(op) => check(op),
        Op::VolumeService { service, .. } | Op::HandleOpen { service, .. } => service.check(),
        Op::Block { rate, .. } => match rate.checked() {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Invalid { what: "rate", rule: "at most 1 PiB/s" }),
        },
        Op::StreamOpen { contract, start, .. } | Op::WindowOpen { contract, start, .. } => {
            bytes("start", *start)?;
            Ok(contract.check()?)
        }
        Op::Open { opening, .. } => {
            bytes("start", opening.start)?;
            if opening.miss.is_some_and(|miss| miss > limits::MISS_MAX) {
                return Err(Error::Invalid { what: "miss", rule: "at most 0.1" });
            }
            Ok(opening.contract.check()?)
        }
        Op::StreamChange { contract, .. } => Ok(contract.check()?),
        Op::StreamDurable { beyond: at, .. } | Op::StreamSeek { to: at, .. } => {
            bytes("offset", *at)
        }
        Op::BusSet { bus, .. } => bus.as_ref().map_or(Ok(()), |bus| bus.check()).map_err(|_| {
            let rule = "it names 2 disks or more, and its rate, burst and times are within limits";
            Error::Invalid { what: "bus", rule }
        }),
        Op::ProfileSet { profile, .. } => profile.check().map_err(|_| Error::Invalid {
            what: "profile",
            rule: "of a disk on which 1 MiB, or a flush, takes an hour at the most",
        }),
        Op::Place { len, .. } if len.is_zero() || *len > limits::PLACES_MAX => {
            Err(Error::Invalid { what: "length", rule: "more than nothing, at most 32 MiB" })
        }
        // At most what was given last, or is there: compared, never counted with.
        Op::StreamRead { .. }
        | Op::StreamRoom { .. }
        | Op::StreamAdvance { .. }
        | Op::StreamWrite { .. }
        | Op::WindowMoved { .. } => Ok(()),
        // Held against their volume's end by a sum that is checked; memory goes back there.
        Op::Read { .. } | Op::Room { .. } | Op::Place { .. } | Op::Write { .. } => Ok(()),
        // No numbers but those of the node and its driver, who may have slept for a year.
        Op::HostLatency { .. }
        | Op::Delivery { .. }
        | Op::VolumeDelete { .. }
        | Op::VolumeAccess { .. }
        | Op::VolumeRename { .. }
        | Op::VolumeTimes { .. }
        | Op::RingKeep { .. }
        // Compared with what is recorded, in sums that are held to their bounds.
        | Op::VolumeCopied { .. }
        | Op::StreamSync { .. }
        | Op::StreamClose { .. }
        | Op::StreamBegin { .. }
        | Op::WindowNext { .. }
        | Op::WindowWaits { .. }
        | Op::Release { .. }
        | Op::Sync
        // Compared with a count.
        | Op::SyncVolume { .. }
        | Op::Reprofile { .. }
        | Op::PolicySet { .. }
        | Op::Plan
        | Op::HandleClose { .. }
        | Op::Shutdown => Ok(()),
    }
}

fn host_latency(latency: Duration) -> Result<(), Error> {
    if latency > limits::HOST_LATENCY_MAX {
        return Err(Error::Invalid { what: "host latency", rule: "at most a minute" });
    }
    Ok(())
}

impl Config {
    /// Holds every number of it to its limit.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<(), Error> {
        bytes("memory", self.memory)?;
        host_latency(self.host_latency)?;
        if self.commit_interval > limits::COMMIT_INTERVAL_MAX {
            return Err(Error::Invalid { what: "commit interval", rule: "at most an hour" });
        }
        Ok(())
    }
}
