//! What pools and volumes may be called.

/// Longest name of a pool or a volume.
pub(crate) const NAME_MAX: usize = 64;

/// What a name must be.
pub(crate) const NAME_RULE: &str = "1 to 64 of A-Z a-z 0-9 . _ -";

pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(allowed)
}
