//! The classes of what no contract covers.

use crate::api::Priority;
use sched::{Class, Flow};
use store::VolumeId;

/// Requests that must stay in order, and those of no contract, in the slack.
pub(crate) fn in_slack(priority: Priority, volume: VolumeId) -> Class {
    let flow = Flow(volume.0);
    match priority {
        Priority::Interactive => Class::BestEffort { synchronous: true, flow, ordered: false },
        Priority::Normal => Class::BestEffort { synchronous: false, flow, ordered: false },
        Priority::Background => Class::Background,
    }
}
