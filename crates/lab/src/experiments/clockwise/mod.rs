//! P. Bosch, Mixed-Media File Systems, thesis, University of Twente, 1999.

pub(super) mod chapter_3;
pub(super) mod chapter_4;
pub(super) mod chapter_6;
pub(super) mod chapter_7;
mod cheetahs;
mod fig_8_1;
mod first_come;
mod pci;
mod raw;
mod section_7_1;
mod table_6_2;

use crate::Experiment;

/// In the order of the thesis.
pub(super) const EXPERIMENTS: &[Experiment] = &[table_6_2::EXPERIMENT, section_7_1::EXPERIMENT];

/// The outlook of the last chapter.
pub(super) const CHAPTER_8: &[Experiment] = &[fig_8_1::EXPERIMENT];
