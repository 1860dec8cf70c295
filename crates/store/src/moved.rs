//! Where directories have come to that were renamed, for those who know them by an earlier name.
//!
//! A volume has a number, and is found by it under every name. A directory that no volume stands for
//! has nothing but its name: whoever holds on to one says what it was called at which moment
//! (`/@MOMENT/PATH`). Invariants: moments grow with each rename of a directory, also over a restart as
//! long as the clock does; what was renamed before the first moment that is known here is not found,
//! rather than that another one is; nothing of this is written.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;

/// So many renames are known.
const KNOWN_MAX: usize = 1024;

/// A rename of a directory.
#[derive(Clone, Debug)]
struct Move {
    from: String,
    to: String,
}

/// The renames of directories since the pool was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved {
    /// The moment before the first of them.
    first: u64,
    moves: VecDeque<Move>,
    /// The last moment at which each name was left, or taken.
    touched: BTreeMap<String, u64>,
}

/// The moment and the path in `/@MOMENT/PATH`.
fn at_moment(name: &str) -> Option<(u64, &str)> {
    let (moment, path) = name.strip_prefix("/@")?.split_once('/')?;
    Some((moment.parse().ok()?, path))
}

/// What stands behind a directory in a path that lies under it, or is it.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

impl Moved {
    /// No moment before the first rename is earlier than this.
    pub(crate) fn begin(&mut self, at: u64) {
        if self.moves.is_empty() {
            self.first = self.first.max(at);
        }
    }
    /// This moment.
    pub(crate) fn now(&self) -> u64 {
        self.first + self.moves.len() as u64
    }
    /// A directory gets another name.
    pub(crate) fn note(&mut self, from: &str, to: &str) {
        if self.moves.len() == KNOWN_MAX
            && let Some(Move { from, to }) = self.moves.pop_front()
        {
            self.first += 1;
            for name in [from, to] {
                if self.touched.get(&name) == Some(&self.first) {
                    self.touched.remove(&name);
                }
            }
        }
        self.moves.push_back(Move { from: from.into(), to: to.into() });
        for name in [from, to] {
            self.touched.insert(name.into(), self.now());
        }
    }
    /// Since when the directory that has this name now has had it: 0 where that is not known, and it
    /// was never another's as far as is known here.
    pub(crate) fn since(&self, name: &str) -> u64 {
        let above = name.match_indices('/').map(|(end, _)| &name[..end]);
        above.chain([name]).filter_map(|name| self.touched.get(name)).max().map_or(0, |at| *at)
    }
    /// Whether what had this path at the moment that is said is called something else now.
    pub(crate) fn is_moved(&self, name: &str) -> bool {
        // Only what has come to another name is not where it was said to be.
        matches!(self.found(name), Ok(Some(Cow::Owned(_))))
    }
    /// What is called something else now than at the moment that is said, if one is.
    ///
    /// # Errors
    /// It is gone, or not known any more.
    pub(crate) fn found<'a>(&self, name: &'a str) -> Result<Option<Cow<'a, str>>, Gone> {
        let Some((moment, path)) = at_moment(name) else { return Ok(None) };
        let skipped = moment.checked_sub(self.first).and_then(|since| usize::try_from(since).ok());
        let skipped = skipped.filter(|&skipped| skipped <= self.moves.len()).ok_or(Gone)?;
        if path.starts_with('/') {
            return Err(Gone); // a number is no path
        }
        let mut path = Cow::Borrowed(path);
        for Move { from, to } in self.moves.range(skipped..) {
            if let Some(rest) = below(&path, from) {
                path = Cow::Owned(format!("{to}{rest}"));
            } else if below(&path, to).is_some() {
                return Err(Gone);
            }
        }
        Ok(Some(path))
    }
}

/// A directory is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(moved: &Moved, moment: u64, path: &str) -> Option<String> {
        let name = format!("/@{moment}/{path}");
        moved.found(&name).ok().map(|found| found.expect("it has a moment").into_owned())
    }

    #[test]
    fn a_directory_is_found_under_the_name_that_it_has_come_to() {
        let mut moved = Moved::default();
        moved.begin(100);
        moved.begin(90);
        assert_eq!((moved.now(), moved.since("a/b")), (100, 0));
        assert_eq!(moved.found("a/b"), Ok(None));
        moved.note("a", "x/y");
        moved.begin(200);
        assert_eq!(moved.now(), 101, "the clock goes on beside it");
        assert_eq!(found(&moved, 100, "a/b/c").as_deref(), Some("x/y/b/c"));
        assert_eq!(found(&moved, 100, "ab").as_deref(), Some("ab"));
        // Another one has the old name since.
        assert_eq!(found(&moved, 101, "a/b").as_deref(), Some("a/b"));
        assert_eq!((moved.since("a/b"), moved.since("x/y"), moved.since("x")), (101, 101, 0));
        moved.note("x", "a");
        assert_eq!(found(&moved, 100, "a").as_deref(), Some("a/y"));
        assert_eq!(found(&moved, 101, "a/b"), None, "another one took its place");
        assert!(moved.is_moved("/@100/a") && !moved.is_moved("/@102/a/y") && !moved.is_moved("a"));
        // Of a volume's number nothing is said by that.
        assert_eq!(found(&moved, 102, "/5/x"), None);
        // Of another run, or of one that is yet to come.
        for moment in [0, 99, 103, u64::MAX] {
            assert_eq!(found(&moved, moment, "z"), None);
        }
    }

    #[test]
    fn what_was_renamed_too_long_ago_is_not_found_rather_than_another() {
        let mut moved = Moved::default();
        moved.note("a", "b");
        for round in 0..KNOWN_MAX {
            moved.note(&format!("from{round}"), &format!("to{round}"));
        }
        assert_eq!((found(&moved, 0, "a"), moved.since("b")), (None, 0));
        assert_eq!(found(&moved, 1, "from0/x").as_deref(), Some("to0/x"));
        assert_eq!(moved.touched.len(), 2 * KNOWN_MAX);
    }
}
