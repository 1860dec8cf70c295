//! Whether somebody waits for an answer. What was asked is done to its end where he does not
//! (`control`); what takes long, and changes nothing, looks here now and then whether to go on.

use std::sync::{Arc, Weak};

/// Somebody waits, until this is dropped.
#[derive(Default)]
pub struct Waits(Arc<()>);

/// Who asked, as what he has asked for sees him.
#[derive(Clone)]
pub struct Asker(Weak<()>);

impl Waits {
    /// Who waits.
    pub fn asker(&self) -> Asker {
        Asker(Arc::downgrade(&self.0))
    }
}

impl Asker {
    /// Whether he waits still.
    pub fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }
}
