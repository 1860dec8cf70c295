//! The policy that was chosen for the pool's disks: kept here, so that it is followed when the
//! pool is served again.
//!
//! The store keeps it and knows no policies. Invariant: of a pool for which none was chosen
//! nothing is written.

use crate::api::KeptPolicy;
use crate::change::{Change, policy_size};
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// The policy that was chosen, if one was.
    pub fn policy(&self) -> Option<&KeptPolicy> {
        self.state.policy.as_ref()
    }

    /// Keeps that this policy was chosen, or that none is any more. The next commit makes it
    /// durable.
    ///
    /// # Errors
    /// As [`Store::check_policy`]; then nothing has changed.
    ///
    /// # Panics
    /// Where it has more settings, or longer names, than there can be.
    pub fn set_policy(&mut self, to: Option<KeptPolicy>) -> Result<(), StoreError> {
        self.check_policy(to.as_ref())?;
        if let Some(KeptPolicy { name, settings }) = &to {
            let is_short = |name: &str| (1..=KeptPolicy::NAME_MAX).contains(&name.len());
            let names = settings.iter().map(|(name, _)| name);
            assert!(names.chain([name]).all(|name| is_short(name)), "a name that is not kept");
            assert!(settings.len() <= KeptPolicy::SETTINGS_MAX, "too many settings");
        }
        if self.state.policy != to {
            self.stage(Change::Policy { policy: to });
        }
        Ok(())
    }

    /// Whether [`Store::set_policy`] could be done now.
    ///
    /// # Errors
    /// Where there is no room in the metadata, or the pool is read-only.
    pub fn check_policy(&self, to: Option<&KeptPolicy>) -> Result<(), StoreError> {
        self.check_writable()?;
        let more = policy_size(to).saturating_sub(policy_size(self.policy()));
        if more > 0 { self.check_metadata(more) } else { Ok(()) }
    }
}
