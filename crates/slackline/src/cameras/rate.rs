//! The rate that a camera has, and the contract that suits it.
//!
//! Pure: time is an argument, since the start of the camera's thread. Invariants: a contract is
//! never larger than the file's bound, and never smaller than the file's rate; a larger one is
//! asked for when the camera was above its contract over a whole window, while its buffer takes
//! the difference; after a refusal nothing is asked for until a time has passed, which doubles.

use std::collections::VecDeque;
use units::{Bytes, Duration, Rate};

/// The spare that a new contract has over what was measured: a ninth part of it.
const SPARE: u64 = 8;
/// A smaller contract is asked for when even the busiest window of so long a time needs less than
/// three quarters of it.
const CALM: Duration = Duration::from_secs(600);
/// Parts of it that are told apart.
const CALM_PARTS: u64 = 10;
/// Parts of a window that are told apart.
const PARTS: u64 = 10;
/// After a refusal the next question waits so long at first, and at most so long.
const AGAIN: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(900));

/// Counts a camera's bytes.
#[derive(Debug)]
pub struct Meter {
    window: Duration,
    /// Parts of the window that have ended: which, and their bytes. The last is the present one.
    parts: VecDeque<(u64, u64)>,
    /// The part in which the command began to give bytes.
    first: Option<u64>,
    /// The largest rate of a window in each part of [`CALM`].
    peaks: VecDeque<(u64, Rate)>,
    total: u64,
}

impl Meter {
    /// One that measures over such windows.
    pub fn new(window: Duration) -> Self {
        let (parts, peaks) = (VecDeque::new(), VecDeque::new());
        Self { window, parts, first: None, peaks, total: 0 }
    }

    fn part(&self, now: Duration) -> u64 {
        now.as_nanos() / (self.window.as_nanos() / PARTS).max(1)
    }

    /// So many bytes have come.
    pub fn add(&mut self, now: Duration, bytes: u64) {
        let part = self.part(now);
        self.total += bytes;
        // What a part that had begun before has is no measure.
        self.first.get_or_insert(part + 1);
        match self.parts.back_mut() {
            Some(last) if last.0 == part => last.1 += bytes,
            _ => self.parts.push_back((part, bytes)),
        }
        if let Some(rate) = self.rate(now) {
            let minute = now.as_nanos() / (CALM.as_nanos() / CALM_PARTS);
            match self.peaks.back_mut() {
                Some(last) if last.0 == minute => last.1 = last.1.max(rate),
                _ => self.peaks.push_back((minute, rate)),
            }
            while self.peaks.front().is_some_and(|&(old, _)| old + CALM_PARTS < minute) {
                self.peaks.pop_front();
            }
        }
    }

    /// The command begins anew: its first window is not over.
    pub fn restart(&mut self) {
        self.parts.clear();
        self.first = None;
    }

    /// The rate over the last whole window; none where the command is younger.
    pub fn rate(&mut self, now: Duration) -> Option<Rate> {
        let part = self.part(now);
        while self.parts.front().is_some_and(|&(old, _)| old + PARTS < part) {
            self.parts.pop_front();
        }
        if self.first? + PARTS > part {
            return None;
        }
        let bytes = self.parts.iter().filter(|&&(at, _)| at < part).map(|&(_, bytes)| bytes).sum();
        Some(Rate::of(Bytes::new(bytes), self.window))
    }

    /// The largest rate of a window in the last ten minutes; none where less than that was seen.
    fn peak(&self) -> Option<Rate> {
        (self.peaks.len() as u64 >= CALM_PARTS)
            .then(|| self.peaks.iter().map(|&(_, rate)| rate).max())
            .flatten()
    }

    /// All bytes so far.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// The rate of a camera's contract.
#[derive(Debug)]
pub struct Terms {
    /// What the file asks for.
    asked: Rate,
    /// The most that it lets this ask for.
    most: Rate,
    /// What is in force, or was when there was a stream.
    now: Rate,
    not_before: Duration,
    patience: Duration,
}

impl Terms {
    /// Those of the file.
    pub fn new(asked: Rate, most: Rate) -> Self {
        Self { asked, most, now: asked, not_before: Duration::ZERO, patience: AGAIN.0 }
    }

    /// What is in force.
    pub fn now(&self) -> Rate {
        self.now
    }

    /// Which contract to ask for in place of what is in force.
    pub fn wish(&self, now: Duration, meter: &mut Meter) -> Option<Rate> {
        if now < self.not_before {
            return None;
        }
        let measured = meter.rate(now)?;
        if measured > self.now {
            let wish = with_spare(measured).min(self.most);
            return (wish > self.now).then_some(wish);
        }
        let wish = with_spare(meter.peak()?).max(self.asked);
        (wish.get() < self.now.get() / 4 * 3).then_some(wish)
    }

    /// What it needs, where it gives more than its contract, and has the most that may be asked for.
    pub fn lacks(&self, now: Duration, meter: &mut Meter) -> Option<Rate> {
        let is_most = self.now >= self.most && now >= self.not_before;
        let measured = meter.rate(now).filter(|&rate| is_most && rate > self.now)?;
        Some(with_spare(measured))
    }

    /// Somebody else gave the contract this rate.
    pub fn set(&mut self, rate: Rate) {
        self.now = rate;
    }

    /// The contract has this rate from now on.
    pub fn granted(&mut self, rate: Rate) {
        (self.now, self.patience, self.not_before) = (rate, AGAIN.0, Duration::ZERO);
    }

