//! The policies, and the table that names them.

use crate::policy::Policy;
use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

mod delta_l;
mod edf;
mod elevator;
mod fcfs;
mod slack;

/// One line registers a policy: its kind, its name, how it starts.
macro_rules! policies {
    ($($(#[$doc:meta])* $kind:ident, $name:literal, $new:expr;)*) => {
        /// Which policy a schedule follows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum PolicyKind {
            $($(#[$doc])* $kind,)*
        }

        impl PolicyKind {
            /// Every policy.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The name that people write.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The policy in its first state.
            pub fn start(self) -> Box<dyn Policy> {
                match self { $(Self::$kind => Box::new($new),)* }
            }
        }
    };
}

policies! {
    /// Best effort in the exact online slack, in bursts. Keeps every contract.
    Slack, "slack", slack::Slack::default();
    /// Best effort in the static slack. Keeps every contract.
    DeltaL, "delta-l", delta_l::DeltaL::default();
    /// Earliest deadline first, best effort when nothing else waits. Best effort
    /// that begins on an idle disk can make requests late.
    Edf, "edf", edf::Edf::default();
    /// First come, first served. Promises nothing.
    Fcfs, "fcfs", fcfs::Fcfs::default();
}

#[allow(clippy::derivable_impls)] // the table stays free of attributes
impl Default for PolicyKind {
    fn default() -> Self {
        Self::Slack
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no policy; prints those that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no such policy; there are")?;
        PolicyKind::ALL.iter().try_for_each(|kind| write!(f, " {kind}"))
    }
}
impl core::error::Error for UnknownPolicy {}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL.iter().copied().find(|kind| kind.name() == text).ok_or(UnknownPolicy)
    }
}
