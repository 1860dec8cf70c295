//! The two sizes that all of the store counts in.

use units::Bytes;

/// What space is handed out in: 1 MiB of one disk.
pub const EXTENT: Bytes = Bytes::MIB;
/// The longest run that a volume rotates over its disks by.
pub const RUN_MAX: Bytes = Bytes::mib(16);

/// The smallest piece that metadata and watermarks count in: 4 KiB.
pub const BLOCK: Bytes = Bytes::kib(4);
