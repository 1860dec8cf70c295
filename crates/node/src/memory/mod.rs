//! Who holds which piece of memory.

pub(crate) mod arena;
pub(crate) mod places;
