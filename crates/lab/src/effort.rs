//! How thorough a run is.

/// How thorough a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As long as the paper's, or longer: the report is made of these.
    Thorough,
    /// Short, for tests.
    Quick,
}
