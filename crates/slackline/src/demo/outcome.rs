//! What one run of the load gave, and whether it kept its promises.

use super::samples::Samples;
use units::{Bytes, Duration, Rate};

/// A group of streams that asked for the same.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// What each asked for.
    pub asked: Rate,
    /// What each got.
    pub got: Vec<Rate>,
    /// From the instant at which a piece was due to that at which the program
    /// had it (or had handed it over). A piece that was due and had not come
    /// when the run ended counts with the time it had waited by then.
    pub latency: Samples,
    /// Requests to the disk, and how many of them ended after their deadline.
    pub requests: u64,
    /// See [`Streams::requests`].
    pub late_requests: u64,
    /// Times that a program within its rate found its window not ready.
    pub underruns: u64,
}

impl Streams {
    /// What all got together.
    pub fn got_total(&self) -> Rate {
        self.got.iter().copied().sum()
    }
    /// What the worst served one got.
    pub fn got_least(&self) -> Rate {
        self.got.iter().copied().min().unwrap_or(Rate::ZERO)
    }
}

/// Greedy best-effort readers, taken together.
#[derive(Clone, Debug, Default)]
pub struct Greedy {
    /// How many there were.
    pub count: usize,
    /// What all got together.
    pub rate: Rate,
    /// From request to answer.
    pub latency: Samples,
}

/// One run under one policy.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The policy's name as the daemon takes it.
    pub policy: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The readers under contract.
    pub readers: Streams,
    /// The writers under contract.
    pub writers: Streams,
    /// What took the rest of the disk.
    pub greedy: Greedy,
    /// How late the host woke a program that slept until its time.
    pub host_lateness: Samples,
    /// Bytes that were found right: read by streams, read by the greedy ones,
    /// written and read back, the video.
    pub bytes_verified: Bytes,
    /// Frames of the video that came back as they were.
    pub frames: u64,
    /// Bytes or frames that were not right, in words.
    pub wrong: Vec<String>,
    /// A piece that comes later than this is late for its program: when it is
    /// due, the program has one piece in hand, and that lasts so long.
    pub piece_period: Duration,
}

impl Outcome {
    /// Requests to the disk that ended after their deadline.
    pub fn late_requests(&self) -> u64 {
        self.readers.late_requests + self.writers.late_requests
    }

    /// Pieces that came after the program had used up the one before.
    pub fn late_pieces(&self) -> u64 {
        let late = |streams: &Streams| streams.latency.above(self.piece_period);
        late(&self.readers) + late(&self.writers)
    }

    /// Latencies of all streams under contract.
    pub fn latency(&self) -> Samples {
        [&self.readers.latency, &self.writers.latency].into_iter().collect()
    }

    /// What breaks the promise of a run under contract, in words.
    pub fn late(&self) -> Vec<String> {
        let underruns = self.readers.underruns + self.writers.underruns;
        let mut late = Vec::new();
        for (count, what) in [
            (self.late_requests(), "requests ended after their deadline"),
            (underruns, "times a window was not ready"),
            (self.late_pieces(), "pieces came too late for their program"),
        ] {
            if count > 0 {
                late.push(format!("{count} {what}"));
            }
        }
        for (streams, name) in [(&self.readers, "reader"), (&self.writers, "writer")] {
            if streams.got_least().get() < streams.asked.get() / 100 * 99 {
                late.push(format!("a {name} got {} of {}", streams.got_least(), streams.asked));
            }
        }
        late
    }
}
