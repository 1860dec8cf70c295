//! What comes next in a stream that is read.

use units::Bytes;

/// What comes next in a stream, copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes were read.
    Data(usize),
    /// The disk failed on these bytes; the stream goes on behind them.
    Gap {
        /// Where they start in the volume.
        offset: Bytes,
        /// How many they are.
        len: Bytes,
    },
    /// The volume's recorded data ends here, for now.
    End,
}

/// What comes next in a stream, where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek<'a> {
    /// Bytes, at least one. They stay until they are advanced past.
    Data(&'a [u8]),
    /// The disk failed on these bytes; the stream goes on behind them.
    Gap {
        /// Where they start in the volume.
        offset: Bytes,
        /// How many they are.
        len: Bytes,
    },
    /// The volume's recorded data ends here, for now.
    End,
}
