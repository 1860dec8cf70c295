//! Best effort as a program sees it: several requests at a time, anywhere in a volume.

use crate::failure::Failure;
use units::Bytes;

/// A volume that is used as best effort, several requests at a time.
pub trait Random {
    /// Asks for bytes; they come from [`Random::wait`] with the tag given here.
    fn read(&mut self, offset: Bytes, len: Bytes) -> Result<u64, Failure>;
    /// Hands bytes over; the end comes from [`Random::wait`], without bytes.
    fn write(&mut self, offset: Bytes, bytes: &[u8]) -> Result<u64, Failure>;
    /// The next answer, whichever comes first.
    fn wait(&mut self) -> Result<(u64, Vec<u8>), Failure>;
}
