//! How a token begins, and how long one can be.

/// Most restrictions of one token. A daemon makes at most four; each narrowing adds as many.
pub const RESTRICTIONS_MAX: usize = 32;
/// How every token begins: a person who finds one knows what it is.
pub const PREFIX: &str = "slt1_";
/// Longest token, in characters: it fits behind a volume's name where NBD has room for 4,096.
pub const TEXT_MAX: usize = 3_000;
