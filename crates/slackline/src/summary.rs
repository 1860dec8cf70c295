//! What a transfer came to, in one line or as JSON.

use crate::output::counted;
use client::control::Stream;
use serde::Serialize;
use std::time::Instant;
use units::{Bytes, Duration, Rate};

/// What a transfer came to.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The volume.
    pub volume: String,
    /// `record` or `play`.
    pub command: &'static str,
    /// Bytes that were moved.
    pub bytes: u64,
    /// The volume offset at the start.
    pub start_bytes: u64,
    /// Writers: the volume offset up to which the daemon has taken the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_bytes: Option<u64>,
    /// Writers: everything before this volume offset survives a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable_bytes: Option<u64>,
    /// Time that it took.
    pub elapsed_ns: u64,
    /// The daemon's account; none where it could not be asked any more.
    #[serde(flatten)]
    pub account: Option<Account>,
}

/// What the daemon has counted of a stream.
#[derive(Debug, Serialize)]
pub struct Account {
    /// Disk requests.
    pub requests: u64,
    /// Disk requests done after their deadline.
    pub late_requests: u64,
    /// The latest of them, after its deadline.
    pub late_max_ns: u64,
    /// Times that the window was not ready for a program within its rate.
    pub underruns: u64,
    /// Times that the program was slowed to its rate.
    pub throttled: u64,
    /// Bytes given up as declared gaps.
    pub gap_bytes: u64,
    /// Of these, what the ring had given up before it was read.
    pub overtaken_bytes: u64,
}

impl From<&Stream> for Account {
    fn from(stream: &Stream) -> Self {
        Self {
            requests: stream.requests,
            late_requests: stream.late_requests,
            late_max_ns: stream.late_max_ns.as_nanos(),
            underruns: stream.underruns,
            throttled: stream.throttled,
            gap_bytes: stream.gap_bytes.get(),
            overtaken_bytes: stream.overtaken_bytes.get(),
        }
    }
}

impl Summary {
    /// Of `bytes` from `start`, since `began`.
    pub fn new(
        command: &'static str,
        volume: &str,
        start: Bytes,
        bytes: Bytes,
        began: Instant,
    ) -> Self {
        Self {
            volume: volume.into(),
            command,
            bytes: bytes.get(),
            start_bytes: start.get(),
            accepted_bytes: None,
            durable_bytes: None,
            elapsed_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            account: None,
        }
    }

    /// With the daemon's account of the stream, and the name that the volume has by now.
    pub fn count(&mut self, stream: &Stream) {
        (self.volume, self.account) = (stream.volume.clone(), Some(stream.into()));
    }

    /// In one line.
    pub fn line(&self) -> String {
        let (bytes, elapsed) = (Bytes::new(self.bytes), Duration::from_nanos(self.elapsed_ns));
        let rate = Rate::of(bytes, elapsed);
        let moved = match self.command {
            "record" => "recorded",
            _ => "played",
        };
        let mut line = format!("{moved} {bytes} in {elapsed} ({rate}): ");
        if let (Some(accepted), Some(durable)) = (self.accepted_bytes, self.durable_bytes) {
            let so_far = |offset: u64| Bytes::new(offset - self.start_bytes);
            line.push_str(&format!("{} accepted, {} durable", so_far(accepted), so_far(durable)));
            line.push_str(match self.account {
                Some(_) => ", ",
                None if durable < accepted => "; what is not durable may be lost",
                None => "",
            });
        }
        line.push_str(&self.account.as_ref().map_or_else(String::new, Account::words));
        line.push('\n');
        line
    }
}

impl Account {
    fn words(&self) -> String {
        let requests = counted(self.requests, "disk request");
        let mut words = match self.late_requests {
            0 => format!("none of {requests} late"),
            late => {
                let most = Duration::from_nanos(self.late_max_ns);
                format!("{late} of {requests} late, by {most} at the most")
            }
        };
        if self.underruns > 0 {
            words.push_str(&format!(", {}", counted(self.underruns, "underrun")));
        }
        if self.gap_bytes > 0 {
            words.push_str(&format!(", {} lost in gaps", Bytes::new(self.gap_bytes)));
        }
        words
    }
}
