//! The one block of memory that data passes through, but for that of shared windows,
//! which lie beside it ([`Regions`]).
//!
//! Invariants: a page is lent to at most one holder at a time ([`Loans`]): a
//! device that fills it, or a handle that a program reads or writes through.
//! Memory that is lent to nobody is touched by nobody, except that a device may
//! read it. This is what makes the references in [`Chunk`](crate::Chunk) and
//! [`ChunkMut`](crate::ChunkMut) sound, whatever the node decides: a decision
//! that lends a page twice is caught here and ends the process.

use crate::regions::Regions;
use crate::sys::Mapping;
use node::{Region, Span};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Bytes;

/// What memory is lent in.
pub(crate) const PAGE: Bytes = Bytes::kib(4);

/// The size of a huge page on the machines that we know.
const HUGE_PAGE: Bytes = Bytes::mib(2);

/// The longest piece that the kernel takes as one registered buffer.
const REGISTERED_MAX: usize = 1 << 30;

/// Which pages the arena is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pages {
    /// Of the machine's ordinary size.
    Small,
    /// Large where the kernel has some at the moment: fewer pieces in each
    /// transfer, and so less work for the kernel and the device.
    #[default]
    LargeIfAny,
    /// Those that the machine has set aside (`vm.nr_hugepages`); if there are
    /// too few, as [`Pages::LargeIfAny`], with a warning.
    LargeSetAside,
}

/// Page-aligned memory, locked where the system permits.
#[derive(Debug)]
pub(crate) struct Arena {
    mapping: Mapping,
    len: Bytes,
    regions: Regions,
    loans: Loans,
}

impl Arena {
    /// An arena of `len` bytes; what the system did not permit is told in `warnings`.
    ///
    /// # Errors
    /// When the system has not so much memory.
    pub(crate) fn new(len: Bytes, pages: Pages, warnings: &mut Vec<String>) -> io::Result<Self> {
        let mapping = Self::map(len, pages, warnings)?;
        if let Err(error) = mapping.lock() {
            warnings.push(format!(
                "the arena of {len} is not locked in memory ({error}), so that memory pressure can \
                 make requests late; raise the limit of locked memory (systemd: \
                 LimitMEMLOCK=infinity, shell: ulimit -l)"
            ));
        }
        let loans = Loans::new(len);
        Ok(Self { mapping, len, regions: Regions::new(), loans })
    }

    /// An arena whose pages come when they are touched: none, in a test without bytes.
    #[cfg(test)]
    pub(crate) fn untouched(len: Bytes) -> io::Result<Self> {
        let mapping = Mapping::new(len.as_usize(), false)?;
        let loans = Loans::new(len);
        Ok(Self { mapping, len, regions: Regions::new(), loans })
    }

    fn map(len: Bytes, pages: Pages, warnings: &mut Vec<String>) -> io::Result<Mapping> {
        if pages == Pages::LargeSetAside {
            match Mapping::new(len.round_up(HUGE_PAGE).as_usize(), true) {
                Ok(mapping) => return Ok(mapping),
                Err(error) => warnings.push(format!(
                    "no huge pages for the arena ({error}); set aside {} with vm.nr_hugepages",
                    len.div_ceil(HUGE_PAGE)
                )),
            }
        }
        let mapping = Mapping::new(len.as_usize(), false)?;
        if pages != Pages::Small {
            // Where the kernel does not know of large pages, small ones do.
            let _ = mapping.advise_huge();
        }
        Ok(mapping)
    }

    /// The memory of shared windows.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Lends the pages of a span of the arena. Panics when one of them is lent.
    pub(crate) fn lend(&self, span: Span) {
        self.loans.lend(span);
    }

    /// Takes the pages of a loan back. Panics when one of them is not lent.
    pub(crate) fn take_back(&self, span: Span) {
        self.loans.take_back(span);
    }

    /// Whether all pages were given back.
    #[cfg(test)]
    pub(crate) fn is_nothing_lent(&self) -> bool {
        self.loans.is_nothing_lent()
    }

    /// The address of a span, of the arena or of a region. Panics when it lies outside.
    pub(crate) fn pointer(&self, span: Span) -> *mut u8 {
        if let Some((region, place)) = Region::of(&span) {
            return self.regions.pointer(region, place, span.len);
        }
        let end = span.offset.checked_add(span.len);
        assert!(end.is_some_and(|end| end <= self.len), "{span:?} outside the arena");
        self.mapping.base().wrapping_add(span.offset.as_usize())
    }

    /// The pieces to register with the kernel, in order, each but the last of
    /// [`REGISTERED_MAX`].
    pub(crate) fn pieces(&self) -> Vec<libc::iovec> {
        let len = self.len.as_usize();
        (0..len)
            .step_by(REGISTERED_MAX)
            .map(|start| libc::iovec {
                iov_base: self.mapping.base().wrapping_add(start).cast(),
                iov_len: REGISTERED_MAX.min(len - start),
            })
            .collect()
    }

