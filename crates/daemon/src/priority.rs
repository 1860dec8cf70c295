//! Priorities, as a request states them and as the pool knows them.

use wire::control as api;

/// A priority as the node takes it.
pub fn priority(priority: api::Priority) -> node::Priority {
    match priority {
        api::Priority::Interactive => node::Priority::Interactive,
        api::Priority::Normal => node::Priority::Normal,
        api::Priority::Background => node::Priority::Background,
    }
}
