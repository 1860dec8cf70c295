//! A bus that disks share, as the control interface tells it.

use wire::control as api;

/// A bus as it is told.
pub fn told(share: &node::BusShare) -> api::Bus {
    let plan = share.plan();
    api::Bus {
        name: plan.name.clone(),
        rate_bytes_per_second: plan.rate,
        disks: plan.disks,
        wait_max_ns: share.wait(disk::LARGEST),
    }
}
