//! What pools and volumes may be called.

/// Longest name of a pool or a volume.
pub(crate) const NAME_MAX: usize = 64;

/// What a name must be.
pub(crate) const NAME_RULE: &str = "1 to 64 of A-Z a-z 0-9 . _ -";

/// Longest name of a volume, in bytes: what a change and a frame have room for.
pub const VOLUME_NAME_MAX: usize = 255;

/// Files that were removed while somebody has them open lie under this name, which is that of a
/// directory (`wire` has the same for programs).
pub const REMOVED_DIRECTORY: &str = ".slackline-removed";

/// A volume that is no directory counts in the metadata as if its name had so many bytes at the
/// least: so a file that is removed while somebody has it open gets its name under
/// [`REMOVED_DIRECTORY`] however full the pool is (`wire` has the same for programs).
pub const REMOVED_NAME_MAX: usize = 64;

/// What a volume's name must be.
pub(crate) const VOLUME_NAME_RULE: &str = "1 to 255 bytes of any characters but control ones; parts between '/' are not empty, '.' or '..'";

/// A volume's name is a path: its parts stand between slashes, and none of them is empty, so that
/// `/NUMBER` is no name and can stand for the volume of that number, and `/NUMBER/PATH` for what has
/// this path below the directory of that number, whatever the directory is called by then.
pub(crate) fn is_volume_name(name: &str) -> bool {
    (1..=VOLUME_NAME_MAX).contains(&name.len())
        && !name.chars().any(char::is_control)
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The number in `/NUMBER`. It has no zeros before it: a volume's number has one spelling.
pub(crate) fn number_in(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('/')?;
    if digits.starts_with('0') && digits != "0" {
        return None;
    }
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The number of a directory, and the path below it, in `/NUMBER/PATH`.
pub(crate) fn below_number(name: &str) -> Option<(u64, &str)> {
    let (_, below) = name.strip_prefix('/')?.split_once('/')?;
    let number = number_in(&name[..name.len() - below.len() - 1])?;
    Some((number, below))
}

pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volumes_name_is_a_path_and_a_pools_is_a_word() {
        let longest = "x".repeat(VOLUME_NAME_MAX);
        for name in ["a", "a b", ".git/HEAD", "ü/日本.txt", "a#b", "...", &longest] {
            assert!(is_volume_name(name), "{name}");
        }
        let longer = "x".repeat(VOLUME_NAME_MAX + 1);
        for name in ["", "/", "/a", "a/", "a//b", ".", "a/..", "./a", "a\nb", "a\0", &longer] {
            assert!(!is_volume_name(name), "{name:?}");
        }
        assert!(is_name("a.b-c_9") && !is_name("a/b") && !is_name("a b"));
    }

    #[test]
    fn a_number_is_told_from_every_name() {
        assert_eq!((number_in("/17"), number_in("/0")), (Some(17), Some(0)));
        for name in
            ["17", "/", "/x", "/1x", "//1", "/99999999999999999999", "/+1", "", "/017", "/00"]
        {
            assert_eq!(number_in(name), None, "{name}");
            assert_eq!(below_number(name), None, "{name}");
        }
        assert_eq!(below_number("/17/a/b"), Some((17, "a/b")));
        for name in ["/17", "17/a", "/017/a", "a/17/b", "//17/a"] {
            assert_eq!(below_number(name), None, "{name}");
        }
    }
}