    /// The registered piece that holds all of `span`, if one does. Regions come and go
    /// with their streams and are not registered.
    pub(crate) fn piece(&self, span: Span) -> Option<u16> {
        if Region::of(&span).is_some() {
            return None;
        }
        let first = span.offset.as_usize() / REGISTERED_MAX;
        let last = (span.offset.as_usize() + span.len.as_usize() - 1) / REGISTERED_MAX;
        if first == last { u16::try_from(first).ok() } else { None }
    }
}

/// Which pages of an arena are lent: a bit for each. Without a lock, since each operation lends and
/// takes back twice. Each step changes a word and sees at once what it was before, so that of two who
/// lend a page the second finds it lent.
#[derive(Debug)]
struct Loans {
    words: Vec<AtomicU64>,
}

impl Loans {
    /// Nothing lent of an arena of `len`.
    fn new(len: Bytes) -> Self {
        Self { words: (0..len.div_ceil(PAGE * 64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Lends the pages that `span` touches. Panics when one of them is lent.
    fn lend(&self, span: Span) {
        for (word, bits) in Self::pages(span) {
            let before = self.words[word].fetch_or(bits, Ordering::AcqRel);
            assert_eq!(before & bits, 0, "memory lent twice: {span:?}");
        }
    }

    /// Takes the pages of a loan back. Panics when one of them is not lent.
    fn take_back(&self, span: Span) {
        for (word, bits) in Self::pages(span) {
            let before = self.words[word].fetch_and(!bits, Ordering::AcqRel);
            assert_eq!(before & bits, bits, "memory that was not lent: {span:?}");
        }
    }

    /// Whether all pages were given back.
    #[cfg(test)]
    fn is_nothing_lent(&self) -> bool {
        self.words.iter().all(|word| word.load(Ordering::Acquire) == 0)
    }

    /// The words that the pages of a span lie in, and which bits of them.
    fn pages(span: Span) -> impl Iterator<Item = (usize, u64)> {
        let first = (span.offset / PAGE) as usize;
        let end = (span.offset + span.len).div_ceil(PAGE) as usize;
        let end = if span.len.is_zero() { first } else { end };
        (first / 64..end.div_ceil(64)).map(move |word| {
            let from = first.saturating_sub(word * 64);
            let upto = (end - word * 64).min(64);
            let below = |n: usize| if n == 64 { u64::MAX } else { (1u64 << n) - 1 };
            (word, below(upto) & !below(from))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, len: u64) -> Span {
        Span { offset: Bytes::new(offset), len: Bytes::new(len) }
    }

    #[test]
    fn a_page_is_lent_to_one_holder_at_a_time() {
        // Against a plain list of pages, over spans of all sizes and places.
        let loans = Loans::new(Bytes::mib(2));
        let mut random = 11u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % n
        };
        let mut held: Vec<Span> = Vec::new();
        let pages = |s: &Span| s.offset.get() / 4096..(s.offset + s.len).div_ceil(PAGE);
        for _ in 0..5_000 {
            let offset = below(2 << 20);
            let asked = span(offset, below((2 << 20) - offset).max(1));
            let clash = held.iter().any(|other| {
                let (a, b) = (pages(&asked), pages(other));
                a.start < b.end && b.start < a.end
            });
            if !clash {
                loans.lend(asked);
                held.push(asked);
            } else {
                let word = Loans::pages(asked)
                    .any(|(word, bits)| loans.words[word].load(Ordering::Acquire) & bits != 0);
                assert!(word, "{asked:?} clashes and is not seen");
            }
            if below(3) > 0 && !held.is_empty() {
                let at = below(held.len() as u64) as usize;
                loans.take_back(held.swap_remove(at));
            }
        }
        held.into_iter().for_each(|span| loans.take_back(span));
        assert!(loans.is_nothing_lent());
    }

    /// Two threads lend and take back neighbouring pages, whose bits are in one word.
    #[test]
    fn what_two_threads_lend_at_once_is_told_apart() {
        let loans = Loans::new(Bytes::mib(1));
        let lends = |page: u64| {
            for _ in 0..200_000 {
                loans.lend(span(page * 4096, 4096));
                loans.take_back(span(page * 4096, 4096));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| lends(4));
            lends(5);
        });
        assert!(loans.is_nothing_lent());
    }

    #[test]
    #[should_panic(expected = "lent twice")]
    fn lending_a_page_twice_is_caught() {
        let loans = Loans::new(Bytes::mib(1));
        loans.lend(span(4096, 10));
        loans.lend(span(0, 4097));
    }

    #[test]
    #[should_panic(expected = "not lent")]
    fn taking_back_what_was_not_lent_is_caught() {
        Loans::new(Bytes::mib(1)).take_back(span(0, 1));
    }

    #[test]
    fn an_arena_is_zeroed_and_bounded() {
        let mut warnings = Vec::new();
        let arena = Arena::new(Bytes::mib(4), Pages::LargeSetAside, &mut warnings).unwrap();
        assert_eq!(arena.pieces().len(), 1);
        assert_eq!(arena.piece(span(4 << 20, 0x1000)), Some(0));
        let arena = std::panic::AssertUnwindSafe(arena);
        let outside = std::panic::catch_unwind(|| arena.pointer(span((4 << 20) - 1, 2)));
        assert!(outside.is_err());
    }
}
