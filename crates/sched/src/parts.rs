//! Parts for those who write policies: what the policies of this crate share with others.

pub use crate::policies::elevator::{Elevator, Pick};
pub use crate::policies::oldest::oldest;
