//! What reads the input of a recording, and whether the contract slowed it.
//!
//! A camera that makes more than its contract allows cannot go on while nobody takes its
//! bytes: it loses frames somewhere, and nobody else will say so.

use crate::failure::{Failure, SLOWED};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, TrySendError};
use std::time::Instant;
use units::{Bytes, Duration, Rate};

/// Longest piece that is read at once: what one frame carries.
const PIECE: usize = wire::frame::BODY_MAX;
/// What gave its bytes for less than this has no rate that one could ask for.
const MEASURED: Duration = Duration::from_secs(2);
/// A source that was slowed for less than this is not worth a word.
const WORTH_TELLING: Duration = Duration::from_millis(100);

/// An input that is read on a thread of its own, one piece ahead: an interrupt must end the
/// recording even while the input has nothing to say.
pub struct Source {
    /// What it brings.
    pub pieces: Receiver<io::Result<Vec<u8>>>,
    /// Nanoseconds that it had a piece and nobody took it.
    held_up: Arc<AtomicU64>,
    loses: bool,
    began: Instant,
}

/// What is to be recorded.
pub struct Input {
    from: Box<dyn Read + Send>,
    /// It may lose what nobody takes in time: a program behind a pipe may make the bytes now. How
    /// quick it is says nothing of that: a camera may give ten times its contract.
    loses: bool,
}

impl Input {
    /// A file of the system. A regular file and a disk wait for whoever reads them.
    pub fn file(file: File) -> Self {
        let of = file.metadata().map(|metadata| metadata.file_type());
        let waits = of.is_ok_and(|of| of.is_file() || of.is_block_device());
        Self { from: Box::new(file), loses: !waits }
    }

    /// Standard input.
    pub fn standard() -> Self {
        let input = io::stdin();
        let own = input.as_fd().try_clone_to_owned().map(File::from);
        let loses = own.map_or(true, |own| Self::file(own).loses);
        Self { from: Box::new(input), loses }
    }

    /// The same of which the user says that it waits, as a copy does.
    #[must_use]
    pub fn waiting(self) -> Self {
        Self { loses: false, ..self }
    }

    /// Whether it may lose what nobody takes in time.
    pub fn loses(&self) -> bool {
        self.loses
    }
}

impl Source {
    /// Begins to read.
    pub fn begin(Input { from: mut input, loses }: Input) -> Self {
        let (sender, pieces) = mpsc::sync_channel(1);
        let held_up = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&held_up);
        std::thread::spawn(move || {
            loop {
                let mut piece = vec![0; PIECE];
                let read = match input.read(&mut piece) {
                    Ok(0) => return,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(len) => {
                        piece.truncate(len);
                        Ok(piece)
                    }
                    Err(error) => Err(error),
                };
                let failed = read.is_err();
                let gone = match sender.try_send(read) {
                    Ok(()) => false,
                    Err(TrySendError::Disconnected(_)) => true,
                    Err(TrySendError::Full(read)) => {
                        let since = Instant::now();
                        let sent = sender.send(read);
                        let held = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
                        noted.fetch_add(held, Ordering::Relaxed);
                        sent.is_err()
                    }
                };
                if gone || failed {
                    return;
                }
            }
        });
        Self { pieces, held_up, loses, began: Instant::now() }
    }

    /// Whether the source was slowed while it gave `bytes`, if that harms a source like it.
    pub fn slowed(&self, bytes: Bytes) -> Option<Slowed> {
        let elapsed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let for_so_long = Duration::from_nanos(self.held_up.load(Ordering::Relaxed));
        let of = Duration::from_nanos(elapsed);
        self.loses.then(|| Slowed::by(bytes, for_so_long, of)).flatten()
    }
}

/// A source that had more than the contract let pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowed {
    for_so_long: Duration,
    /// The rate that it had while it was not held up; none where that was too short to tell.
    own: Option<Rate>,
}

impl Slowed {
    /// `bytes` came in the time `of`, of which nobody took what was there for so long.
    fn by(bytes: Bytes, for_so_long: Duration, of: Duration) -> Option<Self> {
        if for_so_long < WORTH_TELLING {
            return None;
        }
        let free = of.saturating_sub(for_so_long);
        let own = (free >= MEASURED).then(|| rounded_up(Rate::of(bytes, free)));
        Some(Self { for_so_long, own })
    }