    /// It was refused, and so much would fit at the most: what to ask for at once in its place,
    /// where that is more than there is.
    pub fn refused(&mut self, now: Duration, fits: Option<Rate>) -> Option<Rate> {
        self.not_before = now.saturating_add(self.patience);
        self.patience = self.patience.saturating_mul(2).min(AGAIN.1);
        // A hundredth more is not worth a question.
        fits.filter(|fits| fits.get() > self.now.get() / 100 * 101).map(|fits| fits.min(self.most))
    }

    /// The stream is gone, and what it had may not fit any more: from the file's rate again.
    pub fn reset(&mut self) {
        self.now = self.asked;
    }
}

/// With spare, in two figures that suffice.
fn with_spare(rate: Rate) -> Rate {
    let wanted = rate.get().saturating_add(rate.get() / SPARE);
    let mut unit = 1;
    while wanted / unit >= 100 {
        unit *= 10;
    }
    Rate::per_second(wanted.div_ceil(unit).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn mb(megabytes: u64) -> Rate {
        Rate::per_second(megabytes * 1_000_000)
    }

    /// Gives so many bytes a second from one time to another, in ten pieces a second.
    fn feed(meter: &mut Meter, from_s: u64, to_s: u64, rate: Rate) {
        for tenth in from_s * 10..to_s * 10 {
            meter.add(at(tenth * 100 + 50), rate.get() / 10);
        }
    }

    #[test]
    fn a_rate_is_that_of_a_whole_window_and_not_of_a_burst() {
        let mut meter = Meter::new(WINDOW);
        feed(&mut meter, 0, 11, mb(2));
        assert_eq!(meter.rate(at(10_950)), None, "the first window is not over");
        feed(&mut meter, 11, 12, mb(2));
        assert_eq!(meter.rate(at(12_000)), Some(mb(2)));
        // A large frame: 2 MB at once are 0.2 MB/s more in a window, for ten seconds.
        meter.add(at(12_010), 2_000_000);
        feed(&mut meter, 12, 13, mb(2));
        assert_eq!(meter.rate(at(13_001)), Some(Rate::per_second(2_200_000)));
        feed(&mut meter, 13, 30, mb(2));
        assert_eq!(meter.rate(at(30_000)), Some(mb(2)));
        // Silence counts.
        assert_eq!(meter.rate(at(35_000)), Some(mb(1)));
        meter.restart();
        assert_eq!(meter.rate(at(35_000)), None);
    }

    #[test]
    fn a_camera_above_its_contract_gets_a_larger_one_and_later_a_smaller_one_again() {
        let (mut meter, mut terms) = (Meter::new(WINDOW), Terms::new(mb(2), mb(8)));
        feed(&mut meter, 0, 15, mb(2));
        assert_eq!(terms.wish(at(15_000), &mut meter), None, "it has what it needs");
        feed(&mut meter, 15, 26, mb(3));
        let wish = terms.wish(at(26_000), &mut meter).unwrap();
        assert_eq!(wish, Rate::per_second(3_400_000), "3 MB/s, an eighth more, in two figures");
        terms.granted(wish);
        assert_eq!(terms.wish(at(26_000), &mut meter), None);
        // Ten calm minutes, and not before they are over.
        feed(&mut meter, 26, 500, mb(1));
        assert_eq!(terms.wish(at(500_000), &mut meter), None);
        feed(&mut meter, 500, 800, mb(1));
        assert_eq!(terms.wish(at(800_000), &mut meter), Some(mb(2)), "not below the file's");
    }

    #[test]
    fn no_more_is_asked_for_than_the_file_lets() {
        let (mut meter, mut terms) = (Meter::new(WINDOW), Terms::new(mb(2), mb(3)));
        feed(&mut meter, 0, 12, mb(9));
        assert_eq!(terms.wish(at(12_000), &mut meter), Some(mb(3)));
        assert_eq!(terms.lacks(at(12_000), &mut meter), None, "it may ask for more");
        terms.granted(mb(3));
        assert_eq!(terms.wish(at(12_000), &mut meter), None);
        let needs = Rate::per_second(11_000_000);
        assert_eq!(terms.lacks(at(12_000), &mut meter), Some(needs), "9 MB/s, and an eighth");
        terms.refused(at(12_000), None);
        assert_eq!(terms.lacks(at(20_000), &mut meter), None, "not told again at once");
        // Who gives it more by hand has what the file does not let it ask for.
        feed(&mut meter, 12, 90, mb(9));
        terms.set(needs);
        let asked = (terms.wish(at(90_000), &mut meter), terms.lacks(at(90_000), &mut meter));
        assert_eq!((asked, terms.now()), ((None, None), needs));
    }

    #[test]
    fn after_a_refusal_it_takes_what_fits_and_asks_again_later() {
        let (mut meter, mut terms) = (Meter::new(WINDOW), Terms::new(mb(2), mb(8)));
        feed(&mut meter, 0, 12, mb(4));
        let wish = terms.wish(at(12_000), &mut meter).unwrap();
        assert!(wish > mb(4));
        let fits = Rate::per_second(2_500_000);
        assert_eq!(terms.refused(at(12_000), Some(fits)), Some(fits));
        assert_eq!(terms.refused(at(12_000), Some(mb(2))), None, "as much as there is");
        feed(&mut meter, 12, 300, mb(4));
        assert_eq!(terms.wish(at(70_000), &mut meter), None, "too early");
        assert!(terms.wish(at(300_000), &mut meter).is_some());
    }
}
