//! What the Clockwise thesis prints of the machine *cello*: its disks, its days, and
//! the loads that [`Cello`](super::Cello) is fitted to.

use units::Duration;

/// Disks of the machine (table 3.2).
pub const DISKS: u32 = 8;
/// Days of the trace (section 3.2.2); day 0 is a Saturday in April 1992.
pub const DAYS: u32 = 63;
/// The day that the thesis plays back, June 1st, 1992.
pub const BUSIEST_DAY: u32 = 44;
/// Requests in the whole trace (table 3.3).
pub const REQUESTS: u64 = 29_351_277;

const DAY: u64 = 86_400;

/// The day that the thesis plays back, as a part of the trace.
pub const BUSIEST: std::ops::Range<Duration> =
    Duration::from_secs(44 * DAY)..Duration::from_secs(45 * DAY);

/// The 1300 seconds that it plays against the real system (section 7.1): 16:48:00 to
/// 17:09:40. The caption of table 7.1 says 17:48, the text and the length 16:48.
pub const WINDOW: std::ops::Range<Duration> =
    Duration::from_secs(44 * DAY + 60_480)..Duration::from_secs(44 * DAY + 61_780);

/// A disk's load over a span: how many requests, and the most in a part of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Requests in all.
    pub requests: u64,
    /// The most in one of the parts.
    pub peak: u64,
}

const fn printed(requests: u64, peak: u64) -> Printed {
    Printed { requests, peak }
}

/// Table 6.5: the busiest day, disk by disk; the peak is that of a minute.
pub const BUSIEST_LOADS: [Printed; 8] = [
    printed(200_796, 2_654),
    printed(3_973, 1_777),
    printed(193_539, 2_840),
    printed(2_054, 994),
    printed(431, 144),
    printed(122_730, 2_598),
    printed(249_801, 2_412),
    printed(27_683, 1_349),
];

/// Table 7.1: the 1300 seconds, disk by disk; the peak is that of a second.
pub const WINDOW_LOADS: [Printed; 8] = [
    printed(31_066, 130),
    printed(0, 0),
    printed(1_015, 42),
    printed(6, 6),
    printed(6, 6),
    printed(8_401, 88),
    printed(12_427, 207),
    printed(831, 31),
];

/// When a disk's load was at its highest in the whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Highest {
    /// The day, from 0.
    pub day: u32,
    /// The hour of the day, from 0.
    pub hour: u32,
    /// The minute of the hour.
    pub minute: u32,
    /// Requests in that hour or minute.
    pub requests: u64,
}

const fn highest(day: u32, hour: u32, minute: u32, requests: u64) -> Highest {
    Highest { day, hour, minute, requests }
}

/// Table 3.4: the highest load of an hour, disk by disk.
pub const HIGHEST_HOURS: [Highest; 8] = [
    highest(44, 15, 0, 41_119),
    highest(7, 6, 0, 4_078),
    highest(16, 11, 0, 75_921),
    highest(58, 10, 0, 49_025),
    highest(3, 11, 0, 10_509),
    highest(44, 16, 0, 91_052),
    highest(15, 1, 0, 72_011),
    highest(9, 14, 0, 21_588),
];

/// Table 3.5: the highest load of a minute, disk by disk.
pub const HIGHEST_MINUTES: [Highest; 8] = [
    highest(10, 13, 5, 5_827),
    highest(4, 13, 10, 1_956),
    highest(55, 13, 46, 4_057),
    highest(13, 12, 34, 4_132),
    highest(3, 11, 7, 1_471),
    highest(39, 13, 52, 3_908),
    highest(47, 10, 12, 2_937),
    highest(51, 19, 42, 3_017),
];

/// How the load of an ordinary day lies over its hours, in parts of a thousand of the
/// busiest: people from 8 to 19 o'clock, the jobs of the night at about 5:30
/// (figure 3.4, as its text describes it).
pub(super) const HOURS: [u64; 24] = [
    250, 250, 250, 250, 300, 1000, 300, 400, 700, 900, 1000, 1000, 900, 900, 1000, 1000, 1000, 900,
    800, 400, 350, 300, 300, 250,
];
