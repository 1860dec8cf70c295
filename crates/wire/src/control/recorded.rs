//! When volumes were recorded.

use crate::quantity;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration};

/// When the bytes of a volume were recorded, by the wall clock of the daemon's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Recorded {
    /// The first byte, in nanoseconds since 1970.
    pub begins_ns: i64,
    /// The last one. Before `begins_ns` where the clock was set back between them.
    pub ends_ns: i64,
    /// By how much what is told of the bytes between may be off, in nanoseconds: half a second,
    /// and more where the recording had more pauses than there is room for.
    pub within_ns: i64,
}

/// Where in a recording a time is. Times are in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Moment {
    /// At no place: nothing is known of when the volume was recorded.
    Unknown,
    /// Before the first byte.
    Before {
        /// Where the recording begins.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        offset_bytes: Bytes,
        /// When it begins.
        begins_ns: i64,
    },
    /// In the recording.
    At {
        /// Where what was recorded then begins; the latest such place, where the clock was set
        /// back and there are several.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        offset_bytes: Bytes,
    },
    /// In a pause of the recording.
    Pause {
        /// Where it goes on.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        offset_bytes: Bytes,
        /// The last time before at which something was recorded.
        ended_ns: i64,
        /// The first time after.
        resumes_ns: i64,
    },
    /// After the last byte.
    After {
        /// Where the recording ends.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        offset_bytes: Bytes,
        /// When it ended.
        ended_ns: i64,
    },
}

/// The answer to a question for a time or a place of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RecordedFound {
    /// Where the time is that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<Moment>,
    /// When the byte at the place that was asked for was recorded, in nanoseconds since 1970; none
    /// where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<i64>,
    /// By how much this may be off, in nanoseconds.
    pub within_ns: i64,
}

/// Says that a volume is a copy of a part of another: it was recorded when that was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct VolumeCopied {
    /// The volume that was copied.
    pub of: String,
    /// Where in it the copy begins.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub start_bytes: Bytes,
}

/// How far it is known when a copy was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CopyRecorded {
    /// Up to this place of the copy: ask again where that is less than `of_bytes`. Where it does not rise,
    /// the pool has no room for more of the times.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub known_bytes: Bytes,
    /// Up to this place of the copy it is known of what was copied.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub of_bytes: Bytes,
}

/// When volumes were recorded, as far as it lies between two times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Recordings {
    /// By their names; of volumes of which nothing is known there are none.
    pub recordings: Vec<Recording>,
    /// How many volumes come behind the last of these: ask for those after it.
    pub left: u64,
}

/// When a volume was recorded, of what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Recording {
    /// The volume.
    pub volume: String,
    /// In the order of time; none where nothing was recorded between the two times.
    pub spans: Vec<Span>,
}

/// From when to when something was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Span {
    /// The first byte, in nanoseconds since 1970.
    pub begins_ns: i64,
    /// The last one.
    pub ends_ns: i64,
}

/// The clock of the daemon's machine may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClockDoubt {
    /// How far it lies ahead of where it was last, or of the time at which the pool recorded last.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub ahead_ns: Duration,
    /// For how long it is not believed yet.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub for_ns: Duration,
}
