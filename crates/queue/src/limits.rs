//! How the gaps between commands are measured; how much is looked at when commands are given up;
//! when commands do not grow.

use units::Duration;

/// The gap that is stated is one that so many millionths of those measured do not exceed:
/// as many as of commands do not exceed their bounds
/// ([`STATED_PPM`](disk::online::STATED_PPM)).
pub const GAP_QUANTILE_PPM: u64 = 1_000_000 - disk::online::STATED_PPM;
/// Gaps that have to be measured before anything is stated for them: of fewer, that quantile
/// is the largest.
pub const GAPS_LEAST: u64 = 1_024;
/// Gaps in one spell. The quantile is of the spell that runs and the whole one before it, so
/// that a trouble of the host's is forgotten after two.
pub const GAPS_SPELL: u64 = 8_192;
/// A spell is whole after so long, whatever it has: one bad minute of a host that has little to do
/// afterwards is forgotten after two.
pub const GAPS_SPELL_TIME: Duration = Duration::from_secs(600);
/// How many more gaps are measured before the quantile is looked at again: a look takes as
/// long as some tens of them.
pub const GAPS_LOOK: u64 = 256;
/// What is stated is so much more than the quantile, in percent: a quantile that moves a
/// little is not stated again each time, since all contracts are admitted anew for it.
pub const GAP_MARGIN_PERCENT: u64 = 25;
/// No gap is stated that is longer: what takes more is a host that was stopped, which no
/// admission makes up for.
pub const GAP_MAX: Duration = Duration::from_millis(10);

/// Best-effort commands that others have passed, of which one look asks whether there will ever
/// be slack for them: a computation each, over all contracts.
pub const GIVEN_UP_LOOKS: usize = 16;

/// Requests that came before a request, or behind it, of which one is looked for that goes on where
/// it begins or ends.
pub const NEIGHBOURS: usize = 8;

/// While best effort that somebody waits for has come within so long, more of it is counted with.
pub const SOMEBODY_WAITS: Duration = Duration::from_secs(1);

const _: () = {
    assert!(GAPS_LEAST * disk::online::STATED_PPM >= 1_000_000);
    assert!(GAPS_LEAST <= GAPS_SPELL && GAPS_SPELL.is_multiple_of(GAPS_LOOK));
    assert!(GAP_MAX.as_nanos() <= sched::limits::PERIOD_MAX.as_nanos());
};
