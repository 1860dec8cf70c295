//! What a look at a volume has shown as best effort, where no window holds it.
//!
//! Invariants: it is what was there at the last look; it is shown further, read and passed from
//! where it begins on, as long as nobody goes elsewhere; a second look at one place is a new one.

/// See the module.
#[derive(Debug, Default)]
pub struct Seen {
    /// Where the bytes stand.
    start: u64,
    bytes: Vec<u8>,
    /// Where the last look was; none before the first one.
    looked_at: Option<u64>,
}

impl Seen {
    /// A look at this place has shown these bytes.
    pub fn new(start: u64, bytes: Vec<u8>) -> Self {
        Self { start, bytes, looked_at: Some(start) }
    }

    /// What was shown from this place on; none where that is nothing.
    pub fn at(&self, place: u64) -> Option<&[u8]> {
        let passed = usize::try_from(place.checked_sub(self.start)?).ok()?;
        self.bytes.get(passed..).filter(|rest| !rest.is_empty())
    }

    /// Whether a look at this place shows what is here, as one that goes on behind what was
    /// passed; if not, it is to be read.
    pub fn shows_next(&mut self, place: u64) -> bool {
        let is_next = self.at(place).is_some() && self.looked_at != Some(place);
        self.looked_at = Some(place);
        is_next
    }

    /// Shows nothing any more.
    pub fn forget(&mut self) {
        self.bytes.clear();
    }

    /// Memory for so many bytes of the next look; this shows nothing any more.
    pub fn memory(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(len, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_goes_on_and_a_second_look_is_a_new_one() {
        let mut seen = Seen::default();
        assert!(!seen.shows_next(0));
        seen = Seen::new(5, vec![1, 2, 3]);
        assert_eq!(seen.at(6), Some(&[2, 3][..]));
        assert_eq!((seen.at(4), seen.at(8)), (None, None));
        assert!(!seen.shows_next(5), "it was shown already");
        assert!(seen.shows_next(6) && !seen.shows_next(6), "one byte was passed");
        assert!(seen.shows_next(7) && !seen.shows_next(8));
        seen.forget();
        assert!(!seen.shows_next(6));
    }
}
