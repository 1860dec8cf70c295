//! What is told of requests that may be late now and then.

use serde::{Deserialize, Serialize};

/// What came of requests of streams that may be late now and then, since the pool was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OddsState {
    /// How many are done.
    pub requests: u64,
    /// How many of them were late.
    pub late_requests: u64,
    /// What is not as it was said when their contracts were taken; left out where nothing is
    /// known to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<OddsBroken>,
}

/// What is not as it was said. The test that finds it is wrong once in 10^9 times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OddsBroken {
    /// More requests are late.
    Late,
    /// Commands cost more than was measured.
    Costs,
}
