//! How a finding is made.

use units::Duration;
use wire::control::{Finding, Weight};

/// A recording that has less than this left is told of.
pub const SOON_FULL: Duration = Duration::from_secs(3_600);

pub(super) fn broken(key: String, what: String, next_step: impl Into<String>) -> Finding {
    let next_step = next_step.into();
    Finding { key, volume: None, weight: Weight::Broken, what, next_step }
}

pub(super) fn look(key: String, what: String, next_step: impl Into<String>) -> Finding {
    Finding { weight: Weight::Look, ..broken(key, what, next_step) }
}

/// The same, which is about this volume.
pub(super) fn on(volume: &str, finding: Finding) -> Finding {
    Finding { volume: Some(volume.into()), ..finding }
}
