//! What a disk still gives of a place of which it does not give all.
//!
//! Invariants: only what the disk itself says that it cannot read counts as that; where it was not asked, or
//! is gone, the read fails as it did. What could not be read is zeros, in whole pieces, and is counted.

use crate::failure::Failure;
use client::{BestEffort, Code, Error, Result};
use units::Bytes;

/// The least that is read: the sector of today's disks.
const SECTOR: Bytes = Bytes::kib(4);

/// Fills `into` with what stands at `at`, both of whole sectors; what of it cannot be read is zeros. Gives how
/// many bytes those are.
pub fn read(volume: &mut BestEffort, at: Bytes, into: &mut [u8]) -> Result<Bytes> {
    sector_by_sector(at, into, |at, into| volume.read_at(at, into))
}

/// The same by any reader.
fn sector_by_sector(
    at: Bytes,
    into: &mut [u8],
    mut read: impl FnMut(Bytes, &mut [u8]) -> Result<()>,
) -> Result<Bytes> {
    match read(at, into) {
        Err(error) if is_of_medium(&error) => {}
        whole => return whole.map(|()| Bytes::ZERO),
    }
    let mut lost = Bytes::ZERO;
    for (sector, n) in into.chunks_mut(SECTOR.as_usize()).zip(0..) {
        let place = at + SECTOR * n;
        // Once more: what a disk could not read just now it may read then, and nothing is asked again
        // after this.
        let tried = read(place, sector).or_else(|error| match is_of_medium(&error) {
            true => read(place, sector),
            false => Err(error),
        });
        match tried {
            Ok(()) => {}
            Err(error) if is_of_medium(&error) => {
                sector.fill(0);
                lost += Bytes::new(sector.len() as u64);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(lost)
}

/// What is told at the end of a copy of which so much could not be read.
pub fn zeros(lost: Bytes) -> Failure {
    let what = format!("{lost} could not be read and came as zeros; the rest is there");
    Failure::new(what, "`slackline pool status` counts the errors of each disk")
}

/// The disk was asked, is there, and could not read it.
pub fn is_of_medium(error: &Error) -> bool {
    error.problem().is_some_and(|problem| problem.code == Code::Medium)
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::{DeviceError, DiskIndex};

    fn failed(errno: i32) -> Error {
        let error = node::Error::Device { disk: DiskIndex(0), error: DeviceError(errno) };
        Error::Problem(Box::new(daemon::problem::of(&error)))
    }

    #[test]
    fn what_cannot_be_read_is_zeros_and_the_rest_is_there() {
        let bad = SECTOR * 7;
        let mut asked = 0;
        let mut into = vec![9; 8 * SECTOR.as_usize()];
        let lost = sector_by_sector(SECTOR * 2, &mut into, |at, into| {
            asked += 1;
            let end = at + Bytes::new(into.len() as u64);
            if at <= bad && bad < end {
                return Err(failed(5));
            }
            into.fill((at / SECTOR) as u8);
            Ok(())
        });
        assert_eq!((lost.unwrap(), asked), (SECTOR, 1 + 8 + 1));
        let first: Vec<u8> = into.chunks(SECTOR.as_usize()).map(|sector| sector[0]).collect();
        assert_eq!(first, [2, 3, 4, 5, 6, 0, 8, 9]);
    }

    #[test]
    fn what_a_disk_could_not_read_once_and_then_could_is_not_lost() {
        let mut asked = 0;
        let mut into = vec![0; SECTOR.as_usize()];
        let lost = sector_by_sector(Bytes::ZERO, &mut into, |_, _| {
            asked += 1;
            if asked < 3 { Err(failed(61)) } else { Ok(()) }
        });
        assert_eq!(lost.unwrap(), Bytes::ZERO);
    }

    /// Zeros in the place of bytes that nobody tried to read would be the end of them.
    #[test]
    fn a_disk_that_was_not_asked_or_is_gone_makes_no_zeros() {
        const ENODEV: i32 = 19;
        for errno in [DeviceError::NO_SLACK.0, ENODEV, 12] {
            let mut asked = 0;
            let read = sector_by_sector(Bytes::ZERO, &mut [0; 8_192], |_, _| {
                asked += 1;
                Err(failed(errno))
            });
            assert!(read.is_err() && asked == 1, "{errno}");
        }
    }
}
