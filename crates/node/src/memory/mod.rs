//! Who holds which piece of memory.

pub(crate) mod arena;
pub(crate) mod cache;
pub(crate) mod kept;
pub(crate) mod line;
pub(crate) mod places;
pub(crate) mod releasing;
pub(crate) mod reserve;
pub(crate) mod rooms;