    /// What is told of it: what came is recorded, and the source may have lost something.
    pub fn failure(&self) -> Failure {
        let what = format!(
            "the source was slowed for {}, and may have lost what nobody took meanwhile",
            self.for_so_long
        );
        let larger = match self.own {
            Some(own) => format!("--rate {}", own.to_string().replace(' ', "")),
            None => "a larger --rate".into(),
        };
        let next_step = format!(
            "what it gave is recorded; use {larger}, or a larger --burst; or say --copy where the \
             source waits and loses nothing"
        );
        Failure { exit_code: SLOWED, ..Failure::new(what, next_step) }
    }
}

/// At least as much, in two figures.
fn rounded_up(rate: Rate) -> Rate {
    let mut unit = 1;
    while rate.get() / unit >= 100 {
        unit *= 10;
    }
    Rate::per_second(rate.get().div_ceil(unit).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A camera that gave four times its contract was taken for a copy: half of its film was lost,
    /// and the command ended with 0.
    #[test]
    fn a_camera_above_its_contract_is_told_its_rate_however_far_above() {
        let by = |mb: u64, held: u64, of: u64| {
            let (held, of) = (Duration::from_millis(held), Duration::from_millis(of));
            Slowed::by(Bytes::new(mb * 1_000_000), held, of)
        };
        assert_eq!(by(120, 99, 60_000), None, "hardly worth a word");
        // Two minutes at 2 MB/s, of which the camera stood for 8.7 s: it makes 2.16.
        let camera = by(240, 8_700, 120_000).unwrap();
        assert_eq!(camera.own, Some(Rate::per_second(2_200_000)));
        let failure = camera.failure();
        assert_eq!(failure.exit_code, SLOWED);
        assert!(failure.what.contains("8.70 s, and may have lost"), "{}", failure.what);
        assert!(failure.next_step.contains("--rate 2.20MB/s,"), "{}", failure.next_step);
        // What a pipe had in it at once is no rate.
        let short = by(60, 110, 240).unwrap().failure();
        assert!(short.next_step.contains("use a larger --rate,"), "{}", short.next_step);
        let far_above = by(12, 7_550, 12_000).unwrap().failure();
        assert_eq!(far_above.exit_code, SLOWED);
        assert!(far_above.next_step.contains("--rate 2.70MB/s,"), "{}", far_above.next_step);
        assert!(far_above.next_step.contains("--copy"), "{}", far_above.next_step);
    }

    /// What waits is what the system says that it is, or what the user does.
    #[test]
    fn a_regular_file_loses_nothing_and_a_pipe_may() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("film");
        std::fs::write(&path, b"film").unwrap();
        assert!(!Input::file(File::open(&path).unwrap()).loses());
        let (end, _other) = io::pipe().unwrap();
        let pipe = || Input::file(File::from(std::os::fd::OwnedFd::from(end.try_clone().unwrap())));
        assert!(pipe().loses());
        assert!(!pipe().waiting().loses());
    }

    #[test]
    fn rates_are_told_in_two_figures_that_suffice() {
        for (rate, told) in [(7, 7), (99, 99), (101, 110), (2_100_000, 2_100_000), (995, 1_000)] {
            assert_eq!(rounded_up(Rate::per_second(rate)), Rate::per_second(told));
        }
        assert!(rounded_up(Rate::per_second(u64::MAX)).get() > u64::MAX / 2);
    }

    /// A reader that nobody empties is held up, and its bytes come all the same.
    #[test]
    fn every_piece_comes_however_late() {
        let bytes: Vec<u8> = (0..PIECE * 3 + 5).map(|at| at as u8).collect();
        let input = Input { from: Box::new(io::Cursor::new(bytes.clone())), loses: false };
        let source = Source::begin(input);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let came: Vec<u8> = source.pieces.iter().flat_map(Result::unwrap).collect();
        assert!(came == bytes);
        assert!(source.held_up.load(Ordering::Relaxed) > 0);
        assert_eq!(source.slowed(Bytes::new(1)), None, "a file loses nothing");
    }
}
